//! The MQ listener from end to end: our own end of a client channel puts and gets, users log in, units of work hold.

use crate::authorization::{OPEN, allow};
use crate::harness::sasl::node;
use crate::harness::{TestNode, free_port, metric};
use barnabas_mq::{Answer, Application, Descriptor, FORMAT_STRING, gmo, oo, pmo, reason};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);
const MQCONN_REPLY: u8 = 0x91;

/// One connection of an MQ client.
pub struct Peer {
    stream: TcpStream,
    pub application: Application,
}

impl Peer {
    fn begin(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("connects");
        stream.set_read_timeout(Some(Duration::from_millis(50))).expect("a timeout");
        let mut peer = Self { stream, application: Application::default() };
        peer.application.begin(true, 1, 100 << 20);
        peer.answer();
        peer.application.begin(false, 60, 4 << 20);
        peer.answer();
        peer
    }

    /// The reason code where the listener does not let it in.
    pub fn connect(port: u16, user: &str, password: &str) -> Result<Self, u32> {
        let mut peer = Self::begin(port);
        peer.application.log_in(user, password);
        peer.application.connect("QM1");
        loop {
            let answer = peer.answer();
            if answer.segment == MQCONN_REPLY {
                return if answer.codes == (0, 0) { Ok(peer) } else { Err(answer.codes.1) };
            }
        }
    }

    pub fn answer(&mut self) -> Answer {
        let out = self.application.take_output();
        self.stream.write_all(&out).expect("writes");
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(answer) = self.application.next_answer().expect("MQ") {
                return answer;
            }
            assert!(Instant::now() < until, "nothing came");
            let mut buffer = [0; 4096];
            match self.stream.read(&mut buffer) {
                Ok(0) => panic!("the connection is over"),
                Ok(count) => self.application.receive(&buffer[..count]),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    pub fn open(&mut self, queue: &str) -> u32 {
        self.application.open(queue, 1 | oo::OUTPUT);
        let answer = self.answer();
        assert_eq!(answer.codes, (0, 0));
        answer.handle
    }

    pub fn open_to_put(&mut self, queue: &str) -> u32 {
        self.application.open(queue, oo::OUTPUT);
        let answer = self.answer();
        assert_eq!(answer.codes, (0, 0));
        answer.handle
    }

    pub fn put(&mut self, handle: u32, options: u32, text: &str) {
        assert_eq!(self.try_put(handle, options, text), reason::NONE);
    }

    /// The reason code.
    pub fn try_put(&mut self, handle: u32, options: u32, text: &str) -> u32 {
        let md = Descriptor { format: FORMAT_STRING, ..Descriptor::default() };
        self.application.put(None, handle, &md, options, text.as_bytes());
        self.answer().codes.1
    }

    /// The text and how often it was backed out, or the reason code.
    pub fn get(&mut self, handle: u32, options: u32, wait_ms: i32) -> Result<(String, u32), u32> {
        self.application.get(handle, options | gmo::WAIT, wait_ms, 65_536);
        let answer = self.answer();
        if answer.codes != (0, 0) {
            return Err(answer.codes.1);
        }
        let (md, data) = self.application.message(&answer).expect("a message");
        assert_eq!(md.format, FORMAT_STRING);
        Ok((String::from_utf8(data.to_vec()).expect("text"), md.backout_count))
    }

    pub fn commit(&mut self) {
        self.application.commit();
        assert_eq!(self.answer().codes, (0, 0));
    }
}

pub fn settings(port: u16) -> [String; 3] {
    let listener = format!("mq.listener=127.0.0.1:{port}");
    [listener, "mq.queue.manager=QM1".to_owned(), "num.partitions=1".to_owned()]
}

fn text(text: &str, count: u32) -> Result<(String, u32), u32> {
    Ok((text.to_owned(), count))
}

#[test]
fn message_is_put_and_comes_back_until_it_is_committed() {
    let port = free_port();
    let settings = settings(port);
    let mut node = TestNode::start_with(&settings.each_ref().map(String::as_str));
    let mut sender = Peer::connect(port, "", "").expect("let in");
    let to = sender.open("ORDERS");
    sender.put(to, pmo::SYNCPOINT, "one");
    sender.put(to, pmo::SYNCPOINT, "two");
    assert_eq!(
        sender.get(to, gmo::NO_SYNCPOINT, 100),
        Err(reason::NO_MSG_AVAILABLE),
        "nothing before the commit"
    );
    sender.commit();
    sender.application.close(to);
    assert_eq!(sender.answer().codes, (0, 0));

    let mut lost = Peer::connect(port, "", "").expect("let in");
    let from = lost.open("ORDERS");
    assert_eq!(lost.get(from, gmo::SYNCPOINT, 10_000), text("one", 0));
    // It was got, and not committed.
    drop(lost);

    let mut receiver = Peer::connect(port, "", "").expect("let in");
    let from = receiver.open("ORDERS");
    let mut got = Vec::new();
    for _ in 0..2 {
        got.push(receiver.get(from, gmo::SYNCPOINT, 20_000).expect("a message"));
    }
    got.sort();
    assert_eq!(got, [("one".to_owned(), 1), ("two".to_owned(), 0)]);
    receiver.application.back_out();
    assert_eq!(receiver.answer().codes, (0, 0));
    let mut again: Vec<_> =
        (0..2).map(|_| receiver.get(from, gmo::SYNCPOINT, 10_000).expect("again")).collect();
    again.sort();
    assert_eq!(again, [("one".to_owned(), 2), ("two".to_owned(), 1)]);
    receiver.commit();
    assert_eq!(receiver.get(from, gmo::SYNCPOINT, 100), Err(reason::NO_MSG_AVAILABLE));
    receiver.application.disconnect();
    assert_eq!(receiver.answer().codes, (0, 0));
    assert!(node.stop().success());
}

#[test]
fn users_of_the_broker_connect_and_no_other() {
    let port = free_port();
    let settings = settings(port);
    let (mut node, _) = node("PLAIN", &[("alice", "alice-secret")], &settings.each_ref().map(String::as_str));
    node.launch();
    let mut alice = Peer::connect(port, "alice", "alice-secret").expect("let in");
    let handle = alice.open("ORDERS");
    alice.put(handle, 0, "one");
    assert_eq!(alice.get(handle, gmo::NO_SYNCPOINT, 10_000), text("one", 0));
    assert_eq!(Peer::connect(port, "alice", "wrong").err(), Some(reason::NOT_AUTHORIZED));
    assert_eq!(Peer::connect(port, "", "").err(), Some(reason::NOT_AUTHORIZED));
    assert!(node.stop().success());
}

#[test]
fn puts_of_many_connections_share_batches_and_keep_their_order() {
    const CONNECTIONS: usize = 16;
    const PUTS: usize = 20;
    let (port, metrics) = (free_port(), free_port());
    let listener = format!("metrics.listener=127.0.0.1:{metrics}");
    let mut settings = settings(port).to_vec();
    settings.push(listener);
    let mut node = TestNode::start_with(&settings.iter().map(String::as_str).collect::<Vec<_>>());
    let put_all = |connection: usize| {
        let mut peer = Peer::connect(port, "", "").expect("let in");
        let to = peer.open_to_put("ORDERS");
        for number in 0..PUTS {
            // Each fourth one has no answer, and is written as well.
            let text = format!("{connection} {number}");
            if number % 4 == 1 {
                let md = Descriptor { format: FORMAT_STRING, ..Descriptor::default() };
                peer.application.put(None, to, &md, pmo::ASYNC_RESPONSE, text.as_bytes());
            } else {
                peer.put(to, 0, &text);
            }
        }
        peer.application.disconnect();
        assert_eq!(peer.answer().codes, (0, 0));
    };
    std::thread::scope(|threads| {
        for connection in 0..CONNECTIONS {
            threads.spawn(move || put_all(connection));
        }
    });
    let requests = metric(metrics, "kafka_server_brokertopicmetrics_totalproducerequests_total");
    let requests = requests.expect("counted") as usize;
    assert!(requests < CONNECTIONS * PUTS * 3 / 4, "{requests} requests for {} puts", CONNECTIONS * PUTS);

    let mut receiver = Peer::connect(port, "", "").expect("let in");
    let from = receiver.open("ORDERS");
    let mut seen = [0; CONNECTIONS];
    for _ in 0..CONNECTIONS * PUTS {
        let (text, _) = receiver.get(from, gmo::NO_SYNCPOINT, 10_000).expect("a message");
        let (connection, number) = text.split_once(' ').expect("two numbers");
        let next = &mut seen[connection.parse::<usize>().expect("a number")];
        assert_eq!(number, next.to_string(), "in its order");
        *next += 1;
    }
    assert_eq!(receiver.get(from, gmo::NO_SYNCPOINT, 100), Err(reason::NO_MSG_AVAILABLE));
    assert!(node.stop().success());
}

#[test]
fn too_large_message_does_not_fail_those_of_other_connections() {
    let port = free_port();
    let settings = settings(port);
    let mut node = TestNode::start_with(&settings.each_ref().map(String::as_str));
    node.client().create_topic("ORDERS", 1, &[("max.message.bytes", "20000")]);
    let put_all = |text: &str, wanted: u32| {
        let mut peer = Peer::connect(port, "", "").expect("let in");
        let to = peer.open_to_put("ORDERS");
        for _ in 0..15 {
            assert_eq!(peer.try_put(to, 0, text), wanted);
        }
    };
    std::thread::scope(|threads| {
        // Several of them together are more than the topic takes, too.
        for bytes in [10, 3_000, 3_000, 3_000, 3_000, 3_000, 3_000, 3_000] {
            threads.spawn(move || put_all(&"x".repeat(bytes), reason::NONE));
        }
        threads.spawn(|| put_all(&"x".repeat(30_000), reason::MSG_TOO_BIG_FOR_Q));
    });
    let mut peer = Peer::connect(port, "", "").expect("let in");
    let from = peer.open("ORDERS");
    for _ in 0..8 * 15 {
        peer.get(from, gmo::NO_SYNCPOINT, 10_000).expect("each once");
    }
    assert_eq!(peer.get(from, gmo::NO_SYNCPOINT, 100), Err(reason::NO_MSG_AVAILABLE));
    assert!(node.stop().success());
}

#[test]
fn put_is_authorized_as_that_of_its_own_user() {
    const TOPIC: i8 = 2;
    const LITERAL: i8 = 3;
    const WRITE: i8 = 4;
    const DESCRIBE: i8 = 8;
    let port = free_port();
    let mut settings = settings(port).to_vec();
    settings.extend(OPEN.map(str::to_owned));
    let users = [("alice", "alice-secret"), ("bob", "bob-secret")];
    let (mut node, _) = node("PLAIN", &users, &settings.iter().map(String::as_str).collect::<Vec<_>>());
    node.launch();
    let mut client = node.client();
    client.create_topic("ORDERS", 1, &[]);
    client.create_topic("OTHERS", 1, &[]);
    let may = |topic, user, operation| (TOPIC, topic, LITERAL, user, operation);
    allow(
        &mut client,
        &[
            may("ORDERS", "User:alice", WRITE),
            may("ORDERS", "User:bob", DESCRIBE),
            may("OTHERS", "User:bob", WRITE),
        ],
    );
    let put_all = |user: &str, queue: &str, wanted: u32| {
        let mut peer = Peer::connect(port, user, &format!("{user}-secret")).expect("let in");
        let to = peer.open_to_put(queue);
        for _ in 0..10 {
            assert_eq!(peer.try_put(to, 0, "x"), wanted, "{user}, {queue}");
        }
    };
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| put_all("alice", "ORDERS", reason::NONE));
            threads.spawn(|| put_all("bob", "ORDERS", reason::NOT_AUTHORIZED));
            threads.spawn(|| put_all("bob", "OTHERS", reason::NONE));
        }
    });
    // It warns of an authorizer that lets everyone to what has no ACLs.
    assert!(node.stop_expecting_trouble().success());
}
