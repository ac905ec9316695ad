//! A metrics page, read back: samples by name and labels. Lines that are none are passed over: the node may be newer.

use std::collections::BTreeMap;

/// One page of metrics.
#[derive(Debug, Clone, Default)]
pub struct Scrape {
    /// By metric, then in the order of the page.
    samples: BTreeMap<String, Vec<Sample>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    pub labels: Vec<(String, String)>,
    pub value: f64,
}

impl Sample {
    pub fn label(&self, name: &str) -> &str {
        self.labels.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    fn has(&self, labels: &[(&str, &str)]) -> bool {
        labels.iter().all(|(name, value)| self.label(name) == *value)
    }
}

impl Scrape {
    pub fn parse(page: &str) -> Self {
        let mut scrape = Self::default();
        for line in page.lines().filter(|line| !line.starts_with('#')) {
            if let Some((name, sample)) = sample(line) {
                scrape.samples.entry(name).or_default().push(sample);
            }
        }
        scrape
    }

    pub fn samples(&self, name: &str) -> &[Sample] {
        self.samples.get(name).map_or(&[], |samples| samples)
    }

    /// The sum of the samples with these labels.
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.samples(name).iter().filter(|sample| sample.has(labels)).map(|sample| sample.value).sum()
    }

    /// Whether there is a sample with these labels.
    pub fn has(&self, name: &str, labels: &[(&str, &str)]) -> bool {
        self.samples(name).iter().any(|sample| sample.has(labels))
    }

    /// The values of a label, each once, in the page's order.
    pub fn values(&self, name: &str, label: &str) -> Vec<String> {
        let mut values: Vec<String> = Vec::new();
        for sample in self.samples(name) {
            let value = sample.label(label);
            if !values.iter().any(|known| known == value) {
                values.push(value.to_owned());
            }
        }
        values
    }

    /// A histogram's buckets: each bound with how many were not above it.
    pub fn buckets(&self, name: &str, labels: &[(&str, &str)]) -> Vec<(f64, f64)> {
        let samples = self.samples(&format!("{name}_bucket")).iter().filter(|sample| sample.has(labels));
        let mut buckets: Vec<(f64, f64)> =
            samples.filter_map(|sample| Some((sample.label("le").parse().ok()?, sample.value))).collect();
        buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
        buckets
    }
}

/// `name{label="value",…} number`
fn sample(line: &str) -> Option<(String, Sample)> {
    let end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = Vec::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        while !rest.starts_with('}') {
            let (label, after) = rest.split_once("=\"")?;
            let (value, after) = quoted(after)?;
            labels.push((label.to_owned(), value));
            rest = after.strip_prefix(',').unwrap_or(after);
        }
        rest = &rest[1..];
    }
    let value = rest.trim().parse().ok()?;
    Some((name.to_owned(), Sample { labels, value }))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_what_is_none_is_passed_over() {
        let page = "# HELP a b\n# TYPE a counter\na 1\na{x=\"1\",y=\"q\\\"\\\\\\n,}\"} 2.5e3\nb{x=\"2\"} +Inf\n\
                    broken\nbroken{ 1\nbroken{x=\"1} 2\nbroken{x=\"1\"} z\n";
        let scrape = Scrape::parse(page);
        assert_eq!(scrape.samples("a").len(), 2);
        assert_eq!(scrape.samples("a")[1].label("y"), "q\"\\\n,}");
        assert_eq!((scrape.sum("a", &[]), scrape.sum("a", &[("x", "1")])), (2501.0, 2500.0));
        assert_eq!(scrape.samples("b")[0].value, f64::INFINITY);
        assert!(scrape.samples("broken").is_empty());
    }

    #[test]
    fn buckets_are_sorted_by_their_bounds() {
        let scrape =
            Scrape::parse("h_bucket{le=\"+Inf\"} 3\nh_bucket{le=\"0.5\"} 2\nh_bucket{le=\"0.25\"} 1\n");
        assert_eq!(scrape.buckets("h", &[]), [(0.25, 1.0), (0.5, 2.0), (f64::INFINITY, 3.0)]);
    }
}
