//! What a log directory says of the process that worked in it before: whether all that it acknowledged is still here.

use std::path::Path;

use barnabas_base::{BrokerEpoch, TimestampMs};

use super::LogDir;
use crate::checkpoints::clean_shutdown;
use crate::disk::Disk;
use crate::disk::small_file;
use crate::error::StorageError;
use crate::log_dir::last_life::{self, LastLife};

impl LogDir {
    /// The life that left all that it had acknowledged here: it stopped cleanly (KIP-966), or it was ended while it
    /// acknowledged after the sync, and no checkpoint was found damaged.
    ///
    /// It is the word of that process, not a check: a journal that is gone, or a log that is too short, is found when
    /// it is opened.
    pub fn kept_life(&self) -> Option<LastLife> {
        self.kept_life
    }

    /// This process works here under that registration, acknowledges after the sync, and knows the metadata log up to
    /// `seen`. A full disk takes it too, once it has taken one.
    ///
    /// # Errors
    /// The disk refuses. What the file said before is of an older registration, or of an earlier time.
    pub fn note_life(&mut self, epoch: BrokerEpoch, seen: TimestampMs) -> Result<(), StorageError> {
        self.check_online()?;
        let (path, text) = (self.path.join(last_life::FILE_NAME), last_life::render(epoch, seen));
        let noted =
            small_file::replace_or_overwrite(&*self.disk, &path, text.as_bytes()).map_err(StorageError::from);
        self.note_failure(noted)
    }

    /// What this process leaves is not to be counted on.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn forget_life(&mut self) -> Result<(), StorageError> {
        self.check_online()?;
        let path = self.path.join(last_life::FILE_NAME);
        if self.disk.stat(&path)?.is_none() {
            return Ok(());
        }
        let removed = self.disk.remove_file(&path).and_then(|()| self.disk.sync_dir(&self.path));
        self.note_failure(removed.map_err(StorageError::from))
    }
}

/// See [`LogDir::kept_life`]. `clean_shutdown`: the mark of a clean stop, whose word is the last.
pub(super) fn kept(
    disk: &dyn Disk,
    dir: &Path,
    clean_shutdown: Option<&[u8]>,
    is_damaged: bool,
) -> Result<Option<LastLife>, StorageError> {
    if let Some(mark) = clean_shutdown {
        return Ok(clean_shutdown::parse(mark).map(|epoch| LastLife { epoch, seen: None }));
    }
    let text = small_file::read(disk, &dir.join(last_life::FILE_NAME))?;
    Ok(text.as_deref().and_then(last_life::parse).filter(|_| !is_damaged))
}
