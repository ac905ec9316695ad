//! Room on a disk whose size changes under it.

use super::{
    FULL_AFTER_HIT_MS, Hinders, LEAD_AFTER_HIT_MS, LEAD_AFTER_MS, LOOK_MS, LOOK_WHILE_SHORT_MS, Room, SHUT_MS,
};
use barnabas_base::MonotonicMs;
use barnabas_storage::{MemoryDisk, StorageError, Writer};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

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
fn producers_come_back_when_there_is_clearly_more() {
    let disk = MemoryDisk::new();
    let room = room(&disk, 1000, 100);
    assert!(producer(&room, 1, 0));
    room.settle(MIB as u64);
    disk.set_capacity(90 << 20);
    assert!(producer(&room, 1, 10), "somebody else took the room, which nobody has noticed yet");
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
    let told = |at| room.take_hindrance(MonotonicMs(at));
    assert!(producer(&room, 1, 0));
    assert_eq!(told(0), None);
    disk.set_capacity(50 << 20);
    assert!(!producer(&room, 1, LOOK_MS));
    assert_eq!(told(LOOK_MS), Some(Hinders::Leading));
    assert_eq!(told(LOOK_MS), None, "told once");
    disk.set_capacity(1000 << 20);
    let at = LOOK_MS + LOOK_WHILE_SHORT_MS;
    assert!(producer(&room, 1, at), "producers come back at once");
    assert_eq!(room.hinders(MonotonicMs(LOOK_MS + LEAD_AFTER_MS - 1)), Hinders::Leading);
    assert_eq!(told(LOOK_MS + LEAD_AFTER_MS), Some(Hinders::Nothing));
    // A quota: the figures show room, and no write finds any.
    room.hit(&StorageError::Full(PathBuf::from("/data/t-0")), MonotonicMs(20_000));
    assert_eq!(told(20_000), Some(Hinders::Writing), "nor does anybody wait for what lies here");
    assert!(producer(&room, 1, 20_000 + SHUT_MS), "somebody tries");
    assert_eq!(told(20_000 + FULL_AFTER_HIT_MS - 1), None);
    assert_eq!(told(20_000 + FULL_AFTER_HIT_MS), Some(Hinders::Leading));
    assert_eq!(told(20_000 + LEAD_AFTER_HIT_MS - 1), None);
    assert_eq!(told(20_000 + LEAD_AFTER_HIT_MS), Some(Hinders::Nothing));
}
