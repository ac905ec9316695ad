//! Whether a new ACL may be stored: the checks of CreateAcls.
//!
//! Source: Kafka 4.4 `AclApis.handleCreateAcls`, then `AclControlManager.validateNewAcl` and `validateHostPattern`.

use barnabas_base::ErrorCode;
use barnabas_metadata::MetadataVersion;
use barnabas_metadata::access::Acl;

use crate::acl::{self, CLUSTER_NAME, Operation, PatternType, Permission, ResourceType};
use crate::host::Cidr;

/// Why an ACL is refused: for the client, with Kafka's sentence where Kafka's is published.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BindingError {
    #[error("The only valid name for the CLUSTER resource is {CLUSTER_NAME}")]
    ClusterName,
    #[error("Invalid empty resource name")]
    EmptyName,
    #[error("Invalid resourceType {0}")]
    ResourceType(&'static str),
    #[error("Invalid patternType {0}")]
    PatternType(&'static str),
    #[error("Invalid operation {0}")]
    Operation(&'static str),
    #[error("Invalid permissionType {0}")]
    Permission(&'static str),
    #[error(
        "Could not parse principal from `{0}` (no colon is present separating the principal type from the principal name)"
    )]
    Principal(String),
    #[error("The host should not be empty; expected an address, a range such as 10.0.0.0/8, or *")]
    EmptyHost,
    #[error("Invalid CIDR notation `{0}`; expected a range such as 10.0.0.0/8 or 2001:db8::/32")]
    Cidr(String),
    #[error("CIDR-based ACL host patterns require metadata version 4.4-IV1 or later")]
    CidrUnsupported,
}

impl BindingError {
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::CidrUnsupported => ErrorCode::UnsupportedVersion,
            _ => ErrorCode::InvalidRequest,
        }
    }
}

/// Checks a new ACL in Kafka's order.
///
/// # Errors
/// The first check that fails.
pub fn check(acl: &Acl, version: MetadataVersion) -> Result<(), BindingError> {
    let resource_type = ResourceType::from_code(acl.resource_type);
    if resource_type == Some(ResourceType::Cluster) && acl.resource_name != CLUSTER_NAME {
        return Err(BindingError::ClusterName);
    }
    if acl.resource_name.is_empty() {
        return Err(BindingError::EmptyName);
    }
    if resource_type.is_none() {
        return Err(BindingError::ResourceType(acl::name_of(None, acl.resource_type)));
    }
    if PatternType::from_code(acl.pattern_type).is_none() {
        let name =
            if acl.pattern_type == acl::MATCH { "MATCH" } else { acl::name_of(None, acl.pattern_type) };
        return Err(BindingError::PatternType(name));
    }
    if Operation::from_code(acl.operation).is_none() {
        return Err(BindingError::Operation(acl::name_of(None, acl.operation)));
    }
    if Permission::from_code(acl.permission).is_none() {
        return Err(BindingError::Permission(acl::name_of(None, acl.permission)));
    }
    if !acl.principal.contains(':') {
        return Err(BindingError::Principal(acl.principal.to_string()));
    }
    check_host(&acl.host, version)
}

fn check_host(host: &str, version: MetadataVersion) -> Result<(), BindingError> {
    if host.is_empty() {
        return Err(BindingError::EmptyHost);
    }
    if !host.contains('/') {
        return Ok(());
    }
    if !version.has_cidr_acls() {
        return Err(BindingError::CidrUnsupported);
    }
    Cidr::parse(host).map(|_| ()).ok_or_else(|| BindingError::Cidr(host.to_owned()))
}
