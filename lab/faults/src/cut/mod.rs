//! The power cuts' load and its judge.
//!
//! | part | is |
//! |---|---|
//! | `writer` | a producer that lives through every cut and sends again what was not answered |
//! | `upkeep` | committed offsets; topics made and deleted |
//! | `librdkafka` | the same as a writer, with another client library |
//! | `judge` | reads back and says what is lost, doubled or out of order |
//!
//! What was acknowledged before a cut is a promise and is kept in this process's memory; the judge holds the node to
//! it.

pub mod judge;
pub mod librdkafka;
pub mod upkeep;
pub mod writer;

use crate::kafka::Place;
use crate::records::Stamp;

/// A batch whose producer was told that it is there.
#[derive(Debug, Clone)]
pub struct Acked {
    pub place: Place,
    pub base: i64,
    pub first: Stamp,
    pub count: u32,
    pub acks: i16,
}

/// Writers from this number on send with `acks=1` and without sequences.
pub const PLAIN_WRITERS: u32 = 500;
/// The writer with librdkafka.
pub const LIBRDKAFKA: u32 = 900;

/// A topic of the load.
#[derive(Debug, Clone, Copy)]
pub struct LoadTopic {
    pub name: &'static str,
    pub partitions: i32,
    pub configs: &'static [(&'static str, &'static str)],
    /// Values up to this size go in now and then.
    pub large_bytes: usize,
    /// The log's start may move by itself.
    pub shrinks: bool,
}

/// Segments are small, so that cuts hit rolls, new files and deletions too.
pub const TOPICS: &[LoadTopic] = &[
    LoadTopic {
        name: "strict",
        partitions: 6,
        configs: &[("internal.segment.bytes", "2000000"), ("retention.ms", "-1")],
        large_bytes: 900_000,
        shrinks: false,
    },
    LoadTopic {
        name: "many",
        partitions: 24,
        configs: &[("internal.segment.bytes", "60000"), ("retention.ms", "-1")],
        large_bytes: 20_000,
        shrinks: false,
    },
    LoadTopic {
        name: "kept",
        partitions: 3,
        configs: &[
            ("internal.segment.bytes", "100000"),
            ("retention.bytes", "300000"),
            ("file.delete.delay.ms", "20"),
        ],
        large_bytes: 30_000,
        shrinks: true,
    },
];

/// Where librdkafka writes.
pub const LIBRDKAFKA_TOPIC: LoadTopic = LoadTopic {
    name: "librdkafka",
    partitions: 3,
    configs: &[("internal.segment.bytes", "300000"), ("retention.ms", "-1")],
    large_bytes: 0,
    shrinks: false,
};
