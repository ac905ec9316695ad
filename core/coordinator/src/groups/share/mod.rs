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
//! Different from Kafka: there the heartbeat that sets topics up is answered with an empty assignment, and the member
//! hears of its partitions with the next one, five seconds later; here with the same one.
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

use super::Group;
use super::reconciled::{Kind, Member, ReconciledGroup, kind};
use crate::assignment::Partitions;
use crate::outbox::GroupCounts;
use crate::records::GroupKind;
use crate::{GroupConfig, GroupTimes};

pub(crate) use describe::{describe, describe_refused, described_bytes};
pub(crate) use group::ShareGroup;
pub(crate) use heartbeat::{Stayed, check, fence, finish, leave, loaded, refusal, stay};
pub(crate) use order::{Awaiting, Heartbeat};
pub(crate) use outcomes::Outcomes;

/// Share groups.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Share;

impl Kind for Share {
    type Group = group::Own;
    type Member = member::Own;
    type Held = Partitions;
    type Target = Partitions;

    fn size_max(config: &GroupConfig) -> usize {
        config.share.size_max
    }

    fn times<'a>(config: &'a GroupConfig, group: &str) -> &'a GroupTimes {
        config.share.times.of(group)
    }

    fn count(group: &mut group::Own, old: Option<&Member<Self>>, new: Option<&Member<Self>>) {
        group.names.change(old.map(|member| &member.own.names), new.map(|member| &member.own.names));
    }

    kind!(Share, raises: share_rebalances);
}
