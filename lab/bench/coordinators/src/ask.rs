//! Connections and the few requests that every load makes, in versions that both brokers know.

use barnabas_base::ErrorCode;
use barnabas_client::Connection;
use barnabas_wire::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use barnabas_wire::messages::{FindCoordinatorRequest, OffsetCommitRequest};
use std::time::{Duration, Instant};

pub type Wrong = Box<dyn std::error::Error + Send + Sync>;

const PATIENCE: Duration = Duration::from_secs(60);
/// Newer versions name topics by their ids.
const OFFSET_COMMIT: i16 = 9;
const FIND_COORDINATOR: i16 = 4;

pub async fn open(bootstrap: &str) -> Result<Connection, Wrong> {
    Ok(Connection::open(bootstrap, "coordinators", PATIENCE).await?)
}

/// So many connections, some at a time: a broker's queue of those that wait to be accepted is short.
pub async fn open_many(bootstrap: &str, count: usize) -> Result<Vec<Connection>, Wrong> {
    let mut opened = Vec::with_capacity(count);
    while opened.len() < count {
        let piece = (count - opened.len()).min(32);
        let tasks: Vec<_> = (0..piece)
            .map(|_| {
                let bootstrap = bootstrap.to_owned();
                tokio::spawn(async move { open(&bootstrap).await })
            })
            .collect();
        for task in tasks {
            opened.push(task.await??);
        }
    }
    Ok(opened)
}

/// Waits until the group has a coordinator: the first to ask has its topic made.
pub async fn coordinator(connection: &mut Connection, group: &str) -> Result<(), Wrong> {
    let begun = Instant::now();
    loop {
        let request = FindCoordinatorRequest { coordinator_keys: vec![group.into()], ..Default::default() };
        let answer = connection.call_at(&request, FIND_COORDINATOR).await?;
        let error = answer.coordinators.first().map_or(-1, |one| one.error_code);
        if error == 0 {
            return Ok(());
        }
        if begun.elapsed() > PATIENCE {
            return Err(format!("{group} has no coordinator: {error}").into());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A commit of somebody who is no member: `(partition, offset)` each.
pub fn commit_of(group: &str, topic: &str, offsets: impl Iterator<Item = (i32, i64)>) -> OffsetCommitRequest {
    let partition = |(partition_index, committed_offset)| OffsetCommitRequestPartition {
        partition_index,
        committed_offset,
        committed_metadata: Some("".into()),
        ..Default::default()
    };
    let partitions = offsets.map(partition).collect();
    OffsetCommitRequest {
        group_id: group.into(),
        generation_id_or_member_epoch: -1,
        topics: vec![OffsetCommitRequestTopic { name: topic.into(), partitions, ..Default::default() }],
        ..Default::default()
    }
}

/// Commits; the first error code that is not one of a coordinator that is coming up.
pub async fn commit(connection: &mut Connection, request: &OffsetCommitRequest) -> Result<(), Wrong> {
    let begun = Instant::now();
    loop {
        let answer = connection.call_at(request, OFFSET_COMMIT).await?;
        let mut codes = answer.topics.iter().flat_map(|topic| &topic.partitions).map(|one| one.error_code);
        let Some(error) = codes.find(|code| *code != 0) else { return Ok(()) };
        if !is_passing(error) || begun.elapsed() > PATIENCE {
            return Err(format!("a commit of {:?} is refused: {error}", &*request.group_id).into());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Whether a coordinator says that it is not there yet.
pub fn is_passing(code: i16) -> bool {
    [ErrorCode::CoordinatorLoadInProgress, ErrorCode::CoordinatorNotAvailable, ErrorCode::NotCoordinator]
        .iter()
        .any(|one| one.code() == code)
}

/// The value below which so large a share of them lies, ms.
pub fn percentile_ms(sorted_us: &[u32], share: f64) -> f64 {
    let place = (sorted_us.len() as f64 * share) as usize;
    sorted_us.get(place.min(sorted_us.len().saturating_sub(1))).map_or(0.0, |us| f64::from(*us) / 1000.0)
}
