//! What must hold after every step, one invariant per file, and what they all know: what was shown, what was acknowledged.

mod acknowledged_is_kept;
mod at_rest;
mod batches_once;
mod exposed_is_safe;
mod logs_match;
mod nothing_above;
mod nothing_cut_below;
mod one_leader;

use std::collections::BTreeMap;

use barnabas_base::{BrokerId, Offset};

use super::Batch;
use super::client::Client;
use super::controller::Controller;
use super::node::{Event, Node};

/// An invariant that does not hold: which, and how it was seen.
pub(super) type Violation = String;

/// The whole world, as an invariant sees it.
pub(super) struct View<'a> {
    pub nodes: &'a [Node],
    pub controller: &'a Controller,
    pub clients: &'a [Client],
    /// Below, records were deleted on demand.
    pub deleted_to: Offset,
}

impl View<'_> {
    fn node(&self, id: BrokerId) -> Option<&Node> {
        self.nodes.iter().find(|node| node.id == id)
    }
}

/// What has been shown to anybody, by base offset, and what was acknowledged.
#[derive(Debug, Default)]
pub(super) struct History {
    shown: BTreeMap<Offset, Batch>,
    shown_end: Offset,
    acked: Vec<Batch>,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Judge {
    history: History,
    once: batches_once::BatchesOnce,
    matching: logs_match::LogsMatch,
    leaders: one_leader::OneLeader,
    /// Records may be lost: only what holds all the same is judged.
    pub is_reckless: bool,
}

impl Judge {
    /// One node did something.
    pub fn happened(&mut self, id: BrokerId, event: &Event, view: &View<'_>) -> Result<(), Violation> {
        let Some(node) = view.node(id) else { return Ok(()) };
        match event {
            Event::Leads if self.is_reckless => self.leaders.leads(node),
            _ if self.is_reckless => Ok(()),
            Event::HighWatermark(to) => {
                let is_leader = node.running.as_ref().is_some_and(|running| running.partition.is_leader());
                if is_leader && *to > self.history.shown_end {
                    let from = self.history.shown_end;
                    let is_new = |batch: &&Batch| batch.base >= from && batch.end() <= *to;
                    for batch in node.log().iter().filter(is_new) {
                        exposed_is_safe::check(batch, view)?;
                        self.once.shown(batch)?;
                        self.history.shown.insert(batch.base, *batch);
                    }
                    self.history.shown_end = *to;
                }
                self.matching.check(node, *to, &self.history)
            }
            Event::Acked { batch, base } => self.history.ack(batch, *base),
            Event::Truncated { to, high_watermark } => {
                self.matching.forget(id);
                nothing_cut_below::check(id, *to, *high_watermark)
            }
            Event::Healed { to } => {
                self.matching.forget(id);
                nothing_cut_below::check_healed(id, *to, &self.history, view)
            }
            Event::Leads => {
                self.leaders.leads(node)?;
                acknowledged_is_kept::check(node, &self.history, view)
            }
        }
    }

    pub fn restarted(&mut self, id: BrokerId) {
        self.matching.forget(id);
    }

    pub fn read(&self, batches: &[Batch], end: Offset) -> Result<(), Violation> {
        if self.is_reckless {
            return Ok(());
        }
        nothing_above::check(batches, end, &self.history)
    }

    /// The faults are over, and there was time: nothing is left undone.
    pub fn at_rest(&self, view: &View<'_>) -> Result<(), Violation> {
        at_rest::check_equal(view)?;
        if self.is_reckless { Ok(()) } else { at_rest::check_done(&self.history, view) }
    }

    pub fn acked(&self) -> usize {
        self.history.acked.len()
    }

    pub fn shown_end(&self) -> Offset {
        self.history.shown_end
    }
}

impl History {
    fn ack(&mut self, info: &crate::BatchInfo, base: Offset) -> Result<(), Violation> {
        match self.shown.get(&base) {
            Some(batch) if batch.info == *info => {
                self.acked.push(*batch);
                Ok(())
            }
            other => Err(format!("acknowledged before it was safe: {info:?} at {base}, where {other:?} is")),
        }
    }
}
