//! What every message is: a struct that knows its versions and reads and writes itself in each of them.

use crate::error::{DecodeError, DecodeErrorKind, EncodeError};
use crate::reader::Reader;
use crate::writer::Writer;

/// Versions `min` to `max`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionRange {
    pub min: i16,
    pub max: i16,
}

impl VersionRange {
    pub const fn new(min: i16, max: i16) -> Self {
        Self { min, max }
    }

    pub const fn contains(self, version: i16) -> bool {
        self.min <= version && version <= self.max
    }
}

/// A message or a part of one. The version is the message's, and was checked before.
pub trait Struct: Sized {
    /// The least that it takes on the wire in any version, and at least 1.
    const BYTES_MIN: usize;

    fn read(r: &mut Reader, version: i16) -> Result<Self, DecodeError>;
    fn write(&self, w: &mut Writer, version: i16) -> Result<(), EncodeError>;
}

/// A message: what has versions of its own.
pub trait Message: Struct {
    /// Kafka's name of it.
    const NAME: &'static str;
    const VERSIONS: VersionRange;
    /// From this version on, lengths are compact and tagged fields follow (KIP-482).
    const FLEXIBLE_SINCE: Option<i16>;

    /// Reads one message; what follows it in the frame stays for the caller ([`Reader::finish`]).
    ///
    /// # Errors
    /// The version is none of [`Self::VERSIONS`], or the bytes are no such message.
    fn decode(r: &mut Reader, version: i16) -> Result<Self, DecodeError> {
        if !Self::VERSIONS.contains(version) {
            return Err(r.error("", DecodeErrorKind::Version { message: Self::NAME, version }));
        }
        Self::read(r, version)
    }

    /// # Errors
    /// The version is none of [`Self::VERSIONS`] or has no place for a field that is set. The writer then
    /// holds half a message.
    fn encode(&self, w: &mut Writer, version: i16) -> Result<(), EncodeError> {
        if !Self::VERSIONS.contains(version) {
            return Err(EncodeError::Version { message: Self::NAME, version });
        }
        self.write(w, version)
    }

    fn is_flexible(version: i16) -> bool {
        Self::FLEXIBLE_SINCE.is_some_and(|since| version >= since)
    }
}
