//! Accepts connections and sets their sockets up.
//!
//! The gate decides which connections are accepted (gate.rs), and before it the quotas on their rate
//! ([`CreationQuotas`]). Running out of descriptors pauses accepting instead of spinning on the error (Kafka logged it
//! 32,495 times in seconds, PEER-BASELINE e).

mod held;

use crate::gate::{ConnectionSlot, Entrance, Gate, Refused};
use held::Held;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};

/// Pause between two lines that name the same shortage.
const SAID_AGAIN: Duration = Duration::from_secs(60);

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
    #[error("cannot listen on {address}: {source}. {} (key listeners)", advice(source.kind()))]
    Bind { address: SocketAddr, source: io::Error },
}

/// What the operator looks at, by the kind of error.
fn advice(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::AddrNotAvailable => {
            "No interface of this machine has this address. Listen on one that it has, or leave the host empty for all \
             of them; the address that clients use belongs into advertised.listeners"
        }
        io::ErrorKind::PermissionDenied => "Ports below 1024 need the capability CAP_NET_BIND_SERVICE",
        _ => "Is another program using this port?",
    }
}

/// Quotas on the new connections of one listener.
pub trait CreationQuotas {
    /// Counts a connection. Returns how long it waits, and those behind it.
    fn arrive(&mut self) -> Duration;

    /// Counts it for its address. Returns whether the address has a quota.
    ///
    /// # Errors
    /// It is one too many for its address.
    fn admit(&mut self, ip: IpAddr) -> Result<bool, OverQuota>;
}

/// An address has made more connections than its quota allows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OverQuota {
    pub per_second_max: f64,
    /// Until the connection is closed.
    pub wait_ms: i64,
}

/// No quotas.
#[derive(Debug, Clone, Copy)]
pub struct Unlimited;

impl CreationQuotas for Unlimited {
    fn arrive(&mut self) -> Duration {
        Duration::ZERO
    }

    fn admit(&mut self, _: IpAddr) -> Result<bool, OverQuota> {
        Ok(false)
    }
}

/// One bound listener.
#[derive(Debug)]
pub struct Acceptor {
    listener: std::net::TcpListener,
    local: SocketAddr,
    gate: Gate,
    entrance: Entrance,
    /// So many connections over the quota of their address are kept open until their time is over.
    held_max: usize,
    options: SocketOptions,
}

impl Acceptor {
    /// Binds the address, and takes no connections before [`Acceptor::listen`]. Until then a connect is refused, so
    /// that the client tries another node at once instead of waiting. An empty host binds every interface.
    ///
    /// # Errors
    /// The host has no address, or the address cannot be bound.
    pub fn bind(host: &str, port: u16, gate: Gate, options: SocketOptions) -> Result<Self, BindError> {
        let address = resolve(host, port)?;
        let listener = bind_to(address, options).map_err(|source| BindError::Bind { address, source })?;
        let local = listener.local_addr().map_err(|source| BindError::Bind { address, source })?;
        Ok(Self {
            listener,
            local,
            gate,
            entrance: Entrance { listener: 0, is_reserved: false },
            held_max: 0,
            options,
        })
    }

    /// Which of the node's listeners it is.
    #[must_use]
    pub fn entrance(mut self, entrance: Entrance) -> Self {
        self.entrance = entrance;
        self
    }

    /// Descriptors for connections over the quota of their address.
    #[must_use]
    pub fn holding(mut self, held_max: usize) -> Self {
        self.held_max = held_max;
        self
    }

    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The kernel takes connections from now on; they wait for [`Acceptor::run`].
    ///
    /// # Errors
    /// The kernel's.
    pub fn listen(&self) -> io::Result<()> {
        socket2::SockRef::from(&self.listener).listen(self.options.backlog)
    }

    /// Accepts until dropped and hands each connection to `take`, or to `refuse` and closes it. [`Acceptor::listen`]
    /// comes before.
    ///
    /// # Errors
    /// Only when the listener cannot be registered with the runtime.
    pub async fn run(
        self,
        mut quotas: impl CreationQuotas,
        mut take: impl FnMut(std::net::TcpStream, SocketAddr, ConnectionSlot),
        mut refuse: impl FnMut(SocketAddr, Refused),
    ) -> io::Result<()> {
        let listener = TcpListener::from_std(self.listener)?;
        let mut exhausted: Option<Instant> = None;
        let mut held = Held::new(self.held_max);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = held.due() => {
                    held.close_due(barnabas_clock::now());
                    continue;
                }
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    if is_exhaustion(&error) {
                        // It comes and goes with each connection that is closed.
                        if exhausted.is_none_or(|said| barnabas_clock::since(said) >= SAID_AGAIN) {
                            tracing::error!(%error, "connections cannot be accepted; retrying every 100 \
                                ms. Open connections are not affected. If too many files are open, raise \
                                the limit of open files (ulimit -n) or lower log.open.files.max");
                            exhausted = Some(barnabas_clock::now());
                        }
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                    continue;
                }
            };
            let wait = quotas.arrive();
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
            let entered = match quotas.admit(peer.ip()) {
                Ok(false) => self.gate.enter(peer.ip(), self.entrance),
                Ok(true) => self.gate.enter_by_quota(peer.ip(), self.entrance),
                Err(OverQuota { per_second_max, wait_ms }) => {
                    let wait = Duration::from_millis(wait_ms.unsigned_abs());
                    held.hold(stream, barnabas_clock::now() + wait);
                    refuse(peer, Refused::Quota { per_second_max, wait_ms });
                    continue;
                }
            };
            match entered {
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
    use crate::gate::ConnectionLimits;

    #[test]
    fn a_port_in_use_is_named() {
        let options = SocketOptions { backlog: 5, send_buffer_bytes: None, receive_buffer_bytes: None };
        let gate = Gate::new(ConnectionLimits::default());
        let first = Acceptor::bind("127.0.0.1", 0, gate.clone(), options).expect("binds");
        first.listen().expect("listens");
        let error =
            Acceptor::bind("127.0.0.1", first.local_addr().port(), gate, options).expect_err("in use");
        assert!(error.to_string().contains("listeners"), "{error}");
    }
}
