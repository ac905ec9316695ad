//! Links that receive: credit, deliveries in several frames, settlement.
//!
//! # Source
//! AMQP 1.0 part 2, sections 2.6.7, 2.6.12, 2.6.14.

use super::{Delivery, DeliveryId, Link, LinkId, State};
use crate::AmqpError;
use crate::client::{Client, Event, Phase};
use crate::performative::{Disposition, Flow, Outcome, Performative, Transfer};
use bytes::{Bytes, BytesMut};

/// A delivery whose last frame has not come.
#[derive(Debug)]
pub(super) struct Partial {
    id: DeliveryId,
    tag: Bytes,
    is_settled: bool,
    pub payload: BytesMut,
    size_bytes: u64,
}

impl Client {
    /// Raises a receiver's credit: so many deliveries may still come. What was granted before is not taken back, since
    /// deliveries may be under way for it.
    pub fn grant(&mut self, link: LinkId, credit: u32) {
        let Some(found) = self.links.of(link).filter(|link| link.is_receiver) else { return };
        found.credit = credit.max(found.credit);
        let link_credit = Some(found.credit);
        let (delivery_count, handle) = (Some(found.delivery_count), Some(found.handle));
        let flow = Flow { handle, delivery_count, link_credit, ..self.session_flow() };
        self.write(&Performative::Flow(flow), &[]);
    }

    /// Settles deliveries that came, from `first` to `last`.
    pub fn settle(&mut self, first: DeliveryId, last: DeliveryId, outcome: Outcome) {
        if self.phase != Phase::Ready {
            return;
        }
        let last = (last != first).then_some(last.0);
        let told =
            Disposition { is_receiver: true, first: first.0, last, settled: true, state: Some(outcome) };
        self.write(&Performative::Disposition(told), &[]);
    }

    /// The caller has dropped payloads of so many bytes: the peer may send as much again.
    pub fn release(&mut self, bytes: usize) {
        self.session.incoming.release(bytes);
        if self.phase == Phase::Ready {
            self.reopen_window();
        }
    }

    fn reopen_window(&mut self) {
        if self.session.incoming.reopen() {
            let flow = self.session_flow();
            self.write(&Performative::Flow(flow), &[]);
        }
    }

    pub(super) fn take_transfer(&mut self, transfer: Transfer, payload: &Bytes) -> Result<(), AmqpError> {
        if !self.session.incoming.take() {
            return Err(AmqpError::Protocol("it sent more frames than the session's window".to_owned()));
        }
        let max = self.config.message_bytes_max;
        let link = self.links.remote(transfer.handle)?;
        if !link.is_receiver {
            return Err(AmqpError::Protocol("it sent a transfer on a link that it receives on".to_owned()));
        }
        let mut partial = match link.partial.take() {
            Some(partial) => partial,
            None => begin_delivery(link, &transfer)?,
        };
        partial.size_bytes += payload.len() as u64;
        let kept = payload.len().min(max.saturating_sub(partial.payload.len()));
        partial.payload.extend_from_slice(&payload[..kept]);
        partial.is_settled |= transfer.settled.unwrap_or(false);
        self.session.incoming.hold(kept);
        if transfer.aborted {
            self.session.incoming.release(partial.payload.len());
        } else if transfer.more {
            link.partial = Some(partial);
        } else if link.state == State::Attached {
            let delivery = Delivery {
                link: LinkId(link.handle),
                id: partial.id,
                tag: partial.tag,
                is_settled: partial.is_settled,
                payload: partial.payload.freeze(),
                size_bytes: partial.size_bytes,
            };
            self.events.push_back(Event::Message(delivery));
        } else {
            // While we detach, what still comes stays unsettled: the peer delivers it again.
            self.session.incoming.release(partial.payload.len());
        }
        self.reopen_window();
        Ok(())
    }
}

/// The first frame of a delivery: it uses a credit and has the delivery's id.
fn begin_delivery(link: &mut Link, transfer: &Transfer) -> Result<Partial, AmqpError> {
    let id = transfer.delivery_id;
    let id = id.ok_or_else(|| AmqpError::Protocol("a delivery begins without an id".to_owned()))?;
    link.credit = match (link.credit.checked_sub(1), link.state) {
        (Some(left), _) => left,
        // Credit that was taken back may have crossed with deliveries.
        (None, State::Detaching) => 0,
        (None, _) => {
            return Err(AmqpError::Protocol("it sent more deliveries than it had credit for".to_owned()));
        }
    };
    link.delivery_count = link.delivery_count.wrapping_add(1);
    let tag = transfer.delivery_tag.clone().unwrap_or_default();
    Ok(Partial { id: DeliveryId(id), tag, is_settled: false, payload: BytesMut::new(), size_bytes: 0 })
}
