//! What was granted to one caller before: a producer that writes to a few topics has each decided once.
//!
//! Valid for one caller and one authorizer; its owner drops it with them. Denials of names are not kept: they are rare,
//! and each is logged. The answer for [`Decisions::ANY`] is kept either way: it costs a pass over all names that have
//! ACLs. A place holds one grant, and a newer one replaces it, so that the size is fixed.

use std::cell::{OnceCell, RefCell};

use barnabas_security::{Operation, ResourceType};

/// A power of two.
const PLACES: usize = 32;
/// Longer names are decided again each time; those of topics are not longer.
const NAME_BYTES_MAX: usize = 249;

/// See the file's header.
#[derive(Debug, Default)]
pub struct Decisions {
    places: RefCell<Vec<Option<Grant>>>,
    any: OnceCell<bool>,
}

#[derive(Debug, Clone)]
struct Grant {
    operation: Operation,
    resource_type: ResourceType,
    name: Box<str>,
}

impl Decisions {
    /// The one question about all resources of a type that a request asks (InitProducerId, KIP-679).
    pub const ANY: (Operation, ResourceType) = (Operation::Write, ResourceType::Topic);

    /// The answer to [`Self::ANY`], decided once.
    pub fn any(&self, decide: impl FnOnce() -> bool) -> bool {
        *self.any.get_or_init(decide)
    }

    /// Whether this was granted. Allocates nothing.
    pub fn contains(&self, operation: Operation, resource_type: ResourceType, name: &str) -> bool {
        let places = self.places.borrow();
        let grant = places.get(place(operation, name)).and_then(Option::as_ref);
        grant.is_some_and(|grant| {
            grant.operation == operation && grant.resource_type == resource_type && *grant.name == *name
        })
    }

    /// Remembers a grant, in the place of another one.
    pub fn insert(&self, operation: Operation, resource_type: ResourceType, name: &str) {
        if name.len() > NAME_BYTES_MAX {
            return;
        }
        let mut places = self.places.borrow_mut();
        if places.is_empty() {
            places.resize(PLACES, None);
        }
        places[place(operation, name)] = Some(Grant { operation, resource_type, name: name.into() });
    }
}

/// By the length and the ends of the name: names of one application differ there.
fn place(operation: Operation, name: &str) -> usize {
    let bytes = name.as_bytes();
    let at = |from_end: usize| bytes.len().checked_sub(from_end).map_or(0, |at| usize::from(bytes[at]));
    let mixed = at(1).wrapping_mul(31) ^ at(2).wrapping_mul(7) ^ at(3) ^ bytes.len().wrapping_mul(5);
    (mixed ^ operation.code() as usize) % PLACES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grant_counts_for_its_operation_type_and_name_alone() {
        let granted = Decisions::default();
        assert!(!granted.contains(Operation::Write, ResourceType::Topic, "orders"));
        granted.insert(Operation::Write, ResourceType::Topic, "orders");
        assert!(granted.contains(Operation::Write, ResourceType::Topic, "orders"));
        assert!(!granted.contains(Operation::Read, ResourceType::Topic, "orders"));
        assert!(!granted.contains(Operation::Write, ResourceType::Group, "orders"));
        assert!(!granted.contains(Operation::Write, ResourceType::Topic, "orders2"));
        assert!(!granted.contains(Operation::Write, ResourceType::Topic, ""));
    }

    #[test]
    fn question_about_all_topics_is_decided_once() {
        for answer in [true, false] {
            let (granted, asked) = (Decisions::default(), std::cell::Cell::new(0));
            let decide = || {
                asked.set(asked.get() + 1);
                answer
            };
            assert_eq!([(); 3].map(|()| granted.any(decide)), [answer; 3]);
            assert_eq!(asked.get(), 1);
        }
    }

    #[test]
    fn grants_of_many_names_take_fixed_memory() {
        let granted = Decisions::default();
        for number in 0..10_000 {
            granted.insert(Operation::Write, ResourceType::Topic, &format!("topic-{number}"));
        }
        granted.insert(Operation::Write, ResourceType::Topic, &"x".repeat(300));
        assert_eq!(granted.places.borrow().len(), PLACES);
        assert!(!granted.contains(Operation::Write, ResourceType::Topic, &"x".repeat(300)));
        assert!(granted.contains(Operation::Write, ResourceType::Topic, "topic-9999"));
    }
}
