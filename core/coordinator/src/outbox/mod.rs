//! What a shard has promised: timers, batches under way with the answers that wait for them, and the effects of this
//! call.
//!
//! Everything that decides (classic/, offsets/) gets a `&mut Outbox` next to the state that it changes, and nothing
//! leaves the shard by another way.

mod counts;
mod effect;
mod then;

use barnabas_base::{DurationMs, ErrorCode, MonotonicMs, Text};

use crate::framework::{BatchId, Held, Now, Pending, Record, Refusable, Ticket, Timers};
use crate::{GroupConfig, Response};

pub(crate) use crate::framework::append_refusal;
pub use counts::GroupCounts;
pub use effect::{Effect, ShareStateDone, ShareStateOrder, ShareStateWork};
pub(crate) use then::{GroupThen, Replacement, Then};

/// What a shard waits for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum TimerKey {
    /// A member, or one that was given an id and has not come back, is taken for dead.
    Session { group: Text, member: Text },
    /// The group stops waiting for members to join.
    Join(Text),
    /// The group stops waiting for members to sync.
    Sync(Text),
    /// A member has not given up in time what is not its any more (consumer groups).
    Rebalance { group: Text, member: Text },
    /// A member of the classic protocol has not joined a consumer group again in time.
    MemberJoin { group: Text, member: Text },
    /// A member of the classic protocol has not fetched its assignment in time.
    MemberSync { group: Text, member: Text },
    /// The first target of a streams group, once members had time to come.
    FirstTarget(Text),
    /// Heartbeats have waited long enough for share partitions to be initialized.
    SetUp(Text),
    /// What was lost of a group on its way to disk is written again.
    Save(Text),
    /// Search for expired offsets and unused groups.
    Expiry,
}

impl TimerKey {
    /// Whose time it is; `None`: all groups'.
    pub fn group(&self) -> Option<&Text> {
        match self {
            Self::Session { group, .. }
            | Self::Join(group)
            | Self::Sync(group)
            | Self::Rebalance { group, .. }
            | Self::MemberJoin { group, .. }
            | Self::MemberSync { group, .. }
            | Self::FirstTarget(group)
            | Self::SetUp(group)
            | Self::Save(group) => Some(group),
            Self::Expiry => None,
        }
    }

    /// The group and the member whose time it is; `None`: a whole group's.
    pub fn member(&self) -> Option<(&Text, &Text)> {
        match self {
            Self::Session { group, member }
            | Self::Rebalance { group, member }
            | Self::MemberJoin { group, member }
            | Self::MemberSync { group, member } => Some((group, member)),
            Self::Join(_)
            | Self::Sync(_)
            | Self::FirstTarget(_)
            | Self::SetUp(_)
            | Self::Save(_)
            | Self::Expiry => None,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Outbox {
    pub config: GroupConfig,
    pub now: Now,
    pub timers: Timers<TimerKey>,
    pub pending: Pending<Then, Response>,
    /// The last batch that made or deleted a group.
    pub groups_changed: BatchId,
    pub counts: GroupCounts,
    effects: Vec<Effect>,
}

impl Outbox {
    pub fn new(config: GroupConfig) -> Self {
        let now = Now { wall: barnabas_base::TimestampMs(0), mono: MonotonicMs(0) };
        Self {
            config,
            now,
            timers: Timers::default(),
            pending: Pending::default(),
            groups_changed: BatchId(0),
            counts: GroupCounts::default(),
            effects: Vec::new(),
        }
    }

    pub fn answer(&mut self, ticket: Ticket, response: Response) {
        self.effects.push(Effect::Answer { ticket, response });
    }

    /// Hands out work to be done elsewhere.
    pub fn compute(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// Answers once `batch` is on disk; says no if it does not get there.
    pub fn answer_after(&mut self, batch: BatchId, ticket: Ticket, response: Response) {
        match self.pending.hold(batch, ticket, response) {
            Held::Waits => {}
            Held::Decided(response) => self.answer(ticket, response),
            Held::Overdue(response) => {
                self.answer(ticket, response.refused(append_refusal(ErrorCode::RequestTimedOut)));
            }
        }
    }

    /// Hands out one batch.
    pub fn append(&mut self, records: Vec<Record>, then: Then) -> BatchId {
        self.open(then, |batch| Effect::Append { batch, records })
    }

    /// Hands out one batch of whatever kind.
    pub fn open(&mut self, then: Then, effect: impl FnOnce(BatchId) -> Effect) -> BatchId {
        let deadline = self.now.mono.plus(self.config.commit_timeout);
        let batch = self.pending.open(deadline, then);
        self.effects.push(effect(batch));
        batch
    }

    /// Whether a batch of these records would be too large for the topic.
    pub fn is_too_large(&self, records: &[Record]) -> bool {
        records.iter().map(Record::bytes).sum::<usize>() > self.config.batch_bytes_max
    }

    /// Whether parts of these sizes together leave too little room for the rest of a record.
    pub fn is_too_large_in_all(&self, parts: impl Iterator<Item = usize>) -> bool {
        parts.sum::<usize>() > self.config.batch_bytes_max / 2
    }

    /// Whether requests that write are to come back later.
    pub fn is_full(&self) -> bool {
        self.pending.len() >= self.config.pending_batches_max
    }

    pub fn set_timer(&mut self, key: TimerKey, after: DurationMs) {
        self.timers.set(key, self.now.mono.plus(after));
    }

    /// Looks for what has expired, after the usual while.
    pub fn set_expiry(&mut self) {
        self.set_timer(TimerKey::Expiry, self.config.offsets_retention_check_interval.max(DurationMs(1)));
    }

    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }
}
