//! How the files of `barnabas security init` are written.

use super::Failure;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Holds secrets: the owner reads it.
const SECRET: u32 = 0o600;
const PUBLIC: u32 = 0o644;
const DIRECTORY: u32 = 0o700;

/// The directory in which everything is made.
pub struct Folder(PathBuf);

impl Folder {
    /// # Errors
    /// It holds something, or cannot be made.
    pub fn make(root: &Path) -> Result<Self, Failure> {
        let at = |error: std::io::Error| format!("{}: {error}", root.display());
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(DIRECTORY).create(root).map_err(at)?;
        if std::fs::read_dir(root).map_err(at)?.next().is_some() {
            return Err(format!(
                "{} is not empty, and nothing is written over. Choose another directory. Example: --dir ./security-2",
                root.display()
            )
            .into());
        }
        Ok(Self(root.to_owned()))
    }

    pub fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        self.create(name, text, PUBLIC)
    }

    pub fn write_secret(&self, name: &str, text: &str) -> Result<(), Failure> {
        self.create(name, text, SECRET)
    }

    fn create(&self, name: &str, text: &str, mode: u32) -> Result<(), Failure> {
        let path = self.0.join(name);
        let at = |error: std::io::Error| format!("{}: {error}", path.display());
        if let Some(folder) = path.parent() {
            std::fs::DirBuilder::new().recursive(true).mode(DIRECTORY).create(folder).map_err(at)?;
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&path).map_err(at)?;
        file.write_all(text.as_bytes()).map_err(at)?;
        Ok(())
    }
}
