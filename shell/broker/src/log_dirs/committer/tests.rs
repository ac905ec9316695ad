use super::*;
use crate::mailbox::Inbox;
use barnabas_base::{Offset, PartitionIndex, TimestampMs, TopicPartition, Uuid};
use barnabas_storage::{FilePool, Log, LogConfig, LogPlace, MemoryDisk};
use barnabas_wire::records::{BatchBuilder, BatchOptions};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

struct Rig {
    disk: Arc<MemoryDisk>,
    files: FilePool,
    log: Log,
    committer: Committer,
    thread: JoinHandle<()>,
    inbox: Inbox,
    failures: Arc<AtomicU32>,
}

const KEY: PartitionKey = PartitionKey { topic: Uuid([1; 16]), partition: PartitionIndex(0) };

fn rig() -> Rig {
    let disk = Arc::new(MemoryDisk::new());
    let root: Arc<Path> = Path::new("/data").into();
    disk.create_dir(&root).expect("a directory");
    let place = LogPlace {
        root,
        topic_partition: TopicPartition::new("t", PartitionIndex(0)),
        topic_id: KEY.topic,
        future: None,
    };
    let (mailbox, inbox) = Mailbox::new();
    let failures = Arc::new(AtomicU32::new(0));
    let counted = failures.clone();
    let committer = Committer::new();
    let parts = CommitterParts {
        name: "committer".to_owned(),
        directory: 3,
        disk: disk.clone(),
        file_system: None,
        workers: vec![mailbox],
        meter: Arc::default(),
        failed: Box::new(move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
        }),
    };
    let thread = committer.start(parts).expect("a thread");
    let files = FilePool::new(disk.clone(), 10);
    let log = Log::create(place, Arc::new(LogConfig::default()), Offset::ZERO);
    Rig { disk, files, log, committer, thread, inbox, failures }
}

impl Rig {
    /// Appends one record and hands in what has to be synced.
    fn hand_in(&mut self) {
        let now = TimestampMs(1000);
        let mut builder =
            BatchBuilder::new(BatchOptions { base_offset: self.log.end(), ..BatchOptions::default() });
        builder.push(now, None, Some(b"value"), &[]);
        let batch = builder.build().expect("a batch");
        self.log.append(&mut self.files, &[batch.into()], now).expect("appended");
        let dirty = self.log.take_dirty().expect("unsynced bytes");
        let covers = Covers::new(self.log.end());
        self.committer.submit(&mut vec![SyncRequest {
            worker: 0,
            partition: KEY,
            dirty,
            covers,
            batches: 1,
        }]);
    }

    fn end(self) -> u32 {
        self.committer.stop();
        self.thread.join().expect("the committer");
        self.failures.load(Ordering::SeqCst)
    }
}

/// Waits for one report.
fn next_report(inbox: &Inbox) -> Report {
    let mut reports = Vec::new();
    while reports.is_empty() {
        std::thread::sleep(Duration::from_millis(1));
        inbox.reports.take(&mut reports);
    }
    assert_eq!(reports.len(), 1, "{reports:?}");
    reports.remove(0)
}

#[test]
fn a_ticket_comes_back_once_everything_is_synced() {
    let mut rig = rig();
    for expected in 1..=3 {
        rig.hand_in();
        let Report::Synced(synced) = next_report(&rig.inbox) else { panic!("no ticket") };
        let [(partition, ticket, end)] = synced.tickets[..] else { panic!("{:?}", synced.tickets) };
        assert_eq!((partition, ticket.end(), end), (KEY, Offset(expected), Offset(expected)));
        assert_eq!(rig.log.mark_synced_to(ticket, end), Offset(expected));
    }
    assert_eq!(rig.end(), 0);
}

#[test]
fn after_one_failed_sync_no_ticket_comes_back() {
    let mut rig = rig();
    rig.disk.set_faults(barnabas_storage::Faults { syncs_until_error: Some(0), ..Default::default() });
    rig.hand_in();
    assert!(matches!(next_report(&rig.inbox), Report::DirectoryFailed(3)));
    // A sync that succeeds afterwards says nothing.
    rig.disk.set_faults(Default::default());
    rig.hand_in();
    let reports = rig.inbox.reports.clone();
    assert_eq!(rig.end(), 1);
    let mut left = Vec::new();
    reports.take(&mut left);
    assert!(left.is_empty(), "{left:?}");
}
