//! Fetch sessions: what a client fetches again and again, remembered, so that each request names only what changes and
//! each answer only what is new (KIP-227).
//!
//! A broker may keep several caches. A session's id says which one holds it: `id % owners == owner`, so a client may go on with its
//! session over any connection, as with Kafka.
//!
//! Always true:
//! 1. there are at most `sessions_max` sessions, and at most [`PARTITIONS_PER_SLOT`] × `sessions_max` partitions in them
//! 2. a session's epoch is the one that its next request must carry
//!
//! Source: KIP-227; Kafka 4.4 `FetchSession`, `FetchSessionCacheShard`, `FetchManager`.

use std::collections::BTreeMap;

use barnabas_base::{DurationMs, ErrorCode, Map, TimestampMs, TopicId};
use barnabas_wire::messages::fetch_request::{FetchPartition, ForgottenTopic};
use barnabas_wire::messages::fetch_response::PartitionData;
use barnabas_wire::{Str, TaggedFields};

/// On average, so many partitions per session are remembered; Kafka has no such bound.
pub const PARTITIONS_PER_SLOT: usize = 1000;
/// A session that was not used for so long may go for any other.
const STALE_AFTER: DurationMs = DurationMs(120_000);

/// How requests name a topic: by name before version 13, by id from then on. The other one is empty.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct TopicKey {
    pub name: Str,
    pub id: TopicId,
}

/// One partition that a request is about.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub topic: TopicKey,
    pub data: FetchPartition,
}

impl Wanted {
    /// A copy that keeps no frame alive: a session outlives the requests that it was made of.
    pub fn detached(&self) -> Self {
        let topic = TopicKey { name: Str::from(self.topic.name.as_str()), id: self.topic.id };
        Self {
            topic,
            data: FetchPartition { unknown_tagged_fields: TaggedFields::default(), ..self.data.clone() },
        }
    }
}

#[derive(Debug)]
struct Cached {
    wanted: Wanted,
    /// As last answered.
    high_watermark: i64,
    log_start: i64,
}

/// One client's session.
#[derive(Debug)]
struct Session {
    is_follower: bool,
    uses_topic_ids: bool,
    created: TimestampMs,
    used: TimestampMs,
    epoch: i32,
    /// In the order in which they are read: whoever got data goes to the end.
    partitions: BTreeMap<u64, Cached>,
    places: Map<(TopicKey, i32), u64>,
    next_place: u64,
}

/// What a request's session comes to.
#[derive(Debug)]
pub(super) enum Opened {
    /// No session; and none is wanted, or none can be had.
    Sessionless(Vec<Wanted>),
    /// A session is to be made of this request once its answer is known.
    Full(Vec<Wanted>),
    /// All partitions of the session, this request's changes included.
    Incremental {
        id: i32,
        epoch: i32,
        wanted: Vec<Wanted>,
    },
    Refused(ErrorCode),
}

/// One cache of sessions.
#[derive(Debug)]
pub struct FetchSessions {
    sessions: BTreeMap<i32, Session>,
    sessions_max: usize,
    partitions: usize,
    owner: i32,
    owners: i32,
    evictions: u64,
}

/// The epoch after `epoch`: from 1 on, past `i32::MAX` from 1 again.
pub(super) fn next_epoch(epoch: i32) -> i32 {
    match epoch {
        ..0 => epoch,
        i32::MAX => 1,
        _ => epoch + 1,
    }
}

impl FetchSessions {
    /// `owner` counts from 0 to `owners` − 1.
    pub fn new(sessions_max: usize, owner: u16, owners: u16) -> Self {
        let (owner, owners) = (i32::from(owner), i32::from(owners.max(1)));
        Self { sessions: BTreeMap::new(), sessions_max, partitions: 0, owner, owners, evictions: 0 }
    }

    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// Partitions remembered in all sessions.
    pub fn partition_count(&self) -> usize {
        self.partitions
    }

    /// Sessions that had to go for others, since the start.
    pub fn evictions(&self) -> u64 {
        self.evictions
    }

    /// Finds or ends the session that a request names.
    pub(super) fn open(
        &mut self,
        id: i32,
        epoch: i32,
        uses_topic_ids: bool,
        wanted: Vec<Wanted>,
        forgotten: &[ForgottenTopic],
        now: TimestampMs,
    ) -> Opened {
        const INITIAL: i32 = 0;
        const FINAL: i32 = -1;
        if epoch == INITIAL || epoch == FINAL {
            self.remove(id);
            return if epoch == FINAL { Opened::Sessionless(wanted) } else { Opened::Full(wanted) };
        }
        let Some(session) = self.sessions.get_mut(&id) else {
            return Opened::Refused(ErrorCode::FetchSessionIdNotFound);
        };
        if session.epoch != epoch {
            return Opened::Refused(ErrorCode::InvalidFetchSessionEpoch);
        }
        if session.uses_topic_ids != uses_topic_ids {
            return Opened::Refused(ErrorCode::FetchSessionTopicIdError);
        }
        let before = session.partitions.len();
        if self.partitions + session.newcomers(&wanted) > self.sessions_max * PARTITIONS_PER_SLOT {
            // The client begins again with a full request, and gets no session while there is no room for one.
            self.remove(id);
            return Opened::Refused(ErrorCode::FetchSessionIdNotFound);
        }
        for partition in &wanted {
            session.want(partition.detached());
        }
        session.forget(forgotten);
        self.partitions = self.partitions + session.partitions.len() - before;
        if session.partitions.is_empty() {
            self.remove(id);
            return Opened::Sessionless(wanted);
        }
        session.used = now;
        session.epoch = next_epoch(epoch);
        let wanted = session.partitions.values().map(|cached| cached.wanted.clone()).collect();
        Opened::Incremental { id, epoch: session.epoch, wanted }
    }

    /// Makes a session of what was just answered in full: each partition with the high watermark and the log start that
    /// the client was told. Returns its id; 0 where there is no room.
    pub(super) fn create(
        &mut self,
        answered: impl ExactSizeIterator<Item = (Wanted, (i64, i64))>,
        is_follower: bool,
        uses_topic_ids: bool,
        draw: u32,
        now: TimestampMs,
    ) -> i32 {
        let size = answered.len();
        if self.partitions + size > self.sessions_max * PARTITIONS_PER_SLOT {
            return 0;
        }
        if self.sessions.len() >= self.sessions_max && !self.evict_for(is_follower, size, now) {
            return 0;
        }
        let id = self.free_id(draw);
        let mut session = Session {
            is_follower,
            uses_topic_ids,
            created: now,
            used: now,
            epoch: 1,
            partitions: BTreeMap::new(),
            places: Map::default(),
            next_place: 0,
        };
        for (wanted, (high_watermark, log_start)) in answered {
            session.add(Cached { wanted, high_watermark, log_start });
        }
        self.partitions += session.partitions.len();
        self.sessions.insert(id, session);
        id
    }

    /// Whether the session is still where this request left it, and which of its partitions have something to say.
    pub(super) fn answer(&mut self, id: i32, epoch: i32) -> Option<SessionAnswer<'_>> {
        let session = self.sessions.get_mut(&id).filter(|session| session.epoch == epoch)?;
        Some(SessionAnswer { session })
    }

    fn remove(&mut self, id: i32) {
        if let Some(session) = self.sessions.remove(&id) {
            self.partitions -= session.partitions.len();
        }
    }

    /// Lets a session go that is stale, or worth less than a new one of `size` partitions. Followers outrank consumers,
    /// and of equals the larger one saves more.
    fn evict_for(&mut self, is_follower: bool, size: usize, now: TimestampMs) -> bool {
        let older = |than: TimestampMs| now.0.saturating_sub(than.0) > STALE_AFTER.0;
        let oldest = self.sessions.iter().min_by_key(|(id, session)| (session.used, **id));
        let stale = oldest.filter(|(_, session)| older(session.used)).map(|(id, _)| *id);
        let may_go = |session: &Session| older(session.created) || (is_follower && !session.is_follower);
        let rank = |(id, session): (&i32, &Session)| (session.is_follower, session.partitions.len(), *id);
        let cheapest = self.sessions.iter().filter(|(_, session)| may_go(session)).map(rank).min();
        let cheaper = cheapest.filter(|rank| (is_follower, size, 0) >= *rank).map(|rank| rank.2);
        let Some(id) = stale.or(cheaper) else { return false };
        self.remove(id);
        self.evictions += 1;
        true
    }

    /// A positive id of this owner's that nobody has, from `draw` on.
    fn free_id(&self, draw: u32) -> i32 {
        let mine = i32::MAX / self.owners - 1;
        let mut number = (draw % mine.unsigned_abs()) as i32;
        loop {
            number = number % mine + 1;
            let id = (number - 1) * self.owners + self.owner;
            if id > 0 && !self.sessions.contains_key(&id) {
                return id;
            }
        }
    }
}

impl Session {
    fn add(&mut self, cached: Cached) {
        let key = (cached.wanted.topic.clone(), cached.wanted.data.partition);
        let place = self.next_place;
        self.next_place += 1;
        if let Some(before) = self.places.insert(key, place) {
            self.partitions.remove(&before);
        }
        self.partitions.insert(place, cached);
    }

    /// How many of `wanted` the session does not hold yet, at the most: named twice they count twice.
    fn newcomers(&self, wanted: &[Wanted]) -> usize {
        let is_new =
            |wanted: &&Wanted| !self.places.contains_key(&(wanted.topic.clone(), wanted.data.partition));
        wanted.iter().filter(is_new).count()
    }

    fn want(&mut self, wanted: Wanted) {
        let key = (wanted.topic.clone(), wanted.data.partition);
        match self.places.get(&key).and_then(|place| self.partitions.get_mut(place)) {
            Some(cached) => cached.wanted.data = wanted.data,
            None => self.add(Cached { wanted, high_watermark: -1, log_start: -1 }),
        }
    }

    fn forget(&mut self, forgotten: &[ForgottenTopic]) {
        for topic in forgotten {
            for &partition in &topic.partitions {
                let key = (TopicKey { name: topic.topic.clone(), id: topic.topic_id }, partition);
                if let Some(place) = self.places.remove(&key) {
                    self.partitions.remove(&place);
                }
            }
        }
    }
}

/// A session while its answer is made.
pub(super) struct SessionAnswer<'a> {
    session: &'a mut Session,
}

impl SessionAnswer<'_> {
    /// Whether the client must hear of this partition: data, an error, or something it was told otherwise last time.
    pub(super) fn must_answer(&mut self, topic: &TopicKey, data: &PartitionData) -> bool {
        let key = (topic.clone(), data.partition_index);
        let session = &mut *self.session;
        let Some(place) = session.places.get(&key).copied() else { return false };
        let Some(cached) = session.partitions.get_mut(&place) else { return false };
        let has_data = data.records.as_ref().is_some_and(|records| !records.is_empty());
        let moved = cached.high_watermark != data.high_watermark || cached.log_start != data.log_start_offset;
        cached.high_watermark = data.high_watermark;
        cached.log_start = data.log_start_offset;
        let failed = data.error_code != ErrorCode::None.code();
        if failed {
            // So that the next good answer is not taken for an old story.
            cached.high_watermark = -1;
        }
        if has_data && let Some(cached) = session.partitions.remove(&place) {
            session.add(cached);
        }
        has_data || moved || failed || data.preferred_read_replica >= 0 || data.diverging_epoch.epoch >= 0
    }
}
