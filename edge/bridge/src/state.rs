//! What makes a source exactly once: the ids of each unit of work, in the same transaction as its records.
//!
//! A message whose settlement was lost (a crash, a cut connection) comes again after its record was committed. Its
//! id is then found here, and it is settled without a second record.
//!
//! A compacted topic of one partition, one for each connector, with [`SLOTS`] keys: unit `n` has the key `n mod
//! SLOTS`, so the ids of the last [`SLOTS`] units are kept, and no more. That many units would have to be lost by
//! the peer after it was sent their settlement for one to come twice.
//!
//! A queue manager may back out a unit of work long after: when it finds that a connection is dead, and others have got
//! its later messages since. So the ids of the last unit before a run go into the units of that run too, for
//! [`DOUBTED_FOR`]: [`State::doubt`].
//!
//! ```text
//! key:   u32 slot      value:  u8 version = 1 | u64 unit | 16 bytes of each id's SHA-256 …
//! ```

#[cfg(test)]
mod tests;

use crate::error::BridgeError;
use barnabas_amqp::Value;
use barnabas_base::{ErrorCode, PartitionIndex};
use barnabas_client::{Admin, ClientError, Cluster, Consumer, ConsumerConfig, NewTopic, Outgoing, StartAt};
use barnabas_mq::Descriptor;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use sha2::{Digest, Sha256};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

/// Units that are remembered.
pub const SLOTS: u64 = 64;
/// Longer than a queue manager takes to find that a connection is dead: two heartbeats, of 300 s by default.
pub const DOUBTED_FOR: Duration = Duration::from_secs(900);
const VERSION: u8 = 1;
/// Ids of earlier runs that are carried on: of two units of the most messages.
const DOUBTED_MAX: usize = 10_000;
/// How long one wait for the topic's next records may be.
const READ_WAIT: Duration = Duration::from_millis(200);

/// A message's identity: of its message-id and the id's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Id([u8; 16]);

impl Id {
    /// `None`: the message has no message-id and cannot be recognised.
    pub fn of(message_id: Option<&Value>) -> Option<Self> {
        let mut hash = Sha256::new();
        match message_id? {
            Value::Ulong(n) => hash.update([&[0][..], &n.to_be_bytes()].concat()),
            Value::Uuid(bytes) => hash.update([&[1][..], bytes].concat()),
            Value::Binary(bytes) => hash.update([&[2][..], bytes].concat()),
            Value::String(text) => hash.update([&[3][..], text.as_bytes()].concat()),
            _ => return None,
        }
        hash.finalize().first_chunk::<16>().copied().map(Self)
    }

    /// Of a message of MQ. Its id is not enough: applications set ids, and may set one twice. What a queue manager
    /// changes of a message that it gives out again is left out: how often, what is left of its time, and its
    /// character set.
    pub fn of_mq(md: &Descriptor, data: &[u8]) -> Option<Self> {
        let mut hash = Sha256::new();
        hash.update([4]);
        hash.update(md.msg_id);
        hash.update(md.correl_id);
        hash.update(md.group_id);
        hash.update([md.sequence.to_be_bytes(), md.offset.to_be_bytes()].concat());
        hash.update([&md.put_appl_name[..], &md.put_date, &md.put_time].concat());
        hash.update(data);
        hash.finalize().first_chunk::<16>().copied().map(Self)
    }
}

/// The units that are remembered.
#[derive(Debug, Default)]
pub struct State {
    units: BTreeMap<u64, Vec<Id>>,
    /// In how many of the units.
    known: HashMap<Id, u32>,
    /// Of units of an earlier run, and until when.
    doubted: Option<(Vec<Id>, Instant)>,
}

impl State {
    /// Whether the message is in the topic already.
    pub fn knows(&self, id: Id) -> bool {
        self.known.contains_key(&id)
    }

    /// The last unit's messages may come again at any time within [`DOUBTED_FOR`].
    pub fn doubt(&mut self, now: Instant) {
        let ids = self.units.last_key_value().map(|(_, ids)| ids.clone());
        self.doubted = ids.filter(|ids| !ids.is_empty()).map(|ids| (ids, now + DOUBTED_FOR));
    }

    /// `ids` of a unit, and those that are doubted.
    pub fn with_doubted(&self, mut ids: Vec<Id>) -> Vec<Id> {
        if let Some((doubted, until)) = &self.doubted
            && Instant::now() < *until
        {
            ids.extend(doubted.iter().take(DOUBTED_MAX));
        }
        ids
    }

    /// The record of the next unit.
    pub fn record(&self, ids: &[Id]) -> Outgoing {
        let unit = self.next();
        let mut value = BytesMut::with_capacity(9 + 16 * ids.len());
        value.put_u8(VERSION);
        value.put_u64(unit);
        ids.iter().for_each(|id| value.put_slice(&id.0));
        let key = ((unit % SLOTS) as u32).to_be_bytes();
        Outgoing {
            partition: Some(0),
            key: Some(Bytes::copy_from_slice(&key)),
            value: Some(value.freeze()),
            ..Outgoing::default()
        }
    }

    /// The unit of [`Self::record`] is committed.
    pub fn committed(&mut self, ids: Vec<Id>) {
        let unit = self.next();
        self.insert(unit, ids);
    }

    fn next(&self) -> u64 {
        self.units.last_key_value().map_or(0, |(unit, _)| unit + 1)
    }

    fn insert(&mut self, unit: u64, ids: Vec<Id>) {
        for id in &ids {
            *self.known.entry(*id).or_default() += 1;
        }
        self.units.insert(unit, ids);
        while self.units.len() as u64 > SLOTS
            && let Some((_, gone)) = self.units.pop_first()
        {
            for id in gone {
                if let Entry::Occupied(mut units) = self.known.entry(id) {
                    *units.get_mut() -= 1;
                    if *units.get() == 0 {
                        units.remove();
                    }
                }
            }
        }
    }

    fn take(&mut self, topic: &str, value: Option<Bytes>) -> Result<(), BridgeError> {
        let wrong = |why| BridgeError::State { topic: topic.to_owned(), why };
        // Compaction's tombstones are not ours.
        let Some(mut value) = value else { return Ok(()) };
        if value.len() < 9 || value.get_u8() != VERSION {
            return Err(wrong("a record has another version"));
        }
        let unit = value.get_u64();
        if value.len() % 16 != 0 {
            return Err(wrong("a record ends within an id"));
        }
        let ids = value.chunks_exact(16).filter_map(|id| id.first_chunk::<16>().copied().map(Id));
        self.insert(unit, ids.collect());
        Ok(())
    }
}

/// Makes the topic where it is missing.
///
/// # Errors
/// The cluster's refusal.
pub async fn create_topic(cluster: &mut Cluster, topic: &str) -> Result<(), BridgeError> {
    let tries = cluster.tries(format!("finding topic {topic}"));
    loop {
        match cluster.topic(topic, false).await {
            Ok(_) => return Ok(()),
            Err(error) if error.code() == Some(ErrorCode::UnknownTopicOrPartition) => break,
            Err(error) => tries.after(error).await?,
        }
    }
    let config = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let wanted = NewTopic {
        name: topic.to_owned(),
        partitions: Some(1),
        configs: vec![
            config("cleanup.policy", "compact"),
            // Small segments: what is read at a start stays small.
            config("segment.bytes", "16777216"),
            config("min.cleanable.dirty.ratio", "0.1"),
        ],
        ..NewTopic::default()
    };
    match Admin::new(cluster).create_topic(&wanted).await {
        Err(error) if error.code() == Some(ErrorCode::TopicAlreadyExists) => Ok(()),
        done => Ok(done?),
    }
}

/// Reads the state. The caller has fenced other producers before: what is committed stays so.
///
/// # Errors
/// The topic cannot be read to its end.
pub async fn read(cluster: &mut Cluster, topic: &str) -> Result<State, BridgeError> {
    let partition = PartitionIndex(0);
    let tries = cluster.tries(format!("reading {topic}"));
    let end = loop {
        match cluster.list_offset(topic, partition, -1).await {
            Ok(end) => break end,
            Err(error) => tries.after(error).await?,
        }
    };
    let config = ConsumerConfig { read_committed: true, ..ConsumerConfig::default() };
    let mut consumer = Consumer::new(topic, config);
    consumer.assign([(partition, StartAt::Earliest)]);
    let mut state = State::default();
    loop {
        // The position passes the markers at the end too.
        let is_read = consumer.positions().any(|(_, position)| position >= end);
        if is_read && consumer.is_drained() {
            return Ok(state);
        }
        match consumer.poll(cluster, READ_WAIT).await? {
            Some(record) => state.take(topic, record.value)?,
            None if end.get() == 0 => return Ok(state),
            None => {
                let code = ErrorCode::UnstableOffsetCommit.code();
                tries.after(ClientError::refused(format!("reading {topic}"), code, None)).await?;
            }
        }
    }
}
