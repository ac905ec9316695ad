//! How much is read for one request and in one turn of the worker while others wait for it.
//!
//! Reading 16 MiB takes ten milliseconds, in which every append of the worker waits. A consumer gets what it asks for
//! until another command has waited behind a read. For a while after that it gets less, and asks again.
//!
//! Always true:
//! 1. a request gets what its `fetch.min.bytes` asks for, as far as it is there
//! 2. in a turn, requests are taken up until [`TURN_BYTES`] have been read

use barnabas_metrics::Stamp;

/// What one request reads while others wait: a consumer's `max.partition.fetch.bytes` by default.
const SHARED_BYTES: usize = 1 << 20;
const TURN_BYTES: usize = 4 << 20;
/// Shorter reads hold nothing up.
const LONG_BYTES: usize = SHARED_BYTES / 2;
/// How long others are expected to come again.
const SHARED_NS: u64 = 200_000_000;

#[derive(Debug, Default)]
pub struct ReadTurn {
    bytes: usize,
    begun: Option<Stamp>,
    /// When others waited last.
    shared_at: Option<Stamp>,
    is_shared: bool,
}

impl ReadTurn {
    pub fn begin(&mut self, now: Stamp) {
        (self.bytes, self.begun) = (0, Some(now));
        self.is_shared = self.shared_at.is_some_and(|at| now.since(at) < SHARED_NS);
    }

    /// Its commands are done. `is_alone`: there was one, and no other has come meanwhile.
    pub fn end(&mut self, is_alone: bool) {
        if self.bytes >= LONG_BYTES && !is_alone {
            self.shared_at = self.begun;
        }
    }

    /// What a request may read that asks for `wanted` bytes and waits for `min`.
    pub fn bound(&self, wanted: usize, min: usize) -> usize {
        if self.is_shared { wanted.min(SHARED_BYTES.max(min)) } else { wanted }
    }

    pub fn read(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// Whether what else has come waits for the next turn.
    pub fn is_over(&self) -> bool {
        self.bytes >= TURN_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(turn: &mut ReadTurn, bytes: usize, is_alone: bool) -> usize {
        turn.begin(Stamp::now());
        let bound = turn.bound(bytes, 1);
        turn.read(bound);
        turn.end(is_alone);
        bound
    }

    #[test]
    fn request_gets_what_it_asks_for_until_others_wait() {
        let mut read = ReadTurn::default();
        assert_eq!(turn(&mut read, 16 << 20, true), 16 << 20);
        assert_eq!(turn(&mut read, 1000, false), 1000, "nothing waits for little");
        assert_eq!(turn(&mut read, 16 << 20, false), 16 << 20);
        assert_eq!(turn(&mut read, 16 << 20, true), SHARED_BYTES, "others have waited");
        assert_eq!(read.bound(16 << 20, 5 << 20), 5 << 20, "what it waits for is not withheld");
        assert_eq!(read.bound(1000, 1), 1000);
    }

    #[test]
    fn turn_is_over_after_so_many_bytes() {
        let mut turn = ReadTurn::default();
        turn.begin(Stamp::now());
        turn.read(TURN_BYTES - 1);
        assert!(!turn.is_over());
        turn.read(1);
        assert!(turn.is_over());
        turn.begin(Stamp::now());
        assert!(!turn.is_over());
    }
}
