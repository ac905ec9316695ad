//! Links that peers attach: the caller accepts or refuses them; credit of both kinds; detaching.
//!
//! # Source
//! AMQP 1.0 part 2, sections 2.6.3 to 2.6.7.

use super::state::{HANDLE_MAX, Link, PeerLink, State};
use super::{Server, ServerEvent};
use crate::performative::{Attach, Detach, Flow, Performative, Terminus};
use crate::{AmqpError, Condition, TRANSACTION_CAPABILITIES};

impl Server {
    pub(super) fn take_attach(&mut self, channel: u16, attach: Box<Attach>) -> Result<(), AmqpError> {
        let count = self.sessions.links_count();
        let serial = self.sessions.next_link;
        let Some(session) = self.sessions.by_channel.get_mut(&channel) else { return Ok(()) };
        let handle = attach.handle;
        if handle > HANDLE_MAX {
            return Err(AmqpError::Protocol(format!("its handle {handle} is above our maximum")));
        }
        if session.links.contains_key(&handle) {
            let error = Condition::new("amqp:session:handle-in-use", format!("handle {handle} has a link"));
            self.end_session(channel, error);
            return Ok(());
        }
        self.sessions.next_link += 1;
        let id = PeerLink { channel, handle, serial };
        let link = Link {
            id,
            state: State::Deciding,
            credit: 0,
            delivery_count: if attach.is_receiver { 0 } else { attach.initial_delivery_count.unwrap_or(0) },
            wants_drain: false,
            partial: None,
            attach: attach.clone(),
        };
        session.links.insert(handle, link);
        if count >= self.config.links_max {
            let words = format!("a connection has {} links at most", self.config.links_max);
            self.refuse(id, Condition::new("amqp:resource-limit-exceeded", words));
            return Ok(());
        }
        self.events.push_back(ServerEvent::Attach(id, attach));
        Ok(())
    }

    /// Answers an attach: the link is there. `address` is that of the node, where it was made for this link.
    pub fn accept(&mut self, id: PeerLink, address: Option<String>) {
        let message_bytes_max = self.config.message_bytes_max as u64;
        let Some(link) = self.sessions.link_mut(id).filter(|link| link.state == State::Deciding) else {
            return;
        };
        link.state = State::Attached;
        let mut answer = (*link.attach).clone();
        answer.is_receiver = link.receives();
        let far_end = if answer.is_receiver { &mut answer.target } else { &mut answer.source };
        if let Some(coordinator) = far_end.as_mut().filter(|far_end| far_end.is_coordinator) {
            coordinator.capabilities = TRANSACTION_CAPABILITIES.map(str::to_owned).to_vec();
        }
        if let Some(address) = address {
            far_end.get_or_insert_with(Terminus::default).address = Some(address);
        }
        answer.max_message_size = answer.is_receiver.then_some(message_bytes_max);
        answer.initial_delivery_count = (!answer.is_receiver).then_some(0);
        self.write(id.channel, &Performative::Attach(Box::new(answer)), &[]);
    }

    /// Answers an attach: there is no such link, and why. Or ends one that is there.
    pub fn refuse(&mut self, id: PeerLink, error: Condition) {
        let Some(link) = self.sessions.link_mut(id) else { return };
        let before = std::mem::replace(&mut link.state, State::Detaching);
        let dropped = link.partial_bytes();
        link.partial = None;
        let attach = (before == State::Deciding).then(|| (*link.attach).clone());
        self.held_bytes = self.held_bytes.saturating_sub(dropped);
        if before == State::Detaching {
            return;
        }
        if let Some(mut answer) = attach {
            answer.is_receiver = !answer.is_receiver;
            // Without a terminus the peer knows that the detach is the answer.
            let far_end = if answer.is_receiver { &mut answer.target } else { &mut answer.source };
            *far_end = None;
            answer.max_message_size = None;
            answer.initial_delivery_count = (!answer.is_receiver).then_some(0);
            self.write(id.channel, &Performative::Attach(Box::new(answer)), &[]);
        }
        self.drop_unsettled(id);
        let detach = Detach { handle: id.handle, closed: true, error: Some(error) };
        self.write(id.channel, &Performative::Detach(detach), &[]);
    }

    pub(super) fn take_detach(&mut self, channel: u16, detach: &Detach) -> Result<(), AmqpError> {
        let session = self.sessions.by_channel.get_mut(&channel);
        let Some(link) = session.and_then(|session| session.links.remove(&detach.handle)) else {
            return Err(AmqpError::Protocol(format!("no link has its handle {}", detach.handle)));
        };
        self.held_bytes = self.held_bytes.saturating_sub(link.partial_bytes());
        self.drop_unsettled(link.id);
        if link.state != State::Detaching {
            let answer = Detach { handle: detach.handle, closed: detach.closed, error: None };
            self.write(channel, &Performative::Detach(answer), &[]);
        }
        self.events.push_back(ServerEvent::Detached(link.id));
        Ok(())
    }

    fn drop_unsettled(&mut self, id: PeerLink) {
        if let Some(session) = self.sessions.by_channel.get_mut(&id.channel) {
            session.unsettled.retain(|sent| sent.link != id);
            session.pending.retain(|(transfer, _)| transfer.handle != id.handle);
        }
    }

    /// The link's part of a flow. Returns what an echo would say.
    pub(super) fn take_link_flow(
        &mut self,
        channel: u16,
        handle: u32,
        flow: &Flow,
    ) -> Result<Option<Flow>, AmqpError> {
        let Some(session) = self.sessions.by_channel.get_mut(&channel) else { return Ok(None) };
        let ours = session.flow();
        let Some(link) = session.links.get_mut(&handle) else {
            let error = Condition::new("amqp:session:unattached-handle", format!("handle {handle}"));
            self.end_session(channel, error);
            return Ok(None);
        };
        if !link.receives() && flow.txn_id.is_some() {
            let id = link.id;
            let words =
                "deliveries that belong to a transaction from the start are not there: settle them in it";
            self.refuse(id, Condition::new("amqp:not-implemented", words));
            return Ok(None);
        }
        if !link.receives() {
            let end = flow.delivery_count.unwrap_or(0).wrapping_add(flow.link_credit.unwrap_or(0));
            let credit = end.wrapping_sub(link.delivery_count);
            let credit = if credit > u32::MAX / 2 { 0 } else { credit };
            let is_new = credit != link.credit || flow.drain != link.wants_drain;
            link.credit = credit;
            link.wants_drain = flow.drain;
            let event = ServerEvent::Credit(link.id);
            // One such event is enough: a peer cannot make the queue grow by flows.
            if (is_new || flow.drain) && self.events.back() != Some(&event) {
                self.events.push_back(event);
            }
        }
        let (delivery_count, link_credit) = (Some(link.delivery_count), Some(link.credit));
        Ok(Some(Flow { handle: Some(handle), delivery_count, link_credit, ..ours }))
    }

    /// The deliveries that a link may still send, or that its peer may.
    pub fn credit(&self, id: PeerLink) -> u32 {
        self.sessions.link(id).map_or(0, |link| link.credit)
    }

    /// Whether the peer wants its credit used up now, or given back ([`Self::drained`]).
    pub fn wants_drain(&self, id: PeerLink) -> bool {
        self.sessions.link(id).is_some_and(|link| link.wants_drain && link.credit > 0)
    }

    /// There is nothing to send: the credit is used up, as the peer asked.
    pub fn drained(&mut self, id: PeerLink) {
        let Some(session) = self.sessions.by_channel.get_mut(&id.channel) else { return };
        let ours = session.flow();
        let Some(link) = session.links.get_mut(&id.handle).filter(|link| link.id == id) else { return };
        if !link.wants_drain || link.receives() || link.state != State::Attached {
            return;
        }
        link.delivery_count = link.delivery_count.wrapping_add(link.credit);
        link.credit = 0;
        let (delivery_count, handle) = (Some(link.delivery_count), Some(id.handle));
        let flow = Flow { handle, delivery_count, link_credit: Some(0), drain: true, ..ours };
        self.write(id.channel, &Performative::Flow(flow), &[]);
    }
}
