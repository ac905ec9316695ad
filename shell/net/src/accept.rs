//! Accepts connections, within limits: how many in all, how many from one address, how many a second of each and of
//! all.
//!
//! A connection over a limit on numbers, or over its address's rate, is closed at once (Kafka closes it too, or lets
//! another wait in the backlog); one over the rate of all addresses waits. Where the operator has set no limit for an
//! address, one has at most [`SHARE`] times as many connections as are free: others find a place whatever it does.
//! Listeners of brokers and controllers have places that clients do not take (as in KIP-402); half of them are for the
//! addresses of the cluster's other nodes ([`Gate::set_peers`]). Running out of descriptors pauses accepting instead of spinning on the error (Kafka logged it 32,495 times in seconds,
//! PEER-BASELINE e).
//!
//! Sources: KIP-308, KIP-402, KIP-612; Kafka `ConnectionQuotas`.

use barnabas_base::{ConnectionNumber, Map, Set};
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};

/// An address has at most so many times the connections that are free: alone, three quarters of all.
const SHARE: usize = 3;
/// So many an address has in any case, where there are any.
const SHARE_MIN: usize = 16;

/// What the operator allows.
#[derive(Debug, Clone)]
pub struct ConnectionLimits {
    pub connections_max: usize,
    /// Beside those, for listeners of brokers and controllers alone.
    pub reserved_max: usize,
    /// `None`: an address leaves a quarter free.
    pub connections_per_ip_max: Option<usize>,
    pub connections_per_ip_overrides: Vec<(IpAddr, usize)>,
    /// New connections a second, over all listeners.
    pub creation_rate_max: u32,
    /// From one address in a second, listeners of brokers and controllers left out.
    pub per_ip_second_max: u32,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            connections_max: usize::MAX,
            reserved_max: 0,
            connections_per_ip_max: None,
            connections_per_ip_overrides: Vec::new(),
            creation_rate_max: u32::MAX,
            per_ip_second_max: u32::MAX,
        }
    }
}

/// What a socket is set up with.
#[derive(Debug, Clone, Copy)]
pub struct SocketOptions {
    pub backlog: i32,
    /// `None`: the system's choice.
    pub send_buffer_bytes: Option<usize>,
    pub receive_buffer_bytes: Option<usize>,
}

/// Why a listener could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    #[error("the host '{host}' of a listener cannot be resolved: {source}")]
    Resolve { host: String, source: io::Error },
    #[error("cannot listen on {address}: {source}. Is another program using this port? (key listeners)")]
    Bind { address: SocketAddr, source: io::Error },
}

/// Why a connection was turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error(
        "{0} connections are open, as many as max.connections or the process's limit of open files (ulimit -n) allows"
    )]
    Total(usize),
    #[error("the limit of connections from one address ({0}) is reached")]
    PerIp(usize),
    #[error(
        "this address has made {0} connections within a second, as many as connections.per.ip.second.max allows"
    )]
    Rate(u32),
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

/// Who has a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Client,
    /// Of a listener of brokers and controllers, from the address of one.
    Peer,
    /// Of such a listener, from another address.
    Stranger,
}

#[derive(Debug, Default)]
struct Counts {
    /// All there ever were.
    accepted: u64,
    /// By [`Kind`].
    held: [usize; 3],
    per_ip: Map<IpAddr, usize>,
    second: Second,
    /// Addresses of the cluster's other nodes.
    peers: Set<IpAddr>,
}

impl Counts {
    /// How many places are free for one of this kind, and how many it has at most.
    fn free(&self, kind: Kind, limits: &ConnectionLimits) -> (usize, usize) {
        let all = limits.connections_max.saturating_add(limits.reserved_max);
        let left = all - self.held.iter().sum::<usize>();
        // What the other nodes have not taken of their half stays theirs.
        let kept = (limits.reserved_max / 2).saturating_sub(self.held[Kind::Peer as usize]);
        match kind {
            Kind::Peer => (left, all),
            Kind::Stranger => (left.saturating_sub(kept), all - limits.reserved_max / 2),
            Kind::Client => {
                let clients = limits.connections_max - self.held[Kind::Client as usize];
                (left.saturating_sub(kept).min(clients), limits.connections_max)
            }
        }
    }
}

/// Counts the connections of all listeners. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Gate {
    limits: Arc<ConnectionLimits>,
    counts: Arc<Mutex<Counts>>,
    bucket: Arc<Mutex<Bucket>>,
}

/// A token bucket of one second.
#[derive(Debug)]
struct Bucket {
    tokens: f64,
    filled: Instant,
}

/// One connection's place in the count; dropping it frees the place.
#[derive(Debug)]
pub struct ConnectionSlot {
    gate: Gate,
    ip: IpAddr,
    kind: Kind,
    number: ConnectionNumber,
}

impl ConnectionSlot {
    /// Over all listeners. Given out before the client hears anything on the connection, so that one which it opened
    /// after that has a higher one.
    pub fn number(&self) -> ConnectionNumber {
        self.number
    }

    pub fn gate(&self) -> &Gate {
        &self.gate
    }
}

impl Gate {
    pub fn new(limits: ConnectionLimits) -> Self {
        let tokens = f64::from(limits.creation_rate_max);
        let bucket = Bucket { tokens, filled: barnabas_clock::now() };
        Self { limits: Arc::new(limits), counts: Arc::default(), bucket: Arc::new(Mutex::new(bucket)) }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn connections(&self) -> usize {
        self.counts().held.iter().sum()
    }

    /// The addresses of the cluster's other nodes.
    pub fn set_peers(&self, peers: &[IpAddr]) {
        self.counts().peers = peers.iter().map(IpAddr::to_canonical).collect();
    }

    /// Whether more than half of the places are taken.
    pub fn is_crowded(&self) -> bool {
        self.counts().held[Kind::Client as usize] > self.limits.connections_max / 2
    }

    /// A connection to a listener; `is_reserved`: of brokers or controllers.
    ///
    /// # Errors
    /// The limit that is reached.
    pub fn enter(&self, ip: IpAddr, is_reserved: bool) -> Result<ConnectionSlot, Refused> {
        self.enter_at(ip, is_reserved, barnabas_clock::now())
    }

    fn enter_at(&self, ip: IpAddr, is_reserved: bool, now: Instant) -> Result<ConnectionSlot, Refused> {
        let ip = ip.to_canonical();
        let mut counts = self.counts();
        let limits = &self.limits;
        let rate = limits.per_ip_second_max;
        if !is_reserved && rate < u32::MAX && !counts.second.admits(ip, rate, now) {
            return Err(Refused::Rate(rate));
        }
        let kind = match (is_reserved, counts.peers.contains(&ip)) {
            (false, _) => Kind::Client,
            (true, true) => Kind::Peer,
            (true, false) => Kind::Stranger,
        };
        let (free, most) = counts.free(kind, limits);
        if free == 0 {
            return Err(Refused::Total(most));
        }
        let overridden = limits.connections_per_ip_overrides.iter().find(|(known, _)| *known == ip);
        let held = counts.per_ip.get(&ip).copied().unwrap_or(0);
        match overridden.map(|&(_, max)| max).or(limits.connections_per_ip_max) {
            Some(max) if held >= max => return Err(Refused::PerIp(max)),
            // What clients hold of a node's machine keeps the node itself out of nothing.
            None if kind != Kind::Peer && held >= SHARE_MIN && held >= free.saturating_mul(SHARE) => {
                return Err(Refused::Share { held, free });
            }
            _ => {}
        }
        counts.held[kind as usize] += 1;
        counts.accepted += 1;
        counts.per_ip.insert(ip, held + 1);
        let number = ConnectionNumber(counts.accepted);
        Ok(ConnectionSlot { gate: self.clone(), ip, kind, number })
    }

    /// How long the next connection has to wait to keep the rate.
    fn delay(&self) -> Duration {
        if self.limits.creation_rate_max == u32::MAX {
            return Duration::ZERO;
        }
        let rate = f64::from(self.limits.creation_rate_max.max(1));
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        let now = barnabas_clock::now();
        let refill = now.duration_since(bucket.filled).as_secs_f64() * rate;
        bucket.tokens = (bucket.tokens + refill).min(rate) - 1.0;
        bucket.filled = now;
        if bucket.tokens >= 0.0 { Duration::ZERO } else { Duration::from_secs_f64(-bucket.tokens / rate) }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut counts = self.gate.counts();
        counts.held[self.kind as usize] -= 1;
        let held = counts.per_ip.get(&self.ip).copied().unwrap_or(1);
        if held > 1 {
            counts.per_ip.insert(self.ip, held - 1);
        } else {
            counts.per_ip.remove(&self.ip);
        }
    }
}

/// One bound listener.
#[derive(Debug)]
pub struct Acceptor {
    listener: std::net::TcpListener,
    local: SocketAddr,
    gate: Gate,
    /// Brokers or controllers connect here, and no client.
    is_reserved: bool,
    options: SocketOptions,
}

impl Acceptor {
    /// Binds, and takes no connections before [`Acceptor::run`] is polled: who comes while the node starts is refused
    /// at once and asks another node, where it would wait for this one else. An empty host binds every interface.
    ///
    /// # Errors
    /// The host has no address, or the address cannot be bound.
    pub fn bind(host: &str, port: u16, gate: Gate, options: SocketOptions) -> Result<Self, BindError> {
        let address = resolve(host, port)?;
        let listener = bind_to(address, options).map_err(|source| BindError::Bind { address, source })?;
        let local = listener.local_addr().map_err(|source| BindError::Bind { address, source })?;
        Ok(Self { listener, local, gate, is_reserved: false, options })
    }

    /// For a listener of brokers or controllers.
    #[must_use]
    pub fn reserved(mut self, is_reserved: bool) -> Self {
        self.is_reserved = is_reserved;
        self
    }

    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Takes connections from now on.
    fn open(&self) -> io::Result<()> {
        socket2::SockRef::from(&self.listener).listen(self.options.backlog)
    }

    /// Accepts until dropped and hands each connection to `take`, or to `refuse` and closes it.
    ///
    /// # Errors
    /// Only when the listener cannot be registered with the runtime.
    pub async fn run(
        self,
        mut take: impl FnMut(std::net::TcpStream, SocketAddr, ConnectionSlot),
        mut refuse: impl FnMut(SocketAddr, Refused),
    ) -> io::Result<()> {
        self.open()?;
        let listener = TcpListener::from_std(self.listener)?;
        let mut paused = false;
        loop {
            let (stream, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    if is_exhaustion(&error) {
                        if !paused {
                            tracing::error!(%error, "connections cannot be accepted; retrying every 100 \
                                ms. Open connections are not affected. If too many files are open, raise \
                                the limit of open files (ulimit -n) or lower log.open.files.max");
                        }
                        paused = true;
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                    continue;
                }
            };
            paused = false;
            let delay = self.gate.delay();
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            match self.gate.enter(peer.ip(), self.is_reserved) {
                Err(refused) => refuse(peer, refused),
                Ok(slot) => match set_up(stream, self.options) {
                    Ok(stream) => take(stream, peer, slot),
                    Err(error) => tracing::debug!(%peer, %error, "connection lost before it was set up"),
                },
            }
        }
    }
}

fn resolve(host: &str, port: u16) -> Result<SocketAddr, BindError> {
    if host.is_empty() {
        return Ok(SocketAddr::from(([0u16; 8], port)));
    }
    let failed = |source| BindError::Resolve { host: host.to_owned(), source };
    let mut addresses: Vec<_> = (host, port).to_socket_addrs().map_err(failed)?.collect();
    // `localhost` names both loopbacks; clients and Kafka's own tools try IPv4 first.
    addresses.sort_by_key(SocketAddr::is_ipv6);
    addresses.first().copied().ok_or_else(|| failed(io::ErrorKind::NotFound.into()))
}

fn bind_to(address: SocketAddr, options: SocketOptions) -> io::Result<std::net::TcpListener> {
    match bound(address, options) {
        // No IPv6 on this machine: every IPv4 interface then.
        Err(error) if address.ip().is_unspecified() && address.is_ipv6() && !is_in_use(&error) => {
            bound(SocketAddr::from(([0u8; 4], address.port())), options)
        }
        other => other,
    }
}

fn bound(address: SocketAddr, options: SocketOptions) -> io::Result<std::net::TcpListener> {
    use socket2::{Domain, Protocol, Socket, Type};
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    if let Some(bytes) = options.receive_buffer_bytes {
        // Set before listen: the window scale is agreed on in the handshake.
        socket.set_recv_buffer_size(bytes)?;
    }
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// Hands the socket back outside the runtime that accepted it: another worker's runtime will serve it.
fn set_up(stream: TcpStream, options: SocketOptions) -> io::Result<std::net::TcpStream> {
    stream.set_nodelay(true)?;
    let stream = stream.into_std()?;
    let socket = socket2::SockRef::from(&stream);
    socket.set_keepalive(true)?;
    if let Some(bytes) = options.send_buffer_bytes {
        socket.set_send_buffer_size(bytes)?;
    }
    Ok(stream)
}

fn is_in_use(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrInUse
}

/// ENFILE, EMFILE, ENOBUFS, ENOMEM: it is not this connection's fault, and trying at once would spin.
fn is_exhaustion(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(23 | 24 | 105 | 12))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[test]
    fn places_are_counted_and_freed() {
        let limits = ConnectionLimits {
            connections_max: 3,
            connections_per_ip_max: Some(2),
            connections_per_ip_overrides: vec![(ip(9), 0)],
            ..Default::default()
        };
        let gate = Gate::new(limits);
        let one = gate.enter(ip(1), false).expect("room");
        let _two = gate.enter(ip(1), false).expect("room");
        assert_eq!(gate.enter(ip(1), false).err(), Some(Refused::PerIp(2)));
        assert_eq!(gate.enter(ip(9), false).err(), Some(Refused::PerIp(0)));
        let _three = gate.enter(ip(2), false).expect("room");
        assert_eq!(gate.enter(ip(3), false).err(), Some(Refused::Total(3)));
        drop(one);
        assert_eq!(gate.connections(), 2);
        assert!(gate.enter(ip(1), false).is_ok());
    }

    #[test]
    fn address_without_a_limit_leaves_a_quarter_to_others() {
        let gate = Gate::new(ConnectionLimits { connections_max: 1_000, ..Default::default() });
        let all_of = |last: u8| std::iter::from_fn(|| gate.enter(ip(last), false).ok()).collect::<Vec<_>>();
        let first = all_of(1);
        assert_eq!((first.len(), gate.is_crowded()), (750, true));
        assert_eq!(gate.enter(ip(1), false).err(), Some(Refused::Share { held: 750, free: 250 }));
        let second = all_of(2);
        assert_eq!(second.len(), 188);
        // With 62 left there is room for a third address, and a fourth.
        assert!(all_of(3).len() > 16 && all_of(4).len() > 16);
        drop(first);
        assert!(!gate.is_crowded());
        assert!(gate.enter(ip(1), false).is_ok());
    }

    #[test]
    fn few_places_go_to_one_address() {
        let gate = Gate::new(ConnectionLimits { connections_max: 5, ..Default::default() });
        let all: Vec<_> =
            (0..5).map(|_| gate.enter(ip(1), false).expect("max.connections alone counts")).collect();
        assert_eq!((all.len(), gate.enter(ip(1), false).err()), (5, Some(Refused::Total(5))));
    }

    #[test]
    fn brokers_have_places_that_clients_do_not_take() {
        let limits = ConnectionLimits {
            connections_max: 4,
            reserved_max: 2,
            connections_per_ip_max: Some(100),
            ..Default::default()
        };
        let gate = Gate::new(limits);
        gate.set_peers(&[ip(2)]);
        let mut clients: Vec<_> = (0..4).map(|_| gate.enter(ip(1), false).expect("room")).collect();
        assert_eq!(gate.enter(ip(1), false).err(), Some(Refused::Total(4)));
        let brokers: Vec<_> = (0..2).map(|_| gate.enter(ip(2), true).expect("reserved")).collect();
        assert_eq!(gate.enter(ip(2), true).err(), Some(Refused::Total(6)));
        clients.pop();
        let third = gate.enter(ip(2), true).expect("a client's place");
        assert_eq!(gate.enter(ip(1), false).err(), Some(Refused::Total(4)));
        drop((third, brokers));
        assert_eq!(gate.connections(), 3);
    }

    #[test]
    fn strangers_leave_half_of_the_reserved_places_to_peers() {
        let limits = ConnectionLimits { connections_max: 100, reserved_max: 20, ..Default::default() };
        let gate = Gate::new(limits);
        gate.set_peers(&[ip(1)]);
        let mut held = Vec::new();
        for last in 2..=250 {
            held.extend(std::iter::from_fn(|| gate.enter(ip(last), true).ok()));
            held.extend(std::iter::from_fn(|| gate.enter(ip(last), false).ok()));
        }
        assert_eq!(gate.connections(), 110);
        assert!(matches!(gate.enter(ip(9), true), Err(Refused::Total(110))));
        held.extend((0..10).map(|_| gate.enter(ip(1), true).expect("a peer's place")));
        assert_eq!(gate.enter(ip(1), true).err(), Some(Refused::Total(120)));
        drop(held);
        assert_eq!(gate.connections(), 0);
    }

    #[test]
    fn address_beyond_its_rate_is_refused_for_the_second() {
        let gate = Gate::new(ConnectionLimits { per_ip_second_max: 3, ..Default::default() });
        let began = barnabas_clock::now();
        let enter = |last: u8, is_reserved, ms: u64| {
            gate.enter_at(ip(last), is_reserved, began + Duration::from_millis(ms)).map(drop)
        };
        // They are closed as soon as they are made: no limit on numbers sees them.
        assert_eq!([enter(1, false, 0), enter(1, false, 10), enter(1, false, 20)], [Ok(()); 3]);
        assert_eq!(enter(1, false, 30), Err(Refused::Rate(3)));
        assert_eq!([enter(2, false, 30), enter(1, true, 30)], [Ok(()), Ok(())], "another, and a broker");
        assert_eq!(enter(1, false, 900), Err(Refused::Rate(3)));
        assert_eq!(enter(1, false, 1_100), Ok(()));
        assert_eq!(gate.connections(), 0);
    }

    #[test]
    fn the_rate_is_kept_by_waiting() {
        let gate = Gate::new(ConnectionLimits { creation_rate_max: 10, ..Default::default() });
        for _ in 0..10 {
            assert_eq!(gate.delay(), Duration::ZERO);
        }
        let wait = gate.delay();
        assert!(wait > Duration::from_millis(50) && wait <= Duration::from_millis(100), "{wait:?}");
    }

    #[test]
    fn a_port_in_use_is_named() {
        let options = SocketOptions { backlog: 5, send_buffer_bytes: None, receive_buffer_bytes: None };
        let gate = Gate::new(ConnectionLimits::default());
        let first = Acceptor::bind("127.0.0.1", 0, gate.clone(), options).expect("binds");
        first.open().expect("listens");
        let error =
            Acceptor::bind("127.0.0.1", first.local_addr().port(), gate, options).expect_err("in use");
        assert!(error.to_string().contains("listeners"), "{error}");
    }
}
