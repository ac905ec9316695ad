//! Files and directories that are out of use, until their time has come.
//!
//! Neighbours: housekeeping.rs, which removes them.

use barnabas_base::TimestampMs;
use barnabas_storage::DelayedDelete;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Files and directories that are out of use and go later.
#[derive(Debug, Default)]
pub struct Deletions {
    waiting: Mutex<Vec<Deletion>>,
    stopping: Mutex<bool>,
    stopped: Condvar,
}

/// One of them.
#[derive(Debug)]
pub enum Deletion {
    Files { directory: usize, delete: DelayedDelete },
    Directory { directory: usize, path: PathBuf, due: TimestampMs },
}

impl Deletions {
    /// Files of a log that goes on.
    pub fn later(&self, directory: usize, delete: DelayedDelete) {
        self.push(Deletion::Files { directory, delete });
    }

    /// The directory of a deleted partition.
    pub fn directory_later(&self, directory: usize, path: PathBuf, due: TimestampMs) {
        self.push(Deletion::Directory { directory, path, due });
    }

    fn push(&self, deletion: Deletion) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(deletion);
    }

    /// The deletions that are due; in a directory that is short of room, all of them. Open readers keep the files by
    /// their handles.
    pub fn take_due(&self, now: TimestampMs, is_short: impl Fn(usize) -> bool) -> Vec<Deletion> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting
            .extract_if(.., |deletion| match deletion {
                Deletion::Files { directory, delete } => delete.due <= now || is_short(*directory),
                Deletion::Directory { directory, due, .. } => *due <= now || is_short(*directory),
            })
            .collect()
    }

    /// Ends the thread at its next turn.
    pub fn stop(&self) {
        *self.stopping.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.stopped.notify_all();
    }

    /// Sleeps so long, or until the node stops. Returns whether to go on.
    pub fn go_on_after(&self, how_long: Duration) -> bool {
        let stopping = self.stopping.lock().unwrap_or_else(PoisonError::into_inner);
        let (stopping, _) = self
            .stopped
            .wait_timeout_while(stopping, how_long, |stopping| !*stopping)
            .unwrap_or_else(PoisonError::into_inner);
        !*stopping
    }
}
