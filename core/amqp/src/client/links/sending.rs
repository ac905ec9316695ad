//! Links that send: credit, the session's window, deliveries and what becomes of them.
//!
//! Always true: no two deliveries without an outcome have the same tag. A tag is its delivery's id, so a message that
//! is sent again is another delivery.
//!
//! # Source
//! AMQP 1.0 part 2, sections 2.6.5, 2.6.7, 2.6.12, 2.6.14.

use super::{DeliveryId, LinkId};
use crate::client::{Client, Event, Phase};
use crate::performative::{Disposition, Flow, Outcome, Performative, Transfer};
use bytes::Bytes;

/// A transfer without its payload: its fields and its tag.
const TRANSFER_OVERHEAD: usize = 128;

/// Why a message was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotSent {
    /// There is no credit, or frames before it still wait for the session's window ([`Client::can_send`]).
    NotNow,
    /// The peer takes no message of more bytes on this link.
    TooLarge { bytes_max: u64 },
}

impl Client {
    /// Whether [`Self::send`] would take a message now.
    pub fn can_send(&self, link: LinkId) -> bool {
        self.phase == Phase::Ready && self.links.pending.is_empty() && self.credit(link) > 0
    }

    /// Deliveries that were sent and have no outcome.
    pub fn unsettled(&self) -> usize {
        self.links.unsettled.len()
    }

    /// Sends a message, in as many frames as it takes.
    ///
    /// # Errors
    /// [`NotSent`]. Nothing has changed then.
    pub fn send(&mut self, link: LinkId, message: Bytes) -> Result<DeliveryId, NotSent> {
        self.send_in(link, message, None)
    }

    /// As [`Self::send`], in a transaction of the peer's coordinator ([`Client::attach_coordinator`]).
    ///
    /// # Errors
    /// As [`Self::send`].
    pub fn send_in(
        &mut self,
        link: LinkId,
        message: Bytes,
        txn_id: Option<&Bytes>,
    ) -> Result<DeliveryId, NotSent> {
        let found = self.links.links.iter().find(|found| found.handle == link.0);
        if let Some(bytes_max) = found.and_then(|found| found.message_bytes_max)
            && message.len() as u64 > bytes_max
        {
            return Err(NotSent::TooLarge { bytes_max });
        }
        if !self.can_send(link) {
            return Err(NotSent::NotNow);
        }
        let found = self.links.of(link).ok_or(NotSent::NotNow)?;
        found.credit -= 1;
        found.delivery_count = found.delivery_count.wrapping_add(1);
        let id = DeliveryId(self.links.next_delivery_id);
        self.links.next_delivery_id = id.0.wrapping_add(1);
        self.links.unsettled.push_back((id, link));
        let tag = Bytes::copy_from_slice(&id.0.to_be_bytes());
        let state = txn_id.map(|txn_id| Outcome::Transactional { txn_id: txn_id.clone(), outcome: None });
        let part_max = self.peer_frame_max - TRANSFER_OVERHEAD;
        let mut left = message;
        let mut is_first = true;
        while is_first || !left.is_empty() {
            let part = left.split_to(left.len().min(part_max));
            let transfer = Transfer {
                handle: link.0,
                delivery_id: is_first.then_some(id.0),
                delivery_tag: is_first.then(|| tag.clone()),
                message_format: is_first.then_some(0),
                settled: Some(false),
                more: !left.is_empty(),
                state: state.clone(),
                aborted: false,
            };
            self.links.pending.push_back((transfer, part));
            is_first = false;
        }
        self.send_pending();
        Ok(id)
    }

    pub(super) fn send_pending(&mut self) {
        while self.session.remote_window > 0
            && let Some((transfer, part)) = self.links.pending.pop_front()
        {
            self.session.remote_window -= 1;
            self.session.next_outgoing_id = self.session.next_outgoing_id.wrapping_add(1);
            self.write(&Performative::Transfer(transfer), &part);
        }
    }

    pub(super) fn take_credit(&mut self, id: LinkId, flow: &Flow) {
        let Some(link) = self.links.of(id) else { return };
        let end = flow.delivery_count.unwrap_or(0).wrapping_add(flow.link_credit.unwrap_or(0));
        let credit = end.wrapping_sub(link.delivery_count);
        let credit = if credit > u32::MAX / 2 { 0 } else { credit };
        let has_more = credit > link.credit;
        link.credit = credit;
        if flow.drain && credit > 0 {
            // Nothing waits here to be sent: the credit is used up, as the peer asks.
            link.delivery_count = link.delivery_count.wrapping_add(credit);
            link.credit = 0;
            let (delivery_count, handle) = (Some(link.delivery_count), Some(link.handle));
            let drained =
                Flow { handle, delivery_count, link_credit: Some(0), drain: true, ..self.session_flow() };
            self.write(&Performative::Flow(drained), &[]);
        } else if has_more && self.events.back() != Some(&Event::Credit(id)) {
            // One such event is enough: a peer cannot make the queue grow by flows.
            self.events.push_back(Event::Credit(id));
        }
    }

    /// Outcomes of what was sent. A peer that waits for our settlement gets it.
    pub(super) fn take_disposition(&mut self, told: Disposition) {
        if !told.is_receiver {
            return;
        }
        let span = told.last.unwrap_or(told.first).wrapping_sub(told.first);
        let is_over = told.settled || !matches!(told.state, None | Some(Outcome::Received));
        if span > u32::MAX / 2 || !is_over {
            return;
        }
        let outcome = told.state.unwrap_or(Outcome::Released);
        let is_named = |id: DeliveryId| id.0.wrapping_sub(told.first) <= span;
        let (events, unsettled) = (&mut self.events, &mut self.links.unsettled);
        let mut left = u64::from(span) + 1;
        // Most peers settle in the order of the deliveries.
        while left > 0
            && let Some((id, link)) = unsettled.pop_front_if(|entry| is_named(entry.0))
        {
            events.push_back(Event::Outcome(link, id, outcome.clone()));
            left -= 1;
        }
        if left > 0 {
            unsettled.retain(|(id, link)| {
                if is_named(*id) {
                    events.push_back(Event::Outcome(*link, *id, outcome.clone()));
                }
                !is_named(*id)
            });
        }
        if !told.settled {
            let settled = Disposition {
                is_receiver: false,
                first: told.first,
                last: told.last,
                settled: true,
                state: Some(outcome),
            };
            self.write(&Performative::Disposition(settled), &[]);
        }
    }
}
