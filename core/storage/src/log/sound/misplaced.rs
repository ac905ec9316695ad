//! A batch whose base offset or leader epoch has changed. Kafka's checksum covers neither: both are set by the broker.
//! What the batches around it say, the end of the log and `leader-epoch-checkpoint` show it.
//!
//! Always true: a batch is called damaged only if two of these agree against it. A hole that compaction left is none:
//! 1. a base offset is wrong where the batch overlaps the one before it, or where its records fit exactly between that
//!    one and what follows. Of two that overlap, the one that left a gap before it is the wrong one
//! 2. a leader epoch is wrong where it is not that of the checkpoint, a batch beside it bears the checkpoint out, and
//!    none beside it is of that epoch: so a checkpoint that has changed makes no batch damaged

use barnabas_base::Offset;
use smallvec::SmallVec;

use crate::disk::file_pool::FilePool;
use crate::error::StorageError;
use crate::log::Log;
use crate::segment::batch::BatchHeader;
use crate::segment::walker::{NOT_NEXT, OUT_OF_REACH, Step, WRONG_CHECKSUM, WRONG_EPOCH, Walked, Walker};

/// What a walk through a segment found.
#[derive(Debug)]
pub(in crate::log) struct Followed {
    /// Where the last batch ends that is where it belongs.
    pub end: Offset,
    pub damage: Option<StorageError>,
}

/// The batch at which a segment is cut, by position and header; and the damage that showed.
pub(in crate::log) type FoundCut = (Option<(u32, BatchHeader)>, Option<StorageError>);

impl Log {
    /// Walks a segment from its front, by headers, up to the first batch that is damaged. `end`: where it is known to
    /// end.
    pub(in crate::log) fn follow_segment(
        &self,
        files: &mut FilePool,
        at: usize,
        end: Offset,
    ) -> Result<Followed, StorageError> {
        let base = self.segments[at].base;
        let mut walker = self.walker(files, at, 0, false)?;
        // The one that the next one has not borne out yet.
        let mut held: Option<Walked> = None;
        loop {
            let sound = held.map_or(base, |held| held.expected);
            let next =
                match walker.step()? {
                    Step::Batch { position, header, .. } => {
                        let position = position as u32;
                        Some(held.map_or(Walked::first(position, header, base), |held| {
                            held.then(position, header)
                        }))
                    }
                    Step::End => None,
                    Step::Bad { position, why } => {
                        let before = held.and_then(|held| self.wrong(at, &held, None));
                        let end = held.map_or(base, |held| held.header.next_offset());
                        let damage = before.unwrap_or_else(|| self.damaged(at, position, end, why));
                        return Ok(Followed { end: sound, damage: Some(damage) });
                    }
                };
            if let Some(held) = &held
                && let Some(damage) = self.wrong(at, held, Some((end, next.as_ref())))
            {
                return Ok(Followed { end: sound, damage: Some(damage) });
            }
            let Some(next) = next else { return self.check_last(files, at, held, end) };
            // The first one of a log may begin below its start.
            let may_overlap = at == 0 && next.position == 0;
            let left_gap = held.is_some_and(|held| held.header.base_offset > held.expected);
            if next.header.base_offset < next.expected && !may_overlap {
                let wrong = if left_gap { held.unwrap_or(next) } else { next };
                let damage = self.damaged(at, wrong.position.into(), wrong.expected, NOT_NEXT);
                return Ok(Followed { end: wrong.expected, damage: Some(damage) });
            }
            held = Some(next);
        }
    }

    /// A segment whose last batch ends elsewhere than it should has lost the ones behind it; or that one is damaged.
    fn check_last(
        &self,
        files: &mut FilePool,
        at: usize,
        last: Option<Walked>,
        end: Offset,
    ) -> Result<Followed, StorageError> {
        let Some(last) = last else { return Ok(Followed { end: self.segments[at].base, damage: None }) };
        let own_end = last.header.next_offset();
        let is_sound = own_end == end || self.is_checksum_right(files, at, last.position)?;
        if is_sound {
            return Ok(Followed { end: own_end, damage: None });
        }
        let damage = self.damaged(at, last.position.into(), last.expected, WRONG_CHECKSUM);
        Ok(Followed { end: last.expected, damage: Some(damage) })
    }

    fn is_checksum_right(
        &self,
        files: &mut FilePool,
        at: usize,
        position: u32,
    ) -> Result<bool, StorageError> {
        Ok(match self.walker(files, at, position, true)?.step()? {
            Step::Batch { header, bytes, .. } => header.checksum_is_right(&bytes),
            Step::End | Step::Bad { .. } => false,
        })
    }

    /// What is wrong with a batch. `behind`: where the segment ends, and the batch behind it; `None`: not known.
    fn wrong(
        &self,
        at: usize,
        walked: &Walked,
        behind: Option<(Offset, Option<&Walked>)>,
    ) -> Option<StorageError> {
        let next = behind.and_then(|(_, next)| next);
        let begins = behind.map(|(end, next)| next.map_or(end, |next| next.header.base_offset));
        let what = if begins.is_some_and(|begins| walked.put_right(begins).is_some()) {
            NOT_NEXT
        } else if walked.header.last_offset >= self.reach(at) {
            OUT_OF_REACH
        } else if walked.has_wrong_epoch(&self.epochs, next.map(|next| next.header.leader_epoch)) {
            WRONG_EPOCH
        } else {
            return None;
        };
        Some(self.damaged(at, walked.position.into(), walked.expected, what))
    }

    /// Whether its leader epoch is another than the checkpoint's.
    pub(in crate::log) fn is_of_unknown_epoch(&self, header: &BatchHeader) -> bool {
        let known = self.epochs.epoch_at(header.base_offset);
        header.has_epoch() && known.is_some_and(|known| known != header.leader_epoch)
    }

    /// Whether the batch at `position`, which is read, is damaged in what its checksum does not cover.
    pub(super) fn check_epoch(
        &self,
        files: &mut FilePool,
        at: usize,
        position: u32,
        header: &BatchHeader,
    ) -> Result<(), StorageError> {
        if !self.is_of_unknown_epoch(header) {
            return Ok(());
        }
        match self.follow_segment(files, at, self.reach(at))?.damage {
            Some(StorageError::Damaged { position: found, what, .. })
                if found == u64::from(position) && what == WRONG_EPOCH =>
            {
                Err(self.damaged(at, found, header.base_offset, what))
            }
            _ => Ok(()),
        }
    }

    /// The first batch of a segment that holds `offset` or more, where the log is to be cut. Batches before it are
    /// where they belong, or have their own base offsets again; the damage that showed is returned beside it.
    pub(in crate::log) fn find_cut(
        &self,
        files: &mut FilePool,
        at: usize,
        offset: Offset,
    ) -> Result<FoundCut, StorageError> {
        let begin = self.begin_before(files, at, offset)?;
        let mut walker = self.walker(files, at, begin, false)?;
        let mut damage = None;
        let Some(mut walked) = self.step_to(&mut walker, at, None)? else { return Ok((None, None)) };
        loop {
            let next = self.step_to(&mut walker, at, Some(&walked))?;
            let mut behind: SmallVec<[Offset; 2]> = SmallVec::new();
            match &next {
                Some(next) => behind.push(next.header.base_offset),
                None => behind.push(self.reach(at)),
            }
            if next.is_none() && !self.config.cleanup.compact {
                // Where no offset can be missing, the leader's word is as good as the log's own end.
                behind.push(offset);
            }
            let epoch = next.as_ref().map(|next| next.header.leader_epoch);
            let overlapped = next.as_ref().map(|next| next.header.base_offset);
            let what = if let Some(header) = behind.iter().find_map(|behind| walked.put_right(*behind)) {
                walked.header = header;
                Some(NOT_NEXT)
            } else if walked.header.last_offset < walked.expected {
                return Err(self.damaged(at, walked.position.into(), walked.expected, NOT_NEXT));
            } else if let Some(begins) = overlapped.filter(|begins| walked.header.last_offset >= *begins)
                && begins > walked.header.base_offset
                && !self.is_checksum_right(files, at, walked.position)?
            {
                // Its last offset has changed: it ends where the next one begins.
                walked.header.last_offset = begins.plus(-1);
                Some(WRONG_CHECKSUM)
            } else {
                walked.has_wrong_epoch(&self.epochs, epoch).then_some(WRONG_EPOCH)
            };
            if let Some(what) = what {
                let found = self.damaged(at, walked.position.into(), walked.expected, what);
                damage.get_or_insert(found);
            }
            if walked.header.last_offset >= offset {
                return Ok((Some((walked.position, walked.header)), damage));
            }
            let Some(next) = next else { return Ok((None, damage)) };
            walked = walked.then(next.position, next.header);
        }
    }

    /// A position from which on the batch that holds `offset` has another one before it, where it is not the first.
    fn begin_before(&self, files: &mut FilePool, at: usize, offset: Offset) -> Result<u32, StorageError> {
        let position = self.begin_looking(files, at, offset)?;
        match self.walker(files, at, position, false)?.step()? {
            Step::Batch { header, .. } if position > 0 => {
                self.begin_looking(files, at, header.base_offset.plus(-1))
            }
            _ => Ok(0),
        }
    }

    fn step_to(
        &self,
        walker: &mut Walker,
        at: usize,
        before: Option<&Walked>,
    ) -> Result<Option<Walked>, StorageError> {
        let base = self.segments[at].base;
        match walker.step()? {
            Step::Batch { position, header, .. } => {
                let position = position as u32;
                let expected = if position == 0 { base } else { header.base_offset };
                let first = || Walked::first(position, header, expected);
                Ok(Some(before.map_or_else(first, |before| before.then(position, header))))
            }
            Step::End => Ok(None),
            Step::Bad { position, why } => {
                let offset = before.map_or(base, |before| before.header.next_offset());
                Err(self.damaged(at, position, offset, why))
            }
        }
    }
}
