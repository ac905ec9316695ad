//! Latencies in full: percentiles for the report, and the distribution as a file that HDR plotters read.

use crate::ToolError;
use hdrhistogram::Histogram;
use std::fmt::Write as _;

/// Three significant digits over the whole range: a value of seconds is exact to the millisecond,
/// one of milliseconds to the microsecond.
const DIGITS: u8 = 3;
/// An hour.
const US_MAX: u64 = 3_600_000_000;

/// Latencies in µs.
#[derive(Debug)]
pub struct Latencies {
    histogram: Histogram<u64>,
    sum_us: u64,
}

impl Latencies {
    pub fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, US_MAX, DIGITS);
        Self { histogram: histogram.expect("constant bounds that the crate documents as good"), sum_us: 0 }
    }

    #[inline]
    pub fn record(&mut self, us: u64, count: u64) {
        self.histogram.saturating_record_n(us, count);
        self.sum_us += us * count;
    }

    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    pub fn average_ms(&self) -> f64 {
        self.sum_us as f64 / self.count() as f64 / 1e3
    }

    pub fn max_ms(&self) -> f64 {
        self.histogram.max() as f64 / 1e3
    }

    pub fn min_ms(&self) -> f64 {
        if self.count() == 0 { 0.0 } else { self.histogram.min() as f64 / 1e3 }
    }

    /// `quantile` between 0 and 1.
    pub fn ms(&self, quantile: f64) -> f64 {
        self.histogram.value_at_quantile(quantile) as f64 / 1e3
    }

    /// The percentile distribution in milliseconds, in the text form of HdrHistogram's tools.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &str) -> Result<(), ToolError> {
        let mut text = String::from("       Value     Percentile TotalCount 1/(1-Percentile)\n\n");
        let mut seen = 0;
        for step in self.histogram.iter_quantiles(5) {
            seen += step.count_since_last_iteration();
            let (value, quantile) = (step.value_iterated_to() as f64 / 1e3, step.quantile_iterated_to());
            let odds =
                if quantile < 1.0 { format!("{:14.2}", 1.0 / (1.0 - quantile)) } else { String::new() };
            // Writing into a String cannot fail.
            let _ = writeln!(text, "{value:12.3} {quantile:2.12} {seen:10} {odds}");
        }
        let (mean, deviation) = (self.histogram.mean() / 1e3, self.histogram.stdev() / 1e3);
        let _ = writeln!(text, "#[Mean    = {mean:12.3}, StdDeviation   = {deviation:12.3}]");
        let _ = writeln!(text, "#[Max     = {:12.3}, Total count    = {:12}]", self.max_ms(), self.count());
        std::fs::write(path, text)
            .map_err(|error| ToolError::Usage(format!("{path} cannot be written: {error}")))
    }
}
