//! Reports a log directory that fails while the node runs.

use crate::mailbox::Report;
use crate::node::Node;
use crate::upkeep::placement::reports;
use barnabas_storage::StorageError;

impl Node {
    fn tell_workers(&self, directory: usize) {
        for mailbox in &self.workers.mailboxes {
            mailbox.report(Report::DirectoryFailed(directory));
        }
    }

    /// A file of the directory could not be written: it has no room now, or it is offline for good.
    pub fn write_failed(&self, directory: usize, error: &StorageError) {
        if error.is_passing() {
            self.log_dirs.directories[directory].room.hit(error, self.clock.monotonic());
        } else {
            self.directory_failed(directory, error);
        }
    }

    /// A write, or a sync, failed: the directory is offline for good. With the last one the node has nothing to serve.
    pub fn directory_failed(&self, directory: usize, error: &dyn std::error::Error) {
        let failed = &self.log_dirs.directories[directory];
        if !failed.fail() {
            return;
        }
        let path = failed.path.display();
        tracing::error!(
            %error,
            "log directory {path} is offline until the next start, and so are its partitions. Check its disk"
        );
        reports::heartbeat(self);
        self.tell_workers(directory);
        let any_left = self.log_dirs.directories.iter().any(|dir| dir.holds_partitions && dir.is_online());
        if !any_left || self.peers.controller.lies_in(failed.id) {
            self.shutdown.failed("no log directory is left, or the metadata log's own has failed");
        }
    }
}
