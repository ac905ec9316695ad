//! What it costs to lay large pieces into a segment that grows, synced now and then: the ways that `Log::lay` could take.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{self, FallocateFlags, Mode, OFlags};
use rustix::io;

use crate::{Clock, Rounds, noise};

const BLOCK_BYTES: usize = 4096;
const PIECE_BYTES: [usize; 6] = [32 << 10, 64 << 10, 128 << 10, 256 << 10, 1 << 20, 4 << 20];
/// A round of the syncer comes after this much.
const SYNC_BYTES: u64 = 8 << 20;

struct Way {
    name: &'static str,
    direct: bool,
    /// The descriptor is opened for each piece, beside the one that is there for readers.
    reopened: bool,
    /// Room is set aside this far ahead.
    ahead: u64,
    /// Pieces end in the middle of a block, which is written with zeros behind and written again with the next piece.
    odd: bool,
}

const WAYS: [Way; 7] = [
    Way { name: "buffered", direct: false, reopened: false, ahead: 0, odd: false },
    Way { name: "buffered, allocated ahead", direct: false, reopened: false, ahead: 16 << 20, odd: false },
    Way { name: "direct", direct: true, reopened: false, ahead: 0, odd: false },
    Way { name: "direct, 4 MiB ahead", direct: true, reopened: false, ahead: 4 << 20, odd: false },
    Way { name: "direct, 16 MiB ahead", direct: true, reopened: false, ahead: 16 << 20, odd: false },
    Way { name: "direct, 16 MiB ahead, odd", direct: true, reopened: false, ahead: 16 << 20, odd: true },
    Way {
        name: "direct, 16 MiB ahead, odd, opened each time",
        direct: true,
        reopened: true,
        ahead: 16 << 20,
        odd: true,
    },
];

pub(crate) fn run(folder: &Path, mib_each: u64, print: &mut dyn FnMut(String)) -> Result<(), String> {
    let path = folder.join("segment");
    for piece_bytes in PIECE_BYTES {
        for way in &WAYS {
            let bytes = (mib_each << 20).max(piece_bytes as u64);
            let rounds =
                lay(&path, way, piece_bytes, bytes).map_err(|error| format!("{}: {error}", way.name))?;
            print(rounds.line(&format!("\"laying\":\"{}\",\"piece_bytes\":{piece_bytes}", way.name)));
        }
    }
    fs::unlink(&path).map_err(|error| error.to_string())
}

fn lay(path: &Path, way: &Way, piece_bytes: usize, bytes: u64) -> Result<Rounds, io::Errno> {
    let store = noise(piece_bytes + 2 * BLOCK_BYTES);
    let mut buffer = vec![1; piece_bytes + 4 * BLOCK_BYTES];
    let start = buffer.as_ptr().align_offset(BLOCK_BYTES);
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let file: OwnedFd = fs::open(path, flags | OFlags::CREATE | OFlags::TRUNC, Mode::from_raw_mode(0o600))?;
    let open = || fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC | OFlags::DIRECT, Mode::empty());
    let kept = if way.direct { Some(open()?) } else { None };
    let piece_bytes = if way.odd { piece_bytes - 777 } else { piece_bytes };
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
            if way.reopened {
                io::pwrite(open()?, round, position)?;
            } else if let Some(kept) = &kept {
                io::pwrite(kept, round, position)?;
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
