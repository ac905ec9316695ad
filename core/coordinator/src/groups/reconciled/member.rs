//! One member: what it said of itself, and where it stands.
//!
//! Cheap to clone: a heartbeat that changes nothing copies a few pointers, whatever the member has.

use std::sync::Arc;

use barnabas_base::{ErrorCode, Text};
use barnabas_wire::Str;

use super::{Kind, Refused};
use crate::framework::{Caller, ID_BYTES_MAX, shortened};

/// The epoch of a static member that is away for a moment.
pub(crate) const AWAY: i32 = -2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemberState {
    Stable,
    /// It has something to give up first.
    Unrevoked,
    /// It waits for what others are to give up.
    Unreleased,
    /// Of a later version's making.
    Unknown,
}

impl MemberState {
    /// As its record says it. `stable`: the number of [`MemberState::Stable`], with which a kind begins to count.
    pub const fn number(self, stable: i8) -> i8 {
        match self {
            Self::Stable => stable,
            Self::Unrevoked => stable + 1,
            Self::Unreleased => stable + 2,
            Self::Unknown => 127,
        }
    }

    pub const fn from_number(number: i8, stable: i8) -> Self {
        match number.wrapping_sub(stable) {
            0 => Self::Stable,
            1 => Self::Unrevoked,
            2 => Self::Unreleased,
            _ => Self::Unknown,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Member<K: Kind> {
    pub id: Text,
    /// `group.instance.id` of a static member.
    pub instance: Option<Text>,
    pub rack: Option<Text>,
    pub client_id: Text,
    pub client_host: Text,
    /// −1: not said, as by members of share groups.
    pub rebalance_timeout_ms: i32,
    /// 0: about to join. [`AWAY`]: a static member that is away for a moment.
    pub epoch: i32,
    pub previous_epoch: i32,
    pub state: MemberState,
    pub assigned: Arc<K::Held>,
    /// What it is to give up; nothing in share groups, where partitions are shared.
    pub revoking: Arc<K::Held>,
    /// What only members of its kind say.
    pub own: K::Member,
}

impl<K: Kind> Member<K> {
    pub fn new(id: Text) -> Self {
        Self {
            id,
            instance: None,
            rack: None,
            client_id: Text::default(),
            client_host: Text::default(),
            rebalance_timeout_ms: -1,
            epoch: 0,
            previous_epoch: 0,
            state: MemberState::Stable,
            assigned: Arc::default(),
            revoking: Arc::default(),
            own: K::Member::default(),
        }
    }

    /// The new process of a static member: what the old one had, under another id.
    pub fn replacement(&self, id: Text) -> Self {
        Self { id, epoch: 0, previous_epoch: 0, ..self.clone() }
    }

    pub fn is_reconciled_to(&self, assignment_epoch: i32) -> bool {
        self.state == MemberState::Stable && self.epoch == assignment_epoch
    }

    /// Moves on to `epoch`, which may be the one it is in.
    pub fn advance(&mut self, epoch: i32) {
        self.previous_epoch = self.epoch;
        self.epoch = epoch;
    }

    /// Its record of where it stands is gone.
    pub fn reset(&mut self) {
        self.epoch = 0;
        self.previous_epoch = 0;
        self.state = MemberState::Stable;
        self.assigned = Arc::default();
        self.revoking = Arc::default();
    }

    pub fn set_client(&mut self, caller: &Caller<'_>) {
        if self.client_id != caller.client_id {
            self.client_id = Text::from(shortened(caller.client_id, ID_BYTES_MAX));
        }
        if self.client_host != caller.client_host {
            self.client_host = Text::from(shortened(caller.client_host, ID_BYTES_MAX));
        }
    }

    /// Whether the member may come with `epoch`: its own, 0 to start again, or its last one if it `owns_no_more` than
    /// it has, as the answer with the new epoch may have been lost.
    ///
    /// # Errors
    /// FENCED_MEMBER_EPOCH.
    pub fn check_epoch(&self, epoch: i32, owns_no_more: impl FnOnce() -> bool) -> Result<(), Refused> {
        let is_lost_answer = || epoch < self.epoch && epoch == self.previous_epoch && owns_no_more();
        if epoch == 0 || epoch == self.epoch || is_lost_answer() { Ok(()) } else { Err(self.fenced(epoch)) }
    }

    pub fn fenced(&self, epoch: i32) -> Refused {
        let than = if epoch > self.epoch { "greater" } else { "smaller" };
        let why = format!(
            "The {} group member has a {than} member epoch ({epoch}) than the one known by the group coordinator ({}). The member \
             must abandon all its partitions and rejoin.",
            K::KIND.name(),
            self.epoch
        );
        Refused::new(ErrorCode::FencedMemberEpoch, why)
    }
}

/// Takes in what a request says; what it does not mention stays.
pub(crate) fn keep(new: Option<&Str>, old: &mut Option<Text>) {
    if let Some(new) = new
        && old.as_ref().is_none_or(|old| *old != new.as_str())
    {
        *old = Some(new.text());
    }
}
