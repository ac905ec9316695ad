//! The doctor's continuous mode: what a node can see by itself is judged each `doctor.interval.ms`, on a thread of its
//! own, from two of its metrics pages. Findings are metrics (`barnabas_finding`) and one line of the log when they
//! appear, one when they are gone.
//!
//! It asks no other node, and no worker waits for it: the page comes from the metrics' thread, as for any reader. Cost:
//! one page in an interval. Which findings: core/findings' `OF_A_NODE`; what has to be seen of several nodes, and of
//! topics and groups, `barnabas doctor` finds.
//!
//! Neighbours: node/doctor.rs holds what stands, for the metrics page.

use crate::node::Node;
use barnabas_findings::{
    Change, Config, Configs, Facts, Finding, KEYS_OF_A_NODE, Limits, Scrape, Severity, Silences, Source,
    examine_node,
};
use barnabas_metadata::config::BrokerConfig;
use barnabas_metrics::Detail;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

const INTERVAL: &str = "doctor.interval.ms";
const SILENCE: &str = "doctor.silence.file";
/// Lines of one check; the others are counted in one more.
const LINES_MAX: usize = 20;
/// A file of silences is read up to this size.
const SILENCE_BYTES_MAX: u64 = 1 << 20;

/// Starts the thread; `None`: `doctor.interval.ms` is 0.
///
/// # Errors
/// The system gives no thread.
pub fn start(node: Arc<Node>) -> io::Result<Option<JoinHandle<()>>> {
    let config = node.cluster.config.load();
    let interval_ms: u64 = config.value(INTERVAL).and_then(|value| value.parse().ok()).unwrap_or(0);
    if interval_ms == 0 {
        return Ok(None);
    }
    let silence_file = config.value(SILENCE).map(PathBuf::from);
    let stopped = node.doctor.begin();
    let interval = Duration::from_millis(interval_ms);
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let thread = std::thread::Builder::new().name("doctor".to_owned());
    let thread = thread.spawn(move || {
        if let Err(error) = rustix::process::setpriority_process(None, 10) {
            tracing::debug!(%error, "the doctor's thread keeps its priority");
        }
        let mut checks =
            Checks { node, silence_file, silences: Silences::default(), silence_trouble: None, before: None };
        while waits(&stopped, interval) {
            runtime.block_on(checks.check());
        }
    });
    thread.map(Some)
}

/// `false`: the thread is to end.
fn waits(stopped: &Receiver<()>, interval: Duration) -> bool {
    matches!(stopped.recv_timeout(interval), Err(RecvTimeoutError::Timeout))
}

struct Checks {
    node: Arc<Node>,
    silence_file: Option<PathBuf>,
    silences: Silences,
    /// Why the file was not read the last time.
    silence_trouble: Option<String>,
    before: Option<Scrape>,
}

impl Checks {
    async fn check(&mut self) {
        let detail = Detail { is_fine: true, ..Detail::default() };
        // The next check comes in an interval, and sees what this one does not.
        let Some(page) = self.node.workers.metering.reader().ask(detail).await else { return };
        let page = Scrape::parse(&page);
        let Some(before) = self.before.replace(page.clone()) else { return };
        let now_ms = self.node.clock.wall().0;
        let id = self.node.identity.broker_id.get();
        let connect = self.node.identity.listeners.first();
        let connect =
            connect.map_or_else(String::new, |(_, address)| format!("--bootstrap-server {address}"));
        let configs = configs(&self.node.cluster.config.load());
        let facts = Facts::of_node((id, connect), configs, (&before, &page), now_ms);
        let report = examine_node(&facts, &Limits::default());
        self.read_silences();
        let silences = &self.silences;
        let is_silenced = |finding: &Finding| silences.of(finding, now_ms).is_some();
        let change = self.node.doctor.standing().take(report.findings, is_silenced);
        say(&change);
    }

    /// A file that cannot be read or understood leaves the silences as they were.
    fn read_silences(&mut self) {
        let Some(path) = &self.silence_file else { return };
        let text = std::fs::metadata(path).and_then(|file| match file.len() {
            0..=SILENCE_BYTES_MAX => std::fs::read_to_string(path),
            bytes => Err(io::Error::other(format!("{bytes} bytes are too many"))),
        });
        let read = text.map_err(|error| error.to_string());
        let read = read.and_then(|text| Silences::parse(&text).map_err(|error| error.to_string()));
        match read {
            Ok(silences) => (self.silences, self.silence_trouble) = (silences, None),
            Err(why) if self.silence_trouble.as_ref() == Some(&why) => {}
            Err(why) => {
                tracing::warn!(file = %path.display(), "{SILENCE}: {why}. Findings are silenced as before");
                self.silence_trouble = Some(why);
            }
        }
    }
}

fn configs(config: &BrokerConfig) -> Configs {
    let known = KEYS_OF_A_NODE.iter().filter_map(|key| Some((*key, config.value(key)?)));
    let row = |(key, value): (&str, &str)| {
        (key.to_owned(), Config { value: Some(value.to_owned()), source: Source::Static })
    };
    known.map(row).collect()
}

fn say(change: &Change) {
    for finding in change.appeared.iter().take(LINES_MAX) {
        let Finding { id, severity, subject, sentence, commands } = finding;
        let remedy = commands.first().map_or_else(String::new, |command| format!(" $ {command}"));
        match severity {
            Severity::Info => tracing::info!(
                id,
                subject,
                "finding {id}: {sentence}. barnabas doctor explain {id} says what to do.{remedy}"
            ),
            Severity::Warning | Severity::Critical => tracing::warn!(
                id,
                subject,
                "finding {id}: {sentence}. barnabas doctor explain {id} says what to do.{remedy}"
            ),
        }
    }
    for finding in change.gone.iter().take(LINES_MAX) {
        tracing::info!(id = finding.id, subject = finding.subject, "finding {} is gone", finding.id);
    }
    let more = change.appeared.len().saturating_sub(LINES_MAX) + change.gone.len().saturating_sub(LINES_MAX);
    if more > 0 {
        tracing::info!(more, "findings that appeared or are gone have no line: barnabas_finding has them");
    }
}
