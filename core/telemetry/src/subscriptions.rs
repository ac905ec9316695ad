//! The subscriptions of the cluster (CLIENT_METRICS resources), and what they ask of one client.
//!
//! A client pushes what all matching subscriptions ask for together, at the shortest of their intervals.
//!
//! librdkafka 2.5.0 aborts its process when it has none of the metrics that it is asked for (librdkafka#4833). No
//! subscription matches that version.
//!
//! Source: Kafka 4.4 `ClientMetricsManager.createClientInstance`, `computeSubscriptionId`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use barnabas_base::{Text, Uuid};
use barnabas_metadata::config::parse_list;
use barnabas_metadata::{Configs, ResourceType, Values};
use barnabas_wire::records::{Codec, crc32c};

use crate::Client;
use crate::matching::Match;

/// Of clients that no subscription matches, and of subscriptions that name none (`interval.ms`).
const INTERVAL_MS: i32 = 300_000;
/// Asks for all metrics.
const ALL: &str = "*";

/// What a push may be compressed with, the best first.
pub const ACCEPTED_CODECS: [Codec; 4] = [Codec::Zstd, Codec::Lz4, Codec::Gzip, Codec::Snappy];

/// What a client is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    pub subscription_id: i32,
    /// Prefixes, sorted; `*` alone for all; empty for none.
    pub metrics: Arc<[Text]>,
    pub push_interval_ms: i32,
}

/// A subscription that matches no client, because its `match` cannot be used. A controller of ours takes none; Apache's
/// takes expressions that only Java has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unusable {
    pub subscription: Text,
    pub why: String,
}

/// Every subscription, ready to be asked. `version` counts its changes.
#[derive(Debug, Default)]
pub struct Subscriptions {
    by_name: BTreeMap<Text, Subscription>,
    version: u64,
}

#[derive(Debug)]
struct Subscription {
    /// Where the rest comes from.
    values: Arc<Values>,
    metrics: Vec<Text>,
    interval_ms: i32,
    /// `None`: it is unusable.
    clients: Option<Match>,
}

impl Subscriptions {
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Takes over what has changed in `configs`; costs a comparison for each subscription where nothing has. Returns
    /// the changed ones that are unusable.
    pub fn follow(&mut self, configs: &Configs) -> Vec<Unusable> {
        let mut unusable = Vec::new();
        let mut has_changed = false;
        let mut found = 0;
        for (resource, values) in configs.of_kind(ResourceType::ClientMetrics) {
            found += 1;
            let known = self.by_name.get(&resource.name);
            if known.is_some_and(|known| Arc::ptr_eq(&known.values, values) || known.values == *values) {
                continue;
            }
            has_changed = true;
            let (subscription, why) = Subscription::new(values);
            unusable.extend(why.map(|why| Unusable { subscription: resource.name.clone(), why }));
            self.by_name.insert(resource.name.clone(), subscription);
        }
        if self.by_name.len() > found {
            has_changed = true;
            let names = configs.of_kind(ResourceType::ClientMetrics).map(|(resource, _)| &resource.name);
            let left: BTreeSet<&Text> = names.collect();
            self.by_name.retain(|name, _| left.contains(name));
        }
        self.version += u64::from(has_changed);
        unusable
    }

    /// What this client is asked for.
    pub fn of(&self, client: &Client) -> Offer {
        let mut metrics: BTreeSet<&Text> = BTreeSet::new();
        let mut push_interval_ms = INTERVAL_MS;
        let is_matched = !client.software.aborts_on_unknown_metrics();
        for subscription in self.by_name.values().filter(|_| is_matched) {
            if subscription.clients.as_ref().is_some_and(|clients| clients.is_of(client)) {
                metrics.extend(&subscription.metrics);
                push_interval_ms = push_interval_ms.min(subscription.interval_ms);
            }
        }
        if metrics.iter().any(|metric| ***metric == *ALL) {
            metrics.retain(|metric| ***metric == *ALL);
        }
        let metrics: Arc<[Text]> = metrics.into_iter().cloned().collect();
        let subscription_id = subscription_id(&metrics, push_interval_ms, client.instance_id);
        Offer { subscription_id, metrics, push_interval_ms }
    }
}

impl Subscription {
    /// And why it is unusable, if it is.
    fn new(values: &Arc<Values>) -> (Self, Option<String>) {
        let value = |key: &str| values.get(key).map(|value| &**value);
        let metrics = parse_list(value("metrics").unwrap_or_default()).map(Text::from).collect();
        let interval_ms = value("interval.ms").and_then(|value| value.trim().parse().ok());
        let (clients, why) = match Match::parse(value("match").unwrap_or_default()) {
            Ok(clients) => (Some(clients), None),
            Err(error) => (None, Some(error.to_string())),
        };
        let interval_ms = interval_ms.unwrap_or(INTERVAL_MS);
        (Self { values: values.clone(), metrics, interval_ms, clients }, why)
    }
}

/// Changes with what is asked for, and differs between clients.
///
/// Kafka's are the same where one metric is asked for. With more, its order is that of a Java `HashSet`: a client that
/// goes on from one of its brokers to one of ours asks for its subscription once more.
fn subscription_id(metrics: &[Text], push_interval_ms: i32, client: Uuid) -> i32 {
    let listed: Vec<&str> = metrics.iter().map(|metric| &**metric).collect();
    let text = format!("[{}]{push_interval_ms}", listed.join(", "));
    crc32c(text.as_bytes()).cast_signed() ^ java_hash(client)
}

/// Java's hash of Kafka's `Uuid`: both halves together, then both halves of that.
fn java_hash(id: Uuid) -> i32 {
    let words = id.0.chunks_exact(4).map(|word| u32::from_be_bytes([word[0], word[1], word[2], word[3]]));
    words.fold(0, |hash, word| hash ^ word).cast_signed()
}

#[cfg(test)]
pub(crate) mod tests;
