//! A member of a share group over the wire: heartbeats, fetches and acknowledgements, and a group's own configs.

use super::Client;
use super::patience::eventually;
use barnabas_base::TopicId;
use barnabas_wire::ApiKey;
use barnabas_wire::ResponseBody;
use barnabas_wire::messages::describe_configs_request::DescribeConfigsResource;
use barnabas_wire::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use barnabas_wire::messages::share_fetch_request::{AcknowledgementBatch, FetchPartition, FetchTopic};
use barnabas_wire::messages::{
    DescribeConfigsRequest, FindCoordinatorRequest, IncrementalAlterConfigsRequest, ShareFetchRequest,
    ShareFetchResponse, ShareGroupHeartbeatRequest,
};
use bytes::Bytes;
use std::time::{Duration, Instant};

/// The resource type of groups.
const GROUP: i8 = 32;

pub const ACCEPT: i8 = 1;
pub const RELEASE: i8 = 2;
pub const REJECT: i8 = 3;

pub fn set_group_configs(client: &mut Client, group: &str, configs: &[(&str, &str)]) {
    let set = configs.iter().map(|&(key, value)| AlterableConfig {
        name: key.into(),
        config_operation: 0,
        value: Some(value.into()),
        ..Default::default()
    });
    let resource = AlterConfigsResource {
        resource_type: GROUP,
        resource_name: group.into(),
        configs: set.collect(),
        ..Default::default()
    };
    let request = IncrementalAlterConfigsRequest { resources: vec![resource], ..Default::default() };
    let ResponseBody::IncrementalAlterConfigs(response) = client.call(request, 1) else {
        panic!("another response")
    };
    assert_eq!(response.responses[0].error_code, 0, "{response:?}");
}

/// Waits until this node has heard of configs that another may have been told.
pub fn await_group_configs(client: &mut Client, group: &str, configs: &[(&str, &str)]) {
    eventually("the group's configs are known", || {
        let resource = DescribeConfigsResource {
            resource_type: GROUP,
            resource_name: group.into(),
            configuration_keys: None,
            ..Default::default()
        };
        let request = DescribeConfigsRequest { resources: vec![resource], ..Default::default() };
        let ResponseBody::DescribeConfigs(response) = client.call(request, 4) else {
            panic!("another response")
        };
        let known = &response.results[0].configs;
        configs.iter().all(|(key, value)| {
            known.iter().any(|config| *config.name == **key && config.value.as_deref() == Some(value))
        })
    });
}

/// The one member that these tests have.
const MEMBER: &str = "AAAAAAAAAAAAAAAAAAAAAQ";

/// Joins a group that reads `topic`, at its coordinator, until partitions are assigned.
pub fn await_assignment(client: &mut Client, group: &str, topic: &str) {
    let until = Instant::now() + Duration::from_secs(20);
    let mut epoch = 0;
    loop {
        // Has the groups' topic made, where it is not there.
        let keys = vec![group.into()];
        client.call(FindCoordinatorRequest { coordinator_keys: keys, ..Default::default() }, 6);
        let request = ShareGroupHeartbeatRequest {
            group_id: group.into(),
            member_id: MEMBER.into(),
            member_epoch: epoch,
            subscribed_topic_names: (epoch == 0).then(|| vec![topic.into()]),
            ..Default::default()
        };
        let ResponseBody::ShareGroupHeartbeat(response) = client.call(request, 1) else {
            panic!("another response")
        };
        assert!(matches!(response.error_code, 0 | 14 | 15 | 16), "{response:?}");
        epoch = if response.error_code == 0 { response.member_epoch } else { 0 };
        if response.assignment.as_ref().is_some_and(|given| !given.topic_partitions.is_empty()) {
            return;
        }
        assert!(Instant::now() < until, "nothing was assigned: {response:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A member, and the partition 0 of one topic.
pub struct ShareMember {
    client: Client,
    group: String,
    id: String,
    topic: TopicId,
    session: i32,
}

impl ShareMember {
    /// Joins a group that reads `topic`, and has been told its partitions.
    pub fn join(mut client: Client, group: &str, topic: &str) -> Self {
        await_assignment(&mut client, group, topic);
        Self::joined(client, group, topic)
    }

    /// A member that [`await_assignment`] has brought into the group, with the leader of its partition.
    pub fn joined(mut leader: Client, group: &str, topic: &str) -> Self {
        let topic = leader.topic_id(topic);
        Self { client: leader, group: group.to_owned(), id: MEMBER.to_owned(), topic, session: 0 }
    }

    /// Fetches once; says what becomes of runs of records (first, last, word) that were fetched before.
    pub fn fetch(&mut self, words: &[(i64, i64, i8)]) -> Vec<(i64, i64, i16)> {
        let batches = words.iter().map(|&(first_offset, last_offset, word)| AcknowledgementBatch {
            first_offset,
            last_offset,
            acknowledge_types: vec![word],
            ..Default::default()
        });
        let request = self.request(batches.collect(), 1 << 20);
        let ResponseBody::ShareFetch(response) = self.client.call(request, 2) else {
            panic!("another response")
        };
        assert_eq!(response.error_code, 0, "{response:?}");
        self.session += 1;
        acquired(&response)
    }

    fn request(
        &self,
        acknowledgement_batches: Vec<AcknowledgementBatch>,
        max_bytes: i32,
    ) -> ShareFetchRequest {
        let partition = FetchPartition { partition_index: 0, acknowledgement_batches, ..Default::default() };
        let topic = FetchTopic { topic_id: self.topic, partitions: vec![partition], ..Default::default() };
        ShareFetchRequest {
            group_id: Some(self.group.as_str().into()),
            member_id: Some(self.id.as_str().into()),
            share_session_epoch: self.session,
            max_wait_ms: 200,
            min_bytes: 1,
            max_bytes,
            max_records: 500,
            batch_size: 500,
            topics: vec![topic],
            ..Default::default()
        }
    }

    /// Sends a fetch of so many bytes without waiting for the ones before, in a session of its own.
    pub fn send(&mut self, max_bytes: i32) {
        self.session = 0;
        self.client.send(self.request(Vec::new(), max_bytes), 2);
    }

    /// Bytes of records in the next answer.
    pub fn receive(&mut self) -> usize {
        let (_, ResponseBody::ShareFetch(response)) = self.client.receive(ApiKey::ShareFetch, 2) else {
            panic!("another response")
        };
        assert_eq!(response.error_code, 0, "{response:?}");
        let partitions = response.responses.iter().flat_map(|topic| &topic.partitions);
        partitions.filter_map(|partition| partition.records.as_ref()).map(Bytes::len).sum()
    }

    /// Fetches until something comes.
    pub fn fetch_some(&mut self, words: &[(i64, i64, i8)]) -> Vec<(i64, i64, i16)> {
        let until = Instant::now() + Duration::from_secs(20);
        let mut some = self.fetch(words);
        while some.is_empty() {
            assert!(Instant::now() < until, "nothing comes");
            some = self.fetch(&[]);
        }
        some
    }
}

/// First, last and delivery count.
fn acquired(response: &ShareFetchResponse) -> Vec<(i64, i64, i16)> {
    let partitions = response.responses.iter().flat_map(|topic| &topic.partitions);
    let mut all = Vec::new();
    for partition in partitions {
        assert_eq!((partition.error_code, partition.acknowledge_error_code), (0, 0), "{partition:?}");
        let runs = partition.acquired_records.iter();
        all.extend(runs.map(|run| (run.first_offset, run.last_offset, run.delivery_count)));
    }
    all
}
