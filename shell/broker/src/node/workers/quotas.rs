//! Client quotas on this node: the limits of the image, and what each account used.
//!
//! An account is shared by all connections of its clients, on whichever worker. A connection looks its accounts up once
//! for each image with other quotas; then a request of a limited client locks one account for a moment. A request of a
//! client without a limit costs a comparison.
//!
//! Accounts are bounded: at [`ACCOUNTS_MAX`] those that no connection holds and that have nothing left to remember go.
//! If that makes no room, further clients are not limited, and are counted.
//!
//! The connection's side charges and mutes; the sums are core/security's.

use arc_swap::ArcSwap;
use barnabas_api::Client;
use barnabas_base::{DurationMs, Map, MonotonicMs};
use barnabas_metadata::Image;
use barnabas_metadata::config::BrokerConfig;
use barnabas_security::quotas::{Account, Kind, Limits, Rate, Windows};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// About 1 KiB each.
const ACCOUNTS_MAX: usize = 50_000;

type Rates = [Rate; Kind::ALL.len()];

/// See the file's header.
#[derive(Debug)]
pub struct Quotas {
    windows: Windows,
    is_any: AtomicBool,
    /// Counts changes of the limits.
    generation: AtomicU64,
    limits: ArcSwap<Limits>,
    accounts: Mutex<Map<Account, Arc<Mutex<Rates>>>>,
    pub figures: [Figures; Kind::ALL.len()],
    pub unlimited_clients: AtomicU64,
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
            unlimited_clients: AtomicU64::default(),
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

    /// Whether any client is limited.
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
            let limit = limits.of(kind, user, client_id)?;
            Some((limit.per_second, self.account(limit.account, now)?))
        });
        Limited { generation, client: client.clone(), limits }
    }

    fn account(&self, account: Account, now: MonotonicMs) -> Option<Arc<Mutex<Rates>>> {
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = accounts.get(&account) {
            return Some(known.clone());
        }
        if accounts.len() >= ACCOUNTS_MAX {
            let is_idle = |rates: &Mutex<Rates>| {
                let rates = rates.lock().unwrap_or_else(PoisonError::into_inner);
                rates.iter().all(|rate| rate.is_idle(now, self.windows))
            };
            accounts.retain(|_, rates| Arc::strong_count(rates) > 1 || !is_idle(rates));
        }
        if accounts.len() >= ACCOUNTS_MAX {
            self.unlimited_clients.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some(accounts.entry(account).or_default().clone())
    }

    /// Counts what a client used. Returns how long it must wait.
    pub fn charge(&self, limited: &Limited, kind: Kind, used: f64, now: MonotonicMs) -> DurationMs {
        let Some((per_second, rates)) = &limited.limits[kind as usize] else { return DurationMs(0) };
        let mut rates = rates.lock().unwrap_or_else(PoisonError::into_inner);
        let rate = &mut rates[kind as usize];
        rate.record(used, now, self.windows);
        let wait = rate.wait(*per_second, now, self.windows);
        // Source: Kafka `ClientRequestQuotaManager`.
        if kind == Kind::Request { wait.min(self.windows.window()) } else { wait }
    }

    /// Counts the records of an answer to a consumer. Returns how long it must wait, and whether the answer leaves
    /// without the records: then they are not counted.
    ///
    /// An account that has used nothing gets its records, however many: a batch may be larger than what the windows
    /// hold, and Kafka would never answer with it.
    pub fn charge_records(&self, limited: &Limited, bytes: f64, now: MonotonicMs) -> (DurationMs, bool) {
        let Some((per_second, rates)) = &limited.limits[Kind::Fetch as usize] else {
            return (DurationMs(0), false);
        };
        let mut rates = rates.lock().unwrap_or_else(PoisonError::into_inner);
        let rate = &mut rates[Kind::Fetch as usize];
        let is_unused = rate.per_second(now, self.windows) < 1.0;
        rate.record(bytes, now, self.windows);
        let wait = rate.wait(*per_second, now, self.windows);
        let is_withheld = wait.0 > 0 && !is_unused;
        if is_withheld {
            rate.record(-bytes, now, self.windows);
        }
        (wait, is_withheld)
    }

    pub fn throttled(&self, kind: Kind, wait: DurationMs) {
        let figures = &self.figures[kind as usize];
        figures.requests.fetch_add(1, Ordering::Relaxed);
        figures.throttle_ms.fetch_add(u64::try_from(wait.0).unwrap_or(0), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::Text;
    use barnabas_metadata::access::{ClientQuotas, entity, quota};
    use barnabas_metadata::config::{Properties, StaticConfig};

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
        let one_more = client("one more");
        assert_eq!(quotas.limited(&one_more, NOW).per_second(Kind::Produce), None);
        assert_eq!(quotas.unlimited_clients.load(Ordering::Relaxed), 1);
        let later = NOW.plus(quotas.windows().span());
        assert_eq!(quotas.limited(&one_more, later).per_second(Kind::Produce), Some(100.0));
        assert_eq!(quotas.accounts(), 1);
    }
}
