//! The shards of one kind on one worker: who is loaded, what waits for the disk, who waits for an answer.
//!
//! What is particular to a kind is in [`Hosted`]; what a shard says is done by [`Host::carry_out`], but for what others
//! must do ([`Step::Order`]), which is kept for [`Host::take_orders`].
//!
//! What a shard appends in one turn of the worker goes into its log as one batch (core/coordinator's `Gathered`): a
//! thousand groups that commit at once cost as many batches as they have shards.

mod load;

use super::memory::{Counted, warn_of_refusal};
use super::{append, now};
use crate::mailbox::{AppendOutcome, PartitionKey, Standing};
use crate::node::Node;
use crate::routing::owners::led_under;
use crate::worker::partition_worker::PartitionWorker;
use barnabas_base::{DurationMs, ErrorCode, LeaderEpoch, Map, MonotonicMs, Offset};
use barnabas_coordinator::{
    BatchId, Contents, Gathered, LoadError, Now, Room, Ticket, Together, append_error,
};
use bytes::Bytes;
use load::{LOAD_TURN, Loading, NotLoaded, Progress};
use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::Arc;
use tokio::sync::oneshot;

/// How long before a shard is tried again that could not be loaded.
const RETRY_LOAD: DurationMs = DurationMs(5_000);

/// How long before a shard is looked at again whose partition is not ready to be read.
const LOOK_AGAIN: DurationMs = DurationMs(5);

/// Requests that wait for one shard to be loaded; more are told to come back.
const WAITING_MAX: usize = 10_000;

/// A kind of shard.
pub(super) trait Hosted: Debug + Sized {
    /// The topic whose partitions hold its records.
    const TOPIC: &'static str;
    /// The shard has work without any request, and so is loaded without one.
    const LOADS_UNASKED: bool;
    /// The shard learns the offset of each of its batches, not only of the last durable one.
    const WANTS_PLACES: bool;
    /// A request with the place for its answer.
    type Command: Debug;
    type Response;
    type Effect;
    /// What it asks of others than its partition.
    type Order: Debug;

    /// `led_under`: the partition's leader epoch.
    fn create(node: &Node, led_under: LeaderEpoch) -> Self;
    fn set_config(&mut self, node: &Node);
    fn replay(&mut self, from: Offset, bytes: Bytes) -> Result<Offset, LoadError>;
    fn activate(&mut self, now: Now) -> Vec<Self::Effect>;
    /// Works on a request. Also gives what the records of this one stand on.
    fn handle(&mut self, command: Self::Command, ticket: Ticket, now: Now) -> Handled<Self>;
    /// What it holds of the node's memory.
    fn room(&self) -> &Room;
    /// What the node's other shards hold.
    fn others_hold(&mut self, bytes: usize);
    /// Every batch up to this one is on disk, this one's first record at `base`.
    fn durable(&mut self, through: BatchId, base: Offset, now: Now) -> Vec<Self::Effect>;
    fn failed(&mut self, batch: BatchId, error: ErrorCode, now: Now) -> Vec<Self::Effect>;
    fn tick(&mut self, now: Now) -> Vec<Self::Effect>;
    fn next_deadline(&self) -> Option<MonotonicMs>;
    fn unload(self) -> Vec<Self::Effect>;
    fn step(effect: Self::Effect) -> Step<Self>;
    /// Answers a request that no shard will see.
    fn refuse(command: Self::Command, error: ErrorCode);
    fn refuse_while_loading(command: Self::Command);
}

pub(super) struct Handled<S: Hosted> {
    pub effects: Vec<S::Effect>,
    pub reply: oneshot::Sender<S::Response>,
    pub standing: Standing,
}

/// One effect, in words that all kinds share.
pub(super) enum Step<S: Hosted> {
    Append(BatchId, Contents),
    Answer(Ticket, S::Response),
    Order(S::Order),
}

#[derive(Debug)]
enum Shard<S: Hosted> {
    Loading(Loading<S>),
    Active(Active<S>),
}

#[derive(Debug)]
struct Active<S> {
    shard: S,
    counted: Counted,
    /// Under which the partition was led when the shard was loaded.
    leader_epoch: LeaderEpoch,
    /// What goes into the log at the end of the turn.
    gathered: Gathered,
    /// What was handed to the partition, oldest first, and its word on each.
    pending: VecDeque<(Together, oneshot::Receiver<Vec<AppendOutcome>>)>,
}

impl<S> Active<S> {
    /// Something of it is not decided, or not handed in.
    fn is_writing(&self) -> bool {
        !self.pending.is_empty() || !self.gathered.is_empty()
    }
}

/// See the file's header.
#[derive(Debug)]
pub(super) struct Host<S: Hosted> {
    node: Arc<Node>,
    shards: Map<PartitionKey, Shard<S>>,
    /// Who waits for which answer.
    replies: Map<Ticket, oneshot::Sender<S::Response>>,
    tickets: u64,
    loading: bool,
    /// Shards with batches that are not decided, or not handed in.
    writing: Vec<PartitionKey>,
    orders: Vec<(PartitionKey, S::Order)>,
    /// Shards that could not be loaded, to be tried again.
    unloaded: Vec<PartitionKey>,
    retry_at: Option<MonotonicMs>,
    /// When shards that are being loaded go on, where they wait for their partitions.
    look_again_at: Option<MonotonicMs>,
    /// The shards' next deadline; `None`: to be computed again.
    deadline: Option<Option<MonotonicMs>>,
}

impl<S: Hosted> Host<S> {
    pub fn new(node: Arc<Node>) -> Self {
        Self {
            node,
            shards: Map::default(),
            replies: Map::default(),
            tickets: 0,
            loading: false,
            writing: Vec::new(),
            orders: Vec::new(),
            unloaded: Vec::new(),
            retry_at: None,
            look_again_at: None,
            deadline: None,
        }
    }

    /// Begins to load a shard, unless it is there.
    pub fn host(&mut self, key: PartitionKey) {
        let Self { node, shards, loading, .. } = self;
        shards.entry(key).or_insert_with(|| {
            *loading = true;
            let epoch = led_under(node, key).unwrap_or(LeaderEpoch::NONE);
            Shard::Loading(Loading::new(S::create(node, epoch), epoch))
        });
    }

    /// The shards that are loaded.
    pub fn loaded(&self) -> impl Iterator<Item = &S> {
        self.shards.values().filter_map(|shard| match shard {
            Shard::Active(active) => Some(&active.shard),
            Shard::Loading(_) => None,
        })
    }

    /// Their partitions.
    pub fn loaded_keys(&self) -> Vec<PartitionKey> {
        let is_loaded = |shard: &Shard<S>| matches!(shard, Shard::Active(_));
        self.shards.iter().filter(|(_, shard)| is_loaded(shard)).map(|(&key, _)| key).collect()
    }

    pub fn active(&mut self, key: PartitionKey) -> Option<&mut S> {
        match self.shards.get_mut(&key) {
            Some(Shard::Active(active)) => Some(&mut active.shard),
            Some(Shard::Loading(_)) | None => None,
        }
    }

    pub fn take(&mut self, key: PartitionKey, command: S::Command, partitions: &mut PartitionWorker) {
        self.host(key);
        match self.shards.get_mut(&key) {
            Some(Shard::Active(active)) => {
                self.tickets += 1;
                let ticket = Ticket(self.tickets);
                let now = now(&self.node);
                let refused = active.shard.room().refused();
                active.shard.others_hold(active.counted.others());
                let Handled { effects, reply, standing } = active.shard.handle(command, ticket, now);
                if active.shard.room().refused() > refused {
                    warn_of_refusal(active.shard.room(), now);
                }
                self.replies.insert(ticket, reply);
                self.carry_out(key, effects, standing, partitions);
            }
            Some(Shard::Loading(loading)) if loading.waiting.len() < WAITING_MAX => {
                loading.waiting.push(command);
            }
            Some(Shard::Loading(_)) | None => S::refuse_while_loading(command),
        }
    }

    /// Loads some of what is to be loaded, passes on what has become durable, and hands in what this turn has come to.
    pub fn work(&mut self, partitions: &mut PartitionWorker) {
        if self.loading {
            self.load_some(partitions);
        }
        if self.writing.is_empty() {
            return;
        }
        for key in std::mem::take(&mut self.writing) {
            while let Some((together, decided)) = self.next_decided(key) {
                let effects = self.settle(key, &together, decided);
                self.carry_out(key, effects, Standing::Waived, partitions);
            }
            let effects = self.hand_in(key, partitions);
            self.carry_out(key, effects, Standing::Waived, partitions);
            let is_writing = |shard: &Shard<S>| matches!(shard, Shard::Active(active) if active.is_writing());
            if self.shards.get(&key).is_some_and(is_writing) && !self.writing.contains(&key) {
                self.writing.push(key);
            }
        }
    }

    /// Whether there is more to be loaded.
    pub fn is_loading(&self) -> bool {
        self.loading
    }

    /// The oldest batch of a shard's log, if its partition has decided it: where it is, or why it is not in the log.
    fn next_decided(&mut self, key: PartitionKey) -> Option<(Together, Result<Offset, ErrorCode>)> {
        let Some(Shard::Active(active)) = self.shards.get_mut(&key) else { return None };
        let (_, answer) = active.pending.front_mut()?;
        let decided = match answer.try_recv() {
            Err(oneshot::error::TryRecvError::Empty) => return None,
            Err(oneshot::error::TryRecvError::Closed) => Err(ErrorCode::NotCoordinator),
            Ok(outcomes) => match outcomes.into_iter().next().map(|outcome| outcome.result) {
                Some(Ok(acked)) => Ok(acked.base),
                Some(Err(declined)) => Err(append_error(declined.code())),
                // One batch was handed in, so there is one outcome.
                None => Err(ErrorCode::NotCoordinator),
            },
        };
        active.pending.pop_front().map(|(together, _)| (together, decided))
    }

    /// Tells a shard what became of its batches. Gives what it says to that.
    fn settle(
        &mut self,
        key: PartitionKey,
        together: &Together,
        decided: Result<Offset, ErrorCode>,
    ) -> Vec<S::Effect> {
        let now = now(&self.node);
        let Some(shard) = self.active(key) else { return Vec::new() };
        let (&(last, place), before) = together.all();
        let mut effects = Vec::new();
        for &(batch, place) in before.iter().filter(|_| S::WANTS_PLACES || decided.is_err()) {
            effects.extend(tell(shard, (batch, place), decided, now));
        }
        let mut said = tell(shard, (last, place), decided, now);
        if effects.is_empty() {
            return said;
        }
        effects.append(&mut said);
        effects
    }

    /// Hands the partition what a shard has gathered. Gives what the shard says if that is not taken.
    fn hand_in(&mut self, key: PartitionKey, partitions: &mut PartitionWorker) -> Vec<S::Effect> {
        let Some(Shard::Active(active)) = self.shards.get_mut(&key) else { return Vec::new() };
        let Some((together, records)) = active.gathered.take() else { return Vec::new() };
        self.place(key, together, Contents::Records(records), Standing::Waived, partitions)
    }

    fn place(
        &mut self,
        key: PartitionKey,
        together: Together,
        contents: Contents,
        standing: Standing,
        partitions: &mut PartitionWorker,
    ) -> Vec<S::Effect> {
        let placed = append::place(&self.node, key, contents, standing, partitions);
        let Some(Shard::Active(active)) = self.shards.get_mut(&key) else { return Vec::new() };
        match placed {
            Ok(answer) => {
                active.pending.push_back((together, answer));
                Vec::new()
            }
            Err(error) => self.settle(key, &together, Err(error)),
        }
    }

    /// A batch of records goes into the log with the others of this turn; any other one by itself, behind them. Gives
    /// what the shard says to what is not taken.
    fn append(
        &mut self,
        key: PartitionKey,
        batch: BatchId,
        contents: Contents,
        standing: Standing,
        partitions: &mut PartitionWorker,
    ) -> Vec<S::Effect> {
        if !self.writing.contains(&key) {
            self.writing.push(key);
        }
        let Some(Shard::Active(active)) = self.shards.get_mut(&key) else { return Vec::new() };
        let is_full = match &contents {
            Contents::Records(records) => !active.gathered.has_room(records),
            Contents::InTransaction(..) | Contents::Marker(_) => true,
        };
        let mut effects = if is_full { self.hand_in(key, partitions) } else { Vec::new() };
        let Contents::Records(records) = contents else {
            effects.extend(self.place(key, Together::one(batch), contents, standing, partitions));
            return effects;
        };
        if let Some(Shard::Active(active)) = self.shards.get_mut(&key) {
            active.gathered.add(batch, records);
        }
        effects
    }

    /// Does what a shard said. `standing` is that of its records within transactions.
    pub fn carry_out(
        &mut self,
        key: PartitionKey,
        effects: Vec<S::Effect>,
        standing: Standing,
        partitions: &mut PartitionWorker,
    ) {
        self.deadline = None;
        if let Some(Shard::Active(active)) = self.shards.get_mut(&key) {
            active.counted.set(active.shard.room().held());
        }
        let mut effects = VecDeque::from(effects);
        while let Some(effect) = effects.pop_front() {
            match S::step(effect) {
                Step::Answer(ticket, response) => {
                    if let Some(reply) = self.replies.remove(&ticket) {
                        // A connection that is gone does not hear its answer.
                        let _ = reply.send(response);
                    }
                }
                Step::Order(order) => self.orders.push((key, order)),
                Step::Append(batch, contents) => {
                    // Behind what the shard has said already: batches keep the order of their ids.
                    effects.extend(self.append(key, batch, contents, standing, partitions));
                }
            }
        }
    }

    /// What shards asked of others since this was last called.
    pub fn take_orders(&mut self) -> Vec<(PartitionKey, S::Order)> {
        std::mem::take(&mut self.orders)
    }

    /// When [`Host::tick`] is due.
    pub fn next_deadline(&mut self) -> Option<MonotonicMs> {
        let Self { shards, retry_at, look_again_at, deadline, .. } = self;
        *deadline.get_or_insert_with(|| {
            let deadlines = shards.values().filter_map(|shard| match shard {
                Shard::Active(active) => active.shard.next_deadline(),
                Shard::Loading(_) => None,
            });
            deadlines.chain(*retry_at).chain(*look_again_at).min()
        })
    }

    /// Does what is due.
    pub fn tick(&mut self, partitions: &mut PartitionWorker) {
        let now = now(&self.node);
        if self.next_deadline().is_none_or(|at| at > now.mono) {
            return;
        }
        if self.retry_at.is_some_and(|at| at <= now.mono) {
            self.retry_loading();
        }
        if self.look_again_at.is_some_and(|at| at <= now.mono) {
            (self.look_again_at, self.loading) = (None, true);
            for shard in self.shards.values_mut() {
                if let Shard::Loading(loading) = shard {
                    loading.waits_for_partition = false;
                }
            }
        }
        self.each_where(
            partitions,
            |shard| shard.next_deadline().is_some_and(|at| at <= now.mono),
            |shard| shard.tick(now),
        );
    }

    /// Says something to every shard that is loaded.
    pub fn each(&mut self, partitions: &mut PartitionWorker, said: impl FnMut(&mut S) -> Vec<S::Effect>) {
        self.each_where(partitions, |_| true, said);
    }

    fn each_where(
        &mut self,
        partitions: &mut PartitionWorker,
        is_meant: impl Fn(&S) -> bool,
        mut said: impl FnMut(&mut S) -> Vec<S::Effect>,
    ) {
        let meant = |shard: &Shard<S>| matches!(shard, Shard::Active(active) if is_meant(&active.shard));
        let keys = self.shards.iter().filter(|(_, shard)| meant(shard)).map(|(&key, _)| key);
        for key in keys.collect::<Vec<_>>() {
            if let Some(effects) = self.active(key).map(&mut said) {
                self.carry_out(key, effects, Standing::Waived, partitions);
            }
        }
    }

    /// Tells every shard something to which there is nothing to say, also while it is loaded.
    pub fn every(&mut self, mut tell: impl FnMut(&mut S)) {
        self.deadline = None;
        for shard in self.shards.values_mut() {
            match shard {
                Shard::Active(active) => tell(&mut active.shard),
                Shard::Loading(loading) => tell(&mut loading.shard),
            }
        }
    }

    /// Takes the settings that are in force now.
    pub fn set_config(&mut self) {
        self.deadline = None;
        for shard in self.shards.values_mut() {
            match shard {
                Shard::Active(active) => active.shard.set_config(&self.node),
                Shard::Loading(loading) => loading.shard.set_config(&self.node),
            }
        }
    }

    /// Drops the shards whose partitions have another leader or a new leader epoch.
    pub fn unload_lost(&mut self, partitions: &mut PartitionWorker) {
        let is_lost = |(key, shard): &(&PartitionKey, &Shard<S>)| {
            let epoch = match shard {
                Shard::Active(active) => active.leader_epoch,
                Shard::Loading(loading) => loading.leader_epoch,
            };
            led_under(&self.node, **key) != Some(epoch)
        };
        let lost: Vec<PartitionKey> = self.shards.iter().filter(is_lost).map(|(&key, _)| key).collect();
        for key in lost {
            match self.shards.remove(&key) {
                Some(Shard::Active(active)) => {
                    let effects = active.shard.unload();
                    self.carry_out(key, effects, Standing::Waived, partitions);
                }
                Some(Shard::Loading(loading)) => loading.refuse(ErrorCode::NotCoordinator),
                None => {}
            }
        }
    }

    /// Loads for a while: one shard after the other, first those with waiting requests.
    fn load_some(&mut self, partitions: &mut PartitionWorker) {
        let begun = barnabas_clock::now();
        while let Some(key) = self.next_to_load() {
            let Some(Shard::Loading(mut loading)) = self.shards.remove(&key) else { continue };
            match loading.read_piece(key, partitions, &self.node) {
                Ok(Progress::More) => {
                    self.shards.insert(key, Shard::Loading(loading));
                }
                Ok(Progress::Waits) => {
                    let soon = self.node.clock.monotonic().plus(LOOK_AGAIN);
                    (self.look_again_at, self.deadline) = (Some(soon), None);
                    loading.waits_for_partition = true;
                    self.shards.insert(key, Shard::Loading(loading));
                }
                Ok(Progress::Done) => self.activate(key, loading, partitions),
                Err(NotLoaded { code, is_passing }) => {
                    loading.refuse(code);
                    if S::LOADS_UNASKED && is_passing {
                        self.unloaded.push(key);
                        let later = self.node.clock.monotonic().plus(RETRY_LOAD);
                        (self.retry_at, self.deadline) = (Some(later), None);
                    }
                }
            }
            if barnabas_clock::since(begun) >= LOAD_TURN {
                return;
            }
        }
        self.loading = false;
    }

    fn next_to_load(&self) -> Option<PartitionKey> {
        let loading = self.shards.iter().filter_map(|(key, shard)| match shard {
            Shard::Loading(loading) if loading.waits_for_partition => None,
            Shard::Loading(loading) => Some((loading.waiting.is_empty(), !loading.has_begun(), *key)),
            Shard::Active(_) => None,
        });
        loading.min().map(|(.., key)| key)
    }

    fn retry_loading(&mut self) {
        (self.retry_at, self.deadline) = (None, None);
        for key in std::mem::take(&mut self.unloaded) {
            if led_under(&self.node, key).is_some() {
                self.host(key);
            }
        }
    }

    fn activate(&mut self, key: PartitionKey, loading: Loading<S>, partitions: &mut PartitionWorker) {
        let Loading { mut shard, waiting, leader_epoch, .. } = loading;
        let effects = shard.activate(now(&self.node));
        let (gathered, pending) = (Gathered::default(), VecDeque::new());
        let counted = Counted::new(&self.node);
        let active = Active { shard, counted, leader_epoch, gathered, pending };
        self.shards.insert(key, Shard::Active(active));
        self.carry_out(key, effects, Standing::Waived, partitions);
        for command in waiting {
            self.take(key, command, partitions);
        }
    }
}

fn tell<S: Hosted>(
    shard: &mut S,
    (batch, place): (BatchId, i64),
    decided: Result<Offset, ErrorCode>,
    now: Now,
) -> Vec<S::Effect> {
    match decided {
        Ok(base) => shard.durable(batch, base.plus(place), now),
        Err(error) => shard.failed(batch, error, now),
    }
}
