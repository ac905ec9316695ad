//! The memory that all requests in flight, and all answers that are not read yet, may take together.
//!
//! A connection claims bytes as its frame arrives and gives them back when the request is answered. When the budget is
//! spent, connections stop reading: the sender's own socket fills and it slows down.
//!
//! Clients share the first pool. An eighth on top is replication's reserve, which only replication claims, when the
//! first pool has no room: producers that wait for followers (`acks=all`) cannot keep the followers' requests out.
//! Three quarters of the reserve belong to the cluster's other nodes: each of their addresses ([`Budget::set_peers`])
//! has an equal slot, which no other address claims. The last quarter is for replication's requests from other
//! addresses: nothing proves who sent them.
//!
//! One address never takes all of a shared pool: its claims are at most [`SHARE`] times what it leaves free. Large
//! frames and answers leave a quarter of the pool, or of the slot, to small ones.
//!
//! A claim that waits presses: half-read frames that stall, and answers that are not read, are then given up
//! after seconds instead of minutes ([`Claim::press_on`]; pace.rs).
//!
//! Always true:
//! 1. a pool's claims ≤ its limit (for first bytes a sixteenth more); beside them one frame of each pool that has begun
//!    may take what it needs while it holds the pool's pass, so that half-read frames that hold the whole budget cannot
//!    wait for each other for ever
//! 2. passes are given in the order in which frames began to wait
//! 3. what was claimed is given back when the claim is dropped
//! 4. clients claim nothing of replication's reserve, and one address nothing of another one's slot

mod account;

pub use account::Account;
use account::{Accounts, Pressure};
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// An address claims at most so many times what it leaves free: alone, three quarters.
const SHARE: u64 = 3;
/// Frames and answers up to this size are small. More than the largest request of Kafka's producers by default.
pub const SMALL_BYTES_MAX: u64 = 2 << 20;
/// A denied claim of more does not press: what asks for so much at once gets by with less.
const PRESSING_BYTES_MAX: u64 = 1 << 20;
/// How often a claim that waits says so again.
const PRESS_EVERY: Duration = Duration::from_millis(500);

/// What a claim is for: how much room it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Standing {
    /// More than [`SMALL_BYTES_MAX`]: three quarters of the pool.
    #[default]
    Large,
    Small,
    /// The first bytes of a frame, or a Fetch that is not large: a follower may have sent it. A sixteenth more than
    /// there is.
    Unknown,
    /// A request of replication, or the answer to it.
    Replication,
}

impl Standing {
    /// The standing of what takes so many bytes.
    pub fn of(bytes: u64) -> Self {
        if bytes <= SMALL_BYTES_MAX { Self::Small } else { Self::Large }
    }
}

/// Whether claims wait for what another one holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Press {
    None,
    /// Claims wait for room.
    Felt,
    /// This one exceeds the limits, and the next one that must waits for its end.
    Pass,
}

/// Connections below this are left alone while claims wait: ending them would free little.
const PRESSED_BYTES_MIN: u64 = 16 << 10;

/// Larger claims leave a quarter of the slot free, so that answers to a follower do not block its node's
/// heartbeats.
const SLOT_SMALL_BYTES_MAX: u64 = 64 << 10;

const CLIENTS: usize = 0;
/// Replication's reserve: the slots of the other nodes' addresses, and the rest for replication from
/// elsewhere.
const PEERS: usize = 1;
const STRANGERS: usize = 2;
/// What the holders of the passes claim: it keeps nothing from others.
const BEYOND: usize = 3;

#[derive(Debug)]
struct Pool {
    limit: u64,
    claimed: AtomicU64,
    pass: Arc<Semaphore>,
}

impl Pool {
    fn new(limit: u64) -> Self {
        Self { limit, claimed: AtomicU64::new(0), pass: Arc::new(Semaphore::new(1)) }
    }
}

#[derive(Debug)]
struct Shared {
    pools: [Pool; 4],
    accounts: Accounts,
    pressure: Pressure,
    waiting: AtomicUsize,
    freed: Notify,
}

/// A shared budget of bytes. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Budget {
    shared: Arc<Shared>,
}

impl Budget {
    /// `limit_bytes` for clients, and an eighth more for replication.
    pub fn new(limit_bytes: u64) -> Self {
        let reserve = limit_bytes / 8;
        let slots = reserve - reserve / 4;
        let shared = Shared {
            pools: [limit_bytes, slots, reserve - slots, u64::MAX].map(Pool::new),
            accounts: Accounts::default(),
            pressure: Pressure::default(),
            waiting: AtomicUsize::new(0),
            freed: Notify::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Bytes claimed now, in all pools. For the meter.
    pub fn claimed_bytes(&self) -> u64 {
        self.shared.pools.iter().map(|pool| pool.claimed.load(Ordering::Relaxed)).sum()
    }

    pub fn limit_bytes(&self) -> u64 {
        self.shared.pools[CLIENTS].limit
    }

    /// What one connection's claims are made with.
    pub fn claimant(&self, ip: IpAddr) -> Claimant {
        self.claimant_of(Some(self.account(ip)))
    }

    fn claimant_of(&self, account: Option<Arc<Account>>) -> Claimant {
        Claimant { of: Arc::new(Of { budget: self.clone(), account }) }
    }

    /// What the connections of one address hold together.
    pub fn account(&self, ip: IpAddr) -> Arc<Account> {
        self.shared.accounts.of(ip.to_canonical())
    }

    /// The addresses of the cluster's other nodes: each gets an equal part of what replication has.
    pub fn set_peers(&self, peers: &[IpAddr]) {
        self.shared.accounts.set_peers(peers, self.shared.pools[PEERS].limit);
    }

    /// An empty claim, to be grown. With an account, it keeps to its address's share.
    pub fn claim(&self, account: Option<Arc<Account>>) -> Claim {
        self.claimant_of(account).claim()
    }

    /// An empty claim with the pass: no other frame exceeds the limits.
    #[cfg(test)]
    pub(crate) async fn claim_of_pass(&self) -> Claim {
        let mut claim = self.claim(None);
        claim.take_pass(self.shared.pools[CLIENTS].pass.clone().acquire_owned().await.ok());
        claim
    }
}

/// Whose bytes claims are, and of which budget.
#[derive(Debug)]
struct Of {
    budget: Budget,
    account: Option<Arc<Account>>,
}

/// What one connection makes its claims with. A request makes six or seven: they count references here, in a
/// cache line of the connection's worker, and not those of the budget and the account, which all workers share.
#[derive(Debug)]
pub struct Claimant {
    of: Arc<Of>,
}

impl Claimant {
    /// An empty claim, to be grown.
    pub fn claim(&self) -> Claim {
        Claim::new(self.of.clone())
    }
}

/// Bytes that belong to one request. Dropping it gives them back.
#[derive(Debug)]
pub struct Claim {
    of: Arc<Of>,
    /// Where its bytes are claimed.
    pool: usize,
    bytes: u64,
    pass: Option<OwnedSemaphorePermit>,
    standing: Standing,
}

impl Claim {
    fn new(of: Arc<Of>) -> Self {
        Self { of, pool: CLIENTS, bytes: 0, pass: None, standing: Standing::default() }
    }

    /// What the claim is for from now on.
    pub fn stand(&mut self, standing: Standing) {
        self.standing = standing;
    }

    pub fn standing(&self) -> Standing {
        self.standing
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn has_pass(&self) -> bool {
        self.pass.is_some()
    }

    /// Whether other claims wait for the `bytes` that a peer makes this node hold: those of its address, or all where
    /// the pool itself is spent.
    pub fn press_on(&self, bytes: u64) -> Press {
        if self.has_pass() {
            return Press::Pass;
        }
        // Nothing is too little to be missed in the reserve.
        let is_worth_it = bytes >= PRESSED_BYTES_MIN || self.is_in_reserve();
        let is_felt = is_worth_it && self.is_pressed();
        if is_felt { Press::Felt } else { Press::None }
    }

    fn is_pressed(&self) -> bool {
        let of_address = self.of.account.as_ref().is_some_and(|account| account.pressure.is_felt());
        of_address || self.of.budget.shared.pressure.is_felt()
    }

    /// Makes the claim at least `bytes` large without waiting. Returns whether there was room.
    pub fn try_grow_to(&mut self, bytes: u64) -> bool {
        let is_granted = self.grows_to(bytes);
        if !is_granted && bytes <= PRESSING_BYTES_MAX {
            self.press();
        }
        is_granted
    }

    /// Makes the claim at least `bytes` large, waiting for others to give back.
    pub async fn grow_to(&mut self, bytes: u64) {
        self.grow(bytes, true).await;
    }

    /// As [`Self::grow_to`], and never beyond the limits, however long it takes.
    pub async fn grow_within_limits(&mut self, bytes: u64) {
        self.grow(bytes, false).await;
    }

    async fn grow(&mut self, bytes: u64, passes: bool) {
        if self.grows_to(bytes) {
            return;
        }
        let shared = self.of.budget.shared.clone();
        let _waits = Waits::new(&shared.waiting);
        // Kept while it waits: its place in the order.
        let mut pass = pin!(shared.pools[self.queue()].pass.clone().acquire_owned());
        loop {
            let mut freed = pin!(shared.freed.notified());
            freed.as_mut().enable();
            if self.grows_to(bytes) {
                return;
            }
            self.press();
            tokio::select! {
                () = freed => {}
                // Not for first bytes: what has not begun holds nothing up.
                pass = pass.as_mut(), if passes && self.may_pass() => self.take_pass(pass.ok()),
                () = tokio::time::sleep(PRESS_EVERY) => {}
            }
        }
    }

    /// Releases everything above `bytes`. A pass stays.
    pub fn shrink_to(&mut self, bytes: u64) {
        let surplus = self.bytes.saturating_sub(bytes);
        self.bytes -= surplus;
        self.give_back(self.pool, surplus);
    }

    /// Passes `bytes` of this claim on to a claim of their own (a frame that is complete takes its share along, and the
    /// pass).
    #[must_use]
    pub fn split(&mut self, bytes: u64) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        let (of, pool, standing) = (self.of.clone(), self.pool, self.standing);
        let part = Self { of, pool, bytes, pass: self.pass.take(), standing };
        if self.pool == BEYOND {
            self.move_to(CLIENTS);
        }
        part
    }

    fn is_in_reserve(&self) -> bool {
        matches!(self.pool, PEERS | STRANGERS)
    }

    /// The part of the reserve that its address may claim.
    fn reserve(&self) -> usize {
        if self.of.account.as_ref().is_none_or(|account| account.slot() > 0) { PEERS } else { STRANGERS }
    }

    /// The pool for whose pass it waits: the other nodes do not stand in the clients' queue.
    fn queue(&self) -> usize {
        if self.standing == Standing::Replication && self.reserve() == PEERS { PEERS } else { CLIENTS }
    }

    fn may_pass(&self) -> bool {
        self.pass.is_none() && (self.bytes > 0 || self.standing != Standing::Unknown)
    }

    /// Moves the claim to the pool for requests that exceed the limits.
    fn take_pass(&mut self, pass: Option<OwnedSemaphorePermit>) {
        self.pass = pass;
        self.move_to(BEYOND);
    }

    fn move_to(&mut self, place: usize) {
        self.add(place, self.bytes);
        self.give_back(self.pool, self.bytes);
        self.pool = place;
    }

    fn press(&self) {
        let pool = &self.of.budget.shared.pools[CLIENTS];
        match &self.of.account {
            // There is room, but not for this address.
            Some(account) if pool.claimed.load(Ordering::Relaxed) < pool.limit / 8 * 7 => {
                account.pressure.press();
            }
            _ => self.of.budget.shared.pressure.press(),
        }
    }

    fn grows_to(&mut self, bytes: u64) -> bool {
        let Some(more) = bytes.checked_sub(self.bytes).filter(|&more| more > 0) else { return true };
        if self.has_pass() {
            self.add(self.pool, more);
            self.bytes = bytes;
            return true;
        }
        let is_replication = self.standing == Standing::Replication;
        if (is_replication || !self.is_in_reserve()) && self.try_add(self.pool, more, bytes) {
            self.bytes = bytes;
            return true;
        }
        // All of it goes into the reserve, or back.
        let other = if self.pool == CLIENTS { self.reserve() } else { CLIENTS };
        if (is_replication || other == CLIENTS) && other != self.pool && self.try_add(other, bytes, bytes) {
            self.give_back(self.pool, self.bytes);
            self.pool = other;
            self.bytes = bytes;
            return true;
        }
        false
    }

    /// Claims `more`, with which the claim has `bytes`, if the limits allow it.
    fn try_add(&self, place: usize, more: u64, bytes: u64) -> bool {
        let pool = &self.of.budget.shared.pools[place];
        if place == PEERS
            && let Some(account) = &self.of.account
        {
            let is_granted = account.try_add_to_slot(place, more, bytes > SLOT_SMALL_BYTES_MAX);
            pool.claimed.fetch_add(if is_granted { more } else { 0 }, Ordering::SeqCst);
            return is_granted;
        }
        let above = if self.standing == Standing::Unknown { pool.limit / 16 } else { 0 };
        let limit = match self.standing {
            Standing::Large if place == CLIENTS => pool.limit - pool.limit / 4,
            _ => pool.limit,
        };
        let held = self.of.account.as_ref().map(|account| account.held(place));
        let room = |claimed: u64| {
            let after = claimed.saturating_add(more);
            let share = SHARE.saturating_mul(limit.saturating_sub(after)).saturating_add(above);
            let fits = after <= limit.saturating_add(above);
            (fits && held.is_none_or(|held| held + more <= share)).then_some(after)
        };
        if pool.claimed.fetch_update(Ordering::SeqCst, Ordering::Relaxed, room).is_err() {
            return false;
        }
        if let Some(account) = &self.of.account {
            account.add(place, more);
        }
        true
    }

    fn add(&self, place: usize, more: u64) {
        self.of.budget.shared.pools[place].claimed.fetch_add(more, Ordering::SeqCst);
        if let Some(account) = &self.of.account {
            account.add(place, more);
        }
    }

    fn give_back(&self, place: usize, bytes: u64) {
        if bytes == 0 {
            return;
        }
        if let Some(account) = &self.of.account {
            account.sub(place, bytes);
        }
        let shared = &self.of.budget.shared;
        shared.pools[place].claimed.fetch_sub(bytes, Ordering::SeqCst);
        // Nothing waits while there is room, so the common path stays a subtraction and a look.
        if shared.waiting.load(Ordering::SeqCst) > 0 {
            shared.freed.notify_waiters();
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.give_back(self.pool, self.bytes);
    }
}

/// Counts a claim that waits.
struct Waits<'a>(&'a AtomicUsize);

impl<'a> Waits<'a> {
    fn new(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::SeqCst);
        Self(waiting)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests;
