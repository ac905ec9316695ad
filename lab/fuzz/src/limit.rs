//! An allocator that ends the process where input makes us hold too much: the oracle for "nothing is reserved on the
//! word of a length".
//!
//! Each target states its bound ([`Bound`]): what `n` bytes of input may make the process hold at once, beyond what it
//! held before. It is installed by the two binaries, not here, so that the library stays usable under other allocators.
//! One thread runs targets.

#![allow(unsafe_code)] // A global allocator cannot be written without.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// What an input of `n` bytes may make the process hold: `fixed + per_byte × n` bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    pub fixed: usize,
    pub per_byte: usize,
}

impl Bound {
    pub const fn new(fixed: usize, per_byte: usize) -> Self {
        Self { fixed, per_byte }
    }

    pub const fn bytes(self, input: usize) -> usize {
        self.fixed.saturating_add(self.per_byte.saturating_mul(input))
    }
}

static HELD: AtomicUsize = AtomicUsize::new(0);
/// Of [`HELD`]: the most since the last look, and where the process ends.
static MOST: AtomicUsize = AtomicUsize::new(0);
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// The system's allocator with a limit.
#[derive(Debug)]
pub struct Limited;

// SAFETY: every call goes to `System` with the caller's own arguments; the counting around it touches no memory of
// theirs.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: the caller keeps `GlobalAlloc::alloc`'s contract.
        unsafe { System.alloc(layout) }
    }

    // The default would fill with zeros what the system gives as zeros.
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: the caller keeps `GlobalAlloc::alloc_zeroed`'s contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps `GlobalAlloc::dealloc`'s contract.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        take(new_size);
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps `GlobalAlloc::realloc`'s contract.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

fn take(bytes: usize) {
    let held = HELD.fetch_add(bytes, Ordering::Relaxed).wrapping_add(bytes);
    MOST.fetch_max(held, Ordering::Relaxed);
    if held > LIMIT.load(Ordering::Relaxed) {
        // No formatting here: it would allocate.
        LIMIT.store(usize::MAX, Ordering::Relaxed);
        eprintln!("allocation beyond the target's limit");
        std::process::abort();
    }
}

/// Does `work` on an input of so many bytes. Ends the process where that holds more than `bound` allows; returns how
/// much it held.
pub fn within(bound: Bound, input: usize, work: impl FnOnce()) -> usize {
    let before = HELD.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    LIMIT.store(before.saturating_add(bound.bytes(input)), Ordering::Relaxed);
    work();
    LIMIT.store(usize::MAX, Ordering::Relaxed);
    MOST.load(Ordering::Relaxed).saturating_sub(before)
}
