//! A classic group's state, and the changes to it that keep it in one piece. Timers, answers and records are dealt with
//! by the neighbours in this folder.
//!
//! Always true (checked by `shard/invariants.rs`):
//! 1. Empty: no members. CompletingRebalance and Stable: members, a leader among them, a protocol that all of them
//!    speak
//! 2. `awaiting_join` and `supported` are what counting would give
//! 3. an instance id stands for exactly one member, and that member has it
//! 4. no id is a member's and pending at the same time

use std::collections::{BTreeMap, BTreeSet};

use barnabas_base::{DurationMs, ErrorCode, Map, Text, TimestampMs};

use super::member::Member;
use super::subscription;
use crate::framework::{BatchId, weight};
use crate::request::Protocols;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Empty,
    PreparingRebalance,
    CompletingRebalance,
    Stable,
}

impl State {
    /// Kafka's word for it, as ListGroups and DescribeGroups show it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::PreparingRebalance => "PreparingRebalance",
            Self::CompletingRebalance => "CompletingRebalance",
            Self::Stable => "Stable",
        }
    }
}

/// The time that an empty group still gives to members to come (KIP-134).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InitialDelay {
    pub this_round: DurationMs,
    pub remaining: DurationMs,
    /// A member came in this round, so there may be another round.
    pub member_added: bool,
}

#[derive(Debug)]
pub(crate) struct ClassicGroup {
    pub id: Text,
    pub state: State,
    /// When the state was entered. `None`: not known, in groups loaded from records of before Kafka 2.1.
    pub state_since: Option<TimestampMs>,
    /// What kind of members this group has: `consumer`, `connect`… `None`: it never had any.
    pub protocol_type: Option<Text>,
    /// The protocol that this generation speaks.
    pub protocol: Option<Text>,
    pub generation: i32,
    pub leader: Option<Text>,
    pub members: BTreeMap<Text, Member>,
    /// Member ids by instance id.
    pub static_members: Map<Text, Text>,
    /// Those who were given an id and are to come back with it (KIP-394).
    pub pending_members: BTreeSet<Text>,
    /// Members of this generation that have not synced yet.
    pub pending_sync: BTreeSet<Text>,
    /// How many members wait for the rebalance.
    pub awaiting_join: usize,
    /// How many members speak each protocol.
    pub supported: Map<Text, usize>,
    /// `Some` during an empty group's first rebalance.
    pub initial_delay: Option<InitialDelay>,
    /// The topics that consumers of this generation subscribe to; `None`: not consumers, or not to be made out.
    pub subscribed: Option<BTreeSet<Text>>,
    /// The batch in which this generation's assignment is on its way.
    pub storing: Option<BatchId>,
}

impl ClassicGroup {
    pub fn new(id: Text, since: TimestampMs) -> Self {
        Self {
            id,
            state: State::Empty,
            state_since: Some(since),
            protocol_type: None,
            protocol: None,
            generation: 0,
            leader: None,
            members: BTreeMap::new(),
            static_members: Map::default(),
            pending_members: BTreeSet::new(),
            pending_sync: BTreeSet::new(),
            awaiting_join: 0,
            supported: Map::default(),
            initial_delay: None,
            subscribed: None,
            storing: None,
        }
    }

    /// What its members take in memory beside their structures.
    pub fn bytes(&self) -> usize {
        let members = self.members.iter().map(|(id, member)| {
            let said = member.protocols.pairs().map(|(name, said)| weight::texts([name]) + said.len());
            let who = id.len() + member.client_id.len() + member.client_host.len();
            let instance = 2 * weight::texts(&member.instance);
            who + instance + member.assignment.len() + said.sum::<usize>()
        });
        members.sum::<usize>()
            + weight::texts(&self.pending_members)
            + weight::texts(self.subscribed.iter().flatten())
    }

    pub fn is_consumer(&self) -> bool {
        self.protocol_type.as_ref().is_some_and(|kind| kind == "consumer")
    }

    pub fn is_leader(&self, member: &str) -> bool {
        self.leader.as_ref().is_some_and(|leader| leader == member)
    }

    pub fn enter(&mut self, state: State, now: TimestampMs) {
        self.state = state;
        self.state_since = Some(now);
    }

    /// Adds a member that is not there yet.
    pub fn add(&mut self, id: Text, member: Member, protocol_type: &str) {
        if self.members.is_empty() {
            self.protocol_type = Some(Text::from(protocol_type));
        }
        if let Some(instance) = &member.instance {
            let previous = self.static_members.insert(instance.clone(), id.clone());
            assert!(previous.is_none(), "instance {instance} of group {} added twice", self.id);
        }
        if self.leader.is_none() {
            self.leader = Some(id.clone());
        }
        self.count(&member.protocols.clone(), 1);
        self.awaiting_join += usize::from(member.join.is_some());
        self.pending_members.remove(&id);
        let previous = self.members.insert(id, member);
        assert!(previous.is_none(), "a member of group {} added twice", self.id);
    }

    /// Removes a member, pending or not. The caller answers the requests that the member waits for.
    pub fn remove(&mut self, id: &str) -> Option<Member> {
        self.pending_members.remove(id);
        self.pending_sync.remove(id);
        let member = self.members.remove(id)?;
        self.count(&member.protocols, -1);
        self.awaiting_join -= usize::from(member.join.is_some());
        if let Some(instance) = &member.instance {
            self.static_members.remove(instance);
        }
        if self.is_leader(id) {
            self.leader = self.members.keys().next().cloned();
        }
        Some(member)
    }

    /// Gives a static member another id. The caller has answered what the old one waited for.
    pub fn rename_static(&mut self, instance: &str, old: &str, new: &Text) {
        let mut member =
            self.members.remove(old).expect("invariant: static_members names members that are there");
        self.awaiting_join -= usize::from(member.join.take().is_some());
        member.sync = None;
        self.members.insert(new.clone(), member);
        if self.is_leader(old) {
            self.leader = Some(new.clone());
        }
        if self.pending_sync.remove(old) {
            self.pending_sync.insert(new.clone());
        }
        if let Some(id) = self.static_members.get_mut(instance) {
            *id = new.clone();
        }
    }

    /// Replaces what a member said when it joined.
    pub fn update(&mut self, id: &str, protocols: Protocols, rebalance_timeout_ms: i32, session_ms: i32) {
        let Some(member) = self.members.get_mut(id) else { return };
        let old = std::mem::replace(&mut member.protocols, protocols.clone());
        member.rebalance_timeout_ms = rebalance_timeout_ms;
        member.session_timeout_ms = session_ms;
        self.count(&old, -1);
        self.count(&protocols, 1);
    }

    /// Whether a member with these protocols can be one of the group.
    ///
    /// # Source
    /// Kafka `ClassicGroup.supportsProtocols`.
    pub fn supports(&self, protocol_type: &str, protocols: &Protocols) -> bool {
        if self.state == State::Empty {
            return !protocol_type.is_empty() && !protocols.is_empty();
        }
        self.protocol_type.as_ref().is_some_and(|own| own == protocol_type)
            && protocols.names().any(|name| self.is_common(name))
    }

    /// The protocol that most members would choose among those that all of them speak. Between equals, the leader's
    /// taste decides.
    ///
    /// # Source
    /// Kafka `ClassicGroup.selectProtocol`, which leaves equals to a hash map's order.
    pub fn select_protocol(&self) -> Option<Text> {
        let mut votes: BTreeMap<&Text, usize> = BTreeMap::new();
        for member in self.members.values() {
            let choice = member.protocols.names().find(|name| self.is_common(name))?;
            *votes.entry(choice).or_default() += 1;
        }
        let most = votes.values().copied().max()?;
        let leader = self.leader.as_ref().and_then(|id| self.members.get(id))?;
        let by_leader = leader.protocols.names().find(|name| votes.get(name) == Some(&most));
        by_leader.or_else(|| votes.iter().find(|(_, count)| **count == most).map(|(name, _)| *name)).cloned()
    }

    fn is_common(&self, protocol: &Text) -> bool {
        self.supported.get(protocol).copied().unwrap_or(0) == self.members.len()
    }

    /// The longest time that a member asks for to join again.
    pub fn rebalance_timeout(&self) -> DurationMs {
        let longest = self.members.values().map(|member| member.rebalance_timeout_ms).max().unwrap_or(0);
        DurationMs(i64::from(longest.max(0)))
    }

    pub fn have_all_joined(&self) -> bool {
        self.members.len() == self.awaiting_join && self.pending_members.is_empty()
    }

    /// Whether a member may speak for itself under this id (and instance id).
    ///
    /// # Errors
    /// UNKNOWN_MEMBER_ID; FENCED_INSTANCE_ID if another process has taken the instance id over.
    pub fn check_member(&self, id: &str, instance: Option<&str>) -> Result<(), ErrorCode> {
        if let Some(instance) = instance {
            match self.static_members.get(instance) {
                None => return Err(ErrorCode::UnknownMemberId),
                Some(known) if known != id => return Err(ErrorCode::FencedInstanceId),
                Some(_) => {}
            }
        }
        if self.members.contains_key(id) { Ok(()) } else { Err(ErrorCode::UnknownMemberId) }
    }

    /// Whether a member subscribes to this topic, so that its offsets must not be deleted.
    pub fn is_subscribed(&self, topic: &str) -> bool {
        match &self.subscribed {
            Some(topics) => topics.contains(topic),
            None => self.is_consumer(),
        }
    }

    /// Recomputes the topics that the members subscribe to.
    pub fn find_subscribed(&mut self) {
        self.subscribed = self.is_consumer().then(|| self.topics()).flatten();
    }

    fn topics(&self) -> Option<BTreeSet<Text>> {
        if self.members.is_empty() {
            return Some(BTreeSet::new());
        }
        let protocol = self.protocol.as_ref()?;
        subscription::topics(self.members.values().map(|member| member.protocols.metadata(protocol)))
    }

    fn count(&mut self, protocols: &Protocols, by: isize) {
        for name in protocols.names() {
            let count = self.supported.entry(name.clone()).or_default();
            *count = count.saturating_add_signed(by);
            if *count == 0 {
                self.supported.remove(name);
            }
        }
    }
}
