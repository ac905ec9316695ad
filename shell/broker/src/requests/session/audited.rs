//! Logins, for the audit log: by SASL, and by a client's certificate.
//!
//! Neighbours: requests/connection/login.rs, which lets clients log in. After: node/audit.rs.

use super::Session;
use crate::node::Node;
use barnabas_api::audited::events::{Event, Kind, Who};
use barnabas_base::Text;
use barnabas_sasl::exchange::Failure;
use std::net::SocketAddr;

/// What stands for a SASL mechanism where a certificate proves who the client is.
const CERTIFICATE: &str = "SSL";

impl Session {
    /// The client has logged in, for the first time or again.
    pub(in crate::requests) fn note_login(&self) {
        let mechanism = self.login.borrow().as_ref().map(|login| login.authenticated.mechanism.name());
        self.note(Kind::Login, None, mechanism, None);
    }

    /// A new connection's client has shown a certificate, and nothing else is asked of it.
    pub fn note_certificate(&self) {
        if self.certified.is_some() && self.node.logins.listener(self.listener).is_none() {
            self.note(Kind::Login, None, Some(CERTIFICATE), None);
        }
    }

    /// `failure`: how the exchange ended, if it came so far.
    pub(in crate::requests) fn note_failed_login(&self, why: &str, failure: Option<&Failure>) {
        let claimed = failure.and_then(|failure| failure.user.as_deref()).unwrap_or_default();
        let mechanism = failure.and_then(|failure| failure.mechanism).map(|known| known.name());
        self.note(Kind::FailedLogin, Some(claimed), mechanism, Some(why));
    }

    fn note(&self, kind: Kind, claimed: Option<&str>, mechanism: Option<&'static str>, reason: Option<&str>) {
        let node = &self.node;
        if !node.audit.wants(kind) {
            return;
        }
        let client = self.described(None);
        let principal = match claimed {
            Some("") => Text::default(),
            Some(name) => Text::from(format!("User:{name}")),
            None => client.principal.clone(),
        };
        let who = Who { principal, mechanism, ..Who::of(&client) };
        let reason = reason.map(str::to_owned);
        node.audit.note(Event { kind, at: node.clock.wall(), who, request: None, what: Vec::new(), reason });
    }
}

/// A TLS handshake has failed: the client has no certificate that the listener takes, or no TLS.
pub fn note_failed_handshake(node: &Node, peer: SocketAddr, why: String) {
    if !node.audit.wants(Kind::FailedLogin) {
        return;
    }
    let host = Text::from(peer.ip().to_canonical().to_string());
    let who = Who { host, mechanism: Some(CERTIFICATE), ..Who::default() };
    let (kind, reason) = (Kind::FailedLogin, Some(why));
    node.audit.note(Event { kind, at: node.clock.wall(), who, request: None, what: Vec::new(), reason });
}
