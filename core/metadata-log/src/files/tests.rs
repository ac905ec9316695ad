//! The metadata log's files on full disks.

use super::MetadataFiles;
use barnabas_base::{Offset, TimestampMs};
use barnabas_quorum::batches::EncodedBatch;
use barnabas_storage::{Disk, LogConfig, MemoryDisk, OpenFrom, StorageError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const NOW: TimestampMs = TimestampMs(1_000);

fn open(disk: &MemoryDisk) -> MetadataFiles {
    let root: Arc<Path> = PathBuf::from("/data").into();
    if disk.stat(&root).expect("asked").is_none() {
        disk.create_dir(&root).expect("made");
    }
    let from = OpenFrom::default();
    MetadataFiles::open(Arc::new(disk.clone()), root, from, LogConfig::default(), NOW).expect("opens")
}

fn batch(base: i64) -> EncodedBatch {
    use barnabas_wire::records::{BatchBuilder, BatchOptions};
    let mut builder =
        BatchBuilder::new(BatchOptions { base_offset: Offset(base), ..BatchOptions::default() });
    builder.push(NOW, None, Some(&[7; 4000]), &[]);
    EncodedBatch { base: Offset(base), end: Offset(base + 1), bytes: builder.build().expect("a batch") }
}

#[test]
fn the_reserve_lets_a_full_disk_take_more_and_comes_back_with_room() {
    let disk = MemoryDisk::new();
    let mut files = open(&disk);
    files.append(&batch(0), NOW).expect("room");
    assert!(files.take_reserve().expect("asked"));
    disk.set_capacity(4 << 20);
    assert!(matches!(files.append(&batch(1), NOW), Err(StorageError::Full(_))));
    files.release_reserve().expect("removed");
    files.append(&batch(1), NOW).expect("the reserve's room");
    files.sync().expect("synced");
    assert!(!files.take_reserve().expect("no failure"), "no room for it");
    files.append(&batch(2), NOW).expect("the attempt left nothing behind");
    disk.set_capacity(1 << 40);
    assert!(files.take_reserve().expect("asked"));
}
