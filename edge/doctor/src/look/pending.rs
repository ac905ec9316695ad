//! What a look waits for, for who shows it. Cheap to clone.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Debug, Default)]
struct Waits {
    next: u64,
    by_number: BTreeMap<u64, (String, Instant)>,
}

/// See the file's header.
#[derive(Debug, Clone, Default)]
pub struct Pending(Arc<Mutex<Waits>>);

/// It is waited for until this is dropped.
#[derive(Debug)]
pub struct Waiting {
    pending: Pending,
    number: u64,
}

impl Pending {
    pub fn begin(&self, what: String) -> Waiting {
        let mut waits = self.waits();
        waits.next += 1;
        let number = waits.next;
        waits.by_number.insert(number, (what, Instant::now()));
        Waiting { pending: self.clone(), number }
    }

    /// What has been waited for that long, in words; `None`: nothing.
    pub fn longer_than(&self, least: Duration) -> Option<String> {
        let waits = self.waits();
        let late = waits.by_number.values().filter(|(_, since)| since.elapsed() >= least);
        let words: Vec<&str> = late.map(|(what, _)| what.as_str()).collect();
        (!words.is_empty()).then(|| words.join(", "))
    }

    fn waits(&self) -> MutexGuard<'_, Waits> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.pending.waits().by_number.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_waited_for_is_named_until_it_ends() {
        let pending = Pending::default();
        let first = pending.begin("node 1 (Metadata)".to_owned());
        let second = pending.begin("node 2 (Metadata)".to_owned());
        let words = |least| pending.longer_than(least);
        assert_eq!(words(Duration::ZERO).as_deref(), Some("node 1 (Metadata), node 2 (Metadata)"));
        assert_eq!(words(Duration::from_secs(60)), None);
        drop(first);
        assert_eq!(words(Duration::ZERO).as_deref(), Some("node 2 (Metadata)"));
        drop(second);
        assert_eq!(words(Duration::ZERO), None);
    }
}
