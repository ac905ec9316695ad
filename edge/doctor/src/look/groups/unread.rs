//! How old is the first record that a group has not read: the batch at the committed offset, by its newest timestamp.
//!
//! The date is that of the batch, so it is at most as old as the record: no group counts as later than it is.

use super::Offsets;
use crate::look::ask::{Asker, checked};
use barnabas_base::{PartitionIndex, TopicId};
use barnabas_findings::{Seen, Topic, Unseen};
use barnabas_wire::messages::FetchRequest;
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use std::collections::BTreeMap;

/// Partitions that are read, those with the most unread records first; each costs a Fetch of one batch.
const READS_MAX: usize = 500;
/// The first version of Fetch that names topics by id.
const IDS_SINCE: i16 = 13;
/// Where a batch of the current format keeps its format and its newest timestamp.
const MAGIC_AT: usize = 16;
const NEWEST_AT: usize = 35;

type Place = (String, i32);

/// By group and partition.
pub type Unread = BTreeMap<(String, Place), Seen<Option<i64>>>;

pub async fn find(asker: &mut Asker, after: &Offsets, topics: &[Topic]) -> Unread {
    let mut unread = Unread::new();
    let mut late: Vec<(i64, String, Place, i64)> = Vec::new();
    for (group, offsets) in after {
        for (place, offset) in offsets.iter().flatten() {
            let key = (group.clone(), place.clone());
            let partition = topics
                .iter()
                .find(|topic| topic.name == place.0)
                .and_then(|topic| topic.partitions.iter().find(|partition| partition.index == place.1));
            match partition.map(|partition| &partition.offsets) {
                None => drop(unread.insert(key, Ok(None))),
                Some(Err(why)) => drop(unread.insert(key, Err(why.clone()))),
                Some(Ok(offsets)) if *offset >= offsets.end => drop(unread.insert(key, Ok(None))),
                Some(Ok(offsets)) => {
                    late.push((
                        offsets.end - offset,
                        group.clone(),
                        place.clone(),
                        *offset.max(&offsets.start),
                    ));
                }
            }
        }
    }
    late.sort_by_key(|(lag, ..)| -lag);
    let mut read: BTreeMap<(Place, i64), Seen<Option<i64>>> = BTreeMap::new();
    for (_, group, place, offset) in late {
        let spot = (place.clone(), offset);
        if !read.contains_key(&spot) {
            let told = if read.len() < READS_MAX {
                date(asker, &place, offset).await
            } else {
                Err(Unseen(format!(
                    "more than {READS_MAX} partitions have unread records: {}-{} was left out",
                    place.0, place.1
                )))
            };
            read.insert(spot.clone(), told);
        }
        unread.insert((group, place), read[&spot].clone());
    }
    unread
}

/// The date of the batch at an offset; `None`: there is none.
async fn date(asker: &mut Asker, (topic, partition): &Place, offset: i64) -> Seen<Option<i64>> {
    let what = format!("reading {topic}-{partition}");
    let leader = asker.cluster.leader(topic, PartitionIndex(*partition)).await;
    let leader = leader.map_err(|error| Unseen(format!("{what}: {error}")))?;
    let id = asker.cluster.topic_id(topic).unwrap_or(TopicId::ZERO);
    let row = FetchPartition {
        partition: *partition,
        fetch_offset: offset,
        // One batch comes whatever its size.
        partition_max_bytes: 1,
        ..Default::default()
    };
    let request = |version: i16| {
        let mut of = FetchTopic { partitions: vec![row.clone()], ..Default::default() };
        if version >= IDS_SINCE {
            of.topic_id = id;
        } else {
            of.topic = topic.as_str().into();
        }
        FetchRequest { max_wait_ms: 0, min_bytes: 0, max_bytes: 1, topics: vec![of], ..Default::default() }
    };
    let answer = asker.ask(leader.get(), request).await?;
    checked(&what, answer.error_code, None)?;
    let mut rows = answer.responses.iter().flat_map(|topic| &topic.partitions);
    let Some(row) = rows.next() else { return Err(Unseen(format!("{what}: nothing was answered"))) };
    checked(&what, row.error_code, None)?;
    let bytes = row.records.as_deref().unwrap_or_default();
    if bytes.is_empty() {
        return Ok(None);
    }
    if bytes.get(MAGIC_AT) != Some(&2) {
        return Err(Unseen(format!("{what}: the batch at {offset} is of an old format, or cut")));
    }
    let newest = bytes.get(NEWEST_AT..NEWEST_AT + 8).and_then(|bytes| bytes.try_into().ok());
    match newest.map(i64::from_be_bytes) {
        Some(timestamp) if timestamp < 0 => Err(Unseen(format!("{what}: the batch at {offset} has no date"))),
        newest => Ok(newest),
    }
}
