//! Read buffers that go round: a buffer whose frames are all done with is filled again, instead of memory that nobody has used yet.
//!
//! Fresh memory is dear: a large frame costs more in page faults than in copying (lab/bench/JOURNAL.md). Each thread keeps its own; what is
//! kept may still be in use by frames, and is handed out when it no longer is.
//!
//! Always true:
//! 1. a thread keeps at most [`KEPT_BYTES_MAX`], in at most [`KEPT_MAX`] buffers
//! 2. a buffer that is handed out has at least the size asked for, and shares no byte with a frame

use bytes::BytesMut;
use std::cell::RefCell;
use std::collections::VecDeque;

const KEPT_BYTES_MAX: usize = 8 << 20;
const KEPT_MAX: usize = 64;
/// Smaller ones are nothing to the allocator.
const POOLED_BYTES_MIN: usize = 32 << 10;

thread_local! {
    static SPARE: RefCell<Spare> = RefCell::default();
}

#[derive(Default)]
struct Spare {
    /// With their sizes, the one put last at the end.
    kept: VecDeque<(usize, BytesMut)>,
    bytes: usize,
}

/// An empty buffer with room for `bytes`, and the size it was made with.
pub fn take(bytes: usize) -> (BytesMut, usize) {
    if bytes < POOLED_BYTES_MIN {
        return (BytesMut::with_capacity(bytes), bytes);
    }
    // Few sizes, so that one fits another's place; at most twice what was asked for.
    let size = bytes.next_power_of_two();
    let found = SPARE.with_borrow_mut(|spare| spare.take(size));
    (found.unwrap_or_else(|| BytesMut::with_capacity(size)), size)
}

/// Keeps a buffer that was made with `size`, whatever of it is still in use.
pub fn put(mut buffer: BytesMut, size: usize) {
    buffer.clear();
    if (POOLED_BYTES_MIN..=KEPT_BYTES_MAX).contains(&size) {
        SPARE.with_borrow_mut(|spare| spare.put(buffer, size));
    }
}

impl Spare {
    /// The newest that nobody uses: it is the likeliest to be in the processor's caches.
    fn take(&mut self, size: usize) -> Option<BytesMut> {
        let is_free = |(known, buffer): &mut (usize, BytesMut)| *known == size && buffer.try_reclaim(size);
        let index = self.kept.iter_mut().rposition(is_free)?;
        let (_, buffer) = self.kept.remove(index)?;
        self.bytes -= size;
        Some(buffer)
    }

    fn put(&mut self, buffer: BytesMut, size: usize) {
        self.bytes += size;
        self.kept.push_back((size, buffer));
        while self.bytes > KEPT_BYTES_MAX || self.kept.len() > KEPT_MAX {
            let Some((size, _)) = self.kept.pop_front() else { return };
            self.bytes -= size;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_when_its_frames_are_gone() {
        let (mut buffer, size) = take(40_000);
        assert_eq!(size, 65_536);
        let place = buffer.as_ptr();
        buffer.extend_from_slice(&[1; 50_000]);
        let frame = buffer.split_to(30_000).freeze();
        put(buffer, size);
        let (other, _) = take(40_000);
        assert_ne!(other.as_ptr(), place, "it is in use");
        assert_eq!(&frame[..], &[1; 30_000]);
        drop(frame);
        let (again, _) = take(40_000);
        assert_eq!((again.as_ptr(), again.len()), (place, 0));
        assert!(again.capacity() >= size);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        for _ in 0..100 {
            put(BytesMut::with_capacity(1 << 20), 1 << 20);
            put(BytesMut::with_capacity(32 << 10), 32 << 10);
        }
        put(BytesMut::with_capacity(16 << 20), 16 << 20);
        put(BytesMut::with_capacity(100), 100);
        SPARE.with_borrow(|spare| {
            let sum: usize = spare.kept.iter().map(|(size, _)| size).sum();
            assert_eq!(sum, spare.bytes);
            assert!(sum <= KEPT_BYTES_MAX && spare.kept.len() <= KEPT_MAX);
            assert!(spare.kept.iter().all(|(size, _)| (POOLED_BYTES_MIN..=KEPT_BYTES_MAX).contains(size)));
        });
    }
}
