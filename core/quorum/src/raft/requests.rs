//! Kafka's messages ↔ what members say to each other. One file per API, with the same four functions:
//!
//! - `plan`: a request that came in → a [`message::Request`](super::message::Request) for [`super::Raft::request`], or
//!   the answer to one that is not for this quorum
//! - `respond`: what [`super::Effect::Answer`] says → the answer, in the words of the version
//! - `ask`: a request of [`super::Effect::Send`] → Kafka's; `None` where the version cannot carry it: the shell then
//!   hands in `Refused(UNSUPPORTED_VERSION)`
//! - `read`: an answer that came in → a [`message::Response`](super::message::Response)
//!
//! Pure. The caller's authorization (CLUSTER_ACTION) is checked before.

pub mod api_versions;
pub mod k01_fetch;
pub mod k52_vote;
pub mod k53_begin_quorum_epoch;
pub mod k54_end_quorum_epoch;
pub mod k55_describe_quorum;
pub mod k59_fetch_snapshot;
pub mod k80_add_raft_voter;
pub mod k81_remove_raft_voter;
pub mod k82_update_raft_voter;

use barnabas_base::{BrokerId, ErrorCode, LeaderEpoch, Text, name};
use barnabas_wire::Str;
use std::sync::Arc;

use super::message::{Head, Response};
use crate::voters::VoterEndpoint;

/// What requests and answers are read against.
#[derive(Debug, Clone)]
pub struct Here {
    pub cluster_id: Text,
    /// The listener that members use among themselves: answers name hosts and ports without one. Of a request that came
    /// in: the listener that it came in by, see [`Here::at`].
    pub listener: Text,
}

impl Here {
    /// What a request is read and answered against that came in by `listener`: its sender can reach that listener, and
    /// may know no other. They differ while a cluster moves from one controllers' listener to another.
    ///
    /// # Source
    /// Kafka `KafkaRaftClient`, `RaftRequest.Inbound.listenerName`.
    #[must_use]
    pub fn at(self: Arc<Self>, listener: &str) -> Arc<Self> {
        if *self.listener == *listener {
            return self;
        }
        Arc::new(Self { cluster_id: self.cluster_id.clone(), listener: Text::from(listener) })
    }

    /// A request may leave out its cluster; one that names another went astray.
    fn is_other_cluster(&self, asked: Option<&Str>) -> bool {
        asked.is_some_and(|asked| asked.as_str() != &*self.cluster_id)
    }

    fn endpoint(&self, host: &Str, port: u16) -> VoterEndpoint {
        VoterEndpoint { listener: self.listener.clone(), host: host.text(), port }
    }
}

/// The only topic and partition that there are.
const TOPIC: &str = name::CLUSTER_METADATA;

fn topic() -> Str {
    Str::from_static(TOPIC)
}

/// −1 where there is none.
fn id_or_none(id: Option<BrokerId>) -> i32 {
    id.unwrap_or(BrokerId::NONE).get()
}

fn some_id(id: i32) -> Option<BrokerId> {
    (id >= 0).then_some(BrokerId(id))
}

/// Where the leader of an answer is reached on the listener among members: id, host, port.
fn leader_address(head: &Head, here: &Here) -> Option<(i32, Str, u16)> {
    let leader = head.leader?;
    let endpoint = head.endpoints.iter().find(|endpoint| endpoint.listener == here.listener)?;
    Some((leader.get(), Str::from(&endpoint.host), endpoint.port))
}

/// An answer that says nothing of a partition: malformed, and of no use.
fn nothing() -> Response {
    Response::Refused(ErrorCode::InvalidRequest)
}

/// The parts of an answer's head as they stand in Kafka's messages.
fn head_of(
    error: i16,
    leader: i32,
    epoch: i32,
    addresses: impl Iterator<Item = (i32, VoterEndpoint)>,
) -> Head {
    let endpoints = addresses.filter(|&(id, _)| id == leader).map(|(_, endpoint)| endpoint).collect();
    Head { error: ErrorCode::from_code(error), leader: some_id(leader), epoch: LeaderEpoch(epoch), endpoints }
}

#[cfg(test)]
mod tests;
