//! One connection's TLS, without its socket: ciphertext in, plaintext out, and the other way round.
//!
//! rustls' unbuffered connection, driven by hand. Ciphertext is read into a buffer of the thread and decrypted there;
//! the session keeps no more than a record that is not whole yet. What is sent is encrypted from the caller's slices
//! into another buffer of the thread; the session keeps no more than what the socket did not take.
//!
//! Always true:
//! 1. a session that is idle holds no buffer
//! 2. ciphertext leaves in the order in which it was made
//! 3. `incoming` holds no whole record: each was decrypted when it came

mod buffers;
mod machine;
#[cfg(test)]
mod tests;
mod trouble;

use crate::stores::trust;
use buffers::Received;
use bytes::BufMut;
use machine::{Machine, Outcome};
use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::UnbufferedServerConnection;
use rustls::{ClientConfig, CommonState, HandshakeKind, ProtocolVersion, ServerConfig};
use std::io;
use std::sync::Arc;

pub use buffers::{OUT_PLAIN_MAX, with_out};

/// Records and handshake messages that are not whole: more than this is no TLS.
const INCOMING_MAX: usize = 80 << 10;
/// How much a handshake reads at once.
const HANDSHAKE_READ: usize = 16 << 10;

/// Why a session ends, in words for the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SessionError(Arc<str>);

impl SessionError {
    pub fn new(what: impl AsRef<str>) -> Self {
        Self(Arc::from(what.as_ref()))
    }

    fn of(error: &rustls::Error) -> Self {
        Self::new(trouble::words(error, trust::take_refused().as_deref()))
    }
}

impl From<SessionError> for io::Error {
    fn from(error: SessionError) -> Self {
        Self::new(io::ErrorKind::InvalidData, error)
    }
}

enum Side {
    Server(UnbufferedServerConnection),
    Client(UnbufferedClientConnection),
}

impl std::fmt::Debug for Side {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Server(_) => "Server",
            Self::Client(_) => "Client",
        })
    }
}

/// What one read brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrived {
    /// Bytes that came from the socket, or from what was decrypted before.
    pub bytes: usize,
    /// Bytes of plaintext that were handed over.
    pub plain: usize,
    /// The peer has ended the connection.
    pub is_end: bool,
}

/// See the file's header.
#[derive(Debug)]
pub struct Session {
    side: Box<Side>,
    /// The beginning of a record.
    incoming: Vec<u8>,
    /// Decrypted and not handed over.
    plain: Received,
    /// Encrypted and not taken by the socket.
    out: Received,
    is_ended: bool,
    /// After an error rustls is asked nothing more: what it knows of `incoming` does not hold any longer.
    has_failed: bool,
}

impl Session {
    pub(crate) fn server(config: Arc<ServerConfig>) -> Result<Self, SessionError> {
        let connection = UnbufferedServerConnection::new(config);
        Ok(Self::of(Side::Server(connection.map_err(|error| SessionError::of(&error))?)))
    }

    pub(crate) fn client(config: Arc<ClientConfig>, name: ServerName<'static>) -> Result<Self, SessionError> {
        let connection = UnbufferedClientConnection::new(config, name);
        Ok(Self::of(Side::Client(connection.map_err(|error| SessionError::of(&error))?)))
    }

    fn of(side: Side) -> Self {
        let (plain, out) = (Received::default(), Received::default());
        Self { side: Box::new(side), incoming: Vec::new(), plain, out, is_ended: false, has_failed: false }
    }

    fn state(&self) -> &CommonState {
        match &*self.side {
            Side::Server(connection) => connection,
            Side::Client(connection) => connection,
        }
    }

    pub fn is_handshaking(&self) -> bool {
        self.state().is_handshaking()
    }

    /// The certificate that the peer showed and that was verified.
    pub fn peer_certificate(&self) -> Option<&CertificateDer<'static>> {
        self.state().peer_certificates()?.first()
    }

    /// As Java calls it.
    pub fn protocol(&self) -> &'static str {
        match self.state().protocol_version() {
            Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
            Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
            _ => "none",
        }
    }

    pub fn is_resumed(&self) -> bool {
        self.state().handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// What the session holds beside its keys.
    pub fn held_bytes(&self) -> usize {
        self.incoming.len() + self.plain.len() + self.out.len()
    }

    /// Whether the next [`Session::receive`] has something without reading.
    pub fn has_received(&self) -> bool {
        self.plain.len() > 0 || self.is_ended
    }

    /// Whether the socket has to take something.
    pub fn has_out(&self) -> bool {
        self.out.len() > 0
    }

    /// Goes on with the handshake: reads once, then see [`Session::flush`]. `read` puts ciphertext into the slice;
    /// `None`: it has none now. Returns how much came; 0: the peer has ended the connection.
    ///
    /// # Errors
    /// The socket's, or why the handshake fails; then an alert is ready to be flushed.
    pub fn shake(
        &mut self,
        read: impl FnOnce(&mut [u8]) -> io::Result<Option<usize>>,
    ) -> io::Result<Option<usize>> {
        let arrived = self.read(HANDSHAKE_READ, &mut nowhere(), read)?;
        Ok(arrived.map(|arrived| arrived.bytes))
    }

    /// Makes what has to be sent first: a client's greeting.
    ///
    /// # Errors
    /// rustls' own.
    pub fn begin(&mut self) -> Result<(), SessionError> {
        self.process(&mut [], &mut nowhere()).map(drop)
    }

    /// Hands over about `wanted` bytes of plaintext. `read` as in [`Session::shake`]. `None`: nothing has come.
    ///
    /// # Errors
    /// The socket's, or that what came is no TLS.
    pub fn receive(
        &mut self,
        wanted: usize,
        into: &mut impl BufMut,
        read: impl FnOnce(&mut [u8]) -> io::Result<Option<usize>>,
    ) -> io::Result<Option<Arrived>> {
        if self.plain.len() > 0 {
            let plain = self.plain.take(into, wanted);
            return Ok(Some(Arrived { bytes: plain, plain, is_end: false }));
        }
        if self.is_ended {
            return Ok(Some(Arrived { bytes: 0, plain: 0, is_end: true }));
        }
        // What a record adds, so that a frame's last bytes come with the first read.
        self.read(wanted + wanted / 64 + 512, into, read)
    }

    fn read(
        &mut self,
        bytes_max: usize,
        into: &mut impl BufMut,
        read: impl FnOnce(&mut [u8]) -> io::Result<Option<usize>>,
    ) -> io::Result<Option<Arrived>> {
        let begun = self.incoming.len();
        buffers::with_in(begun + bytes_max, |buffer| {
            buffer[..begun].copy_from_slice(&self.incoming);
            let end = buffer.len().min(begun + bytes_max);
            let Some(bytes) = read(&mut buffer[begun..end])? else { return Ok(None) };
            if bytes == 0 {
                self.is_ended = true;
                return Ok(Some(Arrived { bytes, plain: 0, is_end: true }));
            }
            let filled = &mut buffer[..begun + bytes];
            let room = into.remaining_mut();
            let used = self.process(filled, into)?;
            let rest = &filled[used..];
            if rest.len() > INCOMING_MAX {
                self.has_failed = true;
                return Err(SessionError::new("a handshake message is too long").into());
            }
            // Memory that is of no use now goes with it.
            self.incoming = rest.to_vec();
            let plain = room - into.remaining_mut();
            Ok(Some(Arrived { bytes, plain, is_end: self.is_ended && plain == 0 && self.plain.len() == 0 }))
        })
    }

    /// Works on what is in `bytes`; what is not used is the beginning of a record.
    fn process(&mut self, bytes: &mut [u8], into: &mut impl BufMut) -> Result<usize, SessionError> {
        if self.has_failed {
            return Err(SessionError::new("the session has failed before"));
        }
        let Self { side, plain, out, is_ended, has_failed, .. } = self;
        let take = |record: &[u8]| {
            let fits = if plain.len() > 0 { 0 } else { record.len().min(into.remaining_mut()) };
            into.put_slice(&record[..fits]);
            plain.push(&record[fits..]);
        };
        let Outcome { used, result } = match &mut **side {
            Side::Server(connection) => connection.run(bytes, out, take),
            Side::Client(connection) => connection.run(bytes, out, take),
        };
        *has_failed = result.is_err();
        *is_ended |= result.map_err(|error| SessionError::of(&error))?;
        Ok(used)
    }

    /// Gives the socket what it has not taken yet. Returns how much it took.
    ///
    /// # Errors
    /// The socket's; `WouldBlock`: it takes nothing now.
    pub fn flush(&mut self, mut write: impl FnMut(&[u8]) -> io::Result<usize>) -> io::Result<usize> {
        let mut written = 0;
        while self.out.len() > 0 {
            match write(self.out.bytes()) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.out.skip(count);
                    written += count;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && written > 0 => return Ok(written),
                Err(error) => return Err(error),
            }
        }
        Ok(written)
    }

    /// Encrypts `plain` to the front of `into`, which has room for it (see [`with_out`]). Nothing else may wait to be
    /// flushed. Returns the length of the ciphertext.
    ///
    /// # Errors
    /// The session has ended, or its keys are used up.
    pub fn encrypt(&mut self, plain: &[u8], into: &mut [u8]) -> Result<usize, SessionError> {
        if self.has_failed {
            return Err(SessionError::new("the session has failed before"));
        }
        let Self { side, incoming, plain: received, .. } = self;
        let take = |record: &[u8]| received.push(record);
        let encrypted = match &mut **side {
            Side::Server(connection) => connection.encrypt(incoming, take, plain, into),
            Side::Client(connection) => connection.encrypt(incoming, take, plain, into),
        };
        self.has_failed = encrypted.is_err();
        encrypted.map_err(SessionError::new)
    }

    /// Keeps ciphertext that the socket did not take, for the next [`Session::flush`].
    pub fn keep(&mut self, ciphertext: &[u8]) {
        self.out.push(ciphertext);
    }

    /// Tells the peer that nothing more follows; to be flushed.
    pub fn close(&mut self) {
        if self.has_failed {
            return;
        }
        let Self { side, incoming, out, .. } = self;
        match &mut **side {
            Side::Server(connection) => connection.close(incoming, out),
            Side::Client(connection) => connection.close(incoming, out),
        }
    }

    /// A whole handshake between two sessions of this process.
    pub(crate) fn meet(client: &mut Self, server: &mut Self) -> Result<(), SessionError> {
        /// More than any handshake takes.
        const TURNS: usize = 16;
        client.begin()?;
        for _ in 0..TURNS {
            if !client.is_handshaking() && !server.is_handshaking() {
                return Ok(());
            }
            client.pass_to(server)?;
            server.pass_to(client)?;
        }
        Err(SessionError::new("the handshake does not come to an end"))
    }

    fn pass_to(&mut self, other: &mut Self) -> Result<(), SessionError> {
        let mut bytes = std::mem::take(&mut other.incoming);
        bytes.extend_from_slice(self.out.bytes());
        self.out = Received::default();
        let used = other.process(&mut bytes, &mut nowhere())?;
        other.incoming = bytes.split_off(used);
        Ok(())
    }
}

/// Takes nothing: a handshake's plaintext is kept.
fn nowhere() -> bytes::buf::Limit<Vec<u8>> {
    Vec::new().limit(0)
}
