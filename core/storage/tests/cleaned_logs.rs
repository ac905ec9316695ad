//! Random logs that Apache Kafka's `Cleaner` has compacted, compacted here: the same records stay, in the same batches,
//! byte for byte; what was compressed is compared inflated.
//!
//! The logs come from `lab/compat/golden/records/CleanedLogs.java`, which says how they are written down; `make golden`
//! runs this with fresh ones (`CLEANED_LOGS` names the file).

#![allow(clippy::unwrap_used, clippy::disallowed_methods, clippy::disallowed_types)] // Logs come from a file.

use std::collections::BTreeMap;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use barnabas_base::{
    DurationMs, Map, Offset, ProducerEpoch, ProducerId, TimestampMs, TopicId, TopicPartition,
};
use barnabas_storage::cleaner::{Cleaning, LastRecord, MapMemory, Replaced};
use barnabas_storage::*;
use barnabas_wire::records::{BatchHeader, Entry, Message, entries};
use bytes::Bytes;

const COMMITTED: &[u8] = include_bytes!("../../../lab/compat/golden/records/cleaned.txt.gz");

/// One cleaning.
#[derive(Default)]
struct Round {
    segment_bytes: u32,
    index_interval: u32,
    clean: String,
    last: Map<ProducerId, LastRecord>,
    before: Vec<(String, i64, Vec<u8>)>,
    after: BTreeMap<String, Vec<u8>>,
}

fn number(said: &str, name: &str) -> i64 {
    let word = said.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('=')).unwrap();
    word.parse().unwrap()
}

fn unhex(text: &str) -> Vec<u8> {
    if text == "-" {
        return Vec::new();
    }
    text.as_bytes()
        .chunks(2)
        .map(|two| u8::from_str_radix(str::from_utf8(two).unwrap(), 16).unwrap())
        .collect()
}

/// The logs were written with leader epochs that rise and fall, which no leaders do: a reader takes that for damage.
fn of_one_epoch(name: &str, mut bytes: Vec<u8>) -> Vec<u8> {
    let mut at = 0;
    while name.ends_with(".log") && at + 17 <= bytes.len() {
        if bytes[at + 16] == 2 && bytes[at + 12] == 0 {
            bytes[at + 12..at + 16].fill(0);
        }
        at += 12 + u32::from_be_bytes(bytes[at + 8..at + 12].try_into().unwrap()) as usize;
    }
    bytes
}

fn text() -> String {
    let compressed = match std::env::var_os("CLEANED_LOGS") {
        Some(path) => std::fs::read(path).unwrap(),
        None => COMMITTED.to_vec(),
    };
    let mut text = String::new();
    flate2::read::GzDecoder::new(&compressed[..]).read_to_string(&mut text).unwrap();
    text
}

/// Opens what Kafka's log was, compacts it, and returns the files and how far it is clean.
fn compact(round: &Round) -> (BTreeMap<String, Vec<u8>>, Offset) {
    let disk = MemoryDisk::new();
    let root: Arc<Path> = Arc::from(PathBuf::from("/data"));
    let dir = root.join("t-0");
    disk.create_dir(&root).unwrap();
    disk.create_dir(&dir).unwrap();
    for (name, modified, bytes) in &round.before {
        let file = disk.open(&dir.join(name), OpenMode::Create).unwrap();
        file.write_at(0, &[bytes]).unwrap();
        file.set_modified(TimestampMs(*modified)).unwrap();
    }
    let said = &round.clean;
    let now = TimestampMs(number(said, "now"));
    let config = LogConfig {
        segment_bytes: round.segment_bytes,
        index_interval_bytes: round.index_interval,
        cleanup: CleanupPolicy { delete: false, compact: true },
        compaction: CompactionConfig {
            delete_retention_ms: DurationMs(number(said, "retention")),
            ..CompactionConfig::default()
        },
        ..LogConfig::default()
    };
    let name = TopicPartition::new("t", 0.into());
    let place = LogPlace { root, topic_partition: name, topic_id: TopicId::ZERO, future: None };
    let end = Offset(number(said, "end"));
    let from = OpenFrom { clean: true, recovery_point: end, ..OpenFrom::default() };
    let mut files = FilePool::new(Arc::new(disk.clone()), 16);
    let (mut log, _) = Log::open(&mut files, place, Arc::new(config), from, now).unwrap();
    assert_eq!(log.end(), end);
    let dirty = Offset(number(said, "dirty"));
    let bounds = CleanBounds { clean_to: Some(dirty), last_stable: Offset(number(said, "stable")) };
    let debt = log.compaction_debt(&mut files, bounds, now).unwrap();
    assert_eq!(debt.first_uncleanable, Offset(number(said, "until")), "{said}");
    let bytes = format!("bytes={},{} ", debt.clean_bytes, debt.dirty_bytes);
    assert!(said.contains(&bytes), "{bytes}: {said}");
    let to_clean = log.log_to_clean(&mut files, &debt).unwrap().unwrap();
    let memory = MapMemory { bytes: number(said, "map") as usize, load_factor: 0.9, seed: [1, 2] };
    let mut pace = |_: usize| ControlFlow::Continue(());
    let last = round.last.clone();
    let mut cleaning =
        Cleaning::begin(Arc::new(disk.clone()), to_clean, last, memory, now, &mut pace).unwrap();
    while let Some(replacement) = cleaning.next_group(&mut pace).unwrap() {
        assert!(matches!(log.replace_segments(&mut files, &replacement, now).unwrap(), Replaced::Done(_)));
    }
    let (end_of_clean, active) = (cleaning.end(), log.active_segment_base());
    let mut left = BTreeMap::new();
    for entry in disk.list(&dir).unwrap() {
        let is_active = entry.name.starts_with(&format!("{:020}", active.get()));
        if !is_active && (entry.name.ends_with(".log") || entry.name.ends_with(".txnindex")) {
            left.insert(entry.name.clone(), disk.contents(&dir.join(&entry.name)).unwrap());
        }
    }
    read_all(&mut log, &mut files, end);
    (left, end_of_clean)
}

/// From every offset on, reading finds the next batch there is.
fn read_all(log: &mut Log, files: &mut FilePool, end: Offset) {
    let mut batches = Vec::new();
    log.scan(files, Offset::ZERO, end, &mut |bytes| batches.push(bytes)).unwrap();
    for at in 0..end.get() {
        let read = log.read(files, Offset(at), 1, end, true).unwrap();
        let next = batches.iter().find(|batch| last_offset(batch) >= at);
        assert_eq!(read.records, next.cloned().unwrap_or_default(), "from {at} on");
    }
}

fn last_offset(batch: &Bytes) -> i64 {
    match BatchHeader::parse(batch) {
        Ok(header) => header.last_offset().get(),
        Err(_) => i64::from_be_bytes(batch[..8].try_into().unwrap()),
    }
}

/// What a segment says, whatever the codecs make of it.
fn plain(segment: &[u8]) -> Vec<String> {
    let shown = entries(Bytes::copy_from_slice(segment)).map(|entry| match entry.unwrap() {
        Entry::Batch(batch) => {
            let header = BatchHeader { length: 0, crc: 0, ..*batch.header() };
            let uncompressed =
                if header.attributes.is_compressed() { Bytes::new() } else { batch.bytes().clone() };
            batch.check_crc().unwrap();
            format!("{header:?} {uncompressed:?} {:?}", batch.records().unwrap().body())
        }
        Entry::Message(bytes) => {
            let message = Message::parse(bytes.clone()).unwrap();
            message.check_crc().unwrap();
            let inner = message.open().unwrap().map(|inner| format!("{:?}", inner.unwrap()));
            let same = if message.attributes & 7 == 0 { bytes } else { Bytes::new() };
            let (offset, attributes, time) = (message.offset, message.attributes, message.timestamp);
            format!("{offset} {attributes} {time:?} {:?} {same:?}", inner.collect::<Vec<_>>())
        }
    });
    shown.collect()
}

/// Kafka 4.4.0 forgets the last batch of a cleaning where nothing is left of it; later ones and we keep it empty, so
/// that replicas that copy the log come to its end.
fn without_kept_end(segment: &[u8], until: i64) -> &[u8] {
    let mut at = 0;
    while at < segment.len() {
        let Ok(header) = BatchHeader::parse(&segment[at..]) else { return segment };
        if header.next_offset().get() == until && header.record_count == 0 {
            return &segment[..at];
        }
        at += header.size_bytes();
    }
    segment
}

fn check(at: usize, round: &Round, done: i64) {
    let (ours, end) = compact(round);
    let until = number(&round.clean, "until");
    assert_eq!(end, Offset(done), "line {at}: clean up to");
    let names: Vec<_> = ours.keys().collect();
    assert_eq!(names, round.after.keys().collect::<Vec<_>>(), "line {at}");
    for (name, theirs) in &round.after {
        let ours = &ours[name];
        if name.ends_with(".log") {
            let kept = if plain(ours) == plain(theirs) { ours } else { without_kept_end(ours, until) };
            assert_eq!(plain(kept), plain(theirs), "line {at}: {name}");
        } else {
            assert_eq!(ours, theirs, "line {at}: {name}");
        }
    }
}

#[test]
fn kafkas_cleaner_keeps_the_same_bytes() {
    let mut round = Round::default();
    let (mut sizes, mut rounds) = ((0, 0), 0);
    for (at, line) in text().lines().enumerate() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[0] {
            "log" => sizes = (words[1].parse().unwrap(), words[2].parse().unwrap()),
            "clean" => {
                let (segment_bytes, index_interval) = sizes;
                round = Round { segment_bytes, index_interval, clean: line.to_owned(), ..Round::default() };
            }
            "last" => {
                let last_data_offset = words[2].parse().ok().map(Offset);
                let last = LastRecord { last_data_offset, epoch: ProducerEpoch(words[3].parse().unwrap()) };
                round.last.insert(ProducerId(words[1].parse().unwrap()), last);
            }
            "before" => {
                let bytes = of_one_epoch(words[1], unhex(words[3]));
                round.before.push((words[1].to_owned(), words[2].parse().unwrap(), bytes));
            }
            "after" => {
                round.after.insert(words[1].to_owned(), of_one_epoch(words[1], unhex(words[2])));
            }
            _ => {
                check(at + 1, &round, words[1].parse().unwrap());
                rounds += 1;
            }
        }
    }
    assert!(rounds > 10, "{rounds} cleanings");
    println!("{rounds} cleanings");
}
