//! What becomes of deliveries: records, letters, rejections.

use super::*;
use crate::config::Direction;
use barnabas_amqp::{Body, Message, Properties, Value, encode_message};
use bytes::Bytes;

const FILE: &str = "name=n\nconnector.class=source\ntopic=t\nbootstrap.servers=b:1\n\
                    amqp.url=amqp://h\nmq.queue=q\nmq.record.builder=JsonRecordBuilder\n";

/// A message, and why it is not whole.
type Delivered = (Came, Option<String>);

fn delivery(id: Option<&str>, body: &str) -> Delivered {
    let properties = Properties { message_id: id.map(Value::string), ..Properties::default() };
    let body = Body::Data(Bytes::copy_from_slice(body.as_bytes()));
    (Came::Amqp(encode_message(&Message { properties, body, ..Message::default() })), None)
}

fn written(file: &str, unit: &Unit) -> Vec<(String, Outgoing)> {
    let config = Config::parse(file).expect("a source");
    let Direction::Source(source) = &config.direction else { panic!("a sink") };
    let records = unit.records(&config, source);
    records.map(|(topic, record)| (topic.to_owned(), record.clone())).collect()
}

fn unit(file: &str, state: &State, deliveries: &[Delivered]) -> Unit {
    let config = Config::parse(file).expect("a source");
    let Direction::Source(source) = &config.direction else { panic!("a sink") };
    let mut unit = Unit::default();
    for (came, cut) in deliveries {
        unit.take(&config, source, state, came.clone(), cut.clone());
    }
    unit
}

#[test]
fn message_that_was_committed_is_settled_and_not_written_again() {
    let mut state = State::default();
    state.committed(vec![Id::of(Some(&Value::string("a"))).expect("an id")]);
    let again = [delivery(Some("a"), "1"), delivery(Some("b"), "2"), delivery(Some("b"), "2")];
    let unit = unit(FILE, &state, &again);
    assert_eq!((unit.entries.len(), unit.ids().len(), unit.skipped), (1, 1, 2));
    assert!(unit.outcomes.iter().all(|outcome| *outcome == Outcome::Accepted));
    assert_eq!(unit.len(), 3);
}

#[test]
fn message_without_id_is_never_skipped() {
    let unit = unit(FILE, &State::default(), &[delivery(None, "1"), delivery(None, "1")]);
    assert_eq!((unit.entries.len(), unit.ids().len(), unit.without_id()), (2, 0, 2));
}

#[test]
fn poison_goes_to_the_topic_or_back_and_the_rest_goes_on() {
    let mut garbage = delivery(None, "");
    garbage.0 = Came::Amqp(Bytes::from_static(b"\xff"));
    let messages = [delivery(Some("x"), "{not json"), garbage, delivery(Some("y"), "{}")];
    let back = unit(FILE, &State::default(), &messages);
    assert_eq!((back.entries.len(), back.rejected, back.dead_letters()), (1, 2, 0));
    let rejected = |outcome: &Outcome| matches!(outcome, Outcome::Rejected(_));
    assert_eq!(back.outcomes.iter().filter(|outcome| rejected(outcome)).count(), 2);
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
    let mut large = delivery(Some("l"), "1");
    large.1 = Some("it is cut".to_owned());
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
    let messages = [delivery(Some("s"), "1"), delivery(Some("l"), &large)];
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
    assert_eq!(unit.outcomes[0], Outcome::Accepted);
    assert!(
        matches!(&unit.outcomes[1], Outcome::Rejected(why) if why.description.contains("max.message.bytes"))
    );
}

#[test]
fn record_that_is_too_large_is_rejected_without_a_dead_letter_topic() {
    let mut unit = unit(FILE, &State::default(), &[delivery(None, "1")]);
    assert_eq!(refuse(FILE, &mut unit, "other", 1), Vec::<String>::new());
    assert_eq!(refuse(FILE, &mut unit, "t", 2).len(), 1);
    assert_eq!((unit.entries.len(), unit.rejected, unit.len()), (0, 1, 1));
}

#[test]
fn length_takes_the_bytes_of_its_varint() {
    let cases = [(0, 1), (63, 1), (64, 2), (8191, 2), (8192, 3), (1 << 20, 4)];
    assert_eq!(cases.map(|(length, _)| (length, varint_bytes(length))), cases);
}

fn of_mq(id: u8, body: &str) -> Delivered {
    let md = barnabas_mq::Descriptor { msg_id: [id; 24], ..barnabas_mq::Descriptor::default() };
    let data = Bytes::copy_from_slice(body.as_bytes());
    let length = data.len() as u32;
    (Came::Mq(Box::new(barnabas_mq::Got { md, data, length })), None)
}

#[test]
fn message_of_mq_is_skipped_by_its_identity_and_not_by_its_id() {
    let (first, again) = (of_mq(1, "1"), of_mq(1, "2"));
    let Ok(read) = first.0.read() else { panic!("unreadable") };
    let mut state = State::default();
    state.committed(vec![read.id().expect("always")]);
    let mut backed_out = first.clone();
    let Came::Mq(got) = &mut backed_out.0 else { panic!("AMQP") };
    (got.md.backout_count, got.md.expiry) = (3, 70);
    let unit = unit(FILE, &state, &[first, backed_out, again.clone(), again]);
    assert_eq!((unit.entries.len(), unit.skipped), (1, 3), "an application used one id for two messages");
}

#[test]
fn rejected_message_is_kept_until_it_has_a_place() {
    let unit = unit(FILE, &State::default(), &[of_mq(1, "1"), of_mq(2, "{not json"), of_mq(3, "3")]);
    let kept: Vec<_> = unit.rejects().map(|(came, _)| came.payload().clone()).collect();
    assert_eq!(kept, ["{not json"]);
    assert_eq!((unit.entries.len(), unit.rejected), (2, 1));
}
