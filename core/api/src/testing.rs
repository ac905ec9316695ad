//! A small cluster for the tests of this crate, and the check that an answer fits its version.
//!
//! Nodes: 1 is this one; 2 is alive; 3 is fenced; 4 is alive and knows only the listener OTHER.
//! `orders`: partition 0 led here, 1 by node 2, 2 without a known leader. `compacted`: one
//! partition, led here. `__consumer_offsets`: partition 0 led here, 1 by node 2.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use barnabas_base::{BrokerId, LeaderEpoch, Offset, Text, TimestampMs, TopicId, Uuid};
use barnabas_metadata::access::Acl;
use barnabas_metadata::config::{BrokerConfig, Properties, StaticConfig};
use barnabas_metadata::{Delta, Image, Provenance};
use barnabas_security::{
    Authorizer, Caller, Host, Operation, PatternType, Permission, ResourceType, SuperUsers, Verdict,
};
use barnabas_wire::messages::partition_record::PartitionRecord;
use barnabas_wire::messages::register_broker_record::{BrokerEndpoint, RegisterBrokerRecord};
use barnabas_wire::messages::{ConfigRecord, FeatureLevelRecord, MetadataRecord, TopicRecord};
use barnabas_wire::{Message, Reader, Writer};

use crate::share::{Connection, Opener};
use crate::{Access, AnswerRoom, Client, Context, Denials, Judge, Lender, Unlimited};

pub(crate) const ORDERS: TopicId = Uuid([0xa; 16]);
pub(crate) const COMPACTED: TopicId = Uuid([0xb; 16]);
pub(crate) const OFFSETS: TopicId = Uuid([0xc; 16]);
pub(crate) const TRANSACTIONS: TopicId = Uuid([0xd; 16]);
pub(crate) const SHARE_STATE: TopicId = Uuid([0xe; 16]);
pub(crate) const UNKNOWN: TopicId = Uuid([0xf; 16]);
pub(crate) const CLUSTER: &str = "the-cluster";

/// What a [`Context`] borrows.
pub(crate) struct Fixture {
    pub image: Image,
    pub config: BrokerConfig,
    pub client: Client,
    pub room: Box<AnswerRoom>,
    pub offline: Option<crate::OfflineReplicas>,
    /// `None`: no authorizer.
    pub judged: Option<Judged>,
}

/// The client under an authorizer, and what was denied to it.
pub(crate) struct Judged {
    authorizer: Authorizer,
    caller: Caller,
    pub denied: Recorded,
    enforces: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Recorded(RefCell<Vec<String>>);

impl Recorded {
    /// Each denial once, in the order in which they came.
    pub fn take(&self) -> String {
        let mut denied = self.0.take();
        let mut seen = std::collections::BTreeSet::new();
        denied.retain(|each| seen.insert(each.clone()));
        denied.join(", ")
    }
}

impl Denials for Recorded {
    fn denied(&self, operation: Operation, resource_type: ResourceType, name: &str, _verdict: Verdict) {
        self.0.borrow_mut().push(format!("{operation} {resource_type}:{name}"));
    }
}

/// As [`Fixture::with_groups`], with `__share_group_state` of two partitions (0 led here, 1 by node 2), and share
/// groups agreed on.
pub(crate) fn share_groups() -> Fixture {
    let mut fixture = Fixture::with_groups();
    let state = topic("__share_group_state", SHARE_STATE);
    let agreed = feature("share.version", 1);
    fixture.add(&[agreed, state, partition(SHARE_STATE, 0, 1), partition(SHARE_STATE, 1, 2)]);
    fixture
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let mut records =
            vec![feature("metadata.version", 33), feature("group.version", 1), feature("streams.version", 1)];
        records.extend([broker(1, false, "PLAINTEXT"), broker(2, false, "PLAINTEXT")]);
        records.extend([broker(3, true, "PLAINTEXT"), broker(4, false, "OTHER")]);
        records.extend([topic("orders", ORDERS), topic("compacted", COMPACTED)]);
        records.extend([partition(ORDERS, 0, 1), partition(ORDERS, 1, 2), partition(ORDERS, 2, -1)]);
        records.extend([partition(COMPACTED, 0, 1), config(2, "compacted", "cleanup.policy", "compact")]);
        let mut fixture = Self {
            image: Image::default(),
            config: broker_config(&[]),
            client: Client {
                listener: Text::from("PLAINTEXT"),
                client_id: Some(Text::from("a-client")),
                host: Text::from("/127.0.0.1"),
                principal: Text::from("User:ANONYMOUS"),
                is_authenticated: false,
                token_authenticated: false,
            },
            room: Box::new(AnswerRoom::unlimited()),
            offline: None,
            judged: None,
        };
        fixture.add(&records);
        fixture
    }

    /// With `__consumer_offsets`.
    pub(crate) fn with_groups() -> Self {
        let mut fixture = Self::new();
        let offsets = topic("__consumer_offsets", OFFSETS);
        fixture.add(&[offsets, partition(OFFSETS, 0, 1), partition(OFFSETS, 1, 2)]);
        fixture
    }

    /// With `__consumer_offsets` and `__transaction_state`, of two partitions each: 0 led here, 1 by node 2.
    pub(crate) fn with_transactions() -> Self {
        let mut fixture = Self::with_groups();
        let state = topic("__transaction_state", TRANSACTIONS);
        fixture.add(&[state, partition(TRANSACTIONS, 0, 1), partition(TRANSACTIONS, 1, 2)]);
        fixture
    }

    /// The cluster agrees on share groups.
    pub(crate) fn share_groups(&mut self) {
        self.add(&[feature("share.version", 1)]);
    }

    /// The client may do no more than this; each with a LITERAL pattern.
    pub(crate) fn allow(&mut self, granted: &[(Operation, ResourceType, &str)]) {
        let acls = granted.iter().enumerate().map(|(number, (operation, resource_type, name))| {
            let acl = Acl {
                resource_type: resource_type.code(),
                resource_name: Text::from(*name),
                pattern_type: PatternType::Literal.code(),
                principal: self.client.principal.clone(),
                host: Text::from("*"),
                operation: operation.code(),
                permission: Permission::Allow.code(),
            };
            (Uuid([number as u8; 16]), acl)
        });
        self.image.acls = acls.collect();
        let authorizer = Authorizer::new(&self.image, SuperUsers::default(), false);
        let caller = authorizer.caller(&self.client.principal, &Host::parse(&self.client.host));
        self.judged = Some(Judged { authorizer, caller, denied: Recorded::default(), enforces: true });
    }

    /// As [`Self::allow`], and the authorizer only reports.
    pub(crate) fn allow_in_shadow(&mut self, granted: &[(Operation, ResourceType, &str)]) {
        self.allow(granted);
        self.judged.iter_mut().for_each(|judged| judged.enforces = false);
    }

    fn access(&self) -> Access<'_> {
        self.judged.as_ref().map_or(Access::OPEN, |judged| {
            let Judged { authorizer, caller, denied, enforces } = judged;
            Access::new(Judge { authorizer, caller, denials: denied, granted: None, enforces: *enforces })
        })
    }

    pub(crate) fn add(&mut self, records: &[MetadataRecord]) {
        let mut delta = Delta::new(self.image.clone());
        for record in records {
            delta.replay(record).unwrap();
        }
        delta.advance(Provenance {
            end: Offset(100),
            last_epoch: LeaderEpoch(1),
            last_timestamp: TimestampMs(0),
        });
        self.image = delta.apply().0;
    }

    pub(crate) fn ctx(&self) -> Context<'_> {
        Context {
            image: &self.image,
            config: &self.config,
            cluster_id: CLUSTER,
            node: BrokerId(1),
            offline: self.offline.as_ref(),
            client: &self.client,
            access: self.access(),
            now: TimestampMs(1_000_000),
            loggers: || vec![("root", "INFO"), ("barnabas", "DEBUG")],
            room: &self.room,
        }
    }
}

pub(crate) fn broker_config(given: &[(&str, &str)]) -> BrokerConfig {
    let given: Properties = given.iter().map(|(key, value)| (Text::from(*key), Text::from(*value))).collect();
    BrokerConfig::new(StaticConfig::check(given).unwrap().0)
}

pub(crate) fn broker(id: i32, fenced: bool, listener: &str) -> MetadataRecord {
    let endpoint = BrokerEndpoint {
        name: listener.into(),
        host: format!("host-{id}").into(),
        port: 9092,
        ..BrokerEndpoint::default()
    };
    MetadataRecord::RegisterBroker(RegisterBrokerRecord {
        broker_id: id,
        incarnation_id: Uuid([id as u8; 16]),
        broker_epoch: 10 + i64::from(id),
        end_points: vec![endpoint],
        rack: Some("r".into()),
        fenced,
        log_dirs: vec![Uuid([0x40 + id as u8; 16])],
        ..RegisterBrokerRecord::default()
    })
}

pub(crate) fn topic(name: &str, topic_id: TopicId) -> MetadataRecord {
    MetadataRecord::Topic(TopicRecord { name: name.into(), topic_id, ..TopicRecord::default() })
}

/// Replicas are the leader and node 3; the leader alone is in sync.
pub(crate) fn partition(topic_id: TopicId, partition_id: i32, leader: i32) -> MetadataRecord {
    let first = if leader < 0 { 9 } else { leader };
    MetadataRecord::Partition(PartitionRecord {
        partition_id,
        topic_id,
        replicas: vec![first, 3],
        isr: vec![first],
        leader,
        leader_epoch: 5,
        partition_epoch: 6,
        directories: vec![Uuid([0x40 + first as u8; 16]), Uuid([0x43; 16])],
        ..PartitionRecord::default()
    })
}

pub(crate) fn config(kind: i8, resource: &str, name: &str, value: &str) -> MetadataRecord {
    MetadataRecord::Config(ConfigRecord {
        resource_type: kind,
        resource_name: resource.into(),
        name: name.into(),
        value: Some(value.into()),
        ..ConfigRecord::default()
    })
}

fn feature(name: &str, feature_level: i16) -> MetadataRecord {
    let record = FeatureLevelRecord { name: name.into(), feature_level, ..FeatureLevelRecord::default() };
    MetadataRecord::FeatureLevel(record)
}

/// The message after a trip over the wire in `version`: it must arrive as it was sent.
pub(crate) fn carried<M: Message + PartialEq + std::fmt::Debug>(message: M, version: i16) -> M {
    let mut writer = Writer::new();
    message.encode(&mut writer, version).unwrap_or_else(|error| panic!("version {version}: {error}"));
    let mut reader = Reader::new(writer.into_bytes());
    let read = M::decode(&mut reader, version).unwrap();
    reader.finish().unwrap();
    assert_eq!(read, message, "version {version} does not carry all of it");
    read
}

/// Every version of a message, from the lowest on.
pub(crate) fn versions<M: Message>() -> std::ops::RangeInclusive<i16> {
    M::VERSIONS.min..=M::VERSIONS.max
}

/// Lends up to a limit, as the node does.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    held: Arc<AtomicU64>,
    limit: u64,
}

struct Lent {
    of: Memory,
    bytes: AtomicU64,
}

impl Memory {
    pub fn of(limit: u64) -> Self {
        Self { limit, ..Self::default() }
    }

    pub fn share(&self) -> Box<dyn Lender + Send> {
        Box::new(Lent { of: self.clone(), bytes: AtomicU64::new(0) })
    }

    pub fn held(&self) -> u64 {
        self.held.load(Relaxed)
    }
}

impl Lender for Lent {
    fn lend(&self, total: u64) -> bool {
        let after = self.of.held() - self.bytes.load(Relaxed) + total;
        if after <= self.of.limit {
            self.of.held.store(after, Relaxed);
            self.bytes.store(total, Relaxed);
        }
        after <= self.of.limit
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.of.held.fetch_sub(self.bytes.load(Relaxed), Relaxed);
    }
}

/// Opens share sessions by a connection, with as much memory as they want.
pub(crate) fn opener(connection: Connection) -> Opener<'static> {
    Opener { connection, share: &|| Box::new(Unlimited) }
}
