//! What the APIs of delegation tokens have in common: who may ask, and principals in two fields.
//!
//! Source: Kafka 4.4 `KafkaApis.allowTokenRequests`, `ControllerApis.allowTokenRequests`, `KafkaPrincipal`.

use barnabas_wire::Str;

use crate::{Context, Route};

/// A principal's type and name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Principal {
    pub kind: Str,
    pub name: Str,
}

/// The only type of principals that may own or renew tokens.
pub(crate) const USER: &str = "User";

impl Principal {
    /// `User:alice`, as records and ACLs have it.
    pub fn parse(text: &str) -> Self {
        let (kind, name) = text.split_once(':').unwrap_or((USER, text));
        Self { kind: Str::from(kind), name: Str::from(name) }
    }

    pub fn text(&self) -> String {
        format!("{}:{}", self.kind, self.name)
    }
}

/// Whether the client may ask for tokens, or for what becomes of them: it has proved who it is, and not by a token. A
/// broker that forwards a request has looked at the connection.
pub(crate) fn may_ask(route: Route, ctx: &Context<'_>) -> bool {
    let is_known = route == Route::ThroughBroker || ctx.client.is_authenticated;
    is_known && !ctx.client.token_authenticated
}
