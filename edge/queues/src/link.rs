//! What goes between a connection and the tasks of its links, and how much of it at most.
//!
//! Before and after: connection.rs, open.rs.

use barnabas_amqp::{Arrived, Condition, DeliveryKey, Outcome, PeerLink};
use barnabas_base::{Offset, PartitionIndex};
use barnabas_client::{ClientError, ClusterConfig};
use barnabas_queue_access::{Origin, Producers, Puts, Slots};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};

/// The largest message. A topic's `max.message.bytes` may be less: then the message is rejected.
pub const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Payloads of a connection that wait to be sent.
pub const OUTGOING_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Deliveries that a peer may send ahead of their outcomes, on each link.
pub const CREDIT: u32 = 256;
/// Deliveries without an outcome, on each link that a peer receives on: as many as Kafka locks in a partition.
pub const UNSETTLED_MAX: usize = 2000;
/// Whether a link that waits for room is still there.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A record that was delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub partition: PartitionIndex,
    pub offset: Offset,
}

/// How many deliveries a peer has asked for on a link since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Demand {
    pub limit: u64,
    /// What cannot be delivered now is not wanted.
    pub drain: bool,
    /// The peer may ask for the same again.
    pub turn: u64,
}

/// A message on its way to the peer.
#[derive(Debug)]
pub struct Deliver {
    pub payload: Bytes,
    pub place: Place,
    pub is_settled: bool,
    /// Of the bytes that go out.
    pub _permit: OwnedSemaphorePermit,
}

/// What a link's task learns.
#[derive(Debug)]
pub enum ToLink {
    Arrived(Arrived),
    Outcome {
        id: DeliveryKey,
        place: Place,
        outcome: Outcome,
        is_settled: bool,
    },
    /// A transaction ends: what becomes of these records, and the group is to hear of it now.
    Settle {
        places: Vec<(Place, Outcome)>,
        answer: oneshot::Sender<Settled>,
    },
    /// To a coordinator's task.
    Discharge(Box<Discharge>),
}

/// Whether a share group took what a transaction's end says. The worst is the greatest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Settled {
    Taken,
    /// Nothing of a partition whose records were refused.
    Refused,
    Unknown,
}

/// A transaction that its controller ends.
#[derive(Debug)]
pub struct Discharge {
    /// Of the message that asks for it, where its sender waits for an outcome; and its bytes.
    pub id: Option<DeliveryKey>,
    pub bytes: usize,
    pub commits: bool,
    /// What the controller learns where it wanted a commit and there is none.
    pub refusal: Option<Condition>,
    pub puts: Puts,
    pub put_bytes: usize,
    pub parts: Vec<LinkPart>,
}

/// What was retired of one link's deliveries.
#[derive(Debug)]
pub struct LinkPart {
    pub to: mpsc::Sender<ToLink>,
    /// With the word whether the receiver has settled it.
    pub retired: Vec<(DeliveryKey, Place, Outcome, bool)>,
}

impl LinkPart {
    pub fn new(to: mpsc::Sender<ToLink>) -> Self {
        Self { to, retired: Vec::new() }
    }

    pub fn partitions(&self) -> usize {
        let partitions: BTreeSet<_> = self.retired.iter().map(|one| one.1.partition).collect();
        partitions.len()
    }
}

/// A transaction that has ended.
#[derive(Debug)]
pub struct Ended {
    pub id: Option<DeliveryKey>,
    pub bytes: usize,
    pub put_bytes: usize,
    pub outcome: Outcome,
    /// What became of deliveries that were not settled. Without an outcome their receivers still have them.
    pub retired: Vec<(DeliveryKey, Option<Outcome>)>,
}

/// What a connection learns of its tasks.
#[derive(Debug)]
pub enum FromLink {
    Login(Result<Box<ClusterConfig>, u8>),
    /// The link can be; with the address of the node that was made for it.
    Ready(PeerLink, Option<String>),
    /// It cannot, or not any more.
    Ended(PeerLink, Condition),
    /// A delivery that came is done with. Without an outcome its sender does not wait for one.
    Settled {
        link: PeerLink,
        id: DeliveryKey,
        outcome: Option<Outcome>,
        bytes: usize,
    },
    Deliver(PeerLink, Deliver),
    /// There is nothing more to deliver now.
    Drained(PeerLink),
    /// An outcome that the peer waits to see settled.
    Concluded(DeliveryKey, Outcome),
    Discharged(PeerLink, Box<Ended>),
}

/// What a link's task has.
#[derive(Debug)]
pub struct Opening {
    pub link: PeerLink,
    pub kafka: ClusterConfig,
    pub producers: Producers,
    pub origin: Origin,
    /// Transactional ids.
    pub slots: Slots,
    pub reports: mpsc::Sender<FromLink>,
    pub from_peer: mpsc::Receiver<ToLink>,
    pub demanded: watch::Receiver<Demand>,
    /// Bytes that may wait to be sent, of all links of the connection.
    pub outgoing: Arc<Semaphore>,
    pub sends_settled: bool,
}

/// How a link's task ends: `Ok` where the peer ended the link.
pub type Served = Result<(), Rc<ClientError>>;

impl Opening {
    /// Room for a payload on its way out. `None`: the link is gone.
    pub async fn room(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let wanted = bytes.clamp(1, OUTGOING_BYTES_MAX) as u32;
        loop {
            let acquire = self.outgoing.clone().acquire_many_owned(wanted);
            match tokio::time::timeout(LOOK_EVERY, acquire).await {
                Ok(permit) => return permit.ok(),
                Err(_) if self.from_peer.is_closed() => return None,
                Err(_) => {}
            }
        }
    }

    /// Whether the peer or the connection has ended the link. What it said before still waits.
    pub fn is_gone(&self) -> bool {
        self.demanded.has_changed().is_err()
    }

    /// Tells the connection. `false`: it is gone.
    pub async fn report(&self, report: FromLink) -> bool {
        self.reports.send(report).await.is_ok()
    }
}
