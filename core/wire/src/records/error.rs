//! What can be wrong with record bytes, as values. Nothing here is for a client: `validate` makes refusals of it.

/// Why bytes are not a record batch, or not the records that their header promises.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    #[error("{have} bytes where at least {need} are needed")]
    Short { have: usize, need: usize },
    #[error("batch length {length} cannot hold a batch header")]
    Length { length: i32 },
    #[error("unknown magic {magic}")]
    Magic { magic: i8 },
    #[error("stored CRC {stored:#010x} but the bytes give {computed:#010x}")]
    Crc { stored: u32, computed: u32 },
    #[error("unknown compression codec {id}")]
    Codec { id: i16 },
    #[error("record {index}: {what}")]
    Record { index: usize, what: &'static str },
    #[error("header counts {counted} records, found {found}")]
    Count { counted: i32, found: usize },
    #[error("decompressing {codec}: {what}")]
    Decompress { codec: &'static str, what: String },
    #[error("decompressed size exceeds {limit} bytes")]
    TooLarge { limit: usize },
    #[error("compressing {codec}: {what}")]
    Compress { codec: &'static str, what: String },
    #[error("a batch cannot hold more than {limit} bytes")]
    Full { limit: usize },
}

/// Why a codec stopped at a stream of compressed bytes.
#[derive(Debug)]
pub(super) enum Fault {
    TooLarge,
    Stream(String),
}
