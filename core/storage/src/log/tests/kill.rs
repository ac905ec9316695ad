//! The power goes at any moment, and what an unclean start does not read again is right all the same: producers'
//! states, aborted transactions, leader epochs, indexes.

use std::collections::BTreeMap;

use barnabas_base::{CoordinatorEpoch, ProducerEpoch, ProducerId, Sequence};
use barnabas_wire::records::{ControlType, EndTxnMarker, control_batch};

use super::crash::Random;
use super::*;
use crate::{AbortedTransaction, ProducerEntry};

#[derive(Debug, Clone)]
struct Written {
    bytes: Bytes,
    producer: ProducerId,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Transactional,
    Marker { commit: bool },
}

/// A producer's last offset, and where its open transaction began.
type States = BTreeMap<i64, (Offset, Option<Offset>)>;

struct Story {
    bench: Bench,
    random: Random,
    written: Vec<Written>,
    acknowledged: Offset,
    runs_ahead: bool,
}

fn config() -> LogConfig {
    LogConfig { segment_bytes: 12_000, index_interval_bytes: 150, ..LogConfig::default() }
}

fn follow(states: &mut States, header: &BatchHeader, kind: Kind) -> Option<Offset> {
    let state = states.entry(header.producer_id.get()).or_insert((Offset::NONE, None));
    let begun = state.1;
    match kind {
        Kind::Plain => {}
        Kind::Transactional => state.1 = Some(begun.unwrap_or(header.base_offset)),
        Kind::Marker { .. } => state.1 = None,
    }
    state.0 = header.last_offset;
    begun
}

impl Story {
    fn header(written: &Written) -> BatchHeader {
        BatchHeader::parse(&written.bytes).unwrap()
    }

    /// Producers' states and aborted transactions after all batches below `end`.
    fn model(&self, end: Offset) -> (States, Vec<AbortedTransaction>) {
        let (mut states, mut aborted) = (States::new(), Vec::new());
        for written in self.written.iter().filter(|written| Self::header(written).last_offset < end) {
            let header = Self::header(written);
            let begun = follow(&mut states, &header, written.kind);
            if let (Kind::Marker { commit: false }, Some(first_offset)) = (written.kind, begun) {
                let open = states.values().filter_map(|state| state.1).min();
                aborted.push(AbortedTransaction {
                    producer_id: written.producer,
                    first_offset,
                    last_offset: header.last_offset,
                    last_stable_offset: open.unwrap_or(header.next_offset()),
                });
            }
        }
        (states, aborted)
    }

    fn append(&mut self) -> Result<(), StorageError> {
        let end = self.bench.log.end();
        let producer = ProducerId(self.random.below(4) as i64);
        let open = self.model(end).0.get(&producer.get()).and_then(|state| state.1);
        let options = BatchOptions {
            base_offset: end,
            leader_epoch: LeaderEpoch((end.get() / 60) as i32),
            producer_id: producer,
            producer_epoch: ProducerEpoch(0),
            base_sequence: Sequence(0),
            transactional: open.is_some() || self.random.below(3) == 0,
            ..BatchOptions::default()
        };
        // Times that hardly rise, and now and then go back.
        let time = TimestampMs(1000 + end.get() / 20 * 10 - self.random.below(30) as i64);
        let (bytes, kind) = if open.is_some() && self.random.below(3) == 0 {
            let commit = self.random.below(2) == 0;
            let marker = EndTxnMarker { commit, coordinator_epoch: CoordinatorEpoch(0) };
            let control = if commit { ControlType::Commit } else { ControlType::Abort };
            (control_batch(options, time, control, &marker.value()).unwrap(), Kind::Marker { commit })
        } else {
            let kind = if options.transactional { Kind::Transactional } else { Kind::Plain };
            let mut builder = BatchBuilder::new(options);
            for _ in 0..1 + self.random.below(3) {
                builder.push(time, None, Some(&vec![end.get() as u8; self.random.below(200) as usize]), &[]);
            }
            (builder.build().unwrap(), kind)
        };
        let staged = self.random.below(2) == 0;
        if staged {
            self.bench.log.stage(&mut self.bench.memory, &[bytes.clone().into()])?;
        } else {
            self.bench.append(bytes.clone())?;
        }
        self.written.push(Written { bytes, producer, kind });
        let end = self.bench.log.end();
        if let (Kind::Marker { commit: false }, Some(aborted)) = (kind, self.model(end).1.last()) {
            self.bench.log.append_aborted(&mut self.bench.files, *aborted)?;
        }
        Ok(())
    }

    fn snapshot(&mut self) -> Result<(), StorageError> {
        let Bench { log, files, .. } = &mut self.bench;
        log.write_back_all(files, NOW)?;
        let end = log.end();
        let entry = |(id, (last_offset, first)): (i64, (Offset, Option<Offset>))| ProducerEntry {
            producer_id: ProducerId(id),
            epoch: ProducerEpoch(0),
            last_sequence: Sequence(0),
            last_offset,
            offset_delta: 0,
            timestamp: NOW,
            coordinator_epoch: CoordinatorEpoch(0),
            current_txn_first_offset: first.unwrap_or(Offset::NONE),
        };
        let entries: Vec<ProducerEntry> = self.model(end).0.into_iter().map(entry).collect();
        let Bench { log, files, .. } = &mut self.bench;
        log.write_producer_snapshot(files, end, &entries)
    }

    fn truncate(&mut self) -> Result<(), StorageError> {
        let Bench { log, files, dir, .. } = &mut self.bench;
        log.write_back_all(files, NOW)?;
        let to = Offset((log.end().get() - self.random.below(30) as i64).max(0));
        let (to, _) = log.truncation_end(files, to)?;
        if to < dir.recovery_point(&log.place().topic_partition) {
            dir.set_recovery_point(log.place().topic_partition.clone(), to);
            dir.write_checkpoints()?;
        }
        let before = log.segments.len();
        let (_, delete) = log.truncate_to(files, to, NOW)?;
        for file in delete.into_iter().flat_map(|delete| delete.files) {
            files.disk().remove_file(&file)?;
        }
        self.written.retain(|written| Self::header(written).last_offset < to);
        // Before its sync a crash may bring the records back that were given up. That of the segment is enough for
        // these.
        let segments = self.bench.log.segments.len();
        if segments == before && segments > 0 {
            let path = self.bench.path(&format!("{:020}.log", self.bench.log.active_segment_base().get()));
            self.bench.files.disk().open(&path, crate::OpenMode::Write)?.sync()?;
            self.acknowledged = self.acknowledged.min(to);
        } else {
            self.acknowledged = self.bench.sync()?;
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), StorageError> {
        match self.random.below(24) {
            0..=11 => self.append()?,
            12..=14 => drop(self.bench.log.write_back_all(&mut self.bench.files, NOW)?),
            15 | 16 => self.acknowledged = self.bench.sync()?,
            17..=19 if self.runs_ahead => {
                let (name, end) = (place().topic_partition, self.bench.log.segment_end());
                self.bench.dir.set_recovery_point(name, end);
                self.bench.dir.write_checkpoints()?;
            }
            17 => self.bench.checkpoint()?,
            18 | 19 => {
                let Bench { log, files, .. } = &mut self.bench;
                if log.note_epochs_ahead(files)? {
                    self.bench.checkpoint()?;
                }
            }
            20..=22 => self.snapshot()?,
            _ => self.truncate()?,
        }
        Ok(())
    }

    /// What was found after a crash is what some front part of what was written says.
    fn check(&mut self) -> Result<(), String> {
        let end = self.bench.log.end();
        if end < self.acknowledged {
            return Err(format!("ends at {end}, and {} was acknowledged", self.acknowledged));
        }
        self.written.retain(|written| Self::header(written).last_offset < end);
        let read = self.bench.read_all(900).map_err(|error| error.to_string())?;
        if read != self.written.iter().map(|written| written.bytes.clone()).collect::<Vec<_>>() {
            return Err("other batches than were written".to_owned());
        }
        let (states, aborted) = self.model(end);
        let found = self.states().map_err(|error| error.to_string())?;
        if found != states {
            return Err(format!("producers: {found:?}, not {states:?}"));
        }
        let Bench { log, files, .. } = &mut self.bench;
        let found = log.aborted_transactions(files, Offset(0), end).map_err(|error| error.to_string())?;
        if found != aborted {
            return Err(format!("aborted: {found:?}, not {aborted:?}"));
        }
        let mut epochs = barnabas_base::LeaderEpochs::default();
        for header in self.written.iter().map(Self::header) {
            epochs.assign(header.leader_epoch, header.base_offset);
        }
        if *self.bench.log.epochs() != epochs {
            return Err(format!("epochs: {:?}, not {epochs:?}", self.bench.log.epochs()));
        }
        self.check_indexes(end).map_err(|error| error.to_string())?
    }

    /// As the partition's owner finds them: the newest snapshot, and what comes after it.
    fn states(&mut self) -> Result<States, StorageError> {
        let Bench { log, files, .. } = &mut self.bench;
        let end = log.end();
        let (from, entries) = log.read_producer_snapshot(files, end)?.unwrap_or((Offset(0), Vec::new()));
        let of_entry = |entry: &ProducerEntry| {
            let first = entry.current_txn_first_offset;
            (entry.producer_id.get(), (entry.last_offset, (first != Offset::NONE).then_some(first)))
        };
        let mut states: States = entries.iter().map(of_entry).collect();
        log.scan_headers(files, from, end, &mut |bytes| {
            let header = BatchHeader::parse(&bytes).unwrap();
            let kind = match (header.is_control(), header.is_transactional()) {
                (true, _) => Kind::Marker { commit: false },
                (false, true) => Kind::Transactional,
                _ => Kind::Plain,
            };
            follow(&mut states, &header, kind);
        })?;
        Ok(states)
    }

    fn check_indexes(&mut self, end: Offset) -> Result<Result<(), String>, StorageError> {
        let headers: Vec<BatchHeader> = self.written.iter().map(Self::header).collect();
        let Bench { log, files, .. } = &mut self.bench;
        for (at, segment) in log.segments.clone().iter().enumerate() {
            let reach = log.reach(at);
            let inside = headers.iter().filter(|header| (segment.base..reach).contains(&header.base_offset));
            let newest = inside.map(|header| header.max_timestamp).max().unwrap_or(TimestampMs::NONE);
            let found = log.largest_timestamp(files, at)?.timestamp;
            if found != newest {
                return Ok(Err(format!("largest time of {}: {found:?}, not {newest:?}", segment.base)));
            }
        }
        for time in (900..1000 + end.get()).step_by(7) {
            let first = headers.iter().find(|header| header.max_timestamp.0 >= time);
            let found = log.offset_for_timestamp(files, TimestampMs(time), Offset(0))?;
            if found.map(|found| found.offset) != first.map(|header| header.base_offset) {
                return Ok(Err(format!("time {time}: {found:?}, not in {first:?}")));
            }
        }
        Ok(Ok(()))
    }
}

fn story(seed: u64, runs_ahead: bool) -> Result<(), String> {
    let bench = Bench::new(config());
    let mut story =
        Story { bench, random: Random(seed), written: Vec::new(), acknowledged: Offset(0), runs_ahead };
    for life in 0..4 {
        let said = |error: StorageError| format!("life {life}: {error}");
        for _ in 0..20 + story.random.below(150) {
            story.step().map_err(said)?;
        }
        match story.random.below(5) {
            0 => {
                story.bench.stop().map_err(said)?;
                story.acknowledged = story.bench.log.end();
            }
            // What was staged alone is gone.
            1 => {}
            _ => story.bench.disk.crash(story.random.below(u64::MAX)),
        }
        story.bench.reopen().map_err(said)?;
        story.check().map_err(|why| format!("life {life}: {why}"))?;
        if story.random.below(2) == 0 {
            story.acknowledged = story.bench.sync().map_err(said)?;
            continue;
        }
        // What was cut does not come back, and all else of what opening did may be forgotten.
        for base in story.bench.log.segments.iter().map(|segment| segment.base.get()) {
            let path = story.bench.path(&format!("{base:020}.log"));
            let file = story.bench.files.disk().open(&path, crate::OpenMode::Write);
            file.and_then(|file| file.sync()).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

#[test]
fn what_is_not_read_again_is_right_after_every_crash() {
    for seed in 0..400 {
        story(seed, false).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
}

#[test]
#[ignore = "a minute: run with --release and --ignored"]
fn what_is_not_read_again_is_right_after_very_many_crashes() {
    for seed in 0..60_000 {
        story(seed, false).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
}

#[cfg(planted)]
#[test]
fn planted_mistakes_of_an_unclean_start_are_noticed() {
    barnabas_base::planted::hunt("kill", |seed| story(seed, false));
}

#[test]
fn checkpoint_of_what_is_not_synced_is_noticed() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let caught = |seed: &u64| !matches!(std::panic::catch_unwind(|| story(*seed, true)), Ok(Ok(())));
    let seed = (0..1000).find(caught);
    std::panic::set_hook(hook);
    assert!(seed.is_some());
}

/// Truncations are synced at once, so that only a start that was cut off itself could leave such a snapshot: no seed
/// finds one.
#[test]
fn a_snapshot_that_is_newer_than_the_recovery_point_is_not_believed() {
    assert_eq!(snapshot_after_a_newer_one(), Some(Offset(10)));
}

#[cfg(planted)]
#[test]
fn planted_belief_in_a_newer_snapshot_is_noticed() {
    let found = barnabas_base::planted::with("BelievesNewerSnapshots", snapshot_after_a_newer_one);
    assert_eq!(found, Some(Offset(15)));
}

fn snapshot_after_a_newer_one() -> Option<Offset> {
    let mut bench = Bench::new(config());
    bench.fill(10, 40);
    bench.sync().unwrap();
    bench.checkpoint().unwrap();
    bench.log.write_producer_snapshot(&mut bench.files, Offset(10), &[]).unwrap();
    bench.fill(10, 40);
    bench.log.write_producer_snapshot(&mut bench.files, Offset(15), &[]).unwrap();
    bench.reopen().unwrap();
    assert_eq!(bench.log.end(), Offset(20));
    bench.log.read_producer_snapshot(&mut bench.files, Offset(20)).unwrap().map(|(at, _)| at)
}

/// What the segments lack was deleted before it was written back: what producers wrote last is in the journal alone,
/// and comes from there.
#[test]
fn a_log_that_ends_below_its_start_waits_for_the_journal() {
    let open = |journal_end| {
        let mut bench = Bench::new(config());
        bench.fill(3, 40);
        bench.sync().unwrap();
        bench.log.write_producer_snapshot(&mut bench.files, Offset(3), &[]).unwrap();
        let from =
            OpenFrom { log_start: Offset(5), recovery_point: Offset(3), journal_end, ..OpenFrom::default() };
        let opened = Log::open(&mut bench.files, place(), Arc::new(config()), from, NOW);
        bench.log = opened.unwrap().0;
        bench
    };
    let mut bench = open(Some(Offset(5)));
    assert_eq!((bench.log.start(), bench.log.end()), (Offset(3), Offset(3)));
    let rest = [3, 4].map(|at| AppendBytes::Whole(batch(at, 1, 40, 1000 + at, 0)));
    bench.log.stage(&mut crate::TailMemory::default(), &rest).unwrap();
    bench.log.advance_start(Offset(5));
    assert_eq!((bench.log.start(), bench.log.end()), (Offset(5), Offset(5)));
    let snapshot = bench.log.read_producer_snapshot(&mut bench.files, Offset(5)).unwrap();
    assert_eq!(snapshot.map(|(at, _)| at), Some(Offset(3)));
    // Nothing that would follow: it goes on behind what was deleted.
    let bench = open(None);
    assert_eq!((bench.log.start(), bench.log.end()), (Offset(5), Offset(5)));
}

/// Segments may go where a durable snapshot lies behind them that the checkpoint file has passed.
#[test]
fn producers_are_vouched_for_by_the_checkpoint_file() {
    let mut bench = Bench::new(config());
    let vouched = |bench: &Bench| bench.log.producers_vouched();
    bench.fill(10, 40);
    bench.sync().unwrap();
    bench.log.write_producer_snapshot(&mut bench.files, Offset(10), &[]).unwrap();
    bench.checkpoint().unwrap();
    bench.checkpoint().unwrap();
    assert_eq!(vouched(&bench), Offset::NONE, "it is not durable");
    bench.sync().unwrap();
    bench.checkpoint().unwrap();
    assert_eq!(vouched(&bench), Offset(10), "the file has named 10 before");
    bench.fill(10, 40);
    bench.log.write_producer_snapshot(&mut bench.files, Offset(20), &[]).unwrap();
    bench.sync().unwrap();
    bench.checkpoint().unwrap();
    assert_eq!(vouched(&bench), Offset(10), "the file may still say 10");
    bench.checkpoint().unwrap();
    assert_eq!(vouched(&bench), Offset(20));
    bench.reopen().unwrap();
    assert_eq!(vouched(&bench), Offset::NONE, "whether it was synced is not known to this process");
    bench.log.truncate_to(&mut bench.files, Offset(15), NOW).unwrap();
    assert_eq!(vouched(&bench), Offset::NONE);
}

/// A start that a failing disk ends leaves the transactions that it knew.
#[test]
fn aborted_transactions_outlive_a_start_that_fails() {
    let mut fails = 0;
    for after in 0..8 {
        let mut bench = Bench::new(config());
        bench.fill(10, 40);
        let aborted = [(1, 0, 4), (2, 3, 7)].map(|(producer, first, last)| AbortedTransaction {
            producer_id: ProducerId(producer),
            first_offset: Offset(first),
            last_offset: Offset(last),
            last_stable_offset: Offset(last + 1),
        });
        for entry in aborted {
            bench.log.append_aborted(&mut bench.files, entry).unwrap();
        }
        bench.sync().unwrap();
        bench.checkpoint().unwrap();
        bench.fill(3, 40);
        bench.disk.crash(1);
        let index = bench.path("00000000000000000000.txnindex");
        bench.disk.corrupt(&index, |bytes| bytes.extend([7; 27]));
        bench.files = FilePool::new(Arc::new(bench.disk.clone()), 8);
        let faults = crate::Faults { writes_until_error: Some(after), ..crate::Faults::default() };
        bench.disk.set_faults(faults);
        let from = OpenFrom { recovery_point: Offset(10), ..OpenFrom::default() };
        let opened = Log::open(&mut bench.files, place(), Arc::new(config()), from, NOW);
        fails += usize::from(opened.is_err());
        bench.disk.set_faults(crate::Faults::default());
        bench.reopen().unwrap();
        let found = bench.log.aborted_transactions(&mut bench.files, Offset(0), Offset(10)).unwrap();
        assert_eq!(found, aborted, "after {after} writes");
    }
    assert!(fails > 0);
}
