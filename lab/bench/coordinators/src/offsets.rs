//! A million offsets: committed, and after a restart asked for until every coordinator has them again.

use crate::ask::{Wrong, commit, commit_of, coordinator, is_passing, open, open_many};
use barnabas_client::Connection;
use barnabas_wire::messages::OffsetFetchRequest;
use barnabas_wire::messages::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use serde_json::{Value, json};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const AT_A_TIME: usize = 16;
const OFFSET_FETCH: i16 = 8;

pub async fn fill(bootstrap: &str, topic: &str, groups: usize, partitions: usize) -> Result<Value, Wrong> {
    let begun = Instant::now();
    let tasks: Vec<_> = open_many(bootstrap, AT_A_TIME.min(groups))
        .await?
        .into_iter()
        .enumerate()
        .map(|(first, mut connection)| {
            let topic = topic.to_owned();
            tokio::spawn(async move {
                for group in (first..groups).step_by(AT_A_TIME) {
                    let name = format!("g-{group}");
                    coordinator(&mut connection, &name).await?;
                    let offsets = (0..partitions)
                        .map(|partition| (partition as i32, offset_of(group, partition, partitions)));
                    commit(&mut connection, &commit_of(&name, &topic, offsets)).await?;
                }
                Ok::<(), Wrong>(())
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    Ok(json!({ "offsets": groups * partitions, "fill_s": begun.elapsed().as_secs_f64() }))
}

fn offset_of(group: usize, partition: usize, partitions: usize) -> i64 {
    (group * partitions + partition) as i64
}

/// `done_at`: seconds since 1970 at which the last group had been answered.
pub async fn loaded(bootstrap: &str, topic: &str, groups: usize, partitions: usize) -> Result<Value, Wrong> {
    let begun = Instant::now();
    let mut connection = open(bootstrap).await?;
    let mut refused = 0;
    for group in 0..groups {
        while !is_answered(&mut connection, topic, group, partitions).await? {
            refused += 1;
            if begun.elapsed() > Duration::from_secs(180) {
                return Err(format!("g-{group} is still being loaded").into());
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    let done_at = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64();
    for group in 0..groups {
        compare(&mut connection, topic, group, partitions).await?;
    }
    Ok(json!({ "done_at": done_at, "asked_again": refused, "compared": groups * partitions }))
}

fn question(topic: &str, group: usize, partitions: impl Iterator<Item = usize>) -> OffsetFetchRequest {
    let partition_indexes = partitions.map(|one| one as i32).collect();
    let topics =
        Some(vec![OffsetFetchRequestTopics { name: topic.into(), partition_indexes, ..Default::default() }]);
    let group = OffsetFetchRequestGroup {
        group_id: format!("g-{group}").as_str().into(),
        topics,
        ..Default::default()
    };
    OffsetFetchRequest { groups: vec![group], ..Default::default() }
}

/// `(error, [(partition, offset)])` of one group.
async fn fetched(
    connection: &mut Connection,
    request: &OffsetFetchRequest,
) -> Result<(i16, Vec<(i32, i64)>), Wrong> {
    let answer = connection.call_at(request, OFFSET_FETCH).await?;
    let group = answer.groups.into_iter().next().ok_or("an answer about no group")?;
    let offsets = group
        .topics
        .iter()
        .flat_map(|topic| &topic.partitions)
        .map(|one| (one.partition_index, one.committed_offset));
    Ok((group.error_code, offsets.collect()))
}

/// Whether the coordinator has loaded it: its last offset is there. False while it says that it is not ready.
async fn is_answered(
    connection: &mut Connection,
    topic: &str,
    group: usize,
    partitions: usize,
) -> Result<bool, Wrong> {
    let last = partitions - 1;
    let (error, offsets) = fetched(connection, &question(topic, group, std::iter::once(last))).await?;
    match error {
        0 if offsets == [(last as i32, offset_of(group, last, partitions))] => Ok(true),
        0 => Err(format!("g-{group} has {offsets:?}").into()),
        error if is_passing(error) => Ok(false),
        error => Err(format!("g-{group} is refused: {error}").into()),
    }
}

async fn compare(
    connection: &mut Connection,
    topic: &str,
    group: usize,
    partitions: usize,
) -> Result<(), Wrong> {
    let (error, mut offsets) = fetched(connection, &question(topic, group, 0..partitions)).await?;
    offsets.sort_unstable();
    let wanted = (0..partitions).map(|partition| (partition as i32, offset_of(group, partition, partitions)));
    if error != 0 || !offsets.iter().copied().eq(wanted) {
        return Err(format!("g-{group} has not the offsets that were committed (error {error})").into());
    }
    Ok(())
}
