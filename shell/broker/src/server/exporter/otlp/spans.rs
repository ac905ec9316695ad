//! Pushes sampled requests as spans (`otlp.traces.sample.ratio`), each second, on a thread of its own.
//!
//! A request is a span of its API's name, and each phase of its latency (shell/metrics/src/requests.rs) a child: the
//! children follow each other without gap. Trace and span ids are random; the span is the root of its trace, since
//! Kafka's requests carry no trace context. What records' headers carry is not looked at.
//!
//! Bounded: the queue (shell/metrics/src/spans.rs) and [`PUSH_MAX`] requests in a push. A push that fails is not
//! repeated: its requests are counted as failed. While pushes fail, the pause doubles and the queue drops.

use super::{pause, resource, send, waits};
use crate::node::Node;
use barnabas_config::otlp::{OtlpSettings, TraceSettings};
use barnabas_metrics::Stamp;
use barnabas_metrics::requests::{Phase, spans};
use barnabas_metrics::spans::{Sampled, Samples};
use barnabas_telemetry::otlp::{Id, Span, SpanKind, export_spans};
use barnabas_tls::ClientTls;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

const INTERVAL: Duration = Duration::from_secs(1);
/// Requests in one push: some 300 KB, a few tens when compressed.
const PUSH_MAX: usize = 512;
const NS_PER_MS: i64 = 1_000_000;

/// Starts the thread, where requests are sampled.
pub(super) fn start(node: &Arc<Node>, settings: &OtlpSettings, stopped: Receiver<()>) -> io::Result<()> {
    let (Some(traces), Some(samples)) = (settings.traces.clone(), node.workers.metering.samples()) else {
        return Ok(());
    };
    let (node, samples) = (node.clone(), samples.clone());
    let mut pushes = Pushes { node, settings: settings.clone(), traces, tls: None, failures: 0 };
    std::thread::Builder::new().name("otlp-spans".to_owned()).spawn(move || {
        if let Err(error) = rustix::process::setpriority_process(None, 10) {
            tracing::debug!(%error, "the thread that pushes spans keeps its priority");
        }
        while waits(&stopped, pause(INTERVAL, pushes.failures)) {
            pushes.push_all(&samples);
        }
    })?;
    Ok(())
}

struct Pushes {
    node: Arc<Node>,
    settings: OtlpSettings,
    traces: TraceSettings,
    tls: Option<ClientTls>,
    /// In a row.
    failures: u32,
}

impl Pushes {
    fn push_all(&mut self, samples: &Samples) {
        let sampled = samples.drain();
        let meter = self.node.workers.meter.clone();
        for part in sampled.chunks(PUSH_MAX) {
            match self.push(part) {
                Ok(rejected) => {
                    let requests = part.len() as u64;
                    // A receiver counts spans; a request is one and its phases.
                    let failed = rejected.min(requests);
                    meter.otlp.spans_taken.add(requests - failed);
                    meter.otlp.spans_failed.add(failed);
                    self.failures = 0;
                }
                Err(why) => {
                    if self.failures == 0 {
                        let url = &self.traces.url;
                        let endpoint = format!("{}:{}{}", url.host, url.port, url.path);
                        tracing::warn!(
                            endpoint,
                            "spans cannot be pushed to otlp.endpoint: {why}. The node goes on trying; sampled requests are \
                             missing meanwhile"
                        );
                    }
                    self.failures = self.failures.saturating_add(1);
                    meter.otlp.spans_failed.add(part.len() as u64);
                }
            }
        }
    }

    /// How many spans the receiver rejected.
    fn push(&mut self, sampled: &[Sampled]) -> Result<u64, String> {
        let mut ids = vec![0; sampled.len() * IDS_BYTES];
        getrandom::fill(&mut ids).map_err(|error| format!("no random ids: {error}"))?;
        // Wall time of the process's beginning.
        let begun_ns = self.node.clock.wall().0 * NS_PER_MS - Stamp::now().0 as i64;
        let begun_ns = u64::try_from(begun_ns).unwrap_or(0);
        let spans: Vec<Span<'_>> = sampled
            .iter()
            .zip(ids.chunks_exact(IDS_BYTES))
            .flat_map(|(one, ids)| request_spans(one, ids, begun_ns))
            .collect();
        let request = resource(&self.node, |resource, version| export_spans(&spans, resource, version));
        send(&mut self.tls, &self.settings, &self.traces.url, &request)
    }
}

/// Random bytes of a request: its trace's, its own, and one for each phase.
const IDS_BYTES: usize = 16 + 8 * (1 + Phase::ALL.len());

/// The request, and its phases.
fn request_spans<'a>(sampled: &'a Sampled, ids: &[u8], begun_ns: u64) -> Vec<Span<'a>> {
    let (track, asker) = (&sampled.track, &sampled.asker);
    let (trace, ids) = ids.split_at(16);
    let trace = trace.try_into().expect("16 bytes");
    let mut ids = ids.as_chunks::<8>().0.iter().copied();
    let mut id = || -> Id { ids.next().expect("one for each phase") };
    let (root, start_ns) = (id(), begun_ns + track.read.0);
    let mut texts = vec![
        ("messaging.system", "kafka"),
        ("kafka.api.name", track.api.name()),
        ("kafka.listener", &*asker.listener),
    ];
    texts.extend(asker.client_id.as_deref().map(|client| ("messaging.client.id", client)));
    let mut numbers = vec![
        ("kafka.api.version", i64::from(track.version)),
        ("kafka.correlation_id", i64::from(track.correlation_id)),
        ("kafka.request.bytes", i64::from(track.bytes)),
        ("kafka.response.bytes", i64::try_from(track.bytes_out).unwrap_or(i64::MAX)),
    ];
    numbers.extend(track.error.map(|code| ("kafka.error_code", i64::from(code))));
    let mut all = vec![Span {
        trace,
        id: root,
        parent: None,
        name: track.api.name(),
        kind: SpanKind::Server,
        start_ns,
        end_ns: begun_ns + sampled.written.0.max(track.read.0),
        texts,
        numbers,
        is_error: track.error.is_some_and(|code| code != 0),
    }];
    let mut at = start_ns;
    let took = spans(track, sampled.written);
    for phase in Phase::ALL.into_iter().filter(|phase| took[*phase as usize] > 0) {
        let end_ns = at + took[phase as usize];
        all.push(Span {
            trace,
            id: id(),
            parent: Some(root),
            name: phase.name(),
            kind: SpanKind::Internal,
            start_ns: at,
            end_ns,
            texts: Vec::new(),
            numbers: Vec::new(),
            is_error: false,
        });
        at = end_ns;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_metrics::spans::Asker;
    use barnabas_metrics::{AppendTimes, Passed, RoundTimes, Track};
    use barnabas_wire::ApiKey;

    #[test]
    fn phases_are_children_that_follow_each_other() {
        let round = RoundTimes { begun: Stamp(2500), durable: Stamp(4500) };
        let passed = Passed::Appended(AppendTimes { taken: Stamp(1500), round, decided: Stamp(4500) });
        let track = Track {
            api: ApiKey::Produce,
            version: 13,
            correlation_id: 7,
            error: Some(19),
            is_follower: false,
            client: 0,
            bytes: 100,
            bytes_out: 50,
            read: Stamp(1000),
            started: Stamp(1100),
            ready: Stamp(5000),
            passed,
        };
        let asker = Asker { client_id: Some("shop".into()), listener: "PLAINTEXT".into() };
        let sampled = Sampled { track, written: Stamp(6000), asker };
        let ids: Vec<u8> = (0..IDS_BYTES as u8).collect();
        let all = request_spans(&sampled, &ids, 1_000_000);
        let root = &all[0];
        assert_eq!(
            (root.name, root.start_ns, root.end_ns, root.is_error),
            ("Produce", 1_001_000, 1_006_000, true)
        );
        assert!(
            root.texts.contains(&("messaging.client.id", "shop"))
                && root.numbers.contains(&("kafka.error_code", 19))
        );
        let children: Vec<_> = all[1..].iter().map(|span| (span.name, span.start_ns, span.end_ns)).collect();
        let wanted = [
            ("decide", 1_001_000, 1_001_100),
            ("queue", 1_001_100, 1_001_500),
            ("journal_wait", 1_001_500, 1_002_500),
            ("sync", 1_002_500, 1_004_500),
            ("answer", 1_004_500, 1_005_000),
            ("write", 1_005_000, 1_006_000),
        ];
        assert_eq!(children, wanted);
        assert!(all[1..].iter().all(|span| span.parent == Some(root.id) && span.trace == root.trace));
        let mut seen: Vec<Id> = all.iter().map(|span| span.id).collect();
        seen.dedup();
        assert_eq!(seen.len(), all.len());
    }
}
