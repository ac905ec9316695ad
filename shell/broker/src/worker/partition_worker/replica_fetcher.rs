//! What this worker's replicas follow: whom they ask, and when they may ask again.
//!
//! core/partition's `Fetchers` says what is asked next; a [`FetcherConnection`] for each of them asks. What a leader
//! has sent (apply_fetched.rs) is durable before it is asked for what comes next, which is the follower's
//! acknowledgement.
//!
//! Partitions that this broker follows are opened as soon as the image names them, a few in a turn, since no request
//! opens them.
//!
//! Always true:
//! 1. a replica asks from where all that it has is durable (by
//!    [`Partition::fetch_position`](barnabas_partition::Partition::fetch_position))
//! 2. what a leader sends is appended by the worker that owns the replica, while it follows that leader in that epoch
//!    (apply_fetched.rs)
//! 3. while a journal has too much to write, nothing is fetched for it; while its room is reserved for producers,
//!    only in-sync replicas fetch
//!
//! Neighbours: replica/fetch_connection.rs, which asks; apply_fetched.rs, which takes what is answered; truncation.rs,
//! which cuts what the leader does not have; changes.rs, which says whom to follow.
//!
//! Source: Kafka `ReplicaFetcherThread`, `AbstractFetcherThread`.

use super::PartitionWorker;
use crate::log_dirs::journal_thread::JournalHandle;
use crate::mailbox::ReplicationEvent;
use crate::mailbox::{Declined, PartitionKey};
use crate::node::log_rate_limit::LogRateLimit;
use crate::node::peers::planted::{self, Mistake};
use crate::node::peers::replication::arrivals::Arriving;
use crate::routing::addresses::address_of;
use crate::upkeep::placement::lost;
use crate::worker::replica::Hosted;
use crate::worker::replica::aside::Aside;
use crate::worker::replica::behind::Behind;
use crate::worker::replica::bulk::Bulk;
use crate::worker::replica::fetch_connection::FetcherConnection;
use crate::worker::replica::fetch_settings::FetchSettings;
use barnabas_base::{BrokerId, DurationMs, ErrorCode, MonotonicMs, Offset};
use barnabas_metadata::config::BrokerConfig;
use barnabas_metadata::{Image, Partition as Row};
use barnabas_metrics::WorkerCells;
use barnabas_net::links::Address;
use barnabas_partition::{Cut, FetchPlan, FetchPosition, Fetcher, FetcherId, FetcherSettings, Fetchers};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// After a first error. Producers wait while a new leader does not know of its election yet.
const BACKOFF_MIN: DurationMs = DurationMs(10);
/// How long a request waits for partitions whose records are being synced.
const PATIENCE: DurationMs = DurationMs(10);
/// Fetchers of one leader, where that is needed: what is followed while all others wait for data is asked for by one
/// more, so that it does not wait as long with them.
const FETCHERS_MIN: i32 = 4;
/// How soon it is looked again whether throttled replicas must wait.
const THROTTLE_LOOK: DurationMs = DurationMs(100);
/// How soon it is looked again whether the journal has room for what can wait.
const CROWD_LOOK: DurationMs = DurationMs(10);
/// How long a turn of opening takes.
const OPEN_TURN: Duration = Duration::from_millis(2);
/// When what could not be opened is tried again.
const OPEN_AGAIN: Duration = Duration::from_secs(1);

/// See the file's header.
#[derive(Debug)]
pub(super) struct Following {
    fetchers: Fetchers,
    connections: BTreeMap<FetcherId, FetcherConnection>,
    settings: FetchSettings,
    bulk: Bulk,
    /// Replicas that were appended to, or of which more is durable.
    to_settle: Vec<PartitionKey>,
    /// Partitions that this broker follows, and that are not open.
    to_open: VecDeque<PartitionKey>,
    /// Those that could not be opened, and when they are tried again.
    to_open_again: Vec<PartitionKey>,
    open_again_at: Option<Instant>,
    /// Partitions of which the image says something new while their logs are being cut.
    roles_waiting: Vec<PartitionKey>,
    /// Replicas that a reassignment brings here, and what they lack.
    arriving: Arriving,
    behind: Behind,
    /// Damaged replicas that wait, or ask beside their fetches.
    pub(super) aside: Aside,
    /// Of replicas whose leaders' records are damaged it has been said.
    pub(super) damaged_leaders: LogRateLimit<PartitionKey>,
    /// Leaders that do not let a damaged replica read.
    pub(super) refused_repairs: LogRateLimit<PartitionKey>,
    /// When it is looked whether the quota of throttled replicas still is exceeded, and who is not in sync may be asked
    /// for.
    throttled_until: Option<MonotonicMs>,
    /// No fetch before the first time, and none for out-of-sync replicas before the second.
    not_before: MonotonicMs,
    bulk_not_before: MonotonicMs,
    /// Partitions may be opened.
    has_begun: bool,
}

impl Following {
    pub fn new(config: &Arc<BrokerConfig>) -> Self {
        let settings = FetcherSettings {
            backoff_min: BACKOFF_MIN,
            backoff_max: DurationMs(i64::from(config.int("replica.fetch.backoff.ms"))).max(BACKOFF_MIN),
            patience: PATIENCE,
        };
        let per_leader = usize::try_from(config.int("num.replica.fetchers").max(FETCHERS_MIN)).unwrap_or(1);
        Self {
            fetchers: Fetchers::new(settings, per_leader),
            connections: BTreeMap::new(),
            settings: FetchSettings::new(Arc::clone(config)),
            bulk: Bulk::default(),
            to_settle: Vec::new(),
            to_open: VecDeque::new(),
            to_open_again: Vec::new(),
            open_again_at: None,
            roles_waiting: Vec::new(),
            arriving: Arriving::default(),
            behind: Behind::default(),
            aside: Aside::default(),
            damaged_leaders: LogRateLimit::default(),
            refused_repairs: LogRateLimit::default(),
            throttled_until: None,
            not_before: MonotonicMs(0),
            bulk_not_before: MonotonicMs(0),
            has_begun: false,
        }
    }

    /// Whether this worker follows no partition.
    pub fn is_idle(&self) -> bool {
        self.fetchers.is_empty()
            && self.connections.is_empty()
            && self.to_settle.is_empty()
            && self.to_open.is_empty()
            && self.to_open_again.is_empty()
    }

    /// A replica can do nothing more: its directory has failed.
    pub fn fail(&mut self, replica: &mut Hosted, key: PartitionKey) {
        replica.truncation = None;
        if replica.following.take().is_some() {
            self.behind.forget(key);
            self.fetchers.unfollow(key);
        }
    }

    /// What the image says now is looked at once the log is cut.
    pub fn roles_wait(&mut self, key: PartitionKey) {
        self.roles_waiting.push(key);
    }

    pub fn fetcher(&mut self, at: FetcherId) -> Option<&mut Fetcher> {
        self.fetchers.get_mut(at)
    }

    /// A fetcher that has just taken over the partition does not know of its throttle.
    fn set_throttled(&mut self, key: PartitionKey, is_throttled: bool) {
        if is_throttled && let Some(fetcher) = self.fetchers.of(key) {
            fetcher.set_throttled(key, true);
        }
    }

    /// Who asks for it.
    pub fn fetcher_of(&mut self, key: PartitionKey) -> Option<&mut Fetcher> {
        self.fetchers.of(key)
    }

    /// It is looked at in this turn what is to be asked for next.
    pub fn settle_soon(&mut self, key: PartitionKey) {
        self.to_settle.push(key);
    }

    /// It met a full disk.
    pub fn settle_later(&mut self, key: PartitionKey) {
        self.to_open_again.push(key);
        self.open_again_at.get_or_insert(barnabas_clock::now() + OPEN_AGAIN);
    }

    /// The partition is not open any more.
    pub fn forget(&mut self, key: PartitionKey) {
        self.fetchers.unfollow(key);
        self.arriving.set(key, false);
        self.behind.forget(key);
    }

    /// What a leader sent of a replica was taken: how many records that were, and how many it has more.
    pub fn took(&mut self, key: PartitionKey, records: i64, left: i64) {
        self.arriving.took(key, records, left);
        self.behind.set(key, left);
    }

    pub fn count(&self, cells: &WorkerCells) {
        self.arriving.count(cells);
        self.behind.count(cells);
    }
}

impl PartitionWorker {
    /// The journals are read: what this broker follows is opened from now on.
    pub fn begin(&mut self) {
        self.following.has_begun = true;
        let image = self.node.cluster.image.load_full();
        self.follow_what_is_mine(&image);
    }

    /// Continues fetching; called after each turn. Returns whether there is more to do at once. Costs nothing if no
    /// partition is followed.
    pub fn replicate(&mut self) -> bool {
        self.wake_followers();
        self.tell_who_is_in_sync();
        self.following.count(self.recorder.cells());
        if self.following.is_idle() {
            self.following.throttled_until = None;
            self.following.aside.clear();
            return false;
        }
        let has_more = self.open_some();
        self.settle_some();
        self.repair_some();
        self.ask_leaders();
        // What was cut, or opened, may have something for the journals.
        self.submit();
        has_more || !self.following.to_settle.is_empty()
    }

    /// When [`PartitionWorker::replicate`] or [`PartitionWorker::check_replicas`] is to be called though nothing has
    /// happened.
    pub fn replication_due(&self) -> Option<Instant> {
        let clock = self.node.clock;
        let Following { fetchers, not_before, bulk_not_before, .. } = &self.following;
        let ask = fetchers.next_wake(*bulk_not_before).map(|at| clock.instant(at.max(*not_before)));
        let check = self.leading.check_at.map(|at| clock.instant(at));
        let early = self.early.due().map(|at| clock.instant(at));
        let throttled = self.following.throttled_until.map(|at| clock.instant(at));
        let aside = self.following.aside.due().map(|at| clock.instant(at));
        [ask, check, early, throttled, aside, self.following.open_again_at].into_iter().flatten().min()
    }

    pub(super) fn on_replication_event(&mut self, event: ReplicationEvent) {
        match event {
            ReplicationEvent::Fetched { at, answer } => self.fetched(at, answer),
            ReplicationEvent::Ends { key, asked, ends } => self.found_ends(key, &asked, ends),
            ReplicationEvent::Aside { key, asked, answer } => self.fetched_aside(key, &asked, answer),
            ReplicationEvent::Altered { key, number, answer } => self.altered(key, number, answer),
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
                if key.owner(self.node.workers.count) == self.id && !self.replicas.contains_key(&key) {
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
        let me = self.node.identity.broker_id;
        let is_led_elsewhere = row.replicas().len() > 1 && row.leader != me && row.has_replica(me);
        // One whose directory is gone waits until the metadata log knows another.
        is_led_elsewhere && !lost::is_lost(&self.node.log_dirs.directories, me, row)
    }

    fn open_some(&mut self) -> bool {
        let begun = barnabas_clock::now();
        if self.following.open_again_at.is_some_and(|at| at <= begun) {
            self.following.open_again_at = None;
            self.following.to_open.extend(self.following.to_open_again.drain(..));
        }
        while let Some(key) = self.following.to_open.pop_front() {
            if self.replicas.get(&key).is_some_and(|replica| replica.truncation.is_some()) {
                // Its truncation is delayed.
                self.following.settle_soon(key);
                continue;
            }
            let image = self.node.cluster.image.load_full();
            let row = image.topics.by_id(key.topic).and_then(|topic| topic.partition(key.partition));
            if row.is_some_and(|row| self.follows(row)) {
                match self.open(key) {
                    // The image may have changed while it was being opened.
                    Ok(()) => {
                        self.partition_changed(&image, key);
                        self.following.settle_soon(key);
                    }
                    // Said where it failed; a directory that is full may have room again.
                    Err(Declined::Storage | Declined::Full) if !self.failed.contains(&key) => {
                        self.following.to_open_again.push(key);
                        self.following.open_again_at.get_or_insert(begun + OPEN_AGAIN);
                    }
                    Err(_) => {}
                }
            }
            if barnabas_clock::since(begun) >= OPEN_TURN {
                break;
            }
        }
        !self.following.to_open.is_empty()
    }

    /// Fetches from the leader that the image names, or from none.
    pub(super) fn turn_to_leader(&mut self, key: PartitionKey, row: &Row) {
        let me = self.node.identity.broker_id;
        let Self { replicas, following, node, leading, .. } = self;
        let Some(replica) = replicas.get_mut(&key) else { return };
        let is_shared = row.replicas().len() > 1;
        let leads = row.leader == me;
        if leads && is_shared {
            leading.watch(node);
        }
        if is_shared && (!leads || replica.partition.isr_change().is_none()) {
            node.peers.replication.isr.withdraw(key);
        }
        let follows = !leads && row.leader != BrokerId::NONE && row.has_replica(me);
        let whom = (follows && !replica.partition.is_failed()).then_some((row.leader, row.leader_epoch));
        let was = std::mem::replace(&mut replica.following, whom);
        let in_sync = row.isr().contains(&me);
        following.arriving.set(key, whom.is_some() && row.placement.adding.contains(&me));
        if whom.is_none() {
            following.behind.forget(key);
        }
        match whom {
            Some((leader, epoch)) if was == whom => {
                // It has caught up, or has fallen behind.
                let turns = following.fetchers.is_in_bulk(key) == in_sync && replica.truncation.is_none();
                if turns {
                    let position = replica.partition.fetch_position(replica.log.epochs());
                    following.fetchers.follow(key, leader, epoch, in_sync, position);
                    following.set_throttled(key, replica.throttled.as_follower);
                }
            }
            Some((leader, epoch)) => {
                let mut must_cut = Cut::Nothing;
                if planted::is(&node.peers.replication.planted, Mistake::TruncatesToHighWatermark) {
                    let high_watermark = replica.partition.high_watermark();
                    must_cut = replica.partition.out_of_range(Offset::ZERO, high_watermark);
                }
                replica.leader_start = Offset::ZERO;
                let position = replica.partition.fetch_position(replica.log.epochs());
                following.fetchers.follow(key, leader, epoch, in_sync, position);
                following.set_throttled(key, replica.throttled.as_follower);
                if must_cut != Cut::Nothing {
                    following.fetchers.follow(key, leader, epoch, in_sync, None);
                    self.truncate(key, must_cut);
                }
            }
            None if was.is_some() => following.fetchers.unfollow(key),
            _ => {}
        }
        self.repair(key);
    }

    // What is asked.

    fn ask_leaders(&mut self) {
        if !self.following.fetchers.need_turn() {
            // All of them wait for answers.
            self.following.throttled_until = None;
            return;
        }
        let now = self.node.clock.monotonic();
        let is_exceeded = self.node.peers.replication.throttles.follower.is_exceeded(now);
        self.following.throttled_until = is_exceeded.then(|| now.plus(THROTTLE_LOOK));
        if self.node.log_dirs.directories.iter().any(|directory| directory.journal.is_over()) {
            // There will be a report when there is room.
            self.following.not_before = now.plus(THROTTLE_LOOK);
            return;
        }
        (self.following.not_before, self.following.bulk_not_before) = (now, now);
        let any = |is: fn(&JournalHandle) -> bool| {
            self.node.log_dirs.directories.iter().any(|directory| is(&directory.journal))
        };
        let (is_crowded, is_slow) = (any(JournalHandle::is_crowded), any(JournalHandle::is_slow));
        let ids = self.following.fetchers.ids();
        self.following.connections.retain(|at, _| ids.contains(at));
        self.following.bulk.retain(&ids);
        for at in ids {
            let turn = match at.is_bulk() {
                true if is_crowded => Some(now.plus(CROWD_LOOK)),
                true if is_slow => self.following.bulk.waits_until(at, now),
                _ => None,
            };
            if let Some(until) = turn {
                let wake = self.following.throttled_until.map_or(until, |at| at.min(until));
                (self.following.throttled_until, self.following.bulk_not_before) = (Some(wake), wake);
                continue;
            }
            let plan = self.following.fetchers.get_mut(at).and_then(|fetcher| fetcher.plan(now, is_exceeded));
            if let Some(plan) = plan {
                self.ask_leader(at, plan, now);
            }
        }
    }

    fn ask_leader(&mut self, at: FetcherId, plan: FetchPlan, now: MonotonicMs) {
        let Self { following, node, .. } = self;
        following.settings.renew(node);
        let Some(address) = address_of(&node.cluster.image.load(), at.leader, &following.settings.listener)
        else {
            if let Some(fetcher) = following.fetchers.get_mut(at) {
                fetcher.unanswered(now);
            }
            return;
        };
        let mut follower = following.settings.follower(node);
        follower.wait_max = plan.wait_max.map_or(follower.wait_max, |most| follower.wait_max.min(most));
        if at.is_bulk() {
            follower.bytes_max = follower.bytes_max.min(following.bulk.ask(at, now));
        }
        let timeout = following.settings.timeout;
        self.connection(at, address).fetch(follower, plan, timeout);
    }

    /// The connection of this fetcher; a new one if the leader's address has changed.
    fn connection(&mut self, at: FetcherId, address: Address) -> &FetcherConnection {
        let Self { following: Following { connections, settings, .. }, node, id, .. } = self;
        let open = |address| {
            let mailbox = node.workers.mailboxes[*id].clone();
            let security = (node.peers.tls.brokers.clone(), node.logins.to_brokers.clone());
            FetcherConnection::open(address, at, settings, security, mailbox)
        };
        let connection = connections.entry(at).or_insert_with(|| open(address.clone()));
        if *connection.address() != address {
            *connection = open(address);
        }
        connection
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
        if self.replicas.get(&key).is_some_and(|replica| replica.may_truncate()) {
            self.truncate_now(key);
        }
        self.follow_start(key);
        self.repair(key);
        let Self { replicas, following, .. } = self;
        let Some(replica) = replicas.get(&key).filter(|replica| !replica.partition.is_failed()) else {
            // It met a full disk, and is opened again from its log.
            following.fetchers.unfollow(key);
            following.settle_later(key);
            return;
        };
        if replica.truncation.is_none()
            && let Some(position) = replica.partition.fetch_position(replica.log.epochs())
            && let Some(fetcher) = following.fetchers.of(key)
        {
            fetcher.settled(key, position);
        }
    }

    /// What waited for a log that was being cut.
    pub(super) fn take_waiting_roles(&mut self) {
        for key in std::mem::take(&mut self.following.roles_waiting) {
            let image = self.node.cluster.image.load_full();
            self.partition_changed(&image, key);
        }
    }

    /// Asks for a damaged place beside the fetches. Returns whether that could be asked.
    pub(super) fn ask_aside(&mut self, leader: BrokerId, key: PartitionKey, asked: FetchPosition) -> bool {
        let Self { following, node, .. } = self;
        let follower = following.settings.follower(node);
        let timeout = following.settings.timeout;
        let connection = following.connections.iter().find(|(at, _)| at.leader == leader);
        let Some((_, connection)) = connection else { return false };
        connection.fetch_aside(follower, key, asked, timeout);
        true
    }

    pub(super) fn find_ends(
        &mut self,
        leader: BrokerId,
        key: PartitionKey,
        asked: &FetchPosition,
        now: MonotonicMs,
    ) {
        let Self { following, replicas, node, .. } = self;
        let follower = following.settings.follower(node);
        let Some(replica) = replicas.get(&key) else { return };
        let topic = replica.name.topic_partition.topic.clone();
        let connection = following
            .connections
            .iter()
            .find(|(at, _)| at.leader == leader)
            .map(|(_, connection)| connection);
        if let Some(connection) = connection {
            connection.find_ends(&follower, key, topic, *asked);
        }
        // Without an answer, the request is sent again.
        if let Some(fetcher) = following.fetchers.of(key) {
            fetcher.delayed(key, now);
        }
    }

    fn found_ends(
        &mut self,
        key: PartitionKey,
        asked: &FetchPosition,
        ends: Result<(Offset, Offset), ErrorCode>,
    ) {
        let Some(replica) = self.replicas.get_mut(&key).filter(|replica| replica.truncation.is_none()) else {
            return;
        };
        if let Ok((start, end)) = ends
            && replica.partition.may_take(asked, replica.log.epochs())
        {
            let cut = replica.partition.out_of_range(start, end);
            replica.follow_damage(start);
            self.truncate(key, cut);
        }
    }
}
