//! The heartbeat interval in answers to members of consumer, share and streams groups: the setting, and with
//! `group.settling.heartbeat.interval.ms` sooner while the group settles. What that does to the time that a rebalance
//! takes.

mod rig;

use barnabas_coordinator::{GroupConfig, Request, Response};
use barnabas_wire::messages::streams_group_heartbeat_request::{Subtopology, Topology};
use barnabas_wire::messages::{
    ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, ShareGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequest,
};
use rig::Rig;

const AS_CONFIGURED: i32 = 5_000;

fn beat(rig: &mut Rig, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse {
    let Response::ConsumerGroupHeartbeat(answer) = rig.ask(1, Request::ConsumerGroupHeartbeat(request))
    else {
        panic!("another answer");
    };
    assert_eq!(answer.error_code, 0, "{:?}", answer.error_message);
    answer
}

fn joins(rig: &mut Rig, member: &str) -> i32 {
    let request = ConsumerGroupHeartbeatRequest {
        group_id: "g".into(),
        member_id: member.into(),
        rebalance_timeout_ms: 60_000,
        subscribed_topic_names: Some(vec!["t".into()]),
        topic_partitions: Some(Vec::new()),
        ..Default::default()
    };
    beat(rig, request).heartbeat_interval_ms
}

fn stays(rig: &mut Rig, member: &str, epoch: i32) -> i32 {
    let request = ConsumerGroupHeartbeatRequest {
        group_id: "g".into(),
        member_id: member.into(),
        member_epoch: epoch,
        rebalance_timeout_ms: -1,
        ..Default::default()
    };
    beat(rig, request).heartbeat_interval_ms
}

#[test]
fn members_beat_sooner_while_the_group_settles() {
    let mut rig = Rig::new(settling());
    rig.topic("t", 1, 2);
    assert!(joins(&mut rig, "a") < AS_CONFIGURED, "the group has just changed");
    rig.elapsed_ms += 20_000;
    assert_eq!(stays(&mut rig, "a", 2), AS_CONFIGURED, "nothing happens");
    assert!(joins(&mut rig, "b") < AS_CONFIGURED, "it waits for what the first one has");
    rig.elapsed_ms += 20_000;
    assert!(stays(&mut rig, "a", 2) < AS_CONFIGURED, "it is to give up a partition");
}

/// An application that reads `topic`; `epoch` 0: joins.
fn streams(rig: &mut Rig, member: &str, epoch: i32, topic: &str) -> (i32, i32) {
    let subtopology =
        Subtopology { subtopology_id: "0".into(), source_topics: vec![topic.into()], ..Default::default() };
    let joins = epoch == 0;
    let request = StreamsGroupHeartbeatRequest {
        group_id: "s".into(),
        member_id: member.into(),
        member_epoch: epoch,
        rebalance_timeout_ms: if joins { 60_000 } else { -1 },
        topology: joins.then(|| Topology { subtopologies: vec![subtopology], ..Default::default() }),
        active_tasks: joins.then(Vec::new),
        standby_tasks: joins.then(Vec::new),
        warmup_tasks: joins.then(Vec::new),
        process_id: joins.then(|| member.into()),
        ..Default::default()
    };
    let Response::StreamsGroupHeartbeat(answer) =
        rig.ask(1, Request::StreamsGroupHeartbeat(Box::new(request)))
    else {
        panic!("another answer");
    };
    let response = answer.response;
    assert_eq!(response.error_code, 0, "{:?}", response.error_message);
    (response.member_epoch, response.heartbeat_interval_ms)
}

fn settling() -> GroupConfig {
    GroupConfig { settling_heartbeat_interval: barnabas_base::DurationMs(250), ..GroupConfig::default() }
}

fn at_once() -> GroupConfig {
    let mut config = settling();
    config.streams.settings.standard.initial_rebalance_delay = barnabas_base::DurationMs(0);
    config
}

#[test]
fn members_of_a_streams_group_beat_sooner_while_it_settles() {
    let mut rig = Rig::new(at_once());
    rig.topic("t", 1, 2);
    let (epoch, interval) = streams(&mut rig, "a", 0, "t");
    assert!(interval < AS_CONFIGURED, "the group has just changed");
    rig.elapsed_ms += 20_000;
    assert_eq!(streams(&mut rig, "a", epoch, "t").1, AS_CONFIGURED, "nothing happens");
    assert!(streams(&mut rig, "b", 0, "t").1 < AS_CONFIGURED, "it waits for what the first one has");
    rig.elapsed_ms += 20_000;
    assert!(streams(&mut rig, "a", epoch, "t").1 < AS_CONFIGURED, "it is to give up a task");
}

#[test]
fn an_application_whose_topics_are_missing_does_not_beat_sooner_for_ever() {
    let mut rig = Rig::new(at_once());
    let (epoch, _) = streams(&mut rig, "a", 0, "nowhere");
    rig.elapsed_ms += 20_000;
    assert_eq!(streams(&mut rig, "a", epoch, "nowhere").1, AS_CONFIGURED);
}

fn shares(rig: &mut Rig, member: &str, epoch: i32) -> i32 {
    let request = ShareGroupHeartbeatRequest {
        group_id: "q".into(),
        member_id: member.into(),
        member_epoch: epoch,
        subscribed_topic_names: (epoch == 0).then(|| vec!["t".into()]),
        ..Default::default()
    };
    let Response::ShareGroupHeartbeat(answer) = rig.ask(1, Request::ShareGroupHeartbeat(request)) else {
        panic!("another answer");
    };
    assert_eq!(answer.error_code, 0, "{:?}", answer.error_message);
    answer.heartbeat_interval_ms
}

/// A member that joins within the assignment interval of others gets its partitions with its next heartbeat.
#[test]
fn members_of_a_share_group_beat_sooner_while_it_settles() {
    let mut rig = Rig::new(settling());
    assert!(shares(&mut rig, "a", 0) < AS_CONFIGURED, "the group has just changed");
    assert!(shares(&mut rig, "b", 0) < AS_CONFIGURED, "its target is not made yet");
    rig.elapsed_ms += 20_000;
    assert!(shares(&mut rig, "a", 2) <= AS_CONFIGURED);
    assert_eq!(shares(&mut rig, "a", 3), AS_CONFIGURED, "nothing happens");
}

/// The answers carry the setting, whatever the group does: a test of Apache's compares them
/// (`ConsumerGroupHeartbeatRequestTest.testUpdateConsumerGroupHeartbeatConfigSuccessful`).
#[test]
fn interval_in_answers_is_the_setting_by_default() {
    let mut rig = Rig::new(GroupConfig::default());
    rig.topic("t", 1, 2);
    assert_eq!(joins(&mut rig, "a"), AS_CONFIGURED);
    assert_eq!(joins(&mut rig, "b"), AS_CONFIGURED);
    assert_eq!(stays(&mut rig, "a", 2), AS_CONFIGURED);
    assert_eq!(shares(&mut rig, "a", 0), AS_CONFIGURED);
}

/// A consumer as Apache's client behaves: it beats when its interval is over, and at once when it has given up what it
/// was to give up.
struct Consumer {
    id: String,
    epoch: i32,
    next_ms: u64,
    has: Vec<i32>,
}

fn beats(rig: &mut Rig, consumer: &mut Consumer) {
    use barnabas_wire::messages::consumer_group_heartbeat_request::TopicPartitions;
    let mut says_all = consumer.epoch == 0;
    loop {
        let mut topic_id = [0; 16];
        topic_id[15] = 1;
        let owned = TopicPartitions {
            topic_id: barnabas_base::Uuid(topic_id),
            partitions: consumer.has.clone(),
            ..Default::default()
        };
        let request = ConsumerGroupHeartbeatRequest {
            group_id: "g".into(),
            member_id: consumer.id.as_str().into(),
            member_epoch: consumer.epoch,
            rebalance_timeout_ms: if consumer.epoch == 0 { 60_000 } else { -1 },
            subscribed_topic_names: (consumer.epoch == 0).then(|| vec!["t".into()]),
            topic_partitions: says_all
                .then(|| if consumer.has.is_empty() { Vec::new() } else { vec![owned] }),
            ..Default::default()
        };
        let answer = beat(rig, request);
        consumer.epoch = answer.member_epoch;
        consumer.next_ms = rig.elapsed_ms + answer.heartbeat_interval_ms as u64;
        let Some(assignment) = answer.assignment else { return };
        let has = assignment.topic_partitions.into_iter().flat_map(|topic| topic.partitions).collect();
        if has == consumer.has {
            return;
        }
        consumer.has = has;
        says_all = true;
    }
}

/// How long until all members hold their share, after half of them have joined a group that was at rest.
fn settles_in(config: GroupConfig, members: usize) -> u64 {
    let mut rig = Rig::new(config);
    let partitions = 2 * members;
    rig.topic("t", 1, partitions as i32);
    let new =
        |number: usize, next_ms| Consumer { id: format!("m{number}"), epoch: 0, next_ms, has: Vec::new() };
    // Beats of the old ones are spread over the interval.
    let mut all: Vec<Consumer> =
        (0..members / 2).map(|number| new(number, number as u64 * 97 % 5_000)).collect();
    let step = |rig: &mut Rig, all: &mut Vec<Consumer>, until: u64| {
        let share = partitions / all.len();
        while rig.elapsed_ms < until {
            rig.elapsed_ms = all.iter().map(|one| one.next_ms).min().expect("members").max(rig.elapsed_ms);
            let now = rig.elapsed_ms;
            all.iter_mut().filter(|one| one.next_ms <= now).for_each(|one| beats(rig, one));
            if all.iter().all(|one| one.has.len() == share) {
                return;
            }
        }
    };
    step(&mut rig, &mut all, 120_000);
    let rest = rig.elapsed_ms + 60_000;
    while rig.elapsed_ms < rest {
        rig.elapsed_ms = all.iter().map(|one| one.next_ms).min().expect("members").max(rig.elapsed_ms);
        let now = rig.elapsed_ms;
        all.iter_mut().filter(|one| one.next_ms <= now).for_each(|one| beats(&mut rig, one));
    }
    let began = rig.elapsed_ms;
    all.extend((members / 2..members).map(|number| new(number, began + number as u64 % 100)));
    step(&mut rig, &mut all, began + 120_000);
    rig.elapsed_ms - began
}

#[test]
fn settling_interval_shortens_a_rebalance() {
    for members in [2, 60] {
        let (standard, sooner) =
            (settles_in(GroupConfig::default(), members), settles_in(settling(), members));
        println!(
            "{members} members: {standard} ms at heartbeat.interval.ms, {sooner} ms with 250 ms while it settles"
        );
        assert!(standard <= 15_000 + 1_000, "three intervals and the assignment interval: {standard} ms");
        assert!(sooner <= standard, "{sooner} ms, and {standard} ms without");
    }
}
