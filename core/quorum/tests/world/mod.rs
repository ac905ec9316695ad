//! A quorum node on files that are kept in memory: appended batches, what of them is synced, snapshots, the state file.

#![allow(dead_code, reason = "each test uses its part")]

pub mod access;
pub mod show;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use barnabas_base::{BrokerId, DurationMs, MonotonicMs, Offset, Text, TimestampMs, Uuid};
use barnabas_metadata::config::{BrokerConfig, Properties, StaticConfig};
use barnabas_metadata::{Changes, Image, MetadataVersion, features::name};
use barnabas_quorum::Now;
use barnabas_quorum::batches::EncodedBatch;
use barnabas_quorum::controller::{Asked, AskingClient, ControllerSettings};
use barnabas_quorum::node::{Effect, LocalBroker, Node, Settings, Starting, Stored};
use barnabas_quorum::snapshot::SnapshotVoters;
use barnabas_quorum::{QuorumError, SnapshotId, Voter, VoterEndpoint, Voters, bootstrap};
use barnabas_wire::messages::BrokerRegistrationRequest;
use barnabas_wire::messages::broker_registration_request::{Feature, Listener};
use barnabas_wire::{RequestBody, ResponseBody, Str};
use bytes::Bytes;

pub const CLUSTER: &str = "Y2x1c3RlciBvZiB0ZXN0cw";

/// What outlives the process.
#[derive(Debug, Clone, Default)]
pub struct Files {
    pub quorum_state: Option<String>,
    pub log: Vec<EncodedBatch>,
    /// Batches of `log` that are on disk.
    pub synced: usize,
    pub log_start: Offset,
    pub snapshots: BTreeMap<SnapshotId, Bytes>,
}

impl Files {
    pub fn log_end(&self) -> Offset {
        self.log.last().map_or(self.log_start, |batch| batch.end)
    }
}

/// Something that happened, for talks.
#[derive(Debug)]
pub enum Event {
    State(String),
    Append(EncodedBatch),
    Publish(Arc<Image>, Changes),
    Respond(u64, ResponseBody),
    Snapshot(SnapshotId),
    Delete(Offset, Vec<SnapshotId>),
}

pub struct World {
    pub files: Files,
    pub node: Option<Node>,
    pub now: u64,
    pub seed: u64,
    pub next_ticket: u64,
    pub image: Arc<Image>,
    pub events: Vec<Event>,
    pub incarnation: u8,
    /// Settings of the file.
    pub properties: Properties,
    pub local_unfenced: bool,
    pub static_voters: bool,
    pub has_authorizer: bool,
    /// The client in whose name is asked; `None`: the node's own.
    pub principal: Option<Text>,
    /// Log directories of the broker in this process.
    pub local_dirs: Vec<u8>,
}

pub fn directory(of: u8) -> Uuid {
    Uuid([of; 16])
}

/// A registration as a broker of this build makes it.
pub fn registration(
    broker: i32,
    incarnation: u8,
    dirs: &[u8],
    rack: Option<&str>,
) -> BrokerRegistrationRequest {
    let feature = |(name, min, max): (&str, i16, i16)| Feature {
        name: Str::from(name),
        min_supported_version: min,
        max_supported_version: max,
        ..Feature::default()
    };
    BrokerRegistrationRequest {
        broker_id: broker,
        cluster_id: Str::from(CLUSTER),
        incarnation_id: Uuid([incarnation; 16]),
        listeners: vec![Listener {
            name: Str::from("PLAINTEXT"),
            host: Str::from("localhost"),
            port: 9092 + broker as u16,
            security_protocol: 0,
            ..Listener::default()
        }],
        features: barnabas_quorum::controller::brokers::supported_features().map(feature).collect(),
        rack: rack.map(Str::from),
        log_dirs: dirs.iter().map(|&dir| directory(dir)).collect(),
        previous_broker_epoch: -1,
        ..BrokerRegistrationRequest::default()
    }
}

impl World {
    /// An empty directory.
    pub fn new(seed: u64) -> Self {
        Self {
            files: Files::default(),
            node: None,
            now: 1000,
            seed,
            next_ticket: 1,
            image: Arc::default(),
            events: Vec::new(),
            incarnation: 100,
            properties: Properties::new(),
            local_unfenced: true,
            static_voters: false,
            has_authorizer: false,
            principal: None,
            local_dirs: vec![1],
        }
    }

    /// Formatted, started, first image published.
    pub fn started(seed: u64) -> Self {
        let mut world = Self::new(seed);
        world.format(MetadataVersion::LATEST);
        world.start().unwrap();
        world.sync();
        world
    }

    fn me() -> Voter {
        Voter {
            id: BrokerId(1),
            directory: directory(9),
            endpoints: vec![VoterEndpoint {
                listener: Text::from("CONTROLLER"),
                host: Text::from("localhost"),
                port: 9093,
            }],
            kraft_min: 0,
            kraft_max: 1,
        }
    }

    /// What `storage format` writes.
    pub fn format(&mut self, release: MetadataVersion) {
        let levels = bootstrap::feature_levels(release, &[]).unwrap();
        let records = bootstrap::records(&levels, Vec::new());
        let voters = SnapshotVoters { kraft_version: 1, voters: Some(Voters::new([Self::me()])) };
        let voters = (!self.static_voters).then_some(&voters);
        let file = bootstrap::checkpoint(&records, voters, TimestampMs(5)).unwrap();
        self.files.snapshots.insert(SnapshotId::BOOTSTRAP, file);
        assert_eq!(levels[0].0, name::METADATA);
    }

    pub fn settings(&self) -> Settings {
        let (given, _) = StaticConfig::check(self.properties.clone()).unwrap();
        let me = Self::me();
        // A file knows no directories.
        let fixed = Voter { directory: Uuid::ZERO, ..Self::me() };
        let local = registration(1, self.incarnation, &self.local_dirs, None);
        Settings {
            static_voters: if self.static_voters { Voters::new([fixed]) } else { Voters::default() },
            raft: barnabas_quorum::raft::Config::new(me, Text::from("CONTROLLER"), 0),
            local_broker: Some(LocalBroker { registration: local, unfenced: self.local_unfenced }),
            controller: ControllerSettings {
                cluster_id: Text::from(CLUSTER),
                config: BrokerConfig::new(given),
                has_authorizer: self.has_authorizer,
            },
            broker_life: None,
            idle_interval: DurationMs(500),
            snapshot_bytes: 20 << 20,
            snapshot_interval: DurationMs(3_600_000),
        }
    }

    pub fn time(&self) -> Now {
        Now { wall: TimestampMs(1_000_000 + self.now as i64), monotonic: MonotonicMs(self.now) }
    }

    /// Starts a node on the files; nothing is synced yet.
    pub fn start(&mut self) -> Result<(), QuorumError> {
        self.incarnation += 1;
        let starting = self.read()?;
        let now = self.time();
        let started = starting.finish(now, &mut random(&mut self.seed))?;
        self.node = Some(started);
        self.carry_out();
        Ok(())
    }

    /// Reads the files, as a start does.
    pub fn read(&self) -> Result<Starting, QuorumError> {
        let stored = Stored {
            quorum_state: self.files.quorum_state.clone(),
            log_start: self.files.log_start,
            log_end: self.files.log_end(),
            snapshots: self.files.snapshots.iter().map(|(&id, file)| (id, file.len() as u64)).collect(),
            legacy_bootstrap: None,
        };
        let mut starting = Node::start(self.settings(), stored)?;
        if let Some(id) = starting.snapshot() {
            // In small pieces, to show that they may be cut anywhere.
            for piece in self.files.snapshots[&id].chunks(1000) {
                starting.feed_snapshot(piece)?;
            }
            starting.finish_snapshot()?;
        }
        let from = starting.log_from();
        for batch in self.files.log.iter().filter(|batch| batch.end > from) {
            starting.feed_log(batch.bytes.clone())?;
        }
        Ok(starting)
    }

    pub fn node(&mut self) -> &mut Node {
        self.node.as_mut().unwrap()
    }

    /// Asks; the answer comes with a later sync.
    pub fn ask(&mut self, request: impl Into<RequestBody>, version: i16) -> u64 {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let now = self.time();
        let client = self.principal.clone().map(|principal| AskingClient {
            principal,
            token_authenticated: false,
            address: std::net::Ipv4Addr::LOCALHOST.into(),
            client_id: None,
        });
        let asked = Asked { version, client, ..Asked::default() };
        let node = self.node.as_mut().unwrap();
        node.handle(ticket, request.into(), asked, now, &mut random(&mut self.seed)).unwrap().unwrap();
        self.carry_out();
        ticket
    }

    /// Asks, syncs, and returns the answer.
    pub fn answer(&mut self, request: impl Into<RequestBody>, version: i16) -> ResponseBody {
        let ticket = self.ask(request, version);
        self.sync();
        let at = self.events.iter().position(|event| matches!(event, Event::Respond(of, _) if *of == ticket));
        match self.events.remove(at.unwrap()) {
            Event::Respond(_, response) => response,
            _ => unreachable!(),
        }
    }

    /// Everything appended so far is on disk.
    pub fn sync(&mut self) {
        self.files.synced = self.files.log.len();
        let (end, now) = (self.files.log_end(), self.time());
        self.node().synced(end, now).unwrap();
        self.carry_out();
    }

    pub fn tick(&mut self, ms: u64) {
        self.now += ms;
        let now = self.time();
        self.node().tick(now).unwrap();
        self.carry_out();
    }

    /// The process dies. Of what was not synced, `kept` batches are found again.
    pub fn crash(&mut self, kept: usize) {
        self.node = None;
        let unsynced = self.files.log.len() - self.files.synced;
        self.files.log.truncate(self.files.synced + kept.min(unsynced));
        self.files.synced = self.files.log.len();
        self.events.clear();
    }

    pub fn carry_out(&mut self) {
        loop {
            let effects = self.node().take_effects();
            if effects.is_empty() {
                return;
            }
            for effect in effects {
                self.carry_out_one(effect);
            }
        }
    }

    fn carry_out_one(&mut self, effect: Effect) {
        match effect {
            Effect::WriteQuorumState(text) => {
                self.files.quorum_state = Some(text.clone());
                self.events.push(Event::State(text));
            }
            Effect::Append(batch) => {
                assert_eq!(batch.base, self.files.log_end());
                self.files.log.push(batch.clone());
                self.events.push(Event::Append(batch));
            }
            Effect::Publish { image, changes } => {
                assert!(image.provenance.end <= self.files.log[..self.files.synced].last().unwrap().end);
                self.image = image.clone();
                self.events.push(Event::Publish(image, *changes));
            }
            Effect::Respond { ticket, response } => self.events.push(Event::Respond(ticket, response)),
            Effect::WriteSnapshot(task) => {
                let mut file = Vec::new();
                task.write(|piece| -> Result<(), QuorumError> {
                    file.extend_from_slice(&piece);
                    Ok(())
                })
                .unwrap();
                self.files.snapshots.insert(task.id, Bytes::from(file));
                self.events.push(Event::Snapshot(task.id));
                let size = self.files.snapshots[&task.id].len() as u64;
                self.node().snapshot_written(task.id, Some(size));
            }
            Effect::DeleteBefore { log_start, snapshots } => {
                self.files.log_start = log_start;
                let before = self.files.log.len();
                self.files.log.retain(|batch| batch.end > log_start);
                self.files.synced -= before - self.files.log.len();
                for id in &snapshots {
                    self.files.snapshots.remove(id);
                }
                self.events.push(Event::Delete(log_start, snapshots));
            }
            // It leads alone.
            Effect::Leader(_) => {}
            other => panic!("{other:?}"),
        }
    }

    pub fn topic_names(&self) -> BTreeSet<String> {
        self.image.topics.iter().map(|topic| topic.name.to_string()).collect()
    }
}

/// splitmix64: what the world draws is the same for the same seed.
pub fn draw(seed: &mut u64) -> u64 {
    barnabas_base::split_mix_64(seed)
}

pub fn random(seed: &mut u64) -> impl FnMut() -> [u8; 16] + '_ {
    || {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&draw(seed).to_be_bytes());
        bytes[8..].copy_from_slice(&draw(seed).to_be_bytes());
        bytes
    }
}
