//! The metadata log's files on torn, corrupt and full disks, and the log lines about it.

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

#[tokio::test]
async fn create_topics_is_refused_while_the_metadata_log_has_no_room() {
    use crate::node::peers::controller::{ActiveController, ControllerHandle, NotTaken};
    use barnabas_base::{Text, Uuid};
    use barnabas_net::links::LinkThread;
    use barnabas_quorum::controller::Asked;
    use barnabas_quorum::raft::requests::Here;
    use barnabas_wire::messages::CreateTopicsRequest;
    use std::sync::atomic::Ordering;
    let (links, thread) = LinkThread::start().expect("a thread");
    let here = Arc::new(Here { cluster_id: Text::from("c"), listener: Text::from("CONTROLLER") });
    let (handle, requests) = ControllerHandle::new(Uuid([7; 16]), 1, links.clone(), here);
    handle.led_by(ActiveController { is_here: true, ..ActiveController::default() });
    let ask = || handle.ask(CreateTopicsRequest::default(), Asked { version: 7, ..Asked::default() });
    // The quorum's thread has the request, and no room for what comes of it.
    handle.shared.waits_for_room.store(true, Ordering::Relaxed);
    assert_eq!(ask().await.err(), Some(NotTaken::NoRoom));
    // From then on it is known beforehand.
    handle.shared.is_full.store(true, Ordering::Relaxed);
    assert_eq!(ask().await.err(), Some(NotTaken::DiskFull));
    drop(requests);
    links.stop();
    thread.join().expect("it ends");
}
