//! What the quorum's thread does to its files for other members: reads log and snapshots for them, cuts the log, takes
//! snapshots that come from the leader, and reads those into the image.

use super::QuorumWorker;
use barnabas_base::Offset;
use barnabas_metadata_log::{MetadataError, metadata_partition};
use barnabas_quorum::raft::Read;
use barnabas_quorum::raft::message::Response;
use barnabas_quorum::{Effect, SnapshotId};
use std::sync::atomic::Ordering;

impl QuorumWorker {
    /// Answers another member, with what is to be read for it.
    pub(super) fn answer_peer(
        &mut self,
        ticket: u64,
        response: Response,
        read: Option<Read>,
    ) -> Result<(), MetadataError> {
        let Some(reply) = self.peer_replies.remove(&ticket) else { return Ok(()) };
        if reply.is_closed() {
            return Ok(());
        }
        let response = match read {
            None => response,
            Some(Read::Log { from, end, bytes_max }) => response.fill(self.files.read(from, end, bytes_max)?),
            Some(Read::Snapshot { id, position, bytes_max }) => {
                // The snapshot has just been deleted: no answer closes the connection, and the follower asks again.
                let Some(piece) = self.files.read_snapshot(id, position, bytes_max)? else { return Ok(()) };
                response.fill(piece)
            }
        };
        // The connection may be gone.
        drop(reply.send(response));
        Ok(())
    }

    /// Carries out what changes the log as a whole, and snapshots that come from the leader.
    pub(super) fn change_log(&mut self, effect: Effect) -> Result<(), MetadataError> {
        let now = self.now();
        match effect {
            Effect::Truncate(end) => {
                tracing::info!(
                    "truncated the metadata log to offset {end}, where it diverges from the leader's"
                );
                self.lower_recovery_point(end)?;
                self.with_room(|worker| worker.files.truncate(end, now.wall))?;
            }
            Effect::RestartLog(id) => {
                tracing::info!("the metadata log restarts at offset {} from snapshot {id}", id.end);
                self.lower_recovery_point(Offset::ZERO)?;
                self.with_room(|worker| worker.files.restart(id.end, now.wall))?;
            }
            Effect::LoadSnapshot(id) => self.load_snapshot(id)?,
            Effect::SnapshotPiece { id, position, bytes } => {
                self.with_room(|worker| worker.files.write_piece(id, position, &bytes))?;
            }
            Effect::StoreSnapshot(id) => {
                let size = self.files.store_snapshot(id)?;
                self.quorum.snapshot_stored(id, Some(size), now)?;
            }
            _ => unreachable!("the caller has the others"),
        }
        Ok(())
    }

    /// Before the log is cut: its checkpoint must not name what is about to go.
    fn lower_recovery_point(&self, end: Offset) -> Result<(), MetadataError> {
        self.node.peers.controller.shared.recovery_point.fetch_min(end.get(), Ordering::AcqRel);
        let holder = self
            .node
            .log_dirs
            .directories
            .iter()
            .find(|directory| self.node.peers.controller.lies_in(directory.id));
        let Some(directory) = holder.filter(|directory| directory.is_online()) else { return Ok(()) };
        let mut log_dir = directory.lock();
        if log_dir.recovery_point(&metadata_partition()) > end {
            log_dir.set_recovery_point(metadata_partition(), end);
            log_dir.write_checkpoints()?;
        }
        Ok(())
    }

    fn load_snapshot(&mut self, id: SnapshotId) -> Result<(), MetadataError> {
        let at = |place, source| MetadataError::At { place, source };
        let path = self.files.dir().join(id.file_name());
        let mut position = 0;
        while let Some(piece) =
            self.files.read_snapshot(id, position, 1 << 20)?.filter(|piece| !piece.is_empty())
        {
            position += piece.len() as i64;
            self.quorum.load_piece(&piece).map_err(|source| at(path.clone(), source))?;
        }
        self.quorum.loaded(self.now()).map_err(|source| at(path, source))
    }
}
