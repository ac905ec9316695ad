//! Where records go, in four steps from nowhere to a synced journal with segments behind it.
//!
//! The journal is one preallocated, already written file, written over and over in rounds: what waited while a round
//! was on its way is the next one. Nothing is ever read back: this is a floor for figures, not a broker.

use crate::protocol::Piece;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

const BLOCK: usize = 4096;
const ROUND_BYTES_MAX: usize = 1 << 20;
const JOURNAL_BYTES: u64 = 256 << 20;
/// Bytes that may wait for a round; a reader that would go past them waits.
const WAITING_BYTES_MAX: usize = 64 << 20;
const SEGMENT_WRITE: usize = 1 << 20;
/// Where the checksum of a record batch stands, and where what it covers begins.
const CRC_AT: usize = 17;
const COVERED_FROM: usize = 21;

type Partition = (String, i32);
type Frame = Arc<Vec<u8>>;

/// A step of the skyline.
#[derive(Debug)]
pub enum Store {
    /// Acknowledged unread.
    Null,
    /// Checked, then in the page cache.
    File { directory: PathBuf, files: Mutex<HashMap<Partition, Arc<Mutex<File>>>> },
    /// Checked, then in a synced round.
    Journal(Arc<Journal>),
}

impl Store {
    pub fn open(mode: &str, directory: &Path) -> io::Result<Self> {
        match mode {
            "null" => Ok(Self::Null),
            "file" => Ok(Self::File { directory: directory.to_owned(), files: Mutex::default() }),
            "journal" | "segments" => Journal::start(directory, mode == "segments").map(Self::Journal),
            _ => Err(io::Error::other(format!("'{mode}' is none of null, file, journal, segments"))),
        }
    }

    /// Keeps a frame's records; the ticket to wait for, where there is one.
    pub fn keep(&self, frame: Vec<u8>, pieces: Vec<Piece>) -> io::Result<Option<u64>> {
        match self {
            Self::Null => Ok(None),
            Self::File { directory, files } => {
                check(&frame, &pieces)?;
                for piece in pieces {
                    let mut open = held(files);
                    let file = match open.get(&piece.partition) {
                        Some(file) => Arc::clone(file),
                        None => {
                            let (topic, partition) = &piece.partition;
                            let path = directory.join(format!("{topic}-{partition}.log"));
                            let file = OpenOptions::new().create(true).append(true).open(path)?;
                            Arc::clone(open.entry(piece.partition).or_insert(Arc::new(Mutex::new(file))))
                        }
                    };
                    drop(open);
                    held(&file).write_all(&frame[piece.records])?;
                }
                Ok(None)
            }
            Self::Journal(journal) => {
                check(&frame, &pieces)?;
                journal.add(Arc::new(frame), pieces).map(Some)
            }
        }
    }

    /// Returns once the ticket's records are synced.
    pub fn wait(&self, ticket: u64) -> io::Result<()> {
        match self {
            Self::Journal(journal) => journal.wait(ticket),
            _ => Ok(()),
        }
    }
}

/// The checksum of every batch.
fn check(frame: &[u8], pieces: &[Piece]) -> io::Result<()> {
    for piece in pieces {
        let mut left = &frame[piece.records.clone()];
        while left.len() > COVERED_FROM {
            let word = |at: usize| u32::from_be_bytes([left[at], left[at + 1], left[at + 2], left[at + 3]]);
            let end = 12 + word(8) as usize;
            let is_whole = left.len() >= end && end > COVERED_FROM;
            if !is_whole || barnabas_wire::records::crc32c(&left[COVERED_FROM..end]) != word(CRC_AT) {
                return Err(io::Error::other("a batch is damaged"));
            }
            left = &left[end..];
        }
    }
    Ok(())
}

fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug, Default)]
struct Waiting {
    frames: Vec<(Frame, Vec<Piece>)>,
    bytes: usize,
    given: u64,
    durable: u64,
    failed: Option<String>,
}

/// One file, one thread that writes rounds, readers that wait for them.
#[derive(Debug)]
pub struct Journal {
    waiting: Mutex<Waiting>,
    more: Condvar,
    done: Condvar,
}

impl Journal {
    fn start(directory: &Path, has_segments: bool) -> io::Result<Arc<Self>> {
        let path = directory.join("journal");
        let mut filled = File::create(&path)?;
        let zeros = vec![0; ROUND_BYTES_MAX];
        for _ in 0..JOURNAL_BYTES / ROUND_BYTES_MAX as u64 {
            filled.write_all(&zeros)?;
        }
        filled.sync_all()?;
        rustix::fs::fadvise(&filled, 0, None, rustix::fs::Advice::DontNeed)?;
        let file = direct(&path, true)?;
        let journal =
            Arc::new(Self { waiting: Mutex::default(), more: Condvar::new(), done: Condvar::new() });
        let behind = has_segments.then(|| {
            let (send, receive) = sync_channel(1024);
            let directory = directory.to_owned();
            std::thread::spawn(move || write_back(&directory, &receive));
            send
        });
        let writer = Arc::clone(&journal);
        std::thread::spawn(move || {
            if let Err(error) = writer.write(&file, behind.as_ref()) {
                held(&writer.waiting).failed = Some(error.to_string());
                writer.done.notify_all();
            }
        });
        Ok(journal)
    }

    fn add(&self, frame: Frame, pieces: Vec<Piece>) -> io::Result<u64> {
        let mut waiting = held(&self.waiting);
        while waiting.bytes > WAITING_BYTES_MAX && waiting.failed.is_none() {
            waiting = self.done.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        waiting.bytes += frame.len();
        waiting.given += 1;
        waiting.frames.push((frame, pieces));
        self.more.notify_one();
        Ok(waiting.given)
    }

    fn wait(&self, ticket: u64) -> io::Result<()> {
        let mut waiting = held(&self.waiting);
        while waiting.durable < ticket {
            if let Some(failed) = &waiting.failed {
                return Err(io::Error::other(failed.clone()));
            }
            waiting = self.done.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }

    fn write(&self, file: &File, behind: Option<&SyncSender<(Frame, Vec<Piece>)>>) -> io::Result<()> {
        let mut round = Aligned::new(ROUND_BYTES_MAX);
        let mut at = 0;
        loop {
            let mut waiting = held(&self.waiting);
            while waiting.frames.is_empty() {
                waiting = self.more.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            }
            let (frames, bytes, given) = (std::mem::take(&mut waiting.frames), waiting.bytes, waiting.given);
            drop(waiting);
            for (frame, pieces) in &frames {
                for piece in pieces {
                    let mut left = round.take(&frame[piece.records.clone()]);
                    while !left.is_empty() {
                        at = around(at + round.write(file, at)?);
                        left = round.take(left);
                    }
                }
            }
            at = around(at + round.write(file, at)?);
            let mut waiting = held(&self.waiting);
            waiting.durable = given;
            waiting.bytes -= bytes;
            drop(waiting);
            self.done.notify_all();
            if let Some(behind) = behind {
                for written_back in frames {
                    behind
                        .send(written_back)
                        .map_err(|_| io::Error::other("the segments' thread has ended"))?;
                }
            }
        }
    }
}

/// Writes back batches into their partitions' files, in direct writes of 1 MiB.
fn write_back(directory: &Path, written_back: &Receiver<(Frame, Vec<Piece>)>) {
    let mut open: HashMap<Partition, (File, Aligned, u64)> = HashMap::new();
    let mut add = |frame: &Frame, piece: Piece| -> io::Result<()> {
        let (topic, partition) = &piece.partition;
        let path = directory.join(format!("{topic}-{partition}.log"));
        if !open.contains_key(&piece.partition) {
            let file = direct(&path, false)?;
            open.insert(piece.partition.clone(), (file, Aligned::new(SEGMENT_WRITE), 0));
        }
        let Some((file, buffer, at)) = open.get_mut(&piece.partition) else { return Ok(()) };
        let mut left = buffer.take(&frame[piece.records]);
        while !left.is_empty() {
            *at += buffer.write(file, *at)?;
            left = buffer.take(left);
        }
        Ok(())
    };
    for (frame, pieces) in written_back {
        for piece in pieces {
            if let Err(error) = add(&frame, piece) {
                eprintln!("skyline: {error}");
                return;
            }
        }
    }
}

/// Where the next round goes: at the front again before the journal's end.
fn around(at: u64) -> u64 {
    if at + ROUND_BYTES_MAX as u64 > JOURNAL_BYTES { 0 } else { at }
}

fn direct(path: &Path, is_synced: bool) -> io::Result<File> {
    let flags = if is_synced {
        rustix::fs::OFlags::DIRECT | rustix::fs::OFlags::DSYNC
    } else {
        rustix::fs::OFlags::DIRECT
    };
    OpenOptions::new().create(true).write(true).truncate(false).custom_flags(flags.bits() as i32).open(path)
}

/// A buffer whose bytes lie where O_DIRECT wants them.
#[derive(Debug)]
struct Aligned {
    bytes: Vec<u8>,
    from: usize,
    len: usize,
    capacity: usize,
}

impl Aligned {
    fn new(capacity: usize) -> Self {
        let bytes = vec![0; capacity + BLOCK];
        let from = bytes.as_ptr().align_offset(BLOCK);
        Self { bytes, from, len: 0, capacity }
    }

    /// Takes what there is room for; the rest.
    fn take<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let (taken, rest) = bytes.split_at(bytes.len().min(self.capacity - self.len));
        let at = self.from + self.len;
        self.bytes[at..at + taken.len()].copy_from_slice(taken);
        self.len += taken.len();
        rest
    }

    /// Writes what it holds at `at`, filled up to whole blocks, and is empty; bytes written.
    fn write(&mut self, file: &File, at: u64) -> io::Result<u64> {
        let blocks = self.len.next_multiple_of(BLOCK);
        if blocks > 0 {
            file.write_all_at(&self.bytes[self.from..self.from + blocks], at)?;
        }
        self.len = 0;
        Ok(blocks as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A batch of nothing but a header, with a checksum that is right.
    fn batch() -> Vec<u8> {
        let mut bytes = vec![7; 61];
        bytes[8..12].copy_from_slice(&49_u32.to_be_bytes());
        let crc = barnabas_wire::records::crc32c(&bytes[COVERED_FROM..]);
        bytes[CRC_AT..COVERED_FROM].copy_from_slice(&crc.to_be_bytes());
        bytes
    }

    fn piece(records: std::ops::Range<usize>) -> Vec<Piece> {
        vec![Piece { partition: ("t".to_owned(), 0), records }]
    }

    #[test]
    fn batches_go_to_their_partitions_file_and_damaged_ones_nowhere() {
        let directory = std::env::temp_dir().join(format!("skyline-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let store = Store::open("file", &directory).unwrap();
        let frame = [b"head".to_vec(), batch(), batch()].concat();
        assert_eq!(store.keep(frame.clone(), piece(4..frame.len())).unwrap(), None);
        assert_eq!(std::fs::read(directory.join("t-0.log")).unwrap(), frame[4..]);
        let mut damaged = batch();
        damaged[40] ^= 1;
        assert!(store.keep(damaged, piece(0..61)).is_err());
        assert!(store.keep(batch()[..50].to_vec(), piece(0..50)).is_err());
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn what_does_not_fit_is_left_for_the_next_write() {
        let mut buffer = Aligned::new(2 * BLOCK);
        let bytes = vec![1; 3 * BLOCK];
        let left = buffer.take(&bytes);
        assert_eq!((left.len(), buffer.len), (BLOCK, 2 * BLOCK));
        assert_eq!(buffer.take(left).len(), BLOCK);
    }

    #[test]
    fn rounds_begin_at_the_front_before_the_journal_ends() {
        assert_eq!(around(JOURNAL_BYTES - ROUND_BYTES_MAX as u64), JOURNAL_BYTES - ROUND_BYTES_MAX as u64);
        assert_eq!(around(JOURNAL_BYTES - ROUND_BYTES_MAX as u64 + 1), 0);
    }
}
