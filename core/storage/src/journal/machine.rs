//! [`Journal`]: what the committer of a log directory asks what to write, and tells what has become of it.
//!
//! The committer's day: [`Journal::submit`] all that has arrived; [`Journal::take_round`]; write the round; hand it
//! back to [`Journal::round_durable`] and tell the partitions; ask [`Journal::next_write_back`], write back, sync,
//! [`Journal::written_back`]. While a round is on its way the next one is filled, so rounds grow by themselves as
//! the load does.

use std::sync::Arc;

use barnabas_base::{DirectoryId, Offset};

use super::error::JournalError;
use super::format::{ROUND_HEADER_BYTES, RoundHeader, entry_bytes, push_entry, records_len};
use super::ring::Ring;
use super::scan::Recovered;
use super::stays::Stays;
use super::tails::Tails;
use super::types::{
    DurableEnd, Entry, EntryKind, Figures, JournalConfig, JournalPartition, Micros, Refused, Round,
    RoundDone, Take, WriteBack, WriteBackTicket,
};
use crate::disk::block_buffer::{BLOCK_BYTES, BlockBuffer};

/// The journal of one log directory. See the header of the folder.
#[derive(Debug)]
pub struct Journal {
    config: JournalConfig,
    directory: DirectoryId,
    opening: u64,
    /// The opening before.
    continues: u64,
    ring: Ring,
    tails: Tails,
    stays: Stays,
    open: OpenRound,
    /// For the next open round, unless it is on its way.
    spare: Option<BlockBuffer>,
    in_flight: Option<u64>,
    durable_round: u64,
    durable_life: u64,
    durable_at: Option<Micros>,
    previous_checksum: u32,
    state: State,
    /// Small pieces are written back as well.
    writes_back_all: bool,
    /// Whether a crash right after the newest durable round would leave nothing to replay.
    leaves_nothing: bool,
    figures: Figures,
}

/// The round that is being filled.
#[derive(Debug)]
struct OpenRound {
    number: u64,
    buffer: BlockBuffer,
    entries: u32,
    holds: u32,
    record_bytes: u64,
    ends: Vec<DurableEnd>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The first round of this opening is not durable yet, or a later one that says which stays ended or began. The
    /// first is written even if it is empty.
    Opening,
    Open,
    /// Takes nothing more; everything is written back, then a last round says so.
    Closing,
    Closed,
    /// A write or sync failed.
    Failed,
}

impl Journal {
    /// Goes on in the files that `recovered` was read from, and with what is left in it, as if this process had
    /// submitted that: it holds its files until it is written back. The first round is due at once; until it is
    /// durable, nothing that cannot be replayed over may be done to the directory's logs: no truncation, no
    /// retention, no large append.
    ///
    /// `opening`: a fresh random number, so that nothing an earlier process left half-written can pass for a round of
    /// this one.
    ///
    /// # Errors
    /// [`JournalError::NoRoom`]: every file may still be needed. With nothing left in `recovered` there is always room.
    pub fn open(config: JournalConfig, recovered: &Recovered, opening: u64) -> Result<Self, JournalError> {
        assert!(config.files >= 3, "one file is written, one is written back, one is kept back");
        assert!(
            (config.file_bytes as usize).is_multiple_of(BLOCK_BYTES)
                && config.file_bytes >= config.round_bytes_max,
            "a file holds whole blocks, and the largest round"
        );
        // Files keep the length that they were made with: of two lengths one would look cut off.
        let file_bytes = recovered.file_bytes.filter(|bytes| *bytes >= config.round_bytes_max);
        let config = JournalConfig { file_bytes: file_bytes.unwrap_or(config.file_bytes), ..config };
        let ring = ring_of(&config, recovered)?;
        let capacity = config.round_bytes_max as usize;
        let mut journal = Self {
            open: OpenRound::new(recovered.next_round, BlockBuffer::new(capacity)),
            spare: Some(BlockBuffer::new(capacity)),
            config,
            directory: recovered.directory,
            opening,
            continues: recovered.last.map_or(0, |(opening, _)| opening),
            ring,
            tails: Tails::default(),
            stays: Stays::of(recovered),
            in_flight: None,
            durable_round: recovered.next_round.saturating_sub(1),
            durable_life: recovered.newest_life(),
            durable_at: None,
            previous_checksum: recovered.last.map_or(0, |(_, checksum)| checksum),
            state: State::Opening,
            writes_back_all: false,
            leaves_nothing: false,
            figures: Figures::default(),
        };
        journal.go_on(recovered);
        journal.submit_stays();
        Ok(journal)
    }

    /// Puts as many words on stays into the round as it has room for.
    fn submit_stays(&mut self) {
        while let Some(entry) = self.stays.next() {
            let done = self.put(entry);
            if !self.stays.submitted(done) {
                return;
            }
        }
    }

    fn go_on(&mut self, recovered: &Recovered) {
        let Some(first) = recovered.places.first().map(|(number, _)| *number) else { return };
        let mut holds = vec![0_u32; recovered.places.len()];
        for replay in &recovered.partitions {
            assert!(replay.only_appends(), "what does more than append is replayed first");
            let range = replay.synced_round.map(|round| (round, None));
            let items = replay.items.iter().map(|item| (item.round, Some(item.append())));
            let mut noted = None;
            for (round, op) in range.into_iter().chain(items) {
                self.tails.go_on(&replay.partition, round, op);
                let at = (round - first) as usize;
                holds[at] += 1;
                let life = recovered.places[at].1.life;
                if noted.replace(life) != Some(life) {
                    self.tails.durable(&replay.partition, life, u64::MAX);
                }
            }
            if let Some(life) = noted {
                self.tails.durable(&replay.partition, life, self.config.write_back_bytes);
            }
        }
        let places = recovered.places.iter().zip(holds);
        if !recovered.partitions.is_empty() {
            self.ring.go_on(places.map(|((number, place), holds)| (*number, *place, holds)));
        }
    }

    /// Whether the last file was one of those that were added so as to go on in a full ring, and is dropped now: to be
    /// removed.
    pub fn shrink(&mut self) -> bool {
        self.state == State::Open && self.ring.shrink(self.config.files)
    }

    /// How many files there are to open and write: as many as configured, or as there were before or are needed if that
    /// is more.
    pub fn files(&self) -> usize {
        self.ring.slots()
    }

    /// How long each is: as configured, or as they were made.
    pub fn file_bytes(&self) -> u32 {
        self.config.file_bytes
    }

    /// Whether an append of so many bytes belongs here.
    ///
    /// A larger one goes straight into its segment, behind everything that [`Journal::take_write_back`] hands out
    /// for its partition, is synced there, and leaves an [`EntryKind::Range`]; it is acknowledged when that is
    /// durable. Not before: the journal may still hold a truncation of that partition, written back long ago, which
    /// replay would repeat.
    pub fn takes(&self, bytes: u64) -> bool {
        bytes <= u64::from(self.config.append_bytes_max)
    }

    /// Whether anything of `partition` is in here that is not written back and synced.
    pub fn has(&self, partition: &Arc<JournalPartition>) -> bool {
        self.tails.has(partition)
    }

    /// Puts `entry` into the round that is being filled; returns that round's number. Copies the records into the
    /// round, and keeps them until they are written back.
    ///
    /// Entries of one partition are submitted in the order of its log.
    ///
    /// # Errors
    /// Nothing has changed after any; [`Refused`] says what helps.
    pub fn submit(&mut self, entry: Entry) -> Result<u64, Refused> {
        if !self.stays.is_submitted() {
            return Err(Refused::RoundFull);
        }
        self.put(entry)
    }

    fn put(&mut self, entry: Entry) -> Result<u64, Refused> {
        let bytes = entry_bytes(&entry);
        self.check_room(bytes, matches!(entry.kind, EntryKind::Records { .. }))?;
        let is_range = matches!(entry.kind, EntryKind::Range { .. });
        // Replay trusts a range: what it covers is not replayed.
        assert!(
            !is_range || !self.tails.has(&entry.partition),
            "a range follows when all before it is written back"
        );
        let open = &mut self.open;
        push_entry(&mut open.buffer, &entry);
        open.entries += 1;
        let end = match &entry.kind {
            EntryKind::Records { end, records, .. } => {
                open.record_bytes += records_len(records) as u64;
                *end
            }
            EntryKind::Truncate { end } | EntryKind::Range { end, .. } => *end,
            EntryKind::Restart { at } => *at,
            EntryKind::Remove => Offset::NONE,
        };
        match open.ends.last_mut() {
            Some(last) if last.partition == entry.partition => last.end = end,
            _ => open.ends.push(DurableEnd { partition: Arc::clone(&entry.partition), end }),
        }
        open.holds += u32::from(self.tails.push(entry, open.number));
        Ok(open.number)
    }

    fn check_room(&self, bytes: usize, is_records: bool) -> Result<(), Refused> {
        if !matches!(self.state, State::Opening | State::Open) {
            return Err(Refused::Closed);
        }
        if ROUND_HEADER_BYTES + bytes > self.config.round_bytes_max as usize {
            return Err(Refused::TooLarge);
        }
        let len = self.open.buffer.len() + bytes;
        if len > self.config.round_bytes_max as usize {
            return Err(Refused::RoundFull);
        }
        // What is not records frees: it is never refused for the sake of memory.
        if is_records && self.tails.staged_bytes + bytes as u64 > self.config.staged_bytes_max {
            return Err(Refused::StagedFull);
        }
        if !self.ring.fits(len) {
            return Err(Refused::RingFull);
        }
        Ok(())
    }

    /// Bytes in the round that is being filled.
    pub fn gathered_bytes(&self) -> usize {
        self.open.buffer.len()
    }

    /// The round to write now, if one is due.
    pub fn take_round(&mut self, now: Micros) -> Take {
        if self.in_flight.is_some() || matches!(self.state, State::Closed | State::Failed) {
            return Take::Nothing;
        }
        self.submit_stays();
        if self.open.entries == 0 && !self.empty_round_is_due() {
            return Take::Nothing;
        }
        if let Some(due) = self.due_at().filter(|due| now < *due) {
            return Take::Wait(due);
        }
        self.seal()
    }

    /// `None`: at once.
    fn due_at(&self) -> Option<Micros> {
        let is_enough = self.open.buffer.len() >= self.config.round_bytes_enough as usize;
        if self.config.linger_us == 0 || is_enough || self.state != State::Open {
            return None;
        }
        self.durable_at.map(|at| at.plus(self.config.linger_us))
    }

    /// Whether a round without entries is due: to record that this opening has begun, that everything is written
    /// back (if a process waits for that), or, when files run short, that files are free.
    fn empty_round_is_due(&self) -> bool {
        match self.state {
            State::Opening => true,
            State::Open => {
                let all_is_written_back =
                    self.writes_back_all && self.tails.len() == 0 && !self.leaves_nothing;
                all_is_written_back || (self.is_crowded() && self.ring.next_round_frees_a_file())
            }
            State::Closing => self.tails.len() == 0,
            State::Closed | State::Failed => false,
        }
    }

    fn seal(&mut self) -> Take {
        let number = self.open.number;
        let Some((slot, place, replay_from)) =
            self.ring.place(number, self.open.buffer.len(), self.open.holds)
        else {
            return Take::Nothing;
        };
        let Some(spare) = self.spare.take() else { return Take::Nothing };
        let mut sealed = std::mem::replace(&mut self.open, OpenRound::new(number + 1, spare));
        let len = sealed.buffer.len() as u32;
        let header = RoundHeader {
            checksum: 0,
            len,
            directory: self.directory,
            opening: self.opening,
            number,
            place,
            replay_from,
            previous_checksum: self.previous_checksum,
            continues: self.continues,
            entries: sealed.entries,
        };
        let checksum = header.seal(&mut sealed.buffer);
        let padding = sealed.buffer.pad();
        self.figures.rounds += 1;
        self.figures.entries += u64::from(sealed.entries);
        self.figures.bytes += u64::from(len) + padding as u64;
        self.figures.padding_bytes += padding as u64;
        self.figures.record_bytes += sealed.record_bytes;
        self.in_flight = Some(number);
        Take::Write(Round {
            number,
            slot,
            position: u64::from(place.position),
            place,
            replay_from,
            checksum,
            ends: sealed.ends,
            buffer: sealed.buffer,
        })
    }

    /// `round` is written and synced. Says whom that makes durable up to where.
    pub fn round_durable(&mut self, round: Round, now: Micros) -> RoundDone {
        assert_eq!(self.in_flight.take(), Some(round.number), "one round at a time, handed back once");
        if self.state == State::Failed {
            // Another write in this directory failed meanwhile: no further durable ends are reported.
            return RoundDone { number: round.number, ends: Vec::new() };
        }
        self.durable_round = round.number;
        self.durable_life = round.place.life;
        self.durable_at = Some(now);
        self.previous_checksum = round.checksum;
        self.ring.durable(round.replay_from);
        self.leaves_nothing = round.replay_from == round.place && round.ends.is_empty();
        let is_last =
            self.state == State::Closing && round.replay_from == round.place && self.tails.len() == 0;
        if is_last && self.open.entries == 0 {
            self.state = State::Closed;
        } else if self.state == State::Opening && self.stays.is_durable(round.number) {
            self.state = State::Open;
        }
        let mut buffer = round.buffer;
        buffer.clear();
        self.spare = Some(buffer);
        let ends = last_of_each(round.ends);
        self.tails.forget_before(self.ring.oldest_held().unwrap_or(round.place.life));
        for end in &ends {
            self.tails.durable(&end.partition, round.place.life, self.config.write_back_bytes);
        }
        RoundDone { number: round.number, ends }
    }

    /// A write or a sync in this directory failed. That is final: nothing more is taken, called durable, or written
    /// back.
    pub fn fail(&mut self) {
        self.state = State::Failed;
    }

    /// Whether the opening round is durable, so that anything may be done to the directory's logs.
    pub fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// The life of the newest round that is durable; 0: none.
    pub fn durable_life(&self) -> u64 {
        self.durable_life
    }

    pub fn is_failed(&self) -> bool {
        self.state == State::Failed
    }

    /// Whether everything is written back as soon as it is durable, however little it is, and a round says so once
    /// it is. For a disk that fills: the next process has nothing to replay then, for which it would want room.
    pub fn write_back_all(&mut self, is_wanted: bool) {
        self.writes_back_all = is_wanted;
    }

    /// What to write back next, if anything is due: where room is short or all is to be written back the partitions
    /// that hold the oldest file, else those that have a large piece. Many may be under way at a time, one per
    /// partition.
    pub fn next_write_back(&mut self) -> Option<WriteBack> {
        if self.state == State::Failed {
            return None;
        }
        if (self.writes_back_all || self.is_pressed())
            && let Some(oldest) = self.ring.oldest_held()
        {
            let ring = &self.ring;
            while let Some(partition) = self.tails.next_holding(oldest, |round| ring.life_of(round)) {
                let write_back =
                    self.tails.take(&partition, self.durable_round, self.config.write_back_bytes_max);
                if write_back.is_some() {
                    return write_back;
                }
            }
        }
        while let Some(partition) = self.tails.next_ready() {
            let write_back =
                self.tails.take(&partition, self.durable_round, self.config.write_back_bytes_max);
            if write_back.is_some() {
                return write_back;
            }
        }
        None
    }

    /// All that `partition` has and may be written back: before a large append, or before its log is closed or
    /// moved. `None`: nothing, or a piece is being written back already.
    pub fn take_write_back(&mut self, partition: &Arc<JournalPartition>) -> Option<WriteBack> {
        if self.state == State::Failed {
            return None;
        }
        self.tails.take(partition, self.durable_round, u64::MAX)
    }

    /// Puts a large append's entry into the round, once its partition has nothing else here. The records lie in the
    /// segment already, and so does all before them: what is not being written back just now (`is_ordered`) counts
    /// as written back. Returns whether the entry is in the round.
    pub fn submit_range(&mut self, range: &Entry, is_ordered: bool) -> bool {
        if self.has(&range.partition)
            && !is_ordered
            && let Some(write_back) = self.take_write_back(&range.partition)
        {
            self.written_back(&write_back.ticket);
        }
        !self.has(&range.partition) && self.submit(range.clone()).is_ok()
    }

    /// What `ticket` names is in the segments **and synced there**, directories included. A
    /// [`super::WriteBackOp::Remove`]: the partition's directory is gone, durably.
    pub fn written_back(&mut self, ticket: &WriteBackTicket) {
        // Lives first: releasing forgets rounds.
        let mut released = Vec::with_capacity(ticket.entries);
        let ring = &self.ring;
        self.tails.written_back(
            ticket,
            self.config.write_back_bytes,
            |round| released.push(round),
            |round| ring.life_of(round),
        );
        for round in released {
            self.ring.release(round);
        }
    }

    /// Whether files or memory run short, so that what is oldest is written back whatever its size.
    pub fn is_pressed(&self) -> bool {
        self.state == State::Closing
            || self.ring.free() <= (self.ring.slots() / 2).max(1)
            || self.tails.staged_bytes > self.config.staged_bytes_max / 2
    }

    /// Whether the remaining files and memory are reserved for entries that cannot wait. Everything is being written
    /// back by then, and without new entries an empty round records it, so that the state ends.
    pub fn is_crowded(&self) -> bool {
        self.ring.free() * 8 <= self.ring.slots() * 3
            || self.tails.staged_bytes > self.config.staged_bytes_max / 8 * 5
    }

    /// Takes nothing more. Once everything is written and written back a last round says that nothing is to be
    /// replayed, and [`Journal::is_closed`].
    pub fn close(&mut self) {
        if matches!(self.state, State::Opening | State::Open) {
            self.state = State::Closing;
        }
    }

    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    pub fn figures(&self) -> Figures {
        Figures {
            staged_bytes: self.tails.staged_bytes,
            files_free: self.ring.free(),
            partitions: self.tails.len(),
            ..self.figures
        }
    }

    /// Sizes of what must not grow with the time that a journal is in use.
    #[cfg(test)]
    pub(super) fn remembered(&self) -> (usize, usize, usize) {
        (self.tails.len(), self.tails.lives(), self.ring.rounds())
    }
}

impl OpenRound {
    fn new(number: u64, mut buffer: BlockBuffer) -> Self {
        buffer.clear();
        buffer.push(&[0; ROUND_HEADER_BYTES]);
        Self { number, buffer, entries: 0, holds: 0, record_bytes: 0, ends: Vec::new() }
    }
}

/// The files as they were found, and those that are missing. A ring in which most is held gets more of them, up to
/// twice as many as usual, so that it can be gone on in at once.
fn ring_of(config: &JournalConfig, recovered: &Recovered) -> Result<Ring, JournalError> {
    let mut slots = recovered.lives.clone();
    slots.resize(config.files.max(slots.len()), None);
    let ring_with = |slots| Ring::new(config.file_bytes, slots, recovered.replay_from, recovered.next_life);
    let mut ring = ring_with(slots.clone());
    if !recovered.partitions.is_empty() {
        // One of the free ones is taken at once.
        while ring.free() <= slots.len() / 2 + 1 && slots.len() < 2 * config.files {
            slots.push(None);
            ring = ring_with(slots.clone());
        }
    }
    // The first round of what goes on frees nothing, so it may not take the one that is kept back.
    let wanted = if recovered.partitions.is_empty() { 1 } else { 2 };
    if ring.free() < wanted {
        return Err(JournalError::NoRoom);
    }
    Ok(ring)
}

/// Each partition once, with what was said of it last.
fn last_of_each(mut ends: Vec<DurableEnd>) -> Vec<DurableEnd> {
    let mut seen = barnabas_base::Set::with_capacity_and_hasher(ends.len(), Default::default());
    ends.reverse();
    ends.retain(|end| seen.insert(Arc::clone(&end.partition)));
    ends.reverse();
    ends
}
