//! What a member is refused, in words for people, and the refusals that every kind of group shares.
//!
//! # Source
//! Kafka 4.4 `ModernGroup`, `GroupMetadataManager.throwIfInstanceIdIsFenced`, `throwIfInstanceIdIsUnknown`.

use barnabas_base::{ErrorCode, Text};

use crate::framework::{Caller, append_refusal};
use crate::outbox::Outbox;
use crate::records::GroupKind;

/// What numbers, lengths and framing take in a member's record, and more.
const NUMBERS_BYTES: usize = 100;

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

/// There is no group of this name.
pub(crate) fn not_found(group: &str) -> Refused {
    Refused::new(ErrorCode::GroupIdNotFound, format!("Group {group} not found."))
}

/// Likewise, where one of this kind is looked for.
pub(crate) fn no_group(kind: GroupKind, group: &str) -> Refused {
    let kind = match kind {
        GroupKind::Classic => "Classic",
        GroupKind::Consumer => "Consumer",
        GroupKind::Share => "Share",
        GroupKind::Streams => "Streams",
    };
    Refused::new(ErrorCode::GroupIdNotFound, format!("{kind} group {group} not found."))
}

/// There is such a group, of another kind.
pub(crate) fn wrong_kind(kind: GroupKind, group: &str) -> Refused {
    Refused::new(ErrorCode::GroupIdNotFound, format!("Group {group} is not a {} group.", kind.name()))
}

/// The ids of a heartbeat, by the names that refusals call them by. The first that is given and blank wins.
pub(crate) fn check_ids(ids: &[(&str, Option<&str>)]) -> Result<(), Refused> {
    match ids.iter().find(|(_, id)| id.is_some_and(|id| id.trim().is_empty())) {
        Some((name, _)) => Err(Refused::new(ErrorCode::InvalidRequest, format!("{name} can't be empty."))),
        None => Ok(()),
    }
}

/// What a member says of itself goes into one record: `texts` is the length of everything but its ids.
pub(crate) fn check_size(
    (group, member): (&str, &str),
    caller: &Caller<'_>,
    texts: usize,
    out: &Outbox,
) -> Result<(), Refused> {
    let who = group.len() + member.len() + caller.client_id.len() + caller.client_host.len();
    if texts + who + NUMBERS_BYTES <= out.config.batch_bytes_max {
        return Ok(());
    }
    Err(too_large())
}

pub(crate) fn too_large() -> Refused {
    let why = "What the member says of itself is more than a record can hold.";
    Refused::new(append_refusal(ErrorCode::RecordListTooLarge), why)
}

/// The description of a group that is refused: the same fields in each kind's own message.
macro_rules! describe_refused {
    ($described:ident) => {
        pub(crate) fn describe_refused(id: &str, refused: Refused) -> $described {
            $described {
                group_id: id.into(),
                error_code: refused.code.code(),
                error_message: Some(refused.why.into()),
                ..Default::default()
            }
        }
    };
}
pub(crate) use describe_refused;
