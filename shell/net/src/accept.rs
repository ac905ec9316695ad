//! Accepts connections, within limits: how many in all, how many from one address, how many a second.
//!
//! A connection over a limit on numbers is closed at once with a line in the log (Kafka closes it too, or lets another wait
//! in the backlog); one over the rate waits. Running out of descriptors pauses accepting instead of spinning on the error
//! (Kafka logged it 32,495 times in seconds, PEER-BASELINE e).
//!
//! Sources: KIP-308, KIP-402, KIP-612; Kafka `ConnectionQuotas`.

use barnabas_base::{ConnectionNumber, Map};
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};

/// What the operator allows.
#[derive(Debug, Clone)]
pub struct ConnectionLimits {
    pub connections_max: usize,
    pub connections_per_ip_max: usize,
    pub connections_per_ip_overrides: Vec<(IpAddr, usize)>,
    /// New connections a second, over all listeners.
    pub creation_rate_max: u32,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            connections_max: usize::MAX,
            connections_per_ip_max: usize::MAX,
            connections_per_ip_overrides: Vec::new(),
            creation_rate_max: u32::MAX,
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
}

#[derive(Debug, Default)]
struct Counts {
    /// All there ever were.
    accepted: u64,
    total: usize,
    per_ip: Map<IpAddr, usize>,
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
    number: ConnectionNumber,
}

impl ConnectionSlot {
    /// Over all listeners. Given out before the client hears anything on the connection, so that one which it opened after that has a
    /// higher one.
    pub fn number(&self) -> ConnectionNumber {
        self.number
    }
}

impl Gate {
    pub fn new(limits: ConnectionLimits) -> Self {
        let tokens = f64::from(limits.creation_rate_max);
        let bucket = Bucket { tokens, filled: Instant::now() };
        Self { limits: Arc::new(limits), counts: Arc::default(), bucket: Arc::new(Mutex::new(bucket)) }
    }

    pub fn connections(&self) -> usize {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).total
    }

    /// # Errors
    /// The limit that is reached.
    pub fn enter(&self, ip: IpAddr) -> Result<ConnectionSlot, Refused> {
        let ip = ip.to_canonical();
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.total >= self.limits.connections_max {
            return Err(Refused::Total(self.limits.connections_max));
        }
        let overridden = self.limits.connections_per_ip_overrides.iter().find(|(known, _)| *known == ip);
        let per_ip_max = overridden.map_or(self.limits.connections_per_ip_max, |&(_, max)| max);
        let held = counts.per_ip.get(&ip).copied().unwrap_or(0);
        if held >= per_ip_max {
            return Err(Refused::PerIp(per_ip_max));
        }
        counts.total += 1;
        counts.accepted += 1;
        counts.per_ip.insert(ip, held + 1);
        let number = ConnectionNumber(counts.accepted);
        Ok(ConnectionSlot { gate: self.clone(), ip, number })
    }

    /// How long the next connection has to wait to keep the rate.
    fn delay(&self) -> Duration {
        if self.limits.creation_rate_max == u32::MAX {
            return Duration::ZERO;
        }
        let rate = f64::from(self.limits.creation_rate_max.max(1));
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let refill = now.duration_since(bucket.filled).as_secs_f64() * rate;
        bucket.tokens = (bucket.tokens + refill).min(rate) - 1.0;
        bucket.filled = now;
        if bucket.tokens >= 0.0 { Duration::ZERO } else { Duration::from_secs_f64(-bucket.tokens / rate) }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut counts = self.gate.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.total -= 1;
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
    options: SocketOptions,
}

impl Acceptor {
    /// Binds, and takes no connections before [`Acceptor::run`] is polled: who comes while the node starts is refused at once and asks
    /// another node, where it would wait for this one else. An empty host binds every interface.
    ///
    /// # Errors
    /// The host has no address, or the address cannot be bound.
    pub fn bind(host: &str, port: u16, gate: Gate, options: SocketOptions) -> Result<Self, BindError> {
        let address = resolve(host, port)?;
        let listener = bind_to(address, options).map_err(|source| BindError::Bind { address, source })?;
        let local = listener.local_addr().map_err(|source| BindError::Bind { address, source })?;
        Ok(Self { listener, local, gate, options })
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Takes connections from now on.
    fn open(&self) -> io::Result<()> {
        socket2::SockRef::from(&self.listener).listen(self.options.backlog)
    }

    /// Accepts until dropped and hands each connection to `take`.
    ///
    /// # Errors
    /// Only when the listener cannot be registered with the runtime.
    pub async fn run(
        self,
        mut take: impl FnMut(std::net::TcpStream, SocketAddr, ConnectionSlot),
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
                            tracing::error!(%error, "cannot accept connections for now, and tries again every 100 ms; those that are open go on. Where too many files are open, \
                                 raise the limit of open files (ulimit -n) or lower log.open.files.max");
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
            match self.gate.enter(peer.ip()) {
                Err(refused) => tracing::info!(%peer, "connection refused: {refused}"),
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

    #[test]
    fn places_are_counted_and_freed() {
        let ip = |last| IpAddr::from([10, 0, 0, last]);
        let limits = ConnectionLimits {
            connections_max: 3,
            connections_per_ip_max: 2,
            connections_per_ip_overrides: vec![(ip(9), 0)],
            creation_rate_max: u32::MAX,
        };
        let gate = Gate::new(limits);
        let one = gate.enter(ip(1)).expect("room");
        let _two = gate.enter(ip(1)).expect("room");
        assert_eq!(gate.enter(ip(1)).err(), Some(Refused::PerIp(2)));
        assert_eq!(gate.enter(ip(9)).err(), Some(Refused::PerIp(0)));
        let _three = gate.enter(ip(2)).expect("room");
        assert_eq!(gate.enter(ip(3)).err(), Some(Refused::Total(3)));
        drop(one);
        assert_eq!(gate.connections(), 2);
        assert!(gate.enter(ip(1)).is_ok());
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
