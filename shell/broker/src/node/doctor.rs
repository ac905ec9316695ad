//! What the doctor's thread has found of this node. server/exporter/doctor.rs fills it in, the metrics page shows it.

use barnabas_findings::Standing;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The findings that stand, for the metrics page, and the way to end the threads.
#[derive(Debug, Default)]
pub struct Doctor {
    standing: Mutex<Standing>,
    /// Of each thread that reads pages: the doctor's own, and the one that pushes them (server/exporter/otlp.rs).
    stops: Mutex<Vec<SyncSender<()>>>,
}

impl Doctor {
    /// What ends when a thread is to end.
    pub fn begin(&self) -> Receiver<()> {
        let (stop, stopped) = sync_channel(0);
        self.stops.lock().unwrap_or_else(PoisonError::into_inner).push(stop);
        stopped
    }

    pub fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the threads end.
    pub fn stop(&self) {
        self.stops.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
