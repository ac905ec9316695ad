//! Classic groups: members agree on a protocol, one of them leads and assigns, everybody syncs.
//!
//! ```text
//!            a member joins                all have joined, or time is up
//!   Empty ─────────────────▶ PreparingRebalance ─────────────────▶ CompletingRebalance
//!     ▲                        ▲   │  no member: Empty                  │ the leader's assignment
//!     └────────────────────────┼───┘                                    ▼ is on disk
//!                              └──────── a member comes or goes ───── Stable
//! ```
//!
//! What members say to each other (subscriptions, assignments: the *embedded* protocol) is opaque; only the topics that
//! consumers subscribe to are read, to know which offsets must not expire.
//!
//! Kafka's fifth state, Dead, is a group that is not there.
//!
//! # Source
//! KIP-62, KIP-134 (initial delay), KIP-345 (static members), KIP-394 (member id required), KIP-559, KIP-814 (skip
//! assignment); Kafka 4.4 `GroupMetadataManager`, `ClassicGroup`.

mod describe;
mod group;
mod heartbeat;
mod join;
mod leave;
mod member;
mod rebalance;
mod record;
mod subscription;
mod sync;

pub(crate) use describe::{describe, describe_missing, described_bytes};
pub(crate) use group::{ClassicGroup, State};
pub(crate) use heartbeat::{heard_of, heartbeat, session_over};
pub(crate) use join::{check_new_group, finish_replacement, join, new_member_id, revert_replacement};
pub(crate) use leave::leave;
pub(crate) use member::Member;
pub(crate) use rebalance::{
    expect_member, forget_timers, join_over, loaded, prepare_rebalance, send_away, sync_over,
};
pub(crate) use sync::{assigned, assignment_lost, sync};
