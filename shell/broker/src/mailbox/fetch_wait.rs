//! A fetch that waits for data: registered with the partitions that it reads, and woken once they have enough,
//! without polling in between.
//!
//! The fetch (on its connection's worker) makes one [`Waiter`] for its whole wait. Each partition's owner registers
//! it after a read that found too little ([`Waiters::register`]), and counts towards it when records become readable
//! ([`Waiters::arrived`]). A read_committed consumer waits for the last stable offset: records of an open
//! transaction do not count, and its end wakes the fetch, however small the marker. A completed fetch leaves its
//! entries behind; they are swept when a partition's list doubles.

use barnabas_replica::Committed;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use tokio::sync::Notify;

/// One waiting fetch.
#[derive(Debug)]
pub struct Waiter {
    missing_bytes: AtomicI64,
    reads_committed: bool,
    over: AtomicBool,
    signalled: AtomicBool,
    notify: Notify,
}

impl Waiter {
    pub fn new(min_bytes: i64, reads_committed: bool) -> Arc<Self> {
        Arc::new(Self {
            missing_bytes: AtomicI64::new(min_bytes.max(1)),
            reads_committed,
            over: AtomicBool::new(false),
            signalled: AtomicBool::new(false),
            notify: Notify::new(),
        })
    }

    /// How many bytes this fetch still lacks.
    pub fn missing_bytes(&self) -> i64 {
        self.missing_bytes.load(Ordering::Acquire)
    }

    /// Some of what it waits for is there; wakes it once it is enough.
    pub fn add(&self, bytes: i64) {
        if self.missing_bytes.fetch_sub(bytes, Ordering::AcqRel) <= bytes {
            self.wake();
        }
    }

    /// Something has changed that the fetch must hear of: an error, a new leader.
    pub fn wake(&self) {
        if !self.signalled.swap(true, Ordering::AcqRel) {
            self.notify.notify_one();
        }
    }

    pub async fn woken(&self) {
        if !self.signalled.load(Ordering::Acquire) {
            self.notify.notified().await;
        }
    }

    /// Whether anything at all has come since the fetch last read.
    pub fn has_news(&self, min_bytes: i64) -> bool {
        self.signalled.load(Ordering::Acquire) || self.missing_bytes() < min_bytes.max(1)
    }

    /// Ready for another round of reading: what has been counted so far will be read.
    pub fn again(&self, min_bytes: i64) {
        self.missing_bytes.store(min_bytes.max(1), Ordering::Release);
        self.signalled.store(false, Ordering::Release);
    }

    /// Whether it has been woken since it last read.
    pub fn is_woken(&self) -> bool {
        self.signalled.load(Ordering::Acquire)
    }

    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// The fetch is answered: its entries may be swept.
    pub fn finish(&self) {
        self.over.store(true, Ordering::Release);
    }
}

/// The fetches that wait for one partition.
#[derive(Debug, Default)]
pub struct Waiters {
    list: Vec<Arc<Waiter>>,
    sweep_at: usize,
}

impl Waiters {
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn register(&mut self, waiter: &Arc<Waiter>) {
        if self.list.len() >= self.sweep_at {
            self.list.retain(|known| !known.over.load(Ordering::Acquire));
            self.sweep_at = (self.list.len() * 2).max(8);
        }
        if !self.list.iter().any(|known| Arc::ptr_eq(known, waiter)) {
            self.list.push(waiter.clone());
        }
    }

    /// `bytes` more can be read, and so much of what is committed. Entries stay until their fetch is over, or has been
    /// woken.
    pub fn arrived(&mut self, bytes: i64, committed: Committed) {
        self.list.retain(|waiter| {
            if waiter.over.load(Ordering::Acquire) {
                return false;
            }
            match committed {
                _ if !waiter.reads_committed => waiter.add(bytes),
                Committed::Nothing => {}
                Committed::Bytes(bytes) => waiter.add(bytes),
                Committed::Unknown => waiter.wake(),
            }
            !waiter.signalled.load(Ordering::Acquire)
        });
    }

    /// Wakes everyone: the partition has changed hands, failed or gone.
    pub fn wake_all(&mut self) {
        for waiter in self.list.drain(..) {
            waiter.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn enough_bytes_wake_and_too_few_do_not() {
        let waiter = Waiter::new(100, false);
        let mut waiters = Waiters::default();
        waiters.register(&waiter);
        waiters.register(&waiter);
        waiters.arrived(60, Committed::Nothing);
        assert!(waiter.has_news(100) && !waiters.is_empty());
        let early = tokio::time::timeout(std::time::Duration::from_millis(10), waiter.woken()).await;
        assert!(early.is_err());
        waiters.arrived(60, Committed::Nothing);
        waiter.woken().await;
        assert!(waiters.is_empty());
        waiter.again(100);
        assert!(!waiter.has_news(100));
    }

    #[tokio::test]
    async fn the_end_of_a_transaction_wakes_and_its_records_do_not() {
        let waiter = Waiter::new(100, true);
        let mut waiters = Waiters::default();
        waiters.register(&waiter);
        waiters.arrived(1_000, Committed::Nothing);
        waiters.arrived(60, Committed::Bytes(60));
        assert_eq!(waiter.missing_bytes(), 40);
        waiters.arrived(1, Committed::Unknown);
        waiter.woken().await;
        assert!(waiters.is_empty());
    }

    #[test]
    fn fetches_that_are_over_are_swept() {
        let mut waiters = Waiters::default();
        for _ in 0..10_000 {
            let waiter = Waiter::new(1, false);
            waiters.register(&waiter);
            waiter.finish();
        }
        assert!(waiters.list.len() <= 16, "{}", waiters.list.len());
    }
}
