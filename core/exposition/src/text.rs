//! The text that Prometheus reads (exposition format 0.0.4): a head for each family, a line for each sample.
//!
//! Always true: a family is begun once, its samples stand together, and it is one of [`crate::families::FAMILIES`] or a
//! client's ([`PUSHED`]).

use crate::buckets::Counts;
use crate::families::{FAMILIES, Family, Kind};
use std::fmt::Write;

/// Labels of a sample: names and values.
pub type Labels<'a> = &'a [(&'a str, &'a str)];

/// The quantiles that the JMX exporter shows of Kafka's histograms.
const QUANTILES: [(f64, &str); 6] =
    [(0.5, "0.50"), (0.75, "0.75"), (0.95, "0.95"), (0.98, "0.98"), (0.99, "0.99"), (0.999, "0.999")];
/// How metrics of clients begin, and no other.
pub const PUSHED: &str = "barnabas_telemetry_";
/// Bounds of our own histograms of times: every power of two nanoseconds from 16 µs to 69 s, where buckets end.
const BOUNDS_NS: std::ops::RangeInclusive<u32> = 14..=36;

/// The metrics of one moment, as they are written.
#[derive(Debug, Default)]
pub struct Page {
    text: String,
    begun: Vec<&'static str>,
    newest_pushed: String,
}

impl Page {
    pub fn into_text(self) -> String {
        self.text
    }

    fn begin(&mut self, name: &str) -> &'static Family {
        let family = FAMILIES.iter().find(|family| family.name == name);
        let family = family.unwrap_or_else(|| panic!("{name} is not in the list of metrics"));
        if self.begun.last() != Some(&family.name) {
            assert!(!self.begun.contains(&family.name), "{name} is written in two places");
            self.begun.push(family.name);
            let (help, kind) = (family.help.replace('\\', "\\\\"), family.kind.word());
            self.put(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
        }
        family
    }

    fn put(&mut self, line: std::fmt::Arguments<'_>) {
        self.text.write_fmt(line).expect("invariant: a String takes everything");
    }

    fn sample(&mut self, name: &str, suffix: &str, labels: Labels<'_>, value: f64) {
        self.put(format_args!("{name}{suffix}"));
        for (place, (label, value)) in labels.iter().enumerate() {
            let before = if place == 0 { '{' } else { ',' };
            self.put(format_args!("{before}{label}=\"{}\"", Escaped(value)));
        }
        self.put(format_args!("{} {value}\n", if labels.is_empty() { "" } else { "}" }));
    }

    /// A counter or a gauge.
    pub fn value(&mut self, name: &str, labels: Labels<'_>, value: f64) {
        let family = self.begin(name);
        debug_assert!(matches!(family.kind, Kind::Counter | Kind::Gauge), "{name}");
        self.sample(name, "", labels, value);
    }

    pub fn count(&mut self, name: &str, labels: Labels<'_>, value: u64) {
        self.value(name, labels, value as f64);
    }

    /// A counter or a gauge that a client pushed: `name` begins with [`PUSHED`] and stands in no list. The samples of
    /// one name come one after the other.
    pub fn pushed(&mut self, name: &str, kind: Kind, labels: Labels<'_>, value: f64) {
        assert!(name.starts_with(PUSHED), "{name} is no client's");
        if self.newest_pushed != name {
            self.newest_pushed.clear();
            self.newest_pushed.push_str(name);
            self.put(format_args!("# TYPE {name} {}\n", kind.word()));
        }
        self.sample(name, "", labels, value);
    }

    /// Kafka's histogram, as the JMX exporter shows it: quantiles of `recent`, count and sum of `all`. Where fewer
    /// values than `requests` (of the same two) were counted, the others are 0. `unit` of a value is 1 in the text.
    pub fn summary(&mut self, name: &str, labels: Labels<'_>, summary: &Summary<'_>) {
        let family = self.begin(name);
        debug_assert!(family.kind == Kind::Summary, "{name}");
        let unit = summary.unit as f64;
        let (all, recent) = summary.requests;
        for (share, quantile) in QUANTILES {
            let labels: Vec<_> = labels.iter().copied().chain([("quantile", quantile)]).collect();
            self.sample(name, "", &labels, summary.recent.quantile_of(share, recent) as f64 / unit);
        }
        self.sample(name, "_sum", labels, summary.all.sum as f64 / unit);
        self.sample(name, "_count", labels, all.max(summary.all.count()) as f64);
    }

    /// Times in seconds. `is_fine`: with all buckets that hold something, else with bounds that stay the same.
    pub fn times(&mut self, name: &str, labels: Labels<'_>, counts: &Counts, is_fine: bool) {
        let seconds = |ns: u64| ns as f64 / 1e9;
        if is_fine {
            self.histogram(name, labels, counts, &counts.filled(), seconds);
        } else {
            let bounds: Vec<(u64, u64)> =
                BOUNDS_NS.map(|bits| (1 << bits, counts.at_most(1 << bits))).collect();
            self.histogram(name, labels, counts, &bounds, seconds);
        }
    }

    /// Numbers of things, with powers of `base` for bounds.
    pub fn sizes(&mut self, name: &str, labels: Labels<'_>, counts: &Counts, base: u64, most: u32) {
        let bounds: Vec<(u64, u64)> =
            (0..=most).map(|power| base.pow(power)).map(|bound| (bound, counts.at_most(bound))).collect();
        self.histogram(name, labels, counts, &bounds, |size| size as f64);
    }

    fn histogram(
        &mut self,
        name: &str,
        labels: Labels<'_>,
        counts: &Counts,
        bounds: &[(u64, u64)],
        shown: impl Fn(u64) -> f64,
    ) {
        let family = self.begin(name);
        debug_assert!(family.kind == Kind::Histogram, "{name}");
        let count = counts.count();
        let bounds = bounds.iter().map(|(bound, below)| (shown(*bound).to_string(), *below));
        for (bound, below) in bounds.chain([("+Inf".to_owned(), count)]) {
            let labels: Vec<_> = labels.iter().copied().chain([("le", &*bound)]).collect();
            self.sample(name, "_bucket", &labels, below as f64);
        }
        self.sample(name, "_sum", labels, shown(counts.sum));
        self.sample(name, "_count", labels, count as f64);
    }
}

/// One of Kafka's histograms.
#[derive(Debug, Clone, Copy)]
pub struct Summary<'a> {
    pub all: &'a Counts,
    pub recent: &'a Counts,
    /// How many there were of which this was counted, of all times and recently.
    pub requests: (u64, u64),
    pub unit: u64,
}

/// A label's value, as the format wants it.
struct Escaped<'a>(&'a str);

impl std::fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '\\' => f.write_str("\\\\")?,
                '"' => f.write_str("\\\"")?,
                '\n' => f.write_str("\\n")?,
                letter => f.write_char(letter)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
