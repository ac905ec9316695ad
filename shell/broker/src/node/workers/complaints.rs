//! What peers do wrong, said once a minute for each address and kind, with a count of the rest: their number is theirs
//! to choose.
//!
//! Used by connection.rs and server/listeners.rs, for each connection that is refused, or closed since its peer does
//! not keep to the protocol.

use crate::node::log_rate_limit::LogRateLimit;
use barnabas_config::Listener;
use barnabas_net::{FrameError, HandshakeError, Stranger};
use barnabas_wire::ApiKey;
use std::fmt;
use std::mem::{Discriminant, discriminant};
use std::net::{IpAddr, SocketAddr};

/// What a peer did.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Asked for a connection that it does not get.
    Refused,
    Frame(Discriminant<FrameError>),
    /// Speaks another protocol.
    Stranger(Stranger),
    /// Sent a request without a readable header, or for an API that is not served.
    Header,
    Version(ApiKey),
    Body(ApiKey),
    Unread,
    /// Did not authenticate: by the kind of failure.
    Login(LoginFailure),
    /// Before its first frame.
    Handshake(Discriminant<HandshakeError>),
}

impl From<&HandshakeError> for Cause {
    fn from(error: &HandshakeError) -> Self {
        Self::Handshake(discriminant(error))
    }
}

impl From<&FrameError> for Cause {
    fn from(error: &FrameError) -> Self {
        match error {
            FrameError::Stranger(stranger) => Self::Stranger(*stranger),
            error => Self::Frame(discriminant(error)),
        }
    }
}

/// Why a client did not authenticate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LoginFailure {
    Credentials,
    /// It did not keep to the order of an exchange.
    Order,
    Deadline,
}

/// What was said. See the file's header.
#[derive(Debug, Default)]
pub struct Complaints(LogRateLimit<(IpAddr, Cause)>);

impl Complaints {
    pub fn refused(&self, peer: SocketAddr, what: impl fmt::Display) {
        if let Some(unsaid) =
            self.0.happened(&(peer.ip().to_canonical(), Cause::Refused), barnabas_clock::now())
        {
            tracing::info!(%peer, "connection refused: {what}{unsaid}");
        }
    }

    /// What arrived on a listener is no frame. A client with TLS is named the protocol that the listener speaks.
    pub fn bad_frame(&self, peer: SocketAddr, listener: &Listener, error: &FrameError) {
        let advice = match error {
            FrameError::Stranger(Stranger::Tls) => {
                format!(". Set security.protocol={} at the client", listener.protocol.name())
            }
            _ => String::new(),
        };
        self.closed(peer, Cause::from(error), format_args!("{error}{advice}"));
    }

    pub fn closed(&self, peer: SocketAddr, cause: Cause, what: impl fmt::Display) {
        if let Some(unsaid) = self.0.happened(&(peer.ip().to_canonical(), cause), barnabas_clock::now()) {
            tracing::info!(%peer, "connection closed: {what}{unsaid}");
        }
    }
}
