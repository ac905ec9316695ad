//! Connections on their way to the worker that serves them.

use barnabas_base::Text;
use barnabas_net::{ConnectionSlot, Detached, FrameReader};
use barnabas_sasl::exchange::Authenticated;
use barnabas_telemetry::Software;
use std::net::SocketAddr;

/// An accepted connection on its way to the worker that will serve it; with TLS, after the handshake.
#[derive(Debug)]
pub struct NewConnection {
    pub stream: Detached,
    /// The user whom the certificate names that the client showed, without `User:`.
    pub certified: Option<Text>,
    pub peer: SocketAddr,
    pub listener: usize,
    pub slot: ConnectionSlot,
    /// How far reading has come, if another worker served it before.
    pub reader: Option<FrameReader>,
    /// How many requests in a row must belong elsewhere before it is moved.
    pub patience: u32,
    /// Who has authenticated, if another worker served it before.
    pub login: Option<LoggedIn>,
    /// As ApiVersions named it, if another worker served it before.
    pub software: Option<Software>,
}

/// A client that has authenticated.
#[derive(Debug, Clone)]
pub struct LoggedIn {
    pub authenticated: Authenticated,
    /// When its session ends, in milliseconds of the process's clock; `u64::MAX`: with the connection.
    pub over_ms: u64,
    /// When it last authenticated again.
    pub began_ms: Option<u64>,
}
