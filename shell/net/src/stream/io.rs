//! A stream as tokio's traits see it, for callers that poll: producers that pipeline, tests.

use super::{Stream, poll_read};
use barnabas_tls::{OUT_PLAIN_MAX, Session, with_out};
use std::io::{ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let Self { tcp, tls } = &mut *self;
        let Some(tls) = tls else { return Pin::new(tcp).poll_read(context, into) };
        let mut session = tls.lock();
        loop {
            let wanted = into.remaining();
            let got = session.receive(wanted, into, |bytes| poll_read(tcp, context, bytes))?;
            if session.has_out() {
                // An error shows at the next write.
                let _ = session.flush(|bytes| tcp.try_write(bytes));
            }
            match got {
                None => return Poll::Pending,
                Some(arrived) if arrived.is_end || arrived.plain > 0 => return Poll::Ready(Ok(())),
                // A record has begun, or it was none with data.
                Some(_) => {}
            }
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let Self { tcp, tls } = &mut *self;
        let Some(tls) = tls else { return Pin::new(tcp).poll_write_vectored(context, slices) };
        let mut session = tls.lock();
        ready!(poll_out(tcp, &mut session, context))?;
        let (taken, written) = with_out(|out| {
            let (mut taken, mut filled) = (0, 0);
            for slice in slices {
                let count = slice.len().min(OUT_PLAIN_MAX - taken);
                if count > 0 {
                    filled += session.encrypt(&slice[..count], &mut out[filled..])?;
                    taken += count;
                }
            }
            // The socket gets it below; until then the session has it.
            session.keep(&out[..filled]);
            Ok::<_, std::io::Error>((taken, session.flush(|bytes| tcp.try_write(bytes))))
        })?;
        match written {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(taken)),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let Self { tcp, tls } = &mut *self;
        match tls {
            None => Pin::new(tcp).poll_flush(context),
            Some(tls) => poll_out(tcp, &mut tls.lock(), context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.say_end();
        Pin::new(&mut self.tcp).poll_shutdown(context)
    }
}

/// Waits until the socket has taken everything that was encrypted.
fn poll_out(tcp: &mut TcpStream, session: &mut Session, context: &mut Context<'_>) -> Poll<Result<()>> {
    while session.has_out() {
        match session.flush(|bytes| tcp.try_write(bytes)) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => ready!(tcp.poll_write_ready(context))?,
            Err(error) => return Poll::Ready(Err(error)),
        }
    }
    Poll::Ready(Ok(()))
}
