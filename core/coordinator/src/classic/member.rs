//! One member of a classic group.

use barnabas_base::{Set, Text};
use barnabas_wire::messages::join_group_request::JoinGroupRequestProtocol;
use bytes::Bytes;

use crate::framework::Ticket;

/// The embedded protocols that a member can speak, best first, each with what it has to say in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Protocols(Vec<(Text, Bytes)>);

impl Protocols {
    /// Copies what the request says, so that no frame stays alive. A name that comes twice counts once, as first said.
    pub fn from_request(protocols: &[JoinGroupRequestProtocol]) -> Self {
        let mut seen = Set::default();
        let distinct = protocols.iter().filter(|protocol| seen.insert(protocol.name.as_str()));
        Self(distinct.map(|each| (each.name.text(), Bytes::copy_from_slice(&each.metadata))).collect())
    }

    pub fn one(name: Text, metadata: Bytes) -> Self {
        Self(vec![(name, metadata)])
    }

    pub fn of(pairs: impl Iterator<Item = (Text, Bytes)>) -> Self {
        Self(pairs.collect())
    }

    pub fn pairs(&self) -> impl Iterator<Item = (&Text, &Bytes)> {
        self.0.iter().map(|(name, metadata)| (name, metadata))
    }

    pub fn names(&self) -> impl Iterator<Item = &Text> {
        self.0.iter().map(|(name, _)| name)
    }

    pub fn metadata(&self, name: &str) -> Option<&Bytes> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, metadata)| metadata)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Member {
    /// `group.instance.id` of a static member.
    pub instance: Option<Text>,
    pub client_id: Text,
    pub client_host: Text,
    pub rebalance_timeout_ms: i32,
    pub session_timeout_ms: i32,
    pub protocols: Protocols,
    /// What the leader assigned to it in this generation.
    pub assignment: Bytes,
    /// Its JoinGroup, while it waits for the rebalance.
    pub join: Option<Ticket>,
    /// Its SyncGroup, while it waits for the leader's assignment to be on disk.
    pub sync: Option<Ticket>,
    /// It has not yet been through a rebalance, so it cannot send heartbeats, and its first join may time out.
    pub is_new: bool,
}

impl Member {
    pub fn is_static(&self) -> bool {
        self.instance.is_some()
    }

    /// Who waits for us is alive, whatever the clock says. Not so a member that is new: it may be gone, and would join again
    /// under another id.
    ///
    /// # Source
    /// Kafka `ClassicGroupMember.hasSatisfiedHeartbeat`.
    pub fn is_excused(&self) -> bool {
        !self.is_new && (self.join.is_some() || self.sync.is_some())
    }

    /// What it has to say in `protocol`.
    pub fn metadata(&self, protocol: Option<&Text>) -> Bytes {
        protocol.and_then(|name| self.protocols.metadata(name)).cloned().unwrap_or_default()
    }
}
