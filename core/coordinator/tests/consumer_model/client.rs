//! A consumer, of either protocol: what it has been told, what it reads, what it says next.

use std::collections::{BTreeMap, BTreeSet};

use barnabas_base::Uuid;
use barnabas_coordinator::{Request, Response};
use barnabas_metadata::Image;
use barnabas_wire::messages::consumer_group_heartbeat_request::TopicPartitions;
use barnabas_wire::messages::consumer_protocol_assignment::TopicPartition;
use barnabas_wire::messages::join_group_request::JoinGroupRequestProtocol;
use barnabas_wire::messages::join_group_response::JoinGroupResponseMember;
use barnabas_wire::messages::leave_group_request::MemberIdentity;
use barnabas_wire::messages::sync_group_request::SyncGroupRequestAssignment;
use barnabas_wire::messages::{
    ConsumerGroupHeartbeatRequest, ConsumerProtocolAssignment, ConsumerProtocolSubscription,
    HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest,
};
use barnabas_wire::{Message, Reader, Str, Writer};
use bytes::Bytes;

use super::group_model::{self, Bug, Life};

pub type Partitions = BTreeSet<(Uuid, i32)>;

/// Where a member of the classic protocol is.
#[derive(Debug, Clone, PartialEq)]
pub enum Stage {
    Join,
    /// With what it is to say as the leader.
    Sync(Vec<SyncGroupRequestAssignment>),
    Steady,
}

#[derive(Debug, Clone)]
pub struct Client {
    pub number: usize,
    pub is_classic: bool,
    /// A client that does not run reads nothing.
    pub life: Life,
    pub instance: Option<String>,
    pub member: String,
    pub topics: Vec<&'static str>,
    /// The topics of its last JoinGroup.
    joined: Vec<&'static str>,
    /// Member epoch, or generation.
    pub epoch: i32,
    pub reads: Partitions,
    pub stage: Stage,
    /// It says everything next time, as something has changed or an answer was lost.
    pub is_full: bool,
    lives: usize,
}

impl Client {
    pub fn new(number: usize, is_classic: bool, instance: Option<String>) -> Self {
        Self {
            number,
            is_classic,
            life: Life::default(),
            instance,
            member: String::new(),
            topics: vec!["t"],
            joined: Vec::new(),
            epoch: 0,
            reads: Partitions::new(),
            stage: Stage::Join,
            is_full: true,
            lives: 0,
        }
    }

    /// A new process: it knows nothing of the one before.
    pub fn start(&mut self, is_classic: bool) {
        self.lives += 1;
        self.life.is_alive = true;
        self.is_classic = is_classic;
        self.member = if is_classic { String::new() } else { format!("m{}.{}", self.number, self.lives) };
        self.begin_again();
    }

    /// The process is gone, without a word.
    pub fn die(&mut self) {
        self.life.is_alive = false;
        self.life.asked = None;
        self.reads.clear();
    }

    /// It must give up everything and join again.
    fn begin_again(&mut self) {
        self.reads.clear();
        self.epoch = 0;
        self.stage = Stage::Join;
        self.is_full = true;
    }

    fn heartbeat(&mut self, bug: Bug) -> ConsumerGroupHeartbeatRequest {
        let is_full = self.is_full || self.epoch == 0;
        self.is_full = false;
        let mut owned: BTreeMap<Uuid, Vec<i32>> = BTreeMap::new();
        if bug != Bug::SaysItIsGone {
            for (topic, partition) in &self.reads {
                owned.entry(*topic).or_default().push(*partition);
            }
        }
        let owned = owned.into_iter().map(|(topic_id, partitions)| TopicPartitions {
            topic_id,
            partitions,
            ..Default::default()
        });
        ConsumerGroupHeartbeatRequest {
            group_id: "g".into(),
            member_id: self.member.as_str().into(),
            member_epoch: self.epoch,
            instance_id: self.instance.as_deref().map(Str::from),
            rebalance_timeout_ms: if is_full { 60_000 } else { -1 },
            subscribed_topic_names: is_full
                .then(|| self.topics.iter().map(|topic| Str::from(*topic)).collect()),
            topic_partitions: is_full.then(|| owned.collect()),
            ..Default::default()
        }
    }

    fn join(&self) -> JoinGroupRequest {
        let subscription = ConsumerProtocolSubscription {
            topics: self.topics.iter().map(|topic| Str::from(*topic)).collect(),
            ..Default::default()
        };
        let metadata = encoded(&subscription);
        JoinGroupRequest {
            group_id: "g".into(),
            session_timeout_ms: 45_000,
            rebalance_timeout_ms: 60_000,
            member_id: self.member.as_str().into(),
            protocol_type: "consumer".into(),
            protocols: vec![JoinGroupRequestProtocol {
                name: "range".into(),
                metadata,
                ..Default::default()
            }],
            ..Default::default()
        }
    }

    /// How it says that it goes. It reads nothing any more.
    pub fn leave(&mut self, for_a_moment: bool) -> (i16, Request) {
        self.die();
        if self.is_classic {
            let who = MemberIdentity { member_id: self.member.as_str().into(), ..Default::default() };
            let leave = LeaveGroupRequest { group_id: "g".into(), members: vec![who], ..Default::default() };
            return (3, Request::LeaveGroup(leave));
        }
        let request = ConsumerGroupHeartbeatRequest {
            group_id: "g".into(),
            member_id: self.member.as_str().into(),
            member_epoch: if for_a_moment { -2 } else { -1 },
            instance_id: self.instance.as_deref().map(Str::from),
            ..Default::default()
        };
        (1, Request::ConsumerGroupHeartbeat(request))
    }
}

impl group_model::Client for Client {
    fn life(&self) -> &Life {
        &self.life
    }

    fn life_mut(&mut self) -> &mut Life {
        &mut self.life
    }

    fn may_miss(&self) -> bool {
        !self.is_classic
    }

    /// What it says next.
    fn speak(&mut self, bug: Bug) -> (i16, Request) {
        if !self.is_classic {
            return (1, Request::ConsumerGroupHeartbeat(self.heartbeat(bug)));
        }
        // A consumer whose subscription has changed gives up everything and joins again.
        if self.stage == Stage::Steady && self.joined != self.topics {
            self.begin_again();
        }
        match self.stage.clone() {
            Stage::Join => {
                self.joined = self.topics.clone();
                (3, Request::JoinGroup(self.join()))
            }
            Stage::Sync(assignments) => {
                let request = SyncGroupRequest {
                    group_id: "g".into(),
                    generation_id: self.epoch,
                    member_id: self.member.as_str().into(),
                    assignments,
                    ..Default::default()
                };
                (3, Request::SyncGroup(request))
            }
            Stage::Steady => {
                let request = HeartbeatRequest {
                    group_id: "g".into(),
                    generation_id: self.epoch,
                    member_id: self.member.as_str().into(),
                    ..Default::default()
                };
                (3, Request::Heartbeat(request))
            }
        }
    }

    fn hear(&mut self, response: Response, image: &Image, _: Bug) {
        match response {
            Response::ConsumerGroupHeartbeat(told) => match told.error_code {
                0 => {
                    self.epoch = told.member_epoch;
                    if let Some(assignment) = told.assignment {
                        let topics = assignment.topic_partitions.into_iter();
                        let new: Partitions = topics
                            .flat_map(|topic| {
                                topic.partitions.into_iter().map(move |each| (topic.topic_id, each))
                            })
                            .collect();
                        self.is_full |= new != self.reads;
                        self.reads = new;
                    }
                }
                // UNKNOWN_MEMBER_ID, GROUP_ID_NOT_FOUND, FENCED_INSTANCE_ID, FENCED_MEMBER_EPOCH.
                25 | 69 | 82 | 110 => self.begin_again(),
                _ => self.is_full = true,
            },
            Response::JoinGroup(told) => match told.error_code {
                0 => {
                    self.member = told.member_id.to_string();
                    self.epoch = told.generation_id;
                    let leads = told.leader == told.member_id;
                    self.stage = Stage::Sync(if leads { share(&told.members, image) } else { Vec::new() });
                }
                27 | 14 | 15 | 16 => {}
                _ => self.member.clear(),
            },
            Response::SyncGroup(told) => match told.error_code {
                0 => {
                    self.reads = read(&told.assignment, image);
                    self.stage = Stage::Steady;
                }
                27 => self.stage = Stage::Join,
                14..=16 => {}
                _ => {
                    self.member.clear();
                    self.begin_again();
                }
            },
            Response::Heartbeat(told) => match told.error_code {
                0 | 14..=16 => {}
                // It gives up everything before it joins again.
                27 => self.begin_again(),
                _ => {
                    self.member.clear();
                    self.begin_again();
                }
            },
            other => panic!("an answer without a question: {other:?}"),
        }
    }

    fn hear_nothing(&mut self) {
        self.is_full = true;
    }
}

/// What a leader assigns: partition by partition to the subscribers, in turn.
fn share(members: &[JoinGroupResponseMember], image: &Image) -> Vec<SyncGroupRequestAssignment> {
    let mut shares: Vec<BTreeMap<String, Vec<i32>>> = vec![BTreeMap::new(); members.len()];
    let subscribed = |member: &JoinGroupResponseMember, topic: &str| {
        let said = ConsumerProtocolSubscription::decode(&mut Reader::new(member.metadata.slice(2..)), 3);
        said.expect("what we said").topics.iter().any(|name| *name == *topic)
    };
    for topic in image.topics.iter() {
        let takers: Vec<usize> =
            (0..members.len()).filter(|at| subscribed(&members[*at], &topic.name)).collect();
        for partition in 0..topic.partition_count() {
            if let Some(taker) = takers.get(partition % takers.len().max(1)) {
                shares[*taker].entry(topic.name.to_string()).or_default().push(partition as i32);
            }
        }
    }
    let of = |(member, share): (&JoinGroupResponseMember, BTreeMap<String, Vec<i32>>)| {
        let topics = share.into_iter().map(|(topic, partitions)| TopicPartition {
            topic: topic.as_str().into(),
            partitions,
            ..Default::default()
        });
        let assignment =
            ConsumerProtocolAssignment { assigned_partitions: topics.collect(), ..Default::default() };
        SyncGroupRequestAssignment {
            member_id: member.member_id.clone(),
            assignment: encoded(&assignment),
            ..Default::default()
        }
    };
    members.iter().zip(shares).map(of).collect()
}

fn read(bytes: &Bytes, image: &Image) -> Partitions {
    if bytes.is_empty() {
        return Partitions::new();
    }
    let assignment =
        ConsumerProtocolAssignment::decode(&mut Reader::new(bytes.slice(2..)), 3).expect("an assignment");
    let topics = assignment.assigned_partitions.into_iter();
    topics
        .filter_map(|topic| Some((image.topics.id_of(&topic.topic)?, topic.partitions)))
        .flat_map(|(id, partitions)| partitions.into_iter().map(move |each| (id, each)))
        .collect()
}

/// In version 3, with the version before it.
fn encoded(message: &impl Message) -> Bytes {
    let mut writer = Writer::new();
    message.encode(&mut writer, 3).expect("it can be said");
    let mut bytes = vec![0, 3];
    bytes.extend(writer.finish().into_bytes());
    Bytes::from(bytes)
}
