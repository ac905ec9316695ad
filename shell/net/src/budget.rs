//! The memory that all requests in flight may take together.
//!
//! A connection claims bytes as its frame grows and gives them back when the request is answered. When the budget is
//! spent, connections stop reading: the sender's own socket fills and it slows down.
//!
//! What producers hold may wait for followers (`acks=all`), who acknowledge by asking for more. Did they queue for the same bytes, both
//! would wait until the producers' time is over. So above the limit there is an eighth more for those who ask for records
//! ([`Standing`]), which no producer gets.
//!
//! Always true:
//! 1. claimed ≤ limit + an eighth + one frame: a frame that has begun may exceed the limit only while it holds the single pass, so
//!    that half-read frames that hold the whole budget cannot wait for each other for ever
//! 2. what was claimed is given back when the claim is dropped

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// How far above the limit a claim may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Standing {
    #[default]
    Ordinary,
    /// The first bytes of a frame: what it asks for is not known. A sixteenth.
    Unknown,
    /// Records are asked for, which others may wait for. An eighth.
    Reader,
}

#[derive(Debug)]
struct Shared {
    limit: u64,
    claimed: AtomicU64,
    freed: Notify,
    pass: Arc<Semaphore>,
}

/// A shared budget of bytes. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Budget {
    shared: Arc<Shared>,
}

impl Budget {
    pub fn new(limit_bytes: u64) -> Self {
        let pass = Arc::new(Semaphore::new(1));
        let shared = Shared { limit: limit_bytes, claimed: AtomicU64::new(0), freed: Notify::new(), pass };
        Self { shared: Arc::new(shared) }
    }

    /// Bytes claimed now. For the meter.
    pub fn claimed_bytes(&self) -> u64 {
        self.shared.claimed.load(Ordering::Relaxed)
    }

    pub fn limit_bytes(&self) -> u64 {
        self.shared.limit
    }

    /// An empty claim with the pass: nobody else exceeds the limit with a frame that has begun.
    #[cfg(test)]
    pub(crate) async fn claim_of_pass(&self) -> Claim {
        let mut claim = self.claim();
        claim.pass = self.shared.pass.clone().acquire_owned().await.ok();
        claim
    }

    /// An empty claim, to be grown.
    pub fn claim(&self) -> Claim {
        Claim { budget: self.clone(), bytes: 0, pass: None, standing: Standing::Ordinary }
    }

    fn try_add(&self, bytes: u64, standing: Standing) -> bool {
        let limit = self.shared.limit;
        let limit = match standing {
            Standing::Ordinary => limit,
            Standing::Unknown => limit.saturating_add(limit / 16),
            Standing::Reader => limit.saturating_add(limit / 8),
        };
        let room = |claimed: u64| (claimed + bytes <= limit).then_some(claimed + bytes);
        self.shared.claimed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).is_ok()
    }
}

/// Bytes that belong to one request. Dropping it gives them back.
#[derive(Debug)]
pub struct Claim {
    budget: Budget,
    bytes: u64,
    pass: Option<OwnedSemaphorePermit>,
    standing: Standing,
}

impl Claim {
    /// What the claim is for from now on.
    pub fn stand(&mut self, standing: Standing) {
        self.standing = standing;
    }

    /// Makes the claim at least `bytes` large without waiting. Returns whether there was room.
    pub fn try_grow_to(&mut self, bytes: u64) -> bool {
        let Some(more) = bytes.checked_sub(self.bytes) else { return true };
        if more == 0 || self.budget.try_add(more, self.standing) {
            self.bytes = self.bytes.max(bytes);
            return true;
        }
        if self.pass.is_some() {
            self.budget.shared.claimed.fetch_add(more, Ordering::Relaxed);
            self.bytes = bytes;
            return true;
        }
        false
    }

    /// Makes the claim at least `bytes` large, waiting for others to give back.
    pub async fn grow_to(&mut self, bytes: u64) {
        while !self.try_grow_to(bytes) {
            let shared = self.budget.shared.clone();
            let freed = shared.freed.notified();
            tokio::select! {
                () = freed => {}
                pass = shared.pass.clone().acquire_owned() => self.pass = pass.ok(),
            }
        }
    }

    /// Passes `bytes` of this claim on to a claim of their own (a frame that is complete takes its share along).
    #[must_use]
    pub fn split(&mut self, bytes: u64) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Self { budget: self.budget.clone(), bytes, pass: self.pass.take(), standing: self.standing }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.bytes > 0 {
            let before = self.budget.shared.claimed.fetch_sub(self.bytes, Ordering::Relaxed);
            // Nobody waits while there is room, so the common path stays one subtraction.
            if before + 64 * 1024 >= self.budget.shared.limit {
                self.budget.shared.freed.notify_waiters();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_is_given_back() {
        let budget = Budget::new(100);
        let mut one = budget.claim();
        assert!(one.try_grow_to(60));
        assert!(one.try_grow_to(50));
        let mut two = budget.claim();
        assert!(!two.try_grow_to(50));
        assert_eq!(budget.claimed_bytes(), 60);
        let part = one.split(20);
        drop(one);
        assert!(two.try_grow_to(50));
        drop(part);
        drop(two);
        assert_eq!(budget.claimed_bytes(), 0);
    }

    #[test]
    fn who_asks_for_records_has_a_share_that_producers_cannot_take() {
        let budget = Budget::new(1600);
        let (mut producer, mut unknown, mut reader) = (budget.claim(), budget.claim(), budget.claim());
        unknown.stand(Standing::Unknown);
        reader.stand(Standing::Reader);
        assert!(producer.try_grow_to(1600) && !producer.try_grow_to(1601));
        assert!(unknown.try_grow_to(100) && !unknown.try_grow_to(101));
        assert!(reader.try_grow_to(100) && !reader.try_grow_to(101));
        drop((producer, unknown, reader));
        assert_eq!(budget.claimed_bytes(), 0);
    }

    #[tokio::test]
    async fn half_read_frames_do_not_wait_for_each_other_for_ever() {
        let budget = Budget::new(100);
        let (mut one, mut two) = (budget.claim(), budget.claim());
        assert!(one.try_grow_to(50) && two.try_grow_to(50));
        one.grow_to(90).await;
        assert!(!two.try_grow_to(51));
        drop(one);
        two.grow_to(90).await;
    }
}
