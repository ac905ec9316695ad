//! The handshake of TLS over a socket, from either side; and what a server does with a peer that has sent nothing
//! yet, or speaks something else.
//!
//! Always true: until the first byte has come, a connection holds no session; a handshake ends within [`HANDSHAKE`] of
//! the moment at which the connection was accepted.

use super::{Detached, Tls, ended};
use crate::FirstRequest;
use barnabas_tls::{ServerTls, Session, SessionError};
use std::io::{Error, ErrorKind, Result};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{timeout, timeout_at};

/// From the moment at which the connection was accepted.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long the first byte may take; TLS clients speak first.
const SILENT: Duration = Duration::from_secs(10);
const SILENT_WHILE_CROWDED: Duration = Duration::from_secs(3);
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The first byte of every handshake (RFC 8446, 5.1).
const HANDSHAKE_RECORD: u8 = 0x16;

/// Why a connection does not get to its first frame.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    /// It went away without a word.
    #[error("the peer closed the connection")]
    Gone,
    #[error("no TLS handshake began within {seconds} s")]
    Silent { seconds: u64 },
    #[error(
        "no TLS handshake began, and its address has as many connections as it may: a new one has its place"
    )]
    GaveWay,
    #[error("the TLS handshake took more than {} s", HANDSHAKE.as_secs())]
    Slow,
    #[error("{0}")]
    Stranger(&'static str),
    #[error("the TLS handshake failed: {0}")]
    Failed(Error),
    #[error("the TLS handshake was done, but {0}")]
    NotAuthenticated(SessionError),
}

/// Sends and reads until the handshake is done. After an error the peer has its alert, if the socket took it.
pub(super) async fn shake(tcp: &TcpStream, session: &mut Session) -> Result<()> {
    loop {
        while session.has_out() {
            match session.flush(|bytes| tcp.try_write(bytes)) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => tcp.writable().await?,
                Err(error) => return Err(error),
            }
        }
        if !session.is_handshaking() {
            return Ok(());
        }
        tcp.readable().await?;
        let read = |bytes: &mut [u8]| match tcp.try_read(bytes) {
            Ok(count) => Ok(Some(count)),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
            Err(error) => Err(error),
        };
        match session.shake(read) {
            Ok(Some(0)) => return Err(ended("the peer closed the connection during the TLS handshake")),
            // Between two messages others have their turn: a signature takes its time.
            Ok(_) => tokio::task::yield_now().await,
            Err(error) => {
                let _ = session.flush(|bytes| tcp.try_write(bytes));
                return Err(error);
            }
        }
    }
}

/// The server's side: waits for the first byte, then shakes hands. Returns the stream, and the user whom the client's
/// certificate names.
///
/// # Errors
/// See [`HandshakeError`].
pub async fn accept(
    tcp: std::net::TcpStream,
    tls: &ServerTls,
    place: &FirstRequest,
    now_s: i64,
) -> std::result::Result<Accepted, HandshakeError> {
    let tcp = TcpStream::from_std(tcp).map_err(HandshakeError::Failed)?;
    let until = (place.accepted_at() + HANDSHAKE).into();
    first_byte(&tcp, place).await?;
    let mut session = tls.accept().map_err(|error| HandshakeError::Failed(error.into()))?;
    let shaken = tokio::select! {
        biased;
        () = place.gave_way() => return Err(HandshakeError::GaveWay),
        shaken = timeout_at(until, shake(&tcp, &mut session)) => shaken,
    };
    match shaken {
        Err(_) => return Err(HandshakeError::Slow),
        Ok(Err(error)) if error.kind() == ErrorKind::ConnectionReset => return Err(HandshakeError::Gone),
        Ok(Err(error)) => return Err(HandshakeError::Failed(error)),
        Ok(Ok(())) => {}
    }
    let principal = tls.principal(&session, now_s).map_err(HandshakeError::NotAuthenticated)?;
    let is_resumed = session.is_resumed();
    let tcp = tcp.into_std().map_err(HandshakeError::Failed)?;
    Ok(Accepted { stream: Detached { tcp, tls: Some(Tls::new(session)) }, principal, is_resumed })
}

/// A connection whose handshake is done.
#[derive(Debug)]
pub struct Accepted {
    pub stream: Detached,
    /// Of the client's certificate; `None`: it showed none.
    pub principal: Option<String>,
    pub is_resumed: bool,
}

async fn first_byte(tcp: &TcpStream, place: &FirstRequest) -> std::result::Result<(), HandshakeError> {
    let begun = place.accepted_at();
    let mut first = [0; 5];
    loop {
        let peeked = tokio::select! {
            biased;
            () = place.gave_way() => return Err(HandshakeError::GaveWay),
            peeked = timeout(LOOK_EVERY, tcp.peek(&mut first)) => peeked,
        };
        match peeked {
            Ok(Ok(0)) => return Err(HandshakeError::Gone),
            Ok(Ok(count)) => return known(&first[..count]),
            Ok(Err(error)) if error.kind() == ErrorKind::ConnectionReset => return Err(HandshakeError::Gone),
            Ok(Err(error)) => return Err(HandshakeError::Failed(error)),
            Err(_) => {}
        }
        let patience = if place.is_crowded() { SILENT_WHILE_CROWDED } else { SILENT };
        if barnabas_clock::since(begun) >= patience {
            return Err(HandshakeError::Silent { seconds: patience.as_secs() });
        }
    }
}

/// Names what is no TLS: rustls would speak of a corrupt message.
fn known(first: &[u8]) -> std::result::Result<(), HandshakeError> {
    let what = match first {
        [HANDSHAKE_RECORD, ..] => return Ok(()),
        // A length below 16 MiB: the first request of a Kafka client.
        [0, ..] => {
            "the peer speaks Kafka's protocol without TLS, and this listener speaks TLS. Set security.protocol=SSL at the client, or \
             SASL_SSL where the listener has SASL"
        }
        [b'G' | b'P' | b'H' | b'D' | b'O' | b'C' | b'T', b'A'..=b'Z', ..] => {
            "the peer speaks HTTP, and this listener speaks Kafka's protocol over TLS. Metrics have an address of their own: \
             metrics.listener"
        }
        [b'S', b'S', b'H', ..] => "the peer speaks SSH, and this listener speaks Kafka's protocol over TLS",
        _ => "the peer does not speak TLS, and this listener does",
    };
    Err(HandshakeError::Stranger(what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_name_the_protocol() {
        assert!(known(&[0x16, 3, 1, 0, 200]).is_ok());
        let named = |first: &[u8]| known(first).expect_err("no TLS").to_string();
        assert!(named(&[0, 0, 0, 40, 0]).contains("security.protocol=SSL"));
        assert!(named(b"GET /").contains("HTTP"));
        assert!(named(b"SSH-2").contains("SSH"));
        assert!(named(&[0x60, 1, 2, 3, 4]).contains("does not speak TLS"));
    }
}
