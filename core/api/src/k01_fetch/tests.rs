use super::*;
use crate::Unlimited;
use crate::testing::{Fixture, Memory, ORDERS, UNKNOWN, carried, versions};
use barnabas_base::{TopicId, Uuid};
use barnabas_security::ResourceType;
use barnabas_wire::messages::fetch_request::{ForgottenTopic, ReplicaState};
use barnabas_wire::records::{BatchBuilder, BatchOptions, Codec, Compression};

fn topic(name: &str, topic_id: TopicId, partitions: &[i32]) -> FetchTopic {
    let of = |partition: &i32| FetchPartition {
        partition: *partition,
        current_leader_epoch: -1,
        fetch_offset: 10,
        last_fetched_epoch: -1,
        log_start_offset: -1,
        partition_max_bytes: 1000,
        ..FetchPartition::default()
    };
    FetchTopic {
        topic: name.into(),
        topic_id,
        partitions: partitions.iter().map(of).collect(),
        ..FetchTopic::default()
    }
}

/// Without a session.
fn request(topics: Vec<FetchTopic>) -> FetchRequest {
    FetchRequest {
        replica_id: -1,
        max_wait_ms: 500,
        min_bytes: 1,
        max_bytes: 5000,
        session_epoch: -1,
        topics,
        ..FetchRequest::default()
    }
}

fn orders(version: i16, partitions: &[i32]) -> Vec<FetchTopic> {
    vec![if version >= 13 {
        topic("", ORDERS, partitions)
    } else {
        topic("orders", TopicId::ZERO, partitions)
    }]
}

fn in_session(id: i32, epoch: i32, topics: Vec<FetchTopic>) -> FetchRequest {
    FetchRequest { session_id: id, session_epoch: epoch, ..request(topics) }
}

fn sessions() -> FetchSessions {
    FetchSessions::new(10, 0, 1)
}

fn unlimited() -> SessionShare {
    Box::new(Unlimited)
}

fn work(plan: Plan<Work, FetchResponse>) -> Work {
    match plan {
        Plan::Work(work) => work,
        Plan::Answer(response) => panic!("no work: {response:?}"),
    }
}

fn read(records: &Bytes, high_watermark: i64) -> Outcome {
    Outcome::Read(Read {
        records: Ok(records.clone()),
        high_watermark: Offset(high_watermark),
        last_stable: Offset(high_watermark),
        log_start: Offset(3),
        aborted: None,
    })
}

fn batch(codec: Codec) -> Bytes {
    let options = BatchOptions {
        base_offset: Offset(10),
        compression: Compression::of(codec),
        ..BatchOptions::default()
    };
    let mut builder = BatchBuilder::new(options);
    builder.push(TimestampMs(1), Some(b"k"), Some(b"v"), &[]);
    builder.build().unwrap()
}

/// Sends a request through, with every partition giving `outcome`.
fn fetch(
    fixture: &Fixture,
    sessions: &mut FetchSessions,
    request: FetchRequest,
    version: i16,
    outcome: &Outcome,
) -> FetchResponse {
    match plan(request, version, sessions, &fixture.ctx()) {
        Plan::Answer(response) => carried(response, version),
        Plan::Work(mut work) => {
            for part in &work.parts {
                work.pending.set(part.slot, outcome.clone(), &fixture.ctx());
            }
            carried(work.pending.respond(sessions, || 77, TimestampMs(0), unlimited), version)
        }
    }
}

/// Partition and error code of everything in an answer.
fn said(response: &FetchResponse) -> Vec<(i32, i16)> {
    let partitions = response.responses.iter().flat_map(|topic| &topic.partitions);
    partitions.map(|partition| (partition.partition_index, partition.error_code)).collect()
}

/// For answers that make no session: a random number is a system call.
fn no_draw() -> u32 {
    panic!("only a new session needs a random number")
}

#[test]
fn every_version_carries_records() {
    let fixture = Fixture::new();
    for version in versions::<FetchResponse>() {
        let records = in_words_of(batch(Codec::None), Offset(10), version).unwrap();
        let outcome = read(&records, 20);
        let response = fetch(&fixture, &mut sessions(), request(orders(version, &[0])), version, &outcome);
        let partition = &response.responses[0].partitions[0];
        assert_eq!((partition.error_code, partition.high_watermark), (0, 20), "version {version}");
        assert_eq!(partition.last_stable_offset, if version >= 4 { 20 } else { -1 });
        assert_eq!(partition.log_start_offset, if version >= 5 { 3 } else { -1 });
        let magic = match version {
            0..=1 => 0,
            2..=3 => 1,
            _ => 2,
        };
        assert_eq!(partition.records.as_ref().unwrap()[16], magic, "version {version}");
    }
}

#[test]
fn the_request_is_read_in_the_words_of_its_version() {
    let fixture = Fixture::new();
    let plan_of =
        |version| work(plan(request(orders(version, &[0])), version, &mut sessions(), &fixture.ctx()));
    let old = plan_of(2);
    assert_eq!(old.budget.allow(1000), Allowance { bytes: 1000, at_least_one: false });
    assert_eq!(old.budget.allow(usize::MAX).bytes, i32::MAX as usize);
    let new = plan_of(3);
    assert_eq!(new.budget.allow(usize::MAX), Allowance { bytes: 5000, at_least_one: true });
    assert_eq!((new.wait, new.bytes_min), (DurationMs(500), 1));
    assert_eq!(new.reader, Reader::Consumer { read_committed: false });
    let part = &new.parts[0];
    assert_eq!((part.from, part.bytes_max, part.leader_epoch), (Offset(10), 1000, None));
}

#[test]
fn the_brokers_bound_holds_for_the_whole_answer() {
    let fixture =
        Fixture { config: crate::testing::broker_config(&[("fetch.max.bytes", "2000")]), ..Fixture::new() };
    let greedy = FetchRequest { max_bytes: i32::MAX, min_bytes: i32::MAX, ..request(orders(12, &[0])) };
    let work = work(plan(greedy, 12, &mut sessions(), &fixture.ctx()));
    assert_eq!((work.budget.allow(usize::MAX).bytes, work.bytes_min), (2000, 2000));
}

#[test]
fn a_budget_is_shared_out_in_order() {
    let mut budget = Budget::new(100, true);
    assert_eq!(budget.allow(60), Allowance { bytes: 60, at_least_one: true });
    budget.take(0);
    assert_eq!(budget.allow(60), Allowance { bytes: 60, at_least_one: true }, "nothing was taken yet");
    budget.take(70);
    assert_eq!(budget.allow(60), Allowance { bytes: 30, at_least_one: false });
    budget.take(500);
    assert!(budget.is_spent());
}

#[test]
fn followers_say_who_they_are_in_two_ways() {
    let fixture = Fixture::new();
    let reader = |request, version| work(plan(request, version, &mut sessions(), &fixture.ctx())).reader;
    let old = FetchRequest { replica_id: 2, ..request(orders(14, &[0])) };
    assert_eq!(reader(old, 14), Reader::Follower { id: BrokerId(2), epoch: BrokerEpoch(-1) });
    let state = ReplicaState { replica_id: 2, replica_epoch: 12, ..ReplicaState::default() };
    let new = FetchRequest { replica_state: state, ..request(orders(15, &[0])) };
    assert_eq!(reader(new, 15), Reader::Follower { id: BrokerId(2), epoch: BrokerEpoch(12) });
    let committed = FetchRequest { isolation_level: 1, ..request(orders(4, &[0])) };
    assert_eq!(reader(committed, 4), Reader::Consumer { read_committed: true });
}

#[test]
fn denied_follower_gets_no_session_and_no_followers_place() {
    let mut fixture = Fixture::new();
    let state = ReplicaState { replica_id: 2, replica_epoch: 12, ..ReplicaState::default() };
    let asked = |fixture: &Fixture| {
        let begin = FetchRequest { replica_state: state.clone(), ..in_session(0, 0, orders(15, &[0])) };
        let work = work(plan(begin, 15, &mut sessions(), &fixture.ctx()));
        (work.is_follower, work.pending.wants_session(), work.parts.len())
    };
    assert_eq!(asked(&fixture), (true, true, 1));
    fixture.allow(&[]);
    assert_eq!(asked(&fixture), (false, false, 0));
    fixture.allow(&[(Operation::ClusterAction, ResourceType::Cluster, "kafka-cluster")]);
    assert_eq!(asked(&fixture), (true, true, 1));
    // A consumer's partitions are denied one by one: it keeps its session.
    fixture.allow(&[]);
    let consumer = work(plan(in_session(0, 0, orders(15, &[0])), 15, &mut sessions(), &fixture.ctx()));
    assert!(!consumer.is_follower && consumer.pending.wants_session());
}

#[test]
fn repairing_broker_reads_as_consumer_with_cluster_action_alone() {
    let mut fixture = Fixture::new();
    let asked = |fixture: &Fixture, broker: i32, replica: i32| {
        let mut begin = FetchRequest { replica_id: replica, ..request(orders(13, &[0])) };
        repairing::write(&mut begin.unknown_tagged_fields, BrokerId(broker));
        let work = work(plan(carried(begin, 13), 13, &mut sessions(), &fixture.ctx()));
        let is_consumer = work.reader == Reader::Consumer { read_committed: false };
        (work.repairs_for, is_consumer, work.is_follower, work.from_any, work.parts.len())
    };
    assert_eq!(asked(&fixture, 2, -1), (Some(BrokerId(2)), true, false, false, 1));
    assert_eq!(asked(&fixture, -2, -1), (None, true, false, true, 1), "no broker");
    assert_eq!(asked(&fixture, 2, 3), (None, false, true, false, 1), "a follower is none that repairs");
    fixture.allow(&[]);
    assert_eq!(asked(&fixture, 2, -1), (None, true, false, true, 0));
    fixture.allow(&[(Operation::Read, ResourceType::Topic, "orders")]);
    assert_eq!(asked(&fixture, 2, -1), (None, true, false, true, 1), "a client like any other");
    fixture.allow(&[(Operation::ClusterAction, ResourceType::Cluster, "kafka-cluster")]);
    assert_eq!(asked(&fixture, 2, -1), (Some(BrokerId(2)), true, false, false, 1));
}

#[test]
fn what_does_not_exist_is_refused_and_waits_for_nothing() {
    let fixture = Fixture::new();
    let code = |topics, version| {
        let work = work(plan(request(topics), version, &mut sessions(), &fixture.ctx()));
        assert_eq!((work.parts.len(), work.wait), (0, DurationMs(0)));
        let response =
            carried(work.pending.respond(&mut sessions(), || 1, TimestampMs(0), unlimited), version);
        assert_eq!(response.responses[0].partitions[0].high_watermark, -1);
        response.responses[0].partitions[0].error_code
    };
    assert_eq!(code(vec![topic("unknown", TopicId::ZERO, &[0])], 12), 3);
    assert_eq!(code(vec![topic("orders", TopicId::ZERO, &[3])], 12), 3);
    assert_eq!(code(vec![topic("", UNKNOWN, &[0])], 13), 100);
    assert_eq!(code(vec![topic("", ORDERS, &[3])], 13), 3);
}

#[test]
fn a_failed_disk_is_another_leader_to_clients_up_to_version_5() {
    let fixture = Fixture::new();
    let code = |version| {
        let outcome = Outcome::Refused(ErrorCode::KafkaStorageError);
        said(&fetch(&fixture, &mut sessions(), request(orders(version, &[0])), version, &outcome))[0].1
    };
    assert_eq!((code(5), code(6)), (6, 56));
}

#[test]
fn the_leader_is_named_from_version_16() {
    let fixture = Fixture::new();
    for (version, code) in [
        (15, ErrorCode::NotLeaderOrFollower),
        (16, ErrorCode::NotLeaderOrFollower),
        (16, ErrorCode::FencedLeaderEpoch),
    ] {
        let outcome = Outcome::Refused(code);
        let response = fetch(&fixture, &mut sessions(), request(orders(version, &[1])), version, &outcome);
        let leader = &response.responses[0].partitions[0].current_leader;
        let named = version >= 16;
        assert_eq!((leader.leader_id, leader.leader_epoch), if named { (2, 5) } else { (-1, -1) });
        assert_eq!(response.node_endpoints.len(), usize::from(named));
    }
}

#[test]
fn zstd_cannot_be_said_in_the_old_message_formats() {
    let fixture = Fixture::new();
    let code = |version| {
        let mut outcome = read(&batch(Codec::Zstd), 20);
        if let Outcome::Read(read) = &mut outcome {
            read.records = in_words_of(batch(Codec::Zstd), Offset(10), version);
        }
        said(&fetch(&fixture, &mut sessions(), request(orders(version, &[0])), version, &outcome))[0].1
    };
    assert_eq!([code(0), code(3), code(4), code(10)], [76, 76, 0, 0]);
}

#[test]
fn a_diverging_log_and_aborted_transactions_are_told() {
    let fixture = Fixture::new();
    let Outcome::Read(mut part) = read(&Bytes::new(), 20) else { unreachable!() };
    part.aborted = Some(vec![(ProducerId(4), Offset(8))]);
    let outcome = Outcome::Diverging { epoch: LeaderEpoch(2), end: Offset(6), read: part };
    let response = fetch(&fixture, &mut sessions(), request(orders(12, &[0])), 12, &outcome);
    let partition = &response.responses[0].partitions[0];
    assert_eq!((partition.diverging_epoch.epoch, partition.diverging_epoch.end_offset), (2, 6));
    assert_eq!(partition.aborted_transactions.as_ref().unwrap()[0].producer_id, 4);
}

#[test]
fn an_answer_waits_for_bytes_or_for_something_to_say() {
    let fixture = Fixture::new();
    let mut work = work(plan(request(orders(12, &[0, 1])), 12, &mut sessions(), &fixture.ctx()));
    assert!(!work.pending.is_enough(1) && work.pending.is_enough(0));
    work.pending.set(work.parts[0].slot, read(&Bytes::from_static(b"abc"), 1), &fixture.ctx());
    assert!(work.pending.is_enough(3) && !work.pending.is_enough(4));
    work.pending.set(work.parts[0].slot, read(&Bytes::new(), 1), &fixture.ctx());
    assert!(!work.pending.is_enough(1), "the second read returned nothing");
    work.pending.set(work.parts[1].slot, Outcome::Refused(ErrorCode::OffsetOutOfRange), &fixture.ctx());
    assert!(work.pending.is_enough(1000));
}

#[test]
fn a_session_answers_only_what_is_new() {
    let fixture = Fixture::new();
    let mut sessions = sessions();
    let quiet = read(&Bytes::new(), 20);
    let first = fetch(&fixture, &mut sessions, in_session(0, 0, orders(12, &[0, 1])), 12, &quiet);
    assert_eq!(said(&first), [(0, 0), (1, 0)]);
    let id = first.session_id;
    assert!(id > 0);
    let second = fetch(&fixture, &mut sessions, in_session(id, 1, vec![]), 12, &quiet);
    assert_eq!((second.session_id, said(&second)), (id, vec![]));
    let third = fetch(&fixture, &mut sessions, in_session(id, 2, vec![]), 12, &read(&Bytes::new(), 21));
    assert_eq!(said(&third), [(0, 0), (1, 0)], "the high watermark has moved");
    let failed = Outcome::Refused(ErrorCode::OffsetOutOfRange);
    let fourth = fetch(&fixture, &mut sessions, in_session(id, 3, vec![]), 12, &failed);
    assert_eq!(said(&fourth), [(0, 1), (1, 1)]);
    let fifth = fetch(&fixture, &mut sessions, in_session(id, 4, vec![]), 12, &read(&Bytes::new(), 21));
    assert_eq!(said(&fifth), [(0, 0), (1, 0)], "after an error everything is news");
}

/// A follower that is repaired drops what the leader says of its high watermark and log start.
#[test]
fn follower_that_knows_less_hears_it_again() {
    let fixture = Fixture::new();
    let mut sessions = sessions();
    let knows = |id, epoch, high_watermark, log_start_offset| {
        let mut topics = orders(18, &[0]);
        let partition = &mut topics[0].partitions[0];
        (partition.high_watermark, partition.log_start_offset) = (high_watermark, log_start_offset);
        let replica_state = ReplicaState { replica_id: 3, replica_epoch: 1, ..ReplicaState::default() };
        FetchRequest { replica_state, ..in_session(id, epoch, topics) }
    };
    let quiet = read(&Bytes::new(), 20);
    let mut ask = |request| {
        let answer = fetch(&fixture, &mut sessions, request, 18, &quiet);
        (answer.session_id, said(&answer))
    };
    let (id, first) = ask(knows(0, 0, 0, 3));
    assert_eq!(first, [(0, 0)]);
    assert!(ask(knows(id, 1, 20, 3)).1.is_empty(), "it knows all of it");
    assert_eq!(ask(knows(id, 2, 12, 3)).1, [(0, 0)], "another high watermark");
    assert_eq!(ask(knows(id, 3, 20, 0)).1, [(0, 0)], "another log start");
    assert!(ask(knows(id, 4, 20, 3)).1.is_empty());
}

#[cfg(planted)]
#[test]
fn planted_mistakes_of_fetch_sessions_are_noticed() {
    let test = || barnabas_base::planted::with("AnswersRepairsOnce", follower_that_knows_less_hears_it_again);
    assert!(std::panic::catch_unwind(test).is_err(), "AnswersRepairsOnce is not noticed");
}

#[test]
fn throttled_answer_leaves_the_session_as_it_was() {
    let fixture = Fixture::new();
    let mut sessions = sessions();
    let throttle = |sessions: &mut FetchSessions, request: FetchRequest, outcome: &Outcome| {
        let mut work = work(plan(request, 12, sessions, &fixture.ctx()));
        for part in &work.parts {
            work.pending.set(part.slot, outcome.clone(), &fixture.ctx());
        }
        work.pending.throttled(sessions, DurationMs(70))
    };
    let records = read(&batch(Codec::None), 20);
    let first = throttle(&mut sessions, in_session(0, 0, orders(12, &[0])), &records);
    assert_eq!((first.session_id, first.throttle_time_ms, first.responses.len()), (0, 70, 0));
    assert!(sessions.is_empty(), "a full request makes its session with the next answer");
    let quiet = read(&Bytes::new(), 20);
    let id = fetch(&fixture, &mut sessions, in_session(0, 0, orders(12, &[0])), 12, &quiet).session_id;
    let second = throttle(&mut sessions, in_session(id, 1, vec![]), &read(&Bytes::new(), 21));
    assert_eq!((second.session_id, second.error_code, second.responses.len()), (id, 0, 0));
    let third = fetch(&fixture, &mut sessions, in_session(id, 2, vec![]), 12, &read(&Bytes::new(), 21));
    assert_eq!(said(&third), [(0, 0)], "what the throttled answer left out is news");
    let slow = work(plan(in_session(id, 3, vec![]), 12, &mut sessions, &fixture.ctx()));
    let _fast = work(plan(in_session(id, 4, vec![]), 12, &mut sessions, &fixture.ctx()));
    assert_eq!(slow.pending.throttled(&mut sessions, DurationMs(1)).error_code, 71);
}

#[test]
fn partitions_take_turns() {
    let fixture = Fixture::new();
    let mut sessions = sessions();
    let quiet = read(&Bytes::new(), 20);
    let id = fetch(&fixture, &mut sessions, in_session(0, 0, orders(12, &[0, 1, 2])), 12, &quiet).session_id;
    let mut second = work(plan(in_session(id, 1, vec![]), 12, &mut sessions, &fixture.ctx()));
    let slots: Vec<Slot> = second.parts.iter().map(|part| part.slot).collect();
    second.pending.set(slots[0], read(&batch(Codec::None), 20), &fixture.ctx());
    second.pending.set(slots[1], quiet.clone(), &fixture.ctx());
    second.pending.set(slots[2], quiet.clone(), &fixture.ctx());
    assert_eq!(said(&second.pending.respond(&mut sessions, no_draw, TimestampMs(0), unlimited)), [(0, 0)]);
    let third = work(plan(in_session(id, 2, vec![]), 12, &mut sessions, &fixture.ctx()));
    let order: Vec<i32> = third.parts.iter().map(|part| part.partition.get()).collect();
    assert_eq!(order, [1, 2, 0], "who got data comes last");
}

#[test]
fn a_session_can_be_changed_and_emptied() {
    let fixture = Fixture::new();
    let mut sessions = sessions();
    let quiet = read(&Bytes::new(), 20);
    let id = fetch(&fixture, &mut sessions, in_session(0, 0, orders(12, &[0])), 12, &quiet).session_id;
    let added = fetch(&fixture, &mut sessions, in_session(id, 1, orders(12, &[1])), 12, &quiet);
    assert_eq!(said(&added), [(1, 0)], "what is new to the session is news");
    assert_eq!(sessions.partition_count(), 2);
    let forgotten = |partitions: &[i32]| ForgottenTopic {
        topic: "orders".into(),
        partitions: partitions.to_vec(),
        ..ForgottenTopic::default()
    };
    let less = FetchRequest { forgotten_topics_data: vec![forgotten(&[0])], ..in_session(id, 2, vec![]) };
    fetch(&fixture, &mut sessions, less, 12, &quiet);
    assert_eq!((sessions.len(), sessions.partition_count()), (1, 1));
    let empty = FetchRequest { forgotten_topics_data: vec![forgotten(&[1])], ..in_session(id, 3, vec![]) };
    let response = fetch(&fixture, &mut sessions, empty, 12, &quiet);
    assert_eq!((response.session_id, sessions.len(), sessions.partition_count()), (0, 0, 0));
}

#[test]
fn a_session_that_is_not_there_or_elsewhere_is_refused() {
    let fixture = Fixture::new();
    let mut sessions = sessions();
    let quiet = read(&Bytes::new(), 20);
    let id = fetch(&fixture, &mut sessions, in_session(0, 0, orders(12, &[0])), 12, &quiet).session_id;
    let mut code = |request, version| fetch(&fixture, &mut sessions, request, version, &quiet).error_code;
    assert_eq!(code(in_session(id + 1, 1, vec![]), 12), 70);
    assert_eq!(code(in_session(id, 2, vec![]), 12), 71);
    assert_eq!(code(in_session(id, 1, vec![]), 13), 106, "by name and by id do not mix");
    assert_eq!(code(in_session(id, 1, vec![]), 12), 0);
    assert_eq!(code(in_session(id, -1, orders(12, &[0])), 12), 0, "ends the session");
    assert_eq!(code(in_session(id, 2, vec![]), 12), 70);
}

#[test]
fn an_answer_that_was_overtaken_is_refused() {
    let fixture = Fixture::new();
    let mut sessions = sessions();
    let quiet = read(&Bytes::new(), 20);
    let id = fetch(&fixture, &mut sessions, in_session(0, 0, orders(12, &[0])), 12, &quiet).session_id;
    let slow = work(plan(in_session(id, 1, vec![]), 12, &mut sessions, &fixture.ctx()));
    let _fast = work(plan(in_session(id, 2, vec![]), 12, &mut sessions, &fixture.ctx()));
    let response = slow.pending.respond(&mut sessions, no_draw, TimestampMs(0), unlimited);
    assert_eq!((response.error_code, response.responses.len()), (71, 0));
}

#[test]
fn epochs_run_on_past_the_largest() {
    use sessions::next_epoch;
    assert_eq!([next_epoch(0), next_epoch(5), next_epoch(i32::MAX), next_epoch(-1)], [1, 6, 1, -1]);
}

/// Makes a session at `now` and says whether there was room.
fn make(
    sessions: &mut FetchSessions,
    is_follower: bool,
    partitions: i32,
    draw: u32,
    now: i64,
) -> Option<i32> {
    make_of(sessions, is_follower, &[("t", partitions)], draw, now, unlimited())
}

fn make_of(
    sessions: &mut FetchSessions,
    is_follower: bool,
    topics: &[(&str, i32)],
    draw: u32,
    now: i64,
    share: SessionShare,
) -> Option<i32> {
    let named = |&(name, partitions): &(&str, i32)| {
        let partitions: Vec<i32> = (0..partitions).collect();
        topic(name, Uuid::ZERO, &partitions)
    };
    let wanted = wanted(topics.iter().map(named).collect());
    let now = TimestampMs(now);
    let beginning = Beginning { is_follower, uses_topic_ids: false, draw, now, share };
    let id = sessions.create(wanted.iter().map(|wanted| (wanted, (0, 0))), beginning);
    (id > 0).then_some(id)
}

#[test]
fn who_may_take_whose_place() {
    let mut sessions = FetchSessions::new(2, 0, 1);
    assert!(make(&mut sessions, false, 5, 1, 0).is_some());
    assert!(make(&mut sessions, false, 9, 2, 0).is_some());
    assert_eq!(make(&mut sessions, false, 100, 3, 1_000), None, "both are young");
    assert!(make(&mut sessions, true, 1, 4, 1_000).is_some(), "a follower takes a consumer's place");
    assert_eq!((sessions.len(), sessions.partition_count(), sessions.evictions()), (2, 10, 1));
    assert!(make(&mut sessions, false, 1, 5, 200_000).is_some(), "the others have been idle for two minutes");
    assert_eq!(FetchSessions::new(0, 0, 1).len(), 0);
    assert_eq!(make(&mut FetchSessions::new(0, 0, 1), false, 1, 1, 0), None);
}

/// As [`fetch`], with sessions that take their memory from `memory`.
fn fetch_of(
    fixture: &Fixture,
    sessions: &mut FetchSessions,
    request: FetchRequest,
    memory: &Memory,
) -> FetchResponse {
    match plan(request, 12, sessions, &fixture.ctx()) {
        Plan::Answer(response) => response,
        Plan::Work(work) => work.pending.respond(sessions, || 7, TimestampMs(0), || memory.share()),
    }
}

#[test]
fn long_name_is_answered_and_not_held() {
    let (fixture, memory, mut sessions) = (Fixture::new(), Memory::of(1 << 20), sessions());
    let longest = "n".repeat(249);
    let all: Vec<i32> = (0..1000).collect();
    let named = |name: &str| vec![topic(name, TopicId::ZERO, &all)];
    let answer = fetch_of(&fixture, &mut sessions, in_session(0, 0, named(&"n".repeat(250))), &memory);
    assert_eq!((answer.session_id, answer.error_code, said(&answer).len()), (0, 0, 1000));
    assert_eq!((sessions.len(), memory.held()), (0, 0));
    let made = fetch_of(&fixture, &mut sessions, in_session(0, 0, named(&longest)), &memory).session_id;
    assert!(made > 0);
    // Nor does it come into a session later.
    let longer = in_session(made, 1, vec![topic(&"n".repeat(250), TopicId::ZERO, &[0])]);
    let refused = fetch_of(&fixture, &mut sessions, longer, &memory);
    assert_eq!(refused.error_code, ErrorCode::FetchSessionIdNotFound.code());
    assert_eq!((sessions.len(), memory.held()), (0, 0));
}

#[test]
fn session_holds_a_name_once() {
    let (memory, mut sessions) = (Memory::of(u64::MAX), sessions());
    let name = "n".repeat(249);
    let make = |sessions: &mut FetchSessions, name: &str, count| {
        let before = memory.held();
        assert!(make_of(sessions, false, &[(name, count)], 1, 0, memory.share()).is_some());
        memory.held() - before
    };
    let (short, long) = (make(&mut sessions, "n", 1000), make(&mut sessions, &name, 1000));
    assert_eq!(long - short, 248);
    let cached = sessions.names_of_all();
    assert_eq!(cached.len(), 2000);
    let first = cached.iter().rfind(|topic| topic.name == *name).unwrap();
    assert!(cached.iter().filter(|topic| topic.name == *name).all(|topic| Arc::ptr_eq(topic, first)));
}

#[test]
fn sessions_take_no_more_than_they_are_lent() {
    let (fixture, memory, mut sessions) = (Fixture::new(), Memory::of(100_000), sessions());
    let wanted = |from: i32, count: i32| {
        let partitions: Vec<i32> = (from..from + count).collect();
        orders(12, &partitions)
    };
    let made = fetch_of(&fixture, &mut sessions, in_session(0, 0, wanted(0, 100)), &memory).session_id;
    assert!(made > 0);
    let held = memory.held();
    assert!(held >= 100 * 100, "{held}: a partition takes more than a hundred bytes");
    // Full: answered without a session, as where Kafka's cache is full.
    let full = fetch_of(&fixture, &mut sessions, in_session(0, 0, wanted(0, 400)), &memory);
    assert_eq!((full.error_code, full.session_id, said(&full).len()), (0, 0, 400));
    assert_eq!((sessions.len(), memory.held()), (1, held));
    // What a session forgets it gives back; what it wants more it takes first.
    let fewer = FetchRequest {
        forgotten_topics_data: vec![ForgottenTopic {
            topic: "orders".into(),
            partitions: (1..100).collect(),
            ..ForgottenTopic::default()
        }],
        ..in_session(made, 1, vec![])
    };
    assert_eq!(fetch_of(&fixture, &mut sessions, fewer, &memory).error_code, 0);
    assert!(memory.held() < held / 10, "{}", memory.held());
    let more = fetch_of(&fixture, &mut sessions, in_session(made, 2, wanted(1, 99)), &memory);
    assert_eq!((more.error_code, memory.held()), (0, held));
    let grown = fetch_of(&fixture, &mut sessions, in_session(made, 3, wanted(100, 400)), &memory);
    assert_eq!(grown.error_code, ErrorCode::FetchSessionIdNotFound.code());
    assert_eq!((sessions.len(), sessions.partition_count(), memory.held()), (0, 0, 0));
}

#[test]
fn stale_sessions_make_room() {
    let mut sessions = FetchSessions::new(10, 0, 1);
    assert!(make(&mut sessions, false, 5, 1, 0).is_some());
    assert!(make(&mut sessions, true, 7, 2, 100_000).is_some());
    sessions.evict_stale(TimestampMs(120_000));
    assert_eq!(sessions.len(), 2);
    sessions.evict_stale(TimestampMs(120_001));
    assert_eq!((sessions.len(), sessions.partition_count(), sessions.evictions()), (1, 7, 1));
}

#[test]
fn work_of_a_session_is_known_before_it_is_done() {
    let mut sessions = sessions();
    let id = make(&mut sessions, false, 1000, 1, 0).unwrap();
    let least = 1000 * (size_of::<Wanted>() + size_of::<Entry>() + size_of::<Part>()) as u64;
    assert!(sessions.work_bytes(id) >= least, "{} of {least}", sessions.work_bytes(id));
    assert_eq!((sessions.work_bytes(0), sessions.work_bytes(id + 1)), (0, 0));
}

#[test]
fn ids_say_whose_session_it_is() {
    for owner in 0..4 {
        let mut sessions = FetchSessions::new(100, owner, 4);
        for draw in [0, 1, u32::MAX, 7, 7, 7] {
            let id = make(&mut sessions, false, 1, draw, 0).unwrap();
            assert_eq!(id % 4, i32::from(owner));
        }
        assert_eq!(sessions.len(), 6);
    }
}
