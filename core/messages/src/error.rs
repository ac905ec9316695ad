//! What can be wrong with bytes that come in, and with messages that are to go out.

/// Why bytes are not the message that they should be: what, in which field, at which byte of the frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} (field {field}, byte {position})")]
pub struct DecodeError {
    pub kind: DecodeErrorKind,
    /// The field's name in Kafka's spelling; empty where the trouble is the message as a whole.
    pub field: &'static str,
    /// Bytes from the start of what the [`Reader`](crate::Reader) was given.
    pub position: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeErrorKind {
    #[error("{needed} bytes are needed and {remaining} are left")]
    Short { needed: u64, remaining: usize },
    #[error("length {0} is none")]
    Length(i64),
    #[error("a variable-length number runs past its longest form")]
    Varint,
    #[error("null where this version has none")]
    Null,
    #[error("the message would take more than {0} bytes of memory")]
    Memory(usize),
    #[error("tagged field {tag} says {said} bytes and takes {taken}")]
    TagLength { tag: u32, said: usize, taken: usize },
    #[error("{message} has no version {version}")]
    Version { message: &'static str, version: i16 },
    #[error("{enumeration} has no type {value}")]
    Type { enumeration: &'static str, value: i64 },
    #[error("{0} bytes are left over")]
    Trailing(usize),
}

/// Why a message cannot be written in a version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    #[error("{message} has no version {version}")]
    Version { message: &'static str, version: i16 },
    #[error("version {version} cannot carry field {field}")]
    CannotCarry { field: &'static str, version: i16 },
    #[error("field {field} cannot be null in this version")]
    Null { field: &'static str },
    #[error("field {field} is too long: {length}")]
    TooLong { field: &'static str, length: usize },
    #[error("tagged field {tag} is unknown, and stands out of order or where a known one does")]
    TagOrder { tag: u32 },
}
