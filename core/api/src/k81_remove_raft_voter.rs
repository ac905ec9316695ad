//! # RemoveRaftVoter, key 81, version 0
//!
//! Takes a voter out of the quorum of controllers.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-853) |
//!
//! ## Left out
//! - Nothing.
//!
//! What the quorum's leader decides, and its words: core/quorum's `raft/requests/k81_remove_raft_voter.rs`.
//!
//! Source: Kafka 4.4 `ControllerApis.handleRemoveRaftVoter`.

use barnabas_wire::messages::RemoveRaftVoterResponse;

use crate::Refusal;

/// The answer to the client, from the quorum's or from the reason why there is none.
pub fn respond(outcome: Result<RemoveRaftVoterResponse, Refusal>) -> RemoveRaftVoterResponse {
    outcome.unwrap_or_else(|refusal| RemoveRaftVoterResponse {
        error_code: refusal.code.code(),
        error_message: refusal.text(),
        ..RemoveRaftVoterResponse::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::carried;
    use barnabas_base::ErrorCode;

    #[test]
    fn a_refusal_says_why() {
        let refusal = Refusal::new(ErrorCode::RequestTimedOut, "no active controller");
        let response = carried(respond(Err(refusal)), 0);
        assert_eq!(response.error_code, ErrorCode::RequestTimedOut.code());
        assert_eq!(response.error_message.as_deref(), Some("no active controller"));
    }
}
