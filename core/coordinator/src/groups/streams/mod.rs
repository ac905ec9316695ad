//! Streams groups (KIP-1071): the coordinator knows an application's topology, has its internal topics made, and
//! assigns its tasks.
//!
//! ```text
//!  heartbeat ─▶ members; the first member's topology is the group's        [`heartbeat`], [`topology`]
//!                    │
//!                    ▼
//!               check topics: sources exist, copartitioned topics agree; the answer names
//!               the internal topics that the broker has to create          [`topology`]
//!                    │  a change raises the group's epoch
//!                    ▼
//!               target assignment of active and standby tasks, for one group epoch
//!                    │  at once, or as a [`crate::Job`] on another thread   [`target`], assignment/streams/
//!                    ▼
//!               reconcile: a member revokes tasks, confirms, and gets tasks that
//!               other members have revoked                                 [`reconcile`]
//! ```
//!
//! The machine is that of consumer groups (consumer/): epochs, states of members, records that are written as state is
//! ([`crate::groups::reconciled`]), jobs. What differs: partitions are tasks in three roles, processes share state, and
//! the group may need internal topics. No active task has two owners, whatever the target says.
//!
//! # Source
//! KIP-1071, KIP-1263 (assignment interval); Kafka 4.4 `GroupMetadataManager`, `StreamsGroup`. Kafka
//! 4.4 assigns no warm-up tasks yet (`AssignmentRefiner` changes nothing): targets that have some are followed.

mod check;
mod describe;
mod endpoints;
mod group;
mod heartbeat;
mod leave;
mod member;
mod missed;
mod reconcile;
mod record;
mod target;
mod topology;

use super::Group;
use super::reconciled::{AWAY, Kind, Member, MemberState, ReconciledGroup, kind};
use crate::assignment::streams::{Held, Target};
use crate::outbox::{GroupCounts, TimerKey};
use crate::records::GroupKind;
use crate::{GroupConfig, GroupTimes};

pub(crate) use check::{check, refusal};
pub(crate) use describe::{describe, describe_refused, described_bytes, keep_description};
pub(crate) use group::StreamsGroup;
pub(crate) use heartbeat::heartbeat;
pub(crate) use leave::{fence, leave, loaded};
pub(crate) use target::first_target;

/// Streams groups.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Streams;

impl Kind for Streams {
    type Group = group::Own;
    type Member = member::Own;
    type Held = Held;
    type Target = Target;

    fn size_max(config: &GroupConfig) -> usize {
        config.streams.size_max
    }

    fn times<'a>(config: &'a GroupConfig, group: &str) -> &'a GroupTimes {
        &config.streams.settings.of(group).times
    }

    fn is_late(member: &Member<Self>, key: &TimerKey) -> bool {
        let is_asked = member.state == MemberState::Unrevoked && member.epoch != AWAY;
        matches!(key, TimerKey::Rebalance { .. }) && is_asked
    }

    fn count(group: &mut group::Own, old: Option<&Member<Self>>, new: Option<&Member<Self>>) {
        group.count(old, new);
    }

    kind!(Streams, raises: streams_rebalances);
}
