//! # CreateAcls, key 30, versions 0–3
//!
//! Makes ACLs.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-140) |
//! | 1 | prefixed resource patterns (KIP-290) |
//! | 2 | flexible (KIP-482) |
//! | 3 | the resource type USER (KIP-373) |
//!
//! ## Left out
//! - Nothing. Without an authorizer the answer is SECURITY_DISABLED, as Kafka's.
//!
//! What is decided: core/quorum's `controller/access/acls.rs`.
//!
//! Source: Kafka 4.4 `ControllerApis`, `AclApis.handleCreateAcls`.

use barnabas_wire::messages::create_acls_request::CreateAclsRequest;
use barnabas_wire::messages::create_acls_response::{AclCreationResult, CreateAclsResponse};

use crate::Refusal;

/// For the controller.
#[derive(Debug)]
pub struct Work {
    pub request: CreateAclsRequest,
    pub pending: Pending,
}

/// What the answer needs of the request.
#[derive(Debug)]
pub struct Pending {
    count: usize,
}

/// The controller's work: all of it.
pub fn plan(request: CreateAclsRequest) -> Work {
    let pending = Pending { count: request.creations.len() };
    Work { request, pending }
}

impl Pending {
    /// The answer to the client, from the controller's or from the reason why there is none.
    pub fn respond(self, outcome: Result<CreateAclsResponse, Refusal>) -> CreateAclsResponse {
        outcome.unwrap_or_else(|refusal| {
            let result = AclCreationResult {
                error_code: refusal.code.code(),
                error_message: refusal.text(),
                ..AclCreationResult::default()
            };
            CreateAclsResponse { results: vec![result; self.count], ..CreateAclsResponse::default() }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{carried, versions};
    use barnabas_base::ErrorCode;

    #[test]
    fn without_a_controller_every_entry_is_refused() {
        let creations = vec![Default::default(), Default::default()];
        let request = CreateAclsRequest { creations, ..CreateAclsRequest::default() };
        for version in versions::<CreateAclsResponse>() {
            let work = plan(request.clone());
            let refusal = Refusal::new(ErrorCode::RequestTimedOut, "no active controller");
            let response = carried(work.pending.respond(Err(refusal)), version);
            assert_eq!(response.results.iter().map(|one| one.error_code).collect::<Vec<_>>(), [7, 7]);
            assert_eq!(response.results[1].error_message.as_deref(), Some("no active controller"));
        }
    }
}
