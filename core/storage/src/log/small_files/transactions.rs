//! Finding aborted transactions again in the batches, after a stop that may have lost the index of them.
//!
//! What is open at a place follows from the newest producer snapshot before it and the batches in between. That is
//! looked up only once a marker shows that transactions are in use.
//!
//! Source: Kafka `ProducerStateManager.lastStableOffset`, `LogSegment.updateTxnIndex`.

use barnabas_base::{Map, Offset, ProducerId};
use barnabas_wire::records::{Batch, EndTxnMarker};
use bytes::Bytes;

use crate::disk::file_pool::{FileKind, FilePool};
use crate::error::StorageError;
use crate::log::Log;
use crate::segment::batch::BatchHeader;
use crate::segment::transaction_index::AbortedTransaction;
use crate::segment::walker::Wanted;

/// Transactions as the batches from an offset on show them.
#[derive(Debug)]
pub(in crate::log) struct Transactions {
    from: Offset,
    /// Whether `open` knows what was open at `from`.
    knows_before: bool,
    open: Map<ProducerId, Offset>,
    aborted: Vec<AbortedTransaction>,
}

impl Transactions {
    pub(in crate::log) fn from(from: Offset) -> Self {
        Self { from, knows_before: false, open: Map::default(), aborted: Vec::new() }
    }

    /// Those that ended since this was last asked.
    pub(in crate::log) fn take_aborted(&mut self) -> Vec<AbortedTransaction> {
        std::mem::take(&mut self.aborted)
    }

    /// The next batch of `log`.
    pub(in crate::log) fn observe(
        &mut self,
        log: &mut Log,
        files: &mut FilePool,
        header: &BatchHeader,
        bytes: Bytes,
    ) -> Result<(), StorageError> {
        if !header.is_transactional() {
            return Ok(());
        }
        if header.is_control() && !self.knows_before {
            self.knows_before = true;
            // No marker came yet, so what was open before is open still.
            self.open.extend(log.open_transactions_at(files, self.from)?);
        }
        if let Some(aborted) = step(&mut self.open, header, bytes) {
            self.aborted.push(aborted);
        }
        Ok(())
    }
}

/// Follows one transactional batch. Returns the transaction that it aborts.
fn step(
    open: &mut Map<ProducerId, Offset>,
    header: &BatchHeader,
    bytes: Bytes,
) -> Option<AbortedTransaction> {
    if !header.is_control() {
        open.entry(header.producer_id).or_insert(header.base_offset);
        return None;
    }
    let marker = Batch::new(bytes).ok().and_then(|batch| EndTxnMarker::of_batch(&batch).ok().flatten())?;
    let first_offset = open.remove(&header.producer_id)?;
    let last_stable_offset = open.values().copied().min().unwrap_or(header.next_offset());
    (!marker.commit).then_some(AbortedTransaction {
        producer_id: header.producer_id,
        first_offset,
        last_offset: header.last_offset,
        last_stable_offset,
    })
}

impl Log {
    /// The transactions that were open when the log ended at `at`.
    fn open_transactions_at(
        &mut self,
        files: &mut FilePool,
        at: Offset,
    ) -> Result<Map<ProducerId, Offset>, StorageError> {
        let (from, producers) =
            self.read_producer_snapshot(files, at)?.unwrap_or((self.first_segment_base(), Vec::new()));
        let open = producers.iter().filter(|entry| entry.current_txn_first_offset.get() >= 0);
        let mut open: Map<ProducerId, Offset> =
            open.map(|entry| (entry.producer_id, entry.current_txn_first_offset)).collect();
        self.scan_headers(files, from, at, &mut |bytes| {
            if let Ok(header) = BatchHeader::parse(&bytes)
                && header.is_transactional()
            {
                step(&mut open, &header, bytes);
            }
        })?;
        Ok(open)
    }

    /// Notes the aborted transactions whose markers lie at `from` or later, of none of which the index knows: for who
    /// has appended batches without a word about their producers, as what is replayed from a journal.
    ///
    /// # Errors
    /// The directory has failed.
    pub fn find_aborted(&mut self, files: &mut FilePool, from: Offset) -> Result<(), StorageError> {
        let mut batches = Vec::new();
        self.scan_headers(files, from, self.end(), &mut |bytes| {
            if let Ok(header) = BatchHeader::parse(&bytes)
                && header.is_transactional()
                && header.base_offset >= from
            {
                batches.push((header, bytes));
            }
        })?;
        let mut transactions = Transactions::from(from);
        for (header, bytes) in batches {
            transactions.observe(self, files, &header, bytes)?;
        }
        for aborted in transactions.take_aborted() {
            self.append_aborted(files, aborted)?;
        }
        Ok(())
    }

    /// Rebuilds a segment's index from its batches. Returns what is in it.
    pub(in crate::log) fn rebuild_transaction_index(
        &mut self,
        files: &mut FilePool,
        at: usize,
    ) -> Result<Vec<AbortedTransaction>, StorageError> {
        let base = self.segments[at].base;
        let mut transactions = Transactions::from(base);
        let mut walker = self.walker(files, at, 0, false)?.wanting(Wanted::Control);
        while let Some((_, header, bytes)) = self.next_batch(&mut walker, at)? {
            transactions.observe(self, files, &header, bytes)?;
        }
        self.write_transaction_index(files, base, &transactions.aborted)?;
        Ok(transactions.aborted)
    }

    /// Derives again what a start derived while batches from `from` on could not be read: producer snapshots behind it
    /// go, and so do aborted transactions whose markers are staged; the transaction indexes are written from the
    /// batches. The caller rebuilds the state of producers.
    ///
    /// # Errors
    /// A segment cannot be read, or the directory has failed.
    pub fn derive_again(&mut self, files: &mut FilePool, from: Offset) -> Result<(), StorageError> {
        let Some(first) = self.segment_of(from) else { return Ok(()) };
        self.remove_snapshots(files, |offset| offset > from)?;
        self.vouched.cut(from);
        let mut transactions = Transactions::from(self.segments[first].base);
        for at in first..self.segments.len() {
            let base = self.segments[at].base;
            let mut walker = self.walker(files, at, 0, false)?.wanting(Wanted::Control);
            while let Some((_, header, bytes)) = self.next_batch(&mut walker, at)? {
                transactions.observe(self, files, &header, bytes)?;
            }
            self.write_transaction_index(files, base, &transactions.take_aborted())?;
        }
        if let Some(tail) = &mut self.tail {
            tail.aborted.clear();
        }
        Ok(())
    }

    /// Makes `aborted` the contents of a segment's index, unless they are that already. What is right of them stays
    /// where it is: the disk may be full, or the power go, and the next start believes what it finds there.
    pub(in crate::log) fn write_transaction_index(
        &mut self,
        files: &mut FilePool,
        base: Offset,
        aborted: &[AbortedTransaction],
    ) -> Result<(), StorageError> {
        let contents: Vec<u8> = aborted.iter().flat_map(AbortedTransaction::encode).collect();
        let file = match self.existing_file(files, base, FileKind::TransactionIndex)? {
            None if contents.is_empty() => return Ok(()),
            None => {
                self.dirty.dir = true;
                self.file(files, base, FileKind::TransactionIndex)?
            }
            Some(file) => file,
        };
        let found = file.read_bytes(0, file.len()? as usize)?;
        let same = found.iter().zip(&contents).take_while(|(found, wanted)| found == wanted).count();
        if same < contents.len() {
            file.write_at(same as u64, &[&contents[same..]])?;
        }
        if found.len() > contents.len() {
            file.set_len(contents.len() as u64)?;
        }
        self.mark_dirty(files, base, FileKind::TransactionIndex, file);
        Ok(())
    }
}
