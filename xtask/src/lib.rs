//! The chores as functions, so that the ordinary tests run them too.

use std::path::{Path, PathBuf};

pub mod generate;
pub mod plant;
pub mod tidy;

/// Of this checkout.
pub fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_path_buf).unwrap_or_default()
}
