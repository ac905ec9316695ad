//! The keytabs of listeners with GSSAPI, and the requests of Kerberos that were taken lately.
//!
//! A keytab is read at the start and again when its bytes change, as in Kafka (the JDK's `KeyTab`): every few seconds,
//! and when a ticket comes that no known key decrypts. One that cannot be read any more leaves the keys before it in
//! use.
//!
//! Neighbours: core/config/src/sasl/kerberos.rs, which judges a keytab; server/listeners/handshakes.rs, whose thread
//! calls [`Keytabs::reload`].

use crate::config::sasl::read_keytab;
use arc_swap::ArcSwap;
use barnabas_base::{MonotonicMs, TimestampMs};
use barnabas_config::sasl::{KerberosListener, SaslConfig};
use barnabas_sasl::kerberos::{Acceptor, Replays, Seen};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Tickets of strangers have the keytabs read so often at most.
const RENEWED_EVERY_MS: u64 = 200;

/// A listener's keys, or why there are none.
type Known = (KerberosListener, Result<Arc<Acceptor>, String>);

/// See the file's header.
#[derive(Debug, Default)]
pub struct Keytabs {
    known: ArcSwap<Vec<Known>>,
    replays: Mutex<Replays>,
    /// When a ticket may have them read again.
    renewed_from_ms: AtomicU64,
}

impl Keytabs {
    /// The listeners' settings, or they have changed.
    pub fn configure(&self, config: &SaslConfig) {
        let before = self.known.load_full();
        let listeners = config.listeners.iter().flatten().filter_map(|listener| listener.kerberos.as_ref());
        let known = listeners.map(|listener| {
            let old = before.iter().find(|(known, acceptor)| known == listener && acceptor.is_ok());
            old.cloned().unwrap_or_else(|| (listener.clone(), read_keytab(listener).map(Arc::new)))
        });
        self.known.store(Arc::new(known.collect()));
    }

    /// Reads each keytab again, and says where one has changed.
    pub fn reload(&self) {
        let before = self.known.load_full();
        let mut is_changed = false;
        let next = before.iter().map(|(listener, old)| {
            let new = read_keytab(listener).map(Arc::new);
            let (service, path) = (&listener.service, listener.keytab.display());
            let kept = match (old, new) {
                (Ok(old), Ok(new)) if old.keys == new.keys => Ok(old.clone()),
                (_, Ok(new)) => {
                    is_changed = true;
                    tracing::info!(%service, keytab = %path, keys = new.keys.len(), "the keytab's new keys are in use");
                    Ok(new)
                }
                (Ok(old), Err(error)) => {
                    tracing::debug!(%service, error, "the keys before stay in use");
                    Ok(old.clone())
                }
                (Err(_), Err(error)) => Err(error),
            };
            (listener.clone(), kept)
        });
        let next: Vec<Known> = next.collect();
        if is_changed {
            self.known.store(Arc::new(next));
        }
    }

    /// What a listener's clients are checked with.
    pub fn acceptor(&self, listener: &KerberosListener) -> Option<Arc<Acceptor>> {
        let known = self.known.load();
        let (_, acceptor) = known.iter().find(|(known, _)| known == listener)?;
        acceptor.as_ref().ok().cloned()
    }

    /// What a listener's clients are checked with, where its keytab has other keys than `known` by now. The caller's
    /// worker reads the file, some hundred bytes: a client whose ticket is of the new key would give up if it were
    /// refused.
    pub fn renewed(
        &self,
        listener: &KerberosListener,
        known: Option<&Arc<Acceptor>>,
        now: MonotonicMs,
    ) -> Option<Arc<Acceptor>> {
        let from = self.renewed_from_ms.load(Ordering::Relaxed);
        let next = now.0 + RENEWED_EVERY_MS;
        let is_due = now.0 >= from
            && self
                .renewed_from_ms
                .compare_exchange(from, next, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        if is_due {
            self.reload();
        }
        let newer = self.acceptor(listener)?;
        known.is_none_or(|known| !Arc::ptr_eq(known, &newer)).then_some(newer)
    }

    /// Notes a request by its digest.
    pub fn note(&self, digest: [u8; 16], until: TimestampMs, now: TimestampMs) -> Seen {
        self.replays.lock().unwrap_or_else(PoisonError::into_inner).note(digest, until, now)
    }
}
