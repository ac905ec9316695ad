//! Consumer groups (KIP-848): the coordinator assigns, and each member reconciles by itself without stopping the
//! others.
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
//! State is exactly what the records say: each change notes its record ([`crate::records::Entry`]), and
//! [`ConsumerGroup::flush`] writes the noted records with the state of that moment. If a batch is lost, its entries
//! are written again, so that state is never reverted while later changes rest on it. An answer is sent once the
//! records that it rests on are on disk.
//!
//! # Source
//! KIP-848, KIP-1263 (assignment interval); Kafka 4.4 `GroupMetadataManager`, `ConsumerGroup`,
//! `CurrentAssignmentBuilder`.

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

use barnabas_base::{DurationMs, ErrorCode};

use super::Group;
use super::reconciled::{Kind, Member, MemberState, ReconciledGroup, kind};
use crate::assignment::Partitions;
use crate::outbox::{GroupCounts, TimerKey};
use crate::records::GroupKind;
use crate::{GroupConfig, GroupTimes};

pub(crate) use check::{check, refusal};
pub(crate) use classic_member::{Joined, join, leaves, sync, touch};
pub(crate) use describe::{describe, describe_refused, described_bytes};
pub(crate) use group::ConsumerGroup;
pub(crate) use heartbeat::heartbeat;
pub(crate) use leave::{fence, loaded};
pub(crate) use member::Assigned;
#[cfg(test)]
pub(crate) use member::ConsumerMember;
pub(crate) use migrate::{can_downgrade, can_upgrade, from_classic, to_classic};
pub(crate) use regex::resolved;

/// Consumer groups.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Consumer;

impl Kind for Consumer {
    type Group = group::Own;
    type Member = member::Own;
    type Held = Assigned;
    type Target = Partitions;

    fn size_max(config: &GroupConfig) -> usize {
        config.consumer.size_max
    }

    fn times<'a>(config: &'a GroupConfig, group: &str) -> &'a GroupTimes {
        config.consumer.times.of(group)
    }

    fn count(group: &mut group::Own, old: Option<&Member<Self>>, new: Option<&Member<Self>>) {
        group.count(old, new);
    }

    /// Members of the classic protocol say how long theirs is.
    fn session_timeout(member: &Member<Self>) -> Option<DurationMs> {
        member.own.classic.as_ref().map(|side| DurationMs(i64::from(side.session_timeout_ms)))
    }

    /// A member that has gone over to the other protocol has its times no more.
    fn is_late(member: &Member<Self>, key: &TimerKey) -> bool {
        match key {
            TimerKey::Rebalance { .. } => {
                member.state == MemberState::Unrevoked && member.own.classic.is_none()
            }
            TimerKey::MemberJoin { .. } | TimerKey::MemberSync { .. } => member.own.classic.is_some(),
            _ => false,
        }
    }

    /// In the words of the member's protocol.
    fn stale_epoch(member: &Member<Self>) -> ErrorCode {
        if member.own.classic.is_some() { ErrorCode::IllegalGeneration } else { ErrorCode::StaleMemberEpoch }
    }

    kind!(Consumer, raises: consumer_rebalances);
}
