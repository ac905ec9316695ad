//! An allocator that ends the process where input makes us allocate too much: the oracle for "nothing is reserved on the word
//! of a length".
//!
//! It is installed by the two binaries, not here, so that the library stays usable under other allocators.

#![allow(unsafe_code)] // A global allocator cannot be written without.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The largest single allocation: the hard cap on what a batch may inflate to, and a growing vector's doubling of it.
pub const ONE_BYTES_MAX: usize = 160 << 20;
/// Everything together.
pub const ALL_BYTES_MAX: usize = 512 << 20;

static HELD: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator with a limit.
#[derive(Debug)]
pub struct Limited;

// SAFETY: every call goes to `System` with the caller's own arguments; the counting around it touches no memory of theirs.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: the caller keeps `GlobalAlloc::alloc`'s contract.
        unsafe { System.alloc(layout) }
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
    let held = HELD.fetch_add(bytes, Ordering::Relaxed) + bytes;
    if bytes > ONE_BYTES_MAX || held > ALL_BYTES_MAX {
        // No formatting here: it would allocate.
        eprintln!("allocation beyond the limit");
        std::process::abort();
    }
}
