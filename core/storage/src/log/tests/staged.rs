//! A log whose newest batches are in memory answers everything as one that has them all in its files, and gives the
//! same files once they are written back.

use super::crash::Random;
use super::*;
use crate::{AbortedTransaction, Faults};

/// Every file of the partition, by name, but for producer snapshots and `.deleted` ones.
fn contents(bench: &Bench) -> Vec<(String, Vec<u8>)> {
    if !bench.log.is_on_disk() {
        return Vec::new();
    }
    let names =
        bench.names().into_iter().filter(|name| !name.contains("snapshot") && !name.contains("deleted"));
    names.map(|name| (name.clone(), bench.disk.contents(&bench.path(&name)).unwrap())).collect()
}

fn stage(bench: &mut Bench, batches: &[Bytes]) -> crate::Staged {
    let split = |bytes: &Bytes| AppendBytes::Split {
        header: bytes[..61].try_into().unwrap(),
        body: bytes.slice(61..),
    };
    let parts = batches.iter().enumerate().map(|(at, bytes)| match at % 2 {
        0 => AppendBytes::Whole(bytes.clone()),
        _ => split(bytes),
    });
    bench.log.stage(&mut bench.memory, &parts.collect::<Vec<_>>()).unwrap()
}

/// Batches that may follow `end`.
fn some_batches(random: &mut Random, mut end: i64, value_bytes: u64) -> Vec<Bytes> {
    let count = 1 + random.below(4);
    let mut made = Vec::new();
    for _ in 0..count {
        let records = 1 + random.below(4) as i32;
        let time = 1000 + end + random.below(50) as i64 - 25;
        made.push(batch(end, records, random.below(value_bytes) as usize, time, (end / 40) as i32));
        end += i64::from(records);
    }
    made
}

#[test]
fn nothing_is_on_disk_before_something_is_written_back() {
    let mut bench = Bench::new(LogConfig::default());
    let batches = [batch(0, 3, 10, 1000, 0), batch(3, 2, 10, 1000, 4)];
    let staged = stage(&mut bench, &batches);
    let bytes = batches.concat();
    assert_eq!((staged.from, staged.end, staged.bytes), (Offset(0), Offset(5), bytes.len() as u64));
    assert_eq!(staged.records.iter().map(|records| &records.bytes[..]).collect::<Vec<_>>(), [&bytes]);
    assert!(!bench.log.is_on_disk() && bench.log.take_dirty().is_none());
    assert_eq!((bench.log.end(), bench.log.segment_end()), (Offset(5), Offset(0)));
    assert_eq!(bench.log.recovery_point(), Offset(0));
    assert_eq!(bench.log.epochs().latest().map(|entry| entry.start), Some(Offset(3)));
    assert_eq!((bench.log.staged_bytes(), bench.log.cached_bytes()), (staged.bytes, staged.bytes));
    assert_eq!(bench.log.size_bytes(), staged.bytes);
    assert_eq!(bench.log.forget_below(Offset(5)), 0, "what is staged stays");
    assert_eq!(bench.read_all(1000).unwrap(), batches);
    // Whole batches only: the second ends past 4.
    let written_back = bench.log.write_back(&mut bench.files, Offset(4), NOW).unwrap();
    assert_eq!(
        (written_back.end, written_back.bytes, written_back.rolled),
        (Offset(3), batches[0].len() as u64, Some(Offset(0)))
    );
    assert_eq!(bench.log.staged_bytes(), batches[1].len() as u64);
    assert_eq!(bench.sync().unwrap(), Offset(3));
    assert_eq!(bench.log.forget_below(Offset(5)), batches[0].len() as u64);
    assert_eq!(bench.read_all(1000).unwrap(), batches);
    bench.log.write_back_all(&mut bench.files, NOW).unwrap();
    bench.log.forget_below(Offset(5));
    assert!(bench.log.tail.is_none());
    assert_eq!(bench.read_all(1000).unwrap(), batches);
}

/// A leader shows followers what is appended, and knows of batches that have their offsets and are not staged yet: who
/// asks for those gets nothing, and not all that is in memory from its beginning.
#[test]
fn who_asks_for_what_is_not_staged_yet_gets_nothing() {
    let mut bench = Bench::new(LogConfig::default());
    let batches = [batch(0, 3, 10, 1000, 0), batch(3, 2, 10, 1000, 4)];
    stage(&mut bench, &batches);
    for write_backs in [0, 3, 5] {
        bench.log.write_back(&mut bench.files, Offset(write_backs), NOW).unwrap();
        for at_least_one in [false, true] {
            let read = bench.log.read(&mut bench.files, Offset(5), 1000, Offset(9), at_least_one).unwrap();
            assert!(read.records.is_empty(), "written back up to {write_backs}");
            assert_eq!(read.next_offset, Offset(5));
            let read = bench.log.read(&mut bench.files, Offset(3), 1000, Offset(9), at_least_one).unwrap();
            assert_eq!(read.records, batches[1]);
        }
    }
}

#[test]
fn an_idle_log_pays_a_pointer() {
    assert_eq!(size_of_val(&Bench::new(LogConfig::default()).log.tail), size_of::<usize>());
}

#[test]
fn written_back_or_appended_the_files_are_the_same() {
    for seed in 0..60 {
        let mut random = Random(seed);
        let config = LogConfig { index_interval_bytes: 300, segment_bytes: 3000, ..LogConfig::default() };
        let (mut appended, mut written_back) = (Bench::new(config.clone()), Bench::new(config));
        written_back.files.set_direct_from([None, Some(1), Some(500)][random.below(3) as usize]);
        for _ in 0..40 {
            let batches = some_batches(&mut random, appended.log.end().get(), 300);
            for bytes in &batches {
                appended.append(bytes.clone()).unwrap();
            }
            if random.below(6) == 0 {
                let parts: Vec<AppendBytes> = batches.into_iter().map(AppendBytes::from).collect();
                written_back.log.append(&mut written_back.files, &parts, NOW).unwrap();
            } else {
                stage(&mut written_back, &batches);
            }
            if random.below(4) == 0 {
                let end = written_back.log.segment_end().get();
                let end = end + random.below((written_back.log.end().get() - end) as u64 + 1) as i64;
                written_back.log.write_back(&mut written_back.files, Offset(end), NOW).unwrap();
            }
            assert_eq!(appended.log.end(), written_back.log.end());
            assert_eq!(appended.log.epochs(), written_back.log.epochs());
            assert_eq!(appended.log.size_bytes(), written_back.log.size_bytes());
        }
        assert_eq!(appended.read_all(500).unwrap(), written_back.read_all(500).unwrap());
        appended.stop().unwrap();
        written_back.stop().unwrap();
        assert!(contents(&appended) == contents(&written_back), "seed {seed}");
    }
}

/// A log with its first batches written back, synced and forgotten, the next written back and kept, the last staged;
/// and all of them.
pub(in crate::log) fn in_three_parts() -> (Bench, Vec<Bytes>) {
    let mut bench = Bench::new(small_segments());
    let batches: Vec<Bytes> =
        (0..40).map(|at| batch(at * 2, 2, 40, 1000 + at * 10, (at / 10) as i32)).collect();
    for few in batches[..30].chunks(4) {
        stage(&mut bench, few);
    }
    bench.log.write_back(&mut bench.files, Offset(60), NOW).unwrap();
    bench.sync().unwrap();
    bench.log.forget_below(Offset(30));
    for few in batches[30..].chunks(3) {
        stage(&mut bench, few);
    }
    assert_eq!((bench.log.segment_end(), bench.log.end()), (Offset(60), Offset(80)));
    (bench, batches)
}

#[test]
fn reads_give_the_same_wherever_batches_lie() {
    let (mut bench, batches) = in_three_parts();
    for max_bytes in [1, 100, 333, 700, 5000, 100_000] {
        assert_eq!(bench.read_all(max_bytes).unwrap(), batches);
    }
    for from in 0..80 {
        let read = |bench: &mut Bench, max_bytes, upper, at_least_one| {
            bench.log.read(&mut bench.files, Offset(from), max_bytes, Offset(upper), at_least_one).unwrap()
        };
        let first = &batches[from as usize / 2];
        assert_eq!(read(&mut bench, 1, 80, true).records, first);
        let none = read(&mut bench, 1, 80, false);
        assert!(none.records.is_empty() && none.first_batch_too_large && none.next_offset == Offset(from));
        let hidden = read(&mut bench, 1000, from / 2 * 2 + 1, true);
        assert!(hidden.records.is_empty() && !hidden.first_batch_too_large);
        let two = read(&mut bench, first.len() * 2 + 1, 80, true);
        assert!(two.records.starts_with(first) && two.records.len() <= first.len() * 2);
        assert_eq!(two.position.is_none(), from >= 24, "{from}");
    }
    let mut scanned = Vec::new();
    bench.log.scan(&mut bench.files, Offset(57), Offset(71), &mut |bytes| scanned.push(bytes)).unwrap();
    assert_eq!(scanned, batches[28..36]);
}

#[test]
fn records_are_found_by_time_wherever_they_lie() {
    let (mut bench, _) = in_three_parts();
    let mut written_back = in_three_parts().0;
    written_back.log.write_back_all(&mut written_back.files, NOW).unwrap();
    for time in 990..1500 {
        for from in [0, 33, 61, 79] {
            let ask = |bench: &mut Bench| {
                let time = TimestampMs(time);
                bench.log.offset_for_timestamp(&mut bench.files, time, Offset(from)).unwrap()
            };
            assert_eq!(ask(&mut bench), ask(&mut written_back), "{time} from {from}");
        }
    }
    let newest = |bench: &mut Bench| bench.log.offset_of_max_timestamp(&mut bench.files).unwrap();
    assert_eq!(newest(&mut bench).map(|found| found.offset), Some(Offset(79)));
    assert_eq!(newest(&mut bench), newest(&mut written_back));
    // An older largest timestamp counts, wherever the newer offsets are.
    stage(&mut bench, &[batch(80, 1, 10, 5, 3)]);
    assert_eq!(newest(&mut bench).map(|found| found.offset), Some(Offset(79)));
}

#[test]
fn truncation_cuts_what_is_staged_kept_and_written_back() {
    for target in 0..80 {
        let (mut bench, batches) = in_three_parts();
        let (end, _) = bench.log.truncation_end(&mut bench.files, Offset(target)).unwrap();
        assert_eq!(end, Offset(target / 2 * 2), "batches go as a whole");
        bench.log.write_producer_snapshot(&mut bench.files, Offset(80), &[]).unwrap();
        bench.log.truncate_to(&mut bench.files, Offset(target), NOW).unwrap();
        assert_eq!(bench.log.end(), end);
        assert_eq!(bench.log.segment_end(), end.min(Offset(60)));
        assert_eq!(bench.log.recovery_point(), end.min(Offset(60)));
        assert!(bench.log.epochs().latest().is_none_or(|entry| entry.start < end));
        assert_eq!(bench.log.read_producer_snapshot(&mut bench.files, Offset(100)).unwrap(), None);
        let kept = end.get() as usize / 2;
        assert_eq!(bench.read_all(300).unwrap(), batches[..kept]);
        check_bytes(&bench);
        stage(&mut bench, &[batch(end.get(), 3, 30, 1, 9)]);
        assert_eq!(bench.read_all(300).unwrap().len(), kept + 1);
        bench.stop().unwrap();
        assert_eq!(bench.reopen().unwrap().cut, None);
        assert_eq!(bench.read_all(300).unwrap()[..kept], batches[..kept]);
        assert_eq!(bench.log.end(), end.plus(3));
    }
}

#[test]
fn a_sync_from_before_a_cut_in_the_tail_still_counts() {
    let (mut bench, _) = in_three_parts();
    bench.log.write_back(&mut bench.files, Offset(70), NOW).unwrap();
    let dirty = bench.log.take_dirty().unwrap();
    assert_eq!(dirty.ticket.end(), Offset(70));
    bench.log.truncate_to(&mut bench.files, Offset(75), NOW).unwrap();
    assert_eq!(bench.log.mark_synced(dirty.ticket), Offset(70));
}

#[test]
fn retention_counts_what_is_staged_and_keeps_it() {
    let (mut bench, batches) = in_three_parts();
    let size = bench.log.size_bytes();
    let config = LogConfig { retention_bytes: size as i64 / 2, ..small_segments() };
    bench.log.set_config(Arc::new(config));
    bench.log.delete_old_segments(&mut bench.files, NOW, Offset(80)).unwrap().unwrap();
    assert!(bench.log.size_bytes() >= size / 2 && bench.log.size_bytes() < size / 2 + 1000);
    // All of the segments are too old; what is staged is not theirs.
    let config = LogConfig { retention_ms: barnabas_base::DurationMs(1), ..small_segments() };
    bench.log.set_config(Arc::new(config));
    bench.log.delete_old_segments(&mut bench.files, NOW, Offset(80)).unwrap().unwrap();
    assert_eq!(
        (bench.log.start(), bench.log.segment_end(), bench.log.end()),
        (Offset(60), Offset(60), Offset(80))
    );
    assert_eq!(bench.read_all(400).unwrap(), batches[30..]);
    // The start moves into the tail, and stays there.
    assert!(bench.log.advance_start(Offset(67)));
    assert_eq!(bench.read_all(400).unwrap(), batches[33..]);
    bench.stop().unwrap();
    bench.reopen().unwrap();
    assert_eq!(bench.log.start(), Offset(67));
    assert_eq!(bench.read_all(400).unwrap(), batches[33..]);
}

#[test]
fn aborted_transactions_are_indexed_with_their_markers() {
    let aborted = |first, last, stable| AbortedTransaction {
        producer_id: barnabas_base::ProducerId(9),
        first_offset: Offset(first),
        last_offset: Offset(last),
        last_stable_offset: Offset(stable),
    };
    let (mut bench, _) = in_three_parts();
    let all = [aborted(2, 9, 10), aborted(50, 61, 62), aborted(60, 69, 70), aborted(70, 79, 80)];
    for entry in all {
        bench.log.append_aborted(&mut bench.files, entry).unwrap();
    }
    let ask = |bench: &mut Bench, from, upper| {
        bench.log.aborted_transactions(&mut bench.files, Offset(from), Offset(upper)).unwrap()
    };
    for end in [60, 62, 64, 72, 80] {
        bench.log.write_back(&mut bench.files, Offset(end), NOW).unwrap();
        assert_eq!(ask(&mut bench, 0, 80), all);
        assert_eq!(ask(&mut bench, 61, 62), all[1..2]);
        assert_eq!(ask(&mut bench, 62, 72), all[2..]);
    }
    let (mut bench, _) = in_three_parts();
    all.iter().for_each(|entry| bench.log.append_aborted(&mut bench.files, *entry).unwrap());
    bench.log.truncate_to(&mut bench.files, Offset(70), NOW).unwrap();
    assert_eq!(ask(&mut bench, 0, 80), all[..3]);
    stage(&mut bench, &[batch(70, 20, 3, 0, 9)]);
    bench.stop().unwrap();
    bench.reopen().unwrap();
    assert_eq!(ask(&mut bench, 0, 80), all[..3]);
}

#[test]
fn a_full_disk_leaves_what_is_staged_staged() {
    let mut met = 0;
    for room in (0..9000).step_by(150) {
        let (mut bench, batches) = in_three_parts();
        let marker = AbortedTransaction {
            producer_id: barnabas_base::ProducerId(9),
            first_offset: Offset(60),
            last_offset: Offset(61),
            last_stable_offset: Offset(62),
        };
        bench.log.append_aborted(&mut bench.files, marker).unwrap();
        let used: usize = contents(&bench).iter().map(|(_, bytes)| bytes.len()).sum();
        bench.disk.set_capacity(used as u64 + room);
        let before =
            (bench.log.segment_end(), bench.log.end(), bench.log.cached_bytes(), bench.log.staged_bytes());
        let epochs = bench.log.epochs().clone();
        match bench.log.write_back_all(&mut bench.files, NOW) {
            Err(StorageError::Full(_)) => {
                met += 1;
                let log = &bench.log;
                assert_eq!(before, (log.segment_end(), log.end(), log.cached_bytes(), log.staged_bytes()));
                assert_eq!(epochs, *log.epochs());
                // The next record is taken, and the next leader's epoch.
                stage(&mut bench, &[batch(80, 1, 10, 0, 7)]);
                assert_eq!(bench.read_all(500).unwrap()[..40], batches);
            }
            done => assert_eq!(done.unwrap().end, Offset(80)),
        }
        check_bytes(&bench);
        bench.disk.set_capacity(1 << 40);
        bench.log.write_back_all(&mut bench.files, NOW).unwrap();
        assert_eq!(bench.read_all(500).unwrap()[..40], batches);
        let found = bench.log.aborted_transactions(&mut bench.files, Offset(0), Offset(80)).unwrap();
        assert_eq!(found, [marker]);
        bench.stop().unwrap();
        bench.reopen().unwrap();
        assert_eq!(bench.read_all(500).unwrap()[..40], batches);
    }
    assert!(met > 5, "{met}");
}

#[test]
fn a_failed_write_is_final_and_what_is_staged_is_read_on() {
    let (mut bench, batches) = in_three_parts();
    bench.disk.set_faults(Faults { writes_until_error: Some(0), ..Faults::default() });
    assert!(matches!(bench.log.write_back_all(&mut bench.files, NOW), Err(StorageError::Disk(_))));
    assert!(matches!(
        bench.log.stage(&mut bench.memory, &[batch(80, 1, 1, 0, 0).into()]),
        Err(StorageError::Failed(_))
    ));
    let from_memory = bench.log.read(&mut bench.files, Offset(60), 1 << 20, Offset(80), true).unwrap();
    assert_eq!(from_memory.records, Bytes::from(batches[30..].concat()));
}

#[test]
fn what_does_not_follow_is_not_staged() {
    let (mut bench, _) = in_three_parts();
    let before = bench.log.cached_bytes();
    let refused =
        |bench: &mut Bench, bytes: Bytes| bench.log.stage(&mut bench.memory, &[bytes.into()]).unwrap_err();
    assert!(matches!(refused(&mut bench, batch(79, 1, 1, 0, 0)), StorageError::OutOfOrder { .. }));
    assert!(matches!(refused(&mut bench, vec![0; 90].into()), StorageError::NotBatches(_)));
    assert!(matches!(refused(&mut bench, batch(80, 1, 2000, 0, 0)), StorageError::TooLargeForSegment { .. }));
    assert_eq!((bench.log.end(), bench.log.cached_bytes()), (Offset(80), before));
}

#[test]
fn an_append_past_the_tail_leaves_a_hole_that_readers_fill_from_the_segment() {
    let (mut bench, mut batches) = in_three_parts();
    for at in 0..12 {
        let end = bench.log.end().get();
        let bytes = batch(end, 2, 60, 1000, 5);
        match at % 3 {
            0 => {
                bench.append(bytes.clone()).unwrap();
                assert_eq!(bench.log.staged_bytes(), 0, "what was staged went first");
            }
            1 => {
                let parts = [AppendBytes::Whole(bytes.clone())];
                bench.log.append_kept(&mut bench.files, &mut bench.memory, &parts, NOW).unwrap();
                let read = bench.log.read(&mut bench.files, Offset(end), 1, Offset(end + 2), true).unwrap();
                assert_eq!((read.records, read.position), (bytes.clone(), None));
            }
            _ => {
                stage(&mut bench, std::slice::from_ref(&bytes));
            }
        }
        batches.push(bytes);
        check_bytes(&bench);
        for max_bytes in [1, 200, 10_000] {
            assert_eq!(bench.read_all(max_bytes).unwrap(), batches);
        }
    }
}

#[test]
fn direct_and_buffered_writes_take_turns_in_one_block() {
    let mut bench = Bench::new(LogConfig::default());
    let mut batches = Vec::new();
    for at in 0..12 {
        // A multiple of the block: the next direct write begins where the last one ended, within another block.
        let bytes = batch(at, 1, if at % 3 == 1 { 4096 - 70 } else { 1000 + at as usize }, 1000, 0);
        assert!(at % 3 != 1 || bytes.len() == 4096, "{}", bytes.len());
        bench.files.set_direct_from((at % 3 != 1).then_some(1));
        stage(&mut bench, std::slice::from_ref(&bytes));
        bench.log.write_back_all(&mut bench.files, NOW).unwrap();
        bench.log.forget_below(Offset(at + 1));
        batches.push(bytes);
        assert_eq!(bench.read_all(10_000).unwrap(), batches);
    }
}

#[test]
fn an_epoch_without_records_outlives_a_full_disk() {
    let (mut bench, _) = in_three_parts();
    bench.log.write_back_all(&mut bench.files, NOW).unwrap();
    assert!(bench.log.assign_epoch(LeaderEpoch(8), Offset(80)));
    let epochs = bench.log.epochs().clone();
    bench.disk.set_capacity(1);
    assert!(matches!(bench.append(batch(80, 1, 10, 0, 9)), Err(StorageError::Full(_))));
    assert_eq!(*bench.log.epochs(), epochs);
}

/// The counts are what the pieces hold, and what is staged is whole and without a hole.
pub(in crate::log) fn check_bytes(bench: &Bench) {
    if let Some(tail) = &bench.log.tail {
        tail.check(bench.log.segment_end());
    }
}

/// What the partition holds, and what its directory's journal would bring back.
struct Model {
    batches: Vec<Bytes>,
    /// What the journal has made durable.
    journaled: Offset,
}

fn end_of(bytes: &Bytes) -> Offset {
    BatchHeader::parse(bytes).unwrap().next_offset()
}

impl Model {
    /// The journal's part after a crash: what was durable and is not in the segments is appended.
    fn replay(&mut self, bench: &mut Bench, seed: u64) {
        let found = bench.log.end();
        self.batches.retain(|bytes| end_of(bytes) <= found.max(self.journaled));
        let lacking: Vec<Bytes> =
            self.batches.iter().filter(|bytes| end_of(bytes) > found).cloned().collect();
        for bytes in lacking {
            bench.append(bytes).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        }
        bench.sync().unwrap();
    }

    fn check(&self, bench: &mut Bench, seed: u64) {
        let read = bench.read_all(700).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let start = bench.log.start();
        let visible: Vec<Bytes> =
            self.batches.iter().filter(|bytes| end_of(bytes) > start).cloned().collect();
        assert!(visible == read, "seed {seed}: other batches than were staged, from {start}");
        check_bytes(bench);
        let log = &bench.log;
        assert!(log.recovery_point() <= log.segment_end() && log.segment_end() <= log.end(), "seed {seed}");
    }
}

fn step(bench: &mut Bench, model: &mut Model, random: &mut Random) -> Result<(), StorageError> {
    let (start, end) = (bench.log.start().get(), bench.log.end().get());
    match random.below(24) {
        0..=9 => {
            let batches = some_batches(random, end, 150);
            stage(bench, &batches);
            model.batches.extend(batches);
            if random.below(3) > 0 {
                model.journaled = bench.log.end();
            }
        }
        // The journal asks only for what it made durable.
        10..=13 => {
            let to = Offset(start + random.below((end - start + 1) as u64) as i64).min(model.journaled);
            bench.log.write_back(&mut bench.files, to, NOW)?;
        }
        14 | 15 => {
            bench.sync()?;
        }
        16 => {
            let batches = some_batches(random, end, 150);
            let parts: Vec<AppendBytes> = batches.iter().cloned().map(AppendBytes::from).collect();
            if random.below(2) == 0 {
                bench.log.append(&mut bench.files, &parts, NOW)?;
            } else {
                bench.log.append_kept(&mut bench.files, &mut bench.memory, &parts, NOW)?;
            }
            model.batches.extend(batches);
            bench.sync()?;
            model.journaled = bench.log.end();
        }
        17 => drop(bench.log.forget_below(Offset(start + random.below((end - start + 1) as u64) as i64))),
        18 => bench.checkpoint()?,
        19 => {
            bench.log.roll(&mut bench.files, NOW)?;
        }
        20 => bench.log.write_producer_snapshot(&mut bench.files, Offset(end), &[])?,
        21 => truncate(bench, model, random.below(9) as i64)?,
        22 => retain(bench)?,
        _ => {
            let used: u64 = contents(bench).iter().map(|(_, bytes)| bytes.len() as u64).sum();
            bench.disk.set_capacity(used + random.below(2000));
            match bench.log.write_back(&mut bench.files, model.journaled, NOW) {
                Ok(_) | Err(StorageError::Full(_)) => {}
                Err(error) => return Err(error),
            }
            bench.disk.set_capacity(1 << 40);
        }
    }
    Ok(())
}

fn truncate(bench: &mut Bench, model: &mut Model, records: i64) -> Result<(), StorageError> {
    let (start, end) = (bench.log.start(), bench.log.end());
    let (to, _) = bench.log.truncation_end(&mut bench.files, end.plus(-records).max(start))?;
    if to < bench.log.recovery_point() {
        bench.dir.set_recovery_point(bench.log.place().topic_partition.clone(), to);
        bench.dir.write_checkpoints()?;
    }
    bench.log.truncate_to(&mut bench.files, to, NOW)?;
    model.batches.retain(|bytes| end_of(bytes) <= to);
    model.journaled = model.journaled.min(to);
    bench.sync()?;
    Ok(())
}

fn retain(bench: &mut Bench) -> Result<(), StorageError> {
    let synced = bench.log.recovery_point();
    bench.log.advance_start(Offset(synced.get() / 2));
    for path in
        bench.log.delete_old_segments(&mut bench.files, NOW, synced)?.into_iter().flat_map(|gone| gone.files)
    {
        bench.files.disk().remove_file(&path)?;
    }
    Ok(())
}

fn life(seed: u64) {
    let mut random = Random(seed);
    let retention_ms = barnabas_base::DurationMs(-1);
    let mut bench = Bench::new(LogConfig { retention_ms, ..small_segments() });
    bench.direct_from = [None, Some(1), Some(300)][random.below(3) as usize];
    bench.files.set_direct_from(bench.direct_from);
    let mut model = Model { batches: Vec::new(), journaled: Offset(0) };
    for _ in 0..4 {
        for _ in 0..random.below(40) {
            step(&mut bench, &mut model, &mut random).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            model.check(&mut bench, seed);
        }
        match random.below(4) {
            0 => {
                bench.stop().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
                model.journaled = bench.log.end();
            }
            1 => {}
            _ => bench.disk.crash(random.below(u64::MAX)),
        }
        bench.reopen().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        model.replay(&mut bench, seed);
        model.check(&mut bench, seed);
        model.journaled = bench.log.end();
    }
}

#[test]
fn what_was_staged_and_journaled_is_there_after_every_crash() {
    for seed in 0..150 {
        life(seed);
    }
}

#[test]
#[ignore = "a minute: run with --release and --ignored"]
fn what_was_staged_and_journaled_is_there_after_very_many_crashes() {
    for seed in 0..50_000 {
        life(seed);
    }
}
