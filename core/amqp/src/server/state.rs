//! What is known of a connection's sessions and links: data, and what needs no frame to be written.

use crate::performative::{Attach, Begin, Flow, Transfer};
use bytes::{Bytes, BytesMut};
use std::collections::{BTreeMap, VecDeque};

/// A link of the connection. One that is attached later never equals it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PeerLink {
    pub(super) channel: u16,
    pub(super) handle: u32,
    pub(super) serial: u64,
}

/// A delivery, in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeliveryKey {
    pub(super) channel: u16,
    pub(super) id: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// The caller has the peer's attach.
    Deciding,
    Attached,
    /// A detach of ours is not answered.
    Detaching,
}

#[derive(Debug)]
pub(super) struct Link {
    pub id: PeerLink,
    pub attach: Box<Attach>,
    pub state: State,
    /// Deliveries that may still be sent, by the peer or here.
    pub credit: u32,
    pub delivery_count: u32,
    pub wants_drain: bool,
    pub partial: Option<Partial>,
}

impl Link {
    /// Whether the peer sends on it.
    pub fn receives(&self) -> bool {
        !self.attach.is_receiver
    }

    pub fn partial_bytes(&self) -> usize {
        self.partial.as_ref().map_or(0, |partial| partial.payload.len())
    }
}

/// A delivery whose last frame has not come.
#[derive(Debug)]
pub(super) struct Partial {
    pub id: u32,
    pub is_settled: bool,
    pub txn_id: Option<Bytes>,
    pub payload: BytesMut,
}

/// A delivery that was sent.
#[derive(Debug)]
pub(super) struct Sent {
    pub id: u32,
    pub link: PeerLink,
    /// It has an outcome in a transaction, and the caller knows.
    pub is_retired: bool,
}

/// Frames that a peer may send before it gets another window. Its bytes are bounded by `held_bytes_max`.
const INCOMING_WINDOW: u32 = 2048;
/// As the peer hears of it: its own window bounds what is sent.
pub(super) const OUTGOING_WINDOW: u32 = 2048;
/// The highest handle of a session.
pub(super) const HANDLE_MAX: u32 = 255;

#[derive(Debug)]
pub(super) struct Session {
    pub next_incoming_id: u32,
    pub incoming_left: u32,
    pub next_outgoing_id: u32,
    pub remote_window: u32,
    pub next_delivery_id: u32,
    /// Deliveries that were sent and have no outcome, or one of a transaction that the peer has not settled.
    pub unsettled: VecDeque<Sent>,
    /// Frames that wait for the peer's window.
    pub pending: VecDeque<(Transfer, Bytes)>,
    pub links: BTreeMap<u32, Link>,
    /// After an `end` of ours, until the peer's.
    pub is_ending: bool,
}

impl Session {
    pub fn new(begin: &Begin) -> Self {
        Self {
            next_incoming_id: begin.next_outgoing_id,
            incoming_left: INCOMING_WINDOW,
            next_outgoing_id: 0,
            remote_window: begin.incoming_window,
            next_delivery_id: 0,
            unsettled: VecDeque::new(),
            pending: VecDeque::new(),
            links: BTreeMap::new(),
            is_ending: false,
        }
    }

    /// The session's part of a flow.
    pub fn flow(&self) -> Flow {
        Flow {
            next_incoming_id: Some(self.next_incoming_id),
            incoming_window: self.incoming_left,
            next_outgoing_id: self.next_outgoing_id,
            outgoing_window: OUTGOING_WINDOW,
            ..Flow::default()
        }
    }

    /// A frame came. `false`: the peer had no window for it.
    pub fn take_frame(&mut self) -> bool {
        let Some(left) = self.incoming_left.checked_sub(1) else { return false };
        self.incoming_left = left;
        self.next_incoming_id = self.next_incoming_id.wrapping_add(1);
        true
    }

    /// Opens the window again once half of it is used. `true`: the peer is to hear of it.
    pub fn reopen_window(&mut self) -> bool {
        let is_due = self.incoming_left <= INCOMING_WINDOW / 2;
        if is_due {
            self.incoming_left = INCOMING_WINDOW;
        }
        is_due
    }
}

/// All sessions of a connection.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    pub by_channel: BTreeMap<u16, Session>,
    pub next_link: u64,
}

impl Sessions {
    pub fn link(&self, id: PeerLink) -> Option<&Link> {
        let link = self.by_channel.get(&id.channel)?.links.get(&id.handle)?;
        (link.id == id).then_some(link)
    }

    pub fn link_mut(&mut self, id: PeerLink) -> Option<&mut Link> {
        let link = self.by_channel.get_mut(&id.channel)?.links.get_mut(&id.handle)?;
        (link.id == id).then_some(link)
    }

    pub fn links_count(&self) -> usize {
        self.by_channel.values().map(|session| session.links.len()).sum()
    }

    /// Of deliveries whose last frame has not come.
    pub fn partial_bytes(&self) -> usize {
        let links = self.by_channel.values().flat_map(|session| session.links.values());
        links.map(Link::partial_bytes).sum()
    }
}
