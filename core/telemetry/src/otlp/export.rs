//! A node's metrics page as the body of an OTLP export request (opentelemetry.proto.collector.metrics.v1).
//!
//! ```text
//! ExportMetricsServiceRequest  1 resource_metrics*
//! ResourceMetrics   1 resource { 1 attributes* }   2 scope_metrics*
//! ScopeMetrics      1 scope { 1 name  2 version }   2 metrics*
//! Metric            1 name  2 description  3 unit   5 gauge | 7 sum | 9 histogram | 11 summary
//! Gauge             1 data_points*
//! Sum               1 data_points*  2 aggregation_temporality  3 is_monotonic
//! Histogram         1 data_points*  2 aggregation_temporality
//! Summary           1 data_points*
//! NumberDataPoint     2 start  3 time  4 as_double  7 attributes*
//! HistogramDataPoint  2 start  3 time  4 count  5 sum  6 bucket_counts*  7 explicit_bounds*  9 attributes*
//! SummaryDataPoint    2 start  3 time  4 count  5 sum  6 quantile_values* { 1 quantile  2 value }  7 attributes*
//! ```
//!
//! The page is read, not the counters behind it: what a receiver gets is what `GET /metrics` shows, name by name.
//! Counts are cumulative since the node's start, so that a push that was lost loses nothing.

use super::protobuf::{Field, Malformed, fields};
use super::write::{attribute, double, fixed, message, origin, varint_field};

const CUMULATIVE: u64 = 2;
const NS_PER_MS: u64 = 1_000_000;

/// Who pushes, and when.
#[derive(Debug, Clone, Copy)]
pub struct Export<'a> {
    /// Attributes of the resource, such as `service.name`.
    pub resource: &'a [(&'a str, &'a str)],
    pub version: &'a str,
    /// In milliseconds since 1970: the node's start, and now.
    pub started_ms: u64,
    pub now_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Counter,
    Gauge,
    Histogram,
    Summary,
}

/// A family of the page, with its points.
struct Family<'a> {
    name: &'a str,
    help: &'a str,
    kind: Kind,
    points: Vec<Point<'a>>,
}

/// A sample, or the samples of one histogram or summary.
#[derive(Default)]
struct Point<'a> {
    labels: Vec<(&'a str, String)>,
    value: f64,
    count: f64,
    sum: f64,
    /// A histogram's bounds with how many were not above each, or a summary's quantiles with their values.
    parts: Vec<(f64, f64)>,
}

/// The request for a page in Prometheus' text format. Lines that are none are left out, and families without a type.
pub fn export(page: &str, export: &Export<'_>) -> Vec<u8> {
    let (resource, scope) = origin(export.resource, export.version);
    let mut scoped = Vec::new();
    message(&mut scoped, 1, &scope);
    for family in families(page) {
        message(&mut scoped, 2, &metric(&family, export));
    }
    let mut metrics = Vec::new();
    message(&mut metrics, 1, &resource);
    message(&mut metrics, 2, &scoped);
    let mut request = Vec::new();
    message(&mut request, 1, &metrics);
    request
}

/// How many points a receiver says it rejected: `ExportMetricsServiceResponse 1 partial_success { 1 rejected }`.
///
/// # Errors
/// The bytes are no such message.
pub fn rejected(answer: &[u8]) -> Result<u64, Malformed> {
    let mut rejected = 0;
    for field in fields(answer) {
        if let (1, Field::Bytes(partial)) = field? {
            for field in fields(partial) {
                if let (1, Field::Varint(count)) = field? {
                    rejected = count;
                }
            }
        }
    }
    Ok(rejected)
}

fn families(page: &str) -> Vec<Family<'_>> {
    let mut families: Vec<Family<'_>> = Vec::new();
    let mut help = "";
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ').map_or("", |(_, help)| help);
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let Some((name, kind)) = rest.split_once(' ') else { continue };
            let kind = match kind {
                "counter" => Kind::Counter,
                "gauge" => Kind::Gauge,
                "histogram" => Kind::Histogram,
                "summary" => Kind::Summary,
                _ => continue,
            };
            families.push(Family { name, help, kind, points: Vec::new() });
            help = "";
        } else if let (Some(family), Some(sample)) = (families.last_mut(), sample(line)) {
            take(family, sample);
        }
    }
    families.retain(|family| !family.points.is_empty());
    families
}

/// A line: `name{label="value",…} number`.
struct Sample<'a> {
    name: &'a str,
    labels: Vec<(&'a str, String)>,
    value: f64,
}

fn sample(line: &str) -> Option<Sample<'_>> {
    let (name, mut rest) = line.split_at(line.find(['{', ' '])?);
    let mut labels = Vec::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        while !rest.starts_with('}') {
            let (label, after) = rest.split_once("=\"")?;
            let (value, after) = quoted(after)?;
            labels.push((label, value));
            rest = after.strip_prefix(',').unwrap_or(after);
        }
        rest = &rest[1..];
    }
    Some(Sample { name, labels, value: rest.trim().parse().ok()? })
}

/// A value up to its closing quote, and what comes after that.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(match letters.next()?.1 {
                'n' => '\n',
                letter => letter,
            }),
            letter => value.push(letter),
        }
    }
    None
}

fn take<'a>(family: &mut Family<'a>, mut sample: Sample<'a>) {
    let part = match family.kind {
        Kind::Histogram => "le",
        Kind::Summary => "quantile",
        Kind::Counter | Kind::Gauge => {
            let (labels, value) = (sample.labels, sample.value);
            return family.points.push(Point { labels, value, ..Point::default() });
        }
    };
    let at = sample.labels.iter().position(|(label, _)| *label == part);
    let bound = at.map(|at| sample.labels.remove(at).1);
    // The samples of a point stand together, but a summary's sum and count may come after another point's.
    let known = family.points.iter().rposition(|point| point.labels == sample.labels);
    let at = known.unwrap_or(family.points.len());
    if known.is_none() {
        family.points.push(Point { labels: sample.labels, ..Point::default() });
    }
    let point = &mut family.points[at];
    match (bound.and_then(|bound| bound.parse().ok()), sample.name.strip_prefix(family.name)) {
        (Some(bound), _) => point.parts.push((bound, sample.value)),
        (None, Some("_sum")) => point.sum = sample.value,
        (None, Some("_count")) => point.count = sample.value,
        _ => {}
    }
}

fn metric(family: &Family<'_>, export: &Export<'_>) -> Vec<u8> {
    let mut metric = Vec::new();
    message(&mut metric, 1, family.name.as_bytes());
    message(&mut metric, 2, family.help.as_bytes());
    message(&mut metric, 3, unit(family.name).as_bytes());
    let mut data = Vec::new();
    for each in &family.points {
        message(&mut data, 1, &point(family.kind, each, export));
    }
    let number = match family.kind {
        Kind::Gauge => 5,
        Kind::Counter => {
            varint_field(&mut data, 2, CUMULATIVE);
            varint_field(&mut data, 3, 1);
            7
        }
        Kind::Histogram => {
            varint_field(&mut data, 2, CUMULATIVE);
            9
        }
        Kind::Summary => 11,
    };
    message(&mut metric, number, &data);
    metric
}

/// UCUM's word, where the name says it.
fn unit(name: &str) -> &'static str {
    const UNITS: [(&str, &str); 5] =
        [("_seconds", "s"), ("_bytes", "By"), ("bytesin", "By"), ("bytesout", "By"), ("timems", "ms")];
    let stem = name.strip_suffix("_total").unwrap_or(name);
    UNITS.iter().find(|(ending, _)| stem.ends_with(ending)).map_or("", |(_, unit)| unit)
}

fn point(kind: Kind, point: &Point<'_>, export: &Export<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if kind != Kind::Gauge {
        fixed(&mut bytes, 2, export.started_ms * NS_PER_MS);
    }
    fixed(&mut bytes, 3, export.now_ms * NS_PER_MS);
    let mut attributes = 7;
    match kind {
        Kind::Counter | Kind::Gauge => double(&mut bytes, 4, point.value),
        Kind::Histogram => {
            attributes = 9;
            fixed(&mut bytes, 4, point.count as u64);
            double(&mut bytes, 5, point.sum);
            buckets(&mut bytes, point);
        }
        Kind::Summary => {
            fixed(&mut bytes, 4, point.count as u64);
            double(&mut bytes, 5, point.sum);
            for (quantile, value) in &point.parts {
                let mut part = Vec::new();
                double(&mut part, 1, *quantile);
                double(&mut part, 2, *value);
                message(&mut bytes, 6, &part);
            }
        }
    }
    for (label, value) in &point.labels {
        message(&mut bytes, attributes, &attribute(label, value));
    }
    bytes
}

/// Prometheus counts up to each bound, OTLP between two. The last bucket has no bound.
fn buckets(bytes: &mut Vec<u8>, point: &Point<'_>) {
    let (mut counts, mut bounds, mut below) = (Vec::new(), Vec::new(), 0.0_f64);
    for (bound, count) in &point.parts {
        counts.extend_from_slice(&((count - below).max(0.0) as u64).to_le_bytes());
        if bound.is_finite() {
            bounds.extend_from_slice(&bound.to_le_bytes());
        }
        below = *count;
    }
    message(bytes, 6, &counts);
    message(bytes, 7, &bounds);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::otlp::{Attribute, Item, Temporality, Value, read};

    const PAGE: &str = "# HELP a_total what it is\n# TYPE a_total counter\na_total{x=\"q\\\"\\n\"} 3\na_total 4\n\
        # TYPE b_bytes gauge\nb_bytes 2.5\n\
        # TYPE h_seconds histogram\nh_seconds_bucket{d=\"1\",le=\"0.5\"} 2\nh_seconds_bucket{d=\"1\",le=\"+Inf\"} 5\n\
        h_seconds_sum{d=\"1\"} 9\nh_seconds_count{d=\"1\"} 5\n\
        # TYPE s summary\ns{quantile=\"0.5\"} 7\ns{quantile=\"0.99\"} 8\ns_sum 20\ns_count 4\n\
        # TYPE empty gauge\nbroken{x=\"1 2\n";

    fn request() -> Vec<u8> {
        let resource = [("service.name", "barnabas"), ("service.instance.id", "1")];
        export(PAGE, &Export { resource: &resource, version: "1", started_ms: 5, now_ms: 7 })
    }

    /// The fields of a message by number.
    fn parts(bytes: &[u8], wanted: u32) -> Vec<Field<'_>> {
        let all = fields(bytes).map(|field| field.expect("protobuf"));
        all.filter(|(number, _)| *number == wanted).map(|(_, field)| field).collect()
    }

    fn inner(bytes: &[u8], number: u32) -> Vec<&[u8]> {
        let only = |field| match field {
            Field::Bytes(bytes) => bytes,
            other => panic!("{other:?}"),
        };
        parts(bytes, number).into_iter().map(only).collect()
    }

    #[test]
    fn counters_and_gauges_are_read_back_by_the_decoder_of_pushes() {
        let request = request();
        let (mut seen, mut others) = (Vec::new(), 0);
        read(&request, &mut |item| match item {
            Item::Resource(attributes) => {
                assert_eq!(attributes[0], ("service.name", Attribute::Text("barnabas")));
            }
            Item::Number(number) => {
                let labels: Vec<String> =
                    number.attributes.iter().map(|(k, v)| format!("{k}={v:?}")).collect();
                seen.push((
                    number.name.to_owned(),
                    number.is_monotonic,
                    number.temporality,
                    labels,
                    number.value,
                ));
            }
            Item::OtherKind => others += 1,
        })
        .expect("it is OTLP");
        let label = vec!["x=Text(\"q\\\"\\n\")".to_owned()];
        let (sum, none) = (Temporality::Cumulative, Temporality::Unspecified);
        assert_eq!(
            seen,
            [
                ("a_total".to_owned(), true, sum, label, Value::Double(3.0)),
                ("a_total".to_owned(), true, sum, Vec::new(), Value::Double(4.0)),
                ("b_bytes".to_owned(), false, none, Vec::new(), Value::Double(2.5)),
            ]
        );
        assert_eq!(others, 2, "the histogram and the summary");
    }

    #[test]
    fn histogram_has_counts_between_its_bounds() {
        let request = request();
        let scoped = inner(inner(&request, 1)[0], 2)[0].to_vec();
        let metrics = inner(&scoped, 2);
        assert_eq!(metrics.len(), 4, "a family without samples is left out");
        assert_eq!((inner(metrics[0], 2)[0], inner(metrics[1], 3)[0]), (&b"what it is"[..], &b"By"[..]));
        let histogram = inner(inner(metrics[2], 9)[0], 1)[0];
        assert_eq!(inner(histogram, 6)[0], [2_u64.to_le_bytes(), 3_u64.to_le_bytes()].concat());
        assert_eq!(inner(histogram, 7)[0], 0.5_f64.to_le_bytes());
        assert_eq!(parts(histogram, 4), [Field::Fixed64(5)]);
        assert_eq!(parts(histogram, 5), [Field::Fixed64(9.0_f64.to_bits())]);
        assert_eq!(parts(histogram, 2), [Field::Fixed64(5_000_000)]);
        assert_eq!(parts(histogram, 3), [Field::Fixed64(7_000_000)]);
        assert_eq!(inner(histogram, 9).len(), 1);
        let summary = inner(inner(metrics[3], 11)[0], 1)[0];
        let quantiles = inner(summary, 6);
        assert_eq!(parts(quantiles[1], 2), [Field::Fixed64(8.0_f64.to_bits())]);
        assert_eq!(parts(summary, 4), [Field::Fixed64(4)]);
    }

    #[test]
    fn rejected_points_are_read_from_the_answer() {
        assert_eq!(rejected(&[]), Ok(0));
        assert_eq!(rejected(&[0x0a, 0x03, 0x08, 0xac, 0x02]), Ok(300));
        assert_eq!(rejected(&[0x0a, 0x03, 0x08]), Err(Malformed::Short));
    }
}
