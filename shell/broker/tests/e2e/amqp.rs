//! The AMQP listener from end to end: our own AMQP client puts and takes, users log in, a lost connection gives back.

use crate::harness::sasl::node;
use crate::harness::{TestNode, free_port};
use barnabas_amqp::{
    Body, Client, ClientConfig, Delivery, Event, LinkId, Login, Message, Outcome, ReceiverConfig,
    SenderConfig, Value, decode_message, encode_message,
};
use barnabas_base::MonotonicMs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

/// One connection of an AMQP client.
pub struct Peer {
    stream: TcpStream,
    pub client: Client,
    started: Instant,
}

impl Peer {
    /// `None`: the listener did not let it in.
    pub fn connect(port: u16, login: Login) -> Option<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("connects");
        stream.set_read_timeout(Some(Duration::from_millis(50))).expect("a timeout");
        let client = Client::new(ClientConfig { login, ..ClientConfig::default() }, MonotonicMs(0));
        let mut peer = Self { stream, client, started: Instant::now() };
        match peer.next()? {
            Event::Ready(_) => Some(peer),
            other => panic!("{other:?}"),
        }
    }

    fn flush(&mut self) {
        let now = MonotonicMs(self.started.elapsed().as_millis() as u64);
        let out = self.client.take_output(now);
        self.stream.write_all(&out).expect("writes");
    }

    /// `None`: the connection is over.
    fn next(&mut self) -> Option<Event> {
        let until = Instant::now() + PATIENCE;
        loop {
            self.flush();
            if let Some(event) = self.client.next_event() {
                return Some(event);
            }
            assert!(Instant::now() < until, "nothing came");
            let mut buffer = [0; 4096];
            match self.stream.read(&mut buffer) {
                Ok(0) => return None,
                Ok(count) => {
                    let now = MonotonicMs(self.started.elapsed().as_millis() as u64);
                    if self.client.receive(&buffer[..count], now).is_err() {
                        return None;
                    }
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(_) => return None,
            }
        }
    }

    pub fn until<T>(&mut self, mut wanted: impl FnMut(Event) -> Option<T>) -> T {
        loop {
            if let Some(found) = wanted(self.next().expect("the connection lives")) {
                return found;
            }
        }
    }

    pub fn put(&mut self, queue: &str, text: &str) -> Outcome {
        let (name, address) = (format!("to {queue} {text}"), queue.to_owned());
        let config = SenderConfig { name, address, capabilities: vec!["queue".to_owned()] };
        let link = self.client.attach_sender(&config).expect("room");
        self.until(|event| matches!(event, Event::Credit(of) if of == link).then_some(()));
        let properties = vec![("n".to_owned(), Value::Int(7))];
        let body = Body::Value(Value::string(text));
        let message = Message { body, application: properties, ..Message::default() };
        self.client.send(link, encode_message(&message)).expect("credit");
        self.until(|event| match event {
            Event::Outcome(_, _, outcome) => Some(outcome),
            _ => None,
        })
    }

    pub fn receiver(&mut self, queue: &str) -> LinkId {
        let (name, address) = (format!("from {queue}"), queue.to_owned());
        let config = ReceiverConfig { name, address, capabilities: vec!["queue".to_owned()], filter: None };
        let link = self.client.attach_receiver(&config).expect("room");
        self.until(|event| matches!(event, Event::Attached(of) if of == link).then_some(()));
        self.client.grant(link, 10);
        link
    }

    pub fn message(&mut self) -> (Delivery, Message) {
        let delivery = self.until(|event| match event {
            Event::Message(delivery) => Some(delivery),
            _ => None,
        });
        let message = decode_message(delivery.payload.clone()).expect("a message");
        (delivery, message)
    }
}

#[test]
fn message_is_put_and_comes_back_until_it_is_accepted() {
    let port = free_port();
    let mut node = TestNode::start_with(&[&format!("amqp.listener=127.0.0.1:{port}"), "num.partitions=1"]);
    let mut sender = Peer::connect(port, Login::Anonymous).expect("let in");
    assert_eq!(sender.put("orders", "one"), Outcome::Accepted);
    assert_eq!(sender.put("orders", "two"), Outcome::Accepted);

    let mut lost = Peer::connect(port, Login::Anonymous).expect("let in");
    lost.receiver("orders");
    let (_, message) = lost.message();
    assert_eq!(message.body, Body::Value(Value::string("one")));
    assert_eq!(message.application, [("n".to_owned(), Value::Int(7))], "with its type");
    assert_eq!((message.header.delivery_count, message.header.first_acquirer), (0, true));
    // Both were delivered, and none was settled.
    drop(lost);

    let mut receiver = Peer::connect(port, Login::Anonymous).expect("let in");
    receiver.receiver("orders");
    for text in ["one", "two"] {
        let (delivery, message) = receiver.message();
        assert_eq!(message.body, Body::Value(Value::string(text)));
        assert_eq!(message.header.delivery_count, 1);
        receiver.client.settle(delivery.id, delivery.id, Outcome::Accepted);
    }
    assert!(node.stop().success());
}

#[test]
fn too_large_message_is_rejected_alone() {
    const TOO_LARGE: usize = 7;
    let port = free_port();
    let mut node = TestNode::start_with(&[&format!("amqp.listener=127.0.0.1:{port}"), "num.partitions=1"]);
    node.client().create_topic("orders", 1, &[("max.message.bytes", "20000")]);
    let mut peer = Peer::connect(port, Login::Anonymous).expect("let in");
    let config =
        SenderConfig { name: "to".to_owned(), address: "orders".to_owned(), capabilities: Vec::new() };
    let link = peer.client.attach_sender(&config).expect("room");
    peer.until(|event| matches!(event, Event::Credit(of) if of == link).then_some(()));
    let text =
        |number: usize| format!("{number} {}", "x".repeat(if number == TOO_LARGE { 30_000 } else { 10 }));
    let mut sent = Vec::new();
    for number in 0..20 {
        let message = Message { body: Body::Value(Value::string(&text(number))), ..Message::default() };
        sent.push(peer.client.send(link, encode_message(&message)).expect("credit"));
    }
    for _ in 0..20 {
        let (id, outcome) = peer.until(|event| match event {
            Event::Outcome(_, id, outcome) => Some((id, outcome)),
            _ => None,
        });
        let number = sent.iter().position(|of| *of == id).expect("sent");
        match outcome {
            Outcome::Accepted => assert_ne!(number, TOO_LARGE),
            Outcome::Rejected(why) => {
                assert_eq!(number, TOO_LARGE);
                assert_eq!(why.condition, "amqp:link:message-size-exceeded");
            }
            other => panic!("{other:?}"),
        }
    }
    let link = peer.receiver("orders");
    peer.client.grant(link, 20);
    for number in (0..20).filter(|number| *number != TOO_LARGE) {
        let (delivery, message) = peer.message();
        assert_eq!(message.body, Body::Value(Value::string(&text(number))), "in their order");
        peer.client.settle(delivery.id, delivery.id, Outcome::Accepted);
    }
    assert!(node.stop().success());
}

#[test]
fn users_of_the_broker_log_in_and_no_other() {
    let port = free_port();
    let listener = format!("amqp.listener=127.0.0.1:{port}");
    let (mut node, _) = node("PLAIN", &[("alice", "alice-secret")], &[&listener]);
    node.launch();
    let plain =
        |user: &str, password: &str| Login::Plain { user: user.to_owned(), password: password.to_owned() };
    let mut alice = Peer::connect(port, plain("alice", "alice-secret")).expect("let in");
    assert_eq!(alice.put("orders", "one"), Outcome::Accepted);
    assert!(Peer::connect(port, plain("alice", "wrong")).is_none());
    assert!(Peer::connect(port, Login::Anonymous).is_none());
    assert!(Peer::connect(port, Login::None).is_none());
    assert!(node.stop().success());
}

#[test]
fn missing_parts_are_refused_by_their_condition() {
    let port = free_port();
    let mut node = TestNode::start_with(&[&format!("amqp.listener=127.0.0.1:{port}")]);
    let mut peer = Peer::connect(port, Login::None).expect("let in");
    let config = ReceiverConfig {
        name: "r".to_owned(),
        address: "orders".to_owned(),
        capabilities: vec!["topic".to_owned()],
        filter: None,
    };
    let link = peer.client.attach_receiver(&config).expect("room");
    let why = peer.until(|event| match event {
        Event::Detached(of, why) if of == link => Some(why.expect("a reason")),
        _ => None,
    });
    assert_eq!(why.condition, "amqp:not-implemented");
    assert!(node.stop().success());
}
