//! Client quotas: which limit a client has, how much it used, how long it must wait.
//!
//! Pure. The time comes in with each call. The shell keeps the accounts, answers with the wait, and mutes the
//! connection.
//!
//! | file | answers |
//! |---|---|
//! | `quotas/accounts.rs` | which account does a client have, and what does its use cost it |
//! | `quotas/bucket.rs` | how much may be used at once after a pause (quotas of the controller) |
//! | `quotas/connections.rs` | how long a new connection waits, and whether its address has made too many |
//! | `quotas/limits.rs` | which quota applies to a user and client id, and whom it is shared with |
//! | `quotas/places.rs` | how many connections may be open at once |
//! | `quotas/rate.rs` | how much a client used per second, and how long until it is within its quota |
//!
//! Source: KIP-13, KIP-55, KIP-124, KIP-219, KIP-599, KIP-612; Kafka `ClientQuotaManager`, `QuotaUtils`, `Rate`,
//! `SampledStat`.

pub mod accounts;
mod bucket;
pub mod connections;
pub mod limits;
pub mod places;
pub mod rate;

pub use bucket::Bucket;
pub use connections::Connections;
pub use limits::{Account, Kind, Limit, Limits};
pub use rate::{Rate, Windows};
