//! A value of which two views exist: what is on disk, and what will be if every batch that is under way gets there.
//!
//! Kafka keeps timelines with snapshots for the same purpose (`TimelineHashMap`). Here each value remembers its own
//! changes, so one failed batch is reverted alone, and an unchanged value costs 8 bytes more than itself.
//!
//! Always true:
//! 1. `committed` has changed only by [`Committed::commit`] or while loading
//! 2. the changes under way are in the order of their batches

use super::BatchId;

/// Changes under way. There is mostly one.
#[derive(Debug, Clone, PartialEq)]
struct Changes<V> {
    /// The newest one.
    last: (BatchId, Option<V>),
    /// Those before it, oldest first.
    before: Vec<(BatchId, Option<V>)>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Committed<V> {
    committed: Option<V>,
    // Boxed: nearly every value has none, and there are millions of values.
    changes: Option<Box<Changes<V>>>,
}

impl<V> Default for Committed<V> {
    fn default() -> Self {
        Self { committed: None, changes: None }
    }
}

impl<V> Committed<V> {
    /// A value read from the log.
    pub fn loaded(value: V) -> Self {
        Self { committed: Some(value), changes: None }
    }

    /// Another writer's value is on disk. Changes under way come after it.
    pub fn settle(&mut self, value: Option<V>) {
        self.committed = value;
    }

    /// What is on disk: the only thing that clients may see.
    pub fn committed(&self) -> Option<&V> {
        self.committed.as_ref()
    }

    /// What will be on disk if nothing fails: what decisions about further records are based on.
    pub fn latest(&self) -> Option<&V> {
        match &self.changes {
            Some(changes) => changes.last.1.as_ref(),
            None => self.committed(),
        }
    }

    /// What is on disk and what is on its way, one after the other: `None` for nothing.
    pub fn steps(&self) -> impl Iterator<Item = Option<&V>> {
        let changes = self.changes.as_deref().into_iter();
        let changes = changes.flat_map(|changes| changes.before.iter().chain([&changes.last]));
        std::iter::once(self.committed()).chain(changes.map(|(_, value)| value.as_ref()))
    }

    /// `value` (or nothing) is on its way in `batch`.
    pub fn change(&mut self, batch: BatchId, value: Option<V>) {
        let change = (batch, value);
        let Some(changes) = &mut self.changes else {
            self.changes = Some(Box::new(Changes { last: change, before: Vec::new() }));
            return;
        };
        assert!(changes.last.0 <= batch, "batches out of order");
        let before = std::mem::replace(&mut changes.last, change);
        if before.0 != batch {
            changes.before.push(before);
        }
    }

    /// `batch` is on disk.
    pub fn commit(&mut self, batch: BatchId) {
        if let Some(value) = self.take(batch) {
            self.committed = value;
        }
    }

    /// `batch` never got there: as if the change had not been made.
    pub fn revert(&mut self, batch: BatchId) {
        self.take(batch);
    }

    /// Whether anything is on its way.
    pub fn is_changing(&self) -> bool {
        self.changes.is_some()
    }

    /// Neither on disk nor on the way: the entry may be dropped.
    pub fn is_gone(&self) -> bool {
        self.committed.is_none() && self.changes.is_none()
    }

    fn take(&mut self, batch: BatchId) -> Option<Option<V>> {
        let changes = self.changes.as_mut()?;
        if let Some(at) = changes.before.iter().position(|(id, _)| *id == batch) {
            return Some(changes.before.remove(at).1);
        }
        if changes.last.0 != batch {
            return None;
        }
        let value = changes.last.1.take();
        match changes.before.pop() {
            Some(last) => changes.last = last,
            None => self.changes = None,
        }
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_shows_once_it_is_on_disk() {
        let mut value = Committed::loaded(1);
        value.change(BatchId(7), Some(2));
        assert_eq!((value.committed(), value.latest()), (Some(&1), Some(&2)));
        value.commit(BatchId(7));
        assert_eq!((value.committed(), value.latest()), (Some(&2), Some(&2)));
    }

    #[test]
    fn a_failed_change_takes_back_nothing_else() {
        let mut value = Committed::loaded(1);
        value.change(BatchId(7), Some(2));
        value.change(BatchId(8), None);
        value.revert(BatchId(7));
        assert_eq!((value.committed(), value.latest()), (Some(&1), None));
        value.commit(BatchId(8));
        assert!(value.is_gone());
    }

    #[test]
    fn within_one_batch_the_last_change_counts() {
        let mut value = Committed::default();
        value.change(BatchId(1), Some(1));
        value.change(BatchId(1), Some(2));
        value.revert(BatchId(1));
        assert!(value.is_gone());
    }
}
