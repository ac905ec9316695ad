//! `barnabas storage`: format, info, random-uuid, as Kafka's `kafka-storage` has them.
//!
//! Neighbours: core/identity/src/scram.rs reads `--add-scram`, and the lines of `--add-scram-file`, which is not
//! Kafka's.
//!
//! What the tool prints is Kafka's, since scripts read it. Source: Kafka `StorageTool`, `Formatter`.

use crate::log_dirs::directories::places::{look, unmakeable};
use crate::log_dirs::directories::random_uuid;

use crate::config::machine::machine_name;
use barnabas_clock::Clock;
use barnabas_config::NodeConfig;
use barnabas_config::Settings;
use barnabas_disk::LinuxDisk;
use barnabas_identity::{
    Beginning, FormatFlags, InitialVoters, Machine, beginning, check_owner, credentials, format, found_text,
};
use barnabas_net::links;
use barnabas_sasl::Secret;
use barnabas_storage::{Disk, LogDir};
use clap::ArgMatches;
use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

type Failure = Box<dyn Error>;

/// # Errors
/// What the operator has to put right.
pub fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    match matches.subcommand() {
        Some(("random-uuid", _)) => {
            writeln!(std::io::stdout(), "{}", random_uuid())?;
            Ok(ExitCode::SUCCESS)
        }
        Some(("format", matches)) => run_format(matches),
        Some(("info", matches)) => run_info(matches),
        _ => Ok(ExitCode::FAILURE),
    }
}

fn node_config(matches: &ArgMatches) -> Result<NodeConfig, Failure> {
    let file = matches.get_one::<String>("config").map(Path::new);
    Ok(NodeConfig::read(Settings::load(file, [], |path| std::fs::read(path))?)?)
}

/// The text of a file of credentials; `-` is standard input.
fn scram_file(file: &str) -> Result<Secret, Failure> {
    let text = match file {
        "-" => std::io::read_to_string(std::io::stdin()),
        file => std::fs::read_to_string(file),
    };
    let text = text.map_err(|error| format!("--add-scram-file: {file} cannot be read: {error}"))?;
    if text.trim().is_empty() {
        return Err(format!("--add-scram-file: {file} holds no credential").into());
    }
    Ok(Secret::from(text))
}

fn run_format(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let config = node_config(matches)?;
    barnabas_config::check_values(&config.settings)?;
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let features: Vec<String> =
        matches.get_many::<String>("feature").into_iter().flatten().cloned().collect();
    let flags = FormatFlags {
        cluster_id: text("cluster-id").unwrap_or_default(),
        standalone: matches.get_flag("standalone"),
        no_initial_controllers: matches.get_flag("no-initial-controllers"),
        initial_controllers: text("initial-controllers"),
        features: &features,
        release_version: text("release-version"),
    };
    let mut beginning = beginning(flags, &config)?;
    let files = matches.get_many::<String>("add-scram-file").into_iter().flatten();
    let files = files.map(|file| scram_file(file)).collect::<Result<Vec<Secret>, Failure>>()?;
    let of_files = files.iter().filter_map(Secret::text).flat_map(str::lines);
    let scram = matches.get_many::<String>("add-scram").into_iter().flatten().map(String::as_str);
    let scram = scram.chain(of_files.filter(|line| !line.trim().is_empty()));
    beginning.credentials = credentials(scram, beginning.metadata_version(), links::salt)?;
    let disk: Arc<dyn Disk> = Arc::new(LinuxDisk);
    for directory in config.directories() {
        check_directory(&*disk, directory, &config, &beginning, matches.get_flag("ignore-formatted"))?;
    }
    // Up to here the disk is as it was.
    let mut log_dirs = Vec::new();
    for directory in config.directories() {
        make_parents(&*disk, directory)?;
        log_dirs.push(LogDir::open(disk.clone(), directory)?);
    }
    if log_dirs.iter().all(|log_dir| log_dir.meta().is_some()) {
        writeln!(std::io::stdout(), "All of the log directories are already formatted.")?;
        return Ok(ExitCode::SUCCESS);
    }
    let (now, machine) = (Clock::start().wall(), machine_name());
    for log_dir in log_dirs.iter_mut().filter(|log_dir| log_dir.meta().is_none()) {
        let kind = match &beginning.voters {
            _ if **log_dir.path() != *config.metadata_log_dir => "data",
            InitialVoters::Unknown => "metadata",
            voters if voters.include(config.node_id) => "dynamic metadata voter",
            _ => "dynamic metadata",
        };
        writeln!(
            std::io::stdout(),
            "Formatting {kind} directory {} with metadata.version {}.",
            log_dir.path().display(),
            beginning.metadata_version()
        )?;
        format(log_dir, &config, &beginning, (random_uuid(), Machine(&machine)), now)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Refuses a directory that cannot be made, is used by a running node, is another node's, or is formatted already.
fn check_directory(
    disk: &dyn Disk,
    path: &Path,
    config: &NodeConfig,
    beginning: &Beginning,
    ignore_formatted: bool,
) -> Result<(), Failure> {
    let shown = path.display().to_string();
    if !path.exists() {
        return unmakeable(path)
            .map_or(Ok(()), |problem| Err(format!("log.dirs: {shown}: {problem}").into()));
    }
    let place = look(disk, path, true)?;
    if let Some(problem) = place.problem {
        return Err(format!("log.dirs: {shown}: {problem}").into());
    }
    let Some(meta) = place.meta else { return Ok(()) };
    check_owner(&meta, config, beginning, &shown)?;
    if ignore_formatted {
        return Ok(());
    }
    Err(format!(
        "Log directory {shown} is already formatted. Use --ignore-formatted to ignore this directory and format the others."
    )
    .into())
}

/// Makes the directories above `path` that are missing, as Kafka's `Formatter` does. Only formatting does: at a start a
/// missing directory above a log directory may be a disk that is not mounted.
fn make_parents(disk: &dyn Disk, path: &Path) -> Result<(), Failure> {
    let missing = |dir: &&Path| !dir.as_os_str().is_empty() && matches!(disk.stat(dir), Ok(None));
    let parents: Vec<&Path> = path.ancestors().skip(1).take_while(missing).collect();
    for parent in parents.into_iter().rev() {
        disk.create_dir(parent)?;
        if let Some(above) = parent.parent().filter(|dir| !dir.as_os_str().is_empty()) {
            disk.sync_dir(above)?;
        }
    }
    Ok(())
}

fn run_info(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let config = node_config(matches)?;
    let mut found = Vec::new();
    let mut problems = Vec::new();
    let mut metas = Vec::new();
    let mut directories = config.directories();
    directories.sort();
    for directory in directories {
        let shown = directory.display();
        if !directory.exists() {
            problems.push(format!("{shown} does not exist"));
            continue;
        }
        if !directory.is_dir() {
            problems.push(format!("{shown} is not a directory"));
            continue;
        }
        found.push(shown.to_string());
        match std::fs::read_to_string(directory.join("meta.properties")) {
            Ok(text) => metas.push(barnabas_base::properties::parse(&text)?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                problems.push(format!("{shown} is not formatted."));
            }
            Err(error) => problems.push(format!("{shown} cannot be read: {error}")),
        }
    }
    std::io::stdout().write_all(found_text(&found, &metas, &problems).as_bytes())?;
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
