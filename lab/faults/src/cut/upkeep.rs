//! What else is acknowledged while records flow: committed offsets, and topics that are made, written and deleted.

use super::writer::Shared;
use crate::kafka::{Connection, Place, patiently};
use crate::records::{Stamp, batch};
use crate::{Trouble, trouble};
use barnabas_base::{ErrorCode, TimestampMs};
use barnabas_wire::messages::delete_topics_request::DeleteTopicState;
use barnabas_wire::messages::metadata_response::MetadataResponseTopic;
use barnabas_wire::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use barnabas_wire::messages::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use barnabas_wire::messages::{
    DeleteTopicsRequest, MetadataRequest, OffsetCommitRequest, OffsetFetchRequest,
};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Groups hash to all partitions of `__consumer_offsets`.
const GROUPS: usize = 6;
const GROUP_TOPIC: &str = "strict";
const GROUP_PARTITIONS: i32 = 6;
/// More topics than this are not kept.
const TOPICS_MAX: usize = 12;
const SETTLE: Duration = Duration::from_secs(3);

/// Who commits offsets.
#[derive(Debug, Default)]
pub struct Offsets {
    attempted: [i64; GROUPS],
    acked: [i64; GROUPS],
    pub commits: u64,
}

impl Offsets {
    pub fn run(&mut self, port: u16, shared: &Shared) {
        shared.reconnect(|| self.session(port, shared));
    }

    fn session(&mut self, port: u16, shared: &Shared) -> Result<(), Trouble> {
        let mut connection = Connection::open(port)?;
        for group in (0..GROUPS).cycle() {
            if !shared.goes_on() {
                break;
            }
            self.attempted[group] += 1;
            let offset = self.attempted[group];
            if commit(&mut connection, group, offset)? {
                self.acked[group] = offset;
                self.commits += 1;
            }
        }
        Ok(())
    }

    /// What the node says was committed lies between what it acknowledged and what it was sent. Returns what is wrong.
    pub fn check(&mut self, connection: &mut Connection) -> Result<Vec<String>, Trouble> {
        let mut wrong = Vec::new();
        for group in 0..GROUPS {
            if self.attempted[group] == 0 {
                continue;
            }
            for (partition, found) in committed(connection, group)? {
                let (low, high) = (self.acked[group], self.attempted[group]);
                let is_right = (low..=high).contains(&found) || (low == 0 && found == -1);
                if !is_right {
                    wrong.push(format!(
                        "group g{group}, partition {partition}: committed {low}..{high}, found {found}"
                    ));
                }
            }
        }
        Ok(wrong)
    }
}

fn commit(connection: &mut Connection, group: usize, offset: i64) -> Result<bool, Trouble> {
    let partition = |partition_index| OffsetCommitRequestPartition {
        partition_index,
        committed_offset: offset,
        ..Default::default()
    };
    let topic = OffsetCommitRequestTopic {
        name: GROUP_TOPIC.into(),
        partitions: (0..GROUP_PARTITIONS).map(partition).collect(),
        ..Default::default()
    };
    let request = OffsetCommitRequest {
        group_id: format!("g{group}").as_str().into(),
        generation_id_or_member_epoch: -1,
        topics: vec![topic],
        ..Default::default()
    };
    let answer = connection.call(&request, 8)?;
    let told = answer.topics.iter().flat_map(|topic| &topic.partitions);
    Ok(told.into_iter().all(|partition| partition.error_code == 0) && !answer.topics.is_empty())
}

fn committed(connection: &mut Connection, group: usize) -> Result<Vec<(i32, i64)>, Trouble> {
    let topic = OffsetFetchRequestTopics {
        name: GROUP_TOPIC.into(),
        partition_indexes: (0..GROUP_PARTITIONS).collect(),
        ..Default::default()
    };
    let asked = OffsetFetchRequestGroup {
        group_id: format!("g{group}").as_str().into(),
        topics: Some(vec![topic]),
        ..Default::default()
    };
    let request = OffsetFetchRequest { groups: vec![asked], require_stable: true, ..Default::default() };
    patiently("committed offsets", || {
        let mut answer = connection.call(&request, 8)?;
        let Some(told) = answer.groups.pop() else { return trouble("OffsetFetch names no group") };
        let partitions = told.topics.iter().flat_map(|topic| &topic.partitions);
        let offsets = partitions.map(|partition| (partition.partition_index, partition.committed_offset));
        Ok((told.error_code, offsets.collect()))
    })
}

/// Against the beginning of the cut.
fn when(since: Instant, cut: Instant) -> String {
    match cut.checked_duration_since(since) {
        Some(before) => format!("{} µs before the cut", before.as_micros()),
        None => format!("{} µs into the cut", since.duration_since(cut).as_micros()),
    }
}

/// When the file system was shut down: between these two.
#[derive(Debug, Clone, Copy)]
pub struct Cut {
    pub begun: Instant,
    pub done: Instant,
}

impl Cut {
    /// A sync in progress while the file system shuts down may report success although nothing reached the device
    /// (the written data was in preallocated extents, and their conversion is dropped); a machine without power
    /// reports nothing. The rig also sees only when it read an answer, which on a busy machine is later than when it
    /// was sent. So answers from before the cut count, and requests from after it do; those in between do not count
    /// either way.
    pub fn straddles(&self, asked: Instant, answered: Instant) -> bool {
        asked <= self.done && answered >= self.begun
    }
}

/// Every topic and its number of partitions.
fn topics_of(connection: &mut Connection) -> Result<BTreeMap<String, usize>, Trouble> {
    let answer = connection.call(&MetadataRequest { topics: None, ..Default::default() }, 9)?;
    let named =
        |topic: &MetadataResponseTopic| Some((topic.name.as_ref()?.to_string(), topic.partitions.len()));
    Ok(answer.topics.iter().filter_map(named).collect())
}

/// What must be true of a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    Made,
    /// The answer to its creation or deletion did not come.
    Unsure,
    Deleted,
}

#[derive(Debug)]
struct Topic {
    partitions: i32,
    known: Known,
    /// Its record was acknowledged: when it was sent, and when that was told.
    holds: Option<(Instant, Instant)>,
    /// When what is known of it was asked for, and acknowledged.
    asked: Instant,
    since: Instant,
}

/// Who makes and deletes topics.
#[derive(Debug, Default)]
pub struct Topics {
    list: BTreeMap<String, Topic>,
    next: u64,
    pub acked: u64,
    /// The longest that a node that had answered took to know all topics.
    pub late: Duration,
    /// Answers that came while a cut was being made.
    pub uncounted: u64,
}

impl Topics {
    pub fn run(&mut self, port: u16, shared: &Shared) {
        shared.reconnect(|| self.session(port, shared));
    }

    fn session(&mut self, port: u16, shared: &Shared) -> Result<(), Trouble> {
        let mut connection = Connection::open(port)?;
        while shared.goes_on() {
            self.make(&mut connection)?;
            let made = self.list.iter().filter(|(_, topic)| topic.known == Known::Made);
            let oldest = made.clone().next().map(|(name, _)| name.clone());
            if made.count() > TOPICS_MAX
                && let Some(name) = oldest
            {
                self.delete(&mut connection, &name)?;
            }
            std::thread::sleep(Duration::from_millis(4));
        }
        Ok(())
    }

    fn make(&mut self, connection: &mut Connection) -> Result<(), Trouble> {
        let name = format!("made-{:06}", self.next);
        let partitions = if self.next.is_multiple_of(10) { 20 } else { 1 + (self.next % 4) as i32 };
        self.next += 1;
        self.list.insert(
            name.clone(),
            Topic {
                partitions,
                known: Known::Unsure,
                holds: None,
                asked: Instant::now(),
                since: Instant::now(),
            },
        );
        let code = connection.create_topic(&name, partitions, &[])?;
        if code != ErrorCode::None {
            return trouble(format!("{name}: {code}"));
        }
        self.note(&name, Known::Made);
        let place = Place { topic: name.clone(), partition: 0 };
        let stamp = Stamp { writer: super::PLAIN_WRITERS, number: 0 };
        let records = batch(None, stamp, 1, 30, TimestampMs(1))?;
        let sent = Instant::now();
        if connection.produce(&place, -1, records)?.is_ok()
            && let Some(topic) = self.list.get_mut(&name)
        {
            topic.holds = Some((sent, Instant::now()));
        }
        Ok(())
    }

    fn note(&mut self, name: &str, known: Known) {
        if let Some(topic) = self.list.get_mut(name) {
            topic.known = known;
            topic.since = Instant::now();
            if known == Known::Unsure {
                topic.asked = topic.since;
            }
        }
        self.acked += u64::from(known != Known::Unsure);
    }

    fn delete(&mut self, connection: &mut Connection, name: &str) -> Result<(), Trouble> {
        self.note(name, Known::Unsure);
        let state = DeleteTopicState { name: Some(name.into()), ..Default::default() };
        let request = DeleteTopicsRequest { topics: vec![state], timeout_ms: 10_000, ..Default::default() };
        let answer = connection.call(&request, 6)?;
        if answer.responses.first().is_some_and(|told| told.error_code == 0) {
            self.note(name, Known::Deleted);
        }
        Ok(())
    }

    fn is_right(&self, there: &BTreeMap<String, usize>) -> bool {
        self.list.iter().all(|(name, topic)| match topic.known {
            Known::Made => there.contains_key(name),
            Known::Deleted => !there.contains_key(name),
            Known::Unsure => true,
        })
    }

    /// What the node knows is what it acknowledged. Returns what is wrong; what was unsure is settled.
    pub fn check(&mut self, connection: &mut Connection, cut: Cut) -> Result<Vec<String>, Trouble> {
        for topic in self.list.values_mut() {
            topic.holds = topic.holds.filter(|&(sent, told)| !cut.straddles(sent, told));
            if cut.straddles(topic.asked, topic.since) {
                self.uncounted += u64::from(topic.known != Known::Unsure);
                topic.known = Known::Unsure;
                topic.holds = None;
            }
        }
        // A node that has just started may know its newest topics a moment later.
        let begun = Instant::now();
        let mut there = topics_of(connection)?;
        while !self.is_right(&there) && begun.elapsed() < SETTLE {
            std::thread::sleep(Duration::from_millis(5));
            there = topics_of(connection)?;
            self.late = self.late.max(begun.elapsed());
        }
        let mut wrong = Vec::new();
        for (name, topic) in &mut self.list {
            let found = there.get(name);
            match (topic.known, found) {
                (Known::Made, None) => {
                    wrong.push(format!("topic {name} was made {} and is gone", when(topic.since, cut.begun)))
                }
                (Known::Deleted, Some(_)) => wrong
                    .push(format!("topic {name} was deleted {} and is back", when(topic.since, cut.begun))),
                (Known::Unsure | Known::Made, Some(&count)) if count != topic.partitions as usize => {
                    wrong.push(format!("topic {name} has {count} of {} partitions", topic.partitions));
                }
                _ => {}
            }
            topic.known = if found.is_some() { Known::Made } else { Known::Deleted };
            if topic.holds.is_some() && found.is_some() {
                let place = Place { topic: name.clone(), partition: 0 };
                let end = connection.list_offset(&place, -1)?;
                if end != 1 {
                    wrong.push(format!("{place} had one record and ends at {end}"));
                }
            }
        }
        self.list.retain(|_, topic| topic.known != Known::Deleted);
        Ok(wrong)
    }
}
