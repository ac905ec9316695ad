//! Why the records of a partition cannot be loaded.

use barnabas_wire::DecodeError;
use barnabas_wire::records::BatchError;

/// A record that cannot be read: the partition cannot be served by this build.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    #[error("the batch at {offset} cannot be read: {source}")]
    Batch { offset: i64, source: BatchError },
    #[error("record {offset} has a key that cannot be read: {source}")]
    Key { offset: i64, source: DecodeError },
    #[error("record {offset} (type {type_number}) has a value that cannot be read: {source}")]
    Value { offset: i64, type_number: i16, source: DecodeError },
    #[error("record {offset} has a transaction state that does not exist: {number}")]
    State { offset: i64, number: i8 },
}
