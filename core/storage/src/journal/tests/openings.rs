//! Openings that go on one behind the other: which chain is followed, and which files it may lie in.

use std::path::Path;
use std::sync::Arc;

use barnabas_base::{LeaderEpoch, Offset, PartitionIndex, TopicId, TopicPartition};

use super::rig::{DIRECTORY, ROOT, batch, slot_path};
use crate::journal::*;
use crate::{AppendBytes, Disk, MemoryDisk, OpenMode};

const FILES: usize = 4;
const FILE_BYTES: u32 = 12_288;

fn partition() -> Arc<JournalPartition> {
    numbered(0)
}

fn numbered(number: i32) -> Arc<JournalPartition> {
    let topic_partition = TopicPartition::new("orders", PartitionIndex(number));
    Arc::new(JournalPartition { topic_id: TopicId::default(), topic_partition })
}

fn config() -> JournalConfig {
    JournalConfig {
        files: FILES,
        file_bytes: FILE_BYTES,
        round_bytes_max: 4096,
        write_back_bytes: u64::MAX,
        ..JournalConfig::default()
    }
}

/// Opens the journal with what was found, and makes its files.
fn open(disk: &MemoryDisk, found: &Recovered, opening: u64) -> Journal {
    let journal = Journal::open(config(), found, opening).unwrap();
    for slot in 0..journal.files() {
        disk.open(&slot_path(slot), OpenMode::Create).unwrap().set_len(FILE_BYTES.into()).unwrap();
    }
    journal
}

fn write(disk: &MemoryDisk, journal: &mut Journal) {
    let Take::Write(round) = journal.take_round(Micros(0)) else { panic!("a round is due") };
    let file = disk.open(&slot_path(round.slot), OpenMode::Write).unwrap();
    file.write_at(round.position, &[round.bytes()]).unwrap();
    file.sync().unwrap();
    journal.round_durable(round, Micros(0));
}

/// One record at `from`.
fn record(partition: Arc<JournalPartition>, from: Offset, fill: u8) -> Entry {
    let records = AppendBytes::Whole(batch(from, 1, fill, 20));
    let kind = EntryKind::Records { from, end: from.plus(1), records };
    Entry { partition, leader_epoch: LeaderEpoch(0), kind }
}

fn found(disk: &MemoryDisk) -> Recovered {
    recover(disk, Path::new(ROOT), FILES, DIRECTORY).unwrap()
}

fn empty() -> MemoryDisk {
    let disk = MemoryDisk::new();
    disk.create_dir(Path::new(ROOT)).unwrap();
    disk
}

/// Opens what is there and writes so many rounds (the opening one is one of them), each with one record of `fill`.
fn go_on(disk: &MemoryDisk, opening: u64, rounds: i64, fill: u8) {
    let found = found(disk);
    let end = found.partitions.first().map_or(Offset::ZERO, |replay| replay.items.last().unwrap().end);
    let mut journal = open(disk, &found, opening);
    for number in 0..rounds {
        if number > 0 {
            journal.submit(record(partition(), end.plus(number - 1), fill)).unwrap();
        }
        write(disk, &mut journal);
    }
}

/// By whom each record was written.
fn fills(disk: &MemoryDisk) -> Result<Vec<u8>, JournalError> {
    let found = recover(disk, Path::new(ROOT), FILES, DIRECTORY)?;
    let items = found.partitions.iter().flat_map(|replay| &replay.items);
    Ok(items.map(|item| item.records[item.records.len() - 2]).collect())
}

#[test]
fn a_chain_leads_through_all_openings_behind_which_nothing_was_written_back() {
    let disk = empty();
    go_on(&disk, 71, 3, b'a');
    go_on(&disk, 72, 2, b'b');
    go_on(&disk, 73, 1, b'-');
    go_on(&disk, 74, 2, b'c');
    assert_eq!(fills(&disk).unwrap(), b"aabc");
    // A ring that was made longer for that is read whole.
    assert!(disk.stat(&slot_path(FILES)).unwrap().is_some());
}

#[test]
fn a_file_of_another_branch_is_not_followed() {
    let (left, right) = (empty(), empty());
    // The same up to round 3, which fills a file; then another process goes on, in each of them.
    for disk in [&left, &right] {
        go_on(disk, 71, 3, b'a');
    }
    go_on(&left, 72, 5, b'l');
    go_on(&right, 72, 5, b'r');
    assert_eq!(fills(&left).unwrap(), b"aallll");
    let file = right.contents(&slot_path(1)).unwrap();
    left.corrupt(&slot_path(1), |bytes| *bytes = file);
    #[cfg(planted)]
    let blind = barnabas_base::planted::with("SkipsOpenings", || fills(&left)).unwrap();
    #[cfg(planted)]
    assert_eq!(blind, b"aarrll", "by numbers alone the wrong branch fits");
    let error = fills(&left).unwrap_err();
    assert!(matches!(error, JournalError::Damaged { .. }), "{error}");
}

#[test]
fn the_loss_of_an_openings_beginning_is_not_taken_for_the_end_of_the_one_before() {
    let disk = empty();
    go_on(&disk, 71, 3, b'a');
    go_on(&disk, 72, 3, b'b');
    disk.corrupt(&slot_path(1), |bytes| bytes[50] ^= 1);
    let error = fills(&disk).unwrap_err();
    assert!(matches!(error, JournalError::Damaged { .. }), "{error}");
    #[cfg(planted)]
    assert_eq!(barnabas_base::planted::with("SkipsDamageSearch", || fills(&disk)).unwrap(), b"aa");
}

#[test]
fn two_files_of_one_life_and_one_that_is_shorter_are_refused() {
    let disk = empty();
    go_on(&disk, 71, 3, b'a');
    go_on(&disk, 72, 3, b'b');
    let file = disk.contents(&slot_path(1)).unwrap();
    let copied = disk.clone();
    copied.corrupt(&slot_path(3), |bytes| bytes.clone_from(&file));
    assert!(matches!(fills(&copied), Err(JournalError::Damaged { .. })));
    copied.corrupt(&slot_path(3), |bytes| bytes.fill(0));
    copied.corrupt(&slot_path(1), |bytes| bytes.truncate(8192));
    let error = fills(&copied).unwrap_err();
    assert!(matches!(error, JournalError::Short { len: 8192, expected: 12_288, .. }), "{error}");
    // One that was never written to may be short: its making was interrupted.
    copied.corrupt(&slot_path(1), |bytes| bytes.clone_from(&file));
    copied.corrupt(&slot_path(3), |bytes| bytes.truncate(4096));
    assert_eq!(fills(&copied).unwrap(), b"aabb");
}

/// What the journal holds no more was synced in segments, so a start need not take damage there for a torn tail.
#[test]
fn older_rounds_say_up_to_where_logs_are_synced() {
    let disk = empty();
    let mut journal = open(&disk, &found(&disk), 71);
    write(&disk, &mut journal);
    let submit = |journal: &mut Journal, number, kind| {
        let entry = Entry { partition: numbered(number), leader_epoch: LeaderEpoch(0), kind };
        journal.submit(entry).unwrap();
    };
    for from in 0..3 {
        for number in 0..4 {
            journal.submit(record(numbered(number), Offset(from), b'a')).unwrap();
        }
        write(&disk, &mut journal);
    }
    submit(&mut journal, 1, EntryKind::Truncate { end: Offset(2) });
    submit(&mut journal, 2, EntryKind::Remove);
    submit(&mut journal, 3, EntryKind::Restart { at: Offset(9) });
    write(&disk, &mut journal);
    assert_eq!(found(&disk).written_back.len(), 0, "all of it is replayed");
    journal.write_back_all(true);
    while let Some(write_back) = journal.next_write_back() {
        journal.written_back(&write_back.ticket);
    }
    journal.submit(record(numbered(0), Offset(3), b'b')).unwrap();
    write(&disk, &mut journal);
    let ends = |found: &Recovered| -> Vec<_> {
        let end = |replay: &PartitionReplay| {
            (replay.partition.topic_partition.partition.get(), replay.synced_end.map(Offset::get))
        };
        found.written_back.iter().map(end).collect()
    };
    // Partition 0 is replayed, 2 has left, and 3 was emptied.
    assert_eq!(ends(&found(&disk)), [(1, Some(2))]);
    let Some(write_back) = journal.next_write_back() else { panic!("it is due") };
    journal.written_back(&write_back.ticket);
    // A round that only says so.
    write(&disk, &mut journal);
    assert_eq!(ends(&found(&disk)), [(0, Some(4)), (1, Some(2))]);
    // The round that is missing may have said otherwise: it has the truncation.
    disk.corrupt(&slot_path(1), |bytes| bytes[BLOCK_BYTES + 50] ^= 1);
    assert!(ends(&found(&disk)).is_empty());
}

/// A start that believed less would take damage below the truncation for a torn tail (found by lab/sim, climate
/// damage).
#[test]
fn log_is_synced_below_a_truncation_that_leaves_nothing_to_replay() {
    let disk = empty();
    let mut journal = open(&disk, &found(&disk), 71);
    write(&disk, &mut journal);
    journal.submit(record(partition(), Offset(7), b'a')).unwrap();
    let kind = EntryKind::Truncate { end: Offset(5) };
    journal.submit(Entry { partition: partition(), leader_epoch: LeaderEpoch(0), kind }).unwrap();
    write(&disk, &mut journal);
    let below = |disk: &MemoryDisk| found(disk).partitions[0].synced_below();
    assert_eq!(below(&disk), Offset(5));
    journal.submit(record(partition(), Offset(5), b'b')).unwrap();
    write(&disk, &mut journal);
    assert_eq!(below(&disk), Offset(5));
}

#[test]
fn removals_of_what_left_come_before_all_else() {
    let disk = empty();
    let mut journal = open(&disk, &found(&disk), 71);
    write(&disk, &mut journal);
    for number in 0..100 {
        let entry = record(numbered(number), Offset::ZERO, b'a');
        if journal.submit(entry.clone()).is_err() {
            write(&disk, &mut journal);
            journal.submit(entry).unwrap();
        }
    }
    write(&disk, &mut journal);
    let mut left = found(&disk);
    left.note_left(|replay| replay.partition != numbered(5));
    assert_eq!((left.partitions.len(), left.left.len()), (1, 99));
    let mut journal = open(&disk, &left, 72);
    let other = record(numbered(200), Offset::ZERO, b'b');
    // More than one round has room for.
    for is_open in [false, true] {
        assert_eq!(journal.submit(other.clone()).unwrap_err(), Refused::RoundFull);
        write(&disk, &mut journal);
        assert_eq!(journal.is_open(), is_open);
    }
    journal.submit(other).unwrap();
    write(&disk, &mut journal);
    let again = found(&disk);
    let has_records = again.partitions.iter().filter(|replay| !replay.items.is_empty());
    let kept: Vec<_> = has_records.map(|replay| replay.partition.topic_partition.partition.get()).collect();
    assert_eq!(kept, [5, 200]);
    assert!(again.partitions.iter().filter(|replay| replay.items.is_empty()).all(|replay| replay.removed));
}

/// The rounds of the removal are read again, for the sake of another partition.
#[test]
fn removal_of_earlier_stay_is_not_read_into_a_later_one() {
    let disk = empty();
    let mut journal = open(&disk, &found(&disk), 71);
    write(&disk, &mut journal);
    journal.submit(record(numbered(1), Offset::ZERO, b'a')).unwrap();
    let remove = |number| Entry {
        partition: numbered(number),
        leader_epoch: LeaderEpoch::NONE,
        kind: EntryKind::Remove,
    };
    (2..4).for_each(|number| assert!(journal.submit(remove(number)).is_ok()));
    write(&disk, &mut journal);
    let mut recovered = found(&disk);
    let ends: Vec<_> = recovered.partitions.iter().map(PartitionReplay::ends_with_removal).collect();
    assert_eq!(ends, [false, true, true]);
    recovered.note_returned(|replay| replay.partition == numbered(2));
    recovered.keep(|replay| replay.partition != numbered(3));
    let mut journal = open(&disk, &recovered, 72);
    journal.submit(record(numbered(2), Offset(7), b'b')).unwrap();
    write(&disk, &mut journal);
    let again = found(&disk);
    let read = |number| again.partitions.iter().find(|replay| replay.partition == numbered(number)).unwrap();
    assert_eq!([1, 2, 3].map(|number| read(number).removed), [false, false, true]);
    let from: Vec<_> = read(2).items.iter().map(|item| item.from).collect();
    assert_eq!(from, [Offset(7)]);
}

/// The log may have been compacted since (found by lab/sim, climate compaction).
#[test]
fn truncation_that_records_follow_is_not_repeated() {
    let disk = empty();
    let mut journal = open(&disk, &found(&disk), 71);
    write(&disk, &mut journal);
    let truncate = |at| Entry {
        partition: numbered(1),
        leader_epoch: LeaderEpoch(1),
        kind: EntryKind::Truncate { end: Offset(at) },
    };
    let cuts = |log_end| {
        let replay = found(&disk).partitions.remove(0);
        let steps = replay.steps(Offset(log_end)).unwrap();
        let cut = |step| if let WriteBackOp::Truncate { end } = step { Some(end.get()) } else { None };
        (steps.into_iter().find_map(cut), replay.synced_below().get())
    };
    journal.submit(record(numbered(1), Offset(6), b'a')).unwrap();
    journal.submit(truncate(6)).unwrap();
    write(&disk, &mut journal);
    assert_eq!(cuts(7), (Some(6), 6));
    journal.submit(record(numbered(1), Offset(6), b'b')).unwrap();
    journal.submit(record(numbered(1), Offset(7), b'c')).unwrap();
    write(&disk, &mut journal);
    assert_eq!(cuts(8), (None, 6));
    journal.submit(truncate(7)).unwrap();
    write(&disk, &mut journal);
    assert_eq!(cuts(8), (Some(7), 6));
}

#[cfg(planted)]
#[test]
fn planted_mistakes_of_openings_are_noticed() {
    let tests: [(&str, fn()); 3] = [
        ("RepeatsTruncations", truncation_that_records_follow_is_not_repeated),
        ("TakesEntriesBeforeRemovals", removals_of_what_left_come_before_all_else),
        ("ForgetsReturns", removal_of_earlier_stay_is_not_read_into_a_later_one),
    ];
    for (mistake, test) in tests {
        let passed = std::panic::catch_unwind(|| barnabas_base::planted::with(mistake, test));
        assert!(passed.is_err(), "{mistake} is not noticed");
    }
}
