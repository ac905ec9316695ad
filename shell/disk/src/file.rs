//! One open file: positioned reads and gathered writes.

use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use barnabas_base::TimestampMs;
use barnabas_storage::journal::BLOCK_BYTES;
use barnabas_storage::{DiskError, DiskErrorKind, DiskFile, write_zeros};
use bytes::Bytes;
use rustix::buffer::spare_capacity;
use rustix::fs::{self, FallocateFlags, Mode, OFlags};
use rustix::io::{self, Errno};

use crate::errors::failed;

/// What one `pwritev` takes at most (`IOV_MAX`).
const PARTS_MAX: usize = 1024;
/// The size of one write call. For larger writes the kernel allocates larger contiguous pieces of
/// memory, which are often unused and not in a cache: 2 ns of CPU a byte instead of 0.3
/// (lab/bench/JOURNAL.md).
const CALL_BYTES: usize = 64 << 10;

#[derive(Debug)]
pub(crate) struct LinuxFile {
    fd: OwnedFd,
    path: PathBuf,
}

impl LinuxFile {
    pub(crate) fn new(fd: OwnedFd, path: &Path) -> Self {
        Self { fd, path: path.to_path_buf() }
    }

    /// The same file once more, for one write past the page cache. `None`: the name belongs to another file by now.
    ///
    /// Not kept open: to open it costs about 2 µs, a hundredth of the smallest such write, and so it needs no place
    /// among the open files. Not this descriptor with its flags changed, since others read through it meanwhile.
    fn open_direct(&self) -> Result<Option<OwnedFd>, Errno> {
        let flags = OFlags::WRONLY | OFlags::DIRECT | OFlags::CLOEXEC;
        let direct = fs::open(&self.path, flags, Mode::empty())?;
        let (this, that) = (fs::fstat(&self.fd)?, fs::fstat(&direct)?);
        Ok((this.st_ino == that.st_ino && this.st_dev == that.st_dev).then_some(direct))
    }

    fn write_slices(&self, mut position: u64, slices: &mut [IoSlice<'_>]) -> Result<(), DiskError> {
        let mut rest = slices;
        // Empty parts at the front would make a write of nothing look like one that got nowhere.
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            let written = if rest[0].len() > CALL_BYTES {
                io::pwrite(&self.fd, &rest[0][..CALL_BYTES], position)
            } else {
                io::pwritev(&self.fd, &rest[..parts_of_a_call(rest)], position)
            };
            match written {
                Ok(0) => return Err(DiskError::new("write", &*self.path, DiskErrorKind::Device)),
                Ok(written) => {
                    position += written as u64;
                    IoSlice::advance_slices(&mut rest, written);
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(failed("write", &self.path)(error)),
            }
        }
        Ok(())
    }
}

/// How many of `slices` go into one call; the first of them does.
fn parts_of_a_call(slices: &[IoSlice<'_>]) -> usize {
    let mut bytes = 0;
    let fits = |slice: &&IoSlice<'_>| {
        bytes += slice.len();
        bytes <= CALL_BYTES
    };
    slices.iter().take(PARTS_MAX).take_while(fits).count().max(1)
}

impl DiskFile for LinuxFile {
    fn read_at(&self, position: u64, buffer: &mut [u8]) -> Result<usize, DiskError> {
        let mut filled = 0;
        while filled < buffer.len() {
            match io::pread(&self.fd, &mut buffer[filled..], position + filled as u64) {
                Ok(0) => break,
                Ok(got) => filled += got,
                Err(Errno::INTR) => {}
                Err(error) => return Err(failed("read", &self.path)(error)),
            }
        }
        Ok(filled)
    }

    /// Reads into memory that was not cleared first.
    fn read_bytes(&self, position: u64, len: usize) -> Result<Bytes, DiskError> {
        let mut buffer = Vec::with_capacity(len);
        while buffer.len() < len {
            let at = position + buffer.len() as u64;
            match io::pread(&self.fd, spare_capacity(&mut buffer), at) {
                Ok(0) => break,
                Ok(_) => {}
                Err(Errno::INTR) => {}
                Err(error) => return Err(failed("read", &self.path)(error)),
            }
        }
        // A vector may have more room than was asked for, and then more is read.
        buffer.truncate(len);
        Ok(Bytes::from(buffer))
    }

    fn write_at(&self, position: u64, parts: &[&[u8]]) -> Result<(), DiskError> {
        match parts {
            [] => Ok(()),
            [one] => self.write_slices(position, &mut [IoSlice::new(one)]),
            [one, two] => self.write_slices(position, &mut [IoSlice::new(one), IoSlice::new(two)]),
            many => {
                let mut slices: Vec<IoSlice<'_>> = many.iter().map(|part| IoSlice::new(part)).collect();
                self.write_slices(position, &mut slices)
            }
        }
    }

    fn write_direct(&self, position: u64, parts: &[&[u8]]) -> Result<bool, DiskError> {
        let mut slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
        let mut rest = &mut slices[..];
        IoSlice::advance_slices(&mut rest, 0);
        let mut at = position;
        match self.open_direct() {
            Ok(Some(direct)) => {
                while !rest.is_empty() {
                    match io::pwritev(&direct, rest, at) {
                        Ok(some) if some == 0 || !some.is_multiple_of(BLOCK_BYTES) => break,
                        Ok(some) => {
                            at += some as u64;
                            IoSlice::advance_slices(&mut rest, some);
                        }
                        Err(Errno::INTR) => {}
                        Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok(false),
                        Err(error) => return Err(failed("write", &self.path)(error)),
                    }
                }
            }
            Ok(None) => {}
            Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok(false),
            // Too many open files, say: this once, the page cache does.
            Err(_) => {}
        }
        self.write_slices(at, rest)?;
        Ok(true)
    }

    fn sync(&self) -> Result<(), DiskError> {
        // Not tried again, interrupted or not: a failed sync is final.
        fs::fdatasync(&self.fd).map_err(failed("sync", &self.path))
    }

    fn set_len(&self, len: u64) -> Result<(), DiskError> {
        fs::ftruncate(&self.fd, len).map_err(failed("resize", &self.path))
    }

    fn len(&self) -> Result<u64, DiskError> {
        let stat = fs::fstat(&self.fd).map_err(failed("look at", &self.path))?;
        Ok(stat.st_size as u64)
    }

    fn next_data(&self, position: u64) -> Result<u64, DiskError> {
        // The descriptor's own position does not matter: every other read passes a position.
        match fs::seek(&self.fd, fs::SeekFrom::Data(position)) {
            Ok(found) => Ok(found),
            Err(Errno::NXIO) => Ok(u64::MAX),
            Err(_) => Ok(position),
        }
    }

    fn allocate(&self, len: u64) -> Result<(), DiskError> {
        // What the file has written has its room; asking for it again takes longer the longer the file is.
        let from = self.len()?;
        if len <= from {
            return Ok(());
        }
        match fs::fallocate(&self.fd, FallocateFlags::KEEP_SIZE, from, len - from) {
            // A file system that cannot set room aside writes without.
            Ok(()) | Err(Errno::OPNOTSUPP) => Ok(()),
            Err(error) => Err(failed("allocate", &self.path)(error)),
        }
    }

    fn fill(&self, len: u64) -> Result<(), DiskError> {
        // The file system sets the blocks aside: no byte is copied, and none waits to be written to the device.
        match io::retry_on_intr(|| fs::fallocate(&self.fd, FallocateFlags::empty(), 0, len)) {
            Ok(()) => Ok(()),
            Err(Errno::OPNOTSUPP) => write_zeros(|position, zeros| self.write_at(position, &[zeros]), len),
            Err(error) => Err(failed("allocate", &self.path)(error)),
        }
    }

    fn set_modified(&self, at: TimestampMs) -> Result<(), DiskError> {
        let modified = fs::Timespec {
            tv_sec: at.0.div_euclid(1000),
            tv_nsec: at.0.rem_euclid(1000) as fs::Nsecs * 1_000_000,
        };
        let accessed = fs::Timespec { tv_sec: 0, tv_nsec: fs::UTIME_OMIT };
        let times = fs::Timestamps { last_access: accessed, last_modification: modified };
        fs::futimens(&self.fd, &times).map_err(failed("set the time of", &self.path))
    }
}
