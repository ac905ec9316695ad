//! Bodies of requests out of the schema: every field as its version has it, with values that are ordinary, at a
//! boundary or far too many.
//!
//! What it names is its own (topics `a0` to `a7`, groups, transactional ids), never what the good client uses. It asks
//! for nothing that an administrator may ask for and that rightly ends the good client's service: [`HARMFUL`] APIs are
//! left out, and so are the configs of brokers.

use crate::random::Random;
use crate::records::Batches;
use std::path::Path;
use xtask::generate::schema::{self, Field, Kind, MessageDef, StructDef, Type};

/// Topics that attackers create, write and delete.
pub const TOPICS: [&str; 8] = ["a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7"];
const GROUPS: [&str; 5] = ["g0", "g1", "g2", "g3", "g4"];
/// They rightly take a broker or a voter out of the cluster, or change its features.
const HARMFUL: [i16; 8] = [57, 64, 80, 81, 82, 94, 62, 63];
/// Elements of a repeated array, until the body is as large as this.
const BODY_BYTES_MAX: usize = 1 << 20;

/// One API's request.
#[derive(Debug)]
pub struct Request {
    pub key: i16,
    pub name: String,
    message: MessageDef,
}

impl Request {
    pub fn is_flexible(&self, version: i16) -> bool {
        self.message.flexible.is_some_and(|range| range.contains(version))
    }
}

/// All requests that the schema knows and that may be sent.
///
/// # Errors
/// The schema cannot be read.
pub fn requests(schema: &Path) -> Result<Vec<Request>, String> {
    let mut requests = Vec::new();
    let folder = schema.join("api");
    let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let file = schema::parse("api", &path, &text)?;
        let Some(api) = file.api else { continue };
        let message = file.messages.into_iter().find(|message| message.kind == Kind::Request);
        if let Some(message) = message.filter(|_| !HARMFUL.contains(&api.key)) {
            requests.push(Request { key: api.key, name: api.name, message });
        }
    }
    Ok(requests)
}

/// Makes bodies for one connection.
#[derive(Debug)]
pub struct Maker<'a> {
    pub random: Random,
    pub batches: &'a Batches,
    /// Ids of the attackers' topics.
    pub topic_ids: &'a [[u8; 16]],
}

impl Maker<'_> {
    /// The body of `request` in `version`.
    pub fn body(&mut self, request: &Request, version: i16) -> Vec<u8> {
        let message = &request.message;
        let flexible = request.is_flexible(version);
        let mut out = Vec::new();
        let writing = Writing { message, version, flexible };
        self.fields(&message.fields, &writing, &mut out);
        out
    }

    fn fields(&mut self, fields: &[Field], writing: &Writing<'_>, out: &mut Vec<u8>) {
        let mut tags = Vec::new();
        for field in fields.iter().filter(|field| field.versions.contains(writing.version)) {
            match field.tag.filter(|_| field.tagged.is_none_or(|range| range.contains(writing.version))) {
                Some(tag) if writing.flexible => tags.push((tag, field)),
                Some(_) => {}
                None => self.value(field, &field.ty, writing, out),
            }
        }
        if writing.flexible {
            self.tagged(&mut tags, writing, out);
        }
    }

    fn tagged(&mut self, tags: &mut Vec<(u32, &Field)>, writing: &Writing<'_>, out: &mut Vec<u8>) {
        tags.sort_by_key(|(tag, _)| *tag);
        tags.retain(|_| self.random.once_in(2));
        let unknown = self.random.once_in(20).then(|| self.random.bytes(9));
        unsigned(out, (tags.len() + usize::from(unknown.is_some())) as u64);
        for (tag, field) in tags.iter() {
            let mut value = Vec::new();
            self.value(field, &field.ty, writing, &mut value);
            unsigned(out, u64::from(*tag));
            unsigned(out, value.len() as u64);
            out.extend_from_slice(&value);
        }
        if let Some(unknown) = unknown {
            unsigned(out, 9_999);
            unsigned(out, unknown.len() as u64);
            out.extend_from_slice(&unknown);
        }
    }

    fn value(&mut self, field: &Field, ty: &Type, writing: &Writing<'_>, out: &mut Vec<u8>) {
        let compact = writing.flexible && !field.inflexible;
        let may_be_null = field.nullable.is_some_and(|range| range.contains(writing.version));
        let is_null = may_be_null && self.random.once_in(4);
        match ty {
            Type::Bool => out.push(self.random.below(2) as u8),
            Type::Int8 => out.push(self.small(field) as u8),
            Type::Int16 | Type::Uint16 => out.extend_from_slice(&(self.number(field) as i16).to_be_bytes()),
            Type::Int32 | Type::Uint32 => out.extend_from_slice(&(self.number(field) as i32).to_be_bytes()),
            Type::Int64 => out.extend_from_slice(&self.number(field).to_be_bytes()),
            Type::Float64 => {
                let value = self.random.of_slice(&[0.0, 1.0, -1.0, f64::MAX, f64::NAN, f64::INFINITY]);
                out.extend_from_slice(&value.to_be_bytes());
            }
            Type::Uuid => out.extend_from_slice(&self.uuid()),
            Type::String | Type::Bytes | Type::Records => {
                if is_null {
                    return null_length(matches!(ty, Type::String), compact, out);
                }
                let value = match ty {
                    Type::String => self.text(field),
                    Type::Records => self.batches.any(&mut self.random).to_vec(),
                    _ => self.blob(),
                };
                length(value.len(), matches!(ty, Type::String), compact, out);
                out.extend_from_slice(&value);
            }
            Type::Struct(name) => {
                // A struct that may be null has a byte in front that says so.
                if may_be_null {
                    out.push(if is_null { 0xff } else { 1 });
                }
                if !is_null {
                    self.fields(writing.fields_of(field, name), writing, out);
                }
            }
            Type::Array(_) if is_null => null_length(false, compact, out),
            Type::Array(element) => self.array(field, element, writing, out),
        }
    }

    fn array(&mut self, field: &Field, element: &Type, writing: &Writing<'_>, out: &mut Vec<u8>) {
        let compact = writing.flexible && !field.inflexible;
        let plain = Field { nullable: None, ..field.clone() };
        if self.random.once_in(60) {
            // One element again and again.
            let mut one = Vec::new();
            self.value(&plain, element, writing, &mut one);
            let most = (BODY_BYTES_MAX / one.len().max(1)).max(1);
            let count = self.random.of_slice(&[100, 1_000, 10_000, 100_000]).min(most);
            length(count, false, compact, out);
            (0..count).for_each(|_| out.extend_from_slice(&one));
            return;
        }
        let count = self.random.of_slice(&[0, 1, 1, 1, 2, 3]);
        length(count, false, compact, out);
        (0..count).for_each(|_| self.value(&plain, element, writing, out));
    }

    /// Ordinary half of the time.
    fn number(&mut self, field: &Field) -> i64 {
        if field.name == "ReplicaId" || field.name == "BrokerId" {
            return self.random.of_slice(&[-1, -1, -1, 1, 2, -2, i64::from(i32::MAX)]);
        }
        match self.random.below(10) {
            0..=5 => self.random.of_slice(&[0, 0, 0, 1, 1, 2, 3, 7]),
            6 => self.random.of_slice(&[-1, -2, -3]),
            7 => self.random.of_slice(&[1_000, 30_000, 65_536, 1 << 20]),
            8 => self.random.of_slice(&[
                i64::MAX,
                i64::MIN,
                i64::MAX - 1,
                i64::from(i32::MAX),
                i64::from(i32::MIN),
            ]),
            _ => self.random.next() as i64,
        }
    }

    fn small(&mut self, field: &Field) -> i64 {
        if field.name == "ResourceType" || field.name == "KeyType" {
            // Topics, groups, client metrics and what there is not: a broker's own settings are an administrator's.
            return self.random.of_slice(&[2, 2, 2, 32, 16, 0, 1, 77, -1]);
        }
        self.random.of_slice(&[0, 0, 1, 1, 2, 3, -1, 127, -128])
    }

    fn uuid(&mut self) -> [u8; 16] {
        match self.random.below(6) {
            0 => [0; 16],
            1 => self.random.bytes(16).try_into().unwrap_or_default(),
            _ if self.topic_ids.is_empty() => [7; 16],
            _ => self.random.of_slice(self.topic_ids),
        }
    }

    fn text(&mut self, field: &Field) -> Vec<u8> {
        if self.random.once_in(12) {
            return self.odd_text();
        }
        let name = field.name.as_str();
        let text = if name.contains("Regex") {
            self.random.of_slice(&["a.*", "(a*)*b", "((((a{1,100}){1,100}){1,100}){1,100})", "[", ""])
        } else if name.contains("Topic") || name == "Name" || name == "ResourceName" {
            self.random.of_slice(&TOPICS)
        } else if name.contains("Group") || name == "CoordinatorKeys" || name == "Key" {
            self.random.of_slice(&GROUPS)
        } else if name.contains("ProtocolType") {
            "consumer"
        } else if name.contains("Member") {
            self.random.of_slice(&["", "m1", "m2"])
        } else if name == "Value" {
            self.random.of_slice(&["0", "1", "-1", "9223372036854775807", "compact", "zstd", "", "x"])
        } else {
            self.random.of_slice(&["", "x", "t0", "range", "cleanup.policy", "max.message.bytes", "uniform"])
        };
        text.as_bytes().to_vec()
    }

    fn odd_text(&mut self) -> Vec<u8> {
        match self.random.below(6) {
            0 => vec![b'n'; self.random.of_slice(&[249, 250, 1_000, 32_767])],
            1 => b"../../etc".to_vec(),
            2 => vec![0xff, 0xfe, 0x80],
            3 => b"\0".to_vec(),
            4 => "😀\u{202e}\n".as_bytes().to_vec(),
            _ => Vec::new(),
        }
    }

    fn blob(&mut self) -> Vec<u8> {
        match self.random.below(8) {
            0 => vec![0xff; 65_536],
            1 => self.random.bytes(200),
            // A consumer's subscription: version, one topic, no user data.
            2..=5 => [&[0, 1, 0, 0, 0, 1, 0, 2][..], b"a0", &[0xff; 4], &[0; 4]].concat(),
            _ => Vec::new(),
        }
    }
}

struct Writing<'a> {
    message: &'a MessageDef,
    version: i16,
    flexible: bool,
}

impl Writing<'_> {
    fn fields_of<'f>(&'f self, field: &'f Field, name: &str) -> &'f [Field] {
        if !field.fields.is_empty() {
            return &field.fields;
        }
        let shared = self.message.structs.iter().find(|shared: &&StructDef| shared.name == name);
        shared.map_or(&[], |shared| &shared.fields)
    }
}

fn unsigned(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn length(count: usize, is_short: bool, compact: bool, out: &mut Vec<u8>) {
    match (compact, is_short) {
        (true, _) => unsigned(out, count as u64 + 1),
        (false, true) => out.extend_from_slice(&(count as i16).to_be_bytes()),
        (false, false) => out.extend_from_slice(&(count as i32).to_be_bytes()),
    }
}

fn null_length(is_short: bool, compact: bool, out: &mut Vec<u8>) {
    match (compact, is_short) {
        (true, _) => out.push(0),
        (false, true) => out.extend_from_slice(&[0xff; 2]),
        (false, false) => out.extend_from_slice(&[0xff; 4]),
    }
}
