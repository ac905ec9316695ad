//! Which bytes of the segments were found sound, so that a reader who comes after another need not check them again.
//!
//! Every batch that is read from a segment has its checksum compared: the bytes pass through our memory anyway, and a
//! CRC-32C costs a small part of what reading them costs (figures in ARCHITECTURE.md). What memory still holds from
//! being appended never was on a disk and is not checked.
//!
//! A check counts for other readers until the owner of the files lets it expire ([`FilePool::expire_checks`], every few
//! seconds): the file may change, and its page may come from the disk again. So consumers that read the same at the
//! same time share one check, and a consumer that stumbles over damage and asks again is the one that finds it.
//! Forgotten as well whenever segments give way, and when the background check has found damage in the log.

pub(super) mod behind;
pub(super) mod mend;
pub(super) mod misplaced;

use barnabas_base::Offset;

use super::Log;
use crate::disk::file_pool::FilePool;
use crate::error::StorageError;
use crate::segment::batch::BatchHeader;

/// Stretches that are remembered; a reader that goes on extends its own.
const STRETCHES_MAX: usize = 8;

/// Stretches of segments, the newest use last.
#[derive(Debug, Default)]
pub(super) struct Sound {
    stretches: Vec<Stretch>,
    /// [`FilePool::expiries`] when they were checked.
    expiries: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stretch {
    base: Offset,
    from: u32,
    to: u32,
}

impl Sound {
    /// What was checked before counts no more.
    fn expire(&mut self, expiries: u64) {
        if std::mem::replace(&mut self.expiries, expiries) != expiries {
            self.stretches.clear();
        }
    }

    fn covers(&self, base: Offset, from: u32, to: u32) -> bool {
        let holds = |stretch: &Stretch| stretch.base == base && stretch.from <= from && to <= stretch.to;
        self.stretches.iter().any(holds)
    }

    /// Joined with what it touches.
    fn note(&mut self, base: Offset, from: u32, to: u32) {
        let mut joined = Stretch { base, from, to };
        self.stretches.retain(|stretch| {
            let touches = stretch.base == base && stretch.from <= joined.to && joined.from <= stretch.to;
            if touches {
                joined.from = joined.from.min(stretch.from);
                joined.to = joined.to.max(stretch.to);
            }
            !touches
        });
        if self.stretches.len() == STRETCHES_MAX {
            self.stretches.remove(0);
        }
        self.stretches.push(joined);
    }
}

impl Log {
    /// How many bytes at the front of `batches`, whole batches that lie at `position` of a segment, are sound batches;
    /// and the offset after them.
    ///
    /// # Errors
    /// [`StorageError::Damaged`]: the first is not.
    pub(super) fn sound_front(
        &mut self,
        files: &mut FilePool,
        at: usize,
        position: u32,
        batches: &[u8],
        next_offset: Offset,
    ) -> Result<(usize, Offset), StorageError> {
        let base = self.segments[at].base;
        let to = position + batches.len() as u32;
        if let Some(sound) = &mut self.sound {
            sound.expire(files.expiries());
            if sound.covers(base, position, to) {
                return Ok((batches.len(), next_offset));
            }
        }
        let (mut len, mut next) = (0, Offset::NONE);
        while let Some(header) = next_sound(&batches[len..]) {
            match self.check_epoch(files, at, position + len as u32, &header) {
                Err(StorageError::Damaged { .. }) if len > 0 => break,
                checked => checked?,
            }
            len += header.size as usize;
            next = header.next_offset();
        }
        if len > 0 {
            let sound = self.sound.get_or_insert_with(Box::<Sound>::default);
            sound.expire(files.expiries());
            sound.note(base, position, position + len as u32);
            return Ok((len, next));
        }
        Err(self.damaged_batch(at, position, batches))
    }

    /// The next read of each batch checks it again.
    pub fn forget_sound(&mut self) {
        self.sound = None;
    }
}

/// The batch at the front of `bytes`, if it is whole and its checksum right.
fn next_sound(bytes: &[u8]) -> Option<BatchHeader> {
    let header = BatchHeader::parse(bytes).ok()?;
    let batch = bytes.get(..header.size as usize)?;
    header.checksum_is_right(batch).then_some(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_grow_together_and_the_oldest_goes() {
        let mut sound = Sound::default();
        let base = Offset(5);
        sound.note(base, 0, 100);
        sound.note(base, 200, 300);
        assert!(sound.covers(base, 0, 100) && !sound.covers(base, 50, 250) && !sound.covers(Offset(6), 0, 1));
        sound.note(base, 100, 200);
        assert!(sound.covers(base, 0, 300));
        for other in 0..8 {
            sound.note(Offset(100 + other), 0, 1);
        }
        assert!(!sound.covers(base, 0, 1));
    }

    #[test]
    fn stretch_counts_until_it_expires() {
        let mut sound = Sound::default();
        sound.note(Offset(5), 0, 100);
        sound.expire(0);
        assert!(sound.covers(Offset(5), 0, 100));
        sound.expire(1);
        assert!(!sound.covers(Offset(5), 0, 100));
        sound.note(Offset(5), 100, 200);
        sound.expire(1);
        assert!(sound.covers(Offset(5), 100, 200) && !sound.covers(Offset(5), 0, 200));
    }
}
