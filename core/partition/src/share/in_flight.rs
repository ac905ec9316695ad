//! The records between a share partition's start and end: one state for a whole batch as long as that is true of all of
//! it, one for each record after that.
//!
//! Always true of a state: who holds it, until when, is known exactly while it is acquired; a change that is being
//! written down can be taken back until it is.

use std::collections::VecDeque;

use barnabas_base::{MonotonicMs, Offset, Text};

use super::types::{RecordState, ShareSettings, StateBatch};
use crate::Ticket;

/// One record's state, or that of a batch of them.
#[derive(Debug, Clone)]
pub(super) struct State {
    pub state: RecordState,
    pub delivery_count: u16,
    /// Who has acquired it.
    pub owner: Option<Text>,
    /// Kept while its acknowledgement is written down.
    pub locked_until: Option<MonotonicMs>,
    /// What it was before the change that is being written down.
    before: Option<Box<Before>>,
    /// Archived for good, whatever becomes of a change under way.
    is_final: bool,
}

#[derive(Debug, Clone)]
struct Before {
    state: RecordState,
    owner: Option<Text>,
}

impl State {
    pub fn new(state: RecordState, delivery_count: u16) -> Self {
        Self { state, delivery_count, owner: None, locked_until: None, before: None, is_final: false }
    }

    pub fn acquired(member: &Text, until: MonotonicMs) -> Self {
        Self { owner: Some(member.clone()), locked_until: Some(until), ..Self::new(RecordState::Acquired, 1) }
    }

    pub fn is_changing(&self) -> bool {
        self.before.is_some()
    }

    /// Whether anybody may acquire it.
    pub fn is_free(&self) -> bool {
        self.state == RecordState::Available && !self.is_changing()
    }

    /// Nothing becomes of it any more, and that is written down.
    pub fn is_settled(&self) -> bool {
        self.state.is_done() && !self.is_changing()
    }

    pub fn is_held_by(&self, member: &Text) -> bool {
        self.owner.as_ref() == Some(member)
    }

    /// Delivered once more.
    pub fn take(&mut self, member: &Text, until: MonotonicMs) {
        assert!(self.is_free(), "only what is free is acquired");
        self.state = RecordState::Acquired;
        self.delivery_count = self.delivery_count.saturating_add(1);
        self.owner = Some(member.clone());
        self.locked_until = Some(until);
    }

    /// Ends the lock. A record that has been delivered as often as allowed does not become available again.
    pub fn leave(&mut self, wanted: RecordState, settings: &ShareSettings) {
        let is_spent = self.delivery_count >= settings.deliveries_max;
        self.state = match wanted {
            RecordState::Available if is_spent && settings.dead_letters => RecordState::Archiving,
            RecordState::Available if is_spent => RecordState::Archived,
            wanted => wanted,
        };
        self.owner = None;
    }

    /// As [`State::leave`], to be taken back if it cannot be written down.
    pub fn begin(&mut self, wanted: RecordState, settings: &ShareSettings) {
        let before = Before { state: self.state, owner: self.owner.clone() };
        self.leave(wanted, settings);
        self.before = Some(Box::new(before));
    }

    /// The change is written down, or cannot be.
    pub fn end(&mut self, is_written: bool, settings: &ShareSettings, now: MonotonicMs) {
        let Some(before) = self.before.take() else { return };
        if is_written || self.is_final {
            self.locked_until = None;
            return;
        }
        self.state = before.state;
        if self.locked_until.is_some_and(|until| until <= now) {
            // There is no dead letter for it: nothing of it is written.
            self.locked_until = None;
            self.leave(RecordState::Available, &ShareSettings { dead_letters: false, ..*settings });
        } else {
            self.owner = before.owner;
        }
    }

    /// For good.
    pub fn archive(&mut self) {
        self.is_final = true;
        self.state = RecordState::Archived;
        self.owner = None;
        self.locked_until = None;
    }
}

#[derive(Debug, Clone)]
pub(super) enum States {
    Whole(State),
    /// From the batch's first offset on.
    Each(VecDeque<State>),
}

/// Neighbouring records that were acquired together. Its first offset is its key.
#[derive(Debug, Clone)]
pub(super) struct InFlight {
    pub last: Offset,
    pub states: States,
    /// How many records it has lost at its front since it was acquired.
    cut: i64,
}

impl InFlight {
    pub fn whole(last: Offset, state: State) -> Self {
        Self { last, states: States::Whole(state), cut: 0 }
    }

    /// The number of records that were acquired together, those that are gone since included.
    pub fn acquired_count(&self, first: Offset) -> i64 {
        first.count_to(self.last) + self.cut
    }

    pub fn is_split(&self) -> bool {
        matches!(self.states, States::Each(_))
    }

    /// The states with their ranges, within `from` to `to`. A whole batch counts with all of it.
    pub fn within(&self, first: Offset, from: Offset, to: Offset) -> impl Iterator<Item = (Run, &State)> {
        let (whole, each) = match &self.states {
            States::Whole(state) => (Some((Run { first, last: self.last }, state)), None),
            States::Each(states) => (None, Some(states)),
        };
        let (skip, take) = (index(first, from), length(first, from, to));
        let each = each.into_iter().flat_map(move |states| {
            let states = states.iter().enumerate().skip(skip).take(take);
            states.map(move |(at, state)| (Run::one(first.plus(at as i64)), state))
        });
        whole.into_iter().chain(each)
    }

    /// As [`InFlight::within`], to be changed.
    pub fn within_mut(
        &mut self,
        first: Offset,
        from: Offset,
        to: Offset,
    ) -> impl Iterator<Item = (Run, &mut State)> {
        let last = self.last;
        let (whole, each) = match &mut self.states {
            States::Whole(state) => (Some((Run { first, last }, state)), None),
            States::Each(states) => (None, Some(states)),
        };
        let (skip, take) = (index(first, from), length(first, from, to));
        let each = each.into_iter().flat_map(move |states| {
            let states = states.iter_mut().enumerate().skip(skip).take(take);
            states.map(move |(at, state)| (Run::one(first.plus(at as i64)), state))
        });
        whole.into_iter().chain(each)
    }

    /// From now on each record has its own state.
    pub fn split(&mut self, first: Offset) {
        if let States::Whole(state) = &self.states {
            let count = Run { first, last: self.last }.count();
            self.states = States::Each((0..count).map(|_| state.clone()).collect());
        }
    }

    /// Forgets the records below `to`; the batch begins there then.
    pub fn cut_front(&mut self, first: Offset, to: Offset) {
        if let States::Each(states) = &mut self.states {
            states.drain(..index(first, to).min(states.len()));
        }
        self.cut += to.since(first).max(0);
    }
}

/// Neighbouring offsets, `last` included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub first: Offset,
    pub last: Offset,
}

impl Run {
    fn one(offset: Offset) -> Self {
        Self { first: offset, last: offset }
    }

    pub fn count(self) -> i64 {
        self.first.count_to(self.last)
    }
}

/// Where `offset` stands in a batch that begins at `first`.
fn index(first: Offset, offset: Offset) -> usize {
    usize::try_from(offset.since(first)).unwrap_or(0)
}

/// How many records from `from` to `to`, of those at or past `first`.
fn length(first: Offset, from: Offset, to: Offset) -> usize {
    usize::try_from(from.max(first).count_to(to)).unwrap_or(0)
}

/// A run of records that changes its state.
#[derive(Debug, Clone)]
pub(super) struct Change {
    pub batch: StateBatch,
    /// By a member's word.
    pub rejected: bool,
}

/// A write that has not been answered.
#[derive(Debug, Clone)]
pub(super) struct Pending {
    pub(super) changes: Vec<Change>,
    pub(super) ticket: Option<Ticket>,
    /// The states go back to what they were if it fails.
    pub(super) can_go_back: bool,
}

/// Changes of state, neighbours of the same kind in one.
#[derive(Debug, Default)]
pub(super) struct Changes(pub Vec<Change>);

impl Changes {
    pub fn add(&mut self, run: Run, state: &State, rejected: bool) {
        let new = StateBatch {
            first: run.first,
            last: run.last,
            state: state.state,
            delivery_count: state.delivery_count,
        };
        match self.0.last_mut() {
            Some(Change { batch, rejected: before })
                if batch.last.plus(1) == new.first
                    && (batch.state, batch.delivery_count, *before)
                        == (new.state, new.delivery_count, rejected) =>
            {
                batch.last = new.last;
            }
            _ => self.0.push(Change { batch: new, rejected }),
        }
    }
}
