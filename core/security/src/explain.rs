//! Explains a decision: which ACL allowed or denied it. Also lists the principals that may do something.
//!
//! These look at every ACL, one after the other: they answer people, not requests. They name the ACLs that
//! [`crate::Authorizer::decide`] found.

mod denied;

pub use denied::why_denied;

use barnabas_base::{Text, Uuid};
use barnabas_metadata::access::{Acl, Acls};

use crate::acl::{
    self, Operation, PatternType, Permission, ResourceType, WILDCARD, WILDCARD_PRINCIPAL, allows, is_literal,
};
use crate::authorizer::Verdict;
use crate::host::{Cidr, Host};

/// What was, or would be, asked for.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The whole text, such as `User:alice`.
    pub principal: &'a str,
    pub host: &'a Host,
    pub operation: Operation,
    pub resource_type: ResourceType,
    pub resource_name: &'a str,
}

/// The reason for a verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Explanation<'a> {
    /// The setting `super.users`.
    SuperUser,
    /// This ACL allows. Of several it is the most specific.
    Allowed { id: Uuid, acl: &'a Acl },
    /// This ACL denies. Of several it is the most specific; all must go before an ALLOW counts.
    Denied { id: Uuid, acl: &'a Acl },
    /// The resource has no ACLs, and `allow.everyone.if.no.acl.found` is true.
    AllowedWithoutAcls,
    /// No ACL allows. This one, for all hosts, would be enough.
    Missing { acl: Acl },
}

/// Finds the reason for the verdict of the authorizer over these ACLs.
pub fn explain<'a>(acls: &'a Acls, question: &Question<'_>, verdict: Verdict) -> Explanation<'a> {
    let first = |wanted: bool| {
        let that_decide = acls.iter().filter(|(_, acl)| decides(acl, question) == Some(wanted));
        that_decide.min_by_key(|(id, acl)| (specificity(acl), **id))
    };
    match verdict {
        Verdict::SuperUser => Explanation::SuperUser,
        Verdict::AllowedWithoutAcls => Explanation::AllowedWithoutAcls,
        Verdict::NotAllowed | Verdict::NotAllowedWithoutAcls => {
            Explanation::Missing { acl: missing(question) }
        }
        Verdict::Allowed => first(true)
            .map(|(&id, acl)| Explanation::Allowed { id, acl })
            .expect("an ACL of the same image allows"),
        Verdict::Denied => first(false)
            .map(|(&id, acl)| Explanation::Denied { id, acl })
            .expect("an ACL of the same image denies"),
    }
}

/// The shortest ACL that allows it.
fn missing(question: &Question<'_>) -> Acl {
    Acl {
        resource_type: question.resource_type.code(),
        resource_name: Text::from(question.resource_name),
        pattern_type: PatternType::Literal.code(),
        principal: Text::from(question.principal),
        host: Text::from(WILDCARD),
        operation: question.operation.code(),
        permission: Permission::Allow.code(),
    }
}

/// Whether an ACL allows (`true`), denies (`false`) or does not concern it: one ACL as Kafka reads it.
///
/// The plain form of what the index does, and its oracle in tests.
pub fn decides(acl: &Acl, question: &Question<'_>) -> Option<bool> {
    let concerns = concerns_resource(acl, question.resource_type, question.resource_name)
        && (acl.principal == question.principal || acl.principal == WILDCARD_PRINCIPAL)
        && concerns_host(&acl.host, question.host);
    let is_allow = allows(acl.permission);
    let decided = acl::decided_operations(acl.operation, is_allow);
    (concerns && decided & question.operation.bit() != 0).then_some(is_allow)
}

/// Whether an ACL's pattern matches a resource.
pub fn concerns_resource(acl: &Acl, resource_type: ResourceType, name: &str) -> bool {
    let matches = if is_literal(acl.pattern_type) {
        acl.resource_name == name || acl.resource_name == WILDCARD
    } else {
        name.starts_with(acl.resource_name.as_str())
    };
    acl.resource_type == resource_type.code() && matches
}

fn concerns_host(of_acl: &str, host: &Host) -> bool {
    let in_range = || {
        let range = Cidr::parse(of_acl)?;
        host.address().map(|address| range.contains(address))
    };
    of_acl == WILDCARD || of_acl == host.text() || in_range().unwrap_or(false)
}

/// Kafka's order of ACLs: the literal name, then prefixes, the longest first, then the wildcard; less than that decides
/// between one caller's ACLs for the same pattern.
fn specificity(acl: &Acl) -> impl Ord + use<> {
    let kind = match is_literal(acl.pattern_type) {
        true if acl.resource_name == WILDCARD => 2,
        true => 0,
        false => 1,
    };
    (
        kind,
        std::cmp::Reverse(acl.resource_name.len()),
        acl.principal == WILDCARD_PRINCIPAL,
        acl.host == WILDCARD,
    )
}

/// The principals that may do something to a resource.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WhoCan<'a> {
    /// ALLOW entries that count: no DENY entry covers all that they allow here.
    pub allowed: Vec<(Uuid, &'a Acl)>,
    /// DENY entries, which take away from these.
    pub denied: Vec<(Uuid, &'a Acl)>,
}

/// The principals and hosts that may do `operation` to the resource, besides super users.
pub fn who_can<'a>(
    acls: &'a Acls,
    operation: Operation,
    resource_type: ResourceType,
    name: &str,
) -> WhoCan<'a> {
    let mut found = WhoCan::default();
    for (&id, acl) in acls {
        let is_allow = allows(acl.permission);
        let decided = acl::decided_operations(acl.operation, is_allow);
        if decided & operation.bit() != 0 && concerns_resource(acl, resource_type, name) {
            let list = if is_allow { &mut found.allowed } else { &mut found.denied };
            list.push((id, acl));
        }
    }
    let WhoCan { allowed, denied } = &mut found;
    allowed.retain(|(_, allow)| !denied.iter().any(|(_, deny)| covers_callers(deny, allow)));
    for list in [allowed, denied] {
        list.sort_by_key(|(id, acl)| (&acl.principal, &acl.host, *id));
    }
    found
}

/// Whether one ACL concerns every caller that the other does.
pub(crate) fn covers_callers(wide: &Acl, narrow: &Acl) -> bool {
    (wide.principal == narrow.principal || wide.principal == WILDCARD_PRINCIPAL)
        && covers_hosts(&wide.host, &narrow.host)
}

fn covers_hosts(wide: &str, narrow: &str) -> bool {
    let in_range = || {
        let range = Cidr::parse(wide)?;
        match Cidr::parse(narrow) {
            Some(narrow) => Some(range.covers(&narrow)),
            // The text must be Java's: an entry in another spelling matches no client.
            None => Host::parse(narrow).address().map(|address| range.contains(address)),
        }
    };
    wide == WILDCARD || wide == narrow || in_range().unwrap_or(false)
}
