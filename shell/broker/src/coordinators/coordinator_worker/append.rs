//! A coordinator's records, or a marker, on their way into its partition.

use crate::mailbox::{AppendItem, AppendOutcome, PartitionKey, Standing};
use crate::node::Node;
use crate::node::workers::repeated::Repeated;
use crate::worker::partition_worker::PartitionWorker;
use crate::worker::tickets::Opened;
use barnabas_base::{DurationMs, ErrorCode};
use barnabas_coordinator::{Contents, append_error};
use barnabas_partition::{Acks, Append, Origin};
use tokio::sync::oneshot;

/// How long the partition may take to say what became of a batch. The shard itself answers its clients in time
/// (`offsets.commit.timeout.ms`, `request.timeout.ms`); to call a batch lost that is in the log would set the shard
/// apart from its log.
const UNTIL_DECIDED: DurationMs = DurationMs(365 * 24 * 3_600_000);

/// Hands a batch to the shard's partition, which will say what became of it.
///
/// # Errors
/// It was not taken.
pub(super) fn place(
    node: &Node,
    key: PartitionKey,
    contents: Contents,
    standing: Standing,
    partitions: &mut PartitionWorker,
) -> Result<oneshot::Receiver<Vec<AppendOutcome>>, ErrorCode> {
    let now = node.clock.wall();
    let standing = match &contents {
        Contents::Records(_) => Standing::Waived,
        Contents::InTransaction(..) => standing,
        Contents::Marker(end) => Standing::Marker(end.version.0),
    };
    let built = contents.batch(now);
    let batch = built.map_err(|error| {
        if let Some(unsaid) = node.workers.repeated.happened(Repeated::NoBatch) {
            tracing::error!(%error, "a coordinator's records do not fit into a batch; the request is \
                refused. Please report this{unsaid}");
        }
        ErrorCode::UnknownServerError
    })?;
    let (reply, answer) = oneshot::channel();
    let opened: Opened = partitions.open_ticket(reply);
    let item = AppendItem { slot: 0, partition: key, origin: Origin::Coordinator, standing, batch };
    let append = Append {
        origin: Origin::Coordinator,
        acks: Acks::All,
        ticket: partitions.ticket(opened),
        deadline: node.clock.monotonic().plus(UNTIL_DECIDED),
        leader_epoch: None,
        verified: false,
        follows_refused: false,
    };
    partitions.place(item, append).map_err(|declined| append_error(declined.code()))?;
    Ok(answer)
}
