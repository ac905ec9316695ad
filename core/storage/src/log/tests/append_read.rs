//! What goes in comes out, wherever one begins and however much one asks for.

use super::*;
use crate::segment::{LargestTimestamp, parse_offset_name};

#[test]
fn nothing_is_on_disk_before_the_first_append() {
    let mut bench = Bench::new(LogConfig::default());
    assert!(!bench.log.is_on_disk());
    assert_eq!(bench.log.take_dirty().map(|dirty| dirty.files.len()), None);
    // The directory is this program's from its first start on.
    let names: Vec<_> = bench.files.disk().list(Path::new(ROOT)).unwrap();
    assert_eq!(
        names.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>(),
        [".lock", "barnabas-checkpoints"]
    );
    let read = bench.log.read(&mut bench.files, Offset(0), 100, Offset(0), true).unwrap();
    assert!(read.records.is_empty());
    bench.fill(1, 10);
    assert_eq!(bench.names(), ["00000000000000000000.log", "partition.metadata"]);
}

#[test]
fn reads_begin_with_the_batch_that_holds_the_offset_and_end_with_a_whole_one() {
    let mut bench = Bench::new(small_segments());
    let mut model = Vec::new();
    for at in 0..40 {
        let end = bench.log.end().get();
        let bytes = batch(end, 1 + at % 5, 20 + at as usize * 7 % 90, 1000, 0);
        bench.append(bytes.clone()).unwrap();
        model.push(bytes);
    }
    assert!(bench.log.segment_count() > 4);
    let end = bench.log.end();
    for max_bytes in [1, 100, 333, 5000] {
        assert_eq!(bench.read_all(max_bytes).unwrap(), model);
    }
    for from in 0..end.get() {
        let read = bench.log.read(&mut bench.files, Offset(from), 1, end, true).unwrap();
        let header = BatchHeader::parse(&read.records).unwrap();
        assert!(header.base_offset.get() <= from && header.last_offset.get() >= from);
        assert_eq!(read.records.len(), header.size as usize);
        let none = bench.log.read(&mut bench.files, Offset(from), 1, end, false).unwrap();
        assert!(none.records.is_empty() && none.first_batch_too_large);
        // An upper bound within the first batch hides it.
        let hidden = bench.log.read(&mut bench.files, Offset(from), 1, header.last_offset, true).unwrap();
        assert!(hidden.records.is_empty() && !hidden.first_batch_too_large);
    }
    for outside in [-1, end.get() + 1] {
        let error = bench.log.read(&mut bench.files, Offset(outside), 1, end, true).unwrap_err();
        assert!(matches!(error, StorageError::OffsetOutOfRange { .. }), "{error}");
    }
}

#[test]
fn header_and_records_may_come_apart_and_batches_together() {
    let mut bench = Bench::new(small_segments());
    let split = |bytes: &Bytes| AppendBytes::Split {
        header: bytes[..61].try_into().unwrap(),
        body: bytes.slice(61..),
    };
    let batches: Vec<Bytes> = (0..30).map(|at| batch(at * 2, 2, 40, 1000, 0)).collect();
    let joined = Bytes::from([&batches[10][..], &batches[11][..], &batches[12][..]].concat());
    let mut pieces: Vec<AppendBytes> = batches[..10].iter().map(split).collect();
    pieces.push(joined.into());
    pieces.extend(batches[13..].iter().map(split));
    let appended = bench.log.append(&mut bench.files, &pieces, NOW).unwrap();
    assert_eq!(appended.end, Offset(60));
    assert!(appended.rolled.is_some() && bench.log.segment_count() > 3);
    assert_eq!(bench.read_all(400).unwrap(), batches);
}

#[test]
fn what_is_no_batch_or_does_not_follow_is_refused_and_nothing_changes() {
    let mut bench = Bench::new(small_segments());
    bench.fill(3, 10);
    let good = batch(3, 1, 10, 1000, 0);
    let refused = |bench: &mut Bench, bytes: Bytes| bench.append(bytes).unwrap_err();
    assert!(matches!(refused(&mut bench, batch(2, 1, 10, 0, 0)), StorageError::OutOfOrder { .. }));
    assert!(matches!(refused(&mut bench, good.slice(..70)), StorageError::NotBatches(_)));
    assert!(matches!(refused(&mut bench, good.slice(..20)), StorageError::NotBatches(_)));
    assert!(matches!(refused(&mut bench, vec![0; 80].into()), StorageError::NotBatches(_)));
    assert!(matches!(refused(&mut bench, batch(3, 1, 2000, 0, 0)), StorageError::TooLargeForSegment { .. }));
    assert_eq!(bench.log.end(), Offset(3));
    bench.append(good).unwrap();
    assert_eq!(bench.read_all(100).unwrap().len(), 4);
}

#[test]
fn segments_are_rolled_by_size_time_and_reach() {
    let mut bench = Bench::new(LogConfig { segment_ms: barnabas_base::DurationMs(100), ..small_segments() });
    bench.append(batch(0, 1, 10, 1000, 0)).unwrap();
    bench.append(batch(1, 1, 10, 1100, 0)).unwrap();
    assert_eq!(bench.log.segment_count(), 1);
    bench.append(batch(2, 1, 10, 1101, 0)).unwrap();
    assert_eq!(bench.log.segment_count(), 2);
    // Out of the reach of 31 bits. The next segment begins where this one ends, if that reaches far enough.
    bench.append(batch(2 + (1 << 31), 1, 10, 1101, 0)).unwrap();
    assert_eq!(bench.log.segment_count(), 3);
    assert_eq!(bench.log.active_segment_base(), Offset(3));
    bench.append(batch(1 << 33, 1, 10, 1101, 0)).unwrap();
    assert_eq!(bench.log.segment_count(), 4);
    assert_eq!(bench.log.active_segment_base(), Offset(1 << 33));
    assert_eq!(bench.read_all(100).unwrap().len(), 5);
}

#[test]
fn a_full_index_rolls() {
    let mut bench =
        Bench::new(LogConfig { segment_index_bytes: 36, index_interval_bytes: 1, ..LogConfig::default() });
    bench.fill(10, 10);
    assert!(bench.log.segment_count() >= 3, "{}", bench.log.segment_count());
    assert_eq!(bench.read_all(1000).unwrap().len(), 10);
}

#[test]
fn indexes_hold_what_kafka_would_write() {
    let mut bench = Bench::new(LogConfig { index_interval_bytes: 100, ..LogConfig::default() });
    let size = batch(0, 1, 30, 0, 0).len();
    bench.fill(8, 30);
    bench.stop().unwrap();
    // Of batches of this size, every second one gets an entry, once more than 100 bytes lie behind the last.
    assert!(size < 100 && size * 2 > 100, "{size}");
    let offsets = bench.disk.contents(&bench.path("00000000000000000000.index")).unwrap();
    let expected: Vec<[u8; 8]> = [2, 4, 6]
        .map(|at: u32| {
            let mut entry = [0; 8];
            entry[..4].copy_from_slice(&at.to_be_bytes());
            entry[4..].copy_from_slice(&(at * size as u32).to_be_bytes());
            entry
        })
        .to_vec();
    assert_eq!(offsets, expected.concat());
    let times = bench.disk.contents(&bench.path("00000000000000000000.timeindex")).unwrap();
    let expected = [2, 4, 6, 7].map(|at| {
        LargestTimestamp { timestamp: TimestampMs(1000 + at), offset: Offset(at) }.encode(Offset(0))
    });
    assert_eq!(times, expected.concat());
}

#[test]
fn an_index_that_is_rebuilt_is_the_one_that_was_written() {
    let mut bench = Bench::new(small_segments());
    bench.fill(60, 33);
    bench.stop().unwrap();
    let indexes: Vec<String> = bench.names().into_iter().filter(|name| name.ends_with("index")).collect();
    assert!(indexes.len() > 8);
    let before: Vec<_> = indexes.iter().map(|name| bench.disk.contents(&bench.path(name))).collect();
    for name in &indexes {
        bench.files.disk().remove_file(&bench.path(name)).unwrap();
    }
    bench.reopen().unwrap();
    assert_eq!(bench.read_all(100).unwrap().len(), 60);
    bench.stop().unwrap();
    let after: Vec<_> = indexes.iter().map(|name| bench.disk.contents(&bench.path(name))).collect();
    assert_eq!(before, after);
    // And after an unclean stop, where all of them are rewritten.
    bench.dir.begin().unwrap();
    bench.reopen().unwrap();
    bench.stop().unwrap();
    let after: Vec<_> = indexes.iter().map(|name| bench.disk.contents(&bench.path(name))).collect();
    assert_eq!(before, after);
}

#[test]
fn a_log_is_found_again_as_it_was_left() {
    let mut bench = Bench::new(small_segments());
    for at in 0..30 {
        let end = bench.log.end().get();
        bench.append(batch(end, 2, 30, 1000 + at, (at / 10) as i32)).unwrap();
    }
    let before = bench.read_all(1000).unwrap();
    let epochs = bench.log.epochs().clone();
    for clean in [true, false, true] {
        if clean {
            bench.stop().unwrap();
        }
        assert_eq!(bench.reopen().unwrap().cut, None);
        assert_eq!(bench.log.end(), Offset(60));
        assert_eq!(bench.log.epochs(), &epochs);
        assert_eq!(bench.read_all(1000).unwrap(), before);
        bench.sync().unwrap();
    }
    bench.fill(3, 10);
    assert_eq!(bench.read_all(1000).unwrap().len(), 33);
}

#[test]
fn open_files_stay_under_their_bound() {
    let mut bench = Bench::new(small_segments());
    for _ in 0..50 {
        bench.fill(5, 60);
        bench.sync().unwrap();
        bench.read_all(500).unwrap();
        assert!(bench.files.open_files() <= 8);
    }
}

#[test]
fn a_full_disk_refuses_and_forgets_nothing() {
    let mut bench = Bench::new(small_segments());
    bench.fill(10, 50);
    let before = bench.read_all(1000).unwrap();
    let used = {
        let space = bench.dir.space().unwrap();
        space.total - space.free
    };
    for room in 0..600 {
        bench.disk.set_capacity(used + room);
        let end = bench.log.end();
        let pieces: Vec<AppendBytes> =
            (0..15).map(|at| batch(end.get() + at, 1, 80, 1000, 0).into()).collect();
        let error = bench.log.append(&mut bench.files, &pieces, NOW).unwrap_err();
        assert!(matches!(error, StorageError::Full(_)), "{error}");
        assert_eq!(bench.log.end(), end);
        assert_eq!(bench.read_all(1000).unwrap(), before);
    }
    bench.disk.set_capacity(1 << 30);
    bench.fill(10, 80);
    assert_eq!(bench.sync().unwrap(), Offset(20));
    bench.stop().unwrap();
    bench.reopen().unwrap();
    assert_eq!(bench.read_all(1000).unwrap().len(), 20);
    for name in bench.names() {
        let known = name == "partition.metadata" || name == "leader-epoch-checkpoint";
        assert!(known || parse_offset_name(&name).is_some(), "{name}");
    }
}

#[test]
fn a_log_opens_on_a_full_disk_and_goes_on_when_there_is_room() {
    let mut bench = Bench::new(small_segments());
    bench.disk.set_capacity(0);
    let bytes = batch(0, 1, 50, 1000, 0);
    assert!(matches!(bench.append(bytes), Err(StorageError::Full(_))));
    bench.disk.set_capacity(1 << 30);
    bench.fill(60, 50);
    bench.sync().unwrap();
    bench.checkpoint().unwrap();
    bench.fill(20, 50);
    let before = bench.read_all(500).unwrap();
    for name in bench.names().iter().filter(|name| name.ends_with("index")) {
        bench.files.disk().remove_file(&bench.path(name)).unwrap();
    }
    bench.disk.set_capacity(0);
    let opened = bench.reopen();
    // Indexes below the recovery point are needed; the others can wait.
    if let Ok(opened) = &opened {
        assert_eq!(opened.cut, None);
        assert_eq!(bench.read_all(500).unwrap(), before);
        assert!(matches!(bench.log.checkpoint(&mut bench.files), Ok(_) | Err(StorageError::Full(_))));
        let snapshot = bench.log.write_producer_snapshot(&mut bench.files, Offset(80), &[]);
        assert!(matches!(snapshot, Err(StorageError::Full(_))));
    }
    bench.disk.set_capacity(1 << 30);
    if opened.is_err() {
        bench.reopen().unwrap();
    }
    bench.fill(5, 50);
    assert_eq!(bench.read_all(500).unwrap().len(), 85);
    bench.stop().unwrap();
    bench.reopen().unwrap();
    assert_eq!(bench.read_all(500).unwrap().len(), 85);
}

#[test]
fn a_failed_write_is_final() {
    let mut bench = Bench::new(small_segments());
    bench.fill(3, 50);
    bench.disk.set_faults(crate::Faults { writes_until_error: Some(0), ..Default::default() });
    let bytes = batch(3, 1, 10, 0, 0);
    assert!(matches!(bench.append(bytes.clone()).unwrap_err(), StorageError::Disk(_)));
    bench.disk.set_faults(crate::Faults::default());
    assert!(matches!(bench.append(bytes).unwrap_err(), StorageError::Failed(_)));
}

#[test]
fn producers_and_aborted_transactions_are_found_again() {
    use barnabas_base::{CoordinatorEpoch, ProducerEpoch, ProducerId, Sequence};
    let mut bench = Bench::new(small_segments());
    bench.fill(20, 50);
    let entry = |id| crate::ProducerEntry {
        producer_id: ProducerId(id),
        epoch: ProducerEpoch(2),
        last_sequence: Sequence(9),
        last_offset: Offset(19),
        offset_delta: 0,
        timestamp: NOW,
        coordinator_epoch: CoordinatorEpoch(-1),
        current_txn_first_offset: Offset(-1),
    };
    bench.log.write_producer_snapshot(&mut bench.files, Offset(10), &[entry(1)]).unwrap();
    bench.log.write_producer_snapshot(&mut bench.files, Offset(20), &[entry(1), entry(2)]).unwrap();
    let aborted = |last: i64| crate::AbortedTransaction {
        producer_id: ProducerId(1),
        first_offset: Offset(last - 3),
        last_offset: Offset(last),
        last_stable_offset: Offset(last + 1),
    };
    for last in [4, 9, 15, 19] {
        bench.log.append_aborted(&mut bench.files, aborted(last)).unwrap();
    }
    for _ in 0..2 {
        let newest = bench.log.read_producer_snapshot(&mut bench.files, Offset(20)).unwrap();
        assert_eq!(newest, Some((Offset(20), vec![entry(1), entry(2)])));
        let seen = |bench: &mut Bench, from, upper| -> Vec<i64> {
            let found =
                bench.log.aborted_transactions(&mut bench.files, Offset(from), Offset(upper)).unwrap();
            found.iter().map(|aborted| aborted.last_offset.get()).collect()
        };
        assert_eq!(seen(&mut bench, 0, 20), [4, 9, 15, 19]);
        assert_eq!(seen(&mut bench, 10, 14), [15]);
        assert_eq!(seen(&mut bench, 5, 7), [9]);
        bench.stop().unwrap();
        bench.reopen().unwrap();
    }
    let path = bench.path("00000000000000000020.snapshot");
    bench.disk.corrupt(&path, |bytes| bytes[20] ^= 1);
    // The one below was at no segment's base, so it went when the log was opened.
    assert_eq!(bench.log.read_producer_snapshot(&mut bench.files, Offset(20)).unwrap(), None);
    assert!(!bench.names().contains(&"00000000000000000020.snapshot".to_owned()));
}

/// A start met the first batch while it could not be read: the transaction seemed to begin behind it.
#[test]
fn aborted_transactions_are_derived_again_after_a_mend() {
    use barnabas_base::{CoordinatorEpoch, ProducerEpoch, ProducerId, Sequence};
    use barnabas_wire::records::{ControlType, EndTxnMarker, control_batch};
    let mut bench = Bench::new(LogConfig::default());
    let options = |bench: &Bench| BatchOptions {
        base_offset: bench.log.end(),
        producer_id: ProducerId(1),
        producer_epoch: ProducerEpoch(0),
        transactional: true,
        ..BatchOptions::default()
    };
    for _ in 0..2 {
        let mut builder = BatchBuilder::new(options(&bench));
        builder.push(NOW, None, Some(b"in doubt"), &[]);
        bench.append(builder.build().unwrap()).unwrap();
    }
    bench.log.roll(&mut bench.files, NOW).unwrap();
    let entry = crate::ProducerEntry {
        producer_id: ProducerId(1),
        epoch: ProducerEpoch(0),
        last_sequence: Sequence(1),
        last_offset: Offset(1),
        offset_delta: 0,
        timestamp: NOW,
        coordinator_epoch: CoordinatorEpoch(-1),
        current_txn_first_offset: Offset(1),
    };
    bench.log.write_producer_snapshot(&mut bench.files, Offset(2), &[entry]).unwrap();
    let marker = EndTxnMarker { commit: false, coordinator_epoch: CoordinatorEpoch(0) };
    let bytes = control_batch(options(&bench), NOW, ControlType::Abort, &marker.value()).unwrap();
    bench.append(bytes).unwrap();
    let right = crate::AbortedTransaction {
        producer_id: ProducerId(1),
        first_offset: Offset(0),
        last_offset: Offset(2),
        last_stable_offset: Offset(3),
    };
    let wrong = crate::AbortedTransaction { first_offset: Offset(1), ..right };
    bench.log.append_aborted(&mut bench.files, wrong).unwrap();
    let found = |bench: &mut Bench| {
        bench.log.aborted_transactions(&mut bench.files, Offset(0), Offset(3)).unwrap().to_vec()
    };
    assert_eq!(found(&mut bench), [wrong]);
    bench.log.derive_again(&mut bench.files, Offset(0)).unwrap();
    assert_eq!(found(&mut bench), [right]);
    assert_eq!(bench.log.read_producer_snapshot(&mut bench.files, Offset(3)).unwrap(), None);
    bench.stop().unwrap();
    bench.reopen().unwrap();
    assert_eq!(found(&mut bench), [right]);
}

#[test]
fn aborted_transactions_are_found_again_in_the_batches() {
    use barnabas_base::{CoordinatorEpoch, ProducerEpoch, ProducerId, Sequence};
    use barnabas_wire::records::{ControlType, EndTxnMarker, control_batch};
    let options = |bench: &Bench, producer| BatchOptions {
        base_offset: bench.log.end(),
        producer_id: ProducerId(producer),
        producer_epoch: ProducerEpoch(0),
        transactional: true,
        ..BatchOptions::default()
    };
    for (with_snapshot, reopens) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut bench = Bench::new(LogConfig::default());
        for producer in [1, 2] {
            let mut builder = BatchBuilder::new(options(&bench, producer));
            builder.push(NOW, None, Some(b"in doubt"), &[]);
            builder.push(NOW, None, Some(b"as well"), &[]);
            bench.append(builder.build().unwrap()).unwrap();
        }
        bench.log.roll(&mut bench.files, NOW).unwrap();
        if with_snapshot {
            let entry = |id, first| crate::ProducerEntry {
                producer_id: ProducerId(id),
                epoch: ProducerEpoch(0),
                last_sequence: Sequence(1),
                last_offset: Offset(first + 1),
                offset_delta: 1,
                timestamp: NOW,
                coordinator_epoch: CoordinatorEpoch(-1),
                current_txn_first_offset: Offset(first),
            };
            bench
                .log
                .write_producer_snapshot(&mut bench.files, Offset(4), &[entry(1, 0), entry(2, 2)])
                .unwrap();
        }
        bench.sync().unwrap();
        bench.checkpoint().unwrap();
        for (producer, commit) in [(1, false), (2, true)] {
            let marker = EndTxnMarker { commit, coordinator_epoch: CoordinatorEpoch(0) };
            let kind = if commit { ControlType::Commit } else { ControlType::Abort };
            let bytes = control_batch(options(&bench, producer), NOW, kind, &marker.value()).unwrap();
            bench.append(bytes).unwrap();
        }
        if reopens {
            bench.reopen().unwrap();
        } else {
            // Who has appended them knew nothing of producers.
            bench.log.find_aborted(&mut bench.files, Offset(4)).unwrap();
        }
        let found = bench.log.aborted_transactions(&mut bench.files, Offset(0), Offset(6)).unwrap();
        let expected = crate::AbortedTransaction {
            producer_id: ProducerId(1),
            first_offset: Offset(0),
            last_offset: Offset(4),
            last_stable_offset: Offset(2),
        };
        assert_eq!(found, [expected], "{with_snapshot} {reopens}");
    }
}

#[test]
fn formats_0_and_1_are_read_where_they_lie() {
    use barnabas_wire::records::down_convert;
    for magic in [0, 1] {
        let mut bench = Bench::new(small_segments());
        let mut old = Vec::new();
        for at in 0..20 {
            let bytes = batch(at * 2, 2, 30, 1000 + at * 10, 0);
            old.push(down_convert(bytes, magic, Offset(at * 2)).unwrap());
        }
        for bytes in &old {
            bench.append(bytes.clone()).unwrap();
        }
        let all = Bytes::from(old.concat());
        for clean in [false, true, false] {
            assert_eq!(Bytes::from(bench.read_all(100).unwrap().concat()), all);
            for from in 0..40 {
                let read = bench.log.read(&mut bench.files, Offset(from), 1, Offset(40), true).unwrap();
                assert_eq!(read.next_offset, Offset(from + 1), "each message stands for itself");
            }
            let found =
                bench.log.offset_for_timestamp(&mut bench.files, TimestampMs(1100), Offset(0)).unwrap();
            let expected = if magic == 0 { None } else { Some(Offset(20)) };
            // Without timestamps the file's age counts, which says nothing of any record.
            assert_eq!(found.map(|found| found.offset), expected);
            if clean {
                bench.stop().unwrap();
            } else {
                bench.sync().unwrap();
            }
            bench.reopen().unwrap();
        }
        assert!(bench.log.epochs().entries().is_empty());
    }
}
