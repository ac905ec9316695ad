//! ACLs that have no effect: shadowed by others, or matched by nothing that was asked for.
//!
//! For administrators who review ACLs. It changes no decision.

use barnabas_base::{Map, Uuid};
use barnabas_metadata::access::{Acl, Acls};

use crate::acl::{self, Operations, WILDCARD, WILDCARD_PRINCIPAL, allows, is_literal};
use crate::explain::{Question, concerns_resource, covers_callers, decides};

/// An ACL that may go, and the one that makes it so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shadowed {
    pub acl: Uuid,
    /// A DENY that takes away all that the ACL allows, or an entry of the same permission that says the same and more.
    pub by: Uuid,
}

/// The patterns of ACLs, by what a wider pattern must have in common with a narrower one.
type Patterns<'a> = Map<(i8, bool, &'a str, &'a str), Vec<(Uuid, &'a Acl)>>;

/// The ACLs that one other ACL makes useless, in the order of their ids. Of equal ACLs the one with the lowest id
/// stays.
///
/// Not found: an ACL that several others make useless only together.
pub fn shadowed(acls: &Acls) -> Vec<Shadowed> {
    let mut patterns = Patterns::default();
    for (&id, acl) in acls {
        let key = (acl.resource_type, is_literal(acl.pattern_type), &*acl.resource_name, &*acl.principal);
        patterns.entry(key).or_default().push((id, acl));
    }
    acls.iter()
        .filter_map(|(&id, acl)| {
            let by =
                wider(&patterns, acl).find(|(other, wide)| *other != id && shadows(*other, wide, id, acl))?.0;
            Some(Shadowed { acl: id, by })
        })
        .collect()
}

/// The ACLs whose pattern and principal take in those of this one, itself included.
fn wider<'a>(patterns: &'a Patterns<'a>, acl: &'a Acl) -> impl Iterator<Item = (Uuid, &'a Acl)> {
    let name = &*acl.resource_name;
    let is_literal = is_literal(acl.pattern_type);
    let of_every_name = is_literal && name == WILDCARD;
    let ends = name.char_indices().map(|(at, letter)| at + letter.len_utf8());
    let prefixes = ends.filter(move |_| !of_every_name).map(|end| (false, &name[..end]));
    let literal = is_literal.then_some((true, name));
    let every = (!of_every_name).then_some((true, WILDCARD));
    let own = Some(&*acl.principal);
    let any = (&*acl.principal != WILDCARD_PRINCIPAL).then_some(WILDCARD_PRINCIPAL);
    literal.into_iter().chain(prefixes).chain(every).flat_map(move |(is_literal, name)| {
        let principals = own.into_iter().chain(any);
        let found = principals
            .filter_map(move |principal| patterns.get(&(acl.resource_type, is_literal, name, principal)));
        found.flatten().copied()
    })
}

fn shadows(wide_id: Uuid, wide: &Acl, id: Uuid, acl: &Acl) -> bool {
    // An ALLOW takes nothing from a DENY.
    if allows(wide.permission) && !allows(acl.permission) {
        return false;
    }
    covers(wide, acl) && (!covers(acl, wide) || wide.permission != acl.permission || wide_id < id)
}

/// Whether an ACL decides all that the other one decides, for all its callers. Their patterns are known to fit.
fn covers(wide: &Acl, narrow: &Acl) -> bool {
    let decided =
        |acl: &Acl| -> Operations { acl::decided_operations(acl.operation, allows(acl.permission)) };
    covers_callers(wide, narrow) && decided(narrow) & !decided(wide) == 0 && covers_names(wide, narrow)
}

fn covers_names(wide: &Acl, narrow: &Acl) -> bool {
    let of_every_name = |acl: &Acl| is_literal(acl.pattern_type) && acl.resource_name == WILDCARD;
    if wide.resource_type != narrow.resource_type {
        return false;
    }
    match (is_literal(wide.pattern_type), is_literal(narrow.pattern_type)) {
        _ if of_every_name(wide) => true,
        _ if of_every_name(narrow) => false,
        (true, literal) => literal && wide.resource_name == narrow.resource_name,
        (false, _) => narrow.resource_name.starts_with(&*wide.resource_name),
    }
}

/// The ACLs that concern none of these questions, in the order of their ids: what was asked in some time, for example.
pub fn unused<'a>(acls: &Acls, asked: impl IntoIterator<Item = Question<'a>>) -> Vec<Uuid> {
    let mut left: Vec<(&Uuid, &Acl)> = acls.iter().collect();
    for question in asked {
        left.retain(|(_, acl)| decides(acl, &question).is_none());
    }
    left.into_iter().map(|(id, _)| *id).collect()
}

/// The ACLs that match no resource that there is, in the order of their ids. The wildcard pattern matches always.
pub fn without_resource<'a>(
    acls: &Acls,
    resource_type: acl::ResourceType,
    names: impl IntoIterator<Item = &'a str>,
) -> Vec<Uuid> {
    let of_type = acls.iter().filter(|(_, acl)| acl.resource_type == resource_type.code());
    let mut left: Vec<(&Uuid, &Acl)> =
        of_type.filter(|(_, acl)| !(is_literal(acl.pattern_type) && acl.resource_name == WILDCARD)).collect();
    for name in names {
        left.retain(|(_, acl)| !concerns_resource(acl, resource_type, name));
    }
    left.into_iter().map(|(id, _)| *id).collect()
}
