//! One member of a consumer group: what it said of itself, and where it stands.
//!
//! Cheap to clone: a heartbeat that changes nothing copies a few pointers, whatever the member has.

use std::collections::BTreeMap;
use std::sync::Arc;

use barnabas_base::{Text, TopicId};

use crate::request::Protocols;

/// Partitions by topic, each with the epoch in which the member was given it: commits from before are refused (KIP-1251).
pub(crate) type Assigned = BTreeMap<TopicId, BTreeMap<i32, i32>>;

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
    pub const fn number(self) -> i8 {
        match self {
            Self::Stable => 0,
            Self::Unrevoked => 1,
            Self::Unreleased => 2,
            Self::Unknown => 127,
        }
    }

    pub const fn from_number(number: i8) -> Self {
        match number {
            0 => Self::Stable,
            1 => Self::Unrevoked,
            2 => Self::Unreleased,
            _ => Self::Unknown,
        }
    }
}

/// What a member that speaks the classic protocol said when it joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClassicSide {
    pub session_timeout_ms: i32,
    /// At least one.
    pub protocols: Protocols,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConsumerMember {
    pub id: Text,
    /// `group.instance.id` of a static member.
    pub instance: Option<Text>,
    pub rack: Option<Text>,
    pub client_id: Text,
    pub client_host: Text,
    /// Topics subscribed to by name: sorted, none twice.
    pub names: Arc<Vec<Text>>,
    /// The empty expression is none, as clients that go back to names send it.
    pub regex: Option<Text>,
    pub rebalance_timeout_ms: i32,
    pub assignor: Option<Text>,
    /// `Some`: it speaks the classic protocol.
    pub classic: Option<Arc<ClassicSide>>,
    /// 0: about to join. −2: a static member that is away for a moment.
    pub epoch: i32,
    pub previous_epoch: i32,
    pub state: MemberState,
    pub assigned: Arc<Assigned>,
    pub revoking: Arc<Assigned>,
}

impl ConsumerMember {
    pub fn new(id: Text) -> Self {
        Self {
            id,
            instance: None,
            rack: None,
            client_id: Text::default(),
            client_host: Text::default(),
            names: Arc::default(),
            regex: None,
            rebalance_timeout_ms: -1,
            assignor: None,
            classic: None,
            epoch: 0,
            previous_epoch: 0,
            state: MemberState::Stable,
            assigned: Arc::default(),
            revoking: Arc::default(),
        }
    }

    /// The expression that it subscribes by, if it does.
    pub fn pattern(&self) -> Option<&Text> {
        self.regex.as_ref().filter(|regex| !regex.is_empty())
    }

    /// What it said of itself, as a request says it.
    pub fn said_bytes(&self) -> usize {
        self.own_bytes() + self.names.iter().map(|name| name.len() + 2).sum::<usize>()
    }

    /// Likewise, without the names that it subscribes to.
    pub fn own_bytes(&self) -> usize {
        let texts = [&self.instance, &self.rack, &self.regex, &self.assignor];
        let texts = texts.into_iter().flatten().map(|text| text.len()).sum::<usize>();
        let said = self.classic.iter().flat_map(|side| side.protocols.pairs());
        let said = said.map(|(name, said)| name.len() + said.len()).sum::<usize>();
        self.id.len() + self.client_id.len() + self.client_host.len() + texts + said
    }

    pub fn subscribes_by_name(&self, topic: &str) -> bool {
        self.names.binary_search_by(|name| name.as_str().cmp(topic)).is_ok()
    }

    pub fn is_reconciled_to(&self, assignment_epoch: i32) -> bool {
        self.state == MemberState::Stable && self.epoch == assignment_epoch
    }

    /// Moves on to `epoch`, which may be the one it is in.
    pub fn advance(&mut self, epoch: i32) {
        self.previous_epoch = self.epoch;
        self.epoch = epoch;
    }

    /// What is its, for now: given to it, or not given back yet.
    pub fn holdings(&self) -> impl Iterator<Item = (TopicId, i32)> {
        let both = self.assigned.iter().chain(self.revoking.iter());
        both.flat_map(|(topic, partitions)| partitions.keys().map(|partition| (*topic, *partition)))
    }

    /// The epoch in which it was given a partition that it still has.
    pub fn assignment_epoch(&self, topic: TopicId, partition: i32) -> Option<i32> {
        let of = |assigned: &Assigned| assigned.get(&topic)?.get(&partition).copied();
        of(&self.assigned).or_else(|| of(&self.revoking))
    }
}
