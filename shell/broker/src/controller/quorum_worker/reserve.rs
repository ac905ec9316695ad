//! The room that is kept back for the metadata log, and given away when a node without any must end or begin.

use crate::log_dirs::directories::Directory;
use crate::node::Node;
use crate::node::peers::controller::ControllerHandle;
use barnabas_metadata_log::{MetadataFiles, RESERVE_NAME};
use barnabas_storage::StorageError;
use std::sync::atomic::Ordering;

impl ControllerHandle {
    /// Gives the reserve's room away, where the metadata log's own directory is one that is `short`: to the end of
    /// the node
    /// (checkpoints, snapshots and the marks of a clean stop need a few bytes) or to a start that finds none. It is
    /// taken again
    /// when there is room.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn give_reserve_away(
        &self,
        node: &Node,
        short: impl Fn(&Directory) -> bool,
    ) -> Result<(), StorageError> {
        for directory in node.log_dirs.directories.iter().filter(|directory| short(directory)) {
            if self.lies_in(directory.id) {
                self.shared.is_full.store(true, Ordering::Relaxed);
                directory.disk.remove_file(&MetadataFiles::dir_in(&directory.path).join(RESERVE_NAME))?;
            }
        }
        Ok(())
    }
}
