//! Texts of 32,767 bytes, the longest that the protocol has, in every field of every request in every version: none
//! leads to an answer that cannot be written.

use crate::harness::bodies::{Fill, Shape, shapes};
use crate::harness::{Client, TestNode};
use barnabas_wire::messages::{ApiVersionsRequest, ResponseBody};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const LONGEST: usize = i16::MAX as usize;
/// A silent connection is no answer either. Members that wait for each other, on a machine whose disk stands still,
/// take seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// Numbers that decide which way a request takes, and their values.
const WAYS: &[(&str, &[i64])] = &[
    ("ResourceType", &[2, 4, 8, 16, 32, 77]),
    ("ResourceTypes", &[2, 4, 8, 16, 32]),
    ("KeyType", &[0, 1, 2, 9]),
    ("ConfigOperation", &[0, 1, 2, 3]),
    ("MemberEpoch", &[-2, -1, 0, 1]),
];

struct Attack {
    port: u16,
    topic_id: [u8; 16],
    sent: usize,
    /// By API and version: the last frame without an answer, and what was read in its place.
    unanswered: BTreeMap<(i16, i16), String>,
}

impl Attack {
    fn send(&mut self, key: i16, version: i16, frame: &[u8]) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("connects");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        stream.write_all(frame).expect("sends");
        self.sent += 1;
        // A read with a timeout ends with EINTR where the process was stopped meanwhile; `read_exact` goes on.
        let outcome = stream.read_exact(&mut [0; 4]);
        if outcome.is_err() {
            self.unanswered.insert((key, version), format!("frame {}: {outcome:?}", self.sent));
        }
    }

    /// A request with each of its texts in turn made as long as can be, and with all of them, by each way that it can
    /// take.
    fn send_all(&mut self, shape: &Shape, version: i16) {
        let topic_id = self.topic_id;
        let (mut texts, mut numbers) = (0, Vec::new());
        let noting = Fill {
            text: Box::new(|_, ordinary| {
                texts += 1;
                ordinary.into()
            }),
            number: Box::new(|path| {
                numbers.push(path.to_owned());
                None
            }),
            ..Fill::ordinary(topic_id)
        };
        shape.frame(version, noting);
        let way = |(name, values): &(&str, &'static [i64])| {
            let path = numbers.iter().find(|path| path.rsplit('/').next() == Some(name))?;
            Some((path.clone(), *values))
        };
        let (path, values) = WAYS.iter().find_map(way).unwrap_or((String::new(), &[0]));
        // Two bytes a character, and one that is cut by any even bound.
        let odd = format!("n{}", "é".repeat(LONGEST / 2));
        for &value in values {
            let by_this_way = || Fill {
                number: Box::new(|at: &str| (at == path).then_some(value)),
                ..Fill::ordinary(topic_id)
            };
            for long in (0..texts).map(Some).chain([None]) {
                let mut at = 0;
                let text = |_: &str, ordinary: &str| {
                    at += 1;
                    if long.is_none_or(|long| long + 1 == at) { vec![b'n'; LONGEST] } else { ordinary.into() }
                };
                let fill = Fill { text: Box::new(text), ..by_this_way() };
                self.send(shape.key, version, &shape.frame(version, fill));
            }
            let fill = Fill { text: Box::new(|_, _| odd.clone().into()), ..by_this_way() };
            self.send(shape.key, version, &shape.frame(version, fill));
            let fill = Fill { client_id: &odd, ..by_this_way() };
            self.send(shape.key, version, &shape.frame(version, fill));
        }
    }
}

fn attack(node: &TestNode, port: u16, topic_id: [u8; 16]) {
    let mut client = Client::try_connect(port).expect("connects");
    let ResponseBody::ApiVersions(served) = client.call(ApiVersionsRequest::default(), 0) else {
        panic!("another response")
    };
    let shapes = shapes();
    let mut attack = Attack { port, topic_id, sent: 0, unanswered: BTreeMap::new() };
    for row in &served.api_keys {
        let shape = shapes.iter().find(|shape| shape.key == row.api_key).expect("in the schema");
        for version in row.min_version..=row.max_version {
            attack.send_all(shape, version);
        }
    }
    println!("{} frames of {} APIs", attack.sent, served.api_keys.len());
    let log = node.log();
    let is_error = |line: &&str| line.contains(" ERROR ") || line.contains("panicked");
    let errors: Vec<&str> = log.lines().filter(is_error).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    assert!(attack.unanswered.is_empty(), "{:?}", attack.unanswered);
}

#[test]
fn longest_texts_are_answered_by_every_api() {
    let mut node = TestNode::start_with(&["group.initial.rebalance.delay.ms=0"]);
    let mut client = node.client();
    client.create_topic("t", 1, &[]);
    let topic_id = client.topic_id("t").0;
    attack(&node, node.port, topic_id);
    // What the first round has left (members, groups, transactions) is described in the second.
    attack(&node, node.port, topic_id);
    assert!(node.stop().success());
}

#[test]
fn longest_texts_are_answered_by_the_controller() {
    let mut node = TestNode::start();
    attack(&node, node.controller_port, [7; 16]);
    // Requests of another quorum are a WARN.
    assert!(node.stop_expecting_trouble().success());
}
