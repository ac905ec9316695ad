//! Bytes put together where O_DIRECT can take them from: a journal's round, or a large write into a segment.
//!
//! O_DIRECT wants address, length and position to be multiples of the device's block. Records come in wherever a frame
//! put them, so they are copied once, into this; that copy is the price of going past the page cache, which would copy
//! as well.

/// The journal's rounds begin and end at multiples of this, in memory and in the file.
pub const BLOCK_BYTES: usize = 4096;

/// Grows up to the capacity it was made with and never moves.
#[derive(Debug)]
pub struct BlockBuffer {
    /// Bytes in front of `start` are there for the alignment alone.
    store: Vec<u8>,
    start: usize,
    capacity: usize,
}

impl BlockBuffer {
    pub(crate) fn new(capacity: usize) -> Self {
        let capacity = capacity.next_multiple_of(BLOCK_BYTES);
        let mut store: Vec<u8> = Vec::with_capacity(capacity + BLOCK_BYTES);
        let start = store.as_ptr().align_offset(BLOCK_BYTES);
        assert!(start < BLOCK_BYTES, "a byte's address can be aligned");
        store.resize(start, 0);
        Self { store, start, capacity }
    }

    pub(crate) fn len(&self) -> usize {
        self.store.len() - self.start
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        // More would move the bytes and lose the alignment.
        assert!(self.len() + bytes.len() <= self.capacity, "a buffer never grows past what it was made for");
        self.store.extend_from_slice(bytes);
    }

    /// Bytes that may still be pushed.
    pub(crate) fn room(&self) -> usize {
        self.capacity - self.len()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.store[self.start..]
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.store[self.start..]
    }

    /// Zeros up to the next block; returns how many.
    pub(crate) fn pad(&mut self) -> usize {
        let padding = self.len().next_multiple_of(BLOCK_BYTES) - self.len();
        assert!(self.len() + padding <= self.capacity, "the capacity is a multiple of the block");
        self.store.resize(self.store.len() + padding, 0);
        padding
    }

    pub(crate) fn clear(&mut self) {
        self.store.truncate(self.start);
    }
}
