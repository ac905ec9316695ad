//! A partition's directory: its name, and the small files that Kafka keeps beside the segments.

pub(crate) mod dir_name;
pub(crate) mod epoch_file;
pub(crate) mod partition_metadata;
pub(crate) mod producer_snapshot;
