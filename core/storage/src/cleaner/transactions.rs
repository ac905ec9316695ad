//! Which transactions the batches of a log belong to, followed from front to back: what was aborted may go, and a
//! marker may go once nothing of its transaction is left.
//!
//! Source: Kafka `CleanedTransactionMetadata`.

use barnabas_base::{Map, Offset, ProducerId, Set};
use barnabas_wire::records::{BatchHeader, ControlType};

use crate::segment::transaction_index::AbortedTransaction;

#[derive(Debug, Default)]
pub(super) struct Transactions {
    /// By first offset, the next one last.
    to_come: Vec<AbortedTransaction>,
    /// Begun and not over, and whether a batch of it was seen.
    aborted: Map<ProducerId, (AbortedTransaction, bool)>,
    /// Producers of whose open transaction a batch was seen that was not aborted.
    committed: Set<ProducerId>,
    /// Aborted transactions of which something is left, markers included, since they were last asked for.
    left: Vec<AbortedTransaction>,
}

impl Transactions {
    /// All that may concern the batches to come; those that ended below `from` are left out.
    pub fn new(aborted: &[AbortedTransaction], from: Offset) -> Self {
        let mut to_come: Vec<_> =
            aborted.iter().filter(|aborted| aborted.last_offset >= from).copied().collect();
        to_come.sort_by_key(|aborted| std::cmp::Reverse(aborted.first_offset));
        Self { to_come, ..Self::default() }
    }

    /// A batch of records. Returns whether its transaction was aborted.
    pub fn on_batch(&mut self, batch: &BatchHeader) -> bool {
        self.begin_up_to(batch.last_offset());
        if !batch.attributes.is_transactional() {
            return false;
        }
        match self.aborted.get_mut(&batch.producer_id) {
            Some((_, seen)) => {
                *seen = true;
                true
            }
            None => {
                self.committed.insert(batch.producer_id);
                false
            }
        }
    }

    /// A control batch and what it says; `None`: it is empty, or says something from the future. Returns whether
    /// nothing of its transaction is left, so that it may go too.
    pub fn on_control(&mut self, batch: &BatchHeader, says: Option<ControlType>) -> bool {
        self.begin_up_to(batch.last_offset());
        match says {
            None => batch.record_count == 0,
            Some(ControlType::Abort) => match self.aborted.remove(&batch.producer_id) {
                Some((aborted, true)) => {
                    self.left.push(aborted);
                    false
                }
                _ => true,
            },
            Some(ControlType::Commit) => !self.committed.remove(&batch.producer_id),
            Some(_) => false,
        }
    }

    fn begin_up_to(&mut self, offset: Offset) {
        while let Some(next) = self.to_come.pop_if(|next| next.first_offset <= offset) {
            self.aborted.entry(next.producer_id).or_insert((next, false));
        }
    }

    /// What belongs into the transaction index of the segment that was written since this was last asked.
    pub fn take_left(&mut self) -> Vec<AbortedTransaction> {
        std::mem::take(&mut self.left)
    }
}
