//! Transactions of the AMQP listener from end to end: our own AMQP client posts and retires in them.

use crate::amqp::Peer;
use crate::authorization::{OPEN, allow};
use crate::harness::sasl::node;
use crate::harness::{TestNode, free_port};
use barnabas_amqp::{
    Body, Condition, Control, Delivery, Event, LinkId, Login, Message, Outcome, SenderConfig,
    TRANSACTION_ROLLBACK, UNKNOWN_TRANSACTION, Value, encode_message,
};
use bytes::Bytes;
use std::thread::sleep;
use std::time::Duration;

/// A peer with a link to the coordinator.
struct Controller {
    peer: Peer,
    coordinator: LinkId,
}

impl Controller {
    fn connect(port: u16, login: Login) -> Self {
        let mut peer = Peer::connect(port, login).expect("let in");
        let coordinator = peer.client.attach_coordinator("txn").expect("room");
        peer.until(|event| matches!(event, Event::Credit(of) if of == coordinator).then_some(()));
        Self { peer, coordinator }
    }

    fn anonymous(port: u16) -> Self {
        Self::connect(port, Login::Anonymous)
    }

    fn ask(&mut self, control: &Control) -> Outcome {
        let id = self.peer.client.send(self.coordinator, control.encode()).expect("credit");
        self.peer.until(|event| match event {
            Event::Outcome(_, of, outcome) if of == id => Some(outcome),
            _ => None,
        })
    }

    fn declare(&mut self) -> Bytes {
        match self.ask(&Control::Declare { is_global: false }) {
            Outcome::Declared { txn_id } => txn_id,
            other => panic!("{other:?}"),
        }
    }

    fn end(&mut self, txn_id: &Bytes, fail: bool) -> Outcome {
        self.ask(&Control::Discharge { txn_id: txn_id.clone(), fail })
    }

    fn commit(&mut self, txn_id: &Bytes) {
        assert_eq!(self.end(txn_id, false), Outcome::Accepted);
    }

    fn sender(&mut self, queue: &str) -> LinkId {
        let (name, address) = (format!("to {queue}"), queue.to_owned());
        let config = SenderConfig { name, address, capabilities: Vec::new() };
        let link = self.peer.client.attach_sender(&config).expect("room");
        self.peer.until(|event| matches!(event, Event::Credit(of) if of == link).then_some(()));
        link
    }

    /// What the peer learns of a message of the transaction.
    fn put(&mut self, link: LinkId, txn_id: &Bytes, text: &str) -> Outcome {
        let message = Message { body: Body::Value(Value::string(text)), ..Message::default() };
        let sent = self.peer.client.send_in(link, encode_message(&message), Some(txn_id));
        let id = sent.expect("credit");
        self.peer.until(|event| match event {
            Event::Outcome(_, of, Outcome::Transactional { outcome, .. }) if of == id => {
                Some(*outcome.expect("an outcome"))
            }
            _ => None,
        })
    }

    fn accept(&mut self, delivery: &Delivery, txn_id: &Bytes) {
        let outcome = Some(Box::new(Outcome::Accepted));
        let state = Outcome::Transactional { txn_id: txn_id.clone(), outcome };
        self.peer.client.settle(delivery.id, delivery.id, state);
    }
}

/// All that is in a queue, accepted, with how often each was delivered before.
fn taken(port: u16, queue: &str, count: usize) -> Vec<(String, u32)> {
    let mut peer = Peer::connect(port, Login::Anonymous).expect("let in");
    peer.receiver(queue);
    let take = |_| {
        let (delivery, message) = peer.message();
        peer.client.settle(delivery.id, delivery.id, Outcome::Accepted);
        let Body::Value(Value::String(text)) = message.body else { panic!("no text") };
        (text, message.header.delivery_count)
    };
    let mut found: Vec<_> = (0..count).map(take).collect();
    found.sort();
    peer.client.close();
    peer.until(|event| (event == Event::Closed).then_some(()));
    found
}

fn text(text: &str, count: u32) -> (String, u32) {
    (text.to_owned(), count)
}

fn is_refused(outcome: Outcome, wanted: &str) -> Condition {
    let Outcome::Rejected(why) = outcome else { panic!("{outcome:?}") };
    assert_eq!(why.condition, wanted, "{why}");
    why
}

#[test]
fn messages_of_a_transaction_are_there_when_it_is_committed() {
    let port = free_port();
    let mut node = TestNode::start_with(&[&format!("amqp.listener=127.0.0.1:{port}"), "num.partitions=1"]);
    let mut controller = Controller::anonymous(port);
    let (orders, bills) = (controller.sender("orders"), controller.sender("bills"));

    let undone = controller.declare();
    assert_eq!(controller.put(orders, &undone, "undone"), Outcome::Accepted);
    assert_eq!(controller.end(&undone, true), Outcome::Accepted);

    // One batch; then a Kafka transaction over two topics.
    let first = controller.declare();
    assert_eq!(controller.put(orders, &first, "one"), Outcome::Accepted);
    let second = controller.declare();
    assert_eq!(controller.put(orders, &second, "two"), Outcome::Accepted);
    assert_eq!(controller.put(bills, &second, "bill"), Outcome::Accepted);
    assert_eq!(controller.peer.put("orders", "outside"), Outcome::Accepted);
    assert_eq!(taken(port, "orders", 1), [text("outside", 0)], "nothing before a commit");
    controller.commit(&second);
    controller.commit(&first);
    assert_eq!(taken(port, "orders", 2), [text("one", 0), text("two", 0)]);
    assert_eq!(taken(port, "bills", 1), [text("bill", 0)]);

    is_refused(controller.end(&first, false), UNKNOWN_TRANSACTION);
    is_refused(controller.put(orders, &first, "late"), UNKNOWN_TRANSACTION);
    // What is not discharged goes with the connection.
    let lost = controller.declare();
    assert_eq!(controller.put(orders, &lost, "lost"), Outcome::Accepted);
    drop(controller);
    let mut last = Controller::anonymous(port);
    assert_eq!(last.peer.put("orders", "last"), Outcome::Accepted);
    // The share fetch of a receiver that has just left may have had it.
    assert_eq!(taken(port, "orders", 1)[0].0, "last");
    assert!(node.stop().success());
}

#[test]
fn accepted_messages_come_again_until_the_transaction_is_committed() {
    let port = free_port();
    let mut node = TestNode::start_with(&[&format!("amqp.listener=127.0.0.1:{port}"), "num.partitions=1"]);
    let mut controller = Controller::anonymous(port);
    assert_eq!(controller.peer.put("orders", "one"), Outcome::Accepted);
    let replies = controller.sender("replies");
    let link = controller.peer.receiver("orders");

    // Rolled back: it comes again. Moved: the reply is there, the message is gone.
    for (fail, count) in [(true, 0), (false, 1)] {
        let (delivery, message) = controller.peer.message();
        assert_eq!(message.header.delivery_count, count);
        let txn_id = controller.declare();
        controller.accept(&delivery, &txn_id);
        assert_eq!(controller.put(replies, &txn_id, "reply"), Outcome::Accepted);
        assert_eq!(controller.end(&txn_id, fail), Outcome::Accepted);
    }
    assert_eq!(taken(port, "replies", 1), [text("reply", 0)]);

    // The link is gone before the commit: what it accepted is accepted.
    assert_eq!(controller.peer.put("orders", "two"), Outcome::Accepted);
    let (delivery, _) = controller.peer.message();
    let txn_id = controller.declare();
    controller.accept(&delivery, &txn_id);
    controller.peer.client.detach(link);
    controller.peer.until(|event| matches!(event, Event::Detached(of, _) if of == link).then_some(()));
    controller.commit(&txn_id);

    // The connection is lost: what it accepted goes back.
    controller.peer.receiver("orders");
    assert_eq!(controller.peer.put("orders", "three"), Outcome::Accepted);
    let (delivery, message) = controller.peer.message();
    assert_eq!(message.body, Body::Value(Value::string("three")), "two is gone");
    let txn_id = controller.declare();
    controller.accept(&delivery, &txn_id);
    let again = controller.declare();
    controller.end(&again, true);
    drop(controller);
    let came_again = taken(port, "orders", 1);
    // The share fetch of the lost connection may have had it once more.
    assert!(came_again[0].0 == "three" && came_again[0].1 >= 1, "{came_again:?}");
    assert!(node.stop().success());
}

#[test]
fn transaction_with_a_message_that_cannot_be_taken_rolls_back() {
    let port = free_port();
    let mut node = TestNode::start_with(&[&format!("amqp.listener=127.0.0.1:{port}"), "num.partitions=1"]);
    node.client().create_topic("orders", 1, &[("max.message.bytes", "20000")]);
    let mut controller = Controller::anonymous(port);
    let orders = controller.sender("orders");
    let too_large = "x".repeat(3_000_000);
    let txn_id = controller.declare();
    assert_eq!(controller.put(orders, &txn_id, "small"), Outcome::Accepted);
    assert_eq!(controller.put(orders, &txn_id, &too_large), Outcome::Accepted);
    let why = is_refused(controller.end(&txn_id, false), TRANSACTION_ROLLBACK);
    assert!(why.description.contains("MESSAGE_TOO_LARGE"), "{why}");

    // Over the bytes of a transaction: it is known at once.
    let txn_id = controller.declare();
    assert_eq!(controller.put(orders, &txn_id, &too_large), Outcome::Accepted);
    assert_eq!(controller.put(orders, &txn_id, &too_large), Outcome::Accepted);
    is_refused(controller.put(orders, &txn_id, &too_large), "amqp:resource-limit-exceeded");
    is_refused(controller.end(&txn_id, false), TRANSACTION_ROLLBACK);
    let txn_id = controller.declare();
    assert_eq!(controller.put(orders, &txn_id, "whole"), Outcome::Accepted);
    controller.commit(&txn_id);
    assert_eq!(taken(port, "orders", 1), [text("whole", 0)]);
    assert!(node.stop().success());
}

#[test]
fn transaction_over_two_topics_needs_a_right_on_its_id() {
    const TOPIC: i8 = 2;
    const TRANSACTIONAL_ID: i8 = 5;
    const LITERAL: i8 = 3;
    const PREFIXED: i8 = 4;
    const WRITE: i8 = 4;
    let port = free_port();
    let listener = format!("amqp.listener=127.0.0.1:{port}");
    let mut settings = vec![&listener[..], "num.partitions=1"];
    settings.extend(OPEN);
    let (mut node, _) = node("PLAIN", &[("alice", "alice-secret")], &settings);
    node.launch();
    let mut client = node.client();
    for topic in ["orders", "bills"] {
        client.create_topic(topic, 1, &[]);
    }
    let alice = "User:alice";
    allow(
        &mut client,
        &[
            (TOPIC, "orders", LITERAL, alice, WRITE),
            (TOPIC, "bills", LITERAL, alice, WRITE),
            (TRANSACTIONAL_ID, "others-", PREFIXED, alice, WRITE),
            (TRANSACTIONAL_ID, "amqp-", PREFIXED, "User:bob", WRITE),
        ],
    );
    let login = Login::Plain { user: "alice".to_owned(), password: "alice-secret".to_owned() };
    let mut controller = Controller::connect(port, login);
    let (orders, bills) = (controller.sender("orders"), controller.sender("bills"));
    let mut commit = |links: &[LinkId]| {
        let txn_id = controller.declare();
        for link in links {
            assert_eq!(controller.put(*link, &txn_id, "x"), Outcome::Accepted);
        }
        controller.end(&txn_id, false)
    };
    assert_eq!(commit(&[orders, orders]), Outcome::Accepted, "one batch");
    let why = is_refused(commit(&[orders, bills]), TRANSACTION_ROLLBACK);
    assert!(why.description.contains("TRANSACTIONAL_ID_AUTHORIZATION_FAILED"), "{why}");
    allow(&mut client, &[(TRANSACTIONAL_ID, "amqp-", PREFIXED, alice, WRITE)]);
    // The broker learns of it from the metadata log.
    sleep(Duration::from_secs(1));
    assert_eq!(commit(&[orders, bills]), Outcome::Accepted);
    assert!(node.stop_expecting_trouble().success());
}
