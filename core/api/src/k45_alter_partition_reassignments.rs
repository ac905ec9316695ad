//! # AlterPartitionReassignments, key 45, versions 0–1
//!
//! Gives partitions other replicas, or calls that off. The tool that moves partitions between log directories asks for
//! it first, with the replicas that they have.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-455) |
//! | 1 | the number of replicas may be held fixed (KIP-860) |
//!
//! ## Left out
//! - Nothing.
//!
//! What is decided: core/quorum's `controller/replicas/reassignments.rs`.
//!
//! Source: Kafka 4.4 `ControllerApis.handleAlterPartitionReassignments`.

use barnabas_wire::Str;
use barnabas_wire::messages::alter_partition_reassignments_response::{
    ReassignablePartitionResponse, ReassignableTopicResponse,
};
use barnabas_wire::messages::{AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse};

use crate::Refusal;

/// The partitions of a request, for an answer that there is none of the controller.
#[derive(Debug)]
pub struct Pending {
    topics: Vec<(Str, Vec<i32>)>,
}

impl Pending {
    pub fn new(request: &AlterPartitionReassignmentsRequest) -> Self {
        let topics = request.topics.iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|partition| partition.partition_index);
            (topic.name.clone(), partitions.collect())
        });
        Self { topics: topics.collect() }
    }

    /// The answer to the client, from the controller's or from the reason why there is none. That one stands at the top
    /// and at each partition (Kafka `AlterPartitionReassignmentsRequest.getErrorResponse`).
    pub fn respond(
        self,
        outcome: Result<AlterPartitionReassignmentsResponse, Refusal>,
    ) -> AlterPartitionReassignmentsResponse {
        outcome.unwrap_or_else(|refusal| {
            let (error_code, error_message) = (refusal.code.code(), refusal.text());
            let partition = |partition_index| ReassignablePartitionResponse {
                partition_index,
                error_code,
                error_message: error_message.clone(),
                ..ReassignablePartitionResponse::default()
            };
            let responses = self.topics.into_iter().map(|(name, partitions)| ReassignableTopicResponse {
                name,
                partitions: partitions.into_iter().map(partition).collect(),
                ..ReassignableTopicResponse::default()
            });
            AlterPartitionReassignmentsResponse {
                responses: responses.collect(),
                error_code,
                error_message: error_message.clone(),
                ..AlterPartitionReassignmentsResponse::default()
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{carried, versions};
    use barnabas_base::ErrorCode;
    use barnabas_wire::messages::alter_partition_reassignments_request::{
        ReassignablePartition, ReassignableTopic,
    };

    #[test]
    fn refusal_stands_at_the_top_and_at_each_partition() {
        let partition =
            |partition_index| ReassignablePartition { partition_index, ..ReassignablePartition::default() };
        let topic = ReassignableTopic {
            name: "t".into(),
            partitions: vec![partition(3), partition(5)],
            ..ReassignableTopic::default()
        };
        let request = AlterPartitionReassignmentsRequest { topics: vec![topic], ..Default::default() };
        for version in versions::<AlterPartitionReassignmentsResponse>() {
            let pending = Pending::new(&request);
            let response = carried(pending.respond(Err(ErrorCode::RequestTimedOut.into())), version);
            let [topic] = &response.responses[..] else { panic!("{response:?}") };
            let codes = topic.partitions.iter().map(|one| (one.partition_index, one.error_code));
            assert_eq!((response.error_code, &*topic.name), (7, "t"));
            assert_eq!(codes.collect::<Vec<_>>(), [(3, 7), (5, 7)]);
        }
    }
}
