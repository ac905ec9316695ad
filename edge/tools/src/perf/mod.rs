//! The tools that measure: Kafka's load tools with what the three of them share, `doctor`, `hotspots` and `top`.
//!
//! | file | answers |
//! |---|---|
//! | `producer` | `producer-perf-test`: flags and their rules |
//! | `load` | one producer's thread: what is sent when |
//! | `report` | what was sent and how long it took, in the lines of Kafka's tool |
//! | `consumer` | `consumer-perf-test` |
//! | `share_consumer` | `share-consumer-perf-test` |
//! | `e2e` | `e2e-latency` |
//! | `doctor` | `doctor` |
//! | `hotspots` | `hotspots` |
//! | `top` | `top` |
//! | `java` | how Java writes numbers and dates |
//! | `histogram` | latencies in full: JSON and HDR files |

pub mod consumer;
pub mod doctor;
pub mod e2e;
mod histogram;
pub mod hotspots;
pub mod java;
mod load;
pub mod producer;
mod report;
pub mod share_consumer;
pub mod top;

use barnabas_client::Counters;
use std::time::Duration;

/// CPU that this process has used, in user space and in the kernel.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// `--print-metrics`: what this client counts, under the names that Kafka's client has for it.
///
/// # Source
/// Kafka `ToolsUtils.printMetrics`: sorted, and as wide as the longest name.
fn metric_lines(mut metrics: Vec<(String, f64)>) -> Vec<String> {
    metrics.sort_by(|one, other| one.0.cmp(&other.0));
    let width = metrics.iter().map(|metric| metric.0.len()).max().unwrap_or(0);
    let mut lines = vec![String::new(), format!("{:<width$}   Value", "Metric Name")];
    let row = |(name, value): &(String, f64)| format!("{name:<width$} : {}", java::decimal(*value, 3));
    lines.extend(metrics.iter().map(row));
    lines
}

fn producer_metrics(counters: &Counters, client_id: &str, elapsed: Duration) -> Vec<(String, f64)> {
    let seconds = elapsed.as_secs_f64().max(1e-9);
    let per = |sum: u64, count: u64| if count == 0 { f64::NAN } else { sum as f64 / count as f64 };
    let values = [
        ("batch-size-avg", per(counters.bytes, counters.batches)),
        ("buffer-exhausted-total", counters.exhausted as f64),
        ("compression-rate-avg", per(counters.bytes, counters.bytes_before_compression)),
        ("connection-close-total", counters.lost as f64),
        ("outgoing-byte-rate", counters.bytes as f64 / seconds),
        ("outgoing-byte-total", counters.bytes as f64),
        ("record-error-total", counters.errors as f64),
        ("record-retry-total", counters.retries as f64),
        ("record-send-rate", counters.records as f64 / seconds),
        ("record-send-total", counters.records as f64),
        ("records-per-request-avg", per(counters.records, counters.requests)),
        ("request-latency-avg", per(counters.request_ns, counters.requests) / 1e6),
        ("request-latency-max", counters.request_ns_max as f64 / 1e6),
        ("request-total", counters.requests as f64),
    ];
    let named =
        |(name, value): (&str, f64)| (format!("producer-metrics:{name}:{{client-id={client_id}}}"), value);
    values.into_iter().map(named).collect()
}
