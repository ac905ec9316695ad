//! The messages about a topic that does not exist.

use super::finding;
use crate::fake_broker::{fake_broker, nodes};
use barnabas_base::ErrorCode;
use barnabas_client::{Cluster, ClusterConfig};
use barnabas_wire::RequestBody;
use barnabas_wire::messages::MetadataResponse;
use barnabas_wire::messages::metadata_response::{MetadataResponsePartition, MetadataResponseTopic};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A cluster without the topic. It makes it at the `made_at`th question that allows so.
async fn cluster(made_at: u32) -> (Cluster, Arc<AtomicU32>) {
    let asked = Arc::new(AtomicU32::new(0));
    let count = asked.clone();
    let address = fake_broker(&[(3, 12)], move |request| {
        let RequestBody::Metadata(request) = request else { panic!("{request:?}") };
        let allowed = u32::from(request.allow_auto_topic_creation);
        let is_there = count.fetch_add(allowed, Ordering::Relaxed) + allowed >= made_at;
        let partitions = vec![MetadataResponsePartition { leader_id: 1, ..Default::default() }];
        let missing = ErrorCode::UnknownTopicOrPartition.code();
        let topic = MetadataResponseTopic {
            name: Some("t".into()),
            error_code: if is_there { 0 } else { missing },
            partitions: if is_there { partitions } else { Vec::new() },
            ..Default::default()
        };
        Some(MetadataResponse { topics: vec![topic], ..nodes(&[(1, "127.0.0.1:1")]) }.into())
    })
    .await;
    let config =
        ClusterConfig { retry_backoff: Duration::from_millis(1), ..ClusterConfig::new(&address, "test") };
    (Cluster::new(config), asked)
}

#[tokio::test]
async fn topic_that_the_cluster_makes_is_reported() {
    let (mut cluster, asked) = cluster(3).await;
    let mut said = Vec::new();
    finding(&mut cluster, "t", true, (Duration::ZERO, None), |line| said.push(line.to_owned()))
        .await
        .expect("made");
    assert_eq!(asked.load(Ordering::Relaxed), 3);
    assert_eq!(said[0], "topic t does not exist; asking the cluster to create it");
    assert!(said[1].starts_with("topic t still does not exist"), "{said:?}");
    assert_eq!(said[2..], ["topic t was created, partitions: 1"]);
}

#[tokio::test]
async fn topic_that_may_not_be_made_is_waited_for() {
    let (mut cluster, asked) = cluster(1).await;
    let mut said = Vec::new();
    let deadline = Some(Instant::now() + Duration::from_millis(50));
    let ended =
        finding(&mut cluster, "t", false, (Duration::ZERO, deadline), |line| said.push(line.to_owned()))
            .await;
    assert_eq!(ended.expect_err("missing").code(), Some(ErrorCode::UnknownTopicOrPartition));
    assert_eq!(said[0], "topic t does not exist; waiting for it");
    assert_eq!(asked.load(Ordering::Relaxed), 0, "it was not asked to be made");
}

#[tokio::test]
async fn topic_that_is_there_is_not_talked_about() {
    let (mut cluster, _) = cluster(0).await;
    finding(&mut cluster, "t", true, (Duration::ZERO, None), |line| panic!("{line}")).await.expect("there");
}
