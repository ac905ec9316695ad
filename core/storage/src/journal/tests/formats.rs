//! Every kind of damage to the journal's files: found and named, or without effect; never served as data.

use std::path::Path;
use std::sync::Arc;

use barnabas_base::{LeaderEpoch, Offset, PartitionIndex, TopicId, TopicPartition, Uuid};
use bytes::Bytes;

use super::rig::{DIRECTORY, ROOT, Random, batch, slot_path};
use crate::journal::format::{RoundHeader, entry_bytes, parse_entries, push_entry};
use crate::journal::*;
use crate::{AppendBytes, Disk, MemoryDisk, OpenMode};

const FILES: usize = 4;
const FILE_BYTES: usize = 12_288;

fn partition(index: i32) -> Arc<JournalPartition> {
    let topic_partition = TopicPartition::new("orders", PartitionIndex(index));
    Arc::new(JournalPartition { topic_id: TopicId::default(), topic_partition })
}

fn records(index: i32, from: i64, end: i64) -> Entry {
    let records = AppendBytes::Whole(batch(Offset(from), end - from, index as u8, 40));
    let kind = EntryKind::Records { from: Offset(from), end: Offset(end), records };
    Entry { partition: partition(index), leader_epoch: LeaderEpoch(2), kind }
}

/// Eleven rounds, three to a file: 4 to 6 in file 1, 7 to 9 in file 0, 10 and 11 in file 2. Each holds one append to
/// each of two partitions; the first five are written back.
fn written(directory: Uuid) -> MemoryDisk {
    let disk = MemoryDisk::new();
    disk.create_dir(Path::new(ROOT)).unwrap();
    for slot in 0..FILES {
        let file = disk.open(&slot_path(slot), OpenMode::Create).unwrap();
        file.set_len(FILE_BYTES as u64).unwrap();
    }
    let config = JournalConfig {
        files: FILES,
        file_bytes: FILE_BYTES as u32,
        round_bytes_max: 4096,
        write_back_bytes: u64::MAX,
        ..JournalConfig::default()
    };
    let empty = recover(&disk, Path::new(ROOT), FILES, directory).unwrap();
    let mut journal = Journal::open(config, &empty, 77).unwrap();
    for number in 0..11 {
        for index in 0..2 {
            journal.submit(records(index, number * 3, number * 3 + 3)).unwrap();
        }
        if number == 5 {
            for index in 0..2 {
                let write_back = journal.take_write_back(&partition(index)).unwrap();
                journal.written_back(&write_back.ticket);
            }
        }
        let Take::Write(round) = journal.take_round(Micros(0)) else { panic!("a round is due") };
        let file = disk.open(&slot_path(round.slot), OpenMode::Write).unwrap();
        file.write_at(round.position, &[round.bytes()]).unwrap();
        file.sync().unwrap();
        journal.round_durable(round, Micros(0));
    }
    disk
}

/// What replay makes of the journal: each partition's appends.
fn replayed(disk: &MemoryDisk) -> Result<Vec<(Offset, Offset)>, JournalError> {
    let recovered = recover(disk, Path::new(ROOT), FILES, DIRECTORY)?;
    let mut all = Vec::new();
    for replay in &recovered.partitions {
        assert_eq!(replay.items.len() as u64, recovered.rounds);
        for item in &replay.items {
            let index = replay.partition.topic_partition.partition.get() as u8;
            let wanted = batch(item.from, item.end.since(item.from), index, 40);
            assert_eq!(item.records, wanted, "what is replayed is what was written");
            all.push((item.from, item.end));
        }
    }
    Ok(all)
}

fn untouched() -> Vec<(Offset, Offset)> {
    let rounds = (5..11).map(|number| (Offset(number * 3), Offset(number * 3 + 3)));
    rounds.clone().chain(rounds).collect()
}

/// Damages the journal of [`written`] and says what came of it: `Some(true)` no effect, `Some(false)` only the last
/// round is missing, `None` reported.
fn outcome(damage: impl FnOnce(&MemoryDisk)) -> Option<bool> {
    let disk = written(DIRECTORY);
    damage(&disk);
    match replayed(&disk) {
        Ok(all) if all == untouched() => Some(true),
        Ok(all) => {
            assert_eq!(all.len(), untouched().len() - 2, "only the last round may be taken for torn");
            Some(false)
        }
        Err(JournalError::Damaged { .. } | JournalError::Short { .. }) => None,
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn untouched_it_is_replayed_from_the_replay_point() {
    assert_eq!(outcome(|_| {}), Some(true));
}

#[test]
fn a_flipped_bit_is_never_served() {
    let mut random = Random(5);
    let (mut none, mut torn, mut reported) = (0, 0, 0);
    for slot in 0..FILES {
        for at in (0..FILE_BYTES).step_by(41) {
            let bit = 1 << random.below(8);
            match outcome(|disk| disk.corrupt(&slot_path(slot), |bytes| bytes[at] ^= bit)) {
                Some(true) => none += 1,
                Some(false) => torn += 1,
                None => reported += 1,
            }
        }
    }
    assert!(none > 0 && torn > 0 && reported > 0, "{none} {torn} {reported}");
}

#[test]
fn a_zeroed_page_is_never_served() {
    let mut told = Vec::new();
    for slot in 0..FILES {
        for page in 0..FILE_BYTES / 4096 {
            let zero = |bytes: &mut Vec<u8>| bytes[page * 4096..(page + 1) * 4096].fill(0);
            told.push(outcome(|disk| disk.corrupt(&slot_path(slot), zero)));
        }
    }
    // Round 4 is written back, but the first round of a file is what tells which part of the journal the file is.
    let reported = told.iter().filter(|told| told.is_none()).count();
    let torn = told.iter().filter(|told| **told == Some(false)).count();
    assert_eq!((reported, torn), (6, 1), "{told:?}");
}

#[test]
fn a_shortened_missing_or_stale_file_is_found_out() {
    for slot in 0..2 {
        assert_eq!(outcome(|disk| disk.corrupt(&slot_path(slot), |bytes| bytes.truncate(5000))), None);
        assert_eq!(outcome(|disk| disk.remove_file(&slot_path(slot)).unwrap()), None);
        let stale = written(DIRECTORY).contents(&slot_path(1 - slot)).unwrap();
        assert_eq!(outcome(|disk| disk.corrupt(&slot_path(slot), |bytes| *bytes = stale)), None);
    }
}

#[test]
fn files_that_changed_their_names_are_put_in_order() {
    let swap = |disk: &MemoryDisk| {
        let aside = Path::new(ROOT).join("aside");
        disk.rename(&slot_path(0), &aside).unwrap();
        disk.rename(&slot_path(2), &slot_path(0)).unwrap();
        disk.rename(&aside, &slot_path(2)).unwrap();
    };
    assert_eq!(outcome(swap), Some(true));
}

#[test]
fn a_ring_that_is_configured_smaller_stays_whole() {
    let disk = written(DIRECTORY);
    let mut recovered = recover(&disk, Path::new(ROOT), 3, DIRECTORY).unwrap();
    recovered.keep(|_| false);
    let config = JournalConfig { files: 3, ..JournalConfig::default() };
    assert_eq!(Journal::open(config, &recovered, 1).unwrap().files(), FILES);
}

#[test]
fn another_directorys_files_are_refused() {
    let disk = written(Uuid([9; 16]));
    let error = replayed(&disk).unwrap_err();
    assert!(matches!(error, JournalError::Foreign { found: Uuid([9, ..]), .. }), "{error}");
}

#[test]
fn a_read_error_is_not_the_end_of_the_journal() {
    let disk = written(DIRECTORY);
    disk.set_faults(crate::Faults { read_error: true, ..crate::Faults::default() });
    assert!(matches!(replayed(&disk), Err(JournalError::Disk(_))));
}

#[cfg(planted)]
#[test]
fn planted_without_the_search_for_later_rounds_damage_would_pass_for_a_torn_tail() {
    let disk = written(DIRECTORY);
    disk.corrupt(&slot_path(2), |bytes| bytes[200] ^= 1);
    let read = || recover(&disk, Path::new(ROOT), FILES, DIRECTORY);
    let blind = barnabas_base::planted::with("SkipsDamageSearch", read).unwrap();
    assert_eq!(blind.rounds, 4, "two durable rounds are lost without a word");
    assert!(recover(&disk, Path::new(ROOT), FILES, DIRECTORY).is_err());
}

#[test]
fn rounds_and_entries_are_the_same_after_a_round_trip() {
    let kinds = [
        records(1, 5, 9).kind,
        EntryKind::Range { from: Offset(1), end: Offset(i64::MAX) },
        EntryKind::Truncate { end: Offset(7) },
        EntryKind::Restart { at: Offset(70) },
        EntryKind::Remove,
    ];
    let mut buffer = crate::disk::block_buffer::BlockBuffer::new(8192);
    buffer.push(&[0; format::ROUND_HEADER_BYTES]);
    let mut bytes = format::ROUND_HEADER_BYTES;
    for kind in kinds.clone() {
        let entry = Entry { partition: partition(3), leader_epoch: LeaderEpoch(4), kind };
        push_entry(&mut buffer, &entry);
        bytes += entry_bytes(&entry);
    }
    let header = RoundHeader {
        checksum: 0,
        len: 0,
        directory: DIRECTORY,
        opening: 8,
        number: 9,
        place: Place { life: 3, position: 4096 },
        replay_from: Place { life: 2, position: 8192 },
        previous_checksum: 11,
        continues: 12,
        entries: 5,
    };
    let checksum = header.seal(&mut buffer);
    let padding = buffer.pad();
    assert_eq!((buffer.len() - padding, buffer.len() % BLOCK_BYTES), (bytes, 0));
    let read = RoundHeader::parse(buffer.bytes()).unwrap();
    assert_eq!(read, RoundHeader { checksum, len: bytes as u32, ..header });
    let round = Bytes::copy_from_slice(&buffer.bytes()[..bytes]);
    assert!(read.checksum_is_right(&round));
    let entries = parse_entries(&round, &read).unwrap();
    for (entry, kind) in entries.iter().zip(kinds) {
        assert_eq!((&entry.partition, entry.leader_epoch), (&partition(3), LeaderEpoch(4)));
        assert_eq!(format!("{:?}", entry.kind), format!("{kind:?}"));
    }
    // A round that is cut short anywhere holds no entries that were not written.
    for len in format::ROUND_HEADER_BYTES..bytes {
        assert!(parse_entries(&round.slice(..len), &read).is_none());
    }
}

#[test]
fn a_header_of_random_bytes_reserves_nothing_and_panics_nowhere() {
    let mut random = Random(1);
    for _ in 0..20_000 {
        let mut bytes: Vec<u8> = (0..300).map(|_| random.below(256) as u8).collect();
        bytes[..8].copy_from_slice(&format::MAGIC);
        if let Some(header) = RoundHeader::parse(&bytes) {
            let round = Bytes::from(bytes);
            let _ = parse_entries(&round, &header);
        }
    }
}

#[test]
fn what_is_written_back_is_forgotten() {
    let config = JournalConfig {
        files: FILES,
        file_bytes: FILE_BYTES as u32,
        round_bytes_max: 4096,
        write_back_bytes: 200,
        ..JournalConfig::default()
    };
    let empty = recover(&MemoryDisk::new(), Path::new("/"), FILES, DIRECTORY).unwrap();
    let mut journal = Journal::open(config, &empty, 1).unwrap();
    for number in 0..1000 {
        for index in 0..2 {
            journal.submit(records(index, number * 3, number * 3 + 3)).unwrap();
        }
        let Take::Write(round) = journal.take_round(Micros(0)) else { panic!("a round is due") };
        journal.round_durable(round, Micros(0));
        while let Some(write_back) = journal.next_write_back() {
            journal.written_back(&write_back.ticket);
        }
    }
    let (partitions, lives, rounds) = journal.remembered();
    assert!(partitions <= 2 && lives <= FILES && rounds <= 3 * FILES, "{:?}", journal.remembered());
}
