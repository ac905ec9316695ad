//! Share groups (KIP-932): members read the same partitions together, record by record.
//!
//! ```text
//!  heartbeat ─▶ members and subscriptions            a change raises the group's epoch
//!                    │
//!                    ▼
//!               initialize share-partitions          by the share coordinator ([`crate::ShareStateOrder`]);
//!                    │                               the heartbeat waits for it
//!                    ▼
//!               target assignment                    assignment/share/, of initialized share-partitions
//!                    │
//!                    ▼
//!               the member's assignment              the target at once: partitions are shared, so no member revokes
//! ```
//!
//! Different from Kafka: there the heartbeat that initializes topics is answered with an empty assignment, and the
//! member gets its partitions with the next heartbeat, five seconds later. Here the same heartbeat returns them.
//!
//! Not here: delivery of records (core/partition/src/share), the group's position (share_state/).
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
