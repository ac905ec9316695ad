//! Which files are open: a bounded number for all logs of one owner in one directory; those not used lately are closed
//! first.
//!
//! One pool per worker and log directory, so no lock is needed: each gets its share of `log.open.files.max`.
//!
//! A file that was written and not yet synced is held beside the pool, since closing it could lose the report of a
//! failed write. Of these there are a bounded number, too ([`FilePool::with_file_system`]): what is written beyond it
//! is left to a sync of the file system as a whole, which reports such failures although the file was closed.
//!
//! Where the process or the system has no descriptor left, the pool closes what it holds and tries again.
//!
//! Always true, with a file system: `open files of this owner ≤ open_max`, but for one that is being used just now
//!
//! Eviction is the clock algorithm: each use marks a file, the hand clears marks and closes the first unmarked file.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use barnabas_base::{Map, Offset};

use crate::disk::block_buffer::BlockBuffer;
use crate::disk::{Disk, DiskError, DiskFile, FileSystem, OpenMode};

/// Opens files on demand and keeps up to a bound of them open.
#[derive(Debug)]
pub struct FilePool {
    disk: Arc<dyn Disk>,
    open_max: usize,
    slots: Vec<Slot>,
    by_key: Map<FileKey, usize>,
    hand: usize,
    /// Files that wait for a sync, and how many there may be.
    held: Arc<AtomicUsize>,
    held_max: usize,
    file_system: Option<Arc<dyn FileSystem>>,
    direct_from: Option<usize>,
    /// Where bytes are put together that go past the page cache; made when it is first needed.
    blocks: Option<BlockBuffer>,
    /// How often [`FilePool::expire_checks`] was called.
    expiries: u64,
}

/// Writes of this size or more bypass the page cache. Smaller ones cost about the same either way, and a direct
/// write makes the writer wait for the device (lab/bench/JOURNAL.md).
const DIRECT_FROM_BYTES: usize = 256 << 10;
/// What one direct write takes: more makes a byte no cheaper.
const DIRECT_WRITE_BYTES: usize = 1 << 20;

/// A file that waits for a sync: open until it is dropped.
#[derive(Debug)]
pub struct HeldFile {
    file: Arc<dyn DiskFile>,
    held: Arc<AtomicUsize>,
}

impl std::ops::Deref for HeldFile {
    type Target = Arc<dyn DiskFile>;

    fn deref(&self) -> &Arc<dyn DiskFile> {
        &self.file
    }
}

impl Drop for HeldFile {
    fn drop(&mut self) {
        self.held.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct Slot {
    key: FileKey,
    file: Arc<dyn DiskFile>,
    used: bool,
}

/// Which of a segment's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum FileKind {
    Log,
    OffsetIndex,
    TimeIndex,
    TransactionIndex,
}

/// A file by the log that it belongs to, which costs less to look up than a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FileKey {
    pub log: LogId,
    pub base: Offset,
    pub kind: FileKind,
}

/// Tells the logs of this process apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct LogId(u64);

impl LogId {
    /// An id that no other log of this process has. It orders nothing and never reaches a file or the wire.
    pub(crate) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl FilePool {
    /// `open_max`: this owner's share of `log.open.files.max`; at least 4, what one append may need at once.
    pub fn new(disk: Arc<dyn Disk>, open_max: usize) -> Self {
        Self {
            disk,
            open_max: open_max.max(4),
            slots: Vec::new(),
            by_key: Map::default(),
            hand: 0,
            held: Arc::default(),
            held_max: usize::MAX,
            file_system: None,
            direct_from: Some(DIRECT_FROM_BYTES),
            blocks: None,
            expiries: 0,
        }
    }

    /// What readers have found sound in these files may have changed since: the next read of each batch checks it
    /// again.
    pub fn expire_checks(&mut self) {
        self.expiries += 1;
    }

    /// A check counts while this is the same.
    pub(crate) fn expiries(&self) -> u64 {
        self.expiries
    }

    /// Bounds the files that wait for a sync as well: a quarter of `open_max` is theirs. `file_system` is that of the
    /// files, opened before any of them was written.
    #[must_use]
    pub fn with_file_system(mut self, file_system: Option<Arc<dyn FileSystem>>) -> Self {
        if file_system.is_some() {
            self.held_max = (self.open_max / 4).max(1);
            self.open_max = (self.open_max - self.held_max).max(3);
        }
        self.file_system = file_system;
        self
    }

    pub fn file_system(&self) -> Option<&Arc<dyn FileSystem>> {
        self.file_system.as_ref()
    }

    /// Keeps `file`, which was just written to, open until it is synced. `None`: too many wait already, and the file
    /// system is to be synced as a whole.
    pub(crate) fn hold(&self, file: Arc<dyn DiskFile>) -> Option<HeldFile> {
        if self.held.load(Ordering::Relaxed) >= self.held_max {
            return None;
        }
        self.held.fetch_add(1, Ordering::Relaxed);
        Some(HeldFile { file, held: self.held.clone() })
    }

    /// How many files wait for a sync.
    #[cfg(test)]
    fn held_files(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// Writes of so many bytes and more go past the page cache, where the file system can; `None`: none do.
    pub fn set_direct_from(&mut self, bytes: Option<usize>) {
        self.direct_from = bytes;
    }

    /// A buffer for a write of `bytes` past the page cache; `None` where it should not go there. Handed back with
    /// [`FilePool::give_blocks_back`].
    pub(crate) fn blocks_for(&mut self, bytes: usize) -> Option<BlockBuffer> {
        if self.direct_from.is_none_or(|from| bytes < from) {
            return None;
        }
        let mut blocks = self.blocks.take().unwrap_or_else(|| BlockBuffer::new(DIRECT_WRITE_BYTES));
        blocks.clear();
        Some(blocks)
    }

    /// `refused`: the file system cannot do it, and is not asked again.
    pub(crate) fn give_blocks_back(&mut self, blocks: BlockBuffer, refused: bool) {
        if refused {
            self.direct_from = None;
        } else {
            self.blocks = Some(blocks);
        }
    }

    /// How many files the pool holds open now.
    pub fn open_files(&self) -> usize {
        self.slots.len()
    }

    /// The file of `key`, opened with `mode` at `path` if it is not open.
    pub(crate) fn get(
        &mut self,
        key: FileKey,
        mode: OpenMode,
        path: impl FnOnce() -> PathBuf,
    ) -> Result<Arc<dyn DiskFile>, DiskError> {
        if let Some(&slot) = self.by_key.get(&key) {
            self.slots[slot].used = true;
            return Ok(self.slots[slot].file.clone());
        }
        let path = path();
        let file = match self.disk.open(&path, mode) {
            Err(error) if error.kind.is_shortage() && !self.slots.is_empty() => {
                self.close_all();
                self.disk.open(&path, mode)?
            }
            opened => opened?,
        };
        let slot = Slot { key, file: file.clone(), used: true };
        if self.slots.len() < self.open_max {
            self.by_key.insert(key, self.slots.len());
            self.slots.push(slot);
        } else {
            let victim = self.turn_hand();
            self.by_key.remove(&self.slots[victim].key);
            self.by_key.insert(key, victim);
            self.slots[victim] = slot;
        }
        Ok(file)
    }

    fn turn_hand(&mut self) -> usize {
        loop {
            let at = self.hand;
            self.hand = (self.hand + 1) % self.slots.len();
            if !std::mem::take(&mut self.slots[at].used) {
                return at;
            }
        }
    }

    fn close_all(&mut self) {
        self.slots.clear();
        self.by_key.clear();
        self.hand = 0;
    }

    /// Closes one segment's files, since they get another name or go.
    pub(crate) fn close_segment(&mut self, log: LogId, base: Offset) {
        for kind in [FileKind::Log, FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::TransactionIndex] {
            self.close(FileKey { log, base, kind });
        }
    }

    pub(crate) fn close(&mut self, key: FileKey) {
        let Some(slot) = self.by_key.remove(&key) else { return };
        self.slots.swap_remove(slot);
        if let Some(moved) = self.slots.get(slot) {
            self.by_key.insert(moved.key, slot);
        }
        if self.hand >= self.slots.len() {
            self.hand = 0;
        }
    }

    /// Closes all files of a log.
    pub(crate) fn close_log(&mut self, log: LogId) {
        let keys: Vec<FileKey> =
            self.slots.iter().map(|slot| slot.key).filter(|key| key.log == log).collect();
        for key in keys {
            self.close(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::memory_disk::MemoryDisk;
    use std::path::Path;

    #[derive(Debug)]
    struct NoOp;

    impl FileSystem for NoOp {
        fn sync(&self) -> Result<(), DiskError> {
            Ok(())
        }
    }

    fn key(base: i64) -> FileKey {
        FileKey { log: LogId(1), base: Offset(base), kind: FileKind::Log }
    }

    #[test]
    fn files_that_wait_for_a_sync_are_bounded_and_free_their_place() {
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        disk.create_dir(Path::new("/d")).expect("made");
        let mut pool = FilePool::new(disk, 40).with_file_system(Some(Arc::new(NoOp)));
        let open = |pool: &mut FilePool, base| {
            pool.get(key(base), OpenMode::Create, || PathBuf::from(format!("/d/{base}"))).expect("opens")
        };
        let mut held = Vec::new();
        for base in 0..100 {
            let file = open(&mut pool, base);
            held.extend(pool.hold(file));
            assert!(pool.open_files() + pool.held_files() <= 40);
        }
        assert_eq!((pool.open_files(), held.len()), (30, 10));
        held.truncate(4);
        assert_eq!(pool.held_files(), 4);
        let file = open(&mut pool, 5);
        assert!(pool.hold(file).is_some());
    }

    #[test]
    fn without_a_file_system_each_file_is_held_until_it_is_synced() {
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        disk.create_dir(Path::new("/d")).expect("made");
        let mut pool = FilePool::new(disk, 4);
        let path = || PathBuf::from("/d/1");
        let file = pool.get(key(1), OpenMode::Create, path).expect("opens");
        let held: Vec<_> = (0..100).map_while(|_| pool.hold(file.clone())).collect();
        assert_eq!(held.len(), 100);
    }
}
