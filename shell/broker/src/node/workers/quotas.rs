//! Client quotas on this node: the limits of the image, and what each account used.
//!
//! An account is shared by all connections of its clients, on whichever worker. A connection looks its accounts up once
//! for each image with other quotas; then a request of a limited client locks one account for a moment. A request of a
//! client without a limit costs a comparison.
//!
//! The connection's side charges and mutes. Which account a client has, how many there are, and the sums:
//! core/security/src/quotas/accounts.rs.

use arc_swap::ArcSwap;
use barnabas_api::Client;
use barnabas_base::{DurationMs, MonotonicMs, Text};
use barnabas_metadata::Image;
use barnabas_metadata::config::BrokerConfig;
use barnabas_sasl::scram::digest;
use barnabas_security::quotas::accounts::{Accounts, Rates};
use barnabas_security::quotas::{Account, Kind, Limits, Windows};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// See the file's header.
#[derive(Debug)]
pub struct Quotas {
    windows: Windows,
    is_any: AtomicBool,
    /// Counts changes of the limits.
    generation: AtomicU64,
    limits: ArcSwap<Limits>,
    accounts: Mutex<Accounts<Arc<Mutex<Rates>>>>,
    pub figures: [Figures; Kind::ALL.len()],
    /// Look-ups that ended at a shared account.
    pub shared_clients: AtomicU64,
}

/// A short name for a long one.
fn short(name: &str) -> Text {
    Text::from(STANDARD.encode(digest(name.as_bytes())))
}

/// What was throttled by one kind of quota.
#[derive(Debug, Default)]
pub struct Figures {
    pub requests: AtomicU64,
    pub throttle_ms: AtomicU64,
}

/// The limits of one client, as long as no quota changes.
#[derive(Debug, Clone)]
pub struct Limited {
    generation: u64,
    client: Arc<Client>,
    limits: [Option<(f64, Arc<Mutex<Rates>>)>; Kind::ALL.len()],
}

impl Limited {
    /// Whether these are still the limits of this client.
    pub fn is_of(&self, client: &Arc<Client>, quotas: &Quotas) -> bool {
        Arc::ptr_eq(&self.client, client) && self.generation == quotas.generation.load(Ordering::Acquire)
    }

    pub fn per_second(&self, kind: Kind) -> Option<f64> {
        self.limits[kind as usize].as_ref().map(|(per_second, _)| *per_second)
    }
}

impl Quotas {
    pub fn new(config: &BrokerConfig) -> Self {
        Self {
            windows: Windows::new(config.int("quota.window.num"), config.int("quota.window.size.seconds")),
            is_any: AtomicBool::new(false),
            generation: AtomicU64::default(),
            limits: ArcSwap::default(),
            accounts: Mutex::default(),
            figures: Default::default(),
            shared_clients: AtomicU64::default(),
        }
    }

    /// The quotas of an image in which some changed.
    pub fn publish(&self, image: &Image) {
        let limits = Limits::new(&image.quotas);
        let is_any = limits.is_any();
        self.limits.store(Arc::new(limits));
        self.generation.fetch_add(1, Ordering::AcqRel);
        self.is_any.store(is_any, Ordering::Release);
    }

    /// Whether any client is limited, the controller's limit aside.
    pub fn is_any(&self) -> bool {
        self.is_any.load(Ordering::Relaxed)
    }

    pub fn windows(&self) -> Windows {
        self.windows
    }

    pub fn accounts(&self) -> usize {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The limits of a client now.
    pub fn limited(&self, client: &Arc<Client>, now: MonotonicMs) -> Limited {
        // Before the limits: if they change meanwhile, they are looked up again.
        let generation = self.generation.load(Ordering::Acquire);
        let limits = self.limits.load();
        let user = client.principal.split_once(':').map_or("", |(_, name)| name);
        let client_id = client.client_id.as_deref().unwrap_or_default();
        let limits = Kind::ALL.map(|kind| {
            let limit = limits.of(kind, user, client_id).filter(|_| kind.is_of_brokers())?;
            Some((limit.per_second, self.account(limit.account, user, now)))
        });
        Limited { generation, client: client.clone(), limits }
    }

    fn account(&self, account: Account, of: &str, now: MonotonicMs) -> Arc<Mutex<Rates>> {
        let is_idle = |rates: &Arc<Mutex<Rates>>| {
            Arc::strong_count(rates) == 1 && locked(rates).is_idle(now, self.windows)
        };
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        let (account, is_shared) = accounts.of(account, of, short, now, is_idle);
        if is_shared {
            self.shared_clients.fetch_add(1, Ordering::Relaxed);
        }
        account
    }

    /// See [`Rates::charge`].
    pub fn charge(&self, limited: &Limited, kind: Kind, used: f64, now: MonotonicMs) -> DurationMs {
        let Some((per_second, rates)) = &limited.limits[kind as usize] else { return DurationMs(0) };
        locked(rates).charge((kind, *per_second), used, now, self.windows)
    }

    /// See [`Rates::charge_records`].
    pub fn charge_records(&self, limited: &Limited, bytes: f64, now: MonotonicMs) -> (DurationMs, bool) {
        let Some((per_second, rates)) = &limited.limits[Kind::Fetch as usize] else {
            return (DurationMs(0), false);
        };
        locked(rates).charge_records(*per_second, bytes, now, self.windows)
    }

    pub fn throttled(&self, kind: Kind, wait: DurationMs) {
        let figures = &self.figures[kind as usize];
        figures.requests.fetch_add(1, Ordering::Relaxed);
        figures.throttle_ms.fetch_add(u64::try_from(wait.0).unwrap_or(0), Ordering::Relaxed);
    }
}

fn locked(rates: &Mutex<Rates>) -> MutexGuard<'_, Rates> {
    rates.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_metadata::access::{ClientQuotas, entity, quota};
    use barnabas_metadata::config::{Properties, StaticConfig};
    use barnabas_security::quotas::accounts::ACCOUNTS_MAX;

    fn quotas(rows: &[(&str, f64)]) -> Quotas {
        let config = BrokerConfig::new(StaticConfig::check(Properties::new()).unwrap().0);
        let quotas = Quotas::new(&config);
        quotas.publish(&image(rows));
        quotas
    }

    /// Quotas on client ids; `*` for any.
    fn image(rows: &[(&str, f64)]) -> Image {
        let mut quotas = ClientQuotas::default();
        for (client, value) in rows {
            let name = (*client != "*").then(|| Text::from(*client));
            let of = [(Text::from(entity::CLIENT_ID), name)].into_iter().collect();
            quotas.insert(of, [(Text::from(quota::PRODUCER_BYTE_RATE), *value)].into_iter().collect());
        }
        Image { quotas, ..Image::default() }
    }

    fn client(id: &str) -> Arc<Client> {
        Arc::new(Client {
            listener: Text::from("PLAINTEXT"),
            client_id: Some(Text::from(id)),
            host: Text::from("/127.0.0.1"),
            principal: Text::from("User:ANONYMOUS"),
            is_authenticated: false,
            token_authenticated: false,
        })
    }

    const NOW: MonotonicMs = MonotonicMs(1000);

    #[test]
    fn connections_of_a_client_share_its_account() {
        let quotas = quotas(&[("*", 100.0)]);
        let limited = [client("a"), client("a"), client("b")].map(|client| quotas.limited(&client, NOW));
        assert_eq!(quotas.charge(&limited[0], Kind::Produce, 1000.0, NOW).0, 0);
        assert_eq!(quotas.charge(&limited[1], Kind::Produce, 100.0, NOW).0, 1000);
        assert_eq!(quotas.charge(&limited[2], Kind::Produce, 1000.0, NOW).0, 0);
        assert_eq!(quotas.charge(&limited[1], Kind::Fetch, 1e9, NOW).0, 0);
        assert_eq!(quotas.accounts(), 2);
    }

    #[test]
    fn changed_quota_applies_to_a_connection_that_has_looked_up_its_limits() {
        let quotas = quotas(&[("a", 100.0)]);
        let client = client("a");
        let limited = quotas.limited(&client, NOW);
        assert!(limited.is_of(&client, &quotas));
        quotas.publish(&image(&[("a", 50.0)]));
        assert!(!limited.is_of(&client, &quotas));
        assert_eq!(quotas.limited(&client, NOW).per_second(Kind::Produce), Some(50.0));
        quotas.publish(&image(&[]));
        assert!(!quotas.is_any() && quotas.limited(&client, NOW).per_second(Kind::Produce).is_none());
    }

    #[test]
    fn accounts_are_bounded_and_idle_ones_make_room() {
        let quotas = quotas(&[("*", 100.0)]);
        for number in 0..ACCOUNTS_MAX {
            let limited = quotas.limited(&client(&number.to_string()), NOW);
            quotas.charge(&limited, Kind::Produce, 1.0, NOW);
        }
        // Further ones of a user are limited together, and all accounts are looked at once.
        let more = |number: usize| quotas.limited(&client(&format!("more {number}")), NOW);
        quotas.charge(&more(0), Kind::Produce, 1000.0, NOW);
        for number in 1..1000 {
            assert_eq!(more(number).per_second(Kind::Produce), Some(100.0));
        }
        assert!(quotas.charge(&more(1000), Kind::Produce, 1000.0, NOW).0 > 0);
        let mut other = (*client("more 0")).clone();
        other.principal = Text::from("User:other");
        let other = quotas.limited(&Arc::new(other), NOW);
        assert_eq!(quotas.charge(&other, Kind::Produce, 1000.0, NOW).0, 0, "another user's");
        assert_eq!(quotas.shared_clients.load(Ordering::Relaxed), 1002);
        assert_eq!(quotas.accounts.lock().unwrap().looked_at(), ACCOUNTS_MAX as u64);
        assert_eq!(quotas.accounts(), ACCOUNTS_MAX + 2);

        drop(other);
        let later = NOW.plus(quotas.windows().span());
        assert_eq!(quotas.limited(&client("more 0"), later).per_second(Kind::Produce), Some(100.0));
        assert_eq!(quotas.accounts(), 1);
    }

    #[test]
    fn long_client_ids_have_short_accounts_of_their_own() {
        let quotas = quotas(&[("*", 100.0)]);
        let long = |end: &str| client(&("x".repeat(30_000) + end));
        for (id, waits) in [("a", false), ("b", false), ("a", true)] {
            let limited = quotas.limited(&long(id), NOW);
            assert_eq!(quotas.charge(&limited, Kind::Produce, 1000.0, NOW).0 > 0, waits, "{id}");
        }
        assert_eq!(quotas.accounts(), 2);
    }
}
