//! The files of a journal: made once at their full length, then written over and over, each write durable when it
//! returns.
//!
//! O_DIRECT|O_DSYNC where the file system takes it: no copy into the page cache, and one call instead of two. Elsewhere
//! (tmpfs of older kernels, some FUSE and network file systems) a buffered write and `fdatasync`, with the reason kept
//! for a log line. The figures behind that choice: lab/bench/JOURNAL.md.
//!
//! A file is given its blocks when it is made, in an instant, and no zeros are written: the first time around the ring
//! the file system notes which blocks are in use now, a third more for each write, and after that never again. What is
//! in a file already is never touched here, since recovery comes after opening.
//!
//! Decides nothing: which file, which position and what to write come from `barnabas_storage::journal::Journal`.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use barnabas_storage::journal::{BLOCK_BYTES, slot_file_name};
use barnabas_storage::{Disk, DiskError, DiskErrorKind};
use rustix::fs::{self, Advice, FallocateFlags, Mode, OFlags};
use rustix::io::{self, Errno};

use crate::LinuxDisk;
use crate::errors::failed;
use crate::patience;

/// Zeros are written in pieces of this size.
const ZERO_BYTES: usize = 1 << 20;
const FILE_MODE: u32 = 0o666;

/// How a journal file is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JournalWay {
    /// O_DIRECT and O_DSYNC.
    Direct,
    /// Through the page cache, then `fdatasync`, since the file system refuses O_DIRECT with this error number.
    Buffered { refused: i32 },
}

/// The ring of files in one log directory.
#[derive(Debug)]
pub struct JournalFiles {
    files: Vec<JournalFile>,
}

/// One file of the ring.
#[derive(Debug)]
pub struct JournalFile {
    fd: OwnedFd,
    path: PathBuf,
    way: JournalWay,
    /// Its length is not durable yet.
    is_new: bool,
    /// There was nothing of it before it was opened.
    was_missing: bool,
    failed: bool,
}

impl JournalFiles {
    /// Opens the files in `dir`; makes those that are missing, and completes those whose making was interrupted. Blocks
    /// while zeros are written, where the file system cannot set blocks aside.
    ///
    /// # Errors
    /// Nothing that was in the files has changed, and a file that found no room keeps none.
    pub fn open(dir: &Path, files: usize, file_bytes: u64) -> Result<Self, DiskError> {
        let mut opened: Vec<JournalFile> = Vec::with_capacity(files);
        for slot in 0..files {
            match JournalFile::open(&dir.join(slot_file_name(slot)), file_bytes) {
                Ok(file) => opened.push(file),
                Err(error) => {
                    // All of them or none.
                    opened.iter().filter(|file| file.was_missing).try_for_each(|file| file.give_back(0))?;
                    return Err(error);
                }
            }
        }
        // Their blocks are set aside now, so that no disk is too full for them later. That this is durable is seen to
        // when each is first written, as the first write of all does not wait for eight syncs.
        LinuxDisk.sync_dir(dir)?;
        Ok(Self { files: opened })
    }

    /// How they are written: the same for all, as they lie in one directory.
    pub fn way(&self) -> &JournalWay {
        &self.files[0].way
    }

    /// The last file is not written any more.
    pub fn forget_last(&mut self) {
        self.files.pop();
    }

    /// Writes `bytes` (a [`barnabas_storage::journal::Round`]'s) and makes them durable.
    ///
    /// # Errors
    /// Final for the directory: what of it reached the disk is not known, and nothing may be written after it.
    pub fn write_durable(&mut self, slot: usize, position: u64, bytes: &[u8]) -> Result<(), DiskError> {
        self.files[slot].write_durable(position, bytes)
    }
}

impl JournalFile {
    /// See [`JournalFiles::open`].
    pub fn open(path: &Path, file_bytes: u64) -> Result<Self, DiskError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(FILE_MODE);
        let (fd, way) = match patience::open(path, flags | OFlags::DIRECT | OFlags::DSYNC, mode) {
            Ok(fd) => (fd, JournalWay::Direct),
            Err(refused @ (Errno::INVAL | Errno::OPNOTSUPP)) => {
                let fd = patience::open(path, flags, mode).map_err(failed("open", path))?;
                (fd, JournalWay::Buffered { refused: refused.raw_os_error() })
            }
            Err(error) => return Err(failed("open", path)(error)),
        };
        let mut file =
            Self { fd, path: path.to_path_buf(), way, is_new: false, was_missing: false, failed: false };
        let len = fs::fstat(&file.fd).map_err(failed("look at", path))?.st_size as u64;
        file.was_missing = len == 0;
        file.is_new = match file.complete(len, file_bytes) {
            Ok(is_new) => is_new,
            Err(error) => {
                file.give_back(len)?;
                return Err(error);
            }
        };
        // Recovery has read the file through the page cache: every direct write over a cached page would first have to
        // throw it out, at several times the cost of the write.
        fs::fadvise(&file.fd, 0, None, Advice::DontNeed).map_err(failed("uncache", path))?;
        Ok(file)
    }

    pub fn way(&self) -> &JournalWay {
        &self.way
    }

    /// Gives the file its blocks up to `file_bytes`; fills it with zeros where the file system cannot do that. `len`
    /// tells how far an earlier process got. Returns whether it was changed.
    fn complete(&mut self, len: u64, file_bytes: u64) -> Result<bool, DiskError> {
        // A torn length: write the block again. The file is not used before it is complete.
        let mut position = len - len % BLOCK_BYTES as u64;
        if position >= file_bytes {
            return Ok(false);
        }
        match fs::fallocate(&self.fd, FallocateFlags::empty(), 0, file_bytes) {
            Ok(()) => return Ok(true),
            Err(Errno::OPNOTSUPP) => {}
            Err(error) => return Err(failed("allocate", &self.path)(error)),
        }
        let zeros = aligned_zeros();
        let zeros = aligned(&zeros);
        while position < file_bytes {
            let len = zeros.len().min((file_bytes - position) as usize);
            self.write_durable(position, &zeros[..len])?;
            position += len as u64;
        }
        Ok(true)
    }

    /// Undoes a preallocation that the full disk did not complete, so that others can use the room:
    /// file systems keep what they had allocated by then. `len`: the file's length before, if it
    /// existed.
    fn give_back(&self, len: u64) -> Result<(), DiskError> {
        if len == 0 {
            return LinuxDisk.remove_file(&self.path);
        }
        fs::ftruncate(&self.fd, len).map_err(failed("cut", &self.path))
    }

    /// See [`JournalFiles::write_durable`].
    pub fn write_durable(&mut self, position: u64, bytes: &[u8]) -> Result<(), DiskError> {
        if self.failed {
            return Err(DiskError::new("write", &*self.path, DiskErrorKind::Device));
        }
        let done = self.write_all(position, bytes);
        self.failed = done.is_err();
        done
    }

    fn write_all(&mut self, mut position: u64, mut bytes: &[u8]) -> Result<(), DiskError> {
        if std::mem::take(&mut self.is_new) {
            fs::fsync(&self.fd).map_err(failed("sync", &self.path))?;
        }
        while !bytes.is_empty() {
            match io::pwrite(&self.fd, bytes, position) {
                Ok(0) => return Err(DiskError::new("write", &*self.path, DiskErrorKind::Device)),
                Ok(written) => {
                    position += written as u64;
                    bytes = &bytes[written..];
                }
                Err(Errno::INTR) => {}
                // The device wants larger blocks than ours, or another alignment; nothing was written.
                Err(Errno::INVAL) if self.way == JournalWay::Direct => self.fall_back(Errno::INVAL)?,
                Err(error) => return Err(failed("write", &self.path)(error)),
            }
        }
        match self.way {
            JournalWay::Direct => Ok(()),
            // Not tried again, interrupted or not: a failed sync is final.
            JournalWay::Buffered { .. } => fs::fdatasync(&self.fd).map_err(failed("sync", &self.path)),
        }
    }

    fn fall_back(&mut self, refused: Errno) -> Result<(), DiskError> {
        self.fd = patience::open(&self.path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(failed("open", &self.path))?;
        self.way = JournalWay::Buffered { refused: refused.raw_os_error() };
        Ok(())
    }
}

fn aligned_zeros() -> Vec<u8> {
    vec![0; ZERO_BYTES + BLOCK_BYTES]
}

/// The part of `bytes` that O_DIRECT can write from.
fn aligned(bytes: &[u8]) -> &[u8] {
    let skipped = bytes.as_ptr().align_offset(BLOCK_BYTES);
    &bytes[skipped..skipped + ZERO_BYTES]
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: u64 = (2 << 20) + 4096;

    /// A folder under `root` that vanishes.
    struct Folder(PathBuf);

    impl Folder {
        fn new(root: &Path, name: &str) -> Self {
            let path = root.join(format!("barnabas-journal-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            std::fs::remove_dir_all(&self.0).unwrap();
        }
    }

    fn write_and_read(folder: &Folder) {
        let mut files = JournalFiles::open(&folder.0, 3, BYTES).unwrap();
        let path = folder.0.join(slot_file_name(2));
        assert_eq!(std::fs::read(&path).unwrap(), vec![0; BYTES as usize]);
        let mut ones = aligned_zeros();
        ones.fill(1);
        files.write_durable(2, 4096, &aligned(&ones)[..8192]).unwrap();
        drop(files);
        // Opening again changes nothing, and a file that was cut short is completed.
        let cut = std::fs::File::options().write(true).open(&path).unwrap();
        cut.set_len(16_384).unwrap();
        JournalFiles::open(&folder.0, 3, BYTES).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len() as u64, BYTES);
        assert!(bytes[4096..12_288].iter().all(|byte| *byte == 1));
        assert!(bytes[..4096].iter().chain(&bytes[12_288..]).all(|byte| *byte == 0));
    }

    #[test]
    fn files_are_made_whole_written_and_opened_again() {
        write_and_read(&Folder::new(&std::env::temp_dir(), "made"));
    }

    #[test]
    fn a_file_that_cannot_be_had_whole_is_left_as_it_was_found() {
        let folder = Folder::new(&std::env::temp_dir(), "refused");
        // More than any length that a system call takes.
        let too_long = 1 << 63;
        let (before, new) = (folder.0.join("before"), folder.0.join("new"));
        std::fs::write(&before, [1; 8192]).unwrap();
        assert!(JournalFile::open(&before, too_long).is_err());
        assert!(JournalFile::open(&new, too_long).is_err());
        assert_eq!(std::fs::read(&before).unwrap(), [1; 8192]);
        assert!(!new.exists(), "nothing is kept of what was not had");
    }

    #[test]
    fn where_o_direct_is_refused_the_page_cache_and_a_sync_do() {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() {
            write_and_read(&Folder::new(memory, "memory"));
        }
        // Refused at the first write: unaligned memory.
        let folder = Folder::new(&std::env::temp_dir(), "unaligned");
        let path = folder.0.join("file");
        let mut file = JournalFile::open(&path, BYTES).unwrap();
        let ones = vec![1; BLOCK_BYTES * 2 + 1];
        let skewed = ones.as_ptr().align_offset(BLOCK_BYTES) + 1;
        file.write_durable(0, &ones[skewed..skewed + BLOCK_BYTES]).unwrap();
        assert!(matches!(file.way(), JournalWay::Buffered { refused: 22 }), "{:?}", file.way());
        assert_eq!(std::fs::read(&path).unwrap()[..BLOCK_BYTES], ones[..BLOCK_BYTES]);
    }
}
