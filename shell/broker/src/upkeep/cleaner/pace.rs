//! How fast a cleaner reads and writes (`log.cleaner.io.max.bytes.per.second`, shared by all threads), and when it
//! stops.

use crate::log_dirs::directories::Directory;
use crate::node::Node;
use barnabas_storage::cleaner::Pace;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Between two looks at the clock.
const PIECE_BYTES: usize = 256 << 10;
/// At most this long at once, so that a stop is noticed.
const SLEEP_MAX: Duration = Duration::from_millis(500);

pub(super) struct Throttled<'a> {
    node: &'a Node,
    directory: &'a Directory,
    since: Instant,
    bytes: f64,
    unseen: usize,
}

impl<'a> Throttled<'a> {
    pub fn new(node: &'a Node, directory: &'a Directory) -> Self {
        Self { node, directory, since: barnabas_clock::now(), bytes: 0.0, unseen: 0 }
    }

    /// How long it takes at the allowed rate to do what was done.
    fn owed(&self) -> Duration {
        let config = self.node.cluster.config.load();
        let threads = f64::from(config.int("log.cleaner.threads").max(1));
        let rate = config.double("log.cleaner.io.max.bytes.per.second") / threads;
        Duration::try_from_secs_f64(self.bytes / rate.max(1.0)).unwrap_or(Duration::MAX)
    }
}

impl Pace for Throttled<'_> {
    fn take(&mut self, bytes: usize) -> ControlFlow<()> {
        self.unseen += bytes;
        if self.unseen < PIECE_BYTES {
            return ControlFlow::Continue(());
        }
        self.bytes += std::mem::take(&mut self.unseen) as f64;
        loop {
            let wait = self.owed().saturating_sub(barnabas_clock::since(self.since));
            if !self.directory.is_online() || !self.node.log_dirs.deletions.go_on_after(wait.min(SLEEP_MAX)) {
                return ControlFlow::Break(());
            }
            if wait <= SLEEP_MAX {
                return ControlFlow::Continue(());
            }
        }
    }
}
