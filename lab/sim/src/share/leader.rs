//! A leader's share partitions (core/replica) and what is done around them: state is read and written by questions to
//! the coordinator, one at a time; records that were given up are copied a moment later.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use barnabas_base::{DurationMs, ErrorCode, LeaderEpoch, MonotonicMs, Offset, Text};
use barnabas_coordinator as coordinator;
use barnabas_coordinator::{ShareState, ShareStateRequest, ShareStateResponse};
use barnabas_partition::{
    Acquired, RecordState, SharePartition, ShareSettings, StateBatch, StateEpoch, StateWrite, WriteId,
    WrittenState,
};
use barnabas_replica::{GivenUp, ShareDeclined, SharePartitions, SharesEffect};

use super::{DELIVERIES_MAX, LOCK_MS, Mail, PATIENCE_MS, ShareMistake, ShareWorld};

/// What a leader has to ask the coordinator.
#[derive(Debug)]
pub(super) enum Todo {
    Load { number: u64 },
    Write { number: u64, ids: Vec<WriteId>, write: StateWrite },
}

/// One after the other, oldest first.
#[derive(Debug)]
pub(super) struct Leader {
    pub epoch: LeaderEpoch,
    pub shares: SharePartitions,
    /// Its state was read once.
    pub has_loaded: bool,
    pub is_fenced: bool,
    pub todo: VecDeque<Todo>,
    /// What it waits for, until when.
    pub asked: Option<(u64, u64)>,
    /// Dead letters that are being copied.
    pub letters: Option<(u64, Vec<GivenUp>)>,
    /// Which records an acknowledgement settles.
    pub commands: BTreeMap<u64, Vec<i64>>,
    /// With when their locks end, unless they are renewed.
    pub given: Vec<(Text, Acquired, u64)>,
}

impl Leader {
    pub fn new(epoch: LeaderEpoch) -> Self {
        Self {
            epoch,
            shares: SharePartitions::default(),
            has_loaded: false,
            is_fenced: false,
            todo: VecDeque::new(),
            asked: None,
            letters: None,
            commands: BTreeMap::new(),
            given: Vec::new(),
        }
    }
}

impl ShareWorld {
    pub(super) fn settings(&self) -> ShareSettings {
        ShareSettings {
            lock: DurationMs(LOCK_MS as i64),
            deliveries_max: DELIVERIES_MAX,
            in_flight_max: 40,
            dead_letters: self.has_letters,
            ..ShareSettings::default()
        }
    }

    pub(super) fn told(
        &mut self,
        at: usize,
        number: u64,
        response: ShareStateResponse,
    ) -> Result<(), String> {
        let leader = &mut self.leaders[at];
        if leader.is_fenced || leader.asked.is_none_or(|(asked, _)| asked != number) {
            return Ok(());
        }
        leader.asked = None;
        if self.is_printed {
            println!("{} leader {at} hears {response:?}", self.now);
        }
        let leader = &mut self.leaders[at];
        match (leader.todo.pop_front(), response) {
            (Some(Todo::Load { number }), ShareStateResponse::Read(read)) => {
                self.load(at, number, read.map_err(|refusal| refusal.code))
            }
            (Some(Todo::Write { number, ids, .. }), ShareStateResponse::Done(result)) => {
                self.written(at, number, &ids, result.map_err(|refusal| refusal.code))
            }
            _ => Ok(()),
        }
    }

    fn load(
        &mut self,
        at: usize,
        number: u64,
        state: Result<Arc<ShareState>, ErrorCode>,
    ) -> Result<(), String> {
        let batch = |batch: &coordinator::StateBatch| StateBatch {
            first: batch.first,
            last: batch.last,
            state: RecordState::from_code(batch.delivery_state).unwrap_or(RecordState::Available),
            delivery_count: batch.delivery_count as u16,
        };
        let forgets = self.mistake == Some(ShareMistake::ForgetsBatches);
        let (settings, epoch) = (self.settings(), self.leaders[at].epoch);
        let begun = match state {
            Ok(state) => {
                let written = WrittenState {
                    state_epoch: StateEpoch(state.state_epoch),
                    start: state.start_offset,
                    batches: if forgets { Vec::new() } else { state.batches.iter().map(batch).collect() },
                };
                let mut decisions = Vec::new();
                let partition = SharePartition::load(&written, epoch, settings, &mut decisions);
                Ok((partition.map_err(|bad| format!("{bad} in {written:?}"))?, decisions))
            }
            Err(code) => Err(ShareDeclined::NotLoaded(code)),
        };
        self.leaders[at].has_loaded |= begun.is_ok();
        let key = self.share_key();
        self.shares_step(at, |shares, effects, _| shares.loaded(&key, number, begun, effects))
    }

    /// The oldest write is done, or is not, or that is not known.
    fn written(
        &mut self,
        at: usize,
        number: u64,
        ids: &[WriteId],
        result: Result<(), ErrorCode>,
    ) -> Result<(), String> {
        let key = self.share_key();
        self.shares_step(at, |shares, effects, now| {
            shares.written((&key, number), ids, result, now, effects);
        })
    }

    /// One step of a leader's share partitions; what they ask for is carried out.
    pub(super) fn shares_step<R>(
        &mut self,
        at: usize,
        step: impl FnOnce(&mut SharePartitions, &mut Vec<SharesEffect>, MonotonicMs) -> R,
    ) -> Result<R, String> {
        let mut effects = Vec::new();
        let now = MonotonicMs(self.now);
        let done = step(&mut self.leaders[at].shares, &mut effects, now);
        for effect in effects {
            self.take(at, effect)?;
        }
        Ok(done)
    }

    pub(super) fn take(&mut self, at: usize, effect: SharesEffect) -> Result<(), String> {
        if self.is_printed {
            println!("{} leader {at}: {effect:?}", self.now);
        }
        let leader = &mut self.leaders[at];
        match effect {
            SharesEffect::Load { number, .. } => leader.todo.push_back(Todo::Load { number }),
            SharesEffect::Write { number, ids, write, .. } => {
                leader.todo.push_back(Todo::Write { number, ids, write });
            }
            SharesEffect::DeadLetters { number, given_up, .. } if self.has_letters => {
                leader.letters = Some((number, given_up));
            }
            SharesEffect::DeadLetters { .. } => return Err("there are no dead letters".to_owned()),
            SharesEffect::Acknowledged { command, outcomes } => {
                let Some(settles) = leader.commands.remove(&command) else {
                    return Err(format!("acknowledgement {command} is answered twice"));
                };
                if outcomes.iter().all(|outcome| outcome.result.is_ok()) {
                    self.note(command);
                    self.settled.extend(settles);
                }
            }
            SharesEffect::WakeNext(_) => {}
        }
        Ok(())
    }

    /// What time brings to leaders: locks that end, what is to be asked, answers that do not come.
    pub(super) fn tick_leaders(&mut self) -> Result<(), String> {
        for at in 0..self.leaders.len() {
            if self.leaders[at].is_fenced {
                continue;
            }
            self.shares_step(at, |shares, effects, now| shares.expire(now, effects))?;
            if self.leaders[at].asked.is_some_and(|(_, until)| until <= self.now) {
                self.leaders[at].asked = None;
                self.give_up_waiting(at)?;
            }
            self.copy_letters(at)?;
            self.ask_coordinator(at);
        }
        Ok(())
    }

    fn give_up_waiting(&mut self, at: usize) -> Result<(), String> {
        let code = ErrorCode::CoordinatorNotAvailable;
        match self.leaders[at].todo.pop_front() {
            Some(Todo::Load { number }) => self.load(at, number, Err(code)),
            Some(Todo::Write { number, ids, .. }) => self.written(at, number, &ids, Err(code)),
            None => Ok(()),
        }
    }

    fn copy_letters(&mut self, at: usize) -> Result<(), String> {
        if self.leaders[at].letters.is_none() || !self.random.one_in(4) {
            return Ok(());
        }
        let Some((number, given_up)) = self.leaders[at].letters.take() else { return Ok(()) };
        let ranges: Vec<(Offset, Offset)> = given_up.iter().map(|run| (run.first, run.last)).collect();
        self.day.letters += ranges.len();
        let key = self.share_key();
        self.shares_step(at, |shares, effects, _| shares.dead_lettered((&key, number), &ranges, effects))
    }

    fn ask_coordinator(&mut self, at: usize) {
        let key = self.key.clone();
        let leader = &mut self.leaders[at];
        if leader.asked.is_some() {
            return;
        }
        let leader_epoch = leader.epoch;
        let request = match leader.todo.front() {
            Some(Todo::Load { .. }) => ShareStateRequest::Read { key, leader_epoch },
            Some(Todo::Write { write, .. }) => ShareStateRequest::Write {
                key,
                state_epoch: write.state_epoch.0,
                leader_epoch: write.leader_epoch,
                start_offset: write.start,
                delivery_complete_count: write.delivery_complete,
                batches: write.batches.iter().map(kept).collect(),
            },
            None => return,
        };
        self.numbers += 1;
        let number = self.numbers;
        self.leaders[at].asked = Some((number, self.now + PATIENCE_MS));
        self.mail.push(Mail::Ask { leader: at, number, request });
    }
}

fn kept(batch: &StateBatch) -> coordinator::StateBatch {
    coordinator::StateBatch {
        first: batch.first,
        last: batch.last,
        delivery_state: batch.state.code(),
        delivery_count: batch.delivery_count as i16,
    }
}
