//! The text that Prometheus reads: a head for each family, a line for each sample. In exposition format 0.0.4, or as
//! OpenMetrics 1.0, which differs in the heads of counters and in its last line.
//!
//! Always true: a family is begun once, its samples stand together, and it is one of [`crate::families`] or a client's
//! ([`PUSHED`]).

use crate::buckets::Counts;
use crate::families::{self, Family, Kind};
use crate::names::Names;
use std::fmt::Write;

/// Labels of a sample: names and values.
pub type Labels<'a> = &'a [(&'a str, &'a str)];

/// The quantiles that the JMX exporter shows of Kafka's histograms.
const QUANTILES: [(f64, &str); 6] =
    [(0.5, "0.50"), (0.75, "0.75"), (0.95, "0.95"), (0.98, "0.98"), (0.99, "0.99"), (0.999, "0.999")];
/// How metrics of clients begin, and no other.
pub const PUSHED: &str = "barnabas_telemetry_";
/// Bounds of our own histograms of times, in powers of two nanoseconds, where buckets end: from 16 µs to 69 s.
const BOUNDS_NS: std::ops::RangeInclusive<u32> = 14..=36;
/// Of these, every second one from 65 µs to 17 s where nothing else is asked for: a page has a histogram for each API
/// and phase, and Kafka's own figures have quantiles.
const FEW_BOUNDS_NS: std::ops::RangeInclusive<u32> = 16..=34;

/// How a page is written, and which part of it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Form {
    pub names: Names,
    /// How the names begin that are wanted, as the page shows them; empty: all.
    pub families: Vec<String>,
    /// All bounds of histograms of times.
    pub has_all_bounds: bool,
    pub is_open_metrics: bool,
}

impl Form {
    fn wants(&self, shown: &str) -> bool {
        self.families.is_empty() || self.families.iter().any(|family| shown.starts_with(family.as_str()))
    }

    /// Whether a metric may be wanted whose name begins with one of these.
    pub fn may_want(&self, beginnings: &[&str]) -> bool {
        let meets = |family: &String, beginning: &&str| {
            family.starts_with(beginning) || beginning.starts_with(family.as_str())
        };
        let any = |family| beginnings.iter().any(|beginning| meets(family, beginning));
        self.families.is_empty() || self.families.iter().any(any)
    }
}

/// The metrics of one moment, as they are written.
#[derive(Debug, Default)]
pub struct Page {
    text: String,
    form: Form,
    begun: Vec<&'static str>,
    /// The family that was begun last, what it is called, and whether it is wanted.
    current: Option<(&'static Family, String, bool)>,
    newest_pushed: String,
}

impl Page {
    pub fn new(form: Form) -> Self {
        Self { form, ..Self::default() }
    }

    pub fn form(&self) -> &Form {
        &self.form
    }

    pub fn into_text(mut self) -> String {
        if self.form.is_open_metrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }

    fn begin(&mut self, name: &str) -> &'static Family {
        if let Some((family, ..)) = &self.current
            && family.name == name
        {
            return family;
        }
        let family = families::every().find(|family| family.name == name);
        let family = family.unwrap_or_else(|| panic!("{name} is not in the list of metrics"));
        assert!(!self.begun.contains(&family.name), "{name} is written in two places");
        self.begun.push(family.name);
        let shown = self.form.names.shown(family);
        let is_wanted = self.form.wants(&shown);
        if is_wanted {
            let help = family.help.replace('\\', "\\\\");
            self.head(&shown, Some(&help), self.form.names.word_of(family.kind, &shown));
        }
        self.current = Some((family, shown, is_wanted));
        family
    }

    fn head(&mut self, shown: &str, help: Option<&str>, word: &str) {
        let (shown, word) = match (self.form.is_open_metrics, word) {
            (true, "counter") => (shown.strip_suffix("_total").unwrap_or(shown), word),
            (true, "untyped") => (shown, "unknown"),
            _ => (shown, word),
        };
        match help {
            Some(help) if self.form.is_open_metrics => {
                let help = help.replace('"', "\\\"");
                self.put(format_args!("# HELP {shown} {help}\n"));
            }
            Some(help) => self.put(format_args!("# HELP {shown} {help}\n")),
            None => {}
        }
        self.put(format_args!("# TYPE {shown} {word}\n"));
    }

    fn put(&mut self, line: std::fmt::Arguments<'_>) {
        self.text.write_fmt(line).expect("invariant: a String takes everything");
    }

    /// A line of the family that was begun last.
    fn sample(&mut self, suffix: &str, labels: Labels<'_>, value: f64) {
        let Some((family, shown, is_wanted)) = self.current.take() else { return };
        if is_wanted {
            self.line(&shown, suffix, labels, value);
        }
        self.current = Some((family, shown, is_wanted));
    }

    fn line(&mut self, name: &str, suffix: &str, labels: Labels<'_>, value: f64) {
        self.put(format_args!("{name}{suffix}"));
        for (place, (label, value)) in labels.iter().enumerate() {
            let before = if place == 0 { '{' } else { ',' };
            let label = self.form.names.label(label);
            self.put(format_args!("{before}{label}=\"{}\"", Escaped(value)));
        }
        self.put(format_args!("{} {value}\n", if labels.is_empty() { "" } else { "}" }));
    }

    /// A counter or a gauge.
    pub fn value(&mut self, name: &str, labels: Labels<'_>, value: f64) {
        let family = self.begin(name);
        debug_assert!(matches!(family.kind, Kind::Counter | Kind::Gauge), "{name}");
        self.sample("", labels, value);
    }

    pub fn count(&mut self, name: &str, labels: Labels<'_>, value: u64) {
        self.value(name, labels, value as f64);
    }

    /// A counter or a gauge that a client pushed: `name` begins with [`PUSHED`] and stands in no list. The samples of
    /// one name come one after the other.
    pub fn pushed(&mut self, name: &str, kind: Kind, labels: Labels<'_>, value: f64) {
        assert!(name.starts_with(PUSHED), "{name} is no client's");
        if !self.form.wants(name) {
            return;
        }
        if self.newest_pushed != name {
            self.newest_pushed.clear();
            self.newest_pushed.push_str(name);
            self.head(name, None, kind.word());
        }
        self.line(name, "", labels, value);
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
            self.sample("", &labels, summary.recent.quantile_of(share, recent) as f64 / unit);
        }
        self.sample("_sum", labels, summary.all.sum as f64 / unit);
        self.sample("_count", labels, all.max(summary.all.count()) as f64);
    }

    /// Times in seconds. `is_fine`: with all buckets that hold something, else with bounds that stay the same.
    pub fn times(&mut self, name: &str, labels: Labels<'_>, counts: &Counts, is_fine: bool) {
        let seconds = |ns: u64| ns as f64 / 1e9;
        if is_fine {
            self.histogram(name, labels, counts, &counts.filled(), seconds);
        } else {
            let bounds = match self.form.has_all_bounds {
                true => BOUNDS_NS.step_by(1),
                false => FEW_BOUNDS_NS.step_by(2),
            };
            let bounds: Vec<(u64, u64)> = bounds.map(|bits| (1 << bits, counts.at_most(1 << bits))).collect();
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
            self.sample("_bucket", &labels, below as f64);
        }
        self.sample("_sum", labels, shown(counts.sum));
        self.sample("_count", labels, count as f64);
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
