//! The socket of a peer, with TLS or without: bytes in and out, whatever is spoken. It can be dropped at any await and
//! used again: nothing is lost.

use crate::config::PeerConfig;
use crate::error::BridgeError;
use barnabas_base::MonotonicMs;
use barnabas_net::Stream;
use bytes::{Buf, BytesMut};
use std::future::poll_fn;
use std::io::{ErrorKind, Result as IoResult};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// For connecting, for the login, and for each link.
pub const STEP_TIMEOUT: Duration = Duration::from_secs(15);
/// While work goes on beside, the socket is looked at so often: not for each message that arrives.
pub const NAP: Duration = Duration::from_millis(2);
/// Reads after a nap. What is left is read after the next one: the protocol bounds it anyway.
pub const READS_MAX: usize = 16;
/// What is read at once.
const READ_BYTES: usize = 64 * 1024;
/// For the peer to take what is queued last.
const LAST_WORDS_TIMEOUT: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub struct Wire {
    pub address: String,
    started: Instant,
    stream: Stream,
    /// On its way to the socket.
    out: BytesMut,
    buffer: Vec<u8>,
}

impl Wire {
    /// # Errors
    /// Nothing answers at `address`, or not with the TLS that is wanted.
    pub async fn connect(address: &str, peer: &PeerConfig) -> Result<Self, BridgeError> {
        let protocol = peer.protocol();
        let unreachable =
            |why: String| BridgeError::Unreachable { address: address.to_owned(), why, protocol };
        let late = || format!("no answer within {} s", STEP_TIMEOUT.as_secs());
        let tcp = match timeout(STEP_TIMEOUT, TcpStream::connect(address)).await {
            Ok(connected) => connected.map_err(|error| unreachable(error.to_string()))?,
            Err(_) => return Err(unreachable(late())),
        };
        tcp.set_nodelay(true).map_err(|error| unreachable(error.to_string()))?;
        let stream =
            match timeout(STEP_TIMEOUT, Stream::greet(tcp, host_of(address), peer.tls.as_deref())).await {
                Ok(Ok(stream)) => stream,
                Ok(Err(error)) => {
                    return Err(BridgeError::Tls { address: address.to_owned(), why: error.to_string() });
                }
                Err(_) => return Err(BridgeError::Tls { address: address.to_owned(), why: late() }),
            };
        Ok(Self {
            address: address.to_owned(),
            started: Instant::now(),
            stream,
            out: BytesMut::new(),
            buffer: vec![0; READ_BYTES],
        })
    }

    pub fn now(&self) -> MonotonicMs {
        MonotonicMs(self.started.elapsed().as_millis() as u64)
    }

    pub fn lost(&self, why: impl std::fmt::Display) -> BridgeError {
        BridgeError::Lost { address: self.address.clone(), why: why.to_string() }
    }

    pub fn queue(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Bytes that wait to be written.
    pub fn queued(&self) -> usize {
        self.out.len()
    }

    /// One read, one write that ended, or the deadline. How many bytes [`Self::read`] has then.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn step(&mut self, deadline: MonotonicMs) -> Result<Option<usize>, BridgeError> {
        let deadline = self.started + Duration::from_millis(deadline.0);
        let (stream, out, buffer) = (&mut self.stream, &mut self.out, &mut self.buffer[..]);
        let read = tokio::select! {
            done = poll_fn(|context| poll_both(stream, out, buffer, context)) => done.transpose(),
            () = tokio::time::sleep_until(deadline.into()) => None,
        };
        match read {
            Some(Ok(0)) => Err(self.lost("the peer closed it")),
            Some(Ok(count)) => Ok(Some(count)),
            Some(Err(error)) if error.kind() == ErrorKind::InvalidData => {
                Err(BridgeError::Tls { address: self.address.clone(), why: error.to_string() })
            }
            Some(Err(error)) => Err(self.lost(error)),
            None => Ok(None),
        }
    }

    /// What the last step has read.
    pub fn read(&self, count: usize) -> &[u8] {
        &self.buffer[..count]
    }

    /// The peer still gets what is queued, if it takes it. The connection is over either way.
    pub async fn last_words(&mut self) {
        let _ = timeout(LAST_WORDS_TIMEOUT, self.stream.write_all(&self.out)).await;
    }
}

pub fn host_of(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

/// Writes and reads as far as the socket goes. Ready with the bytes that were read (0: the peer closed), or with
/// `None` once everything is written.
fn poll_both(
    stream: &mut Stream,
    out: &mut BytesMut,
    buffer: &mut [u8],
    context: &mut Context<'_>,
) -> Poll<IoResult<Option<usize>>> {
    let had_output = !out.is_empty();
    while !out.is_empty() {
        match Pin::new(&mut *stream).poll_write(context, out) {
            Poll::Ready(Ok(0)) => return Poll::Ready(Err(ErrorKind::WriteZero.into())),
            Poll::Ready(Ok(count)) => out.advance(count),
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending => break,
        }
    }
    let flushed = Pin::new(&mut *stream).poll_flush(context);
    if let Poll::Ready(Err(error)) = flushed {
        return Poll::Ready(Err(error));
    }
    let mut into = ReadBuf::new(buffer);
    if let Poll::Ready(done) = Pin::new(stream).poll_read(context, &mut into) {
        return Poll::Ready(done.map(|()| Some(into.filled().len())));
    }
    if had_output && out.is_empty() && flushed.is_ready() { Poll::Ready(Ok(None)) } else { Poll::Pending }
}
