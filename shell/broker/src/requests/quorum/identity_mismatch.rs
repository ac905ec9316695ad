//! Nodes with an unexpected identity: members of another cluster, and a second process with a broker's id. Their
//! requests are refused elsewhere; this module logs it for the operator with both identities, at a limited rate
//! ([`LogRateLimit`]), since such nodes retry many times a second.

use crate::node::Node;
use crate::requests::call::Call;
use barnabas_base::{BrokerId, ErrorCode, Uuid};
use barnabas_metadata::{Broker, Endpoint};
use barnabas_wire::messages::{BrokerRegistrationRequest, BrokerRegistrationResponse};
use barnabas_wire::{ApiKey, RequestBody, Str};
use std::fmt;
use std::time::Duration;

/// Whom a request's sender takes itself for.
#[derive(Debug)]
pub struct Registrant {
    id: BrokerId,
    incarnation: Uuid,
    cluster: Str,
    listens: String,
}

impl Registrant {
    pub fn of(request: &BrokerRegistrationRequest) -> Self {
        let listens = request.listeners.iter().map(|listener| format!("{}:{}", listener.host, listener.port));
        Self {
            id: BrokerId(request.broker_id),
            incarnation: request.incarnation_id,
            cluster: request.cluster_id.clone(),
            listens: shown(&listens.collect::<Vec<_>>().join(", ")),
        }
    }
}

impl fmt::Display for Registrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "incarnation {}, listening at {}", self.incarnation, self.listens)
    }
}

/// The cluster that a request of the quorum is meant for, if it says so.
pub fn cluster_of(body: &RequestBody) -> Option<Str> {
    match body {
        RequestBody::Fetch(request) => request.cluster_id.clone(),
        RequestBody::FetchSnapshot(request) => request.cluster_id.clone(),
        RequestBody::Vote(request) => request.cluster_id.clone(),
        RequestBody::BeginQuorumEpoch(request) => request.cluster_id.clone(),
        RequestBody::EndQuorumEpoch(request) => request.cluster_id.clone(),
        RequestBody::UpdateRaftVoter(request) => request.cluster_id.clone(),
        _ => None,
    }
}

/// A request of the quorum is not for this one: its sender's operator has mixed up addresses.
pub fn note_foreign(call: &Call, api: ApiKey, asked: Option<&Str>) {
    let (node, peer) = (&call.session.node, call.session.peer);
    let Some(unsaid) = node.cluster.identity_mismatches.foreign.happened(&peer.ip(), barnabas_clock::now())
    else {
        return;
    };
    match asked.filter(|asked| asked.as_str() != &*node.identity.cluster_id) {
        Some(theirs) => tracing::warn!(
            %peer,
            "rejected {api}: it is meant for cluster {}, and this node belongs to cluster {}. Check \
             controller.quorum.voters and controller.quorum.bootstrap.servers of the sender, and the \
             cluster.id in meta.properties of both{unsaid}",
            shown(theirs),
            node.identity.cluster_id
        ),
        None => tracing::warn!(
            %peer,
            "rejected {api}: it does not concern the metadata log of cluster {}{unsaid}",
            node.identity.cluster_id
        ),
    }
}

/// What a stranger says of itself, as far as it goes into a line.
fn shown(said: &str) -> String {
    said.chars().filter(|char| !char.is_control()).take(100).collect()
}

/// A broker was refused its registration: of another cluster, or under an id that a living process has.
pub fn note_refused(call: &Call, registrant: &Registrant, response: &BrokerRegistrationResponse) {
    match ErrorCode::from_code(response.error_code) {
        ErrorCode::InconsistentClusterId => {
            note_foreign(call, ApiKey::BrokerRegistration, Some(&registrant.cluster));
        }
        ErrorCode::DuplicateBrokerRegistration => note_double(call, registrant),
        _ => {}
    }
}

/// After a crash a broker's former life is in its way for a session at most: what lasts longer are two.
fn note_double(call: &Call, registrant: &Registrant) {
    let (node, peer) = (&call.session.node, call.session.peer);
    let now = barnabas_clock::now();
    let Some(unsaid) =
        node.cluster.identity_mismatches.doubles.lasts(&registrant.id, session_timeout(node), now)
    else {
        return;
    };
    let image = node.cluster.image.load();
    let known = image
        .cluster
        .broker(registrant.id)
        .map_or_else(|| "is a process".to_owned(), |broker| described(broker));
    tracing::warn!(
        %peer,
        "two nodes have the same node.id: broker {} {known}, which is alive, and another process \
         ({registrant}) tries to register with the same id. Change the node.id of one of them{unsaid}",
        registrant.id
    );
}

/// How long a broker may be silent.
pub fn session_timeout(node: &Node) -> Duration {
    Duration::from_millis(node.cluster.config.load().long("broker.session.timeout.ms").max(0).unsigned_abs())
}

/// A registered broker: which life of it, and where it listens.
pub fn described(broker: &Broker) -> String {
    let listens = broker.endpoints.iter().map(|Endpoint { host, port, .. }| format!("{host}:{port}"));
    let listens = listens.collect::<Vec<_>>().join(", ");
    format!("is a process (incarnation {}, listening at {listens})", broker.incarnation)
}
