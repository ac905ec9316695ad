//! # DeleteAcls, key 31, versions 0–3
//!
//! Deletes the ACLs that filters match.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-140) |
//! | 1 | pattern types in filters and answers (KIP-290) |
//! | 2 | flexible (KIP-482) |
//! | 3 | the resource type USER (KIP-373) |
//!
//! ## Left out
//! - Nothing. Without an authorizer the answer is SECURITY_DISABLED, as Kafka's.
//!
//! What is decided: core/quorum's `controller/access/acls.rs`.
//!
//! Source: Kafka 4.4 `ControllerApis`, `AclApis.handleDeleteAcls`, `DeleteAclsRequest`.

use barnabas_wire::messages::delete_acls_request::DeleteAclsRequest;
use barnabas_wire::messages::delete_acls_response::{DeleteAclsFilterResult, DeleteAclsResponse};

use crate::Refusal;

/// Numbers of Kafka's `PatternType`.
const ANY: i8 = 1;
const LITERAL: i8 = 3;

/// For the controller.
#[derive(Debug)]
pub struct Work {
    pub request: DeleteAclsRequest,
    pub pending: Pending,
}

/// What the answer needs of the request.
#[derive(Debug)]
pub struct Pending {
    count: usize,
}

/// The controller's work: all of it. Version 0 knows literal patterns only, and cannot answer others.
pub fn plan(mut request: DeleteAclsRequest, version: i16) -> Work {
    if version == 0 {
        for filter in request.filters.iter_mut().filter(|filter| filter.pattern_type_filter == ANY) {
            filter.pattern_type_filter = LITERAL;
        }
    }
    let pending = Pending { count: request.filters.len() };
    Work { request, pending }
}

impl Pending {
    /// The answer to the client, from the controller's or from the reason why there is none.
    pub fn respond(self, outcome: Result<DeleteAclsResponse, Refusal>) -> DeleteAclsResponse {
        outcome.unwrap_or_else(|refusal| {
            let result = DeleteAclsFilterResult {
                error_code: refusal.code.code(),
                error_message: refusal.text(),
                ..DeleteAclsFilterResult::default()
            };
            DeleteAclsResponse { filter_results: vec![result; self.count], ..DeleteAclsResponse::default() }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{carried, versions};
    use barnabas_base::ErrorCode;
    use barnabas_wire::messages::delete_acls_request::DeleteAclsFilter;

    fn request(pattern_type_filter: i8) -> DeleteAclsRequest {
        let filter = DeleteAclsFilter { pattern_type_filter, ..DeleteAclsFilter::default() };
        DeleteAclsRequest { filters: vec![filter], ..DeleteAclsRequest::default() }
    }

    #[test]
    fn version_0_deletes_literal_patterns_only() {
        assert_eq!(plan(request(ANY), 0).request, request(LITERAL));
        assert_eq!(plan(request(ANY), 1).request, request(ANY));
    }

    #[test]
    fn without_a_controller_every_filter_is_refused() {
        for version in versions::<DeleteAclsResponse>() {
            let work = plan(request(LITERAL), version);
            let response = carried(work.pending.respond(Err(ErrorCode::NotController.into())), version);
            assert_eq!(response.filter_results.iter().map(|one| one.error_code).collect::<Vec<_>>(), [41]);
        }
    }
}
