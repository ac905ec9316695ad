//! What groups have in common whose coordinator assigns (KIP-848, KIP-932, KIP-1071): consumer, share and streams
//! groups. Kafka's `ModernGroup`.
//!
//! ```text
//!  heartbeat ─▶ who is in the group, what do they want?    membership.rs     a change raises the group's epoch
//!                    │
//!                    ▼
//!               target: who is to have what, for one group epoch             target.rs, crate::assignment
//!                    │
//!                    ▼
//!               the member comes as near to it as it can now                 each kind's own
//! ```
//!
//! | file | answers |
//! |---|---|
//! | `group.rs` | the group: its members, targets and epochs |
//! | `member.rs` | one member: what it said, where it stands |
//! | `membership.rs` | which member a heartbeat comes from; members that come, come back and go; their timers |
//! | `target.rs` | when a target is due, and what happens once it is made |
//! | `record.rs` | the group's records, written and read |
//! | `unwritten.rs` | which records are to be written, and written again after a loss |
//! | `names.rs` | which topics members subscribe to by name |
//! | `world.rs` | which topics there are, and whether they have changed for a group |
//! | `pace.rs` | when a member is to send its next heartbeat |
//! | `refused.rs` | what a member is refused, whatever its kind of group |
//!
//! Does not know: what a member has and how it comes to its target, assignors, what a heartbeat says. Those are each
//! kind's own ([`Kind`]).

mod group;
mod member;
mod membership;
mod names;
mod pace;
mod record;
mod refused;
mod target;
mod unwritten;
mod world;

use std::fmt::Debug;

use barnabas_base::{DurationMs, ErrorCode};

use super::Group;
use crate::outbox::{GroupCounts, TimerKey};
use crate::records::GroupKind;
use crate::{GroupConfig, GroupTimes};

pub(crate) use group::{FIRST_EPOCH, ReconciledGroup};
pub(crate) use member::{AWAY, Member, MemberState, keep};
pub(crate) use membership::Found;
pub(crate) use names::{Names, set_names, tally};
use pace::{Standing, pace};
pub(crate) use record::{Records, VERSION, with_epochs};
use refused::unknown_instance;
pub(crate) use refused::{
    Refused, check_ids, check_instance, check_size, describe_refused, no_group, not_found, too_large,
    unknown, wrong_kind,
};
pub(crate) use target::Due;
pub(crate) use unwritten::Unwritten;
pub(crate) use world::{METADATA_REFRESH, World};

/// A kind of group whose coordinator assigns.
///
/// Each kind works on heartbeats itself, with the pieces of [`ReconciledGroup`]. The skeleton calls back for two things
/// only: what is counted over the members, and the records ([`Records`]).
pub(crate) trait Kind: Debug + Clone + PartialEq {
    const KIND: GroupKind;

    /// What a group knows beside its members, targets and epochs.
    type Group: Debug + Default;
    /// What a member says of itself beside its ids.
    type Member: Debug + Clone + PartialEq + Default;
    /// What a member has.
    type Held: Debug + Clone + PartialEq + Default;
    /// What a member is to have.
    type Target: Debug + Clone + PartialEq + Default;

    /// How many members a group may have.
    fn size_max(config: &GroupConfig) -> usize;

    fn times<'a>(config: &'a GroupConfig, group: &str) -> &'a GroupTimes;

    /// The counter of epochs that were raised.
    fn raises(counts: &mut GroupCounts) -> &mut u64;

    /// A member was added (`old` is `None`), removed (`new` is `None`) or replaced by what it is now.
    fn count(group: &mut Self::Group, old: Option<&Member<Self>>, new: Option<&Member<Self>>);

    /// The member's own session timeout; `None`: the group's.
    fn session_timeout(_: &Member<Self>) -> Option<DurationMs> {
        None
    }

    /// Whether the member still has to do what it was given the time of `key` for, which is not its session's.
    fn is_late(_: &Member<Self>, _: &TimerKey) -> bool {
        false
    }

    /// The error code for a commit or fetch of offsets with another member epoch.
    fn stale_epoch(_: &Member<Self>) -> ErrorCode {
        ErrorCode::StaleMemberEpoch
    }

    /// The group as one of four kinds, and back.
    const WRAP: fn(Box<ReconciledGroup<Self>>) -> Group;
    fn of(group: &Group) -> Option<&ReconciledGroup<Self>>;
    fn of_mut(group: &mut Group) -> Option<&mut ReconciledGroup<Self>>;
}

/// What [`Kind`] says of a kind by its names: that of its variant in [`Group`] and in [`GroupKind`], and that of its
/// counter.
macro_rules! kind {
    ($variant:ident, raises: $counter:ident) => {
        const KIND: GroupKind = GroupKind::$variant;
        const WRAP: fn(Box<ReconciledGroup<Self>>) -> Group = Group::$variant;

        fn raises(counts: &mut GroupCounts) -> &mut u64 {
            &mut counts.$counter
        }

        fn of(group: &Group) -> Option<&ReconciledGroup<Self>> {
            if let Group::$variant(group) = group { Some(group) } else { None }
        }

        fn of_mut(group: &mut Group) -> Option<&mut ReconciledGroup<Self>> {
            if let Group::$variant(group) = group { Some(group) } else { None }
        }
    };
}
pub(crate) use kind;
