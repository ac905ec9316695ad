//! The deleted front of a log, on a disk that has no room for the leader epochs that would say so.
//!
//! The leader epochs' file says where a log begins, and is written before segments at the front are deleted: a start
//! takes what is missing otherwise for lost (open/lost.rs). On a full disk that write fails, and segments are deleted
//! all the same, to make room. There a name says it, which needs no room: before anything else, an index of the oldest
//! segment that is deleted is renamed to `<last deleted offset>.front.deleted`. The name stays until the epochs are
//! durable. Kafka removes it at its next start, as it does all files that end with `.deleted`.
//!
//! A start that finds such a name, a first segment that begins at most one offset above it, and epochs that begin below
//! that segment, moves the log's start to the segment. It writes the epochs before it removes the name; where the disk
//! is full still, the name stays.
//!
//! Always true:
//! 1. where segments at the front are deleted, the epochs on disk begin at the first segment, or such a name exists;
//!    a disk without room even for an empty file has neither
//! 2. at most one such name is kept
//!
//! Source: none in Kafka, which does not notice lost segments.

use barnabas_base::Offset;

use super::replace::rename_if_there;
use crate::disk::OpenMode;
use crate::disk::file_pool::{FileKind, FilePool};
use crate::error::{StorageError, unless_full};
use crate::log::{Log, OpenFrom};
use crate::segment::{LOG, offset_path, parse_offset_name};

/// What follows the last deleted offset in the name that says it.
const SAYING: &str = ".front.deleted";
const SWAPPED_LOG: &str = ".log.swap";

impl Log {
    /// Writes down that the log begins at `first` from now on, before the segment at `oldest` and others are deleted. A
    /// full disk must not keep anything from being deleted.
    pub(in crate::log) fn say_what_goes(
        &mut self,
        files: &mut FilePool,
        oldest: Offset,
        first: Offset,
    ) -> Result<(), StorageError> {
        if !self.epochs_changed {
            return Ok(());
        }
        match self.write_epochs(files) {
            Err(error) if error.is_passing() && first > oldest => self.say_by_name(files, oldest, first),
            Err(error) if error.is_passing() => Ok(()),
            written => written,
        }
    }

    fn say_by_name(
        &mut self,
        files: &mut FilePool,
        oldest: Offset,
        first: Offset,
    ) -> Result<(), StorageError> {
        files.close_segment(self.id, oldest);
        self.forget_dirty(oldest);
        let dir = self.place.dir();
        let last = first.plus(-1);
        let said = dir.join(name_of(last));
        let index = |kind: FileKind| offset_path(&dir, oldest, kind.suffix());
        let has_name = rename_if_there(files, &index(FileKind::TimeIndex), &said)?
            || rename_if_there(files, &index(FileKind::OffsetIndex), &said)?;
        if !has_name {
            let made = files.disk().open(&said, OpenMode::Create);
            unless_full(made.map(drop).map_err(StorageError::from))?;
        }
        self.dirty.dir = true;
        match self.front_named.replace(last) {
            Some(before) if before != last => Ok(files.disk().remove_file(&dir.join(name_of(before)))?),
            _ => Ok(()),
        }
    }

    /// Removes the name that was kept, once the epochs on disk say what it says.
    pub(in crate::log) fn remove_needless_name(&mut self, files: &FilePool) -> Result<(), StorageError> {
        if self.epochs_changed || self.epochs_unsynced.is_some() {
            return Ok(());
        }
        let Some(last) = self.front_named.take() else { return Ok(()) };
        Ok(files.disk().remove_file(&self.place.dir().join(name_of(last)))?)
    }

    /// Where the log begins, if a name of `names` says it and the epochs do not. The epochs are written down; where the
    /// disk has no room for that, the name is kept.
    pub(in crate::log) fn deleted_front(
        &mut self,
        files: &mut FilePool,
        names: &[&str],
        from: OpenFrom,
    ) -> Result<Option<Offset>, StorageError> {
        let of = |suffix: &'static str| {
            let named = names.iter().filter(move |name| name.ends_with(suffix));
            named.filter_map(|name| parse_offset_name(name)).map(|(base, _)| base)
        };
        let Some(said) = of(SAYING).max() else { return Ok(None) };
        // A segment that compaction is about to put in place counts.
        let Some(first) = of(LOG).chain(of(SWAPPED_LOG)).min() else { return Ok(None) };
        if said.plus(1) < first {
            // A segment behind the deleted ones was lost: once it is put back, the name counts again.
            self.front_named = Some(said);
            return Ok(None);
        }
        let Some(mut epochs) = self.epochs_in_file(files)? else { return Ok(None) };
        let begins = epochs.entries().first().map(|epoch| epoch.start.max(from.log_start));
        if begins.is_none_or(|begins| begins >= first) {
            return Ok(None);
        }
        epochs.truncate_from_start(first);
        (self.epochs, self.epochs_changed) = (epochs, true);
        match self.write_epochs(files) {
            Err(error) if error.is_passing() => {
                self.front_named = Some(said);
            }
            written => written?,
        }
        Ok(Some(first))
    }
}

pub(in crate::log) fn name_of(last: Offset) -> String {
    format!("{:020}{SAYING}", last.get())
}
