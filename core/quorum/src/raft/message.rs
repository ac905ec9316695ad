//! What quorum members say to each other, freed from the wire: [`Request`], [`Response`].
//!
//! One partition, one cluster: topics, partitions and cluster ids are checked and left behind by [`super::requests`],
//! which knows Kafka's messages and their versions. Record bytes are not in a leader's answer when it leaves the state
//! machine: it says what to read ([`super::Read`]), and the shell puts it in ([`Response::fill`]).
//!
//! Sources: KIP-595, KIP-630, KIP-853, KIP-996, KIP-1186.

use barnabas_base::{BrokerId, DirectoryId, DurationMs, ErrorCode, LeaderEpoch, Offset, Text};
use bytes::Bytes;

use crate::snapshot_id::SnapshotId;
use crate::voters::VoterEndpoint;

/// One replica of the quorum's log: a node on a directory. The same node with another directory is another replica
/// (KIP-853). A zero directory stands for any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReplicaKey {
    pub id: BrokerId,
    pub directory: DirectoryId,
}

impl ReplicaKey {
    /// Whether `self`, from a file or record, means `other`.
    pub fn means(&self, other: &Self) -> bool {
        self.id == other.id && (self.directory.is_zero() || self.directory == other.directory)
    }
}

impl std::fmt::Display for ReplicaKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}@{}", self.id, self.directory)
    }
}

/// An end of a log: the offset after a record, and the epoch of that record. The larger one is the log that may lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct OffsetAndEpoch {
    pub offset: Offset,
    pub epoch: LeaderEpoch,
}

impl PartialOrd for OffsetAndEpoch {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for OffsetAndEpoch {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.epoch, self.offset).cmp(&(other.epoch, other.offset))
    }
}

/// Asks a member to do something. The first three and the last go to any member, the others to the leader.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    Vote(Vote),
    BeginEpoch(BeginEpoch),
    EndEpoch(EndEpoch),
    Fetch(Fetch),
    FetchSnapshot(FetchSnapshot),
    AddVoter(AddVoter),
    RemoveVoter(RemoveVoter),
    UpdateVoter(UpdateVoter),
    /// Only ever sent: asks a node that wants to be a voter which levels of `kraft.version` it supports.
    ApiVersions,
}

/// Key 52.
#[derive(Debug, Clone, PartialEq)]
pub struct Vote {
    /// Who is asked; `None` in version 0.
    pub to: Option<ReplicaKey>,
    pub candidate: ReplicaKey,
    /// The epoch that the candidate wants to lead; in a pre-vote, the one that it is in.
    pub epoch: LeaderEpoch,
    pub last: OffsetAndEpoch,
    pub pre_vote: bool,
}

/// Key 53.
#[derive(Debug, Clone, PartialEq)]
pub struct BeginEpoch {
    pub to: Option<ReplicaKey>,
    pub leader: BrokerId,
    pub epoch: LeaderEpoch,
    pub endpoints: Vec<VoterEndpoint>,
}

/// Key 54.
#[derive(Debug, Clone, PartialEq)]
pub struct EndEpoch {
    pub leader: BrokerId,
    pub epoch: LeaderEpoch,
    /// The best first.
    pub successors: Vec<ReplicaKey>,
    pub endpoints: Vec<VoterEndpoint>,
}

/// Key 1 on `__cluster_metadata`. That it asks from an offset on says that everything below is on its disk.
#[derive(Debug, Clone, PartialEq)]
pub struct Fetch {
    pub replica: ReplicaKey,
    pub epoch: LeaderEpoch,
    pub from: Offset,
    pub last_epoch: LeaderEpoch,
    /// The high watermark that the replica knows: a higher one is news, to be told at once. −1: none. `i64::MAX`: the
    /// replica is too old to say (before version 18).
    pub high_watermark: Offset,
    pub max_wait: DurationMs,
    pub bytes_max: i32,
}

/// Key 59.
#[derive(Debug, Clone, PartialEq)]
pub struct FetchSnapshot {
    pub replica: ReplicaKey,
    pub epoch: LeaderEpoch,
    pub id: SnapshotId,
    pub position: i64,
    pub bytes_max: i32,
}

/// Key 80.
#[derive(Debug, Clone, PartialEq)]
pub struct AddVoter {
    pub voter: ReplicaKey,
    pub endpoints: Vec<VoterEndpoint>,
    /// Whether to answer only once the new voters are committed (KIP-1186).
    pub ack_when_committed: bool,
    pub timeout: DurationMs,
}

/// Key 81.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoveVoter {
    pub voter: ReplicaKey,
}

/// Key 82.
#[derive(Debug, Clone, PartialEq)]
pub struct UpdateVoter {
    pub epoch: LeaderEpoch,
    pub voter: ReplicaKey,
    pub endpoints: Vec<VoterEndpoint>,
    pub kraft_min: i16,
    pub kraft_max: i16,
}

/// What every answer of a member says about itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Head {
    pub error: ErrorCode,
    pub leader: Option<BrokerId>,
    pub epoch: LeaderEpoch,
    /// Where the leader is reached; empty where it is not known.
    pub endpoints: Vec<VoterEndpoint>,
}

/// What came of a [`Request`].
#[derive(Debug, Clone, PartialEq)]
pub enum Response {
    Vote {
        head: Head,
        granted: bool,
    },
    BeginEpoch(Head),
    EndEpoch(Head),
    Fetch(Fetched),
    FetchSnapshot(SnapshotFetched),
    AddVoter {
        error: ErrorCode,
        message: Option<Text>,
    },
    RemoveVoter {
        error: ErrorCode,
        message: Option<Text>,
    },
    UpdateVoter(Head),
    ApiVersions {
        error: ErrorCode,
        kraft: Option<(i16, i16)>,
    },
    /// The request as a whole was refused, such as that of another cluster.
    Refused(ErrorCode),
}

/// The answer to a [`Fetch`].
#[derive(Debug, Clone, PartialEq)]
pub struct Fetched {
    pub head: Head,
    pub log_start: Offset,
    pub high_watermark: Option<Offset>,
    pub content: FetchedContent,
}

/// What a follower is to do to its log.
#[derive(Debug, Clone, PartialEq)]
pub enum FetchedContent {
    /// Append these batches, if there are any. The last one may be cut off.
    Records(Bytes),
    /// Its log has parted from the leader's: of this epoch and those before, the leader has no more than this.
    Diverging(OffsetAndEpoch),
    /// The leader's log begins later: fetch this snapshot.
    Snapshot(SnapshotId),
}

/// The answer to a [`FetchSnapshot`].
#[derive(Debug, Clone, PartialEq)]
pub struct SnapshotFetched {
    pub head: Head,
    pub id: SnapshotId,
    /// Of the whole snapshot.
    pub size: i64,
    pub position: i64,
    pub bytes: Bytes,
}

impl Response {
    /// Puts in the bytes that were read for it.
    #[must_use]
    pub fn fill(mut self, read: Bytes) -> Self {
        match &mut self {
            Self::Fetch(Fetched { content: FetchedContent::Records(bytes), .. })
            | Self::FetchSnapshot(SnapshotFetched { bytes, .. }) => *bytes = read,
            _ => {}
        }
        self
    }
}
