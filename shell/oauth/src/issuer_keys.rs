//! An issuer's keys as they are now: fetched by a thread of their own, read by every worker without a lock.
//!
//! From a file they are read again every 10 s, from a URL every `sasl.oauthbearer.jwks.endpoint.refresh.ms`; in
//! both cases early for a token whose key is unknown, and after a failure with a growing pause: core/sasl's `Refresh`
//! decides. While a fetch fails, the keys before it go on.
//!
//! Source: Kafka 4.4 `RefreshingHttpsJwks`, `JwksFileVerificationKeyResolver`, which reads its file once.

use crate::http::{self, Limits, Method};
use arc_swap::ArcSwap;
use barnabas_base::MonotonicMs;
use barnabas_clock::Clock;
use barnabas_sasl::oauth::settings::{KeySettings, Url};
use barnabas_sasl::oauth::{Jwks, Refresh};
use barnabas_tls::{ClientTls, Reload};
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes of a set of keys; issuers' sets have some thousand.
const BYTES_MAX: usize = 1 << 20;

/// See the file's header. The thread ends with this value.
#[derive(Debug)]
pub struct IssuerKeys {
    settings: KeySettings,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    keys: ArcSwap<Jwks>,
    fetches: AtomicU64,
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Debug)]
struct State {
    refresh: Refresh,
    /// A first attempt is over.
    is_tried: bool,
    is_over: bool,
}

impl IssuerKeys {
    /// Begins to fetch.
    ///
    /// # Errors
    /// There is no thread.
    pub fn start(settings: KeySettings) -> io::Result<Self> {
        let refresh = Refresh::new(settings.refresh_pauses(), now());
        let shared = Arc::new(Shared {
            keys: ArcSwap::default(),
            fetches: AtomicU64::new(0),
            state: Mutex::new(State { refresh, is_tried: false, is_over: false }),
            wake: Condvar::new(),
        });
        let (of_thread, its_settings) = (shared.clone(), settings.clone());
        std::thread::Builder::new()
            .name("oauth-keys".to_owned())
            .spawn(move || run(&of_thread, &its_settings))?;
        Ok(Self { settings, shared })
    }

    pub fn settings(&self) -> &KeySettings {
        &self.settings
    }

    /// The keys of now; empty until the first fetch has succeeded.
    pub fn keys(&self) -> Arc<Jwks> {
        self.shared.keys.load_full()
    }

    /// How often the issuer was asked, or the file read.
    pub fn fetches(&self) -> u64 {
        self.shared.fetches.load(Ordering::Relaxed)
    }

    /// A token names a key that is not here: the keys are fetched at once, if that was not done just now.
    pub fn unknown_key(&self) {
        if self.shared.lock().refresh.unknown_key(now()) {
            self.shared.wake.notify_all();
        }
    }

    /// Waits until the first attempt is over, for a start: clients that come back would be refused for good.
    pub fn await_first(&self, within: Duration) {
        let state = self.shared.lock();
        let waited = self.shared.wake.wait_timeout_while(state, within, |state| !state.is_tried);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

impl Drop for IssuerKeys {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.wake.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a fetch is due. `false`: it is over.
    fn wait(&self) -> bool {
        let mut state = self.lock();
        loop {
            if state.is_over {
                return false;
            }
            let rest = state.refresh.due().0.saturating_sub(now().0);
            if rest == 0 {
                return true;
            }
            let waited = self.wake.wait_timeout(state, Duration::from_millis(rest));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

fn now() -> MonotonicMs {
    Clock::start().monotonic()
}

fn run(shared: &Shared, settings: &KeySettings) {
    let mut tls = None;
    while shared.wait() {
        shared.fetches.fetch_add(1, Ordering::Relaxed);
        let fetched = fetch(settings, &mut tls);
        let mut state = shared.lock();
        match fetched {
            Ok(keys) => {
                let is_recovered = state.refresh.fetched(now());
                if is_recovered || **shared.keys.load() != keys {
                    tracing::info!(url = settings.text, keys = keys.len(), "the issuer's keys are loaded");
                }
                shared.keys.store(Arc::new(keys));
            }
            Err(error) => {
                let failures = state.refresh.failed(now());
                // Not each time: the pauses are short.
                if failures.is_power_of_two() {
                    let keys = shared.keys.load().len();
                    tracing::warn!(
                        url = settings.text,
                        error,
                        failures,
                        keys,
                        "the issuer's keys cannot be loaded; those from before go on, and without any every token is refused"
                    );
                }
            }
        }
        state.is_tried = true;
        drop(state);
        shared.wake.notify_all();
    }
}

fn fetch(settings: &KeySettings, tls: &mut Option<ClientTls>) -> Result<Jwks, String> {
    let bytes = match &settings.url {
        Url::File(path) => {
            let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
            let mut bytes = Vec::new();
            file.take(BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
            if bytes.len() > BYTES_MAX {
                return Err(format!("the file has more than {BYTES_MAX} bytes"));
            }
            bytes
        }
        Url::Http(url) => {
            if url.has_tls {
                reload(settings, tls)?;
            }
            let limits = Limits { connect: settings.connect, read: settings.read, body_bytes_max: BYTES_MAX };
            let answer = http::send(url, tls.as_ref(), (&Method::Get, &[]), limits);
            let answer = answer.map_err(|error| error.to_string())?;
            if answer.status != 200 {
                return Err(format!("the issuer answers with status {}, expected 200", answer.status));
            }
            answer.body.to_vec()
        }
    };
    Jwks::parse(&bytes).map_err(|error| error.to_string())
}

/// The trust store may have changed.
fn reload(settings: &KeySettings, tls: &mut Option<ClientTls>) -> Result<(), String> {
    if let Some(known) = tls {
        if let Reload::Kept(error) = known.reload(Clock::start().wall().0 / 1000) {
            tracing::warn!(%error, "the trust store for the issuer's keys is not loaded again");
        }
        return Ok(());
    }
    let settings = settings.tls.clone().ok_or("bug: https without settings of TLS")?;
    *tls = Some(ClientTls::load(settings).map_err(|error| error.to_string())?);
    Ok(())
}

#[cfg(test)]
mod tests;
