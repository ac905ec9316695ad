//! The calls on a real file system. What a crash does is tested on the disk in memory and by lab's kill loops.

use std::path::PathBuf;

use super::*;

/// A directory of its own, removed with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("barnabas-disk-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn files_are_read_and_written_at_positions() {
    let scratch = Scratch::new("files");
    let disk = LinuxDisk;
    let path = scratch.path("a");
    assert_eq!(disk.open(&path, OpenMode::Write).unwrap_err().kind, DiskErrorKind::NotFound);
    let file = disk.open(&path, OpenMode::Create).unwrap();
    file.write_at(0, &[]).unwrap();
    file.write_at(3, &[b"", b"one", b"", b"two"]).unwrap();
    file.write_at(0, &[b"abc"]).unwrap();
    file.write_at(9, &[b"x", b"y"]).unwrap();
    let many: Vec<Vec<u8>> = (0..3000).map(|at: u32| at.to_be_bytes().to_vec()).collect();
    let parts: Vec<&[u8]> = many.iter().map(Vec::as_slice).collect();
    file.write_at(11, &parts).unwrap();
    file.sync().unwrap();
    assert_eq!(file.len().unwrap(), 11 + 12_000);
    assert_eq!(&file.read_bytes(0, 11).unwrap()[..], b"abconetwoxy");
    assert_eq!(&file.read_bytes(11 + 4 * 2999, 100).unwrap()[..], 2999u32.to_be_bytes());
    let mut buffer = [0; 8];
    assert_eq!(file.read_at(11 + 12_000 - 2, &mut buffer).unwrap(), 2);
    file.set_len(5).unwrap();
    file.allocate(1 << 20).unwrap();
    assert_eq!(disk.stat(&path).unwrap().map(|stat| (stat.len, stat.is_dir)), Some((5, false)));
    assert_eq!(disk.open(&path, OpenMode::Truncate).unwrap().len().unwrap(), 0);
    assert!(disk.stat(&path).unwrap().unwrap().modified.0 > 1_600_000_000_000);
}

#[test]
fn filled_file_takes_its_room_and_reads_as_zeros() {
    use std::os::unix::fs::MetadataExt;
    const BYTES: u64 = (1 << 20) + 100;
    let scratch = Scratch::new("filled");
    let path = scratch.path("a");
    let file = LinuxDisk.open(&path, OpenMode::Create).unwrap();
    file.fill(BYTES).unwrap();
    assert_eq!(file.len().unwrap(), BYTES);
    assert!(std::fs::metadata(&path).unwrap().blocks() * 512 >= BYTES, "no room is set aside");
    assert_eq!(&file.read_bytes(0, 2 << 20).unwrap()[..], vec![0; BYTES as usize]);
}

#[test]
fn names_come_and_go() {
    let scratch = Scratch::new("names");
    let disk = LinuxDisk;
    let dir = scratch.path("dir");
    disk.create_dir(&dir).unwrap();
    disk.create_dir(&dir).unwrap();
    assert_eq!(disk.create_dir(&scratch.path("x/y")).unwrap_err().kind, DiskErrorKind::NotFound);
    for name in ["b", "a", "c"] {
        disk.open(&dir.join(name), OpenMode::Create).unwrap();
    }
    disk.rename(&dir.join("a"), &dir.join("c")).unwrap();
    assert!(disk.rename(&dir.join("a"), &dir.join("c")).unwrap_err().is_not_found());
    let names = |dir: &Path| disk.list(dir).unwrap().into_iter().map(|entry| entry.name).collect::<Vec<_>>();
    assert_eq!(names(&dir), ["b", "c"]);
    assert!(disk.list(&scratch.0).unwrap()[0].is_dir);
    disk.sync_dir(&dir).unwrap();
    assert_eq!(disk.remove_dir(&dir).unwrap_err().kind, DiskErrorKind::NotEmpty);
    for name in ["b", "c", "never"] {
        disk.remove_file(&dir.join(name)).unwrap();
    }
    disk.remove_dir(&dir).unwrap();
    disk.remove_dir(&dir).unwrap();
    disk.sync_dir(&dir).unwrap();
    assert!(disk.list(&dir).unwrap_err().is_not_found());
    assert_eq!(disk.stat(&dir).unwrap(), None);
    let space = disk.space(&scratch.0).unwrap();
    assert!(space.free > 0 && space.free <= space.total);
}

#[test]
fn a_lock_is_held_once() {
    let scratch = Scratch::new("lock");
    let disk = LinuxDisk;
    let path = scratch.path(".lock");
    let held = disk.lock(&path).unwrap();
    assert_eq!(disk.lock(&path).unwrap_err().kind, DiskErrorKind::Locked);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(disk.lock(&path).unwrap_err().kind, DiskErrorKind::Locked);
    drop(held);
    disk.lock(&path).unwrap();
}

#[test]
fn whole_blocks_go_past_the_page_cache_or_are_declined() {
    let folders = [std::env::temp_dir(), PathBuf::from("/dev/shm")];
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        let path = folder.join(format!("barnabas-disk-direct-{}", std::process::id()));
        let file = LinuxDisk.open(&path, OpenMode::Truncate).unwrap();
        let store = vec![7; 4 * 4096];
        let blocks = &store[store.as_ptr().align_offset(4096)..][..2 * 4096];
        file.write_at(0, &[b"in the page cache, and dirty"]).unwrap();
        if file.write_direct(4096, &[blocks]).unwrap() {
            assert_eq!(&file.read_bytes(4090, 8).unwrap()[..], [0, 0, 0, 0, 0, 0, 7, 7]);
            assert_eq!(file.len().unwrap(), 3 * 4096);
            assert!(file.write_direct(0, &[blocks]).unwrap());
            assert_eq!(file.read_bytes(0, 100).unwrap(), blocks[..100]);
            file.sync().unwrap();
        }
        // Not aligned: declined, or (where no alignment is asked for) written.
        let skewed = &store[store.as_ptr().align_offset(4096) + 1..][..4096];
        let written = file.write_direct(4096, &[skewed]).unwrap();
        assert!(!written || file.read_bytes(4096, 4096).unwrap() == skewed);
        // The name belongs to another file: the one that is open is written.
        LinuxDisk.remove_file(&path).unwrap();
        LinuxDisk.open(&path, OpenMode::Create).unwrap();
        if file.write_direct(0, &[blocks]).unwrap() {
            assert_eq!(std::fs::read(&path).unwrap(), b"");
            assert_eq!(file.read_bytes(0, 100).unwrap(), blocks[..100]);
        }
        LinuxDisk.remove_file(&path).unwrap();
    }
}
