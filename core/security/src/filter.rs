//! Which ACLs DescribeAcls shows and DeleteAcls deletes (KIP-140, KIP-290).
//!
//! Source: Kafka 4.4 `AclBindingFilter`, `ResourcePatternFilter.matches`, `AccessControlEntryFilter.matches`,
//! `AclControlManager.validateFilter`.

use barnabas_base::{Text, Uuid};
use barnabas_metadata::access::{Acl, Acls};

use crate::acl::{self, ANY, MATCH, Operation, PatternType, Permission, ResourceType, WILDCARD};

/// A filter as requests carry it: Kafka's numbers, with "any" as 1 and names that are absent where any will do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AclFilter {
    pub resource_type: i8,
    pub resource_name: Option<Text>,
    /// Besides the pattern types of ACLs: 1 matches the name in a pattern of any type; 2 matches patterns
    /// that cover the name.
    pub pattern_type: i8,
    pub principal: Option<Text>,
    pub host: Option<Text>,
    pub operation: i8,
    pub permission: i8,
}

impl AclFilter {
    /// Every ACL.
    pub const EVERY: Self = Self {
        resource_type: ANY,
        resource_name: None,
        pattern_type: ANY,
        principal: None,
        host: None,
        operation: ANY,
        permission: ANY,
    };
}

/// A filter with a number that this node does not know: INVALID_REQUEST.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    #[error("Unknown patternFilter.")]
    Pattern,
    #[error("Unknown entryFilter.")]
    Entry,
}

impl AclFilter {
    /// # Errors
    /// A number that is unknown here.
    pub fn check(&self) -> Result<(), FilterError> {
        let is_pattern = self.pattern_type == MATCH || PatternType::from_code(self.pattern_type).is_some();
        let is_type = ResourceType::from_code(self.resource_type).is_some();
        if !(is_type || self.resource_type == ANY) || !(is_pattern || self.pattern_type == ANY) {
            return Err(FilterError::Pattern);
        }
        let is_operation = Operation::from_code(self.operation).is_some();
        let is_permission = Permission::from_code(self.permission).is_some();
        if !(is_operation || self.operation == ANY) || !(is_permission || self.permission == ANY) {
            return Err(FilterError::Entry);
        }
        Ok(())
    }

    pub fn matches(&self, acl: &Acl) -> bool {
        let is_any_or = |wanted: i8, there: i8| wanted == ANY || wanted == there;
        let is_none_or = |wanted: &Option<Text>, there: &Text| wanted.as_ref().is_none_or(|it| it == there);
        is_any_or(self.resource_type, acl.resource_type)
            && self.matches_pattern(acl)
            && is_none_or(&self.principal, &acl.principal)
            && is_none_or(&self.host, &acl.host)
            && is_any_or(self.operation, acl.operation)
            && is_any_or(self.permission, acl.permission)
    }

    fn matches_pattern(&self, acl: &Acl) -> bool {
        let matches = self.pattern_type == MATCH;
        if !matches && self.pattern_type != ANY && self.pattern_type != acl.pattern_type {
            return false;
        }
        match &self.resource_name {
            None => true,
            Some(name) if !matches => *name == acl.resource_name,
            Some(name) if acl::is_literal(acl.pattern_type) => {
                *name == acl.resource_name || acl.resource_name == WILDCARD
            }
            Some(name) => name.starts_with(acl.resource_name.as_str()),
        }
    }

    /// The ACLs that match, by id.
    pub fn of<'a>(&'a self, acls: &'a Acls) -> impl Iterator<Item = (Uuid, &'a Acl)> {
        acls.iter().filter(|(_, acl)| self.matches(acl)).map(|(&id, acl)| (id, acl))
    }
}
