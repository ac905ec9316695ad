//! Links of the session: attaching, credit, transfers in several frames, settlement.
//!
//! # Source
//! AMQP 1.0 part 2, sections 2.5.6, 2.6.

use super::{Client, Event, Phase};
use crate::performative::{Attach, Detach, Disposition, Flow, Outcome, Performative, Terminus, Transfer};
use crate::{AmqpError, Condition, Value};
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// The highest handle: so many links a session has, less one.
pub(super) const HANDLE_MAX: u32 = 15;
/// A transfer without its payload: its fields and a tag of 32 bytes.
const TRANSFER_OVERHEAD: usize = 128;
/// Bytes of the longest delivery tag.
const TAG_MAX: usize = 32;
/// Selectors of JMS, as a filter's descriptor (Apache's registry of AMQP filters).
const SELECTOR: u64 = 0x0000_468C_0000_0004;

/// One of the session's links: its handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkId(u32);

/// A delivery of the session, in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeliveryId(pub u32);

/// Which of a source's messages are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    /// A selector in the language of JMS.
    Selector(String),
}

/// A link that receives.
#[derive(Debug, Clone)]
pub struct ReceiverConfig {
    pub name: String,
    pub address: String,
    /// `queue` for a queue: without it some peers take the address for a topic.
    pub capabilities: Vec<String>,
    pub filter: Option<Filter>,
}

/// A link that sends.
#[derive(Debug, Clone)]
pub struct SenderConfig {
    pub name: String,
    pub address: String,
    pub capabilities: Vec<String>,
}

/// A message that came whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub link: LinkId,
    pub id: DeliveryId,
    pub tag: Bytes,
    pub is_settled: bool,
    /// The message, or its first bytes where it is larger than the maximum.
    pub payload: Bytes,
    pub size_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Attaching,
    /// The peer attached without a terminus: its detach follows.
    Refused,
    Attached,
    Detaching,
}

#[derive(Debug)]
struct Partial {
    id: DeliveryId,
    tag: Bytes,
    is_settled: bool,
    payload: BytesMut,
    size_bytes: u64,
}

#[derive(Debug)]
struct Link {
    name: String,
    handle: u32,
    remote_handle: Option<u32>,
    is_receiver: bool,
    state: State,
    credit: u32,
    delivery_count: u32,
    partial: Option<Partial>,
}

/// The session's links, and what was sent on them and has no outcome.
#[derive(Debug, Default)]
pub(super) struct Links {
    links: Vec<Link>,
    next_delivery_id: u32,
    unsettled: VecDeque<(DeliveryId, LinkId)>,
    /// Frames that wait for the session's window.
    pending: VecDeque<(Transfer, Bytes)>,
}

impl Links {
    fn named(&mut self, name: &str) -> Option<&mut Link> {
        self.links.iter_mut().find(|link| link.name == name)
    }

    fn remote(&mut self, handle: u32) -> Result<&mut Link, AmqpError> {
        let found = self.links.iter_mut().find(|link| link.remote_handle == Some(handle));
        found.ok_or_else(|| AmqpError::Protocol(format!("no link has its handle {handle}")))
    }

    fn of(&mut self, id: LinkId) -> Option<&mut Link> {
        self.links.iter_mut().find(|link| link.handle == id.0)
    }

    fn free_handle(&self) -> Option<u32> {
        (0..=HANDLE_MAX).find(|handle| self.links.iter().all(|link| link.handle != *handle))
    }
}

impl Client {
    /// Attaches a link that receives. It has no credit until [`Self::grant`]. `None`: the session is not ready, or has
    /// all the links that it can have.
    pub fn attach_receiver(&mut self, config: &ReceiverConfig) -> Option<LinkId> {
        let filter = config.filter.as_ref().map(|Filter::Selector(text)| {
            ("jms-selector".to_owned(), Value::described(SELECTOR, Value::string(text)))
        });
        let source = Terminus {
            address: Some(config.address.clone()),
            filter: filter.into_iter().collect(),
            capabilities: config.capabilities.clone(),
            ..Terminus::default()
        };
        self.attach(&config.name, true, source, Terminus::default())
    }

    /// Attaches a link that sends. `None` as in [`Self::attach_receiver`].
    pub fn attach_sender(&mut self, config: &SenderConfig) -> Option<LinkId> {
        let target = Terminus {
            address: Some(config.address.clone()),
            capabilities: config.capabilities.clone(),
            ..Terminus::default()
        };
        self.attach(&config.name, false, Terminus::default(), target)
    }

    fn attach(
        &mut self,
        name: &str,
        is_receiver: bool,
        source: Terminus,
        target: Terminus,
    ) -> Option<LinkId> {
        let handle = self.links.free_handle().filter(|_| self.phase == Phase::Ready)?;
        self.links.links.push(Link {
            name: name.to_owned(),
            handle,
            remote_handle: None,
            is_receiver,
            state: State::Attaching,
            credit: 0,
            delivery_count: 0,
            partial: None,
        });
        let attach = Attach {
            name: name.to_owned(),
            handle,
            is_receiver,
            snd_settle_mode: 0,
            rcv_settle_mode: 0,
            source: Some(source),
            target: Some(target),
            initial_delivery_count: (!is_receiver).then_some(0),
            max_message_size: None,
        };
        self.write(&Performative::Attach(Box::new(attach)), &[]);
        Some(LinkId(handle))
    }

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

    /// The deliveries that a link may still send or receive.
    pub fn credit(&self, link: LinkId) -> u32 {
        self.links.links.iter().find(|found| found.handle == link.0).map_or(0, |found| found.credit)
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

    /// Whether [`Self::send`] would take a message now.
    pub fn can_send(&self, link: LinkId) -> bool {
        self.phase == Phase::Ready && self.links.pending.is_empty() && self.credit(link) > 0
    }

    /// Sends a message, in as many frames as it takes. `None`: there is no credit, or frames before it still wait for
    /// the session's window ([`Self::can_send`]).
    pub fn send(&mut self, link: LinkId, tag: Bytes, message: Bytes) -> Option<DeliveryId> {
        if !self.can_send(link) || tag.len() > TAG_MAX {
            return None;
        }
        let id = DeliveryId(self.links.next_delivery_id);
        self.links.next_delivery_id = id.0.wrapping_add(1);
        let found = self.links.of(link)?;
        found.credit -= 1;
        found.delivery_count = found.delivery_count.wrapping_add(1);
        self.links.unsettled.push_back((id, link));
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
                aborted: false,
            };
            self.links.pending.push_back((transfer, part));
            is_first = false;
        }
        self.send_pending();
        Some(id)
    }

    fn send_pending(&mut self) {
        while self.session.remote_window > 0
            && let Some((transfer, part)) = self.links.pending.pop_front()
        {
            self.session.remote_window -= 1;
            self.session.next_outgoing_id = self.session.next_outgoing_id.wrapping_add(1);
            self.write(&Performative::Transfer(transfer), &part);
        }
    }

    /// Ends a link. [`Event::Detached`] follows.
    pub fn detach(&mut self, link: LinkId) {
        let Some(found) = self.links.of(link) else { return };
        if matches!(found.state, State::Attaching | State::Attached) {
            found.state = State::Detaching;
            let detach = Detach { handle: link.0, closed: true, error: None };
            self.write(&Performative::Detach(detach), &[]);
        }
    }

    pub(super) fn take_in_session(&mut self, body: Performative, payload: Bytes) -> Result<(), AmqpError> {
        match body {
            Performative::Attach(attach) => self.take_attach(*attach),
            Performative::Flow(flow) => self.take_flow(flow),
            Performative::Transfer(transfer) => self.take_transfer(transfer, &payload),
            Performative::Disposition(told) => {
                self.take_disposition(told);
                Ok(())
            }
            Performative::Detach(detach) => self.take_detach(detach),
            other => Err(AmqpError::Protocol(format!("{} came out of turn", super::name_of(&other)))),
        }
    }

    fn take_attach(&mut self, attach: Attach) -> Result<(), AmqpError> {
        if attach.handle > HANDLE_MAX {
            return Err(AmqpError::Protocol(format!("its handle {} is above our maximum", attach.handle)));
        }
        let is_taken = self.links.remote(attach.handle).is_ok();
        let Some(link) = self.links.named(&attach.name) else {
            return Err(AmqpError::Protocol(format!("it attached a link '{}' of its own", attach.name)));
        };
        if is_taken || link.remote_handle.is_some() || attach.is_receiver == link.is_receiver {
            return Err(AmqpError::Protocol(format!(
                "it attached '{}' in a way that cannot be",
                attach.name
            )));
        }
        link.remote_handle = Some(attach.handle);
        if link.state != State::Attaching {
            return Ok(());
        }
        let far_end = if link.is_receiver { attach.source } else { attach.target };
        if far_end.and_then(|terminus| terminus.address).is_none() {
            link.state = State::Refused;
            return Ok(());
        }
        link.state = State::Attached;
        if link.is_receiver {
            link.delivery_count = attach.initial_delivery_count.unwrap_or(0);
        }
        let id = LinkId(link.handle);
        self.events.push_back(Event::Attached(id));
        Ok(())
    }

    fn take_flow(&mut self, flow: Flow) -> Result<(), AmqpError> {
        let theirs = flow.next_incoming_id.unwrap_or(0);
        let end = theirs.wrapping_add(flow.incoming_window);
        let window = end.wrapping_sub(self.session.next_outgoing_id);
        // What was sent after the peer wrote this may be more than its window: then there is none.
        self.session.remote_window = if window > u32::MAX / 2 { 0 } else { window };
        self.send_pending();
        if let Some(handle) = flow.handle {
            let link = self.links.remote(handle)?;
            let id = LinkId(link.handle);
            if link.is_receiver {
                if let Some(available) = flow.available {
                    // The newest figure counts: a peer cannot make the queue grow by flows.
                    if matches!(self.events.back(), Some(Event::Available(of, _)) if *of == id) {
                        self.events.pop_back();
                    }
                    self.events.push_back(Event::Available(id, available));
                }
            } else {
                self.take_credit(id, &flow);
            }
        }
        if flow.echo {
            let flow = self.session_flow();
            self.write(&Performative::Flow(flow), &[]);
        }
        Ok(())
    }

    fn take_credit(&mut self, id: LinkId, flow: &Flow) {
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
        } else if has_more {
            self.events.push_back(Event::Credit(id));
        }
    }

    fn take_transfer(&mut self, transfer: Transfer, payload: &Bytes) -> Result<(), AmqpError> {
        self.count_incoming()?;
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
        let room = max.saturating_sub(partial.payload.len());
        partial.payload.extend_from_slice(&payload[..payload.len().min(room)]);
        partial.is_settled |= transfer.settled.unwrap_or(false);
        if transfer.aborted {
            return Ok(());
        }
        if transfer.more {
            link.partial = Some(partial);
            return Ok(());
        }
        // While we detach, what still comes stays unsettled: the peer delivers it again.
        if link.state == State::Attached {
            let delivery = Delivery {
                link: LinkId(link.handle),
                id: partial.id,
                tag: partial.tag,
                is_settled: partial.is_settled,
                payload: partial.payload.freeze(),
                size_bytes: partial.size_bytes,
            };
            self.events.push_back(Event::Message(delivery));
        }
        Ok(())
    }

    /// Outcomes of what was sent. A peer that waits for our settlement gets it.
    fn take_disposition(&mut self, told: Disposition) {
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

    fn take_detach(&mut self, detach: Detach) -> Result<(), AmqpError> {
        let link = self.links.remote(detach.handle)?;
        let (handle, was_detaching) = (link.handle, link.state == State::Detaching);
        self.links.links.retain(|link| link.handle != handle);
        self.links.unsettled.retain(|entry| entry.1 != LinkId(handle));
        self.links.pending.retain(|(transfer, _)| transfer.handle != handle);
        if !was_detaching {
            self.write(&Performative::Detach(Detach { handle, closed: true, error: None }), &[]);
        }
        let error: Option<Condition> = detach.error.or((!was_detaching).then(Condition::default));
        self.events.push_back(Event::Detached(LinkId(handle), error));
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
