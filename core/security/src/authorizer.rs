//! Decides whether a caller may do something: StandardAuthorizer's rules over one image.
//!
//! Use: build an [`Authorizer`] for each image whose ACLs differ, resolve a [`Caller`] for each connection and image,
//! then [`Authorizer::decide`] for each resource of a request.
//!
//! Source: Kafka 4.4 `StandardAuthorizerData.authorize`, `findAclRule`, `findResult`.

pub mod settings;

use barnabas_base::Offset;
use barnabas_metadata::Image;

use crate::acl::{Operation, ResourceType};
use crate::host::Host;
use crate::index::{Entries, Index, Matched, Work};
use crate::super_users::SuperUsers;

/// The ACLs of one image with the settings that go with them.
#[derive(Debug)]
pub struct Authorizer {
    pub(crate) index: Index,
    super_users: SuperUsers,
    allow_everyone: bool,
    acls: usize,
    built_at: Offset,
}

/// What concerns one principal at one address. Valid for the [`Authorizer`] that resolved it, and no other.
#[derive(Debug, Clone)]
pub struct Caller {
    pub(crate) is_super: bool,
    pub(crate) matched: Matched,
    built_at: Offset,
}

/// A decision and what it rests on. Which ACL it was is found by [`crate::explain::explain`], off the data path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The principal is one of `super.users`.
    SuperUser,
    /// An ALLOW entry matches and no DENY entry does.
    Allowed,
    /// A DENY entry matches.
    Denied,
    /// No entry matches the caller, and the resource has entries.
    NotAllowed,
    /// The resource has no entries and `allow.everyone.if.no.acl.found` is true.
    AllowedWithoutAcls,
    /// The resource has no entries and `allow.everyone.if.no.acl.found` is false.
    NotAllowedWithoutAcls,
}

impl Verdict {
    pub const fn is_allowed(self) -> bool {
        matches!(self, Self::SuperUser | Self::Allowed | Self::AllowedWithoutAcls)
    }
}

impl Caller {
    /// One of `super.users`.
    pub fn is_super_user(&self) -> bool {
        self.is_super
    }
}

impl Authorizer {
    /// `allow_everyone`: `allow.everyone.if.no.acl.found`.
    pub fn new(image: &Image, super_users: SuperUsers, allow_everyone: bool) -> Self {
        Self {
            index: Index::new(&image.acls),
            super_users,
            allow_everyone,
            acls: image.acls.len(),
            built_at: image.provenance.end,
        }
    }

    /// How many ACLs there are.
    pub fn acls(&self) -> usize {
        self.acls
    }

    /// Resolves a caller, once for each connection. `principal` is the whole text, such as `User:alice`.
    pub fn caller(&self, principal: &str, host: &Host) -> Caller {
        Caller {
            is_super: self.super_users.contains(principal),
            matched: self.index.matched(principal, host),
            built_at: self.built_at,
        }
    }

    /// Whether the caller was resolved by an authorizer of this image, or must be resolved again.
    pub fn knows(&self, caller: &Caller) -> bool {
        caller.built_at == self.built_at
    }

    /// Whether the caller may do `operation` to the resource of that name.
    ///
    /// # Panics
    /// If the caller was resolved for another image: its numbers would mean other principals.
    #[inline]
    pub fn decide(
        &self,
        caller: &Caller,
        operation: Operation,
        resource_type: ResourceType,
        name: &str,
    ) -> Verdict {
        self.decide_counted(caller, operation, resource_type, name, &mut ())
    }

    /// As [`Authorizer::decide`], and counts the steps.
    #[inline]
    pub fn decide_counted(
        &self,
        caller: &Caller,
        operation: Operation,
        resource_type: ResourceType,
        name: &str,
        work: &mut impl Work,
    ) -> Verdict {
        assert!(self.knows(caller), "a caller of another image");
        if caller.is_super {
            return Verdict::SuperUser;
        }
        let of_type = self.index.of_type(resource_type);
        let mut seen = Seen { operation, has_acls: of_type.has_wildcard(), allowed: false };
        if seen.is_denied(caller.matched.wildcard[resource_type.place()]) {
            return Verdict::Denied;
        }
        let literal = of_type.literal(name, work);
        let prefixes = of_type.prefixes_of(name, work);
        for bucket in literal.into_iter().chain(prefixes) {
            seen.has_acls = true;
            if seen.is_denied(of_type.entries(bucket, &caller.matched.pairs, work)) {
                return Verdict::Denied;
            }
        }
        match seen {
            Seen { allowed: true, .. } => Verdict::Allowed,
            Seen { has_acls: true, .. } => Verdict::NotAllowed,
            _ if self.allow_everyone => Verdict::AllowedWithoutAcls,
            _ => Verdict::NotAllowedWithoutAcls,
        }
    }

    /// The operations that the caller may do, as Kafka's "authorized operations" fields show them: 1 << number.
    pub fn authorized_operations(&self, caller: &Caller, resource_type: ResourceType, name: &str) -> i32 {
        let allowed =
            |operation: &&Operation| self.decide(caller, **operation, resource_type, name).is_allowed();
        resource_type
            .operations()
            .iter()
            .filter(allowed)
            .fold(0, |bits, operation| bits | i32::from(operation.bit()))
    }
}

struct Seen {
    operation: Operation,
    has_acls: bool,
    allowed: bool,
}

impl Seen {
    fn is_denied(&mut self, entries: Entries) -> bool {
        self.allowed |= entries.allows(self.operation);
        entries.denies(self.operation)
    }
}
