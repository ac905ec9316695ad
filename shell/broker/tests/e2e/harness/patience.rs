//! Waiting for what comes by itself, and for so long that only what never comes fails a test.

use std::time::{Duration, Instant};

pub const PATIENCE: Duration = Duration::from_secs(60);

/// Tries until there is something.
pub fn until<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = attempt() {
            return found;
        }
        assert!(started.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub fn eventually(what: &str, is_so: impl FnMut() -> bool) {
    assert!(within_patience(is_so), "not within {PATIENCE:?}: {what}");
}

/// Whether it became so in time. For tests that say what they saw instead.
pub fn within_patience(mut is_so: impl FnMut() -> bool) -> bool {
    let started = Instant::now();
    while !is_so() {
        if started.elapsed() > PATIENCE {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}
