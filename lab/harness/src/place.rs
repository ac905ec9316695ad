//! Directories for nodes.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A new directory, removed with its owner.
#[derive(Debug)]
pub struct TempDir(PathBuf);

impl TempDir {
    /// # Panics
    /// The system's temporary directory takes none.
    #[expect(clippy::new_without_default, reason = "it makes a directory")]
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("barnabas-test-{}-{number}", std::process::id()));
        // Other users of the machine have no business in it: nodes warn of keys that they can read.
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&path).expect("a temporary directory");
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // What cannot be removed stays; a drop has no caller to answer to.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
