//! Repair of a replica that has to stay in the ISR or the ELR: it goes on fetching from its end, and fetches the
//! damaged places beside that, as a consumer does.
//!
//! A follower's fetch from a damaged place would say that it has no more than that: the high watermark would wait for
//! it, and its leader would remove it from the ISR. A consumer's fetch says nothing. It is served up to the high
//! watermark; damage behind that waits until it is committed.
//!
//! Nothing is given up here: what does not fit stays damaged.
//!
//! Always true: an answer counts only for the place that was last asked for, in the same leader epoch.
//!
//! Neighbours: `repair`, which decides when; shell/broker/src/worker/partition_worker/replication/aside.rs, which
//! fetches.

use barnabas_base::{LeaderEpoch, MonotonicMs, Offset};
use barnabas_partition::FetchPosition;
use barnabas_storage::{DamagedPlace, FilePool, Mend, StorageError};
use bytes::Bytes;

use super::damages::Look;
use super::{BothDamaged, LOOK_AGAIN, RepairStep, sound_front};
use crate::Replica;

impl Replica {
    /// Whether what could not be mended may be sound by now: it is checked again then. Looks once in [`LOOK_AGAIN`].
    pub(super) fn is_restored(&mut self, now: MonotonicMs, files: &mut FilePool) -> bool {
        let is_due = self.repair.look_at.is_some_and(|look_at| look_at <= now);
        if is_due || self.repair.look_at.is_none() {
            self.repair.look_at = Some(now.plus(LOOK_AGAIN));
        }
        if !is_due {
            return false;
        }
        let place = self.repair.damages.unfit_place();
        let is_sound = place.is_some_and(|place| self.log.is_sound_at(files, place));
        if is_sound {
            self.repair.damages.try_again();
        }
        // The leader is asked as often.
        self.repair.aside_is_due = !is_sound;
        is_sound
    }

    /// The next step of a replica that the cluster needs where it is.
    pub(super) fn repair_aside(&mut self, looked: Look, epoch: LeaderEpoch) -> RepairStep {
        self.repair.refetch = None;
        if self.partition.asks_again_from().is_some() {
            self.partition.stop_asking_again();
            return RepairStep::FetchOn;
        }
        if !self.partition.has_agreed() {
            return RepairStep::Wait;
        }
        if self.repair.aside_epoch.replace(epoch) != Some(epoch) {
            // What another leader has served, or has not, says nothing of this one.
            (self.repair.aside, self.repair.leader_damage) = (None, None);
            self.repair.look_at = None;
            self.repair.damages.try_again();
            return RepairStep::Check;
        }
        let place = match looked {
            Look::Try(place) => Some(place),
            _ if std::mem::take(&mut self.repair.aside_is_due) => self.repair.damages.unfit_place(),
            _ => None,
        };
        let Some(place) = place else { return RepairStep::Wait };
        let from = place.offset.max(self.partition.log_start());
        self.repair.aside = Some(from);
        RepairStep::FetchAside { from }
    }

    /// The position of a fetch aside from `from`. `None`: it does not follow, or another place is wanted by now.
    pub fn aside_position(&self, from: Offset) -> Option<FetchPosition> {
        let (_, leader_epoch) = self.following.filter(|_| self.repair.aside == Some(from))?;
        let epochs = self.log.epochs();
        let last_epoch = epochs.epoch_at(from.plus(-1)).filter(|_| from > self.partition.log_start());
        Some(FetchPosition {
            leader_epoch,
            offset: from,
            last_epoch,
            log_start: self.partition.log_start(),
            high_watermark: self.partition.high_watermark(),
        })
    }

    /// Takes what the leader has sent to a fetch aside: over what is damaged, if it fits. Returns where the leader
    /// itself is damaged, if that is news.
    ///
    /// # Errors
    /// As [`Replica::take_again`].
    pub fn take_aside(
        &mut self,
        asked: &FetchPosition,
        records: Bytes,
        files: &mut FilePool,
    ) -> Result<Option<BothDamaged>, StorageError> {
        let Some(place) = self.aside_place(asked) else { return Ok(None) };
        if records.is_empty() {
            // Not committed there yet: it is asked for again.
            return Ok(None);
        }
        let sound = sound_front(&records);
        if sound == 0 {
            return Ok(self.leader_is_damaged_aside(asked));
        }
        self.repair.aside = None;
        if self.repair.damages.place() == Some(place) {
            self.mend_place(place, &records[..sound], files)?;
            return Ok(None);
        }
        match self.log.mend(files, place, &records[..sound], self.partition.high_watermark())? {
            Mend::Done { end } => {
                self.repair.damages.note_mended(place, end);
                self.repair.damages.try_again();
            }
            Mend::Sound => self.repair.damages.try_again(),
            Mend::Unfit => {}
        }
        Ok(None)
    }

    /// The leader says that it is damaged where it was asked aside. Returns that if it is news.
    pub fn leader_is_damaged_aside(&mut self, asked: &FetchPosition) -> Option<BothDamaged> {
        let place = self.aside_place(asked)?;
        self.repair.aside = None;
        let news = self.repair.note_leader(asked.offset);
        if self.repair.damages.place() == Some(place) {
            self.repair.damages.tried(None);
        }
        news
    }

    /// The place that was asked for, if the answer still is about this log.
    fn aside_place(&self, asked: &FetchPosition) -> Option<DamagedPlace> {
        if self.truncation.is_some() || self.aside_position(asked.offset)?.leader_epoch != asked.leader_epoch
        {
            return None;
        }
        let Self { repair, partition, .. } = self;
        let place = repair.damages.place().or(repair.damages.unfit_place())?;
        (place.offset.max(partition.log_start()) == asked.offset).then_some(place)
    }
}
