//! Kafka's messages.
