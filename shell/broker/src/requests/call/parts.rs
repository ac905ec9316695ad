//! Long answers of coordinators, part by part.
//!
//! A shard that has no room for its answer names parts instead (core/coordinator's `Part`). Here one part after the
//! other is asked for, once the answer's share of the memory budget has room for it.
//!
//! Always true:
//! 1. at most [`AT_ONCE`] parts are under way, each of [`PART_BYTES`] at most
//! 2. a larger part is under way alone, and what it takes was claimed before

use super::Call;
use barnabas_base::{ErrorCode, PartitionIndex};
use barnabas_coordinator::{PART_BYTES, Part};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::sync::oneshot::{self, error::RecvError};

/// Parts that one request has under way.
const AT_ONCE: usize = 8;

/// A shard that takes longer is loading, or waits for its disk: its answer leaves the turn to others.
const QUICK: Duration = Duration::from_millis(100);

/// As [`QUICK`], of an answer that holds memory. It leaves its turn late: many that hold a part and wait for more would
/// wait for each other.
const QUICK_WITH_MEMORY: Duration = Duration::from_secs(5);

/// The shard, or its worker, has ended: the client looks for another coordinator.
pub struct Gone;

/// Whose shards are asked.
pub trait Coordinator {
    type Request;
    type Response;

    /// Sends a request to a shard, now. `room`: bytes that the answer may take.
    async fn send(
        call: &Call,
        shard: PartitionIndex,
        request: Self::Request,
        room: usize,
    ) -> oneshot::Receiver<Self::Response>;

    fn refuse(request: &Self::Request, code: ErrorCode) -> Self::Response;

    /// The parts, where the response is nothing else.
    fn parts(response: Self::Response) -> Result<Vec<Part<Self::Request>>, Self::Response>;
}

/// What a shard is to be asked. The tag says where its answer belongs.
struct Question<C: Coordinator, T> {
    tag: T,
    shard: PartitionIndex,
    part: Part<C::Request>,
}

struct Asked<C: Coordinator, T> {
    tag: T,
    shard: PartitionIndex,
    /// Counted for it before.
    held: usize,
    answer: oneshot::Receiver<C::Response>,
}

/// The questions of one request.
pub struct Questions<C: Coordinator, T> {
    call: Call,
    left: VecDeque<Question<C, T>>,
    under_way: VecDeque<Asked<C, T>>,
}

impl<C: Coordinator, T: Copy> Questions<C, T> {
    /// Sends the first of them, in the order of the connection's requests.
    pub async fn begin(
        call: &Call,
        requests: impl IntoIterator<Item = (T, PartitionIndex, C::Request)>,
    ) -> Self {
        let question =
            |(tag, shard, request)| Question { tag, shard, part: Part { request, bytes: PART_BYTES } };
        let left = requests.into_iter().map(question).collect();
        let mut questions = Self { call: call.clone(), left, under_way: VecDeque::new() };
        questions.send_small().await;
        questions
    }

    /// The next answer, with the tag of its question; `None` after the last.
    pub async fn next(&mut self) -> Option<Result<(T, C::Response), Gone>> {
        loop {
            self.send_small().await;
            let Some(mut asked) = self.under_way.pop_front() else {
                match self.send_large().await? {
                    None => continue,
                    Some(refused) => return Some(Ok(refused)),
                }
            };
            let Ok(response) = self.answer_to(&mut asked).await else { return Some(Err(Gone)) };
            // It is counted again as what it is.
            self.call.room.give_back(asked.held);
            let parts = match C::parts(response) {
                Ok(parts) => parts,
                Err(response) => {
                    if asked.held == 0 {
                        // Where there is none it is refused when it is counted.
                        let _ = self.call.room.reserve(PART_BYTES).await;
                    }
                    return Some(Ok((asked.tag, response)));
                }
            };
            for part in parts.into_iter().rev() {
                self.left.push_front(Question { tag: asked.tag, shard: asked.shard, part });
            }
        }
    }

    /// The tags of what was not asked.
    pub fn into_left(self) -> impl Iterator<Item = T> {
        let under_way = self.under_way.into_iter().map(|asked| asked.tag);
        under_way.chain(self.left.into_iter().map(|question| question.tag))
    }

    /// Waits for a shard; one that is loading holds up no other answer.
    async fn answer_to(&self, asked: &mut Asked<C, T>) -> Result<C::Response, RecvError> {
        let quick = if self.call.room.holds_memory() { QUICK_WITH_MEMORY } else { QUICK };
        if let Ok(answer) = tokio::time::timeout(quick, &mut asked.answer).await {
            return answer;
        }
        self.call.room.leave_turn();
        (&mut asked.answer).await
    }

    async fn send_small(&mut self) {
        while self.under_way.len() < AT_ONCE && self.under_way.front().is_none_or(|asked| asked.held == 0) {
            let next = self.left.pop_front_if(|question| question.part.bytes <= PART_BYTES);
            let Some(question) = next else { return };
            self.send(question, 0).await;
        }
    }

    /// Sends the next one, which is large. `None`: there is none. What it gives is the answer if it has no room.
    async fn send_large(&mut self) -> Option<Option<(T, C::Response)>> {
        let question = self.left.pop_front()?;
        let bytes = question.part.bytes;
        if let Err(large) = self.call.room.hold(bytes).await {
            let code = large.code(ErrorCode::CoordinatorLoadInProgress);
            return Some(Some((question.tag, C::refuse(&question.part.request, code))));
        }
        self.send(question, bytes).await;
        Some(None)
    }

    async fn send(&mut self, question: Question<C, T>, held: usize) {
        let Question { tag, shard, part } = question;
        let room = held.max(PART_BYTES);
        let answer = C::send(&self.call, shard, part.request, room).await;
        self.under_way.push_back(Asked { tag, shard, held, answer });
    }
}
