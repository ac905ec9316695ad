//! Share groups (KIP-932): members read the same partitions together, record by record.
//!
//! ```text
//!  heartbeat ─▶ who is in the group, what do they want?       a change raises the group's epoch
//!                    │
//!                    ▼
//!               are the topics' share-partitions set up?      if not, the share coordinator is asked ([`crate::ShareStateOrder`]), and the
//!                    │                                        heartbeat waits for that
//!                    ▼
//!               target: who is to have what                   assignment/share/, of share-partitions that are set up
//!                    │
//!                    ▼
//!               the member has its target at once             nobody has to give anything up first, as partitions are shared
//! ```
//!
//! Different from Kafka: there the heartbeat that sets topics up is answered with an empty assignment, and the member hears of its
//! partitions with the next one, five seconds later; here with the same one.
//!
//! State is what the records say and nothing else, as for consumer groups: whoever changes something notes which record that is
//! ([`Entry`]), and [`ShareGroup::flush`] writes those records as they are then. Should a batch be lost, its entries are written
//! again.
//!
//! Not here: which records are delivered to whom (core/partition/src/share), how far the group has come (share_state/).
//!
//! # Source
//! KIP-932, KIP-1263; Kafka 4.4 `GroupMetadataManager`, `ShareGroup`, `SimpleAssignor`.

mod describe;
mod group;
mod heartbeat;
mod member;
mod order;
mod outcomes;
mod record;
mod set_up;

pub(crate) use describe::{describe, describe_missing, list, not_share};
pub(crate) use group::ShareGroup;
pub(crate) use heartbeat::{Stayed, check, fence, finish, forget_timers, leave, loaded, stay};
#[cfg(test)]
pub(crate) use member::ShareMember;
pub(crate) use order::{Awaiting, Heartbeat};
pub(crate) use outcomes::Outcomes;
