//! Small files that are replaced as a whole, so that a reader finds the old or the new contents and nothing between.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::{Disk, DiskError, DiskErrorKind, DiskFile, OpenMode};

/// More than any of these files holds; a larger one is no such file.
const SMALL_BYTES_MAX: u64 = 1 << 30;

/// The contents of `path`; `None` if it does not exist.
pub(crate) fn read(disk: &dyn Disk, path: &Path) -> Result<Option<Vec<u8>>, DiskError> {
    let file = match disk.open(path, OpenMode::Read) {
        Ok(file) => file,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error),
    };
    let len = file.len()?.min(SMALL_BYTES_MAX) as usize;
    Ok(Some(file.read_bytes(0, len)?.to_vec()))
}

/// Replaces `path` by `contents`: write beside it, sync, rename, sync the directory. Durable when it returns.
///
/// # Source
/// Kafka `CheckpointFile.write`.
pub(crate) fn replace(disk: &dyn Disk, path: &Path, contents: &[u8]) -> Result<(), DiskError> {
    let (file, beside) = write_beside(disk, path, contents)?;
    file.sync()?;
    disk.rename(&beside, path)?;
    disk.sync_dir(path.parent().unwrap_or(Path::new("/")))
}

/// As [`replace`]. Where no room is left for that, the new contents overwrite the old ones, if they are as long: a
/// crash in between may leave the file torn. Only for files with a checksum: a torn one counts as none.
pub(crate) fn replace_or_overwrite(disk: &dyn Disk, path: &Path, contents: &[u8]) -> Result<(), DiskError> {
    let shortage = match replace(disk, path, contents) {
        Err(error) if error.kind == DiskErrorKind::Full => error,
        replaced => return replaced,
    };
    match disk.stat(path)? {
        Some(stat) if stat.len == contents.len() as u64 => {}
        _ => return Err(shortage),
    }
    let file = disk.open(path, OpenMode::Write)?;
    file.write_at(0, &[contents])?;
    file.sync()
}

/// As [`replace`] without its two syncs, which are the caller's: of the returned file, and of the directory. A crash
/// before them may leave the file torn: only for what is found again from elsewhere then.
pub(crate) fn replace_unsynced(
    disk: &dyn Disk,
    path: &Path,
    contents: &[u8],
) -> Result<Arc<dyn DiskFile>, DiskError> {
    if disk.stat(path)?.is_none() {
        // There is nothing that a torn one could take the place of.
        return write_new(disk, path, contents);
    }
    let (file, beside) = write_beside(disk, path, contents)?;
    disk.rename(&beside, path)?;
    Ok(file)
}

fn write_new(disk: &dyn Disk, path: &Path, contents: &[u8]) -> Result<Arc<dyn DiskFile>, DiskError> {
    let file = disk.open(path, OpenMode::Truncate)?;
    file.write_at(0, &[contents])?;
    Ok(file)
}

fn write_beside(
    disk: &dyn Disk,
    path: &Path,
    contents: &[u8],
) -> Result<(Arc<dyn DiskFile>, PathBuf), DiskError> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".tmp");
    let beside = PathBuf::from(beside);
    Ok((write_new(disk, &beside, contents)?, beside))
}
