//! The APIs that ask for each of their resources: each under a client without any ACL.

use super::codes;
use crate::share::{Connection, ShareSessions};
use crate::testing::{Fixture, ORDERS, opener, share_groups};
use crate::*;
use barnabas_wire::messages::*;
use barnabas_wire::{ApiKey, RequestBody, Str};
use bytes::Bytes;

/// A value of a generated type, of which only some fields matter.
macro_rules! of {
    ($($path:ident)::+ { $($field:ident $(: $value:expr)?),* $(,)? }) => {
        $($path)::+ { $($field $(: $value)?,)* ..$($path)::+::default() }
    };
}

const GROUP: Str = Str::from_static("g");
const TOPIC: Str = Str::from_static("orders");
const ID: Str = Str::from_static("x");

/// Requests whose answer names the error once for each thing that they name.
pub(super) fn filled(key: ApiKey) -> Option<RequestBody> {
    let topic_id = ORDERS;
    Some(match key {
        ApiKey::WriteTxnMarkers => {
            let topics = vec![of!(write_txn_markers_request::WritableTxnMarkerTopic {
                name: TOPIC,
                partition_indexes: vec![0]
            })];
            let markers = vec![of!(write_txn_markers_request::WritableTxnMarker { topics })];
            of!(WriteTxnMarkersRequest { markers }).into()
        }
        ApiKey::AlterReplicaLogDirs => {
            let topics = vec![of!(alter_replica_log_dirs_request::AlterReplicaLogDirTopic {
                name: TOPIC,
                partitions: vec![0]
            })];
            let dirs = vec![of!(alter_replica_log_dirs_request::AlterReplicaLogDir { topics })];
            of!(AlterReplicaLogDirsRequest { dirs }).into()
        }
        ApiKey::InitializeShareGroupState => {
            let partitions = vec![initialize_share_group_state_request::PartitionData::default()];
            let topics =
                vec![of!(initialize_share_group_state_request::InitializeStateData { topic_id, partitions })];
            of!(InitializeShareGroupStateRequest { group_id: GROUP, topics }).into()
        }
        ApiKey::ReadShareGroupState => {
            let partitions = vec![read_share_group_state_request::PartitionData::default()];
            let topics = vec![of!(read_share_group_state_request::ReadStateData { topic_id, partitions })];
            of!(ReadShareGroupStateRequest { group_id: GROUP, topics }).into()
        }
        ApiKey::WriteShareGroupState => {
            let partitions = vec![write_share_group_state_request::PartitionData::default()];
            let topics = vec![of!(write_share_group_state_request::WriteStateData { topic_id, partitions })];
            of!(WriteShareGroupStateRequest { group_id: GROUP, topics }).into()
        }
        ApiKey::DeleteShareGroupState => {
            let partitions = vec![delete_share_group_state_request::PartitionData::default()];
            let topics =
                vec![of!(delete_share_group_state_request::DeleteStateData { topic_id, partitions })];
            of!(DeleteShareGroupStateRequest { group_id: GROUP, topics }).into()
        }
        ApiKey::ReadShareGroupStateSummary => {
            let partitions = vec![read_share_group_state_summary_request::PartitionData::default()];
            let topics = vec![of!(read_share_group_state_summary_request::ReadStateSummaryData {
                topic_id,
                partitions
            })];
            of!(ReadShareGroupStateSummaryRequest { group_id: GROUP, topics }).into()
        }
        ApiKey::CreateAcls => {
            of!(CreateAclsRequest { creations: vec![create_acls_request::AclCreation::default()] }).into()
        }
        ApiKey::DeleteAcls => {
            of!(DeleteAclsRequest { filters: vec![delete_acls_request::DeleteAclsFilter::default()] }).into()
        }
        ApiKey::AlterClientQuotas => {
            let entries = vec![alter_client_quotas_request::EntryData::default()];
            of!(AlterClientQuotasRequest { entries }).into()
        }
        ApiKey::AlterUserScramCredentials => {
            let deletions = vec![alter_user_scram_credentials_request::ScramCredentialDeletion::default()];
            of!(AlterUserScramCredentialsRequest { deletions }).into()
        }
        _ => return None,
    })
}

/// Asks, and says what was denied with which codes.
struct Asking(Fixture, Vec<String>, Mode);

/// What the authorizer does with what it denies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Enforces,
    /// Shadow mode.
    Reports,
}

impl Asking {
    fn new(mode: Mode) -> Self {
        let mut fixture = share_groups();
        let state = crate::testing::topic("__transaction_state", crate::testing::TRANSACTIONS);
        fixture.add(&[state, crate::testing::partition(crate::testing::TRANSACTIONS, 0, 1)]);
        match mode {
            Mode::Enforces => fixture.allow(&[]),
            Mode::Reports => fixture.allow_in_shadow(&[]),
        }
        Self(fixture, Vec::new(), mode)
    }

    /// One question; `$plan` gets the context.
    fn ask<W, A: std::fmt::Debug>(&mut self, plan: impl FnOnce(&Context<'_>) -> Plan<W, A>) {
        let answer = match plan(&self.0.ctx()) {
            Plan::Answer(answer) => format!("{answer:?}"),
            Plan::Work(_) => "error_code: -999 (work)".to_owned(),
        };
        self.said(&codes(&answer));
    }

    fn said(&mut self, codes: &str) {
        let denied = self.0.judged.as_ref().unwrap().denied.take();
        self.1.push(format!("{denied} → {codes}"));
    }

    /// `is_empty`: nothing goes to a client without ACLs.
    fn hides(&self, is_empty: bool) {
        assert_eq!(is_empty, self.2 == Mode::Enforces);
    }
}

/// What was denied with which codes, for each request.
pub(super) fn denied(key: ApiKey, mode: Mode) -> Vec<String> {
    let mut asking = Asking::new(mode);
    let is_asked = of_data(key, &mut asking)
        || of_groups(key, &mut asking)
        || of_share_groups(key, &mut asking)
        || of_transactions(key, &mut asking)
        || of_tokens(key, &mut asking)
        || of_administrators(key, &mut asking);
    assert!(is_asked, "{key}: no request is asked in gate/tests/each.rs");
    asking.1
}

fn of_data(key: ApiKey, asking: &mut Asking) -> bool {
    let version = key.stable_versions().max;
    match key {
        ApiKey::Produce => {
            let mut records = vec![0; 61];
            (records[16], records[22]) = (2, 0x10);
            for records in [Bytes::from(records), Bytes::from_static(b"records")] {
                let partition_data =
                    vec![of!(produce_request::PartitionProduceData { records: Some(records) })];
                let topic = of!(produce_request::TopicProduceData { name: TOPIC, partition_data });
                let request =
                    of!(ProduceRequest { acks: 1, transactional_id: Some(ID), topic_data: vec![topic] });
                asking.ask(|ctx| k00_produce::plan(request, 12, ctx));
            }
        }
        ApiKey::Fetch => {
            for replica_id in [-1, 2] {
                let partitions = vec![fetch_request::FetchPartition::default()];
                let topics = vec![of!(fetch_request::FetchTopic { topic: TOPIC, partitions })];
                let request = of!(FetchRequest { replica_id, max_bytes: 1, topics, session_epoch: -1 });
                let mut sessions = k01_fetch::FetchSessions::new(1, 0, 1);
                let plan = k01_fetch::plan(request, 12, &mut sessions, &asking.0.ctx());
                let Plan::Work(work) = plan else { panic!("no work") };
                asking.hides(work.parts.is_empty());
                let now = barnabas_base::TimestampMs(0);
                let response = work.pending.respond(&mut sessions, || 0, now, || Box::new(Unlimited));
                asking.said(&codes(&format!("{response:?}")));
            }
        }
        ApiKey::ListOffsets => {
            let partitions = vec![of!(list_offsets_request::ListOffsetsPartition { timestamp: -1 })];
            let topics = vec![of!(list_offsets_request::ListOffsetsTopic { name: TOPIC, partitions })];
            let request = of!(ListOffsetsRequest { replica_id: -1, topics });
            asking.ask(|ctx| k02_list_offsets::plan(request, version, ctx));
        }
        ApiKey::Metadata => {
            let topics = Some(vec![of!(metadata_request::MetadataRequestTopic { name: Some(TOPIC) })]);
            asking.ask(|ctx| k03_metadata::plan(of!(MetadataRequest { topics }), version, ctx));
        }
        ApiKey::DeleteRecords => {
            let partitions = vec![delete_records_request::DeleteRecordsPartition::default()];
            let topics = vec![of!(delete_records_request::DeleteRecordsTopic { name: TOPIC, partitions })];
            asking.ask(|ctx| k21_delete_records::plan(of!(DeleteRecordsRequest { topics }), ctx));
        }
        ApiKey::OffsetForLeaderEpoch => {
            let partitions = vec![offset_for_leader_epoch_request::OffsetForLeaderPartition::default()];
            let topic =
                of!(offset_for_leader_epoch_request::OffsetForLeaderTopic { topic: TOPIC, partitions });
            let request = of!(OffsetForLeaderEpochRequest { topics: vec![topic] });
            asking.ask(|ctx| k23_offset_for_leader_epoch::plan(request, version, ctx));
        }
        ApiKey::DescribeProducers => {
            let topic =
                of!(describe_producers_request::TopicRequest { name: TOPIC, partition_indexes: vec![0] });
            let request = of!(DescribeProducersRequest { topics: vec![topic] });
            asking.ask(|ctx| k61_describe_producers::plan(request, ctx));
        }
        ApiKey::DescribeTopicPartitions => {
            let topics = vec![of!(describe_topic_partitions_request::TopicRequest { name: TOPIC })];
            let request = of!(DescribeTopicPartitionsRequest { topics });
            asking.ask(|ctx| Plan::<(), _>::Answer(k75_describe_topic_partitions::answer(&request, ctx)));
        }
        _ => return false,
    }
    true
}

fn of_groups(key: ApiKey, asking: &mut Asking) -> bool {
    let version = key.stable_versions().max;
    match key {
        ApiKey::OffsetCommit => {
            let partitions = vec![offset_commit_request::OffsetCommitRequestPartition::default()];
            let topics =
                vec![of!(offset_commit_request::OffsetCommitRequestTopic { name: TOPIC, partitions })];
            let request = of!(OffsetCommitRequest { group_id: GROUP, topics });
            asking.ask(|ctx| k08_offset_commit::plan(request, 9, ctx));
        }
        ApiKey::OffsetFetch => {
            let groups = vec![of!(offset_fetch_request::OffsetFetchRequestGroup { group_id: GROUP })];
            asking.ask(|ctx| k09_offset_fetch::plan(of!(OffsetFetchRequest { groups }), version, ctx));
        }
        ApiKey::FindCoordinator => {
            let share_key = Str::from(format!("g:{ORDERS}:0"));
            for (key_type, name) in [(0, GROUP), (1, ID), (2, share_key)] {
                let request = of!(FindCoordinatorRequest { key_type, coordinator_keys: vec![name] });
                asking.ask(|ctx| k10_find_coordinator::plan(request, version, ctx));
            }
        }
        ApiKey::DescribeGroups => {
            let request = of!(DescribeGroupsRequest { groups: vec![GROUP] });
            asking.ask(|ctx| k15_describe_groups::plan(request, version, ctx));
        }
        ApiKey::ListGroups => {
            let plan = k16_list_groups::plan(ListGroupsRequest::default(), version, &asking.0.ctx());
            let Plan::Work(mut work) = plan else { panic!("no work") };
            let groups = vec![of!(list_groups_response::ListedGroup { group_id: GROUP })];
            let ctx = asking.0.ctx();
            work.pending.add(of!(ListGroupsResponse { groups }), &AnswerRoom::unlimited(), &ctx.access);
            asking.hides(work.pending.respond().groups.is_empty());
            asking.said("hidden");
        }
        ApiKey::DeleteGroups => {
            let request = of!(DeleteGroupsRequest { groups_names: vec![GROUP] });
            asking.ask(|ctx| k42_delete_groups::plan(request, version, ctx));
        }
        ApiKey::OffsetDelete => {
            let request = of!(OffsetDeleteRequest { group_id: GROUP });
            asking.ask(|ctx| k47_offset_delete::plan(request, ctx));
        }
        ApiKey::ConsumerGroupHeartbeat => {
            let request = of!(ConsumerGroupHeartbeatRequest { group_id: GROUP });
            asking.ask(|ctx| k68_consumer_group_heartbeat::plan(request, ctx));
        }
        ApiKey::ConsumerGroupDescribe => {
            let request = of!(ConsumerGroupDescribeRequest { group_ids: vec![GROUP] });
            asking.ask(|ctx| k69_consumer_group_describe::plan(request, ctx));
        }
        ApiKey::StreamsGroupHeartbeat => {
            let request = of!(StreamsGroupHeartbeatRequest { group_id: GROUP });
            asking.ask(|ctx| k88_streams_group_heartbeat::plan(request, ctx));
        }
        ApiKey::StreamsGroupDescribe => {
            let request = of!(StreamsGroupDescribeRequest { group_ids: vec![GROUP] });
            asking.ask(|ctx| k89_streams_group_describe::plan(request, ctx));
        }
        ApiKey::StreamsGroupTopologyDescriptionUpdate => {
            let request = of!(StreamsGroupTopologyDescriptionUpdateRequest { group_id: GROUP });
            asking.ask(|ctx| k93_streams_group_topology_description_update::plan(request, ctx));
        }
        _ => return false,
    }
    true
}

fn of_share_groups(key: ApiKey, asking: &mut Asking) -> bool {
    let version = key.stable_versions().max;
    let (group_id, member_id) = (Some(GROUP), Some(Str::from_static("m")));
    match key {
        ApiKey::ShareGroupHeartbeat => {
            let request =
                of!(ShareGroupHeartbeatRequest { group_id: GROUP, member_id: Str::from_static("m") });
            asking.ask(|ctx| k76_share_group_heartbeat::plan(request, ctx));
        }
        ApiKey::ShareGroupDescribe => {
            let request = of!(ShareGroupDescribeRequest { group_ids: vec![GROUP] });
            asking.ask(|ctx| k77_share_group_describe::plan(request, ctx));
        }
        ApiKey::ShareFetch => {
            let request = of!(ShareFetchRequest { group_id, member_id });
            let mut sessions = ShareSessions::new(1);
            let opener = opener(Connection(1));
            asking.ask(|ctx| k78_share_fetch::plan(&request, version, &mut sessions, &opener, ctx));
        }
        ApiKey::ShareAcknowledge => {
            let request = of!(ShareAcknowledgeRequest { group_id, member_id });
            let mut sessions = ShareSessions::new(1);
            asking.ask(|ctx| k79_share_acknowledge::plan(&request, version, &mut sessions, ctx));
        }
        ApiKey::DescribeShareGroupOffsets => {
            let group = of!(describe_share_group_offsets_request::DescribeShareGroupOffsetsRequestGroup {
                group_id: GROUP
            });
            let request = of!(DescribeShareGroupOffsetsRequest { groups: vec![group] });
            asking.ask(|ctx| k90_describe_share_group_offsets::plan(request, version, ctx));
        }
        ApiKey::AlterShareGroupOffsets => {
            let request = of!(AlterShareGroupOffsetsRequest { group_id: GROUP });
            asking.ask(|ctx| k91_alter_share_group_offsets::plan(request, ctx));
        }
        ApiKey::DeleteShareGroupOffsets => {
            let request = of!(DeleteShareGroupOffsetsRequest { group_id: GROUP });
            asking.ask(|ctx| k92_delete_share_group_offsets::plan(request, ctx));
        }
        _ => return false,
    }
    true
}

fn of_transactions(key: ApiKey, asking: &mut Asking) -> bool {
    let version = key.stable_versions().max;
    match key {
        ApiKey::InitProducerId => {
            for transactional_id in [Some(ID), None] {
                let request = of!(InitProducerIdRequest { transactional_id });
                asking.ask(|ctx| k22_init_producer_id::plan(request, ctx));
            }
        }
        ApiKey::AddPartitionsToTxn => {
            let topic = of!(add_partitions_to_txn_request::AddPartitionsToTxnTopic {
                name: TOPIC,
                partitions: vec![0]
            });
            let topics = vec![topic];
            let request = of!(AddPartitionsToTxnRequest {
                v3_and_below_transactional_id: ID,
                v3_and_below_topics: topics
            });
            asking.ask(|ctx| k24_add_partitions_to_txn::plan(request, 3, ctx));
            let request = AddPartitionsToTxnRequest::default();
            asking.ask(|ctx| k24_add_partitions_to_txn::plan(request, version, ctx));
        }
        ApiKey::TxnOffsetCommit => {
            let partitions = vec![txn_offset_commit_request::TxnOffsetCommitRequestPartition::default()];
            let topic =
                of!(txn_offset_commit_request::TxnOffsetCommitRequestTopic { name: TOPIC, partitions });
            let request =
                of!(TxnOffsetCommitRequest { transactional_id: ID, group_id: GROUP, topics: vec![topic] });
            asking.ask(|ctx| k28_txn_offset_commit::plan(request, 5, ctx));
        }
        ApiKey::DescribeTransactions => {
            let request = of!(DescribeTransactionsRequest { transactional_ids: vec![ID] });
            asking.ask(|ctx| k65_describe_transactions::plan(request, ctx));
        }
        ApiKey::ListTransactions => {
            let plan = k66_list_transactions::plan(ListTransactionsRequest::default(), &asking.0.ctx());
            let Plan::Work(mut work) = plan else { panic!("no work") };
            let states = vec![of!(list_transactions_response::TransactionState { transactional_id: ID })];
            let response = of!(ListTransactionsResponse { transaction_states: states });
            work.pending.add(response, &AnswerRoom::unlimited(), &asking.0.ctx().access);
            asking.hides(work.pending.respond().transaction_states.is_empty());
            asking.said("hidden");
        }
        _ => return false,
    }
    true
}

/// Whether the client may ask is the matter of its connection; resources are asked for where it names another's.
fn of_tokens(key: ApiKey, asking: &mut Asking) -> bool {
    let route = Route::ToBroker;
    match key {
        ApiKey::CreateDelegationToken => {
            asking.0.client.is_authenticated = true;
            let (kind, name) = (Some(Str::from("User")), Some(Str::from("carol")));
            let request =
                of!(CreateDelegationTokenRequest { owner_principal_type: kind, owner_principal_name: name });
            asking.ask(|ctx| k38_create_delegation_token::plan(request, 3, route, ctx));
        }
        ApiKey::RenewDelegationToken => {
            let refused = k39_renew_delegation_token::refuse(route, &asking.0.ctx());
            asking.said(&codes(&format!("{refused:?}")));
        }
        ApiKey::ExpireDelegationToken => {
            let refused = k40_expire_delegation_token::refuse(route, &asking.0.ctx());
            asking.said(&codes(&format!("{refused:?}")));
        }
        ApiKey::DescribeDelegationToken => {
            asking.0.client.is_authenticated = true;
            let owner = Str::from("User:carol");
            asking.0.add(&[of!(DelegationTokenRecord {
                token_id: ID,
                owner,
                requester: Str::from("User:carol")
            })
            .into()]);
            let request = of!(DescribeDelegationTokenRequest { owners: None });
            let hmac = |_: &str| Bytes::new();
            let response =
                k41_describe_delegation_token::answer(&request, 3, route, Some(&hmac), &asking.0.ctx());
            asking.hides(response.tokens.is_empty());
            asking.said("hidden");
        }
        _ => return false,
    }
    true
}

/// A topic, a group, a broker.
const RESOURCES: [(i8, Str); 3] = [(2, TOPIC), (32, GROUP), (4, Str::from_static("1"))];

fn of_administrators(key: ApiKey, asking: &mut Asking) -> bool {
    let version = key.stable_versions().max;
    match key {
        ApiKey::CreateTopics => {
            let topics = vec![of!(create_topics_request::CreatableTopic { name: TOPIC })];
            asking.ask(|ctx| k19_create_topics::plan(of!(CreateTopicsRequest { topics }), version, ctx));
        }
        ApiKey::DeleteTopics => {
            let topics = vec![of!(delete_topics_request::DeleteTopicState { name: Some(TOPIC) })];
            asking.ask(|ctx| k20_delete_topics::plan(of!(DeleteTopicsRequest { topics }), version, ctx));
        }
        ApiKey::CreatePartitions => {
            let topics = vec![of!(create_partitions_request::CreatePartitionsTopic { name: TOPIC })];
            asking.ask(|ctx| k37_create_partitions::plan(of!(CreatePartitionsRequest { topics }), ctx));
        }
        ApiKey::DescribeConfigs => {
            let resource = |(resource_type, resource_name)| {
                of!(describe_configs_request::DescribeConfigsResource { resource_type, resource_name })
            };
            let resources = RESOURCES.map(resource).into();
            let request = of!(DescribeConfigsRequest { resources });
            asking.ask(|ctx| Plan::<(), _>::Answer(k32_describe_configs::answer(&request, version, ctx)));
            // The metrics, which are no resource of Kafka's.
            let refusal = k32_describe_configs::metrics_refusal(&asking.0.ctx());
            asking.hides(refusal.is_some());
            asking.said(&refusal.map_or(0, |refusal| refusal.code.code()).to_string());
        }
        ApiKey::AlterConfigs => {
            let resource = |(resource_type, resource_name)| {
                of!(alter_configs_request::AlterConfigsResource { resource_type, resource_name })
            };
            let request = of!(AlterConfigsRequest { resources: RESOURCES.map(resource).into() });
            asking.ask(|ctx| k33_alter_configs::plan(request, Route::ToBroker, ctx));
        }
        ApiKey::IncrementalAlterConfigs => {
            let resource = |(resource_type, resource_name)| {
                of!(incremental_alter_configs_request::AlterConfigsResource { resource_type, resource_name })
            };
            let request = of!(IncrementalAlterConfigsRequest { resources: RESOURCES.map(resource).into() });
            asking.ask(|ctx| k44_incremental_alter_configs::plan(request, Route::ThroughBroker, ctx));
        }
        ApiKey::DescribeCluster => {
            let request = of!(DescribeClusterRequest { include_cluster_authorized_operations: true });
            let response = k60_describe_cluster::answer(
                &request,
                0,
                k18_api_versions::Listener::Broker,
                barnabas_base::BrokerId(1),
                &asking.0.ctx(),
            );
            assert_eq!(response.error_code, 0);
            asking.hides(response.cluster_authorized_operations == 0);
            asking.said("no operations");
        }
        _ => return false,
    }
    true
}
