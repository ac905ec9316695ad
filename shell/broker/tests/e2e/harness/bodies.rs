//! Bodies of requests out of the schema, with ordinary values in every field but those that a test is about.

use super::batch;
use std::path::Path;
use xtask::generate::schema::{self, Field, Kind, MessageDef, Type};

/// One API's request, as the schema has it.
#[derive(Debug)]
pub struct Shape {
    pub key: i16,
    message: MessageDef,
}

/// The value of a text, from its place and what is ordinary there.
type TextAt<'a> = Box<dyn FnMut(&str, &str) -> Vec<u8> + 'a>;
/// A number for a place; `None`: what is ordinary there.
type NumberAt<'a> = Box<dyn FnMut(&str) -> Option<i64> + 'a>;

/// What goes into a request where it is not what is ordinary there. Places are paths:
/// `CreateTopicsRequest/Topics/Name`.
pub struct Fill<'a> {
    pub client_id: &'a str,
    pub topic_id: [u8; 16],
    /// The value of a text, from its place and what is ordinary there.
    pub text: TextAt<'a>,
    pub number: NumberAt<'a>,
    /// How many elements an array has.
    pub count: Box<dyn FnMut(&str) -> usize + 'a>,
}

impl<'a> Fill<'a> {
    /// Ordinary values, and one element in each array.
    pub fn ordinary(topic_id: [u8; 16]) -> Self {
        Self {
            client_id: "c",
            topic_id,
            text: Box::new(|_, ordinary| ordinary.into()),
            number: Box::new(|_| None),
            count: Box::new(|_| 1),
        }
    }
}

/// All requests of the schema.
pub fn shapes() -> Vec<Shape> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../core/messages/schema/api");
    let entries = std::fs::read_dir(folder).expect("the schema").flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    let shape = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).expect("a file of the schema");
        let file = schema::parse("api", path, &text).expect("the schema's notation");
        let message = file.messages.into_iter().find(|message| message.kind == Kind::Request)?;
        Some(Shape { key: file.api?.key, message })
    };
    paths.iter().filter_map(shape).collect()
}

impl Shape {
    /// A frame with its length in front. Nothing is null.
    pub fn frame(&self, version: i16, mut fill: Fill<'_>) -> Vec<u8> {
        let flexible = self.message.flexible.is_some_and(|range| range.contains(version));
        let mut out = [self.key.to_be_bytes(), version.to_be_bytes()].concat();
        out.extend(1_i32.to_be_bytes());
        length(fill.client_id.len(), Some(2), &mut out);
        out.extend(fill.client_id.as_bytes());
        if flexible {
            out.push(0);
        }
        let mut body = Body { message: &self.message, version, flexible, fill: &mut fill };
        body.fields(&self.message.name, &self.message.fields, &mut out);
        [&(out.len() as i32).to_be_bytes()[..], &out].concat()
    }
}

struct Body<'a, 'b> {
    message: &'a MessageDef,
    version: i16,
    flexible: bool,
    fill: &'a mut Fill<'b>,
}

impl Body<'_, '_> {
    fn fields(&mut self, path: &str, fields: &[Field], out: &mut Vec<u8>) {
        let mut tagged = Vec::new();
        let version = self.version;
        for field in fields.iter().filter(|field| field.versions.contains(version)) {
            let path = format!("{path}/{}", field.name);
            match field.tag.filter(|_| field.tagged.is_none_or(|range| range.contains(version))) {
                Some(tag) if self.flexible => {
                    let mut value = Vec::new();
                    self.value(&path, field, &field.ty, &mut value);
                    tagged.push((tag, value));
                }
                Some(_) => {}
                None => self.value(&path, field, &field.ty, out),
            }
        }
        if self.flexible {
            tagged.sort();
            unsigned(tagged.len(), out);
            for (tag, value) in tagged {
                unsigned(tag as usize, out);
                unsigned(value.len(), out);
                out.extend(value);
            }
        }
    }

    fn value(&mut self, path: &str, field: &Field, ty: &Type, out: &mut Vec<u8>) {
        let is_wide = !self.flexible || field.inflexible;
        let wide = |width: usize| is_wide.then_some(width);
        let topic_id = self.fill.topic_id;
        let mut number = || (self.fill.number)(path).unwrap_or_else(|| ordinary_number(field));
        match ty {
            Type::Bool => out.push(number() as u8),
            Type::Int8 => out.push(number() as u8),
            Type::Int16 | Type::Uint16 => out.extend((number() as i16).to_be_bytes()),
            Type::Int32 | Type::Uint32 => out.extend((number() as i32).to_be_bytes()),
            Type::Int64 => out.extend(number().to_be_bytes()),
            Type::Float64 => out.extend(1_f64.to_be_bytes()),
            Type::Uuid if field.name.contains("Topic") => out.extend(topic_id),
            Type::Uuid => out.extend([7; 16]),
            Type::String => {
                let text = (self.fill.text)(path, ordinary_text(path, &field.name));
                length(text.len(), wide(2), out);
                out.extend(text);
            }
            Type::Bytes => length(0, wide(4), out),
            Type::Records => {
                let records = batch(&["a"]);
                length(records.len(), wide(4), out);
                out.extend(&records);
            }
            Type::Struct(name) => {
                if field.nullable.is_some_and(|range| range.contains(self.version)) {
                    out.push(1);
                }
                let shared = self.message.structs.iter().find(|shared| shared.name == *name);
                let fields = shared.map_or(&field.fields, |shared| &shared.fields);
                self.fields(path, fields, out);
            }
            Type::Array(element) => {
                let count = (self.fill.count)(path);
                length(count, wide(4), out);
                let one = Field { nullable: None, ..field.clone() };
                (0..count).for_each(|_| self.value(path, &one, element, out));
            }
        }
    }
}

fn ordinary_number(field: &Field) -> i64 {
    let default = || field.default.as_deref().and_then(|text| text.parse().ok());
    match field.name.as_str() {
        "ReplicaId" | "BrokerEpoch" | "CurrentLeaderEpoch" | "GenerationIdOrMemberEpoch" => -1,
        "ResourceType" => 2,
        "SessionTimeoutMs" | "SessionTimeout" => 6_000,
        "NumPartitions" | "ReplicationFactor" | "Acks" | "Count" | "UpgradeType" | "MaxVersionLevel" => 1,
        name if name.ends_with("TimeoutMs") => 1_000,
        "MaxBytes" | "PartitionMaxBytes" | "ResponsePartitionLimit" => 1 << 16,
        _ => default().unwrap_or(0),
    }
}

fn ordinary_text<'a>(path: &str, name: &'a str) -> &'a str {
    match name {
        "Name" if path.contains("/Config") => "cleanup.policy",
        "Name" | "ResourceName" => "t",
        "Key" | "CoordinatorKeys" | "Groups" | "GroupsNames" | "GroupIds" => "g",
        name if name.contains("Regex") => "a.*",
        name if name.contains("Topic") => "t",
        name if name.contains("Group") => "g",
        "ProtocolType" => "consumer",
        "TransactionalId" | "TransactionalIds" => "x",
        "ServerAssignor" => "uniform",
        "Value" => "compact",
        "MemberId" if path.starts_with("JoinGroup") => "",
        "MemberId" => "m",
        "ClientSoftwareName" | "ClientSoftwareVersion" => "c",
        _ => "o",
    }
}

fn unsigned(mut value: usize, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// In the compact form, or in so many bytes.
fn length(count: usize, width: Option<usize>, out: &mut Vec<u8>) {
    match width {
        None => unsigned(count + 1, out),
        Some(2) => out.extend((count as i16).to_be_bytes()),
        Some(_) => out.extend((count as i32).to_be_bytes()),
    }
}
