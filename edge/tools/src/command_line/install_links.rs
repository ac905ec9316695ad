//! `install-links`: links by the names of Kafka's tools, so that scripts which call `kafka-topics.sh` find these.

use super::args::{switch, text};
use crate::{TOOLS, Tool, ToolError, say};
use clap::{Arg, ArgMatches};
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::Path;

pub fn flags() -> Vec<Arg> {
    vec![
        Arg::new("directory").value_name("DIR").help("Where the links are made").required(true),
        switch("force", "Replace links that are there; never a file that is no link"),
    ]
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    let directory = Path::new(text(matches, "directory").unwrap_or_default());
    let program = std::env::current_exe()
        .map_err(|error| ToolError::Usage(format!("this program's own path is not known: {error}")))?;
    let made = install(&program, directory, matches.get_flag("force")).map_err(ToolError::Usage)?;
    say(&format!("Made {made} links to {} in {}.", program.display(), directory.display()))
}

/// Links `kafka-NAME.sh` for every tool of Kafka's, and for `storage`.
fn install(program: &Path, directory: &Path, replaces: bool) -> Result<usize, String> {
    let names: Vec<&str> = linked().map(|tool| tool.name).chain(["storage"]).collect();
    for name in &names {
        let link = directory.join(format!("kafka-{name}.sh"));
        let is_link = std::fs::symlink_metadata(&link).is_ok_and(|found| found.file_type().is_symlink());
        if replaces && is_link {
            std::fs::remove_file(&link).map_err(|error| format!("{}: {error}", link.display()))?;
        }
        symlink(program, &link).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists if is_link => {
                format!("{} is there already. Replace links with --force", link.display())
            }
            ErrorKind::AlreadyExists => format!("{} is there already, and no link", link.display()),
            _ => format!("{}: {error}", link.display()),
        })?;
    }
    Ok(names.len())
}

/// The tools that Kafka has too.
pub(super) fn linked() -> impl Iterator<Item = &'static Tool> {
    TOOLS.iter().filter(|tool| !OURS.contains(&tool.name))
}

/// Tools that Kafka does not have.
const OURS: &[&str] = &["doctor", "hotspots", "install-links"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_made_once_and_files_are_left_alone() {
        let directory = std::env::temp_dir().join(format!("barnabas-links-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let program = Path::new("/opt/barnabas");
        let made = install(program, &directory, false).expect("an empty directory");
        assert_eq!(made, std::fs::read_dir(&directory).expect("it is there").count());
        let link = directory.join("kafka-topics.sh");
        assert_eq!(std::fs::read_link(&link).expect("a link"), program);
        for ours in OURS {
            assert!(!directory.join(format!("kafka-{ours}.sh")).exists(), "{ours}");
        }
        assert_eq!(TOOLS.iter().filter(|tool| OURS.contains(&tool.name)).count(), OURS.len());
        let refused = install(program, &directory, false).expect_err("they are there");
        assert!(refused.ends_with("is there already. Replace links with --force"), "{refused}");
        assert_eq!(install(program, &directory, true), Ok(made));
        std::fs::remove_file(&link).expect("a link");
        std::fs::write(&link, "#!/bin/sh").expect("a file");
        let refused = install(program, &directory, true).expect_err("a file is left alone");
        assert!(refused.ends_with("is there already, and no link"), "{refused}");
        std::fs::remove_dir_all(&directory).expect("a directory of its own");
    }
}
