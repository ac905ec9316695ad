//! Streams groups (KIP-1071): the coordinator knows an application's topology, has its internal topics made, and
//! assigns its tasks.
//!
//! ```text
//!  heartbeat ─▶ who is in the group; the first to join brings the topology      [`heartbeat`], [`topology`]
//!                    │
//!                    ▼
//!               do the topics fit? sources are there, copartitioned ones agree, internal ones are there or are to be made:
//!               the answer carries what the broker is to create                  [`topology`]
//!                    │  a change raises the group's epoch
//!                    ▼
//!               target: who is to have which task, active or standby, for one group epoch   [`target`], assignment/streams/
//!                    │   computed on the spot, or as a [`crate::Job`] that the worker runs elsewhere
//!                    ▼
//!               reconcile: a member gives up what is not its any more, says so, gets what others have given up   [`reconcile`]
//! ```
//!
//! The machine is that of consumer groups (consumer/): epochs, states of members, records that are written as state is
//! ([`crate::groups::reconciled`]), jobs. What differs: partitions are tasks in three roles, processes share state, and
//! there are topics to be made. No active task has two owners, whatever the target says.
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
pub(crate) use describe::{describe, describe_refused, described_bytes};
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
