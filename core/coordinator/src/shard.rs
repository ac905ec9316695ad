//! One partition of `__consumer_offsets`: its groups and their offsets.

use barnabas_base::{ErrorCode, MonotonicMs, Offset, ProducerId, Text, TopicId};
use bytes::Bytes;

use crate::framework::{BatchId, Caller, Effect, Now, Ticket};
use crate::records::LoadError;
use crate::{GroupConfig, Request};

/// How much a shard holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GroupStats {
    pub groups: usize,
    pub members: usize,
    pub offsets: usize,
    pub pending_batches: usize,
    pub timers: usize,
}

/// The coordinator of the groups of one partition.
///
/// Life: [`GroupShard::new`], [`GroupShard::replay`] for every record of the partition from its start,
/// [`GroupShard::activate`]; then whatever comes; in the end [`GroupShard::unload`]. Until `activate`, every request is told
/// that loading is in progress.
#[derive(Debug)]
pub struct GroupShard {
    config: GroupConfig,
}

impl GroupShard {
    pub fn new(config: GroupConfig) -> Self {
        Self { config }
    }

    /// Takes in one record while loading. `producer`: [`ProducerId::NONE`] unless the batch is transactional.
    ///
    /// # Errors
    /// The record cannot be read; stop loading and report it.
    pub fn replay(
        &mut self,
        _offset: Offset,
        _producer: ProducerId,
        _key: &Bytes,
        _value: Option<&Bytes>,
    ) -> Result<(), LoadError> {
        Ok(())
    }

    /// Takes in the end of a transaction while loading.
    pub fn replay_marker(&mut self, _producer: ProducerId, _committed: bool) {}

    /// Everything was replayed: answers from now on.
    pub fn activate(&mut self, _now: Now) -> Vec<Effect> {
        Vec::new()
    }

    /// Works on one request. Its answer is among the effects of this or of a later call, exactly once.
    pub fn handle(
        &mut self,
        _caller: &Caller<'_>,
        request: Request,
        ticket: Ticket,
        _now: Now,
    ) -> Vec<Effect> {
        vec![Effect::Answer { ticket, response: request.refuse_while_loading() }]
    }

    /// All batches up to `through` are as safe as they are to be (but for those that were said to have failed).
    pub fn durable(&mut self, _through: BatchId, _now: Now) -> Vec<Effect> {
        Vec::new()
    }

    /// `batch` was not appended and never will be; other batches are not concerned. Kafka's error code says why.
    pub fn failed(&mut self, _batch: BatchId, _error: ErrorCode, _now: Now) -> Vec<Effect> {
        Vec::new()
    }

    /// When to call [`GroupShard::tick`] at the latest.
    pub fn next_deadline(&self) -> Option<MonotonicMs> {
        None
    }

    /// Does what is due.
    pub fn tick(&mut self, _now: Now) -> Vec<Effect> {
        Vec::new()
    }

    /// These topics are gone: their offsets go too.
    pub fn topics_deleted(&mut self, _topics: &[(Text, TopicId)], _now: Now) -> Vec<Effect> {
        Vec::new()
    }

    /// Settings that changed hold from now on.
    pub fn set_config(&mut self, config: GroupConfig) {
        self.config = config;
    }

    /// Another broker leads the partition, or its log is gone: everybody who waits is sent away.
    pub fn unload(self) -> Vec<Effect> {
        Vec::new()
    }

    pub fn stats(&self) -> GroupStats {
        GroupStats::default()
    }
}
