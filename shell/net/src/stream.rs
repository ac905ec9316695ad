//! One TCP connection, with TLS on it or without.
//!
//! Without, a read or write is the socket's own: one branch and nothing else. With TLS, a session (shell/tls) stands
//! between the socket and the frames. Both halves of a connection use it, one call at a time; no call waits while it
//! holds it.
//!
//! A read may have to send something (an alert, the answer to a key update). It is given to the socket at once, and
//! what the socket does not take goes out before the next answer.

mod handshake;
mod io;
mod low_water;
#[cfg(test)]
mod tests;

use barnabas_tls::{Arrived, ClientTls, OUT_PLAIN_MAX, ServerTls, Session, with_out};
use bytes::{Buf, BufMut, Bytes};
use handshake::shake;
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io::{Error, ErrorKind, Result};
use std::pin::{Pin, pin};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use tokio::net::{TcpStream, tcp};

pub use handshake::{Accepted, HandshakeError, accept};

/// Smaller segments are copied together, so that they share a record.
const GATHERED_BELOW: usize = 4 << 10;
const RECORD: usize = 16 << 10;
/// How many pieces are encrypted before the socket gets them.
const PIECES: usize = 128;

/// See the file's header.
#[derive(Debug)]
pub struct Stream {
    tcp: TcpStream,
    tls: Option<Tls>,
}

/// A stream on its way to another thread's runtime.
#[derive(Debug)]
pub struct Detached {
    tcp: std::net::TcpStream,
    tls: Option<Tls>,
}

impl Detached {
    pub fn plain(tcp: std::net::TcpStream) -> Self {
        Self { tcp, tls: None }
    }

    /// # Errors
    /// The runtime does not take the socket.
    pub fn attach(self) -> Result<Stream> {
        Ok(Stream { tcp: TcpStream::from_std(self.tcp)?, tls: self.tls })
    }
}

impl Stream {
    pub fn plain(tcp: TcpStream) -> Self {
        Self { tcp, tls: None }
    }

    /// Greets `host` at the other end of `tcp`, with TLS if it is given. The caller bounds the time.
    ///
    /// # Errors
    /// The socket's, or why the handshake failed (`InvalidData`).
    pub async fn greet(tcp: TcpStream, host: &str, tls: Option<&ClientTls>) -> Result<Self> {
        let Some(tls) = tls else { return Ok(Self::plain(tcp)) };
        let mut session = tls.connect(host)?;
        session.begin()?;
        shake(&tcp, &mut session).await?;
        Ok(Self { tcp, tls: Some(Tls::new(session)) })
    }

    /// The server's side of [`Self::greet`]. The caller bounds the time, and how many of these there are: connections
    /// for Kafka's protocol come by [`accept`], which does both.
    ///
    /// # Errors
    /// The socket's, or why the handshake failed (`InvalidData`).
    pub async fn welcome(tcp: TcpStream, tls: &ServerTls) -> Result<Self> {
        let mut session = tls.accept()?;
        shake(&tcp, &mut session).await?;
        Ok(Self { tcp, tls: Some(Tls::new(session)) })
    }

    pub fn tcp(&self) -> &TcpStream {
        &self.tcp
    }

    /// The two directions, for one task.
    pub fn split(&mut self) -> (ReadHalf<'_>, WriteHalf<'_>) {
        let (read, write) = self.tcp.split();
        let tls = self.tls.as_ref();
        (ReadHalf { tcp: read, tls }, WriteHalf { tcp: write, tls })
    }

    /// # Errors
    /// The runtime does not give the socket back.
    pub fn detach(self) -> Result<Detached> {
        Ok(Detached { tcp: self.tcp.into_std()?, tls: self.tls })
    }

    /// Tells the peer, as far as the socket takes it at once, that nothing more follows. TCP says the same
    /// afterwards; TLS peers distinguish it from a connection that was cut.
    pub fn say_end(&self) {
        let Some(tls) = &self.tls else { return };
        let mut session = tls.lock();
        session.close();
        // The connection ends whether or not the peer learns why.
        let _ = session.flush(|bytes| self.tcp.try_write(bytes));
    }
}

/// A session that both halves of a connection use.
#[derive(Debug)]
struct Tls(Box<Mutex<Session>>);

impl Tls {
    fn new(session: Session) -> Self {
        Self(Box::new(Mutex::new(session)))
    }

    fn lock(&self) -> MutexGuard<'_, Session> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The incoming direction.
#[derive(Debug)]
pub struct ReadHalf<'a> {
    tcp: tcp::ReadHalf<'a>,
    tls: Option<&'a Tls>,
}

impl ReadHalf<'_> {
    /// Waits until there is something to read.
    pub(crate) async fn readable(&self) -> Result<()> {
        if self.tls.is_some_and(|tls| tls.lock().has_received()) {
            return Ok(());
        }
        self.tcp.readable().await
    }

    pub(crate) fn is_plain(&self) -> bool {
        self.tls.is_none()
    }

    /// From now on the socket wakes its reader once `bytes` have arrived, or no more can, or the peer has ended.
    /// Returns whether the system takes it.
    pub(crate) fn wake_at(&self, bytes: usize) -> bool {
        low_water::set(self.tcp.as_ref(), bytes)
    }

    /// What TLS holds of bytes that have come or have to go.
    pub(crate) fn held_bytes(&self) -> usize {
        self.tls.map_or(0, |tls| tls.lock().held_bytes())
    }

    /// Reads once; `None` if nothing has arrived. It uses `poll_read`, not `try_read`: only `poll_read` takes a read
    /// that did not fill the buffer as the end of the data, which saves a second read that would find nothing.
    pub(crate) async fn read_once(&mut self, buffer: &mut impl BufMut) -> Option<Result<Arrived>> {
        let Some(tls) = self.tls else {
            let mut reading = pin!(self.tcp.read_buf(buffer));
            return poll_fn(|context| match reading.as_mut().poll(context) {
                Poll::Ready(done) => Poll::Ready(Some(done.map(of_socket))),
                Poll::Pending => Poll::Ready(None),
            })
            .await;
        };
        poll_fn(|context| {
            let mut session = tls.lock();
            let wanted = buffer.remaining_mut();
            let got = session.receive(wanted, buffer, |bytes| poll_read(&mut self.tcp, context, bytes));
            if session.has_out() {
                // What is left goes out before the next answer; an error shows there.
                let _ = session.flush(|bytes| self.tcp.as_ref().try_write(bytes));
            }
            Poll::Ready(got.transpose())
        })
        .await
    }
}

fn of_socket(bytes: usize) -> Arrived {
    Arrived { bytes, plain: bytes, is_end: bytes == 0 }
}

/// As [`Session::receive`] wants it: `None` where the socket has nothing, and the task is woken once it has.
fn poll_read(
    tcp: &mut (impl AsyncRead + Unpin),
    context: &mut Context<'_>,
    bytes: &mut [u8],
) -> Result<Option<usize>> {
    let mut into = ReadBuf::new(bytes);
    match Pin::new(tcp).poll_read(context, &mut into) {
        Poll::Ready(done) => done.map(|()| Some(into.filled().len())),
        Poll::Pending => Ok(None),
    }
}

/// The outgoing direction.
#[derive(Debug)]
pub struct WriteHalf<'a> {
    tcp: tcp::WriteHalf<'a>,
    tls: Option<&'a Tls>,
}

impl WriteHalf<'_> {
    /// Whether something that was encrypted before waits for the socket.
    pub fn has_out(&self) -> bool {
        self.tls.is_some_and(|tls| tls.lock().has_out())
    }

    pub(crate) fn is_plain(&self) -> bool {
        self.tls.is_none()
    }

    pub(crate) fn tcp(&self) -> &tcp::WriteHalf<'_> {
        &self.tcp
    }

    pub(crate) async fn writable(&self) -> Result<()> {
        self.tcp.writable().await
    }

    /// With TLS: encrypts from the front of `segments` and gives the socket what it takes; the rest is kept. Returns
    /// the bytes that the socket took, and those that are gone from `segments`.
    pub(crate) fn write_encrypted(&self, segments: &mut VecDeque<Bytes>) -> Result<(usize, usize)> {
        let tls = self.tls.expect("a connection with TLS");
        let write = |bytes: &[u8]| self.tcp.try_write(bytes);
        let mut session = tls.lock();
        if session.has_out() {
            return Ok((session.flush(write)?, 0));
        }
        with_out(|out| {
            let (mut filled, mut taken) = (0, 0);
            for _ in 0..PIECES {
                let count = encrypt_front(&mut session, segments, OUT_PLAIN_MAX - taken, out, &mut filled)?;
                if count == 0 {
                    break;
                }
                taken += count;
            }
            let written = match write(&out[..filled]) {
                Ok(written) => written,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => 0,
                Err(error) => return Err(error),
            };
            session.keep(&out[written..filled]);
            Ok((written, taken))
        })
    }
}

/// Encrypts one piece of at most `room` bytes. Returns how much of `segments` it took; 0: there is nothing, or no room.
fn encrypt_front(
    session: &mut Session,
    segments: &mut VecDeque<Bytes>,
    room: usize,
    out: &mut [u8],
    filled: &mut usize,
) -> Result<usize> {
    let Some(front) = segments.front() else { return Ok(0) };
    if room == 0 {
        return Ok(0);
    }
    let is_gathered = |segment: &Bytes| segment.len() < GATHERED_BELOW;
    if segments.len() > 1 && is_gathered(front) {
        let mut record = [0u8; RECORD];
        let (mut count, most) = (0, RECORD.min(room));
        while let Some(next) = segments.front()
            && is_gathered(next)
            && count + next.len() <= most
        {
            record[count..count + next.len()].copy_from_slice(next);
            count += next.len();
            segments.pop_front();
        }
        if count > 0 {
            *filled += session.encrypt(&record[..count], &mut out[*filled..])?;
            return Ok(count);
        }
    }
    let Some(front) = segments.front_mut() else { return Ok(0) };
    let count = front.len().min(room);
    *filled += session.encrypt(&front[..count], &mut out[*filled..])?;
    front.advance(count);
    if front.is_empty() {
        segments.pop_front();
    }
    Ok(count)
}

fn ended(what: &str) -> Error {
    Error::new(ErrorKind::UnexpectedEof, what.to_owned())
}
