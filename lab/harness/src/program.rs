//! How the program is run.

use crate::{Trouble, trouble};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The `barnabas` program: the one that is named, or what cargo has built for release.
///
/// # Errors
/// It is not there.
pub fn binary(named: Option<&str>) -> Result<PathBuf, Trouble> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = named.map_or_else(|| root.join("target/release/barnabas"), PathBuf::from);
    match path.canonicalize() {
        Ok(path) => Ok(path),
        Err(error) => {
            trouble(format!("{}: {error}; build it with `cargo build --release -p barnabas`", path.display()))
        }
    }
}

/// `program`, behind words of a shell: `ulimit -n 256`.
pub fn limited(program: impl AsRef<OsStr>, words: Option<&str>) -> Command {
    let Some(words) = words else { return Command::new(program) };
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{words} && exec \"$0\" \"$@\"")).arg(program);
    command
}

/// `program`, which the kernel kills once the rig's thread is gone, whatever ended that; as `user`, if one is named.
pub fn die_with_the_rig(program: impl AsRef<OsStr>, user: Option<u32>) -> Command {
    let mut command = Command::new("setpriv");
    if let Some(user) = user {
        command.args([format!("--reuid={user}"), format!("--regid={user}"), "--clear-groups".to_owned()]);
    }
    command.args(["--pdeathsig", "KILL"]).arg(program);
    command
}

/// Makes `command` a node with these settings, each `KEY=VALUE`. A node without a file is broker and controller.
pub fn server(command: &mut Command, settings: impl IntoIterator<Item = impl AsRef<OsStr>>) {
    command.arg("server");
    for setting in settings {
        command.arg("--override").arg(setting);
    }
}
