//! What this worker's replicas follow: whom they ask, what is made of the answers, when they may ask again.
//!
//! core/partition's `Fetchers` says what is asked next; a [`Line`] for each of them asks. What a leader has sent is checked (each
//! batch's CRC, and that it goes on where the log ends) and takes the way of every append: the round, the log, the journal. From there
//! on it is asked for what comes next, which is the follower's acknowledgement: not before the journal says that it is durable.
//!
//! Partitions that this broker follows are opened as soon as the image names them, a few in a turn, since nobody else asks for them.
//!
//! Always true:
//! 1. a replica asks from where all that it has is durable (by [`Partition::fetch_position`](barnabas_partition::Partition::fetch_position))
//! 2. what a leader sends is appended by the worker that owns the replica, while it follows that leader in that epoch
//! 3. while a journal has too much to write, nobody is asked
//!
//! Neighbours: replica/line.rs, which asks; cutting.rs, which cuts what the leader does not have; changes.rs, which says whom to follow.
//!
//! Source: Kafka `ReplicaFetcherThread`, `AbstractFetcherThread`.

use super::PartitionWorker;
use crate::full;
use crate::links::{Address, LinkError};
use crate::mailbox::{Declined, PartitionKey};
use crate::planted::{self, Mistake};
use crate::replica::line::{Line, address_of};
use crate::replica::{Replica, Word, batch_info};
use barnabas_api::replication::fetch;
use barnabas_base::{BrokerId, DurationMs, ErrorCode, MonotonicMs, Offset};
use barnabas_metadata::config::BrokerConfig;
use barnabas_metadata::{Image, Partition as Row};
use barnabas_partition::{
    Cut, FetchPlan, FetchPosition, Fetcher, FetcherId, FetcherSettings, Fetchers, Follow, Origin,
    PartitionAnswer, ReplicaKey, Todo,
};
use barnabas_storage::AppendBytes;
use barnabas_wire::messages::FetchResponse;
use barnabas_wire::records::{Batch, batches};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// After a first error. Producers wait for whoever has just been elected to hear of it.
const BACKOFF_MIN: DurationMs = DurationMs(10);
/// How long a request waits for partitions whose records are being synced.
const PATIENCE: DurationMs = DurationMs(10);
/// Fetchers of one leader, where that is needed: what is followed while all others wait for data is asked for by one more, so that it
/// does not wait as long with them.
const FETCHERS_MIN: i32 = 4;
/// How soon it is looked again whether throttled replicas must wait.
const THROTTLE_LOOK: DurationMs = DurationMs(100);
/// How long a turn of opening takes.
const OPEN_TURN: Duration = Duration::from_millis(2);
/// When what could not be opened is tried again.
const OPEN_AGAIN: Duration = Duration::from_secs(1);

/// See the file's header.
#[derive(Debug)]
pub(super) struct Following {
    fetchers: Fetchers,
    lines: BTreeMap<FetcherId, Line>,
    /// Replicas that were appended to, or of which more is durable.
    to_settle: Vec<PartitionKey>,
    /// Partitions that this broker follows, and that are not open.
    to_open: VecDeque<PartitionKey>,
    /// Those that could not be opened, and when they are tried again.
    to_open_again: Vec<PartitionKey>,
    open_again_at: Option<Instant>,
    /// Partitions of which the image says something new while their logs are being cut.
    roles_waiting: Vec<PartitionKey>,
    /// When it is looked whether the quota of throttled replicas still is exceeded.
    throttled_until: Option<MonotonicMs>,
    /// Partitions may be opened.
    has_begun: bool,
}

/// Why what a leader sent was not taken, or not all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NotTaken {
    /// The rest is for later: the metadata log comes first, or it was damaged on its way, or there is no room.
    Later,
    /// It does not fit this log, and will not.
    Never,
}

impl Following {
    pub fn new(config: &BrokerConfig) -> Self {
        let settings = FetcherSettings {
            backoff_min: BACKOFF_MIN,
            backoff_max: DurationMs(i64::from(config.int("replica.fetch.backoff.ms"))).max(BACKOFF_MIN),
            patience: PATIENCE,
        };
        let per_leader = usize::try_from(config.int("num.replica.fetchers").max(FETCHERS_MIN)).unwrap_or(1);
        Self {
            fetchers: Fetchers::new(settings, per_leader),
            lines: BTreeMap::new(),
            to_settle: Vec::new(),
            to_open: VecDeque::new(),
            to_open_again: Vec::new(),
            open_again_at: None,
            roles_waiting: Vec::new(),
            throttled_until: None,
            has_begun: false,
        }
    }

    /// Whether nobody is followed.
    pub fn is_idle(&self) -> bool {
        self.fetchers.is_empty()
            && self.lines.is_empty()
            && self.to_settle.is_empty()
            && self.to_open.is_empty()
            && self.to_open_again.is_empty()
    }

    /// More of a replica that follows is durable, or its cut is noted.
    pub fn durable(&mut self, replica: &mut Replica) {
        if let Some(cutting) = &mut replica.cutting {
            cutting.is_noted = true;
        }
        self.to_settle.push(replica.key);
    }

    /// A replica can do nothing more: its directory has failed.
    pub fn fail(&mut self, replica: &mut Replica, key: PartitionKey) {
        replica.cutting = None;
        if replica.following.take().is_some() {
            self.fetchers.unfollow(key.into());
        }
    }

    /// What the image says now is looked at once the log is cut.
    pub fn roles_wait(&mut self, key: PartitionKey) {
        self.roles_waiting.push(key);
    }

    /// Who asks for it, to be told whether it is throttled.
    pub fn throttled(&mut self, key: PartitionKey) -> Option<&mut Fetcher> {
        self.fetchers.of(key.into())
    }

    /// The partition is not open any more.
    pub fn forget(&mut self, key: PartitionKey) {
        self.fetchers.unfollow(key.into());
    }
}

impl PartitionWorker {
    /// The journals are read: what this broker follows is opened from now on.
    pub fn begin(&mut self) {
        self.following.has_begun = true;
        let image = self.node.image.load_full();
        self.follow_what_is_mine(&image);
    }

    /// Goes on with what is followed; to be called after each turn. Returns whether there is more to do at once. Costs nothing where
    /// nobody is followed.
    pub fn replicate(&mut self) -> bool {
        self.wake_followers();
        if self.following.is_idle() {
            self.following.throttled_until = None;
            return false;
        }
        let has_more = self.open_some();
        self.settle_some();
        self.ask_leaders();
        // What was cut, or opened, may have something for the journals.
        self.submit();
        has_more
    }

    /// When [`PartitionWorker::replicate`] or [`PartitionWorker::check_replicas`] is to be called though nothing has happened.
    pub fn replication_due(&self) -> Option<Instant> {
        let clock = self.node.clock;
        let ask = self.following.fetchers.next_wake().map(|at| clock.instant(at));
        let check = self.leading.check_at.map(|at| clock.instant(at));
        let early = self.early.due().map(|at| clock.instant(at));
        let throttled = self.following.throttled_until.map(|at| clock.instant(at));
        [ask, check, early, throttled, self.following.open_again_at].into_iter().flatten().min()
    }

    pub(super) fn hear_word(&mut self, word: Word) {
        match word {
            Word::Fetched { at, answer } => self.fetched(at, answer),
            Word::Ends { key, asked, ends } => self.found_ends(key, &asked, ends),
            Word::Altered { key, number, answer } => self.altered(key, number, answer),
        }
    }

    // Whom to follow.

    /// All partitions of this worker that are led elsewhere and have a replica here.
    pub(super) fn follow_what_is_mine(&mut self, image: &Image) {
        if !self.following.has_begun || image.cluster.broker_count() <= 1 {
            return;
        }
        for topic in image.topics.iter() {
            for (partition, row) in topic.partitions() {
                let key = PartitionKey { topic: topic.id, partition };
                if key.owner(self.node.workers) == self.id && !self.replicas.contains_key(&key) {
                    self.open_if_it_follows(key, row);
                }
            }
        }
    }

    pub(super) fn open_if_it_follows(&mut self, key: PartitionKey, row: &Row) {
        if self.following.has_begun && self.follows(row) {
            self.following.to_open.push_back(key);
        }
    }

    fn follows(&self, row: &Row) -> bool {
        let me = self.node.broker_id;
        row.replicas().len() > 1 && row.leader != me && row.has_replica(me)
    }

    fn open_some(&mut self) -> bool {
        let begun = Instant::now();
        if self.following.open_again_at.is_some_and(|at| at <= begun) {
            self.following.open_again_at = None;
            self.following.to_open.extend(self.following.to_open_again.drain(..));
        }
        while let Some(key) = self.following.to_open.pop_front() {
            let image = self.node.image.load_full();
            let row = image.topics.by_id(key.topic).and_then(|topic| topic.partition(key.partition));
            if row.is_some_and(|row| self.follows(row)) {
                match self.open(key) {
                    // The image may have changed while it was being opened.
                    Ok(()) => self.partition_changed(&image, key),
                    // Said where it failed; a directory that is full may have room again.
                    Err(Declined::Storage | Declined::Full) if !self.failed.contains(&key) => {
                        self.following.to_open_again.push(key);
                        self.following.open_again_at.get_or_insert(begun + OPEN_AGAIN);
                    }
                    Err(_) => {}
                }
            }
            if begun.elapsed() >= OPEN_TURN {
                break;
            }
        }
        !self.following.to_open.is_empty()
    }

    /// Asks whoever the image names for what comes next, or nobody.
    pub(super) fn turn_to_leader(&mut self, key: PartitionKey, row: &Row) {
        let me = self.node.broker_id;
        let Self { replicas, following, node, leading, .. } = self;
        let Some(replica) = replicas.get_mut(&key) else { return };
        let is_shared = row.replicas().len() > 1;
        let leads = row.leader == me;
        if leads && is_shared {
            leading.watch(node);
        }
        if is_shared && (!leads || replica.partition.isr_change().is_none()) {
            node.replication.isr.withdraw(key);
        }
        let follows = !leads && row.leader != BrokerId::NONE && row.has_replica(me);
        let whom = (follows && !replica.partition.is_failed()).then_some((row.leader, row.leader_epoch));
        let was = std::mem::replace(&mut replica.following, whom);
        match whom {
            Some((leader, epoch)) if was != whom => {
                let mut must_cut = Cut::Nothing;
                if planted::is(node, Mistake::TruncatesToHighWatermark) {
                    let high_watermark = replica.partition.high_watermark();
                    must_cut = replica.partition.out_of_range(Offset::ZERO, high_watermark);
                }
                replica.leaders_start = Offset::ZERO;
                let position = replica.partition.fetch_position(replica.log.epochs());
                following.fetchers.follow(key.into(), leader, epoch, position);
                let is_throttled = replica.throttled.as_follower;
                if is_throttled && let Some(fetcher) = following.fetchers.of(key.into()) {
                    fetcher.set_throttled(key.into(), true);
                }
                if must_cut != Cut::Nothing {
                    following.fetchers.follow(key.into(), leader, epoch, None);
                    self.cut(key, must_cut);
                }
            }
            None if was.is_some() => following.fetchers.unfollow(key.into()),
            _ => {}
        }
    }

    // What is asked.

    fn ask_leaders(&mut self) {
        let now = self.node.clock.monotonic();
        let is_exceeded = self.node.replication.throttles.follower.is_exceeded(now);
        self.following.throttled_until = is_exceeded.then(|| now.plus(THROTTLE_LOOK));
        if self.node.directories.iter().any(|directory| directory.journal.is_over()) {
            // There will be a report when there is room.
            return;
        }
        let ids = self.following.fetchers.ids();
        self.following.lines.retain(|at, _| ids.contains(at));
        for at in ids {
            let plan = self.following.fetchers.get_mut(at).and_then(|fetcher| fetcher.plan(now, is_exceeded));
            if let Some(plan) = plan {
                self.ask_leader(at, plan, now);
            }
        }
    }

    fn ask_leader(&mut self, at: FetcherId, plan: FetchPlan, now: MonotonicMs) {
        let config = self.node.config.load_full();
        let Some(address) = address_of(&self.node.image.load(), at, &config) else {
            if let Some(fetcher) = self.following.fetchers.get_mut(at) {
                fetcher.unanswered(now);
            }
            return;
        };
        let mut follower = self.follower(&config);
        follower.wait_max = plan.wait_max.map_or(follower.wait_max, |most| follower.wait_max.min(most));
        let timeout_ms = u64::try_from(config.int("replica.socket.timeout.ms")).unwrap_or(30_000);
        let line = self.line(at, address, &config);
        line.fetch(follower, plan, Duration::from_millis(timeout_ms));
    }

    /// How this broker asks.
    fn follower(&self, config: &BrokerConfig) -> fetch::Follower {
        fetch::Follower {
            broker: self.node.broker_id,
            broker_epoch: self.node.broker_epoch(),
            cluster_id: self.node.cluster_id.clone(),
            wait_max: DurationMs(i64::from(config.int("replica.fetch.wait.max.ms"))),
            bytes_min: config.int("replica.fetch.min.bytes"),
            bytes_max: config.int("replica.fetch.response.max.bytes"),
            partition_bytes_max: config.int("replica.fetch.max.bytes"),
        }
    }

    /// The connection of this fetcher, made anew where its leader has another address now.
    fn line(&mut self, at: FetcherId, address: Address, config: &BrokerConfig) -> &Line {
        let Self { following, node, id, .. } = self;
        let open = |address| Line::open(address, at, config, node.mailboxes[*id].clone());
        let line = following.lines.entry(at).or_insert_with(|| open(address.clone()));
        if *line.address() != address {
            *line = open(address);
        }
        line
    }

    // What is answered.

    fn fetched(&mut self, at: FetcherId, answer: Result<Box<FetchResponse>, LinkError>) {
        let now = self.node.clock.monotonic();
        let Some(fetcher) = self.following.fetchers.get_mut(at) else { return };
        let response = match answer {
            Ok(response) => *response,
            Err(error) => {
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
        if replica.cutting.is_some() {
            return;
        }
        if !replica.partition.may_take(asked, replica.log.epochs()) {
            self.following.to_settle.push(key);
            return;
        }
        match todo {
            Todo::Append | Todo::Marks => self.take_answer(key, answer, now),
            Todo::Cut { epoch, end } => {
                let cut = replica.partition.diverged(epoch, end, replica.log.epochs());
                self.cut(key, cut);
            }
            Todo::FindEnds { .. } => self.find_ends(leader, key, asked, now),
            Todo::Later => {
                let error = answer.error;
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
        let taken = if records.is_empty() { Ok(()) } else { self.take_records(key, records) };
        let Self { replicas, effects, .. } = self;
        let Some(replica) = replicas.get_mut(&key).filter(|replica| !replica.partition.is_failed()) else {
            return;
        };
        replica.leaders_start = log_start;
        replica.partition.follow_high_watermark(high_watermark, effects);
        self.apply_effects(key);
        self.follow_start(key);
        match taken {
            Ok(()) => self.following.to_settle.push(key),
            Err(NotTaken::Later) => {
                if let Some(fetcher) = self.following.fetchers.of(key.into()) {
                    fetcher.delayed(key.into(), now);
                }
                // Part of it may have been taken.
                self.following.to_settle.push(key);
            }
            Err(NotTaken::Never) => {
                if let Some(fetcher) = self.following.fetchers.of(key.into()) {
                    fetcher.failed(key.into());
                }
            }
        }
    }

    /// The leader has dropped what lies at the front. Here that counts once it is safe, and it is laid first, so that the log's start
    /// never lies in what is in memory alone.
    fn follow_start(&mut self, key: PartitionKey) {
        let Some(replica) = self.replicas.get(&key) else { return };
        let to = replica.leaders_start.min(replica.partition.high_watermark());
        if to <= replica.partition.log_start() {
            return;
        }
        if to > replica.log.laid_end() && self.lay_all(key).is_err() {
            return;
        }
        let Self { replicas, effects, .. } = self;
        if let Some(replica) = replicas.get_mut(&key) {
            replica.partition.advance_log_start(to, effects);
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
                    let end = replica.partition.log_end();
                    tracing::warn!(
                        partition = %replica.name.topic_partition, %error,
                        "what the leader sent from offset {end} on is damaged; it is asked for again"
                    );
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
            self.close_segment(key);
        }
        let Self { replicas, effects, touched, lists, node, .. } = self;
        let Some(replica) = replicas.get_mut(&key).filter(|replica| !replica.partition.is_failed()) else {
            node.directories[directory].room.settle(bytes as u64);
            return Err(NotTaken::Later);
        };
        let info = batch_info(&header, || batch.bytes().clone());
        replica.partition.follow(header.base_offset, &info, effects);
        if replica.round.is_empty() {
            touched.push(key);
            replica.round = lists.pop().unwrap_or_default();
        }
        replica.round_bytes += bytes;
        replica.round.push(AppendBytes::Whole(batch.bytes().clone()));
        self.apply_effects(key);
        Ok(true)
    }

    /// Asks from where all that they have is durable.
    fn settle_some(&mut self) {
        let mut keys = std::mem::take(&mut self.following.to_settle);
        for key in keys.drain(..) {
            self.settle(key);
        }
        // What came meanwhile is looked at in the next turn.
        if self.following.to_settle.is_empty() {
            self.following.to_settle = keys;
        }
    }

    pub(super) fn settle(&mut self, key: PartitionKey) {
        let is_noted = |replica: &Replica| replica.cutting.is_some_and(|cutting| cutting.is_noted);
        if self.replicas.get(&key).is_some_and(is_noted) {
            self.cut_now(key);
        }
        self.follow_start(key);
        let Self { replicas, following, .. } = self;
        let Some(replica) = replicas.get(&key).filter(|replica| !replica.partition.is_failed()) else {
            // It met a full disk, and is made anew from its log.
            following.fetchers.unfollow(key.into());
            following.to_open_again.push(key);
            following.open_again_at.get_or_insert(Instant::now() + OPEN_AGAIN);
            return;
        };
        if replica.cutting.is_none()
            && let Some(position) = replica.partition.fetch_position(replica.log.epochs())
            && let Some(fetcher) = following.fetchers.of(key.into())
        {
            fetcher.settled(key.into(), position);
        }
    }

    /// What waited for a log that was being cut.
    pub(super) fn take_waiting_roles(&mut self) {
        for key in std::mem::take(&mut self.following.roles_waiting) {
            let image = self.node.image.load_full();
            self.partition_changed(&image, key);
        }
    }

    fn find_ends(&mut self, leader: BrokerId, key: PartitionKey, asked: &FetchPosition, now: MonotonicMs) {
        let config = self.node.config.load_full();
        let follower = self.follower(&config);
        let Self { following, replicas, .. } = self;
        let Some(replica) = replicas.get(&key) else { return };
        let topic = replica.name.topic_partition.topic.clone();
        let line = following.lines.iter().find(|(at, _)| at.leader == leader).map(|(_, line)| line);
        if let Some(line) = line {
            line.find_ends(&follower, key.into(), topic, *asked);
        }
        // If nobody answers it is asked for again.
        if let Some(fetcher) = following.fetchers.of(key.into()) {
            fetcher.delayed(key.into(), now);
        }
    }

    fn found_ends(
        &mut self,
        key: PartitionKey,
        asked: &FetchPosition,
        ends: Result<(Offset, Offset), ErrorCode>,
    ) {
        let Some(replica) = self.replicas.get(&key).filter(|replica| replica.cutting.is_none()) else {
            return;
        };
        if let Ok((start, end)) = ends
            && replica.partition.may_take(asked, replica.log.epochs())
        {
            let cut = replica.partition.out_of_range(start, end);
            self.cut(key, cut);
        }
    }
}

fn never(replica: &Replica, why: &str) -> NotTaken {
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
