//! ACLs: described, made, deleted; and the names of their parts.
//!
//! Source: Kafka `ResourceType`, `PatternType`, `AclOperation`, `AclPermissionType`.

use barnabas_client::{ClientError, Cluster, check};
use barnabas_wire::messages::create_acls_request::AclCreation;
use barnabas_wire::messages::delete_acls_request::DeleteAclsFilter;
use barnabas_wire::messages::{CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest};

pub const RESOURCES: &[&str] =
    &["UNKNOWN", "ANY", "TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER"];
pub const PATTERNS: &[&str] = &["UNKNOWN", "ANY", "MATCH", "LITERAL", "PREFIXED"];
pub const OPERATIONS: &[&str] = &[
    "UNKNOWN",
    "ANY",
    "ALL",
    "READ",
    "WRITE",
    "CREATE",
    "DELETE",
    "ALTER",
    "DESCRIBE",
    "CLUSTER_ACTION",
    "DESCRIBE_CONFIGS",
    "ALTER_CONFIGS",
    "IDEMPOTENT_WRITE",
    "CREATE_TOKENS",
    "DESCRIBE_TOKENS",
    "TWO_PHASE_COMMIT",
];
pub const PERMISSIONS: &[&str] = &["UNKNOWN", "ANY", "DENY", "ALLOW"];
/// In a filter: whatever it is.
pub const ANY: i8 = 1;

/// An ACL, or a filter for ACLs: there `ANY` and `None` stand for everything.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Acl {
    pub resource_type: i8,
    pub resource_name: Option<String>,
    pub pattern_type: i8,
    pub principal: Option<String>,
    pub host: Option<String>,
    pub operation: i8,
    pub permission: i8,
}

/// The number of a name in one of the tables above, in any case.
pub fn number(names: &[&str], name: &str) -> Option<i8> {
    let at = names.iter().position(|known| known.eq_ignore_ascii_case(name))?;
    i8::try_from(at).ok().filter(|number| *number > 0)
}

pub fn name(names: &[&'static str], number: i8) -> &'static str {
    usize::try_from(number).ok().and_then(|at| names.get(at)).copied().unwrap_or("UNKNOWN")
}

/// In order.
///
/// # Errors
/// `CLUSTER_AUTHORIZATION_FAILED`, `SECURITY_DISABLED` …
pub async fn describe(cluster: &mut Cluster, filter: &Acl) -> Result<Vec<Acl>, ClientError> {
    let request = DescribeAclsRequest {
        resource_type_filter: filter.resource_type,
        resource_name_filter: filter.resource_name.as_deref().map(Into::into),
        pattern_type_filter: filter.pattern_type,
        principal_filter: filter.principal.as_deref().map(Into::into),
        host_filter: filter.host.as_deref().map(Into::into),
        operation: filter.operation,
        permission_type: filter.permission,
        ..Default::default()
    };
    let answer = cluster.ask_any(&request).await?;
    check("describing ACLs", answer.error_code, answer.error_message.as_deref())?;
    let mut acls = Vec::new();
    for resource in &answer.resources {
        for told in &resource.acls {
            acls.push(Acl {
                resource_type: resource.resource_type,
                resource_name: Some(resource.resource_name.to_string()),
                pattern_type: resource.pattern_type,
                principal: Some(told.principal.to_string()),
                host: Some(told.host.to_string()),
                operation: told.operation,
                permission: told.permission_type,
            });
        }
    }
    acls.sort();
    Ok(acls)
}

/// # Errors
/// The first refusal. ACLs before it have been made.
pub async fn create(cluster: &mut Cluster, acls: &[Acl]) -> Result<(), ClientError> {
    let text = |text: &Option<String>| text.as_deref().unwrap_or_default().into();
    let creation = |acl: &Acl| AclCreation {
        resource_type: acl.resource_type,
        resource_name: text(&acl.resource_name),
        resource_pattern_type: acl.pattern_type,
        principal: text(&acl.principal),
        host: text(&acl.host),
        operation: acl.operation,
        permission_type: acl.permission,
        ..Default::default()
    };
    let request = CreateAclsRequest { creations: acls.iter().map(creation).collect(), ..Default::default() };
    let answer = cluster.ask_controller(|_| request.clone()).await?;
    for told in &answer.results {
        check("making an ACL", told.error_code, told.error_message.as_deref())?;
    }
    Ok(())
}

/// Deletes what `filter` finds; returns what it was.
///
/// # Errors
/// The first refusal.
pub async fn delete(cluster: &mut Cluster, filter: &Acl) -> Result<Vec<Acl>, ClientError> {
    let filter = DeleteAclsFilter {
        resource_type_filter: filter.resource_type,
        resource_name_filter: filter.resource_name.as_deref().map(Into::into),
        pattern_type_filter: filter.pattern_type,
        principal_filter: filter.principal.as_deref().map(Into::into),
        host_filter: filter.host.as_deref().map(Into::into),
        operation: filter.operation,
        permission_type: filter.permission,
        ..Default::default()
    };
    let request = DeleteAclsRequest { filters: vec![filter], ..Default::default() };
    let answer = cluster.ask_controller(|_| request.clone()).await?;
    let mut acls = Vec::new();
    for told in &answer.filter_results {
        check("deleting ACLs", told.error_code, told.error_message.as_deref())?;
        for acl in &told.matching_acls {
            check("deleting an ACL", acl.error_code, acl.error_message.as_deref())?;
            acls.push(Acl {
                resource_type: acl.resource_type,
                resource_name: Some(acl.resource_name.to_string()),
                pattern_type: acl.pattern_type,
                principal: Some(acl.principal.to_string()),
                host: Some(acl.host.to_string()),
                operation: acl.operation,
                permission: acl.permission_type,
            });
        }
    }
    acls.sort();
    Ok(acls)
}
