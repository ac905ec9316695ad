//! The codecs of records, both ways, as Java clients and brokers write and read them.
//!
//! | codec | stream |
//! |---|---|
//! | gzip | RFC 1952, members may follow each other |
//! | snappy | the framing of xerial's snappy-java, or one bare snappy block (`snappy`) |
//! | lz4 | the LZ4 frame with independent blocks (`lz4`) |
//! | zstd | RFC 8878, frames may follow each other |
//!
//! Inflating never makes more than [`inflated_limit`] bytes, and grows its output only as bytes come out, so a small
//! bomb costs its sender more than it costs us.
//!
//! Source: Kafka `org.apache.kafka.common.compress`, KIP-390 (levels).

mod lz4;
mod snappy;

use std::io::{Read, Write};

use bytes::Bytes;

use super::error::{BatchError, Fault};

/// How records are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(i16)]
pub enum Codec {
    #[default]
    None = 0,
    Gzip = 1,
    Snappy = 2,
    Lz4 = 3,
    Zstd = 4,
}

impl Codec {
    const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// The number in a batch's attributes.
    pub const fn id(self) -> i16 {
        self as i16
    }

    pub fn from_id(id: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|codec| codec.id() == id)
    }

    /// Kafka's word in configs and tools: `none`, `gzip`, `snappy`, `lz4`, `zstd`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|codec| codec.name() == name)
    }
}

impl std::fmt::Display for Codec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A codec and how hard it tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Compression {
    pub codec: Codec,
    /// `compression.gzip.level`, `.lz4.level`, `.zstd.level`; `None` is Kafka's default of the codec. lz4 knows one
    /// way only: its levels are accepted and make no difference.
    pub level: Option<i32>,
}

impl Compression {
    pub const NONE: Self = Self { codec: Codec::None, level: None };

    pub const fn of(codec: Codec) -> Self {
        Self { codec, level: None }
    }

    /// Appends the compressed `input` to `out`.
    ///
    /// # Errors
    /// [`BatchError::Compress`]: the codec failed. None of ours can on memory that is there.
    pub fn deflate(self, input: &[u8], out: &mut Vec<u8>) -> Result<(), BatchError> {
        self.deflate_for_magic(input, 2, out)
    }

    /// As [`Self::deflate`], for a message set of the format `magic`: lz4 differs in format 0.
    pub(super) fn deflate_for_magic(
        self,
        input: &[u8],
        magic: i8,
        out: &mut Vec<u8>,
    ) -> Result<(), BatchError> {
        let failed = |what: String| BatchError::Compress { codec: self.codec.name(), what };
        match self.codec {
            Codec::None => out.extend_from_slice(input),
            Codec::Gzip => {
                let level = self.level.filter(|level| (1..=9).contains(level)).unwrap_or(6);
                let level = flate2::Compression::new(level as u32);
                let mut encoder = flate2::write::GzEncoder::new(out, level);
                encoder.write_all(input).map_err(|error| failed(error.to_string()))?;
                encoder.finish().map_err(|error| failed(error.to_string()))?;
            }
            Codec::Snappy => snappy::deflate(input, out).map_err(failed)?,
            Codec::Lz4 => lz4::deflate(input, magic == 0, out),
            Codec::Zstd => {
                let level = self.level.unwrap_or(zstd::DEFAULT_COMPRESSION_LEVEL);
                let mut encoder = zstd::stream::write::Encoder::new(out, level)
                    .map_err(|error| failed(error.to_string()))?;
                encoder.write_all(input).map_err(|error| failed(error.to_string()))?;
                encoder.finish().map_err(|error| failed(error.to_string()))?;
            }
        }
        Ok(())
    }
}

/// However small the input, this much may come out of it: ordinary records of one repeated byte shrink a thousandfold.
const INFLATED_FREE_BYTES: usize = 64 << 20;
/// Beyond that, output may be this many times the input.
const INFLATED_RATIO: usize = 64;

/// The most bytes that `compressed` bytes of records may become: 64 times as many, or 64 MiB, whichever is more.
///
/// Kafka has no such limit: it inflates record by record and lets each be as large as it says.
pub const fn inflated_limit(compressed: usize) -> usize {
    let by_ratio = compressed.saturating_mul(INFLATED_RATIO);
    if by_ratio > INFLATED_FREE_BYTES { by_ratio } else { INFLATED_FREE_BYTES }
}

/// The records' bytes out of the compressed `input`; `input` itself, not copied, where there is no codec.
///
/// # Errors
/// [`BatchError::Decompress`] where the codec refuses the stream, [`BatchError::TooLarge`] at the limit.
pub fn inflate(codec: Codec, input: Bytes) -> Result<Bytes, BatchError> {
    let limit = inflated_limit(input.len());
    inflate_for_magic(codec, input, 2, limit)
}

/// As [`inflate`], with the caller's limit where that is lower.
///
/// # Errors
/// As [`inflate`].
pub fn inflate_within(codec: Codec, input: Bytes, limit: usize) -> Result<Bytes, BatchError> {
    let limit = limit.min(inflated_limit(input.len()));
    inflate_for_magic(codec, input, 2, limit)
}

/// As [`inflate`], with the caller's limit alone, whatever the size of the input.
///
/// # Errors
/// As [`inflate`].
pub fn inflate_up_to(codec: Codec, input: Bytes, limit: usize) -> Result<Bytes, BatchError> {
    inflate_for_magic(codec, input, 2, limit)
}

/// As [`inflate`], out of a message of the format `magic` and with the caller's limit.
pub(super) fn inflate_for_magic(
    codec: Codec,
    input: Bytes,
    magic: i8,
    limit: usize,
) -> Result<Bytes, BatchError> {
    let mut out = Vec::new();
    let result = match codec {
        Codec::None => return Ok(input),
        Codec::Gzip => read_all(flate2::bufread::MultiGzDecoder::new(&input[..]), limit, &mut out),
        Codec::Snappy => snappy::inflate(&input, limit, &mut out),
        Codec::Lz4 => lz4::inflate(&input, magic == 0, limit, &mut out),
        Codec::Zstd => zstd::stream::read::Decoder::with_buffer(&input[..])
            .map_err(|error| Fault::Stream(error.to_string()))
            .and_then(|decoder| read_all(decoder, limit, &mut out)),
    };
    match result {
        Ok(()) => Ok(Bytes::from(out)),
        Err(Fault::TooLarge) => Err(BatchError::TooLarge { limit }),
        Err(Fault::Stream(what)) => Err(BatchError::Decompress { codec: codec.name(), what }),
    }
}

fn read_all(reader: impl Read, limit: usize, out: &mut Vec<u8>) -> Result<(), Fault> {
    // Reads one byte beyond the limit, to tell "exactly at the limit" from "beyond it".
    let asked = limit as u64 + 1;
    let read = reader.take(asked).read_to_end(out).map_err(|error| Fault::Stream(error.to_string()))?;
    if read as u64 == asked { Err(Fault::TooLarge) } else { Ok(()) }
}
