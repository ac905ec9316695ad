//! The clients that this node knows, and the checks of their two requests.
//!
//! A client is known from its first request until nothing came from it for three push intervals, at least a minute. At
//! [`CLIENTS_MAX`] the one goes whose time is over first. Its series go with it.
//!
//! Clients spread their pushes over half to one and a half intervals by themselves. A push right after the request for
//! the subscription is in time; any other is as long as an interval has passed since the last push.
//!
//! Always true:
//! 1. `clients` and `by_expiry` name the same clients
//! 2. `series` in `Counts` is the number of series of all clients
//!
//! Source: Kafka 4.4 `ClientMetricsManager`, `ClientMetricsInstance`. Left out: Kafka also forgets a client when its
//! connection closes.

use std::collections::BTreeSet;

use barnabas_base::{DurationMs, ErrorCode, Map, MonotonicMs, Text, Uuid};
use barnabas_metadata::Configs;
use barnabas_wire::records::Codec;

use crate::series::Store;
use crate::{Client, Limits, Offer, Points, Sample, Software, Subscriptions, Unusable};

/// As many as Kafka's cache holds.
pub const CLIENTS_MAX: usize = 16_384;
/// A client that pushes more often is known for so long all the same.
const KNOWN_AT_LEAST_MS: i64 = 60_000;
const INTERVALS_KNOWN: i64 = 3;

/// A push, before its metrics are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Push {
    pub subscription_id: i32,
    pub is_terminating: bool,
    pub compression_type: i8,
    /// Compressed.
    pub metrics_bytes: usize,
}

/// How pushes ended, since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Taken,
    Throttled,
    UnknownSubscription,
    UnsupportedCompression,
    TooLarge,
    /// Not OTLP, or not compressed as it says.
    Malformed,
    /// After the last push, or without an instance id.
    Invalid,
}

impl Outcome {
    pub const ALL: [Self; 7] = [
        Self::Taken,
        Self::Throttled,
        Self::UnknownSubscription,
        Self::UnsupportedCompression,
        Self::TooLarge,
        Self::Malformed,
        Self::Invalid,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::Throttled => "throttled",
            Self::UnknownSubscription => "unknown_subscription",
            Self::UnsupportedCompression => "unsupported_compression",
            Self::TooLarge => "too_large",
            Self::Malformed => "malformed",
            Self::Invalid => "invalid",
        }
    }

    const fn of(code: ErrorCode) -> Self {
        match code {
            ErrorCode::ThrottlingQuotaExceeded => Self::Throttled,
            ErrorCode::UnknownSubscriptionId => Self::UnknownSubscription,
            ErrorCode::UnsupportedCompressionType => Self::UnsupportedCompression,
            ErrorCode::TelemetryTooLarge => Self::TooLarge,
            ErrorCode::InvalidRecord => Self::Malformed,
            _ => Self::Invalid,
        }
    }
}

/// Figures of the table.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Counts {
    pub clients: usize,
    pub series: usize,
    /// By [`Outcome`].
    pub pushes: [u64; Outcome::ALL.len()],
    /// Clients that went because there were too many.
    pub evicted: u64,
    /// Points that made no series.
    pub dropped: crate::series::Dropped,
}

/// A known client, for the page.
#[derive(Debug, Clone, PartialEq)]
pub struct Described {
    pub instance_id: Uuid,
    pub client_id: Option<Text>,
    pub software: Software,
    pub address: Text,
    /// Attributes of its resource, such as `group_id`.
    pub resource: Vec<(Text, Text)>,
    pub samples: Vec<Sample>,
}

#[derive(Debug)]
struct Entry {
    client: Client,
    offer: Offer,
    /// [`Subscriptions::version`] of the offer.
    version: u64,
    asked_at: Option<MonotonicMs>,
    pushed_at: Option<MonotonicMs>,
    is_terminating: bool,
    last_error: Option<ErrorCode>,
    expires_at: MonotonicMs,
    store: Store,
}

/// See the file's header.
#[derive(Debug)]
pub struct ClientTable {
    clients: Map<Uuid, Entry>,
    by_expiry: BTreeSet<(MonotonicMs, Uuid)>,
    subscriptions: Subscriptions,
    families: crate::series::Families,
    /// `telemetry.max.bytes`.
    push_bytes_max: usize,
    limits: Limits,
    counts: Counts,
}

impl ClientTable {
    pub fn new(push_bytes_max: usize, limits: Limits) -> Self {
        Self {
            clients: Map::default(),
            by_expiry: BTreeSet::new(),
            subscriptions: Subscriptions::default(),
            families: crate::series::Families::default(),
            push_bytes_max,
            limits,
            counts: Counts::default(),
        }
    }

    /// Takes over the subscriptions of this moment; before each request. Returns those that are new and unusable.
    pub fn follow(&mut self, configs: &Configs) -> Vec<Unusable> {
        self.subscriptions.follow(configs)
    }

    pub fn counts(&self) -> Counts {
        Counts { clients: self.clients.len(), ..self.counts.clone() }
    }

    /// GetTelemetrySubscriptions.
    ///
    /// # Errors
    /// THROTTLING_QUOTA_EXCEEDED: it asked or pushed within the interval. After UNKNOWN_SUBSCRIPTION_ID and
    /// UNSUPPORTED_COMPRESSION_TYPE it may ask at once; so may a client for which something has changed.
    pub fn get(&mut self, client: Client, now: MonotonicMs) -> Result<Offer, ErrorCode> {
        let entry = self.entry(client, now);
        let interval = DurationMs(i64::from(entry.offer.push_interval_ms));
        let last = entry.asked_at.max(entry.pushed_at);
        let is_in_time = last.is_none_or(|last| now.since(last) >= interval);
        let may_ask_again = matches!(
            entry.last_error,
            Some(ErrorCode::UnknownSubscriptionId | ErrorCode::UnsupportedCompressionType)
        );
        if is_in_time {
            entry.asked_at = Some(now);
        } else if !may_ask_again {
            return Err(ErrorCode::ThrottlingQuotaExceeded);
        }
        entry.last_error = None;
        Ok(entry.offer.clone())
    }

    /// PushTelemetry, up to its metrics. Afterwards [`Self::take`] gets them, or
    /// [`Self::refuse`] the reason why they are not taken.
    ///
    /// # Errors
    /// In this order: INVALID_REQUEST without an instance id, and after a push that was the last one;
    /// THROTTLING_QUOTA_EXCEEDED; UNKNOWN_SUBSCRIPTION_ID; UNSUPPORTED_COMPRESSION_TYPE; TELEMETRY_TOO_LARGE.
    pub fn push(&mut self, client: Client, push: Push, now: MonotonicMs) -> Result<Codec, ErrorCode> {
        let reserved = [Uuid::ZERO, Uuid::METADATA_TOPIC];
        if reserved.contains(&client.instance_id) {
            self.counts.pushes[Outcome::Invalid as usize] += 1;
            return Err(ErrorCode::InvalidRequest);
        }
        let push_bytes_max = self.push_bytes_max;
        let entry = self.entry(client, now);
        let decided = entry.check(push, push_bytes_max, now);
        entry.is_terminating = push.is_terminating;
        if let Err(code) = decided {
            entry.last_error = Some(code);
            self.counts.pushes[Outcome::of(code) as usize] += 1;
        }
        decided
    }

    /// The metrics of a push that [`Self::push`] let through could not be read.
    pub fn refuse(&mut self, instance_id: Uuid, code: ErrorCode) {
        self.counts.pushes[Outcome::of(code) as usize] += 1;
        if let Some(entry) = self.clients.get_mut(&instance_id) {
            entry.last_error = Some(code);
        }
    }

    /// The metrics of a push that [`Self::push`] let through.
    pub fn take(&mut self, instance_id: Uuid, points: Points) {
        self.counts.pushes[Outcome::Taken as usize] += 1;
        // It was known a moment ago; another client may have taken its place since.
        let Some(entry) = self.clients.get_mut(&instance_id) else { return };
        entry.last_error = None;
        let before = entry.store.len();
        let others = self.counts.series - before;
        let dropped = entry.store.take(points, &mut self.families, self.limits, others);
        self.counts.dropped.add(dropped);
        self.counts.series = others + entry.store.len();
    }

    /// The clients that have series.
    pub fn describe(&self) -> Vec<Described> {
        let described = self.clients.values().filter(|entry| entry.store.len() > 0);
        let described = described.map(|entry| Described {
            instance_id: entry.client.instance_id,
            client_id: entry.client.client_id.clone(),
            software: entry.client.software.clone(),
            address: entry.client.address.clone(),
            resource: entry.store.resource().to_vec(),
            samples: entry.store.samples().collect(),
        });
        let mut described: Vec<Described> = described.collect();
        described.sort_by_key(|each| each.instance_id);
        described
    }

    /// The client, known from now on, with what it is asked for now.
    fn entry(&mut self, client: Client, now: MonotonicMs) -> &mut Entry {
        self.expire(now);
        let id = client.instance_id;
        let version = self.subscriptions.version();
        if let Some(known) = self.clients.get_mut(&id) {
            self.by_expiry.remove(&(known.expires_at, id));
            if known.version < version {
                known.renew(self.subscriptions.of(&known.client), version);
            }
        } else {
            self.make_room();
            let offer = self.subscriptions.of(&client);
            self.clients.insert(id, Entry::new(client, offer, version));
        }
        let entry = self.clients.get_mut(&id).expect("invariant: it is there or was just made");
        let known_for = i64::from(entry.offer.push_interval_ms) * INTERVALS_KNOWN;
        entry.expires_at = now.plus(DurationMs(known_for.max(KNOWN_AT_LEAST_MS)));
        self.by_expiry.insert((entry.expires_at, id));
        entry
    }

    fn make_room(&mut self) {
        while self.clients.len() >= CLIENTS_MAX {
            let Some((_, id)) = self.by_expiry.pop_first() else { return };
            self.forget(id);
            self.counts.evicted += 1;
        }
    }

    /// Forgets the clients whose time is over.
    pub fn expire(&mut self, now: MonotonicMs) {
        while let Some(&(at, id)) = self.by_expiry.first()
            && at <= now
        {
            self.by_expiry.pop_first();
            self.forget(id);
        }
    }

    fn forget(&mut self, id: Uuid) {
        if let Some(mut entry) = self.clients.remove(&id) {
            self.counts.series -= entry.store.len();
            entry.store.clear(&mut self.families);
        }
    }
}

impl Entry {
    fn new(client: Client, offer: Offer, version: u64) -> Self {
        Self {
            client,
            offer,
            version,
            asked_at: None,
            pushed_at: None,
            is_terminating: false,
            last_error: None,
            expires_at: MonotonicMs(0),
            store: Store::default(),
        }
    }

    /// The subscriptions have changed: as if the client were new, so that it may ask at once. Its series stay.
    fn renew(&mut self, offer: Offer, version: u64) {
        let store = std::mem::take(&mut self.store);
        *self = Self { store, ..Self::new(self.client.clone(), offer, version) };
    }

    fn check(&mut self, push: Push, push_bytes_max: usize, now: MonotonicMs) -> Result<Codec, ErrorCode> {
        if self.is_terminating {
            return Err(ErrorCode::InvalidRequest);
        }
        if !self.is_in_time(now) && !push.is_terminating {
            return Err(ErrorCode::ThrottlingQuotaExceeded);
        }
        if push.subscription_id != self.offer.subscription_id {
            return Err(ErrorCode::UnknownSubscriptionId);
        }
        let codec = Codec::from_id(i16::from(push.compression_type));
        let codec = codec.ok_or(ErrorCode::UnsupportedCompressionType)?;
        if push.metrics_bytes > push_bytes_max {
            return Err(ErrorCode::TelemetryTooLarge);
        }
        Ok(codec)
    }

    /// Whether it may push; if so, it has.
    fn is_in_time(&mut self, now: MonotonicMs) -> bool {
        let interval = DurationMs(i64::from(self.offer.push_interval_ms));
        let has_just_asked = self.asked_at > self.pushed_at;
        let is_in_time = has_just_asked || self.pushed_at.is_none_or(|last| now.since(last) >= interval);
        if is_in_time {
            self.pushed_at = Some(now);
        }
        is_in_time
    }
}

#[cfg(test)]
mod tests;
