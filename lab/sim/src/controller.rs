//! The real controller, in a process that never dies: each request is decided on the last image, and makes the next.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use barnabas_base::{BrokerEpoch, BrokerId, LeaderEpoch, MonotonicMs, Offset, Text, TimestampMs, Uuid};
use barnabas_metadata::config::{BrokerConfig, Properties, StaticConfig};
use barnabas_metadata::{Delta, Image, MetadataVersion, Provenance};
use barnabas_partition::ReplicaKey;
use barnabas_quorum::controller::brokers::supported_features;
use barnabas_quorum::controller::impaired::said::Impairments;
use barnabas_quorum::controller::{Asked, Controller, ControllerSettings};
use barnabas_quorum::{Now, bootstrap};
use barnabas_wire::messages::broker_registration_request::{Feature, Listener};
use barnabas_wire::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig,
};
use barnabas_wire::messages::{BrokerHeartbeatRequest, BrokerRegistrationRequest, CreateTopicsRequest};
use barnabas_wire::{MetadataRecord, RequestBody, ResponseBody, Str};

use crate::mistake::Mistake;
use crate::random::Random;

pub(crate) const CLUSTER: &str = "Y2x1c3RlciBvZiB0ZXN0cw";
/// The controller's own id: it is no broker.
const ME: BrokerId = BrokerId(100);

pub(crate) struct Host {
    controller: Controller,
    delta: Delta,
    /// Every state of the metadata, oldest first.
    pub images: Vec<Arc<Image>>,
    end: i64,
    random: Random,
    /// What each broker's last heartbeat called damaged.
    told: BTreeMap<BrokerId, (BrokerEpoch, BTreeSet<ReplicaKey>)>,
    pub mistake: Option<Mistake>,
}

/// What a node is configured with.
pub(crate) fn config() -> BrokerConfig {
    let given = [("broker.session.timeout.ms", "80")];
    let given: Properties = given.iter().map(|(key, value)| (Text::from(*key), Text::from(*value))).collect();
    BrokerConfig::new(StaticConfig::check(given).expect("invariant: the settings are sound").0)
}

impl Host {
    pub fn new(seed: u64) -> Self {
        let settings =
            ControllerSettings { cluster_id: Text::from(CLUSTER), config: config(), has_authorizer: false };
        let now = time(MonotonicMs(0));
        let mut host = Self {
            controller: Controller::new(ME, settings, 1, now),
            delta: Delta::new(Image::default()),
            images: Vec::new(),
            end: 0,
            random: Random(seed),
            told: BTreeMap::new(),
            mistake: None,
        };
        let levels = bootstrap::feature_levels(MetadataVersion::LATEST, &[]);
        let levels = levels.expect("invariant: a release knows its own levels");
        host.replay(&bootstrap::records(&levels, Vec::new()));
        host
    }

    pub fn image(&self) -> &Arc<Image> {
        self.images.last().expect("invariant: there is a first image")
    }

    fn replay(&mut self, records: &[MetadataRecord]) {
        for record in records {
            self.delta.replay(record).expect("invariant: what the controller writes can be replayed");
        }
        self.end += records.len() as i64;
        let end = Offset(self.end);
        self.delta.advance(Provenance { end, last_epoch: LeaderEpoch(1), last_timestamp: TimestampMs(0) });
        self.images.push(Arc::new(self.delta.take().0));
    }

    pub fn ask(&mut self, request: impl Into<RequestBody>, version: i16, at: MonotonicMs) -> ResponseBody {
        let (request, asked) = (request.into(), Asked { version, ..Asked::default() });
        let image = Arc::clone(self.image());
        let next = Offset(self.end);
        let Self { controller, random, .. } = self;
        let mut draw = || random.bytes();
        let outcome = controller.handle(&image, &request, &asked, next, time(at), &mut draw);
        let outcome = outcome.expect("invariant: only what is the controller's is asked");
        if !outcome.records.is_empty() {
            self.replay(&outcome.records);
        }
        outcome.response
    }

    /// What time brings: silent brokers are fenced, damaged leaders replaced.
    pub fn tick(&mut self, at: MonotonicMs) {
        if self.controller.next_tick().is_none_or(|due| due > at) {
            return;
        }
        let image = Arc::clone(self.image());
        let records = self.controller.tick(&image, time(at));
        if !records.is_empty() {
            self.replay(&records);
        }
    }

    /// A broker's life begins, unless the controller believes that it goes on. `kept`: the life of which it has all
    /// that was acknowledged.
    pub fn register(
        &mut self,
        id: BrokerId,
        kept: Option<BrokerEpoch>,
        at: MonotonicMs,
    ) -> Option<BrokerEpoch> {
        let feature = |(name, min, max): (&str, i16, i16)| Feature {
            name: Str::from(name),
            min_supported_version: min,
            max_supported_version: max,
            ..Feature::default()
        };
        let request = BrokerRegistrationRequest {
            broker_id: id.get(),
            cluster_id: Str::from(CLUSTER),
            incarnation_id: Uuid(self.random.bytes()),
            listeners: vec![Listener {
                name: Str::from("PLAINTEXT"),
                host: Str::from("localhost"),
                port: 9092,
                ..Listener::default()
            }],
            features: supported_features().map(feature).collect(),
            log_dirs: vec![Uuid([id.get() as u8; 16])],
            previous_broker_epoch: kept.unwrap_or(BrokerEpoch::NONE).get(),
            ..BrokerRegistrationRequest::default()
        };
        match self.ask(request, 4, at) {
            ResponseBody::BrokerRegistration(response) if response.error_code == 0 => {
                Some(BrokerEpoch(response.broker_epoch))
            }
            _ => None,
        }
    }

    pub fn heartbeat(&mut self, id: BrokerId, life: BrokerEpoch, seen: Offset, fence: bool, at: MonotonicMs) {
        self.heartbeat_of(id, life, (seen, fence), &BTreeSet::new(), at);
    }

    /// `damaged`: replicas that had better not lead.
    pub fn heartbeat_of(
        &mut self,
        id: BrokerId,
        life: BrokerEpoch,
        (seen, fence): (Offset, bool),
        damaged: &BTreeSet<ReplicaKey>,
        at: MonotonicMs,
    ) {
        self.told.insert(id, (life, damaged.clone()));
        let is_heard = self.mistake != Some(Mistake::AdmitsTheDamaged);
        let partitions = damaged.iter().filter(|_| is_heard).map(|key| (key.topic, key.partition)).collect();
        let impairments = Impairments { partitions, ..Impairments::default() };
        let mut request = BrokerHeartbeatRequest {
            broker_id: id.get(),
            broker_epoch: life.get(),
            current_metadata_offset: seen.get(),
            want_fence: fence,
            ..BrokerHeartbeatRequest::default()
        };
        impairments.write(&mut request.unknown_tagged_fields);
        self.ask(request, 1, at);
    }

    /// Whether the broker's last heartbeat called its replica damaged.
    pub fn is_damaged(&self, id: BrokerId, key: ReplicaKey) -> bool {
        let registered = self.image().cluster.broker(id).map(|broker| broker.epoch);
        self.told.get(&id).is_some_and(|(life, keys)| Some(*life) == registered && keys.contains(&key))
    }

    pub fn create(&mut self, name: &str, assignment: &[Vec<i32>], min_in_sync: u16, at: MonotonicMs) {
        let partition = |(index, brokers): (usize, &Vec<i32>)| CreatableReplicaAssignment {
            partition_index: index as i32,
            broker_ids: brokers.clone(),
            ..CreatableReplicaAssignment::default()
        };
        let config = CreatableTopicConfig {
            name: Str::from("min.insync.replicas"),
            value: Some(Str::from(min_in_sync.to_string())),
            ..CreatableTopicConfig::default()
        };
        let topic = CreatableTopic {
            name: Str::from(name),
            num_partitions: -1,
            replication_factor: -1,
            assignments: assignment.iter().enumerate().map(partition).collect(),
            configs: vec![config],
            ..CreatableTopic::default()
        };
        let request =
            CreateTopicsRequest { topics: vec![topic], timeout_ms: 1000, ..CreateTopicsRequest::default() };
        self.ask(request, 7, at);
    }
}

fn time(at: MonotonicMs) -> Now {
    Now { wall: TimestampMs(at.0 as i64), monotonic: at }
}
