//! What a connector counts, and the page of it in Prometheus' format.

use std::fmt::Write;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// One connector's counters. Written by its task, read by the page.
#[derive(Debug, Default)]
pub struct Counters {
    pub name: String,
    pub kind: &'static str,
    /// Messages that are done: committed in Kafka, or accepted by the peer.
    pub messages: AtomicU64,
    pub bytes: AtomicU64,
    /// Units of work (source) or commits of offsets (sink).
    pub commits: AtomicU64,
    /// AMQP frames, or calls of MQ, that were sent.
    pub requests: AtomicU64,
    pub dead_letters: AtomicU64,
    pub rejected: AtomicU64,
    /// Messages that came again after a crash and were skipped.
    pub skipped: AtomicU64,
    pub without_id: AtomicU64,
    pub restarts: AtomicU64,
    /// Messages taken and not yet done.
    pub uncommitted: AtomicU64,
    /// Messages that wait in the queue, as the peer says; −1: it does not say.
    pub depth: AtomicI64,
    /// Of the oldest message of the last unit, when it was done, since its sender dated it; −1: it was not dated.
    pub oldest_ms: AtomicI64,
    state: Mutex<String>,
}

/// Adds to a counter.
pub fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

impl Counters {
    pub fn new(name: &str, kind: &'static str) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            depth: AtomicI64::new(-1),
            oldest_ms: AtomicI64::new(-1),
            state: Mutex::new("starting".to_owned()),
            ..Self::default()
        }
    }

    /// `running`, or why it does not run.
    pub fn set_state(&self, state: &str) {
        state.clone_into(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn rows(&self) -> [(&'static str, &'static str, i64); 12] {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as i64;
        [
            ("messages_total", "Messages that are done", count(&self.messages)),
            ("bytes_total", "Bytes of their bodies", count(&self.bytes)),
            ("commits_total", "Units of work, or commits of offsets", count(&self.commits)),
            ("requests_total", "AMQP frames, or calls of MQ, that were sent", count(&self.requests)),
            ("dead_letters_total", "Messages sent to the dead-letter topic", count(&self.dead_letters)),
            ("rejected_total", "Messages rejected at the peer", count(&self.rejected)),
            ("skipped_total", "Messages that came again and were skipped", count(&self.skipped)),
            ("without_id_total", "Messages without a message-id", count(&self.without_id)),
            ("restarts_total", "Connections that ended", count(&self.restarts)),
            ("uncommitted", "Messages taken and not yet done", count(&self.uncommitted)),
            ("depth", "Messages in the queue, -1 unknown", self.depth.load(Ordering::Relaxed)),
            (
                "oldest_ms",
                "Age of the last unit's oldest message, -1 unknown",
                self.oldest_ms.load(Ordering::Relaxed),
            ),
        ]
    }
}

/// The page of all connectors.
pub fn page(all: &[std::sync::Arc<Counters>]) -> String {
    let mut page = String::new();
    let Some(first) = all.first() else { return page };
    for (at, (metric, help, _)) in first.rows().iter().enumerate() {
        let kind = if metric.ends_with("_total") { "counter" } else { "gauge" };
        // Writing to a String cannot fail.
        let _ =
            writeln!(page, "# HELP barnabas_bridge_{metric} {help}\n# TYPE barnabas_bridge_{metric} {kind}");
        for counters in all {
            let (name, value) = (escaped(&counters.name), counters.rows()[at].2);
            let _ = writeln!(
                page,
                "barnabas_bridge_{metric}{{connector=\"{name}\",kind=\"{}\"}} {value}",
                counters.kind
            );
        }
    }
    let _ = writeln!(
        page,
        "# HELP barnabas_bridge_state What each connector does\n# TYPE barnabas_bridge_state gauge"
    );
    for counters in all {
        let state = counters.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (name, state) = (escaped(&counters.name), escaped(&state));
        let _ = writeln!(
            page,
            "barnabas_bridge_state{{connector=\"{name}\",kind=\"{}\",state=\"{state}\"}} 1",
            counters.kind
        );
    }
    page
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
