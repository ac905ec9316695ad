//! Whether a caller may do something to any resource of a type at all (KIP-679): idempotent producers without a
//! transactional id need WRITE on some topic, and the request names none.
//!
//! Source: Kafka 4.4 `Authorizer.authorizeByResourceType`.

use crate::acl::{Operation, ResourceType};
use crate::authorizer::{Authorizer, Caller};

/// The name that Kafka tries first, so that super users pass and `allow.everyone.if.no.acl.found` counts.
const HARD_CODED: &str = "hardcode";

impl Authorizer {
    /// Whether an ALLOW entry names the operation (or ALL) and is not wholly denied: by a DENY for the same name, for
    /// the same or a shorter prefix, or for every name. As in Kafka, no operation implies another here.
    ///
    /// Cost: in the worst case one pass over the names of this type that have ACLs.
    pub fn allows_any(&self, caller: &Caller, operation: Operation, resource_type: ResourceType) -> bool {
        if self.decide(caller, operation, resource_type, HARD_CODED).is_allowed() {
            return true;
        }
        let of_every_name = caller.matched.wildcard[resource_type.place()];
        if of_every_name.denies(operation) {
            return false;
        }
        if of_every_name.allows_by_name(operation) {
            return true;
        }
        if caller.matched.pairs.is_empty() {
            return false;
        }
        let of_type = self.index.of_type(resource_type);
        let entries = |bucket| of_type.entries(bucket, &caller.matched.pairs, &mut ());
        let is_denied =
            |name: &str| of_type.prefixes_of(name, &mut ()).any(|bucket| entries(bucket).denies(operation));
        let mut literals = of_type.literals().filter(|(_, bucket)| {
            let entries = entries(bucket);
            entries.allows_by_name(operation) && !entries.denies(operation)
        });
        let mut prefixes = of_type.prefixes().filter(|(_, bucket)| entries(bucket).allows_by_name(operation));
        literals.any(|(name, _)| !is_denied(name)) || prefixes.any(|(name, _)| !is_denied(name))
    }
}
