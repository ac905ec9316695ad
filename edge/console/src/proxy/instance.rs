//! One consumer: what it reads, and from where. Its task (`member`) tells what the group has assigned; requests read
//! (`read`), seek and commit (`consumers`).
//!
//! Always true:
//! 1. a position moves only past records that an answer holds, and only if the assignment is still the one that they
//!    were read for
//! 2. what is committed by itself was in the answer before: the client asked again after it

use super::setup::{Reset, Setup};
use super::subscription::{Subscription, illegal_state};
use crate::http::problem::Problem;
use crate::kafka::Partition;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, mpsc, oneshot};

/// Whose consumer, and which.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Id {
    /// `None`: anonymous.
    pub user: Option<String>,
    pub group: String,
    pub name: String,
}

/// Where a partition is read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// Where the group has committed, or else where [`Setup::reset`] says.
    Committed,
    /// Where [`Setup::reset`] says.
    Reset,
    Earliest,
    Latest,
    At(i64),
}

pub type Positions = BTreeMap<Partition, Position>;

/// Offsets to be committed; `None`: all that were read.
pub type Offsets = Option<BTreeMap<Partition, i64>>;

/// A commit that a request waits for.
#[derive(Debug)]
pub struct Commit {
    pub offsets: Offsets,
    pub done: oneshot::Sender<Result<(), Problem>>,
}

#[derive(Debug)]
pub struct Instance {
    pub id: Id,
    pub setup: Setup,
    /// One request reads at a time.
    pub turn: tokio::sync::Mutex<()>,
    /// Rounds of reading: which partition is the first in one.
    pub turns: AtomicUsize,
    /// Wakes requests that wait for partitions.
    pub changed: Notify,
    /// Wakes its task.
    pub woken: Notify,
    pub stopped: Notify,
    /// Its task has ended, and left the group.
    pub ended: Notify,
    pub commits: mpsc::Sender<Commit>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    subscription: Subscription,
    positions: Positions,
    /// Counts assignments.
    epoch: u64,
    /// What answers had when the client last asked for records.
    processed: BTreeMap<Partition, i64>,
    /// Why it is not in its group.
    trouble: Option<Problem>,
    /// Requests that are under way.
    uses: usize,
    last_used: Instant,
}

/// A request to the consumer: it does not idle out while this lives.
#[derive(Debug)]
pub struct Use<'a>(&'a Instance);

impl Drop for Use<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.uses -= 1;
        state.last_used = Instant::now();
    }
}

impl Instance {
    pub fn new(id: Id, setup: Setup, commits: mpsc::Sender<Commit>) -> Self {
        let state = State {
            subscription: Subscription::Nothing,
            positions: Positions::new(),
            epoch: 0,
            processed: BTreeMap::new(),
            trouble: None,
            uses: 0,
            last_used: Instant::now(),
        };
        Self {
            id,
            setup,
            turn: tokio::sync::Mutex::default(),
            turns: AtomicUsize::new(0),
            changed: Notify::new(),
            woken: Notify::new(),
            stopped: Notify::new(),
            ended: Notify::new(),
            commits,
            state: Mutex::new(state),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn enter(&self) -> Use<'_> {
        self.state().uses += 1;
        Use(self)
    }

    pub fn is_idle_for(&self, time: Duration) -> bool {
        let state = self.state();
        state.uses == 0 && state.last_used.elapsed() >= time
    }

    pub fn subscription(&self) -> Subscription {
        self.state().subscription.clone()
    }

    /// # Errors
    /// 40903: it reads in another way.
    pub fn subscribe(&self, next: Subscription) -> Result<(), Problem> {
        let mut state = self.state();
        state.subscription.check_next(&next)?;
        state.subscription = next;
        state.trouble = None;
        drop(state);
        self.woken.notify_one();
        Ok(())
    }

    pub fn unsubscribe(&self) {
        let mut state = self.state();
        state.subscription = Subscription::Nothing;
        state.trouble = None;
        state.replace(Positions::new());
        drop(state);
        self.woken.notify_one();
        self.changed.notify_waiters();
    }

    /// The client reads these partitions, without the group. Those that it reads already go on where they are.
    ///
    /// # Errors
    /// 40903: it is subscribed.
    pub fn assign(&self, partitions: impl IntoIterator<Item = Partition>) -> Result<(), Problem> {
        let mut state = self.state();
        state.subscription.check_next(&Subscription::Partitions)?;
        let before = state.positions.clone();
        let position = |partition: Partition| {
            let position = before.get(&partition).copied().unwrap_or(Position::Committed);
            (partition, position)
        };
        let next: Positions = partitions.into_iter().map(position).collect();
        state.subscription = if next.is_empty() { Subscription::Nothing } else { Subscription::Partitions };
        state.replace(next);
        drop(state);
        self.changed.notify_waiters();
        Ok(())
    }

    /// What its group has given to it, each with what is committed.
    pub fn assigned(&self, partitions: impl IntoIterator<Item = (Partition, Option<i64>)>) {
        let position = |(partition, committed): (Partition, Option<i64>)| {
            (partition, committed.map_or(Position::Reset, Position::At))
        };
        let mut state = self.state();
        if matches!(state.subscription, Subscription::Topics(_) | Subscription::Pattern(_)) {
            state.trouble = None;
            state.replace(partitions.into_iter().map(position).collect());
        }
        drop(state);
        self.changed.notify_waiters();
    }

    pub fn set_trouble(&self, trouble: Problem) {
        self.state().trouble = Some(trouble);
        self.changed.notify_waiters();
    }

    pub fn trouble(&self) -> Option<Problem> {
        self.state().trouble.clone()
    }

    /// # Errors
    /// 40903: a partition is not assigned. Nothing has moved then.
    pub fn seek(&self, to: &Positions) -> Result<(), Problem> {
        let mut state = self.state();
        if let Some((topic, index)) = to.keys().find(|partition| !state.positions.contains_key(partition)) {
            return Err(illegal_state(format!("No current assignment for partition {topic}-{index}")));
        }
        let mut next = state.positions.clone();
        next.extend(to.clone());
        state.replace(next);
        Ok(())
    }

    /// Which assignment it is, and where each partition is read on.
    pub fn positions(&self) -> (u64, Positions) {
        let state = self.state();
        (state.epoch, state.positions.clone())
    }

    /// `false`: the assignment is another one by now, and nothing has moved.
    pub fn advance(&self, epoch: u64, positions: Positions) -> bool {
        let mut state = self.state();
        if state.epoch != epoch {
            return false;
        }
        state.positions.extend(positions);
        true
    }

    /// The client asks again: what it has got it has processed.
    pub fn process(&self) {
        let mut state = self.state();
        state.processed = state.read();
    }

    pub fn processed(&self) -> BTreeMap<Partition, i64> {
        self.state().processed.clone()
    }

    /// All that answers had.
    pub fn read(&self) -> BTreeMap<Partition, i64> {
        self.state().read()
    }

    /// Where a partition begins that has nothing committed.
    ///
    /// # Errors
    /// `auto.offset.reset` is none.
    pub fn start(&self, (topic, index): &Partition) -> Result<Position, Problem> {
        match self.setup.reset {
            Reset::Earliest => Ok(Position::Earliest),
            Reset::Latest => Ok(Position::Latest),
            Reset::None => {
                let detail =
                    format!("{topic}-{index} has no committed offset, and auto.offset.reset is none");
                Err(Problem::coded(50_002, detail))
            }
        }
    }
}

impl State {
    fn replace(&mut self, positions: Positions) {
        self.processed.retain(|partition, _| positions.contains_key(partition));
        self.positions = positions;
        self.epoch += 1;
    }

    fn read(&self) -> BTreeMap<Partition, i64> {
        let known = self.positions.iter().filter_map(|(partition, position)| match position {
            Position::At(offset) => Some((partition.clone(), *offset)),
            _ => None,
        });
        known.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instance() -> Instance {
        let id = Id { user: None, group: "g".to_owned(), name: "i".to_owned() };
        Instance::new(id, Setup::default(), mpsc::channel(1).0)
    }

    fn part(index: i32) -> Partition {
        ("t".to_owned(), index)
    }

    #[test]
    fn what_was_read_for_another_assignment_moves_nothing() {
        let instance = instance();
        instance.assign([part(0), part(1)]).expect("assigned");
        let (epoch, positions) = instance.positions();
        assert_eq!(positions[&part(0)], Position::Committed);
        assert!(instance.advance(epoch, Positions::from([(part(0), Position::At(7))])));
        instance.assign([part(0)]).expect("assigned again");
        assert!(!instance.advance(epoch, Positions::from([(part(0), Position::At(9))])));
        assert_eq!(instance.positions().1, Positions::from([(part(0), Position::At(7))]));
    }

    #[test]
    fn only_what_the_client_asked_behind_is_processed() {
        let instance = instance();
        instance.assign([part(0)]).expect("assigned");
        let (epoch, _) = instance.positions();
        instance.process();
        assert!(instance.advance(epoch, Positions::from([(part(0), Position::At(3))])));
        assert!(instance.processed().is_empty());
        assert_eq!(instance.read(), BTreeMap::from([(part(0), 3)]));
        instance.process();
        assert_eq!(instance.processed(), BTreeMap::from([(part(0), 3)]));
        instance.unsubscribe();
        assert!(instance.processed().is_empty());
    }

    #[test]
    fn partition_that_is_not_assigned_is_not_sought() {
        let instance = instance();
        instance.assign([part(0)]).expect("assigned");
        let both = Positions::from([(part(0), Position::At(1)), (part(1), Position::At(1))]);
        assert_eq!(instance.seek(&both).expect_err("not assigned").confluent_code(), 40_903);
        assert_eq!(instance.positions().1[&part(0)], Position::Committed);
        instance.seek(&Positions::from([(part(0), Position::Earliest)])).expect("sought");
        assert_eq!(instance.positions().1[&part(0)], Position::Earliest);
    }

    #[test]
    fn group_gives_nothing_to_who_has_left_it() {
        let instance = instance();
        instance.subscribe(Subscription::Topics(["t".to_owned()].into())).expect("subscribed");
        instance.assigned([(part(0), Some(5)), (part(1), None)]);
        let expected = Positions::from([(part(0), Position::At(5)), (part(1), Position::Reset)]);
        assert_eq!(instance.positions().1, expected);
        assert_eq!(instance.assign([part(0)]).expect_err("subscribed").confluent_code(), 40_903);
        instance.unsubscribe();
        instance.assigned([(part(0), Some(5))]);
        assert!(instance.positions().1.is_empty());
    }

    #[test]
    fn consumer_that_is_used_is_not_idle() {
        let instance = instance();
        let within = instance.enter();
        assert!(!instance.is_idle_for(Duration::ZERO));
        drop(within);
        assert!(instance.is_idle_for(Duration::ZERO) && !instance.is_idle_for(Duration::from_secs(60)));
    }
}
