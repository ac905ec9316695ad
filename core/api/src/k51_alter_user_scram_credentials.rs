//! # AlterUserScramCredentials, key 51, version 0
//!
//! Sets and deletes users' SCRAM credentials. The client salts and hashes the password; the cluster never has it.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-554) |
//!
//! ## Left out
//! - Nothing.
//!
//! What is decided: core/quorum's `controller/access/scram.rs`.
//!
//! Source: Kafka 4.4 `ControllerApis.handleAlterUserScramCredentials`, `AlterUserScramCredentialsRequest`.

use std::collections::BTreeSet;

use barnabas_base::Text;
use barnabas_wire::Str;
use barnabas_wire::messages::alter_user_scram_credentials_request::AlterUserScramCredentialsRequest;
use barnabas_wire::messages::alter_user_scram_credentials_response::{
    AlterUserScramCredentialsResponse, AlterUserScramCredentialsResult,
};

use crate::Refusal;

/// For the controller.
#[derive(Debug)]
pub struct Work {
    pub request: AlterUserScramCredentialsRequest,
    pub pending: Pending,
}

/// What the answer needs of the request.
#[derive(Debug)]
pub struct Pending {
    /// Each user once, as in Kafka's answer to a request that failed as a whole.
    users: BTreeSet<Text>,
}

/// The controller's work: all of it.
pub fn plan(request: AlterUserScramCredentialsRequest) -> Work {
    let deletions = request.deletions.iter().map(|deletion| deletion.name.text());
    let upsertions = request.upsertions.iter().map(|upsertion| upsertion.name.text());
    let pending = Pending { users: deletions.chain(upsertions).collect() };
    Work { request, pending }
}

impl Pending {
    /// The answer to the client, from the controller's or from the reason why there is none.
    pub fn respond(
        self,
        outcome: Result<AlterUserScramCredentialsResponse, Refusal>,
    ) -> AlterUserScramCredentialsResponse {
        outcome.unwrap_or_else(|refusal| {
            let refused = |user: &Text| AlterUserScramCredentialsResult {
                user: Str::from(user),
                error_code: refusal.code.code(),
                error_message: refusal.text(),
                ..AlterUserScramCredentialsResult::default()
            };
            let results = self.users.iter().map(refused).collect();
            AlterUserScramCredentialsResponse { results, ..AlterUserScramCredentialsResponse::default() }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::carried;
    use barnabas_base::ErrorCode;
    use barnabas_wire::messages::alter_user_scram_credentials_request::{
        ScramCredentialDeletion, ScramCredentialUpsertion,
    };

    #[test]
    fn without_a_controller_every_user_is_refused_once() {
        let deletion =
            |name: &str| ScramCredentialDeletion { name: name.into(), ..ScramCredentialDeletion::default() };
        let upsertion = |name: &str| ScramCredentialUpsertion {
            name: name.into(),
            ..ScramCredentialUpsertion::default()
        };
        let request = AlterUserScramCredentialsRequest {
            deletions: vec![deletion("b"), deletion("a")],
            upsertions: vec![upsertion("b")],
            ..AlterUserScramCredentialsRequest::default()
        };
        let response = plan(request).pending.respond(Err(ErrorCode::RequestTimedOut.into()));
        let results = carried(response, 0).results;
        let users: Vec<(&str, i16)> = results.iter().map(|one| (&*one.user, one.error_code)).collect();
        assert_eq!(users, [("a", 7), ("b", 7)]);
    }
}
