//! One fetcher and one leader broker with honest sessions (KIP-227), on a line that loses requests and answers, while
//! partitions come, go, change epochs and sync slowly.
//!
//! After every request that the leader has heard, what its session asks for must be what is durable here: nothing that
//! is on its way to the disk, nothing that is followed no more. When the faults end, every partition must reach the
//! leader's end.

use std::collections::BTreeMap;

use barnabas_base::{PartitionIndex, Uuid};

use super::*;

/// splitmix64.
#[derive(Debug, Clone)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        barnabas_base::split_mix_64(&mut self.0)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// True in one of `n` cases.
    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

const SETTINGS: FetcherSettings =
    FetcherSettings { backoff_min: DurationMs(5), backoff_max: DurationMs(40), patience: DurationMs(10) };
const PARTITIONS: i32 = 6;
const BAD_STEPS: usize = 300;
const CALM_STEPS: usize = 400;

/// Session id and partitions, or why there are none.
type Answer = Result<(i32, Vec<PartitionAnswer>), ErrorCode>;

/// The leader of every partition.
#[derive(Default)]
struct Leader {
    /// Session id, the epoch that comes next, what it asks for.
    session: Option<(i32, i32, BTreeMap<ReplicaKey, FetchPosition>)>,
    sessions: i32,
    /// Epoch and end of each log.
    logs: BTreeMap<ReplicaKey, (LeaderEpoch, i64)>,
    /// Up to where the records of the last answer reach.
    sent: BTreeMap<ReplicaKey, i64>,
}

impl Leader {
    /// Session id and answers, or why there are none.
    fn fetch(&mut self, plan: &FetchPlan, random: &mut Random) -> Answer {
        let SessionRequest { id, epoch } = plan.session;
        let is_full = epoch == 0;
        if is_full {
            self.sessions += 1;
            self.session = Some((self.sessions, 0, BTreeMap::new()));
        }
        let Some((known, next, asked)) = self.session.as_mut().filter(|(known, ..)| is_full || *known == id)
        else {
            return Err(ErrorCode::FetchSessionIdNotFound);
        };
        if !is_full && *next != epoch {
            return Err(ErrorCode::InvalidFetchSessionEpoch);
        }
        *next += 1;
        asked.extend(plan.partitions.iter().copied());
        for key in &plan.forgotten {
            asked.remove(key);
        }
        self.sent.clear();
        let (known, asked) = (*known, asked.clone());
        let answers = asked.iter().filter_map(|(key, at)| self.answer(*key, at, is_full, random)).collect();
        Ok((known, answers))
    }

    fn answer(
        &mut self,
        key: ReplicaKey,
        at: &FetchPosition,
        must: bool,
        random: &mut Random,
    ) -> Option<PartitionAnswer> {
        let (epoch, end) = self.logs[&key];
        let error = match at.leader_epoch.cmp(&epoch) {
            std::cmp::Ordering::Less => ErrorCode::FencedLeaderEpoch,
            std::cmp::Ordering::Greater => ErrorCode::UnknownLeaderEpoch,
            std::cmp::Ordering::Equal if random.one_in(40) => ErrorCode::UnknownServerError,
            std::cmp::Ordering::Equal => ErrorCode::None,
        };
        let more = if error == ErrorCode::None { end - at.offset.get() } else { 0 };
        let more = if more > 0 { 1 + random.below(more as u64) as i64 } else { 0 };
        if more > 0 {
            self.sent.insert(key, at.offset.get() + more);
        }
        let (high_watermark, log_start) = (Offset(end), Offset::ZERO);
        let answer =
            PartitionAnswer { key, error, high_watermark, log_start, diverging: None, bytes: more as usize };
        (must || more > 0 || error != ErrorCode::None).then_some(answer)
    }
}

/// A partition here.
#[derive(Clone, Copy)]
struct Owner {
    /// `None`: not followed.
    epoch: Option<LeaderEpoch>,
    durable: i64,
    /// What will be durable, when, and whose word it was.
    syncing: Option<(MonotonicMs, i64)>,
}

struct Line {
    random: Random,
    now: MonotonicMs,
    fetcher: Fetcher,
    leader: Leader,
    owners: BTreeMap<ReplicaKey, Owner>,
    /// An answer on its way, or the end of the wait for one.
    answer: Option<(MonotonicMs, Option<Answer>)>,
    is_calm: bool,
    requests: usize,
}

impl Line {
    fn new(seed: u64) -> Self {
        let mut line = Self {
            random: Random(seed ^ 0x5eed_f37c),
            now: MonotonicMs(1000),
            fetcher: Fetcher::new(SETTINGS),
            leader: Leader::default(),
            owners: BTreeMap::new(),
            answer: None,
            is_calm: false,
            requests: 0,
        };
        for partition in 0..PARTITIONS {
            let key = ReplicaKey { topic: Uuid([1; 16]), partition: PartitionIndex(partition) };
            line.leader.logs.insert(key, (LeaderEpoch(1), 0));
            line.owners.insert(key, Owner { epoch: None, durable: 0, syncing: None });
            line.follow(key);
        }
        line
    }

    fn position(&self, key: ReplicaKey) -> Option<FetchPosition> {
        let owner = &self.owners[&key];
        let leader_epoch = owner.epoch.filter(|_| owner.syncing.is_none())?;
        let offset = Offset(owner.durable);
        let (log_start, high_watermark) = (Offset::ZERO, Offset::ZERO);
        Some(FetchPosition { leader_epoch, offset, last_epoch: None, log_start, high_watermark })
    }

    /// The metadata log says which epoch is followed.
    fn follow(&mut self, key: ReplicaKey) {
        let (epoch, _) = self.leader.logs[&key];
        self.owners.get_mut(&key).unwrap().epoch = Some(epoch);
        self.fetcher.follow(key, epoch, self.position(key));
    }

    fn step(&mut self) -> Result<(), String> {
        self.now.0 += 1 + self.random.below(3);
        if !self.is_calm {
            self.trouble();
        }
        self.sync();
        self.take_answer()?;
        let Some(plan) = self.fetcher.plan(self.now, false) else { return Ok(()) };
        if self.answer.is_some() {
            return Err("two requests at once".to_owned());
        }
        self.requests += 1;
        let wait = MonotonicMs(self.now.0 + 1 + self.random.below(6));
        let late = MonotonicMs(self.now.0 + 30);
        if !self.is_calm && self.random.one_in(12) {
            // It is lost before the leader hears it.
            self.answer = Some((late, None));
            return Ok(());
        }
        let answer = self.leader.fetch(&plan, &mut self.random);
        self.check_session(&answer)?;
        let is_lost = !self.is_calm && self.random.one_in(12);
        self.answer = Some(if is_lost { (late, None) } else { (wait, Some(answer)) });
        Ok(())
    }

    /// What the leader believes is asked for is what is durable here.
    fn check_session(&self, answer: &Answer) -> Result<(), String> {
        let Some((.., asked)) = self.leader.session.as_ref().filter(|_| answer.is_ok()) else {
            return Ok(());
        };
        for (key, at) in asked {
            let own = self.position(*key);
            let is_own =
                own.is_some_and(|own| (own.leader_epoch, own.offset) == (at.leader_epoch, at.offset));
            if !is_own {
                return Err(format!("the session asks for {at:?} of {key:?}, which has {own:?}"));
            }
        }
        Ok(())
    }

    fn take_answer(&mut self) -> Result<(), String> {
        let Some((_, answer)) = self.answer.take_if(|(at, _)| *at <= self.now) else { return Ok(()) };
        let Some(answer) = answer else {
            self.fetcher.unanswered(self.now);
            return Ok(());
        };
        let (error, id, answers) = match answer {
            Ok((id, answers)) => (ErrorCode::None, id, answers),
            Err(error) => (error, 0, Vec::new()),
        };
        let mut todos = Vec::new();
        self.fetcher
            .answered(error, id, DurationMs(0), &answers, self.now, |key, _, todo| todos.push((key, todo)));
        for (key, todo) in todos {
            if todo == Todo::Append {
                self.append(key)?;
            }
        }
        Ok(())
    }

    fn append(&mut self, key: ReplicaKey) -> Result<(), String> {
        let late = if self.random.one_in(10) { self.random.below(60) } else { self.random.below(5) };
        let owner = self.owners.get_mut(&key).ok_or("an owner")?;
        let end = self.leader.sent.get(&key).copied().unwrap_or(owner.durable);
        if owner.epoch.is_none() || owner.syncing.is_some() || end <= owner.durable {
            return Err(format!("{key:?} is to append up to {end}, and stands at {}", owner.durable));
        }
        owner.syncing = Some((MonotonicMs(self.now.0 + 1 + late), end));
        Ok(())
    }

    fn sync(&mut self) {
        let keys: Vec<ReplicaKey> = self.owners.keys().copied().collect();
        for key in keys {
            let owner = self.owners.get_mut(&key).unwrap();
            if let Some((_, end)) = owner.syncing.take_if(|(at, _)| *at <= self.now) {
                owner.durable = end;
                if let Some(position) = self.position(key) {
                    self.fetcher.settled(key, position);
                }
            }
        }
    }

    fn trouble(&mut self) {
        let partition = PartitionIndex(self.random.below(PARTITIONS as u64) as i32);
        let key = ReplicaKey { topic: Uuid([1; 16]), partition };
        match self.random.below(60) {
            0..=19 => self.leader.logs.get_mut(&key).unwrap().1 += 1 + self.random.below(9) as i64,
            20 => self.leader.logs.get_mut(&key).unwrap().0.0 += 1,
            21 | 22 => self.follow(key),
            23 => {
                self.owners.get_mut(&key).unwrap().epoch = None;
                self.fetcher.unfollow(key);
            }
            24 => self.leader.session = None,
            _ => {}
        }
    }

    fn run(mut self) -> Result<usize, String> {
        for _ in 0..BAD_STEPS {
            self.step()?;
        }
        self.is_calm = true;
        let keys: Vec<ReplicaKey> = self.owners.keys().copied().collect();
        keys.iter().for_each(|&key| self.follow(key));
        for _ in 0..CALM_STEPS {
            self.step()?;
        }
        for key in keys {
            let (end, durable) = (self.leader.logs[&key].1, self.owners[&key].durable);
            if end != durable {
                return Err(format!("{key:?} ends at {durable}, its leader at {end}"));
            }
        }
        Ok(self.requests)
    }
}

const SEEDS: u64 = 500;

#[test]
fn sessions_say_what_is_durable() {
    let mut requests = 0;
    for seed in 0..SEEDS {
        requests += Line::new(seed).run().unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
    assert!(requests > 50 * SEEDS as usize, "{requests} requests");
}

#[cfg(planted)]
#[test]
fn planted_mistakes_of_a_fetcher_are_noticed() {
    barnabas_base::planted::hunt("fetcher", |seed| Line::new(seed).run().map(drop));
}
