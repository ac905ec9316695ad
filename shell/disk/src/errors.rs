//! What Linux's error numbers mean to storage.

use std::path::Path;

use barnabas_storage::{DiskError, DiskErrorKind};
use rustix::io::Errno;

/// For `map_err`: `action` on `path` ended with this number.
pub(crate) fn failed(action: &'static str, path: &Path) -> impl FnOnce(Errno) -> DiskError {
    move |error| DiskError::new(action, path, kind(action, error))
}

fn kind(action: &str, error: Errno) -> DiskErrorKind {
    match error {
        Errno::NOENT | Errno::NOTDIR => DiskErrorKind::NotFound,
        // Where blocks are allocated late, a sync may be the first to find the disk full. What it was to sync is lost.
        Errno::NOSPC | Errno::DQUOT if !action.starts_with("sync") => DiskErrorKind::Full,
        Errno::ACCESS | Errno::PERM => DiskErrorKind::Denied,
        Errno::ROFS => DiskErrorKind::ReadOnly,
        Errno::MFILE | Errno::NFILE => DiskErrorKind::TooManyFiles,
        // A write or a sync that ends so may have lost something.
        Errno::NOMEM if matches!(action, "open" | "list" | "look at") => DiskErrorKind::NoMemory,
        Errno::FBIG => DiskErrorKind::TooLarge,
        Errno::NOTEMPTY | Errno::EXIST => DiskErrorKind::NotEmpty,
        Errno::IO => DiskErrorKind::Device,
        other => DiskErrorKind::System(other.raw_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sync_that_finds_the_disk_full_is_final() {
        let error =
            |action, number| barnabas_storage::StorageError::from(failed(action, Path::new("x"))(number));
        for number in [Errno::NOSPC, Errno::DQUOT] {
            assert!(error("write", number).is_passing());
            assert!(!error("sync", number).is_passing());
            assert!(!error("sync the file system of", number).is_passing());
        }
    }
}
