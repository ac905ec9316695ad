//! The cluster's feature levels: which there are, which range this build supports, which level brings what.
//!
//! It does not decide whether a level may change: the controller does (`barnabas_quorum::controller::features`).
//! `kraft.version` is a feature by name only: its level lives in the quorum's control records, never in a
//! FeatureLevelRecord.
//!
//! Sources: KIP-584, KIP-778, KIP-1022; Kafka 4.4 `MetadataVersion`, `Feature`, and the `*Version` enums beside them.

use imbl::OrdMap;

use barnabas_base::Text;

/// The features that Kafka 4.4 knows, by name.
pub mod name {
    pub const ELIGIBLE_LEADER_REPLICAS: &str = "eligible.leader.replicas.version";
    pub const GROUP: &str = "group.version";
    pub const KRAFT: &str = "kraft.version";
    pub const METADATA: &str = "metadata.version";
    pub const SHARE: &str = "share.version";
    pub const STREAMS: &str = "streams.version";
    pub const TRANSACTION: &str = "transaction.version";
}

/// A level of `metadata.version`: which records may be written, which requests brokers send each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MetadataVersion(i16);

/// Level, name, and whether a record's form or meaning changed with it (so that going below it loses something).
const METADATA_VERSIONS: [(i16, &str, bool); 27] = [
    (7, "3.3-IV3", true),
    (8, "3.4-IV0", true),
    (9, "3.5-IV0", false),
    (10, "3.5-IV1", false),
    (11, "3.5-IV2", true),
    (12, "3.6-IV0", false),
    (13, "3.6-IV1", true),
    (14, "3.6-IV2", true),
    (15, "3.7-IV0", true),
    (16, "3.7-IV1", false),
    (17, "3.7-IV2", true),
    (18, "3.7-IV3", false),
    (19, "3.7-IV4", false),
    (20, "3.8-IV0", false),
    (21, "3.9-IV0", false),
    (22, "4.0-IV0", false),
    (23, "4.0-IV1", true),
    (24, "4.0-IV2", false),
    (25, "4.0-IV3", false),
    (26, "4.1-IV0", false),
    (27, "4.1-IV1", false),
    (28, "4.2-IV0", false),
    (29, "4.2-IV1", false),
    (30, "4.3-IV0", true),
    (31, "4.4-IV0", false),
    (32, "4.4-IV1", true),
    (33, "4.4-IV2", true),
];

impl MetadataVersion {
    /// The oldest level that Kafka 4 still reads.
    pub const MIN: Self = Self(7);
    /// The newest level of Kafka 4.4.
    pub const LATEST: Self = Self(33);

    /// `None` for a level outside 7–33.
    pub fn from_level(level: i16) -> Option<Self> {
        (Self::MIN.0..=Self::LATEST.0).contains(&level).then_some(Self(level))
    }

    /// Reads `4.4-IV2`, or `4.4` (and `4.4.1`) for the newest level of that release.
    pub fn parse(name: &str) -> Option<Self> {
        if let Some(row) = METADATA_VERSIONS.iter().find(|row| row.1 == name) {
            return Some(Self(row.0));
        }
        let mut parts = name.split('.');
        let release = format!("{}.{}", parts.next()?, parts.next()?);
        let of_release =
            |row: &&(i16, &str, bool)| row.1.split_once('-').is_some_and(|(of, _)| of == release);
        METADATA_VERSIONS.iter().rev().find(of_release).map(|row| Self(row.0))
    }

    pub const fn level(self) -> i16 {
        self.0
    }

    /// `4.4-IV2`
    pub fn name(self) -> &'static str {
        METADATA_VERSIONS[(self.0 - Self::MIN.0) as usize].1
    }

    /// Whether a level in (lower, higher] of the two changed a record, so that going down would lose metadata.
    pub fn metadata_changed_between(self, other: Self) -> bool {
        let (low, high) = if self < other { (self, other) } else { (other, self) };
        METADATA_VERSIONS.iter().any(|row| row.0 > low.0 && row.0 <= high.0 && row.2)
    }

    pub const fn has_scram(self) -> bool {
        self.0 >= 11
    }

    /// Below this, removing a replica from the ISR also starts a new leader epoch (KAFKA-15021).
    pub const fn bumps_leader_epoch_on_isr_shrink(self) -> bool {
        self.0 < 12
    }

    pub const fn has_transactions(self) -> bool {
        self.0 >= 13
    }

    pub const fn has_delegation_tokens(self) -> bool {
        self.0 >= 14
    }

    pub const fn has_controller_registration(self) -> bool {
        self.0 >= 15
    }

    pub const fn has_directories(self) -> bool {
        self.0 >= 17
    }

    pub const fn has_elr(self) -> bool {
        self.0 >= 23
    }

    pub const fn has_cordoned_log_dirs(self) -> bool {
        self.0 >= 30
    }

    pub const fn has_cidr_acls(self) -> bool {
        self.0 >= 32
    }

    pub const fn has_controller_unregistration(self) -> bool {
        self.0 >= 33
    }

    /// Whether every Kafka that knows this level finds the levels in the snapshot at 0 (KIP-1170), or one may look for
    /// them in `bootstrap.checkpoint` alone.
    pub const fn begins_in_one_file(self) -> bool {
        self.0 >= 31
    }

    pub const fn register_broker_version(self) -> i16 {
        match self.0 {
            30.. => 4,
            17.. => 3,
            8.. => 2,
            _ => 1,
        }
    }

    pub const fn broker_registration_change_version(self) -> i16 {
        match self.0 {
            30.. => 3,
            17.. => 2,
            _ => 1,
        }
    }

    pub const fn partition_version(self) -> i16 {
        match self.0 {
            23.. => 2,
            17.. => 1,
            _ => 0,
        }
    }

    pub const fn partition_change_version(self) -> i16 {
        self.partition_version()
    }

    /// The version of Fetch that replicas send to their leaders.
    pub const fn fetch_version(self) -> i16 {
        match self.0 {
            27.. => 18,
            21.. => 17,
            19.. => 16,
            10.. => 15,
            9 => 14,
            _ => 13,
        }
    }

    /// The version of ListOffsets that replicas send to their leaders.
    pub const fn list_offsets_version(self) -> i16 {
        match self.0 {
            29.. => 11,
            25.. => 10,
            21.. => 9,
            9.. => 8,
            _ => 7,
        }
    }
}

impl std::fmt::Display for MetadataVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// One feature: what this build supports of it.
#[derive(Debug, Clone, Copy)]
pub struct Feature {
    pub name: &'static str,
    pub min: i16,
    pub max: i16,
    /// For each level from 1: the `metadata.version` at which new clusters get it by default.
    bootstrap: &'static [i16],
    /// For each level from 1: the `metadata.version` that it cannot do without.
    needs: &'static [i16],
}

/// Every feature of Kafka 4.4, `metadata.version` first.
pub const FEATURES: [Feature; 7] = [
    Feature { name: name::METADATA, min: 7, max: 33, bootstrap: &[], needs: &[] },
    Feature { name: name::KRAFT, min: 0, max: 1, bootstrap: &[21], needs: &[7] },
    Feature { name: name::TRANSACTION, min: 0, max: 2, bootstrap: &[24, 24], needs: &[7, 7] },
    Feature { name: name::GROUP, min: 0, max: 1, bootstrap: &[22], needs: &[7] },
    Feature { name: name::ELIGIBLE_LEADER_REPLICAS, min: 0, max: 1, bootstrap: &[26], needs: &[23] },
    Feature { name: name::SHARE, min: 0, max: 2, bootstrap: &[28, 31], needs: &[7, 7] },
    Feature { name: name::STREAMS, min: 0, max: 1, bootstrap: &[29], needs: &[7] },
];

impl Feature {
    pub fn named(name: &str) -> Option<&'static Self> {
        FEATURES.iter().find(|feature| feature.name == name)
    }

    /// The level that a cluster formatted at `version` starts with.
    pub fn default_level(&self, version: MetadataVersion) -> i16 {
        if self.name == name::METADATA {
            return version.level();
        }
        self.bootstrap.iter().take_while(|&&at| at <= version.level()).count() as i16
    }

    /// The lowest `metadata.version` under which `level` may stand.
    pub fn needs_metadata_version(&self, level: i16) -> MetadataVersion {
        let index = usize::try_from(level - 1).ok();
        let needed = index.and_then(|index| self.needs.get(index)).copied();
        MetadataVersion(needed.unwrap_or(MetadataVersion::MIN.level()))
    }
}

/// The finalized levels: what the cluster has agreed on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Features {
    metadata_version: Option<MetadataVersion>,
    levels: OrdMap<Text, i16>,
}

impl Features {
    /// `None` before the first FeatureLevelRecord was read.
    pub fn metadata_version(&self) -> Option<MetadataVersion> {
        self.metadata_version
    }

    /// The level that decides which records may be written; the lowest while none was read.
    pub fn metadata_version_or_min(&self) -> MetadataVersion {
        self.metadata_version.unwrap_or(MetadataVersion::MIN)
    }

    /// 0 where the feature was never finalized. `metadata.version` included.
    pub fn level(&self, name: &str) -> i16 {
        if name == name::METADATA {
            return self.metadata_version.map_or(0, MetadataVersion::level);
        }
        self.levels.get(name).copied().unwrap_or(0)
    }

    pub fn elr_enabled(&self) -> bool {
        self.level(name::ELIGIBLE_LEADER_REPLICAS) >= 1
    }

    /// Every finalized feature but `metadata.version`, by name.
    pub fn others(&self) -> impl Iterator<Item = (&Text, i16)> {
        self.levels.iter().map(|(name, &level)| (name, level))
    }

    /// Every finalized feature, `metadata.version` included.
    pub fn all(&self) -> impl Iterator<Item = (&str, i16)> {
        let metadata = self.metadata_version.map(|version| (name::METADATA, version.level()));
        metadata.into_iter().chain(self.levels.iter().map(|(name, &level)| (&**name, level)))
    }

    pub(crate) fn set_metadata_version(&mut self, version: MetadataVersion) {
        self.metadata_version = Some(version);
    }

    /// Level 0 forgets the feature.
    pub(crate) fn set_level(&mut self, name: &str, level: i16) {
        if level == 0 {
            self.levels.remove(name);
        } else {
            self.levels.insert(Text::from(name), level);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_and_levels_have_kafkas_names() {
        assert_eq!(MetadataVersion::parse("4.4").map(MetadataVersion::level), Some(33));
        assert_eq!(MetadataVersion::parse("4.4.1").map(MetadataVersion::level), Some(33));
        assert_eq!(MetadataVersion::parse("3.9").map(MetadataVersion::level), Some(21));
        assert_eq!(MetadataVersion::parse("4.0").map(MetadataVersion::name), Some("4.0-IV3"));
        assert_eq!(MetadataVersion::parse("3.7-IV1").map(MetadataVersion::level), Some(16));
        assert_eq!(MetadataVersion::parse("3.3-IV2"), None);
        assert_eq!(MetadataVersion::parse("5.0"), None);
        for (index, row) in METADATA_VERSIONS.iter().enumerate() {
            assert_eq!(row.0, 7 + index as i16);
        }
    }

    #[test]
    fn a_new_cluster_gets_the_levels_of_its_release() {
        let levels = |name: &str| {
            let version = MetadataVersion::parse(name).unwrap();
            FEATURES.map(|feature| feature.default_level(version))
        };
        assert_eq!(levels("4.4-IV2"), [33, 1, 2, 1, 1, 2, 1]);
        assert_eq!(levels("3.9"), [21, 1, 0, 0, 0, 0, 0]);
        assert_eq!(levels("4.0"), [25, 1, 2, 1, 0, 0, 0]);
    }

    #[test]
    fn going_down_loses_metadata_only_past_a_level_that_changed_a_record() {
        let of = |name| MetadataVersion::parse(name).unwrap();
        assert!(!of("4.0-IV3").metadata_changed_between(of("4.2-IV1")));
        assert!(of("4.2-IV1").metadata_changed_between(of("4.3-IV0")));
    }
}
