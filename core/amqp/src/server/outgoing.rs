//! Links that peers receive on: deliveries within credit and window, and what becomes of them.
//!
//! Always true: no two deliveries of a session without an outcome have the same tag. A tag is its delivery's id.
//!
//! # Source
//! AMQP 1.0 part 2, sections 2.6.7, 2.6.12, 2.6.14.

use super::state::{DeliveryKey, PeerLink, Sent, State};
use super::{Phase, Server, ServerEvent};
use crate::performative::{Disposition, Outcome, Performative, Transfer};
use bytes::Bytes;

/// A transfer without its payload: its fields and its tag.
const TRANSFER_OVERHEAD: usize = 128;

impl Server {
    /// Whether [`Self::send`] would take a message now.
    pub fn can_send(&self, id: PeerLink) -> bool {
        let is_free =
            self.sessions.by_channel.get(&id.channel).is_some_and(|session| session.pending.is_empty());
        let link = self.sessions.link(id);
        self.phase == Phase::Ready
            && is_free
            && link.is_some_and(|link| !link.receives() && link.state == State::Attached && link.credit > 0)
    }

    /// Sends a message, in as many frames as it takes. With `is_settled` no outcome follows. `None`: there is no
    /// credit, or frames before it still wait for the session's window.
    pub fn send(&mut self, link: PeerLink, message: Bytes, is_settled: bool) -> Option<DeliveryKey> {
        if !self.can_send(link) {
            return None;
        }
        let part_max = self.peer_frame_max - TRANSFER_OVERHEAD;
        let session = self.sessions.by_channel.get_mut(&link.channel)?;
        let found = session.links.get_mut(&link.handle)?;
        found.credit -= 1;
        found.delivery_count = found.delivery_count.wrapping_add(1);
        let id = session.next_delivery_id;
        session.next_delivery_id = id.wrapping_add(1);
        if !is_settled {
            session.unsettled.push_back(Sent { id, link, is_retired: false });
        }
        let tag = Bytes::copy_from_slice(&id.to_be_bytes());
        let mut left = message;
        let mut is_first = true;
        while is_first || !left.is_empty() {
            let part = left.split_to(left.len().min(part_max));
            let transfer = Transfer {
                handle: link.handle,
                delivery_id: is_first.then_some(id),
                delivery_tag: is_first.then(|| tag.clone()),
                message_format: is_first.then_some(0),
                settled: Some(is_settled),
                more: !left.is_empty(),
                state: None,
                aborted: false,
            };
            session.pending.push_back((transfer, part));
            is_first = false;
        }
        self.send_pending(link.channel);
        Some(DeliveryKey { channel: link.channel, id })
    }

    pub(super) fn send_pending(&mut self, channel: u16) {
        loop {
            let Some(session) = self.sessions.by_channel.get_mut(&channel) else { return };
            if session.remote_window == 0 {
                return;
            }
            let Some((transfer, part)) = session.pending.pop_front() else { return };
            session.remote_window -= 1;
            session.next_outgoing_id = session.next_outgoing_id.wrapping_add(1);
            self.write(channel, &Performative::Transfer(transfer), &part);
        }
    }

    /// Outcomes of what was sent. What a peer says of its own deliveries needs no answer.
    pub(super) fn take_disposition(&mut self, channel: u16, told: Disposition) {
        let Some(session) = self.sessions.by_channel.get_mut(&channel) else { return };
        let span = told.last.unwrap_or(told.first).wrapping_sub(told.first);
        let is_over = match &told.state {
            None | Some(Outcome::Received) => told.settled,
            Some(Outcome::Transactional { outcome, .. }) => told.settled || outcome.is_some(),
            Some(_) => true,
        };
        if !told.is_receiver || span > u32::MAX / 2 || !is_over {
            return;
        }
        let (outcome, is_settled) = (told.state.unwrap_or(Outcome::Released), told.settled);
        let is_named = |id: u32| id.wrapping_sub(told.first) <= span;
        let events = &mut self.events;
        let mut report = |id: u32, link: PeerLink| {
            let id = DeliveryKey { channel, id };
            events.push_back(ServerEvent::Outcome { link, id, outcome: outcome.clone(), is_settled });
        };
        if !is_settled && matches!(outcome, Outcome::Transactional { .. }) {
            // The peer may still say something else. It is heard once: a peer cannot make the queue grow.
            for sent in session.unsettled.iter_mut().filter(|sent| is_named(sent.id) && !sent.is_retired) {
                sent.is_retired = true;
                report(sent.id, sent.link);
            }
            return;
        }
        let mut left = u64::from(span) + 1;
        // Most peers settle in the order of the deliveries.
        while left > 0
            && let Some(sent) = session.unsettled.pop_front_if(|sent| is_named(sent.id))
        {
            report(sent.id, sent.link);
            left -= 1;
        }
        if left > 0 {
            session.unsettled.retain(|sent| {
                if is_named(sent.id) {
                    report(sent.id, sent.link);
                }
                !is_named(sent.id)
            });
        }
    }

    /// Settles a delivery whose outcome the peer has said without settling it.
    pub fn conclude(&mut self, id: DeliveryKey, outcome: Outcome) {
        if let Some(session) = self.sessions.by_channel.get_mut(&id.channel) {
            session.unsettled.retain(|sent| sent.id != id.id);
        }
        self.dispose(false, id, outcome);
    }

    /// The transaction in which the peer gave a delivery an outcome, without settling it, is rolled back: the peer has
    /// the delivery, and may give it another outcome.
    pub fn reopen(&mut self, id: DeliveryKey) {
        let session = self.sessions.by_channel.get_mut(&id.channel);
        let mut unsettled = session.into_iter().flat_map(|session| &mut session.unsettled);
        if let Some(sent) = unsettled.find(|sent| sent.id == id.id) {
            sent.is_retired = false;
        }
    }

    /// Settles a delivery, as its receiver or as its sender, while its session lasts.
    pub(super) fn dispose(&mut self, is_receiver: bool, id: DeliveryKey, outcome: Outcome) {
        if self.sessions.by_channel.get(&id.channel).is_none_or(|session| session.is_ending) {
            return;
        }
        let told = Disposition { is_receiver, first: id.id, last: None, settled: true, state: Some(outcome) };
        self.write(id.channel, &Performative::Disposition(told), &[]);
    }
}
