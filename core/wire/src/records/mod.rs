//! Records and record batches: Kafka's unit of storage, of transfer and of checking.
//!
//! | file | answers |
//! |---|---|
//! | `header` | what do the 61 bytes before the records say; how is a received batch numbered |
//! | `batch` | where does each batch of a run begin and end |
//! | `record` | which records does a batch hold |
//! | `builder` | how are records made a batch |
//! | `compression`, with its `snappy` and `lz4` | how are records inflated and deflated, and where is the limit |
//! | `old_formats` | how do clients older than Kafka 0.11 say the same |
//! | `compacted` | what does compaction leave of a batch |
//! | `control` | what does the log say about itself |
//! | `validate` | may this be appended, and as what bytes |
//! | `crc` | is it what was sent |
//!
//! Record bytes are slices of the frame or segment that they came in and are not copied, inflated or decoded unless a
//! rule must see them.

mod batch;
mod builder;
mod compacted;
pub mod compression;
mod control;
mod crc;
mod error;
mod header;
mod old_formats;
mod record;
mod validate;
mod varint;

#[cfg(test)]
mod tests;

pub use batch::{Batch, Batches, Entries, Entry, Torn, batches, entries};
pub use builder::{BatchBuilder, BatchOptions};
pub use compacted::{inflated_run, with_messages_left, with_records_left, without_records};
pub use compression::{Codec, Compression};
pub use control::{CONTROL_BYTES_MAX, ControlType, EndTxnMarker, control_batch};
pub use crc::{crc32, crc32c};
pub use error::BatchError;
pub use header::{
    Attributes, BatchHeader, HEADER_BYTES, LOG_OVERHEAD_BYTES, MAGIC_AT, TimestampType, check_crc,
    number_in_place,
};
pub use old_formats::down_convert::{DownConvertError, down_convert, down_convert_within};
pub use old_formats::message_set::{Message, Messages};
pub use record::{HeaderRef, RecordIter, RecordRef, Records};
pub use validate::{
    AtOnce, BatchOrigin, RECORD_BYTES_UNLIMITED, RECORD_ERRORS_MAX, ReadyBatch, RecordError,
    RecordValidation, Refusal, Rules, Validated, Verdict, validate_at_once, validate_produce,
};
