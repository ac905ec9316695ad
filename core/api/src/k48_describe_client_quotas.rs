//! # DescribeClientQuotas, key 48, versions 0–1
//!
//! Lists the quotas of users, client ids and addresses.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-546) |
//! | 1 | flexible (KIP-482) |
//!
//! ## Left out
//! - An answer of more than `answer.bytes.max` bytes: it is refused with INVALID_REQUEST.
//!
//! Source: Kafka 4.4 `KafkaApis.handleDescribeClientQuotasRequest`, `ClientQuotasImage.describe`.

use std::collections::BTreeMap;

use barnabas_base::ErrorCode;
use barnabas_metadata::access::{QuotaEntity, QuotaValues, entity};
use barnabas_wire::Str;
use barnabas_wire::messages::describe_client_quotas_request::{ComponentData, DescribeClientQuotasRequest};
use barnabas_wire::messages::describe_client_quotas_response::{
    DescribeClientQuotasResponse, EntityData, EntryData, ValueData,
};

use crate::{Context, Refusal, TooLarge};

/// What an entity's name must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Match<'a> {
    Exact(&'a str),
    Default,
    Any,
}

type Filter<'a> = BTreeMap<&'a str, Match<'a>>;

/// The answer: entities in the order of their kinds and names.
pub fn answer(request: &DescribeClientQuotasRequest, ctx: &Context<'_>) -> DescribeClientQuotasResponse {
    let filter = match filter_of(&request.components) {
        Ok(filter) => filter,
        Err(refusal) => return refuse(&refusal),
    };
    let matching = ctx.image.quotas.iter().filter(|(entity, _)| matches(&filter, request.strict, entity));
    let entries: Result<Vec<EntryData>, TooLarge> =
        matching.map(|(entity, values)| entry(entity, values, ctx)).collect();
    match entries {
        Ok(entries) => DescribeClientQuotasResponse {
            entries: Some(entries),
            error_message: None,
            ..DescribeClientQuotasResponse::default()
        },
        Err(too_large) => refuse(&too_large.refusal(ErrorCode::RequestTimedOut)),
    }
}

/// The answer that refuses the request as a whole.
pub fn refuse(refusal: &Refusal) -> DescribeClientQuotasResponse {
    DescribeClientQuotasResponse {
        error_code: refusal.code.code(),
        error_message: refusal.text(),
        entries: None,
        ..DescribeClientQuotasResponse::default()
    }
}

fn filter_of(components: &[ComponentData]) -> Result<Filter<'_>, Refusal> {
    let mut filter = Filter::new();
    for component in components {
        let kind = &*component.entity_type;
        if kind.is_empty() {
            return Err(invalid("Invalid empty entity type."));
        }
        if filter.contains_key(kind) {
            return Err(invalid(format!("Entity type {kind} cannot appear more than once in the filter.")));
        }
        if !entity::ALL.contains(&kind) {
            let message = format!("Unsupported entity type {kind}");
            return Err(Refusal::new(ErrorCode::UnsupportedVersion, message));
        }
        filter.insert(kind, match_of(component)?);
    }
    let has = |kind| filter.contains_key(kind);
    if has(entity::IP) && (has(entity::USER) || has(entity::CLIENT_ID)) {
        return Err(invalid(
            "Invalid entity filter component combination. IP filter component should not be used with user or \
             clientId filter component.",
        ));
    }
    Ok(filter)
}

fn invalid(message: impl Into<String>) -> Refusal {
    Refusal::new(ErrorCode::InvalidRequest, message)
}

fn match_of(component: &ComponentData) -> Result<Match<'_>, Refusal> {
    let named = |kind: &str| {
        invalid(format!("Request specified MATCH_TYPE_{kind}, but also specified a match string."))
    };
    match (component.match_type, &component.r#match) {
        (0, Some(name)) => Ok(Match::Exact(name)),
        (0, None) => Err(invalid("Request specified MATCH_TYPE_EXACT, but set match string to null.")),
        (1, None) => Ok(Match::Default),
        (1, Some(_)) => Err(named("DEFAULT")),
        (2, None) => Ok(Match::Any),
        (2, Some(_)) => Err(named("SPECIFIED")),
        (other, _) => Err(invalid(format!("Unknown match type {other}"))),
    }
}

fn matches(filter: &Filter<'_>, strict: bool, entity: &QuotaEntity) -> bool {
    if strict && entity.len() != filter.len() {
        return false;
    }
    filter.iter().all(|(kind, wanted)| match (entity.get(*kind), wanted) {
        (None, _) => false,
        (Some(_), Match::Any) => true,
        (Some(name), Match::Default) => name.is_none(),
        (Some(name), Match::Exact(wanted)) => name.as_deref() == Some(*wanted),
    })
}

fn entry(entity: &QuotaEntity, values: &QuotaValues, ctx: &Context<'_>) -> Result<EntryData, TooLarge> {
    let names: usize =
        entity.iter().map(|(kind, name)| kind.len() + name.as_ref().map_or(0, |name| name.len())).sum();
    let keys: usize = values.keys().map(|key| size_of::<ValueData>() + key.len()).sum();
    ctx.room.take(size_of::<EntryData>() + entity.len() * size_of::<EntityData>() + 2 * (names + keys))?;
    let part = |(kind, name): (&barnabas_base::Text, &Option<barnabas_base::Text>)| EntityData {
        entity_type: Str::from(kind),
        entity_name: name.as_ref().map(Str::from),
        ..EntityData::default()
    };
    let value = |(key, value): (&barnabas_base::Text, &f64)| ValueData {
        key: Str::from(key),
        value: *value,
        ..ValueData::default()
    };
    Ok(EntryData {
        entity: entity.iter().map(part).collect(),
        values: values.iter().map(value).collect(),
        ..EntryData::default()
    })
}

#[cfg(test)]
mod tests;
