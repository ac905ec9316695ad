//! Fetch sessions: what a client fetches again and again, remembered, so that each request names only what changes and
//! each answer only what is new (KIP-227).
//!
//! A broker may keep several caches. A session's id says which one holds it: `id % owners == owner`, so a client may go
//! on with its session over any connection, as with Kafka.
//!
//! Kafka bounds their number only. Here their memory is bounded, too: a session holds a share of the node's memory for
//! sessions ([`SessionShare`]). A client for which there is no share gets full answers, as where Kafka's cache is full.
//!
//! Always true:
//! 1. there are at most `sessions_max` sessions
//! 2. what a session takes ([`Session::bytes`]) was lent to it, and goes back with it
//! 3. a session's epoch is the one that its next request must carry
//! 4. a topic's name is held once for each session, and has at most [`TOPIC_NAME_BYTES_MAX`] bytes
//!
//! Source: KIP-227; Kafka 4.4 `FetchSession`, `FetchSessionCacheShard`, `FetchManager`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use barnabas_base::{DurationMs, ErrorCode, Map, TOPIC_NAME_BYTES_MAX, TimestampMs, TopicId};
use barnabas_wire::messages::fetch_request::{FetchPartition, ForgottenTopic};
use barnabas_wire::messages::fetch_response::PartitionData;
use barnabas_wire::{Str, TaggedFields};

use crate::SessionShare;
use crate::session_memory::{WORK_BYTES, entry_bytes};

/// A session that was not used for so long may go for any other.
const STALE_AFTER: DurationMs = DurationMs(120_000);

const SESSION_BYTES: u64 = entry_bytes(size_of::<(i32, Session)>()) + 256;
const TOPIC_BYTES: u64 = entry_bytes(size_of::<(Arc<TopicKey>, u32)>()) + size_of::<TopicKey>() as u64 + 64;
const PARTITION_BYTES: u64 =
    entry_bytes(size_of::<(u64, Cached)>()) + entry_bytes(size_of::<((Arc<TopicKey>, i32), u64)>());

/// How requests name a topic: by name before version 13, by id from then on. The other one is empty.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct TopicKey {
    pub name: Str,
    pub id: TopicId,
}

impl TopicKey {
    /// What a session holds for it, beside its partitions.
    fn bytes(&self) -> u64 {
        TOPIC_BYTES + self.name.len() as u64
    }
}

/// One partition that a request is about.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub topic: Arc<TopicKey>,
    pub data: FetchPartition,
    /// Where its session remembers it, if the session named it.
    pub place: u64,
}

/// The partitions of a session that is about to begin.
pub(super) struct Beginning {
    pub is_follower: bool,
    pub uses_topic_ids: bool,
    /// A random number.
    pub draw: u32,
    pub now: TimestampMs,
    pub share: SessionShare,
}

#[derive(Debug)]
struct Cached {
    topic: Arc<TopicKey>,
    data: FetchPartition,
    /// As last answered.
    high_watermark: i64,
    log_start: i64,
}

/// One client's session.
struct Session {
    is_follower: bool,
    uses_topic_ids: bool,
    created: TimestampMs,
    used: TimestampMs,
    epoch: i32,
    /// In the order in which they are read: a partition that returned data moves to the end.
    partitions: BTreeMap<u64, Cached>,
    places: Map<(Arc<TopicKey>, i32), u64>,
    /// Each with how many of its partitions are here.
    topics: Map<Arc<TopicKey>, u32>,
    next_place: u64,
    /// About what the session takes.
    bytes: u64,
    share: SessionShare,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { is_follower, epoch, bytes, .. } = self;
        let mut f = f.debug_struct("Session");
        f.field("is_follower", is_follower)
            .field("epoch", epoch)
            .field("bytes", bytes)
            .finish_non_exhaustive()
    }
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

    /// The topic of each partition that is remembered.
    #[cfg(test)]
    pub(super) fn names_of_all(&self) -> Vec<Arc<TopicKey>> {
        let cached = self.sessions.values().flat_map(|session| session.partitions.values());
        cached.map(|cached| cached.topic.clone()).collect()
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
        let may_be_held = wanted.iter().all(|wanted| may_be_held(&wanted.topic));
        if !may_be_held || !session.share.lend(session.bytes + session.newcomers_bytes(&wanted)) {
            // The client begins again with a full request, and gets no session while there is no room for one.
            self.remove(id);
            return Opened::Refused(ErrorCode::FetchSessionIdNotFound);
        }
        for partition in &wanted {
            session.want(partition);
        }
        session.forget(forgotten);
        session.share.lend(session.bytes);
        self.partitions = self.partitions + session.partitions.len() - before;
        if session.partitions.is_empty() {
            self.remove(id);
            return Opened::Sessionless(wanted);
        }
        session.used = now;
        session.epoch = next_epoch(epoch);
        let of = |(&place, cached): (&u64, &Cached)| Wanted {
            topic: cached.topic.clone(),
            data: cached.data.clone(),
            place,
        };
        Opened::Incremental { id, epoch: session.epoch, wanted: session.partitions.iter().map(of).collect() }
    }

    /// What a request of session `id` takes for partitions that it does not name.
    pub fn work_bytes(&self, id: i32) -> u64 {
        self.sessions.get(&id).map_or(0, |session| session.partitions.len() as u64 * WORK_BYTES)
    }

    /// Makes a session of what was just answered in full: each partition with the high watermark and the log start that
    /// the client was told. Returns its id; 0 where there is no room.
    pub(super) fn create<'a>(
        &mut self,
        answered: impl ExactSizeIterator<Item = (&'a Wanted, (i64, i64))> + Clone,
        beginning: Beginning,
    ) -> i32 {
        let size = answered.len();
        if !answered.clone().all(|(wanted, _)| may_be_held(&wanted.topic)) {
            return 0;
        }
        let bytes = SESSION_BYTES + bytes_of(answered.clone().map(|(wanted, _)| wanted));
        if !beginning.share.lend(bytes) {
            return 0;
        }
        let Beginning { is_follower, uses_topic_ids, draw, now, share } = beginning;
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
            topics: Map::default(),
            next_place: 0,
            bytes: SESSION_BYTES,
            share,
        };
        for (wanted, (high_watermark, log_start)) in answered {
            session.add(wanted, high_watermark, log_start);
        }
        session.share.lend(session.bytes);
        self.partitions += session.partitions.len();
        self.sessions.insert(id, session);
        id
    }

    /// Lets the sessions go that were not used for two minutes. For when there is no memory for a new one.
    pub fn evict_stale(&mut self, now: TimestampMs) {
        let before = self.sessions.len();
        self.sessions.retain(|_, session| !is_older(session.used, now));
        self.evictions += (before - self.sessions.len()) as u64;
        self.partitions = self.sessions.values().map(|session| session.partitions.len()).sum();
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
        let older = |than: TimestampMs| is_older(than, now);
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

    /// A positive session id of this owner that no other session has, searched from `draw` upwards.
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

fn is_older(than: TimestampMs, now: TimestampMs) -> bool {
    now.0.saturating_sub(than.0) > STALE_AFTER.0
}

/// Whether a topic can be called so. A longer name gets its answer, but is never kept, nor looked for.
pub(super) fn may_be_held(topic: &TopicKey) -> bool {
    topic.name.len() <= TOPIC_NAME_BYTES_MAX
}

/// What partitions take that a session does not hold yet, at the most.
fn bytes_of<'a>(wanted: impl Iterator<Item = &'a Wanted>) -> u64 {
    let mut before: Option<&Wanted> = None;
    let mut bytes = 0;
    for wanted in wanted {
        let is_same = before.is_some_and(|before| Arc::ptr_eq(&before.topic, &wanted.topic));
        bytes += PARTITION_BYTES + if is_same { 0 } else { wanted.topic.bytes() };
        before = Some(wanted);
    }
    bytes
}

impl Session {
    /// Remembers a partition that the session does not hold. Keeps no frame alive: a session outlives the requests that
    /// it was made of.
    fn add(&mut self, wanted: &Wanted, high_watermark: i64, log_start: i64) {
        let topic = match self.topics.get_key_value(&wanted.topic) {
            Some((topic, _)) => topic.clone(),
            None => {
                let name = Str::from(wanted.topic.name.as_str());
                let topic = Arc::new(TopicKey { name, id: wanted.topic.id });
                self.bytes += topic.bytes();
                topic
            }
        };
        *self.topics.entry(topic.clone()).or_default() += 1;
        let data = FetchPartition { unknown_tagged_fields: TaggedFields::default(), ..wanted.data.clone() };
        self.bytes += PARTITION_BYTES;
        self.place(Cached { topic, data, high_watermark, log_start });
    }

    /// Puts a partition behind all others.
    fn place(&mut self, cached: Cached) {
        let place = self.next_place;
        self.next_place += 1;
        self.places.insert((cached.topic.clone(), cached.data.partition), place);
        self.partitions.insert(place, cached);
    }

    fn place_of(&self, topic: &Arc<TopicKey>, partition: i32) -> Option<u64> {
        self.places.get(&(topic.clone(), partition)).copied()
    }

    /// What those of `wanted` take that the session does not hold yet, at the most: named twice they count twice.
    fn newcomers_bytes(&self, wanted: &[Wanted]) -> u64 {
        let is_new = |wanted: &&Wanted| self.place_of(&wanted.topic, wanted.data.partition).is_none();
        bytes_of(wanted.iter().filter(is_new))
    }

    fn want(&mut self, wanted: &Wanted) {
        let place = self.place_of(&wanted.topic, wanted.data.partition);
        match place.and_then(|place| self.partitions.get_mut(&place)) {
            Some(cached) => {
                // A follower says what it knows: where that is less than the last answer said, it did not take that
                // over (it is repaired, or another leader's answer came first), and hears it once more.
                if self.is_follower {
                    cached.high_watermark = cached.high_watermark.min(wanted.data.high_watermark);
                    cached.log_start = cached.log_start.min(wanted.data.log_start_offset);
                }
                let unknown_tagged_fields = TaggedFields::default();
                cached.data = FetchPartition { unknown_tagged_fields, ..wanted.data.clone() };
            }
            None => self.add(wanted, -1, -1),
        }
    }

    fn forget(&mut self, forgotten: &[ForgottenTopic]) {
        for topic in forgotten {
            let key = Arc::new(TopicKey { name: topic.topic.clone(), id: topic.topic_id });
            if !may_be_held(&key) {
                continue;
            }
            for &partition in &topic.partitions {
                if let Some(place) = self.places.remove(&(key.clone(), partition)) {
                    self.partitions.remove(&place);
                    self.bytes -= PARTITION_BYTES;
                    self.release(&key);
                }
            }
        }
    }

    /// One partition less of a topic.
    fn release(&mut self, key: &Arc<TopicKey>) {
        let Some(count) = self.topics.get_mut(key) else { return };
        *count -= 1;
        if *count == 0 {
            self.topics.remove(key);
            self.bytes -= key.bytes();
        }
    }
}

/// A session while its answer is made.
pub(super) struct SessionAnswer<'a> {
    session: &'a mut Session,
}

impl SessionAnswer<'_> {
    /// Whether the client must hear of this partition: data, an error, or something it was told otherwise last time.
    /// `place`: where the session had it when the request was planned; nothing else moves it while the epoch is the
    /// same.
    pub(super) fn must_answer(&mut self, place: u64, data: &PartitionData) -> bool {
        let session = &mut *self.session;
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
            session.place(cached);
        }
        has_data || moved || failed || data.preferred_read_replica >= 0 || data.diverging_epoch.epoch >= 0
    }
}
