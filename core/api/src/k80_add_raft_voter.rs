//! # AddRaftVoter, key 80, versions 0–1
//!
//! Adds a voter to the quorum of controllers.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-853) |
//! | 1 | an answer before the new voters are committed, for controllers that join by themselves (KIP-1186) |
//!
//! ## Left out
//! - Nothing.
//!
//! What the quorum's leader decides, and its words: core/quorum's `raft/requests/k80_add_raft_voter.rs`.
//!
//! Source: Kafka 4.4 `ControllerApis.handleAddRaftVoter`.

use barnabas_wire::messages::AddRaftVoterResponse;

use crate::Refusal;

/// The answer to the client, from the quorum's or from the reason why there is none.
pub fn respond(outcome: Result<AddRaftVoterResponse, Refusal>) -> AddRaftVoterResponse {
    outcome.unwrap_or_else(|refusal| AddRaftVoterResponse {
        error_code: refusal.code.code(),
        error_message: refusal.text(),
        ..AddRaftVoterResponse::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{carried, versions};
    use barnabas_base::ErrorCode;

    #[test]
    fn a_refusal_says_why_in_every_version() {
        for version in versions::<AddRaftVoterResponse>() {
            let refusal = Refusal::new(ErrorCode::RequestTimedOut, "no active controller");
            let response = carried(respond(Err(refusal)), version);
            assert_eq!(response.error_code, ErrorCode::RequestTimedOut.code());
            assert_eq!(response.error_message.as_deref(), Some("no active controller"));
        }
    }
}
