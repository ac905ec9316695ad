//! What was handed in for other brokers and has no answer yet: how much of it, and for how long the oldest has waited.
//!
//! Kept for the metrics (shell/broker/src/server/exporter/collect): each queue's depth and age. It bounds nothing;
//! the couriers and the links do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// See the file's header.
#[derive(Debug, Default)]
pub struct Awaited {
    /// By number: the first is the oldest.
    since: Mutex<BTreeMap<u64, Instant>>,
}

impl Awaited {
    /// Counts one entry until the returned value is dropped.
    pub fn begin(self: &Arc<Self>) -> Entry {
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        let number = since.last_key_value().map_or(0, |(number, _)| number + 1);
        since.insert(number, barnabas_clock::now());
        Entry { of: self.clone(), number }
    }

    /// How many wait, and the age of the oldest; zero where nothing does.
    pub fn depth_and_age(&self) -> (usize, Duration) {
        let since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        let oldest =
            since.first_key_value().map_or(Duration::ZERO, |(_, since)| barnabas_clock::since(*since));
        (since.len(), oldest)
    }
}

/// One thing that waits.
#[derive(Debug)]
pub struct Entry {
    of: Arc<Awaited>,
    number: u64,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.of.since.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_counted_until_it_is_dropped_and_the_first_is_the_oldest() {
        let awaited = Arc::new(Awaited::default());
        assert_eq!(awaited.depth_and_age(), (0, Duration::ZERO));
        let first = awaited.begin();
        std::thread::sleep(Duration::from_millis(20));
        let second = awaited.begin();
        let (depth, age) = awaited.depth_and_age();
        assert!(depth == 2 && age >= Duration::from_millis(20), "{depth} {age:?}");
        drop(first);
        let (depth, age) = awaited.depth_and_age();
        assert!(depth == 1 && age < Duration::from_secs(20), "{depth} {age:?}");
        let third = awaited.begin();
        drop(second);
        drop(third);
        assert_eq!(awaited.depth_and_age(), (0, Duration::ZERO));
    }
}
