use super::*;
use crate::disk::memory_disk::MemoryDisk;
use barnabas_base::TimestampMs;
use barnabas_wire::records::{BatchBuilder, BatchOptions};

const DIR: &str = "/data/t-0";

const SEALED: Listed = Listed { base: Offset(0), next: Some(Offset(10)) };
const NEWEST: Listed = Listed { base: Offset(10), next: None };

/// Two segments of ten batches each; the first is sealed.
fn disk() -> Arc<dyn Disk> {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    disk.create_dir(Path::new("/data")).unwrap();
    disk.create_dir(Path::new(DIR)).unwrap();
    for base in [0, 10] {
        let path = offset_path(Path::new(DIR), Offset(base), LOG);
        let file = disk.open(&path, OpenMode::Create).unwrap();
        for offset in base..base + 10 {
            let options = BatchOptions { base_offset: Offset(offset), ..BatchOptions::default() };
            let mut builder = BatchBuilder::new(options);
            builder.push(TimestampMs(1), None, Some(&[7; 100]), &[]);
            let at = file.len().unwrap();
            file.write_at(at, &[&builder.build().unwrap()]).unwrap();
        }
    }
    disk
}

fn path() -> PathBuf {
    offset_path(Path::new(DIR), Offset(0), LOG)
}

/// Offsets and reasons of what is damaged, in pieces of `bytes_max`.
fn damage(disk: &Arc<dyn Disk>, bytes_max: u64) -> Vec<(i64, &'static str)> {
    let found = segments(&**disk, Path::new(DIR)).unwrap();
    assert_eq!(found, [SEALED, NEWEST]);
    damage_in(disk, SEALED, Offset(20), bytes_max)
}

fn damage_in(
    disk: &Arc<dyn Disk>,
    segment: Listed,
    synced: Offset,
    bytes_max: u64,
) -> Vec<(i64, &'static str)> {
    let mut walk = SegmentScrub::open(disk, Path::new(DIR), segment, synced, true).unwrap().unwrap();
    let mut found = Vec::new();
    loop {
        match walk.step(bytes_max).unwrap() {
            Scrubbed::Sound(read) => assert!(read >= bytes_max && read < bytes_max + 200),
            Scrubbed::Damage(_, StorageError::Damaged { offset, what, .. }) => {
                found.push((offset.get(), what))
            }
            Scrubbed::Damage(_, other) => panic!("{other}"),
            Scrubbed::End(_) => return found,
        }
    }
}

fn flip(disk: &Arc<dyn Disk>, at: u64) {
    let file = disk.open(&path(), OpenMode::Write).unwrap();
    let byte = file.read_bytes(at, 1).unwrap()[0];
    file.write_at(at, &[&[byte ^ 0x10]]).unwrap();
}

#[test]
fn sound_segments_are_walked_in_pieces_of_any_size() {
    for bytes_max in [1, 100, 170, 500, 1 << 20] {
        assert_eq!(damage(&disk(), bytes_max), []);
    }
}

#[test]
fn each_damaged_batch_is_named_and_the_walk_goes_on_behind_it() {
    let disk = disk();
    let batch = disk.stat(&path()).unwrap().unwrap().len / 10;
    flip(&disk, 3 * batch + 100);
    flip(&disk, 7 * batch + 100);
    let wrong = "its checksum is wrong";
    assert_eq!(damage(&disk, 400), [(3, wrong), (7, wrong)]);
}

#[test]
fn a_length_that_cannot_be_ends_the_walk_and_is_named() {
    let disk = disk();
    let batch = disk.stat(&path()).unwrap().unwrap().len / 10;
    flip(&disk, 5 * batch + 8);
    assert_eq!(damage(&disk, 1 << 20).len(), 1);
    assert_eq!(damage(&disk, 1 << 20)[0].0, 5);
}

#[test]
fn what_was_given_up_meanwhile_is_no_damage() {
    let disk = disk();
    let mut walk = SegmentScrub::open(&disk, Path::new(DIR), SEALED, Offset(20), true).unwrap().unwrap();
    flip(&disk, 300);
    disk.remove_file(&path()).unwrap();
    assert!(matches!(walk.step(1 << 20).unwrap(), Scrubbed::End(_)));
    assert!(SegmentScrub::open(&disk, Path::new(DIR), SEALED, Offset(20), true).unwrap().is_none());
}

#[test]
fn the_newest_segment_is_checked_as_far_as_it_was_synced() {
    let disk = disk();
    let path = offset_path(Path::new(DIR), Offset(10), LOG);
    let batch = disk.stat(&path).unwrap().unwrap().len / 10;
    let file = disk.open(&path, OpenMode::Write).unwrap();
    file.write_at(6 * batch + 100, &[&[0]]).unwrap();
    // What is being written, or a tail that the next opening cuts.
    file.set_len(9 * batch + 70).unwrap();
    let wrong = "its checksum is wrong";
    for (synced, found) in [(0, vec![]), (16, vec![]), (17, vec![(16, wrong)]), (19, vec![(16, wrong)])] {
        assert_eq!(damage_in(&disk, NEWEST, Offset(synced), 1 << 20), found, "synced up to {synced}");
    }
}

#[test]
fn a_segment_that_is_missing_before_the_next_is_named() {
    let disk = disk();
    let from = Path::new(DIR);
    let old = offset_path(from, Offset(10), LOG);
    disk.rename(&old, &offset_path(from, Offset(20), LOG)).unwrap();
    let before_hole = Listed { base: Offset(0), next: Some(Offset(20)) };
    assert_eq!(segments(&*disk, from).unwrap()[0], before_hole);
    let found = damage_in(&disk, before_hole, Offset(30), 400);
    assert_eq!(found.len(), 1);
    assert!(found[0].0 == 10 && found[0].1.starts_with("it is missing"), "{found:?}");
    // Past what was synced it is a tail; and what gave way to another since is no loss.
    assert_eq!(damage_in(&disk, before_hole, Offset(15), 400), []);
    disk.remove_file(&offset_path(from, Offset(20), LOG)).unwrap();
    assert_eq!(damage_in(&disk, before_hole, Offset(30), 400), []);
}

#[test]
fn segments_written_after_the_last_stop_are_changed() {
    let (memory, dir) = (Arc::new(MemoryDisk::new()), Path::new("/data"));
    memory.create_dir(dir).unwrap();
    let write = |path: &Path, now: i64| {
        memory.set_now(TimestampMs(now));
        memory.open(path, OpenMode::Create).unwrap().write_at(0, &[b"x"]).unwrap();
    };
    assert_eq!(vouched_at(&*memory, dir).unwrap(), None, "no program has written here");
    write(&dir.join(offset_checkpoint::RECOVERY_POINT), 20);
    assert_eq!(vouched_at(&*memory, dir).unwrap(), Some(TimestampMs(20)), "the process was killed");
    write(&dir.join(clean_shutdown::FILE_NAME), 30);
    assert_eq!(vouched_at(&*memory, dir).unwrap(), Some(TimestampMs(30)), "the process was stopped");

    let partition = Path::new(DIR);
    memory.create_dir(partition).unwrap();
    for (base, now) in [(0, 10), (10, 30), (20, 31), (30, 5)] {
        write(&offset_path(partition, Offset(base), LOG), now);
    }
    let changed = changed_segments(&*memory, partition, TimestampMs(30)).unwrap();
    let segment = Listed { base: Offset(20), next: Some(Offset(30)) };
    assert_eq!(changed, [Changed { segment, modified: TimestampMs(31) }]);
    assert_eq!(changed_segments(&*memory, Path::new("/data/gone-0"), TimestampMs(0)).unwrap(), []);
}

#[test]
fn of_two_batches_that_do_not_follow_the_one_behind_a_gap_is_named() {
    for (base, segment, at) in [(0, SEALED, 4), (10, NEWEST, 4), (10, NEWEST, 7)] {
        let disk = disk();
        let path = offset_path(Path::new(DIR), Offset(base), LOG);
        let batch = disk.stat(&path).unwrap().unwrap().len / 10;
        let file = disk.open(&path, OpenMode::Write).unwrap();
        file.write_at(at * batch, &[&(base + at as i64 + 4096).to_be_bytes()]).unwrap();
        // What lies past the recovery point speaks of what lies below.
        let found = damage_in(&disk, Listed { next: None, ..segment }, Offset(base + 8), 300);
        assert_eq!(found, [(base + at as i64, "its offset does not follow")]);
    }
}

/// The batch up to whose end the newest segment was synced: nothing behind it shows that its offset is wrong.
#[test]
fn a_changed_offset_of_the_last_synced_batch_is_named() {
    let disk = disk();
    let path = offset_path(Path::new(DIR), Offset(10), LOG);
    let batch = disk.stat(&path).unwrap().unwrap().len / 10;
    let file = disk.open(&path, OpenMode::Write).unwrap();
    file.write_at(9 * batch, &[&(19i64 + 64).to_be_bytes()]).unwrap();
    assert_eq!(damage_in(&disk, NEWEST, Offset(20), 1 << 20), [(19, "its offset does not follow")]);
    // It may not be synced, and what comes before may have been deleted.
    assert_eq!(damage_in(&disk, NEWEST, Offset(19), 1 << 20), []);
}
