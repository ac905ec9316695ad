//! Conversations with the controller about replicas: `tests/replication/*.txt`. What stands after `> ` is said, the
//! rest is which records it wrote and what it answered, `# ` explains.
//!
//! `TALKS=write cargo test -p barnabas-quorum --test replication` rewrites the answers; the diff is the review.
//!
//! Broker 1 is in this process; the others are registered by `> brokers`. Where a request names no epochs, they are
//! those that hold. Answers to heartbeats are shown only when a broker may go.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

mod world;

use std::collections::BTreeMap;
use std::path::Path;

use barnabas_base::{BrokerId, DirectoryId, ErrorCode, PartitionIndex, Text};
use barnabas_metadata::{MetadataVersion, Partition};
use barnabas_quorum::batches::{Content, read_batch};
use barnabas_quorum::controller::impaired::said::{Impairments, TAG};
use barnabas_wire::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig,
};
use barnabas_wire::messages::elect_leaders_request::TopicPartitions;
use barnabas_wire::messages::*;
use barnabas_wire::records::batches;
use barnabas_wire::{MetadataRecord, RequestBody, ResponseBody, Str, TaggedFields};
use world::{Event, World, directory, registration, show};

struct Said<'a> {
    verb: &'a str,
    words: Vec<&'a str>,
}

impl<'a> Said<'a> {
    fn word(&self, key: &str) -> Option<&'a str> {
        self.words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    }

    fn or(&self, key: &str, default: i64) -> i64 {
        self.word(key).map_or(default, |word| word.parse().unwrap())
    }

    fn has(&self, flag: &str) -> bool {
        self.words.contains(&flag)
    }

    fn list(&self, key: &str) -> Vec<i32> {
        let list = self.word(key).unwrap_or_default();
        list.split(',').filter(|item| !item.is_empty()).map(|item| item.parse().unwrap()).collect()
    }
}

struct Talk {
    world: World,
    life: u8,
    /// What impairs brokers from leading: each heartbeat says it.
    impaired: BTreeMap<i32, Impairments>,
}

impl Talk {
    fn new(text: &str) -> Self {
        let mut world = World::new(7);
        let release = text.lines().find_map(|line| line.strip_prefix("# release ")).unwrap_or("4.4");
        for pair in text.lines().filter_map(|line| line.strip_prefix("# file ")?.split_once('=')) {
            world.properties.insert(Text::from(pair.0), Text::from(pair.1));
        }
        world.format(MetadataVersion::parse(release).unwrap());
        world.start().unwrap();
        world.sync();
        world.events.clear();
        Self { world, life: 1, impaired: BTreeMap::new() }
    }

    fn say(&mut self, line: &str) -> String {
        let mut words = line.split_whitespace();
        let said = Said { verb: words.next().unwrap(), words: words.collect() };
        let mut shown = self.act(&said);
        self.world.sync();
        for event in std::mem::take(&mut self.world.events) {
            shown += &told(&event);
        }
        if shown.is_empty() { "nothing\n".into() } else { shown }
    }

    fn ask(&mut self, request: impl Into<RequestBody>, version: i16) -> String {
        self.world.ask(request, version);
        String::new()
    }

    fn act(&mut self, said: &Said<'_>) -> String {
        match said.verb {
            "brokers" => {
                for id in said.words.iter().map(|id| id.parse().unwrap()) {
                    self.register(id, -1, &[id]);
                    self.heartbeat(id, |_| {});
                }
                self.world.sync();
                self.world.events.clear();
                String::new()
            }
            "register" => {
                self.life += 1;
                let id = said.or("broker", 2) as i32;
                self.impaired.remove(&id);
                let dirs = match said.list("dirs") {
                    own if own.is_empty() => vec![id],
                    dirs => dirs,
                };
                self.register(id, said.or("previous", -1), &dirs)
            }
            "alive" => self.heartbeat(said.or("broker", 2) as i32, |_| {}),
            "cordons" => self.cordons(said),
            "impaired" => self.impaired(said),
            "assign" => {
                let request = self.assign(said);
                self.ask(request, 0)
            }
            "fence" => self.heartbeat(said.or("broker", 2) as i32, |request| request.want_fence = true),
            "shut-down" => {
                self.heartbeat(said.or("broker", 2) as i32, |request| request.want_shut_down = true)
            }
            "create" => self.ask(create(said), 7),
            "set" => self.ask(set(said), 1),
            "alter" => {
                let request = self.alter(said);
                self.ask(request, said.or("v", 3) as i16)
            }
            "reassign" | "cancel" => self.ask(reassign(said), 1),
            "elect" => self.ask(elect(said), 2),
            "wait" => self.wait(said.or("ms", 0) as u64, said.or("without", 0) as i32),
            "restart" => {
                self.world.crash(usize::MAX);
                self.world.start().unwrap();
                self.world.sync();
                self.world.events.clear();
                String::new()
            }
            "show" => self.show(said.words[0]),
            other => panic!("unknown verb {other:?}"),
        }
    }

    fn register(&mut self, id: i32, previous: i64, dirs: &[i32]) -> String {
        let dirs: Vec<u8> = dirs.iter().map(|&dir| dir as u8).collect();
        let mut request = registration(id, self.life * 10 + id as u8, &dirs, None);
        request.previous_broker_epoch = previous;
        self.ask(request, 4)
    }

    fn epoch(&self, id: i32) -> i64 {
        let image = self.world.node.as_ref().unwrap().working_image();
        image.cluster.broker(BrokerId(id)).map_or(-1, |broker| broker.epoch.get())
    }

    fn heartbeat(&mut self, id: i32, change: impl FnOnce(&mut BrokerHeartbeatRequest)) -> String {
        let mut request = BrokerHeartbeatRequest {
            broker_id: id,
            broker_epoch: self.epoch(id),
            current_metadata_offset: 1_000_000,
            ..BrokerHeartbeatRequest::default()
        };
        if let Some(said) = self.impaired.get(&id) {
            said.write(&mut request.unknown_tagged_fields);
        }
        change(&mut request);
        self.ask(request, 1)
    }

    /// `cordons broker=2 [dirs=2,9]`: each heartbeat says it; none where none are named.
    fn cordons(&mut self, said: &Said<'_>) -> String {
        let dirs = said.list("dirs").iter().map(|&dir| directory(dir as u8)).collect();
        self.heartbeat(said.or("broker", 2) as i32, |request| request.cordoned_log_dirs = Some(dirs))
    }

    /// `impaired broker=2 [full-in=2] [full] [cannot-write] [damaged=a-0,a-1] [garbage]`: from now on, until it says
    /// something else. `cannot-write`: the directories that it names are so full that followers do not go on either.
    fn impaired(&mut self, said: &Said<'_>) -> String {
        let id = said.or("broker", 2) as i32;
        let mut directories: Vec<_> = said.list("full-in").iter().map(|&dir| directory(dir as u8)).collect();
        if said.has("full") {
            directories.extend([directory(id as u8), DirectoryId::DIRECTORY_UNASSIGNED]);
        }
        let damaged = said.word("damaged").unwrap_or_default().split(',').filter_map(|name| {
            let (topic, index) = name.rsplit_once('-')?;
            Some((self.world.image.topics.id_of(topic)?, PartitionIndex(index.parse().unwrap())))
        });
        let partitions = damaged.collect();
        let full = if said.has("cannot-write") { directories.clone() } else { Vec::new() };
        self.impaired.insert(id, Impairments { directories, partitions, full });
        let garbage = said.has("garbage");
        self.heartbeat(id, |request| {
            if garbage {
                request.unknown_tagged_fields = TaggedFields::default();
                request.unknown_tagged_fields.push(TAG, bytes::Bytes::from_static(b"garbage"));
            }
        });
        // What is due at once.
        self.world.tick(0);
        String::new()
    }

    /// `assign t=a p=0 broker=2 dir=9`
    fn assign(&self, said: &Said<'_>) -> AssignReplicasToDirsRequest {
        use assign_replicas_to_dirs_request::{DirectoryData, PartitionData, TopicData};
        let id = said.or("broker", 2) as i32;
        let partition = PartitionData { partition_index: said.or("p", 0) as i32, ..PartitionData::default() };
        let topic = TopicData {
            topic_id: self.world.image.topics.id_of(said.word("t").unwrap_or("a")).unwrap_or_default(),
            partitions: vec![partition],
            ..TopicData::default()
        };
        let data = DirectoryData {
            id: directory(said.or("dir", 0) as u8),
            topics: vec![topic],
            ..DirectoryData::default()
        };
        AssignReplicasToDirsRequest {
            broker_id: id,
            broker_epoch: self.epoch(id),
            directories: vec![data],
            ..AssignReplicasToDirsRequest::default()
        }
    }

    /// Every broker that is not fenced goes on sending heartbeats, but for one.
    fn wait(&mut self, ms: u64, without: i32) -> String {
        let mut left = ms;
        while left > 0 {
            let step = left.min(1000);
            left -= step;
            self.world.tick(step);
            let image = self.world.node.as_ref().unwrap().working_image();
            let alive = image.cluster.brokers().filter(|broker| !broker.fenced).map(|broker| broker.id.get());
            let alive: Vec<i32> = alive.filter(|&id| id != 1 && id != without).collect();
            for id in alive {
                self.heartbeat(id, |_| {});
            }
        }
        String::new()
    }

    fn partition(&self, name: &str, index: i32) -> Option<Partition> {
        let image = self.world.node.as_ref().unwrap().working_image();
        image.topics.partition(name, PartitionIndex(index)).cloned()
    }

    /// `alter t=a p=0 isr=1,2 [by=1] [lives=2:77] [leader-epoch=] [partition-epoch=] [recovering] [v=]`
    fn alter(&self, said: &Said<'_>) -> AlterPartitionRequest {
        use alter_partition_request::{BrokerState, PartitionData, TopicData};
        let (name, index) = (said.word("t").unwrap_or("a"), said.or("p", 0) as i32);
        let known = self.partition(name, index);
        let known = |of: fn(&Partition) -> i64| known.as_ref().map_or(0, of);
        let by = said.or("by", known(|partition| i64::from(partition.leader.get()))) as i32;
        let life = |id: i32| {
            let given =
                said.word("lives").unwrap_or_default().split(',').find_map(|life| life.split_once(':'));
            let given = given.filter(|(of, _)| of.parse::<i32>() == Ok(id));
            given.map_or_else(|| self.epoch(id), |(_, life)| life.parse().unwrap())
        };
        let member =
            |&id: &i32| BrokerState { broker_id: id, broker_epoch: life(id), ..BrokerState::default() };
        let isr = said.list("isr");
        let has_lives = said.or("v", 3) >= 3;
        let partition = PartitionData {
            partition_index: index,
            leader_epoch: said.or("leader-epoch", known(|of| i64::from(of.leader_epoch.get()))) as i32,
            partition_epoch: said.or("partition-epoch", known(|of| i64::from(of.partition_epoch.get())))
                as i32,
            new_isr: if has_lives { Vec::new() } else { isr.clone() },
            new_isr_with_epochs: if has_lives { isr.iter().map(member).collect() } else { Vec::new() },
            leader_recovery_state: i8::from(said.has("recovering")),
            ..PartitionData::default()
        };
        let topic = TopicData {
            topic_id: self.world.image.topics.id_of(name).unwrap_or_default(),
            partitions: vec![partition],
            ..TopicData::default()
        };
        AlterPartitionRequest {
            broker_id: by,
            broker_epoch: said.or("epoch", self.epoch(by)),
            topics: vec![topic],
            ..AlterPartitionRequest::default()
        }
    }

    fn show(&self, name: &str) -> String {
        let topic = self.world.image.topics.by_name(name).unwrap();
        let mut shown = String::new();
        for (index, partition) in topic.partitions() {
            let ids = |ids: &[BrokerId]| ids.iter().map(|id| id.get()).collect::<Vec<_>>();
            shown += &format!(
                "{name}-{index} leader={} epoch={}/{} replicas={:?} isr={:?}",
                partition.leader,
                partition.leader_epoch,
                partition.partition_epoch,
                ids(partition.replicas()),
                ids(partition.isr()),
            );
            let placement = &partition.placement;
            let lists =
                [("elr", &placement.elr), ("adding", &placement.adding), ("removing", &placement.removing)];
            for (word, list) in lists {
                if !list.is_empty() {
                    shown += &format!(" {word}={:?}", ids(list));
                }
            }
            shown.push('\n');
        }
        shown
    }
}

fn create(said: &Said<'_>) -> CreateTopicsRequest {
    let assignment = |(index, brokers): (usize, &str)| CreatableReplicaAssignment {
        partition_index: index as i32,
        broker_ids: brokers.split(',').map(|id| id.parse().unwrap()).collect(),
        ..CreatableReplicaAssignment::default()
    };
    let configs =
        said.words.iter().filter_map(|word| word.split_once('=')).filter(|(key, _)| key.contains('.'));
    let topic = CreatableTopic {
        name: Str::from(said.word("t").unwrap()),
        num_partitions: -1,
        replication_factor: -1,
        assignments: said.word("assign").unwrap().split('/').enumerate().map(assignment).collect(),
        configs: configs
            .map(|(key, value)| CreatableTopicConfig {
                name: Str::from(key),
                value: Some(Str::from(value)),
                ..CreatableTopicConfig::default()
            })
            .collect(),
        ..CreatableTopic::default()
    };
    CreateTopicsRequest { topics: vec![topic], timeout_ms: 1000, ..CreateTopicsRequest::default() }
}

fn set(said: &Said<'_>) -> IncrementalAlterConfigsRequest {
    use incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
    let configs =
        said.words.iter().filter_map(|word| word.split_once('=')).filter(|(key, _)| key.contains('.'));
    let topic = said.word("t");
    let resource = AlterConfigsResource {
        resource_type: if topic.is_some() { 2 } else { 4 },
        resource_name: Str::from(topic.unwrap_or_default()),
        configs: configs
            .map(|(key, value)| AlterableConfig {
                name: Str::from(key),
                value: Some(Str::from(value)),
                ..AlterableConfig::default()
            })
            .collect(),
        ..AlterConfigsResource::default()
    };
    IncrementalAlterConfigsRequest { resources: vec![resource], ..IncrementalAlterConfigsRequest::default() }
}

/// `reassign t=a p=0 to=2,3 [same-size]`, `cancel t=a p=0`
fn reassign(said: &Said<'_>) -> AlterPartitionReassignmentsRequest {
    use alter_partition_reassignments_request::{ReassignablePartition, ReassignableTopic};
    let partition = ReassignablePartition {
        partition_index: said.or("p", 0) as i32,
        replicas: (said.verb == "reassign").then(|| said.list("to")),
        ..ReassignablePartition::default()
    };
    let topic = ReassignableTopic {
        name: Str::from(said.word("t").unwrap_or("a")),
        partitions: vec![partition],
        ..ReassignableTopic::default()
    };
    AlterPartitionReassignmentsRequest {
        topics: vec![topic],
        allow_replication_factor_change: !said.has("same-size"),
        ..AlterPartitionReassignmentsRequest::default()
    }
}

fn elect(said: &Said<'_>) -> ElectLeadersRequest {
    let topic = TopicPartitions {
        topic: Str::from(said.word("t").unwrap_or("a")),
        partitions: vec![said.or("p", 0) as i32],
        ..TopicPartitions::default()
    };
    ElectLeadersRequest {
        election_type: i8::from(said.has("unclean")),
        topic_partitions: Some(vec![topic]),
        ..ElectLeadersRequest::default()
    }
}

/// Records and answers, without what another test shows.
fn told(event: &Event) -> String {
    match event {
        Event::Append(batch) => {
            let mut shown = String::new();
            for read in batches(batch.bytes.clone()) {
                let Content::Records(records) = read_batch(&read.unwrap()).unwrap() else { continue };
                let records = records.iter().filter(|record| !matches!(record, MetadataRecord::NoOp(_)));
                shown.extend(records.map(|record| format!("  {}\n", told_record(record))));
            }
            shown
        }
        Event::Respond(_, ResponseBody::AlterPartition(response)) => {
            let mut shown = String::new();
            if response.error_code != 0 {
                shown += &format!("{}\n", ErrorCode::from_code(response.error_code).name());
            }
            for partition in response.topics.iter().flat_map(|topic| &topic.partitions) {
                let code = ErrorCode::from_code(partition.error_code).name();
                shown += &match partition.error_code {
                    0 => format!(
                        "{code} leader={} epoch={}/{} isr={:?} recovery={}\n",
                        partition.leader_id,
                        partition.leader_epoch,
                        partition.partition_epoch,
                        partition.isr,
                        partition.leader_recovery_state
                    ),
                    _ => format!("{code}\n"),
                };
            }
            shown
        }
        Event::Respond(_, ResponseBody::AlterPartitionReassignments(response)) => {
            let partitions = response.responses.iter().flat_map(|topic| &topic.partitions);
            let line = |code: i16, message: &Option<Str>| match message {
                None => format!("{}\n", ErrorCode::from_code(code).name()),
                Some(message) => format!("{} ({message})\n", ErrorCode::from_code(code).name()),
            };
            partitions.map(|partition| line(partition.error_code, &partition.error_message)).collect()
        }
        Event::Respond(_, ResponseBody::IncrementalAlterConfigs(_) | ResponseBody::CreateTopics(_)) => {
            String::new()
        }
        Event::Respond(_, ResponseBody::BrokerHeartbeat(response)) => {
            assert_eq!(response.error_code, 0);
            if response.should_shut_down { "it may go\n".to_owned() } else { String::new() }
        }
        Event::Respond(_, response) => show::response(response).trim_end().to_owned() + "\n",
        _ => String::new(),
    }
}

fn told_record(record: &MetadataRecord) -> String {
    let mut shown = show::record(record);
    if let MetadataRecord::PartitionChange(change) = record {
        // Directories are the business of directories.txt.
        shown = shown.split(" directories=").next().unwrap().to_owned();
        if let Some(adding) = &change.adding_replicas {
            shown += &format!(" adding={adding:?}");
        }
        if let Some(removing) = &change.removing_replicas {
            shown += &format!(" removing={removing:?}");
        }
    }
    shown
}

#[test]
fn talks() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/replication");
    let mut files: Vec<_> =
        std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 5, "the talks are there");
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut talk = Talk::new(&text);
        let mut answered = String::new();
        for line in text.lines() {
            match line.strip_prefix("> ") {
                Some(said) => answered += &format!("{line}\n{}", talk.say(said)),
                None if line.is_empty() || line.starts_with('#') => answered += &format!("{line}\n"),
                None => {}
            }
        }
        if std::env::var("TALKS").is_ok_and(|value| value == "write") {
            std::fs::write(&file, &answered).unwrap();
        } else {
            assert_eq!(answered, text, "{}: TALKS=write rewrites it", file.display());
        }
    }
}
