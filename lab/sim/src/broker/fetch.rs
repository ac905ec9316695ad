//! What a broker asks of others: of leaders as a follower, of the controller as a leader.

use std::collections::BTreeMap;

use barnabas_api::replication::{alter_partition, fetch};
use barnabas_base::{BrokerId, DurationMs, ErrorCode, MonotonicMs, Offset, Text};
use barnabas_partition::{
    Cut, FetchPlan, FetchPosition, FetcherId, IsrAnswer, IsrNext, PartitionAnswer, ReplicaKey, Todo,
};
use barnabas_replica::NotApplied;
use barnabas_wire::messages::{AlterPartitionResponse, FetchResponse};

use super::{Around, Event, Open, PATIENCE, Process};
use crate::controller::CLUSTER;
use crate::mistake::Mistake;
use crate::network::{ALTER_PARTITION, FETCH, Message, Place};

impl Process {
    pub(super) fn ask_leaders(&mut self, around: &mut Around<'_>) {
        if self.host.is_over() {
            return;
        }
        for at in self.fetchers.ids() {
            let Some(fetcher) = self.fetchers.get_mut(at) else { continue };
            if let Some(open) = self.fetches.get(&at) {
                if open.until > around.now {
                    continue;
                }
                self.fetches.remove(&at);
                fetcher.unanswered(around.now);
            }
            if let Some(plan) = fetcher.plan(around.now, false) {
                self.send_fetch(at, &plan, around);
            }
        }
    }

    fn send_fetch(&mut self, at: FetcherId, plan: &FetchPlan, around: &mut Around<'_>) {
        let follower = fetch::Follower {
            broker: self.id,
            broker_epoch: self.life,
            cluster_id: Text::from(CLUSTER),
            wait_max: DurationMs(0),
            bytes_min: 0,
            bytes_max: 10 << 20,
            partition_bytes_max: 4 << 10,
        };
        let asks = plan.partitions.iter().map(|(key, at)| fetch::Ask {
            topic: key.topic,
            partition: key.partition,
            leader_epoch: at.leader_epoch,
            offset: at.offset,
            last_epoch: at.last_epoch.filter(|_| !around.is(Mistake::AsksWithoutEpochs)),
            log_start: at.log_start,
            high_watermark: at.high_watermark,
        });
        let forgotten = plan.forgotten.iter().map(|key| (key.topic, key.partition));
        let session = (plan.session.id, plan.session.epoch);
        let request = fetch::request(&follower, FETCH, session, asks, forgotten);
        let number = self.next_number();
        self.fetches.insert(at, Open { number, until: around.now.plus(PATIENCE) });
        self.send(Place::Broker(at.leader), Message::Fetch { number, request }, around);
    }

    pub(super) fn fetched(
        &mut self,
        from: Place,
        number: u64,
        response: FetchResponse,
        around: &mut Around<'_>,
    ) {
        let Place::Broker(leader) = from else { return };
        let is_it = |(_, open): &(&FetcherId, &Open)| open.number == number;
        let Some(at) = self.fetches.iter().find(is_it).map(|(at, _)| *at) else { return };
        self.fetches.remove(&at);
        let (error, session) = (ErrorCode::from_code(response.error_code), response.session_id);
        let mut words = Vec::new();
        let mut answers = BTreeMap::new();
        for answer in fetch::answers(response) {
            let key = ReplicaKey { topic: answer.topic, partition: answer.partition };
            words.push(PartitionAnswer {
                key,
                error: answer.error,
                high_watermark: answer.high_watermark,
                log_start: answer.log_start,
                diverging: answer.diverging,
                bytes: answer.records.len(),
            });
            answers.insert(key, answer);
        }
        let mut todos = Vec::new();
        if let Some(fetcher) = self.fetchers.get_mut(at) {
            fetcher.answered(error, session, DurationMs(0), &words, around.now, |key, asked, todo| {
                todos.push((key, *asked, todo));
            });
        }
        for (key, asked, todo) in todos {
            if let Some(answer) = answers.remove(&key) {
                self.carry_on(leader, key, &asked, todo, answer, around);
            }
        }
    }

    fn carry_on(
        &mut self,
        leader: BrokerId,
        key: ReplicaKey,
        asked: &FetchPosition,
        todo: Todo,
        answer: fetch::Answer,
        around: &mut Around<'_>,
    ) {
        let Some(hosted) = self.host.replicas.get_mut(&key) else { return self.fetchers.unfollow(key) };
        let replica = &mut hosted.replica;
        if replica.truncation.is_some() || replica.partition.is_failed() {
            return;
        }
        let may_take = replica.partition.may_take(asked, replica.log.epochs());
        if !may_take && !around.is(Mistake::BelievesLateAnswers) {
            return self.settle(key, around);
        }
        if matches!(todo, Todo::Append | Todo::Marks | Todo::Cut { .. }) {
            let position = replica.partition.fetch_position(replica.log.epochs());
            around.events.push(Event::Took { key, asked: *asked, position });
        }
        match todo {
            Todo::Append if replica.partition.asks_again_from().is_some() => {
                self.take_again(key, asked, answer, around);
            }
            Todo::Append | Todo::Marks => match replica.partition.uncompared(answer.log_start) {
                Cut::Nothing => self.take_answer(key, answer, around),
                cut => self.host.truncate(key, cut, &around.time()),
            },
            Todo::Cut { epoch, end } => {
                let cut = replica.partition.diverged(epoch, end, replica.log.epochs());
                let cut = match around.mistake {
                    Some(Mistake::IgnoresCuts) => Cut::Nothing,
                    Some(Mistake::TruncatesOnce) => Cut::To(end.min(replica.log.end())),
                    _ => cut,
                };
                self.host.truncate(key, cut, &around.time());
            }
            Todo::FindEnds { leader_epoch } => {
                let message = Message::FindEnds { key, epoch: leader_epoch, asked: *asked };
                self.send(Place::Broker(leader), message, around);
                // Without an answer it is sent again.
                self.delay(key, around);
            }
            Todo::Later if answer.error == ErrorCode::CorruptMessage => {
                replica.leader_is_damaged(asked.offset);
                self.repair(key, around);
            }
            Todo::Later | Todo::AwaitMetadata => {}
        }
    }

    pub(super) fn delay(&mut self, key: ReplicaKey, around: &Around<'_>) {
        if let Some(fetcher) = self.fetchers.of(key) {
            fetcher.delayed(key, around.now);
        }
    }

    fn take_answer(&mut self, key: ReplicaKey, answer: fetch::Answer, around: &mut Around<'_>) {
        let fetch::Answer { records, high_watermark, log_start, .. } = answer;
        let is_full = self.host.is_full();
        self.host.touch(key);
        let applied = self.host.step(key, around.now, |replica, around| {
            let applied = match records.is_empty() {
                true => Ok(()),
                false => replica.apply_fetched(records, |_| !is_full, around),
            };
            if !replica.partition.is_failed() {
                replica.apply_marks(high_watermark, log_start, around);
            }
            applied
        });
        match applied {
            Some(Ok(())) => {
                if self.host.ways().acks_are_written {
                    // It is where it fetches from once it is written; no journal says so later.
                    self.host.finish_turn(around.now, around.mistake);
                }
                self.settle(key, around);
            }
            Some(Err(NotApplied::Later | NotApplied::Damaged { .. })) => {
                self.delay(key, around);
                self.settle(key, around);
            }
            Some(Err(NotApplied::Never(_))) => {
                if let Some(fetcher) = self.fetchers.of(key) {
                    fetcher.failed(key);
                }
            }
            None => {}
        }
    }

    pub(super) fn found_ends(
        &mut self,
        key: ReplicaKey,
        asked: &FetchPosition,
        ends: Result<(Offset, Offset), ErrorCode>,
        around: &mut Around<'_>,
    ) {
        let Some(hosted) = self.host.replicas.get_mut(&key) else { return };
        let replica = &mut hosted.replica;
        if let Ok((start, end)) = ends
            && replica.truncation.is_none()
            && replica.partition.may_take(asked, replica.log.epochs())
        {
            let cut = replica.partition.out_of_range(start, end);
            replica.follow_damage(start);
            self.host.truncate(key, cut, &around.time());
        }
    }

    pub(super) fn ask_controller(&mut self, around: &mut Around<'_>) {
        if let Some((open, _)) = &self.question {
            if open.until > around.now {
                return;
            }
            let asked = self.question.take().map(|(_, asked)| asked).unwrap_or_default();
            self.questions.unanswered(around.now);
            self.slip_after_silence(asked, around);
        }
        let taken = self.questions.take(around.now);
        if taken.is_empty() {
            return;
        }
        let questions = taken.iter().map(|(key, change)| alter_partition::Question {
            topic: key.topic,
            partition: key.partition,
            leader_epoch: change.leader_epoch,
            partition_epoch: change.partition_epoch,
            in_sync: &change.in_sync,
        });
        let request = alter_partition::request(self.id, self.life, ALTER_PARTITION, questions);
        let numbers = taken.iter().map(|(key, change)| (*key, change.number)).collect();
        let asked = taken.to_vec();
        let number = self.next_number();
        self.slip_after_question(&asked, around);
        self.question = Some((Open { number, until: around.now.plus(PATIENCE) }, numbers));
        self.send(Place::Controller, Message::AlterPartition { number, request }, around);
    }

    pub(super) fn altered(&mut self, number: u64, response: AlterPartitionResponse, around: &mut Around<'_>) {
        let Some((_, numbers)) = self.question.take_if(|(open, _)| open.number == number) else { return };
        if !self.questions.answered(ErrorCode::from_code(response.error_code), around.now) {
            return;
        }
        for answer in alter_partition::answers(response) {
            let key = ReplicaKey { topic: answer.topic, partition: answer.partition };
            let Some((_, number)) = numbers.iter().find(|(asked, _)| *asked == key) else { continue };
            let word = match &answer.result {
                Ok(altered) => IsrAnswer::Changed {
                    leader_epoch: altered.leader_epoch,
                    partition_epoch: altered.partition_epoch,
                    in_sync: &altered.in_sync,
                },
                Err(code) => IsrAnswer::Refused(*code),
            };
            self.told(key, *number, &word, around.now, around);
        }
    }

    pub(super) fn told(
        &mut self,
        key: ReplicaKey,
        number: u32,
        word: &IsrAnswer<'_>,
        now: MonotonicMs,
        around: &mut Around<'_>,
    ) {
        let next = self.host.step(key, now, |replica, around| {
            replica.partition.isr_answered(number, word, now, &mut around.outbox.decisions)
        });
        if next == Some(IsrNext::Ask)
            && let Some(change) = self.host.replica(key).and_then(|replica| replica.partition.isr_change())
        {
            self.questions.ask(key, change.clone());
            self.questions.hold(now);
        }
        self.hear(around);
    }
}
