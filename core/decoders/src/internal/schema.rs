//! The notation of core/messages/schema (its README), read as far as bytes need it.
//!
//! The schemas are part of this program, so that one that cannot be read is a bug: a test reads all of them.
//!
//! xtask/src/generate/schema.rs reads the notation too, for the generator: a shipped program cannot depend on xtask,
//! nor the generator on a crate that it generates, and bytes need none of its defaults, meanings and APIs.

use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A record of the metadata log, with its type.
    Record(i16),
    /// Of a coordinator's record, with its type.
    Key(i16),
    Value(i16),
    Data,
}

/// From one version to another, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions(i16, i16);

impl Versions {
    const NONE: Self = Self(1, 0);

    /// `3`, `3-5`, `3+`, `none`.
    fn parse(word: &str) -> Self {
        let number = |word: &str| word.parse::<i16>().expect("a version");
        match word {
            "none" => Self::NONE,
            word if word.ends_with('+') => Self(number(&word[..word.len() - 1]), i16::MAX),
            word => match word.split_once('-') {
                Some((from, to)) => Self(number(from), number(to)),
                None => Self(number(word), number(word)),
            },
        }
    }

    pub fn has(self, version: i16) -> bool {
        (self.0..=self.1).contains(&version)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Type {
    Bool,
    Int8,
    Int16,
    Uint16,
    Int32,
    Uint32,
    Int64,
    Float64,
    Uuid,
    Text,
    Bytes,
    Struct(String),
    Array(Box<Self>),
}

impl Type {
    fn parse(word: &str) -> Self {
        if let Some(of) = word.strip_prefix("[]") {
            return Self::Array(Box::new(Self::parse(of)));
        }
        match word {
            "bool" => Self::Bool,
            "int8" => Self::Int8,
            "int16" => Self::Int16,
            "uint16" => Self::Uint16,
            "int32" => Self::Int32,
            "uint32" => Self::Uint32,
            "int64" => Self::Int64,
            "float64" => Self::Float64,
            "uuid" => Self::Uuid,
            "string" => Self::Text,
            "bytes" | "records" => Self::Bytes,
            name => Self::Struct(name.to_owned()),
        }
    }
}

#[derive(Debug, Clone)]
pub struct Field {
    /// As in Kafka's JSON: `groupId`.
    pub name: String,
    pub kind: Type,
    pub versions: Versions,
    pub nullable: Versions,
    /// The tag, and since when it is one.
    pub tag: Option<(u32, i16)>,
    pub inflexible: bool,
}

#[derive(Debug)]
pub struct Schema {
    pub name: String,
    pub kind: Kind,
    pub versions: Versions,
    pub flexible: Versions,
    /// The fields of the message under its name, those of its structs under theirs.
    pub structs: BTreeMap<String, Vec<Field>>,
}

impl Schema {
    pub fn parse_all(texts: &[&str]) -> Vec<Self> {
        texts.iter().flat_map(|text| Self::parse(text)).collect()
    }

    /// All messages of a file.
    pub fn parse(text: &str) -> Vec<Self> {
        let mut schemas: Vec<Self> = Vec::new();
        // The struct that fields of each depth belong to.
        let mut owners: Vec<String> = Vec::new();
        for line in text.lines() {
            let line = line.split(" -- ").next().unwrap_or_default().trim_end();
            let depth = (line.len() - line.trim_start().len()) / 4;
            let line = line.trim();
            if line.is_empty() || line.starts_with("--") {
                continue;
            }
            if depth == 0 {
                if let Some(schema) = Self::head(line) {
                    owners = vec![schema.name.clone()];
                    schemas.push(schema);
                }
                continue;
            }
            let Some(schema) = schemas.last_mut() else { continue };
            owners.truncate(depth);
            if let Some(rest) = line.strip_prefix("struct ") {
                owners.push(rest.split_whitespace().next().unwrap_or_default().to_owned());
                continue;
            }
            let Some(field) = Field::parse(line) else { continue };
            let inner = match &field.kind {
                Type::Array(of) => of.as_ref().clone(),
                other => other.clone(),
            };
            let owner = owners.get(depth - 1).expect("fields stand below a message or a struct").clone();
            schema.structs.entry(owner).or_default().push(field);
            if let Type::Struct(name) = inner {
                owners.push(name);
            }
        }
        schemas
    }

    /// `record 3 PartitionRecord 0-2 flexible 0+`; `None`: another line, such as one about a message's version.
    fn head(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (kind, rest) = match words[..] {
            ["record", number, ref rest @ ..] => (Kind::Record(number.parse().ok()?), rest),
            ["key", number, ref rest @ ..] => (Kind::Key(number.parse().ok()?), rest),
            ["value", number, ref rest @ ..] => (Kind::Value(number.parse().ok()?), rest),
            ["data", ref rest @ ..] => (Kind::Data, rest),
            _ => return None,
        };
        let [name, versions, "flexible", flexible, ..] = rest else { return None };
        Some(Self {
            name: (*name).to_owned(),
            kind,
            versions: Versions::parse(versions),
            flexible: Versions::parse(flexible),
            structs: BTreeMap::from([((*name).to_owned(), Vec::new())]),
        })
    }
}

impl Field {
    fn parse(line: &str) -> Option<Self> {
        let (name, rest) = line.split_once(": ")?;
        let words: Vec<&str> = rest.split_whitespace().collect();
        let (kind, versions) = (words.first()?, Versions::parse(words.get(1)?));
        let (kind, nullable) = match kind.split_once('?') {
            Some((kind, "")) => (kind, versions),
            Some((kind, since)) => (kind, Versions::parse(since)),
            None => (*kind, Versions::NONE),
        };
        let after =
            |word: &str| words.iter().position(|known| *known == word).and_then(|at| words.get(at + 1));
        let since = after("since").and_then(|version| version.parse().ok()).unwrap_or(0);
        let tag = after("tag").and_then(|number| number.parse().ok()).map(|number| (number, since));
        let (first, others) = name.split_at(name.len().min(1));
        Some(Self {
            name: first.to_lowercase() + others,
            kind: Type::parse(kind),
            versions,
            nullable,
            tag,
            inflexible: words.contains(&"inflexible"),
        })
    }
}
