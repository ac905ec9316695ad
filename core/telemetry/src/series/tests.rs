//! Series out of pushes: names, kinds, sums and bounds.

use super::*;

/// A field of a protobuf message that is one itself.
pub(crate) fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(bytes);
    out
}

pub(crate) fn attribute(key: &str, value: &str) -> Vec<u8> {
    [field(1, key.as_bytes()), field(2, &field(1, value.as_bytes()))].concat()
}

pub(crate) fn point(value: f64, labels: &[(&str, &str)]) -> Vec<u8> {
    let mut point = vec![4 << 3 | 1];
    point.extend_from_slice(&value.to_bits().to_le_bytes());
    labels.iter().for_each(|(key, value)| point.extend(field(7, &attribute(key, value))));
    field(1, &point)
}

pub(crate) fn gauge(name: &str, value: f64, labels: &[(&str, &str)]) -> Vec<u8> {
    field(2, &[field(1, name.as_bytes()), field(5, &point(value, labels))].concat())
}

/// Monotonic; `temporality` 1: differences, 2: totals.
pub(crate) fn sum(name: &str, value: f64, temporality: u8) -> Vec<u8> {
    let sum = [point(value, &[]), vec![2 << 3, temporality, 3 << 3, 1]].concat();
    field(2, &[field(1, name.as_bytes()), field(7, &sum)].concat())
}

pub(crate) fn push(metrics: &[Vec<u8>]) -> Vec<u8> {
    let resource = field(1, &field(1, &attribute("group.id", "g")));
    field(1, &[resource, field(2, &metrics.concat())].concat())
}

/// A push with a gauge of each name.
pub(crate) fn push_of(names: &[&str]) -> Vec<u8> {
    push(&names.iter().map(|name| gauge(name, 1.0, &[])).collect::<Vec<_>>())
}

const LIMITS: Limits = Limits { series_max: 10, client_series_max: 4 };

#[derive(Default)]
struct Rig {
    store: Store,
    families: Families,
}

impl Rig {
    fn take(&mut self, metrics: &[Vec<u8>]) -> Dropped {
        self.take_beside(metrics, 0)
    }

    fn take_beside(&mut self, metrics: &[Vec<u8>], others: usize) -> Dropped {
        let points = gather(&push(metrics), LIMITS).expect("OTLP");
        self.store.take(points, &mut self.families, LIMITS, others)
    }

    fn shown(&self) -> Vec<String> {
        let label = |(name, value): &(Text, Text)| format!("{name}={value}");
        let shown = self.store.samples().map(|Sample { series, value, .. }| {
            let labels: Vec<String> = series.labels.iter().map(label).collect();
            format!("{}{{{}}} {value}", series.name.trim_start_matches(PREFIX), labels.join(","))
        });
        shown.collect()
    }
}

#[test]
fn names_and_labels_are_prometheus_words() {
    let mut rig = Rig::default();
    let labels = [("node.id", "1"), ("Topic", "a\"b"), ("client_id", "mine"), ("2nd", "x"), ("", "none")];
    rig.take(&[
        gauge("org.apache.kafka.consumer.fetch-manager.lag", 3.0, &labels),
        sum("com.example.Événements", 2.0, 1),
        sum("org.apache.kafka.producer.connection.creation.total", 2.0, 1),
    ]);
    assert_eq!(
        rig.shown(),
        [
            "com_example__v_nements_total{} 2",
            "consumer_fetch_manager_lag{node_id=1,topic=a\"b,x2nd=x} 3",
            "producer_connection_creation_total{} 2",
        ]
    );
    assert_eq!(rig.store.resource(), [(Text::from("group_id"), Text::from("g"))]);
}

#[test]
fn differences_add_up_and_totals_replace() {
    let mut rig = Rig::default();
    rig.take(&[sum("d", 2.0, 1), sum("t", 2.0, 2), gauge("g", 2.0, &[])]);
    rig.take(&[sum("d", 3.0, 1), sum("t", 3.0, 2), gauge("g", 3.0, &[])]);
    assert_eq!(rig.shown(), ["d_total{} 5", "g{} 3", "t_total{} 3"]);
    let dropped = rig.take(&[sum("d", f64::NAN, 1), gauge("g", f64::NAN, &[])]);
    assert_eq!(dropped.no_value, 1, "a difference must not spoil the sum");
    assert_eq!(rig.shown(), ["d_total{} 5", "g{} NaN", "t_total{} 3"]);
}

#[test]
fn gauge_that_is_no_longer_pushed_is_gone() {
    let mut rig = Rig::default();
    rig.take(&[
        gauge("lag", 1.0, &[("partition", "0")]),
        gauge("lag", 1.0, &[("partition", "1")]),
        sum("d", 1.0, 1),
    ]);
    rig.take(&[gauge("lag", 2.0, &[("partition", "1")])]);
    assert_eq!(rig.shown(), ["d_total{} 1", "lag{partition=1} 2"]);
    rig.take(&[]);
    assert_eq!(rig.store.len(), 2, "an empty push says nothing about gauges");
}

#[test]
fn series_are_bounded_by_client_and_by_node() {
    let mut rig = Rig::default();
    let many: Vec<Vec<u8>> = (0..6).map(|number| gauge(&format!("g{number}"), 1.0, &[])).collect();
    assert_eq!(rig.take(&many).beyond_limit, 2);
    assert_eq!(rig.store.len(), 4);
    let mut other = Rig::default();
    assert_eq!(other.take_beside(&many, 8).beyond_limit, 4, "two in the push, two in the node");
    assert_eq!(other.store.len(), 2);
    assert_eq!(other.take_beside(&many, 8).beyond_limit, 4, "known series go on");
    assert_eq!(other.take_beside(&many, 50).beyond_limit, 4);
    assert_eq!(other.store.len(), 2);
}

#[test]
fn name_keeps_its_kind_while_it_is_in_use() {
    let mut rig = Rig::default();
    rig.take(&[sum("x", 1.0, 1)]);
    assert_eq!(rig.take(&[gauge("x_total", 7.0, &[])]).other_kind, 1);
    assert_eq!(rig.shown(), ["x_total{} 1"]);
    rig.store.clear(&mut rig.families);
    assert_eq!(rig.take(&[gauge("x_total", 7.0, &[])]).other_kind, 0);
    assert_eq!(rig.shown(), ["x_total{} 7"]);
}

#[test]
fn other_kinds_and_points_without_value_are_counted() {
    let mut rig = Rig::default();
    let histogram = field(2, &[field(1, b"h"), field(9, &field(1, &[]))].concat());
    let empty = field(2, &[field(1, b"e"), field(5, &field(1, &[]))].concat());
    let dropped = rig.take(&[histogram, empty]);
    assert_eq!(dropped, Dropped { beyond_limit: 0, other_kind: 1, no_value: 1 });
    assert_eq!(rig.store.len(), 0);
}

#[test]
fn long_names_and_values_are_cut() {
    let mut rig = Rig::default();
    let long = "é".repeat(300);
    let labels: Vec<(String, String)> =
        (0..20).map(|number| (format!("l{number:02}{long}"), long.clone())).collect();
    let labels: Vec<(&str, &str)> = labels.iter().map(|(name, value)| (&**name, &**value)).collect();
    rig.take(&[gauge(&long, 1.0, &labels)]);
    let sample = rig.store.samples().next().expect("a series");
    assert!(sample.series.name.len() <= PREFIX.len() + NAME_BYTES_MAX);
    assert_eq!(sample.series.labels.len(), LABELS_MAX);
    assert!(
        sample
            .series
            .labels
            .iter()
            .all(|(name, value)| { name.len() <= NAME_BYTES_MAX && value.len() <= VALUE_BYTES_MAX })
    );
}
