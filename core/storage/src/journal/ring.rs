//! Which file a round goes to, and which file may be reused.
//!
//! The journal is one endless row of *lives* (a life: one filling of one file), over a fixed number of files. A
//! file whose life lies behind the *durable* replay point is free. One free file is kept back always: a round may take
//! it only where that round, once durable, frees another. So a torn first round of a new life never costs anything but
//! itself.

use std::collections::VecDeque;

use super::types::Place;
use crate::disk::block_buffer::BLOCK_BYTES;

#[derive(Debug)]
pub(super) struct Ring {
    file_bytes: u32,
    /// The life that each file holds; `None`: nothing that counts.
    slots: Vec<Option<u64>>,
    /// Where the next round goes if it fits; `None` before the first one.
    current: Option<Current>,
    next_life: u64,
    /// From the newest durable round.
    durable_replay_from: Place,
    /// Rounds that still hold something, or are followed by one that does. Oldest first, without gaps.
    rounds: VecDeque<HeldRound>,
}

#[derive(Debug, Clone, Copy)]
struct Current {
    slot: usize,
    place: Place,
}

#[derive(Debug)]
struct HeldRound {
    number: u64,
    place: Place,
    /// Entries not yet written back and synced.
    holds: u32,
}

impl Ring {
    /// `slots`: what lives the files hold, of which those from `replay_from` on may still be needed.
    pub(super) fn new(file_bytes: u32, slots: Vec<Option<u64>>, replay_from: Place, next_life: u64) -> Self {
        Self {
            file_bytes,
            slots,
            current: None,
            next_life,
            durable_replay_from: replay_from,
            rounds: VecDeque::new(),
        }
    }

    /// Goes on with rounds that an earlier process wrote: number, place, and how many of their entries are not
    /// written back; without gaps.
    pub(super) fn go_on(&mut self, rounds: impl Iterator<Item = (u64, Place, u32)>) {
        self.rounds = rounds.map(|(number, place, holds)| HeldRound { number, place, holds }).collect();
        self.trim();
    }

    /// Drops the last file if it is more than `wanted`, free, and most are free without it.
    pub(super) fn shrink(&mut self, wanted: usize) -> bool {
        let last = self.slots.len() - 1;
        let is_surplus = self.slots.len() > wanted && self.is_free(last) && self.free() > last / 2 + 1;
        if is_surplus {
            self.slots.pop();
        }
        is_surplus
    }

    fn is_free(&self, slot: usize) -> bool {
        self.slots[slot].is_none_or(|life| life < self.durable_replay_from.life)
    }

    pub(super) fn free(&self) -> usize {
        (0..self.slots.len()).filter(|slot| self.is_free(*slot)).count()
    }

    fn fits_current(&self, bytes: usize) -> bool {
        self.current.is_some_and(|current| bytes <= (self.file_bytes - current.place.position) as usize)
    }

    /// Whether a round of `bytes` can be placed now.
    pub(super) fn fits(&self, bytes: usize) -> bool {
        if bytes > self.file_bytes as usize {
            return false;
        }
        if self.fits_current(bytes) {
            return true;
        }
        match self.free() {
            0 => false,
            1 => self.next_round_frees_a_file(),
            _ => true,
        }
    }

    /// Whether a round that is written now would free a file once it is durable.
    pub(super) fn next_round_frees_a_file(&self) -> bool {
        let new_life = Place { life: self.next_life, position: 0 };
        let replay_from = self.replay_from(new_life).life;
        (0..self.slots.len()).any(|slot| !self.is_free(slot) && self.slots[slot] < Some(replay_from))
    }

    /// Gives the round `number` its place: slot, place, and the replay point that it has to carry. `None`: no room.
    pub(super) fn place(&mut self, number: u64, bytes: usize, holds: u32) -> Option<(usize, Place, Place)> {
        if !self.fits(bytes) {
            return None;
        }
        if !self.fits_current(bytes) {
            let slot = (0..self.slots.len()).find(|slot| self.is_free(*slot))?;
            let place = Place { life: self.next_life, position: 0 };
            self.next_life += 1;
            self.slots[slot] = Some(place.life);
            self.current = Some(Current { slot, place });
        }
        let current = self.current.as_mut()?;
        let (slot, place) = (current.slot, current.place);
        current.place.position += u32::try_from(bytes.next_multiple_of(BLOCK_BYTES)).ok()?;
        let replay_from = self.replay_from(place);
        self.rounds.push_back(HeldRound { number, place, holds });
        self.trim();
        Some((slot, place, replay_from))
    }

    /// Where replay has to begin, seen from a round at `place`.
    pub(super) fn replay_from(&self, place: Place) -> Place {
        self.rounds.iter().find(|round| round.holds > 0).map_or(place, |round| round.place)
    }

    /// The newest durable round carries this replay point.
    pub(super) fn durable(&mut self, replay_from: Place) {
        assert!(replay_from >= self.durable_replay_from, "the replay point never moves back");
        self.durable_replay_from = replay_from;
    }

    /// One entry of this round is written back and synced, or never will need to be.
    pub(super) fn release(&mut self, number: u64) {
        let first = self.rounds.front().expect("a round that holds something is remembered").number;
        let round = &mut self.rounds[usize::try_from(number - first).expect("rounds fit in memory")];
        assert!(round.number == number && round.holds > 0, "an entry is released once");
        round.holds -= 1;
        self.trim();
    }

    fn trim(&mut self) {
        // The last one stays: it may be on its way to the disk.
        while self.rounds.len() > 1 && self.rounds.front().is_some_and(|round| round.holds == 0) {
            self.rounds.pop_front();
        }
    }

    /// The life of the oldest file that is held, if one is.
    pub(super) fn oldest_held(&self) -> Option<u64> {
        self.rounds.iter().find(|round| round.holds > 0).map(|round| round.place.life)
    }

    /// In which life this round lies.
    pub(super) fn life_of(&self, number: u64) -> Option<u64> {
        let first = self.rounds.front()?.number;
        let round = self.rounds.get(usize::try_from(number.checked_sub(first)?).ok()?)?;
        Some(round.place.life)
    }

    #[cfg(test)]
    pub(super) fn rounds(&self) -> usize {
        self.rounds.len()
    }

    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }
}
