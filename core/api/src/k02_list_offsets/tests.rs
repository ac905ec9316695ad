use super::*;
use crate::testing::{Fixture, ORDERS, carried, partition, versions};
use barnabas_base::Uuid;
use barnabas_wire::MetadataRecord;
use barnabas_wire::messages::PartitionRecord;
use barnabas_wire::messages::list_offsets_request::ListOffsetsTopic;

fn request(name: &str, partitions: &[(i32, i64)]) -> ListOffsetsRequest {
    let of = |(partition_index, timestamp): &(i32, i64)| ListOffsetsPartition {
        partition_index: *partition_index,
        current_leader_epoch: -1,
        timestamp: *timestamp,
        ..ListOffsetsPartition::default()
    };
    let topic = ListOffsetsTopic {
        name: name.into(),
        partitions: partitions.iter().map(of).collect(),
        ..ListOffsetsTopic::default()
    };
    ListOffsetsRequest { replica_id: -1, topics: vec![topic], ..ListOffsetsRequest::default() }
}

fn work(plan: Plan<Work, ListOffsetsResponse>) -> Work {
    match plan {
        Plan::Work(work) => work,
        Plan::Answer(response) => panic!("no work: {response:?}"),
    }
}

/// The code of every partition that is refused before its owner is asked.
fn refused(request: ListOffsetsRequest, version: i16) -> Vec<i16> {
    let fixture = Fixture::new();
    match plan(request, version, &fixture.ctx()) {
        Plan::Answer(response) => {
            let response = carried(response, version);
            response.topics[0].partitions.iter().map(|partition| partition.error_code).collect()
        }
        Plan::Work(_) => Vec::new(),
    }
}

const CONSUMER: Asker = Asker::Consumer { read_committed: false };
const BOUNDS: Bounds = Bounds {
    readable_end: Offset(20),
    leader_epoch: LeaderEpoch(5),
    log_start: Offset(3),
    log_start_epoch: Some(LeaderEpoch(1)),
    high_watermark_lags: false,
};

#[test]
fn every_version_carries_an_offset() {
    let fixture = Fixture::new();
    for version in versions::<ListOffsetsResponse>() {
        let mut work = work(plan(request("orders", &[(0, 77)]), version, &fixture.ctx()));
        let found = Found { timestamp: TimestampMs(78), offset: Offset(9), epoch: Some(LeaderEpoch(4)) };
        work.pending.set(work.parts[0].slot, Outcome::Found(found));
        let response = carried(work.pending.respond(), version);
        let said = &response.topics[0].partitions[0];
        let expect = match version {
            0 => (vec![9], -1, -1, -1),
            1..=3 => (vec![], 78, 9, -1),
            _ => (vec![], 78, 9, 4),
        };
        assert_eq!((said.old_style_offsets.clone(), said.timestamp, said.offset, said.leader_epoch), expect);
    }
}

#[test]
fn sentinels_come_with_their_versions() {
    let known = |timestamp, version| refused(request("orders", &[(0, timestamp)]), version).is_empty();
    for (timestamp, since) in [(-1, 0), (-2, 0), (-3, 7), (-4, 8), (-5, 9), (-6, 11), (0, 0)] {
        for version in versions::<ListOffsetsResponse>() {
            assert_eq!(known(timestamp, version), version >= since, "{timestamp} in version {version}");
        }
    }
    assert_eq!(refused(request("orders", &[(0, -7)]), 11), [35]);
    assert_eq!(refused(request("orders", &[(0, i64::MIN)]), 11), [35]);
}

#[test]
fn what_cannot_be_answered_here_is_refused() {
    assert_eq!(refused(request("unknown", &[(0, -1)]), 6), [3]);
    assert_eq!(refused(request("orders", &[(3, -1)]), 6), [3]);
    assert_eq!(refused(request("orders", &[(1, -1)]), 6), [6]);
    assert_eq!(refused(request("orders", &[(0, -1), (0, -2)]), 6), [42], "twice in one request");
}

#[test]
fn follower_compares_the_epoch_before_its_role() {
    let mut fixture = Fixture::new();
    let MetadataRecord::Partition(record) = partition(ORDERS, 4, 2) else { panic!("a partition record") };
    let directories = vec![Uuid([0x42; 16]), Uuid([0x41; 16])];
    let followed = PartitionRecord { replicas: vec![2, 1], directories, ..record };
    fixture.add(&[MetadataRecord::Partition(followed)]);
    let code = |partition, epoch| {
        let mut asked = request("orders", &[(partition, -1)]);
        asked.topics[0].partitions[0].current_leader_epoch = epoch;
        match plan(asked, 6, &fixture.ctx()) {
            Plan::Answer(response) => response.topics[0].partitions[0].error_code,
            Plan::Work(_) => 0,
        }
    };
    assert_eq!([4, 6, 5, -1].map(|epoch| code(4, epoch)), [74, 75, 6, 6], "a follower");
    assert_eq!([4, 6, 5, -1].map(|epoch| code(1, epoch)), [6; 4], "a broker without a replica");
}

#[test]
fn a_debugger_may_ask_any_replica() {
    let fixture = Fixture::new();
    let asked = ListOffsetsRequest { replica_id: -2, ..request("orders", &[(1, -1)]) };
    assert_eq!(work(plan(asked, 6, &fixture.ctx())).asker, Asker::Debugger);
}

fn answer(target: Target, asker: Asker, bounds: &Bounds) -> Option<Outcome> {
    let fixture = Fixture::new();
    let mut part = work(plan(request("orders", &[(0, -1)]), 11, &fixture.ctx())).parts.remove(0);
    part.target = target;
    part.answer(asker, bounds)
}

#[test]
fn the_ends_need_no_search() {
    let at = |offset, epoch: Option<i32>| {
        let epoch = epoch.map(LeaderEpoch);
        Some(Outcome::Found(Found { timestamp: TimestampMs::NONE, offset: Offset(offset), epoch }))
    };
    assert_eq!(answer(Target::Latest, CONSUMER, &BOUNDS), at(20, Some(5)));
    assert_eq!(answer(Target::Earliest, CONSUMER, &BOUNDS), at(3, Some(1)));
    assert_eq!(answer(Target::EarliestLocal, CONSUMER, &BOUNDS), at(3, Some(1)));
    assert_eq!(answer(Target::LatestTiered, CONSUMER, &BOUNDS), at(-1, Some(-1)));
    assert_eq!(answer(Target::EarliestPendingUpload, CONSUMER, &BOUNDS), at(-1, Some(-1)));
    assert_eq!(answer(Target::MaxTimestamp, CONSUMER, &BOUNDS), None);
    assert_eq!(answer(Target::At(TimestampMs(1)), CONSUMER, &BOUNDS), None);
}

#[test]
fn a_new_leader_does_not_know_its_end_yet() {
    let lags = Bounds { high_watermark_lags: true, ..BOUNDS };
    let refused = Outcome::Refused(ErrorCode::OffsetNotAvailable);
    assert_eq!(answer(Target::Latest, CONSUMER, &lags), Some(refused));
    assert!(matches!(answer(Target::Latest, Asker::Follower(BrokerId(2)), &lags), Some(Outcome::Found(_))));
    assert!(matches!(answer(Target::Earliest, CONSUMER, &lags), Some(Outcome::Found(_))));
    let fixture = Fixture::new();
    for (version, code) in [(4, 5), (5, 78)] {
        let mut work = work(plan(request("orders", &[(0, -1)]), version, &fixture.ctx()));
        work.pending.set(work.parts[0].slot, refused);
        assert_eq!(work.pending.respond().topics[0].partitions[0].error_code, code);
    }
}

#[test]
fn what_lies_beyond_the_readable_end_is_not_found() {
    let fixture = Fixture::new();
    let part = work(plan(request("orders", &[(0, 5)]), 11, &fixture.ctx())).parts.remove(0);
    let found = |offset| Some(Found { timestamp: TimestampMs(5), offset: Offset(offset), epoch: None });
    let lags = Bounds { high_watermark_lags: true, ..BOUNDS };
    assert!(matches!(part.answer_found(CONSUMER, found(19), &BOUNDS), Outcome::Found(_)));
    assert_eq!(part.answer_found(CONSUMER, found(20), &BOUNDS), Outcome::Nothing);
    assert_eq!(part.answer_found(CONSUMER, None, &BOUNDS), Outcome::Nothing);
    let refused = Outcome::Refused(ErrorCode::OffsetNotAvailable);
    assert_eq!(part.answer_found(CONSUMER, found(20), &lags), refused);
    assert_eq!(part.answer_found(CONSUMER, None, &lags), refused);
}
