//! A client that reaches brokers through the Kafka protocol alone: connections, metadata, producing,
//! consuming, groups, topics.
//!
//! Knows nothing of a broker's insides and works with any broker that speaks Kafka's protocol. What can be tried
//! again is tried again here until the caller's deadline; what cannot is an error that says what to do.
//!
//! Bounded: one connection per node and one request under way on each; in a [`PipelinedProducer`] as many requests as
//! `max.in.flight.requests.per.connection` and as many batches as `buffer.memory` hold.

mod admin;
mod cluster;
mod connection;
mod consumer;
mod error;
#[cfg(test)]
mod fake_broker;
mod group;
mod murmur2;
mod pipeline;
mod producer;
mod security;
mod troubles;

pub use admin::{Admin, NewTopic};
pub use cluster::{Cluster, ClusterConfig, Committed, Coordinated, LastTrouble};
pub use connection::{Connection, Dial, Progress};
pub use consumer::share::{Acknowledge, ShareConfig, ShareConsumer, Shared};
pub use consumer::unpack::{AbortedTransactions, Fault, Unpacked, unpack};
pub use consumer::{Consumer, ConsumerConfig, FetchedBatch, Received, StartAt};
pub use error::{ClientError, check};
pub use group::{Group, GroupConfig};
pub use murmur2::murmur2;
pub use pipeline::{Counters, Delivery, Parsed, PipelineConfig, PipelinedProducer, Record, Spread, Taken};
pub use producer::{Outgoing, Producer, ProducerConfig, TransactionConfig, TransactionalProducer};
pub use security::{Protocol, Security};
pub use troubles::Trouble;
