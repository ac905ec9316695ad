//! The lines that wait to be written to the audit topic. Handing them in never waits: what has no room is counted.
//!
//! Bounded: [`LINES_MAX`] lines with [`BYTES_MAX`] bytes, while the topic's leader is away.
//!
//! Before: audit/writer.rs. After: routing/audit_topic.rs, which takes them out and writes them.

use barnabas_api::audited::topic::AuditTopic;
use barnabas_metrics::Meter;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::mpsc::{Receiver, Sender, channel};

const LINES_MAX: usize = 16_384;
const BYTES_MAX: usize = 16 << 20;

/// The way in. Held by the thread that makes the lines, and ends with it.
#[derive(Debug)]
pub(super) struct ToTopic {
    way: Sender<String>,
    bytes: Arc<AtomicUsize>,
    meter: Arc<Meter>,
}

/// The way out.
#[derive(Debug)]
pub struct TopicLines {
    pub topic: AuditTopic,
    way: Receiver<String>,
    bytes: Arc<AtomicUsize>,
}

pub(super) fn queue(topic: AuditTopic, meter: Arc<Meter>) -> (ToTopic, TopicLines) {
    let (sender, receiver) = channel(LINES_MAX);
    let bytes = Arc::new(AtomicUsize::new(0));
    (ToTopic { way: sender, bytes: bytes.clone(), meter }, TopicLines { topic, way: receiver, bytes })
}

impl ToTopic {
    pub fn hand_in(&self, lines: &[String]) {
        for line in lines {
            let has_room = self.bytes.load(Ordering::Relaxed) + line.len() <= BYTES_MAX;
            if has_room && self.way.try_send(line.clone()).is_ok() {
                self.bytes.fetch_add(line.len(), Ordering::Relaxed);
            } else {
                self.meter.audit.topic_dropped.one();
            }
        }
    }
}

impl TopicLines {
    /// Waits for lines and takes up to `count` of them. Returns whether there were any: without, there will be none.
    pub async fn take(&mut self, count: usize, into: &mut Vec<String>) -> bool {
        self.way.recv_many(into, count).await > 0
    }

    /// What is there, without waiting.
    pub fn take_rest(&mut self, into: &mut Vec<String>) {
        while let Ok(line) = self.way.try_recv() {
            into.push(line);
        }
    }

    /// A line that the sender adds.
    pub fn note_own(&self, line: &str) {
        self.bytes.fetch_add(line.len(), Ordering::Relaxed);
    }

    /// Lines that were taken are written, or given up: there is room for others.
    pub fn done<'a>(&self, lines: impl Iterator<Item = &'a String>) {
        self.bytes.fetch_sub(lines.map(String::len).sum(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_queue_drops_lines_and_counts_them() {
        let meter = Arc::new(Meter::default());
        let (to_topic, mut lines) = queue(AuditTopic::parse("audit").expect("a name"), meter.clone());
        to_topic.hand_in(&vec!["{}\n".to_owned(); LINES_MAX + 3]);
        assert_eq!(meter.audit.topic_dropped.get(), 3);
        let mut taken = Vec::new();
        lines.take_rest(&mut taken);
        assert_eq!(taken.len(), LINES_MAX);
        let large = vec!["x".repeat(1 << 20); 17];
        to_topic.hand_in(&large);
        assert_eq!(meter.audit.topic_dropped.get(), 3 + 2, "the lines that were taken still count");
        lines.done(taken.iter());
        to_topic.hand_in(&large[..1]);
        assert_eq!(meter.audit.topic_dropped.get(), 5);
    }
}
