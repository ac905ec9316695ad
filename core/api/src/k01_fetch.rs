//! # Fetch, key 1, versions 0–18
//!
//! Reads record batches from partitions: for consumers up to the high watermark or the last stable offset, for
//! followers up to the end of the log. An answer may wait until there is enough to say.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | message format 0; waits by minimum bytes and maximum time |
//! | 1 | throttle time in the answer |
//! | 2 | message format 1 (KIP-32) |
//! | 3 | a bound for the whole answer; the first batch may exceed all bounds (KIP-74) |
//! | 4 | record batches (format 2), isolation level, last stable offset, aborted transactions (KIP-98) |
//! | 5 | log start offset, both ways (KIP-107) |
//! | 6 | KAFKA_STORAGE_ERROR (KIP-112); before, it is answered as NOT_LEADER_OR_FOLLOWER |
//! | 7 | sessions (KIP-227) |
//! | 8 | throttling by the client (KIP-219) |
//! | 9 | the leader epoch that the client believes in (KIP-320) |
//! | 10 | zstd (KIP-110) |
//! | 11 | rack of the client, replica to read from (KIP-392) |
//! | 12 | flexible; cluster id, epoch last fetched, diverging epoch (KIP-595) |
//! | 13 | topic ids instead of names (KIP-516) |
//! | 14 | OFFSET_MOVED_TO_TIERED_STORAGE (KIP-405) |
//! | 15 | replica state with broker epoch (KIP-903) |
//! | 16 | addresses of current leaders (KIP-951) |
//! | 17 | directory id of the replica (KIP-853) |
//! | 18 | high watermark of the follower (KIP-1166) |
//!
//! ## Left out
//! - Replica selectors other than Kafka's RackAwareReplicaSelector, which is built in.
//! - A batch that is cut off at the end of the answer: only whole batches are sent.
//! - The empty answer to a throttled consumer: it gets its records, then the connection is muted.
//! - Versions 4 to 9 get zstd batches as they are, as from Kafka 4; Kafka 3 refused them for topics of that codec.
//! - Versions 0 to 3 get batches converted back to message formats 0 and 1, as Kafka did until 3.9.
//!
//! Source: Kafka 4.4 `KafkaApis.handleFetchRequest`, `FetchContext`, `ReplicaManager.fetchMessages`; 3.9 for versions
//! 0–3.

use std::sync::Arc;

use barnabas_base::{
    BrokerEpoch, BrokerId, DurationMs, ErrorCode, LeaderEpoch, Offset, PartitionIndex, ProducerId, Set, Text,
    TimestampMs,
};
use barnabas_metadata::Topic;
use barnabas_security::Operation;
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchRequest, FetchTopic};
use barnabas_wire::messages::fetch_response::{
    AbortedTransaction, EpochEndOffset, FetchResponse, FetchableTopicResponse, NodeEndpoint, PartitionData,
};
use barnabas_wire::records::{DownConvertError, down_convert_within};
use bytes::Bytes;

use crate::repeats::last_wins;
use crate::{Context, Plan, SessionShare, Slot};

/// What `replica.selector.class` may name: the replica in the consumer's rack that has come furthest (KIP-392).
const RACK_AWARE: &str = "org.apache.kafka.common.replica.RackAwareReplicaSelector";

mod budget;
pub(crate) mod repairing;
mod sessions;

pub use budget::{Allowance, Budget};
pub use sessions::FetchSessions;

use sessions::{Beginning, Opened, TopicKey, Wanted};

/// Who reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    Consumer {
        read_committed: bool,
    },
    /// Another broker, or this one's view of its own future log.
    Follower {
        id: BrokerId,
        epoch: BrokerEpoch,
    },
}

/// What the owners of partitions have to do.
#[derive(Debug)]
pub struct Work {
    pub reader: Reader,
    /// The client says that it is a follower, and may be one.
    pub is_follower: bool,
    /// Any replica may answer: the client knows of near ones (KIP-392).
    pub from_any: bool,
    /// A broker whose replica is repaired reads as a consumer ([`repairing`]).
    pub repairs_for: Option<BrokerId>,
    /// Where the client stands, if its leader is to name a near replica.
    pub rack: Option<Text>,
    /// How long the answer may wait for `bytes_min`.
    pub wait: DurationMs,
    pub bytes_min: usize,
    /// To be shared out over `parts`, in their order.
    pub budget: Budget,
    pub parts: Vec<Part>,
    pub pending: Pending,
}

/// One partition to read.
#[derive(Debug, Clone)]
pub struct Part {
    pub slot: Slot,
    pub topic: Arc<Topic>,
    pub partition: PartitionIndex,
    pub from: Offset,
    pub bytes_max: usize,
    /// The epoch that the client believes in.
    pub leader_epoch: Option<LeaderEpoch>,
    /// The epoch of the record before `from`, as the client has it.
    pub last_fetched_epoch: Option<LeaderEpoch>,
    /// Where a follower's log begins.
    pub follower_log_start: Option<Offset>,
    /// The high watermark that a follower knows.
    pub follower_high_watermark: Option<Offset>,
}

/// What one partition gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Read(Read),
    /// The client's log and this one part here: the largest epoch that both may know, and where it ends here.
    Diverging {
        epoch: LeaderEpoch,
        end: Offset,
        read: Read,
    },
    /// This replica is nearer to the client (KIP-392). There are no records.
    Elsewhere {
        broker: BrokerId,
        read: Read,
    },
    Refused(ErrorCode),
}

/// Records, and where the partition stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// Whole batches as the log has them, or [`in_words_of`] the version; the error where a client of that version
    /// cannot read them.
    pub records: Result<Bytes, ErrorCode>,
    pub high_watermark: Offset,
    pub last_stable: Offset,
    pub log_start: Offset,
    /// For `read_committed`: producer and first offset of each aborted transaction in `records`.
    pub aborted: Option<Vec<(ProducerId, Offset)>>,
}

/// The answer as far as it is known.
#[derive(Debug)]
pub struct Pending {
    version: i16,
    is_follower: bool,
    session: Session,
    entries: Vec<Entry>,
    endpoints: Vec<NodeEndpoint>,
    bytes: usize,
    must_hurry: bool,
}

#[derive(Debug)]
enum Session {
    None,
    /// To be made of this answer.
    New,
    Open {
        id: i32,
        epoch: i32,
    },
}

#[derive(Debug)]
struct Entry {
    wanted: Wanted,
    data: PartitionData,
}

/// Finds the session, and what it or the request asks of which partition.
pub fn plan(
    request: FetchRequest,
    version: i16,
    sessions: &mut FetchSessions,
    ctx: &Context<'_>,
) -> Plan<Work, FetchResponse> {
    let reader = reader(&request, version);
    let is_consumer = matches!(reader, Reader::Consumer { .. });
    let named = repairing::read(&request.unknown_tagged_fields).filter(|_| is_consumer);
    let repairs_for = named.filter(|_| ctx.access.cluster(Operation::ClusterAction));
    let from_any = version >= 11 && is_consumer && repairs_for.is_none();
    let selects = || ctx.config.value("replica.selector.class") == Some(RACK_AWARE);
    let rack = (from_any && !request.rack_id.is_empty() && selects()).then(|| request.rack_id.text());
    let wanted = wanted(request.topics);
    let (id, epoch) = if version >= 7 { (request.session_id, request.session_epoch) } else { (0, -1) };
    let opened = sessions.open(id, epoch, version >= 13, wanted, &request.forgotten_topics_data, ctx.now);
    let (session, wanted) = match opened {
        Opened::Refused(code) => {
            return Plan::Answer(FetchResponse { error_code: code.code(), ..FetchResponse::default() });
        }
        Opened::Sessionless(wanted) => (Session::None, wanted),
        Opened::Full(wanted) => (Session::New, wanted),
        Opened::Incremental { id, epoch, wanted } => (Session::Open { id, epoch }, wanted),
    };
    let bytes_max = if version >= 3 { request.max_bytes.min(ctx.config.fetch_bytes_max) } else { i32::MAX };
    let bytes_max = usize::try_from(bytes_max).unwrap_or(0);
    let mut readable = Readable::by(reader, repairs_for.is_some(), ctx);
    // A client that may not be a follower takes no session's place: followers' sessions replace consumers'.
    let session = if readable.follower == Some(false) && matches!(session, Session::New) {
        Session::None
    } else {
        session
    };
    let is_follower = readable.follower == Some(true);
    let mut pending = Pending {
        version,
        is_follower,
        session,
        entries: Vec::with_capacity(wanted.len()),
        endpoints: Vec::new(),
        bytes: 0,
        must_hurry: false,
    };
    let mut parts = Vec::with_capacity(wanted.len());
    for wanted in wanted {
        pending.add(wanted, &mut readable, ctx, &mut parts);
    }
    Plan::Work(Work {
        reader,
        is_follower,
        from_any,
        repairs_for,
        rack,
        // With nothing to read, the answer is due at once.
        wait: DurationMs(if parts.is_empty() { 0 } else { i64::from(request.max_wait_ms.max(0)) }),
        bytes_min: usize::try_from(request.min_bytes).unwrap_or(0).min(bytes_max),
        budget: Budget::new(bytes_max, version > 2),
        parts,
        pending,
    })
}

/// Which topics the reader may read: a follower all of them or none.
struct Readable {
    follower: Option<bool>,
    /// A broker repairs its replicas: it may read what a follower may.
    repairs: bool,
    /// Partitions of one topic stand together: the last topic and what it was denied with.
    last: Option<(Arc<TopicKey>, Option<ErrorCode>)>,
}

impl Readable {
    fn by(reader: Reader, repairs: bool, ctx: &Context<'_>) -> Self {
        let is_follower = matches!(reader, Reader::Follower { .. });
        let follower = is_follower.then(|| ctx.access.cluster(Operation::ClusterAction));
        Self { follower, repairs, last: None }
    }

    /// Why a topic is not read. `name` is `None` for an unknown topic id, which is no secret.
    fn denied(&mut self, key: &Arc<TopicKey>, name: Option<&str>, ctx: &Context<'_>) -> Option<ErrorCode> {
        if let Some(is_allowed) = self.follower.or(self.repairs.then_some(true)) {
            return (!is_allowed).then_some(ErrorCode::TopicAuthorizationFailed);
        }
        if let Some((_, denied)) = self.last.as_ref().filter(|(last, _)| Arc::ptr_eq(last, key)) {
            return *denied;
        }
        let is_denied = name.is_some_and(|name| !ctx.access.topic(Operation::Read, name));
        let denied = is_denied.then_some(ErrorCode::TopicAuthorizationFailed);
        self.last = Some((Arc::clone(key), denied));
        denied
    }
}

fn reader(request: &FetchRequest, version: i16) -> Reader {
    let (id, epoch) = match version {
        15.. => (request.replica_state.replica_id, request.replica_state.replica_epoch),
        _ => (request.replica_id, BrokerEpoch::NONE.get()),
    };
    if id >= 0 {
        return Reader::Follower { id: BrokerId(id), epoch: BrokerEpoch(epoch) };
    }
    Reader::Consumer { read_committed: request.isolation_level == 1 }
}

fn wanted(topics: Vec<FetchTopic>) -> Vec<Wanted> {
    // One key for each topic, however often it is named: what follows compares keys by where they are.
    let mut keys: Set<Arc<TopicKey>> = Set::default();
    let has_many = topics.len() > 1;
    let mut wanted = Vec::with_capacity(topics.iter().map(|topic| topic.partitions.len()).sum());
    for topic in topics {
        let mut key = Arc::new(TopicKey { name: topic.topic, id: topic.topic_id });
        if has_many && !keys.insert(key.clone()) {
            key = keys.get(&key).cloned().unwrap_or(key);
        }
        let of = |data| Wanted { topic: key.clone(), data, place: 0 };
        wanted.extend(topic.partitions.into_iter().map(of));
    }
    // Kafka reads the request into a map. A partition that is named again would have its aborted transactions listed
    // again.
    if !has_repeats(&wanted) {
        return wanted;
    }
    last_wins(wanted, |wanted| (Arc::as_ptr(&wanted.topic) as usize, wanted.data.partition))
}

/// Whether a partition may be named twice. Most requests name few: comparing costs less than hashing.
fn has_repeats(wanted: &[Wanted]) -> bool {
    const FEW: usize = 32;
    let same =
        |a: &Wanted, b: &Wanted| a.data.partition == b.data.partition && Arc::ptr_eq(&a.topic, &b.topic);
    wanted.len() > FEW
        || (1..wanted.len()).any(|at| wanted[..at].iter().any(|before| same(before, &wanted[at])))
}

fn empty(partition: i32, version: i16) -> PartitionData {
    let bare = PartitionData::default();
    PartitionData {
        partition_index: partition,
        high_watermark: -1,
        last_stable_offset: -1,
        log_start_offset: -1,
        preferred_read_replica: -1,
        aborted_transactions: if version >= 4 { None } else { bare.aborted_transactions.clone() },
        records: Some(Bytes::new()),
        ..bare
    }
}

fn part(slot: Slot, topic: &Arc<Topic>, data: &FetchPartition) -> Part {
    let epoch = |epoch: i32| (epoch >= 0).then_some(LeaderEpoch(epoch));
    let offset = |offset: i64| (offset >= 0).then_some(Offset(offset));
    Part {
        slot,
        topic: Arc::clone(topic),
        partition: PartitionIndex(data.partition),
        from: Offset(data.fetch_offset),
        bytes_max: usize::try_from(data.partition_max_bytes).unwrap_or(0),
        leader_epoch: epoch(data.current_leader_epoch),
        last_fetched_epoch: epoch(data.last_fetched_epoch),
        follower_log_start: offset(data.log_start_offset),
        follower_high_watermark: offset(data.high_watermark),
    }
}

impl Pending {
    fn add(&mut self, wanted: Wanted, readable: &mut Readable, ctx: &Context<'_>, parts: &mut Vec<Part>) {
        let slot = Slot::new(0, self.entries.len());
        let topics = &ctx.image.topics;
        let by_id = self.version >= 13;
        let by_name =
            |key: &TopicKey| sessions::may_be_held(key).then(|| topics.by_name(&key.name)).flatten();
        let topic = if by_id { topics.by_id(wanted.topic.id) } else { by_name(&wanted.topic) };
        let state = topic.and_then(|topic| topic.partition(PartitionIndex(wanted.data.partition)));
        let mut data = empty(wanted.data.partition, self.version);
        // Kafka says it this way where it does not get as far as reading.
        data.aborted_transactions = PartitionData::default().aborted_transactions;
        let name = if by_id { topic.map(|topic| &*topic.name) } else { Some(&*wanted.topic.name) };
        let denied = readable.denied(&wanted.topic, name, ctx);
        match (topic, state) {
            _ if denied.is_some() => data.error_code = denied.unwrap_or_default().code(),
            (None, _) if by_id => data.error_code = ErrorCode::UnknownTopicId.code(),
            (None, _) | (_, None) => data.error_code = ErrorCode::UnknownTopicOrPartition.code(),
            (Some(topic), Some(_)) => parts.push(part(slot, topic, &wanted.data)),
        }
        self.entries.push(Entry { wanted, data });
    }

    /// Takes over one partition's result. A second result for the same slot replaces the first.
    pub fn set(&mut self, slot: Slot, outcome: Outcome, ctx: &Context<'_>) {
        let entry = &mut self.entries[slot.partition()];
        let before = entry.data.records.as_ref().map_or(0, Bytes::len);
        let mut data = empty(entry.wanted.data.partition, self.version);
        match outcome {
            Outcome::Read(read) => put_read(&mut data, read, self.version),
            Outcome::Diverging { epoch, end, read } => {
                put_read(&mut data, read, self.version);
                data.diverging_epoch =
                    EpochEndOffset { epoch: epoch.get(), end_offset: end.get(), ..EpochEndOffset::default() };
                self.must_hurry = true;
            }
            Outcome::Elsewhere { broker, read } => {
                put_read(&mut data, read, self.version);
                data.preferred_read_replica = broker.get();
                self.must_hurry = true;
            }
            Outcome::Refused(code) => data.error_code = code.code(),
        }
        self.must_hurry |= data.error_code != ErrorCode::None.code();
        let bytes = data.records.as_ref().map_or(0, Bytes::len);
        self.bytes = self.bytes + bytes - before;
        entry.data = data;
        self.after_error(slot, ctx);
    }

    /// Says it in the words of the version: who leads, or an error that an old client knows.
    fn after_error(&mut self, slot: Slot, ctx: &Context<'_>) {
        const NOT_LEADER: i16 = ErrorCode::NotLeaderOrFollower.code();
        const FENCED: i16 = ErrorCode::FencedLeaderEpoch.code();
        const STORAGE: i16 = ErrorCode::KafkaStorageError.code();
        let entry = &mut self.entries[slot.partition()];
        match entry.data.error_code {
            STORAGE if self.version <= 5 => entry.data.error_code = NOT_LEADER,
            NOT_LEADER | FENCED if self.version >= 16 => {
                let topic = ctx.image.topics.by_id(entry.wanted.topic.id);
                let state =
                    topic.and_then(|topic| topic.partition(PartitionIndex(entry.wanted.data.partition)));
                let Some(state) = state else { return };
                let leader = ctx.leader_of(state);
                entry.data.current_leader = (&leader).into();
                leader.tell_address(&mut self.endpoints);
            }
            _ => {}
        }
    }

    /// Whether the answer need not wait any longer: enough bytes, or something that the client must hear of now.
    pub fn is_enough(&self, bytes_min: usize) -> bool {
        self.must_hurry || self.bytes >= bytes_min
    }

    /// The session that the answer belongs to; 0 where there is none yet.
    pub fn session_id(&self) -> i32 {
        if let Session::Open { id, .. } = self.session { id } else { 0 }
    }

    /// Whether a session is to be made of the answer.
    pub fn wants_session(&self) -> bool {
        matches!(self.session, Session::New)
    }

    /// The answer to a consumer that is over its quota: no partition, no session that was not there before. The client
    /// asks for the same again.
    ///
    /// # Source
    /// KIP-219; Kafka `FetchContext.getThrottledResponse`.
    pub fn throttled(self, sessions: &mut FetchSessions, wait: DurationMs) -> FetchResponse {
        let (session_id, error) = match self.session {
            Session::None | Session::New => (0, ErrorCode::None),
            Session::Open { id, epoch } if sessions.answer(id, epoch).is_some() => (id, ErrorCode::None),
            Session::Open { id, .. } => (id, ErrorCode::InvalidFetchSessionEpoch),
        };
        FetchResponse {
            throttle_time_ms: i32::try_from(wait.0).unwrap_or(i32::MAX),
            error_code: error.code(),
            session_id,
            ..FetchResponse::default()
        }
    }

    /// The answer. `draw` gives a random number, for the id of a new session; `share`: what a new session's memory is
    /// taken from. Neither is asked where no session is made.
    pub fn respond(
        mut self,
        sessions: &mut FetchSessions,
        draw: impl FnOnce() -> u32,
        now: TimestampMs,
        share: impl FnOnce() -> SessionShare,
    ) -> FetchResponse {
        let (session_id, error) = match self.session {
            Session::None => (0, ErrorCode::None),
            Session::New => (self.create_session(sessions, draw(), now, share()), ErrorCode::None),
            Session::Open { id, epoch } => match sessions.answer(id, epoch) {
                Some(mut answer) => {
                    self.entries.retain(|entry| answer.must_answer(entry.wanted.place, &entry.data));
                    (id, ErrorCode::None)
                }
                None => {
                    self.entries.clear();
                    (id, ErrorCode::InvalidFetchSessionEpoch)
                }
            },
        };
        FetchResponse {
            error_code: error.code(),
            session_id,
            responses: group(self.entries),
            node_endpoints: self.endpoints,
            ..FetchResponse::default()
        }
    }

    fn create_session(
        &self,
        sessions: &mut FetchSessions,
        draw: u32,
        now: TimestampMs,
        share: SessionShare,
    ) -> i32 {
        let known = |data: &PartitionData| (data.high_watermark, data.log_start_offset);
        let answered = self.entries.iter().map(|entry| (&entry.wanted, known(&entry.data)));
        let (is_follower, uses_topic_ids) = (self.is_follower, self.version >= 13);
        sessions.create(answered, Beginning { is_follower, uses_topic_ids, draw, now, share })
    }
}

fn put_read(data: &mut PartitionData, read: Read, version: i16) {
    data.high_watermark = read.high_watermark.get();
    if version >= 4 {
        data.last_stable_offset = read.last_stable.get();
        data.aborted_transactions = read.aborted.map(|aborted| {
            let of = |(producer, first): (ProducerId, Offset)| AbortedTransaction {
                producer_id: producer.get(),
                first_offset: first.get(),
                ..AbortedTransaction::default()
            };
            aborted.into_iter().map(of).collect()
        });
    }
    if version >= 5 {
        data.log_start_offset = read.log_start.get();
    }
    match read.records {
        Ok(records) => data.records = Some(records),
        Err(code) => data.error_code = code.code(),
    }
}

/// What of a read is inflated for a consumer of an old format; the rest it asks for next.
const DOWN_CONVERTED_BYTES_MAX: usize = 16 << 20;

/// Whether clients of this version read batches as the log has them; else they are to be made over, which takes time.
pub fn reads_stored_format(version: i16) -> bool {
    version >= 4
}

/// The records as a client of this version can read them. Inflates, and compresses again: not on a thread that others
/// wait for.
///
/// # Errors
/// UNSUPPORTED_COMPRESSION_TYPE for zstd, CORRUPT_MESSAGE for records that cannot be read.
pub fn in_words_of(records: Bytes, from: Offset, version: i16) -> Result<Bytes, ErrorCode> {
    if records.is_empty() || reads_stored_format(version) {
        return Ok(records);
    }
    let magic = if version >= 2 { 1 } else { 0 };
    down_convert_within(records, magic, from, DOWN_CONVERTED_BYTES_MAX).map_err(|error| match error {
        DownConvertError::Zstd { .. } => ErrorCode::UnsupportedCompressionType,
        _ => ErrorCode::CorruptMessage,
    })
}

/// Partitions of one topic that follow each other go under one name.
fn group(entries: Vec<Entry>) -> Vec<FetchableTopicResponse> {
    let mut topics: Vec<FetchableTopicResponse> = Vec::new();
    let mut before: Option<Arc<TopicKey>> = None;
    for Entry { wanted: Wanted { topic, .. }, data } in entries {
        match topics.last_mut() {
            Some(last) if before.as_ref() == Some(&topic) => last.partitions.push(data),
            _ => topics.push(FetchableTopicResponse {
                topic: topic.name.clone(),
                topic_id: topic.id,
                partitions: vec![data],
                ..FetchableTopicResponse::default()
            }),
        }
        before = Some(topic);
    }
    topics
}

#[cfg(test)]
mod tests;
