//! What stops a quorum node: its operator must act. Answers to clients are refusals, and stand in responses.

use barnabas_base::{BrokerId, LeaderEpoch, Offset};
use barnabas_metadata::ReplayError;
use barnabas_wire::records::BatchError;
use barnabas_wire::{DecodeError, EncodeError};

use crate::snapshot_id::SnapshotId;

/// Why this node cannot go on with its metadata log.
#[derive(Debug, thiserror::Error)]
pub enum QuorumError {
    #[error("the metadata log at offset {offset}: {source}")]
    Batch { offset: Offset, source: BatchError },
    #[error(
        "the metadata record at offset {offset} cannot be read: {source}. A newer release may have written it"
    )]
    Decode { offset: Offset, source: DecodeError },
    #[error("the metadata record at offset {offset} does not fit what was read before: {source}")]
    Replay { offset: Offset, source: ReplayError },
    #[error("a metadata record cannot be written: {0}")]
    Encode(#[from] EncodeError),
    #[error("a metadata batch cannot be written: {0}")]
    Build(#[from] BatchError),
    #[error("snapshot {id} is damaged: {what}")]
    Snapshot { id: SnapshotId, what: &'static str },
    #[error("the metadata log begins at offset {log_start} and no snapshot reaches up to there")]
    Gap { log_start: Offset },
    #[error(
        "the metadata log ends at offset {log_end}, and the newest snapshot reaches to {snapshot}: what the log lost is in \
         the snapshot; move the log's segments out of the way to go on from it"
    )]
    LogEndsEarly { log_end: Offset, snapshot: Offset },
    #[error("the metadata log has offset {found} where {expected} should follow")]
    Order { expected: Offset, found: Offset },
    #[error(
        "the metadata quorum's epochs are used up: the last one is {epoch}, and there is none for another election. A \
         request with a false epoch did that under an earlier release. Restore the metadata directory from a copy made before it"
    )]
    EpochsUsedUp { epoch: LeaderEpoch },
    #[error("the quorum-state file cannot be read: {what}")]
    State { what: String },
    #[error("the metadata log has epoch {found} at offset {offset}, below the epoch {last} before it")]
    Epoch { offset: Offset, last: LeaderEpoch, found: LeaderEpoch },
    #[error(
        "the metadata log has a transaction open at its end, and metadata.version {level} has no transactions"
    )]
    OpenTransaction { level: i16 },
    #[error(
        "node {me} is not a voter of the metadata quorum ({}): set controller.quorum.voters or \
         controller.quorum.bootstrap.servers, or format the metadata directory with --standalone",
        shown(.voters)
    )]
    NotAVoter { me: BrokerId, voters: Vec<BrokerId> },
    #[error(
        "the quorum's leader asks to cut the metadata log off at offset {end}, and everything below {high_watermark} is \
         committed: one of the two has lost its log"
    )]
    Diverged { end: Offset, high_watermark: Offset },
    #[error("{needed} bytes of metadata must be written at once, and no more than {limit} can: {what}")]
    TooLarge { needed: usize, limit: usize, what: &'static str },
    #[error("broker {broker} of this process cannot register: {what}")]
    Registration { broker: BrokerId, what: String },
    #[error("the bootstrap snapshot has no level for metadata.version")]
    Bootstrap,
}

fn shown(voters: &[BrokerId]) -> String {
    voters.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
