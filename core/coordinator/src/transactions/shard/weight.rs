//! What transactional ids take of the node's memory, and whether there is room for more.
//!
//! Only what a client wishes is refused: a new transactional id, and partitions that join a transaction. Transactions
//! that are open go on to their end.

use barnabas_base::{ErrorCode, Text};

use super::{No, TransactionShard};
use crate::framework::Committed;
use crate::framework::Room;
use crate::transactions::transaction::Transaction;

/// A transactional id is charged with so many bytes from the start: a few partitions may join its transactions even
/// when the node holds all that it may.
const CHARGED: usize = 1_024;
/// What it takes at least, and a partition in a transaction besides its topic's name.
const ID: usize = 448;
const PARTITION: usize = 56;

impl TransactionShard {
    /// What the transactional ids hold, and refusals for want of room.
    pub fn room(&self) -> &Room {
        &self.room
    }

    /// Bytes that the node's other shards hold now.
    pub fn others_hold(&mut self, bytes: usize) {
        self.room.others_hold(bytes);
    }

    /// Whether the node may hold the next step of a transactional id; `None`: the id itself, with nothing in it.
    pub(super) fn find_room(&mut self, id: &Text, next: Option<&Transaction>) -> Result<(), No> {
        let entry = self.entries.get(id);
        let before = entry.map_or(0, |entry| entry.weight);
        let steps = entry.into_iter().flat_map(|entry| entry.transaction.steps().flatten());
        let now = weigh(id, steps.chain(next));
        if self.room.has(before, now, self.config.memory_bytes_max) {
            return Ok(());
        }
        self.room.refuse_for_node(self.config.memory_bytes_max);
        Err(ErrorCode::CoordinatorNotAvailable.into())
    }

    /// Changes what is known of a transactional id. One of which nothing is left goes.
    pub(super) fn transaction_changes(
        &mut self,
        id: &Text,
        change: impl FnOnce(&mut Committed<Transaction>),
    ) {
        let Some(entry) = self.entries.get_mut(id) else { return };
        let before = entry.weight;
        change(&mut entry.transaction);
        if entry.transaction.is_gone() {
            self.room.change(before, 0);
            self.entries.remove(id);
            return;
        }
        entry.weight = weigh(id, entry.transaction.steps().flatten());
        let now = entry.weight;
        self.room.change(before, now);
    }
}

/// Of everything that is known of a transactional id: what is on disk, and what is on its way.
pub(crate) fn weigh<'a>(id: &str, steps: impl Iterator<Item = &'a Transaction>) -> usize {
    let partitions = steps.map(|step| {
        let bytes = step.partitions.iter().map(|partition| PARTITION + partition.topic.len()).sum::<usize>();
        // Those that await their markers are held apart.
        if step.state.is_prepared() { 2 * bytes } else { bytes }
    });
    id.len() + CHARGED.max(ID + partitions.sum::<usize>())
}
