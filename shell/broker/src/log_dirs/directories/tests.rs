//! What becomes of checkpoints when a deleted partition has no folder.

use super::*;
use barnabas_base::{Offset, PartitionIndex};
use barnabas_disk::LinuxDisk;

#[test]
fn a_deleted_partition_takes_its_own_entries_with_it_and_not_its_successors() {
    let path = std::env::temp_dir().join(format!("barnabas-directories-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    let log_dir = LogDir::open(Arc::new(LinuxDisk), &path).unwrap();
    let directory = Directory::new(log_dir, random_uuid(), true);
    let named = |topic: &str| TopicPartition { topic: topic.into(), partition: PartitionIndex(0) };
    let (gone, begun) = (named("gone"), named("begun"));
    // Of a partition that lies in the journal alone, the checkpoints may know already.
    for name in [&gone, &begun] {
        directory.lock().set_recovery_point(name.clone(), Offset(7));
    }
    let names = [(&gone, random_uuid()), (&begun, random_uuid())];
    let aside = directory.put_aside(&names, |_| true, |name| *name == begun).unwrap();
    assert!(aside.is_empty());
    assert_eq!(directory.lock().recovery_point(&gone), Offset::ZERO);
    assert_eq!(directory.lock().recovery_point(&begun), Offset(7));
    std::fs::remove_dir_all(&path).unwrap();
}
