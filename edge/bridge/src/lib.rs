//! `barnabas bridge FILE…`: message queues ↔ topics. `barnabas bridge status FILE…`: how they fare.
//!
//! A connector is a file of IBM's MQ connectors or of our own keys (docs/QUEUES.md). It reaches its queue by AMQP
//! 1.0, or by client channels of IBM MQ (`mq.protocol=experimental`), and its topic by Kafka's protocol alone, so that
//! it runs beside any broker of either kind. Both clients are our own: core/amqp, core/mq.
//!
//! Each connector is a task that ends at any error and is run again after a pause that doubles
//! (`mq.reconnect.delay.min.ms` to `.max.ms`): a crash and an error take the same way.
//!
//! Which message is which record: edge/amqp-records, which edge/queues (the listener) shares.
//!
//! Not here: listeners for clients of either kind, several sessions for one connector.

mod config;
mod dead_letters;
mod error;
#[cfg(test)]
#[path = "../../client/src/fake_broker.rs"]
mod fake_broker;
mod run;
mod session;
mod sink;
mod source;
mod state;
mod stop;
#[cfg(test)]
mod tests;
mod watch;

pub use error::BridgeError;
pub use run::{command, run};
