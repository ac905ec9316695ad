//! What lies at a log directory's path before the node makes, writes or keeps locked anything there.
//!
//! Whose the directory is, identity.rs judges.

use barnabas_storage::{
    Disk, DiskErrorKind, DiskSpace, LOCK, LogDir, MetaProperties, PartitionDir, StorageError, read_meta,
};
use rustix::fs::{Access, access};
use rustix::io::Errno;
use std::path::{Path, PathBuf};

/// One of the node's log directories, which may not exist yet.
#[derive(Debug)]
pub struct Place {
    pub path: PathBuf,
    /// `log.dirs` names it, not `metadata.log.dir` alone.
    pub holds_partitions: bool,
    /// `None`: it is not formatted.
    pub meta: Option<MetaProperties>,
    /// The name of a partition in it, where it is not formatted.
    pub partition: Option<String>,
    /// Why it cannot be used.
    pub problem: Option<String>,
}

impl Place {
    /// Reads, and changes nothing.
    ///
    /// # Errors
    /// [`StorageError::Locked`]: another process works there.
    pub fn look(disk: &dyn Disk, path: &Path, holds_partitions: bool) -> Result<Self, StorageError> {
        let mut place =
            Self { path: path.to_owned(), holds_partitions, meta: None, partition: None, problem: None };
        match place.read(disk) {
            Err(error @ StorageError::Locked(_)) => return Err(error),
            Err(error) => place.problem = Some(error.to_string()),
            Ok(problem) => place.problem = problem,
        }
        Ok(place)
    }

    /// One that is open, or was found to be of no use.
    pub fn of(log_dir: &LogDir, holds_partitions: bool) -> Self {
        let problem = (!log_dir.is_online()).then(|| "it is offline".to_owned());
        let meta = log_dir.meta().cloned();
        let partition = match (&meta, &problem) {
            (None, None) => first_partition(&**log_dir.disk(), log_dir.path()).unwrap_or_default(),
            _ => None,
        };
        Self { path: log_dir.path().to_path_buf(), holds_partitions, meta, partition, problem }
    }

    /// Returns why the directory cannot be used.
    fn read(&mut self, disk: &dyn Disk) -> Result<Option<String>, StorageError> {
        if let Some(problem) = unusable(&self.path) {
            return Ok(Some(problem));
        }
        if !self.path.exists() {
            return Ok(None);
        }
        let lock = self.path.join(LOCK);
        if lock.exists() {
            // Taken for good when the directory is opened.
            drop(disk.lock(&lock).map_err(|error| match error.kind {
                DiskErrorKind::Locked => StorageError::Locked(self.path.clone()),
                _ => error.into(),
            })?);
        }
        self.meta = read_meta(disk, &self.path)?;
        if self.meta.is_none() {
            self.partition = first_partition(disk, &self.path)?;
        }
        Ok(None)
    }

    /// Room on the file system that holds it or is to hold it; `None` where the system does not say.
    pub fn space(&self, disk: &dyn Disk) -> Option<DiskSpace> {
        let there = if self.path.exists() { &*self.path } else { parent(&self.path) };
        disk.space(there).ok()
    }
}

fn first_partition(disk: &dyn Disk, path: &Path) -> Result<Option<String>, StorageError> {
    let found = disk.list(path)?;
    let name =
        found.into_iter().filter(|entry| entry.is_dir).find_map(|entry| PartitionDir::parse(&entry.name));
    Ok(name.map(|dir| dir.name))
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
