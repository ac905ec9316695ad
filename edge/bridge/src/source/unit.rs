//! One unit of work: the records of its messages, their ids, and how each delivery is to be settled. Pure, except
//! that it reads the clock for the ages of messages.
//!
//! A record that its topic refuses as too large becomes a dead letter; a letter that is refused shrinks; what still
//! does not go is rejected at the peer, as a message that is poison without a dead-letter topic.

use crate::config::{Config, SourceConfig};
use crate::dead_letters::{Letter, Origin};
use crate::state::{Id, State};
use barnabas_amqp::{Condition, Delivery, DeliveryId, Message, Outcome, decode_message};
use barnabas_amqp_records as convert;
use barnabas_client::Outgoing;
use bytes::Bytes;
use std::collections::HashSet;
use std::time::{SystemTime, UNIX_EPOCH};

/// Letters of a message-id that the log shows.
const NAME_MAX: usize = 100;

/// What is written for one delivery.
#[derive(Debug)]
enum Written {
    Record(Outgoing),
    Letter(Box<Letter>),
}

#[derive(Debug)]
struct Entry {
    written: Written,
    /// Its place among the outcomes.
    delivery: usize,
    id: Option<Id>,
    payload: Bytes,
}

impl Entry {
    fn record(&self) -> &Outgoing {
        match &self.written {
            Written::Record(record) => record,
            Written::Letter(letter) => &letter.record,
        }
    }

    /// What the record takes in a batch of its own, but for what is the same for all: so the largest is the one that a
    /// topic refuses if it refuses any.
    fn bytes(&self) -> usize {
        let record = self.record();
        let field = |length: usize| varint_bytes(length) + length;
        let of = |bytes: &Option<Bytes>| bytes.as_ref().map_or(1, |bytes| field(bytes.len()));
        let headers = record.headers.iter().map(|(name, value)| field(name.len()) + of(value));
        of(&record.key) + of(&record.value) + varint_bytes(record.headers.len()) + headers.sum::<usize>()
    }
}

/// Bytes of a length as a record holds it: zigzag, seven bits in each (Kafka's `ByteUtils.sizeOfVarint`).
fn varint_bytes(length: usize) -> usize {
    (usize::BITS - (length << 1 | 1).leading_zeros()).div_ceil(7) as usize
}

#[derive(Debug, Default)]
pub(super) struct Unit {
    entries: Vec<Entry>,
    seen: HashSet<Id>,
    pub outcomes: Vec<(DeliveryId, Outcome)>,
    /// Of all payloads.
    pub bytes: usize,
    pub rejected: u64,
    pub skipped: u64,
    oldest: Option<i64>,
}

impl Unit {
    pub fn len(&self) -> usize {
        self.outcomes.len()
    }

    /// Topic and record of each message, in order.
    pub fn records<'a>(
        &'a self,
        config: &'a Config,
        source: &'a SourceConfig,
    ) -> impl Iterator<Item = (&'a str, &'a Outgoing)> {
        let letters = config.dead_letters.as_deref().unwrap_or_default();
        self.entries.iter().map(move |entry| match &entry.written {
            Written::Record(record) => (source.topic.as_str(), record),
            Written::Letter(letter) => (letters, &letter.record),
        })
    }

    /// The ids of its records' messages.
    pub fn ids(&self) -> Vec<Id> {
        self.entries.iter().filter_map(|entry| entry.id).collect()
    }

    pub fn without_id(&self) -> u64 {
        self.entries.iter().filter(|entry| entry.id.is_none()).count() as u64
    }

    pub fn dead_letters(&self) -> u64 {
        self.entries.iter().filter(|entry| matches!(entry.written, Written::Letter(_))).count() as u64
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
        self.outcomes.push((delivery.id, Outcome::Accepted));
        let at = self.outcomes.len() - 1;
        if delivery.size_bytes > delivery.payload.len() as u64 {
            let bytes = delivery.size_bytes;
            let why = format!("a message of {bytes} bytes is larger than amqp.message.bytes.max");
            return Some(self.reject(at, why));
        }
        let payload = delivery.payload.clone();
        let message = match decode_message(payload.clone()) {
            Ok(message) => message,
            Err(error) => return self.poison(config, at, None, payload, error.to_string()),
        };
        let id = Id::of(message.properties.message_id.as_ref());
        if id.is_some_and(|id| state.knows(id) || !self.seen.insert(id)) {
            self.skipped += 1;
            return None;
        }
        if let Some(at) = message.properties.creation_time_ms {
            self.oldest = Some(self.oldest.map_or(at, |oldest| oldest.min(at)));
        }
        match convert::record(&source.rules, &message) {
            Ok(record) => {
                let written = Written::Record(record);
                self.entries.push(Entry { written, delivery: at, id, payload });
                None
            }
            Err(why) => self.poison(config, at, Some((&message, id)), payload, why),
        }
    }

    /// To the dead-letter topic, or back to the peer, which has its own place for such messages.
    fn poison(
        &mut self,
        config: &Config,
        delivery: usize,
        message: Option<(&Message, Option<Id>)>,
        payload: Bytes,
        why: String,
    ) -> Option<String> {
        let Some(topic) = &config.dead_letters else { return Some(self.reject(delivery, why)) };
        let letter = letter(config, message.map(|(message, _)| message), &payload, &why);
        let id = message.and_then(|(_, id)| id);
        self.entries.push(Entry { written: Written::Letter(Box::new(letter)), delivery, id, payload });
        Some(format!("a message goes to the dead-letter topic {topic}: {why}"))
    }

    fn reject(&mut self, delivery: usize, why: String) -> String {
        self.rejected += 1;
        let line = format!("a message is rejected at the peer: {why}");
        self.outcomes[delivery].1 = Outcome::Rejected(Condition::new("amqp:not-implemented", why));
        line
    }

    /// `topic` has refused a batch of one record as too large: the largest of its records is one that it does not take.
    /// Returns what the log should say; `None`: it has no record here.
    pub fn refused(&mut self, config: &Config, source: &SourceConfig, topic: &str) -> Option<String> {
        let is_there = |entry: &Entry| match entry.written {
            Written::Record(_) => topic == source.topic,
            Written::Letter(_) => Some(topic) == config.dead_letters.as_deref(),
        };
        let places = (0..self.entries.len()).filter(|at| is_there(&self.entries[*at]));
        let at = places.max_by_key(|at| self.entries[*at].bytes())?;
        let entry = &mut self.entries[at];
        let message = decode_message(entry.payload.clone()).ok();
        let id = message.as_ref().and_then(|message| message.properties.message_id.as_ref());
        let name = id.map_or_else(|| "without an id".to_owned(), convert::text_of);
        let name: String = name.chars().take(NAME_MAX).collect();
        let bytes = entry.bytes();
        let why = format!(
            "message {name}: its record of {bytes} bytes is larger than max.message.bytes of topic {topic}"
        );
        if let Written::Letter(letter) = &mut entry.written
            && letter.shrink()
        {
            return Some(format!("{why}; a part is left out"));
        }
        if let (Written::Record(_), Some(letters)) = (&entry.written, &config.dead_letters) {
            let made = letter(config, message.as_ref(), &entry.payload, &why);
            entry.written = Written::Letter(Box::new(made));
            return Some(format!("{why}; it goes to the dead-letter topic {letters}"));
        }
        let delivery = self.entries.remove(at).delivery;
        Some(self.reject(delivery, why))
    }

    /// How long ago its oldest message was made; −1: no message has a date.
    pub fn oldest_ms(&self) -> i64 {
        let Some(oldest) = self.oldest else { return -1 };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
        now.saturating_sub(oldest).max(0)
    }
}

/// The letter of a message: its body, or all of it where it is no message.
fn letter(config: &Config, message: Option<&Message>, payload: &Bytes, why: &str) -> Letter {
    let mut record = Outgoing { value: Some(payload.clone()), ..Outgoing::default() };
    if let Some(message) = message {
        record.value = convert::value(&message.body);
        record.headers = convert::headers(message);
    }
    let origin = Origin { connector: &config.name, stage: "VALUE_CONVERTER", record: None };
    Letter::new(record, config.dead_letter_reasons.then_some((origin, why)))
}

#[cfg(test)]
mod tests;
