//! Reads requests: a 4-byte length, then that many bytes; hands each out as one slice of the buffer it arrived in.
//!
//! How much is read at once follows what the connection sends: the read size doubles when a read fills it and falls
//! when little comes. Several small frames that arrive together share one buffer and one system call. A large frame
//! gets a buffer of its own, and is moved only as that one grows: its length is believed as far as the connection has
//! lately sent such frames in full, and reading stops where it ends. Buffers go round (spare_buffers.rs).
//!
//! Of the budget a frame claims what has arrived and what the next read may bring. A frame that a client has begun must
//! go on (pace.rs), so that what it holds comes back. So must a connection that has sent no request yet, so that its
//! place does.
//!
//! Clients that have not authenticated read large frames in turns ([`FrameReader::in_turns`]): thousands of them that
//! send at once do not hold up those that have.
//!
//! Always true:
//! 1. room is claimed for at most the bytes that have arrived + the read size, or for the size of the
//!    connection's recent frames (at most [`EXPECTED_BYTES_MAX`]), whatever a length field says
//! 2. the buffer is at most four times the claim; its untouched pages take no memory
//! 3. between requests, with nothing half-read, there is no buffer
//! 4. a length that is negative or above the limit is an error before a byte of its body is kept
//! 5. a connection reads at most [`TURN_BYTES`] and one read more before the other ones of its thread have a turn
//! 6. of the connections of a thread that read in turns, [`IN_TURN`] at most make one read beyond the first bytes of a
//!    frame before the other ones have a turn

mod stranger;

pub use stranger::Stranger;

use crate::pace::Pace;
use crate::stream::ReadHalf;
use crate::{Claim, FirstRequest, Standing, spare_buffers};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

const READ_BYTES_MIN: usize = 4 * 1024;
const READ_BYTES_MAX: usize = 256 * 1024;
/// How much room is made for a frame before it arrives. More than the largest request of Kafka's producers by default.
const EXPECTED_BYTES_MAX: usize = 2 << 20;
/// Frames of this size or more get a buffer of their own. Copying what was read beyond a smaller frame costs
/// less than a read.
const ALONE_BYTES_MIN: usize = 128 * 1024;

/// With TLS, the socket wakes its reader for a large frame once so much has arrived, not for each segment.
const WAKE_BYTES: Range<usize> = 32 * 1024..128 * 1024;

/// A buffer of so much is not replaced by a larger one, but grows: none of this size is kept for reuse.
const MOVED_BYTES_MIN: usize = 8 << 20;
/// What one connection reads before others have their turn, though its socket has more.
const TURN_BYTES: usize = 256 * 1024;

/// How many of those that read in turns do so before others go on.
const IN_TURN: usize = 2;

thread_local! {
    static TURNS: Arc<Semaphore> = Arc::new(Semaphore::new(IN_TURN));
}

/// Fetch: its sender may be a follower, for whom producers wait.
const FETCH: i16 = 1;
/// A follower's first Fetch, which names all its partitions. Its next ones name what changed.
const FETCH_BYTES_MAX: usize = 1 << 20;
/// Larger frames count as a client's. The limit fits a first Fetch of tens of thousands of partitions.
const REPLICATION_BYTES_MAX: usize = FETCH_BYTES_MAX;
/// How long the first request may take to come; Kafka's clients send one as soon as they are connected.
const FIRST: Duration = Duration::from_secs(30);
const FIRST_WHILE_CROWDED: Duration = Duration::from_secs(3);
/// A first request of which more is here is on its way, at its own pace.
const FIRST_BYTES_MAX: usize = 1024;
/// How often the reader checks a frame that waits for its sender.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Why no further frame can be read. The connection is to be closed.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    #[error(
        "a frame of {length} bytes was announced; socket.request.max.bytes, or before authentication sasl.server.max.receive.size, allows {max}"
    )]
    TooLarge { length: i32, max: usize },
    #[error("a frame of negative length {length} was announced; this is not the Kafka protocol")]
    Negative { length: i32 },
    #[error("{0}")]
    Stranger(Stranger),
    #[error("the connection ended in the middle of a frame: {got} of {expected} bytes")]
    Truncated { got: usize, expected: usize },
    #[error("no request came within {seconds} s, only {got} bytes{}", if *.is_crowded { ", and there are hardly connections left for others" } else { "" })]
    NoRequest { got: usize, seconds: u64, is_crowded: bool },
    #[error(
        "no request came, only {got} bytes, and its address has as many connections as it may: a new one has its place"
    )]
    GaveWay { got: usize },
    #[error("a frame stalled: {got} of {expected} bytes have arrived, {late} of them in the last {seconds} s{}", if *.is_pressed { ", and others wait for the memory that it holds" } else { "" })]
    Stalled { got: usize, expected: usize, late: usize, seconds: u64, is_pressed: bool },
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Requirements on a client.
#[derive(Debug)]
struct ClientPace {
    place: FirstRequest,
    /// Until the first request is here: how long it was waited for.
    first: Option<Duration>,
    frame: Pace,
}

/// The incoming side of one connection.
#[derive(Debug)]
pub struct FrameReader {
    buffer: BytesMut,
    /// What the buffer was made with.
    made_bytes: usize,
    claim: Claim,
    frame_bytes_max: usize,
    read_bytes: usize,
    /// What frames have lately been like, with their lengths.
    expected_bytes: usize,
    /// How fast a client goes on; `None`: it is no client, and may take its time.
    pace: Option<ClientPace>,
    /// The APIs whose frames claim replication's reserve here.
    replicates: Option<fn(i16) -> bool>,
    /// The bytes for which the socket wakes its reader.
    wakes_at: usize,
    /// What may still be read in this turn.
    turn_bytes_left: usize,
    /// Whether large frames are read in turns with others'.
    in_turns: bool,
}

impl FrameReader {
    pub fn new(claim: Claim, frame_bytes_max: usize) -> Self {
        let buffer = BytesMut::new();
        Self {
            buffer,
            made_bytes: 0,
            claim,
            frame_bytes_max,
            read_bytes: READ_BYTES_MIN,
            expected_bytes: 0,
            pace: None,
            replicates: None,
            wakes_at: 1,
            turn_bytes_left: TURN_BYTES,
            in_turns: false,
        }
    }

    /// For what clients send: the first request must come, and a frame that has begun must go on. Sooner where
    /// places are short.
    #[must_use]
    pub fn paced(mut self, place: FirstRequest) -> Self {
        self.pace = Some(ClientPace { place, first: Some(Duration::ZERO), frame: Pace::reading() });
        self
    }

    /// Changes how large a frame may be; returns what was allowed before.
    pub fn limit(&mut self, frame_bytes_max: usize) -> usize {
        std::mem::replace(&mut self.frame_bytes_max, frame_bytes_max)
    }

    /// Whether what exceeds a frame's first bytes is read in turns with other connections: until its client has
    /// authenticated, nothing limits how many there are of its kind.
    pub fn in_turns(&mut self, in_turns: bool) {
        self.in_turns = in_turns;
    }

    /// Whether a follower or another node is at the other end: frames of these APIs have room that clients cannot take.
    pub fn replicates(&mut self, apis: Option<fn(i16) -> bool>) {
        self.replicates = apis;
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
                spare_buffers::put(std::mem::take(&mut self.buffer), self.made_bytes);
                self.made_bytes = 0;
                // Dropping what was split off gives back what no frame took along, but for what TLS holds.
                let held = stream.held_bytes() as u64;
                drop(self.claim.split(self.claim.bytes().saturating_sub(held)));
            }
            self.wake_at(self.worth_waking(stream), stream);
            self.readable(stream).await?;
            let (wanted, turn) = self.make_room(stream.held_bytes()).await?;
            match stream.read_once(&mut (&mut self.buffer).limit(wanted)).await {
                // Nothing came, or tokio lets this task read no more in this turn: then the socket is still readable,
                // and going round again without giving the turn away would never end.
                None => tokio::task::coop::consume_budget().await,
                Some(Ok(arrived)) if arrived.is_end && self.buffer.is_empty() => return Ok(None),
                Some(Ok(arrived)) if arrived.is_end => return Err(self.truncated()),
                Some(Ok(arrived)) => {
                    self.adapt(arrived.plain, wanted);
                    self.pace.iter_mut().for_each(|pace| pace.frame.went_by(arrived.bytes));
                    self.turn_bytes_left = self.turn_bytes_left.saturating_sub(arrived.bytes);
                    if self.turn_bytes_left == 0 {
                        self.turn_bytes_left = TURN_BYTES;
                        tokio::task::yield_now().await;
                    }
                }
                Some(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Some(Err(error)) => return Err(error.into()),
            }
            if turn.is_some() {
                // Ends after the others have gone on.
                tokio::task::yield_now().await;
            }
        }
    }

    /// A turn, once it has come; `None`: none is needed.
    async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        if !self.in_turns || self.buffer.len() < READ_BYTES_MIN {
            return None;
        }
        TURNS.with(Arc::clone).acquire_owned().await.ok()
    }

    /// How much of the frame that has begun is worth a read. A read for each TLS record of a large frame costs more
    /// than to decrypt it.
    fn worth_waking(&self, stream: &ReadHalf<'_>) -> usize {
        let Ok(Some(length)) = self.announced() else { return 1 };
        let missing = (4 + length).saturating_sub(self.buffer.len() + stream.held_bytes());
        if stream.is_plain() || missing < WAKE_BYTES.start { 1 } else { missing.min(WAKE_BYTES.end) }
    }

    fn wake_at(&mut self, bytes: usize, stream: &ReadHalf<'_>) {
        if bytes != self.wakes_at {
            // A socket that refuses goes on to wake for each segment.
            self.wakes_at = if stream.wake_at(bytes) { bytes } else { 1 };
        }
    }

    /// Waits until there is something to read; with a frame half-read, no longer than its pace allows.
    async fn readable(&mut self, stream: &ReadHalf<'_>) -> Result<(), FrameError> {
        let held = stream.held_bytes();
        let waits = |pace: &ClientPace| pace.first.is_some() || !self.buffer.is_empty() || held > 0;
        if !self.pace.as_ref().is_some_and(waits) {
            return Ok(stream.readable().await?);
        }
        let opening = self.pace.as_ref().filter(|pace| pace.first.is_some()).map(|pace| pace.place.clone());
        loop {
            let asked = barnabas_clock::now();
            let gave_way = async {
                match &opening {
                    Some(place) => place.gave_way().await,
                    None => std::future::pending().await,
                }
            };
            let readable = tokio::select! {
                biased;
                () = gave_way => return Err(FrameError::GaveWay { got: self.buffer.len() }),
                readable = timeout(LOOK_EVERY, stream.readable()) => readable,
            };
            self.waited(barnabas_clock::since(asked), held)?;
            if readable.is_err() {
                // A slow sender: what little is there is read, so that its pace shows.
                self.wake_at(1, stream);
            }
            if let Ok(readable) = readable {
                return Ok(readable?);
            }
        }
    }

    /// The frame that has begun has waited so long for its sender.
    fn waited(&mut self, time: Duration, held: usize) -> Result<(), FrameError> {
        let Some(pace) = &mut self.pace else { return Ok(()) };
        let got = self.buffer.len() + held;
        if let Some(waited) = &mut pace.first {
            *waited += time;
            let is_crowded = pace.place.is_crowded();
            let patience = if is_crowded { FIRST_WHILE_CROWDED } else { FIRST };
            if *waited >= patience && got < FIRST_BYTES_MAX {
                return Err(FrameError::NoRequest { got, seconds: waited.as_secs(), is_crowded });
            }
        }
        if got == 0 {
            return Ok(());
        }
        let claim = &self.claim;
        let Some(slow) = pace.frame.waited(time, || claim.press_on(claim.bytes())) else { return Ok(()) };
        let (late, seconds, is_pressed) = (slow.late, slow.seconds, slow.is_pressed);
        let expected = self.announced()?.unwrap_or(0) + 4;
        Err(FrameError::Stalled { got, expected, late, seconds, is_pressed })
    }

    /// A frame that has already arrived, if there is one.
    fn take_frame(&mut self) -> Result<Option<(Bytes, Claim)>, FrameError> {
        let Some(length) = self.announced()? else { return Ok(None) };
        if self.buffer.len() < 4 + length {
            return Ok(None);
        }
        if let Some(pace) = &mut self.pace {
            if pace.first.is_some() && !pace.place.came() {
                return Err(FrameError::GaveWay { got: self.buffer.len() });
            }
            (pace.first, pace.frame) = (None, Pace::reading());
        }
        // What it is for is known now: a client's frame grows no further in the reserve.
        self.claim.stand(self.standing(4 + length));
        self.buffer.advance(4);
        let frame = self.buffer.split_to(length).freeze();
        let claim = self.claim.split(4 + length as u64);
        // Falls by half with each frame that is smaller.
        self.expected_bytes = (self.expected_bytes / 2).max(4 + length).min(EXPECTED_BYTES_MAX);
        Ok(Some((frame, claim)))
    }

    /// Whether the next frame is here already, whole.
    pub fn has_frame(&self) -> bool {
        matches!(self.announced(), Ok(Some(length)) if self.buffer.len() >= 4 + length)
    }

    /// Whether no frame is half read, so that the connection may move to another worker.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    fn announced(&self) -> Result<Option<usize>, FrameError> {
        let Some(word) = self.buffer.first_chunk::<4>() else { return Ok(None) };
        let length = i32::from_be_bytes(*word);
        match usize::try_from(length) {
            Err(_) => Err(FrameError::Negative { length }),
            Ok(size) if size > self.frame_bytes_max => Err(match Stranger::of(word) {
                Some(stranger) => FrameError::Stranger(stranger),
                None => FrameError::TooLarge { length, max: self.frame_bytes_max },
            }),
            Ok(size) => Ok(Some(size)),
        }
    }

    /// The API of the frame that has begun: the first two bytes of every request.
    fn key(&self) -> Option<i16> {
        self.buffer.get(4..6).map(|bytes| i16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// What the frame that has begun will hold, as far as one can tell.
    fn standing(&self, bytes: usize) -> Standing {
        let key = self.key();
        let has_reserve =
            self.replicates.is_some_and(|apis| bytes <= REPLICATION_BYTES_MAX && key.is_none_or(apis));
        match key {
            _ if has_reserve => Standing::Replication,
            Some(FETCH) if bytes <= FETCH_BYTES_MAX => Standing::Unknown,
            None if bytes <= READ_BYTES_MIN => Standing::Unknown,
            _ => Standing::of(bytes as u64),
        }
    }

    /// Makes room for one read, after the budget has agreed to it. Returns how much is to be read at most, and the turn
    /// for it.
    async fn make_room(
        &mut self,
        held_by_tls: usize,
    ) -> Result<(usize, Option<OwnedSemaphorePermit>), FrameError> {
        let held = self.buffer.len();
        let announced = self.announced()?.map(|length| 4 + length);
        let missing = announced.map_or(0, |bytes| bytes - held);
        // At least the read size; up to the rest of the frame if recent frames were as large.
        let reach = self.read_bytes.max(self.expected_bytes.saturating_sub(held));
        let wanted = match announced {
            Some(bytes) if bytes >= ALONE_BYTES_MIN => missing.min(reach),
            _ => missing.clamp(self.read_bytes, reach),
        };
        let bytes = held + wanted;
        self.claim.stand(self.standing(bytes.max(announced.unwrap_or(0))));
        self.claim.grow_to((bytes + held_by_tls) as u64).await;
        let turn = self.turn().await;
        if self.buffer.capacity() - held < wanted {
            // Doubled, so that a large frame is copied a few times and not with each read.
            let doubled = (2 * held).min(announced.unwrap_or(0));
            match announced {
                Some(announced) if held >= MOVED_BYTES_MIN => self.move_buffer(announced.min(4 * held)),
                _ => self.replace_buffer(bytes.max(doubled).max(self.expected_bytes)),
            }
        }
        Ok((wanted, turn))
    }

    /// Makes the buffer as large. Its pages move, by mremap, where it has as many as the allocator maps by itself: to
    /// copy tens of MiB at once would hold up the other connections of the worker.
    fn move_buffer(&mut self, bytes: usize) {
        self.buffer.reserve(bytes - self.buffer.len());
        self.made_bytes = self.buffer.capacity();
    }

    fn replace_buffer(&mut self, bytes: usize) {
        let (mut larger, made_bytes) = spare_buffers::take(bytes);
        larger.extend_from_slice(&self.buffer);
        spare_buffers::put(std::mem::replace(&mut self.buffer, larger), self.made_bytes);
        self.made_bytes = made_bytes;
    }

    /// `count` of `wanted` bytes were there.
    fn adapt(&mut self, count: usize, wanted: usize) {
        if count >= self.read_bytes {
            self.read_bytes = (self.read_bytes * 2).min(READ_BYTES_MAX);
        } else if count < wanted && count < self.read_bytes / 4 {
            self.read_bytes = (self.read_bytes / 2).max(READ_BYTES_MIN);
        }
    }

    fn truncated(&self) -> FrameError {
        let announced = self.announced().ok().flatten().unwrap_or(0);
        FrameError::Truncated { got: self.buffer.len(), expected: announced + 4 }
    }
}

#[cfg(test)]
mod tests;
