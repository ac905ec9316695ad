//! [`Disk`] for Linux: storage's calls carried out, one system call or two each.
//!
//! Decides nothing: no cache, no retry but for interrupted and partial transfers and where descriptors
//! run short (patience.rs), no thread. Errors keep their meaning
//! ([`DiskErrorKind`]) and name what was tried on what.

mod errors;
mod file;
mod journal_file;
mod patience;

#[cfg(test)]
mod tests;

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use barnabas_base::TimestampMs;
use barnabas_storage::{
    DirEntry, Disk, DiskError, DiskErrorKind, DiskFile, DiskLock, DiskSpace, FileStat, FileSystem, OpenMode,
};
use rustix::fs::{self, AtFlags, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::errors::failed;
use crate::file::LinuxFile;
pub use crate::journal_file::{JournalFile, JournalFiles, JournalWay};
pub use crate::patience::{SPARE, keep_spare};

/// The machine's file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct LinuxDisk;

/// A held `.lock` file.
///
/// Locked twice: `flock` keeps out a second opener in this process and in others of ours, and the record lock (`fcntl`)
/// is the one that Java's `FileChannel.tryLock` takes, so that Apache Kafka and this never share a directory. Its
/// folder is locked as well, where the file system can: a deleted `.lock` lets no second node in.
#[derive(Debug)]
struct LinuxLock {
    _file: OwnedFd,
    _folder: Option<OwnedFd>,
}

impl DiskLock for LinuxLock {}

/// A descriptor that `syncfs` is called on. One for good: Linux reports a failed write-back once to each that was open
/// before.
#[derive(Debug)]
struct LinuxFileSystem {
    fd: OwnedFd,
    path: PathBuf,
}

impl FileSystem for LinuxFileSystem {
    fn sync(&self) -> Result<(), DiskError> {
        // Not tried again, interrupted or not: a failed sync is final.
        fs::syncfs(&self.fd).map_err(failed("sync the file system of", &self.path))
    }
}

/// As Kafka's files are: readable by all that the umask lets in.
const FILE_MODE: u32 = 0o666;
const DIR_MODE: u32 = 0o777;

impl Disk for LinuxDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn DiskFile>, DiskError> {
        let flags = match mode {
            OpenMode::Read => OFlags::RDONLY,
            OpenMode::Write => OFlags::RDWR,
            OpenMode::Create => OFlags::RDWR | OFlags::CREATE,
            OpenMode::Truncate => OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC,
        };
        let fd = patience::open(path, flags | OFlags::CLOEXEC, Mode::from_raw_mode(FILE_MODE))
            .map_err(failed("open", path))?;
        Ok(Arc::new(LinuxFile::new(fd, path)))
    }

    fn list(&self, dir: &Path) -> Result<Vec<DirEntry>, DiskError> {
        let fd = open_dir("list", dir)?;
        let mut entries = Vec::new();
        for entry in patience::with(|| fs::Dir::read_from(&fd)).map_err(failed("list", dir))? {
            let entry = entry.map_err(failed("list", dir))?;
            // A name that is no UTF-8 is none of ours.
            let Ok(name) = entry.file_name().to_str() else { continue };
            if name == "." || name == ".." {
                continue;
            }
            let is_dir = match entry.file_type() {
                FileType::Directory => true,
                // Symbolic links are followed, and some file systems do not say in the listing.
                FileType::Symlink | FileType::Unknown => match fs::statat(&fd, name, AtFlags::empty()) {
                    Ok(stat) => FileType::from_raw_mode(stat.st_mode) == FileType::Directory,
                    Err(Errno::NOENT) => continue,
                    Err(error) => return Err(failed("list", dir)(error)),
                },
                _ => false,
            };
            entries.push(DirEntry { name: name.to_owned(), is_dir });
        }
        entries.sort_unstable();
        Ok(entries)
    }

    fn stat(&self, path: &Path) -> Result<Option<FileStat>, DiskError> {
        match fs::stat(path) {
            Ok(stat) => Ok(Some(FileStat {
                is_dir: FileType::from_raw_mode(stat.st_mode) == FileType::Directory,
                len: stat.st_size as u64,
                modified: TimestampMs(stat.st_mtime * 1000 + stat.st_mtime_nsec as i64 / 1_000_000),
            })),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(failed("look at", path)(error)),
        }
    }

    fn create_dir(&self, dir: &Path) -> Result<(), DiskError> {
        match fs::mkdir(dir, Mode::from_raw_mode(DIR_MODE)) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(failed("create", dir)(error)),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        fs::rename(from, to).map_err(failed("rename", from))
    }

    fn remove_file(&self, path: &Path) -> Result<(), DiskError> {
        match fs::unlink(path) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(failed("remove", path)(error)),
        }
    }

    fn remove_dir(&self, dir: &Path) -> Result<(), DiskError> {
        match fs::rmdir(dir) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(failed("remove", dir)(error)),
        }
    }

    fn sync_dir(&self, dir: &Path) -> Result<(), DiskError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match patience::open(dir, flags, Mode::empty()).map_err(failed("open", dir)) {
            Err(error) if error.is_not_found() => Ok(()),
            fd => fs::fsync(fd?).map_err(failed("sync", dir)),
        }
    }

    fn space(&self, dir: &Path) -> Result<DiskSpace, DiskError> {
        let stat = fs::statvfs(dir).map_err(failed("look at", dir))?;
        let device = fs::stat(dir).map_err(failed("look at", dir))?.st_dev;
        Ok(DiskSpace { total: stat.f_blocks * stat.f_frsize, free: stat.f_bavail * stat.f_frsize, device })
    }

    fn file_system(&self, dir: &Path) -> Result<Option<Arc<dyn FileSystem>>, DiskError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = patience::open(dir, flags, Mode::empty()).map_err(failed("open", dir))?;
        Ok(Some(Arc::new(LinuxFileSystem { fd, path: dir.to_path_buf() })))
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn DiskLock>, DiskError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
        let file =
            patience::open(path, flags, Mode::from_raw_mode(FILE_MODE)).map_err(failed("open", path))?;
        let exclusive = FlockOperation::NonBlockingLockExclusive;
        let folder = path.parent().and_then(|folder| open_dir("lock", folder).ok());
        let folder_locked = match folder.as_ref().map(|folder| fs::flock(folder, exclusive)) {
            Some(Err(error @ Errno::WOULDBLOCK)) => Err(error),
            // File systems over a network lock no folders.
            _ => Ok(()),
        };
        let locked = folder_locked
            .and_then(|()| fs::flock(&file, exclusive))
            .and_then(|()| fs::fcntl_lock(&file, exclusive));
        match locked {
            Ok(()) => Ok(Box::new(LinuxLock { _file: file, _folder: folder })),
            Err(Errno::WOULDBLOCK | Errno::ACCESS) => {
                Err(DiskError::new("lock", path, DiskErrorKind::Locked))
            }
            Err(error) => Err(failed("lock", path)(error)),
        }
    }
}

fn open_dir(action: &'static str, dir: &Path) -> Result<OwnedFd, DiskError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    patience::open(dir, flags, Mode::empty()).map_err(failed(action, dir))
}
