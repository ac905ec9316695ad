//! Kafka messages, records and record batches ↔ bytes.

pub mod records;
