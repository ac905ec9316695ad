//! The schema notation: what stands in `core/messages/schema/**/*.msg`, read into a model.
//!
//! ```text
//! -- A line of its own like this says what the next message or struct is.
//! api 0 Produce on broker
//!
//! request ProduceRequest 0-13 flexible 9+
//!     TransactionalId: string? 3+ = null as transactionalId -- What it means.
//!     TopicData: []TopicProduceData 0+
//!         Name: string 0-12 ignorable as topicName
//! ```
//!
//! A field: `Name: type versions`, then what applies of `= default`, `tag N [since V]`, `inflexible` (never in the
//! compact form), `ignorable` (dropped where a version cannot carry it), `key` (names the element in its array), `as`
//! the kind of thing it names, `-- meaning`. `type?` may be null in every version, `type?2+` in those. What is indented
//! below a field are the fields of its struct; `struct Name versions` in a message is one that several fields share.

use std::fmt;
use std::path::Path;

/// A message's versions, or the part of them in which a field is there. `max` is `i16::MAX` where the range is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    pub min: i16,
    pub max: i16,
}

impl Range {
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(min) = text.strip_suffix('+') {
            return Some(Self { min: min.parse().ok()?, max: i16::MAX });
        }
        let (min, max) = text.split_once('-').unwrap_or((text, text));
        Some(Self { min: min.parse().ok()?, max: max.parse().ok()? })
    }

    pub fn and(self, other: Self) -> Option<Self> {
        let both = Self { min: self.min.max(other.min), max: self.max.min(other.max) };
        (both.min <= both.max).then_some(both)
    }

    pub fn hull(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    pub fn covers(self, other: Self) -> bool {
        self.min <= other.min && other.max <= self.max
    }

    pub fn contains(self, version: i16) -> bool {
        self.min <= version && version <= self.max
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.max {
            i16::MAX => write!(f, "{}+", self.min),
            max if max == self.min => write!(f, "{max}"),
            max => write!(f, "{}-{max}", self.min),
        }
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
    String,
    Bytes,
    Records,
    Struct(String),
    Array(Box<Type>),
}

impl Type {
    fn parse(text: &str) -> Self {
        if let Some(element) = text.strip_prefix("[]") {
            return Self::Array(Box::new(Self::parse(element)));
        }
        match text {
            "bool" => Self::Bool,
            "int8" => Self::Int8,
            "int16" => Self::Int16,
            "uint16" => Self::Uint16,
            "int32" => Self::Int32,
            "uint32" => Self::Uint32,
            "int64" => Self::Int64,
            "float64" => Self::Float64,
            "uuid" => Self::Uuid,
            "string" => Self::String,
            "bytes" => Self::Bytes,
            "records" => Self::Records,
            name => Self::Struct(name.to_owned()),
        }
    }

    /// The struct that it is, or is an array of.
    pub fn struct_name(&self) -> Option<&str> {
        match self {
            Self::Struct(name) => Some(name),
            Self::Array(element) => element.struct_name(),
            _ => None,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Field {
    pub name: String,
    pub ty: Type,
    pub versions: Range,
    /// The versions in which it may be null.
    pub nullable: Option<Range>,
    pub default: Option<String>,
    pub tag: Option<u32>,
    /// The versions in which it is tagged; in the others it stands in line.
    pub tagged: Option<Range>,
    pub inflexible: bool,
    pub ignorable: bool,
    /// Not shown by `Debug`.
    pub secret: bool,
    pub meaning: String,
    /// The fields of the struct that it introduces.
    pub fields: Vec<Field>,
}

#[derive(Debug, Clone)]
pub struct StructDef {
    pub name: String,
    pub fields: Vec<Field>,
    pub meaning: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Request,
    Response,
    Header,
    Data,
    Record(u16),
    Key(i16),
    Value(i16),
}

#[derive(Debug, Clone)]
pub struct MessageDef {
    pub kind: Kind,
    pub name: String,
    pub versions: Range,
    pub flexible: Option<Range>,
    /// The newest version may still change and is not advertised.
    pub top_unstable: bool,
    pub fields: Vec<Field>,
    pub structs: Vec<StructDef>,
    pub meaning: String,
}

#[derive(Debug, Clone)]
pub struct Api {
    pub key: i16,
    pub name: String,
    pub listeners: Vec<String>,
    pub meaning: String,
}

/// One schema file.
#[derive(Debug, Clone)]
pub struct File {
    /// Its folders below `schema`, for example `coordinator/group`.
    pub folder: String,
    pub path: String,
    pub api: Option<Api>,
    pub messages: Vec<MessageDef>,
}

/// A line that is not blank: how deep it is indented, its words, the meaning behind ` -- `.
struct Line<'a> {
    number: usize,
    depth: usize,
    text: &'a str,
    /// Of the line itself, or else of the `--` lines above it.
    meaning: String,
}

fn lines(text: &str) -> Vec<Line<'_>> {
    let mut found = Vec::new();
    let mut above: Vec<&str> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        if trimmed.is_empty() {
            above.clear();
            continue;
        }
        if let Some(comment) = trimmed.strip_prefix("--") {
            above.push(comment.trim());
            continue;
        }
        let (text, meaning) = trimmed.split_once(" -- ").unwrap_or((trimmed, ""));
        let meaning = if meaning.is_empty() { above.join(" ") } else { meaning.trim().to_owned() };
        above.clear();
        let depth = (line.len() - line.trim_start().len()) / 4;
        found.push(Line { number: index + 1, depth, text: text.trim(), meaning });
    }
    found
}

/// Reads one schema file; an error names file and line.
pub fn parse(folder: &str, path: &Path, text: &str) -> Result<File, String> {
    let name = path.display().to_string();
    let mut file = File { folder: folder.to_owned(), path: name, api: None, messages: Vec::new() };
    let lines = lines(text);
    let mut at = 0;
    while at < lines.len() {
        let line = &lines[at];
        let end = at + 1 + lines[at + 1..].iter().take_while(|next| next.depth > 0).count();
        let told = |what: String| format!("{}:{}: {what}", path.display(), line.number);
        if line.text.starts_with("api ") {
            file.api = Some(parse_api(line).map_err(told)?);
        } else {
            let body = &lines[at + 1..end];
            let message = parse_message(line, body).map_err(|what| format!("{}: {what}", path.display()))?;
            file.messages.push(message);
        }
        at = end;
    }
    Ok(file)
}

fn parse_api(line: &Line<'_>) -> Result<Api, String> {
    let words: Vec<&str> = line.text.split_whitespace().collect();
    let ["api", key, name, "on", listeners @ ..] = words.as_slice() else {
        return Err("expected: api KEY Name on LISTENERS".to_owned());
    };
    let key = key.parse().map_err(|_| format!("{key} is no key"))?;
    let listeners = listeners.iter().map(|&listener| listener.to_owned()).collect();
    Ok(Api { key, name: (*name).to_owned(), listeners, meaning: line.meaning.clone() })
}

fn parse_message(line: &Line<'_>, body: &[Line<'_>]) -> Result<MessageDef, String> {
    let mut words = line.text.split_whitespace();
    let at = |what: &str| format!("line {}: {what}", line.number);
    let mut next = |what: &str| words.next().ok_or_else(|| at(what));
    let word = next("a word")?;
    let mut number = || next("expected a number").map(str::to_owned);
    let kind = match word {
        "request" => Kind::Request,
        "response" => Kind::Response,
        "header" => Kind::Header,
        "data" => Kind::Data,
        "record" => Kind::Record(number()?.parse().map_err(|_| at("no record type"))?),
        "key" => Kind::Key(number()?.parse().map_err(|_| at("no record type"))?),
        "value" => Kind::Value(number()?.parse().map_err(|_| at("no record type"))?),
        other => return Err(at(&format!("{other} opens nothing"))),
    };
    let name = next("a message has a name")?.to_owned();
    let versions = Range::parse(next("a message has versions")?).ok_or_else(|| at("no version range"))?;
    let rest: Vec<&str> = words.collect();
    let (flexible, rest) = match rest.as_slice() {
        ["flexible", "none", rest @ ..] => (None, rest),
        ["flexible", range, rest @ ..] => {
            (Some(Range::parse(range).ok_or_else(|| at("no version range"))?), rest)
        }
        _ => return Err(at("expected: flexible VERSIONS")),
    };
    let top_unstable = match rest {
        [] => false,
        ["top", "unstable"] => true,
        _ => return Err(at("words left over")),
    };
    let mut message = MessageDef {
        kind,
        name,
        versions,
        flexible,
        top_unstable,
        fields: Vec::new(),
        structs: Vec::new(),
        meaning: line.meaning.clone(),
    };
    let mut from = 0;
    while from < body.len() {
        let line = &body[from];
        let end = from + 1 + body[from + 1..].iter().take_while(|next| next.depth > 1).count();
        if let Some(rest) = line.text.strip_prefix("struct ") {
            let (name, _) = rest.split_once(' ').unwrap_or((rest, ""));
            let fields = parse_fields(&body[from + 1..end], 2)?;
            message.structs.push(StructDef { name: name.to_owned(), fields, meaning: line.meaning.clone() });
        } else {
            message.fields.extend(parse_fields(&body[from..end], 1)?);
        }
        from = end;
    }
    Ok(message)
}

fn parse_fields(lines: &[Line<'_>], depth: usize) -> Result<Vec<Field>, String> {
    let mut fields = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let line = &lines[at];
        if line.depth != depth {
            return Err(format!("line {}: indented {} deep instead of {depth}", line.number, line.depth));
        }
        let end = at + 1 + lines[at + 1..].iter().take_while(|next| next.depth > depth).count();
        let mut field = parse_field(line).map_err(|what| format!("line {}: {what}", line.number))?;
        field.fields = parse_fields(&lines[at + 1..end], depth + 1)?;
        fields.push(field);
        at = end;
    }
    Ok(fields)
}

fn parse_field(line: &Line<'_>) -> Result<Field, String> {
    let (name, rest) = line.text.split_once(": ").ok_or("expected: Name: type versions")?;
    let mut words = rest.split_whitespace();
    let mut next = |what: &str| words.next().ok_or(format!("{what} is missing"));
    let written = next("the type")?;
    let versions = next("the versions")?;
    let versions = Range::parse(versions).ok_or(format!("{versions} is no version range"))?;
    let (ty, nullable) = match written.split_once('?') {
        None => (written, None),
        Some((ty, "")) => (ty, Some(versions)),
        Some((ty, range)) => (ty, Some(Range::parse(range).ok_or(format!("{range} is no version range"))?)),
    };
    let mut field = Field {
        name: name.to_owned(),
        ty: Type::parse(ty),
        versions,
        nullable,
        default: None,
        tag: None,
        tagged: None,
        inflexible: false,
        ignorable: false,
        secret: false,
        meaning: line.meaning.clone(),
        fields: Vec::new(),
    };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word {
            "=" => field.default = Some(value()?.to_owned()),
            "tag" => {
                field.tag = Some(value()?.parse().map_err(|_| "no tag".to_owned())?);
                field.tagged = Some(versions);
            }
            "since" => {
                let min = value()?.parse().map_err(|_| "no version".to_owned())?;
                field.tagged = Some(Range { min, max: i16::MAX });
            }
            "inflexible" => field.inflexible = true,
            "ignorable" => field.ignorable = true,
            "secret" => field.secret = true,
            // For the reader: which field names an element, and what kind of thing it names.
            "key" => {}
            "as" => drop(value()?),
            other => return Err(format!("{other} is no word of a field")),
        }
    }
    Ok(field)
}
