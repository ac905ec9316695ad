//! One member of a classic group.

use barnabas_base::Text;
use bytes::Bytes;

use crate::framework::Ticket;
use crate::request::Protocols;

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

    /// Who waits for us is alive, whatever the clock says. Not so a member that is new: it may be gone, and would join
    /// again under another id.
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
