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
        Errno::NOSPC | Errno::DQUOT => DiskErrorKind::Full,
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
