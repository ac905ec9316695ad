//! What goes on beside the producers: offsets are committed, topics made, written and deleted, records deleted.

use crate::fleet::{self, KEPT, TRIMMED, cluster, runtime};
use crate::ledger::Ledger;
use crate::random::Random;
use barnabas_base::{ErrorCode, PartitionIndex};
use barnabas_client::{Admin, ClientError, Cluster, NewTopic, Outgoing, Producer, ProducerConfig};
use barnabas_wire::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use barnabas_wire::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use barnabas_wire::messages::{DeleteRecordsRequest, OffsetCommitRequest};
use std::future::Future;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

pub const GROUP: &str = "judged";
/// Partitions of [`KEPT`] for which offsets are committed.
pub const COMMITTED_PARTITIONS: i32 = 4;
/// Topics that are there at a time.
const LIVE_MAX: usize = 6;

pub fn start(address: &str, ledger: &Arc<Ledger>, random: &mut Random) -> Vec<JoinHandle<()>> {
    vec![
        spawn("commits", address, ledger, random, commit),
        spawn("topics", address, ledger, random, topics),
        spawn("deleted records", address, ledger, random, delete_records),
    ]
}

fn spawn<F>(
    what: &'static str,
    address: &str,
    ledger: &Arc<Ledger>,
    random: &mut Random,
    work: fn(Cluster, Arc<Ledger>, Random) -> F,
) -> JoinHandle<()>
where
    F: Future<Output = Result<(), ClientError>> + 'static,
{
    let (address, ledger, random) = (address.to_owned(), ledger.clone(), random.fork());
    std::thread::spawn(move || {
        if let Err(error) = runtime().block_on(work(cluster(&address, what), ledger.clone(), random)) {
            ledger.problem(format!("{what}: {error}"));
        }
    })
}

/// A little later, where trying again may help.
async fn again(error: ClientError) -> Result<(), ClientError> {
    // A coordinator that loads or moves is no refusal of the commit.
    if !error.is_retriable() {
        return Err(error);
    }
    tokio::time::sleep(Duration::from_millis(3)).await;
    Ok(())
}

async fn commit(mut cluster: Cluster, ledger: Arc<Ledger>, mut random: Random) -> Result<(), ClientError> {
    let mut next = [0_u64; COMMITTED_PARTITIONS as usize];
    while !ledger.is_stopping() {
        let partition = random.below(COMMITTED_PARTITIONS as u64) as i32;
        let offset = &mut next[partition as usize];
        *offset += 1;
        ledger.commit_sent(partition, *offset);
        while let Err(error) = commit_once(&mut cluster, partition, *offset as i64).await {
            again(error).await?;
        }
        ledger.commit_acked(partition, *offset);
        tokio::time::sleep(Duration::from_millis(random.below(5))).await;
    }
    Ok(())
}

async fn commit_once(cluster: &mut Cluster, partition: i32, offset: i64) -> Result<(), ClientError> {
    let coordinator = cluster.group_coordinator(GROUP).await?;
    cluster.topic(KEPT, false).await?;
    let topic = OffsetCommitRequestTopic {
        name: KEPT.into(),
        topic_id: cluster.topic_id(KEPT).unwrap_or_default(),
        partitions: vec![OffsetCommitRequestPartition {
            partition_index: partition,
            committed_offset: offset,
            ..Default::default()
        }],
        ..Default::default()
    };
    let request = OffsetCommitRequest {
        group_id: GROUP.into(),
        generation_id_or_member_epoch: -1,
        topics: vec![topic],
        ..Default::default()
    };
    let answer = cluster.ask(coordinator, &request).await?;
    let code = answer.topics.first().and_then(|topic| topic.partitions.first()).map(|told| told.error_code);
    refused("committing", code.unwrap_or(ErrorCode::UnknownServerError.code()))
}

fn refused(what: &str, code: i16) -> Result<(), ClientError> {
    if code == 0 { Ok(()) } else { Err(ClientError::refused(what, code, None)) }
}

async fn topics(mut cluster: Cluster, ledger: Arc<Ledger>, mut random: Random) -> Result<(), ClientError> {
    let mut number = 0;
    while !ledger.is_stopping() {
        number += 1;
        let name = format!("passing-{number}");
        let new = NewTopic {
            name: name.clone(),
            partitions: Some(2),
            replication_factor: Some(1),
            ..NewTopic::default()
        };
        if let Err(error) = Admin::new(&mut cluster).create_topic(&new).await
            && error.code() != Some(ErrorCode::TopicAlreadyExists)
        {
            return Err(error);
        }
        ledger.with_topics(|topics| {
            topics.made += 1;
            topics.live.insert(name.clone(), 0);
        });
        write_a_few(&mut cluster, &name, &ledger, 1 + random.below(5)).await?;
        let oldest = ledger.with_topics(|topics| {
            let doomed = topics.live.keys().next().cloned();
            // From here on its result does not matter.
            doomed.filter(|_| topics.live.len() > LIVE_MAX).inspect(|name| {
                let _ = topics.live.remove(name);
            })
        });
        if let Some(doomed) = oldest {
            delete(&mut cluster, &doomed).await?;
            ledger.with_topics(|topics| topics.deleted.insert(doomed));
        }
        tokio::time::sleep(Duration::from_millis(random.below(80))).await;
    }
    Ok(())
}

async fn write_a_few(
    cluster: &mut Cluster,
    topic: &str,
    ledger: &Ledger,
    count: u64,
) -> Result<(), ClientError> {
    let mut producer = Producer::new(cluster, topic, ProducerConfig::default()).await?;
    for number in 0..count {
        for partition in [0, 1] {
            let value = Some(fleet::value(0, number, 50));
            let record = Outgoing { partition: Some(partition), value, ..Outgoing::default() };
            producer.send(cluster, &record).await?;
        }
        producer.flush(cluster).await?;
    }
    ledger.with_topics(|topics| topics.live.insert(topic.to_owned(), count));
    Ok(())
}

async fn delete(cluster: &mut Cluster, topic: &str) -> Result<(), ClientError> {
    loop {
        match Admin::new(cluster).delete_topic(topic).await {
            Ok(()) => return Ok(()),
            // Its answer was lost.
            Err(error) if error.code() == Some(ErrorCode::UnknownTopicOrPartition) => return Ok(()),
            Err(error) => again(error).await?,
        }
    }
}

async fn delete_records(
    mut cluster: Cluster,
    ledger: Arc<Ledger>,
    mut random: Random,
) -> Result<(), ClientError> {
    while !ledger.is_stopping() {
        let partition = random.below(2) as i32;
        match delete_records_once(&mut cluster, partition).await {
            Ok(low) => ledger.low_acked(partition, low),
            Err(error) => {
                cluster.forget(TRIMMED);
                again(error).await?;
            }
        }
        tokio::time::sleep(Duration::from_millis(random.below(100))).await;
    }
    Ok(())
}

/// Deletes what lies more than a few hundred records behind the end.
async fn delete_records_once(cluster: &mut Cluster, partition: i32) -> Result<u64, ClientError> {
    let end = cluster.list_offset(TRIMMED, PartitionIndex(partition), -1).await?;
    let start = cluster.list_offset(TRIMMED, PartitionIndex(partition), -2).await?;
    let upto = (end.get() - 300).max(start.get());
    let topic = DeleteRecordsTopic {
        name: TRIMMED.into(),
        partitions: vec![DeleteRecordsPartition {
            partition_index: partition,
            offset: upto,
            ..Default::default()
        }],
        ..Default::default()
    };
    let request = DeleteRecordsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() };
    let leader = cluster.leader(TRIMMED, PartitionIndex(partition)).await?;
    let answer = cluster.ask(leader, &request).await?;
    let told = answer.topics.first().and_then(|topic| topic.partitions.first());
    let told = told.ok_or_else(|| ClientError::Invalid("the answer names no partition".to_owned()))?;
    if told.error_code == ErrorCode::OffsetOutOfRange.code() {
        // Retention came first.
        return Ok(start.get() as u64);
    }
    refused("deleting records", told.error_code)?;
    Ok(told.low_watermark as u64)
}
