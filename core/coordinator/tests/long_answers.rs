//! Answers without room: the shard names parts, and the answers to all parts are the whole answer.

mod rig;

use barnabas_coordinator::{Caller, Effect, GroupConfig, PART_BYTES, Part, Request, Response, Ticket};
use barnabas_wire::messages::join_group_request::JoinGroupRequestProtocol;
use barnabas_wire::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use barnabas_wire::messages::offset_fetch_request::OffsetFetchRequestGroup;
use barnabas_wire::messages::{
    DescribeGroupsRequest, JoinGroupRequest, ListGroupsRequest, OffsetCommitRequest,
};
use bytes::Bytes;
use rig::Rig;

const GROUPS: usize = 150;

/// 150 groups with names of 1 kB. Every fifth has a member with 20 kB of metadata.
fn crowd() -> Rig {
    let mut rig = Rig::new(GroupConfig::default());
    for number in 0..GROUPS {
        let group_id = name(number);
        if number % 5 == 0 {
            let metadata = Bytes::from(vec![7; 20_000]);
            let request = JoinGroupRequest {
                group_id,
                session_timeout_ms: 10_000,
                protocol_type: "bytes".into(),
                protocols: vec![JoinGroupRequestProtocol {
                    name: "p".into(),
                    metadata,
                    ..Default::default()
                }],
                ..Default::default()
            };
            rig.send("c", 3, Request::JoinGroup(request));
        } else {
            let partition = OffsetCommitRequestPartition {
                committed_metadata: Some("m".repeat(4000).into()),
                ..Default::default()
            };
            let topic = OffsetCommitRequestTopic {
                name: "t".into(),
                partitions: (0..20)
                    .map(|partition_index| OffsetCommitRequestPartition {
                        partition_index,
                        ..partition.clone()
                    })
                    .collect(),
                ..Default::default()
            };
            let request = OffsetCommitRequest {
                group_id,
                generation_id_or_member_epoch: -1,
                topics: vec![topic],
                ..Default::default()
            };
            rig.send("c", 7, Request::OffsetCommit(request));
        }
    }
    rig
}

fn name(number: usize) -> barnabas_wire::Str {
    format!("{number:01000}").into()
}

/// Asks as the broker does: first with little room, then for one part after the other, each with what it takes.
fn in_parts(rig: &mut Rig, version: i16, request: Request) -> (Vec<Response>, usize) {
    let mut left = vec![Part { request, bytes: PART_BYTES }];
    let (mut said, mut most) = (Vec::new(), 0);
    while let Some(part) = left.pop() {
        let room = part.bytes.max(PART_BYTES);
        most = most.max(room);
        let caller = Caller { version, room: Some(room), ..Caller::default() };
        let now = rig.now();
        let effects = rig.shard.handle(&caller, part.request, Ticket(u64::MAX), now);
        let [Effect::Answer { response, .. }] = &effects[..] else { panic!("{effects:?}") };
        match response {
            Response::Parts(parts) => left.extend(parts.iter().rev().cloned()),
            response => said.push(response.clone()),
        }
    }
    (said, most)
}

#[test]
fn long_list_is_the_same_in_parts() {
    let mut rig = crowd();
    for types_filter in [vec![], vec!["consumer".into()]] {
        let list = ListGroupsRequest { types_filter, ..Default::default() };
        let Response::ListGroups(whole) = rig.ask(5, Request::ListGroups(list.clone())) else {
            panic!("no list")
        };
        let (said, most) = in_parts(&mut rig, 5, Request::ListGroups(list));
        assert!(said.len() > 20 && most == 512 * GROUPS, "{} parts, {most} bytes", said.len());
        let groups = said.into_iter().flat_map(|said| match said {
            Response::ListGroups(said) => said.groups,
            other => panic!("{other:?}"),
        });
        assert_eq!(groups.collect::<Vec<_>>(), whole.groups);
    }
}

#[test]
fn short_list_is_said_at_once() {
    let mut rig = Rig::new(GroupConfig::default());
    let caller = Caller { version: 5, room: Some(PART_BYTES), ..Caller::default() };
    let now = rig.now();
    let request = Request::ListGroups(ListGroupsRequest::default());
    let effects = rig.shard.handle(&caller, request, Ticket(u64::MAX), now);
    assert!(
        matches!(&effects[..], [Effect::Answer { response: Response::ListGroups(_), .. }]),
        "{effects:?}"
    );
}

#[test]
fn groups_with_long_metadata_are_described_one_by_one() {
    let mut rig = crowd();
    let groups: Vec<_> = (0..20).map(name).collect();
    let describe = DescribeGroupsRequest { groups: groups.clone(), ..Default::default() };
    let Response::DescribeGroups(whole) = rig.ask(5, Request::DescribeGroups(describe.clone())) else {
        panic!("no description")
    };
    let (said, most) = in_parts(&mut rig, 5, Request::DescribeGroups(describe));
    assert!((100_000..200_000).contains(&most), "that of one member of 20 kB, five times over: {most}");
    let parts: Vec<_> = said
        .into_iter()
        .map(|said| match said {
            Response::DescribeGroups(said) => said.groups,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(parts.iter().all(|part| part.len() <= 4), "no part is long");
    assert_eq!(parts.concat(), whole.groups);
}

#[test]
fn offsets_with_long_metadata_need_their_room() {
    let mut rig = crowd();
    let group = OffsetFetchRequestGroup { group_id: name(1), topics: None, ..Default::default() };
    let request = Request::OffsetFetch { group, require_stable: false };
    let whole = rig.ask(8, request.clone());
    let (said, most) = in_parts(&mut rig, 8, request);
    assert_eq!(said, [whole]);
    assert!((400_000..450_000).contains(&most), "20 offsets of 4 kB, five times over: {most}");
}
