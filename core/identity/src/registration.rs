//! How the node presents itself: as a broker and as a controller that register, as a voter and a member of the quorum.
//!
//! Neighbours: format.rs, which makes voters; shell/broker/src/server/membership.rs, which sends this.

use crate::format::{Machine, voter};
use barnabas_base::{BrokerEpoch, DirectoryId, DurationMs, Text, Uuid};
use barnabas_config::{Listener, NodeConfig};
use barnabas_metadata::config::BrokerConfig;
use barnabas_metadata::features::FEATURES;
use barnabas_quorum::raft::Config as RaftConfig;
use barnabas_quorum::{Voter, VoterEndpoint, Voters};
use barnabas_wire::Str;
use barnabas_wire::messages::broker_registration_request::{Feature, Listener as RegisteredListener};
use barnabas_wire::messages::controller_registration_request::{
    Feature as ControllerFeature, Listener as ControllerListener,
};
use barnabas_wire::messages::{BrokerRegistrationRequest, ControllerRegistrationRequest};

/// A listener, and the port that it is bound to.
pub type Bound = (Listener, u16);

/// What this broker tells the controller of itself.
///
/// `log_dirs`: those that can be used. `previous_epoch`: of its last life, where that was whole.
pub fn broker_registration(
    config: &NodeConfig,
    (cluster_id, incarnation): (&Text, Uuid),
    (mut log_dirs, previous_epoch): (Vec<DirectoryId>, BrokerEpoch),
    listeners: &[Bound],
    machine: Machine<'_>,
) -> BrokerRegistrationRequest {
    log_dirs.sort_unstable();
    let advertised = config.listeners.advertised.iter().map(|(endpoint, protocol)| {
        let bound = listeners.iter().find(|(listener, _)| listener.endpoint.listener == endpoint.listener);
        let port = match (endpoint.port, bound) {
            (0, Some((_, bound))) => *bound,
            (port, _) => port,
        };
        RegisteredListener {
            name: Str::from(endpoint.listener.as_str()),
            host: Str::from(advertised_host(&endpoint.host, machine)),
            port,
            security_protocol: protocol.id(),
            ..RegisteredListener::default()
        }
    });
    BrokerRegistrationRequest {
        broker_id: config.node_id.get(),
        cluster_id: Str::from(cluster_id),
        incarnation_id: incarnation,
        listeners: advertised.collect(),
        features: FEATURES
            .iter()
            .map(|feature| Feature {
                name: Str::from_static(feature.name),
                min_supported_version: feature.min,
                max_supported_version: feature.max,
                ..Feature::default()
            })
            .collect(),
        rack: config.rack.as_ref().map(Str::from),
        is_migrating_zk_broker: false,
        log_dirs,
        previous_broker_epoch: previous_epoch.get(),
        ..BrokerRegistrationRequest::default()
    }
}

/// What this controller tells the active one of itself.
pub fn controller_registration(
    config: &NodeConfig,
    (directory, incarnation): (DirectoryId, Uuid),
    listeners: &[Bound],
    machine: Machine<'_>,
) -> ControllerRegistrationRequest {
    let listener = |endpoint: VoterEndpoint| {
        let named = |(listener, _): &&Bound| listener.endpoint.listener.as_str() == &*endpoint.listener;
        let bound = listeners.iter().find(named);
        ControllerListener {
            name: Str::from(&endpoint.listener),
            host: Str::from(&endpoint.host),
            port: match (endpoint.port, bound) {
                (0, Some((_, bound))) => *bound,
                (port, _) => port,
            },
            security_protocol: bound.map_or(0, |(listener, _)| listener.protocol.id()),
            ..ControllerListener::default()
        }
    };
    let features = FEATURES.iter().map(|feature| ControllerFeature {
        name: Str::from_static(feature.name),
        min_supported_version: feature.min,
        max_supported_version: feature.max,
        ..ControllerFeature::default()
    });
    ControllerRegistrationRequest {
        controller_id: config.node_id.get(),
        incarnation_id: incarnation,
        listeners: voter(config, directory, machine).endpoints.into_iter().map(listener).collect(),
        features: features.collect(),
        ..ControllerRegistrationRequest::default()
    }
}

/// The listener that members of the quorum use among themselves.
pub fn controller_listener(config: &NodeConfig) -> Text {
    config.listeners.controller_names.first().map_or_else(Text::default, |name| Text::from(name.as_str()))
}

/// This node as a member of the quorum.
///
/// `seed`: for its timeouts.
pub fn raft_config(
    config: &NodeConfig,
    broker_config: &BrokerConfig,
    (directory, machine): (DirectoryId, Machine<'_>),
    seed: u64,
) -> RaftConfig {
    let listener = controller_listener(config);
    let millis = |key| DurationMs(broker_config.long(key));
    let servers = config.bootstrap_servers.iter();
    let bootstrap = servers.map(|(host, port)| VoterEndpoint {
        listener: listener.clone(),
        host: host.clone(),
        port: *port,
    });
    RaftConfig {
        bootstrap: bootstrap.collect(),
        is_controller: config.is_controller,
        auto_join: broker_config.boolean("controller.quorum.auto.join.enable"),
        election_timeout: millis("controller.quorum.election.timeout.ms"),
        fetch_timeout: millis("controller.quorum.fetch.timeout.ms"),
        election_backoff_max: millis("controller.quorum.election.backoff.max.ms"),
        request_timeout: millis("controller.quorum.request.timeout.ms"),
        retry_backoff: millis("controller.quorum.retry.backoff.ms"),
        ..RaftConfig::new(voter(config, directory, machine), listener, seed)
    }
}

/// `controller.quorum.voters`. A voter of a file has no directory, this node included.
pub fn static_voters(config: &NodeConfig) -> Voters {
    let listener = controller_listener(config);
    Voters::new(config.static_voters.iter().map(|voter| Voter {
        id: voter.id,
        directory: DirectoryId::ZERO,
        endpoints: vec![VoterEndpoint {
            listener: listener.clone(),
            host: voter.host.clone(),
            port: voter.port,
        }],
        kraft_min: 0,
        kraft_max: 1,
    }))
}

/// A listener on every interface is reached by the machine's name.
fn advertised_host<'a>(host: &'a str, Machine(name): Machine<'a>) -> &'a str {
    if !matches!(host, "" | "0.0.0.0" | "::") {
        return host;
    }
    if name.is_empty() { "localhost" } else { name }
}
