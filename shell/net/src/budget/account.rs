//! What the connections of one address hold of the budget, and whether claims wait for room.
//!
//! Invariant: an address without connections that holds nothing has no account.

use barnabas_base::Map;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// A claim that waited is felt for so long.
const FELT: Duration = Duration::from_millis(1_500);

/// One address's part. Its connections share it.
#[derive(Debug, Default)]
pub struct Account {
    /// In each pool.
    held: [AtomicU64; 3],
    pub(super) pressure: Pressure,
}

impl Account {
    pub(super) fn held(&self, pool: usize) -> u64 {
        self.held[pool].load(Ordering::Relaxed)
    }

    pub(super) fn add(&self, pool: usize, bytes: u64) {
        self.held[pool].fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn sub(&self, pool: usize, bytes: u64) {
        self.held[pool].fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// When a claim last waited.
#[derive(Debug)]
pub(super) struct Pressure {
    made: Instant,
    /// In milliseconds since it was made, and one more; 0: never.
    last_ms: AtomicU64,
}

impl Default for Pressure {
    fn default() -> Self {
        Self { made: barnabas_clock::now(), last_ms: AtomicU64::new(0) }
    }
}

impl Pressure {
    fn now_ms(&self) -> u64 {
        barnabas_clock::since(self.made).as_millis() as u64 + 1
    }

    pub fn press(&self) {
        self.last_ms.store(self.now_ms(), Ordering::Relaxed);
    }

    pub fn is_felt(&self) -> bool {
        let last = self.last_ms.load(Ordering::Relaxed);
        last > 0 && self.now_ms().saturating_sub(last) < FELT.as_millis() as u64
    }
}

/// The accounts of all addresses that are connected.
#[derive(Debug, Default)]
pub(super) struct Accounts(Mutex<Map<IpAddr, Weak<Account>>>);

impl Accounts {
    pub fn of(&self, ip: IpAddr) -> Arc<Account> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(account) = known.get(&ip).and_then(Weak::upgrade) {
            return account;
        }
        if known.len() == known.capacity() {
            known.retain(|_, account| account.strong_count() > 0);
        }
        let account = Arc::new(Account::default());
        known.insert(ip, Arc::downgrade(&account));
        account
    }
}
