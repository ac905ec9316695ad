//! Room on a disk whose size changes under it.

use super::{
    FULL_AFTER_HIT_MS, Impairs, LATE_MS, LEAD_AFTER_HIT_MS, LEAD_AFTER_MS, LOOK_MS, LOOK_WHILE_SHORT_MS,
    Room, SAY_AGAIN_MS, SAY_MS, SHUT_MS, Shortage,
};
use barnabas_base::MonotonicMs;
use barnabas_storage::{
    DirEntry, Disk, DiskError, DiskFile, DiskLock, DiskSpace, FileStat, MemoryDisk, OpenMode, StorageError,
    Writer,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

const MIB: usize = 1 << 20;

fn room(disk: &MemoryDisk, capacity_mib: u64, wanted_mib: i64) -> Room {
    disk.set_capacity(capacity_mib << 20);
    let path: Arc<Path> = PathBuf::from("/data").into();
    let room = Room::new(Arc::new(disk.clone()), path);
    room.wanted.store(wanted_mib << 20, Ordering::Relaxed);
    room
}

fn producer(room: &Room, mib: usize, at: u64) -> bool {
    room.admit(mib * MIB, Writer::Producer, MonotonicMs(at))
}

#[test]
fn what_was_let_in_counts_before_the_file_system_knows_of_it() {
    let disk = MemoryDisk::new();
    let room = room(&disk, 1000, 100);
    let taken = (0..1000).take_while(|_| producer(&room, 1, 0)).count();
    assert_eq!(taken, 900, "the file system has not seen a byte of it");
    assert!(room.is_short());
    assert!(room.admit(MIB, Writer::Coordinator, MonotonicMs(0)), "consumers go on");
    room.settle(901 << 20);
    assert!(!producer(&room, 1, 0), "not asked again at once");
    assert!(producer(&room, 1, LOOK_WHILE_SHORT_MS), "nothing was written after all: there is room");
}

#[test]
fn shortage_that_comes_again_is_written_again() {
    let disk = MemoryDisk::new();
    let room = room(&disk, 1000, 100);
    let mut lines = Vec::new();
    for at in [0, 1, SAY_AGAIN_MS, SAY_AGAIN_MS + 1, 2 * SAY_AGAIN_MS, SAY_MS, SAY_MS + 1] {
        lines.extend(room.take_line(MonotonicMs(at)).map(|line| (at, line)));
    }
    let again = |times: u64| (times * SAY_AGAIN_MS, Shortage::Again);
    assert_eq!(lines, [(0, Shortage::First), again(1), again(2), (SAY_MS, Shortage::First)]);
}

#[test]
fn producers_come_back_when_there_is_clearly_more() {
    let disk = MemoryDisk::new();
    let room = room(&disk, 1000, 100);
    assert!(producer(&room, 1, 0));
    room.settle(MIB as u64);
    disk.set_capacity(90 << 20);
    assert!(producer(&room, 1, 10), "another process took the room, which the figures do not show yet");
    room.settle(MIB as u64);
    assert!(!producer(&room, 1, LOOK_MS));
    disk.set_capacity(120 << 20);
    assert!(!producer(&room, 1, LOOK_MS + LOOK_WHILE_SHORT_MS), "more, but not clearly more");
    disk.set_capacity(125 << 20);
    assert!(producer(&room, 1, LOOK_MS + 2 * LOOK_WHILE_SHORT_MS));
}

#[test]
fn a_huge_batch_alone_is_no_reason_to_refuse_the_others() {
    let disk = MemoryDisk::new();
    let room = room(&disk, 1000, 100);
    assert!(!producer(&room, 901, 0));
    assert!(!room.is_short());
    assert!(producer(&room, 1, 0));
}

#[test]
fn a_write_that_finds_the_disk_full_shuts_it_for_a_while_whatever_the_figures_say() {
    let disk = MemoryDisk::new();
    let room = room(&disk, 1000, 100);
    assert!(producer(&room, 1, 0));
    room.hit(&StorageError::Full(PathBuf::from("/data/t-0")), MonotonicMs(5));
    assert!(room.is_short());
    assert!(!room.admit(1, Writer::Coordinator, MonotonicMs(6)));
    assert!(!producer(&room, 1, SHUT_MS));
    assert!(producer(&room, 1, SHUT_MS + 5));
    assert!(!room.is_short());
}

#[test]
fn others_lead_until_there_has_been_room_for_a_while() {
    let disk = MemoryDisk::new();
    let room = room(&disk, 1000, 100);
    let told = |at| room.take_impairment(MonotonicMs(at));
    assert!(producer(&room, 1, 0));
    assert_eq!(told(0), None);
    disk.set_capacity(50 << 20);
    assert!(!producer(&room, 1, LOOK_MS));
    assert_eq!(told(LOOK_MS), Some(Impairs::Leading));
    assert_eq!(told(LOOK_MS), None, "told once");
    disk.set_capacity(1000 << 20);
    let at = LOOK_MS + LOOK_WHILE_SHORT_MS;
    assert!(producer(&room, 1, at), "producers come back at once");
    assert_eq!(room.impairs(MonotonicMs(LOOK_MS + LEAD_AFTER_MS - 1)), Impairs::Leading);
    assert_eq!(told(LOOK_MS + LEAD_AFTER_MS), Some(Impairs::Nothing));
    // A quota: the figures show room, and no write finds any.
    room.hit(&StorageError::Full(PathBuf::from("/data/t-0")), MonotonicMs(20_000));
    assert_eq!(told(20_000), Some(Impairs::Writing), "nor does anybody wait for what lies here");
    assert!(producer(&room, 1, 20_000 + SHUT_MS), "the next writer tries");
    assert_eq!(told(20_000 + FULL_AFTER_HIT_MS - 1), None);
    assert_eq!(told(20_000 + FULL_AFTER_HIT_MS), Some(Impairs::Leading));
    assert_eq!(told(20_000 + LEAD_AFTER_HIT_MS - 1), None);
    assert_eq!(told(20_000 + LEAD_AFTER_HIT_MS), Some(Impairs::Nothing));
}

#[test]
fn late_failure_before_anybody_looked_counts_as_one_of_the_full_disk() {
    let disk = MemoryDisk::new();
    let room = room(&disk, 1000, 100);
    let full = StorageError::Full(PathBuf::from("/data/t-0"));
    assert!(producer(&room, 1, 0));
    disk.set_capacity(0);
    room.hit(&full, MonotonicMs(LOOK_MS));
    assert!(!producer(&room, 1, LOOK_MS));
    disk.set_capacity(1000 << 20);
    // Two writes that began while the disk was full: one fails before the figures are looked at again, one after.
    room.hit(&full, MonotonicMs(LOOK_MS + SHUT_MS - 1));
    assert!(producer(&room, 1, LOOK_MS + SHUT_MS), "the first has not shut it for another second");
    room.hit(&full, MonotonicMs(LOOK_MS + SHUT_MS + 1));
    assert!(producer(&room, 1, LOOK_MS + SHUT_MS + 2), "nor the second");
}

type Held = (mpsc::SyncSender<()>, mpsc::Receiver<()>);

/// A disk whose first question is answered with old figures, late: the thread that asks is held up meanwhile.
#[derive(Debug)]
struct HeldUp {
    disk: MemoryDisk,
    asked: Mutex<Option<Held>>,
}

impl Disk for HeldUp {
    fn space(&self, dir: &Path) -> Result<DiskSpace, DiskError> {
        let space = self.disk.space(dir);
        let held = self.asked.lock().unwrap().take();
        if let Some((has_asked, goes_on)) = held {
            has_asked.send(()).unwrap();
            let _ = goes_on.recv_timeout(Duration::from_secs(60));
        }
        space
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn DiskFile>, DiskError> {
        self.disk.open(path, mode)
    }
    fn list(&self, dir: &Path) -> Result<Vec<DirEntry>, DiskError> {
        self.disk.list(dir)
    }
    fn stat(&self, path: &Path) -> Result<Option<FileStat>, DiskError> {
        self.disk.stat(path)
    }
    fn create_dir(&self, dir: &Path) -> Result<(), DiskError> {
        self.disk.create_dir(dir)
    }
    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        self.disk.rename(from, to)
    }
    fn remove_file(&self, path: &Path) -> Result<(), DiskError> {
        self.disk.remove_file(path)
    }
    fn remove_dir(&self, dir: &Path) -> Result<(), DiskError> {
        self.disk.remove_dir(dir)
    }
    fn sync_dir(&self, dir: &Path) -> Result<(), DiskError> {
        self.disk.sync_dir(dir)
    }
    fn lock(&self, path: &Path) -> Result<Box<dyn DiskLock>, DiskError> {
        self.disk.lock(path)
    }
}

#[test]
fn old_figures_of_a_held_up_thread_refuse_no_one() {
    let disk = MemoryDisk::new();
    let short = room(&disk, 50, 100);
    let (has_asked, asked) = mpsc::sync_channel(1);
    let (go_on, goes_on) = mpsc::sync_channel(1);
    let held_up = HeldUp { disk: disk.clone(), asked: Mutex::new(Some((has_asked, goes_on))) };
    let room = Room { disk: Arc::new(held_up), ..short };
    thread::scope(|scope| {
        let first = scope.spawn(|| producer(&room, 1, 0));
        asked.recv().unwrap();
        disk.set_capacity(1000 << 20);
        // Refused, or taken; but where it is taken, the directory stays open.
        let second = scope.spawn(|| producer(&room, 1, LOOK_WHILE_SHORT_MS));
        thread::sleep(Duration::from_millis(50));
        go_on.send(()).unwrap();
        first.join().unwrap();
        assert!(second.join().unwrap());
        assert!(!room.is_short(), "the figures that came last count");
        assert!(producer(&room, 1, LOOK_WHILE_SHORT_MS + 30));
    });
}

#[test]
fn late_failure_of_a_write_does_not_shut_what_has_room_again() {
    let disk = MemoryDisk::new();
    let room = room(&disk, 1000, 100);
    let full = StorageError::Full(PathBuf::from("/data/t-0"));
    assert!(producer(&room, 1, 0));
    disk.set_capacity(50 << 20);
    assert!(!producer(&room, 1, LOOK_MS));
    disk.set_capacity(1000 << 20);
    let at = LOOK_MS + LOOK_WHILE_SHORT_MS;
    assert!(producer(&room, 1, at));
    room.hit(&full, MonotonicMs(at + 10));
    assert!(producer(&room, 1, at + 30), "that write began before");
    room.hit(&full, MonotonicMs(at + LATE_MS));
    assert!(!producer(&room, 1, at + LATE_MS + 1), "this one did not");
    // The figures show room and no write finds any, as with a quota: the next failure counts.
    let at = at + LATE_MS + SHUT_MS;
    assert!(producer(&room, 1, at));
    room.hit(&full, MonotonicMs(at + 10));
    assert!(!producer(&room, 1, at + 30));
}
