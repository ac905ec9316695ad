//! One unit of work: the records of its messages, their ids, and how each delivery is to be settled. Pure, except
//! that it reads the clock for the ages of messages.
//!
//! A record that its topic refuses as too large becomes a dead letter; a letter that is refused shrinks; what still
//! does not go is rejected at the peer, as a message that is poison without a dead-letter topic.

use super::came::{Came, Read};
use crate::config::{Config, SourceConfig};
use crate::dead_letters::{Letter, Origin};
use crate::state::{Id, State};
use barnabas_amqp::{Condition, Outcome};
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
    came: Came,
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
    /// How each message is settled, in the order in which they came.
    pub outcomes: Vec<Outcome>,
    /// What is rejected, with its place among the outcomes.
    rejects: Vec<(usize, Came)>,
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

    /// Takes a message in; `cut` says why it is not whole. Returns what the log should say of it.
    pub fn take(
        &mut self,
        config: &Config,
        source: &SourceConfig,
        state: &State,
        came: Came,
        cut: Option<String>,
    ) -> Option<String> {
        self.bytes += came.bytes();
        self.outcomes.push(Outcome::Accepted);
        let at = self.outcomes.len() - 1;
        if let Some(why) = cut {
            return Some(self.reject(at, came, why));
        }
        let message = match came.read() {
            Ok(message) => message,
            Err(why) => return self.poison(config, at, None, came, why),
        };
        let id = message.id();
        if id.is_some_and(|id| state.knows(id) || !self.seen.insert(id)) {
            self.skipped += 1;
            return None;
        }
        if let Some(at) = message.created_ms() {
            self.oldest = Some(self.oldest.map_or(at, |oldest| oldest.min(at)));
        }
        match message.record(&source.rules) {
            Ok(record) => {
                let written = Written::Record(record);
                self.entries.push(Entry { written, delivery: at, id, came });
                None
            }
            Err(why) => self.poison(config, at, Some((&message, id)), came, why),
        }
    }

    /// To the dead-letter topic, or back to the peer, which has its own place for such messages.
    fn poison(
        &mut self,
        config: &Config,
        delivery: usize,
        message: Option<(&Read, Option<Id>)>,
        came: Came,
        why: String,
    ) -> Option<String> {
        let Some(topic) = &config.dead_letters else { return Some(self.reject(delivery, came, why)) };
        let letter = letter(config, message.map(|(message, _)| message), &came, &why);
        let id = message.and_then(|(_, id)| id);
        self.entries.push(Entry { written: Written::Letter(Box::new(letter)), delivery, id, came });
        Some(format!("a message goes to the dead-letter topic {topic}: {why}"))
    }

    fn reject(&mut self, delivery: usize, came: Came, why: String) -> String {
        self.rejected += 1;
        self.rejects.push((delivery, came));
        let line = format!("a message is rejected at the peer: {why}");
        self.outcomes[delivery] = Outcome::Rejected(Condition::new("amqp:not-implemented", why));
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
        let message = entry.came.read().ok();
        let id = message.as_ref().and_then(Read::name);
        let name = id.unwrap_or_else(|| "without an id".to_owned());
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
            let made = letter(config, message.as_ref(), &entry.came, &why);
            entry.written = Written::Letter(Box::new(made));
            return Some(format!("{why}; it goes to the dead-letter topic {letters}"));
        }
        let entry = self.entries.remove(at);
        Some(self.reject(entry.delivery, entry.came, why))
    }

    /// What is rejected, and why, in the order in which it was.
    pub fn rejects(&self) -> impl Iterator<Item = (&Came, &Outcome)> {
        self.rejects.iter().map(|(at, came)| (came, &self.outcomes[*at]))
    }

    /// How long ago its oldest message was made; −1: no message has a date.
    pub fn oldest_ms(&self) -> i64 {
        let Some(oldest) = self.oldest else { return -1 };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
        now.saturating_sub(oldest).max(0)
    }
}

/// The letter of a message: its body, or all of it where it is no message.
fn letter(config: &Config, message: Option<&Read>, came: &Came, why: &str) -> Letter {
    let all = || Outgoing { value: Some(came.payload().clone()), ..Outgoing::default() };
    let record = message.map_or_else(all, Read::letter);
    let origin = Origin { connector: &config.name, stage: "VALUE_CONVERTER", record: None };
    Letter::new(record, config.dead_letter_reasons.then_some((origin, why)))
}

#[cfg(test)]
mod tests;
