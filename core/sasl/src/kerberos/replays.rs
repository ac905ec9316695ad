//! Authenticators that were taken lately. One that comes a second time is a replay.
//!
//! An authenticator is taken while its time is within the clock skew, so it is remembered until it is out of that:
//! twice the skew at most. The memory is bounded: where it is full of authenticators that count, no further client is
//! taken until the oldest of them is over. A client without a ticket cannot fill it: only valid messages are noted.

use barnabas_base::{Map, TimestampMs};
use std::collections::VecDeque;

/// Authenticators that are remembered: 200,000 logins within ten minutes, about 20 MB.
pub const REMEMBERED_MAX: usize = 200_000;

/// What an authenticator's digest is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    New,
    Replayed,
    /// It cannot be remembered, so it cannot be taken.
    Full,
}

/// See the file's header.
#[derive(Debug, Default)]
pub struct Replays {
    until: Map<[u8; 16], TimestampMs>,
    /// In the order in which they were taken.
    order: VecDeque<([u8; 16], TimestampMs)>,
}

impl Replays {
    /// Notes an authenticator, by a digest of its bytes, that is taken until then at the latest.
    pub fn note(&mut self, digest: [u8; 16], until: TimestampMs, now: TimestampMs) -> Seen {
        while let Some((oldest, end)) = self.order.front()
            && *end < now
        {
            self.until.remove(oldest);
            self.order.pop_front();
        }
        if self.until.contains_key(&digest) {
            return Seen::Replayed;
        }
        if self.order.len() >= REMEMBERED_MAX {
            return Seen::Full;
        }
        self.until.insert(digest, until);
        self.order.push_back((digest, until));
        Seen::New
    }

    pub fn len(&self) -> usize {
        self.order.len()
    }

    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authenticator_that_comes_twice_is_a_replay_until_its_time_is_over() {
        let mut replays = Replays::default();
        assert_eq!(replays.note([1; 16], TimestampMs(100), TimestampMs(0)), Seen::New);
        assert_eq!(replays.note([1; 16], TimestampMs(100), TimestampMs(100)), Seen::Replayed);
        assert_eq!(replays.note([2; 16], TimestampMs(200), TimestampMs(101)), Seen::New);
        assert_eq!(replays.len(), 1);
    }

    #[test]
    fn memory_that_is_full_takes_no_authenticator_and_empties_again() {
        let mut replays = Replays::default();
        let digest = |number: usize| {
            let mut digest = [0; 16];
            digest[..8].copy_from_slice(&(number as u64).to_be_bytes());
            digest
        };
        for number in 0..REMEMBERED_MAX {
            assert_eq!(replays.note(digest(number), TimestampMs(10), TimestampMs(0)), Seen::New);
        }
        assert_eq!(replays.note([255; 16], TimestampMs(10), TimestampMs(0)), Seen::Full);
        assert_eq!(replays.note(digest(0), TimestampMs(10), TimestampMs(0)), Seen::Replayed);
        assert_eq!(replays.note([255; 16], TimestampMs(20), TimestampMs(11)), Seen::New);
        assert_eq!(replays.len(), 1);
    }
}
