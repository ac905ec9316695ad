//! Batches that were written between the looks, read from one partition of a topic.

/// The newest batches of a topic's busiest partition.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecordSample {
    pub topic: String,
    pub partition: i32,
    pub batches: usize,
    /// Of these, those without a producer id.
    pub batches_without_id: usize,
    pub records: usize,
    /// Records that have the most frequent key, and records with a key.
    pub same_key: usize,
    pub keyed: usize,
    /// Bytes of the records of batches that are not compressed, and what lz4 makes of them.
    pub plain_bytes: usize,
    pub deflated_bytes: usize,
    /// Bytes of all batches.
    pub bytes: usize,
}
