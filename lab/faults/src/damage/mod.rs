//! Bad input at rest: what a node makes of a directory in which one file is not what it was.
//!
//! | part | is |
//! |---|---|
//! | `prepare` | the directory that every cell begins with, after a clean stop and after kill −9 |
//! | `harm` | what is done to a file |
//! | `targets` | which file, and which other one of its kind |
//! | `view` | everything that the node's clients can see |
//! | `cell` | one file, one harm, one start: what came of it |

pub mod cell;
pub mod harm;
pub mod prepare;
pub mod targets;
pub mod view;

use crate::{Trouble, trouble};
use std::path::Path;
use std::process::Command;

/// `cp -a`, holes kept.
pub fn copy_tree(from: &Path, to: &Path) -> Result<(), Trouble> {
    if to.exists() {
        std::fs::remove_dir_all(to)?;
    }
    let done =
        Command::new("cp").args(["-a", "--sparse=always", "--reflink=auto"]).arg(from).arg(to).output()?;
    if done.status.success() {
        return Ok(());
    }
    trouble(format!("cp: {}", String::from_utf8_lossy(&done.stderr)))
}
