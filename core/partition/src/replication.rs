//! The types exchanged between a leader, its followers and the controller: a follower's fetch and its answer, the
//! leader's AlterPartition request, a follower's next fetch offset.
//!
//! Values only. Who decides: `leading` (the leader), `partition/leader`, `partition/follower`, `fetcher` (a follower's
//! side of many partitions at once).

use barnabas_base::{
    BrokerEpoch, BrokerId, DurationMs, ErrorCode, LeaderEpoch, MonotonicMs, Offset, PartitionEpoch,
};

use crate::{Bounds, ReplicaKey};

/// Who leads, and with whom: what the metadata log says of a partition that this broker leads.
#[derive(Debug, Clone, Copy)]
pub struct Leadership<'a> {
    pub epoch: LeaderEpoch,
    /// A word with an older one is ignored. [`PartitionEpoch::NONE`]: taken whatever was known.
    pub partition_epoch: PartitionEpoch,
    /// The other replicas.
    pub followers: &'a [FollowerState],
    /// `min.insync.replicas`.
    pub min_in_sync: u16,
    /// `replica.lag.time.max.ms`.
    pub lag_max: DurationMs,
    pub now: MonotonicMs,
}

impl Default for Leadership<'_> {
    /// A lone replica with Kafka's settings.
    fn default() -> Self {
        Self {
            epoch: LeaderEpoch(0),
            partition_epoch: PartitionEpoch::NONE,
            followers: &[],
            min_in_sync: 1,
            lag_max: DurationMs(30_000),
            now: MonotonicMs(0),
        }
    }
}

/// Another replica, and whether it counts for what is safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FollowerState {
    pub broker: BrokerId,
    pub in_sync: bool,
    /// The epoch under which the broker is registered, if it is neither fenced nor shutting down: only then may it join
    /// the in-sync replicas (KIP-841, KIP-903).
    pub registered: Option<BrokerEpoch>,
}

/// A follower's fetch from this partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FollowerFetch {
    pub broker: BrokerId,
    /// The life of the broker that asks; [`BrokerEpoch::NONE`] before Fetch v15.
    pub broker_epoch: BrokerEpoch,
    /// As in [`FollowerState::registered`], at this moment.
    pub registered: Option<BrokerEpoch>,
    /// The epoch that the follower follows.
    pub leader_epoch: Option<LeaderEpoch>,
    /// Everything below is on its disk.
    pub offset: Offset,
    /// The epoch of its last record below `offset`, if it has one (Fetch v12).
    pub last_epoch: Option<LeaderEpoch>,
    pub log_start: Offset,
    pub now: MonotonicMs,
}

/// What a follower's fetch comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FollowerRead {
    /// Records from its offset up to [`Bounds::end`], with the marks of the leader.
    Records(Bounds),
    /// Its log and this one part: the largest epoch that both may know, and where it ends here. No records, and nothing
    /// that it says of its log counts.
    Diverging { epoch: LeaderEpoch, end: Offset },
}

/// What a leader asks of the controller (AlterPartition): these are in sync.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IsrChange {
    /// Names the question among those of one leadership.
    pub number: u32,
    pub leader_epoch: LeaderEpoch,
    pub partition_epoch: PartitionEpoch,
    /// The followers, with the life that each fetched in; −1 where it has not yet. The sender adds itself.
    pub in_sync: Vec<(BrokerId, BrokerEpoch)>,
}

/// What the controller says to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IsrAnswer<'a> {
    Changed {
        leader_epoch: LeaderEpoch,
        partition_epoch: PartitionEpoch,
        /// Everybody in sync, the leader too.
        in_sync: &'a [BrokerId],
    },
    Refused(ErrorCode),
}

/// What becomes of the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IsrNext {
    /// It is complete, or its caller is gone.
    Settled,
    /// To be asked again, as it is.
    Ask,
    /// The metadata log will say what is true; until then nothing else is asked.
    AwaitMetadata,
}

/// Where a follower goes on, and what the leader must know of its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchPosition {
    /// The epoch that is followed.
    pub leader_epoch: LeaderEpoch,
    /// Everything below is durable here: to ask from here is to acknowledge it.
    pub offset: Offset,
    /// The epoch of the last record below `offset`.
    pub last_epoch: Option<LeaderEpoch>,
    pub log_start: Offset,
    pub high_watermark: Offset,
}

/// What must happen to a follower's log before it can go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    Nothing,
    /// Everything from here on goes.
    To(Offset),
    /// The log is emptied and starts again at this offset.
    StartAt(Offset),
}

/// What a follower does with a batch that it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follow {
    Append,
    /// The log is empty and starts inside of the batch, because the leader's does: storage begins the log at the
    /// batch's base, and the log start stays.
    AppendFromBelow,
    /// It is there already: the first batch of an answer may begin below what was asked for.
    Skip,
    /// It was written under a newer epoch than the one that is followed: it, and what comes after it, is for later.
    Stop,
}

/// What a leader says of one partition of a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionAnswer {
    pub key: ReplicaKey,
    pub error: ErrorCode,
    pub high_watermark: Offset,
    pub log_start: Offset,
    pub diverging: Option<(LeaderEpoch, Offset)>,
    pub bytes: usize,
}
