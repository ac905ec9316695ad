//! One request on its way: its surroundings, and the forms that its answer takes.
//!
//! Neighbours: session.rs, what the request's connection knows; requests.rs, which starts it; connection.rs, which
//! writes the answer.

pub mod audited;
pub mod parts;
pub mod pieces;
mod room;

use crate::node::cluster::callers::Caller;
use crate::node::workers::repeated::Repeated;
use crate::requests::session::Session;
use arc_swap::Guard;
use barnabas_api::k18_api_versions::Listener;
use barnabas_api::{Access, Client, Context, Denials, OfflineReplicas, Route};
use barnabas_base::TimestampMs;
use barnabas_metadata::Image;
use barnabas_metadata::config::BrokerConfig;
use barnabas_net::Claim;
use barnabas_quorum::controller::AskingClient;
use barnabas_security::{Operation, ResourceType, Verdict};
use barnabas_wire::messages::ResponseBody;
use barnabas_wire::{ApiKey, EncodeError};
pub use pieces::Pieces;
pub use room::Room;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

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

impl Answer {
    /// What is sent, where it is there as a whole.
    pub fn body(&self) -> Option<&ResponseBody> {
        match self {
            Self::Reply(body) | Self::Held(body, _) => Some(body),
            Self::Pieces(_) | Self::Nothing | Self::Close => None,
        }
    }
}

/// An answer that is still to come.
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
    pub api: ApiKey,
    pub version: i16,
    /// What the answer may take.
    pub room: Room,
    /// Another broker forwards it for its client.
    pub(super) is_forwarded: bool,
    /// What the client may do.
    pub(super) caller: Caller,
}

/// The cluster, the configuration and the time at one moment. Taken and dropped without counting a reference, which all
/// workers would do in the same cache line, twice for each request.
#[derive(Debug)]
pub struct Moment {
    pub image: Guard<Arc<Image>>,
    pub config: Guard<Arc<BrokerConfig>>,
    pub now: TimestampMs,
    /// This node's replicas that serve nothing; `None`: there are none.
    pub offline: Option<Arc<OfflineReplicas>>,
}

/// A bug of ours, but only this client need suffer from it.
pub fn unencodable(session: &Session, error: &EncodeError) -> Answer {
    if let Some(unsaid) = session.node.workers.repeated.happened(Repeated::BrokenAnswer(None)) {
        tracing::error!(peer = %session.peer, %error, "response cannot be encoded; connection closed{unsaid}");
    }
    Answer::Close
}

impl Call {
    /// ApiVersions of a client that has not authenticated yet.
    pub fn before_login(session: &Rc<Session>, version: i16) -> Self {
        let (client, room) = (Arc::new(session.described(None)), Room::of(session));
        let caller = Caller::forwarded(&session.node, &client);
        let api = ApiKey::ApiVersions;
        Self { session: session.clone(), client, api, version, room, is_forwarded: false, caller }
    }

    pub fn moment(&self) -> Moment {
        let node = &self.session.node;
        let (image, config) = (node.cluster.image.load(), node.cluster.config.load());
        let offline = node.log_dirs.impaired.all_offline();
        Moment { image, config, now: node.clock.wall(), offline }
    }

    pub fn context<'a>(&'a self, moment: &'a Moment) -> Context<'a> {
        let node = &self.session.node;
        Context {
            image: &moment.image,
            config: &moment.config,
            cluster_id: &node.identity.cluster_id,
            node: node.identity.broker_id,
            offline: moment.offline.as_deref(),
            client: &self.client,
            access: self.access(),
            now: moment.now,
            loggers: crate::config::logging::shown,
            room: self.room.as_dyn(),
        }
    }

    /// What the client may do, as of the request's start.
    pub fn access(&self) -> Access<'_> {
        self.caller.access(self)
    }

    /// The client as the controller hears of it.
    pub fn asking(&self) -> AskingClient {
        let address = self.client.host.trim_start_matches('/').parse();
        AskingClient {
            principal: self.client.principal.clone(),
            token_authenticated: self.client.token_authenticated,
            address: address.unwrap_or_else(|_| self.session.peer.ip().to_canonical()),
            client_id: self.client.client_id.clone(),
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

pub(super) fn listener_of(session: &Session) -> Listener {
    let is_controller = session.node.identity.listeners[session.listener].0.is_controller;
    if is_controller { Listener::Controller } else { Listener::Broker }
}

impl Denials for Call {
    fn denied(&self, operation: Operation, resource_type: ResourceType, name: &str, verdict: Verdict) {
        let who = || self.who();
        self.caller.denied(&self.session.node, self.api, (operation, resource_type, name), verdict, &who);
    }
}

/// What was started without waiting for anybody.
pub fn now(started: Started) -> Starting {
    Box::pin(std::future::ready(started))
}
