//! What becomes of deliveries: records, letters, rejections.

use super::*;
use crate::config::Direction;
use barnabas_amqp::{Body, Client, ClientConfig, LinkId, Properties, Value, encode_message};
use bytes::Bytes;

const FILE: &str = "name=n\nconnector.class=source\ntopic=t\nbootstrap.servers=b:1\n\
                    amqp.url=amqp://h\nmq.queue=q\nmq.record.builder=JsonRecordBuilder\n";

/// A link's id comes only from a client.
fn link() -> LinkId {
    use barnabas_amqp::{Begin, Open, Performative, ReceiverConfig, encode_frame};
    use barnabas_base::MonotonicMs;
    let config = ClientConfig { login: barnabas_amqp::Login::None, ..ClientConfig::default() };
    let mut client = Client::new(config, MonotonicMs(0));
    let mut bytes = bytes::BytesMut::from(&barnabas_amqp::HEADER_AMQP[..]);
    encode_frame(&mut bytes, 0, Some(&Performative::Open(Open::default())), &[]);
    encode_frame(&mut bytes, 0, Some(&Performative::Begin(Begin::default())), &[]);
    client.receive(&bytes, MonotonicMs(0)).expect("ready");
    let name = String::new;
    let config = ReceiverConfig { name: name(), address: name(), capabilities: Vec::new(), filter: None };
    client.attach_receiver(&config).expect("ready")
}

fn delivery(n: u32, id: Option<&str>, body: &str) -> Delivery {
    let properties = Properties { message_id: id.map(Value::string), ..Properties::default() };
    let body = Body::Data(Bytes::copy_from_slice(body.as_bytes()));
    let payload = encode_message(&Message { properties, body, ..Message::default() });
    let size_bytes = payload.len() as u64;
    Delivery { link: link(), id: DeliveryId(n), tag: Bytes::new(), is_settled: false, payload, size_bytes }
}

fn written(file: &str, unit: &Unit) -> Vec<(String, Outgoing)> {
    let config = Config::parse(file).expect("a source");
    let Direction::Source(source) = &config.direction else { panic!("a sink") };
    let records = unit.records(&config, source);
    records.map(|(topic, record)| (topic.to_owned(), record.clone())).collect()
}

fn unit(file: &str, state: &State, deliveries: &[Delivery]) -> Unit {
    let config = Config::parse(file).expect("a source");
    let Direction::Source(source) = &config.direction else { panic!("a sink") };
    let mut unit = Unit::default();
    for delivery in deliveries {
        unit.take(&config, source, state, delivery);
    }
    unit
}

#[test]
fn message_that_was_committed_is_settled_and_not_written_again() {
    let mut state = State::default();
    state.committed(vec![Id::of(Some(&Value::string("a"))).expect("an id")]);
    let again = [delivery(0, Some("a"), "1"), delivery(1, Some("b"), "2"), delivery(2, Some("b"), "2")];
    let unit = unit(FILE, &state, &again);
    assert_eq!((unit.entries.len(), unit.ids().len(), unit.skipped), (1, 1, 2));
    assert!(unit.outcomes.iter().all(|(_, outcome)| *outcome == Outcome::Accepted));
    assert_eq!(unit.len(), 3);
}

#[test]
fn message_without_id_is_never_skipped() {
    let unit = unit(FILE, &State::default(), &[delivery(0, None, "1"), delivery(1, None, "1")]);
    assert_eq!((unit.entries.len(), unit.ids().len(), unit.without_id()), (2, 0, 2));
}

#[test]
fn poison_goes_to_the_topic_or_back_and_the_rest_goes_on() {
    let mut garbage = delivery(1, None, "");
    garbage.payload = Bytes::from_static(b"\xff");
    garbage.size_bytes = 1;
    let messages = [delivery(0, Some("x"), "{not json"), garbage, delivery(2, Some("y"), "{}")];
    let back = unit(FILE, &State::default(), &messages);
    assert_eq!((back.entries.len(), back.rejected, back.dead_letters()), (1, 2, 0));
    let rejected = |outcome: &Outcome| matches!(outcome, Outcome::Rejected(_));
    assert_eq!(back.outcomes.iter().filter(|(_, outcome)| rejected(outcome)).count(), 2);
    let file = format!("{FILE}errors.deadletterqueue.topic.name=dead\n");
    let kept = unit(&file, &State::default(), &messages);
    let written = written(&file, &kept);
    let topics: Vec<&str> = written.iter().map(|(topic, _)| topic.as_str()).collect();
    assert_eq!(topics, ["dead", "dead", "t"]);
    let letter = &written[0].1;
    assert_eq!(letter.value.as_deref(), Some(&b"{not json"[..]));
    let why = letter.headers.iter().find(|(name, _)| name == "__connect.errors.exception.message");
    let why = why.and_then(|(_, value)| value.as_deref()).expect("a reason");
    assert!(why.starts_with(b"the body is not JSON"));
    assert_eq!((kept.ids().len(), kept.without_id()), (2, 1));
}

#[test]
fn message_that_was_cut_is_rejected() {
    let mut large = delivery(0, Some("l"), "1");
    large.size_bytes += 1;
    let file = format!("{FILE}errors.deadletterqueue.topic.name=dead\n");
    let unit = unit(&file, &State::default(), &[large]);
    assert_eq!((unit.entries.len(), unit.rejected), (0, 1));
}

/// Refuses the largest record of each topic until nothing changes: what the log says.
fn refuse(file: &str, unit: &mut Unit, topic: &str, times: usize) -> Vec<String> {
    let config = Config::parse(file).expect("a source");
    let Direction::Source(source) = &config.direction else { panic!("a sink") };
    (0..times).map_while(|_| unit.refused(&config, source, topic)).collect()
}

#[test]
fn record_that_is_too_large_becomes_a_letter_that_shrinks_and_is_rejected_last() {
    let file = format!("{FILE}errors.deadletterqueue.topic.name=dead\n");
    let large = format!("\"{}\"", "x".repeat(100_000));
    let messages = [delivery(0, Some("s"), "1"), delivery(1, Some("l"), &large)];
    let mut unit = unit(&file, &State::default(), &messages);
    let said = refuse(&file, &mut unit, "t", 1);
    assert!(
        said[0]
            .starts_with("message l: its record of 100007 bytes is larger than max.message.bytes of topic t")
    );
    assert!(said[0].ends_with("it goes to the dead-letter topic dead"), "{said:?}");
    let topics: Vec<String> = written(&file, &unit).into_iter().map(|(topic, _)| topic).collect();
    assert_eq!((topics, unit.dead_letters()), (vec!["t".to_owned(), "dead".to_owned()], 1));
    let said = refuse(&file, &mut unit, "dead", 9);
    assert_eq!(said.len(), 4, "64 KiB, 1 KiB, without the body, rejected: {said:?}");
    assert!(said[3].starts_with("a message is rejected at the peer: message l"));
    assert_eq!((unit.entries.len(), unit.ids().len(), unit.rejected, unit.dead_letters()), (1, 1, 1, 0));
    assert_eq!(unit.outcomes[0].1, Outcome::Accepted);
    assert!(
        matches!(&unit.outcomes[1].1, Outcome::Rejected(why) if why.description.contains("max.message.bytes"))
    );
}

#[test]
fn record_that_is_too_large_is_rejected_without_a_dead_letter_topic() {
    let mut unit = unit(FILE, &State::default(), &[delivery(0, None, "1")]);
    assert_eq!(refuse(FILE, &mut unit, "other", 1), Vec::<String>::new());
    assert_eq!(refuse(FILE, &mut unit, "t", 2).len(), 1);
    assert_eq!((unit.entries.len(), unit.rejected, unit.len()), (0, 1, 1));
}

#[test]
fn length_takes_the_bytes_of_its_varint() {
    let cases = [(0, 1), (63, 1), (64, 2), (8191, 2), (8192, 3), (1 << 20, 4)];
    assert_eq!(cases.map(|(length, _)| (length, varint_bytes(length))), cases);
}
