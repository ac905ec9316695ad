//! Formatting: gives log directories their identity, and the metadata log its beginning.
//!
//! Used by `storage format` and by a node without a configuration file, which formats its one directory by itself.
//! Source: Kafka `Formatter`, `StorageTool`; KIP-631, KIP-853, KIP-858, KIP-1170.

use crate::directories::random_uuid;
use crate::node_config::NodeConfig;
use crate::quorum_worker::{MetadataError, MetadataFiles, make_dir, write_file};
use barnabas_base::{DirectoryId, Text, TimestampMs};
use barnabas_metadata::MetadataVersion;
use barnabas_metadata::features::name;
use barnabas_quorum::bootstrap;
use barnabas_quorum::snapshot::SnapshotVoters;
use barnabas_quorum::{SnapshotId, Voter, VoterEndpoint, Voters};
use barnabas_storage::{LogDir, MetaProperties, StorageError};

/// How a cluster begins.
#[derive(Debug, Clone)]
pub struct Beginning {
    pub cluster_id: Text,
    /// Feature levels, `metadata.version` among them.
    pub levels: Vec<(&'static str, i16)>,
    /// This node is the quorum's only voter, and stands in the metadata log (`kraft.version` 1).
    pub standalone: bool,
}

impl Beginning {
    /// The newest levels, one voter.
    pub fn newest(cluster_id: Text) -> Self {
        let levels = bootstrap::feature_levels(MetadataVersion::LATEST, &[])
            .expect("invariant: the defaults of the newest level fit together");
        Self { cluster_id, levels, standalone: true }
    }

    pub fn metadata_version(&self) -> MetadataVersion {
        let level = self.levels.iter().find(|(feature, _)| *feature == name::METADATA);
        level.and_then(|&(_, level)| MetadataVersion::from_level(level)).unwrap_or(MetadataVersion::LATEST)
    }
}

/// Formats one directory, which holds no `meta.properties`.
///
/// # Errors
/// The directory cannot be written.
pub fn format(
    log_dir: &mut LogDir,
    config: &NodeConfig,
    beginning: &Beginning,
    now: TimestampMs,
) -> Result<(), MetadataError> {
    let directory = random_uuid();
    if **log_dir.path() == *config.metadata_log_dir {
        let dir = MetadataFiles::dir_in(log_dir.path());
        make_dir(log_dir.disk().as_ref(), &dir)?;
        let voters = beginning.standalone.then(|| SnapshotVoters {
            kraft_version: 1,
            voters: Some(Voters::new([voter(config, directory)])),
        });
        let records = bootstrap::records(&beginning.levels, Vec::new());
        let bytes = bootstrap::checkpoint(&records, voters.as_ref(), now)?;
        write_file(log_dir.disk().as_ref(), &dir, &SnapshotId::BOOTSTRAP.file_name(), |file| {
            Ok::<(), StorageError>(file.write_at(0, &[&bytes])?)
        })?;
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

/// This node as a voter of the metadata quorum.
pub fn voter(config: &NodeConfig, directory: DirectoryId) -> Voter {
    let endpoints = config.listeners.all.iter().filter(|listener| listener.is_controller).map(|listener| {
        let endpoint = &listener.endpoint;
        let host = if endpoint.host.is_empty() { "localhost" } else { &endpoint.host };
        VoterEndpoint {
            listener: Text::from(endpoint.listener.as_str()),
            host: Text::from(host),
            port: endpoint.port,
        }
    });
    Voter { id: config.node_id, directory, endpoints: endpoints.collect(), kraft_min: 0, kraft_max: 1 }
}
