//! Bodies: read within a limit and a time, written at once or piece by piece.

use super::problem::Problem;
use bytes::{Bytes, BytesMut};
use hyper::StatusCode;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Of a request that is read as a whole.
pub const BODY_BYTES_MAX: usize = 1024 * 1024;
/// Between two pieces of a body, and for the whole of one.
const PIECE_WITHIN: Duration = Duration::from_secs(10);
const BODY_WITHIN: Duration = Duration::from_secs(30);
/// What is still taken of a body that is refused: a close over unread bytes would reset the connection before the
/// answer is read.
const DRAINED_BYTES_MAX: usize = 8 * 1024 * 1024;
const DRAINED_WITHIN: Duration = Duration::from_secs(2);

/// What goes out.
#[derive(Debug)]
pub enum Outgoing {
    Whole(Option<Bytes>),
    /// The sender is bounded: who writes waits for the client to read.
    Pieces(mpsc::Receiver<Bytes>),
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(body) => Poll::Ready(body.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Pieces(pieces) => {
                pieces.poll_recv(cx).map(|piece| piece.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(body) => SizeHint::with_exact(body.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Pieces(_) => SizeHint::default(),
        }
    }
}

/// The next piece of a body, which must come `within` this time; `None` at its end.
///
/// # Errors
/// It does not come in time, or the connection ends.
pub async fn next_piece(body: &mut Incoming, within: Duration) -> Result<Option<Bytes>, Problem> {
    loop {
        let frame = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx));
        match timeout(within, frame).await {
            Err(_) => return Err(too_slow(within)),
            Ok(None) => return Ok(None),
            Ok(Some(Err(error))) => return Err(Problem::bad(format!("the body cannot be read: {error}"))),
            Ok(Some(Ok(frame))) => match frame.into_data() {
                Ok(piece) => return Ok(Some(piece)),
                // Trailers say nothing here.
                Err(_) => continue,
            },
        }
    }
}

/// Reads over what is left of a body that nothing else reads.
pub async fn drain(body: &mut Incoming) {
    let reading = async {
        let mut bytes = 0;
        while bytes < DRAINED_BYTES_MAX {
            match next_piece(body, DRAINED_WITHIN).await {
                Ok(Some(piece)) => bytes += piece.len(),
                Ok(None) | Err(_) => break,
            }
        }
    };
    // A client that goes on sending for longer gets a reset.
    let _ = timeout(DRAINED_WITHIN, reading).await;
}

/// A whole body of at most [`BODY_BYTES_MAX`].
///
/// # Errors
/// It is larger, or too slow.
pub async fn read(body: &mut Incoming) -> Result<Bytes, Problem> {
    if body.size_hint().lower() > BODY_BYTES_MAX as u64 {
        return Err(too_large());
    }
    let reading = async {
        let mut whole = BytesMut::new();
        while let Some(piece) = next_piece(body, PIECE_WITHIN).await? {
            if whole.len() + piece.len() > BODY_BYTES_MAX {
                return Err(too_large());
            }
            whole.extend_from_slice(&piece);
        }
        Ok(whole.freeze())
    };
    timeout(BODY_WITHIN, reading).await.unwrap_or_else(|_| Err(too_slow(BODY_WITHIN)))
}

fn too_large() -> Problem {
    let detail = format!("the body is larger than {BODY_BYTES_MAX} bytes");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
}

fn too_slow(within: Duration) -> Problem {
    let detail = format!("the body did not come within {} s", within.as_secs());
    Problem::new(StatusCode::REQUEST_TIMEOUT, detail)
}
