//! The links to the quorum's other members: what they are told, what they answer, who of them leads, who is gone.
//!
//! Every request goes out in a task of its own on the links' thread; what comes of it comes back through the worker's
//! mailbox. Who leads is published here for everybody who has something to ask of the controller ([`super::handle`]).
//!
//! Before: core/quorum's `Effect::Send`. After: shell/net/src/links.rs; core/quorum/src/raft/requests for Kafka's
//! words.

use super::Quorum;
use crate::controller::broker_probe;
use crate::node::Node;
use crate::node::log_rate_limit::Burst;
use crate::node::log_rate_limit::LogRateLimit;
use crate::node::log_rate_limit::Unsaid;
use crate::node::peers::controller::ActiveController;
use crate::node::peers::controller::Message;
use crate::node::shutdown::Shutdown;
use barnabas_base::{BrokerId, ErrorCode};
use barnabas_net::links::{Address, Link, LinkError, LinkSettings, LinkState, LinkThread};
use barnabas_quorum::VoterEndpoint;
use barnabas_quorum::raft::message::{Fetched, Request, Response, SnapshotFetched};
use barnabas_quorum::raft::requests::{
    Here, api_versions, k01_fetch, k52_vote, k53_begin_quorum_epoch, k54_end_quorum_epoch,
    k59_fetch_snapshot, k80_add_raft_voter, k81_remove_raft_voter, k82_update_raft_voter,
};
use barnabas_wire::messages::{ApiVersionsRequest, DescribeClusterRequest};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::Duration;

/// How long a full mailbox is left alone.
const MAILBOX_PAUSE: Duration = Duration::from_millis(2);
/// Links that are kept: voters, the addresses to begin with, and some that have changed.
const LINKS_MAX: usize = 64;

/// A link, and the node that it was last used for: a bootstrap address has no node until a node has answered there.
struct Line {
    link: Link,
    whose: Arc<AtomicI32>,
}

pub(super) struct Peers {
    links: HashMap<Address, Line>,
    thread: LinkThread,
    here: Arc<Here>,
    sender: SyncSender<Message>,
    settings: LinkSettings,
    patience: Duration,
    /// For a node that is no controller: its id must be unique.
    alone_with_id: Option<(BrokerId, Shutdown)>,
    /// Those that were said to be of another cluster.
    foreign: Arc<LogRateLimit<Address>>,
    /// Lines that name a leader: a false Vote request may cost one.
    elections: Burst,
    /// Requests whose outcome has not come back.
    under_way: usize,
}

impl Peers {
    pub fn new(thread: LinkThread, here: Arc<Here>, sender: SyncSender<Message>, node: &Node) -> Self {
        let config = node.cluster.config.load();
        let timeout_ms = config.long("controller.quorum.request.timeout.ms").max(1);
        let patience = Duration::from_millis(timeout_ms.unsigned_abs());
        let mut settings = LinkSettings::new(&format!("raft-client-{}", node.identity.broker_id));
        settings.timeout = patience;
        settings.login = node.logins.to_controllers.clone();
        settings.tls = node.peers.tls.controllers.clone();
        settings.backoff_max = Duration::from_millis(200);
        settings.traffic = node.peers.controller.figures().traffic.clone();
        let is_controller = node.identity.listeners.iter().any(|(listener, _)| listener.is_controller);
        let alone_with_id = (!is_controller).then(|| (node.identity.broker_id, node.shutdown.clone()));
        Self {
            links: HashMap::new(),
            thread,
            here,
            sender,
            settings,
            patience,
            alone_with_id,
            foreign: Arc::default(),
            elections: Burst::default(),
            under_way: 0,
        }
    }

    /// Sends a request to another member.
    pub fn send(&mut self, to: BrokerId, endpoint: &VoterEndpoint, number: u64, request: Request) {
        let link = self.link(to, Address { host: endpoint.host.clone(), port: endpoint.port });
        let (here, sender, patience) = (self.here.clone(), self.sender.clone(), self.patience);
        let (alone_with_id, foreign) = (self.alone_with_id.clone(), self.foreign.clone());
        self.under_way += 1;
        self.thread.handle().spawn(async move {
            let answered = exchange(&link, request, &here, patience).await;
            let response = match answered {
                Ok(response) => Some(Box::new(response)),
                Err(LinkError::Unsupported { .. }) => {
                    Some(Box::new(Response::Refused(ErrorCode::UnsupportedVersion)))
                }
                Err(error) => {
                    tracing::debug!(%error, "a member of the quorum did not answer");
                    None
                }
            };
            let is_foreign =
                matches!(response.as_deref(), Some(Response::Refused(ErrorCode::InconsistentClusterId)));
            if let Some(response) = &response {
                refuse_double(response, &link, alone_with_id.as_ref());
            }
            deliver(&sender, Message::PeerAnswered { from: to, number, response }).await;
            if is_foreign && let Some(unsaid) = foreign.happened(link.address(), barnabas_clock::now()) {
                note_foreign(&link, &here, patience, unsaid).await;
            }
        });
    }

    /// What came of a request has come back.
    pub fn answered(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }

    pub fn are_idle(&self) -> bool {
        self.under_way == 0
    }

    fn link(&mut self, to: BrokerId, address: Address) -> Link {
        if let Some(Line { link, whose }) = self.links.get(&address) {
            whose.store(to.get(), Ordering::Relaxed);
            return link.clone();
        }
        if self.links.len() >= LINKS_MAX {
            self.links.clear();
        }
        let link = Link::start(self.thread.handle(), address.clone(), self.settings.clone());
        let (mut watch, sender) = (link.watch(), self.sender.clone());
        let whose = Arc::new(AtomicI32::new(to.get()));
        let line = Line { link: link.clone(), whose: whose.clone() };
        self.thread.handle().spawn(async move {
            while watch.changed().await.is_ok() {
                let state = *watch.borrow_and_update();
                if state == LinkState::Refused {
                    deliver(&sender, Message::PeerGone(BrokerId(whose.load(Ordering::Relaxed)))).await;
                }
            }
        });
        self.links.insert(address, line);
        link
    }

    /// Another member leads, or none does.
    pub fn led(&self, quorum: &Quorum, node: &Arc<Node>) {
        let known = quorum.leader();
        let is_here = quorum.is_active();
        let leader = known.leader.filter(|&leader| is_here || leader != node.identity.broker_id);
        let endpoints = quorum.leader_endpoints();
        let endpoint = endpoints.iter().find(|endpoint| endpoint.listener == self.here.listener);
        let address = endpoint.map(|endpoint| Address { host: endpoint.host.clone(), port: endpoint.port });
        if !quorum.is_alone()
            && let Some(unsaid) = self.elections.happened(barnabas_clock::now())
        {
            let epoch = known.epoch;
            match leader {
                Some(leader) if is_here => {
                    tracing::info!("this node ({leader}) leads the metadata quorum in epoch {epoch}{unsaid}");
                }
                Some(leader) => {
                    tracing::info!("node {leader} leads the metadata quorum in epoch {epoch}{unsaid}");
                }
                None => tracing::info!("the metadata quorum has no leader in epoch {epoch}{unsaid}"),
            }
        }
        node.peers.controller.led_by(ActiveController { leader, epoch: known.epoch, address, is_here });
        if is_here && !quorum.is_alone() {
            broker_probe::probe_all(node);
        }
    }
}

/// Puts something into the worker's mailbox, as soon as there is room.
async fn deliver(sender: &SyncSender<Message>, message: Message) {
    let mut message = message;
    loop {
        match sender.try_send(message) {
            Ok(()) | Err(TrySendError::Disconnected(_)) => return,
            Err(TrySendError::Full(back)) => message = back,
        }
        tokio::time::sleep(MAILBOX_PAUSE).await;
    }
}

/// Asks in Kafka's words, and reads the answer.
async fn exchange(
    link: &Link,
    request: Request,
    here: &Arc<Here>,
    patience: Duration,
) -> Result<Response, LinkError> {
    let words = here.clone();
    Ok(match request {
        Request::Vote(vote) => {
            let made = move |version| k52_vote::ask(&vote, &words, version);
            k52_vote::read(&link.send_with(patience, made).await?, here)
        }
        Request::BeginEpoch(begin) => {
            let made = move |version| k53_begin_quorum_epoch::ask(&begin, &words, version);
            k53_begin_quorum_epoch::read(&link.send_with(patience, made).await?, here)
        }
        Request::EndEpoch(end) => {
            let made = move |version| k54_end_quorum_epoch::ask(&end, &words, version);
            k54_end_quorum_epoch::read(&link.send_with(patience, made).await?, here)
        }
        Request::Fetch(fetch) => {
            let made = move |version| k01_fetch::ask(&fetch, &words, version);
            k01_fetch::read(&link.send_with(patience, made).await?, here)
        }
        Request::FetchSnapshot(fetch) => {
            let made = move |version| k59_fetch_snapshot::ask(&fetch, &words, version);
            k59_fetch_snapshot::read(&link.send_with(patience, made).await?, here)
        }
        Request::AddVoter(add) => {
            let made = move |version| k80_add_raft_voter::ask(&add, &words, version);
            k80_add_raft_voter::read(&link.send_with(patience, made).await?)
        }
        Request::RemoveVoter(remove) => {
            let made = move |_| Some(k81_remove_raft_voter::ask(&remove, &words));
            k81_remove_raft_voter::read(&link.send_with(patience, made).await?)
        }
        Request::UpdateVoter(update) => {
            let made = move |_| Some(k82_update_raft_voter::ask(&update, &words));
            k82_update_raft_voter::read(&link.send_with(patience, made).await?, here)
        }
        Request::ApiVersions => {
            let request = ApiVersionsRequest {
                client_software_name: barnabas_wire::Str::from_static("barnabas"),
                client_software_version: barnabas_wire::Str::from_static(env!("CARGO_PKG_VERSION")),
                ..ApiVersionsRequest::default()
            };
            // Version 4 shows features whose lowest level is 0.
            let made = move |version: i16| (version >= 4).then_some(request);
            api_versions::read(&link.send_with(patience, made).await?)
        }
    })
}

/// An answer that names this broker as the quorum's leader means another node: a controller with the same id.
fn refuse_double(response: &Response, link: &Link, alone_with_id: Option<&(BrokerId, Shutdown)>) {
    let (Response::Vote { head, .. }
    | Response::BeginEpoch(head)
    | Response::EndEpoch(head)
    | Response::UpdateVoter(head)
    | Response::Fetch(Fetched { head, .. })
    | Response::FetchSnapshot(SnapshotFetched { head, .. })) = response
    else {
        return;
    };
    let Some((id, shutdown)) = alone_with_id.filter(|(id, _)| head.leader == Some(*id)) else { return };
    if !shutdown.is_wanted() {
        tracing::error!(
            "the controller at {} says that node {id} leads the metadata quorum, and this broker is node {id} too: two nodes have the \
             same node.id",
            link.address()
        );
        shutdown.failed("its node.id is a controller's");
    }
}

/// A node of another cluster answers at a member's address, so an address is configured wrongly. Its refusal does
/// not contain its cluster id.
async fn note_foreign(link: &Link, here: &Here, patience: Duration, unsaid: Unsaid) {
    /// Controllers, as KIP-919 has them; before its version 1 a controller's listener is not asked.
    const CONTROLLERS: i8 = 2;
    let ask = |version: i16| {
        (version >= 1).then(|| DescribeClusterRequest {
            endpoint_type: CONTROLLERS,
            ..DescribeClusterRequest::default()
        })
    };
    let theirs = match link.send_with(patience, ask).await {
        Ok(told) if told.error_code == 0 => format!("cluster {}", told.cluster_id),
        Ok(_) | Err(_) => "another cluster".to_owned(),
    };
    tracing::warn!(
        "the controller at {} belongs to {theirs} and refuses this node, which belongs to cluster {}. \
         Check controller.quorum.voters, \
         controller.quorum.bootstrap.servers and the cluster.id in meta.properties of both{unsaid}",
        link.address(),
        here.cluster_id
    );
}
