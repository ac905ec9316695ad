//! Transactional ids of conversations and coordinators: as few as are needed at a time, used again, so that Kafka's
//! coordinator does not keep one for each that ever was.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
struct State {
    free: BTreeSet<u32>,
    next: u32,
}

/// Which ids are in use on this node.
#[derive(Debug, Clone)]
pub struct Slots {
    prefix: Arc<str>,
    state: Arc<Mutex<State>>,
}

/// An id, until it is dropped.
#[derive(Debug)]
pub struct Slot {
    slots: Slots,
    number: u32,
}

impl Slots {
    /// `prefix` names the node: ids of two nodes must not be the same.
    pub fn new(prefix: &str) -> Self {
        Self { prefix: prefix.into(), state: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn take(&self) -> Slot {
        let mut state = self.state();
        let number = state.free.pop_first().unwrap_or_else(|| {
            state.next += 1;
            state.next
        });
        Slot { slots: self.clone(), number }
    }
}

impl Slot {
    pub fn transactional_id(&self) -> String {
        format!("{}{}", self.slots.prefix, self.number)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.state().free.insert(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_is_used_again_after_its_conversation() {
        let slots = Slots::new("mq-1-");
        let (first, second) = (slots.take(), slots.take());
        assert_eq!([first.transactional_id(), second.transactional_id()], ["mq-1-1", "mq-1-2"]);
        drop(first);
        assert_eq!(slots.take().transactional_id(), "mq-1-1");
    }
}
