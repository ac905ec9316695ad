//! What a JoinGroup brings that outlives it.

use barnabas_base::{Set, Text};
use barnabas_wire::messages::join_group_request::JoinGroupRequestProtocol;
use bytes::Bytes;

/// The embedded protocols that a member can speak, best first, each with what it has to say in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Protocols(Vec<(Text, Bytes)>);

impl Protocols {
    /// Copies what the request says, so that no frame stays alive. A name that comes twice counts once, as first said.
    pub fn from_request(protocols: &[JoinGroupRequestProtocol]) -> Self {
        let mut seen = Set::default();
        let distinct = protocols.iter().filter(|protocol| seen.insert(protocol.name.as_str()));
        Self(distinct.map(|each| (each.name.text(), Bytes::copy_from_slice(&each.metadata))).collect())
    }

    pub fn one(name: Text, metadata: Bytes) -> Self {
        Self(vec![(name, metadata)])
    }

    pub fn of(pairs: impl Iterator<Item = (Text, Bytes)>) -> Self {
        Self(pairs.collect())
    }

    pub fn pairs(&self) -> impl Iterator<Item = (&Text, &Bytes)> {
        self.0.iter().map(|(name, metadata)| (name, metadata))
    }

    pub fn names(&self) -> impl Iterator<Item = &Text> {
        self.0.iter().map(|(name, _)| name)
    }

    pub fn metadata(&self, name: &str) -> Option<&Bytes> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, metadata)| metadata)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
