//! What the flags of `storage format` ask for, and the texts of `storage info`.
//!
//! Refusals are Kafka's, since scripts read them. Source: Kafka `StorageTool`, `Formatter`.

use crate::{Beginning, IdentityError, InitialController, InitialVoters};
use barnabas_base::properties::Property;
use barnabas_base::{Text, Uuid};
use barnabas_config::NodeConfig;
use barnabas_metadata::{MetadataVersion, features};
use barnabas_quorum::bootstrap;
use barnabas_storage::MetaProperties;

/// The flags, as they were given.
#[derive(Debug, Clone, Copy, Default)]
pub struct FormatFlags<'a> {
    pub cluster_id: &'a str,
    pub standalone: bool,
    pub no_initial_controllers: bool,
    pub initial_controllers: Option<&'a str>,
    /// `NAME=LEVEL`
    pub features: &'a [String],
    pub release_version: Option<&'a str>,
}

/// How the cluster is to begin.
///
/// # Errors
/// Flags that cannot be or contradict each other or the file.
pub fn beginning(flags: FormatFlags<'_>, config: &NodeConfig) -> Result<Beginning, IdentityError> {
    let cluster_id = flags.cluster_id;
    if Uuid::parse(cluster_id).is_none() {
        return Err(format!(
            "Cluster ID string {cluster_id} does not appear to be a valid UUID: make one with barnabas storage random-uuid"
        )
        .into());
    }
    let voters = initial_voters(flags, config)?;
    let mut chosen = chosen_features(flags.features)?;
    let release = release(flags.release_version, &mut chosen)?;
    let levels = bootstrap::feature_levels(release, &chosen)?;
    check_kraft_version(&chosen, config)?;
    Ok(Beginning { cluster_id: Text::from(cluster_id), levels, voters, credentials: Vec::new() })
}

fn chosen_features(given: &[String]) -> Result<Vec<(String, i16)>, IdentityError> {
    let mut chosen = Vec::new();
    for text in given {
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
fn release(given: Option<&str>, chosen: &mut Vec<(String, i16)>) -> Result<MetadataVersion, IdentityError> {
    if let Some(text) = given {
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
fn check_kraft_version(chosen: &[(String, i16)], config: &NodeConfig) -> Result<(), IdentityError> {
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
fn initial_voters(flags: FormatFlags<'_>, config: &NodeConfig) -> Result<InitialVoters, IdentityError> {
    let FormatFlags { standalone, no_initial_controllers: none, initial_controllers: these, .. } = flags;
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
fn initial_controllers(text: &str) -> Result<Vec<InitialController>, IdentityError> {
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

/// Refuses a directory that is another node's or cluster's.
///
/// # Errors
/// Whose it is.
pub fn check_owner(
    meta: &MetaProperties,
    config: &NodeConfig,
    beginning: &Beginning,
    path: &str,
) -> Result<(), IdentityError> {
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

/// What `storage info` prints.
pub fn found_text(found: &[String], metas: &[Vec<Property>], problems: &[String]) -> String {
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
    text
}
