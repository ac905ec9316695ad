//! Connections to the other members: one request under way to each, a pause after a failure.
//!
//! A request has a number; an answer with another number is of a request that is no longer waited for, and is dropped.
//! That is what keeps a role's answers out of the next role.
//!
//! Source: Kafka `RequestManager`.

use std::collections::BTreeMap;

use barnabas_base::{BrokerId, DurationMs, MonotonicMs};

#[derive(Debug, Clone, Copy, Default)]
struct Connection {
    /// Number of the request under way, and when it is given up.
    under_way: Option<(u64, MonotonicMs)>,
    /// When the last request was sent.
    sent_at: MonotonicMs,
    ready_at: MonotonicMs,
    /// Whether the last request went to an address of the quorum's records or of the configuration.
    is_on_record: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Peers {
    connections: BTreeMap<BrokerId, Connection>,
    next_number: u64,
    timeout: DurationMs,
    backoff: DurationMs,
}

impl Peers {
    pub fn new(timeout: DurationMs, backoff: DurationMs) -> Self {
        Self { connections: BTreeMap::new(), next_number: 1, timeout, backoff }
    }

    /// Whether a request can be sent to `id` now.
    pub fn is_ready(&self, id: BrokerId, now: MonotonicMs) -> bool {
        let Some(connection) = self.connections.get(&id) else { return true };
        connection.ready_at <= now && connection.under_way.is_none_or(|(_, until)| until <= now)
    }

    /// Whether any request is under way.
    pub fn is_any_under_way(&self, now: MonotonicMs) -> bool {
        let under_way = |connection: &Connection| connection.under_way.is_some_and(|(_, until)| until > now);
        self.connections.values().any(under_way)
    }

    /// Gives the number of a request that is sent now.
    pub fn sent(&mut self, id: BrokerId, is_on_record: bool, now: MonotonicMs) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        // What is neither waited for nor paused need not be remembered.
        let is_used = |connection: &Connection| connection.under_way.is_some() || connection.ready_at > now;
        self.connections.retain(|_, connection| is_used(connection));
        let connection = self.connections.entry(id).or_default();
        connection.under_way = Some((number, now.plus(self.timeout)));
        connection.sent_at = now;
        connection.is_on_record = is_on_record;
        number
    }

    /// Takes an answer or the report that there is none. `false`: no request waits for it.
    pub fn answered(&mut self, id: BrokerId, number: u64, ok: bool, now: MonotonicMs) -> bool {
        let Some(connection) = self.connections.get_mut(&id) else { return false };
        if connection.under_way.is_none_or(|(waited, _)| waited != number) {
            return false;
        }
        connection.under_way = None;
        connection.ready_at = if ok { now } else { now.plus(self.backoff) };
        true
    }

    /// When the request was sent that `id` has answered last.
    pub fn sent_at(&self, id: BrokerId) -> Option<MonotonicMs> {
        self.connections.get(&id).map(|connection| connection.sent_at)
    }

    /// Whether what `id` answers now comes from an address of the quorum's records or of the configuration.
    pub fn is_on_record(&self, id: BrokerId) -> bool {
        self.connections.get(&id).is_some_and(|connection| connection.is_on_record)
    }

    /// What was answered was of no use: a pause before the next request.
    pub fn pause(&mut self, id: BrokerId, now: MonotonicMs) {
        self.connections.entry(id).or_default().ready_at = now.plus(self.backoff);
    }

    /// Forgets all requests under way, and all pauses.
    pub fn reset(&mut self) {
        self.connections.clear();
    }

    /// When the first of the connections that could not be used at `then` can be.
    pub fn next_ready(&self, then: MonotonicMs) -> Option<MonotonicMs> {
        let ready = self.connections.values().map(|connection| {
            connection.under_way.map_or(connection.ready_at, |(_, until)| until.max(connection.ready_at))
        });
        ready.filter(|&at| at > then).min()
    }
}
