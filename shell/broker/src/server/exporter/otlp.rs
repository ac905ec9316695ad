//! Pushes the node's metrics to `otlp.endpoint` each `otlp.interval.ms`, on a thread of its own: OTLP over HTTP,
//! protobuf, gzip. What is pushed is the metrics page (core/telemetry's `otlp::export`).
//!
//! Nothing waits for it and nothing is queued: one page is in flight at most, and a push that fails is not repeated,
//! because the next one has all counts since the start. While pushes fail, the pause doubles.
//!
//! Spans of requests: otlp/spans.rs. Left out: gRPC. Retry-After is not read; the pause grows without it.

mod spans;

use crate::node::Node;
use barnabas_config::otlp::OtlpSettings;
use barnabas_metrics::Detail;
use barnabas_oauth::http::{self, Limits, Method};
use barnabas_sasl::oauth::settings::HttpUrl;
use barnabas_telemetry::otlp::{Export, export, rejected};
use barnabas_tls::ClientTls;
use barnabas_wire::records::{Codec, Compression};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

const LIMITS: Limits =
    Limits { connect: Duration::from_secs(5), read: Duration::from_secs(10), body_bytes_max: 64 << 10 };
/// The pause while pushes fail: so many intervals, and no more than this.
const PAUSE_INTERVALS: u32 = 10;
const PAUSE_MAX: Duration = Duration::from_secs(300);

/// Starts the thread, where `otlp.endpoint` is set. A stop does not wait for it: its receiver may be slow.
///
/// # Errors
/// The settings cannot be, which the start has checked; the system gives no thread.
pub fn start(node: Arc<Node>) -> io::Result<()> {
    let config = node.cluster.config.load_full();
    let read = OtlpSettings::read(&|key| config.value(key).map(str::to_owned)).map_err(io::Error::other)?;
    let Some(settings) = read else { return Ok(()) };
    spans::start(&node, &settings, node.doctor.begin())?;
    let stopped = node.doctor.begin();
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let thread = std::thread::Builder::new().name("otlp".to_owned());
    thread.spawn(move || {
        if let Err(error) = rustix::process::setpriority_process(None, 10) {
            tracing::debug!(%error, "the thread that pushes metrics keeps its priority");
        }
        let mut pushes = Pushes { started_ms: node.clock.wall().0, node, settings, tls: None, failures: 0 };
        while waits(&stopped, pause(pushes.settings.interval, pushes.failures)) {
            pushes.push(&runtime);
        }
    })?;
    Ok(())
}

/// `false`: the thread is to end.
fn waits(stopped: &Receiver<()>, pause: Duration) -> bool {
    matches!(stopped.recv_timeout(pause), Err(RecvTimeoutError::Timeout))
}

/// Until the next push, after so many failures in a row.
fn pause(interval: Duration, failures: u32) -> Duration {
    let most = interval.max(PAUSE_MAX.min(interval * PAUSE_INTERVALS));
    (interval * 2_u32.saturating_pow(failures.min(16))).min(most)
}

struct Pushes {
    node: Arc<Node>,
    settings: OtlpSettings,
    tls: Option<ClientTls>,
    started_ms: i64,
    /// In a row.
    failures: u32,
}

impl Pushes {
    fn push(&mut self, runtime: &tokio::runtime::Runtime) {
        // A node that stops gives no page any more.
        let Some(page) = runtime.block_on(self.node.workers.metering.reader().ask(Detail::default())) else {
            return;
        };
        let (url, meter) = (&self.settings.url, &self.node.workers.meter.otlp);
        let endpoint = format!("{}:{}{}", url.host, url.port, url.path);
        let request = self.request(&page);
        match send(&mut self.tls, &self.settings, url, &request) {
            Ok(points) => {
                if self.failures > 0 {
                    tracing::info!(endpoint, failures = self.failures, "otlp.endpoint takes metrics again");
                }
                self.failures = 0;
                meter.taken.one();
                meter.points_rejected.add(points);
            }
            Err(why) => {
                // One line for a row of failures: the metric counts them.
                if self.failures == 0 {
                    tracing::warn!(
                        endpoint,
                        "metrics cannot be pushed to otlp.endpoint: {why}. The node goes on trying; no counts are lost, \
                         only what a dashboard shows of this time"
                    );
                }
                self.failures = self.failures.saturating_add(1);
                meter.failed.one();
            }
        }
    }

    fn request(&self, page: &str) -> Vec<u8> {
        let ms = |ms: i64| u64::try_from(ms).unwrap_or(0);
        let (started_ms, now_ms) = (ms(self.started_ms), ms(self.node.clock.wall().0));
        resource(&self.node, |resource, version| {
            export(page, &Export { resource, version, started_ms, now_ms })
        })
    }
}

/// What `request` makes of the attributes that say which node this is, and of its version.
fn resource(node: &Node, request: impl FnOnce(&[(&str, &str)], &str) -> Vec<u8>) -> Vec<u8> {
    let (identity, version) = (&node.identity, env!("CARGO_PKG_VERSION"));
    let (cluster, id) = (identity.cluster_id.to_string(), identity.broker_id.get().to_string());
    let resource = [
        ("service.name", "barnabas"),
        ("service.namespace", cluster.as_str()),
        ("service.instance.id", id.as_str()),
        ("service.version", version),
    ];
    request(&resource, version)
}

/// How many points or spans were rejected.
fn send(
    tls: &mut Option<ClientTls>,
    settings: &OtlpSettings,
    url: &HttpUrl,
    request: &[u8],
) -> Result<u64, String> {
    if let (None, Some(wanted)) = (&tls, &settings.tls) {
        *tls = Some(ClientTls::load(wanted.clone()).map_err(|error| error.to_string())?);
    }
    let mut body = Vec::new();
    let gzip = Compression { codec: Codec::Gzip, level: None };
    gzip.deflate(request, &mut body).map_err(|error| error.to_string())?;
    let own = [("Content-Type", "application/x-protobuf"), ("Content-Encoding", "gzip")];
    let given = settings.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let headers: Vec<(&str, &str)> = own.into_iter().chain(given).collect();
    let answer = http::send(url, tls.as_ref(), (&Method::PostBytes(&body), &headers), LIMITS);
    let answer = answer.map_err(|error| error.to_string())?;
    if !(200..300).contains(&answer.status) {
        return Err(format!("the answer is status {}", answer.status));
    }
    rejected(&answer.body).map_err(|error| format!("the answer is no OTLP: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_doubles_up_to_ten_intervals_or_five_minutes() {
        let seconds = |interval, failures| pause(Duration::from_secs(interval), failures).as_secs();
        assert_eq!([0, 1, 2, 3, 4, 99].map(|failures| seconds(1, failures)), [1, 2, 4, 8, 10, 10]);
        assert_eq!([0, 1, 3, 99].map(|failures| seconds(60, failures)), [60, 120, 300, 300]);
        assert_eq!([0, 9].map(|failures| seconds(3600, failures)), [3600, 3600]);
    }
}
