//! What one answer may take in memory, counted before it is built.
//!
//! Entries of an answer whose size depends on more than the request (members of a group, producers of a partition,
//! committed metadata) are counted with [`AnswerRoom::take`] first. Beyond the limit an entry is refused instead of
//! built.
//!
//! Entries whose size depends on the request alone are not counted here: the connection claims a multiple of the
//! decoded request. Long answers that are made from the image go through [`crate::InPieces`] and are never in memory as
//! a whole.
//!
//! Always true:
//! 1. taken ≤ the limit, and every taken byte beyond [`FREE_BYTES`] was lent
//! 2. what was refused counts nothing

use std::cell::Cell;
use std::fmt;

use barnabas_base::ErrorCode;
use barnabas_wire::{Struct, Writer};

use crate::Refusal;

/// What an answer may take without a share of the node's memory budget: most answers are smaller.
pub const FREE_BYTES: u64 = 64 * 1024;
/// The lender is asked for so many bytes at a time.
const STEP_BYTES: u64 = 256 * 1024;
/// A decoded struct takes at most so many times the bytes that it has on the wire, and the encoded answer stands beside
/// it.
const VALUE_BYTES_PER_WIRE_BYTE: usize = 5;

/// Gives an answer its share of the node's memory.
pub trait Lender {
    /// Whether there is room for an answer of `total` bytes. What was lent before is part of it.
    fn lend(&self, total: u64) -> bool;
}

/// Lends whatever is asked for.
#[derive(Debug, Default, Clone, Copy)]
pub struct Unlimited;

impl Lender for Unlimited {
    fn lend(&self, _: u64) -> bool {
        true
    }
}

/// The bytes that one answer may take.
pub struct AnswerRoom<L: ?Sized = dyn Lender> {
    bytes_max: u64,
    taken: Cell<u64>,
    lent: Cell<u64>,
    lender: L,
}

impl<L: ?Sized> fmt::Debug for AnswerRoom<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bytes_max, taken, .. } = self;
        f.debug_struct("AnswerRoom")
            .field("bytes_max", bytes_max)
            .field("taken", taken)
            .finish_non_exhaustive()
    }
}

/// Why an entry has no place in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TooLarge {
    /// The answer reaches `answer.bytes.max`, which is this many bytes.
    Answer(u64),
    /// The node's memory for requests and answers is spent.
    Memory,
}

impl TooLarge {
    /// The error code: INVALID_REQUEST for an answer that is too large at any time, `retriable` while memory is short.
    pub fn code(self, retriable: ErrorCode) -> ErrorCode {
        match self {
            Self::Answer(_) => ErrorCode::InvalidRequest,
            Self::Memory => retriable,
        }
    }

    pub fn refusal(self, retriable: ErrorCode) -> Refusal {
        let message = match self {
            Self::Answer(max) => format!(
                "The answer would take more than answer.bytes.max={max} bytes. Ask for fewer entries in one request."
            ),
            Self::Memory => {
                "The broker's memory for requests and answers (queued.max.request.bytes) is spent. Try again."
                    .to_owned()
            }
        };
        Refusal::new(self.code(retriable), message)
    }
}

impl AnswerRoom<Unlimited> {
    /// Room without a limit, for answers of a fixed size.
    pub fn unlimited() -> Self {
        Self::new(u64::MAX, Unlimited)
    }
}

impl<L: Lender> AnswerRoom<L> {
    pub fn new(bytes_max: u64, lender: L) -> Self {
        Self { bytes_max, taken: Cell::new(0), lent: Cell::new(FREE_BYTES), lender }
    }

    pub fn lender(&self) -> &L {
        &self.lender
    }
}

impl<L: Lender + ?Sized> AnswerRoom<L> {
    pub fn taken_bytes(&self) -> u64 {
        self.taken.get()
    }

    /// Counts `bytes` that the answer is about to take.
    ///
    /// # Errors
    /// They have no place. Nothing was counted.
    pub fn take(&self, bytes: usize) -> Result<(), TooLarge> {
        let total = self.taken.get().saturating_add(bytes as u64);
        if total > self.bytes_max {
            return Err(TooLarge::Answer(self.bytes_max));
        }
        self.reserve(bytes)?;
        self.taken.set(total);
        Ok(())
    }

    /// What must be lent for `bytes` more, as far as the answer may grow at all. `None`: it is lent, or free.
    pub fn missing(&self, bytes: usize) -> Option<u64> {
        let total = self.taken.get().saturating_add(bytes as u64).min(self.bytes_max);
        (total > self.lent.get()).then(|| total.next_multiple_of(STEP_BYTES))
    }

    /// Has lent what `bytes` more need, and counts nothing.
    ///
    /// # Errors
    /// The node's memory is spent.
    pub fn reserve(&self, bytes: usize) -> Result<(), TooLarge> {
        let Some(wanted) = self.missing(bytes) else { return Ok(()) };
        if !self.lender.lend(wanted) {
            return Err(TooLarge::Memory);
        }
        self.lent.set(wanted);
        Ok(())
    }

    /// Takes back what was counted for something that is now counted by itself.
    pub fn give_back(&self, bytes: usize) {
        self.taken.set(self.taken.get().saturating_sub(bytes as u64));
    }

    /// Counts a struct that is about to be put into the answer once more, or that an owner has just handed over.
    ///
    /// # Errors
    /// As for [`Self::take`]; the struct is to be dropped then.
    pub fn take_struct(&self, value: &impl Struct, version: i16) -> Result<(), TooLarge> {
        let mut w = Writer::new();
        // What cannot be written is refused where the answer is.
        let _ = value.write(&mut w, version);
        self.take(w.len().saturating_mul(VALUE_BYTES_PER_WIRE_BYTE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[derive(Default)]
    struct Noting {
        asked: RefCell<Vec<u64>>,
        has: Cell<u64>,
    }

    impl Lender for Noting {
        fn lend(&self, total: u64) -> bool {
            self.asked.borrow_mut().push(total);
            total <= self.has.get()
        }
    }

    #[test]
    fn small_answer_asks_for_no_share() {
        let room = AnswerRoom::new(1 << 20, Noting::default());
        assert_eq!(room.take(60_000), Ok(()));
        assert!(room.lender().asked.borrow().is_empty());
    }

    #[test]
    fn answer_beyond_its_limit_is_refused_and_not_counted() {
        let room = AnswerRoom::new(100_000, Unlimited);
        assert_eq!(room.take(90_000), Ok(()));
        assert_eq!(room.take(10_001), Err(TooLarge::Answer(100_000)));
        assert_eq!(room.take(usize::MAX), Err(TooLarge::Answer(100_000)));
        assert_eq!((room.take(10_000), room.taken_bytes()), (Ok(()), 100_000));
    }

    #[test]
    fn node_without_memory_refuses_with_the_retriable_code() {
        let room = AnswerRoom::new(1 << 30, Noting::default());
        room.lender().has.set(STEP_BYTES);
        assert_eq!(room.take(200_000), Ok(()));
        let refused = room.take(100_000).unwrap_err();
        assert_eq!(refused.code(ErrorCode::CoordinatorLoadInProgress), ErrorCode::CoordinatorLoadInProgress);
        assert_eq!(*room.lender().asked.borrow(), [STEP_BYTES, 2 * STEP_BYTES]);
        assert_eq!(room.taken_bytes(), 200_000);
    }

    #[test]
    fn reserved_bytes_are_lent_and_not_counted() {
        let room = AnswerRoom::new(1 << 20, Noting::default());
        room.lender().has.set(2 * STEP_BYTES);
        assert_eq!((room.reserve(60_000), room.missing(60_000)), (Ok(()), None));
        assert_eq!((room.missing(300_000), room.reserve(300_000)), (Some(2 * STEP_BYTES), Ok(())));
        assert_eq!((room.missing(400_000), room.taken_bytes()), (None, 0));
        assert_eq!(room.reserve(600_000), Err(TooLarge::Memory));
        assert_eq!(room.missing(usize::MAX), Some(1 << 20), "no more than the answer may have");
        assert_eq!(room.take(400_000), Ok(()));
        room.give_back(300_000);
        assert_eq!((room.take(400_000), room.taken_bytes()), (Ok(()), 500_000));
        assert_eq!(*room.lender().asked.borrow(), [2 * STEP_BYTES, 3 * STEP_BYTES]);
    }
}
