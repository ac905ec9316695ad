//! What storage asks of the machine: files that are read and written at positions, directories, syncs, a lock.
//!
//! Small enough to fake: [`crate::MemoryDisk`] tears and loses unsynced writes, shell/disk implements it for Linux.
//! All calls block; a thread that must not block hands the handles to one that may.
//!
//! What a caller may rely on, and what every implementation keeps:
//! 1. A written byte is durable once [`DiskFile::sync`] has returned after the write, and not before.
//! 2. A file's name (made, renamed, removed) is durable once [`Disk::sync_dir`] of its directory has returned.
//! 3. A handle stays good when its file is renamed or removed.
//! 4. A failed sync is final: bytes that a failed sync covered may be gone although a later sync returns success (Linux
//!    drops the dirty pages). Callers take the directory out of service; they never sync again and go on.

pub(crate) mod block_buffer;
pub(crate) mod file_pool;
pub(crate) mod memory_disk;
pub(crate) mod room;
pub(crate) mod small_file;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use barnabas_base::TimestampMs;
use bytes::Bytes;

/// A machine's file system, as far as storage needs it.
pub trait Disk: Send + Sync + std::fmt::Debug {
    /// # Errors
    /// [`DiskErrorKind::NotFound`] without [`OpenMode::Create`]; a missing parent directory is `NotFound` always.
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn DiskFile>, DiskError>;
    /// Names in `dir`, sorted.
    fn list(&self, dir: &Path) -> Result<Vec<DirEntry>, DiskError>;
    /// `None` where nothing has that name.
    fn stat(&self, path: &Path) -> Result<Option<FileStat>, DiskError>;
    /// Makes one directory; its parent must exist. One that exists already is left as it is.
    fn create_dir(&self, dir: &Path) -> Result<(), DiskError>;
    /// Replaces `to` if it exists.
    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError>;
    /// A file that is not there counts as removed.
    fn remove_file(&self, path: &Path) -> Result<(), DiskError>;
    /// Removes an empty directory; one that is not there counts as removed.
    fn remove_dir(&self, dir: &Path) -> Result<(), DiskError>;
    /// Makes the names in `dir` durable. A directory that is gone has none: a sync that is under way while its
    /// partition is deleted is no failure (Kafka `Utils.flushDirIfExists`).
    fn sync_dir(&self, dir: &Path) -> Result<(), DiskError>;
    /// Room on the file system that holds `dir`.
    fn space(&self, dir: &Path) -> Result<DiskSpace, DiskError>;
    /// A way to make everything durable that was written to the file system of `dir` since this call, with one sync for
    /// any number of files; `None` where there is none.
    fn file_system(&self, _dir: &Path) -> Result<Option<Arc<dyn FileSystem>>, DiskError> {
        Ok(None)
    }
    /// Takes the lock file at `path` (made if missing) until the returned value is dropped.
    ///
    /// # Errors
    /// [`DiskErrorKind::Locked`]: another process holds it.
    fn lock(&self, path: &Path) -> Result<Box<dyn DiskLock>, DiskError>;
}

/// One open file. Shared between threads: all calls carry their position.
#[expect(clippy::len_without_is_empty, reason = "a file is asked for its length, never whether it is empty")]
pub trait DiskFile: Send + Sync + std::fmt::Debug {
    /// Fills `buffer` from `position`; fewer bytes only at the end of the file.
    fn read_at(&self, position: u64, buffer: &mut [u8]) -> Result<usize, DiskError>;
    /// `len` bytes from `position`; fewer only at the end of the file.
    fn read_bytes(&self, position: u64, len: usize) -> Result<Bytes, DiskError> {
        let mut buffer = vec![0; len];
        let got = self.read_at(position, &mut buffer)?;
        buffer.truncate(got);
        Ok(Bytes::from(buffer))
    }
    /// Writes all of `parts`, one after another, from `position` on. After an error any part of it may be written.
    fn write_at(&self, position: u64, parts: &[&[u8]]) -> Result<(), DiskError>;
    /// Writes whole blocks past the page cache, one part after another: `position`, the length and the address of each
    /// part are multiples of [`crate::journal::BLOCK_BYTES`]. Readers see them at once, as after
    /// [`DiskFile::write_at`]; they are durable after [`DiskFile::sync`]. After an error any part of them may be
    /// written.
    ///
    /// Returns false where that cannot be done here: then they are to be written with `write_at`.
    fn write_direct(&self, _position: u64, _parts: &[&[u8]]) -> Result<bool, DiskError> {
        Ok(false)
    }
    /// Makes all that was written, and the length, durable (`fdatasync`).
    fn sync(&self) -> Result<(), DiskError>;
    /// Cuts or lengthens (with zeros).
    fn set_len(&self, len: u64) -> Result<(), DiskError>;
    fn len(&self) -> Result<u64, DiskError>;
    /// Where at or behind `position` the next bytes lie that may be other than zero: what was set aside and never
    /// written is passed over without being read, where the file system can say so. `u64::MAX`: nowhere.
    fn next_data(&self, position: u64) -> Result<u64, DiskError> {
        Ok(position)
    }
    /// Sets room aside from the start of the file up to `len` without changing its length, where the file system can.
    fn allocate(&self, len: u64) -> Result<(), DiskError>;
    /// Lengthens an empty file to `len` zeros and takes all the room that they need: removing the file gives as much
    /// room back. After an error any part of it may be taken.
    fn fill(&self, len: u64) -> Result<(), DiskError> {
        write_zeros(|position, zeros| self.write_at(position, &[zeros]), len)
    }
    /// Sets when the file counts as last written: what retention and the tombstones of old formats go by. A machine
    /// that keeps no times leaves it out.
    fn set_modified(&self, at: TimestampMs) -> Result<(), DiskError> {
        let _ = at;
        Ok(())
    }
}

/// Has `len` zeros written from the start of a file, a few at a time.
///
/// # Errors
/// The first error of `write`.
pub fn write_zeros(write: impl Fn(u64, &[u8]) -> Result<(), DiskError>, len: u64) -> Result<(), DiskError> {
    let zeros = [0; 16 << 10];
    let mut position = 0;
    while position < len {
        let piece = zeros.len().min(usize::try_from(len - position).unwrap_or(usize::MAX));
        write(position, &zeros[..piece])?;
        position += piece as u64;
    }
    Ok(())
}

/// A file system as a whole. Kept from before what it is to make durable was written: a write-back that fails in
/// between is reported by its sync, even where the file was closed meanwhile.
pub trait FileSystem: Send + Sync + std::fmt::Debug {
    /// Makes all that was written to any file, and all names, durable. A failed one is as final as that of a file.
    fn sync(&self) -> Result<(), DiskError>;
}

/// A lock on a directory; dropping it (or the end of the process) frees it.
pub trait DiskLock: Send + Sync + std::fmt::Debug {}

/// How [`Disk::open`] opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// To read; must exist.
    Read,
    /// To read and write; must exist.
    Write,
    /// To read and write; made if missing.
    Create,
    /// To read and write; made if missing, emptied if not.
    Truncate,
}

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirEntry {
    pub name: String,
    pub is_dir: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStat {
    pub is_dir: bool,
    pub len: u64,
    pub modified: TimestampMs,
}

/// Bytes of a file system: all there are, and those that this process may still use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpace {
    pub total: u64,
    pub free: u64,
    /// Which file system it is: directories with the same number share its room.
    pub device: u64,
}

/// A call on the machine that failed: what was tried, on what, and how it failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot {action} {}: {kind}", path.display())]
pub struct DiskError {
    /// A verb: "write", "sync".
    pub action: &'static str,
    pub path: PathBuf,
    pub kind: DiskErrorKind,
}

impl DiskError {
    pub fn new(action: &'static str, path: impl Into<PathBuf>, kind: DiskErrorKind) -> Self {
        Self { action, path: path.into(), kind }
    }

    pub fn is_not_found(&self) -> bool {
        self.kind == DiskErrorKind::NotFound
    }
}

impl DiskErrorKind {
    /// The machine lacked something that it may have again, and said so before it did anything that could be lost.
    pub fn is_shortage(self) -> bool {
        matches!(self, Self::TooManyFiles | Self::NoMemory | Self::TooLarge)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DiskErrorKind {
    #[error("there is no such file or directory")]
    NotFound,
    #[error("the disk is full or the quota is used up")]
    Full,
    #[error("permission is denied")]
    Denied,
    #[error("the file system is read-only")]
    ReadOnly,
    #[error(
        "too many files are open: raise the limit of open files (ulimit -n), or lower log.open.files.max"
    )]
    TooManyFiles,
    /// Of what only opens or looks something up.
    #[error("the operating system has no memory for it")]
    NoMemory,
    #[error(
        "the file would be larger than the process (ulimit -f) or the file system allows: raise the limit, or lower log.segment.bytes"
    )]
    TooLarge,
    #[error("another process holds the lock")]
    Locked,
    #[error("the directory is not empty")]
    NotEmpty,
    #[error("the device reports an input/output error")]
    Device,
    /// What the operating system said, by its number.
    #[error("the operating system reports error {0}")]
    System(i32),
}
