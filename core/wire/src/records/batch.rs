//! Walks a run of batches, as a log segment, a Produce request or a Fetch answer holds it.
//!
//! It finds where each batch begins and ends and what its header says. It does not check CRCs ([`Batch::check_crc`])
//! and looks at records only when asked ([`Batch::records`]). A run that stops in the middle of a batch is no error
//! (fetches cut their answers so, crashes their logs): the walk ends, and [`Batches::torn`] says where.
//!
//! Always true: a batch that comes out lies wholly inside the input, as a slice of it; the input is not copied.

use bytes::{Buf, Bytes};

use super::header::{HEADER_BYTES, LOG_OVERHEAD_BYTES, MAGIC_AT};
use super::{BatchError, BatchHeader, Records, compression};

/// One v2 batch: its bytes and what its header says.
#[derive(Debug, Clone)]
pub struct Batch {
    header: BatchHeader,
    bytes: Bytes,
}

impl Batch {
    /// Takes `bytes`, exactly one batch.
    ///
    /// # Errors
    /// Whatever [`BatchHeader::parse`] says; [`BatchError::Short`] where the length is not that of `bytes`.
    pub fn new(bytes: Bytes) -> Result<Self, BatchError> {
        let header = BatchHeader::parse(&bytes)?;
        if header.size_bytes() != bytes.len() {
            return Err(BatchError::Short { have: bytes.len(), need: header.size_bytes() });
        }
        Ok(Self { header, bytes })
    }

    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// The whole batch, header included.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The records as they came, perhaps compressed.
    pub fn body(&self) -> Bytes {
        self.bytes.slice(HEADER_BYTES..)
    }

    /// Header and records, taken apart.
    pub fn into_parts(mut self) -> (BatchHeader, Bytes) {
        self.bytes.advance(HEADER_BYTES);
        (self.header, self.bytes)
    }

    /// # Errors
    /// [`BatchError::Crc`] where the stored CRC is not that of the bytes.
    pub fn check_crc(&self) -> Result<(), BatchError> {
        self.header.check_crc(&self.bytes)
    }

    /// The records, inflated if need be: up to [`compression::inflated_limit`] bytes of memory. Uncompressed records
    /// are not copied.
    ///
    /// # Errors
    /// An unknown codec, a stream that its codec refuses or that inflates too far.
    pub fn records(&self) -> Result<Records, BatchError> {
        self.records_within(usize::MAX)
    }

    /// As [`Self::records`], inflating no more than `inflated_max` bytes: [`BatchError::TooLarge`] beyond.
    ///
    /// # Errors
    /// As [`Self::records`].
    pub fn records_within(&self, inflated_max: usize) -> Result<Records, BatchError> {
        let codec = self.header.attributes.codec()?;
        let body = compression::inflate_within(codec, self.body(), inflated_max)?;
        Ok(Records { header: self.header, body })
    }

    /// As [`Self::records_within`], with the caller's limit alone: for who reads what a broker has taken, however well
    /// it was compressed.
    ///
    /// # Errors
    /// As [`Self::records`].
    pub fn records_up_to(&self, inflated_max: usize) -> Result<Records, BatchError> {
        let codec = self.header.attributes.codec()?;
        let body = compression::inflate_up_to(codec, self.body(), inflated_max)?;
        Ok(Records { header: self.header, body })
    }
}

/// What stands at one place of a log: a batch, or a message (or compressed set of them) of an older format.
#[derive(Debug, Clone)]
pub enum Entry {
    Batch(Batch),
    /// Magic 0 or 1: see `message_set`.
    Message(Bytes),
}

/// The end of a run that is not the end of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Torn {
    /// Where the unfinished batch begins.
    pub at: usize,
    /// Bytes of it that are there.
    pub have: usize,
}

/// Walks everything that a log can hold, in any format.
#[derive(Debug, Clone)]
pub struct Entries {
    rest: Bytes,
    position: usize,
    failed: bool,
}

/// Walks v2 batches; an older format is [`BatchError::Magic`].
#[derive(Debug, Clone)]
pub struct Batches {
    entries: Entries,
}

/// The batches and older messages of `bytes`, in order.
pub fn entries(bytes: Bytes) -> Entries {
    Entries { rest: bytes, position: 0, failed: false }
}

/// The v2 batches of `bytes`, in order.
pub fn batches(bytes: Bytes) -> Batches {
    Batches { entries: entries(bytes) }
}

impl Entries {
    /// Where the next entry begins, counted from the start of the input.
    pub fn position(&self) -> usize {
        self.position
    }

    /// After the walk: what it stopped before, if that was a part of a batch.
    pub fn torn(&self) -> Option<Torn> {
        (!self.failed && !self.rest.is_empty()).then_some(Torn { at: self.position, have: self.rest.len() })
    }

    fn step(&mut self) -> Result<Option<Entry>, BatchError> {
        let Some(magic) = self.rest.get(MAGIC_AT) else { return Ok(None) };
        let length = i32::from_be_bytes([self.rest[8], self.rest[9], self.rest[10], self.rest[11]]);
        let magic = *magic as i8;
        let least = match magic {
            0 => 14,
            1 => 22,
            2 => HEADER_BYTES - LOG_OVERHEAD_BYTES,
            _ => return Err(BatchError::Magic { magic }),
        };
        let body = usize::try_from(length).ok().filter(|&length| length >= least);
        let size = LOG_OVERHEAD_BYTES + body.ok_or(BatchError::Length { length })?;
        if size > self.rest.len() {
            return Ok(None);
        }
        let bytes = self.rest.split_to(size);
        self.position += size;
        if magic == 2 {
            Batch::new(bytes).map(Entry::Batch).map(Some)
        } else {
            Ok(Some(Entry::Message(bytes)))
        }
    }
}

impl Iterator for Entries {
    type Item = Result<Entry, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let step = self.step();
        self.failed = step.is_err();
        step.transpose()
    }
}

impl Batches {
    /// Where the next batch begins, counted from the start of the input.
    pub fn position(&self) -> usize {
        self.entries.position()
    }

    /// After the walk: what it stopped before, if that was a part of a batch.
    pub fn torn(&self) -> Option<Torn> {
        self.entries.torn()
    }
}

impl Iterator for Batches {
    type Item = Result<Batch, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.entries.next()? {
            Ok(Entry::Batch(batch)) => Some(Ok(batch)),
            Ok(Entry::Message(bytes)) => {
                self.entries.failed = true;
                Some(Err(BatchError::Magic { magic: bytes[MAGIC_AT] as i8 }))
            }
            Err(error) => Some(Err(error)),
        }
    }
}
