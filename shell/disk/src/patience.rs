//! Opening files where descriptors run short: a few are kept in hand for that, and a moment is waited.
//!
//! To open a file fails with EMFILE, ENFILE or ENOMEM where the process or the system has used up something, and that
//! is no fault of the disk. The node divides its descriptors so that it does not happen
//! (shell/broker/src/config/descriptors.rs); what is here is for the moment when it does all the same: a limit that was
//! lowered while the process ran, or other processes that take all there is.
//!
//! Always true: of the descriptors in hand none is used but by an open that would have failed.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{self, Mode, OFlags};
use rustix::io::Errno;

/// Descriptors in hand: as many as threads may be in the middle of something that must not be cut short.
pub const SPARE: usize = 8;

/// What is waited before each further try: about a tenth of a second in all.
const PAUSES_MS: [u64; 6] = [1, 2, 4, 8, 16, 64];
/// No waiting for so long after a wait that did not help, so that a thread that opens many files
/// does not stall.
const NO_PATIENCE_FOR: Duration = Duration::from_secs(1);

static IN_HAND: Mutex<Vec<OwnedFd>> = Mutex::new(Vec::new());
static MISSING: AtomicUsize = AtomicUsize::new(0);
static IN_VAIN: Mutex<Option<Instant>> = Mutex::new(None);

/// Takes [`SPARE`] descriptors in hand.
///
/// # Errors
/// The process has not even those.
pub fn keep_spare() -> std::io::Result<()> {
    let mut in_hand = IN_HAND.lock().unwrap_or_else(PoisonError::into_inner);
    while in_hand.len() < SPARE {
        in_hand.push(spare()?);
    }
    MISSING.store(0, Ordering::Relaxed);
    Ok(())
}

fn spare() -> Result<OwnedFd, Errno> {
    fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}

/// Opens a file; tries again for a moment where the process or the system has no descriptor, or no memory, for it.
pub(crate) fn open(path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    with(|| fs::open(path, flags, mode))
}

/// Carries out what needs a descriptor.
pub(crate) fn with<T>(mut attempt: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    let mut pauses = PAUSES_MS.iter();
    loop {
        match attempt() {
            Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM) if give_one() => {}
            Err(error @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM)) => match pauses.next() {
                Some(&pause) if has_patience() => std::thread::sleep(Duration::from_millis(pause)),
                Some(_) => return Err(error),
                None => {
                    *IN_VAIN.lock().unwrap_or_else(PoisonError::into_inner) = Some(barnabas_clock::now());
                    return Err(error);
                }
            },
            done => {
                if done.is_ok() && MISSING.load(Ordering::Relaxed) > 0 {
                    take_one_back();
                }
                return done;
            }
        }
    }
}

fn has_patience() -> bool {
    let in_vain = *IN_VAIN.lock().unwrap_or_else(PoisonError::into_inner);
    in_vain.is_none_or(|since| barnabas_clock::since(since) > NO_PATIENCE_FOR)
}

/// Closes one of those in hand. `false`: there is none.
fn give_one() -> bool {
    let given = IN_HAND.lock().unwrap_or_else(PoisonError::into_inner).pop();
    if given.is_some() {
        MISSING.fetch_add(1, Ordering::Relaxed);
    }
    given.is_some()
}

/// Takes one in hand again, if there is one to be had.
fn take_one_back() {
    let one_less = |missing: usize| missing.checked_sub(1);
    if MISSING.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_err() {
        return;
    }
    match spare() {
        Ok(fd) => IN_HAND.lock().unwrap_or_else(PoisonError::into_inner).push(fd),
        Err(_) => drop(MISSING.fetch_add(1, Ordering::Relaxed)),
    }
}
