//! Consumer groups (KIP-848): the coordinator assigns, members reconcile with it one by one, nobody stops the others.
//!
//! ```text
//!  heartbeat ─▶ who is in the group, what do they want?  a change raises the group's epoch
//!                    │
//!                    ▼
//!               target: who is to have what, for one group epoch    [`target`], assignment/consumer/
//!                    │   computed on the spot, or as a [`crate::Job`] that the worker runs elsewhere
//!                    ▼
//!               reconcile: a member gives up what is not its any more, says so, gets what others have given up, and so
//!               comes to the target's epoch                         [`reconcile`]
//! ```
//!
//! A member is Stable, or has something to give up (unrevoked), or waits for what others are to give up (unreleased).
//! No partition has two owners, whatever the target says.
//!
//! State is what the records say and nothing else: whoever changes something notes which record that is
//! ([`crate::records::Entry`]), and [`ConsumerGroup::flush`] writes those records as they are then. Should a batch be lost, its entries
//! are written again, so that state is never taken back while later changes rest on it; nobody is answered before what the
//! answer rests on is on disk.
//!
//! # Source
//! KIP-848, KIP-1263 (assignment interval); Kafka 4.4 `GroupMetadataManager`, `ConsumerGroup`, `CurrentAssignmentBuilder`.

mod check;
mod classic_member;
mod describe;
mod group;
mod heartbeat;
mod leave;
mod member;
mod migrate;
mod reconcile;
mod record;
mod regex;
mod target;

pub(crate) use check::{check, refusal};
pub(crate) use classic_member::{Joined, join, leaves, sync, touch};
pub(crate) use describe::{describe, describe_missing, list, not_consumer};
pub(crate) use group::ConsumerGroup;
pub(crate) use heartbeat::heartbeat;
pub(crate) use leave::{Left, fence, forget_timers, is_late, leave, loaded, static_leave, watch_all};
#[cfg(test)]
pub(crate) use member::{Assigned, ConsumerMember};
pub(crate) use migrate::{can_downgrade, can_upgrade, from_classic, to_classic};
pub(crate) use regex::resolved;
pub(crate) use target::computed;
