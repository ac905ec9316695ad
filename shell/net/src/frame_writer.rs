//! Writes answers: segments by reference, several answers in one `writev`.
//!
//! Holds what has been queued until the socket takes it; copies nothing. An empty writer holds no buffer. With TLS the
//! segments are encrypted into a buffer of the thread (stream.rs), and small ones share a record.

use crate::stream::WriteHalf;
use bytes::{Buf, Bytes};
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::time::Duration;
use tokio::time::timeout;

/// How many segments one system call is given. Linux takes up to 1024 (`UIO_MAXIOV`).
const SEGMENTS_PER_CALL: usize = 64;
/// How often the writer checks a peer that does not read.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Bytes on their way out of one connection.
#[derive(Debug, Default)]
pub struct FrameWriter {
    segments: VecDeque<Bytes>,
    queued_bytes: usize,
}

impl FrameWriter {
    /// Queues one frame: its length, then its segments.
    pub fn queue(&mut self, segments: impl IntoIterator<Item = Bytes>) {
        for segment in segments {
            if !segment.is_empty() {
                self.queued_bytes += segment.len();
                self.segments.push_back(segment);
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    pub fn queued_bytes(&self) -> usize {
        self.queued_bytes
    }

    /// Writes the queue to the socket; returns how many bytes of frames that was, once the queue is empty and nothing
    /// that was encrypted waits.
    ///
    /// # Errors
    /// Whatever the socket says; the connection is lost then.
    pub async fn flush(&mut self, stream: &WriteHalf<'_>) -> io::Result<usize> {
        self.flush_while(stream, |_, _| true).await
    }

    /// As [`FrameWriter::flush`]. While the socket takes nothing, `goes_on` is called before each wait and
    /// twice a second during it, with the time waited and the bytes written since the last call. If it
    /// returns no, the error is `TimedOut`.
    ///
    /// # Errors
    /// Whatever the socket says, or `TimedOut`; the connection is lost then.
    pub async fn flush_while(
        &mut self,
        stream: &WriteHalf<'_>,
        mut goes_on: impl FnMut(Duration, usize) -> bool,
    ) -> io::Result<usize> {
        let queued = self.queued_bytes;
        let (mut written, mut told, mut waited) = (0, 0, Duration::ZERO);
        while !self.segments.is_empty() || stream.has_out() {
            match self.write_some(stream) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if !goes_on(waited, written - std::mem::replace(&mut told, written)) {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                    let asked = barnabas_clock::now();
                    timeout(LOOK_EVERY, stream.writable()).await.unwrap_or(Ok(()))?;
                    waited = barnabas_clock::since(asked);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.segments.capacity() > SEGMENTS_PER_CALL {
            self.segments = VecDeque::new();
        }
        Ok(queued)
    }

    fn write_some(&mut self, stream: &WriteHalf<'_>) -> io::Result<usize> {
        if !stream.is_plain() {
            return self.write_encrypted(stream);
        }
        let stream = stream.tcp();
        let count = if self.segments.len() == 1 {
            stream.try_write(&self.segments[0])?
        } else {
            let mut slices = [IoSlice::new(&[]); SEGMENTS_PER_CALL];
            let used = self.segments.len().min(SEGMENTS_PER_CALL);
            for (slice, segment) in slices.iter_mut().zip(&self.segments) {
                *slice = IoSlice::new(segment);
            }
            stream.try_write_vectored(&slices[..used])?
        };
        self.take(count);
        Ok(count)
    }

    /// Counts what the socket took of the ciphertext.
    fn write_encrypted(&mut self, stream: &WriteHalf<'_>) -> io::Result<usize> {
        let (written, taken) = stream.write_encrypted(&mut self.segments)?;
        self.queued_bytes -= taken;
        if written == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(written) }
    }

    fn take(&mut self, mut count: usize) {
        self.queued_bytes -= count;
        while count > 0 {
            let first = self.segments.front_mut().expect("the socket takes no more than it was given");
            if first.len() > count {
                first.advance(count);
                return;
            }
            count -= first.len();
            self.segments.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stream;
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpStream;

    #[tokio::test]
    async fn peer_that_does_not_read_is_given_up() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("binds");
        let connecting = TcpStream::connect(listener.local_addr().expect("bound"));
        let mut client = Stream::plain(connecting.await.expect("connects"));
        let (_server, _) = listener.accept().await.expect("accepts");
        let mut writer = FrameWriter::default();
        writer.queue([Bytes::from(vec![0; 64 << 20])]);
        let (_, half) = client.split();
        let (mut waits, mut bytes) = (Vec::new(), 0);
        let flushed = writer.flush_while(&half, |waited, written| {
            waits.push(waited);
            bytes += written;
            waits.iter().sum::<Duration>() < Duration::from_secs(1)
        });
        let error = flushed.await.expect_err("nothing is read");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(waits[0], Duration::ZERO);
        assert_eq!(bytes + writer.queued_bytes(), 64 << 20);
    }

    #[tokio::test]
    async fn many_segments_arrive_in_order() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("binds");
        let connecting = TcpStream::connect(listener.local_addr().expect("bound"));
        let mut client = Stream::plain(connecting.await.expect("connects"));
        let (mut server, _) = listener.accept().await.expect("accepts");
        let mut writer = FrameWriter::default();
        let mut expected = Vec::new();
        for number in 0..500u32 {
            let segment = vec![number as u8; number as usize * 13];
            expected.extend_from_slice(&segment);
            writer.queue([Bytes::from(segment)]);
        }
        assert_eq!(writer.queued_bytes(), expected.len());
        let read = async {
            let mut got = vec![0; expected.len()];
            server.read_exact(&mut got).await.expect("reads");
            got
        };
        let (_, half) = client.split();
        let (got, written) = tokio::join!(read, writer.flush(&half));
        assert_eq!(got, expected);
        assert_eq!(written.expect("written"), expected.len());
        assert!(writer.is_empty() && writer.queued_bytes() == 0);
    }
}
