//! What lies at a log directory's path before the node makes, writes or keeps locked anything there.
//!
//! Neighbours: core/identity/src/place.rs, what is found; core/identity/src/owner.rs, whose the directory is.

use barnabas_identity::Place;
use barnabas_storage::{Disk, DiskErrorKind, DiskSpace, LOCK, StorageError};
use rustix::fs::{Access, access};
use rustix::io::Errno;
use std::path::Path;

/// Reads, and changes nothing.
///
/// # Errors
/// [`StorageError::Locked`]: another process works there.
pub fn look(disk: &dyn Disk, path: &Path, holds_partitions: bool) -> Result<Place, StorageError> {
    let mut place =
        Place { path: path.to_owned(), holds_partitions, meta: None, partition: None, problem: None };
    match read(&mut place, disk) {
        Err(error @ StorageError::Locked(_)) => return Err(error),
        Err(error) => place.problem = Some(error.to_string()),
        Ok(problem) => place.problem = problem,
    }
    Ok(place)
}

/// Returns why the directory cannot be used.
fn read(place: &mut Place, disk: &dyn Disk) -> Result<Option<String>, StorageError> {
    if let Some(problem) = unusable(&place.path) {
        return Ok(Some(problem));
    }
    if !place.path.exists() {
        return Ok(None);
    }
    let lock = place.path.join(LOCK);
    if lock.exists() {
        // Taken for good when the directory is opened.
        drop(disk.lock(&lock).map_err(|error| match error.kind {
            DiskErrorKind::Locked => StorageError::Locked(place.path.clone()),
            _ => error.into(),
        })?);
    }
    place.read_meta(disk)?;
    Ok(None)
}

/// Room on the file system that holds the directory or is to hold it; `None` where the system does not say.
pub fn space(place: &Place, disk: &dyn Disk) -> Option<DiskSpace> {
    let there = if place.path.exists() { &*place.path } else { parent(&place.path) };
    disk.space(there).ok()
}

/// The directory that holds `path`, which is the working directory for a bare name.
pub fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Why no log directory can be at `path`.
fn unusable(path: &Path) -> Option<String> {
    if path.is_dir() {
        let is_denied = |errno| format!("the node cannot write there: {}", said(errno));
        return access(path, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK).err().map(is_denied);
    }
    if path.exists() {
        return Some("it is a file, not a directory".to_owned());
    }
    let above = parent(path);
    if let Some(file) = path.ancestors().skip(1).find(|above| above.is_file()) {
        return Some(format!("{} is a file, not a directory", file.display()));
    }
    if !above.is_dir() {
        return Some(format!(
            "its parent directory {} does not exist. If that is on a disk that is not mounted, mount it; otherwise create it: \
             mkdir -p {}",
            above.display(),
            above.display()
        ));
    }
    let is_denied =
        |errno| format!("it does not exist and cannot be created in {}: {}", above.display(), said(errno));
    access(above, Access::WRITE_OK | Access::EXEC_OK).err().map(is_denied)
}

/// Why no directory can be made at `path`, those above it included.
pub fn unmakeable(path: &Path) -> Option<String> {
    let above = path.ancestors().skip(1).find(|above| above.exists()).unwrap_or(Path::new("."));
    if above.is_file() {
        return Some(format!("{} is a file, not a directory", above.display()));
    }
    let is_denied = |errno| format!("it cannot be created in {}: {}", above.display(), said(errno));
    access(above, Access::WRITE_OK | Access::EXEC_OK).err().map(is_denied)
}

fn said(errno: Errno) -> String {
    match errno {
        Errno::ACCESS | Errno::PERM => "permission is denied".to_owned(),
        Errno::ROFS => "the file system is read-only".to_owned(),
        errno => errno.to_string(),
    }
}
