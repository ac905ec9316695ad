//! Conversations with a quorum node: `tests/talks/*.txt`. What stands after `> ` is the question, the rest is what it
//! did, `# ` explains.
//!
//! `TALKS=write cargo test -p barnabas-quorum --test talks` rewrites the answers; the diff is the review.
//!
//! The node is number 1, voter, controller and broker. Each request is synced and answered at once, but after
//! `> hold`, when `> sync` must be said.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

mod world;

use std::path::Path;

use barnabas_base::{Text, TopicId};
use barnabas_metadata::MetadataVersion;
use barnabas_wire::messages::alter_configs_request::{
    AlterConfigsResource as ReplaceResource, AlterableConfig as ReplaceConfig,
};
use barnabas_wire::messages::create_partitions_request::{CreatePartitionsAssignment, CreatePartitionsTopic};
use barnabas_wire::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig,
};
use barnabas_wire::messages::delete_topics_request::DeleteTopicState;
use barnabas_wire::messages::elect_leaders_request::TopicPartitions;
use barnabas_wire::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use barnabas_wire::messages::update_features_request::FeatureUpdateKey;
use barnabas_wire::messages::*;
use barnabas_wire::{RequestBody, Str};
use world::{World, access, registration, show};

struct Said<'a> {
    verb: &'a str,
    words: Vec<&'a str>,
}

impl<'a> Said<'a> {
    fn word(&self, key: &str) -> Option<&'a str> {
        self.words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    }

    fn number(&self, key: &str) -> Option<i64> {
        self.word(key).map(|word| word.parse().unwrap())
    }

    fn or(&self, key: &str, default: i64) -> i64 {
        self.number(key).unwrap_or(default)
    }

    fn has(&self, flag: &str) -> bool {
        self.words.contains(&flag)
    }

    fn list(&self, key: &str) -> Vec<i32> {
        let list = self.word(key).unwrap_or_default();
        list.split(',').filter(|item| !item.is_empty()).map(|item| item.parse().unwrap()).collect()
    }

    /// Words of the form `key=value` whose key holds a dot, or is `match`: configs.
    fn configs(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let pairs = self.words.iter().filter_map(|word| word.split_once('='));
        pairs.filter(|(key, _)| key.contains('.') || *key == "match")
    }
}

struct Talk {
    world: World,
    hold: bool,
}

impl Talk {
    fn say(&mut self, line: &str) -> String {
        let mut words = line.split_whitespace();
        let said = Said { verb: words.next().unwrap(), words: words.collect() };
        let mut shown = self.act(&said);
        if !self.hold && self.world.node.is_some() {
            self.world.sync();
        }
        for event in std::mem::take(&mut self.world.events) {
            shown += &show::event(&event);
        }
        if shown.is_empty() { "nothing\n".into() } else { shown }
    }

    fn act(&mut self, said: &Said<'_>) -> String {
        self.world.principal = said.word("as").map(|name| Text::from(format!("User:{name}")));
        match said.verb {
            "format" => {
                self.world.static_voters = said.has("static");
                let release = said.word("release").unwrap_or("4.4");
                self.world.format(MetadataVersion::parse(release).unwrap());
            }
            "file" => {
                for (key, value) in said.configs() {
                    self.world.properties.insert(Text::from(key), Text::from(value));
                }
            }
            "start" => {
                self.world.local_unfenced = !said.has("fenced");
                if let Err(error) = self.world.start() {
                    return format!("error: {error}\n");
                }
            }
            "crash" => self.world.crash(said.or("kept", 0) as usize),
            "hold" => self.hold = true,
            "sync" => self.world.sync(),
            "release" => self.hold = false,
            "wait" => self.world.tick(said.or("ms", 0) as u64),
            "snapshot" => {
                let now = self.world.time();
                self.world.node().snapshot(now);
                self.world.carry_out();
            }
            "show" => return self.show(said),
            "authorizer" => self.world.has_authorizer = true,
            _ => self.change(said),
        }
        String::new()
    }

    /// What clients ask for.
    fn change(&mut self, said: &Said<'_>) {
        let version = |default: i64| said.or("v", default) as i16;
        match said.verb {
            "acl" => self.ask(access::create_acls(&said.words), version(3)),
            "unacl" => self.ask(access::delete_acls(&said.words), version(3)),
            "quota" => self.ask(access::alter_quotas(&said.words), version(1)),
            "scram" => self.ask(access::alter_scram(&said.words), version(0)),
            "token" | "renew" | "expire" => {
                let key = self.world.properties.get("delegation.token.secret.key").map_or("", |key| &**key);
                let request = access::token_request(said.verb, &said.words, &self.world.image, key);
                self.world.principal.get_or_insert_with(|| Text::from("User:alice"));
                self.ask(request, version(2));
            }
            "create" => self.ask(create(said), version(7)),
            "delete" => {
                let request = self.delete(said);
                self.ask(request, version(6));
            }
            "grow" => self.ask(grow(said), version(3)),
            "set" | "unset" | "add" | "subtract" => self.ask(incremental(said), version(1)),
            "replace" => self.ask(replace(said), version(2)),
            "feature" => self.ask(feature(said), version(2)),
            "elect" => self.ask(elect(said), version(2)),
            _ => self.of_nodes(said),
        }
    }

    /// What brokers and controllers ask for.
    fn of_nodes(&mut self, said: &Said<'_>) {
        match said.verb {
            "ids" => {
                let request = AllocateProducerIdsRequest {
                    broker_id: said.or("broker", 1) as i32,
                    broker_epoch: self.epoch(said),
                    ..AllocateProducerIdsRequest::default()
                };
                self.ask(request, 0);
            }
            "register" => {
                let dirs: Vec<u8> = said.list("dirs").iter().map(|&dir| dir as u8).collect();
                let broker = said.or("broker", 2) as i32;
                let life = said.or("life", 1) as u8;
                let mut request = registration(broker, life, &dirs, said.word("rack"));
                request.previous_broker_epoch = said.or("previous", -1);
                self.ask(request, 4);
            }
            "heartbeat" => {
                let request = BrokerHeartbeatRequest {
                    broker_id: said.or("broker", 2) as i32,
                    broker_epoch: self.epoch(said),
                    current_metadata_offset: said.or("offset", 1_000_000),
                    want_fence: said.has("fence"),
                    want_shut_down: said.has("shut-down"),
                    offline_log_dirs: said
                        .list("offline")
                        .iter()
                        .map(|&dir| world::directory(dir as u8))
                        .collect(),
                    ..BrokerHeartbeatRequest::default()
                };
                self.ask(request, 1);
            }
            "assign" => {
                let request = self.assign(said);
                self.ask(request, 0);
            }
            "unregister" => {
                let broker_id = said.or("broker", 2) as i32;
                self.ask(UnregisterBrokerRequest { broker_id, ..UnregisterBrokerRequest::default() }, 0);
            }
            "register-controller" => self.ask(register_controller(said), 0),
            "unregister-controller" => {
                let controller_id = said.or("id", 2) as i32;
                self.ask(
                    UnregisterControllerRequest { controller_id, ..UnregisterControllerRequest::default() },
                    0,
                );
            }
            "describe" => self.ask(describe(said), 2),
            other => panic!("unknown verb '{other}'"),
        }
    }

    fn ask(&mut self, request: impl Into<RequestBody>, version: i16) {
        self.world.ask(request, version);
    }

    /// Broker 2's replicas of a topic lie in a directory.
    fn assign(&self, said: &Said<'_>) -> AssignReplicasToDirsRequest {
        use assign_replicas_to_dirs_request::{DirectoryData, PartitionData, TopicData};
        let partition = |index| PartitionData { partition_index: index, ..PartitionData::default() };
        let name = said.word("t").unwrap_or_default();
        let topic = TopicData {
            topic_id: self.world.image.topics.id_of(name).unwrap_or_default(),
            partitions: said.list("p").into_iter().map(partition).collect(),
            ..TopicData::default()
        };
        let directory = DirectoryData {
            id: world::directory(said.or("dir", 0) as u8),
            topics: vec![topic],
            ..DirectoryData::default()
        };
        AssignReplicasToDirsRequest {
            broker_id: said.or("broker", 2) as i32,
            broker_epoch: self.epoch(said),
            directories: vec![directory],
            ..AssignReplicasToDirsRequest::default()
        }
    }

    /// The named epoch, or the broker's own.
    fn epoch(&self, said: &Said<'_>) -> i64 {
        let default = if said.verb == "ids" { 1 } else { 2 };
        let broker = barnabas_base::BrokerId(said.or("broker", default) as i32);
        let image = self.world.node.as_ref().unwrap().working_image();
        let own = image.cluster.broker(broker).map_or(-1, |broker| broker.epoch.get());
        said.or("epoch", own)
    }

    fn delete(&self, said: &Said<'_>) -> DeleteTopicsRequest {
        let by_name = said
            .words
            .iter()
            .filter_map(|word| word.strip_prefix("t="))
            .map(|name| DeleteTopicState { name: Some(Str::from(name)), ..DeleteTopicState::default() });
        let id = |name: &str| self.world.image.topics.id_of(name).unwrap_or(TopicId::METADATA_TOPIC);
        let by_id = said
            .words
            .iter()
            .filter_map(|word| word.strip_prefix("id-of="))
            .map(|name| DeleteTopicState { name: None, topic_id: id(name), ..DeleteTopicState::default() });
        DeleteTopicsRequest { topics: by_name.chain(by_id).collect(), ..DeleteTopicsRequest::default() }
    }

    fn show(&mut self, said: &Said<'_>) -> String {
        let image = self.world.image.clone();
        let mut shown = String::new();
        if said.has("topics") {
            for topic in image.topics.iter() {
                for (index, partition) in topic.partitions() {
                    let ids =
                        |ids: &[barnabas_base::BrokerId]| ids.iter().map(|id| id.get()).collect::<Vec<_>>();
                    shown += &format!(
                        "{}-{index} leader={} epoch={}/{} replicas={:?} isr={:?} elr={:?}\n",
                        topic.name,
                        partition.leader,
                        partition.leader_epoch,
                        partition.partition_epoch,
                        ids(partition.replicas()),
                        ids(partition.isr()),
                        ids(partition.elr())
                    );
                }
            }
        }
        if said.has("brokers") {
            for broker in image.cluster.brokers() {
                shown += &format!("broker {} epoch={} fenced={}\n", broker.id, broker.epoch, broker.fenced);
            }
        }
        if said.has("features") {
            for (name, level) in image.features.all() {
                shown += &format!("{name} {level}\n");
            }
        }
        if said.has("access") {
            shown += &access::shown(&image);
        }
        if said.has("log") {
            for batch in &self.world.files.log {
                shown += &show::batch(batch);
            }
        }
        if said.has("due") {
            let at = self.world.node().next_tick().map(|at| at.0 as i64 - self.world.now as i64);
            shown += &format!("next tick in {at:?} ms\n");
        }
        shown
    }
}

fn register_controller(said: &Said<'_>) -> ControllerRegistrationRequest {
    let controller_id = said.or("id", 2) as i32;
    let listener = controller_registration_request::Listener {
        name: Str::from("CONTROLLER"),
        host: Str::from("localhost"),
        port: 9093,
        ..controller_registration_request::Listener::default()
    };
    let feature = controller_registration_request::Feature {
        name: Str::from("metadata.version"),
        min_supported_version: 7,
        max_supported_version: said.or("metadata-max", 33) as i16,
        ..controller_registration_request::Feature::default()
    };
    ControllerRegistrationRequest {
        controller_id,
        listeners: vec![listener],
        features: vec![feature],
        ..ControllerRegistrationRequest::default()
    }
}

fn describe(said: &Said<'_>) -> DescribeQuorumRequest {
    let partition = describe_quorum_request::PartitionData {
        partition_index: said.or("p", 0) as i32,
        ..describe_quorum_request::PartitionData::default()
    };
    let topic = describe_quorum_request::TopicData {
        topic_name: Str::from("__cluster_metadata"),
        partitions: vec![partition],
        ..describe_quorum_request::TopicData::default()
    };
    DescribeQuorumRequest { topics: vec![topic], ..DescribeQuorumRequest::default() }
}

fn create(said: &Said<'_>) -> CreateTopicsRequest {
    let topic = |name: &str| {
        let assignment = |(index, brokers): (usize, &str)| CreatableReplicaAssignment {
            partition_index: index as i32,
            broker_ids: brokers
                .split(',')
                .filter(|id| !id.is_empty())
                .map(|id| id.parse().unwrap())
                .collect(),
            ..CreatableReplicaAssignment::default()
        };
        let assign = said.word("assign");
        let config = |(key, value): (&str, &str)| CreatableTopicConfig {
            name: Str::from(key),
            value: (value != "null").then(|| Str::from(value)),
            ..CreatableTopicConfig::default()
        };
        CreatableTopic {
            name: Str::from(name),
            num_partitions: said.or("partitions", -1) as i32,
            replication_factor: said.or("replicas", -1) as i16,
            assignments: assign
                .into_iter()
                .flat_map(|all| all.split('/').enumerate())
                .map(assignment)
                .collect(),
            configs: said.configs().map(config).collect(),
            ..CreatableTopic::default()
        }
    };
    let names = said.words.iter().filter_map(|word| word.strip_prefix("t="));
    CreateTopicsRequest {
        topics: names.map(topic).collect(),
        timeout_ms: 1000,
        validate_only: said.has("validate-only"),
        ..CreateTopicsRequest::default()
    }
}

fn grow(said: &Said<'_>) -> CreatePartitionsRequest {
    let assignment = |brokers: &str| CreatePartitionsAssignment {
        broker_ids: brokers.split(',').map(|id| id.parse().unwrap()).collect(),
        ..CreatePartitionsAssignment::default()
    };
    let names = said.words.iter().filter_map(|word| word.strip_prefix("t="));
    let topic = |name: &str| CreatePartitionsTopic {
        name: Str::from(name),
        count: said.or("to", 0) as i32,
        assignments: said.word("assign").map(|all| all.split('/').map(assignment).collect()),
        ..CreatePartitionsTopic::default()
    };
    CreatePartitionsRequest {
        topics: names.map(topic).collect(),
        validate_only: said.has("validate-only"),
        ..CreatePartitionsRequest::default()
    }
}

fn resource(said: &Said<'_>) -> (i8, Str) {
    let kinds = [("topic", 2), ("broker", 4), ("logger", 8), ("metrics", 16), ("group", 32), ("unknown", 99)];
    let found = kinds.iter().find_map(|(word, kind)| said.word(word).map(|name| (*kind, Str::from(name))));
    found.unwrap()
}

fn incremental(said: &Said<'_>) -> IncrementalAlterConfigsRequest {
    let operation = ["set", "unset", "add", "subtract"].iter().position(|verb| *verb == said.verb).unwrap();
    let (resource_type, resource_name) = resource(said);
    let pairs = said.configs().map(|(key, value)| (key, Some(value)));
    let bare =
        said.words.iter().filter(|word| !word.contains('=') && word.contains('.')).map(|key| (*key, None));
    let config = |(key, value): (&str, Option<&str>)| AlterableConfig {
        name: Str::from(key),
        config_operation: operation as i8,
        value: value.map(Str::from),
        ..AlterableConfig::default()
    };
    let one = AlterConfigsResource {
        resource_type,
        resource_name,
        configs: pairs.chain(bare).map(config).collect(),
        ..AlterConfigsResource::default()
    };
    let resources = if said.has("twice") { vec![one.clone(), one] } else { vec![one] };
    IncrementalAlterConfigsRequest {
        resources,
        validate_only: said.has("validate-only"),
        ..IncrementalAlterConfigsRequest::default()
    }
}

fn replace(said: &Said<'_>) -> AlterConfigsRequest {
    let (resource_type, resource_name) = resource(said);
    let config = |(key, value): (&str, &str)| ReplaceConfig {
        name: Str::from(key),
        value: (value != "null").then(|| Str::from(value)),
        ..ReplaceConfig::default()
    };
    let one = ReplaceResource {
        resource_type,
        resource_name,
        configs: said.configs().map(config).collect(),
        ..ReplaceResource::default()
    };
    AlterConfigsRequest {
        resources: vec![one],
        validate_only: said.has("validate-only"),
        ..AlterConfigsRequest::default()
    }
}

fn feature(said: &Said<'_>) -> UpdateFeaturesRequest {
    let upgrade_type = if said.has("safely-down") {
        2
    } else if said.has("unsafely-down") {
        3
    } else {
        1
    };
    let update = |(key, value): (&str, &str)| FeatureUpdateKey {
        feature: Str::from(key),
        max_version_level: value.parse().unwrap(),
        upgrade_type,
        ..FeatureUpdateKey::default()
    };
    UpdateFeaturesRequest {
        feature_updates: said.configs().map(update).collect(),
        validate_only: said.has("validate-only"),
        ..UpdateFeaturesRequest::default()
    }
}

fn elect(said: &Said<'_>) -> ElectLeadersRequest {
    let names = said.words.iter().filter_map(|word| word.strip_prefix("t="));
    let topic = |name: &str| TopicPartitions {
        topic: Str::from(name),
        partitions: said.list("p"),
        ..TopicPartitions::default()
    };
    let topics: Vec<TopicPartitions> = names.map(topic).collect();
    ElectLeadersRequest {
        election_type: if said.has("unclean") { 1 } else { 0 },
        topic_partitions: (!said.has("everywhere")).then_some(topics),
        ..ElectLeadersRequest::default()
    }
}

fn held(text: &str) -> String {
    let mut talk = Talk { world: World::new(7), hold: false };
    let mut written = String::new();
    for line in text.lines() {
        if line.starts_with('#') || line.is_empty() {
            written += line;
            written.push('\n');
        } else if let Some(said) = line.strip_prefix("> ") {
            written += &format!("> {said}\n");
            written += &talk.say(said);
        }
    }
    written
}

#[test]
fn talks() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/talks");
    let mut files: Vec<_> =
        std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let answered = held(&text);
        if std::env::var("TALKS").is_ok_and(|value| value == "write") {
            std::fs::write(&file, &answered).unwrap();
        } else {
            assert_eq!(answered, text, "{}: TALKS=write rewrites it", file.display());
        }
    }
}
