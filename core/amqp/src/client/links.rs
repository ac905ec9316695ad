//! Links of the session: attaching, flows, detaching. `links/sending.rs` and `links/receiving.rs` have what each kind
//! does between.
//!
//! # Source
//! AMQP 1.0 part 2, sections 2.5.6, 2.6.

mod receiving;
mod sending;

pub use sending::NotSent;

use super::{Client, Event, Phase};
use crate::performative::{Attach, Detach, Flow, Performative, Terminus, Transfer};
use crate::{AmqpError, Condition, Value};
use bytes::Bytes;
use receiving::Partial;
use std::collections::VecDeque;

/// The highest handle: so many links a session has, less one.
pub(super) const HANDLE_MAX: u32 = 15;
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
    /// The message, or its first bytes where it is larger than the maximum. The caller that drops it calls
    /// [`Client::release`].
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
struct Link {
    name: String,
    handle: u32,
    remote_handle: Option<u32>,
    is_receiver: bool,
    state: State,
    credit: u32,
    delivery_count: u32,
    /// Of a sender: the largest message that the peer takes.
    message_bytes_max: Option<u64>,
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

    /// Attaches a link to the peer's transaction coordinator; [`crate::Control`] is sent on it. `None` as in
    /// [`Self::attach_receiver`].
    pub fn attach_coordinator(&mut self, name: &str) -> Option<LinkId> {
        let capabilities = vec!["amqp:local-transactions".to_owned()];
        let target = Terminus { is_coordinator: true, capabilities, ..Terminus::default() };
        self.attach(name, false, Terminus::default(), target)
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
            message_bytes_max: None,
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

    /// The deliveries that a link may still send or receive.
    pub fn credit(&self, link: LinkId) -> u32 {
        self.links.links.iter().find(|found| found.handle == link.0).map_or(0, |found| found.credit)
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
            other => Err(AmqpError::Protocol(format!("{} came out of turn", other.name()))),
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
        if far_end.is_none_or(|far_end| far_end.address.is_none() && !far_end.is_coordinator) {
            link.state = State::Refused;
            return Ok(());
        }
        link.state = State::Attached;
        if link.is_receiver {
            link.delivery_count = attach.initial_delivery_count.unwrap_or(0);
        } else {
            // 0 says, as the field's absence, that there is no maximum.
            link.message_bytes_max = attach.max_message_size.filter(|max| *max > 0);
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

    fn take_detach(&mut self, detach: Detach) -> Result<(), AmqpError> {
        let link = self.links.remote(detach.handle)?;
        let (handle, was_detaching) = (link.handle, link.state == State::Detaching);
        let partial_bytes = link.partial.take().map_or(0, |partial| partial.payload.len());
        self.session.incoming.release(partial_bytes);
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
