//! What it costs to write large pieces back to a segment that grows, synced now and then: the ways that
//! `Log::write_back` could take.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use barnabas_base::{Offset, PartitionIndex, TimestampMs, TopicPartition};
use barnabas_disk::LinuxDisk;
use barnabas_storage::{AppendBytes, FilePool, Log, LogConfig, LogPlace, StorageError, TailMemory};
use bytes::Bytes;
use rustix::fs::{self, FallocateFlags, Mode, OFlags};
use rustix::io;

use crate::{Clock, Rounds, noise};

const BLOCK_BYTES: usize = 4096;
const PIECE_BYTES: [usize; 6] = [32 << 10, 64 << 10, 128 << 10, 256 << 10, 1 << 20, 4 << 20];
/// A round of the syncer comes after this much.
const SYNC_BYTES: u64 = 8 << 20;

/// Where pieces end.
#[derive(PartialEq, Eq)]
enum Odd {
    /// With a block.
    Even,
    /// Within a block, which is written with zeros behind, and written again with the next piece.
    Padded,
    /// Within a block, whose front goes through the page cache, and is written again with the next piece.
    Buffered,
}

/// What a worker's round holds for one partition, where batches are small.
const STAGE_BYTES: usize = 16 << 10;
/// Batches stay in memory for readers.
const CACHED_BYTES: usize = 8 << 20;

struct Way {
    name: &'static str,
    direct: bool,
    /// The descriptor is opened for each piece, beside the one that is there for readers.
    reopened: bool,
    /// Room is set aside this far ahead.
    ahead: u64,
    odd: Odd,
}

const WAYS: [Way; 9] = [
    Way { name: "buffered", direct: false, reopened: false, ahead: 0, odd: Odd::Even },
    Way { name: "buffered, 4 MiB ahead", direct: false, reopened: false, ahead: 4 << 20, odd: Odd::Even },
    Way { name: "buffered, 16 MiB ahead", direct: false, reopened: false, ahead: 16 << 20, odd: Odd::Even },
    Way { name: "direct", direct: true, reopened: false, ahead: 0, odd: Odd::Even },
    Way { name: "direct, 4 MiB ahead", direct: true, reopened: false, ahead: 4 << 20, odd: Odd::Even },
    Way { name: "direct, 16 MiB ahead", direct: true, reopened: false, ahead: 16 << 20, odd: Odd::Even },
    Way {
        name: "direct, 16 MiB ahead, odd",
        direct: true,
        reopened: false,
        ahead: 16 << 20,
        odd: Odd::Padded,
    },
    Way {
        name: "direct, 16 MiB ahead, odd, last block buffered, opened each time",
        direct: true,
        reopened: true,
        ahead: 16 << 20,
        odd: Odd::Buffered,
    },
    Way {
        name: "direct, 16 MiB ahead, odd, opened each time",
        direct: true,
        reopened: true,
        ahead: 16 << 20,
        odd: Odd::Padded,
    },
];

pub(crate) fn run(folder: &Path, mib_each: u64, print: &mut dyn FnMut(String)) -> Result<(), String> {
    let path = folder.join("segment");
    for piece_bytes in PIECE_BYTES {
        for way in &WAYS {
            let bytes = (mib_each << 20).max(piece_bytes as u64);
            let rounds = write_back(&path, way, piece_bytes, bytes)
                .map_err(|error| format!("{}: {error}", way.name))?;
            print(rounds.line(&format!("\"laying\":\"{}\",\"piece_bytes\":{piece_bytes}", way.name)));
        }
    }
    fs::unlink(&path).map_err(|error| error.to_string())?;
    for batch_bytes in [200, 1 << 10, 16 << 10, 128 << 10] {
        for stretch_bytes in [64 << 10, 1 << 20, 4 << 20] {
            let case = format!("\"batch_bytes\":{batch_bytes},\"stretch_bytes\":{stretch_bytes}");
            log(folder, batch_bytes, stretch_bytes, mib_each << 20, &mut |step, rounds| {
                print(rounds.line(&format!("\"log\":\"{step}\",{case}")));
            })
            .map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

/// A whole log: batches are staged, 16 KiB of them or one at a time, written back stretch by stretch, synced, and
/// forgotten.
fn log(
    folder: &Path,
    batch_bytes: usize,
    stretch_bytes: usize,
    bytes: u64,
    print: &mut dyn FnMut(&str, Rounds),
) -> Result<(), StorageError> {
    let place = LogPlace {
        root: folder.into(),
        topic_partition: TopicPartition::new("laying", PartitionIndex(0)),
        topic_id: barnabas_base::Uuid([7; 16]),
        future: None,
    };
    let dir = place.dir();
    let mut files = FilePool::new(Arc::new(LinuxDisk), 8);
    let mut log = Log::create(place, Arc::new(LogConfig::default()), Offset::ZERO);
    let store = Bytes::from(noise(64 << 20));
    let (mut stage, mut write_back, mut sync) = (Rounds::default(), Rounds::default(), Rounds::default());
    let mut memory = TailMemory::new(64 << 20);
    let (mut done, mut unsynced) = (0, 0);
    while done < bytes {
        let before = Clock::now();
        let begun = log.staged_bytes();
        while log.staged_bytes() - begun < stretch_bytes as u64 {
            let batches = (0..(STAGE_BYTES / batch_bytes).max(1) as i64).map(|at| {
                let from = (log.end().get() + at) as usize * batch_bytes % (store.len() - batch_bytes);
                let header = header(log.end().plus(at), batch_bytes);
                AppendBytes::Split { header, body: store.slice(from..from + batch_bytes - header.len()) }
            });
            log.stage(&mut memory, &batches.collect::<Vec<_>>())?;
        }
        let written_back = log.staged_bytes() - begun;
        stage.add(before, Clock::now(), written_back);
        let before = Clock::now();
        log.write_back_all(&mut files, TimestampMs(0))?;
        write_back.add(before, Clock::now(), written_back);
        unsynced += written_back;
        if unsynced >= SYNC_BYTES {
            let before = Clock::now();
            if let Some(dirty) = log.take_dirty() {
                dirty.files.iter().try_for_each(|file| file.sync())?;
                log.mark_synced(dirty.ticket);
            }
            sync.add(before, Clock::now(), unsynced);
            unsynced = 0;
            log.forget_below(Offset(log.end().get() - (CACHED_BYTES / batch_bytes) as i64));
        }
        done += written_back;
    }
    log.abandon(&mut files);
    barnabas_storage::remove_dir(&LinuxDisk, &dir)?;
    [("stage", stage), ("write_back", write_back), ("sync", sync)]
        .into_iter()
        .for_each(|(step, rounds)| print(step, rounds));
    Ok(())
}

fn header(base: Offset, batch_bytes: usize) -> [u8; 61] {
    let mut header = [0; 61];
    header[..8].copy_from_slice(&base.get().to_be_bytes());
    header[8..12].copy_from_slice(&(batch_bytes as u32 - 12).to_be_bytes());
    header[16] = 2;
    header[35..43].copy_from_slice(&base.get().to_be_bytes());
    header
}

fn write_back(path: &Path, way: &Way, piece_bytes: usize, bytes: u64) -> Result<Rounds, io::Errno> {
    let store = noise(piece_bytes + 2 * BLOCK_BYTES);
    let mut buffer = vec![1; piece_bytes + 4 * BLOCK_BYTES];
    let start = buffer.as_ptr().align_offset(BLOCK_BYTES);
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let file: OwnedFd = fs::open(path, flags | OFlags::CREATE | OFlags::TRUNC, Mode::from_raw_mode(0o600))?;
    let open = || fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC | OFlags::DIRECT, Mode::empty());
    let kept = if way.direct { Some(open()?) } else { None };
    let piece_bytes = if way.odd != Odd::Even { piece_bytes - 777 } else { piece_bytes };
    let (mut end, mut allocated, mut synced) = (0_u64, 0, 0);
    let mut rounds = Rounds::default();
    while end < bytes {
        let before = Clock::now();
        if end + piece_bytes as u64 > allocated && way.ahead > 0 {
            allocated = end + piece_bytes as u64 + way.ahead;
            fs::fallocate(&file, FallocateFlags::KEEP_SIZE, 0, allocated)?;
        }
        if way.direct {
            // The copy belongs to it: batches lie wherever they came in.
            let head = (end % BLOCK_BYTES as u64) as usize;
            let round = &mut buffer[start..start + (head + piece_bytes).next_multiple_of(BLOCK_BYTES)];
            round[head..head + piece_bytes].copy_from_slice(&store[..piece_bytes]);
            let position = end - head as u64;
            let rest = (head + piece_bytes) % BLOCK_BYTES;
            let (round, last) = round.split_at(if way.odd == Odd::Buffered && rest > 0 {
                round.len() - BLOCK_BYTES
            } else {
                round.len()
            });
            if way.reopened {
                io::pwrite(open()?, round, position)?;
            } else if let Some(kept) = &kept {
                io::pwrite(kept, round, position)?;
            }
            if !last.is_empty() {
                io::pwrite(&file, &last[..rest], position + round.len() as u64)?;
            }
        } else {
            io::pwrite(&file, &store[..piece_bytes], end)?;
        }
        end += piece_bytes as u64;
        if end - synced >= SYNC_BYTES || end >= bytes {
            fs::fdatasync(&file)?;
            synced = end;
        }
        rounds.add(before, Clock::now(), piece_bytes as u64);
    }
    Ok(rounds)
}
