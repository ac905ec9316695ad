//! # Dead letters of share groups (KIP-1191)
//!
//! A share group writes a record to its dead letter topic and then archives it, when a consumer has rejected the record
//! or the record has reached the group's delivery limit. This file decides whether a group has a dead letter topic,
//! whether the topic takes the group's records, which CreateTopics creates a missing topic, and which batch is written.
//! It reads no log and writes none.
//!
//! - The group's config `errors.deadletterqueue.topic.name` names the topic. `share.version` must be 2 or higher.
//! - The topic's config `errors.deadletterqueue.group.enable` must be `true`. Its name must begin with the cluster's
//!   `errors.deadletterqueue.topic.name.prefix` and not with `__`.
//! - A missing topic is created if `errors.deadletterqueue.auto.create.topics.enable` is `true`, with
//!   `message.timestamp.type=CreateTime`.
//! - The headers of a dead letter name the record's topic, partition and offset, the group, the delivery count and the
//!   cause. With the group's config `errors.deadletterqueue.copy.record.enable` they follow the record's own headers,
//!   and the dead letter has the record's key and value.
//! - Records of partition `p` go to partition `p` modulo the number of partitions of the topic. Their timestamp is the
//!   broker's time at which the batch is built.
//!
//! Source: Kafka 4.4 `ShareGroupDLQStateManager`, `ShareGroupDLQManager`, `ShareCoordinatorMetadataCacheHelperImpl`.

use barnabas_base::{Offset, PartitionIndex, Text, TimestampMs};
use barnabas_metadata::config::BrokerConfig;
use barnabas_metadata::features::name;
use barnabas_metadata::{Image, Resource, ResourceType};
use barnabas_wire::messages::CreateTopicsRequest;
use barnabas_wire::records::{BatchBuilder, BatchError, BatchOptions, HeaderRef, RecordRef, Records};
use bytes::Bytes;
use std::collections::BTreeMap;

use crate::own_topics::{self, INTERNAL, Place};

/// The level of `share.version` that knows dead letters.
const SHARE_VERSION: i16 = 2;

const TOPIC_NAME: &str = "errors.deadletterqueue.topic.name";
const COPY_RECORD: &str = "errors.deadletterqueue.copy.record.enable";
const TOPIC_TAKES: &str = "errors.deadletterqueue.group.enable";
const AUTO_CREATE: &str = "errors.deadletterqueue.auto.create.topics.enable";
const PREFIX: &str = "errors.deadletterqueue.topic.name.prefix";

/// A group's configs for dead letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetters {
    pub topic: Text,
    /// Dead letters have the record's key, value and headers.
    pub copies_records: bool,
}

/// Where a partition's dead letters go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    Partition(Place),
    /// The topic is to be created.
    Missing,
}

/// Why a group's dead letters are not written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoDestination {
    #[error("the group names no topic for its dead letters ({TOPIC_NAME})")]
    NotNamed,
    #[error("{0} is a name that brokers keep for themselves: name another topic ({TOPIC_NAME})")]
    Internal(Text),
    #[error("topic {0} takes no dead letters: set {TOPIC_TAKES}=true for it")]
    NotEnabled(Text),
    #[error("the name of topic {topic} does not begin with {prefix} ({PREFIX})")]
    Prefix { topic: Text, prefix: String },
    #[error("there is no topic {0}, and such topics are not created by themselves ({AUTO_CREATE})")]
    NoTopic(Text),
}

impl DeadLetters {
    /// `None`: what the group gives up is archived at once.
    pub fn of(group: &str, image: &Image) -> Option<Self> {
        if image.features.level(name::SHARE) < SHARE_VERSION {
            return None;
        }
        let own = image.configs.of(&Resource::new(ResourceType::Group, group))?;
        let text = |key: &str| own.get(key).map(|value| value.trim());
        let topic = text(TOPIC_NAME).filter(|topic| !topic.is_empty())?;
        Some(Self { topic: topic.into(), copies_records: is_true(text(COPY_RECORD)) })
    }

    /// Where the letters of partition `source` go now.
    ///
    /// # Errors
    /// [`NoDestination`], for the operator.
    pub fn destination(
        &self,
        source: PartitionIndex,
        image: &Image,
        config: &BrokerConfig,
    ) -> Result<Destination, NoDestination> {
        let name = &self.topic;
        if name.starts_with(INTERNAL) {
            return Err(NoDestination::Internal(name.clone()));
        }
        let own = image.configs.of(&Resource::topic(name.clone()));
        let said = |key: &str| own.and_then(|own| own.get(key)).map(|value| value.trim());
        if image.topics.by_name(name).is_some() && !is_true(said(TOPIC_TAKES)) {
            return Err(NoDestination::NotEnabled(name.clone()));
        }
        let prefix = config.value(PREFIX).unwrap_or_default();
        if !name.starts_with(prefix) {
            return Err(NoDestination::Prefix { topic: name.clone(), prefix: prefix.to_owned() });
        }
        let Some(place) = Place::of(name, source.get(), image, config) else {
            return match config.boolean(AUTO_CREATE) {
                true => Ok(Destination::Missing),
                false => Err(NoDestination::NoTopic(name.clone())),
            };
        };
        Ok(Destination::Partition(place))
    }

    /// The CreateTopics request for the group's topic, with `errors.deadletterqueue.group.enable=true` and
    /// `message.timestamp.type=CreateTime`: a dead letter keeps the timestamp that its broker wrote, also in a cluster
    /// with `log.message.timestamp.type=LogAppendTime`.
    pub fn creation(&self, config: &BrokerConfig) -> CreateTopicsRequest {
        let configs = [(TOPIC_TAKES, "true"), ("message.timestamp.type", "CreateTime")];
        own_topics::creation(&self.topic, &configs, config)
    }
}

fn is_true(value: Option<&str>) -> bool {
    value.is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

/// Why a record goes to the dead letter topic. [`Cause::words`] is the value of the dead letter's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    Rejected,
    DeliveryCountExceeded,
}

impl Cause {
    /// Kafka's words, as programs may compare them.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Rejected => "Offset rejected by client.",
            Self::DeliveryCountExceeded => "Offset delivery count exceeded the threshold.",
        }
    }
}

/// Whose records are given up, of which partition.
#[derive(Debug, Clone, Copy)]
pub struct Sender<'a> {
    pub group: &'a str,
    pub topic: &'a str,
    pub partition: PartitionIndex,
}

/// One record that is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Letter {
    pub offset: Offset,
    pub delivery_count: u16,
    pub cause: Cause,
}

/// A record as the log has it, kept without its batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    key: Option<Bytes>,
    value: Option<Bytes>,
    headers: Vec<(Bytes, Option<Bytes>)>,
}

/// Records by their offsets.
pub type Copies = BTreeMap<Offset, Copied>;

impl Copied {
    /// `record` is one of `records`, and shares their memory, unless it is a small part of that: a batch may inflate to
    /// far more than the one record that is wanted of it.
    pub fn of(record: &RecordRef<'_>, records: &Records) -> Self {
        let is_small = record.body_bytes < records.body().len() / 16;
        let share = |slice: &[u8]| match is_small {
            true => Bytes::copy_from_slice(slice),
            false => records.share(slice),
        };
        Self {
            key: record.key.map(share),
            value: record.value.map(share),
            headers: record.headers().map(|(key, value)| (share(key), value.map(share))).collect(),
        }
    }

    /// What it takes.
    pub fn bytes(&self) -> usize {
        let parts = [&self.key, &self.value].into_iter().flatten().map(Bytes::len);
        let headers =
            self.headers.iter().map(|(key, value)| key.len() + value.as_ref().map_or(0, Bytes::len));
        parts.chain(headers).sum()
    }
}

/// As many letters, from the first on, as a batch of `bytes_max` holds; one at least, whatever its size. Gives the
/// batch and how many they are. A letter whose record is not among the copies has headers alone.
///
/// # Errors
/// As [`BatchBuilder::build`].
pub fn batch(
    sender: &Sender<'_>,
    letters: &[Letter],
    copies: &Copies,
    now: TimestampMs,
    bytes_max: usize,
) -> Result<(Bytes, usize), BatchError> {
    let mut builder = BatchBuilder::new(BatchOptions::default());
    let mut count = 0;
    for letter in letters {
        let copy = copies.get(&letter.offset);
        let said = said(sender, letter);
        let own = copy.into_iter().flat_map(|copy| &copy.headers);
        let own = own.map(|(key, value)| (&key[..], value.as_deref()));
        let added = said.iter().map(|(key, value)| (key.as_bytes(), Some(value.as_bytes())));
        let headers: Vec<HeaderRef<'_>> = own.chain(added).collect();
        let key = copy.and_then(|copy| copy.key.as_deref());
        let value = copy.and_then(|copy| copy.value.as_deref());
        if count > 0 && builder.size_bytes_with(now, key, value, &headers) > bytes_max {
            break;
        }
        builder.push(now, key, value, &headers);
        count += 1;
    }
    Ok((builder.build()?, count))
}

/// What a letter says beside the record's own headers, in Kafka's order.
fn said(sender: &Sender<'_>, letter: &Letter) -> [(&'static str, String); 6] {
    [
        ("__dlq.errors.topic", sender.topic.to_owned()),
        ("__dlq.errors.partition", sender.partition.get().to_string()),
        ("__dlq.errors.offset", letter.offset.get().to_string()),
        ("__dlq.errors.group", sender.group.to_owned()),
        ("__dlq.errors.delivery.count", letter.delivery_count.to_string()),
        ("__dlq.errors.message", letter.cause.words().to_owned()),
    ]
}

#[cfg(test)]
mod tests;
