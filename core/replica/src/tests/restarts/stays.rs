//! A replica that leaves this broker and comes back, with a crash between any two steps of that.

use super::*;
use crate::{Found, Leaving, has_left, has_returned, is_checkpointed, note_written_back};
use barnabas_base::{BrokerId, PartitionEpoch, PartitionIndex};
use barnabas_metadata::{Partition as Row, Placement};
use barnabas_partition::ReplicaKey;

fn found(standing: Standing, disk: &dyn Disk, log_dir: &LogDir) -> Found {
    Found {
        standing,
        has_folder: disk.stat(&place().dir()).unwrap().is_some(),
        is_checkpointed: is_checkpointed(log_dir, &place().topic_partition),
        log_was_cut: false,
    }
}

/// As a start does, once the image is known.
pub(super) fn note_left(recovered: &mut Recovered, standing: Standing, log_dir: &RefCell<LogDir>) {
    let found = found(standing, &**log_dir.borrow().disk(), &log_dir.borrow());
    recovered.note_left(|replay| has_left(replay, found));
    recovered.note_returned(|replay| has_returned(replay, || Ok::<_, ()>(found.has_folder)).unwrap());
    note_written_back(log_dir, recovered).unwrap();
}

pub(super) fn checkpointed(log_dir: &RefCell<LogDir>) -> Checkpointed {
    Checkpointed::read(&mut log_dir.borrow_mut(), &place().topic_partition, place().topic_id)
}

/// What has left is removed before anything is opened.
pub(super) fn write_removals(journal: &mut Journal, disk: &MemoryDisk) {
    while !journal.is_open()
        && let Take::Write(round) = journal.take_round(Micros(0))
    {
        let file = disk.open(&slot_path(round.slot), OpenMode::Write).unwrap();
        file.write_at(round.position, &[round.bytes()]).unwrap();
        file.sync().unwrap();
        journal.round_durable(round, Micros(0));
    }
}

impl Restarts {
    /// With a log whose front is in segments alone, and whose end is in the journal alone.
    fn with_front_in_segments(seed: u64) -> Self {
        let mut restarts = Self::new(seed);
        restarts.torn_one_in = 0;
        for _ in 0..6 {
            restarts.append();
            restarts.write_round();
        }
        let name = restarts.replica().name.clone();
        while restarts.journal.has(&name) {
            restarts.write_back();
            restarts.sync();
        }
        restarts.checkpoint();
        // The first round says that the file of those before is free, the second is in it.
        for _ in 0..2 {
            restarts.append();
            restarts.write_round();
        }
        restarts
    }

    /// The image takes the replica away: its log is closed, and nothing of it was acknowledged any more.
    fn close(&mut self) {
        let Bench { replica, files, .. } = &mut self.bench;
        replica.log.abandon(files);
        (self.is_closed, self.acknowledged, self.truncated_to) = (true, Offset::ZERO, None);
    }

    fn put_aside(&mut self) {
        let gone = [(place().topic_partition, Uuid([self.epoch as u8; 16]))];
        self.log_dir.borrow_mut().rename_to_delete(&gone).unwrap();
        if let Some(ticket) = self.order.take() {
            self.journal.written_back(&ticket);
        }
    }

    fn remove(&mut self) {
        let (partition, leader_epoch) = (self.replica().name.clone(), LeaderEpoch::NONE);
        self.queue.push_back(Entry { partition, leader_epoch, kind: EntryKind::Remove });
        while !self.queue.is_empty() && self.is_closed {
            self.write_round();
            // Its directory is put aside: nothing is to be written back there.
            if let Some(write_back) = self.journal.next_write_back().filter(|_| self.is_closed) {
                self.journal.written_back(&write_back.ticket);
            }
        }
        // What did not fit into the last one.
        if self.is_closed {
            self.write_round();
        }
    }

    /// Another stay begins in the same process.
    fn come_back(&mut self) {
        let number = self.bench.replica.number + 1;
        let next = crate::Opening { number, ..opening(None, None) };
        (self.bench.replica, _) = Replica::open(next, &mut self.bench.files).unwrap();
        self.written.clear();
        self.is_closed = false;
        self.check();
        self.lead();
    }

    /// Leaves and comes back, with or without a crash on the way.
    fn leave_and_come_back(&mut self) {
        let steps = self.random.below(4);
        self.standing = Standing::OutOfSync;
        self.close();
        if steps > 0 {
            self.put_aside();
        }
        if steps > 1 {
            self.remove();
        }
        // A torn round was a crash, and the replica has come back with that.
        if self.is_closed {
            match steps {
                3 => self.come_back(),
                _ => self.crash(),
            }
        }
        self.standing = Standing::CountedOn;
    }
}

/// A life of several stays, with crashes: each start finds the log of one of them.
fn stays(seed: u64) {
    let mut restarts = Restarts::new(seed);
    for _ in 0..150 {
        match restarts.random.below(30) {
            0..11 => restarts.append(),
            11..19 => restarts.write_round(),
            19..23 => restarts.write_back(),
            23..25 => restarts.sync(),
            25 | 26 => restarts.checkpoint(),
            27 | 28 => restarts.leave_and_come_back(),
            _ => restarts.crash(),
        }
    }
}

#[test]
fn replica_that_comes_back_has_no_records_of_both_stays() {
    (0..40).for_each(stays);
}

#[cfg(planted)]
#[test]
fn planted_mistakes_are_noticed_by_stays() {
    barnabas_base::planted::hunt("stays", |seed| {
        stays(seed);
        Ok(())
    });
    let tests: [(&str, fn()); 3] = [
        ("RemovesLaterStays", replica_that_moved_back_keeps_its_copy),
        ("DropsWhatIsCountedOn", replica_that_is_counted_on_is_never_given_up),
        ("BeginsBeforeRemovals", replica_leaves_until_its_removal_is_durable),
    ];
    for (mistake, test) in tests {
        let passed = std::panic::catch_unwind(|| barnabas_base::planted::with(mistake, test));
        assert!(passed.is_err(), "{mistake} is not noticed");
    }
}

#[test]
fn replica_back_before_its_removal_is_durable_is_empty() {
    let mut restarts = Restarts::with_front_in_segments(1);
    restarts.close();
    restarts.put_aside();
    restarts.standing = Standing::OutOfSync;
    restarts.crash();
    assert_eq!(restarts.replica().log.end(), Offset::ZERO);
    // From here on the journal has the removal, whatever the image says.
    restarts.standing = Standing::CountedOn;
    restarts.append();
    restarts.write_round();
    let end = restarts.acknowledged;
    restarts.crash();
    assert!(end > Offset::ZERO && restarts.replica().log.end() == end);
}

/// It was in another log directory meanwhile. The process was killed before the journal had a word of its copy here.
#[test]
fn replica_that_moved_back_keeps_its_copy() {
    let mut restarts = Restarts::with_front_in_segments(1);
    let name = restarts.replica().name.clone();
    while restarts.journal.has(&name) {
        restarts.write_back();
        restarts.sync();
    }
    let (end, written) = (restarts.acknowledged, restarts.written.clone());
    restarts.close();
    restarts.put_aside();
    restarts.remove();
    let disk = &restarts.bench.disk;
    let entries = disk.list(Path::new(ROOT)).unwrap().into_iter();
    let aside = entries.map(|entry| entry.name).find(|name| name.ends_with("-delete")).unwrap();
    disk.rename(&Path::new(ROOT).join(aside), &place().dir()).unwrap();
    disk.sync_dir(Path::new(ROOT)).unwrap();
    (restarts.acknowledged, restarts.written) = (end, written);
    restarts.crash();
    restarts.append();
    restarts.write_round();
    let end = restarts.acknowledged;
    restarts.crash();
    assert_eq!((restarts.replica().log.start(), restarts.replica().log.end()), (Offset::ZERO, end));
}

#[test]
fn replica_that_is_counted_on_is_never_given_up() {
    use Standing::{Absent, CountedOn, OutOfSync};
    let mut restarts = Restarts::with_front_in_segments(1);
    restarts.close();
    let recovered = read_journal(&restarts.log_dir, DIRECTORY).unwrap().unwrap();
    let [replay] = &recovered.partitions[..] else { panic!("{:?}", recovered.partitions) };
    assert!(!replay.is_whole_log());
    let disk = restarts.bench.disk.clone();
    let look = |standing, log_dir: &LogDir| found(standing, &disk, log_dir);
    let all = [Absent, OutOfSync, CountedOn];
    let has_left = |found| has_left(replay, found);
    let with_folder = all.map(|standing| has_left(look(standing, &restarts.log_dir.borrow())));
    assert_eq!(with_folder, [false; 3], "its directory is there");
    // Gone as if it had been removed by mistake: the checkpoints know of it.
    restarts.log_dir.borrow().remove(&place().dir()).unwrap();
    let lost = all.map(|standing| has_left(look(standing, &restarts.log_dir.borrow())));
    assert_eq!(lost, [true, false, false]);
    restarts.put_aside();
    let forgotten = all.map(|standing| has_left(look(standing, &restarts.log_dir.borrow())));
    assert_eq!(forgotten, [true, true, false]);
    let cut = Found { log_was_cut: true, ..look(Absent, &restarts.log_dir.borrow()) };
    assert!(!has_left(cut));
    let unreplayed = Some(checkpointed(&restarts.log_dir));
    let refused = Replica::open(opening(unreplayed, Some(replay)), &mut restarts.bench.files).unwrap_err();
    assert!(refused.is_damage(), "{refused}");
}

#[test]
fn replica_leaves_until_its_removal_is_durable() {
    let mut leaving = Leaving::default();
    let [one, two] =
        [0, 1].map(|partition| ReplicaKey { topic: Uuid([9; 16]), partition: PartitionIndex(partition) });
    leaving.begin(one, 0);
    assert!(!leaving.durable(one, 0, Offset(7)) && leaving.is_leaving(one), "records are no removal");
    assert!(leaving.durable(one, 0, Offset::NONE) && !leaving.is_leaving(one));
    (0..2).for_each(|directory| leaving.begin(one, directory));
    assert!(!leaving.durable(one, 1, Offset::NONE) && leaving.is_leaving(one), "one journal has it");
    assert!(leaving.durable(one, 0, Offset::NONE) && !leaving.is_leaving(one));
    (0..2).for_each(|directory| leaving.begin(two, directory));
    leaving.directory_failed(0);
    assert!(leaving.is_leaving(two));
    leaving.directory_failed(1);
    assert!(!leaving.is_leaving(two));
}

#[test]
fn standing_counts_leader_isr_and_eligible_replicas() {
    let row = |leader: i32, change: fn(&mut Placement)| {
        let mut placement = Placement { replicas: vec![BrokerId(1), BrokerId(2)], ..Placement::default() };
        change(&mut placement);
        let partition_epoch = PartitionEpoch(0);
        Row {
            leader: BrokerId(leader),
            leader_epoch: LeaderEpoch(1),
            partition_epoch,
            placement: Arc::new(placement),
        }
    };
    let standing = |row: &Row, me| Standing::of(Some(row), BrokerId(me));
    let no_change: fn(&mut Placement) = |_| {};
    assert_eq!(Standing::of(None, BrokerId(2)), Standing::Absent);
    assert_eq!(standing(&row(1, no_change), 3), Standing::Absent);
    assert_eq!(standing(&row(1, no_change), 2), Standing::OutOfSync);
    assert_eq!(standing(&row(2, no_change), 2), Standing::CountedOn);
    let counted: [fn(&mut Placement); 3] = [
        |placement| placement.isr.push(BrokerId(2)),
        |placement| placement.elr.push(BrokerId(2)),
        |placement| placement.last_known_elr.push(BrokerId(2)),
    ];
    for change in counted {
        assert_eq!(standing(&row(1, change), 2), Standing::CountedOn);
    }
}
