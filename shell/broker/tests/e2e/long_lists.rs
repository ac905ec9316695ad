//! Each list of every request in turn with 8,000 entries, of one thing or of different ones: answers and the node's
//! memory stay within bounds, on both listeners.
//!
//! `repeated_entries.rs` has the requests whose entries name something large.

use crate::harness::bodies::{Fill, Shape, shapes};
use crate::harness::patience::until;
use crate::harness::{Client, TestNode};
use barnabas_base::Uuid;
use barnabas_wire::messages::broker_registration_request::{Feature, Listener};
use barnabas_wire::messages::{
    ApiVersionsRequest, BrokerRegistrationRequest, FindCoordinatorRequest, MetadataRequest, ResponseBody,
};
use std::collections::BTreeSet;
use std::time::Instant;

const MIB: usize = 1 << 20;
/// `answer.bytes.max` of the node.
const ANSWER_MAX: usize = MIB;
/// Bytes of an answer for each byte of its request where the answer has an entry of a fixed size for each of the
/// request's.
const ECHO_MAX: usize = 32;
/// What one request may make the node hold: frames, the decoded request, its answer, buffers.
const HELD_MAX: u64 = 96 << 20;
const TIMES: usize = 8000;

/// What requests must name to come further than the first check.
struct Known {
    topic_id: [u8; 16],
    cluster_id: String,
    /// A registered broker that is not there, and its epoch.
    broker: (i32, i64),
}

impl Known {
    fn text<'a>(&'a self, path: &str, ordinary: &'a str) -> &'a str {
        let (api, name) = (path.split('/').next().unwrap_or_default(), path.rsplit('/').next());
        let is_of_the_quorum = ["Vote", "BeginQuorum", "EndQuorum", "DescribeQuorum", "FetchSnapshot"]
            .iter()
            .any(|of| api.starts_with(of));
        match name.unwrap_or_default() {
            "ClusterId" => &self.cluster_id,
            "Name" | "TopicName" if is_of_the_quorum => "__cluster_metadata",
            "GroupId" | "GroupIds" if api.starts_with("Share") => "shared",
            "GroupId" | "GroupIds" if api.starts_with("Streams") => "streamed",
            "MemberId" if api.starts_with("Share") => "AAAAAAAAAAAAAAAAAAAAAA",
            _ => ordinary,
        }
    }

    fn number(&self, path: &str) -> Option<i64> {
        let is_of_brokers =
            ["AlterPartitionRequest", "BrokerHeartbeatRequest", "AssignReplicasToDirsRequest"]
                .contains(&path.split('/').next()?);
        match path.rsplit('/').next()? {
            "BrokerId" if is_of_brokers => Some(i64::from(self.broker.0)),
            "BrokerEpoch" if is_of_brokers => Some(self.broker.1),
            _ => None,
        }
    }
}

fn is_of_a_session(path: &str) -> bool {
    let of_a_beginning = ["ActiveTasks", "StandbyTasks", "WarmupTasks", "SourceTopicRegex"];
    let of_a_session = ["AcknowledgementBatches", "ForgottenTopicsData"];
    of_a_beginning.iter().chain(&of_a_session).any(|list| path.ends_with(list))
        || path == "ConsumerGroupHeartbeatRequest/TopicPartitions"
}

/// Whether the request with this long list goes on with a share session.
fn is_in_a_session(long: &str) -> bool {
    long.starts_with("ShareAcknowledge")
        || long.starts_with("ShareFetch")
            && (long.contains("AcknowledgementBatches") || long.contains("Forgotten"))
}

/// The request with a list of [`TIMES`] entries at `long`.
fn frame(shape: &Shape, version: i16, long: &str, known: &Known, are_different: bool) -> Vec<u8> {
    let (mut texts, mut numbers) = (0, 0);
    let is_inside = |path: &str| are_different && path.starts_with(long);
    let fill = Fill {
        count: Box::new(|path| match path {
            _ if path == long => TIMES,
            // Only where they are asked about: they make a request refused that begins a session or a membership.
            _ if is_of_a_session(path) && !long.starts_with(path) => 0,
            _ => 1,
        }),
        text: Box::new(|path, ordinary| {
            texts += 1;
            let ordinary = known.text(path, ordinary);
            if is_inside(path) { format!("{ordinary}-{texts}").into() } else { ordinary.into() }
        }),
        number: Box::new(|path| {
            let name = path.rsplit('/').next().unwrap_or_default();
            let is_number = ["Index", "Indexes", "Partition", "Partitions", "PartitionId"].contains(&name);
            numbers += 1;
            match name {
                "ShareSessionEpoch" => Some(i64::from(is_in_a_session(long))),
                _ if is_inside(path) && is_number => Some(numbers),
                _ => known.number(path),
            }
        }),
        ..Fill::ordinary(known.topic_id)
    };
    shape.frame(version, fill)
}

/// A topic, and coordinators.
fn prepared(node: &TestNode) -> Known {
    let mut client = node.client();
    client.create_topic("t", 1, &[]);
    let request = MetadataRequest { topics: Some(Vec::new()), ..Default::default() };
    let ResponseBody::Metadata(metadata) = client.call(request, 12) else { panic!("another response") };
    let topic_id = client.topic_id("t");
    for (key_type, key) in [(0, "g".to_owned()), (1, "x".to_owned()), (2, format!("shared:{topic_id}:0"))] {
        until("a coordinator", || {
            let request = FindCoordinatorRequest {
                key_type,
                coordinator_keys: vec![key.as_str().into()],
                ..Default::default()
            };
            let ResponseBody::FindCoordinator(found) = client.call(request, 6) else { panic!("another") };
            (found.coordinators[0].error_code == 0).then_some(())
        });
    }
    Known {
        topic_id: topic_id.0,
        cluster_id: metadata.cluster_id.expect("a cluster id").to_string(),
        broker: (1, -1),
    }
}

/// Registers a broker that never comes.
fn register(node: &TestNode, known: &mut Known) {
    let asked = ApiVersionsRequest {
        client_software_name: "test".into(),
        client_software_version: "1".into(),
        ..Default::default()
    };
    let ResponseBody::ApiVersions(versions) = node.client().call(asked, 4) else {
        panic!("another response")
    };
    let features = versions.supported_features.iter().map(|feature| Feature {
        name: feature.name.clone(),
        min_supported_version: feature.min_version,
        max_supported_version: feature.max_version,
        ..Default::default()
    });
    let listener =
        Listener { name: "PLAINTEXT".into(), host: "127.0.0.1".into(), port: 1, ..Default::default() };
    let request = BrokerRegistrationRequest {
        broker_id: 99,
        cluster_id: known.cluster_id.as_str().into(),
        incarnation_id: Uuid([9; 16]),
        listeners: vec![listener],
        features: features.collect(),
        log_dirs: vec![Uuid([8; 16])],
        previous_broker_epoch: -1,
        ..Default::default()
    };
    let mut client = Client::try_connect(node.controller_port).expect("connects");
    let ResponseBody::BrokerRegistration(registered) = client.call(request, 4) else {
        panic!("another response")
    };
    assert_eq!(registered.error_code, 0, "{}", node.log());
    known.broker = (99, registered.broker_epoch);
}

fn lists(shape: &Shape, version: i16) -> BTreeSet<String> {
    let mut lists = BTreeSet::new();
    let count = |path: &str| {
        lists.insert(path.to_owned());
        1
    };
    shape.frame(version, Fill { count: Box::new(count), ..Fill::ordinary([7; 16]) });
    lists
}

fn ask_with_long_lists(node: &TestNode, port: u16, known: &Known) {
    let connect = || Client::try_connect(port).expect("connects");
    let ResponseBody::ApiVersions(served) = connect().call(ApiVersionsRequest::default(), 0) else {
        panic!("another response")
    };
    let shapes = shapes();
    let share_fetch = shapes.iter().find(|shape| shape.key == 78).expect("in the schema");
    let session = frame(share_fetch, 2, "", known, false);
    let (mut wrong, mut asked) = (Vec::new(), 0);
    node.peak_bytes();
    for row in &served.api_keys {
        let shape = shapes.iter().find(|shape| shape.key == row.api_key).expect("in the schema");
        for list in lists(shape, row.max_version) {
            for are_different in [false, true] {
                let frame = frame(shape, row.max_version, &list, known, are_different);
                let before = node.rss_bytes();
                let mut client = connect();
                if is_in_a_session(&list) {
                    client.send_raw(&session);
                    client.receive_frame();
                }
                client.send_raw(&frame);
                let begun = Instant::now();
                let answer = client.receive_frame().map(|frame| frame.len());
                let took = begun.elapsed().as_millis();
                let held = node.peak_bytes().saturating_sub(before);
                let sent = frame.len();
                asked += 1;
                println!("{list} {are_different}: {sent} bytes, answer {answer:?}, held {held}, {took} ms");
                let is_large = answer.is_none_or(|answer| answer > sent * ECHO_MAX + ANSWER_MAX + 64 * 1024);
                if is_large || held > HELD_MAX {
                    wrong.push(format!("{list} {are_different}: {sent} bytes, {answer:?}, {held}"));
                }
            }
        }
    }
    println!("{asked} requests of {} APIs", served.api_keys.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
    let log = node.log();
    let is_error = |line: &&str| line.contains(" ERROR ") || line.contains("panicked");
    let errors: Vec<&str> = log.lines().filter(is_error).collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

#[test]
fn long_lists_of_every_api_stay_within_bounds() {
    let limit = format!("answer.bytes.max={ANSWER_MAX}");
    let settings = [&limit, "log.cache.bytes=1048576", "group.initial.rebalance.delay.ms=0"];
    let mut node = TestNode::start_with(&settings);
    ask_with_long_lists(&node, node.port, &prepared(&node));
    assert!(node.stop_expecting_trouble().success());
}

#[test]
fn long_lists_of_the_controllers_apis_stay_within_bounds() {
    let limit = format!("answer.bytes.max={ANSWER_MAX}");
    let mut node = TestNode::start_with(&[&limit]);
    let mut known = prepared(&node);
    register(&node, &mut known);
    ask_with_long_lists(&node, node.controller_port, &known);
    assert!(node.stop_expecting_trouble().success());
}
