//! Whether a worker had better write its round by itself.
//!
//! If only one worker writes, each round wakes two threads just to say "write this" and "it is written": a third of
//! the cost of a small request (lab/bench/JOURNAL.md). Instead the worker writes the round itself. It is blocked
//! meanwhile, so it does so only if the device is fast, the round is small, and no other worker wrote during the
//! last rounds. It also does not if its next round follows at once: then a producer keeps several batches in flight,
//! the thread would gather them into fewer rounds, and a saved round is worth more than two saved wake-ups.

use std::time::Duration;

/// Larger rounds are left to the thread: the worker has better things to do while they are written.
pub const BYTES_MAX: u64 = 128 << 10;
/// A write that takes longer than this held its worker up.
const SLOW: Duration = Duration::from_millis(3);
/// An append sooner than this after a round was already on its way while the round was written. A producer with one
/// batch in flight takes longer: its answer and its next batch each wake a thread.
const AT_ONCE: Duration = Duration::from_micros(80);
/// Rounds of one worker alone before it may write, at least and at most.
const ROUNDS_MIN: u32 = 8;
const ROUNDS_MAX: u32 = 1024;

/// What the last rounds were like.
#[derive(Debug)]
pub struct InlineWrites {
    /// Rounds in a row in which, and during whose write, one worker handed in.
    rounds: u32,
    /// From how many on the worker writes.
    wanted: u32,
}

impl Default for InlineWrites {
    fn default() -> Self {
        Self { rounds: 0, wanted: ROUNDS_MIN }
    }
}

impl InlineWrites {
    /// `linger`: how long after a round the thread waits for the next one. `since_written`: how long ago the last round
    /// was written; `None`: there was none.
    pub fn may_write(&self, linger: Duration, since_written: Option<Duration>) -> bool {
        let pause = linger.min(AT_ONCE);
        self.rounds >= self.wanted && since_written.is_none_or(|since| since >= pause)
    }

    /// A round is written. `workers`: a bit for each that handed in for it or while it was written. `took`: how long
    /// the write took, where a worker did it.
    pub fn note(&mut self, workers: u64, took: Option<Duration>) {
        match took {
            // The slower the device, the rarer is it tried: one slow write in twelve is borne.
            Some(took) if took > SLOW => {
                self.wanted = (self.wanted * 2).min(ROUNDS_MAX);
                self.rounds = 0;
            }
            Some(_) => self.wanted = (self.wanted - self.wanted.div_ceil(16)).max(ROUNDS_MIN),
            None => {}
        }
        if workers.count_ones() > 1 {
            self.rounds = 0;
        } else {
            self.rounds = self.rounds.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_is_alone_for_some_rounds_writes_until_another_comes() {
        let mut inline = InlineWrites::default();
        for _ in 0..ROUNDS_MIN {
            assert!(!inline.may_write(Duration::ZERO, None));
            inline.note(0b100, None);
        }
        assert!(inline.may_write(Duration::ZERO, None));
        let at_once = Some(AT_ONCE - Duration::from_micros(1));
        assert!(!inline.may_write(Duration::from_millis(1), at_once), "the thread would linger");
        assert!(inline.may_write(Duration::from_millis(1), Some(AT_ONCE)));
        inline.note(0b1000, Some(Duration::from_micros(100)));
        assert!(inline.may_write(Duration::ZERO, None), "another one at another time is alone too");
        inline.note(0b1100, Some(Duration::from_micros(100)));
        assert!(!inline.may_write(Duration::ZERO, None));
    }

    #[test]
    fn a_slow_device_is_tried_more_and_more_rarely() {
        let mut inline = InlineWrites::default();
        let (mut rounds, mut writes) = (0, 0);
        while rounds < 100_000 {
            rounds += 1;
            let took = inline.may_write(Duration::ZERO, None).then_some(Duration::from_millis(5));
            writes += usize::from(took.is_some());
            inline.note(1, took);
        }
        assert!((5..150).contains(&writes), "{writes}");
        // Quick again: it soon writes as if nothing had been.
        for _ in 0..10_000 {
            let took = inline.may_write(Duration::ZERO, None).then_some(Duration::from_micros(100));
            inline.note(1, took);
        }
        assert_eq!(inline.wanted, ROUNDS_MIN);
    }
}
