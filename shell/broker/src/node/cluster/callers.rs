//! What a request's client may do: the authorizer beside the image, with the client resolved in it.
//!
//! A connection resolves its client once for each authorizer, and remembers what was granted. Each request looks at one
//! authorizer from its start to its end. A client that a broker asks for (Envelope) is resolved for its request alone.
//!
//! What is denied is written to the log, by the logger `barnabas::authorizer`: once for each principal, operation and
//! resource, then once a minute with a count; of one principal's many resources some. Kafka's logger is
//! `kafka.authorizer.logger`.
//!
//! After: node/audit.rs, which hears of denials too.
//!
//! The authorizer is kept by the node's view of the cluster; core/api asks.

use crate::node::Node;
use crate::node::cluster::authority::Standard;
use barnabas_api::audited::Subject;
use barnabas_api::audited::events::{Event, Kind, Who};
use barnabas_api::{Access, Client, Decisions, Denials, Judge};
use barnabas_base::Text;
use barnabas_security::acl::CLUSTER_NAME;
use barnabas_security::explain::{Question, why_denied};
use barnabas_security::{Authorizer, Caller as Resolved, Host, Operation, ResourceType, Verdict};
use barnabas_wire::ApiKey;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Of a name that was denied, so much is kept for its next denial.
const DENIED_NAME_BYTES: usize = 256;

/// A client in one authorizer.
#[derive(Debug)]
struct Known {
    authorizer: Arc<Authorizer>,
    resolved: Resolved,
    principal: Text,
    host: Text,
    /// Denials stand: the authorizer is not in shadow mode.
    enforces: bool,
}

impl Known {
    fn new(standard: &Standard, authorizer: Arc<Authorizer>, client: &Client) -> Self {
        let resolved = authorizer.caller(&client.principal, &Host::parse(&client.host));
        let (principal, host, enforces) = (client.principal.clone(), client.host.clone(), standard.enforces);
        Self { authorizer, resolved, principal, host, enforces }
    }

    fn is_of(&self, authorizer: &Arc<Authorizer>, client: &Client) -> bool {
        Arc::ptr_eq(&self.authorizer, authorizer)
            && self.principal == client.principal
            && self.host == client.host
    }
}

/// One request's client. Empty without an authorizer.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    known: Option<Arc<Known>>,
    granted: Option<Rc<Decisions>>,
}

/// The client of a connection, and what was granted to it.
#[derive(Debug, Default)]
pub struct Callers(RefCell<Caller>);

impl Caller {
    /// A client for which a broker asks: no connection's own.
    pub fn forwarded(node: &Node, client: &Client) -> Self {
        let Some(standard) = node.cluster.authority.standard() else { return Self::default() };
        let known = Known::new(standard, Arc::clone(&standard.current()), client);
        Self { known: Some(Arc::new(known)), granted: None }
    }

    /// The client of a connection.
    pub fn of(node: &Node, callers: &Callers, client: &Client) -> Self {
        let Some(standard) = node.cluster.authority.standard() else { return Self::default() };
        let authorizer = standard.current();
        let mut last = callers.0.borrow_mut();
        if !last.known.as_ref().is_some_and(|known| known.is_of(&authorizer, client)) {
            let known = Known::new(standard, Arc::clone(&authorizer), client);
            *last = Self { known: Some(Arc::new(known)), granted: Some(Rc::default()) };
        }
        last.clone()
    }

    /// `denials`: who hears of what is denied.
    pub fn access<'a>(&'a self, denials: &'a dyn Denials) -> Access<'a> {
        access(self.known.as_deref(), self.granted.as_deref(), denials)
    }

    /// For an answer that is made on another thread.
    pub fn elsewhere(&self, api: ApiKey, node: &Arc<Node>, who: Who) -> Elsewhere {
        Elsewhere { known: self.known.clone(), api, node: node.clone(), who }
    }

    /// Whether the client has CLUSTER_ACTION, as brokers have. Nothing is logged.
    pub fn is_broker(&self) -> bool {
        self.known.as_ref().is_none_or(|known| {
            let (operation, cluster) = (Operation::ClusterAction, ResourceType::Cluster);
            !known.enforces
                || known.authorizer.decide(&known.resolved, operation, cluster, CLUSTER_NAME).is_allowed()
        })
    }

    /// Whether the client passes while the ACLs are not known yet: super users alone do.
    pub fn passes_early(&self, node: &Node) -> bool {
        let standard = node.cluster.authority.standard();
        let is_super = || self.known.as_ref().is_none_or(|known| known.resolved.is_super_user());
        standard.is_none_or(|standard| standard.is_loaded() || !standard.enforces) || is_super()
    }

    /// Writes a denial to the log and to the audit log.
    pub fn denied(
        &self,
        node: &Node,
        api: ApiKey,
        asked: (Operation, ResourceType, &str),
        verdict: Verdict,
        who: &dyn Fn() -> Who,
    ) {
        let (Some(known), Some(standard)) = (&self.known, node.cluster.authority.standard()) else { return };
        if standard.is_loaded() || standard.enforces {
            if standard.enforces {
                node.workers.meter.denied.one();
            }
            log(standard, known, api, asked, verdict);
            note(node, api, asked, standard.enforces, who);
        }
    }
}

fn access<'a>(
    known: Option<&'a Known>,
    granted: Option<&'a Decisions>,
    denials: &'a dyn Denials,
) -> Access<'a> {
    known.map_or(Access::OPEN, |known| {
        Access::new(Judge {
            authorizer: &known.authorizer,
            caller: &known.resolved,
            denials,
            granted,
            enforces: known.enforces,
        })
    })
}

/// A request's client on another thread.
#[derive(Debug)]
pub struct Elsewhere {
    known: Option<Arc<Known>>,
    api: ApiKey,
    node: Arc<Node>,
    who: Who,
}

impl Elsewhere {
    pub fn access(&self) -> Access<'_> {
        access(self.known.as_deref(), None, self)
    }
}

impl Denials for Elsewhere {
    fn denied(&self, operation: Operation, resource_type: ResourceType, name: &str, verdict: Verdict) {
        let (asked, who) = ((operation, resource_type, name), || self.who.clone());
        let caller = Caller { known: self.known.clone(), granted: None };
        caller.denied(&self.node, self.api, asked, verdict, &who);
    }
}

fn note(
    node: &Node,
    api: ApiKey,
    (operation, resource_type, name): (Operation, ResourceType, &str),
    is_denied: bool,
    who: &dyn Fn() -> Who,
) {
    let kind = if is_denied { Kind::Denied } else { Kind::WouldDeny };
    if !node.audit.wants(kind) {
        return;
    }
    let name = name[..name.floor_char_boundary(DENIED_NAME_BYTES)].to_owned();
    let (operation, resource_type) = (operation.name(), resource_type.name());
    let subject = Subject { operation, resource_type, name, edits: Vec::new() };
    let what = vec![(subject, if is_denied { "denied" } else { "success" })];
    let (at, request) = (node.clock.wall(), Some(api));
    node.audit.note(Event { kind, at, who: who(), request, what, reason: None });
}

fn log(
    standard: &Standard,
    known: &Known,
    api: ApiKey,
    (operation, resource_type, name): (Operation, ResourceType, &str),
    verdict: Verdict,
) {
    // Longer names are told apart by their beginning.
    let beginning = &name[..name.floor_char_boundary(DENIED_NAME_BYTES)];
    let denial = (operation, resource_type, Text::from(beginning));
    let now = barnabas_clock::now();
    let Some(unsaid) = standard.denials.happened(&known.principal, &denial, now) else { return };
    let host = Host::parse(&known.host);
    let question =
        Question { principal: &known.principal, host: &host, operation, resource_type, resource_name: name };
    // Names come from clients: they are written with their control characters escaped.
    let (principal, host) = (&known.principal, host.text());
    tracing::info!(
        target: "barnabas::authorizer",
        principal = %principal.escape_debug(),
        host,
        %operation,
        resource = %resource_type,
        name = %name.escape_debug(),
        request = %api,
        "{}: {}{unsaid}",
        if standard.enforces { "denied" } else { "would be denied" },
        why_denied(&standard.acls(), &question, verdict)
    );
}
