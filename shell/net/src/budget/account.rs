//! What the connections of one address hold of the budget, and whether claims wait for room.
//!
//! Invariants:
//! 1. an address without connections that holds nothing has no account
//! 2. the slots together are at most what replication has for the cluster's other nodes

use barnabas_base::{Map, Set};
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
    held: [AtomicU64; 4],
    /// What it may hold of replication's reserve and no other address; 0: it is no address of a node.
    slot: AtomicU64,
    pub(super) pressure: Pressure,
}

impl Account {
    pub(super) fn held(&self, pool: usize) -> u64 {
        self.held[pool].load(Ordering::Relaxed)
    }

    pub(super) fn slot(&self) -> u64 {
        self.slot.load(Ordering::Relaxed)
    }

    /// Claims `more` in its slot of a pool. A large claim leaves a quarter of the slot free.
    pub(super) fn try_add_to_slot(&self, pool: usize, more: u64, is_large: bool) -> bool {
        let slot = self.slot();
        let limit = if is_large { slot - slot / 4 } else { slot };
        let room = |held: u64| held.checked_add(more).filter(|after| *after <= limit);
        self.held[pool].fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).is_ok()
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
pub(super) struct Accounts(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    of: Map<IpAddr, Weak<Account>>,
    /// Addresses of the cluster's other nodes, and what each of them has of the reserve.
    peers: Set<IpAddr>,
    slot: u64,
}

impl Known {
    fn slot_of(&self, ip: IpAddr) -> u64 {
        if self.peers.contains(&ip) { self.slot } else { 0 }
    }
}

impl Accounts {
    pub fn of(&self, ip: IpAddr) -> Arc<Account> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(account) = known.of.get(&ip).and_then(Weak::upgrade) {
            return account;
        }
        if known.of.len() == known.of.capacity() {
            known.of.retain(|_, account| account.strong_count() > 0);
        }
        let account = Arc::new(Account { slot: AtomicU64::new(known.slot_of(ip)), ..Account::default() });
        known.of.insert(ip, Arc::downgrade(&account));
        account
    }

    /// Shares `bytes` out among the addresses of the cluster's other nodes.
    pub fn set_peers(&self, peers: &[IpAddr], bytes: u64) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.peers = peers.iter().map(IpAddr::to_canonical).collect();
        known.slot = bytes / known.peers.len().max(1) as u64;
        for (ip, account) in &known.of {
            if let Some(account) = account.upgrade() {
                account.slot.store(known.slot_of(*ip), Ordering::Relaxed);
            }
        }
    }
}
