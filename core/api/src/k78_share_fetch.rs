//! # ShareFetch, key 78, versions 1–2
//!
//! Acquires records for a member of a share group (KIP-932), and takes what it says of earlier ones.
//!
//! | version | what it added |
//! |---|---|
//! | 1 | the first stable one |
//! | 2 | exact numbers of records (KIP-1206), renewal of locks (KIP-1222) |
//!
//! ## Left out
//! - Nothing.
//! - Quotas: the throttle time is always 0.
//!
//! Source: Kafka 4.4 `KafkaApis.handleShareFetchRequest`, `processShareFetchResponse`, `ShareSessionContext`.

use barnabas_base::{DurationMs, ErrorCode, Map, Offset, TopicId};
use barnabas_security::Operation;
use barnabas_wire::Str;
use barnabas_wire::messages::share_fetch_request::{FetchPartition, ShareFetchRequest};
use barnabas_wire::messages::share_fetch_response::{
    AcquiredRecords, NodeEndpoint, PartitionData, ShareFetchResponse, ShareFetchableTopicResponse,
};
use bytes::Bytes;

use crate::share::{
    Acknowledgement, MemberKey, Opened, Opener, SharePart, ShareSessions, lock_ms, member, part, refusal,
};
use crate::{Context, Plan, Refusal, Slot};

/// What the owners of partitions have to do, in this order.
#[derive(Debug)]
pub struct Work {
    pub key: MemberKey,
    pub acknowledge: Vec<AckPart>,
    /// To be read and acquired from, in this order: it is another one each time.
    pub fetch: Vec<FetchPart>,
    /// How long the answer may wait for `bytes_min`.
    pub wait: DurationMs,
    pub bytes_min: usize,
    pub bytes_max: usize,
    pub records_max: i64,
    pub batch_size: i64,
    /// Never more than `records_max`.
    pub is_exact: bool,
    /// The session ends with this request.
    pub is_last: bool,
    pub pending: Pending,
}

/// What becomes of a request.
#[derive(Debug)]
pub enum Next {
    Work(Box<Work>),
    /// Refused, but not before some time is over: so that who is refused does not ask at once again.
    Late(DurationMs, ShareFetchResponse),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AckPart {
    pub slot: Slot,
    pub part: SharePart,
    pub batches: Vec<Acknowledgement>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchPart {
    pub slot: Slot,
    pub part: SharePart,
}

/// Records that were acquired of one partition: none may have been.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fetched {
    /// Whole batches, that hold at least what was acquired.
    pub records: Bytes,
    /// First and last offset, and how often they were delivered, this time included.
    pub acquired: Vec<(Offset, Offset, u16)>,
}

/// The answer as far as it is known.
#[derive(Debug, Default)]
pub struct Pending {
    key: MemberKey,
    epoch: i32,
    is_next: bool,
    entries: Vec<Entry>,
    /// Where in `entries` each partition stands.
    places: Map<SharePart, usize>,
    endpoints: Vec<NodeEndpoint>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    part: SharePart,
    data: PartitionData,
    /// There is something to say about fetching from it.
    is_fetched: bool,
    is_acknowledged: bool,
}

/// What a request takes for partitions of its member's session that it does not name.
pub fn work_bytes(request: &ShareFetchRequest, sessions: &ShareSessions) -> u64 {
    let (Some(group), Some(member)) = (&request.group_id, &request.member_id) else { return 0 };
    sessions.work_bytes(&MemberKey { group: group.text(), member: member.text() })
}

/// Finds the session, and what it and the request ask of which partition.
pub fn plan(
    request: &ShareFetchRequest,
    version: i16,
    sessions: &mut ShareSessions,
    opener: &Opener<'_>,
    ctx: &Context<'_>,
) -> Plan<Next, ShareFetchResponse> {
    let key = match member(request.group_id.as_ref(), request.member_id.as_ref(), ctx) {
        Ok(key) => key,
        Err(code) => return Plan::Answer(refuse(code, None)),
    };
    let renews = version >= 2 && request.is_renew_ack;
    if renews && let Some(words) = not_zero(request) {
        return Plan::Answer(refuse(ErrorCode::InvalidRequest, Some(words)));
    }
    let wanted = parts(request);
    let has_acknowledgements = partitions(request).any(|(_, data)| !data.acknowledgement_batches.is_empty());
    let forgotten: Vec<SharePart> = request
        .forgotten_topics_data
        .iter()
        .flat_map(|topic| topic.partitions.iter().map(|&index| part(topic.topic_id, index)))
        .collect();
    let epoch = request.share_session_epoch;
    let opened = sessions.open(&key, epoch, &wanted, &forgotten, has_acknowledgements, opener);
    let (is_next, is_last, fetched) = match opened {
        Ok(Opened::First(parts)) => (false, false, parts),
        Ok(Opened::Next(parts)) => (true, false, parts),
        Ok(Opened::Last) => (false, true, Vec::new()),
        Err(code @ ErrorCode::ShareSessionLimitReached) => {
            let wait = DurationMs(i64::from(request.max_wait_ms.max(0)));
            return Plan::Work(Next::Late(wait, refuse(code, None)));
        }
        Err(code) => return Plan::Answer(refuse(code, None)),
    };
    let pending = Pending {
        key: key.clone(),
        epoch,
        is_next,
        entries: Vec::new(),
        places: Map::default(),
        endpoints: Vec::new(),
        bytes: 0,
    };
    let mut work = Work {
        key,
        acknowledge: Vec::new(),
        fetch: Vec::new(),
        wait: DurationMs(i64::from(request.max_wait_ms.max(0))),
        bytes_min: 0,
        bytes_max: usize::try_from(request.max_bytes.min(ctx.config.fetch_bytes_max)).unwrap_or(0),
        records_max: i64::from(request.max_records),
        batch_size: i64::from(request.batch_size),
        is_exact: request.share_acquire_mode == 1,
        is_last,
        pending,
    };
    work.bytes_min = usize::try_from(request.min_bytes).unwrap_or(0).min(work.bytes_max);
    if has_acknowledgements {
        work.add_acknowledgements(request, version, ctx);
    }
    if !renews {
        work.add_fetches(fetched, ctx);
    }
    Plan::Work(Next::Work(Box::new(work)))
}

fn partitions(request: &ShareFetchRequest) -> impl Iterator<Item = (TopicId, &FetchPartition)> {
    let topics = request.topics.iter();
    topics.flat_map(|topic| topic.partitions.iter().map(|data| (topic.topic_id, data)))
}

fn parts(request: &ShareFetchRequest) -> Vec<SharePart> {
    partitions(request).map(|(topic, data)| part(topic, data.partition_index)).collect()
}

/// A renewal is answered before its lock may end again: it waits for nothing (KIP-1222).
fn not_zero(request: &ShareFetchRequest) -> Option<String> {
    let fields = [
        ("maxBytes", request.max_bytes),
        ("minBytes", request.min_bytes),
        ("maxRecords", request.max_records),
        ("maxWaitMs", request.max_wait_ms),
    ];
    let wrong = fields.iter().filter(|(_, value)| *value != 0);
    let words: String = wrong.map(|(name, _)| format!("{name} must be set to 0, ")).collect();
    (!words.is_empty()).then(|| words + "if isRenewAck is true.")
}

/// The whole request is refused.
pub fn refuse(code: ErrorCode, message: Option<String>) -> ShareFetchResponse {
    ShareFetchResponse {
        error_code: code.code(),
        error_message: message.map(Str::from),
        ..ShareFetchResponse::default()
    }
}

impl Work {
    fn add_acknowledgements(&mut self, request: &ShareFetchRequest, version: i16, ctx: &Context<'_>) {
        let mut silent = Vec::new();
        for (topic, data) in partitions(request) {
            let part = part(topic, data.partition_index);
            let batches: Vec<Acknowledgement> = data
                .acknowledgement_batches
                .iter()
                .map(|batch| Acknowledgement {
                    first: Offset(batch.first_offset),
                    last: Offset(batch.last_offset),
                    types: batch.acknowledge_types.clone(),
                })
                .collect();
            let refused = refusal(&part, &batches, version, request.is_renew_ack, ctx);
            match refused {
                Some(code) => {
                    let slot = self.pending.slot(part);
                    self.pending.acknowledged(slot, Err(code.into()), ctx);
                }
                None if batches.is_empty() => silent.push(part),
                None => {
                    let slot = self.pending.slot(part);
                    self.acknowledge.push(AckPart { slot, part, batches });
                }
            }
        }
        if !self.acknowledge.is_empty() {
            for part in silent {
                let slot = self.pending.slot(part);
                self.pending.acknowledged(slot, Ok(()), ctx);
            }
        }
    }

    fn add_fetches(&mut self, parts: Vec<SharePart>, ctx: &Context<'_>) {
        for part in parts {
            let slot = self.pending.slot(part);
            match ctx.image.topics.by_id(part.topic) {
                None => self.pending.refused(slot, ErrorCode::UnknownTopicId.into(), ctx),
                Some(topic) if !ctx.access.topic(Operation::Read, &topic.name) => {
                    self.pending.refused(slot, ErrorCode::TopicAuthorizationFailed.into(), ctx);
                }
                Some(topic) if topic.partition(part.partition).is_none() => {
                    self.pending.refused(slot, ErrorCode::UnknownTopicOrPartition.into(), ctx);
                }
                Some(_) => self.fetch.push(FetchPart { slot, part }),
            }
        }
        if self.records_max <= 0 || self.bytes_max == 0 {
            self.fetch.clear();
        }
        // Another partition is the first each time, so that none starves.
        if !self.fetch.is_empty() {
            let turn = usize::try_from(self.pending.epoch).unwrap_or(0) % self.fetch.len();
            self.fetch.rotate_left(turn);
        }
    }
}

impl Pending {
    fn slot(&mut self, part: SharePart) -> Slot {
        let at = *self.places.entry(part).or_insert(self.entries.len());
        if at == self.entries.len() {
            self.entries.push(Entry {
                part,
                data: PartitionData {
                    partition_index: part.partition.get(),
                    records: Some(Bytes::new()),
                    ..PartitionData::default()
                },
                is_fetched: false,
                is_acknowledged: false,
            });
        }
        Slot::new(0, at)
    }

    /// What was acquired from a partition.
    pub fn fetched(&mut self, slot: Slot, fetched: Fetched) {
        let entry = &mut self.entries[slot.partition()];
        entry.is_fetched = true;
        (entry.data.error_code, entry.data.error_message) = (0, None);
        self.bytes += fetched.records.len();
        entry.data.records = Some(fetched.records);
        let acquired = fetched.acquired.into_iter().map(|(first, last, count)| AcquiredRecords {
            first_offset: first.get(),
            last_offset: last.get(),
            delivery_count: i16::try_from(count).unwrap_or(i16::MAX),
            ..AcquiredRecords::default()
        });
        entry.data.acquired_records.extend(acquired);
    }

    /// Nothing can be fetched from a partition.
    pub fn refused(&mut self, slot: Slot, refusal: Refusal, ctx: &Context<'_>) {
        let entry = &mut self.entries[slot.partition()];
        entry.is_fetched = true;
        entry.data.error_code = refusal.code.code();
        entry.data.error_message = refusal.text();
        if matches!(refusal.code, ErrorCode::NotLeaderOrFollower | ErrorCode::FencedLeaderEpoch) {
            self.name_leader(slot, ctx);
        }
    }

    /// What became of a partition's acknowledgements.
    pub fn acknowledged(&mut self, slot: Slot, result: Result<(), Refusal>, _ctx: &Context<'_>) {
        let entry = &mut self.entries[slot.partition()];
        entry.is_acknowledged = true;
        if let Err(refusal) = result {
            entry.data.acknowledge_error_code = refusal.code.code();
            entry.data.acknowledge_error_message = refusal.text();
        }
    }

    fn name_leader(&mut self, slot: Slot, ctx: &Context<'_>) {
        let entry = &mut self.entries[slot.partition()];
        let topic = ctx.image.topics.by_id(entry.part.topic);
        let Some(state) = topic.and_then(|topic| topic.partition(entry.part.partition)) else { return };
        let leader = ctx.leader_of(state);
        entry.data.current_leader = (&leader).into();
        leader.tell_address(&mut self.endpoints);
    }

    /// Bytes of records so far.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether the answer need not wait: there are records, or nothing but errors. One partition that cannot be read
    /// does not make its member ask again and again for the others.
    pub fn has_news(&self) -> bool {
        let mut fetched = self.entries.iter().filter(|entry| entry.is_fetched);
        self.bytes > 0 || fetched.all(|entry| entry.data.error_code != 0)
    }

    /// The answer.
    pub fn respond(mut self, sessions: &mut ShareSessions, ctx: &Context<'_>) -> ShareFetchResponse {
        if self.is_next {
            let answered: Vec<(SharePart, bool, bool)> = self
                .entries
                .iter()
                .filter(|entry| entry.is_fetched)
                .map(|entry| {
                    (entry.part, !entry.data.acquired_records.is_empty(), entry.data.error_code != 0)
                })
                .collect();
            // A repeated request has moved the session on: what it acknowledges is answered there. What was acquired is
            // not lost, its locks end.
            let Some(must) = sessions.must_answer(&self.key, self.epoch, &answered) else {
                return refuse(ErrorCode::InvalidShareSessionEpoch, None);
            };
            let mut must = must.into_iter();
            for entry in self.entries.iter_mut().filter(|entry| entry.is_fetched) {
                entry.is_fetched = must.next().unwrap_or(true);
            }
        }
        self.entries.retain(|entry| entry.is_fetched || entry.is_acknowledged);
        ShareFetchResponse {
            acquisition_lock_timeout_ms: lock_ms(&self.key.group, ctx),
            responses: by_topic(self.entries),
            node_endpoints: self.endpoints,
            ..ShareFetchResponse::default()
        }
    }
}

fn by_topic(entries: Vec<Entry>) -> Vec<ShareFetchableTopicResponse> {
    let mut topics: Vec<ShareFetchableTopicResponse> = Vec::new();
    let mut places: Map<TopicId, usize> = Map::default();
    for Entry { part, data, .. } in entries {
        let at = *places.entry(part.topic).or_insert(topics.len());
        if at == topics.len() {
            topics.push(ShareFetchableTopicResponse { topic_id: part.topic, ..Default::default() });
        }
        topics[at].partitions.push(data);
    }
    topics
}

#[cfg(test)]
mod tests;
