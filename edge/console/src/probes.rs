//! What an orchestrator asks: does the process live, is its start over, may it get traffic.
//!
//! `/livez` is true as soon as the listener runs, also while a node recovers: a probe that restarts a recovering
//! broker makes it recover again. `/readyz` asks the broker for its versions, without a login, and the node what lacks.
//! `/startupz` is true from the first time that `/readyz` was. `/healthy` and `/ready` are the names of Strimzi's
//! bridge.

use crate::http::callers::Callers;
use barnabas_client::{Connection, Dial};
use hyper::StatusCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// For the whole answer: orchestrators wait a second by default.
const BROKER_WITHIN: Duration = Duration::from_millis(900);

/// One condition of being ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    pub name: &'static str,
    /// What lacks.
    pub trouble: Option<String>,
    /// What an operator should know although the node gets traffic.
    pub warning: Option<String>,
}

impl Check {
    pub fn new(name: &'static str, trouble: Option<String>) -> Self {
        Self { name, trouble, warning: None }
    }
}

/// What a node says of itself. A console beside a cluster has none.
pub type Standing = Arc<dyn Fn() -> Vec<Check> + Send + Sync>;

/// The probes' own state.
pub struct Probes {
    standing: Option<Standing>,
    has_started: AtomicBool,
}

impl std::fmt::Debug for Probes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Probes").field("has_started", &self.has_started).finish_non_exhaustive()
    }
}

impl Probes {
    pub fn new(standing: Option<Standing>) -> Self {
        Self { standing, has_started: AtomicBool::new(false) }
    }

    /// The answer to a probe's path; `None`: it is none.
    pub async fn answer(&self, path: &str, query: &str, callers: &Callers) -> Option<(StatusCode, String)> {
        let is_verbose = query.split('&').any(|word| word == "verbose" || word.starts_with("verbose="));
        let checks = match path {
            "/livez" | "/healthz" | "/healthy" => vec![Check::new("listener", None)],
            "/readyz" | "/ready" => self.ready(callers).await,
            "/startupz" if self.has_started.load(Ordering::Relaxed) => {
                vec![Check::new("start", None)]
            }
            "/startupz" => self.ready(callers).await,
            _ => return None,
        };
        let is_well = checks.iter().all(|check| check.trouble.is_none());
        let status = if is_well { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        let mut text = String::new();
        // A probe that fails names what lacks, without `?verbose` too: an operator reads it.
        if is_verbose || !is_well {
            checks.iter().for_each(|check| text += &line(check));
        }
        text += if is_well { "ok\n" } else { "not ready\n" };
        Some((status, text))
    }

    async fn ready(&self, callers: &Callers) -> Vec<Check> {
        let mut checks = self.standing.as_ref().map(|standing| standing()).unwrap_or_default();
        checks.push(Check::new("broker", reach(callers).await.err()));
        if checks.iter().all(|check| check.trouble.is_none()) {
            self.has_started.store(true, Ordering::Relaxed);
        }
        checks
    }
}

/// A new connection each time: one that stands says nothing about the listener.
async fn reach(callers: &Callers) -> Result<(), String> {
    let config = callers.config();
    let dial = Dial {
        client_id: config.client_id.clone(),
        timeout: BROKER_WITHIN,
        buffers: (-1, -1),
        security: config.security.clone(),
        progress: config.progress.clone(),
    };
    let mut last = "no address is set".to_owned();
    let all = async {
        for address in config.bootstrap.split(',').map(str::trim).filter(|address| !address.is_empty()) {
            match Connection::open_with(address, &dial).await {
                Ok(_) => return true,
                Err(error) => last = error.to_string(),
            }
        }
        false
    };
    match tokio::time::timeout(BROKER_WITHIN, all).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(last),
        Err(_) => Err(format!("no answer within {} ms", BROKER_WITHIN.as_millis())),
    }
}

fn line(check: &Check) -> String {
    let (mark, words) = match (&check.trouble, &check.warning) {
        (None, None) => return format!("[+] {}\n", check.name),
        (Some(trouble), _) => ('-', trouble),
        (None, Some(warning)) => ('!', warning),
    };
    format!("[{mark}] {}: {}\n", check.name, words.replace('\n', " "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_client::ClusterConfig;

    /// A port that refuses connections.
    fn callers() -> Callers {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("binds");
        let address = listener.local_addr().expect("bound").to_string();
        Callers::new(ClusterConfig::new(&address, "test"), Vec::new())
    }

    #[tokio::test]
    async fn node_that_recovers_lives_and_is_not_ready() {
        let standing: Standing =
            Arc::new(|| vec![Check::new("registered", Some("the node recovers".to_owned()))]);
        let (probes, callers) = (Probes::new(Some(standing)), callers());
        let (status, text) = probes.answer("/livez", "", &callers).await.expect("a probe");
        assert_eq!((status.as_u16(), text.as_str()), (200, "ok\n"));
        for path in ["/readyz", "/startupz"] {
            let (status, text) = probes.answer(path, "verbose", &callers).await.expect("a probe");
            assert_eq!(status.as_u16(), 503);
            assert!(text.contains("[-] registered: the node recovers\n[-] broker: "), "{text}");
        }
        let mut offline = Check::new("replicas", None);
        assert_eq!(line(&offline), "[+] replicas\n");
        offline.warning = Some("t-0 cannot\nbe opened".to_owned());
        assert_eq!(line(&offline), "[!] replicas: t-0 cannot be opened\n");
        assert_eq!(probes.answer("/other", "", &callers).await, None);
    }
}
