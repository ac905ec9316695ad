//! # DescribeAcls, key 29, versions 0–3
//!
//! Lists the ACLs that a filter matches, those of one resource pattern together.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-140); LITERAL patterns alone |
//! | 1 | prefixed resource patterns (KIP-290) |
//! | 2 | flexible (KIP-482) |
//! | 3 | the resource type USER (KIP-373) |
//!
//! ## Left out
//! - An answer of more than `answer.bytes.max` bytes: it is refused with INVALID_REQUEST.
//! - A filter with unknown numbers is answered with INVALID_REQUEST; Kafka closes the connection.
//!
//! Without an authorizer the answer is SECURITY_DISABLED, as Kafka's.
//!
//! Source: Kafka 4.4 `AclApis.handleDescribeAcls`, `DescribeAclsResponse.aclsResources`.

use std::collections::BTreeMap;

use barnabas_base::{ErrorCode, Text};
use barnabas_metadata::access::Acl;
use barnabas_security::AclFilter;
use barnabas_wire::Str;
use barnabas_wire::messages::describe_acls_request::DescribeAclsRequest;
use barnabas_wire::messages::describe_acls_response::{
    AclDescription, DescribeAclsResource, DescribeAclsResponse,
};

use crate::{Context, Refusal, TooLarge};

/// The answer: patterns by type, name and kind; their ACLs by id.
pub fn answer(request: &DescribeAclsRequest, ctx: &Context<'_>) -> DescribeAclsResponse {
    match described(request, ctx) {
        Ok(resources) => {
            DescribeAclsResponse { resources, error_message: None, ..DescribeAclsResponse::default() }
        }
        Err(refusal) => DescribeAclsResponse {
            error_code: refusal.code.code(),
            error_message: refusal.text(),
            ..DescribeAclsResponse::default()
        },
    }
}

fn described(request: &DescribeAclsRequest, ctx: &Context<'_>) -> Result<Vec<DescribeAclsResource>, Refusal> {
    if ctx.access.is_open() {
        return Err(Refusal::new(ErrorCode::SecurityDisabled, "No Authorizer is configured."));
    }
    let filter = filter_of(request);
    filter.check().map_err(|error| Refusal::new(ErrorCode::InvalidRequest, error.to_string()))?;
    let mut patterns: BTreeMap<(i8, &Text, i8), Vec<AclDescription>> = BTreeMap::new();
    for (_, acl) in filter.of(&ctx.image.acls) {
        let described = take(acl, ctx).map_err(|large| large.refusal(ErrorCode::RequestTimedOut))?;
        let pattern = (acl.resource_type, &acl.resource_name, acl.pattern_type);
        patterns.entry(pattern).or_default().push(described);
    }
    let resources = patterns.into_iter().map(|((resource_type, name, pattern_type), acls)| {
        let resource_name = Str::from(name);
        DescribeAclsResource {
            resource_type,
            resource_name,
            pattern_type,
            acls,
            ..DescribeAclsResource::default()
        }
    });
    Ok(resources.collect())
}

fn filter_of(request: &DescribeAclsRequest) -> AclFilter {
    let text = |field: &Option<Str>| field.as_ref().map(Str::text);
    AclFilter {
        resource_type: request.resource_type_filter,
        resource_name: text(&request.resource_name_filter),
        pattern_type: request.pattern_type_filter,
        principal: text(&request.principal_filter),
        host: text(&request.host_filter),
        operation: request.operation,
        permission: request.permission_type,
    }
}

/// One ACL, counted with its pattern as a value and as written.
fn take(acl: &Acl, ctx: &Context<'_>) -> Result<AclDescription, TooLarge> {
    let texts = acl.principal.len() + acl.host.len() + acl.resource_name.len();
    ctx.room.take(size_of::<AclDescription>() + size_of::<DescribeAclsResource>() + 2 * texts)?;
    Ok(AclDescription {
        principal: Str::from(&acl.principal),
        host: Str::from(&acl.host),
        operation: acl.operation,
        permission_type: acl.permission,
        ..AclDescription::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fixture, carried};
    use barnabas_security::{Operation, ResourceType};

    fn every() -> DescribeAclsRequest {
        DescribeAclsRequest {
            resource_type_filter: 1,
            pattern_type_filter: 1,
            operation: 1,
            permission_type: 1,
            resource_name_filter: None,
            principal_filter: None,
            host_filter: None,
            ..DescribeAclsRequest::default()
        }
    }

    #[test]
    fn acls_of_one_pattern_stand_together() {
        let mut fixture = Fixture::new();
        fixture.allow(&[
            (Operation::Read, ResourceType::Topic, "b"),
            (Operation::Write, ResourceType::Topic, "a"),
            (Operation::Write, ResourceType::Topic, "b"),
        ]);
        let response = carried(answer(&every(), &fixture.ctx()), 3);
        let shown = response.resources.iter().map(|resource| {
            let operations: Vec<i8> = resource.acls.iter().map(|acl| acl.operation).collect();
            (resource.resource_type, resource.resource_name.as_str(), resource.pattern_type, operations)
        });
        assert_eq!(shown.collect::<Vec<_>>(), [(2, "a", 3, vec![4]), (2, "b", 3, vec![3, 4])]);
        let one = DescribeAclsRequest { resource_name_filter: Some("a".into()), ..every() };
        assert_eq!(answer(&one, &fixture.ctx()).resources.len(), 1);
    }

    #[test]
    fn filter_that_is_unknown_and_missing_authorizer_are_refused() {
        let mut fixture = Fixture::new();
        assert_eq!(answer(&every(), &fixture.ctx()).error_code, ErrorCode::SecurityDisabled.code());
        fixture.allow(&[]);
        let unknown = DescribeAclsRequest { operation: 0, ..every() };
        assert_eq!(answer(&unknown, &fixture.ctx()).error_code, ErrorCode::InvalidRequest.code());
    }
}
