//! AlterClientQuotas: each entity by itself, all of its changes or none.
//!
//! An entity is a user, a client id, both, or an address; without a name it is the default of its kind.
//!
//! Different from Kafka:
//! - An address is an IP address; Kafka also takes a host name that the controller can resolve.
//! - A value that is not a number is refused.
//! - The number of entities and the length of names are bounded.
//!
//! Source: KIP-546, KIP-612, KIP-599; Kafka `ClientQuotaControlManager`, `QuotaConfig`.

use std::fmt::Write;
use std::net::IpAddr;

use barnabas_base::{ErrorCode, Map, Set, Text};
use barnabas_metadata::access::{QuotaEntity, QuotaValues, entity, quota};
use barnabas_metadata::snapshot::quota_entity;
use barnabas_wire::messages::alter_client_quotas_request::EntryData;
use barnabas_wire::messages::alter_client_quotas_response::{EntityData, EntryData as Altered};
use barnabas_wire::messages::{AlterClientQuotasRequest, AlterClientQuotasResponse, ClientQuotaRecord};
use barnabas_wire::{MetadataRecord, ResponseBody, Str};

use super::{RECORDS_MAX, check_entries, check_names, too_large};
use crate::controller::{Case, Outcome, Refusal, Sentences};

/// What remains of a whole number's fraction that is no fraction.
const WHOLE: f64 = 1e-6;

/// An entity of the request, once, and why its quotas stay as they are.
type Decided = (QuotaEntity, Option<Refusal>);

pub(crate) fn alter(case: &Case<'_>, request: &AlterClientQuotasRequest) -> Outcome {
    let mut decided: Vec<Decided> = Vec::new();
    let mut places: Map<QuotaEntity, usize> = Map::default();
    let mut records = Vec::new();
    let mut count = case.image.quotas.len();
    for entry in &request.entries {
        let entity = entity_of(entry);
        let place = *places.entry(entity.clone()).or_insert(decided.len());
        let is_twice = place < decided.len();
        let done =
            if is_twice { Err(twice(&entity)) } else { alter_entity(case, &entity, entry, &mut count) };
        let refusal = match done {
            Ok(more) => {
                records.extend(more);
                None
            }
            Err(refusal) => Some(refusal),
        };
        match decided.get_mut(place) {
            Some(known) => known.1 = refusal,
            None => decided.push((entity, refusal)),
        }
    }
    let is_too_large = records.len() > RECORDS_MAX;
    if is_too_large {
        decided.iter_mut().for_each(|each| each.1 = Some(too_large()));
    }
    if request.validate_only || is_too_large {
        records.clear();
    }
    let response = response(&decided);
    Outcome::atomic(records, response, move |why| {
        let refusal = Refusal::new(ErrorCode::PolicyViolation, why);
        decided.iter_mut().for_each(|each| each.1 = Some(refusal.clone()));
        self::response(&decided)
    })
}

/// A kind that is named twice has the last name.
fn entity_of(entry: &EntryData) -> QuotaEntity {
    let part = |part: &barnabas_wire::messages::alter_client_quotas_request::EntityData| {
        (part.entity_type.text(), part.entity_name.as_ref().map(Str::text))
    };
    entry.entity.iter().map(part).collect()
}

/// As Kafka, the first of two entries for an entity counts, and the answer says that the second does not.
fn twice(entity: &QuotaEntity) -> Refusal {
    invalid(format!("Ignoring duplicate entity {}", shown(entity)))
}

fn invalid(message: String) -> Refusal {
    Refusal::new(ErrorCode::InvalidRequest, message)
}

/// The records of one entity's changes. `count`: how many entities there will be.
fn alter_entity(
    case: &Case<'_>,
    entity: &QuotaEntity,
    entry: &EntryData,
    count: &mut usize,
) -> Result<Vec<MetadataRecord>, Refusal> {
    let mut named: Set<&str> = Set::default();
    if !entry.ops.iter().all(|op| named.insert(&op.key)) {
        return Err(twice(entity));
    }
    let keys = keys_of(entity)?;
    let now = case.image.quotas.get(entity);
    let mut records = Vec::new();
    for op in &entry.ops {
        let has = now.and_then(|values| values.get(&*op.key)).copied();
        let wanted = (!op.remove).then_some(op.value);
        if let Some(value) = wanted {
            check_value(keys, &op.key, value)?;
        }
        // A quota that there is not is not removed either.
        if has != wanted {
            records.push(record(entity, &op.key, wanted));
        }
    }
    grow(case, now, &records, count)?;
    Ok(records)
}

fn grow(
    case: &Case<'_>,
    now: Option<&QuotaValues>,
    records: &[MetadataRecord],
    count: &mut usize,
) -> Result<(), Refusal> {
    if now.is_none() && !records.is_empty() {
        check_entries(case.config, case.image.quotas.len(), *count + 1, "entities with quotas")?;
        *count += 1;
    }
    Ok(())
}

fn record(entity: &QuotaEntity, key: &Str, value: Option<f64>) -> MetadataRecord {
    ClientQuotaRecord {
        entity: quota_entity(entity),
        key: key.clone(),
        value: value.unwrap_or_default(),
        remove: value.is_none(),
        ..ClientQuotaRecord::default()
    }
    .into()
}

/// The quotas that such an entity may have.
fn keys_of(entity: &QuotaEntity) -> Result<&'static [(&'static str, Kind)], Refusal> {
    if entity.is_empty() {
        return Err(invalid("Invalid empty client quota entity".into()));
    }
    for (kind, name) in entity {
        if !entity::ALL.contains(&&**kind) {
            return Err(invalid(format!("Unhandled client quota entity type: {kind}")));
        }
        if name.as_ref().is_some_and(|name| name.is_empty()) {
            return Err(invalid(format!("Empty {kind} not supported")));
        }
    }
    check_names(entity.values().flatten().map(Text::as_str))?;
    let Some(ip) = entity.get(entity::IP) else { return Ok(OF_CLIENTS) };
    if entity.len() > 1 {
        let message =
            "Invalid quota entity combination, IP entity should not be combined with User or ClientId";
        return Err(invalid(message.into()));
    }
    match ip {
        Some(ip) if ip.parse::<IpAddr>().is_err() => {
            Err(invalid(format!("{ip} is not a valid IP or resolvable host.")))
        }
        _ => Ok(OF_ADDRESSES),
    }
}

/// What values a quota takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Int,
    Long,
    Double,
}

const OF_CLIENTS: &[(&str, Kind)] = &[
    (quota::PRODUCER_BYTE_RATE, Kind::Long),
    (quota::CONSUMER_BYTE_RATE, Kind::Long),
    (quota::REQUEST_PERCENTAGE, Kind::Double),
    (quota::CONTROLLER_MUTATION_RATE, Kind::Double),
];
const OF_ADDRESSES: &[(&str, Kind)] = &[(quota::CONNECTION_CREATION_RATE, Kind::Int)];

fn check_value(keys: &[(&str, Kind)], key: &str, value: f64) -> Result<(), Refusal> {
    let Some((_, kind)) = keys.iter().find(|(name, _)| *name == key) else {
        return Err(invalid(format!("Invalid configuration key {key}")));
    };
    if value.is_nan() || value <= 0.0 {
        return Err(invalid(format!("Quota {key} must be greater than 0")));
    }
    let (max, name) = match kind {
        Kind::Double => return Ok(()),
        Kind::Int => (f64::from(i32::MAX), "an INT"),
        Kind::Long => (i64::MAX as f64, "a LONG"),
    };
    if value > max {
        return Err(invalid(format!("Proposed value for {key} is too large for {name}.")));
    }
    if (value % 1.0).abs() > WHOLE {
        return Err(invalid(format!("{key} cannot be a fractional value.")));
    }
    Ok(())
}

/// As Kafka prints a `ClientQuotaEntity`.
fn shown(entity: &QuotaEntity) -> String {
    let mut text = String::from("ClientQuotaEntity(entries={");
    for (place, (kind, name)) in entity.iter().enumerate() {
        let comma = if place > 0 { ", " } else { "" };
        let name = name.as_ref().map_or("null", Text::as_str);
        // Writing to a string does not fail.
        let _ = write!(text, "{comma}{kind}={name}");
    }
    text + "})"
}

fn response(decided: &[Decided]) -> ResponseBody {
    let mut sentences = Sentences::default();
    let altered = |(entity, refusal): &Decided| {
        let (error_code, error_message) = sentences.fields(refusal.as_ref());
        let part = |(kind, name): (&Text, &Option<Text>)| EntityData {
            entity_type: Str::from(kind),
            entity_name: name.as_ref().map(Str::from),
            ..EntityData::default()
        };
        let entity = entity.iter().map(part).collect();
        Altered { error_code, error_message, entity, ..Altered::default() }
    };
    let entries = decided.iter().map(altered).collect();
    AlterClientQuotasResponse { entries, ..AlterClientQuotasResponse::default() }.into()
}
