//! Links that peers send on: credit, deliveries in several frames, settlement.
//!
//! # Source
//! AMQP 1.0 part 2, sections 2.6.7, 2.6.12, 2.6.14.

use super::state::{DeliveryKey, Link, Partial, PeerLink, State};
use super::{Server, ServerEvent};
use crate::performative::{Flow, Outcome, Performative, Transfer};
use crate::{AmqpError, Condition};
use bytes::{Bytes, BytesMut};

/// A message that came whole. The caller that drops its payload calls [`Server::release`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrived {
    pub link: PeerLink,
    pub id: DeliveryKey,
    /// Its sender does not wait for an outcome.
    pub is_settled: bool,
    /// The transaction that it belongs to.
    pub txn_id: Option<Bytes>,
    pub payload: Bytes,
}

impl Server {
    /// Raises the credit of a link that the peer sends on: so many deliveries may still come.
    pub fn grant(&mut self, id: PeerLink, credit: u32) {
        let Some(session) = self.sessions.by_channel.get_mut(&id.channel) else { return };
        let ours = session.flow();
        let Some(link) = session.links.get_mut(&id.handle).filter(|link| link.id == id) else { return };
        if !link.receives() || link.state != State::Attached || credit <= link.credit {
            return;
        }
        link.credit = credit;
        let (delivery_count, handle) = (Some(link.delivery_count), Some(id.handle));
        let flow = Flow { handle, delivery_count, link_credit: Some(credit), ..ours };
        self.write(id.channel, &Performative::Flow(flow), &[]);
    }

    /// Settles a delivery that came.
    pub fn settle(&mut self, id: DeliveryKey, outcome: Outcome) {
        self.dispose(true, id, outcome);
    }

    /// The caller has dropped payloads of so many bytes.
    pub fn release(&mut self, bytes: usize) {
        self.held_bytes = self.held_bytes.saturating_sub(bytes);
    }

    pub(super) fn take_transfer(
        &mut self,
        channel: u16,
        transfer: Transfer,
        payload: &Bytes,
    ) -> Result<(), AmqpError> {
        let message_bytes_max = self.config.message_bytes_max;
        let Some(session) = self.sessions.by_channel.get_mut(&channel) else { return Ok(()) };
        if !session.take_frame() {
            return Err(AmqpError::Protocol("it sent more frames than the session's window".to_owned()));
        }
        if session.reopen_window() {
            let flow = session.flow();
            self.write(channel, &Performative::Flow(flow), &[]);
        }
        let session = self.sessions.by_channel.get_mut(&channel);
        let link = session.and_then(|session| session.links.get_mut(&transfer.handle));
        let Some(link) = link else {
            let words = format!("it sent a transfer on handle {}, which has no link", transfer.handle);
            return Err(AmqpError::Protocol(words));
        };
        if !link.receives() {
            return Err(AmqpError::Protocol("it sent a transfer on a link that it receives on".to_owned()));
        }
        if link.state == State::Detaching {
            return Ok(());
        }
        let mut partial = match link.partial.take() {
            Some(partial) => partial,
            None => begin_delivery(link, &transfer)?,
        };
        self.held_bytes += payload.len();
        partial.payload.extend_from_slice(payload);
        partial.is_settled |= transfer.settled.unwrap_or(false);
        if let Some(Outcome::Transactional { txn_id, .. }) = transfer.state {
            partial.txn_id = Some(txn_id);
        }
        let size = partial.payload.len();
        if transfer.aborted {
            self.held_bytes = self.held_bytes.saturating_sub(size);
            return Ok(());
        }
        let id = link.id;
        if size > message_bytes_max {
            link.partial = Some(partial);
            let words = format!("a message has {message_bytes_max} bytes at most");
            self.refuse(id, Condition::new("amqp:link:message-size-exceeded", words));
        } else if transfer.more {
            link.partial = Some(partial);
        } else {
            self.events.push_back(ServerEvent::Message(Arrived {
                link: id,
                id: DeliveryKey { channel, id: partial.id },
                is_settled: partial.is_settled,
                txn_id: partial.txn_id,
                payload: partial.payload.freeze(),
            }));
        }
        Ok(())
    }
}

/// The first frame of a delivery: it uses a credit and has the delivery's id.
fn begin_delivery(link: &mut Link, transfer: &Transfer) -> Result<Partial, AmqpError> {
    let id = transfer.delivery_id;
    let id = id.ok_or_else(|| AmqpError::Protocol("a delivery begins without an id".to_owned()))?;
    link.credit = link
        .credit
        .checked_sub(1)
        .ok_or_else(|| AmqpError::Protocol("it sent more deliveries than it had credit for".to_owned()))?;
    link.delivery_count = link.delivery_count.wrapping_add(1);
    Ok(Partial { id, is_settled: false, txn_id: None, payload: BytesMut::new() })
}
