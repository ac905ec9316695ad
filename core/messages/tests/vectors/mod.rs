//! The golden vectors: the file's format and its reader.
//!
//! A gzip of entries one after the other:
//!
//! ```text
//! name: u16 length and UTF-8 | version: i16 | case: u8 | shown: u32 length and CRC-32C | bytes: u32 length and bytes
//! others: u8 count, for each: version i16, length i32 (-1: Apache refuses), CRC-32C u32
//! ```
//!
//! `shown` is the value as `{:?}` prints it, built by reflection from Apache's object.

#![allow(dead_code)] // Each test that takes part uses some of it.

use std::io::Read;

use bytes::{Buf, Bytes};

pub fn crc(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

/// One message as Apache wrote it.
pub struct Entry {
    pub name: String,
    pub version: i16,
    pub case: u8,
    pub shown_len: usize,
    pub shown_crc: u32,
    pub bytes: Bytes,
    /// Version, and length and checksum where Apache can write it.
    pub others: Vec<(i16, Option<(usize, u32)>)>,
}

/// All of them: the committed ones, or those of the file that `GOLDEN_VECTORS` names.
pub fn entries() -> Vec<Entry> {
    let path = std::env::var("GOLDEN_VECTORS")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/apache.gz").to_owned());
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
