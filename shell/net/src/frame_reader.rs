//! Reads requests: a 4-byte length, then that many bytes; hands each out as one slice of the buffer it arrived in.
//!
//! How much is read at once follows what the connection sends: the read size doubles when a read fills it and falls when
//! little comes. Several small frames that arrive together share one buffer and one system call.
//!
//! Always true:
//! 1. the buffer's capacity ≤ twice the bytes that have arrived + the read size, whatever a length says
//! 2. between requests, with nothing half-read, there is no buffer
//! 3. a length that is negative or above the limit is an error before a byte of its body is kept

use crate::Claim;
use bytes::{Buf, Bytes, BytesMut};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::task::Poll;
use tokio::io::AsyncReadExt;
use tokio::net::tcp::ReadHalf;

const READ_BYTES_MIN: usize = 4 * 1024;
const READ_BYTES_MAX: usize = 256 * 1024;

/// Why no further frame can be read. The connection is to be closed.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    #[error("a frame of {length} bytes was announced; socket.request.max.bytes allows {max}")]
    TooLarge { length: i32, max: usize },
    #[error("a frame of negative length {length} was announced; this is not the Kafka protocol")]
    Negative { length: i32 },
    #[error("the connection ended in the middle of a frame: {got} of {expected} bytes")]
    Truncated { got: usize, expected: usize },
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The incoming side of one connection.
#[derive(Debug)]
pub struct FrameReader {
    buffer: BytesMut,
    claim: Claim,
    frame_bytes_max: usize,
    read_bytes: usize,
}

impl FrameReader {
    pub fn new(claim: Claim, frame_bytes_max: usize) -> Self {
        Self { buffer: BytesMut::new(), claim, frame_bytes_max, read_bytes: READ_BYTES_MIN }
    }

    /// The next frame without its length, and its share of the budget. `None` when the peer has closed between frames.
    ///
    /// May be dropped while it waits: nothing is lost.
    ///
    /// # Errors
    /// See [`FrameError`]; after one, the connection cannot go on.
    pub async fn next(&mut self, stream: &mut ReadHalf<'_>) -> Result<Option<(Bytes, Claim)>, FrameError> {
        loop {
            if let Some(frame) = self.take_frame()? {
                return Ok(Some(frame));
            }
            if self.buffer.is_empty() {
                self.buffer = BytesMut::new();
                // Dropping what was split off gives back what no frame took along.
                drop(self.claim.split(u64::MAX));
            }
            stream.readable().await?;
            self.make_room().await?;
            match read_once(stream, &mut self.buffer).await {
                // Nothing came, or tokio lets this task read no more in this turn: then the socket is still readable, and going
                // round again without giving the turn away would never end.
                None => tokio::task::coop::consume_budget().await,
                Some(Ok(0)) if self.buffer.is_empty() => return Ok(None),
                Some(Ok(0)) => return Err(self.truncated()),
                Some(Ok(count)) => self.adapt(count),
                Some(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Some(Err(error)) => return Err(error.into()),
            }
        }
    }

    /// A frame that has already arrived, if there is one.
    fn take_frame(&mut self) -> Result<Option<(Bytes, Claim)>, FrameError> {
        let Some(length) = self.announced()? else { return Ok(None) };
        if self.buffer.len() < 4 + length {
            return Ok(None);
        }
        self.buffer.advance(4);
        let frame = self.buffer.split_to(length).freeze();
        let claim = self.claim.split(4 + length as u64);
        Ok(Some((frame, claim)))
    }

    /// Whether nothing is half-read: the connection may be handed to somebody else.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    fn announced(&self) -> Result<Option<usize>, FrameError> {
        let Some(word) = self.buffer.first_chunk::<4>() else { return Ok(None) };
        let length = i32::from_be_bytes(*word);
        match usize::try_from(length) {
            Err(_) => Err(FrameError::Negative { length }),
            Ok(size) if size > self.frame_bytes_max => {
                Err(FrameError::TooLarge { length, max: self.frame_bytes_max })
            }
            Ok(size) => Ok(Some(size)),
        }
    }

    /// Makes room for one read, after the budget has agreed to it.
    async fn make_room(&mut self) -> Result<(), FrameError> {
        let held = self.buffer.len();
        let missing = self.announced()?.map_or(0, |length| (4 + length).saturating_sub(held));
        // At least the read size; what is missing of the frame as far as doubling reaches.
        let wanted = missing.clamp(self.read_bytes, self.read_bytes.max(held));
        self.claim.grow_to((held + wanted) as u64).await;
        self.buffer.reserve(wanted);
        Ok(())
    }

    fn adapt(&mut self, count: usize) {
        if count >= self.read_bytes {
            self.read_bytes = (self.read_bytes * 2).min(READ_BYTES_MAX);
        } else if count < self.read_bytes / 4 {
            self.read_bytes = (self.read_bytes / 2).max(READ_BYTES_MIN);
        }
    }

    fn truncated(&self) -> FrameError {
        let announced = self.announced().ok().flatten().unwrap_or(0);
        FrameError::Truncated { got: self.buffer.len(), expected: announced + 4 }
    }
}

/// Reads once; `None` where nothing has come. Through `poll_read` and not `try_read`: it alone takes a read that did not fill
/// the buffer for the end of what is there, which saves the second read that would find nothing.
async fn read_once(stream: &mut ReadHalf<'_>, buffer: &mut BytesMut) -> Option<io::Result<usize>> {
    let mut reading = pin!(stream.read_buf(buffer));
    poll_fn(|context| match reading.as_mut().poll(context) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

#[cfg(test)]
mod tests;
