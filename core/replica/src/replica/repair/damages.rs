//! Which places of a log are damaged, and what became of each.
//!
//! A reader or the scrub notes an offset. The segment that holds it is then checked as a whole, a piece at a time. Each
//! place that is found is tried once with what the leader has there. If one of them was mended, the segment is checked
//! again: behind a header that cannot be read nothing is found before that one is mended. A segment in which something
//! could not be mended is *unfit*: its damage stays until it is checked again ([`Damages::try_again`]), or whole
//! segments are given up.
//!
//! Always true:
//! 1. what is kept has a bound. Damage behind the places that are kept is found when their segments are checked
//! 2. an unfit segment is forgotten only when a check has found it sound, or its records are deleted

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use barnabas_base::Offset;
use barnabas_storage::scrub::{Scrubbed, SegmentScrub};
use barnabas_storage::{DamagedPlace, FilePool, Log, StorageError};

/// Offsets that are kept until their segments are checked, and places of one segment.
const KEPT_MAX: usize = 64;
/// A piece of a segment that is checked at once.
const PIECE_BYTES: u64 = 1 << 20;
/// So often a segment is checked again: a disk that returns something else than was written to it is not mended.
const PASSES_MAX: u32 = 64;

#[derive(Debug, Default)]
pub(super) struct Damages {
    noted: BTreeSet<Offset>,
    /// More than is kept was noted: from here on every segment is checked.
    all_from: Option<Offset>,
    checked: Option<Checked>,
    /// The first place that the leader's batches do not fit.
    unfit: Option<Offset>,
    /// That place, where the file shows one.
    unfit_place: Option<DamagedPlace>,
    /// Segments with such places, by base offset, and the first place of each.
    unfit_segments: BTreeMap<Offset, Offset>,
    /// What was mended: from where, and where the last of it ends.
    mended: Option<(Offset, Offset)>,
}

/// The segment that is checked and mended.
#[derive(Debug)]
struct Checked {
    /// An offset in it.
    offset: Offset,
    base: Offset,
    /// The check, while it goes on.
    walk: Option<Box<SegmentScrub>>,
    /// What it has found and was not tried yet, in rising order.
    places: VecDeque<DamagedPlace>,
    passes: u32,
    /// Something was mended since it was last checked.
    is_changed: bool,
    /// The first place since then that could not be mended.
    unfit: Option<DamagedPlace>,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// Another piece is to be checked.
    Goes,
    /// The machine lacks something: later.
    Later,
    /// What the leader has here is to be tried.
    Try(DamagedPlace),
    /// Everything was tried.
    Done,
}

impl Damages {
    /// Where the first damage is that is known.
    pub fn first(&self) -> Option<Offset> {
        let place = self.place().map(|place| place.offset);
        [self.noted.first().copied(), place, self.unfit, self.all_from].into_iter().flatten().min()
    }

    pub fn unfit(&self) -> Option<Offset> {
        self.unfit
    }

    /// The first place that could not be mended, where the file shows one.
    pub fn unfit_place(&self) -> Option<DamagedPlace> {
        self.unfit_place.filter(|place| Some(place.offset) == self.unfit)
    }

    pub fn mended(&self) -> Option<(Offset, Offset)> {
        self.mended
    }

    /// `segment`: the base offset of the segment that holds it.
    pub fn note(&mut self, offset: Offset, segment: Offset) {
        if self.unfit_segments.contains_key(&segment) || !self.noted.insert(offset) {
            return;
        }
        if self.noted.len() > KEPT_MAX {
            let last = self.noted.pop_last();
            self.all_from = self.all_from.min(last).or(last);
        }
    }

    /// Damage outside of `start..end` is gone with what was deleted or truncated.
    pub fn keep(&mut self, start: Offset, end: Offset) {
        let holds = |offset: &Offset| (start..end).contains(offset);
        self.noted.retain(holds);
        self.all_from = self.all_from.map(|from| from.max(start)).filter(holds);
        self.unfit = self.unfit.filter(holds);
        self.unfit_segments.retain(|_, unfit| holds(unfit));
        self.unfit = self.unfit.or(self.unfit_segments.values().min().copied());
        if let Some(checked) = &mut self.checked {
            checked.places.retain(|place| holds(&place.offset));
            checked.unfit = checked.unfit.filter(|place| holds(&place.offset));
        }
    }

    /// What did not fit may fit now, or may not be damaged any more: those segments are checked again.
    pub fn try_again(&mut self) {
        if self.unfit_segments.len() >= KEPT_MAX {
            // Others were not kept.
            self.all_from = self.all_from.min(self.unfit).or(self.unfit);
        }
        self.noted.extend(self.unfit.take());
        self.noted.extend(std::mem::take(&mut self.unfit_segments).into_values());
        self.unfit_place = None;
        self.checked.take_if(|checked| checked.unfit.is_some());
    }

    /// Continues the check. `start`: what lies below is not looked at.
    pub fn look(&mut self, log: &Log, files: &FilePool, has_no_holes: bool, start: Offset) -> Look {
        loop {
            let Some(checked) = &mut self.checked else {
                let Some(offset) = self.noted.first().copied().into_iter().chain(self.all_from).min() else {
                    return Look::Done;
                };
                let base = log.segment_base_of(offset);
                match log.segment_check(files, offset, has_no_holes) {
                    Ok(Some(walk)) => self.checked = Some(Checked::new(offset, base, walk)),
                    Ok(None) => self.passed(log, offset, base),
                    Err(error) if error.is_passing() => return Look::Later,
                    Err(_) => self.cannot_mend(log, offset, base, offset),
                }
                continue;
            };
            let (offset, base) = (checked.offset, checked.base);
            match checked.look(start) {
                Ok(Some(look)) => return look,
                Ok(None) if checked.is_changed && checked.passes < PASSES_MAX => {
                    match log.segment_check(files, offset, has_no_holes) {
                        Ok(Some(walk)) => checked.check_again(walk),
                        Ok(None) => self.passed(log, offset, base),
                        Err(error) if error.is_passing() => return Look::Later,
                        Err(_) => self.cannot_mend(log, offset, base, offset),
                    }
                }
                Ok(None) => match checked.unfit {
                    Some(place) => {
                        if self.unfit.is_none_or(|unfit| place.offset < unfit) {
                            self.unfit_place = Some(place);
                        }
                        self.cannot_mend(log, offset, base, place.offset);
                    }
                    None if checked.is_changed => self.cannot_mend(log, offset, base, offset),
                    None => self.passed(log, offset, base),
                },
                // It cannot be read at all.
                Err(_) => self.cannot_mend(log, offset, base, offset),
            }
        }
    }

    /// What the leader's batches are to be tried at.
    pub fn place(&self) -> Option<DamagedPlace> {
        let checked = self.checked.as_ref().filter(|checked| checked.walk.is_none())?;
        checked.places.front().copied()
    }

    /// The place has been tried: the leader's batches were written up to `end`, or do not fit (`None`).
    pub fn tried(&mut self, end: Option<Offset>) {
        let Some(checked) = &mut self.checked else { return };
        let Some(place) = checked.places.pop_front() else { return };
        match end {
            Some(end) => {
                checked.is_changed = true;
                self.note_mended(place, end);
            }
            None => checked.unfit = Some(checked.unfit.map_or(place, |unfit| unfit.min(place))),
        }
    }

    /// The leader's batches were written over `place`, up to `end`.
    pub fn note_mended(&mut self, place: DamagedPlace, end: Offset) {
        let (from, to) = self.mended.unwrap_or((place.offset, end));
        self.mended = Some((from.min(place.offset), to.max(end)));
    }

    /// Nothing is damaged in that segment any more.
    fn passed(&mut self, log: &Log, offset: Offset, base: Offset) {
        let next = log.next_segment_base(offset);
        let is_here = |at: &Offset| (base..next.unwrap_or(Offset(i64::MAX))).contains(at);
        self.noted.retain(|noted| !is_here(noted) && *noted != offset);
        if self.all_from.is_some_and(|from| is_here(&from)) {
            self.all_from = next;
        }
        self.checked = None;
    }

    fn cannot_mend(&mut self, log: &Log, offset: Offset, base: Offset, unfit: Offset) {
        self.unfit = self.unfit.min(Some(unfit)).or(Some(unfit));
        if self.unfit_segments.len() < KEPT_MAX {
            self.unfit_segments.insert(base, unfit);
        }
        self.passed(log, offset, base);
    }
}

impl Checked {
    fn new(offset: Offset, base: Offset, walk: SegmentScrub) -> Self {
        let walk = Some(Box::new(walk));
        Self { offset, base, walk, places: VecDeque::new(), passes: 1, is_changed: false, unfit: None }
    }

    fn check_again(&mut self, walk: SegmentScrub) {
        self.walk = Some(Box::new(walk));
        (self.is_changed, self.unfit) = (false, None);
        self.passes += 1;
    }

    /// `None`: the check has ended, and everything that it found was tried.
    fn look(&mut self, start: Offset) -> Result<Option<Look>, StorageError> {
        let Some(walk) = &mut self.walk else { return Ok(self.places.front().copied().map(Look::Try)) };
        match walk.step(PIECE_BYTES)? {
            Scrubbed::Sound(_) => Ok(Some(Look::Goes)),
            Scrubbed::Damage(_, error) => {
                let place = DamagedPlace::of(&error).filter(|place| place.offset >= start);
                let is_kept = self.places.len() < KEPT_MAX;
                self.places.extend(place.filter(|_| is_kept));
                Ok(Some(Look::Goes))
            }
            Scrubbed::End(_) => {
                self.walk = None;
                Ok(self.places.front().copied().map(Look::Try))
            }
        }
    }
}
