//! What peers do wrong, said once a minute for each address and kind, with a count of the rest: their number is theirs
//! to choose. The count comes a minute later where it has stopped by then ([`Complaints::count`]).
//!
//! Used by connection.rs and server/listeners.rs, for each connection that is refused, or closed since its peer does
//! not keep to the protocol.

use crate::node::log_rate_limit::LogRateLimit;
use barnabas_base::Map;
use barnabas_config::Listener;
use barnabas_net::{FrameError, HandshakeError, Stranger};
use barnabas_wire::ApiKey;
use std::fmt;
use std::mem::{Discriminant, discriminant};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

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

/// An address, and what came from it.
type Key = (IpAddr, Cause);

/// What was said. See the file's header.
#[derive(Debug, Default)]
pub struct Complaints {
    limit: LogRateLimit<Key>,
    /// The last line of each key that has a place of its own there.
    lines: Mutex<Map<Key, String>>,
}

impl Complaints {
    pub fn refused(&self, peer: SocketAddr, what: impl fmt::Display) {
        self.say(peer, Cause::Refused, || format!("connection refused: {what}"));
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
        self.say(peer, cause, || format!("connection closed: {what}"));
    }

    fn say(&self, peer: SocketAddr, cause: Cause, line: impl FnOnce() -> String) {
        let key = (peer.ip().to_canonical(), cause);
        let Some(unsaid) = self.limit.happened(&key, barnabas_clock::now()) else { return };
        let line = line();
        tracing::info!(%peer, "{line}{unsaid}");
        if self.limit.knows(&key) {
            self.lines().insert(key, line);
        }
    }

    /// Says once more what has happened again in the minute since its line, or before the end. To be called now and
    /// then: what has stopped would not be counted otherwise.
    pub fn count(&self, is_end: bool) {
        for line in self.due(is_end, barnabas_clock::now()) {
            tracing::info!("{line}");
        }
    }

    fn due(&self, is_end: bool, now: Instant) -> Vec<String> {
        let due = self.limit.due(is_end, now);
        let mut lines = self.lines();
        let words = due.into_iter().map(|(key, unsaid)| match key {
            Some(key) => {
                let line = lines.get(&key).map_or("connection refused or closed", String::as_str);
                format!("{line}, from {}{unsaid}", key.0)
            }
            None => format!("connections refused or closed, from other addresses{unsaid}"),
        });
        let words = words.collect();
        lines.retain(|key, _| self.limit.knows(key));
        words
    }

    fn lines(&self) -> MutexGuard<'_, Map<Key, String>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn connections_that_were_shed_are_counted() {
        let complaints = Complaints::default();
        let peer = |port| SocketAddr::from(([192, 0, 2, 7], port));
        let start = barnabas_clock::now();
        (0..313).for_each(|port| complaints.refused(peer(port), "the limit is 5"));
        (0..2).for_each(|port| complaints.closed(peer(port), Cause::Header, "no header"));
        assert_eq!(complaints.due(false, start + Duration::from_secs(30)), Vec::<String>::new());
        let mut due = complaints.due(false, start + Duration::from_secs(62));
        due.sort();
        assert_eq!(
            due,
            [
                "connection closed: no header, from 192.0.2.7 (1 more since this was last said)",
                "connection refused: the limit is 5, from 192.0.2.7 (312 more since this was last said)",
            ]
        );
        assert_eq!(complaints.due(true, start + Duration::from_secs(63)), Vec::<String>::new());
    }

    #[test]
    fn lines_of_many_addresses_are_bounded() {
        let complaints = Complaints::default();
        for address in 0..10_000_u32 {
            let peer = SocketAddr::from((std::net::Ipv4Addr::from(address), 1));
            complaints.refused(peer, "the limit is 5");
        }
        assert!(complaints.lines().len() <= 64);
        let due = complaints.due(true, barnabas_clock::now());
        assert_eq!(due.len(), 1, "{due:?}");
        assert!(due[0].starts_with("connections refused or closed, from other addresses ("), "{due:?}");
    }
}
