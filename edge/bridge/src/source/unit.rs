//! One unit of work: the records of its messages, their ids, and how each delivery is to be settled. Pure, except
//! that it reads the clock for the ages of messages.

use crate::config::{Config, SourceConfig};
use crate::convert;
use crate::dead_letters::{Origin, with_reason};
use crate::state::{Id, State};
use barnabas_amqp::{Condition, Delivery, DeliveryId, Message, Outcome, decode_message};
use barnabas_client::Outgoing;
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Debug, Default)]
pub(super) struct Unit {
    /// Topic and record.
    pub records: Vec<(String, Outgoing)>,
    pub ids: Vec<Id>,
    pub outcomes: Vec<(DeliveryId, Outcome)>,
    pub bytes: usize,
    pub dead_letters: u64,
    pub rejected: u64,
    pub skipped: u64,
    pub without_id: u64,
    oldest: Option<i64>,
}

impl Unit {
    pub fn len(&self) -> usize {
        self.outcomes.len()
    }

    /// Takes a delivery in. Returns what the log should say of it.
    pub fn take(
        &mut self,
        config: &Config,
        source: &SourceConfig,
        state: &State,
        delivery: &Delivery,
    ) -> Option<String> {
        self.bytes += delivery.payload.len();
        if delivery.size_bytes > delivery.payload.len() as u64 {
            let why =
                format!("a message of {} bytes is larger than amqp.message.bytes.max", delivery.size_bytes);
            return Some(self.reject(delivery, why));
        }
        let message = match decode_message(delivery.payload.clone()) {
            Ok(message) => message,
            Err(error) => return self.poison(config, None, delivery, error.to_string()),
        };
        let id = Id::of(message.properties.message_id.as_ref());
        let was_committed = id.is_some_and(|id| state.knows(id) || self.ids.contains(&id));
        if was_committed {
            self.skipped += 1;
            self.outcomes.push((delivery.id, Outcome::Accepted));
            return None;
        }
        if let Some(at) = message.properties.creation_time_ms {
            self.oldest = Some(self.oldest.map_or(at, |oldest| oldest.min(at)));
        }
        match convert::record(source, &message) {
            Ok(record) => {
                self.records.push((source.topic.clone(), record));
                self.accept(delivery, id);
                None
            }
            Err(why) => self.poison(config, Some((&message, id)), delivery, why),
        }
    }

    fn accept(&mut self, delivery: &Delivery, id: Option<Id>) {
        match id {
            Some(id) => self.ids.push(id),
            None => self.without_id += 1,
        }
        self.outcomes.push((delivery.id, Outcome::Accepted));
    }

    /// To the dead-letter topic, or back to the peer, which has its own place for such messages.
    fn poison(
        &mut self,
        config: &Config,
        message: Option<(&Message, Option<Id>)>,
        delivery: &Delivery,
        why: String,
    ) -> Option<String> {
        let Some(topic) = &config.dead_letters else { return Some(self.reject(delivery, why)) };
        let mut letter = Outgoing { value: Some(delivery.payload.clone()), ..Outgoing::default() };
        if let Some((message, _)) = message {
            letter.value = convert::value(&message.body);
            letter.headers = convert::headers(message);
        }
        if config.dead_letter_reasons {
            let origin = Origin { connector: &config.name, stage: "VALUE_CONVERTER", record: None };
            letter = with_reason(letter, origin, &why);
        }
        self.records.push((topic.clone(), letter));
        self.dead_letters += 1;
        self.accept(delivery, message.and_then(|(_, id)| id));
        Some(format!("a message goes to the dead-letter topic {topic}: {why}"))
    }

    fn reject(&mut self, delivery: &Delivery, why: String) -> String {
        self.rejected += 1;
        let line = format!("a message is rejected at the peer: {why}");
        self.outcomes.push((delivery.id, Outcome::Rejected(Condition::new("amqp:not-implemented", why))));
        line
    }

    /// How long ago its oldest message was made; −1: no message has a date.
    pub fn oldest_ms(&self) -> i64 {
        let Some(oldest) = self.oldest else { return -1 };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
        now.saturating_sub(oldest).max(0)
    }
}

#[cfg(test)]
mod tests {
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
        Delivery {
            link: link(),
            id: DeliveryId(n),
            tag: Bytes::new(),
            is_settled: false,
            payload,
            size_bytes,
        }
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
        assert_eq!((unit.records.len(), unit.ids.len(), unit.skipped), (1, 1, 2));
        assert!(unit.outcomes.iter().all(|(_, outcome)| *outcome == Outcome::Accepted));
        assert_eq!(unit.len(), 3);
    }

    #[test]
    fn message_without_id_is_never_skipped() {
        let unit = unit(FILE, &State::default(), &[delivery(0, None, "1"), delivery(1, None, "1")]);
        assert_eq!((unit.records.len(), unit.ids.len(), unit.without_id), (2, 0, 2));
    }

    #[test]
    fn poison_goes_to_the_topic_or_back_and_the_rest_goes_on() {
        let mut garbage = delivery(1, None, "");
        garbage.payload = Bytes::from_static(b"\xff");
        garbage.size_bytes = 1;
        let messages = [delivery(0, Some("x"), "{not json"), garbage, delivery(2, Some("y"), "{}")];
        let back = unit(FILE, &State::default(), &messages);
        assert_eq!((back.records.len(), back.rejected, back.dead_letters), (1, 2, 0));
        let rejected = |outcome: &Outcome| matches!(outcome, Outcome::Rejected(_));
        assert_eq!(back.outcomes.iter().filter(|(_, outcome)| rejected(outcome)).count(), 2);
        let file = format!("{FILE}errors.deadletterqueue.topic.name=dead\n");
        let kept = unit(&file, &State::default(), &messages);
        let topics: Vec<&str> = kept.records.iter().map(|(topic, _)| topic.as_str()).collect();
        assert_eq!(topics, ["dead", "dead", "t"]);
        let letter = &kept.records[0].1;
        assert_eq!(letter.value.as_deref(), Some(&b"{not json"[..]));
        let why = letter.headers.iter().find(|(name, _)| name == "__connect.errors.exception.message");
        let why = why.and_then(|(_, value)| value.as_deref()).expect("a reason");
        assert!(why.starts_with(b"the body is not JSON"));
        assert_eq!((kept.ids.len(), kept.without_id), (2, 1));
    }

    #[test]
    fn message_that_was_cut_is_rejected() {
        let mut large = delivery(0, Some("l"), "1");
        large.size_bytes += 1;
        let file = format!("{FILE}errors.deadletterqueue.topic.name=dead\n");
        let unit = unit(&file, &State::default(), &[large]);
        assert_eq!((unit.records.len(), unit.rejected), (0, 1));
    }
}
