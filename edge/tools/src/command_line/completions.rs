//! Completions for shells and man pages, made from the tables of flags that also make the parsers and the help.
//!
//! The binary hands in its own command line, in which tools stand by name alone; their flags are added here. Each of
//! Kafka's names (`kafka-topics.sh`) gets a completion of its own, as shells look completions up by the word typed.

use super::args::text;
use super::install_links::linked;
use crate::{TOOLS, ToolError, say};
use clap::{Arg, ArgMatches, Command};
use clap_complete::Shell;
use std::path::Path;

/// The command that prints or writes completions.
pub fn completions_command() -> Command {
    Command::new("completions")
        .about("Prints completions for a shell, or writes those of all commands to a directory.")
        .after_help(
            "bash: barnabas completions bash > /etc/bash_completion.d/barnabas\n\
             zsh:  barnabas completions zsh > \"${fpath[1]}/_barnabas\"\n\
             fish: barnabas completions fish > ~/.config/fish/completions/barnabas.fish",
        )
        .arg(
            Arg::new("shell")
                .value_name("bash|zsh|fish")
                .required(true)
                .value_parser(["bash", "zsh", "fish"]),
        )
        .arg(
            Arg::new("directory")
                .value_name("DIR")
                .help("Write a file for barnabas and for each of Kafka's names here"),
        )
}

/// The command that writes man pages.
pub fn man_pages_command() -> Command {
    Command::new("man-pages")
        .about("Writes a man page of each command to a directory.")
        .arg(Arg::new("directory").value_name("DIR").help("Where the pages are written").required(true))
}

/// Prints or writes completions of `program`, the binary's own command line.
///
/// # Errors
/// The directory or standard output takes nothing.
pub fn completions(program: Command, matches: &ArgMatches) -> Result<(), ToolError> {
    let shell = match text(matches, "shell").unwrap_or_default() {
        "zsh" => Shell::Zsh,
        "fish" => Shell::Fish,
        _ => Shell::Bash,
    };
    let program = with_flags(program);
    let Some(directory) = text(matches, "directory") else {
        let script = script(shell, program, "barnabas");
        return std::io::Write::write_all(&mut std::io::stdout(), &script).map_err(ToolError::Output);
    };
    let directory = existing(directory)?;
    let of_kafka = |command: &Command| format!("kafka-{}.sh", command.get_name());
    let tools =
        linked().map(|tool| tool.command(tool.name)).chain(program.find_subcommand("storage").cloned());
    let mut commands: Vec<(String, Command)> = tools.map(|command| (of_kafka(&command), command)).collect();
    commands.push(("barnabas".to_owned(), program));
    let count = commands.len();
    for (called, command) in commands {
        write(
            &directory.join(file_name(shell, &called)),
            &script(shell, command.bin_name(&called), &called),
        )?;
    }
    say(&format!("Wrote {count} completions to {}.", directory.display()))
}

/// Writes a man page for each command of `program`: `barnabas.1`, `barnabas-topics.1`, `barnabas-storage-format.1`.
///
/// # Errors
/// The directory takes nothing.
pub fn man_pages(program: Command, matches: &ArgMatches) -> Result<(), ToolError> {
    let directory = existing(text(matches, "directory").unwrap_or_default())?;
    let mut waiting = vec![("barnabas".to_owned(), with_flags(program).disable_help_subcommand(true))];
    let mut count = 0;
    while let Some((called, command)) = waiting.pop() {
        waiting.extend(
            command.get_subcommands().map(|sub| (format!("{called} {}", sub.get_name()), sub.clone())),
        );
        let name = called.replace(' ', "-");
        let mut page = Vec::new();
        let titled = command.bin_name(called).display_name(name.clone());
        clap_mangen::Man::new(titled).render(&mut page).map_err(ToolError::Output)?;
        write(&directory.join(format!("{name}.1")), &page)?;
        count += 1;
    }
    say(&format!("Wrote {count} man pages to {}.", directory.display()))
}

/// The binary's command line with the flags of each tool.
fn with_flags(program: Command) -> Command {
    TOOLS.iter().fold(program, |program, tool| {
        program.mut_subcommand(tool.name, |_| tool.command(&format!("barnabas {}", tool.name)))
    })
}

fn script(shell: Shell, mut command: Command, called: &str) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, called, &mut script);
    script
}

/// As the shell's own directory of completions names it.
fn file_name(shell: Shell, called: &str) -> String {
    match shell {
        Shell::Zsh => format!("_{called}"),
        Shell::Fish => format!("{called}.fish"),
        _ => called.to_owned(),
    }
}

/// The directory that files are written to. It is not created: a mistyped one would be.
fn existing(directory: &str) -> Result<&Path, ToolError> {
    let path = Path::new(directory);
    if path.is_dir() {
        return Ok(path);
    }
    let why = if path.exists() { "it is no directory" } else { "there is no such directory" };
    Err(ToolError::Usage(format!("{directory}: {why}. Create it first, for example: mkdir -p {directory}")))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), ToolError> {
    std::fs::write(path, bytes).map_err(|error| ToolError::Usage(format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program() -> Command {
        let tools = TOOLS.iter().map(|tool| Command::new(tool.name).about(tool.about));
        Command::new("barnabas").subcommands(tools).subcommand(completions_command())
    }

    fn directory(name: &str) -> std::path::PathBuf {
        let directory = std::env::temp_dir().join(format!("barnabas-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        directory
    }

    #[test]
    fn completions_of_each_shell_know_every_flag_of_every_tool() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = String::from_utf8(script(shell, with_flags(program()), "barnabas")).expect("text");
            for tool in TOOLS {
                let flags = (tool.flags)().into_iter();
                for flag in flags.filter_map(|arg| arg.get_long().map(str::to_owned)) {
                    assert!(script.contains(&flag), "{shell}: barnabas {} --{flag}", tool.name);
                }
            }
        }
    }

    #[test]
    fn each_of_kafkas_names_has_a_file() {
        let directory = directory("completions");
        let words = ["completions", "zsh", directory.to_str().expect("text")];
        let matches = completions_command().get_matches_from(words);
        completions(program(), &matches).expect("a directory that takes files");
        let count = std::fs::read_dir(&directory).expect("it is there").count();
        assert_eq!(count, 1 + linked().count());
        let topics = std::fs::read_to_string(directory.join("_kafka-topics.sh")).expect("a file");
        assert!(topics.starts_with("#compdef kafka-topics.sh"), "{topics}");
        std::fs::remove_dir_all(&directory).expect("a directory of its own");
    }

    #[test]
    fn man_pages_name_the_flags() {
        let directory = directory("man");
        let matches = man_pages_command().get_matches_from(["man-pages", directory.to_str().expect("text")]);
        man_pages(program(), &matches).expect("a directory that takes files");
        let topics = std::fs::read_to_string(directory.join("barnabas-topics.1")).expect("a page");
        assert!(topics.contains("bootstrap\\-server"), "{topics}");
        assert!(directory.join("barnabas.1").exists());
        std::fs::remove_dir_all(&directory).expect("a directory of its own");
    }

    #[test]
    fn directory_that_is_missing_is_named_with_its_remedy() {
        let missing = "/nonexistent/pages: there is no such directory. Create it first, for example: mkdir -p /nonexistent/pages";
        let matches = man_pages_command().get_matches_from(["man-pages", "/nonexistent/pages"]);
        let refused = man_pages(program(), &matches).expect_err("there is no such directory");
        assert!(refused.to_string().contains(missing), "{refused}");
        let words = ["completions", "bash", "/nonexistent/pages"];
        let matches = completions_command().get_matches_from(words);
        let refused = completions(program(), &matches).expect_err("there is no such directory");
        assert!(refused.to_string().contains(missing), "{refused}");
        let file = directory("file").join("a");
        std::fs::write(&file, "").expect("written");
        let matches = man_pages_command().get_matches_from(["man-pages", file.to_str().expect("text")]);
        let refused = man_pages(program(), &matches).expect_err("it is a file");
        assert!(refused.to_string().contains("it is no directory"), "{refused}");
    }
}
