//! What leaders have sent: checked, appended, and their marks taken over.
//!
//! Each batch's CRC is checked, and that it goes on where the log ends; from there on it takes the way of every append: the round, the
//! log, the journal. What a leader has beyond the records (its high watermark, where its log begins) counts here once it is so here too.
//!
//! Always true: nothing is appended that was asked for from another place than where the log ends, or in another epoch.
//!
//! Neighbours: following.rs, which asks; truncation.rs, which cuts what the leader does not have; rounds.rs, which writes.
//!
//! Source: Kafka `AbstractFetcherThread.processFetchRequest`, `ReplicaFetcherThread.processPartitionData`.

use super::PartitionWorker;
use crate::full;
use crate::links::LinkError;
use crate::mailbox::PartitionKey;
use crate::replica::{Hosted, batch_info};
use barnabas_api::replication::fetch;
use barnabas_base::{BrokerId, DurationMs, ErrorCode, MonotonicMs, Offset};
use barnabas_partition::{FetchPosition, FetcherId, Follow, Origin, PartitionAnswer, ReplicaKey, Todo};
use barnabas_storage::AppendBytes;
use barnabas_wire::messages::FetchResponse;
use barnabas_wire::records::{Batch, batches};
use bytes::Bytes;

/// Why what a leader sent was not taken, or not all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NotTaken {
    /// The rest is for later: the metadata log comes first, or it was damaged on its way, or there is no room.
    Later,
    /// It does not fit this log, and will not.
    Never,
}

impl PartitionWorker {
    pub(super) fn fetched(&mut self, at: FetcherId, answer: Result<Box<FetchResponse>, LinkError>) {
        let now = self.node.clock.monotonic();
        let Some(fetcher) = self.following.fetcher(at) else { return };
        let response = match answer {
            Ok(response) => {
                self.node.lost_touch.found(at.leader);
                *response
            }
            Err(error) => {
                if matches!(error, LinkError::Lost { .. } | LinkError::Unreachable { .. }) {
                    self.node.lost_touch.lost(&self.node.image.load(), at.leader, now);
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
        let key = PartitionKey::from(key_of(&answer));
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
                // Its leader has seen it behind. What came comes again once there is a place for it.
                if let Some(replica) = self.replicas.get_mut(&key) {
                    replica.partition.seen_behind();
                }
                if let Some(fetcher) = self.following.fetcher_of(key) {
                    fetcher.delayed(key.into(), now);
                }
                self.repair(key);
            }
            Todo::Append | Todo::Marks => self.take_answer(key, answer, now),
            Todo::Cut { epoch, end } => {
                let cut = replica.partition.diverged(epoch, end, replica.log.epochs());
                self.truncate(key, cut);
            }
            Todo::FindEnds { .. } => self.find_ends(leader, key, asked, now),
            Todo::Later => {
                let error = answer.error;
                if error == ErrorCode::CorruptMessage {
                    self.warn_of_leader(key, asked.offset, error.name());
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
        if self.replicas.get(&key).is_some_and(|replica| replica.throttled.as_follower) {
            self.node.replication.throttles.follower.record(records.len(), now);
        }
        self.recorder.cells().replicated_in.add(records.len() as u64);
        let before = self.replicas.get(&key).map_or(Offset::ZERO, |replica| replica.partition.log_end());
        let taken = if records.is_empty() { Ok(()) } else { self.take_records(key, records) };
        let Self { replicas, effects, following, recorder, .. } = self;
        let Some(replica) = replicas.get_mut(&key).filter(|replica| !replica.partition.is_failed()) else {
            return;
        };
        let end = replica.partition.log_end();
        following.took(key, end.get() - before.get(), high_watermark.get() - end.get());
        following.count(recorder.cells());
        replica.leader_start = log_start;
        replica.partition.follow_high_watermark(high_watermark, &mut effects.decisions);
        self.apply_effects(key);
        self.follow_start(key);
        match taken {
            Ok(()) => self.following.settle_soon(key),
            Err(NotTaken::Later) => {
                if let Some(fetcher) = self.following.fetcher_of(key) {
                    fetcher.delayed(key.into(), now);
                }
                // Part of it may have been taken.
                self.following.settle_soon(key);
            }
            Err(NotTaken::Never) => {
                if let Some(fetcher) = self.following.fetcher_of(key) {
                    fetcher.failed(key.into());
                }
            }
        }
    }

    /// The leader has dropped what lies at the front. Here that counts once it is safe, and it is laid first, so that the log's start
    /// never lies in what is in memory alone.
    pub(super) fn follow_start(&mut self, key: PartitionKey) {
        let Some(replica) = self.replicas.get(&key) else { return };
        let to = replica.leader_start.min(replica.partition.high_watermark());
        if to <= replica.partition.log_start() {
            return;
        }
        if to > replica.log.laid_end() && self.lay_all(key).is_err() {
            return;
        }
        let Self { replicas, effects, .. } = self;
        if let Some(replica) = replicas.get_mut(&key) {
            replica.partition.advance_log_start(to, &mut effects.decisions);
        }
        self.apply_effects(key);
    }

    fn take_records(&mut self, key: PartitionKey, records: Bytes) -> Result<(), NotTaken> {
        for read in batches(records) {
            let sound = read.and_then(|batch| batch.check_crc().map(|()| batch));
            match sound {
                Ok(batch) => {
                    if !self.take_batch(key, batch)? {
                        return Ok(());
                    }
                }
                Err(error) => {
                    let Some(replica) = self.replicas.get(&key) else { return Err(NotTaken::Later) };
                    self.warn_of_leader(key, replica.partition.log_end(), &error.to_string());
                    return Err(NotTaken::Later);
                }
            }
        }
        Ok(())
    }

    /// Puts one batch into the round. `false`: it and what comes after it are for later.
    fn take_batch(&mut self, key: PartitionKey, batch: Batch) -> Result<bool, NotTaken> {
        let moment = self.moment();
        let (header, bytes) = (*batch.header(), batch.bytes().len());
        let offsets = header.last_offset_delta.wrapping_add(1);
        let Some(replica) = self.replicas.get(&key) else { return Err(NotTaken::Later) };
        match replica.partition.judge(header.base_offset, offsets, header.partition_leader_epoch) {
            Ok(Follow::Skip) => return Ok(true),
            Ok(Follow::Stop) => return Ok(false),
            Ok(Follow::Append | Follow::AppendFromBelow) if offsets > 0 => {}
            Ok(_) | Err(_) => {
                return Err(never(replica, "the leader's batches do not go on where this log ends"));
            }
        }
        if bytes > replica.log.config().segment_bytes as usize {
            return Err(never(replica, "the leader sent a batch that is larger than a segment may be here"));
        }
        let directory = replica.directory;
        let room = &self.node.directories[directory].room;
        if !room.admit(bytes, full::writer(Origin::Coordinator), moment.monotonic) {
            return Err(NotTaken::Later);
        }
        if replica.rolls_at(bytes, header.last_offset(), header.max_timestamp, moment.wall) {
            self.close_segment(key, moment);
        }
        let Self { replicas, effects, touched, lists, node, .. } = self;
        let Some(replica) = replicas.get_mut(&key).filter(|replica| !replica.partition.is_failed()) else {
            node.directories[directory].room.settle(bytes as u64);
            return Err(NotTaken::Later);
        };
        let info = batch_info(&header, || batch.bytes().clone());
        replica.partition.follow(header.base_offset, &info, &mut effects.decisions);
        if replica.round.is_empty() {
            touched.push(key);
        }
        replica.round.push(AppendBytes::Whole(batch.bytes().clone()), lists);
        self.apply_effects(key);
        Ok(true)
    }
}

fn never(replica: &Hosted, why: &str) -> NotTaken {
    let (start, end) = (replica.partition.log_start(), replica.partition.log_end());
    tracing::error!(
        partition = %replica.name.topic_partition,
        "{why} (its log: {start} up to {end}): the replica follows no more until the partition is led anew"
    );
    NotTaken::Never
}

fn key_of(answer: &fetch::Answer) -> ReplicaKey {
    ReplicaKey { topic: answer.topic, partition: answer.partition }
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
