//! Offsets of many partitions, some of which have no answer.

use super::*;
use crate::ClusterConfig;
use crate::fake_broker::{fake_broker, nodes};
use barnabas_base::ErrorCode;
use barnabas_wire::RequestBody;
use barnabas_wire::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use barnabas_wire::messages::metadata_response::{MetadataResponsePartition, MetadataResponseTopic};
use barnabas_wire::messages::{ListOffsetsResponse, MetadataResponse};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Partitions 0 to 3 of `t`; broker 1 leads all but partition 2, which has no leader.
fn metadata(address: &str) -> MetadataResponse {
    let partition = |partition_index| MetadataResponsePartition {
        partition_index,
        leader_id: if partition_index == 2 { -1 } else { 1 },
        ..Default::default()
    };
    let topic = MetadataResponseTopic {
        name: Some("t".into()),
        partitions: (0..4).map(partition).collect(),
        ..Default::default()
    };
    MetadataResponse { topics: vec![topic], ..nodes(&[(1, address)]) }
}

fn answer(request: &ListOffsetsRequest, code: impl Fn(i32) -> ErrorCode) -> ListOffsetsResponse {
    let topic = |topic: &ListOffsetsTopic| ListOffsetsTopicResponse {
        name: topic.name.clone(),
        partitions: topic
            .partitions
            .iter()
            .map(|row| ListOffsetsPartitionResponse {
                partition_index: row.partition_index,
                error_code: code(row.partition_index).code(),
                offset: 10 + i64::from(row.partition_index),
                ..Default::default()
            })
            .collect(),
        ..Default::default()
    };
    ListOffsetsResponse { topics: request.topics.iter().map(topic).collect(), ..Default::default() }
}

async fn cluster(code: impl Fn(i32) -> ErrorCode + Send + Sync + 'static) -> Cluster {
    let own = Arc::new(OnceLock::<String>::new());
    let known = own.clone();
    let address = fake_broker(&[(2, 7), (3, 12)], move |asked| match asked {
        RequestBody::Metadata(_) => Some(metadata(known.get()?).into()),
        RequestBody::ListOffsets(request) => Some(answer(&request, &code).into()),
        other => panic!("{other:?}"),
    })
    .await;
    own.set(address.clone()).expect("once");
    let mut config = ClusterConfig::new(&address, "test");
    config.deadline = Duration::from_millis(500);
    Cluster::new(config)
}

fn all() -> impl Iterator<Item = Partition> {
    (0..4).map(|index| ("t".to_owned(), index))
}

#[tokio::test]
async fn partitions_without_an_answer_do_not_hide_the_others() {
    let code = |partition| if partition == 1 { ErrorCode::KafkaStorageError } else { ErrorCode::None };
    let mut cluster = cluster(code).await;
    let outcomes = cluster.list_offsets(all(), -1).await;
    let words = |index: i32| match &outcomes[&("t".to_owned(), index)] {
        Ok(offset) => offset.to_string(),
        Err(error) => error.to_string(),
    };
    assert_eq!((words(0), words(3)), ("10".to_owned(), "13".to_owned()));
    let late = "asking for an offset of t-1 was not done within 500 ms; last answer: asking for an offset of t-1: \
                KAFKA_STORAGE_ERROR";
    assert_eq!(words(1), late);
    let late =
        "asking for an offset of t-2 was not done within 500 ms; last answer: t-2: LEADER_NOT_AVAILABLE";
    assert_eq!(words(2), late);
}

#[tokio::test]
async fn retriable_refusal_is_asked_again_and_a_final_one_is_not() {
    let was_asked = AtomicBool::new(false);
    let code = move |partition| match partition {
        0 if !was_asked.swap(true, Ordering::Relaxed) => ErrorCode::NotLeaderOrFollower,
        3 => ErrorCode::TopicAuthorizationFailed,
        _ => ErrorCode::None,
    };
    let mut cluster = cluster(code).await;
    let wanted = [0, 3].map(|index| ("t".to_owned(), index));
    let outcomes = cluster.list_offsets(wanted, -1).await;
    assert_eq!(outcomes[&("t".to_owned(), 0)].as_ref().ok(), Some(&Offset(10)));
    let refused = outcomes[&("t".to_owned(), 3)].as_ref().expect_err("refused");
    assert_eq!(refused.code(), Some(ErrorCode::TopicAuthorizationFailed));
}
