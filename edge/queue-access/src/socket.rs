//! A connection's socket: bytes go out as far as it takes them, and come in as they arrive.
//!
//! Used by edge/queues/src/connection.rs and edge/mq-queues/src/connection.rs.

use barnabas_net::Stream;
use bytes::{Buf, BytesMut};
use std::future::poll_fn;
use std::io::{Error, ErrorKind};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::timeout;

/// For what is left to be written when the connection has ended.
const LAST_WORDS_WITHIN: Duration = Duration::from_millis(500);

/// What is read at once.
const READ_BYTES: usize = 16 * 1024;

/// See the file's header.
#[derive(Debug)]
pub struct Socket {
    stream: Stream,
    out: BytesMut,
}

impl Socket {
    pub fn new(stream: Stream) -> Self {
        Self { stream, out: BytesMut::new() }
    }

    /// Bytes that are to be written.
    pub fn queue(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Bytes that are not written yet.
    pub fn queued(&self) -> usize {
        self.out.len()
    }

    /// Writes and reads as far as the socket goes. Returns when something was read, which `take` has, or when
    /// everything is written.
    ///
    /// # Errors
    /// The socket's, [`ErrorKind::UnexpectedEof`] where the peer has closed it; and those of `take`.
    pub async fn go_on<E: From<Error>>(
        &mut self,
        wants_input: bool,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        poll_fn(|context| self.poll_both(wants_input, &mut take, context)).await
    }

    fn poll_both<E: From<Error>>(
        &mut self,
        wants_input: bool,
        take: &mut impl FnMut(&[u8]) -> Result<(), E>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), E>> {
        let had_output = !self.out.is_empty();
        while !self.out.is_empty() {
            match Pin::new(&mut self.stream).poll_write(context, &self.out) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(Error::from(ErrorKind::WriteZero).into())),
                Poll::Ready(Ok(count)) => self.out.advance(count),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
                Poll::Pending => break,
            }
        }
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        if let Poll::Ready(Err(error)) = flushed {
            return Poll::Ready(Err(error.into()));
        }
        if wants_input {
            // On the stack: an idle connection has no buffer. Not filled beforehand: this runs for each answer, too.
            let mut buffer = [MaybeUninit::uninit(); READ_BYTES];
            let mut into = ReadBuf::uninit(&mut buffer);
            if let Poll::Ready(done) = Pin::new(&mut self.stream).poll_read(context, &mut into) {
                let closed = || Error::new(ErrorKind::UnexpectedEof, "the peer closed it");
                return Poll::Ready(match done {
                    Ok(()) if into.filled().is_empty() => Err(closed().into()),
                    Ok(()) => take(into.filled()),
                    Err(error) => Err(error.into()),
                });
            }
        }
        let is_done = had_output && self.out.is_empty() && flushed.is_ready();
        if is_done { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    /// Writes what is left, for a moment, and ends the stream.
    pub async fn end(&mut self) {
        // The connection is over either way.
        let _ = timeout(LAST_WORDS_WITHIN, async {
            self.stream.write_all(&self.out).await?;
            self.stream.flush().await
        })
        .await;
        self.stream.say_end();
    }
}
