//! Our codec against Apache's own generated classes: the same bytes, and the same value.
//!
//! The vectors are random messages of every kind in every version, written by `lab/compat/golden` with Kafka 4.4.0's
//! classes, and 3.9.2's for the versions that 4 dropped. Three things are compared: the bytes after reading and writing
//! them; the value field by field, with the defaults of fields that its version does not have; and which of the
//! message's other versions can carry it, as which bytes.
//!
//! `make golden` does all this with a fresh seed, and then hands to Apache's classes what our codec wrote.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, clippy::disallowed_types)] // Vectors come from a file.

mod vectors;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io::Write;

use barnabas_messages::*;
use bytes::Bytes;
use vectors::Entry;

/// A decoded message whose type is forgotten.
trait Value {
    fn shown(&self) -> String;
    fn encode(&self, version: i16) -> Result<Bytes, EncodeError>;
}

impl<M: Message + Debug> Value for M {
    fn shown(&self) -> String {
        // With the secrets.
        format!("{self:-?}")
    }

    fn encode(&self, version: i16) -> Result<Bytes, EncodeError> {
        let mut w = Writer::new();
        Message::encode(self, &mut w, version)?;
        Ok(w.into_bytes())
    }
}

struct Codec {
    versions: VersionRange,
    decode: fn(Bytes, i16) -> Result<Box<dyn Value>, barnabas_messages::DecodeError>,
}

fn decode<M: Message + Debug + 'static>(
    bytes: Bytes,
    version: i16,
) -> Result<Box<dyn Value>, barnabas_messages::DecodeError> {
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

/// Everything that differs in one entry.
fn compare(entry: &Entry, codec: &Codec, ours: &mut impl Write) -> Vec<String> {
    let value = match (codec.decode)(entry.bytes.clone(), entry.version) {
        Ok(value) => value,
        Err(error) => return vec![format!("is not read: {error}")],
    };
    let mut wrong = Vec::new();
    let shown = value.shown();
    if (shown.len(), vectors::crc(shown.as_bytes())) != (entry.shown_len, entry.shown_crc) {
        wrong.push(format!("reads otherwise: {shown}"));
    }
    match value.encode(entry.version) {
        Ok(bytes) if bytes == entry.bytes => {}
        Ok(bytes) => wrong.push(format!("{:?} is written as {bytes:?}", entry.bytes)),
        Err(error) => wrong.push(format!("is not written: {error}")),
    }
    for (version, theirs) in &entry.others {
        let written = value.encode(*version);
        let here = written.as_ref().ok().map(|bytes| (bytes.len(), vectors::crc(bytes)));
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
    for entry in vectors::entries() {
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
