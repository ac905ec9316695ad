//! The power goes at any moment: what was synced is there, in order, and nothing that was not written.

use super::*;
use crate::Disk;
use crate::log_config::CleanupPolicy;

/// SplitMix64.
pub(super) struct Random(pub u64);

impl Random {
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        barnabas_base::split_mix_64(&mut self.0) % bound
    }
}

/// What must be true of the log, kept apart from it.
struct Model {
    batches: Vec<Bytes>,
    /// Everything below was acknowledged as durable.
    acknowledged: Offset,
    start: Offset,
}

impl Model {
    fn end_of(bytes: &Bytes) -> Offset {
        BatchHeader::parse(bytes).unwrap().next_offset()
    }

    fn check(&mut self, bench: &mut Bench, seed: u64) {
        let end = bench.log.end();
        assert!(end >= self.acknowledged, "seed {seed}: {end} is below {}", self.acknowledged);
        self.batches.retain(|bytes| Self::end_of(bytes) <= end);
        let read = bench.read_all(700).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let start = bench.log.start();
        let visible: Vec<Bytes> =
            self.batches.iter().filter(|bytes| Self::end_of(bytes) > start).cloned().collect();
        let ends =
            |batches: &[Bytes]| batches.iter().map(|bytes| Self::end_of(bytes).get()).collect::<Vec<_>>();
        assert_eq!(ends(&visible), ends(&read), "seed {seed}: from {start} to {end}");
        assert!(visible == read, "seed {seed}: other bytes than were written");
        // An empty log may end where a start that was written down lies, past what a truncation left.
        if let (Some(last), true) = (self.batches.last(), end > start) {
            assert_eq!(end, Self::end_of(last), "seed {seed}");
        }
        assert!(bench.log.start() <= self.start.max(end), "seed {seed}");
        self.start = bench.log.start();
    }
}

fn step(bench: &mut Bench, model: &mut Model, random: &mut Random) -> Result<(), StorageError> {
    match random.below(20) {
        0..=9 => {
            let pieces = 1 + random.below(3);
            let mut end = bench.log.end().get();
            let mut bytes = Vec::new();
            for _ in 0..pieces {
                let records = 1 + random.below(4) as i32;
                let epoch = (end / 40) as i32;
                bytes.push(batch(end, records, random.below(150) as usize, 1000 + end, epoch));
                end += i64::from(records);
            }
            let parts: Vec<AppendBytes> = bytes.iter().cloned().map(AppendBytes::from).collect();
            bench.log.append(&mut bench.files, &parts, NOW)?;
            model.batches.extend(bytes);
        }
        10..=14 => model.acknowledged = bench.sync()?,
        15 | 16 => bench.checkpoint()?,
        17 => {
            bench.log.roll(&mut bench.files, NOW)?;
        }
        18 if random.below(3) == 0 => {
            let to = Offset(bench.log.end().get() - random.below(6) as i64).max(bench.log.start());
            let to = model.batches.iter().map(Model::end_of).filter(|end| *end <= to).max();
            let to = to.unwrap_or(bench.log.start());
            let (to, _) = bench.log.truncation_end(&mut bench.files, to)?;
            if to < bench.log.recovery_point() {
                let partition = bench.log.place().topic_partition.clone();
                bench.dir.set_recovery_point(partition, to);
                bench.dir.write_checkpoints()?;
            }
            bench.log.truncate_to(&mut bench.files, to, NOW)?;
            model.batches.retain(|bytes| Model::end_of(bytes) <= to);
            // Until this sync, a crash may bring the records back that were given up.
            model.acknowledged = bench.sync()?;
        }
        18 => {
            bench.log.write_producer_snapshot(&mut bench.files, bench.log.end(), &[])?;
        }
        _ => {
            bench.log.advance_start(Offset(model.acknowledged.get() / 2));
            let delete = bench.log.delete_old_segments(&mut bench.files, NOW, model.acknowledged)?;
            model.start = bench.log.start();
            for path in delete.into_iter().flat_map(|delete| delete.files) {
                bench.files.disk().remove_file(&path)?;
            }
        }
    }
    Ok(())
}

fn life(seed: u64) {
    let mut random = Random(seed);
    let retention_ms = barnabas_base::DurationMs(-1);
    let mut bench = Bench::new(LogConfig { retention_ms, ..small_segments() });
    let mut model = Model { batches: Vec::new(), acknowledged: Offset(0), start: Offset(0) };
    for _ in 0..4 {
        for _ in 0..random.below(40) {
            step(&mut bench, &mut model, &mut random).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        }
        match random.below(4) {
            0 => bench.stop().unwrap_or_else(|error| panic!("seed {seed}: {error}")),
            1 => {}
            _ => bench.disk.crash(random.below(u64::MAX)),
        }
        bench.reopen().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        model.check(&mut bench, seed);
        // What was read counts as committed from here on, so it is synced before anybody is told.
        model.acknowledged = bench.sync().unwrap();
    }
}

#[test]
fn what_was_synced_is_there_after_every_crash() {
    for seed in 0..600 {
        life(seed);
    }
}

#[test]
#[ignore = "a minute: run with --release and --ignored"]
fn what_was_synced_is_there_after_very_many_crashes() {
    for seed in 0..200_000 {
        life(seed);
    }
}

#[test]
fn a_failed_sync_is_not_taken_for_a_success() {
    for at in 0..12 {
        let mut bench = Bench::new(small_segments());
        bench.fill(10, 60);
        bench.disk.set_faults(crate::Faults { syncs_until_error: Some(at), ..Default::default() });
        let dirty = bench.log.take_dirty().unwrap();
        let synced = dirty.files.iter().try_for_each(|file| file.sync());
        let synced =
            synced.and_then(|()| dirty.dirs.iter().try_for_each(|dir| bench.files.disk().sync_dir(dir)));
        if synced.is_ok() {
            continue;
        }
        bench.log.fail();
        bench.dir.fail();
        assert_eq!(bench.log.recovery_point(), Offset(0));
        assert!(matches!(bench.append(batch(10, 1, 1, 0, 0)), Err(StorageError::Failed(_))));
        assert!(matches!(bench.dir.write_checkpoints(), Err(StorageError::Failed(_))));
        assert!(matches!(bench.dir.mark_clean(barnabas_base::BrokerEpoch(1)), Err(StorageError::Failed(_))));
        // Reads go on.
        assert_eq!(bench.read_all(500).unwrap().len(), 10);
    }
}

#[test]
fn a_ticket_of_other_files_covers_nothing_that_is_written_later() {
    let mut bench = Bench::new(LogConfig::default());
    bench.fill(3, 40);
    bench.sync().unwrap();
    // As when a segment might be closed, and is not: the snapshot alone is handed in, and then a batch is written back.
    bench.log.write_producer_snapshot(&mut bench.files, Offset(3), &[]).unwrap();
    let dirty = bench.log.take_dirty().unwrap();
    bench.fill(2, 40);
    dirty.sync(&bench.disk, None).unwrap();
    assert_eq!(bench.log.mark_synced_to(dirty.ticket, Offset(5)), Offset(3));
    assert_eq!(bench.sync().unwrap(), Offset(5));
}

#[test]
fn a_marker_is_covered_only_with_its_entry_in_the_index() {
    let mut bench = Bench::new(LogConfig::default());
    bench.fill(3, 40);
    let aborted = crate::AbortedTransaction {
        producer_id: barnabas_base::ProducerId(9),
        first_offset: Offset(1),
        last_offset: Offset(4),
        last_stable_offset: Offset(5),
    };
    let dirty = bench.log.take_dirty().unwrap();
    bench.fill(1, 40);
    // Into the segment alone: that file is synced late enough.
    assert_eq!(bench.log.mark_synced_to(dirty.ticket, Offset(4)), Offset(4));
    let dirty = bench.log.take_dirty().unwrap();
    bench.fill(1, 40);
    bench.log.append_aborted(&mut bench.files, aborted).unwrap();
    assert_eq!(bench.log.mark_synced_to(dirty.ticket, Offset(5)), Offset(4));
    // Another ticket, and a log of the same place, say nothing of each other's files.
    let dirty = bench.log.take_dirty().unwrap();
    bench.fill(1, 40);
    let later = bench.log.take_dirty().unwrap();
    assert_eq!(bench.log.mark_synced_to(dirty.ticket, Offset(6)), Offset(5));
    bench.reopen().unwrap();
    let before = bench.log.recovery_point();
    assert_eq!(bench.log.mark_synced_to(later.ticket, Offset(6)), before);
}

#[test]
fn what_a_ticket_names_that_is_out_can_be_synced_without_it() {
    let mut bench = Bench::new(small_segments());
    bench.fill(30, 60);
    drop(bench.log.take_dirty().unwrap());
    bench.log.note_unsynced_again(&mut bench.files).unwrap();
    assert_eq!(bench.sync().unwrap(), Offset(30));
    bench.checkpoint().unwrap();
    for seed in 0..20 {
        bench.disk.crash(seed);
        bench.reopen().unwrap();
        assert_eq!(bench.log.end(), Offset(30));
    }
}

/// A kill in the middle of giving up all records: the segments have their names no longer, and the snapshots do.
#[test]
fn a_log_without_segments_forgets_its_snapshots() {
    let mut bench = Bench::new(LogConfig::default());
    bench.fill(5, 40);
    bench.log.write_producer_snapshot(&mut bench.files, Offset(5), &[]).unwrap();
    bench.disk.remove_file(&bench.path("00000000000000000000.log")).unwrap();
    bench.reopen().unwrap();
    bench.fill(8, 40);
    bench.sync().unwrap();
    bench.checkpoint().unwrap();
    bench.reopen().unwrap();
    assert_eq!(bench.log.read_producer_snapshot(&mut bench.files, Offset(8)).unwrap(), None);
}

/// A kill after the truncation, and power that goes in the next process's life: that one finds nothing to sync.
#[test]
fn a_cut_outlives_a_kill_and_the_power_after_it() {
    for seed in 0..20 {
        let mut bench = Bench::new(LogConfig::default());
        bench.fill(10, 40);
        bench.sync().unwrap();
        bench.dir.set_recovery_point(place().topic_partition, Offset(7));
        bench.dir.write_checkpoints().unwrap();
        bench.log.truncate_to(&mut bench.files, Offset(7), NOW).unwrap();
        bench.reopen().unwrap();
        bench.sync().unwrap();
        bench.disk.crash(seed);
        bench.reopen().unwrap();
        assert_eq!(bench.log.end(), Offset(7), "seed {seed}");
    }
}

fn compacted() -> LogConfig {
    LogConfig { cleanup: CleanupPolicy { delete: false, compact: true }, ..small_segments() }
}

/// A segment lost its unsynced end, and the next one is there: no hole of compaction lies past the recovery point
/// (found by lab/sim, climate compaction).
#[test]
fn compacted_log_that_lost_the_end_of_a_segment_ends_there() {
    let mut bench = Bench::new(compacted());
    bench.fill(2, 300);
    bench.sync().unwrap();
    bench.checkpoint().unwrap();
    bench.fill(4, 300);
    let middle = bench.path("00000000000000000002.log");
    let half = bench.disk.contents(&middle).unwrap().len() / 2;
    bench.disk.corrupt(&middle, |bytes| bytes.truncate(half));
    bench.reopen().unwrap();
    assert_eq!(bench.log.end(), Offset(3));
    assert_eq!(bench.read_all(1 << 20).unwrap().len(), 3);
}

/// So that the end of a segment that was lost shows: the copy of a compacted log has holes, and its segments none
/// between them.
#[test]
fn segments_of_a_copy_with_holes_follow_one_another() {
    let mut bench = Bench::new(compacted());
    for at in [0, 10, 20, 30] {
        bench.append(batch(at, 1, 600, 1000 + at, 0)).unwrap();
    }
    let logs = bench.names().into_iter().filter(|name| name.ends_with(".log"));
    let bases: Vec<u64> = logs.map(|name| name[..20].parse().unwrap()).collect();
    assert_eq!(bases, [0, 1, 11, 21]);
    bench.sync().unwrap();
    bench.checkpoint().unwrap();
    bench.append(batch(40, 1, 600, 1040, 0)).unwrap();
    bench.reopen().unwrap();
    assert_eq!(bench.log.end(), Offset(41));
    assert_eq!(bench.read_all(1 << 20).unwrap().len(), 5);
}
