//! When a log directory's `barnabas-checkpoints` is believed, and when it is written.

use std::path::Path;

use super::LogDir;
use crate::checkpoints::guard::{self, Guard, Guarded};
use crate::checkpoints::offset_checkpoint;
use crate::disk::Disk;
use crate::disk::small_file;
use crate::error::StorageError;

impl LogDir {
    /// Before the files are: what they are and what they are about to be.
    pub(super) fn write_guard(&mut self) -> Result<(), StorageError> {
        let files: Vec<Guarded> = self
            .checkpoints()
            .iter()
            .map(|file| {
                let text = file.changed.then(|| offset_checkpoint::render(&file.offsets));
                let after = text.map_or(file.sum, |text| guard::sum(Some(text.as_bytes())));
                Guarded { name: file.name, before: file.sum, after }
            })
            .collect();
        if !self.guard_changed && files.iter().all(|file| file.before == file.after) {
            return Ok(());
        }
        let log_starts = self.log_starts.offsets.clone();
        let Self { is_synced, journal, stopped, .. } = *self;
        let guard = Guard { is_synced, journal, stopped, files, log_starts };
        let path = self.path.join(guard::FILE_NAME);
        small_file::replace(&*self.disk, &path, guard.render().as_bytes())?;
        self.guard_changed = false;
        Ok(())
    }
}

/// What this program wrote last. `None`: it never did, or another program has written here since.
pub(super) fn read(
    disk: &dyn Disk,
    dir: &Path,
    clean_shutdown: Option<&[u8]>,
    damaged: &mut Vec<StorageError>,
) -> Result<Option<Guard>, StorageError> {
    let path = dir.join(guard::FILE_NAME);
    let Some(text) = small_file::read(disk, &path)? else { return Ok(None) };
    let Some(guard) = Guard::parse(&text) else {
        let what = "its checksum is wrong".to_owned();
        damaged.push(StorageError::BadFile {
            file: path,
            what,
            remedy: "the checkpoints are believed as they are",
        });
        return Ok(None);
    };
    let mut found = Vec::new();
    for name in offset_checkpoint::ALL {
        found.push(guard::sum(small_file::read(disk, &dir.join(name))?.as_deref()));
    }
    let is_overtaken = guard.is_overtaken(guard::sum(clean_shutdown), &found);
    Ok((!is_overtaken).then_some(guard))
}
