//! Sessions: their windows, and which frames of theirs go where.
//!
//! A session has the number of its peer's channel on both sides.
//!
//! # Source
//! AMQP 1.0 part 2, sections 2.5, 2.5.6.

use super::state::{HANDLE_MAX, OUTGOING_WINDOW, Session};
use super::{Server, ServerEvent};
use crate::performative::{Begin, End, Flow, Performative};
use crate::{AmqpError, Condition};
use bytes::Bytes;

impl Server {
    pub(super) fn take_in_session(
        &mut self,
        channel: u16,
        body: Performative,
        payload: Bytes,
    ) -> Result<(), AmqpError> {
        if let Performative::Begin(begin) = body {
            return self.take_begin(channel, &begin);
        }
        let Some(session) = self.sessions.by_channel.get(&channel) else {
            let words = format!("{} came on channel {channel}, which has no session", body.name());
            return Err(AmqpError::Protocol(words));
        };
        if session.is_ending && !matches!(body, Performative::End(_)) {
            return Ok(());
        }
        match body {
            Performative::End(_) => {
                self.take_end(channel);
                Ok(())
            }
            Performative::Attach(attach) => self.take_attach(channel, attach),
            Performative::Flow(flow) => self.take_flow(channel, &flow),
            Performative::Transfer(transfer) => self.take_transfer(channel, transfer, &payload),
            Performative::Disposition(told) => {
                self.take_disposition(channel, told);
                Ok(())
            }
            Performative::Detach(detach) => self.take_detach(channel, &detach),
            other => Err(AmqpError::Protocol(format!("{} came out of turn", other.name()))),
        }
    }

    fn take_begin(&mut self, channel: u16, begin: &Begin) -> Result<(), AmqpError> {
        if channel >= self.config.sessions_max {
            let max = self.config.sessions_max.saturating_sub(1);
            return Err(AmqpError::Protocol(format!("it began channel {channel}; the highest is {max}")));
        }
        if self.sessions.by_channel.contains_key(&channel) {
            return Err(AmqpError::Protocol(format!("it began channel {channel}, which has a session")));
        }
        let session = Session::new(begin);
        let answer = Begin {
            remote_channel: Some(channel),
            next_outgoing_id: session.next_outgoing_id,
            incoming_window: session.incoming_left,
            outgoing_window: OUTGOING_WINDOW,
            handle_max: Some(HANDLE_MAX),
        };
        self.sessions.by_channel.insert(channel, session);
        self.write(channel, &Performative::Begin(answer), &[]);
        Ok(())
    }

    fn take_end(&mut self, channel: u16) {
        let Some(session) = self.sessions.by_channel.remove(&channel) else { return };
        if !session.is_ending {
            self.write(channel, &Performative::End(End::default()), &[]);
        }
        self.drop_links(&session);
    }

    /// Ends a session that broke a rule of its own; the others go on.
    pub(super) fn end_session(&mut self, channel: u16, error: Condition) {
        let Some(session) = self.sessions.by_channel.get_mut(&channel) else { return };
        session.is_ending = true;
        session.pending.clear();
        session.unsettled.clear();
        let links = std::mem::take(&mut session.links);
        self.write(channel, &Performative::End(End { error: Some(error) }), &[]);
        for link in links.values() {
            self.held_bytes = self.held_bytes.saturating_sub(link.partial_bytes());
            self.events.push_back(ServerEvent::Detached(link.id));
        }
    }

    fn drop_links(&mut self, session: &Session) {
        for link in session.links.values() {
            self.held_bytes = self.held_bytes.saturating_sub(link.partial_bytes());
            self.events.push_back(ServerEvent::Detached(link.id));
        }
    }

    fn take_flow(&mut self, channel: u16, flow: &Flow) -> Result<(), AmqpError> {
        let Some(session) = self.sessions.by_channel.get_mut(&channel) else { return Ok(()) };
        let end = flow.next_incoming_id.unwrap_or(0).wrapping_add(flow.incoming_window);
        let window = end.wrapping_sub(session.next_outgoing_id);
        // What was sent after the peer wrote this may be more than its window: then there is none.
        session.remote_window = if window > u32::MAX / 2 { 0 } else { window };
        self.send_pending(channel);
        let echo = match flow.handle {
            None => {
                let session = self.sessions.by_channel.get(&channel);
                session.map(Session::flow)
            }
            Some(handle) => self.take_link_flow(channel, handle, flow)?,
        };
        if let Some(echo) = echo.filter(|_| flow.echo) {
            self.write(channel, &Performative::Flow(echo), &[]);
        }
        Ok(())
    }
}
