//! One thread of an application.

use std::collections::BTreeSet;

use barnabas_base::ErrorCode;
use barnabas_coordinator::{Request, Response};
use barnabas_metadata::Image;
use barnabas_wire::Str;
use barnabas_wire::messages::StreamsGroupHeartbeatRequest;
use barnabas_wire::messages::streams_group_heartbeat_request::{Subtopology, TaskIds, TopicInfo, Topology};
use barnabas_wire::messages::streams_group_heartbeat_response as response;

use super::group_model::{self, Bug, Life, World};

/// Subtopology and partition.
pub type Tasks = BTreeSet<(String, i32)>;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Runs {
    pub active: Tasks,
    pub standby: Tasks,
    pub warmup: Tasks,
}

#[derive(Debug)]
pub struct Client {
    pub number: usize,
    pub process: String,
    pub instance: Option<String>,
    /// How often it has started.
    starts: usize,
    pub member: String,
    pub epoch: i32,
    pub runs: Runs,
    /// The active tasks of the last answer. It runs just these, unless it lies.
    told: Tasks,
    pub life: Life,
    /// It is to say everything: the last answer was lost, or it has something new to say.
    pub is_full: bool,
}

impl Client {
    pub fn new(number: usize, process: String, instance: Option<String>) -> Self {
        Self {
            number,
            process,
            instance,
            starts: 0,
            member: String::new(),
            epoch: 0,
            runs: Runs::default(),
            told: Tasks::new(),
            life: Life::default(),
            is_full: true,
        }
    }

    pub fn start(&mut self) {
        self.starts += 1;
        self.member = format!("c{}-{}", self.number, self.starts);
        self.life.is_alive = true;
        self.begin_again();
    }

    /// Gives up everything, and joins.
    fn begin_again(&mut self) {
        self.epoch = 0;
        self.runs = Runs::default();
        self.told.clear();
        self.is_full = true;
    }

    pub fn die(&mut self) {
        self.life.is_alive = false;
        self.life.asked = None;
        self.runs = Runs::default();
    }

    pub fn leave(&mut self, for_a_moment: bool) -> (i16, Request) {
        let request = StreamsGroupHeartbeatRequest {
            group_id: "g".into(),
            member_id: self.member.as_str().into(),
            member_epoch: if for_a_moment { -2 } else { -1 },
            instance_id: self.instance.as_deref().map(Str::from),
            ..Default::default()
        };
        self.die();
        (1, Request::StreamsGroupHeartbeat(Box::new(request)))
    }
}

impl group_model::Client for Client {
    fn life(&self) -> &Life {
        &self.life
    }

    fn life_mut(&mut self) -> &mut Life {
        &mut self.life
    }

    fn speak(&mut self, bug: Bug) -> (i16, Request) {
        let says_tasks = self.epoch == 0 || self.is_full;
        let tasks = |tasks: &Tasks| says_tasks.then(|| task_ids(tasks));
        let active = if bug == Bug::SaysItIsGone { &self.told } else { &self.runs.active };
        let request = StreamsGroupHeartbeatRequest {
            group_id: "g".into(),
            member_id: self.member.as_str().into(),
            member_epoch: self.epoch,
            instance_id: self.instance.as_deref().map(Str::from),
            rebalance_timeout_ms: if says_tasks { 300_000 } else { -1 },
            topology: (self.epoch == 0).then(topology),
            active_tasks: tasks(active),
            standby_tasks: tasks(&self.runs.standby),
            warmup_tasks: tasks(&self.runs.warmup),
            process_id: says_tasks.then(|| self.process.as_str().into()),
            ..Default::default()
        };
        self.is_full = false;
        (1, Request::StreamsGroupHeartbeat(Box::new(request)))
    }

    fn hear_nothing(&mut self) {
        self.is_full = true;
    }

    fn hear(&mut self, response: Response, _: &Image, bug: Bug) {
        let Response::StreamsGroupHeartbeat(answer) = response else { panic!("{response:?}") };
        let told = &answer.response;
        match ErrorCode::from_code(told.error_code) {
            ErrorCode::None => {}
            ErrorCode::UnknownMemberId
            | ErrorCode::FencedMemberEpoch
            | ErrorCode::GroupIdNotFound
            | ErrorCode::UnreleasedInstanceId => return self.begin_again(),
            // Another process has its place.
            ErrorCode::FencedInstanceId => return self.die(),
            ErrorCode::NotCoordinator
            | ErrorCode::CoordinatorNotAvailable
            | ErrorCode::CoordinatorLoadInProgress => {
                self.is_full = true;
                return;
            }
            other => panic!("{}: {:?} {:?}", self.member, other, told.error_message),
        }
        self.epoch = told.member_epoch;
        if let (Some(active), Some(standby), Some(warmup)) =
            (&told.active_tasks, &told.standby_tasks, &told.warmup_tasks)
        {
            self.told = tasks(active);
            let mut active = self.told.clone();
            if bug == Bug::SaysItIsGone {
                active.append(&mut self.runs.active);
            }
            self.runs = Runs { active, standby: tasks(standby), warmup: tasks(warmup) };
            self.is_full = true;
        }
    }

    /// The broker makes the topics that it is asked for, at times.
    fn seen(world: &mut World<Self>, response: &Response) {
        let Response::StreamsGroupHeartbeat(answer) = response else { return };
        if answer.response.error_code == 0 && world.random.chance(60) {
            world.create(&answer.create);
        }
    }
}

fn tasks(told: &[response::TaskIds]) -> Tasks {
    let all = told.iter().flat_map(|each| {
        each.partitions.iter().map(|partition| (each.subtopology_id.to_string(), *partition))
    });
    all.collect()
}

fn task_ids(tasks: &Tasks) -> Vec<TaskIds> {
    let all = tasks.iter().map(|(id, partition)| TaskIds {
        subtopology_id: id.as_str().into(),
        partitions: vec![*partition],
        ..Default::default()
    });
    all.collect()
}

/// Reads `t`, counts by another key, keeps the counts.
fn topology() -> Topology {
    let info = |name: &str| TopicInfo { name: name.into(), ..Default::default() };
    let first = Subtopology {
        subtopology_id: "0".into(),
        source_topics: vec!["t".into()],
        repartition_sink_topics: vec!["r".into()],
        ..Default::default()
    };
    let second = Subtopology {
        subtopology_id: "1".into(),
        repartition_source_topics: vec![info("r")],
        state_changelog_topics: vec![info("c")],
        ..Default::default()
    };
    Topology { subtopologies: vec![first, second], ..Default::default() }
}
