//! Answers that are too large to be made at once: written piece by piece, beside the workers.
//!
//! core/api makes the pieces; here each is made on the runtime's threads for blocking work while the one before it is
//! on its way to the socket. First all are made once to learn their length, which Kafka's frames begin with. A client
//! that reads slowly holds two pieces of memory and no thread. [`AT_ONCE`] bounds what such answers take of the
//! processor.

use super::{Answer, Call, Moment, Started, unencodable};
use crate::node::cluster::callers::Elsewhere;
use barnabas_api::{AnswerRoom, Client, Context as Surroundings, InPieces, OfflineReplicas};
use barnabas_base::{BrokerId, Text, TimestampMs};
use barnabas_metadata::Image;
use barnabas_metadata::config::BrokerConfig;
use barnabas_net::Claim;
use barnabas_wire::EncodeError;
use bytes::Bytes;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// An answer that is not longer is kept as it was counted, instead of being made twice.
const KEPT_BYTES_MAX: usize = 2 << 20;
/// Pieces that the node makes at once; others wait their turn.
const AT_ONCE: usize = 2;
static TURNS: Semaphore = Semaphore::const_new(AT_ONCE);

/// The bytes that a count makes before it waits for its turn again: others' answers are made in between.
const COUNTED_AT_ONCE: usize = 4 << 20;

/// The one moment that a large answer is made of.
struct Source {
    image: Arc<Image>,
    config: Arc<BrokerConfig>,
    client: Arc<Client>,
    caller: Elsewhere,
    cluster_id: Text,
    node: BrokerId,
    offline: Option<Arc<OfflineReplicas>>,
    now: TimestampMs,
}

impl Source {
    fn of(call: &Call, moment: &Moment) -> Self {
        let node = &call.session.node;
        Self {
            image: Arc::clone(&moment.image),
            config: Arc::clone(&moment.config),
            client: call.client.clone(),
            caller: call.caller.elsewhere(call.api, &call.session.node, call.who()),
            cluster_id: node.identity.cluster_id.clone(),
            node: node.identity.broker_id,
            offline: moment.offline.clone(),
            now: node.clock.wall(),
        }
    }

    fn with<T>(&self, work: impl FnOnce(&Surroundings<'_>) -> T) -> T {
        // An answer in pieces is never in memory as a whole.
        let room = AnswerRoom::unlimited();
        let surroundings = Surroundings {
            loggers: crate::config::logging::shown,
            image: &self.image,
            config: &self.config,
            cluster_id: &self.cluster_id,
            node: self.node,
            offline: self.offline.as_deref(),
            client: &self.client,
            access: self.caller.access(),
            now: self.now,
            room: &room,
        };
        work(&surroundings)
    }

    fn piece(&self, large: &mut dyn InPieces) -> Result<Option<Bytes>, EncodeError> {
        self.with(|surroundings| large.piece(surroundings))
    }
}

/// A count of all pieces; and the pieces themselves, where they are [`KEPT_BYTES_MAX`] or less.
struct Count {
    large: Box<dyn InPieces>,
    length: usize,
    kept: VecDeque<Bytes>,
    has_ended: bool,
}

impl Count {
    /// Goes on for [`COUNTED_AT_ONCE`] bytes.
    fn go_on(mut self, source: &Source) -> Result<Self, EncodeError> {
        let end = self.length + COUNTED_AT_ONCE;
        while self.length < end {
            let Some(piece) = source.piece(&mut *self.large)? else {
                self.has_ended = true;
                break;
            };
            self.length += piece.len();
            if self.length <= KEPT_BYTES_MAX {
                self.kept.push_back(piece);
            } else {
                self.kept = VecDeque::new();
            }
        }
        Ok(self)
    }
}

/// Counts in turns. `None`: the node is stopping.
async fn count(source: &Arc<Source>, large: Box<dyn InPieces>) -> Option<Result<Count, EncodeError>> {
    let mut count = Count { large, length: 0, kept: VecDeque::new(), has_ended: false };
    while !count.has_ended {
        let turn = TURNS.acquire().await;
        let source = source.clone();
        let counted = tokio::task::spawn_blocking(move || count.go_on(&source)).await;
        drop(turn);
        count = match counted {
            Ok(Ok(count)) => count,
            Ok(Err(error)) => return Some(Err(error)),
            Err(_) => return None,
        };
    }
    Some(Ok(count))
}

type Made = (Option<Box<dyn InPieces>>, Result<Option<Bytes>, EncodeError>);

/// An answer on its way.
pub struct Pieces {
    source: Arc<Source>,
    /// Bytes of the body that are not yet handed out.
    pub left: usize,
    next: Next,
    /// What the source holds of the node's memory.
    _held: Option<Claim>,
}

enum Next {
    Kept(VecDeque<Bytes>),
    Making(JoinHandle<Made>),
}

impl std::fmt::Debug for Pieces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pieces").field("left", &self.left).finish_non_exhaustive()
    }
}

impl Pieces {
    /// The next piece; `None` after the last.
    ///
    /// `Err`: the answer cannot be ended as it was begun, and the connection must be closed.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let making = match &mut self.next {
            Next::Making(making) => making,
            Next::Kept(kept) => {
                let piece = kept.pop_front();
                self.left -= piece.as_ref().map_or(0, Bytes::len);
                return Poll::Ready(piece.map(Ok));
            }
        };
        let made = match Pin::new(making).poll(context) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(made) => made,
        };
        let piece = match made {
            Ok((Some(large), Ok(Some(piece)))) if piece.len() <= self.left => {
                self.left -= piece.len();
                if self.left > 0 {
                    self.next = Next::Making(make(self.source.clone(), large));
                }
                Ok(piece)
            }
            Ok((_, Ok(_))) => Err(Broken("its length is not what it was".to_owned())),
            Ok((_, Err(error))) => Err(Broken(error.to_string())),
            Err(_) => Err(Broken("the node is stopping".to_owned())),
        };
        Poll::Ready(Some(piece))
    }
}

/// Why an answer ends in the middle.
#[derive(Debug)]
pub struct Broken(pub String);

/// Makes a piece when it is its turn.
fn make(source: Arc<Source>, mut large: Box<dyn InPieces>) -> JoinHandle<Made> {
    tokio::spawn(async move {
        let turn = TURNS.acquire().await;
        let made = tokio::task::spawn_blocking(move || {
            let made = source.piece(&mut *large);
            (Some(large), made)
        });
        let made = made.await;
        drop(turn);
        // Cancelled: the node is stopping, and the caller is gone.
        made.unwrap_or_else(|_| (None, Ok(None)))
    })
}

/// Has `work` on a large request done beside the workers, one of each client address at a time. `None`: the system
/// gives no thread.
pub async fn beside<T: Send + 'static>(
    call: &Call,
    moment: &Moment,
    work: impl FnOnce(&Surroundings<'_>) -> T + Send + 'static,
) -> Option<T> {
    let source = Source::of(call, moment);
    let beside = call.session.beside();
    beside.threads.run(Some(beside.address), move || source.with(work)).await
}

/// Begins a large answer.
pub fn start(call: &Call, moment: Moment, large: Box<dyn InPieces>) -> Started {
    Started::wait(answer(call, moment, large, None))
}

/// Counts a large answer. `held`: what it holds of the node's memory until it is written.
pub fn answer(
    call: &Call,
    moment: Moment,
    large: Box<dyn InPieces>,
    held: Option<Claim>,
) -> impl Future<Output = Answer> + use<> {
    let source = Arc::new(Source::of(call, &moment));
    let session = call.session.clone();
    async move {
        match count(&source, large).await {
            Some(Ok(Count { large, length, kept, .. })) => {
                let next = if length <= KEPT_BYTES_MAX {
                    Next::Kept(kept)
                } else {
                    Next::Making(make(source.clone(), large.rewound()))
                };
                Answer::Pieces(Pieces { source, left: length, next, _held: held })
            }
            Some(Err(error)) => unencodable(&session, &error),
            None => Answer::Close,
        }
    }
}
