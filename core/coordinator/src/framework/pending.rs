//! Batches that were handed out and are not on disk yet, and the answers that wait for them.
//!
//! An answer is computed when the request is worked on and held back until the last batch that it rests on is on disk;
//! if that batch fails or takes too long, the answer is turned into a refusal. What else is to happen then (`T`) is a
//! value that comes back with the batch.
//!
//! Always true:
//! 1. batches leave in the order of their ids, but for those that fail
//! 2. an answer leaves exactly once: with its batch, or refused
//! 3. a batch that took too long stays until it is known whether it is on disk, as what it changed hangs on that

use std::collections::VecDeque;

use barnabas_base::{ErrorCode, MonotonicMs};

use super::{BatchId, Ticket};

/// An answer that can be turned into a refusal of the same request.
pub(crate) trait Refusable {
    fn refused(self, error: ErrorCode) -> Self;
}

/// Whether an answer waits.
#[derive(Debug)]
pub enum Held<R> {
    Waits,
    /// The batch is on disk, or failed, already: the answer may leave.
    Decided(R),
    /// The batch is overdue, so the log does not move: the answer must be a refusal.
    Overdue(R),
}

#[derive(Debug)]
struct Batch<T, R> {
    id: BatchId,
    deadline: MonotonicMs,
    overdue: bool,
    held: Vec<(Ticket, R)>,
    then: Option<T>,
}

/// A batch that is decided: its answers may leave.
#[derive(Debug)]
pub struct Closed<T, R> {
    pub id: BatchId,
    pub answers: Vec<(Ticket, R)>,
    /// `None` if it was taken before.
    pub then: Option<T>,
}

#[derive(Debug)]
pub struct Pending<T, R> {
    batches: VecDeque<Batch<T, R>>,
    last: BatchId,
    /// The first `overdue` of `batches` are overdue, as all wait equally long.
    overdue: usize,
}

impl<T, R> Default for Pending<T, R> {
    fn default() -> Self {
        Self { batches: VecDeque::new(), last: BatchId(0), overdue: 0 }
    }
}

impl<T, R> Pending<T, R> {
    /// The id that the next batch gets.
    pub fn upcoming(&self) -> BatchId {
        BatchId(self.last.0 + 1)
    }

    /// The last batch handed out that is not decided yet.
    pub fn newest(&self) -> Option<BatchId> {
        self.batches.back().map(|batch| batch.id)
    }

    /// Those who wait.
    pub fn tickets(&self) -> impl Iterator<Item = Ticket> {
        self.batches.iter().flat_map(|batch| batch.held.iter().map(|(ticket, _)| *ticket))
    }

    pub fn len(&self) -> usize {
        self.batches.len()
    }

    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    pub fn is_pending(&self, id: BatchId) -> bool {
        self.find(id).is_some()
    }

    /// Opens the next batch. `deadline` is never before that of an earlier batch.
    pub fn open(&mut self, deadline: MonotonicMs, then: T) -> BatchId {
        self.last = self.upcoming();
        let batch = Batch { id: self.last, deadline, overdue: false, held: Vec::new(), then: Some(then) };
        self.batches.push_back(batch);
        self.last
    }

    /// Holds `answer` back until `batch` is decided.
    pub fn hold(&mut self, batch: BatchId, ticket: Ticket, answer: R) -> Held<R> {
        match self.find(batch) {
            None => Held::Decided(answer),
            Some(at) if self.batches[at].overdue => Held::Overdue(answer),
            Some(at) => {
                self.batches[at].held.push((ticket, answer));
                Held::Waits
            }
        }
    }

    /// The earliest moment at which answers have waited long enough.
    pub fn deadline(&self) -> Option<MonotonicMs> {
        self.batches.get(self.overdue).map(|batch| batch.deadline)
    }

    /// Takes the oldest batch up to `through`, as it is on disk. Call until there is none.
    pub fn pop_durable(&mut self, through: BatchId) -> Option<Closed<T, R>> {
        if self.batches.front()?.id > through {
            return None;
        }
        self.remove(0)
    }

    /// Takes `batch`, which was not appended and never will be.
    pub fn take_failed(&mut self, batch: BatchId) -> Option<Closed<T, R>> {
        let at = self.find(batch)?;
        self.remove(at)
    }

    /// Takes the answers of the oldest batch that has become overdue; the batch itself stays.
    pub fn take_overdue(&mut self, now: MonotonicMs) -> Option<(BatchId, Vec<(Ticket, R)>)> {
        let batch = self.batches.get_mut(self.overdue).filter(|batch| batch.deadline <= now)?;
        batch.overdue = true;
        self.overdue += 1;
        Some((batch.id, std::mem::take(&mut batch.held)))
    }

    /// What is to happen when `batch` is decided.
    pub fn then_mut(&mut self, batch: BatchId) -> Option<&mut Option<T>> {
        let at = self.find(batch)?;
        Some(&mut self.batches[at].then)
    }

    fn find(&self, id: BatchId) -> Option<usize> {
        self.batches.binary_search_by_key(&id, |batch| batch.id).ok()
    }

    fn remove(&mut self, at: usize) -> Option<Closed<T, R>> {
        let batch = self.batches.remove(at)?;
        self.overdue -= usize::from(batch.overdue);
        Some(Closed { id: batch.id, answers: batch.held, then: batch.then })
    }
}

/// The client's error code after a failed append.
///
/// # Source
/// Kafka `CoordinatorOperationExceptionHelper`, `GroupMetadataManager.appendGroupMetadataErrorToResponseError`.
pub(crate) fn append_refusal(error: ErrorCode) -> ErrorCode {
    match error {
        ErrorCode::UnknownTopicOrPartition | ErrorCode::NotEnoughReplicas | ErrorCode::RequestTimedOut => {
            ErrorCode::CoordinatorNotAvailable
        }
        ErrorCode::NotLeaderOrFollower | ErrorCode::KafkaStorageError => ErrorCode::NotCoordinator,
        ErrorCode::MessageTooLarge | ErrorCode::RecordListTooLarge | ErrorCode::InvalidFetchSize => {
            ErrorCode::UnknownServerError
        }
        other => other,
    }
}
