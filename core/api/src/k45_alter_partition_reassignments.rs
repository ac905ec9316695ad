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

use barnabas_wire::messages::AlterPartitionReassignmentsResponse;

use crate::Refusal;

/// The answer to the client, from the controller's or from the reason why there is none.
pub fn respond(
    outcome: Result<AlterPartitionReassignmentsResponse, Refusal>,
) -> AlterPartitionReassignmentsResponse {
    outcome.unwrap_or_else(|refusal| AlterPartitionReassignmentsResponse {
        error_code: refusal.code.code(),
        error_message: refusal.text(),
        ..AlterPartitionReassignmentsResponse::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{carried, versions};
    use barnabas_base::ErrorCode;

    #[test]
    fn a_refusal_stands_at_the_top_in_every_version() {
        for version in versions::<AlterPartitionReassignmentsResponse>() {
            let response = carried(respond(Err(ErrorCode::RequestTimedOut.into())), version);
            assert_eq!((response.error_code, response.responses.len()), (7, 0));
        }
    }
}
