//! Recycled read buffers: a buffer whose frames are all processed is filled again, instead of
//! memory that was never touched.
//!
//! Fresh memory is expensive: a large frame costs more in page faults than in copying (lab/bench/JOURNAL.md).
//! Each thread keeps its own buffers. Frames may still refer to a kept buffer; it is reused once they do not.
//!
//! Always true:
//! 1. a thread keeps at most so many bytes, in at most so many buffers, as [`SMALL`] and [`LARGE`] say
//! 2. a buffer that is handed out has at least the size asked for, and shares no byte with a frame

use bytes::BytesMut;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::RangeInclusive;

/// Up to 16 KiB: a request of one small batch, or a few. Freed and taken again each time, they cost the allocator as
/// much as the decoding.
const SMALL: Bounds = Bounds { size: 4 << 10..=16 << 10, bytes_max: 256 << 10, count_max: 16 };
const LARGE: Bounds = Bounds { size: 32 << 10..=8 << 20, bytes_max: 8 << 20, count_max: 64 };

thread_local! {
    static SPARE: RefCell<[Spare; 2]> = const { RefCell::new([Spare::new(SMALL), Spare::new(LARGE)]) };
}

/// The limits for one kind of buffers.
struct Bounds {
    size: RangeInclusive<usize>,
    bytes_max: usize,
    count_max: usize,
}

struct Spare {
    bounds: Bounds,
    /// With their sizes, the one put last at the end.
    kept: VecDeque<(usize, BytesMut)>,
    bytes: usize,
}

/// An empty buffer with room for `bytes`, and the size it was made with.
pub fn take(bytes: usize) -> (BytesMut, usize) {
    // Few sizes, so that one fits another's place; at most twice what was asked for.
    let size = bytes.next_power_of_two();
    let found = SPARE.with_borrow_mut(|spare| of(spare, size).and_then(|spare| spare.take(size)));
    (found.unwrap_or_else(|| BytesMut::with_capacity(size)), size)
}

/// Keeps a buffer that was allocated with `size`, whether or not frames still refer to it.
pub fn put(mut buffer: BytesMut, size: usize) {
    buffer.clear();
    SPARE.with_borrow_mut(|spare| {
        if let Some(spare) = of(spare, size) {
            spare.put(buffer, size);
        }
    });
}

fn of(spare: &mut [Spare], size: usize) -> Option<&mut Spare> {
    spare.iter_mut().find(|spare| spare.bounds.size.contains(&size))
}

impl Spare {
    const fn new(bounds: Bounds) -> Self {
        Self { bounds, kept: VecDeque::new(), bytes: 0 }
    }

    /// The most recently used free buffer: it is the most likely to be in the processor's caches.
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
        while self.bytes > self.bounds.bytes_max || self.kept.len() > self.bounds.count_max {
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
    fn a_small_buffer_comes_back_too() {
        let (mut buffer, size) = take(4_096);
        let place = buffer.as_ptr();
        buffer.extend_from_slice(&[1; 100]);
        let frame = buffer.split().freeze();
        put(buffer, size);
        assert_ne!(take(4_096).0.as_ptr(), place, "it is in use");
        drop(frame);
        assert_eq!(take(4_000).0.as_ptr(), place);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        for _ in 0..100 {
            for size in [1 << 20, 32 << 10, 16 << 10, 4 << 10] {
                put(BytesMut::with_capacity(size), size);
            }
        }
        put(BytesMut::with_capacity(16 << 20), 16 << 20);
        put(BytesMut::with_capacity(100), 100);
        SPARE.with_borrow(|spare| {
            for Spare { bounds, kept, bytes } in spare {
                assert_eq!(kept.iter().map(|(size, _)| size).sum::<usize>(), *bytes);
                assert!(*bytes <= bounds.bytes_max && kept.len() <= bounds.count_max);
                assert!(kept.iter().all(|(size, _)| bounds.size.contains(size)));
            }
        });
    }
}
