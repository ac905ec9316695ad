//! What the offset index and the time index have in common: entries of equal size in rising order, the newest of them
//! not yet written out.
//!
//! Indexes can be rebuilt from their segment, so they are never waited for: the active segment's newest entries are
//! held in memory and written in pieces. They are read on demand and never mapped.

use crate::disk::{DiskError, DiskFile};

/// Entries are written out once they fill this much: one write for some hundred entries, and a bound on memory per log.
const PENDING_BYTES_MAX: usize = 4096;
/// A range of this many bytes is read at once instead of being halved further.
const SEARCH_READ_BYTES: usize = 4096;

/// The entries of an index: so many in the file, the rest here. `N` is an entry's size.
#[derive(Debug, Clone, Default)]
pub(crate) struct IndexEntries<const N: usize> {
    in_file: u32,
    pending: Vec<u8>,
}

impl<const N: usize> IndexEntries<N> {
    /// An index whose entries are all in its file.
    pub(crate) fn in_file(entries: u32) -> Self {
        Self { in_file: entries, pending: Vec::new() }
    }

    pub(crate) fn count(&self) -> u32 {
        self.in_file + (self.pending.len() / N) as u32
    }

    /// Whether none has been written out yet, so that there may be no file.
    pub(crate) fn is_file_empty(&self) -> bool {
        self.in_file == 0
    }

    /// The length of a file that holds all of them.
    pub(crate) fn bytes(&self) -> u64 {
        u64::from(self.count()) * N as u64
    }

    pub(crate) fn push(&mut self, entry: [u8; N]) {
        self.pending.extend_from_slice(&entry);
    }

    pub(crate) fn is_due(&self) -> bool {
        self.pending.len() >= PENDING_BYTES_MAX
    }

    /// Writes the pending entries into `file`.
    pub(crate) fn write_out(&mut self, file: &dyn DiskFile) -> Result<(), DiskError> {
        if !self.pending.is_empty() {
            file.write_at(u64::from(self.in_file) * N as u64, &[&self.pending])?;
            self.in_file = self.count();
            self.pending = Vec::new();
        }
        Ok(())
    }

    /// Forgets all but the first `count` entries.
    pub(crate) fn cut_to(&mut self, count: u32) {
        let pending = count.saturating_sub(self.in_file) as usize * N;
        self.pending.truncate(pending);
        self.in_file = self.in_file.min(count);
    }

    /// How many entries from the front on satisfy `holds`, which holds for a front part of the index and for nothing
    /// after.
    ///
    /// `file` is `None` where no file exists yet. A file that is shorter than it should be counts as empty: the caller
    /// then begins at the front of the segment, which is slower and never wrong.
    pub(crate) fn count_while(
        &self,
        file: Option<&dyn DiskFile>,
        holds: impl Fn(&[u8; N]) -> bool,
    ) -> Result<u32, DiskError> {
        let pending = partition_point::<N>(&self.pending, &holds);
        if pending > 0 {
            return Ok(self.in_file + pending);
        }
        match file {
            Some(file) => count_in_file(file, self.in_file, holds),
            None => Ok(0),
        }
    }

    /// The entry at `at`, which must be below [`Self::count`]; `None` where the file is shorter than it should be.
    pub(crate) fn get(&self, file: Option<&dyn DiskFile>, at: u32) -> Result<Option<[u8; N]>, DiskError> {
        if at >= self.in_file {
            let from = (at - self.in_file) as usize * N;
            return Ok(self.pending.get(from..from + N).map(|entry| entry.try_into().expect("N bytes")));
        }
        match file {
            Some(file) => read_entry(file, at),
            None => Ok(None),
        }
    }
}

fn read_entry<const N: usize>(file: &dyn DiskFile, at: u32) -> Result<Option<[u8; N]>, DiskError> {
    let mut entry = [0; N];
    let got = file.read_at(u64::from(at) * N as u64, &mut entry)?;
    Ok((got == N).then_some(entry))
}

fn count_in_file<const N: usize>(
    file: &dyn DiskFile,
    entries: u32,
    holds: impl Fn(&[u8; N]) -> bool,
) -> Result<u32, DiskError> {
    let (mut low, mut high) = (0, entries);
    while (high - low) as usize * N > SEARCH_READ_BYTES {
        let middle = low + (high - low) / 2;
        match read_entry::<N>(file, middle)? {
            Some(entry) if holds(&entry) => low = middle + 1,
            Some(_) => high = middle,
            None => return Ok(0),
        }
    }
    let mut block = [0; SEARCH_READ_BYTES];
    let block = &mut block[..(high - low) as usize * N];
    let got = file.read_at(u64::from(low) * N as u64, block)?;
    if got < block.len() {
        return Ok(0);
    }
    Ok(low + partition_point::<N>(block, &holds))
}

fn partition_point<const N: usize>(entries: &[u8], holds: &impl Fn(&[u8; N]) -> bool) -> u32 {
    let (entries, _) = entries.as_chunks::<N>();
    entries.partition_point(|entry| holds(entry)) as u32
}
