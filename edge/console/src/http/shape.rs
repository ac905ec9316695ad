//! What a route takes and gives, written as JSON Schema (2020-12, the dialect of OpenAPI 3.1).

use serde_json::{Map, Value, json};

/// A JSON value. Constants of it stand beside the handlers whose answers they describe.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    Text,
    /// 64 bits.
    Int,
    Bool,
    Any,
    OneOf(&'static [&'static str]),
    OrNull(&'static Shape),
    List(&'static Shape),
    /// An object whose names are data.
    Map(&'static Shape),
    /// An object with these fields; one whose name ends in `?` may be absent.
    Object(&'static [(&'static str, Shape)]),
}

pub const TEXT_OR_NULL: Shape = Shape::OrNull(&Shape::Text);
pub const INT_OR_NULL: Shape = Shape::OrNull(&Shape::Int);

impl Shape {
    /// The names of an object's fields; `None`: it is no object, or they are data.
    pub fn names(&self) -> Option<Vec<&'static str>> {
        let Self::Object(fields) = self else { return None };
        Some(fields.iter().map(|field| field.0.trim_end_matches('?')).collect())
    }

    pub fn schema(&self) -> Value {
        match self {
            Self::Text => json!({ "type": "string" }),
            Self::Int => json!({ "type": "integer", "format": "int64" }),
            Self::Bool => json!({ "type": "boolean" }),
            Self::Any => json!({}),
            Self::OneOf(words) => json!({ "type": "string", "enum": words }),
            Self::OrNull(inner) => json!({ "anyOf": [inner.schema(), { "type": "null" }] }),
            Self::List(inner) => json!({ "type": "array", "items": inner.schema() }),
            Self::Map(inner) => json!({ "type": "object", "additionalProperties": inner.schema() }),
            Self::Object(fields) => object(fields),
        }
    }
}

fn object(fields: &[(&str, Shape)]) -> Value {
    let properties: Map<String, Value> =
        fields.iter().map(|(name, shape)| (name.trim_end_matches('?').to_owned(), shape.schema())).collect();
    let required: Vec<&str> =
        fields.iter().map(|field| field.0).filter(|name| !name.ends_with('?')).collect();
    json!({ "type": "object", "properties": properties, "required": required })
}

/// A name of the query.
#[derive(Debug, Clone, Copy)]
pub struct Param {
    pub name: &'static str,
    pub shape: Shape,
    pub about: &'static str,
}

/// What an answer that is no error consists of.
#[derive(Debug, Clone, Copy)]
pub enum Content {
    Json(Shape),
    /// Server-sent events.
    Events,
}

/// What the OpenAPI description says of a route.
#[derive(Debug, Clone, Copy)]
pub struct Doc {
    pub summary: &'static str,
    pub query: &'static [Param],
    pub body: Option<Shape>,
    pub status: u16,
    pub content: Content,
}

impl Doc {
    /// A route whose documents are described elsewhere.
    pub const ELSEWHERE: Self = Self::get("An operation of Confluent's REST API v3", &[], Shape::Any);

    /// A route that reads.
    pub const fn get(summary: &'static str, query: &'static [Param], answer: Shape) -> Self {
        Self { summary, query, body: None, status: 200, content: Content::Json(answer) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_an_object_are_those_of_its_fields() {
        const NEW: Shape = Shape::Object(&[("name", Shape::Text), ("partitions?", Shape::Int)]);
        assert_eq!(NEW.names(), Some(vec!["name", "partitions"]));
        assert_eq!(Shape::Map(&Shape::Int).names(), None);
    }

    #[test]
    fn shape_is_written_as_json_schema() {
        const ROW: Shape = Shape::Object(&[("name", Shape::Text), ("bytes?", INT_OR_NULL)]);
        assert_eq!(
            ROW.schema(),
            json!({
                "type": "object",
                "properties": {
                    "name": { "type": "string" },
                    "bytes": { "anyOf": [{ "type": "integer", "format": "int64" }, { "type": "null" }] },
                },
                "required": ["name"],
            })
        );
    }
}
