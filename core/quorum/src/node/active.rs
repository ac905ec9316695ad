//! The leader's side of a node: requests to the controller, records to the quorum and on top of the working image,
//! answers once all that they rest on is committed.
//!
//! Source: Kafka `QuorumController`.

use std::collections::VecDeque;
use std::sync::Arc;

use barnabas_base::{BrokerEpoch, BrokerId, LeaderEpoch, Offset, TimestampMs};
use barnabas_metadata::{Changes, Image, MetadataVersion, Provenance};
use barnabas_wire::{MetadataRecord, RequestBody, ResponseBody};

use super::{Declined, Effect, Node, Now, Ticket};
use crate::QuorumError;
use crate::batches::EncodedBatch;
use crate::controller::{Asked, Controller, Outcome};

struct Pending {
    end: Offset,
    image: Arc<Image>,
    changes: Changes,
}

struct Waiting {
    end: Offset,
    ticket: Ticket,
    response: ResponseBody,
}

/// What a node has while it leads.
pub(super) struct Active {
    pub controller: Controller,
    /// States that wait for their commit.
    pending: VecDeque<Pending>,
    waiting: VecDeque<Waiting>,
}

impl Active {
    pub fn new(controller: Controller) -> Self {
        Self { controller, pending: VecDeque::new(), waiting: VecDeque::new() }
    }

    /// Those who wait for an answer.
    pub fn into_waiting(self) -> impl Iterator<Item = Ticket> {
        self.waiting.into_iter().map(|waiting| waiting.ticket)
    }
}

impl Node {
    /// Takes a request of the controller's. The answer comes as [`Effect::Respond`], once what it says is safe; or as
    /// [`Effect::Decline`].
    ///
    /// `random` draws 16 random bytes: for topic ids.
    ///
    /// # Errors
    /// In the outer result, what stops the node. In the inner one, a request that this node cannot answer.
    pub fn handle(
        &mut self,
        ticket: Ticket,
        request: RequestBody,
        asked: Asked,
        now: Now,
        random: &mut dyn FnMut() -> [u8; 16],
    ) -> Result<Result<(), Declined>, QuorumError> {
        let Some(active) = &mut self.active else { return Ok(Err(Declined::NotActive)) };
        if let RequestBody::DescribeQuorum(request) = &request {
            let response = self.describe_quorum(request, now);
            self.answer(ticket, self.raft.high_watermark(), response.into());
            return Ok(Ok(()));
        }
        let next = self.raft.log_end();
        let level = self.raft.kraft_version();
        let kept = matches!(request, RequestBody::UpdateFeatures(_)).then(|| level.saturating_add(1));
        let kept = kept.and_then(|next| self.raft.refuse_kraft_version(next));
        active.controller.set_kraft_version(level, kept);
        let outcome = active.controller.handle(self.delta.image(), &request, &asked, next, now, random);
        let Some(outcome) = outcome else { return Ok(Err(Declined::NotForController)) };
        self.carry_out(ticket, outcome, now)?;
        Ok(Ok(()))
    }

    fn carry_out(&mut self, ticket: Ticket, outcome: Outcome, now: Now) -> Result<(), QuorumError> {
        let Outcome { records, atomic, kraft_version, response, refused } = outcome;
        let mut written = true;
        let response = if records.is_empty() {
            response
        } else {
            match self.append(&records, atomic, now) {
                Ok(()) => response,
                // Nothing was written: the request asks for more than the cluster's level can do at once, or for a
                // name that no record can carry.
                Err(error @ (QuorumError::TooLarge { .. } | QuorumError::Encode(_))) => {
                    written = false;
                    refused(&error.to_string())
                }
                Err(error) => return Err(error),
            }
        };
        // It may have stopped leading while it wrote.
        if let Some(level) = kraft_version.filter(|_| written && self.raft.leads()) {
            self.raft.raise_kraft_version(level, now)?;
            self.collect(now)?;
        }
        // An answer without records of its own may still rest on records that are not committed yet.
        self.answer(ticket, self.raft.log_end(), response);
        Ok(())
    }

    fn answer(&mut self, ticket: Ticket, end: Offset, response: ResponseBody) {
        match &mut self.active {
            _ if end <= self.raft.high_watermark() => self.effects.push(Effect::Respond { ticket, response }),
            Some(active) => active.waiting.push_back(Waiting { end, ticket, response }),
            // It stopped leading while it wrote.
            None => self.effects.push(Effect::Decline(ticket)),
        }
    }

    /// The connection of this broker's life is closed, and its process is gone, as far as one can tell: it is fenced
    /// without waiting for its session to run out.
    ///
    /// # Errors
    /// What stops the node.
    pub fn broker_is_gone(&mut self, id: BrokerId, epoch: BrokerEpoch, now: Now) -> Result<(), QuorumError> {
        let image = self.delta.image();
        let Some(active) = &mut self.active else { return Ok(()) };
        let records = active.controller.broker_is_gone(image, id, epoch);
        if records.is_empty() { Ok(()) } else { self.append(&records, false, now) }
    }

    /// Writes records to the log and puts them on top of the working image.
    pub(super) fn append(
        &mut self,
        records: &[MetadataRecord],
        atomic: bool,
        now: Now,
    ) -> Result<(), QuorumError> {
        let version = self.delta.image().metadata_version();
        self.append_at(records, version, atomic, now)
    }

    pub(super) fn append_at(
        &mut self,
        records: &[MetadataRecord],
        version: MetadataVersion,
        atomic: bool,
        now: Now,
    ) -> Result<(), QuorumError> {
        let base = self.raft.log_end();
        let epoch = self.raft.epoch();
        self.raft.append(records, version, atomic, now)?;
        for record in records {
            let replayed = self.delta.replay(record);
            replayed.map_err(|source| QuorumError::Replay { offset: base, source })?;
        }
        self.last_append = now.monotonic;
        self.note_pending(self.raft.log_end(), epoch, now.wall);
        self.collect(now)
    }

    /// Notes the state after what was replayed, to be published when it is committed.
    pub(super) fn note_pending(&mut self, end: Offset, last_epoch: LeaderEpoch, last_timestamp: TimestampMs) {
        self.applied = end;
        self.delta.advance(Provenance { end, last_epoch, last_timestamp });
        self.note_time(last_timestamp, true);
        let (image, changes) = self.delta.take();
        if let Some(active) = &mut self.active {
            active.pending.push_back(Pending { end, image: Arc::new(image), changes });
        }
    }

    /// Replays a batch that this node did not write as its controller: of leaders before it, or of the quorum itself.
    pub(super) fn apply_as_leader(&mut self, batch: &EncodedBatch) -> Result<(), QuorumError> {
        let header = self.replay_batch(batch)?;
        self.note_pending(batch.end, header.partition_leader_epoch, header.max_timestamp);
        Ok(())
    }

    /// As [`Node::committed`], of a leader.
    pub(super) fn committed_as_leader(&mut self, end: Offset) {
        let Some(active) = &mut self.active else { return };
        let mut newest: Option<Pending> = None;
        while active.pending.front().is_some_and(|pending| pending.end <= end) {
            let Some(next) = active.pending.pop_front() else { break };
            newest = Some(match newest {
                None => next,
                Some(mut before) => {
                    before.changes.merge(next.changes);
                    Pending { changes: before.changes, ..next }
                }
            });
        }
        let mut answered = Vec::new();
        while active.waiting.front().is_some_and(|waiting| waiting.end <= end) {
            answered.extend(active.waiting.pop_front());
        }
        if let Some(Pending { image, changes, .. }) = newest {
            self.show(image, changes);
        }
        for Waiting { ticket, response, .. } in answered {
            self.effects.push(Effect::Respond { ticket, response });
        }
    }
}
