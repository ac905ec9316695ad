//! The ways to write, without a journal: what the kernel alone costs.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{self, FallocateFlags, Mode, OFlags};
use rustix::io;

use crate::{Clock, Rounds, noise};

const BLOCK_BYTES: usize = 4096;
pub(crate) const ROUND_BYTES: [usize; 6] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];
/// Rounds of one case are not more than this, whatever they hold.
const ROUNDS_MAX: u64 = 2000;

/// A way to make a round durable (or, for comparison, not).
struct Way {
    name: &'static str,
    direct: bool,
    dsync: bool,
    sync: bool,
    before: Before,
}

/// What is in the file before it is written.
#[derive(PartialEq, Eq)]
enum Before {
    Nothing,
    Allocated,
    /// Every byte was written and synced, and is not in the page cache where it is written directly.
    Written,
    /// The same, but still in the page cache: what a file is that was read, or written otherwise, before.
    Cached,
}

/// Batches as they lie in frames, for [`run_pieces`].
const PIECE_BYTES: usize = 16 << 10;
const PIECES_STORE_BYTES: usize = 64 << 20;

const WAYS: [Way; 9] = [
    Way { name: "direct+dsync recycled", direct: true, dsync: true, sync: false, before: Before::Written },
    Way {
        name: "direct+dsync recycled, cached",
        direct: true,
        dsync: true,
        sync: false,
        before: Before::Cached,
    },
    Way {
        name: "direct+fdatasync recycled",
        direct: true,
        dsync: false,
        sync: true,
        before: Before::Written,
    },
    Way {
        name: "direct+dsync allocated only",
        direct: true,
        dsync: true,
        sync: false,
        before: Before::Allocated,
    },
    Way { name: "buffered+dsync recycled", direct: false, dsync: true, sync: false, before: Before::Written },
    Way {
        name: "buffered+fdatasync recycled",
        direct: false,
        dsync: false,
        sync: true,
        before: Before::Written,
    },
    Way {
        name: "buffered+fdatasync growing",
        direct: false,
        dsync: false,
        sync: true,
        before: Before::Nothing,
    },
    Way {
        name: "buffered unsynced recycled",
        direct: false,
        dsync: false,
        sync: false,
        before: Before::Written,
    },
    Way {
        name: "buffered unsynced growing",
        direct: false,
        dsync: false,
        sync: false,
        before: Before::Nothing,
    },
];

pub(crate) fn run(folder: &Path, mib_each: u64, print: &mut dyn FnMut(String)) -> Result<(), String> {
    for way in &WAYS {
        for round_bytes in ROUND_BYTES {
            let bytes = (mib_each << 20).min(ROUNDS_MAX * round_bytes as u64).max(round_bytes as u64);
            let rounds = measure(&folder.join("ways"), way, round_bytes, bytes)
                .map_err(|error| format!("{}: {error}", way.name))?;
            print(rounds.line(&format!("\"way\":\"{}\",\"round_bytes\":{round_bytes}", way.name)));
        }
    }
    run_pieces(&folder.join("ways"), mib_each, print)?;
    fs::unlink(folder.join("ways")).map_err(|error| error.to_string())
}

fn measure(path: &Path, way: &Way, round_bytes: usize, bytes: u64) -> Result<Rounds, rustix::io::Errno> {
    let store = noise(round_bytes + BLOCK_BYTES);
    let skipped = store.as_ptr().align_offset(BLOCK_BYTES);
    let round = &store[skipped..skipped + round_bytes];
    prepare(path, way, bytes)?;
    let mut flags = OFlags::WRONLY | OFlags::CLOEXEC;
    flags.set(OFlags::DIRECT, way.direct);
    flags.set(OFlags::DSYNC, way.dsync);
    let file: OwnedFd = fs::open(path, flags, Mode::empty())?;
    let mut rounds = Rounds::default();
    for number in 0..bytes / round_bytes as u64 {
        let before = Clock::now();
        let mut done = 0;
        while done < round_bytes {
            done += io::pwrite(&file, &round[done..], number * round_bytes as u64 + done as u64)?;
        }
        if way.sync {
            fs::fdatasync(&file)?;
        }
        rounds.add(before, Clock::now(), round_bytes as u64);
    }
    // The next case does not pay for this one's dirty pages.
    fs::fsync(&file)?;
    Ok(rounds)
}

fn prepare(path: &Path, way: &Way, bytes: u64) -> Result<(), rustix::io::Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
    let file = fs::open(path, flags, Mode::from_raw_mode(0o600))?;
    if way.before != Before::Nothing {
        fs::fallocate(&file, FallocateFlags::empty(), 0, bytes)?;
    }
    if matches!(way.before, Before::Written | Before::Cached) {
        let piece = noise(1 << 20);
        let mut position = 0;
        while position < bytes {
            let len = piece.len().min((bytes - position) as usize);
            position += io::pwrite(&file, &piece[..len], position)? as u64;
        }
    }
    fs::fsync(&file)?;
    if way.before == Before::Written && way.direct {
        fs::fadvise(&file, 0, None, fs::Advice::DontNeed)?;
    }
    Ok(())
}

/// Rounds made of batches of 16 KiB that lie all over a memory larger than the caches: copied together and written
/// directly, or gathered by the kernel into the page cache and synced.
fn run_pieces(path: &Path, mib_each: u64, print: &mut dyn FnMut(String)) -> Result<(), String> {
    let store = noise(PIECES_STORE_BYTES.min((mib_each << 20) as usize * 4));
    for way in WAYS.iter().filter(|way| way.dsync && way.before == Before::Written) {
        for round_bytes in ROUND_BYTES.into_iter().filter(|round| *round >= PIECE_BYTES) {
            let bytes = (mib_each << 20).min(ROUNDS_MAX * round_bytes as u64).max(round_bytes as u64);
            let rounds = pieces(path, way, &store, round_bytes, bytes).map_err(|error| error.to_string())?;
            let how = if way.direct {
                "copied, direct+dsync recycled"
            } else {
                "gathered, buffered+dsync recycled"
            };
            print(rounds.line(&format!("\"way\":\"{how}\",\"round_bytes\":{round_bytes}")));
        }
    }
    Ok(())
}

fn pieces(
    path: &Path,
    way: &Way,
    store: &[u8],
    round_bytes: usize,
    bytes: u64,
) -> Result<Rounds, rustix::io::Errno> {
    prepare(path, way, bytes)?;
    let mut flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::DSYNC;
    flags.set(OFlags::DIRECT, way.direct);
    let file: OwnedFd = fs::open(path, flags, Mode::empty())?;
    let mut buffer = vec![1; round_bytes + BLOCK_BYTES];
    let start = buffer.as_ptr().align_offset(BLOCK_BYTES);
    let mut rounds = Rounds::default();
    // Every other piece, so that no read-ahead of the processor joins them.
    let mut batches = store.chunks_exact(PIECE_BYTES).step_by(2).cycle();
    for number in 0..bytes / round_bytes as u64 {
        let before = Clock::now();
        let taken = batches.by_ref().take(round_bytes / PIECE_BYTES);
        let position = number * round_bytes as u64;
        let written = if way.direct {
            let round = &mut buffer[start..start + round_bytes];
            for (to, from) in round.chunks_exact_mut(PIECE_BYTES).zip(taken) {
                to.copy_from_slice(from);
            }
            io::pwrite(&file, round, position)?
        } else {
            let slices: Vec<_> = taken.map(std::io::IoSlice::new).collect();
            io::pwritev(&file, &slices, position)?
        };
        assert_eq!(written, round_bytes, "a write of a few MiB is written whole");
        rounds.add(before, Clock::now(), round_bytes as u64);
    }
    Ok(rounds)
}
