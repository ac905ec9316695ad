//! What ShareFetch and ShareAcknowledge have in common: a group's settings, its members' sessions, acknowledgements and
//! their checks.
//!
//! Source: KIP-932; Kafka 4.4 `KafkaApis`, `GroupConfig`, `ShareGroupConfigProvider`.

mod sessions;

pub use sessions::{Connection, Ended, MemberKey, Opened, Opener, SharePart, ShareSessions};

use barnabas_base::{DurationMs, ErrorCode, Offset, PartitionIndex};
use barnabas_metadata::config::BrokerConfig;
use barnabas_metadata::features::name;
use barnabas_metadata::{Image, Resource, ResourceType};
use barnabas_security::Operation;
use barnabas_wire::Str;

use crate::Context;

/// A member's id is a UUID in words, or what an application takes for one.
const MEMBER_ID_CHARS_MAX: usize = 36;
/// The acknowledgement that renews a lock.
const RENEW: i8 = 4;

/// Where a group begins in a partition that it has never read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShareReset {
    Latest,
    Earliest,
    /// At the first record that is not older.
    ByDuration(DurationMs),
}

/// What a share group says of itself, or the broker for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareGroupSettings {
    pub lock: DurationMs,
    pub deliveries_max: u16,
    pub in_flight_max: i64,
    pub may_renew: bool,
    pub read_committed: bool,
    pub reset: ShareReset,
}

impl ShareGroupSettings {
    /// A value that a later bound of the broker's leaves out is held at that bound.
    ///
    /// # Source
    /// Kafka 4.4 `GroupConfig.fromProps`, `ShareGroupConfigProvider`.
    pub fn of(group: &str, image: &Image, config: &BrokerConfig) -> Self {
        let own = image.configs.of(&Resource::new(ResourceType::Group, group));
        let text = |key: &str| own.and_then(|own| own.get(key)).map(|value| value.trim());
        let number = |what: &str, standard: &'static str, least: &'static str, most: &'static str| {
            let said = text(what).and_then(|value| value.parse::<i64>().ok());
            let (least, most) = (config.long(least), config.long(most));
            said.map_or_else(|| config.long(standard), |said| said.max(least).min(most.max(least)))
        };
        let lock = number(
            "share.record.lock.duration.ms",
            "group.share.record.lock.duration.ms",
            "group.share.min.record.lock.duration.ms",
            "group.share.max.record.lock.duration.ms",
        );
        let deliveries_max = number(
            "share.delivery.count.limit",
            "group.share.delivery.count.limit",
            "group.share.min.delivery.count.limit",
            "group.share.max.delivery.count.limit",
        );
        let in_flight_max = number(
            "share.partition.max.record.locks",
            "group.share.partition.max.record.locks",
            "group.share.min.partition.max.record.locks",
            "group.share.max.partition.max.record.locks",
        );
        Self {
            lock: DurationMs(lock),
            deliveries_max: u16::try_from(deliveries_max).unwrap_or(u16::MAX),
            in_flight_max,
            may_renew: !text("share.renew.acknowledge.enable")
                .is_some_and(|value| value.eq_ignore_ascii_case("false")),
            read_committed: text("share.isolation.level")
                .is_some_and(|value| value.eq_ignore_ascii_case("read_committed")),
            reset: reset(text("share.auto.offset.reset").unwrap_or("latest")),
        }
    }
}

/// Values are checked where they are set ([`barnabas_metadata::config`]).
fn reset(value: &str) -> ShareReset {
    match value {
        "earliest" => ShareReset::Earliest,
        value => match value.strip_prefix("by_duration:").map(duration_ms) {
            Some(ms) => ShareReset::ByDuration(DurationMs(ms)),
            None => ShareReset::Latest,
        },
    }
}

/// `P1DT2H3M4.5S`.
fn duration_ms(text: &str) -> i64 {
    let (mut ms, mut amount) = (0.0, String::new());
    for letter in text.chars() {
        let unit_ms = match letter.to_ascii_uppercase() {
            'D' => 86_400_000.0,
            'H' => 3_600_000.0,
            'M' => 60_000.0,
            'S' => 1_000.0,
            digit if digit.is_ascii_digit() || digit == '.' => {
                amount.push(digit);
                continue;
            }
            _ => continue,
        };
        ms += amount.parse::<f64>().unwrap_or(0.0) * unit_ms;
        amount.clear();
    }
    // Saturates.
    ms as i64
}

/// Whether the cluster has agreed on share groups.
///
/// # Source
/// Kafka 4.4 `KafkaApis.isShareGroupProtocolEnabled`.
pub fn is_enabled(ctx: &Context<'_>) -> bool {
    ctx.image.features.level(name::SHARE) >= 1
}

/// Who asks.
///
/// # Errors
/// UNSUPPORTED_VERSION without share groups, GROUP_AUTHORIZATION_FAILED, INVALID_REQUEST for ids that cannot be.
pub(crate) fn member(
    group: Option<&Str>,
    member: Option<&Str>,
    ctx: &Context<'_>,
) -> Result<MemberKey, ErrorCode> {
    if !is_enabled(ctx) {
        return Err(ErrorCode::UnsupportedVersion);
    }
    let group = group.ok_or(ErrorCode::InvalidRequest)?;
    if !ctx.access.group(Operation::Read, group) {
        return Err(ErrorCode::GroupAuthorizationFailed);
    }
    let member = member.filter(|member| {
        // As Java counts them.
        (1..=MEMBER_ID_CHARS_MAX).contains(&member.encode_utf16().count())
    });
    let member = member.ok_or(ErrorCode::InvalidRequest)?;
    Ok(MemberKey { group: group.text(), member: member.text() })
}

/// What a member says of a run of records: one type for all or one for each, as AcknowledgeTypes has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acknowledgement {
    pub first: Offset,
    pub last: Offset,
    pub types: Vec<i8>,
}

/// Whether a partition's acknowledgements can be meant.
///
/// # Source
/// Kafka 4.4 `KafkaApis.validateAcknowledgementBatches`.
pub(crate) fn are_sound(batches: &[Acknowledgement], version: i16, is_renew_ack: bool) -> bool {
    let most = if version >= 2 { RENEW } else { RENEW - 1 };
    let mut before = Offset::NONE;
    batches.iter().all(|batch| {
        let Acknowledgement { first, last, types } = batch;
        let is_in_order = first <= last && *first >= before;
        before = *last;
        let fits = match types.len() {
            0 => false,
            1 => true,
            count => last.get().checked_sub(first.get()) == Some(count as i64 - 1),
        };
        let are_known = types.iter().all(|kind| (0..=most).contains(kind));
        is_in_order && fits && are_known && (is_renew_ack || !types.contains(&RENEW))
    })
}

/// Why an acknowledgement is refused before a partition is asked.
pub(crate) fn refusal(
    part: &SharePart,
    batches: &[Acknowledgement],
    version: i16,
    is_renew_ack: bool,
    ctx: &Context<'_>,
) -> Option<ErrorCode> {
    let Some(topic) = ctx.image.topics.by_id(part.topic) else { return Some(ErrorCode::UnknownTopicId) };
    if !ctx.access.topic(Operation::Read, &topic.name) {
        return Some(ErrorCode::TopicAuthorizationFailed);
    }
    if !are_sound(batches, version, is_renew_ack) {
        return Some(ErrorCode::InvalidRequest);
    }
    topic.partition(part.partition).is_none().then_some(ErrorCode::UnknownTopicOrPartition)
}

/// How long records stay locked: what answers tell.
pub(crate) fn lock_ms(group: &str, ctx: &Context<'_>) -> i32 {
    let lock = ShareGroupSettings::of(group, ctx.image, ctx.config).lock;
    i32::try_from(lock.0).unwrap_or(i32::MAX)
}

pub(crate) fn part(topic: barnabas_base::TopicId, partition: i32) -> SharePart {
    SharePart { topic, partition: PartitionIndex(partition) }
}

#[cfg(test)]
mod tests;
