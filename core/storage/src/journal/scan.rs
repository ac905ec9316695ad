//! After a crash: which rounds count, and what they say.
//!
//! The newest file with a valid first round says, in its last valid round, where replay begins; from there rounds
//! are followed one by one until the first that is not valid. Only reads. Time depends on what is not written back
//! yet, and on the size of the journal, never on the size of the logs.
//!
//! An invalid round at the end was never durable, as rounds are written one after another: no durable end was
//! reported for it. If a valid *later* round of the same opening exists, or one of an opening that continues behind
//! it, then it was durable, and the journal is damaged.
//!
//! Several openings may follow one another without anything having been written back in between: each begins a life,
//! and its first round names the opening and the checksum of the round that it goes on behind.

mod before;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use barnabas_base::{DirectoryId, Map};
use bytes::Bytes;

use super::error::JournalError;
use super::format::{ROUND_HEADER_BYTES, RoundHeader, parse_entries};
use super::replay::PartitionReplay;
use super::types::{JournalPartition, Place};
use crate::disk::block_buffer::BLOCK_BYTES;
use crate::disk::{Disk, DiskError, DiskFile, OpenMode};

/// A piece of a file that is read at once while looking for rounds that should not be there.
const SEARCH_BYTES: usize = 1 << 20;
const TWIN: &str = "another file says that it is the same part of the journal: one of them is a copy";
const FORKED: &str = "a round here and a later one both go on behind the same round";

/// The name of a file of the ring, in the log directory itself: Kafka takes every *folder* there for a partition, and
/// leaves files alone.
pub fn slot_file_name(slot: usize) -> String {
    format!("barnabas-journal-{slot:02}")
}

/// The files of a journal that are there.
///
/// # Errors
/// The directory cannot be asked.
pub fn slot_files(disk: &dyn Disk, dir: &Path) -> Result<Vec<PathBuf>, DiskError> {
    let mut found = Vec::new();
    // Making and removing leave no hole among the first ones but where either was interrupted.
    for slot in 0..100 {
        let path = dir.join(slot_file_name(slot));
        if disk.stat(&path)?.is_some() {
            found.push(path);
        }
    }
    Ok(found)
}

/// What a journal holds.
#[derive(Debug, Clone)]
pub struct Recovered {
    pub directory: DirectoryId,
    /// Partitions with something to replay, in the order in which the journal first names them.
    pub partitions: Vec<PartitionReplay>,
    /// Partitions of which nothing is to be replayed, and older rounds say up to where their segments are synced. Their
    /// [`PartitionReplay::synced_end`] is all they have.
    pub written_back: Vec<PartitionReplay>,
    /// Partitions of which nothing is to be replayed, as they have left the directory ([`Recovered::note_left`]).
    pub(super) left: Vec<Arc<JournalPartition>>,
    /// Partitions of which nothing is to be replayed, as they have come back ([`Recovered::note_returned`]).
    pub(super) returned: Vec<Arc<JournalPartition>>,
    /// Rounds from the replay point on, and their bytes.
    pub rounds: u64,
    pub bytes: u64,
    /// Of each file that holds rounds. `None`: none does.
    pub(super) file_bytes: Option<u32>,
    pub(super) lives: Vec<Option<u64>>,
    pub(super) replay_from: Place,
    pub(super) next_life: u64,
    pub(super) next_round: u64,
    /// Number and place of each round from the replay point on, without gaps.
    pub(super) places: Vec<(u64, Place)>,
    /// Opening and checksum of the last round. `None`: there is none.
    pub(super) last: Option<(u64, u32)>,
}

impl Recovered {
    /// Nothing is to be replayed: a new journal, or one that was closed.
    pub fn is_empty(&self) -> bool {
        self.partitions.is_empty()
    }

    /// The newest filling of a file that was found; 0: none.
    pub fn newest_life(&self) -> u64 {
        self.next_life - 1
    }

    /// What is not kept has been written back to segments and synced there, or is to be given up: it need not be
    /// replayed again.
    pub fn keep(&mut self, mut is_kept: impl FnMut(&PartitionReplay) -> bool) {
        self.partitions.retain(&mut is_kept);
        self.written_back.retain(is_kept);
    }

    /// Takes those out that have left the directory before the journal could note it. The first rounds of what is
    /// opened with this remove them ([`super::EntryKind::Remove`]): it is open once those are durable.
    pub fn note_left(&mut self, mut has_left: impl FnMut(&PartitionReplay) -> bool) {
        for replays in [&mut self.partitions, &mut self.written_back] {
            let left = replays.extract_if(.., |replay| has_left(replay));
            self.left.extend(left.map(|replay| replay.partition));
        }
    }

    /// Takes those out whose removal is the last that the journal says of them, and of which the directory has a later
    /// stay. The first rounds of what is opened with this say that it has begun, as in [`Recovered::note_left`].
    pub fn note_returned(&mut self, mut has_returned: impl FnMut(&PartitionReplay) -> bool) {
        let returned = self.partitions.extract_if(.., |replay| has_returned(replay));
        self.returned.extend(returned.map(|replay| replay.partition));
    }

    /// Whether what is opened with this has something to say first.
    pub fn has_stays(&self) -> bool {
        !self.left.is_empty() || !self.returned.is_empty()
    }

    /// Before the result changes a log or is reported, a round is written behind it: a process that was killed may
    /// have written a round and not synced it.
    ///
    /// # Errors
    /// The sync failed; that is final for the directory.
    pub fn sync_files(&self, disk: &dyn Disk, dir: &Path) -> Result<(), JournalError> {
        for slot in (0..self.lives.len()).filter(|slot| self.lives[*slot] >= Some(self.replay_from.life)) {
            disk.open(&dir.join(slot_file_name(slot)), OpenMode::Write)?.sync()?;
        }
        Ok(())
    }
}

struct Scan {
    files: Vec<SlotFile>,
    directory: DirectoryId,
}

struct SlotFile {
    path: PathBuf,
    file: Option<Arc<dyn DiskFile>>,
    len: u64,
    /// The valid round at its front.
    first: Option<RoundHeader>,
}

/// A valid round.
struct Found {
    header: RoundHeader,
    bytes: Bytes,
}

/// Reads the journal of the log directory `dir`: `files` of it, some or all of which may be missing, and more if there
/// are more. Changes nothing.
///
/// The caller makes that durable ([`Recovered::sync_files`]), opens the partitions named, does their
/// [`PartitionReplay::steps`], syncs all of it, says so with [`Recovered::keep`], and opens a [`super::Journal`], which
/// goes on with the rest. A crash in between starts over.
///
/// If the directory was shut down cleanly and its journal is not [`Recovered::is_empty`], another broker has used the
/// directory since. The journal is out of date then: do not replay it.
///
/// # Errors
/// [`JournalError::Damaged`]: acknowledged batches are unreadable. [`JournalError::Foreign`]: the files were
/// copied from another directory. [`JournalError::Disk`]: a read failed, which is never taken for the end.
pub fn recover(
    disk: &dyn Disk,
    dir: &Path,
    files: usize,
    directory: DirectoryId,
) -> Result<Recovered, JournalError> {
    let mut scan = Scan { files: Vec::new(), directory };
    for slot in 0.. {
        let path = dir.join(slot_file_name(slot));
        if slot >= files && disk.stat(&path)?.is_none() {
            break;
        }
        scan.open(disk, path)?;
    }
    scan.run()
}

impl Scan {
    fn open(&mut self, disk: &dyn Disk, path: PathBuf) -> Result<(), JournalError> {
        let file = match disk.open(&path, OpenMode::Read) {
            Ok(file) => Some(file),
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error.into()),
        };
        let len = file.as_ref().map_or(Ok(0), |file| file.len())?;
        self.files.push(SlotFile { path, file, len, first: None });
        let slot = self.files.len() - 1;
        let first = self.round_at(slot, 0)?;
        let slot_file = &mut self.files[slot];
        let Some(found) = first.filter(|found| found.header.place.position == 0) else { return Ok(()) };
        if found.header.directory != self.directory {
            return Err(JournalError::Foreign {
                file: slot_file.path.clone(),
                found: found.header.directory,
                expected: self.directory,
            });
        }
        slot_file.first = Some(found.header);
        Ok(())
    }

    fn run(&self) -> Result<Recovered, JournalError> {
        let lives = self.files.iter().map(|file| file.first.map(|first| first.place.life)).collect();
        let mut recovered = Recovered {
            directory: self.directory,
            partitions: Vec::new(),
            written_back: Vec::new(),
            left: Vec::new(),
            returned: Vec::new(),
            rounds: 0,
            bytes: 0,
            file_bytes: None,
            lives,
            replay_from: Place { life: 1, position: 0 },
            next_life: 1,
            next_round: 1,
            places: Vec::new(),
            last: None,
        };
        self.refuse_short_files()?;
        self.refuse_twins()?;
        let firsts = self.files.iter().filter_map(|file| file.first);
        let Some(newest) = firsts.max_by_key(|first| first.place.life) else {
            // Nothing was ever durable, unless a round in the middle of a file says otherwise.
            self.refuse_later_rounds(None, 0)?;
            return Ok(recovered);
        };
        let len = self.files.iter().filter(|file| file.first.is_some()).map(|file| file.len).max();
        recovered.file_bytes = len.and_then(|len| u32::try_from(len).ok());
        let last = self.last_of_life(newest)?;
        recovered.replay_from = last.replay_from;
        recovered.next_life = newest.place.life + 1;
        recovered.next_round = last.number + 1;
        recovered.last = Some((last.opening, last.checksum));
        self.replay(last, &mut recovered)?;
        recovered.written_back = self.written_back(recovered.replay_from, &recovered.partitions)?;
        self.refuse_later_rounds(Some(last.opening), last.number)?;
        Ok(recovered)
    }

    /// The last valid round of the life that begins with `first`.
    fn last_of_life(&self, first: RoundHeader) -> Result<RoundHeader, JournalError> {
        let mut last = first;
        while let Some(found) = self.round_after(&last, next_in_file(&last))? {
            last = found.header;
        }
        Ok(last)
    }

    /// Folds every round from the replay point up to `last`.
    fn replay(&self, last: RoundHeader, recovered: &mut Recovered) -> Result<(), JournalError> {
        let mut index: Map<Arc<JournalPartition>, usize> = Map::default();
        let Some(mut found) = self.valid_at(recovered.replay_from)? else {
            return Err(self.damaged(recovered.replay_from, "the round that replay begins with is not there"));
        };
        loop {
            recovered.rounds += 1;
            recovered.bytes += found.bytes.len() as u64;
            recovered.places.push((found.header.number, found.header.place));
            let Some(entries) = parse_entries(&found.bytes, &found.header) else {
                return Err(self.damaged(found.header.place, "a round holds something else than entries"));
            };
            for entry in entries {
                let at = *index.entry(Arc::clone(&entry.partition)).or_insert_with(|| {
                    recovered.partitions.push(PartitionReplay::new(Arc::clone(&entry.partition)));
                    recovered.partitions.len() - 1
                });
                recovered.partitions[at].apply(entry, found.header.number);
            }
            if found.header.number == last.number {
                // By whichever way: the checksum takes in that of the round before, and so all of them.
                return if found.header == last {
                    Ok(())
                } else {
                    Err(self.damaged(found.header.place, FORKED))
                };
            }
            let next = next_in_file(&found.header);
            let next_life = Place { life: found.header.place.life + 1, position: 0 };
            found = match self.round_after(&found.header, next)? {
                Some(found) => found,
                None => match self.round_after(&found.header, next_life)? {
                    Some(found) => found,
                    None => return Err(self.damaged(next, "a round is not there, but later ones are")),
                },
            };
        }
    }

    /// The round that follows `before`, if it stands at `place`.
    fn round_after(&self, before: &RoundHeader, place: Place) -> Result<Option<Found>, JournalError> {
        let found = self.valid_at(place)?;
        Ok(found.filter(|found| found.header.follows(before)))
    }

    /// The valid round at `place`, of whatever opening.
    fn valid_at(&self, place: Place) -> Result<Option<Found>, JournalError> {
        let is_life = |file: &SlotFile| file.first.is_some_and(|first| first.place.life == place.life);
        let Some(slot) = self.files.iter().position(is_life) else { return Ok(None) };
        let found = self.round_at(slot, place.position.into())?;
        let is_it = |found: &Found| found.header.place == place && found.header.directory == self.directory;
        Ok(found.filter(is_it))
    }

    /// What stands at `position`, if its checksum is right.
    fn round_at(&self, slot: usize, position: u64) -> Result<Option<Found>, JournalError> {
        let slot_file = &self.files[slot];
        let Some(file) = &slot_file.file else { return Ok(None) };
        if position + ROUND_HEADER_BYTES as u64 > slot_file.len {
            return Ok(None);
        }
        let head = file.read_bytes(position, BLOCK_BYTES)?;
        let Some(header) = RoundHeader::parse(&head) else { return Ok(None) };
        // No length is trusted beyond the bytes that there are.
        if u64::from(header.len) > slot_file.len - position {
            return Ok(None);
        }
        let bytes = file.read_bytes(position, header.len as usize)?;
        if bytes.len() < header.len as usize {
            return Ok(None);
        }
        let is_right = header.checksum_is_right(&bytes);
        Ok(is_right.then_some(Found { header, bytes }))
    }

    /// A file is given its length for good before its first round is written, and all have the same. One that is
    /// shorter has lost what stood behind; and files are first taken in their order, so before one that was written to
    /// there is none that was not.
    fn refuse_short_files(&self) -> Result<(), JournalError> {
        let expected = self.files.iter().map(|file| file.len).max().unwrap_or(0);
        let written = self.files.iter().rposition(|file| file.first.is_some());
        let short = self.files.iter().take(written.map_or(0, |at| at + 1)).find(|file| file.len < expected);
        match short {
            Some(SlotFile { path, len, .. }) => {
                Err(JournalError::Short { file: path.clone(), len: *len, expected })
            }
            None => Ok(()),
        }
    }

    /// A life is one filling of one file.
    fn refuse_twins(&self) -> Result<(), JournalError> {
        let mut seen = barnabas_base::Set::default();
        let lives = self.files.iter().filter_map(|file| Some((file, file.first?.place.life)));
        for (file, life) in lives {
            if !seen.insert(life) {
                return Err(JournalError::Damaged { file: file.path.clone(), position: 0, what: TWIN });
            }
        }
        Ok(())
    }

    /// Looks at every block for a round of this opening, or of one that goes on behind it, that was written after
    /// `number`. A file whose first round is valid and that lies before the newest one was left for good: it holds
    /// none.
    fn refuse_later_rounds(&self, opening: Option<u64>, number: u64) -> Result<(), JournalError> {
        let newest = self.files.iter().filter_map(|file| file.first).map(|first| first.place.life).max();
        for (slot, slot_file) in self.files.iter().enumerate() {
            let Some(file) = &slot_file.file else { continue };
            if slot_file.first.is_some_and(|first| Some(first.place.life) != newest) {
                continue;
            }
            let mut position = 0;
            loop {
                position = position.max(file.next_data(position)?) / BLOCK_BYTES as u64 * BLOCK_BYTES as u64;
                if position >= slot_file.len {
                    break;
                }
                let piece = file.read_bytes(position, SEARCH_BYTES)?;
                for (block, bytes) in piece.chunks(BLOCK_BYTES).enumerate() {
                    let at = position + (block * BLOCK_BYTES) as u64;
                    self.refuse_later_round(slot, at, bytes, opening, number)?;
                }
                position += SEARCH_BYTES as u64;
            }
        }
        Ok(())
    }

    fn refuse_later_round(
        &self,
        slot: usize,
        at: u64,
        block: &[u8],
        opening: Option<u64>,
        number: u64,
    ) -> Result<(), JournalError> {
        let Some(header) = RoundHeader::parse(block) else { return Ok(()) };
        let is_later = header.number > number
            && header.directory == self.directory
            && opening.is_none_or(|opening| opening == header.opening || opening == header.continues)
            && u64::from(header.place.position) == at;
        if !is_later || self.round_at(slot, at)?.is_none() {
            return Ok(());
        }
        Err(JournalError::Damaged {
            file: self.files[slot].path.clone(),
            position: at,
            what: "the round here is whole, and was written after one that is not readable any more",
        })
    }

    fn damaged(&self, place: Place, what: &'static str) -> JournalError {
        let is_life = |file: &&SlotFile| file.first.is_some_and(|first| first.place.life == place.life);
        // Without a file of that life, the first round of some file is what is damaged: name the first such.
        let file = self.files.iter().find(is_life).or(self.files.iter().find(|file| file.first.is_none()));
        let path = file.or(self.files.first()).map(|file| file.path.clone()).unwrap_or_default();
        JournalError::Damaged { file: path, position: place.position.into(), what }
    }
}

fn next_in_file(header: &RoundHeader) -> Place {
    let position = header.place.position + header.len.next_multiple_of(BLOCK_BYTES as u32);
    Place { life: header.place.life, position }
}
