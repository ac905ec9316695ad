//! A shard with a log under it and clients around it, all in one thread: what the worker is in the broker.
//!
//! After every step it checks that no invariant is broken and that no ticket is answered twice.

#![allow(dead_code)]

use std::collections::BTreeMap;

use barnabas_base::{
    ConnectionNumber, DurationMs, ErrorCode, MonotonicMs, Offset, ProducerId, Text, TimestampMs, Uuid,
};
use barnabas_coordinator::{
    BatchId, Caller, Effect, GroupConfig, GroupShard, Job, Now, Part, Record, Request, Response,
    ShareStateDone, ShareStateOrder, ShareStateWork, Ticket,
};
use barnabas_metadata::{Delta, Image, Provenance};
use barnabas_wire::messages::{
    MetadataRecord, OffsetFetchResponse, PartitionRecord, RemoveTopicRecord, TopicRecord,
};
use barnabas_wire::{EncodeError, Message, Writer};

/// Wall time at the start of every test.
pub const EPOCH_MS: i64 = 1_700_000_000_000;

/// What takes one offset of the log.
#[derive(Debug, Clone, PartialEq)]
pub enum Logged {
    /// [`ProducerId::NONE`] outside of a transaction.
    Record(ProducerId, Record),
    Marker(ProducerId, bool),
}

impl Logged {
    pub fn record(&self) -> Option<&Record> {
        match self {
            Self::Record(_, record) => Some(record),
            Self::Marker(..) => None,
        }
    }
}

fn logged(producer: ProducerId, records: &[Record]) -> Vec<Logged> {
    records.iter().map(|record| Logged::Record(producer, record.clone())).collect()
}

pub struct Rig {
    pub shard: GroupShard,
    pub config: GroupConfig,
    pub elapsed_ms: u64,
    /// Batches are on disk as soon as they are handed out.
    pub disk_is_quick: bool,
    /// Who waits, and in which version.
    pub waiting: BTreeMap<Ticket, i16>,
    pub pending: BTreeMap<BatchId, Vec<Logged>>,
    /// What is on disk, in order.
    pub log: Vec<Logged>,
    /// Jobs are done as soon as they are handed out.
    pub jobs_are_quick: bool,
    pub jobs: Vec<Job>,
    /// What share groups ask of the share coordinator is done as soon as it is asked.
    pub share_is_quick: bool,
    pub share_orders: Vec<ShareStateOrder>,
    pub image: Image,
    /// Over which requests come from now on.
    pub connection: Option<ConnectionNumber>,
    /// What answers take at most, by the shard's parts.
    bounds: BTreeMap<Ticket, usize>,
    next_ticket: u64,
    next_random: u64,
}

impl Rig {
    pub fn new(config: GroupConfig) -> Self {
        let mut rig = Self {
            shard: GroupShard::new(config.clone()),
            config,
            elapsed_ms: 0,
            disk_is_quick: true,
            waiting: BTreeMap::new(),
            pending: BTreeMap::new(),
            log: Vec::new(),
            jobs_are_quick: true,
            jobs: Vec::new(),
            share_is_quick: true,
            share_orders: Vec::new(),
            image: Image::default(),
            bounds: BTreeMap::new(),
            next_ticket: 1,
            connection: None,
            next_random: 1,
        };
        let effects = rig.shard.activate(rig.now());
        assert_eq!(effects, []);
        rig
    }

    pub fn now(&self) -> Now {
        Now {
            wall: TimestampMs(EPOCH_MS + self.elapsed_ms as i64),
            mono: MonotonicMs(1_000_000 + self.elapsed_ms),
        }
    }

    /// One request of a client of this version.
    pub fn send(&mut self, client_id: &str, version: i16, request: Request) -> (Ticket, Vec<Effect>) {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        let mut random = [0; 16];
        random[8..].copy_from_slice(&self.next_random.to_be_bytes());
        self.next_random += 1;
        let caller = Caller {
            client_id,
            client_host: "/127.0.0.1",
            version,
            connection: self.connection,
            random,
            room: None,
        };
        let bound = self.bound(&caller, &request);
        self.bounds.extend(bound.map(|bytes| (ticket, bytes)));
        self.waiting.insert(ticket, version);
        let now = self.now();
        let effects = self.shard.handle(&caller, request, ticket, now);
        (ticket, self.carry_out(effects))
    }

    /// What the answer to such a request takes at most, by the shard's parts; `None`: it has no bound, or no entries.
    fn bound(&mut self, caller: &Caller<'_>, request: &Request) -> Option<usize> {
        let bytes = self.parts(&Caller { room: Some(0), ..caller.clone() }, request)?;
        let bytes = bytes.into_iter().map(|part| match part.request {
            Request::ListGroupsParts(_) => {
                let parts = self.parts(&Caller { room: Some(part.bytes), ..caller.clone() }, &part.request);
                parts.expect("parts").iter().map(|part| part.bytes).sum()
            }
            _ => part.bytes,
        });
        Some(bytes.sum())
    }

    /// The parts of an answer that has no room.
    fn parts(&mut self, caller: &Caller<'_>, request: &Request) -> Option<Vec<Part<Request>>> {
        let is_of_parts = matches!(
            request,
            Request::ListGroups(_)
                | Request::ListGroupsParts(_)
                | Request::OffsetFetch { .. }
                | Request::DescribeGroups(_)
                | Request::ConsumerGroupDescribe(_)
                | Request::StreamsGroupDescribe(_)
                | Request::ShareGroupDescribe(_)
        );
        if !is_of_parts {
            return None;
        }
        let now = self.now();
        let effects = self.shard.handle(caller, request.clone(), Ticket(u64::MAX), now);
        effects.into_iter().find_map(|effect| match effect {
            Effect::Answer { ticket: Ticket(u64::MAX), response: Response::Parts(parts) } => Some(parts),
            _ => None,
        })
    }

    /// Does what the worker does with effects. Gives all there were, those that followed included.
    pub fn carry_out(&mut self, effects: Vec<Effect>) -> Vec<Effect> {
        let mut all = Vec::new();
        let mut newest = None;
        for effect in effects {
            let appended = match &effect {
                Effect::Append { batch, records } => Some((*batch, logged(ProducerId::NONE, records))),
                Effect::AppendInTransaction { batch, producer, records } => {
                    Some((*batch, logged(producer.id, records)))
                }
                Effect::AppendMarker { batch, end } => {
                    Some((*batch, vec![Logged::Marker(end.producer.id, end.commit)]))
                }
                Effect::Answer { .. } | Effect::Compute(_) | Effect::ShareState(_) => None,
            };
            if let Some((batch, logged)) = appended {
                assert!(self.pending.keys().next_back().is_none_or(|last| *last < batch));
                self.pending.insert(batch, logged);
                newest = Some(batch);
            }
            if let Effect::Answer { ticket, response } = &effect {
                let version = self.waiting.remove(ticket);
                let version = version.unwrap_or_else(|| panic!("ticket {} answered twice", ticket.0));
                let length = encode(response, version);
                if let Some(bytes) = self.bounds.remove(ticket) {
                    assert!(
                        5 * length <= bytes + SMALL,
                        "{length} bytes on the wire, {bytes} in all: {response:?}"
                    );
                }
            }
            if let Effect::Compute(job) = &effect {
                self.jobs.push((**job).clone());
            }
            if let Effect::ShareState(order) = &effect {
                self.share_orders.push(order.clone());
            }
            all.push(effect);
        }
        assert_eq!(self.shard.violations(), Vec::<String>::new());
        if let Some(batch) = newest.filter(|_| self.disk_is_quick) {
            all.extend(self.durable(batch));
        }
        if self.jobs_are_quick {
            all.extend(self.run_jobs());
        }
        if self.share_is_quick {
            all.extend(self.share_done(ErrorCode::None));
        }
        all
    }

    /// What share groups asked is done, or refused for every share-partition.
    pub fn share_done(&mut self, error: ErrorCode) -> Vec<Effect> {
        let mut all = Vec::new();
        while !self.share_orders.is_empty() {
            let ShareStateOrder { number, work } = self.share_orders.remove(0);
            let keys: Vec<_> = match work {
                ShareStateWork::Initialize { starts, .. } => starts.into_iter().map(|(key, _)| key).collect(),
                ShareStateWork::Delete(keys) => keys,
            };
            let outcomes = keys.into_iter().map(|key| (key, error)).collect();
            let now = self.now();
            let effects = self.shard.share_state_done(ShareStateDone { number, outcomes }, now);
            all.extend(self.carry_out(effects));
        }
        all
    }

    /// Does what was handed out to be done elsewhere.
    pub fn run_jobs(&mut self) -> Vec<Effect> {
        let mut all = Vec::new();
        while !self.jobs.is_empty() {
            let job = self.jobs.remove(0);
            let now = self.now();
            let effects = self.shard.computed(job.run(), now);
            all.extend(self.carry_out(effects));
        }
        all
    }

    /// A topic is there, with this many partitions: created, or enlarged.
    pub fn topic(&mut self, name: &str, id: u8, partitions: i32) {
        let mut uuid = [0; 16];
        uuid[15] = id;
        let known = self.image.topics.by_name(name).map_or(0, |topic| topic.partition_count() as i32);
        let mut records = Vec::new();
        if known == 0 {
            records.push(MetadataRecord::Topic(TopicRecord {
                name: name.into(),
                topic_id: Uuid(uuid),
                ..Default::default()
            }));
        }
        records.extend((known..partitions).map(|partition_id| {
            MetadataRecord::Partition(PartitionRecord {
                partition_id,
                topic_id: Uuid(uuid),
                replicas: vec![1],
                isr: vec![1],
                leader: 1,
                ..Default::default()
            })
        }));
        self.metadata(&records, name, known == 0);
    }

    pub fn delete_topic(&mut self, name: &str) {
        let id = self.image.topics.id_of(name).expect("a topic");
        let gone = MetadataRecord::RemoveTopic(RemoveTopicRecord { topic_id: id, ..Default::default() });
        self.metadata(&[gone], name, false);
    }

    fn metadata(&mut self, records: &[MetadataRecord], topic: &str, has_new: bool) {
        let mut delta = Delta::new(self.image.clone());
        records.iter().for_each(|record| delta.replay(record).expect("a good record"));
        let end = Offset(self.image.provenance.end.get() + 1);
        delta.advance(Provenance { end, ..self.image.provenance });
        self.image = delta.apply().0;
        self.shard.image_changed(&self.image, Some(&[Text::from(topic)]), has_new);
    }

    pub fn durable(&mut self, through: BatchId) -> Vec<Effect> {
        let later = self.pending.split_off(&BatchId(through.0 + 1));
        for (_, records) in std::mem::replace(&mut self.pending, later) {
            self.log.extend(records);
        }
        let now = self.now();
        let effects = self.shard.durable(through, now);
        self.carry_out(effects)
    }

    pub fn fail(&mut self, batch: BatchId, error: ErrorCode) -> Vec<Effect> {
        self.pending.remove(&batch);
        let now = self.now();
        let effects = self.shard.failed(batch, error, now);
        self.carry_out(effects)
    }

    /// Lets time pass, stopping wherever the shard asks for it.
    pub fn wait(&mut self, time: DurationMs, mut seen: impl FnMut(u64, Vec<Effect>)) {
        let until = self.elapsed_ms + time.0 as u64;
        loop {
            let next = self.shard.next_deadline().map_or(until, |at| at.0.saturating_sub(1_000_000));
            self.elapsed_ms = self.elapsed_ms.max(next.min(until));
            let now = self.now();
            let effects = self.shard.tick(now);
            let effects = self.carry_out(effects);
            seen(self.elapsed_ms, effects);
            if next >= until {
                return;
            }
        }
    }

    /// A new shard, loaded from what is on disk.
    pub fn reloaded(&self) -> GroupShard {
        let mut shard = GroupShard::new(self.config.clone());
        shard.image_changed(&self.image, None, true);
        for (offset, logged) in self.log.iter().enumerate() {
            let offset = Offset(offset as i64);
            match logged {
                Logged::Record(producer, record) => shard
                    .replay(offset, *producer, &record.key, record.value.as_ref())
                    .expect("a good record"),
                Logged::Marker(producer, commit) => shard.replay_marker(*producer, *commit),
            }
        }
        shard
    }

    /// The same broker starts again: waiting requests are refused, what is not on disk is lost.
    pub fn restart(&mut self) -> Vec<Effect> {
        self.pending.clear();
        self.jobs.clear();
        self.share_orders.clear();
        let fresh = self.reloaded();
        let old = std::mem::replace(&mut self.shard, fresh);
        let mut effects = old.unload();
        let now = self.now();
        effects.extend(self.shard.activate(now));
        let effects = self.carry_out(effects);
        assert_eq!(self.waiting, BTreeMap::new(), "requests were left waiting");
        effects
    }

    /// The answer to a request that is answered at once.
    pub fn ask(&mut self, version: i16, request: Request) -> Response {
        let (ticket, effects) = self.send("rig", version, request);
        let answer = effects.into_iter().find_map(|effect| match effect {
            Effect::Answer { ticket: to, response } if to == ticket => Some(response),
            _ => None,
        });
        answer.expect("an answer at once")
    }
}

/// What an answer takes on the wire beside its entries, five times over.
const SMALL: usize = 5 * 16;

/// Every answer can be written in the version that it was asked for in. Gives its length.
fn encode(response: &Response, version: i16) -> usize {
    let mut writer = Writer::new();
    let written: Result<(), EncodeError> = match response {
        Response::JoinGroup(response) => response.encode(&mut writer, version),
        Response::SyncGroup(response) => response.encode(&mut writer, version),
        Response::Heartbeat(response) => response.encode(&mut writer, version),
        Response::LeaveGroup(response) => response.encode(&mut writer, version),
        Response::OffsetCommit(response) => response.encode(&mut writer, version),
        Response::OffsetFetch(group) => {
            let response = OffsetFetchResponse { groups: vec![group.clone()], ..Default::default() };
            response.encode(&mut writer, version.max(8))
        }
        Response::TxnOffsetCommit(response) => response.encode(&mut writer, version),
        Response::EndTransaction(_) => Ok(()),
        Response::OffsetDelete(response) => response.encode(&mut writer, version),
        Response::ListGroups(response) => response.encode(&mut writer, version),
        Response::DescribeGroups(response) => response.encode(&mut writer, version),
        Response::DeleteGroups(response) => response.encode(&mut writer, version),
        Response::ConsumerGroupHeartbeat(response) => response.encode(&mut writer, version),
        Response::ConsumerGroupDescribe(response) => response.encode(&mut writer, version),
        Response::StreamsGroupHeartbeat(answer) => answer.response.encode(&mut writer, version),
        Response::StreamsGroupDescribe(response) => response.encode(&mut writer, version),
        Response::StreamsTopologyDescription(response) => response.encode(&mut writer, version),
        Response::ShareGroupHeartbeat(response) => response.encode(&mut writer, version),
        Response::ShareGroupDescribe(response) => response.encode(&mut writer, version),
        Response::SharePartitions(_) | Response::Parts(_) | Response::Close => Ok(()),
        Response::AlterShareGroupOffsets(response) => response.encode(&mut writer, version),
        Response::DeleteShareGroupOffsets(response) => response.encode(&mut writer, version),
    };
    written.unwrap_or_else(|error| panic!("version {version} of {response:?}: {error}"));
    writer.len()
}
