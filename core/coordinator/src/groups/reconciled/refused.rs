//! What a member is refused, in words for people, and the refusals that every kind of group shares.
//!
//! # Source
//! Kafka 4.4 `ModernGroup`, `GroupMetadataManager.throwIfInstanceIdIsFenced`, `throwIfInstanceIdIsUnknown`.

use barnabas_base::{ErrorCode, Text};

/// A refusal with words for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub code: ErrorCode,
    pub why: String,
}

impl Refused {
    pub fn new(code: ErrorCode, why: impl Into<String>) -> Self {
        Self { code, why: why.into() }
    }
}

pub(crate) fn unknown(group: &str, id: &str) -> Refused {
    Refused::new(ErrorCode::UnknownMemberId, format!("Member {id} is not a member of group {group}."))
}

pub(crate) fn unknown_instance(instance: &str) -> Refused {
    Refused::new(ErrorCode::UnknownMemberId, format!("Instance id {instance} is unknown."))
}

/// Whether `id` is the member that the instance is now: `known`.
pub(crate) fn check_instance(known: &Text, id: &str, instance: &str) -> Result<(), Refused> {
    if known == id {
        return Ok(());
    }
    let why = format!("Static member {id} with instance id {instance} was fenced by member {known}.");
    Err(Refused::new(ErrorCode::FencedInstanceId, why))
}
