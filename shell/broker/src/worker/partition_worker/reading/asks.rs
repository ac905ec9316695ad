//! Small questions: offsets by time, ends of epochs, deletion of records, producers, sizes.
//!
//! A request may ask about any number of partitions, and each of them may have to be opened and read from disk. A turn
//! of the worker spends [`ASK_TURN`] on questions; what is left of a command waits for the next turn, behind the other
//! commands that wait. A command gets one answer in the turn in which it arrives in any case, which is all of it for
//! most.

use crate::mailbox::{
    AskCommand, AskItem, AskOutcome, Declined, PartitionKey, Question, Said, Search, Searched,
};
use crate::node::workers::repeated::Repeated;
use crate::node::workers::unpacking::Spare;
use crate::worker::partition_worker::PartitionWorker;
use crate::worker::replica::Replica;
use barnabas_base::Offset;
use barnabas_partition::Refusal;
use barnabas_replica::{QueryError, producer_entry};
use barnabas_storage::{FilePool, StorageError};
use barnabas_wire::records::BatchError;
use std::collections::VecDeque;
use std::time::Duration;

/// How long one turn of the worker answers questions.
const ASK_TURN: Duration = Duration::from_millis(2);

/// A command whose questions are not all answered.
#[derive(Debug)]
struct Asking {
    command: AskCommand,
    outcomes: Vec<AskOutcome>,
}

/// Commands that go on in the next turn.
///
/// Bounded by the requests that connections may have open: each waits for one command of each worker at a time.
#[derive(Debug, Default)]
pub struct Asks {
    waiting: VecDeque<Asking>,
    /// Spent in this turn.
    spent: Duration,
}

/// Answers `items` from where `outcomes` ends, at least one, as long as `has_time`. Returns whether that was the last.
fn go_on<I, O>(
    items: &[I],
    outcomes: &mut Vec<O>,
    mut answer: impl FnMut(&I) -> O,
    mut has_time: impl FnMut() -> bool,
) -> bool {
    while let Some(item) = items.get(outcomes.len()) {
        outcomes.push(answer(item));
        if !has_time() {
            break;
        }
    }
    outcomes.len() >= items.len()
}

/// Why a question has no answer.
#[derive(Debug)]
enum Unanswered {
    Declined(Declined),
    /// The log cannot be read there.
    Unread(StorageError),
}

impl From<Declined> for Unanswered {
    fn from(declined: Declined) -> Self {
        Self::Declined(declined)
    }
}

impl From<Refusal> for Unanswered {
    fn from(refusal: Refusal) -> Self {
        Self::Declined(refusal.into())
    }
}

impl From<StorageError> for Unanswered {
    fn from(error: StorageError) -> Self {
        Self::Unread(error)
    }
}

impl PartitionWorker {
    pub fn ask(&mut self, command: AskCommand) {
        let outcomes = Vec::with_capacity(command.items.len());
        self.answer_in_turn(Asking { command, outcomes });
    }

    /// Goes on with commands that did not end in an earlier turn. Returns whether there is more.
    pub fn answer_some(&mut self) -> bool {
        self.asks.spent = Duration::ZERO;
        for _ in 0..self.asks.waiting.len() {
            let Some(asking) = self.asks.waiting.pop_front() else { break };
            self.answer_in_turn(asking);
            if self.asks.spent >= ASK_TURN {
                break;
            }
        }
        !self.asks.waiting.is_empty()
    }

    fn answer_in_turn(&mut self, mut asking: Asking) {
        let Asking { command, outcomes } = &mut asking;
        // A connection that is gone does not hear its answer.
        if command.reply.is_closed() {
            return;
        }
        let (begun, spent) = (barnabas_clock::now(), self.asks.spent);
        let has_time = || spent + barnabas_clock::since(begun) < ASK_TURN;
        let answer = |item: &AskItem| AskOutcome { slot: item.slot, result: self.ask_one(item) };
        let is_done = go_on(&command.items, outcomes, answer, has_time);
        self.asks.spent = spent + barnabas_clock::since(begun);
        if !is_done {
            self.asks.waiting.push_back(asking);
            return;
        }
        self.keep_log_starts(&command.items, outcomes);
        let Asking { command, outcomes } = asking;
        let _ = command.reply.send(outcomes);
    }

    /// Deleted records stay deleted whatever happens next: their new log starts are on disk before they are answered.
    /// (Kafka writes them once a minute, and a crash in between brings the records back.)
    fn keep_log_starts(&self, items: &[AskItem], outcomes: &mut [AskOutcome]) {
        let mut touched: Vec<(usize, usize)> = Vec::new();
        for (place, (item, outcome)) in items.iter().zip(outcomes.iter_mut()).enumerate() {
            let Ok(Said::LogStart(start)) = outcome.result else { continue };
            let replica = self.replicas.get(&item.partition);
            // Closed since, or opened again from what is on disk.
            let Some(replica) = replica.filter(|replica| replica.partition.log_start() >= start) else {
                outcome.result = Err(Refusal::NotLeader.into());
                continue;
            };
            let mut log_dir = self.node.log_dirs.directories[replica.directory].lock();
            // Under the lock, as a deletion of the topic forgets its entries under it too.
            if self.node.cluster.image.load().topics.by_id(item.partition.topic).is_some() {
                log_dir.set_log_start(replica.log.place().topic_partition.clone(), Some(start));
                touched.push((replica.directory, place));
            }
        }
        for directory in 0..self.node.log_dirs.directories.len() {
            let mut places =
                touched.iter().filter(|entry| entry.0 == directory).map(|entry| entry.1).peekable();
            if places.peek().is_none() {
                continue;
            }
            let written = self.node.log_dirs.directories[directory].lock().write_checkpoints();
            if let Err(error) = written {
                if let Some(unsaid) = self.node.workers.repeated.happened(Repeated::LogStartNotWritten) {
                    tracing::error!(
                        %error,
                        "DeleteRecords failed: the new log start offset could not be persisted, and the \
                         records may reappear after the next start. The request was refused and can be \
                         retried{unsaid}"
                    );
                }
                places.for_each(|place| outcomes[place].result = Err(Declined::Storage));
            }
        }
    }

    fn ask_one(&mut self, item: &AskItem) -> Result<Said, Declined> {
        self.find_out(item).map_err(|why| match why {
            Unanswered::Declined(declined) => declined,
            Unanswered::Unread(error) => {
                self.read_failed(item.partition, &error);
                Declined::Storage
            }
        })
    }

    fn find_out(&mut self, item: &AskItem) -> Result<Said, Unanswered> {
        let key = item.partition;
        self.open(key)?;
        if let Question::DeleteRecords(up_to) = item.question {
            return self.delete_records(key, up_to).map(Said::LogStart);
        }
        let Self { replicas, files, .. } = self;
        let replica = &mut replicas.get_mut(&key).ok_or(Declined::Unknown)?.replica;
        let files = &mut files[replica.directory];
        let said = match item.question {
            Question::List { isolation, search, from_any } => {
                let bounds = replica.list_bounds(isolation, item.leader_epoch, from_any)?;
                Said::Listed { bounds, found: find(replica, files, search)? }
            }
            Question::TimedBatch(search) => Said::TimedBatch(replica.timed_batch(search, files)?),
            Question::EpochEnd(epoch) => {
                let (leader_epoch, end) = replica.epoch_end(epoch, item.leader_epoch)?;
                Said::EpochEnd { leader_epoch, end }
            }
            Question::DeleteRecords(_) => unreachable!("answered above"),
            Question::Ends => Said::Ends {
                high_watermark: replica.partition.high_watermark(),
                last_stable: replica.partition.last_stable(),
                log_start: replica.partition.log_start(),
            },
            Question::TimeAt(at) => Said::TimeAt(replica.time_at(at, files)?),
            Question::LowWatermark => Said::LowWatermark(replica.partition.low_watermark()?),
            Question::Guard { producer_id, epoch, starts_at_zero } => {
                Said::Guard(replica.verification(producer_id, epoch, starts_at_zero)?)
            }
            Question::Producers { max } if replica.partition.producer_count() > max => {
                Said::ManyProducers(replica.partition.producer_count())
            }
            Question::Producers { .. } => {
                Said::Producers(replica.partition.producers().into_iter().map(producer_entry).collect())
            }
        };
        self.apply_effects(key);
        Ok(said)
    }

    fn delete_records(&mut self, key: PartitionKey, up_to: Option<Offset>) -> Result<Offset, Unanswered> {
        let now = self.now();
        let done = self.step(key, now, |replica, around| replica.delete_records(up_to, around));
        let start = done.ok_or(Declined::Unknown)?.map_err(|error| match error {
            QueryError::Refused(refused) => Unanswered::Declined(refused),
            QueryError::Storage(error) => Unanswered::Unread(error),
        })?;
        // Followers learn of it with the next answer.
        if let Some(hosted) = self.replicas.get_mut(&key) {
            hosted.follower_waiters.wake_all();
        }
        Ok(start)
    }
}

/// Looks into the batches that may hold it, as long as that takes the worker no longer than it may.
fn find(replica: &mut Replica, files: &mut FilePool, mut search: Search) -> Result<Searched, Unanswered> {
    loop {
        let batch = replica.timed_batch(search, files)?;
        let Some(batch) = batch else { return Ok(Searched::Nothing) };
        let began = barnabas_clock::now();
        let bytes_max = Spare::at_once(began).read_bytes_max;
        if batch.size_bytes() > bytes_max {
            return Ok(Searched::Later);
        }
        let looked = batch.look(bytes_max);
        Spare::spent(barnabas_clock::since(began));
        match looked {
            Ok(Some(found)) => return Ok(Searched::Found(found)),
            Ok(None) => {}
            Err(BatchError::TooLarge { .. }) => return Ok(Searched::Later),
            // As it was produced: nothing is damaged.
            Err(_) => return Err(Declined::Damaged.into()),
        }
        let (time, from) = batch.next();
        search = Search::ByTime(time, from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_beyond_the_turn_wait_for_the_next() {
        let items: Vec<u32> = (0..10).collect();
        let mut outcomes = Vec::new();
        let mut turn = |answers: usize| {
            let mut left = answers;
            let has_time = || {
                left -= 1;
                left > 0
            };
            let is_done = go_on(&items, &mut outcomes, |item| item * 2, has_time);
            (outcomes.len(), is_done)
        };
        assert_eq!([turn(4), turn(1), turn(4), turn(4)], [(4, false), (5, false), (9, false), (10, true)]);
        assert_eq!(outcomes, [0, 2, 4, 6, 8, 10, 12, 14, 16, 18]);
    }

    #[test]
    fn command_without_questions_is_answered_at_once() {
        let mut outcomes: Vec<u32> = Vec::new();
        assert!(go_on(&[], &mut outcomes, |item: &u32| *item, || false));
    }
}
