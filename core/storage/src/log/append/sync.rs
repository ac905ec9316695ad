//! What has to be synced, and what a finished sync means.

use std::sync::Arc;

use barnabas_base::{Offset, TimestampMs};

use crate::disk::DiskFile;
use crate::disk::file_pool::{FileKind, FilePool};
use crate::error::StorageError;
use crate::log::{Dirty, Log, Settling, SyncTicket, Unsynced};

impl Log {
    /// What has to be synced so that everything appended or written back so far is durable. `None`: everything is,
    /// or is on its way.
    ///
    /// Call it for every log that was appended to, once per round, with acks=0 and acks=1 too: the files stay open
    /// until then. Tickets come back to [`Log::mark_synced`] in the order in which they were taken.
    pub fn take_dirty(&mut self) -> Option<Dirty> {
        let unsynced = std::mem::take(&mut self.dirty);
        if unsynced.files.is_empty() && !unsynced.is_whole && !unsynced.dir && !unsynced.root {
            return None;
        }
        let active = self.segments.last().map(|active| self.key(active.base, FileKind::Log));
        let active = active
            .filter(|active| unsynced.is_whole || unsynced.files.iter().any(|(file, _)| file == active));
        self.tickets += 1;
        let mut dirs = Vec::new();
        if unsynced.dir {
            dirs.push(self.place.dir());
        }
        if unsynced.root {
            dirs.push(self.place.root.to_path_buf());
        }
        Some(Dirty {
            files: unsynced.files.into_iter().map(|(_, file)| file).collect(),
            dirs,
            is_whole: unsynced.is_whole,
            ticket: SyncTicket {
                log: self.id,
                number: self.tickets,
                end: self.segment_end,
                generation: self.generation,
                active,
                snapshot: self.vouched.in_ticket(),
            },
        })
    }

    /// The sync of what [`Log::take_dirty`] handed out has succeeded. Returns the new recovery point: everything below
    /// it is durable.
    ///
    /// A ticket from before a truncation counts for nothing; the truncation left something to sync itself.
    pub fn mark_synced(&mut self, ticket: SyncTicket) -> Offset {
        self.mark_synced_to(ticket, ticket.end)
    }

    /// As [`Log::mark_synced`], where the sync began late enough to cover more than was taken: everything below `end`
    /// had been written by then. It counts where that went into the segment's file alone, and that file is one of the
    /// ticket's.
    pub fn mark_synced_to(&mut self, ticket: SyncTicket, end: Offset) -> Offset {
        if ticket.log == self.id && matches!(self.settling, Settling::Noted(before) if ticket.number > before)
        {
            self.settling = Settling::Done;
        }
        if ticket.log == self.id && self.epochs_unsynced.is_some_and(|before| ticket.number > before) {
            self.epochs_unsynced = None;
        }
        if (ticket.log, ticket.generation) == (self.id, self.generation) {
            let is_covered = self.went_into_files_of(ticket);
            let covered = if is_covered { end.min(self.segment_end) } else { ticket.end };
            self.recovery_point = self.recovery_point.max(ticket.end).max(covered);
            self.vouched.sync(ticket.snapshot);
        }
        self.recovery_point
    }

    /// Whether all that was written since `ticket` was taken went into the active segment's file, and that is one of
    /// its files. A ticket may be of a producer snapshot alone; and a marker's entry in the index of aborted
    /// transactions is another file.
    fn went_into_files_of(&self, ticket: SyncTicket) -> bool {
        let active = self.segments.last().map(|active| self.key(active.base, FileKind::Log));
        let Unsynced { files, is_whole, dir, root } = &self.dirty;
        ticket.number == self.tickets
            && active.is_some_and(|active| {
                ticket.active == Some(active) && files.iter().all(|(file, _)| *file == active)
            })
            && !(*is_whole || *dir || *root)
    }

    /// Marks everything past the recovery point as unsynced again, for a caller that cannot wait for an open ticket.
    ///
    /// # Errors
    /// As for any write.
    pub fn note_unsynced_again(&mut self, files: &mut FilePool) -> Result<(), StorageError> {
        // The segment before may have been sealed since the last sync.
        let first = self.segment_of(self.recovery_point).unwrap_or(0).saturating_sub(1);
        for base in self.segments.iter().skip(first).map(|segment| segment.base).collect::<Vec<_>>() {
            for kind in FileKind::ALL {
                if let Some(file) = self.existing_file(files, base, kind)? {
                    self.mark_dirty(files, base, kind, file);
                }
            }
        }
        (self.dirty.dir, self.dirty.root) = (self.is_on_disk(), self.is_on_disk());
        Ok(())
    }

    /// At the end of an opening: what was found counts only once it is durable as it was found, where an earlier
    /// process may have made it so. A log in which nothing changes need not wait for that.
    pub(in crate::log) fn note_unsettled(&mut self, files: &mut FilePool) -> Result<(), StorageError> {
        let Unsynced { files: dirty, is_whole, dir, root } = &self.dirty;
        if dirty.is_empty() && !(*is_whole || *dir || *root) {
            self.settling = Settling::Due;
            return Ok(());
        }
        self.note_unsynced_again(files)?;
        self.settling = Settling::Noted(self.tickets);
        Ok(())
    }

    /// Before the first write: a tail and segments that an earlier process cut off are gone for good, so that nothing
    /// of them can come back within, or behind, what is written there. The rest goes with the next ticket: indexes and
    /// snapshots have weight below the recovery point alone, which does not move before that.
    pub(in crate::log) fn settle(&mut self, files: &mut FilePool) -> Result<(), StorageError> {
        if self.settling == Settling::Done {
            return Ok(());
        }
        if let Some(base) = self.segments.last().map(|segment| segment.base)
            && let Some(file) = self.existing_file(files, base, FileKind::Log)?
        {
            file.sync()?;
            files.disk().sync_dir(&self.place.dir())?;
        }
        if self.settling == Settling::Due {
            self.note_unsynced_again(files)?;
        }
        self.settling = Settling::Done;
        Ok(())
    }

    /// Writes what the recovery point rests on (the leader epochs), and returns the recovery point that
    /// `recovery-point-offset-checkpoint` may now name.
    ///
    /// Blocks for a sync where the epochs have changed and are not durable yet, which is rare: see
    /// [`Log::note_epochs_ahead`].
    pub fn checkpoint(&mut self, files: &mut FilePool) -> Result<Offset, StorageError> {
        if (self.epochs_changed || self.epochs_unsynced.is_some()) && self.is_on_disk() {
            self.attempt(|log| log.write_epochs(files))?;
        }
        self.checkpointed = [self.recovery_point, self.checkpointed[0]];
        self.vouched.checkpoint(self.checkpointed[1]);
        Ok(self.recovery_point)
    }

    /// Writes indexes and small files out for a clean stop, and closes the log's files. The result must be synced like
    /// any other before the directory is marked clean.
    ///
    /// What is staged is written back first.
    pub fn close(&mut self, files: &mut FilePool) -> Result<Option<Dirty>, StorageError> {
        if !self.failed {
            // The time counts only for a segment whose records have none.
            let now = self.segments.last().map_or(TimestampMs::NONE, |segment| segment.created);
            self.write_back_all(files, now)?;
        }
        if self.is_on_disk() && !self.failed {
            self.change(|log| {
                log.seal_indexes(files)?;
                log.give_room_back(files)?;
                log.note_epochs(files)
            })?;
        }
        files.close_log(self.id);
        Ok(self.take_dirty())
    }

    /// Closes the files, which open again when they are needed: before the log's directory is renamed, or the log goes
    /// on with another pool.
    pub fn abandon_files(&mut self, files: &mut FilePool) {
        files.close_log(self.id);
    }

    /// Closes the log's files without writing anything: before its directory is renamed or removed.
    pub fn abandon(&mut self, files: &mut FilePool) {
        files.close_log(self.id);
        self.dirty = Unsynced::default();
        self.tail = None;
        self.failed = true;
    }

    /// Notes that `file` was written to.
    pub(in crate::log) fn mark_dirty(
        &mut self,
        files: &FilePool,
        base: Offset,
        kind: FileKind,
        file: Arc<dyn DiskFile>,
    ) {
        let key = self.key(base, kind);
        if self.dirty.is_whole || self.dirty.files.iter().any(|(known, _)| *known == key) {
            return;
        }
        match files.hold(file) {
            Some(held) => self.dirty.files.push((key, held)),
            None => {
                self.dirty.files.clear();
                self.dirty.is_whole = true;
            }
        }
    }

    /// A segment whose files were renamed away needs no sync any more.
    pub(in crate::log) fn forget_dirty(&mut self, base: Offset) {
        self.dirty.files.retain(|(key, _)| key.base != base);
    }
}
