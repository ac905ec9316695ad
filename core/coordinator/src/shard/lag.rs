//! How far groups are behind the ends of the logs that they read, in records and in time.
//!
//! A [`LagSurvey`] takes groups and logs' ends, and judges. It keeps [`GROUPS_SHOWN`] groups, those with the largest
//! lag. How many it leaves out is counted, and their records are in the sums. A partition whose end is not known counts
//! as unknown and not as lag.
//!
//! Not here: who is asked for ends and times, and how long (shell/broker/src/server/exporter/lag/survey.rs).

use std::collections::BTreeMap;
use std::time::Duration;

use barnabas_base::{Offset, PartitionIndex, Text, TimestampMs, TopicId};

use super::look::GroupLook;
use crate::records::GroupKind;
use crate::share_state::{ShareStateResponse, ShareStateSummary};

/// Groups that have series of their own.
const GROUPS_SHOWN: usize = 500;
/// Partitions of the groups that are shown whole.
const PARTITIONS_SHOWN: usize = 10_000;
/// Of a group's name, in bytes. A group with a longer one is in the sums.
const NAME_BYTES_MAX: usize = 255;
/// Of a group: partitions with the largest lag, whose oldest record is looked up.
const AGES_OF_A_GROUP: usize = 256;

/// A partition by its topic's id.
pub type Place = (TopicId, PartitionIndex);

/// Where a log ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    pub high_watermark: Offset,
    pub last_stable: Offset,
    pub log_start: Offset,
}

/// Where a group goes on, and how many records from there on are done all the same (share groups).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    pub topic: Text,
    pub at: Place,
    pub offset: Offset,
    pub done: u64,
}

impl Position {
    /// Records up to `end` that are not done.
    pub fn lag(&self, end: Offset) -> u64 {
        let behind = end.get().saturating_sub(self.offset.get());
        u64::try_from(behind).unwrap_or(0).saturating_sub(self.done)
    }

    /// The record that is read next: what is deleted is passed over.
    fn next(&self, ends: &Ends) -> (Place, Offset) {
        (self.at, self.offset.max(ends.log_start))
    }
}

/// One group's lag.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupLag {
    pub group: Text,
    pub kind: GroupKind,
    /// To the high watermarks, of all its partitions.
    pub records: u64,
    /// To the last stable offsets.
    pub stable: u64,
    /// The largest of one partition.
    pub most: u64,
    /// The age of the oldest record that is read next; 0: there is none. `None`: not known.
    pub age: Option<Duration>,
}

/// Which groups are shown whole, partition by partition.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub enum Whole {
    #[default]
    None,
    One(Text),
    /// All but share groups, as far as there is room.
    Each,
}

impl Whole {
    fn has(&self, group: &Text, kind: GroupKind) -> bool {
        match self {
            Self::None => false,
            Self::One(name) => name == group,
            Self::Each => kind != GroupKind::Share,
        }
    }
}

/// One partition of a group that was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct PartitionLag {
    pub group: Text,
    pub topic: Text,
    pub partition: i32,
    /// Where the group goes on.
    pub offset: Offset,
    pub records: u64,
    pub age: Option<Duration>,
}

/// What one survey has found.
#[derive(Debug, Default, PartialEq)]
pub struct LagSample {
    pub states: BTreeMap<(GroupKind, &'static str), u64>,
    pub offsets: u64,
    /// Records that groups of a kind have before them.
    pub records: BTreeMap<GroupKind, u64>,
    pub lagging: BTreeMap<GroupKind, u64>,
    pub shown: Vec<GroupLag>,
    /// Groups with a lag, or none, that have no series.
    pub left_out: u64,
    /// Groups for which there was no time.
    pub unseen: u64,
    /// Partitions of groups whose log, or whose state, is not known here.
    pub unknown: u64,
    /// The partitions of those that were asked for.
    pub whole: Vec<PartitionLag>,
}

/// What is known of a group on the way.
#[derive(Debug)]
struct Found {
    lag: GroupLag,
    /// Where the records stand that it reads next: of the partitions that it is furthest behind in.
    next: Vec<(Place, Offset)>,
}

/// See the file's header.
#[derive(Debug, Default)]
pub struct LagSurvey {
    sample: LagSample,
    found: Vec<Found>,
    /// Groups whose partitions are wanted, and what is known of those.
    whole: Whole,
    partitions: Vec<(Text, Position, Ends)>,
}

impl LagSurvey {
    /// `whole`: the groups whose partitions are wanted.
    pub fn new(whole: Whole) -> Self {
        Self { whole, ..Self::default() }
    }

    /// There was no time for so many groups.
    pub fn unseen(&mut self, groups: u64) {
        self.sample.unseen += groups;
    }

    /// Counts a group, and gives where its committed offsets stand: of topics that are there. An offset that was
    /// committed to another topic of the same name is unknown.
    pub fn committed(&mut self, look: &GroupLook, id_of: impl Fn(&Text) -> Option<TopicId>) -> Vec<Position> {
        *self.sample.states.entry((look.kind, look.state)).or_default() += 1;
        self.sample.offsets += look.committed.len() as u64;
        let mut positions = Vec::with_capacity(look.committed.len());
        for committed in &look.committed {
            let topic = id_of(&committed.topic);
            match topic.filter(|id| committed.topic_id.is_zero() || committed.topic_id == *id) {
                Some(topic) => positions.push(Position {
                    topic: committed.topic.clone(),
                    at: (topic, committed.partition),
                    offset: committed.offset,
                    done: 0,
                }),
                None => self.sample.unknown += 1,
            }
        }
        positions
    }

    /// Where a share group stands in one partition, as KIP-1226 counts: from its start, without what is done behind
    /// that. `answer`: the share coordinator's; `None`: it was not asked, or did not answer in time.
    pub fn shared(
        &mut self,
        topic: &Text,
        at: Place,
        answer: Option<&ShareStateResponse>,
    ) -> Option<Position> {
        let Some(ShareStateResponse::Summary(Ok(summary))) = answer else {
            self.sample.unknown += 1;
            return None;
        };
        let ShareStateSummary { start_offset, delivery_complete_count, .. } = *summary;
        // Before the first read of the group's members there is no start.
        (start_offset != Offset::NONE).then(|| Position {
            topic: topic.clone(),
            at,
            offset: start_offset,
            done: u64::try_from(delivery_complete_count).unwrap_or(0),
        })
    }

    /// Judges a group by where it stands. `end_of`: the ends of a log, where they are known.
    pub fn judge(
        &mut self,
        group: Text,
        kind: GroupKind,
        positions: Vec<Position>,
        end_of: impl Fn(Place) -> Option<Ends>,
    ) {
        if self.whole.has(&group, kind) {
            let of = |each: &Position| Some((group.clone(), each.clone(), end_of(each.at)?));
            let room = PARTITIONS_SHOWN - self.partitions.len();
            self.partitions.extend(positions.iter().filter_map(of).take(room));
        }
        let mut lag = GroupLag { group, kind, records: 0, stable: 0, most: 0, age: None };
        let mut behind = Vec::new();
        for position in positions {
            let Some(ends) = end_of(position.at) else {
                self.sample.unknown += 1;
                continue;
            };
            let records = position.lag(ends.high_watermark);
            lag.records += records;
            lag.stable += position.lag(ends.last_stable);
            lag.most = lag.most.max(records);
            if records > 0 {
                behind.push((records, position.next(&ends)));
            }
        }
        behind.sort_unstable_by(|a, b| b.cmp(a));
        behind.truncate(AGES_OF_A_GROUP);
        *self.sample.records.entry(kind).or_default() += lag.records;
        *self.sample.lagging.entry(kind).or_default() += u64::from(lag.records > 0);
        let next = behind.into_iter().map(|(_, next)| next).collect();
        match lag.group.len() <= NAME_BYTES_MAX {
            true => self.found.push(Found { lag, next }),
            false => self.sample.left_out += 1,
        }
        if self.found.len() > 2 * GROUPS_SHOWN {
            self.keep_largest();
        }
    }

    /// Keeps the groups that are shown.
    fn keep_largest(&mut self) {
        self.found.sort_by(|a, b| (b.lag.records, &a.lag.group).cmp(&(a.lag.records, &b.lag.group)));
        let over = self.found.len().saturating_sub(GROUPS_SHOWN);
        self.found.truncate(GROUPS_SHOWN);
        self.sample.left_out += over as u64;
    }

    /// No group comes any more. Gives the records whose times are wanted for [`LagSurvey::finish`].
    pub fn wanted_times(&mut self) -> Vec<(Place, Offset)> {
        self.keep_largest();
        let wanted = self.partitions.iter().map(|(_, position, ends)| position.next(ends));
        wanted.chain(self.found.iter().flat_map(|found| found.next.iter().copied())).collect()
    }

    /// What was found. `time_of`: when a record was written, where that is known.
    pub fn finish(
        self,
        time_of: impl Fn((Place, Offset)) -> Option<TimestampMs>,
        now: TimestampMs,
    ) -> LagSample {
        let Self { mut sample, found, whole: _, partitions } = self;
        sample.shown = found.into_iter().map(|found| aged(found, &time_of, now)).collect();
        let whole = partitions.into_iter().map(|(group, position, ends)| {
            let records = position.lag(ends.high_watermark);
            let age = match records {
                0 => Some(Duration::ZERO),
                _ => time_of(position.next(&ends)).map(|time| age(time, now)),
            };
            let partition = position.at.1.get();
            PartitionLag { group, topic: position.topic, partition, offset: position.offset, records, age }
        });
        sample.whole = whole.collect();
        sample
    }
}

/// With the age of the oldest record that the group reads next, as far as such ages are known.
fn aged(
    found: Found,
    time_of: impl Fn((Place, Offset)) -> Option<TimestampMs>,
    now: TimestampMs,
) -> GroupLag {
    let oldest = found.next.iter().filter_map(|place| time_of(*place)).min();
    let age = match found.next.is_empty() {
        true => Some(Duration::ZERO),
        false => oldest.map(|time| age(time, now)),
    };
    GroupLag { age, ..found.lag }
}

fn age(time: TimestampMs, now: TimestampMs) -> Duration {
    Duration::from_millis(u64::try_from(now.0.saturating_sub(time.0)).unwrap_or(0))
}

#[cfg(test)]
mod tests;
