//! What each partition has in the journal and not yet in its segments, and which partition to write back next.
//!
//! A partition without such a tail costs nothing here. A partition's entries are written back in the order in which
//! they were submitted, a stretch at a time, so that its segments are always a replay of a prefix of the journal.

use std::collections::VecDeque;
use std::sync::Arc;

use barnabas_base::{Map, Offset};

use super::format::records_len;
use super::types::{Entry, EntryKind, JournalPartition, WriteBack, WriteBackOp, WriteBackTicket};

#[derive(Debug, Default)]
pub(super) struct Tails {
    tails: Map<Arc<JournalPartition>, Tail>,
    /// Partitions whose tail is worth writing back by itself.
    ready: VecDeque<Arc<JournalPartition>>,
    /// For each life that is held, oldest first: partitions that had something in it when they were noted.
    lives: VecDeque<(u64, VecDeque<Arc<JournalPartition>>)>,
    /// Record bytes that are not handed out.
    pub staged_bytes: u64,
}

#[derive(Debug, Default)]
struct Tail {
    entries: VecDeque<Pending>,
    /// So many at the front are handed out.
    taken: usize,
    untaken_bytes: u64,
    is_ready: bool,
}

#[derive(Debug)]
struct Pending {
    round: u64,
    /// `None`: handed out, or cut off before it was.
    op: Option<WriteBackOp>,
    bytes: u64,
}

impl Tails {
    pub(super) fn len(&self) -> usize {
        self.tails.len()
    }

    pub(super) fn has(&self, partition: &Arc<JournalPartition>) -> bool {
        self.tails.contains_key(partition)
    }

    /// Notes an entry of round `number`. Returns whether it holds the journal's file until it is written back.
    pub(super) fn push(&mut self, entry: Entry, number: u64) -> bool {
        let leader_epoch = entry.leader_epoch;
        let (op, bytes) = match entry.kind {
            // It is written back already.
            EntryKind::Range { .. } => return false,
            EntryKind::Records { from, end, records } => {
                let bytes = records_len(&records) as u64;
                (WriteBackOp::Append { from, end, leader_epoch, records }, bytes)
            }
            EntryKind::Truncate { end } => (WriteBackOp::Truncate { end }, 0),
            EntryKind::Restart { at } => (WriteBackOp::Restart { at }, 0),
            EntryKind::Remove => (WriteBackOp::Remove, 0),
        };
        let tail = self.tails.entry(entry.partition).or_default();
        self.staged_bytes -= tail.cut_off(&op);
        self.staged_bytes += bytes;
        tail.untaken_bytes += bytes;
        tail.entries.push_back(Pending { round: number, op: Some(op), bytes });
        true
    }

    /// What was recovered of a partition, in the order of its log, as if this process had submitted it; `None` stands
    /// for a range, whose partition is to be looked at before it is forgotten.
    pub(super) fn go_on(&mut self, partition: &Arc<JournalPartition>, round: u64, op: Option<WriteBackOp>) {
        let bytes = match &op {
            Some(WriteBackOp::Append { records, .. }) => records_len(records) as u64,
            _ => 0,
        };
        let tail = self.tails.entry(Arc::clone(partition)).or_default();
        tail.untaken_bytes += bytes;
        self.staged_bytes += bytes;
        tail.entries.push_back(Pending { round, op, bytes });
    }

    /// `partition` has entries in a durable round of this life. `enough`: from so many bytes on it is written back
    /// unpressed.
    pub(super) fn durable(&mut self, partition: &Arc<JournalPartition>, life: u64, enough: u64) {
        let Some(tail) = self.tails.get_mut(partition) else { return };
        if tail.untaken_bytes >= enough && !tail.is_ready {
            tail.is_ready = true;
            self.ready.push_back(Arc::clone(partition));
        }
        self.note_life(partition, life);
    }

    fn note_life(&mut self, partition: &Arc<JournalPartition>, life: u64) {
        let at = self.lives.partition_point(|(known, _)| *known < life);
        if self.lives.get(at).is_none_or(|(known, _)| *known != life) {
            self.lives.insert(at, (life, VecDeque::new()));
        }
        let partitions = &mut self.lives[at].1;
        if partitions.back().is_none_or(|last| last != partition) {
            partitions.push_back(Arc::clone(partition));
        }
    }

    /// Nothing is held in lives before `oldest`.
    pub(super) fn forget_before(&mut self, oldest: u64) {
        while self.lives.front().is_some_and(|(life, _)| *life < oldest) {
            self.lives.pop_front();
        }
    }

    #[cfg(test)]
    pub(super) fn lives(&self) -> usize {
        self.lives.len()
    }

    /// A partition that is ready and not being written back.
    pub(super) fn next_ready(&mut self) -> Option<Arc<JournalPartition>> {
        while let Some(partition) = self.ready.pop_front() {
            let Some(tail) = self.tails.get_mut(&partition) else { continue };
            tail.is_ready = false;
            // One that is being written back is looked at again when that is done.
            if tail.taken == 0 {
                return Some(partition);
            }
        }
        None
    }

    /// A partition that holds the file of life `oldest` and is not being written back.
    pub(super) fn next_holding(
        &mut self,
        oldest: u64,
        life_of: impl Fn(u64) -> Option<u64>,
    ) -> Option<Arc<JournalPartition>> {
        self.forget_before(oldest);
        let (_, partitions) = self.lives.front_mut().filter(|(life, _)| *life == oldest)?;
        while let Some(partition) = partitions.pop_front() {
            let Some(tail) = self.tails.get(&partition) else { continue };
            let front = tail.entries.front().expect("an empty tail is dropped");
            // One that is being written back is noted again when that is done.
            if tail.taken == 0 && life_of(front.round) == Some(oldest) {
                return Some(partition);
            }
        }
        None
    }

    /// Hands out what `partition` has in rounds up to `durable_round`.
    pub(super) fn take(
        &mut self,
        partition: &Arc<JournalPartition>,
        durable_round: u64,
        bytes_max: u64,
    ) -> Option<WriteBack> {
        let tail = self.tails.get_mut(partition)?;
        if tail.taken > 0 {
            return None;
        }
        let (mut ops, mut bytes) = (Vec::new(), 0);
        for pending in &mut tail.entries {
            if pending.round > durable_round || (tail.taken > 0 && bytes + pending.bytes > bytes_max) {
                break;
            }
            tail.taken += 1;
            if let Some(op) = pending.op.take() {
                bytes += pending.bytes;
                ops.push(op);
            }
        }
        tail.untaken_bytes -= bytes;
        self.staged_bytes -= bytes;
        let ticket = WriteBackTicket { partition: Arc::clone(partition), entries: tail.taken };
        (tail.taken > 0).then(|| WriteBack { partition: Arc::clone(partition), ops, bytes, ticket })
    }

    /// What was handed out is written back and synced: calls `release` for the round of each entry.
    pub(super) fn written_back(
        &mut self,
        ticket: &WriteBackTicket,
        enough: u64,
        mut release: impl FnMut(u64),
        life_of: impl Fn(u64) -> Option<u64>,
    ) {
        let tail = self.tails.get_mut(&ticket.partition).expect("what is being written back is remembered");
        assert!(tail.taken == ticket.entries && tail.taken > 0, "each ticket comes back once");
        // Lives are asked for before rounds are released, since a released round is forgotten.
        let next = tail.entries.get(tail.taken).and_then(|next| life_of(next.round));
        for done in tail.entries.drain(..tail.taken) {
            release(done.round);
        }
        tail.taken = 0;
        if tail.entries.is_empty() {
            self.tails.remove(&ticket.partition);
            return;
        }
        if tail.untaken_bytes >= enough && !tail.is_ready {
            tail.is_ready = true;
            self.ready.push_back(Arc::clone(&ticket.partition));
        }
        if let Some(life) = next {
            self.note_life(&ticket.partition, life);
        }
    }
}

impl Tail {
    /// Drops entries that `op` makes worthless before they were handed out: they need not be written back to be
    /// truncated again. They keep their places, as their file must not be reused before `op` itself is durable and
    /// written back. Returns the dropped bytes.
    fn cut_off(&mut self, op: &WriteBackOp) -> u64 {
        let cut_from = match op {
            WriteBackOp::Append { .. } => return 0,
            WriteBackOp::Truncate { end } => *end,
            WriteBackOp::Restart { .. } | WriteBackOp::Remove => Offset(i64::MIN),
        };
        let mut forgotten = 0;
        // Backwards, up to the first that has to stay: what stays may rest on everything before it.
        for pending in self.entries.iter_mut().skip(self.taken).rev() {
            let is_cut = match &pending.op {
                None => true,
                Some(WriteBackOp::Append { from, .. }) => *from >= cut_from,
                Some(WriteBackOp::Truncate { end }) => *end >= cut_from,
                Some(WriteBackOp::Restart { .. } | WriteBackOp::Remove) => cut_from == Offset(i64::MIN),
            };
            if !is_cut {
                break;
            }
            pending.op = None;
            forgotten += std::mem::take(&mut pending.bytes);
        }
        self.untaken_bytes -= forgotten;
        forgotten
    }
}
