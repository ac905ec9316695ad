//! The command line of the binary itself: one table from which parser and help are made.
//!
//! Kafka's tools (`topics`, `console-producer`, …) parse their own flags in edge/tools; `main` hands them their
//! arguments untouched.

use clap::{Arg, ArgAction, Command};

/// The binary's own commands.
pub fn command() -> Command {
    Command::new("barnabas")
        .about("An event streaming platform that speaks Apache Kafka's protocol and writes its files.")
        .version(crate::config::version::VERSION)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .after_help(
            "Commands named as Kafka's tools take their flags; docs/TOOLS.md names the exceptions. `barnabas help COMMAND` lists them. Apache Kafka's own tools work too.",
        )
        .subcommand(server())
        .subcommand(storage())
        .subcommand(config())
        .subcommand(security())
        .subcommand(barnabas_tools::completions_command())
        .subcommand(barnabas_tools::man_pages_command())
        .subcommand(barnabas_console::command())
        .subcommand(barnabas_bridge::command())
        .subcommand(Command::new("version").about("Prints the version and the commit."))
        // Listed here for help and for suggestions; `main` runs them with their own flags.
        .subcommands(barnabas_tools::TOOLS.iter().map(|tool| Command::new(tool.name).about(tool.about)))
}

fn server() -> Command {
    Command::new("server")
        .about("Runs a node.")
        .after_help(
            "Without a file: one node, broker and controller, on 127.0.0.1:9092, with its data in ./barnabas-data, \
             which it formats by itself.\n\n\
             Signals: SIGTERM, SIGINT and SIGHUP stop the node cleanly; SIGQUIT writes its state to the log, and it goes on.",
        )
        .arg(Arg::new("file").value_name("FILE.properties").help("Kafka's server.properties"))
        .arg(overrides())
}

fn overrides() -> Arg {
    Arg::new("override")
        .long("override")
        .value_name("KEY=VALUE")
        .action(ArgAction::Append)
        .help("Sets a key over the file's value; may be repeated")
}

fn storage() -> Command {
    let config = || Arg::new("config").long("config").short('c').value_name("FILE.properties");
    Command::new("storage")
        .about("Prepares and inspects log directories (kafka-storage).")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(format_command(config().required(true).help("The node's server.properties")))
        .subcommand(
            Command::new("info")
                .about("Shows what the log directories hold.")
                .arg(config().required(true).help("The node's server.properties")),
        )
        .subcommand(
            Command::new("random-uuid")
                .about("Prints a random id: a cluster's, or a directory's for --initial-controllers."),
        )
}

fn format_command(config: Arg) -> Command {
    let flag = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
    };
    Command::new("format")
        .about("Formats the log directories of a node.")
        .arg(config)
        .arg(
            Arg::new("cluster-id")
                .long("cluster-id")
                .short('t')
                .value_name("ID")
                .required(true)
                .help("The cluster's id (make one with: barnabas storage random-uuid)"),
        )
        .arg(
            flag("ignore-formatted", "Directories that are formatted already are left as they are")
                .short('g'),
        )
        .arg(
            Arg::new("release-version")
                .long("release-version")
                .short('r')
                .value_name("VERSION")
                .help("The metadata.version to begin with, for example 4.4-IV2"),
        )
        .arg(
            Arg::new("feature")
                .long("feature")
                .short('f')
                .value_name("NAME=LEVEL")
                .action(ArgAction::Append)
                .help("The level of another feature to begin with; may be repeated"),
        )
        .arg(flag("standalone", "This node alone is the controller quorum").short('s'))
        .arg(flag("no-initial-controllers", "The quorum's voters are not written at format").short('N'))
        .arg(
            Arg::new("initial-controllers")
                .long("initial-controllers")
                .short('I')
                .value_name("ID@HOST:PORT:DIRECTORY,…")
                .help(
                    "The quorum's first voters, the same on each of them; this node's own directory is given the id named here. \
                     Make each DIRECTORY with: barnabas storage random-uuid",
                ),
        )
        .arg(
            Arg::new("add-scram")
                .long("add-scram")
                .short('S')
                .value_name("MECHANISM=[...]")
                .action(ArgAction::Append)
                .help(
                    "A SCRAM credential that the cluster begins with; may be given several times. Example: \
                     'SCRAM-SHA-256=[name=alice,password=secret]'; also salt=, iterations=, saltedpassword=. Other users of \
                     the machine see it while the command runs: prefer --add-scram-file",
                ),
        )
        .arg(
            Arg::new("add-scram-file")
                .long("add-scram-file")
                .value_name("FILE")
                .action(ArgAction::Append)
                .help(
                    "A file of such credentials, one a line (not a flag of Kafka's); - is standard input; may be given \
                     several times",
                ),
        )
}

fn config() -> Command {
    Command::new("config")
        .about("Explains configuration keys.")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("explain")
                .about("Lists each key: applied, emulated or ignored here, and why.")
                .arg(
                    Arg::new("what")
                        .value_name("FILE.properties|KEY")
                        .num_args(0..)
                        .help("Only the keys of this file; or all that is known of a key"),
                )
                .arg(
                    Arg::new("all").long("all").action(ArgAction::SetTrue).help("Every key that Kafka knows"),
                )
                .arg(overrides()),
        )
}

fn security() -> Command {
    let value = |name: &'static str, of: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(of).help(help)
    };
    Command::new("security")
        .about("Makes what a cluster with TLS, logins and ACLs begins with.")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("init")
                .about("Makes an authority, certificates, an administrator and settings, and says what comes next.")
                .arg(value("dir", "DIRECTORY", "Where; it must not hold anything yet").required(true))
                .arg(
                    value("nodes", "1|3", "How many nodes, each broker and controller")
                        .value_parser(["1", "3"])
                        .default_value("1"),
                )
                .arg(
                    value("host", "HOST,…", "The name or address of each node, or one for all of them")
                        .default_value("localhost"),
                )
                .arg(
                    value("port", "PORT", "The first port; a node uses two, nodes of one host follow each other")
                        .value_parser(clap::value_parser!(u16).range(1..))
                        .default_value("9092"),
                ),
        )
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_table_is_sound() {
        super::command().debug_assert();
    }
}
