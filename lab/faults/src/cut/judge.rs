//! Reads back what the load wrote and holds the node to what it acknowledged.
//!
//! Per partition, from where the last reading ended: offsets follow one another; each idempotent writer's records are
//! there in its order, none missing and none twice; a writer without sequences has none twice and none out of order;
//! every acknowledged batch stands at the offset that was told; the log begins no lower than what was deleted and ends
//! no lower than what was read.

use super::{Acked, LoadTopic, PLAIN_WRITERS};
use crate::Trouble;
use crate::kafka::{Connection, Place, patiently};
use crate::records::{Found, read};
use barnabas_base::ErrorCode;
use barnabas_wire::messages::DeleteRecordsRequest;
use barnabas_wire::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use std::collections::HashMap;

const FETCH_BYTES: i32 = 16 << 20;
/// Records of a partition that are remembered.
const BEFORE_MAX: usize = 200_000;
/// More than this is not listed.
const WRONG_MAX: usize = 20;

/// What all readings found together.
#[derive(Debug, Default)]
pub struct Verdict {
    pub acked: u64,
    pub read: u64,
    /// Records that were acknowledged with `acks=all`, or that a later one of the same producer says were there.
    pub lost: u64,
    /// Records that were acknowledged with `acks=1`.
    pub lost_one: u64,
    pub doubled: u64,
    pub wrong: Vec<String>,
}

impl Verdict {
    pub fn wrong(&mut self, what: impl Into<String>) {
        if self.wrong.len() < WRONG_MAX {
            self.wrong.push(what.into());
        }
    }

    pub fn is_clean(&self) -> bool {
        self.lost == 0 && self.lost_one == 0 && self.doubled == 0 && self.wrong.is_empty()
    }
}

/// What is known of a partition.
#[derive(Debug, Default)]
struct Known {
    /// Everything below was read after a restart: it must stay.
    read_to: i64,
    /// Each writer's next number.
    next: HashMap<u32, u64>,
    /// Records of the readings before: a batch of then may be answered now.
    before: Vec<Found>,
    /// Deleted up to here, acknowledged.
    floor: i64,
}

/// See the file's header.
#[derive(Debug, Default)]
pub struct Judge {
    partitions: HashMap<Place, Known>,
    pub verdict: Verdict,
}

impl Judge {
    /// Reads every partition of `topics` and compares with what was acknowledged since the last time.
    pub fn read_back(
        &mut self,
        connection: &mut Connection,
        topics: &[LoadTopic],
        acked: Vec<Acked>,
    ) -> Result<(), Trouble> {
        let mut by_place: HashMap<Place, Vec<Acked>> = HashMap::new();
        for batch in acked {
            self.verdict.acked += u64::from(batch.count);
            by_place.entry(batch.place.clone()).or_default().push(batch);
        }
        for topic in topics {
            for partition in 0..topic.partitions {
                let place = Place { topic: topic.name.to_owned(), partition };
                let acked = by_place.remove(&place).unwrap_or_default();
                let known = self.partitions.entry(place.clone()).or_default();
                let reading = Reading {
                    place: &place,
                    shrinks: topic.shrinks,
                    jumped: false,
                    verdict: &mut self.verdict,
                };
                reading.run(connection, known, &acked)?;
            }
        }
        for place in by_place.keys() {
            self.verdict.wrong(format!("{place} was acknowledged and is no partition of the load"));
        }
        Ok(())
    }

    /// Deletes what was read, so that the file system does not fill; the log's start is held to it from now on.
    pub fn trim(&mut self, connection: &mut Connection, topics: &[LoadTopic]) -> Result<(), Trouble> {
        for topic in topics.iter().filter(|topic| !topic.shrinks) {
            for partition in 0..topic.partitions {
                let place = Place { topic: topic.name.to_owned(), partition };
                let Some(known) = self.partitions.get_mut(&place) else { continue };
                delete_records(connection, &place, known.read_to)?;
                known.floor = known.read_to;
            }
        }
        Ok(())
    }
}

fn delete_records(connection: &mut Connection, place: &Place, offset: i64) -> Result<(), Trouble> {
    let partition = DeleteRecordsPartition { partition_index: place.partition, offset, ..Default::default() };
    let topic = DeleteRecordsTopic {
        name: place.topic.as_str().into(),
        partitions: vec![partition],
        ..Default::default()
    };
    let request = DeleteRecordsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() };
    patiently(&format!("deleting records of {place}"), || {
        let answer = connection.call(&request, 2)?;
        let told = answer.topics.first().and_then(|topic| topic.partitions.first());
        let told = told.ok_or_else(|| Trouble("DeleteRecords names no partition".to_owned()))?;
        Ok((told.error_code, ()))
    })
}

struct Reading<'a> {
    place: &'a Place,
    shrinks: bool,
    /// The log's start overtook the reading.
    jumped: bool,
    verdict: &'a mut Verdict,
}

impl Reading<'_> {
    fn run(mut self, connection: &mut Connection, known: &mut Known, acked: &[Acked]) -> Result<(), Trouble> {
        let place = self.place;
        let (start, end) = (connection.list_offset(place, -2)?, connection.list_offset(place, -1)?);
        if start < known.floor {
            self.verdict.wrong(format!("{place}: deleted up to {}, begins at {start}", known.floor));
        }
        if end < known.read_to {
            self.verdict.lost += (known.read_to - end) as u64;
            self.verdict.wrong(format!("{place}: was read up to {}, ends at {end}", known.read_to));
        }
        if start > known.read_to {
            if !self.shrinks {
                self.verdict.lost += (start - known.read_to) as u64;
                self.verdict.wrong(format!("{place}: was read up to {}, begins at {start}", known.read_to));
            }
            known.next.clear();
        }
        let from = known.read_to.max(start);
        let (found, start) = self.fetch(connection, from, end)?;
        if self.jumped {
            known.next.clear();
        }
        self.check_writers(known, &found);
        for batch in acked {
            self.check_acked(batch, start, &known.before, &found);
        }
        // A producer that does not wait for the judge may be further by now.
        known.read_to = found.last().map_or(end.max(from), |last| last.offset + 1);
        known.before.extend(found);
        let surplus = known.before.len().saturating_sub(BEFORE_MAX);
        known.before.drain(..surplus);
        Ok(())
    }

    /// The records of `from..end`, and where the log began by then.
    fn fetch(
        &mut self,
        connection: &mut Connection,
        from: i64,
        end: i64,
    ) -> Result<(Vec<Found>, i64), Trouble> {
        let (mut found, mut next, mut start): (Vec<Found>, _, _) = (Vec::new(), from, 0);
        while next < end {
            let fetched = connection.fetch(self.place, next, FETCH_BYTES)?;
            if fetched.error == ErrorCode::OffsetOutOfRange && self.shrinks {
                let begins = connection.list_offset(self.place, -2)?;
                if begins > next {
                    // Retention was faster.
                    found.clear();
                    self.jumped = true;
                    next = begins;
                    continue;
                }
            }
            start = fetched.log_start;
            if fetched.error != ErrorCode::None {
                self.verdict.wrong(format!("{} at {next}: {}", self.place, fetched.error));
                break;
            }
            let records = match read(fetched.records, next) {
                Ok(records) => records,
                Err(error) => {
                    self.verdict.wrong(format!("{}: {error}", self.place));
                    break;
                }
            };
            let Some(last) = records.last() else {
                self.verdict.wrong(format!("{} at {next}: nothing, and the log ends at {end}", self.place));
                break;
            };
            next = last.offset + 1;
            found.extend(records);
        }
        self.verdict.read += found.len() as u64;
        Ok((found, start))
    }

    fn check_writers(&mut self, known: &mut Known, found: &[Found]) {
        let mut offset = found.first().map_or(0, |first| first.offset);
        for record in found {
            let stamp = record.stamp;
            if record.offset != offset {
                self.verdict.lost += record.offset.abs_diff(offset);
                self.verdict.wrong(format!("{}: offset {} follows {offset}", self.place, record.offset));
            }
            offset = record.offset + 1;
            let is_first = !known.next.contains_key(&stamp.writer);
            let next = known.next.entry(stamp.writer).or_insert(0);
            // Where the log's start has moved, a writer's first record may be any.
            let may_skip = stamp.writer >= PLAIN_WRITERS && stamp.writer != super::LIBRDKAFKA;
            if stamp.number < *next {
                self.verdict.doubled += 1;
                self.verdict.wrong(format!(
                    "{}: writer {}'s record {} again or late at offset {}, {next} was next",
                    self.place, stamp.writer, stamp.number, record.offset
                ));
            } else if stamp.number > *next && !may_skip && !(is_first && self.shrinks) {
                self.verdict.lost += stamp.number - *next;
                self.verdict.wrong(format!(
                    "{}: writer {}'s records {next} to {} are missing before offset {}",
                    self.place, stamp.writer, stamp.number, record.offset
                ));
            }
            *next = (*next).max(stamp.number + 1);
        }
    }

    fn check_acked(&mut self, batch: &Acked, start: i64, before: &[Found], found: &[Found]) {
        let mut missing = 0;
        for at in 0..batch.count {
            let offset = batch.base + i64::from(at);
            if offset < start && self.shrinks {
                continue;
            }
            let there = |list: &[Found]| {
                let place = list.binary_search_by_key(&offset, |record| record.offset);
                place.ok().map(|place| list[place].stamp)
            };
            let stamp = there(found).or_else(|| there(before));
            let is_it = stamp.is_some_and(|stamp| {
                stamp.writer == batch.first.writer && stamp.number == batch.first.number + u64::from(at)
            });
            missing += u64::from(!is_it);
        }
        if missing == 0 {
            return;
        }
        match batch.acks {
            1 => self.verdict.lost_one += missing,
            _ => {
                self.verdict.lost += missing;
                self.verdict.wrong(format!(
                    "{}: writer {}'s records from {} on were acknowledged at offset {}, and {missing} are not there",
                    self.place, batch.first.writer, batch.first.number, batch.base
                ));
            }
        }
    }
}
