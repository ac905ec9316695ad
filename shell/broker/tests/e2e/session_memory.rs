//! What sessions hold stays within their part of the memory budget, whatever clients put into them, and clients without
//! a session are served all the same.

use crate::harness::patience::eventually;
use crate::harness::{Client, TestNode};
use barnabas_base::Uuid;
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use barnabas_wire::messages::{
    FetchRequest, FetchResponse, ResponseBody, ShareFetchRequest, share_fetch_request,
};

const MIB: u64 = 1 << 20;
/// Sessions have an eighth of it.
const BUDGET: &str = "queued.max.request.bytes=16777216";

/// A first Fetch of a client that wants a session.
fn fetch(client: &mut Client, name: &str, partitions: i32) -> Box<FetchResponse> {
    let wanted = |partition| FetchPartition { partition, ..FetchPartition::default() };
    let partitions = (0..partitions).map(wanted).collect();
    let topic = FetchTopic { topic: name.into(), partitions, ..FetchTopic::default() };
    let request = FetchRequest { session_epoch: 0, topics: vec![topic], ..FetchRequest::default() };
    let ResponseBody::Fetch(response) = client.call(request, 11) else { panic!("another response") };
    assert_eq!(response.error_code, 0);
    response
}

#[test]
fn fetch_sessions_stay_within_their_part_of_the_budget() {
    let mut node = TestNode::start_with(&[BUDGET]);
    // The name of the probe: no topic is called so.
    let long = "n".repeat(32_000);
    assert_eq!(fetch(&mut node.client(), &long, 4_000).session_id, 0);
    let base = node.rss_bytes();
    let mut with_session = 0;
    for _ in 0..8 {
        let answer = fetch(&mut node.client(), &long, 4_000);
        let told: usize = answer.responses.iter().map(|topic| topic.partitions.len()).sum();
        assert_eq!((answer.session_id, told), (0, 4_000));
        with_session += i32::from(fetch(&mut node.client(), &"n".repeat(249), 2_000).session_id > 0);
    }
    // A session of 2,000 partitions takes more than a hundred bytes for each, and all have 2 MiB.
    assert!((1..=10).contains(&with_session), "{with_session} sessions of 2,000 partitions");
    // A small session fits.
    assert!(fetch(&mut node.client(), "t", 1).session_id > 0);
    let grown = node.rss_bytes().saturating_sub(base);
    assert!(grown <= 16 * MIB, "{} MiB more", grown / MIB);
    assert!(node.stop().success());
}

/// The first ShareFetch of a member: a session of so many partitions of a topic that is not there. Returns its error.
fn share_fetch(client: &mut Client, member: &str, partitions: i32) -> i16 {
    let wanted =
        |partition_index| share_fetch_request::FetchPartition { partition_index, ..Default::default() };
    let topic = share_fetch_request::FetchTopic {
        topic_id: Uuid([7; 16]),
        partitions: (0..partitions).map(wanted).collect(),
        ..Default::default()
    };
    let request = ShareFetchRequest {
        group_id: Some("g".into()),
        member_id: Some(member.into()),
        max_records: 1,
        max_bytes: 1,
        topics: vec![topic],
        ..ShareFetchRequest::default()
    };
    let ResponseBody::ShareFetch(response) = client.call(request, 1) else { panic!("another response") };
    response.error_code
}

#[test]
fn share_sessions_stay_within_their_part_of_the_budget() {
    const SHARE_SESSION_LIMIT_REACHED: i16 = 133;
    let mut node = TestNode::start_with(&[BUDGET]);
    let mut client = node.client();
    let codes: Vec<i16> = (0..60).map(|at| share_fetch(&mut client, &format!("m{at}"), 5_000)).collect();
    let with_session = codes.iter().filter(|&&code| code == 0).count();
    // A session of 5,000 partitions takes more than twenty bytes for each, and all have 2 MiB.
    assert!((1..=20).contains(&with_session), "{codes:?}");
    assert!(codes[with_session..].iter().all(|&code| code == SHARE_SESSION_LIMIT_REACHED), "{codes:?}");
    // A small session fits.
    assert_eq!(share_fetch(&mut client, "small", 1), 0);
    // What sessions took comes back with their connection.
    drop(client);
    let mut client = node.client();
    eventually("a large session has room again", || share_fetch(&mut client, "again", 5_000) == 0);
    assert!(node.stop().success());
}
