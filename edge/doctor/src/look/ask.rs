//! Sends requests to nodes; one that does not answer is not asked again.

use crate::Pending;
use barnabas_base::{BrokerId, ErrorCode};
use barnabas_client::{ClientError, Cluster};
use barnabas_findings::{Seen, Unseen};
use barnabas_wire::Request;
use std::collections::BTreeMap;

#[derive(Debug)]
pub struct Asker {
    pub cluster: Cluster,
    pub pending: Pending,
    /// Why each of these does not answer.
    silent: BTreeMap<i32, String>,
}

impl Asker {
    pub fn new(cluster: Cluster, pending: Pending) -> Self {
        Self { cluster, pending, silent: BTreeMap::new() }
    }

    /// Another one with connections of its own, to ask beside this one.
    pub fn fork(&self) -> Self {
        let (cluster, pending) = (self.cluster.with_new_connections(), self.pending.clone());
        Self { cluster, pending, silent: self.silent.clone() }
    }

    /// Takes over which nodes do not answer.
    pub fn join(&mut self, fork: Self) {
        self.silent.extend(fork.silent);
    }

    /// Asks a node.
    pub async fn ask<R: Request>(&mut self, node: i32, make: impl Fn(i16) -> R) -> Seen<R::Response> {
        self.check(node)?;
        let _waiting = self.pending.begin(format!("node {node} ({})", R::KEY.name()));
        let asked = self.cluster.ask_with(BrokerId(node), make).await;
        asked.map_err(|error| self.unseen(node, &error))
    }

    /// Asks any node.
    pub async fn ask_any<R: Request>(&mut self, make: impl Fn(i16) -> R) -> Seen<R::Response> {
        let _waiting = self.pending.begin(format!("any node ({})", R::KEY.name()));
        self.cluster.ask_any_with(make).await.map_err(|error| Unseen(error.to_string()))
    }

    /// `Err`: the node did not answer before.
    pub fn check(&self, node: i32) -> Seen<()> {
        match self.silent.get(&node) {
            Some(why) => Err(Unseen(why.clone())),
            None => Ok(()),
        }
    }

    /// The reason, remembered where it is that the node does not answer.
    pub fn unseen(&mut self, node: i32, error: &ClientError) -> Unseen {
        let why = format!("node {node}: {error}");
        let is_silent = matches!(
            error,
            ClientError::Unreachable { .. } | ClientError::Lost { .. } | ClientError::Tls { .. }
        );
        if is_silent {
            self.silent.insert(node, why.clone());
        }
        Unseen(why)
    }
}

/// `Err` for a code that is an error.
pub fn checked(what: &str, code: i16, message: Option<&str>) -> Seen<()> {
    match (ErrorCode::from_code(code), message) {
        (ErrorCode::None, _) => Ok(()),
        (code, Some(message)) if !message.is_empty() => {
            Err(Unseen(format!("{what}: {}: {message}", code.name())))
        }
        (code, _) => Err(Unseen(format!("{what}: {}", code.name()))),
    }
}
