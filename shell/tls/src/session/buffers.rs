//! The buffers of a thread that all its sessions share, and what a session keeps between two calls.

use bytes::BufMut;
use std::cell::RefCell;

/// At most so much plaintext is encrypted into the thread's buffer at once: eight full records.
pub const OUT_PLAIN_MAX: usize = 128 << 10;
/// Header, type and tag of each record, and room for key updates.
const OUT_BYTES: usize = OUT_PLAIN_MAX + 8 * 64 + 1024;
/// A record that has begun, and a large read.
const IN_BYTES: usize = (80 << 10) + (256 << 10) + (8 << 10);

thread_local! {
    static IN: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static OUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The thread's buffer for ciphertext that comes in. It grows to what its largest read asked for and stays.
pub fn with_in<T>(bytes: usize, work: impl FnOnce(&mut [u8]) -> T) -> T {
    IN.with_borrow_mut(|buffer| {
        let bytes = bytes.min(IN_BYTES);
        if buffer.len() < bytes {
            buffer.resize(bytes, 0);
        }
        work(buffer)
    })
}

/// The thread's buffer for ciphertext that goes out: room for [`OUT_PLAIN_MAX`] bytes of plaintext in eight pieces.
pub fn with_out<T>(work: impl FnOnce(&mut [u8]) -> T) -> T {
    OUT.with_borrow_mut(|buffer| {
        if buffer.is_empty() {
            buffer.resize(OUT_BYTES, 0);
        }
        work(buffer)
    })
}

/// Bytes that wait to be taken from the front. Without any it holds no memory.
#[derive(Debug, Default)]
pub struct Received {
    bytes: Vec<u8>,
    taken: usize,
}

impl Received {
    pub fn len(&self) -> usize {
        self.bytes.len() - self.taken
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Makes room at the end, has it filled, and keeps as much of it as was filled.
    pub fn fill(&mut self, room: usize, fill: impl FnOnce(&mut [u8]) -> usize) {
        let held = self.bytes.len();
        self.bytes.resize(held + room, 0);
        let filled = fill(&mut self.bytes[held..]);
        self.bytes.truncate(held + filled);
    }

    pub fn skip(&mut self, count: usize) {
        self.taken += count;
        if self.taken == self.bytes.len() {
            *self = Self::default();
        }
    }

    pub fn take(&mut self, into: &mut impl BufMut, most: usize) -> usize {
        let count = self.len().min(most).min(into.remaining_mut());
        into.put_slice(&self.bytes()[..count]);
        self.skip(count);
        count
    }
}
