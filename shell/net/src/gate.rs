//! Admission of connections: the number in all and from one address, and the node's own bound on each address's rate.
//! Quotas on rates are the caller's (accept.rs).
//!
//! A connection over a limit on numbers, or over its address's rate, is closed at once (Kafka closes it too,
//! or leaves another in the backlog). Without a limit for an
//! address, it may have at most [`SHARE`] times as many connections as are free, so that other addresses
//! always find a place. Listeners for brokers and controllers have places that clients cannot take (as in
//! KIP-402); half of them are for the addresses of the cluster's other nodes ([`Gate::set_peers`]).
//!
//! Limits may change while connections are open ([`Gate::set_limits`]); core/security/src/quotas/places.rs has the
//! numbers. A lower one closes none of them.
//!
//! At a limit on numbers, the oldest connection of the same address that has sent no request gives way to the new one:
//! connections that are only held keep no client of the same machine out.
//!
//! Always true: a place belongs to one connection; a connection that gave way frees no place.
//!
//! Sources: KIP-308, KIP-402; Kafka `ConnectionQuotas`.

mod opening;

pub use opening::FirstRequest;

use barnabas_base::{ConnectionNumber, Map, Set};
use opening::Opening;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// An address has at most so many times the connections that are free: alone, three quarters of all.
const SHARE: usize = 3;
/// So many an address has in any case, where there are any.
const SHARE_MIN: usize = 16;
/// A connection without a request gives way no sooner: Kafka's clients send one as soon as they are connected.
const SILENT_MIN: Duration = Duration::from_millis(500);

/// Where a connection comes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entrance {
    /// The listener's place among the node's.
    pub listener: usize,
    /// It is one of brokers or controllers.
    pub is_reserved: bool,
}

/// What the operator allows.
#[derive(Debug, Clone)]
pub struct ConnectionLimits {
    pub connections_max: usize,
    /// Of single listeners; those behind the last one have no limit of their own.
    pub listeners_max: Vec<usize>,
    /// Beside those, for listeners of brokers and controllers alone.
    pub reserved_max: usize,
    /// `None`: an address leaves a quarter free.
    pub connections_per_ip_max: Option<usize>,
    pub connections_per_ip_overrides: Vec<(IpAddr, usize)>,
    /// From one address in a second, listeners of brokers and controllers and addresses with a quota left out.
    pub per_ip_second_max: u32,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            connections_max: usize::MAX,
            listeners_max: Vec::new(),
            reserved_max: 0,
            connections_per_ip_max: None,
            connections_per_ip_overrides: Vec::new(),
            per_ip_second_max: u32::MAX,
        }
    }
}

/// Why a connection was turned away.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum Refused {
    #[error(
        "{0} connections are open, as many as max.connections or the process's limit of open files (ulimit -n) allows"
    )]
    Total(usize),
    #[error("{0} connections are open on this listener, as many as its max.connections allows")]
    Listener(usize),
    #[error("the limit of connections from one address ({0}) is reached")]
    PerIp(usize),
    #[error(
        "this address has made {0} connections within a second, as many as connections.per.ip.second.max allows"
    )]
    Rate(u32),
    #[error(
        "this address makes more connections than its quota connection_creation_rate={per_second_max} allows; the connection is closed after \
         {wait_ms} ms"
    )]
    Quota { per_second_max: f64, wait_ms: i64 },
    #[error(
        "this address has {held} connections, and the {free} that are left are for other addresses. To let one address have more, set \
         max.connections.per.ip"
    )]
    Share { held: usize, free: usize },
}

/// New connections of each address in one second. It holds as many addresses as connections are made in a second.
#[derive(Debug)]
struct Second {
    began: Instant,
    of: Map<IpAddr, u32>,
}

impl Default for Second {
    fn default() -> Self {
        Self { began: barnabas_clock::now(), of: Map::default() }
    }
}

impl Second {
    /// Counts one more connection; `false`: it is more than `max`.
    fn admits(&mut self, ip: IpAddr, max: u32, now: Instant) -> bool {
        if now.saturating_duration_since(self.began) >= Duration::from_secs(1) {
            self.began = now;
            // Memory that a flood of addresses took goes with it.
            self.of = Map::default();
        }
        let count = self.of.entry(ip).or_default();
        let is_admitted = *count < max;
        *count += u32::from(is_admitted);
        is_admitted
    }
}

/// The kind of peer that holds the place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Client,
    /// Of a listener of brokers and controllers, from the address of one.
    Peer,
    /// Of such a listener, from another address.
    Stranger,
}

/// What a connection counts for.
#[derive(Debug, Clone, Copy)]
struct Place {
    kind: Kind,
    listener: usize,
}

/// What one address has.
#[derive(Debug, Default)]
struct Held {
    connections: usize,
    /// Those that may be silent yet, oldest first. Others among them are left out when they are met.
    openings: VecDeque<(Place, Arc<Opening>)>,
}

impl Held {
    /// Makes the oldest connection that has sent no request give its place to a new one of its kind, and on `listener`
    /// if there is one. Returns which place that was.
    fn gives_way(&mut self, kind: Kind, listener: Option<usize>, now: Instant) -> Option<Place> {
        while let Some((place, oldest)) = self.openings.front() {
            let fits = place.kind == kind && listener.is_none_or(|listener| place.listener == listener);
            if oldest.is_silent() && (!fits || oldest.age(now) < SILENT_MIN) {
                return None;
            }
            if let Some((place, oldest)) = self.openings.pop_front()
                && oldest.give_way()
            {
                return Some(place);
            }
        }
        None
    }

    fn opened(&mut self, place: Place, opening: Arc<Opening>) {
        if self.openings.len() > 2 * self.connections + SHARE_MIN {
            self.openings.retain(|(_, opening)| opening.is_silent());
        }
        self.openings.push_back((place, opening));
    }
}

#[derive(Debug, Default)]
struct Counts {
    /// All there ever were.
    accepted: u64,
    /// By [`Kind`].
    held: [usize; 3],
    /// By listener, as far as there were any.
    on_listener: Vec<usize>,
    limits: ConnectionLimits,
    per_ip: Map<IpAddr, Held>,
    second: Second,
    /// Addresses of the cluster's other nodes.
    peers: Set<IpAddr>,
}

impl Counts {
    /// The limit that keeps a connection out.
    fn refusal(&self, ip: IpAddr, Place { kind, listener }: Place) -> Option<Refused> {
        let limits = &self.limits;
        // First, since a place that another listener's connection gives up makes no room on this one.
        let of_listener = limits.listeners_max.get(listener).copied().unwrap_or(usize::MAX);
        if self.on_listener.get(listener).copied().unwrap_or(0) >= of_listener {
            return Some(Refused::Listener(of_listener));
        }
        let (free, most) = self.free(kind);
        if free == 0 {
            return Some(Refused::Total(most));
        }
        let overridden = limits.connections_per_ip_overrides.iter().find(|(known, _)| *known == ip);
        let held = self.per_ip.get(&ip).map_or(0, |held| held.connections);
        match overridden.map(|&(_, max)| max).or(limits.connections_per_ip_max) {
            Some(max) => (held >= max).then_some(Refused::PerIp(max)),
            // What clients hold of a node's machine keeps the node itself out of nothing.
            None if kind == Kind::Peer || held < SHARE_MIN => None,
            None => (held >= free.saturating_mul(SHARE)).then_some(Refused::Share { held, free }),
        }
    }

    /// How many places are free for one of this kind, and how many it has at most.
    fn free(&self, kind: Kind) -> (usize, usize) {
        let limits = &self.limits;
        let all = limits.connections_max.saturating_add(limits.reserved_max);
        // More may be held than a limit that was lowered allows.
        let left = all.saturating_sub(self.held.iter().sum::<usize>());
        // What the other nodes have not taken of their half stays theirs.
        let kept = (limits.reserved_max / 2).saturating_sub(self.held[Kind::Peer as usize]);
        match kind {
            Kind::Peer => (left, all),
            Kind::Stranger => (left.saturating_sub(kept), all - limits.reserved_max / 2),
            Kind::Client => {
                let clients = limits.connections_max.saturating_sub(self.held[Kind::Client as usize]);
                (left.saturating_sub(kept).min(clients), limits.connections_max)
            }
        }
    }

    fn entered(&mut self, place: Place) {
        self.held[place.kind as usize] += 1;
        if self.on_listener.len() <= place.listener {
            self.on_listener.resize(place.listener + 1, 0);
        }
        self.on_listener[place.listener] += 1;
    }

    fn left(&mut self, place: Place) {
        self.held[place.kind as usize] -= 1;
        self.on_listener[place.listener] -= 1;
    }
}

/// Counts the connections of all listeners. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Gate {
    counts: Arc<Mutex<Counts>>,
}

/// One connection's place in the count; dropping it frees the place.
#[derive(Debug)]
pub struct ConnectionSlot {
    gate: Gate,
    ip: IpAddr,
    place: Place,
    number: ConnectionNumber,
    opening: Arc<Opening>,
}

impl ConnectionSlot {
    /// Over all listeners. Given out before the client hears anything on the connection, so that one which it opened
    /// after that has a higher one.
    pub fn number(&self) -> ConnectionNumber {
        self.number
    }

    /// When the connection was accepted.
    pub fn accepted_at(&self) -> Instant {
        self.opening.since()
    }

    /// For the reader of its frames.
    pub fn first_request(&self) -> FirstRequest {
        FirstRequest { gate: self.gate.clone(), opening: self.opening.clone() }
    }
}

impl Gate {
    pub fn new(limits: ConnectionLimits) -> Self {
        Self { counts: Arc::new(Mutex::new(Counts { limits, ..Counts::default() })) }
    }

    /// New limits, for the connections that come from now on.
    pub fn set_limits(&self, limits: ConnectionLimits) {
        self.counts().limits = limits;
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn connections(&self) -> usize {
        self.counts().held.iter().sum()
    }

    /// Connections by listener, as far as there were any.
    pub fn on_listeners(&self) -> Vec<usize> {
        self.counts().on_listener.clone()
    }

    /// The addresses of the cluster's other nodes.
    pub fn set_peers(&self, peers: &[IpAddr]) {
        self.counts().peers = peers.iter().map(IpAddr::to_canonical).collect();
    }

    /// Whether more than half of the places are taken.
    pub fn is_crowded(&self) -> bool {
        let counts = self.counts();
        counts.held[Kind::Client as usize] > counts.limits.connections_max / 2
    }

    /// A connection to a listener.
    ///
    /// # Errors
    /// The limit that is reached.
    pub fn enter(&self, ip: IpAddr, entrance: Entrance) -> Result<ConnectionSlot, Refused> {
        self.enter_at(ip, entrance, barnabas_clock::now())
    }

    fn enter_at(&self, ip: IpAddr, entrance: Entrance, now: Instant) -> Result<ConnectionSlot, Refused> {
        self.keeps_pace(ip, entrance.is_reserved, now)?;
        self.place(ip, entrance, now)
    }

    /// A connection from an address with a quota: that alone limits its rate.
    ///
    /// # Errors
    /// The limit on numbers that is reached.
    pub fn enter_by_quota(&self, ip: IpAddr, entrance: Entrance) -> Result<ConnectionSlot, Refused> {
        self.place(ip, entrance, barnabas_clock::now())
    }

    fn keeps_pace(&self, ip: IpAddr, is_reserved: bool, now: Instant) -> Result<(), Refused> {
        let mut counts = self.counts();
        let rate = counts.limits.per_ip_second_max;
        if is_reserved || rate == u32::MAX || counts.second.admits(ip.to_canonical(), rate, now) {
            return Ok(());
        }
        Err(Refused::Rate(rate))
    }

    fn place(&self, ip: IpAddr, entrance: Entrance, now: Instant) -> Result<ConnectionSlot, Refused> {
        let ip = ip.to_canonical();
        let mut counts = self.counts();
        let kind = match (entrance.is_reserved, counts.peers.contains(&ip)) {
            (false, _) => Kind::Client,
            (true, true) => Kind::Peer,
            (true, false) => Kind::Stranger,
        };
        let place = Place { kind, listener: entrance.listener };
        if let Some(refused) = counts.refusal(ip, place) {
            let on = matches!(refused, Refused::Listener(_)).then_some(place.listener);
            let given = counts.per_ip.get_mut(&ip).and_then(|held| held.gives_way(kind, on, now));
            // Its place is taken over.
            counts.left(given.ok_or(refused)?);
        } else {
            counts.per_ip.entry(ip).or_default().connections += 1;
        }
        counts.entered(place);
        counts.accepted += 1;
        let opening = Arc::new(Opening::new(now));
        counts.per_ip.entry(ip).or_default().opened(place, opening.clone());
        let number = ConnectionNumber(counts.accepted);
        Ok(ConnectionSlot { gate: self.clone(), ip, place, number, opening })
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut counts = self.gate.counts();
        if self.opening.ends() {
            // Another connection has the place.
            return;
        }
        counts.left(self.place);
        if let Some(held) = counts.per_ip.get_mut(&self.ip) {
            held.connections -= 1;
            if held.connections == 0 {
                counts.per_ip.remove(&self.ip);
            }
        }
    }
}

#[cfg(test)]
mod tests;
