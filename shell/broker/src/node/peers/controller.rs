//! Where requests for the controller go, wherever it is: the handle that every broker holds, and what it sends to the
//! quorum's thread.
//!
//! | file | answers |
//! |---|---|
//! | `controller/handle.rs` | who leads the metadata quorum; how is it asked |
//! | `controller/handle/forward.rs` | how is a controller asked that is another node |
//! | `controller/figures.rs` | how does the quorum stand, for the metrics |
//!
//! Neighbours: quorum_worker.rs, which receives.

mod figures;
mod handle;

pub use figures::Figures;
pub use handle::forward::log_unheard;
pub use handle::{ActiveController, ControllerHandle, NotTaken, Requests};

use barnabas_base::{BrokerEpoch, BrokerId};
use barnabas_quorum::SnapshotId;
use barnabas_quorum::controller::Asked;
use barnabas_quorum::raft::message::{Request as PeerRequest, Response as PeerResponse};
use barnabas_wire::{RequestBody, ResponseBody};
use tokio::sync::oneshot;

/// What a request to the controller comes to.
pub enum Reply {
    Answer(ResponseBody),
    /// This node is not the active controller: here is the request again.
    Back(Box<RequestBody>),
    /// It stopped leading with this under way: what was asked may come about or not.
    LeadershipLost,
}

/// What the thread is asked to do.
pub enum Message {
    Request {
        body: Box<RequestBody>,
        asked: Asked,
        reply: Option<oneshot::Sender<Reply>>,
    },
    /// Another member asks.
    PeerAsked {
        request: Box<PeerRequest>,
        reply: oneshot::Sender<PeerResponse>,
    },
    /// What came of a request to another member.
    PeerAnswered {
        from: BrokerId,
        number: u64,
        response: Option<Box<PeerResponse>>,
    },
    /// A connect to a member's listener was refused after its connection closed.
    PeerGone(BrokerId),
    /// A broker's connection closed, and a connect to its listener was refused.
    BrokerGone {
        id: BrokerId,
        epoch: BrokerEpoch,
    },
    SnapshotWritten {
        id: SnapshotId,
        size: Option<u64>,
    },
    /// This node is about to stop: another one had better lead.
    Resign,
    Stop(oneshot::Sender<()>),
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Request { body, .. } => write!(f, "Request({})", body.key()),
            Self::PeerAsked { .. } => f.write_str("PeerAsked"),
            Self::PeerAnswered { from, number, .. } => write!(f, "PeerAnswered({from}, {number})"),
            Self::PeerGone(peer) => write!(f, "PeerGone({peer})"),
            Self::BrokerGone { id, epoch } => write!(f, "BrokerGone({id}, {epoch})"),
            Self::SnapshotWritten { id, .. } => write!(f, "SnapshotWritten({id})"),
            Self::Resign => f.write_str("Resign"),
            Self::Stop(_) => f.write_str("Stop"),
        }
    }
}
