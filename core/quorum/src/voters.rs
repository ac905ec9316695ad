//! Who votes: each voter's id, directory and endpoints.
//!
//! Static voters (`kraft.version` 0) come from `controller.quorum.voters` and have no directory; dynamic ones
//! (`kraft.version` 1, KIP-853) come from the last VotersRecord of log or snapshot.
//!
//! Source: KIP-595, KIP-853; Kafka `VoterSet`, `ReplicaKey`.

mod changes;

pub use changes::KnownVoters;

use std::collections::BTreeMap;

use barnabas_base::{BrokerId, DirectoryId, Text};
use barnabas_wire::Str;
use barnabas_wire::messages::VotersRecord;
use barnabas_wire::messages::voters_record::{Endpoint, KRaftVersionFeature, Voter as VoterField};

/// Where a voter listens for its peers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoterEndpoint {
    pub listener: Text,
    pub host: Text,
    pub port: u16,
}

/// One voter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Voter {
    pub id: BrokerId,
    /// Zero for a static voter.
    pub directory: DirectoryId,
    pub endpoints: Vec<VoterEndpoint>,
    /// The levels of `kraft.version` that it supports.
    pub kraft_min: i16,
    pub kraft_max: i16,
}

/// The voters, by id.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Voters {
    by_id: BTreeMap<BrokerId, Voter>,
}

impl Voters {
    pub fn new(voters: impl IntoIterator<Item = Voter>) -> Self {
        Self { by_id: voters.into_iter().map(|voter| (voter.id, voter)).collect() }
    }

    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    pub fn get(&self, id: BrokerId) -> Option<&Voter> {
        self.by_id.get(&id)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Voter> {
        self.by_id.values()
    }

    pub fn ids(&self) -> Vec<BrokerId> {
        self.by_id.keys().copied().collect()
    }

    /// Whether this node votes: a voter of its id that has no directory, or this one.
    pub fn includes(&self, id: BrokerId, directory: DirectoryId) -> bool {
        self.get(id).is_some_and(|voter| voter.directory.is_zero() || voter.directory == directory)
    }

    #[must_use]
    pub fn with(&self, voter: Voter) -> Self {
        let mut next = self.clone();
        next.by_id.insert(voter.id, voter);
        next
    }

    #[must_use]
    pub fn without(&self, id: BrokerId) -> Self {
        let mut next = self.clone();
        next.by_id.remove(&id);
        next
    }

    pub fn from_record(record: &VotersRecord) -> Self {
        let endpoint = |endpoint: &Endpoint| VoterEndpoint {
            listener: endpoint.name.text(),
            host: endpoint.host.text(),
            port: endpoint.port,
        };
        Self::new(record.voters.iter().map(|voter| Voter {
            id: BrokerId(voter.voter_id),
            directory: voter.voter_directory_id,
            endpoints: voter.endpoints.iter().map(endpoint).collect(),
            kraft_min: voter.kraft_version_feature.min_supported_version,
            kraft_max: voter.kraft_version_feature.max_supported_version,
        }))
    }

    pub fn to_record(&self) -> VotersRecord {
        let endpoint = |endpoint: &VoterEndpoint| Endpoint {
            name: Str::from(&endpoint.listener),
            host: Str::from(&endpoint.host),
            port: endpoint.port,
            ..Endpoint::default()
        };
        let voter = |voter: &Voter| VoterField {
            voter_id: voter.id.get(),
            voter_directory_id: voter.directory,
            endpoints: voter.endpoints.iter().map(endpoint).collect(),
            kraft_version_feature: KRaftVersionFeature {
                min_supported_version: voter.kraft_min,
                max_supported_version: voter.kraft_max,
                ..KRaftVersionFeature::default()
            },
            ..VoterField::default()
        };
        VotersRecord { version: 0, voters: self.iter().map(voter).collect(), ..VotersRecord::default() }
    }
}
