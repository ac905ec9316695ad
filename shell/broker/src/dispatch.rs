//! From a decoded request to whoever works on it, and back to a response: one line for each API.
//!
//! core/api says what a request asks of this node; this file and its siblings send it there and hand back what came of it.
//! The part up to the first wait runs before the connection's next request is looked at: it is where work is sent to its
//! owners, so that what a client sent first is placed first.
//!
//! Produce path 1½ of 5. Before: connection.rs. After: core/api/src/k00_produce.rs, dispatch/produce.rs.

mod admin;
mod answer_room;
mod auto_creation;
mod cluster;
mod fetch;
mod groups;
pub mod handing_on;
mod large;
mod log_dirs;
mod metrics_in_band;
mod offsets;
mod open_transactions;
mod produce;
mod quorum;
mod share_fetch;
mod share_groups;
mod share_state;
pub mod strangers;
mod streams;
mod transactions;
mod verification;

use crate::connection::Session;
use barnabas_api::k18_api_versions::{self, Listener};
use barnabas_api::{Client, Context, Route};
use barnabas_base::Text;
use barnabas_metadata::Image;
use barnabas_metadata::config::BrokerConfig;
use barnabas_net::Claim;
use barnabas_wire::messages::{RequestBody, RequestHeader, ResponseBody};
use barnabas_wire::{ApiKey, VersionRange};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

pub use answer_room::Room;
pub use handing_on::HandingOn;
pub use large::Pieces;
pub use open_transactions::OpenTransactions;
pub use share_fetch::members_gone as share_members_gone;

/// What goes back to the client.
#[derive(Debug)]
pub enum Answer {
    Reply(ResponseBody),
    /// A large one, with its share of the memory budget, which is given back once it is written.
    Held(ResponseBody, Claim),
    /// A very large one, of which only pieces are ever there.
    Pieces(Pieces),
    /// `acks=0`: the client expects nothing.
    Nothing,
    /// Closing the connection is the answer.
    Close,
}

pub type Waiting = Pin<Box<dyn Future<Output = Answer>>>;

/// What has to happen in the order of the requests.
pub type Starting = Pin<Box<dyn Future<Output = Started>>>;

/// A request whose work is under way.
pub enum Started {
    Answer(Answer),
    Wait(Waiting),
}

impl Started {
    pub fn reply(body: impl Into<ResponseBody>) -> Self {
        Self::Answer(Answer::Reply(body.into()))
    }

    pub fn wait(future: impl Future<Output = Answer> + 'static) -> Self {
        Self::Wait(Box::pin(future))
    }
}

/// One request's surroundings: which connection, which client, which version.
#[derive(Debug, Clone)]
pub struct Call {
    pub session: Rc<Session>,
    pub client: Arc<Client>,
    pub version: i16,
    /// What the answer may take.
    pub room: Room,
    /// Another broker forwards it for its client.
    is_forwarded: bool,
}

/// The cluster and the configuration at one moment.
#[derive(Debug, Clone)]
pub struct Moment {
    pub image: Arc<Image>,
    pub config: Arc<BrokerConfig>,
}

impl Call {
    pub fn moment(&self) -> Moment {
        let node = &self.session.node;
        Moment { image: node.cluster.image.load_full(), config: node.cluster.config.load_full() }
    }

    pub fn context<'a>(&'a self, moment: &'a Moment) -> Context<'a> {
        let node = &self.session.node;
        Context {
            image: &moment.image,
            config: &moment.config,
            cluster_id: &node.identity.cluster_id,
            node: node.identity.broker_id,
            client: &self.client,
            now: node.clock.wall(),
            loggers: crate::logging::shown,
            room: self.room.as_dyn(),
        }
    }

    pub fn listener(&self) -> Listener {
        listener_of(&self.session)
    }

    /// How a request for the controller got here.
    pub fn route(&self) -> Route {
        match self.listener() {
            Listener::Broker => Route::ToBroker,
            Listener::Controller if self.is_forwarded => Route::ThroughBroker,
            Listener::Controller => Route::ToController,
        }
    }
}

fn listener_of(session: &Session) -> Listener {
    let is_controller = session.node.identity.listeners[session.listener].0.is_controller;
    if is_controller { Listener::Controller } else { Listener::Broker }
}

/// Whether this node answers `api` on the connection's listener.
pub fn is_served(session: &Session, api: ApiKey) -> bool {
    k18_api_versions::is_answered(api, listener_of(session))
}

/// The versions that are served: those that are advertised.
pub fn versions(api: ApiKey) -> VersionRange {
    api.stable_versions()
}

/// What a client is told that asked for ApiVersions in a version that does not exist; written as version 0.
pub fn unsupported_api_versions() -> Answer {
    Answer::Reply(k18_api_versions::unsupported_version().into())
}

/// Starts a request. What has to happen in the order of the requests has happened when this future is done.
pub fn start(session: Rc<Session>, header: RequestHeader, body: RequestBody) -> Starting {
    start_as(false, session, header, body)
}

fn start_as(is_forwarded: bool, session: Rc<Session>, header: RequestHeader, body: RequestBody) -> Starting {
    let client = session.client(header.client_id.as_ref().map(|id| id.as_str()));
    let room = Room::of(&session);
    let call = Call { session, client, version: header.request_api_version, room, is_forwarded };
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
        RequestBody::ApiVersions(request) => now(cluster::api_versions(&call, &request)),
        RequestBody::Metadata(request) => now(cluster::metadata(call, *request)),
        RequestBody::FindCoordinator(request) => now(cluster::find_coordinator(&call, *request)),
        RequestBody::DescribeConfigs(request) => now(cluster::describe_configs(&call, *request)),
        RequestBody::DescribeCluster(request) => now(cluster::describe_cluster(&call, &request)),
        RequestBody::DescribeTopicPartitions(request) => {
            now(cluster::describe_topic_partitions(&call, &request))
        }
        RequestBody::ListConfigResources(request) => now(cluster::list_config_resources(&call, &request)),
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
        coordinated => start_coordinated(call, coordinated),
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

/// What was started without waiting for anybody.
fn now(started: Started) -> Starting {
    Box::pin(std::future::ready(started))
}

/// A client as core/api sees it.
pub fn client(session: &Session, client_id: Option<&str>) -> Client {
    let listener = &session.node.identity.listeners[session.listener].0;
    Client {
        listener: Text::from(listener.endpoint.listener.as_str()),
        client_id: client_id.map(Text::from),
        host: Text::from(format!("/{}", session.peer.ip().to_canonical())),
        principal: Text::from("User:ANONYMOUS"),
    }
}
