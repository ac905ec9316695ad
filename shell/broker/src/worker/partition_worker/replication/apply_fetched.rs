//! What leaders have sent: each partition's part of an answer goes to its replica, and what the fetcher does next is
//! decided.
//!
//! Always true: nothing is appended that was asked for from another place than where the log ends, or in another epoch.
//!
//! Neighbours: replica_fetcher.rs, which asks; truncation.rs, which truncates; core/replica/src/append/fetch_append.rs,
//! which appends.
//!
//! Source: Kafka `AbstractFetcherThread.processFetchRequest`.

use crate::mailbox::PartitionKey;
use crate::worker::partition_worker::PartitionWorker;
use crate::worker::partition_worker::appends::rounds::carry_out;
use crate::worker::partition_worker::appends::rounds::surroundings;
use crate::worker::replica::Hosted;
use barnabas_api::replication::fetch;
use barnabas_base::{BrokerId, DurationMs, ErrorCode, MonotonicMs, Offset};
use barnabas_net::links::LinkError;
use barnabas_partition::{Cut, FetchPosition, FetcherId, PartitionAnswer, Todo};
use barnabas_replica::{Misfit, NotApplied};
use barnabas_storage::Writer;
use barnabas_wire::messages::FetchResponse;
use bytes::Bytes;

impl PartitionWorker {
    pub fn fetched(&mut self, at: FetcherId, answer: Result<Box<FetchResponse>, LinkError>) {
        let now = self.node.clock.monotonic();
        let Some(fetcher) = self.following.fetcher(at) else { return };
        let response = match answer {
            Ok(response) => {
                self.node.cluster.suspected_brokers.found(at.leader);
                *response
            }
            Err(error) => {
                if matches!(error, LinkError::Lost { .. } | LinkError::Unreachable { .. }) {
                    self.node.cluster.suspected_brokers.lost(&self.node.cluster.image.load(), at.leader, now);
                }
                tracing::debug!(leader = %at.leader, %error, "a leader did not answer a fetch");
                fetcher.unanswered(now);
                return;
            }
        };
        let (error, session) = (ErrorCode::from_code(response.error_code), response.session_id);
        let throttle = DurationMs(i64::from(response.throttle_time_ms));
        let answers: Vec<fetch::Answer> = fetch::answers(response).collect();
        let words: Vec<PartitionAnswer> = answers.iter().map(in_short).collect();
        let mut todos = Vec::new();
        fetcher.answered(error, session, throttle, &words, now, |key, asked, todo| {
            todos.push((key, *asked, todo));
        });
        // They come in the order of the answers.
        let mut answers = answers.into_iter();
        for (key, asked, todo) in todos {
            let is_it = |answer: &fetch::Answer| key_of(answer) == key;
            let Some(answer) = answers.by_ref().find(is_it) else { return };
            self.carry_on(at.leader, &asked, todo, answer, now);
        }
    }

    fn carry_on(
        &mut self,
        leader: BrokerId,
        asked: &FetchPosition,
        todo: Todo,
        answer: fetch::Answer,
        now: MonotonicMs,
    ) {
        let key = key_of(&answer);
        let Some(replica) = self.replicas.get(&key) else { return self.following.forget(key) };
        if replica.truncation.is_some() {
            return;
        }
        if !replica.partition.may_take(asked, replica.log.epochs()) {
            self.following.settle_soon(key);
            return;
        }
        match todo {
            Todo::Append if replica.partition.asks_again_from().is_some() => {
                self.take_again(key, asked, answer, now);
            }
            Todo::Append | Todo::Marks => match replica.partition.uncompared(answer.log_start) {
                Cut::Nothing => self.take_answer(key, answer, now),
                cut => self.truncate(key, cut),
            },
            Todo::Cut { epoch, end } => {
                let cut = replica.partition.diverged(epoch, end, replica.log.epochs());
                self.truncate(key, cut);
            }
            Todo::FindEnds { .. } => self.find_ends(leader, key, asked, now),
            Todo::Later => {
                let error = answer.error;
                if error == ErrorCode::CorruptMessage {
                    self.leader_is_damaged(key, asked.offset, error.name());
                    return;
                }
                tracing::debug!(partition = %replica.name.topic_partition, %leader, %error, "asked for again later");
            }
            Todo::AwaitMetadata => {}
        }
    }

    /// Appends what came, and takes over the leader's marks.
    fn take_answer(&mut self, key: PartitionKey, answer: fetch::Answer, now: MonotonicMs) {
        let fetch::Answer { records, high_watermark, log_start, .. } = answer;
        self.recorder.cells().replicated_in.add(records.len() as u64);
        let Some((applied, before)) = self.apply_fetched(key, records, now) else { return };
        let applied = applied.map_err(|not| self.log_not_applied(key, &not));
        if self.replicas.get(&key).is_none_or(|replica| replica.partition.is_failed()) {
            return;
        }
        let moment = self.moment();
        let end = self.step(key, moment, |replica, around| {
            replica.apply_marks(high_watermark, log_start, around);
            replica.partition.log_end()
        });
        let Some(end) = end else { return };
        self.following.took(key, end.get() - before.get(), high_watermark.get() - end.get());
        self.following.count(self.recorder.cells());
        match applied {
            Ok(()) => self.following.settle_soon(key),
            Err(Again::Later) => {
                if let Some(fetcher) = self.following.fetcher_of(key) {
                    fetcher.delayed(key, now);
                }
                // Part of it may have been applied.
                self.following.settle_soon(key);
            }
            Err(Again::Never) => {
                if let Some(fetcher) = self.following.fetcher_of(key) {
                    fetcher.failed(key);
                }
            }
        }
    }

    /// Puts records into the round. Returns what came of it, and where the log ended before. `None`: the partition is
    /// not open.
    fn apply_fetched(
        &mut self,
        key: PartitionKey,
        records: Bytes,
        now: MonotonicMs,
    ) -> Option<(Result<(), NotApplied>, Offset)> {
        let moment = self.moment();
        let Self { replicas, files, node, journaled, lists, effects, tickets, following, touched, .. } = self;
        let hosted = replicas.get_mut(&key)?;
        if hosted.throttled.as_follower {
            node.peers.replication.throttles.follower.record(records.len(), now);
        }
        let (before, was_empty) = (hosted.partition.log_end(), hosted.round.is_empty());
        if records.is_empty() {
            return Some((Ok(()), before));
        }
        let directory = hosted.directory;
        let room = &node.log_dirs.directories[directory].room;
        let admit = |bytes| room.admit(bytes, Writer::Coordinator, moment.monotonic);
        let files = &mut files[directory];
        let mut around = surroundings(moment, (directory, files), journaled, lists, node, effects);
        let applied = hosted.replica.apply_fetched(records, admit, &mut around);
        if was_empty && !hosted.round.is_empty() {
            touched.push(key);
        }
        carry_out(effects, tickets, node, following, Some(hosted));
        self.carry_out_rest(key);
        Some((applied, before))
    }

    /// The leader's start counts here once that is safe.
    pub fn follow_start(&mut self, key: PartitionKey) {
        let lags = |replica: &Hosted| replica.leader_start > replica.partition.log_start();
        if self.replicas.get(&key).is_some_and(lags) {
            let now = self.now();
            self.step(key, now, |replica, around| replica.follow_start(around));
        }
    }

    fn log_not_applied(&self, key: PartitionKey, not: &NotApplied) -> Again {
        let misfit = match not {
            NotApplied::Later => return Again::Later,
            NotApplied::Damaged { at, error } => {
                self.warn_of_leader(key, *at, &error.to_string());
                return Again::Later;
            }
            NotApplied::Never(misfit) => misfit,
        };
        let why = match misfit {
            Misfit::NoSuccessor => "the leader's batches do not go on where this log ends",
            Misfit::LargerThanASegment => "the leader sent a batch that is larger than a segment may be here",
        };
        if let Some(replica) = self.replicas.get(&key) {
            let (start, end) = (replica.partition.log_start(), replica.partition.log_end());
            tracing::error!(
                partition = %replica.name.topic_partition,
                "{why} (local log: {start} up to {end}): the replica stops fetching until the \
                 next leader election"
            );
        }
        Again::Never
    }
}

/// When what was not applied is fetched again.
#[derive(Debug, Clone, Copy)]
enum Again {
    Later,
    Never,
}

fn key_of(answer: &fetch::Answer) -> PartitionKey {
    PartitionKey { topic: answer.topic, partition: answer.partition }
}

fn in_short(answer: &fetch::Answer) -> PartitionAnswer {
    PartitionAnswer {
        key: key_of(answer),
        error: answer.error,
        high_watermark: answer.high_watermark,
        log_start: answer.log_start,
        diverging: answer.diverging,
        bytes: answer.records.len(),
    }
}
