//! What members of consumer groups say and have beside what every member does.

use std::collections::BTreeMap;
use std::sync::Arc;

use barnabas_base::{Text, TopicId};

use super::Consumer;
use crate::groups::reconciled::Member;
use crate::request::Protocols;

/// Partitions by topic, each with the epoch in which the member was given it: commits from before are refused
/// (KIP-1251).
pub(crate) type Assigned = BTreeMap<TopicId, BTreeMap<i32, i32>>;

/// What a member that speaks the classic protocol said when it joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClassicSide {
    pub session_timeout_ms: i32,
    /// At least one.
    pub protocols: Protocols,
}

pub(crate) type ConsumerMember = Member<Consumer>;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Own {
    /// Topics subscribed to by name: sorted, none twice.
    pub names: Arc<Vec<Text>>,
    /// The empty expression is none, as clients that go back to names send it.
    pub regex: Option<Text>,
    pub assignor: Option<Text>,
    /// `Some`: it speaks the classic protocol.
    pub classic: Option<Arc<ClassicSide>>,
}

impl Member<Consumer> {
    /// The expression that it subscribes by, if it does.
    pub fn pattern(&self) -> Option<&Text> {
        self.own.regex.as_ref().filter(|regex| !regex.is_empty())
    }

    /// What it said of itself, as a request says it.
    pub fn said_bytes(&self) -> usize {
        self.own_bytes() + self.own.names.iter().map(|name| name.len() + 2).sum::<usize>()
    }

    /// Likewise, without the names that it subscribes to.
    pub fn own_bytes(&self) -> usize {
        let texts = [&self.instance, &self.rack, &self.own.regex, &self.own.assignor];
        let texts = texts.into_iter().flatten().map(|text| text.len()).sum::<usize>();
        let said = self.own.classic.iter().flat_map(|side| side.protocols.pairs());
        let said = said.map(|(name, said)| name.len() + said.len()).sum::<usize>();
        self.id.len() + self.client_id.len() + self.client_host.len() + texts + said
    }

    pub fn subscribes_by_name(&self, topic: &str) -> bool {
        self.own.names.binary_search_by(|name| name.as_str().cmp(topic)).is_ok()
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
