//! What topics took between the looks: some batches of each one's busiest partition, read from its leader.
//!
//! Records are counted and thrown away: a finding names no key and no value. At most [`TOPICS_MAX`] topics are read,
//! those with the most new records, [`BYTES`] of each.

use super::ask::{Asker, checked};
use barnabas_base::{PartitionIndex, TopicId};
use barnabas_findings::{Offsets, RecordSample, Seen, Topic, Unseen};
use barnabas_wire::messages::FetchRequest;
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use barnabas_wire::records::compression::{Codec, Compression};
use barnabas_wire::records::{Batch, batches};
use bytes::Bytes;
use std::collections::BTreeMap;

const TOPICS_MAX: usize = 50;
const BYTES: i32 = 256 << 10;
/// A batch that inflates to more is not looked into.
const INFLATED_MAX: usize = 8 << 20;
/// The first version of Fetch that names topics by id.
const IDS_SINCE: i16 = 13;

/// A topic with its busiest partition: how many records came, and from which offset.
struct Busy<'a> {
    topic: &'a str,
    partition: i32,
    records: i64,
    since: i64,
}

/// A topic that cannot be read is an `Err` among the others.
pub async fn samples(asker: &mut Asker, topics: &[Topic]) -> Vec<Seen<RecordSample>> {
    let mut busy: Vec<Busy<'_>> =
        topics.iter().filter(|topic| !topic.is_internal).filter_map(busiest).collect();
    busy.sort_by_key(|busy| -busy.records);
    busy.truncate(TOPICS_MAX);
    let mut samples = Vec::new();
    for busy in busy {
        samples.push(read(asker, &busy).await.map(|bytes| sample(&busy, bytes)));
    }
    samples
}

fn busiest(topic: &Topic) -> Option<Busy<'_>> {
    let offsets = topic.partitions.iter().filter_map(|p| Some((p.index, p.offsets.as_ref().ok()?)));
    let written = |offsets: &Offsets| offsets.end - offsets.end_before.max(offsets.start);
    let (partition, offsets) = offsets.max_by_key(|(_, offsets)| written(offsets))?;
    let (records, since) = (written(offsets), offsets.end_before.max(offsets.start));
    (records > 0).then_some(Busy { topic: &topic.name, partition, records, since })
}

async fn read(asker: &mut Asker, busy: &Busy<'_>) -> Seen<Bytes> {
    let what = format!("reading {}-{}", busy.topic, busy.partition);
    let leader = asker.cluster.leader(busy.topic, PartitionIndex(busy.partition)).await;
    let leader = leader.map_err(|error| Unseen(format!("{what}: {error}")))?;
    let id = asker.cluster.topic_id(busy.topic).unwrap_or(TopicId::ZERO);
    let row = FetchPartition {
        partition: busy.partition,
        fetch_offset: busy.since,
        partition_max_bytes: BYTES,
        ..Default::default()
    };
    let request = |version: i16| {
        let mut of = FetchTopic { partitions: vec![row.clone()], ..Default::default() };
        if version >= IDS_SINCE {
            of.topic_id = id;
        } else {
            of.topic = busy.topic.into();
        }
        FetchRequest {
            max_wait_ms: 0,
            min_bytes: 0,
            max_bytes: BYTES,
            topics: vec![of],
            ..Default::default()
        }
    };
    let answer = asker.ask(leader.get(), request).await?;
    checked(&what, answer.error_code, None)?;
    let mut rows = answer.responses.into_iter().flat_map(|topic| topic.partitions);
    let Some(row) = rows.next() else { return Err(Unseen(format!("{what}: nothing was answered"))) };
    checked(&what, row.error_code, None)?;
    Ok(row.records.unwrap_or_default())
}

/// Batches up to the first that cannot be read: an answer may end within one.
fn sample(busy: &Busy<'_>, bytes: Bytes) -> RecordSample {
    let mut sample =
        RecordSample { topic: busy.topic.to_owned(), partition: busy.partition, ..RecordSample::default() };
    let mut keys: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    let read = batches(bytes).map_while(Result::ok).filter(|batch| !batch.header().attributes.is_control());
    for batch in read {
        add(&mut sample, &mut keys, &batch);
    }
    sample.same_key = keys.values().max().copied().unwrap_or(0);
    sample
}

fn add(sample: &mut RecordSample, keys: &mut BTreeMap<Vec<u8>, usize>, batch: &Batch) {
    let header = batch.header();
    sample.batches += 1;
    sample.batches_without_id += usize::from(!header.has_producer_id());
    sample.bytes += batch.bytes().len();
    if !header.attributes.is_compressed() {
        let mut deflated = Vec::new();
        let lz4 = Compression { codec: Codec::Lz4, level: None };
        if lz4.deflate(&batch.body(), &mut deflated).is_ok() {
            sample.plain_bytes += batch.body().len();
            sample.deflated_bytes += deflated.len();
        }
    }
    let Ok(records) = batch.records_up_to(INFLATED_MAX) else { return };
    for record in records.iter().map_while(Result::ok) {
        sample.records += 1;
        if let Some(key) = record.key {
            sample.keyed += 1;
            *keys.entry(key.to_vec()).or_default() += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::TimestampMs;
    use barnabas_wire::records::{BatchBuilder, BatchOptions};

    fn batch(codec: Codec, keys: &[&str]) -> Bytes {
        let compression = Compression { codec, level: None };
        let mut builder = BatchBuilder::new(BatchOptions { compression, ..BatchOptions::default() });
        for key in keys {
            builder.push(TimestampMs(1), Some(key.as_bytes()), Some(&[b'x'; 500]), &[]);
        }
        builder.build().expect("a batch")
    }

    #[test]
    fn batches_are_counted_and_a_torn_one_ends_the_sample() {
        let (plain, packed) = (batch(Codec::None, &["a", "b", "a"]), batch(Codec::Zstd, &["a", "c"]));
        let torn = &plain[..plain.len() / 2];
        let all = Bytes::from([&plain[..], &packed, torn].concat());
        let sample = sample(&Busy { topic: "t", partition: 3, records: 5, since: 0 }, all);
        assert_eq!((sample.batches, sample.batches_without_id, sample.partition), (2, 2, 3));
        assert_eq!((sample.records, sample.keyed, sample.same_key), (5, 5, 3));
        assert_eq!(sample.bytes, plain.len() + packed.len());
        assert!(sample.plain_bytes > 1500 && sample.deflated_bytes < 300, "{sample:?}");
    }
}
