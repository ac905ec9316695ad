//! The broker settings that concern groups, as values. settings.rs fills them from the broker's configuration and the
//! metadata image; the shell hands a new set to every shard when one changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use barnabas_base::{DurationMs, Map, Text};

/// Defaults are Kafka 4.4's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupConfig {
    /// `group.max.size`: members of one classic group.
    pub group_size_max: usize,
    /// `group.initial.rebalance.delay.ms`: how long an empty group waits for more members to come.
    pub initial_rebalance_delay: DurationMs,
    /// `group.min.session.timeout.ms`.
    pub session_timeout_min: DurationMs,
    /// `group.max.session.timeout.ms`.
    pub session_timeout_max: DurationMs,
    /// How long a member that has never joined before may wait for its first rebalance. Not a setting in Kafka either.
    pub new_member_join_timeout: DurationMs,
    /// `offset.metadata.max.bytes`. Counted, as Kafka does in spite of the name, in UTF-16 units.
    pub offset_metadata_max: usize,
    /// `offsets.retention.minutes`.
    pub offsets_retention: DurationMs,
    /// `offsets.retention.check.interval.ms`.
    pub offsets_retention_check_interval: DurationMs,
    /// `offsets.commit.timeout.ms`: how long an answer waits for its records to be safe.
    pub commit_timeout: DurationMs,
    /// The largest batch of records: a little less than `max.message.bytes` of `__consumer_offsets`. A request that
    /// needs more is refused before anything has changed.
    pub batch_bytes_max: usize,
    /// Batches that may wait for the disk at the same time in one shard; beyond that, requests that write are told to
    /// come back.
    pub pending_batches_max: usize,
    /// Members of one group that were given an id and have not come back with it yet.
    pub pending_members_max: usize,
    /// `group.member.metadata.max.bytes`: what one member may say of itself.
    pub member_bytes_max: usize,
    /// `group.memory.max.bytes`: what one group may hold, its offsets included.
    pub group_bytes_max: usize,
    /// `groups.memory.max.bytes`: what all groups of the node may hold.
    pub groups_bytes_max: usize,
    /// `group.settling.heartbeat.interval.ms`: when members are to beat while their group settles; 0: as always.
    pub settling_heartbeat_interval: DurationMs,
    pub consumer: ConsumerConfig,
    pub streams: StreamsConfig,
    pub share: ShareConfig,
}

impl Default for GroupConfig {
    fn default() -> Self {
        Self {
            group_size_max: i32::MAX as usize,
            initial_rebalance_delay: DurationMs(3_000),
            session_timeout_min: DurationMs(6_000),
            session_timeout_max: DurationMs(1_800_000),
            new_member_join_timeout: DurationMs(300_000),
            offset_metadata_max: 4_096,
            offsets_retention: DurationMs(7 * 24 * 3_600_000),
            offsets_retention_check_interval: DurationMs(600_000),
            commit_timeout: DurationMs(5_000),
            batch_bytes_max: 1_000_000,
            pending_batches_max: 10_000,
            pending_members_max: 10_000,
            member_bytes_max: 1 << 20,
            group_bytes_max: 64 << 20,
            groups_bytes_max: 256 << 20,
            settling_heartbeat_interval: DurationMs(0),
            consumer: ConsumerConfig::default(),
            streams: StreamsConfig::default(),
            share: ShareConfig::default(),
        }
    }
}

/// `group.consumer.migration.policy`: whether groups change their protocol while they have members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MigrationPolicy {
    Disabled,
    Downgrade,
    Upgrade,
    Bidirectional,
}

/// Of the groups of KIP-848: the broker's keys `group.consumer.…`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerConfig {
    /// `assignors`: the first one is used where no member asks for one.
    pub assignors: Vec<Text>,
    /// `max.size`.
    pub size_max: usize,
    /// A group's own keys: `consumer.session.timeout.ms` and the like.
    pub times: PerGroup<GroupTimes>,
    /// `regex.refresh.interval.ms`.
    pub regex_refresh_interval: DurationMs,
    /// `migration.policy`.
    pub migration: MigrationPolicy,
    /// Members and partitions together up to which a target is made on the spot: a millisecond's work.
    pub assign_at_once_max: usize,
}

impl Default for ConsumerConfig {
    fn default() -> Self {
        Self {
            assignors: vec![Text::from("uniform"), Text::from("range")],
            size_max: i32::MAX as usize,
            times: PerGroup::default(),
            regex_refresh_interval: DurationMs(600_000),
            migration: MigrationPolicy::Bidirectional,
            assign_at_once_max: 5_000,
        }
    }
}

/// Of the groups of KIP-1071: the broker's keys `group.streams.…`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamsConfig {
    /// `max.size`.
    pub size_max: usize,
    /// A group's own keys: `streams.session.timeout.ms` and the like.
    pub settings: PerGroup<StreamsSettings>,
    /// `topology.description.plugin.class` names what is built in: members are asked to describe their topology.
    pub keeps_descriptions: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamsSettings {
    pub times: GroupTimes,
    /// `initial.rebalance.delay.ms`: how long an empty group waits for more members to come.
    pub initial_rebalance_delay: DurationMs,
    /// `num.standby.replicas`: copies of each task that keeps state.
    pub standby_replicas: usize,
    /// `task.offset.interval.ms`: how often members say how far their tasks have come.
    pub task_offset_interval: DurationMs,
    /// `acceptable.recovery.lag`: how far behind a task may be and still take over.
    pub acceptable_recovery_lag: i64,
    /// `rack.aware.assignment.tags`: client tags that members must say. No assignor of 4.4 looks at them.
    pub rack_tags: Arc<Vec<Text>>,
}

impl Default for StreamsSettings {
    fn default() -> Self {
        Self {
            times: GroupTimes::default(),
            initial_rebalance_delay: DurationMs(3_000),
            standby_replicas: 0,
            task_offset_interval: DurationMs(60_000),
            acceptable_recovery_lag: 10_000,
            rack_tags: Arc::default(),
        }
    }
}

impl StreamsSettings {
    /// Configuration of the assignor, by Kafka's names: a change triggers a new assignment.
    ///
    /// # Source
    /// Kafka 4.4 `GroupMetadataManager.streamsGroupAssignmentConfigs`.
    pub(crate) fn assignor_configs(&self) -> BTreeMap<Text, Text> {
        let mut configs = BTreeMap::new();
        configs.insert(Text::from("num.standby.replicas"), Text::from(self.standby_replicas.to_string()));
        if !self.rack_tags.is_empty() {
            let tags: Vec<&str> = self.rack_tags.iter().map(|tag| tag.as_str()).collect();
            configs.insert(Text::from("rack.aware.assignment.tags"), Text::from(tags.join(",")));
        }
        configs
    }
}

impl Default for StreamsConfig {
    fn default() -> Self {
        Self { size_max: i32::MAX as usize, settings: PerGroup::default(), keeps_descriptions: false }
    }
}

/// Of the groups of KIP-932: the broker's keys `group.share.…`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareConfig {
    /// `max.size`.
    pub size_max: usize,
    /// A group's own keys: `share.session.timeout.ms` and the like.
    pub times: PerGroup<GroupTimes>,
}

impl Default for ShareConfig {
    fn default() -> Self {
        Self { size_max: 200, times: PerGroup::default() }
    }
}

/// Settings of one kind of groups: the broker's, and those of groups that have their own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PerGroup<T> {
    pub standard: T,
    pub own: Arc<Map<Text, T>>,
}

impl<T> PerGroup<T> {
    /// The settings of one group.
    pub fn of(&self, group: &str) -> &T {
        self.own.get(group).unwrap_or(&self.standard)
    }
}

/// The times that consumer, share and streams groups have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupTimes {
    /// `session.timeout.ms`.
    pub session_timeout: DurationMs,
    /// `heartbeat.interval.ms`.
    pub heartbeat_interval: DurationMs,
    /// `assignment.interval.ms`: the least time between two targets.
    pub assignment_interval: DurationMs,
}

impl Default for GroupTimes {
    fn default() -> Self {
        Self {
            session_timeout: DurationMs(45_000),
            heartbeat_interval: DurationMs(5_000),
            assignment_interval: DurationMs(1_000),
        }
    }
}
