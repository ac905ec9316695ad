//! Dispatch: from a decoded request to the code that handles it, and back to a response. One line for each API.
//!
//! core/api says what a request asks of this node; this file and its siblings send it there and hand back what came of
//! it. The part up to the first wait runs before the connection's next request is looked at: it is where work is sent
//! to its owners, so that what a client sent first is placed first.
//!
//! Produce path 1½ of 5. Before: connection.rs. After: core/api/src/k00_produce.rs, requests/produce.rs.

mod call;
mod cluster;
pub mod connection;
mod decode;
mod fetch;
mod groups;
mod offsets;
pub mod produce;
pub mod quorum;
pub mod session;
mod share;
mod transactions;

use crate::node::cluster::callers::Caller;
use barnabas_api::k18_api_versions::{self, Listener};
use barnabas_api::{Client, Gate, Rule, gate, rule};
use barnabas_api::{k17_sasl_handshake, k36_sasl_authenticate};
use barnabas_wire::messages::{RequestBody, RequestHeader};
use barnabas_wire::{ApiKey, VersionRange};
use call::audited::Audited;
use call::{Answer, Call, Room, Started, Starting, now};
use cluster::{access, admin, log_dirs, telemetry};
use groups::streams;
use session::Session;
use share::{fetch as share_fetch, groups as share_groups, state as share_state};
use std::rc::Rc;
use std::sync::Arc;

/// Whether this node answers `api` on the connection's listener.
pub fn is_served(session: &Session, api: ApiKey) -> bool {
    k18_api_versions::is_answered(api, call::listener_of(session))
}

/// The versions that are served: those that are advertised.
pub fn versions(api: ApiKey) -> VersionRange {
    api.stable_versions()
}

/// The answer to ApiVersions in an unknown version, encoded as version 0.
pub fn unsupported_api_versions() -> Answer {
    Answer::Reply(k18_api_versions::unsupported_version().into())
}

/// Starts a request. What has to happen in the order of the requests has happened when this future is done.
pub fn start(session: Rc<Session>, header: RequestHeader, body: RequestBody) -> Starting {
    let client = session.client(header.client_id.as_ref().map(|id| id.as_str()));
    start_as(false, client, session, header, body)
}

/// `is_forwarded`: another broker forwards it for this client.
fn start_as(
    is_forwarded: bool,
    client: Arc<Client>,
    session: Rc<Session>,
    header: RequestHeader,
    body: RequestBody,
) -> Starting {
    let room = Room::of(&session);
    let caller = match is_forwarded {
        true => Caller::forwarded(&session.node, &client),
        false => Caller::of(&session.node, &session.callers, &client),
    };
    let (api, version) = (body.key(), header.request_api_version);
    let call = Call { session, client, api, version, room, is_forwarded, caller };
    let audited = Audited::of(&call, &body);
    let starting = start_call(call, body);
    match audited {
        Some(audited) => audited.follow(starting),
        None => starting,
    }
}

fn start_call(call: Call, body: RequestBody) -> Starting {
    if let Some(denied) = denied(&call, &body) {
        return now(denied);
    }
    let (call, body) = match call.listener() {
        Listener::Broker => (call, body),
        Listener::Controller => match quorum::start(call, body) {
            Ok(started) => return now(started),
            Err(others) => others,
        },
    };
    match body {
        RequestBody::Produce(request) => Box::pin(produce::produce(call, *request)),
        RequestBody::Fetch(request) => Box::pin(fetch::fetch(call, *request)),
        RequestBody::ListOffsets(request) => Box::pin(offsets::list_offsets(call, *request)),
        RequestBody::OffsetForLeaderEpoch(request) => {
            Box::pin(offsets::offset_for_leader_epoch(call, *request))
        }
        RequestBody::DeleteRecords(request) => Box::pin(offsets::delete_records(call, *request)),
        RequestBody::DescribeProducers(request) => Box::pin(offsets::describe_producers(call, *request)),
        RequestBody::SaslHandshake(_) => now(Started::reply(k17_sasl_handshake::out_of_place())),
        RequestBody::SaslAuthenticate(_) => now(Started::reply(k36_sasl_authenticate::out_of_place())),
        RequestBody::ApiVersions(request) => now(cluster::api_versions(&call, &request)),
        RequestBody::Metadata(request) => now(cluster::metadata(call, *request)),
        RequestBody::FindCoordinator(request) => now(cluster::find_coordinator(&call, *request)),
        RequestBody::DescribeConfigs(request) => now(cluster::describe_configs(&call, *request)),
        RequestBody::DescribeCluster(request) => now(cluster::describe_cluster(&call, &request)),
        RequestBody::DescribeTopicPartitions(request) => {
            now(cluster::describe_topic_partitions(&call, &request))
        }
        RequestBody::ListConfigResources(request) => now(cluster::list_config_resources(&call, &request)),
        RequestBody::GetTelemetrySubscriptions(request) => now(telemetry::subscriptions(&call, &request)),
        RequestBody::PushTelemetry(request) => now(telemetry::push(call, *request)),
        RequestBody::CreateTopics(request) => now(admin::create_topics(call, *request)),
        RequestBody::DeleteTopics(request) => now(admin::delete_topics(call, *request)),
        RequestBody::CreatePartitions(request) => now(admin::create_partitions(call, *request)),
        RequestBody::AlterConfigs(request) => now(admin::alter_configs(call, *request)),
        RequestBody::IncrementalAlterConfigs(request) => {
            now(admin::incremental_alter_configs(call, *request))
        }
        RequestBody::ElectLeaders(request) => now(admin::elect_leaders(call, *request)),
        RequestBody::UpdateFeatures(request) => now(admin::update_features(call, *request)),
        RequestBody::AlterPartitionReassignments(request) => {
            now(admin::alter_partition_reassignments(call, *request))
        }
        RequestBody::ListPartitionReassignments(request) => {
            now(cluster::list_partition_reassignments(&call, &request))
        }
        RequestBody::DescribeQuorum(request) => now(admin::describe_quorum(call, *request)),
        RequestBody::UnregisterBroker(request) => now(admin::unregister_broker(call, *request)),
        RequestBody::UnregisterController(request) => now(admin::unregister_controller(call, *request)),
        RequestBody::AddRaftVoter(request) => now(admin::change_voters(call, *request)),
        RequestBody::RemoveRaftVoter(request) => now(admin::change_voters(call, *request)),
        RequestBody::AlterReplicaLogDirs(request) => now(log_dirs::alter_replica_log_dirs(call, *request)),
        RequestBody::DescribeLogDirs(request) => now(log_dirs::describe_log_dirs(call, *request)),
        others => start_access(call, others),
    }
}

/// Who may do what, and how much of it.
fn start_access(call: Call, body: RequestBody) -> Starting {
    match body {
        RequestBody::DescribeAcls(request) => now(access::describe_acls(&call, &request)),
        RequestBody::CreateAcls(request) => now(access::create_acls(call, *request)),
        RequestBody::DeleteAcls(request) => now(access::delete_acls(call, *request)),
        RequestBody::CreateDelegationToken(request) => now(access::create_delegation_token(call, *request)),
        RequestBody::RenewDelegationToken(request) => now(access::renew_delegation_token(call, *request)),
        RequestBody::ExpireDelegationToken(request) => now(access::expire_delegation_token(call, *request)),
        RequestBody::DescribeDelegationToken(request) => {
            now(access::describe_delegation_token(&call, &request))
        }
        RequestBody::DescribeClientQuotas(request) => now(access::describe_client_quotas(&call, &request)),
        RequestBody::AlterClientQuotas(request) => now(access::alter_client_quotas(call, *request)),
        RequestBody::DescribeUserScramCredentials(request) => {
            now(access::describe_user_scram_credentials(&call, &request))
        }
        RequestBody::AlterUserScramCredentials(request) => {
            now(access::alter_user_scram_credentials(call, *request))
        }
        coordinated => start_coordinated(call, coordinated),
    }
}

/// What becomes of a request that its client may not send at all. `None`: it goes on.
///
/// Before the ACLs are known, a client that is no super user has its connection closed: it comes again. Kafka answers
/// UNKNOWN_SERVER_ERROR (`AuthorizerNotReadyException`), which ends some clients.
fn denied(call: &Call, body: &RequestBody) -> Option<Started> {
    let listener = call.listener();
    let needs_nothing = || rule(call.api, listener) == Some(Rule::Nothing);
    if !call.caller.passes_early(&call.session.node) && !needs_nothing() {
        return Some(Started::Answer(Answer::Close));
    }
    match gate(body, call.version, listener, &call.access()) {
        Gate::Pass => None,
        Gate::Refuse(response) => {
            // In an Envelope it is another client that is denied.
            call.session.is_denied.set(!call.is_forwarded);
            Some(Started::Answer(Answer::Reply(response)))
        }
        Gate::Close => Some(Started::Answer(Answer::Close)),
    }
}

/// What a group's or a transaction's coordinator decides.
fn start_coordinated(call: Call, body: RequestBody) -> Starting {
    match body {
        RequestBody::JoinGroup(request) => groups::join_group(call, *request),
        RequestBody::SyncGroup(request) => groups::sync_group(call, *request),
        RequestBody::Heartbeat(request) => groups::heartbeat(call, *request),
        RequestBody::ConsumerGroupHeartbeat(request) => groups::consumer_group_heartbeat(call, *request),
        RequestBody::ConsumerGroupDescribe(request) => {
            Box::pin(groups::consumer_group_describe(call, *request))
        }
        RequestBody::StreamsGroupHeartbeat(request) => Box::pin(streams::heartbeat(call, *request)),
        RequestBody::StreamsGroupDescribe(request) => Box::pin(streams::describe(call, *request)),
        RequestBody::StreamsGroupTopologyDescriptionUpdate(request) => {
            streams::take_description(call, *request)
        }
        RequestBody::LeaveGroup(request) => groups::leave_group(call, *request),
        RequestBody::OffsetCommit(request) => groups::offset_commit(call, *request),
        RequestBody::OffsetFetch(request) => Box::pin(groups::offset_fetch(call, *request)),
        RequestBody::OffsetDelete(request) => groups::offset_delete(call, *request),
        RequestBody::ListGroups(request) => Box::pin(groups::list_groups(call, *request)),
        RequestBody::DescribeGroups(request) => Box::pin(groups::describe_groups(call, *request)),
        RequestBody::DeleteGroups(request) => Box::pin(groups::delete_groups(call, *request)),
        RequestBody::ShareGroupHeartbeat(request) => share_groups::heartbeat(call, *request),
        RequestBody::ShareGroupDescribe(request) => Box::pin(share_groups::describe(call, *request)),
        RequestBody::DescribeShareGroupOffsets(request) => {
            Box::pin(share_groups::describe_offsets(call, *request))
        }
        RequestBody::AlterShareGroupOffsets(request) => share_groups::alter_offsets(call, *request),
        RequestBody::DeleteShareGroupOffsets(request) => share_groups::delete_offsets(call, *request),
        RequestBody::InitializeShareGroupState(request) => now(share_state::initialize(call, *request)),
        RequestBody::ReadShareGroupState(request) => now(share_state::read(call, *request)),
        RequestBody::WriteShareGroupState(request) => now(share_state::write(call, *request)),
        RequestBody::DeleteShareGroupState(request) => now(share_state::delete(call, *request)),
        RequestBody::ReadShareGroupStateSummary(request) => now(share_state::read_summary(call, *request)),
        RequestBody::ShareFetch(request) => Box::pin(share_fetch::share_fetch(call, *request)),
        RequestBody::ShareAcknowledge(request) => Box::pin(share_fetch::share_acknowledge(call, *request)),
        RequestBody::InitProducerId(request) => Box::pin(transactions::init_producer_id(call, *request)),
        RequestBody::AddPartitionsToTxn(request) => Box::pin(transactions::add_partitions(call, *request)),
        RequestBody::AddOffsetsToTxn(request) => Box::pin(transactions::add_offsets(call, *request)),
        RequestBody::EndTxn(request) => Box::pin(transactions::end_txn(call, *request)),
        RequestBody::WriteTxnMarkers(request) => Box::pin(transactions::write_markers(call, *request)),
        RequestBody::TxnOffsetCommit(request) => Box::pin(transactions::commit_offsets(call, *request)),
        RequestBody::DescribeTransactions(request) => Box::pin(transactions::describe(call, *request)),
        RequestBody::ListTransactions(request) => Box::pin(transactions::list(call, *request)),
        other => {
            // `is_served` and this table name the same APIs; a test holds that.
            tracing::error!(api = %other.key(), "an advertised API has no handler");
            now(Started::Answer(Answer::Close))
        }
    }
}
