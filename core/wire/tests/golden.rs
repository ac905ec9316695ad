//! Our codec against Apache's own generated classes: the same bytes, and the same value.
//!
//! `golden/vectors.gz` holds random messages of every kind in every version, written by `lab/compat/golden` with Kafka
//! 4.4.0's classes, and 3.9.2's for the versions that 4 dropped. One entry:
//!
//! ```text
//! name: u16 length and UTF-8 | version: i16 | case: u8 | shown: u32 length and CRC-32C | bytes: u32 length and bytes
//! others: u8 count, for each: version i16, length i32 (-1: Apache refuses), CRC-32C u32
//! ```
//!
//! `shown` is the value as `{:?}` prints it, built by reflection from Apache's object: so the names, the values and the
//! defaults of what a version does not have are compared, not just the bytes. `others` is what becomes of the same value in
//! the message's other versions: which of them can carry it, and as which bytes.
//!
//! `make golden` does all this with a fresh seed, and then hands to Apache's classes what our codec wrote.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io::{Read, Write};

use barnabas_wire::{EncodeError, Message, Reader, VersionRange, Writer, for_each_message, messages::*};
use bytes::{Buf, Bytes};

/// A decoded message whose type is forgotten.
trait Value {
    fn shown(&self) -> String;
    fn encode(&self, version: i16) -> Result<Bytes, EncodeError>;
}

impl<M: Message + Debug> Value for M {
    fn shown(&self) -> String {
        format!("{self:?}")
    }

    fn encode(&self, version: i16) -> Result<Bytes, EncodeError> {
        let mut w = Writer::new();
        Message::encode(self, &mut w, version)?;
        Ok(w.into_bytes())
    }
}

struct Codec {
    versions: VersionRange,
    decode: fn(Bytes, i16) -> Result<Box<dyn Value>, barnabas_wire::DecodeError>,
}

fn decode<M: Message + Debug + 'static>(
    bytes: Bytes,
    version: i16,
) -> Result<Box<dyn Value>, barnabas_wire::DecodeError> {
    let mut r = Reader::new(bytes);
    let message = M::decode(&mut r, version)?;
    r.finish()?;
    Ok(Box::new(message))
}

fn codecs() -> BTreeMap<&'static str, Codec> {
    let mut codecs = BTreeMap::new();
    macro_rules! add {
        ($name:ident) => {
            codecs.insert($name::NAME, Codec { versions: $name::VERSIONS, decode: decode::<$name> });
        };
    }
    for_each_message!(add);
    codecs
}

fn crc(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

struct Entry {
    name: String,
    version: i16,
    case: u8,
    shown_len: usize,
    shown_crc: u32,
    bytes: Bytes,
    /// Version, and length and checksum where Apache can write it.
    others: Vec<(i16, Option<(usize, u32)>)>,
}

fn entries() -> Vec<Entry> {
    let path = std::env::var("GOLDEN_VECTORS")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/vectors.gz").to_owned());
    let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut all = Vec::new();
    flate2::read::MultiGzDecoder::new(file).read_to_end(&mut all).unwrap();
    let mut rest = Bytes::from(all);
    let mut entries = Vec::new();
    while rest.has_remaining() {
        let length = rest.get_u16() as usize;
        let name = String::from_utf8(rest.split_to(length).to_vec()).unwrap();
        let (version, case) = (rest.get_i16(), rest.get_u8());
        let (shown_len, shown_crc) = (rest.get_u32() as usize, rest.get_u32());
        let length = rest.get_u32() as usize;
        let bytes = rest.split_to(length);
        let others = (0..rest.get_u8())
            .map(|_| {
                let (version, length, crc) = (rest.get_i16(), rest.get_i32(), rest.get_u32());
                (version, usize::try_from(length).ok().map(|length| (length, crc)))
            })
            .collect();
        entries.push(Entry { name, version, case, shown_len, shown_crc, bytes, others });
    }
    entries
}

/// Everything that differs in one entry.
fn compare(entry: &Entry, codec: &Codec, ours: &mut impl Write) -> Vec<String> {
    let value = match (codec.decode)(entry.bytes.clone(), entry.version) {
        Ok(value) => value,
        Err(error) => return vec![format!("is not read: {error}")],
    };
    let mut wrong = Vec::new();
    let shown = value.shown();
    if (shown.len(), crc(shown.as_bytes())) != (entry.shown_len, entry.shown_crc) {
        wrong.push(format!("reads otherwise: {shown}"));
    }
    match value.encode(entry.version) {
        Ok(bytes) if bytes == entry.bytes => {}
        Ok(bytes) => wrong.push(format!("{:?} is written as {bytes:?}", entry.bytes)),
        Err(error) => wrong.push(format!("is not written: {error}")),
    }
    for (version, theirs) in &entry.others {
        let written = value.encode(*version);
        let here = written.as_ref().ok().map(|bytes| (bytes.len(), crc(bytes)));
        if here != *theirs {
            wrong.push(format!("in version {version} is {written:?}, Apache's {theirs:?}: {shown}"));
        }
    }
    for version in codec.versions.min..=codec.versions.max {
        if let Ok(bytes) = value.encode(version) {
            let mut line = Vec::new();
            line.extend((entry.name.len() as u16).to_be_bytes());
            line.extend(entry.name.as_bytes());
            line.extend(version.to_be_bytes());
            line.extend((bytes.len() as u32).to_be_bytes());
            line.extend(&bytes);
            ours.write_all(&line).unwrap();
        }
    }
    wrong
}

#[test]
fn apache_writes_the_same_bytes_and_reads_the_same_values() {
    let codecs = codecs();
    let mut ours: Box<dyn Write> = match std::env::var("GOLDEN_OURS") {
        Ok(path) => Box::new(std::io::BufWriter::new(std::fs::File::create(path).unwrap())),
        Err(_) => Box::new(std::io::sink()),
    };
    let mut seen: BTreeMap<&str, Vec<i16>> = codecs.keys().map(|&name| (name, Vec::new())).collect();
    let mut wrong = Vec::new();
    for entry in entries() {
        let Some((&name, codec)) = codecs.get_key_value(entry.name.as_str()) else {
            wrong.push(format!("{}: we have no such message", entry.name));
            continue;
        };
        seen.get_mut(name).unwrap().push(entry.version);
        for what in compare(&entry, codec, &mut ours) {
            wrong.push(format!("{name} v{} case {}: {what}", entry.version, entry.case));
        }
    }
    for (name, mut versions) in seen {
        versions.dedup();
        let all: Vec<i16> = (codecs[name].versions.min..=codecs[name].versions.max).collect();
        if versions != all {
            wrong.push(format!("{name}: versions {versions:?} of {all:?} were compared"));
        }
    }
    let shown: Vec<&String> = wrong.iter().take(20).collect();
    assert!(wrong.is_empty(), "{} differ, among them:\n{shown:#?}", wrong.len());
}
