//! Client metrics (KIP-714): which clients are asked for which metrics, which pushes are taken, and what they said.
//!
//! | file | answers |
//! |---|---|
//! | `client.rs` | what is known of a client |
//! | `matching.rs` | does a subscription's `match` fit this client |
//! | `subscriptions.rs` | which metrics does a client push, how often, under which subscription id |
//! | `clients.rs` | is this request in time, and which error does it get; which clients are known |
//! | `payload.rs` | is a push small enough, and OTLP |
//! | `otlp.rs` | which points are in these bytes; which bytes are the node's own metrics, for a collector |
//! | `series.rs` | which series do the points of all clients make |
//!
//! Pure: times, random ids and images are arguments. It does not know connections, the encoding of requests
//! (core/api, k71 and k72) or the metrics page.
//!
//! Always true:
//! 1. the clients, their series, and the bytes of each name are bounded, whatever clients send
//! 2. the checks of a push come in Kafka's order and refuse with Kafka's codes
//!
//! Source: KIP-714; Kafka 4.4 `ClientMetricsManager`, `ClientMetricsInstance`, `ClientMetricsConfigs`.

mod client;
mod clients;
mod matching;
pub mod otlp;
pub mod payload;
mod series;
mod subscriptions;

pub use client::{Client, Software};
pub use clients::{CLIENTS_MAX, ClientTable, Counts, Described, Outcome, Push};
pub use matching::{BadPattern, check_match};
pub use series::{Kind, Limits, Points, Sample, Series, gather};
pub use subscriptions::{ACCEPTED_CODECS, Offer, Subscriptions, Unusable};
