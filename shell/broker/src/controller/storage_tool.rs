//! `barnabas storage`: format, info, random-uuid, as Kafka's `kafka-storage` has them.
//!
//! What the tool prints is Kafka's, since scripts read it. Source: Kafka `StorageTool`, `Formatter`.

use crate::controller::format::{Beginning, InitialController, InitialVoters, format};
use crate::log_dirs::directories::places::{Place, unmakeable};
use crate::log_dirs::directories::random_uuid;
use barnabas_base::{Text, Uuid};
use barnabas_clock::Clock;
use barnabas_config::NodeConfig;
use barnabas_config::Property;
use barnabas_config::Settings;
use barnabas_disk::LinuxDisk;
use barnabas_metadata::{MetadataVersion, features};
use barnabas_quorum::bootstrap;
use barnabas_storage::{Disk, LogDir, MetaProperties};
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

fn run_format(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    if matches.contains_id("add-scram") {
        return Err("--add-scram is not available yet: SCRAM credentials come in a later version".into());
    }
    let config = node_config(matches)?;
    barnabas_config::check_values(&config.settings)?;
    let beginning = beginning(matches, &config)?;
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
    let now = Clock::start().wall();
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
        format(log_dir, &config, &beginning, now)?;
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
    let place = Place::look(disk, path, true)?;
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

fn beginning(matches: &ArgMatches, config: &NodeConfig) -> Result<Beginning, Failure> {
    let cluster_id = matches.get_one::<String>("cluster-id").map_or("", String::as_str);
    if Uuid::parse(cluster_id).is_none() {
        return Err(format!(
            "Cluster ID string {cluster_id} does not appear to be a valid UUID: make one with barnabas storage random-uuid"
        )
        .into());
    }
    let voters = initial_voters(matches, config)?;
    let mut chosen = chosen_features(matches)?;
    let release = release(matches, &mut chosen)?;
    let levels = bootstrap::feature_levels(release, &chosen)?;
    check_kraft_version(&chosen, config)?;
    Ok(Beginning { cluster_id: Text::from(cluster_id), levels, voters })
}

fn chosen_features(matches: &ArgMatches) -> Result<Vec<(String, i16)>, Failure> {
    let mut chosen = Vec::new();
    for text in matches.get_many::<String>("feature").into_iter().flatten() {
        let pair =
            text.split_once('=').and_then(|(name, level)| Some((name.trim(), level.trim().parse().ok()?)));
        let (name, level) =
            pair.ok_or_else(|| format!("Can't parse feature=level string {text}: expected NAME=LEVEL"))?;
        chosen.push((name.to_owned(), level));
    }
    Ok(chosen)
}

/// The metadata.version to begin with: a release's, or that of a level among `chosen`, which is taken out; both are a
/// contradiction.
fn release(matches: &ArgMatches, chosen: &mut Vec<(String, i16)>) -> Result<MetadataVersion, Failure> {
    if let Some(text) = matches.get_one::<String>("release-version") {
        return MetadataVersion::parse(text).ok_or_else(|| {
            let (min, max) = (MetadataVersion::MIN, MetadataVersion::LATEST);
            format!("Unknown metadata.version '{text}'. Supported metadata.version are: {min} to {max}")
                .into()
        });
    }
    let is_metadata = |(name, _): &(String, i16)| name == features::name::METADATA;
    let level = chosen.iter().rev().find(|feature| is_metadata(feature)).map(|&(_, level)| level);
    chosen.retain(|feature| !is_metadata(feature));
    let Some(level) = level else { return Ok(MetadataVersion::LATEST) };
    MetadataVersion::from_level(level).ok_or_else(|| {
        let (min, max) = (MetadataVersion::MIN.level(), MetadataVersion::LATEST.level());
        format!(
            "No MetadataVersion with feature level {level}. Valid feature levels are from {min} to {max}."
        )
        .into()
    })
}

/// The level of `kraft.version` follows from whether the voters stand in the file or in the metadata log; one that is
/// asked for must be that.
fn check_kraft_version(chosen: &[(String, i16)], config: &NodeConfig) -> Result<(), Failure> {
    let is_kraft = |(name, _): &&(String, i16)| name == features::name::KRAFT;
    let flags = "--standalone, --initial-controllers, or --no-initial-controllers";
    match chosen.iter().rev().find(is_kraft).map(|&(_, level)| level) {
        Some(0) if !config.has_static_voters() => Err(format!(
            "Cannot set kraft.version to 0 if controller.quorum.voters is empty and one of the flags {flags} is used. Leave out the \
             --feature flag for kraft.version, or set controller.quorum.voters."
        )
        .into()),
        Some(level) if level > 0 && config.has_static_voters() => Err(format!(
            "Cannot set kraft.version to {level} unless controller.quorum.voters is empty and one of the flags {flags} is used. Leave \
             out the --feature flag for kraft.version, or set controller.quorum.bootstrap.servers instead of controller.quorum.voters."
        )
        .into()),
        _ => Ok(()),
    }
}

/// Who votes at the beginning, as the flags say.
fn initial_voters(matches: &ArgMatches, config: &NodeConfig) -> Result<InitialVoters, Failure> {
    let standalone = matches.get_flag("standalone");
    let none = matches.get_flag("no-initial-controllers");
    let these = matches.get_one::<String>("initial-controllers");
    let given = usize::from(standalone) + usize::from(none) + usize::from(these.is_some());
    if given > 1 {
        return Err(
            "--standalone, --initial-controllers and --no-initial-controllers contradict each other".into()
        );
    }
    if config.has_static_voters() && (standalone || these.is_some()) {
        return Err("You cannot specify controller.quorum.voters and format the node with --initial-controllers or --standalone. For \
                    voters that can change, remove controller.quorum.voters and set controller.quorum.bootstrap.servers instead."
            .into());
    }
    if !config.is_controller && standalone {
        return Err("You can only use --standalone on a controller (process.roles).".into());
    }
    if config.is_controller && !config.has_static_voters() && given == 0 {
        return Err(
            "Because controller.quorum.voters is not set on this controller, you must specify one of the \
                    following: --standalone, --initial-controllers, or --no-initial-controllers."
                .into(),
        );
    }
    match these {
        Some(text) => initial_controllers(text).map(InitialVoters::These),
        None if standalone => Ok(InitialVoters::Me),
        None => Ok(InitialVoters::Unknown),
    }
}

/// `ID@HOST:PORT:DIRECTORY,…` A node that is not among them may be formatted with the same list: it is no voter then.
fn initial_controllers(text: &str) -> Result<Vec<InitialController>, Failure> {
    let mut voters: Vec<InitialController> = Vec::new();
    for entry in text.split(',').map(str::trim) {
        let parsed = entry.split_once('@').and_then(|(id, rest)| {
            let (address, directory) = rest.rsplit_once(':')?;
            let (host, port) = address.rsplit_once(':')?;
            let host = host.trim_start_matches('[').trim_end_matches(']');
            Some(InitialController {
                id: id.parse::<i32>().ok().filter(|id| *id >= 0)?.into(),
                host: Text::from(host),
                port: port.parse().ok()?,
                directory: Uuid::parse(directory)?,
            })
        });
        let voter = parsed.ok_or_else(|| {
            format!(
                "--initial-controllers: '{entry}' is no voter: expected ID@HOST:PORT:DIRECTORY, where DIRECTORY is a directory id of \
                 your choice, the same on each node: make one for each voter with barnabas storage random-uuid"
            )
        })?;
        if voters.iter().any(|known| known.id == voter.id || known.directory == voter.directory) {
            return Err(format!(
                "--initial-controllers: '{entry}' has an id or a directory that stands there twice"
            )
            .into());
        }
        voters.push(voter);
    }
    Ok(voters)
}

fn check_owner(
    meta: &MetaProperties,
    config: &NodeConfig,
    beginning: &Beginning,
    path: &str,
) -> Result<(), Failure> {
    if let Some(found) = &meta.cluster_id
        && *found != beginning.cluster_id
    {
        let given = &beginning.cluster_id;
        return Err(format!("Log directory {path} belongs to cluster {found}, not to {given}").into());
    }
    if let Some(found) = meta.node_id
        && found != config.node_id
    {
        return Err(format!("Log directory {path} belongs to node {found}, not to {}", config.node_id).into());
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
            Ok(text) => metas.push(barnabas_config::parse_properties(&text)?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                problems.push(format!("{shown} is not formatted."));
            }
            Err(error) => problems.push(format!("{shown} cannot be read: {error}")),
        }
    }
    say_info(&found, &metas, &problems)?;
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn say_info(found: &[String], metas: &[Vec<Property>], problems: &[String]) -> std::io::Result<()> {
    let list = |title: &str, entries: &[String]| match entries {
        [] => String::new(),
        entries => format!("{title}:\n  {}\n\n", entries.join("\n  ")),
    };
    let mut text =
        list(if found.len() == 1 { "Found log directory" } else { "Found log directories" }, found);
    if let Some(meta) = metas.first() {
        let mut pairs: Vec<String> = meta.iter().map(|pair| format!("{}={}", pair.key, pair.value)).collect();
        pairs.sort();
        text.push_str(&format!("Found metadata: {{{}}}\n\n", pairs.join(", ")));
    }
    text.push_str(&list(if problems.len() == 1 { "Found problem" } else { "Found problems" }, problems));
    std::io::stdout().write_all(text.as_bytes())
}
