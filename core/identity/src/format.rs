//! Formatting: gives log directories their identity, and the metadata log its beginning.
//!
//! registration.rs makes this node a voter and a broker of what was formatted. Used by `storage format` and by a node
//! without a configuration file, which formats its one directory by itself. Source: Kafka `Formatter`, `StorageTool`;
//! KIP-631, KIP-853, KIP-858, KIP-1170.

use barnabas_base::{BrokerId, DirectoryId, Text, TimestampMs};
use barnabas_config::NodeConfig;
use barnabas_metadata::MetadataVersion;
use barnabas_metadata::features::name;
use barnabas_metadata_log::{MetadataError, MetadataFiles, make_dir, write_file};
use barnabas_quorum::bootstrap;
use barnabas_quorum::snapshot::SnapshotVoters;
use barnabas_quorum::{SnapshotId, Voter, VoterEndpoint, Voters};
use barnabas_storage::{LogDir, MetaProperties, StorageError};
use barnabas_wire::MetadataRecord;
use std::path::Path;

/// The machine's name, as its system says it; empty where that says none.
#[derive(Debug, Clone, Copy)]
pub struct Machine<'a>(pub &'a str);

/// How a cluster begins.
#[derive(Debug, Clone)]
pub struct Beginning {
    pub cluster_id: Text,
    /// Feature levels, `metadata.version` among them.
    pub levels: Vec<(&'static str, i16)>,
    /// Who votes, where that stands in the metadata log (`kraft.version` 1) and is known.
    pub voters: InitialVoters,
    /// SCRAM credentials.
    pub credentials: Vec<MetadataRecord>,
}

/// The voters that a dynamic quorum begins with.
#[derive(Debug, Clone)]
pub enum InitialVoters {
    /// They stand in the file, or are learned from those who know them.
    Unknown,
    /// This node alone.
    Me,
    /// `--initial-controllers`
    These(Vec<InitialController>),
}

/// One of `--initial-controllers`.
#[derive(Debug, Clone)]
pub struct InitialController {
    pub id: BrokerId,
    pub host: Text,
    pub port: u16,
    pub directory: DirectoryId,
}

impl InitialVoters {
    /// Whether `node` is known to be one of them.
    pub fn include(&self, node: BrokerId) -> bool {
        match self {
            Self::Unknown => false,
            Self::Me => true,
            Self::These(voters) => voters.iter().any(|voter| voter.id == node),
        }
    }
}

impl Beginning {
    /// The newest levels, one voter.
    pub fn newest(cluster_id: Text) -> Self {
        let levels = bootstrap::feature_levels(MetadataVersion::LATEST, &[])
            .expect("invariant: the defaults of the newest level fit together");
        Self { cluster_id, levels, voters: InitialVoters::Me, credentials: Vec::new() }
    }

    /// The identity that this node's metadata directory is given.
    fn directory_of(&self, node: BrokerId) -> Option<DirectoryId> {
        let InitialVoters::These(voters) = &self.voters else { return None };
        voters.iter().find(|voter| voter.id == node).map(|voter| voter.directory)
    }

    fn voters(&self, config: &NodeConfig, directory: DirectoryId, machine: Machine<'_>) -> Option<Voters> {
        let listener = config.listeners.controller_names.first().map_or("", |name| name.as_str());
        let endpoint =
            |host: &Text, port| VoterEndpoint { listener: Text::from(listener), host: host.clone(), port };
        match &self.voters {
            InitialVoters::Unknown => None,
            InitialVoters::Me => Some(Voters::new([voter(config, directory, machine)])),
            InitialVoters::These(voters) => Some(Voters::new(voters.iter().map(|initial| Voter {
                id: initial.id,
                directory: initial.directory,
                endpoints: vec![endpoint(&initial.host, initial.port)],
                kraft_min: 0,
                kraft_max: 1,
            }))),
        }
    }

    pub fn metadata_version(&self) -> MetadataVersion {
        let level = self.levels.iter().find(|(feature, _)| *feature == name::METADATA);
        level.and_then(|&(_, level)| MetadataVersion::from_level(level)).unwrap_or(MetadataVersion::LATEST)
    }
}

/// Formats one directory, which holds no `meta.properties`. `directory`: a new identity for it.
///
/// # Errors
/// The directory cannot be written.
pub fn format(
    log_dir: &mut LogDir,
    config: &NodeConfig,
    beginning: &Beginning,
    (mut directory, machine): (DirectoryId, Machine<'_>),
    now: TimestampMs,
) -> Result<(), MetadataError> {
    if **log_dir.path() == *config.metadata_log_dir {
        directory = beginning.directory_of(config.node_id).unwrap_or(directory);
        if config.is_controller {
            let voters = beginning.voters(config, directory, machine);
            write_beginning(log_dir, beginning, voters, now)?;
        }
    }
    // Last: a directory is formatted once this file is there.
    log_dir.write_meta(MetaProperties {
        version: 1,
        cluster_id: Some(beginning.cluster_id.clone()),
        node_id: Some(config.node_id),
        directory_id: Some(directory),
    })?;
    Ok(())
}

/// What the metadata log begins with: one file, or Kafka's two where a Kafka may start on it that knows only those.
fn write_beginning(
    log_dir: &LogDir,
    beginning: &Beginning,
    voters: Option<Voters>,
    now: TimestampMs,
) -> Result<(), MetadataError> {
    let disk = log_dir.disk().as_ref();
    let dir = MetadataFiles::dir_in(log_dir.path());
    make_dir(disk, &dir)?;
    let voters = voters.map(|voters| SnapshotVoters { kraft_version: 1, voters: Some(voters) });
    let levels = bootstrap::records(&beginning.levels, beginning.credentials.clone());
    let write = |dir: &Path, name: &str, records: &[MetadataRecord], voters| {
        let bytes = bootstrap::checkpoint(records, voters, now)?;
        write_file(disk, dir, name, |file| Ok::<(), StorageError>(file.write_at(0, &[&bytes])?))?;
        Ok::<(), MetadataError>(())
    };
    let name = SnapshotId::BOOTSTRAP.file_name();
    if beginning.metadata_version().begins_in_one_file() {
        return write(&dir, &name, &levels, voters.as_ref());
    }
    if voters.is_some() {
        write(&dir, &name, &[], voters.as_ref())?;
    }
    write(log_dir.path(), bootstrap::LEGACY_FILE_NAME, &levels, None)
}

/// This node as a voter of the metadata quorum. Others reach it where `controller.quorum.voters` says, or where it
/// listens.
pub fn voter(config: &NodeConfig, directory: DirectoryId, machine: Machine<'_>) -> Voter {
    let known = config.static_voters.iter().find(|voter| voter.id == config.node_id);
    // An address in `controller.quorum.voters` is of the listener that members use among themselves.
    let dialled = config.listeners.controller_names.first();
    let endpoints = config.listeners.all.iter().filter(|listener| listener.is_controller);
    let endpoints = endpoints.map(|listener| {
        let endpoint = &listener.endpoint;
        let (host, port) = match known.filter(|_| dialled == Some(&endpoint.listener)) {
            Some(voter) => (voter.host.clone(), voter.port),
            None if endpoint.host.is_empty() => (Text::from(default_host(config, machine)), endpoint.port),
            None => (Text::from(endpoint.host.as_str()), endpoint.port),
        };
        VoterEndpoint { listener: Text::from(endpoint.listener.as_str()), host, port }
    });
    Voter { id: config.node_id, directory, endpoints: endpoints.collect(), kraft_min: 0, kraft_max: 1 }
}

/// A listener on every interface is reached by the machine's name, where others want to reach it.
fn default_host<'a>(config: &NodeConfig, Machine(name): Machine<'a>) -> &'a str {
    if config.bootstrap_servers.is_empty() || name.is_empty() { "localhost" } else { name }
}
