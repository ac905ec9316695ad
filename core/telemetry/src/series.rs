//! What clients pushed, as series: a name, labels and a value each, the way a Prometheus page shows them.
//!
//! | in OTLP | here |
//! |---|---|
//! | gauge, or a sum that may fall | a gauge: the newest value. One that a push no longer contains is gone |
//! | monotonic sum of differences | a counter: their sum since the client is known |
//! | monotonic sum of totals | a counter: the newest total |
//! | histogram, exponential histogram, summary | dropped and counted; no known client pushes one |
//!
//! A name is `barnabas_telemetry_` and the metric's, without `org.apache.kafka.`, in lower case, `_` for what
//! Prometheus has not; a counter ends in `_total`. The first series of a name decides what its kind is.
//!
//! Always true:
//! 1. a store has at most `client_series_max` series, all stores together at most `series_max`
//! 2. names and labels have at most [`NAME_BYTES_MAX`], [`VALUE_BYTES_MAX`] and [`LABELS_MAX`]
//! 3. all series of one name are of one kind

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use barnabas_base::{Map, Text};

use crate::client::cut;
use crate::otlp::{self, Attribute, Malformed, Number, Temporality, Value};

/// Before each name.
const PREFIX: &str = "barnabas_telemetry_";
/// Kafka's own metrics begin so (KIP-714).
const KAFKA: &str = "org.apache.kafka.";
const NAME_BYTES_MAX: usize = 128;
const VALUE_BYTES_MAX: usize = 128;
const LABELS_MAX: usize = 8;
/// Labels that the page writes itself.
const RESERVED: [&str; 2] = ["client_id", "client_instance_id"];

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Of all clients together (`telemetry.series.max`).
    pub series_max: usize,
    /// Of one client; also the points that one push may have.
    pub client_series_max: usize,
}

impl Limits {
    /// One client has a tenth of all series.
    pub fn of(series_max: usize) -> Self {
        Self { series_max, client_series_max: series_max.div_ceil(10) }
    }
}

/// What a series is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
}

/// Points that made no series.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Dropped {
    /// Beyond [`Limits`].
    pub beyond_limit: u64,
    /// Histograms and the like, and names whose kind is another one.
    pub other_kind: u64,
    /// Without a value, or with a difference that is no finite number.
    pub no_value: u64,
}

impl Dropped {
    pub(crate) fn add(&mut self, other: Self) {
        self.beyond_limit += other.beyond_limit;
        self.other_kind += other.other_kind;
        self.no_value += other.no_value;
    }
}

/// A name and its labels, in the order of their names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Series {
    pub name: Text,
    pub labels: Box<[(Text, Text)]>,
}

#[derive(Debug)]
struct Point {
    series: Series,
    kind: Kind,
    is_difference: bool,
    value: f64,
}

/// The points of one push, bounded and named.
#[derive(Debug, Default)]
pub struct Points {
    resource: Vec<(Text, Text)>,
    points: Vec<Point>,
    dropped: Dropped,
}

/// A series with its value at a moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    pub series: Series,
    pub kind: Kind,
    pub value: f64,
}

/// Reads a push's metrics: OTLP's `MetricsData`, inflated.
///
/// # Errors
/// The bytes are not OTLP.
pub fn gather(bytes: &[u8], limits: Limits) -> Result<Points, Malformed> {
    let mut gathered = Points::default();
    otlp::read(bytes, &mut |item| match item {
        otlp::Item::Resource(attributes) => gathered.resource = labels(&attributes),
        otlp::Item::Number(number) => gathered.add(&number, limits.client_series_max),
        otlp::Item::OtherKind => gathered.dropped.other_kind += 1,
    })?;
    Ok(gathered)
}

impl Points {
    pub fn len(&self) -> usize {
        self.points.len()
    }

    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    fn add(&mut self, number: &Number<'_>, points_max: usize) {
        if self.points.len() >= points_max {
            self.dropped.beyond_limit += 1;
            return;
        }
        let value = match number.value {
            Value::Missing => None,
            Value::Double(value) => Some(value),
            Value::Int(value) => Some(value as f64),
        };
        let is_difference = number.is_monotonic && number.temporality == Temporality::Delta;
        let Some(value) = value.filter(|value| value.is_finite() || !is_difference) else {
            self.dropped.no_value += 1;
            return;
        };
        let kind = if number.is_monotonic { Kind::Counter } else { Kind::Gauge };
        let series = Series { name: name(number.name, kind), labels: labels(&number.attributes).into() };
        self.points.push(Point { series, kind, is_difference, value });
    }
}

fn name(metric: &str, kind: Kind) -> Text {
    let metric = metric.strip_prefix(KAFKA).unwrap_or(metric);
    let mut name = format!("{PREFIX}{}", word(metric));
    if kind == Kind::Counter && !name.ends_with("_total") {
        name.push_str("_total");
    }
    Text::from(name)
}

/// As Prometheus takes it after a letter.
fn word(text: &str) -> String {
    let letters = cut(text, NAME_BYTES_MAX).chars();
    letters
        .map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '_' })
        .collect()
}

fn labels(attributes: &[(&str, Attribute<'_>)]) -> Vec<(Text, Text)> {
    let mut labels: BTreeMap<String, Text> = BTreeMap::new();
    for (key, value) in attributes {
        let mut name = word(key);
        if name.starts_with(|letter: char| !letter.is_ascii_lowercase()) {
            name.insert(0, 'x');
        }
        if labels.len() < LABELS_MAX && !name.is_empty() && !RESERVED.contains(&&*name) {
            labels.entry(name).or_insert_with(|| shown(value));
        }
    }
    labels.into_iter().map(|(name, value)| (Text::from(name), value)).collect()
}

fn shown(value: &Attribute<'_>) -> Text {
    match value {
        Attribute::Text(text) => Text::from(cut(text, VALUE_BYTES_MAX)),
        Attribute::Bool(value) => Text::from(value.to_string()),
        Attribute::Int(value) => Text::from(value.to_string()),
        Attribute::Double(value) => Text::from(value.to_string()),
    }
}

/// The names in use, the kind of each, and how many series have it.
#[derive(Debug, Default)]
pub(crate) struct Families {
    by_name: Map<Text, (Kind, usize)>,
}

impl Families {
    fn kind_of(&self, name: &Text) -> Option<Kind> {
        self.by_name.get(name).map(|(kind, _)| *kind)
    }

    fn one_more(&mut self, name: &Text, kind: Kind) {
        self.by_name.entry(name.clone()).or_insert((kind, 0)).1 += 1;
    }

    fn one_less(&mut self, name: &Text) {
        if let Some(family) = self.by_name.get_mut(name) {
            family.1 -= 1;
            if family.1 == 0 {
                self.by_name.remove(name);
            }
        }
    }
}

#[derive(Debug)]
struct Kept {
    kind: Kind,
    value: f64,
    /// The push that it was last part of.
    push: u64,
}

/// The series of one client.
#[derive(Debug, Default)]
pub(crate) struct Store {
    resource: Vec<(Text, Text)>,
    series: BTreeMap<Series, Kept>,
    pushes: u64,
}

impl Store {
    pub(crate) fn len(&self) -> usize {
        self.series.len()
    }

    /// Attributes of the client's resource, of its newest push.
    pub(crate) fn resource(&self) -> &[(Text, Text)] {
        &self.resource
    }

    pub(crate) fn samples(&self) -> impl Iterator<Item = Sample> {
        let sample = |(series, kept): (&Series, &Kept)| Sample {
            series: series.clone(),
            kind: kept.kind,
            value: kept.value,
        };
        self.series.iter().map(sample)
    }

    /// Takes the points of one push; `others`: the series that other clients have. Returns what was dropped.
    pub(crate) fn take(
        &mut self,
        points: Points,
        families: &mut Families,
        limits: Limits,
        others: usize,
    ) -> Dropped {
        let mut dropped = points.dropped;
        if points.points.is_empty() {
            return dropped;
        }
        self.resource = points.resource;
        self.pushes += 1;
        let most = limits.client_series_max.min(limits.series_max.saturating_sub(others));
        for point in points.points {
            if families.kind_of(&point.series.name).is_some_and(|kind| kind != point.kind) {
                dropped.other_kind += 1;
                continue;
            }
            let full = self.series.len() >= most;
            let kept = match self.series.entry(point.series) {
                Entry::Occupied(kept) => kept.into_mut(),
                Entry::Vacant(_) if full => {
                    dropped.beyond_limit += 1;
                    continue;
                }
                Entry::Vacant(place) => {
                    families.one_more(&place.key().name, point.kind);
                    place.insert(Kept { kind: point.kind, value: 0.0, push: 0 })
                }
            };
            kept.push = self.pushes;
            kept.value = if point.is_difference { kept.value + point.value } else { point.value };
        }
        let newest = self.pushes;
        self.drop_where(families, |kept| kept.kind == Kind::Gauge && kept.push < newest);
        dropped
    }

    pub(crate) fn clear(&mut self, families: &mut Families) {
        self.drop_where(families, |_| true);
    }

    fn drop_where(&mut self, families: &mut Families, is_gone: impl Fn(&Kept) -> bool) {
        self.series.retain(|series, kept| {
            let goes = is_gone(kept);
            if goes {
                families.one_less(&series.name);
            }
            !goes
        });
    }
}

#[cfg(test)]
pub(crate) mod tests;
