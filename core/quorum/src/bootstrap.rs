//! What a freshly formatted metadata directory holds: `00000000000000000000-0000000000.checkpoint`.
//!
//! It carries the feature levels (and SCRAM credentials) that the first leader writes into the log, and, for a quorum
//! whose voters are dynamic, `kraft.version` and the voters. Kafka up to 4.3 wrote the levels into
//! `bootstrap.checkpoint` beside it; that file is still read ([`records_of`]).
//!
//! Sources: KIP-778, KIP-853, KIP-1170; Kafka 4.4 `Formatter`, `BootstrapMetadata`.

use barnabas_base::TimestampMs;
use barnabas_metadata::features::{FEATURES, Feature, name};
use barnabas_metadata::{MetadataVersion, snapshot::feature_record};
use barnabas_wire::MetadataRecord;
use barnabas_wire::records::batches;
use bytes::Bytes;

use crate::QuorumError;
use crate::batches::{Content, read_batch};
use crate::snapshot::{SnapshotVoters, SnapshotWriter};
use crate::snapshot_id::SnapshotId;

/// The name of the file that Kafka up to 4.3 wrote into the metadata log directory itself.
pub const LEGACY_FILE_NAME: &str = "bootstrap.checkpoint";

/// Why features cannot stand together at the start of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FeatureChoiceError {
    #[error("Unsupported feature: {name}. Supported features are: {known}")]
    Unknown { name: String, known: String },
    #[error("No feature:{name} with feature level {level}")]
    Level { name: &'static str, level: i16 },
    #[error("{name} could not be set to {level} because it depends on metadata.version level {needed}")]
    Dependency { name: &'static str, level: i16, needed: i16 },
    #[error("Use --release-version instead of --feature metadata.version=X to avoid ambiguity.")]
    MetadataVersion,
}

/// The levels that a new cluster starts with: the release's defaults, and `chosen` in their place. `kraft.version` is
/// not among them: it follows from whether the voters are dynamic.
///
/// # Errors
/// A feature or level that there is not, or one that needs a later `metadata.version`.
pub fn feature_levels(
    release: MetadataVersion,
    chosen: &[(String, i16)],
) -> Result<Vec<(&'static str, i16)>, FeatureChoiceError> {
    for (name, level) in chosen {
        if name == name::METADATA {
            return Err(FeatureChoiceError::MetadataVersion);
        }
        let feature = Feature::named(name).ok_or_else(|| {
            let mut known: Vec<&str> = FEATURES.iter().map(|feature| feature.name).collect();
            known.retain(|&known| known != name::METADATA);
            known.sort_unstable();
            FeatureChoiceError::Unknown { name: name.clone(), known: known.join(", ") }
        })?;
        if !(feature.min..=feature.max).contains(level) {
            return Err(FeatureChoiceError::Level { name: feature.name, level: *level });
        }
        let needed = feature.needs_metadata_version(*level);
        if *level > 0 && release < needed {
            let needed = needed.level();
            return Err(FeatureChoiceError::Dependency { name: feature.name, level: *level, needed });
        }
    }
    let level_of = |feature: &'static Feature| {
        let chosen = chosen.iter().rev().find(|(name, _)| name == feature.name);
        (feature.name, chosen.map_or_else(|| feature.default_level(release), |(_, level)| *level))
    };
    let wanted = FEATURES.iter().filter(|feature| feature.name != name::KRAFT);
    Ok(wanted.map(level_of).collect())
}

/// The records of a new cluster: `metadata.version` first, the others by name, none at level 0; `more` (SCRAM) last.
pub fn records(levels: &[(&'static str, i16)], more: Vec<MetadataRecord>) -> Vec<MetadataRecord> {
    let mut others: Vec<_> =
        levels.iter().filter(|(name, level)| *name != name::METADATA && *level > 0).collect();
    others.sort_unstable();
    let metadata = levels.iter().filter(|(name, _)| *name == name::METADATA);
    let ordered = metadata.chain(others);
    ordered.map(|&(name, level)| feature_record(name, level)).chain(more).collect()
}

/// The bootstrap snapshot's bytes. `voters` where they are dynamic (`kraft.version` 1).
pub fn checkpoint(
    records: &[MetadataRecord],
    voters: Option<&SnapshotVoters>,
    now: TimestampMs,
) -> Result<Bytes, QuorumError> {
    let mut writer = SnapshotWriter::new(SnapshotId::BOOTSTRAP, now, MetadataVersion::LATEST);
    let mut file = Vec::new();
    file.extend_from_slice(&writer.header(now, voters)?);
    for record in records {
        if let Some(batch) = writer.push(record)? {
            file.extend_from_slice(&batch);
        }
    }
    if let Some(batch) = writer.flush()? {
        file.extend_from_slice(&batch);
    }
    file.extend_from_slice(&writer.footer()?);
    Ok(Bytes::from(file))
}

/// The records of a legacy `bootstrap.checkpoint`: its control batches say nothing.
pub fn records_of(file: Bytes) -> Result<Vec<MetadataRecord>, QuorumError> {
    let mut found = Vec::new();
    for batch in batches(file) {
        let batch =
            batch.map_err(|source| QuorumError::Batch { offset: SnapshotId::BOOTSTRAP.end, source })?;
        if let Content::Records(records) = read_batch(&batch)? {
            found.extend(records);
        }
    }
    Ok(found)
}

/// The level of `metadata.version` among bootstrap records.
pub fn metadata_version_of(records: &[MetadataRecord]) -> Option<MetadataVersion> {
    let level = |record: &MetadataRecord| match record {
        MetadataRecord::FeatureLevel(record) if record.name == *name::METADATA => Some(record.feature_level),
        _ => None,
    };
    records.iter().rev().find_map(level).and_then(MetadataVersion::from_level)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::voters::Voters;

    #[test]
    fn levels_are_the_releases_but_for_those_that_are_chosen() {
        let levels = |release: &str, chosen: &[(&str, i16)]| {
            let chosen: Vec<_> = chosen.iter().map(|(name, level)| ((*name).to_owned(), *level)).collect();
            feature_levels(MetadataVersion::parse(release).unwrap(), &chosen)
        };
        let names = |found: Vec<(&'static str, i16)>| found.into_iter().filter(|row| row.1 > 0).count();
        assert_eq!(levels("4.4", &[]).map(names), Ok(6));
        assert_eq!(levels("4.4", &[("share.version", 0)]).map(names), Ok(5));
        assert_eq!(levels("3.9", &[]).map(names), Ok(1));
        assert!(matches!(levels("4.4", &[("nonsense", 1)]), Err(FeatureChoiceError::Unknown { .. })));
        assert!(matches!(levels("4.4", &[("share.version", 3)]), Err(FeatureChoiceError::Level { .. })));
        let elr = [("eligible.leader.replicas.version", 1)];
        assert!(matches!(levels("3.9", &elr), Err(FeatureChoiceError::Dependency { needed: 23, .. })));
        assert_eq!(levels("4.4", &[("metadata.version", 30)]), Err(FeatureChoiceError::MetadataVersion));
    }

    #[test]
    fn the_file_says_what_was_asked_for_metadata_version_first() {
        let levels = feature_levels(MetadataVersion::LATEST, &[]).unwrap();
        let records = records(&levels, Vec::new());
        let name = |record: &MetadataRecord| match record {
            MetadataRecord::FeatureLevel(record) => record.name.to_string(),
            other => panic!("{other:?}"),
        };
        let names: Vec<String> = records.iter().map(name).collect();
        let mut sorted = names[1..].to_vec();
        sorted.sort();
        assert_eq!((&*names[0], &names[1..]), (name::METADATA, &*sorted));
        assert_eq!(metadata_version_of(&records), Some(MetadataVersion::LATEST));
        for voters in [None, Some(SnapshotVoters { kraft_version: 1, voters: Some(Voters::default()) })] {
            let file = checkpoint(&records, voters.as_ref(), TimestampMs(1)).unwrap();
            assert_eq!(records_of(file).unwrap(), records);
        }
    }
}
