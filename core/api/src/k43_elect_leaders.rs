//! # ElectLeaders, key 43, versions 0–2
//!
//! Has the controller elect leaders: the preferred replica, or, at the price of records, one that is not in sync.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the preferred replica (KIP-183) |
//! | 1 | unclean elections, an error for the whole request (KIP-460) |
//! | 2 | flexible (KIP-482) |
//!
//! ## Left out
//! - Nothing: everything is the controller's.
//!
//! Source: Kafka 4.4 `ControllerApis.handleElectLeaders`, `ElectLeadersRequest`.

use barnabas_wire::messages::elect_leaders_request::{ElectLeadersRequest, TopicPartitions};
use barnabas_wire::messages::elect_leaders_response::{
    ElectLeadersResponse, PartitionResult, ReplicaElectionResult,
};

use crate::Refusal;

/// For the controller.
#[derive(Debug)]
pub struct Work {
    pub request: ElectLeadersRequest,
    pub pending: Pending,
}

/// What the answer needs of the request.
#[derive(Debug)]
pub struct Pending {
    version: i16,
    asked: Vec<TopicPartitions>,
}

/// The controller's work: all of it.
pub fn plan(mut request: ElectLeadersRequest, version: i16) -> Work {
    const PREFERRED: i8 = 0;
    if version == 0 {
        request.election_type = PREFERRED;
    }
    let asked = request.topic_partitions.clone().unwrap_or_default();
    Work { request, pending: Pending { version, asked } }
}

impl Pending {
    /// The answer to the client, from the controller's or from the reason why there is none.
    pub fn respond(self, outcome: Result<ElectLeadersResponse, Refusal>) -> ElectLeadersResponse {
        let mut response = outcome.unwrap_or_else(|refusal| ElectLeadersResponse {
            error_code: refusal.code.code(),
            replica_election_results: self.asked.iter().map(|topic| refuse(topic, &refusal)).collect(),
            ..ElectLeadersResponse::default()
        });
        if self.version == 0 {
            response.error_code = 0;
        }
        response
    }
}

fn refuse(topic: &TopicPartitions, refusal: &Refusal) -> ReplicaElectionResult {
    let of = |partition: &i32| PartitionResult {
        partition_id: *partition,
        error_code: refusal.code.code(),
        error_message: refusal.text(),
        ..PartitionResult::default()
    };
    ReplicaElectionResult {
        topic: topic.topic.clone(),
        partition_result: topic.partitions.iter().map(of).collect(),
        ..ReplicaElectionResult::default()
    }
}

#[cfg(test)]
mod tests;
