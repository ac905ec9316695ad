//! What tools print: tables as Kafka's tools print theirs, the same as JSON, and errors in the words of Kafka's tools.

pub mod kafka_errors;
pub mod table;
