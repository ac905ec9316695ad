//! A schema, read from its JSON into a list of types that name each other by their places.

use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Of a schema and of those that it refers to.
const NODES_MAX: usize = 65_536;
/// More digits behind the point are no sensible decimal.
const SCALE_MAX: u64 = 1000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    Null,
    Bool,
    Int,
    Long,
    Float,
    Double,
    Bytes,
    Text,
    Fixed(usize),
    /// `None`: its length stands before it.
    Decimal {
        scale: usize,
        fixed: Option<usize>,
    },
    Enum(Vec<String>),
    Array(usize),
    Map(usize),
    Union(Vec<usize>),
    Record(Vec<(String, usize)>),
    /// A type whose fields are being read.
    Open,
}

/// See the folder's header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    pub(super) nodes: Vec<Node>,
    pub(super) root: usize,
}

impl Schema {
    /// `references`: schemas whose names the text uses, each before those that use it.
    ///
    /// # Errors
    /// One of them is no schema of Avro.
    pub fn parse(references: &[String], text: &str) -> Result<Self, String> {
        let mut reader = Reader { nodes: Vec::new(), names: BTreeMap::new() };
        for text in references {
            reader.text(text)?;
        }
        let root = reader.text(text)?;
        Ok(Self { nodes: reader.nodes, root })
    }
}

struct Reader {
    nodes: Vec<Node>,
    /// By full names.
    names: BTreeMap<String, usize>,
}

impl Reader {
    fn text(&mut self, text: &str) -> Result<usize, String> {
        let value = serde_json::from_str(text).map_err(|why| format!("the schema is no JSON: {why}"))?;
        self.read(&value, "")
    }

    fn push(&mut self, node: Node) -> Result<usize, String> {
        if self.nodes.len() >= NODES_MAX {
            return Err(format!("the schema has more than {NODES_MAX} types"));
        }
        self.nodes.push(node);
        Ok(self.nodes.len() - 1)
    }

    /// A type, where names without a namespace are of `space`. JSON is not nested deeply enough to exhaust the stack:
    /// serde_json reads 128 levels.
    fn read(&mut self, value: &Value, space: &str) -> Result<usize, String> {
        match value {
            Value::String(name) => self.named(name, space),
            Value::Array(branches) => {
                let branches: Result<Vec<usize>, String> =
                    branches.iter().map(|branch| self.read(branch, space)).collect();
                let branches = branches?;
                self.push(Node::Union(branches))
            }
            Value::Object(fields) => match fields.get("type") {
                Some(Value::String(kind)) => self.object(kind, fields, space),
                Some(inner) => self.read(inner, space),
                None => Err("the schema has a type without \"type\"".to_owned()),
            },
            other => Err(format!("the schema has {other} in the place of a type")),
        }
    }

    fn named(&mut self, name: &str, space: &str) -> Result<usize, String> {
        if let Some(node) = primitive(name) {
            return self.push(node);
        }
        let known = self.names.get(&full(name, space)).or_else(|| self.names.get(name));
        known.copied().ok_or_else(|| format!("the schema names {name:?}, which it does not have"))
    }

    fn object(&mut self, kind: &str, fields: &Map<String, Value>, space: &str) -> Result<usize, String> {
        let part =
            |name: &str| fields.get(name).ok_or_else(|| format!("the schema has {kind} without {name:?}"));
        match kind {
            "array" => {
                let items = self.read(part("items")?, space)?;
                self.push(Node::Array(items))
            }
            "map" => {
                let values = self.read(part("values")?, space)?;
                self.push(Node::Map(values))
            }
            "record" | "error" => {
                let (name, space) = name_of(fields, space)?;
                let at = self.push(Node::Open)?;
                self.names.insert(name, at);
                let rows = self.fields(part("fields")?, &space)?;
                self.nodes[at] = Node::Record(rows);
                Ok(at)
            }
            "enum" => {
                let (name, _) = name_of(fields, space)?;
                let symbols = part("symbols")?.as_array().into_iter().flatten();
                let symbols = symbols.map(|symbol| symbol.as_str().map(str::to_owned)).collect::<Option<_>>();
                let at = self.push(Node::Enum(symbols.ok_or("the schema has a symbol that is no text")?))?;
                self.names.insert(name, at);
                Ok(at)
            }
            "fixed" => {
                let (name, _) = name_of(fields, space)?;
                let size = part("size")?.as_u64().and_then(|size| usize::try_from(size).ok());
                let size = size.ok_or("the schema has a fixed type whose size is no number")?;
                let at = self.push(decimal(fields, Some(size)).unwrap_or(Node::Fixed(size)))?;
                self.names.insert(name, at);
                Ok(at)
            }
            "bytes" => self.push(decimal(fields, None).unwrap_or(Node::Bytes)),
            name => self.named(name, space),
        }
    }

    fn fields(&mut self, rows: &Value, space: &str) -> Result<Vec<(String, usize)>, String> {
        let rows = rows.as_array().ok_or("the schema has fields that are no list")?;
        let mut fields = Vec::with_capacity(rows.len());
        for row in rows {
            let name = row["name"].as_str().ok_or("the schema has a field without a name")?;
            fields.push((crate::quoted(name), self.read(&row["type"], space)?));
        }
        Ok(fields)
    }
}

fn primitive(name: &str) -> Option<Node> {
    Some(match name {
        "null" => Node::Null,
        "boolean" => Node::Bool,
        "int" => Node::Int,
        "long" => Node::Long,
        "float" => Node::Float,
        "double" => Node::Double,
        "bytes" => Node::Bytes,
        "string" => Node::Text,
        _ => return None,
    })
}

fn decimal(fields: &Map<String, Value>, fixed: Option<usize>) -> Option<Node> {
    if fields.get("logicalType")?.as_str()? != "decimal" {
        return None;
    }
    let scale = fields.get("scale").map_or(Some(0), Value::as_u64).filter(|scale| *scale <= SCALE_MAX)?;
    Some(Node::Decimal { scale: usize::try_from(scale).ok()?, fixed })
}

/// The full name of a type, and the namespace of what is in it.
fn name_of(fields: &Map<String, Value>, space: &str) -> Result<(String, String), String> {
    let name = fields.get("name").and_then(Value::as_str).ok_or("the schema has a type without a name")?;
    let space = fields.get("namespace").and_then(Value::as_str).unwrap_or(space);
    let full = full(name, space);
    let inner = full.rsplit_once('.').map_or("", |(space, _)| space).to_owned();
    Ok((full, inner))
}

fn full(name: &str, space: &str) -> String {
    if space.is_empty() || name.contains('.') { name.to_owned() } else { format!("{space}.{name}") }
}
