//! What a broker asks of others: of leaders as a follower, of the controller as a leader.

use std::collections::BTreeMap;

use barnabas_api::replication::{alter_partition, fetch};
use barnabas_base::{BrokerId, DurationMs, ErrorCode, MonotonicMs, Offset, Text};
use barnabas_partition::{
    Cut, FetchPlan, FetchPosition, FetcherId, IsrAnswer, IsrNext, PartitionAnswer, ReplicaKey, Todo,
};
use barnabas_wire::messages::{AlterPartitionResponse, FetchResponse};

use super::{Around, Event, Open, PATIENCE, Process};
use crate::batch::Batch;
use crate::controller::CLUSTER;
use crate::mistake::Mistake;
use crate::network::{ALTER_PARTITION, FETCH, Message, Place};
use crate::replica::DiskLog;

type Disk = BTreeMap<ReplicaKey, DiskLog>;

impl Process {
    pub(super) fn ask_leaders(&mut self, around: &mut Around<'_>) {
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
            partition_bytes_max: 1 << 20,
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
        disk: &mut Disk,
    ) {
        let Place::Broker(leader) = from else { return };
        let is_it = |(_, open): &(&FetcherId, &Open)| open.number == number;
        let Some(at) = self.fetches.iter().find(is_it).map(|(at, _)| *at) else { return };
        self.fetches.remove(&at);
        let (error, session) = (ErrorCode::from_code(response.error_code), response.session_id);
        let mut answers = Vec::new();
        let mut records = BTreeMap::new();
        for answer in fetch::answers(response) {
            let key = ReplicaKey { topic: answer.topic, partition: answer.partition };
            answers.push(PartitionAnswer {
                key,
                error: answer.error,
                high_watermark: answer.high_watermark,
                log_start: answer.log_start,
                diverging: answer.diverging,
                bytes: answer.records.len(),
            });
            records.insert(key, (Batch::read(answer.records), answer.high_watermark, answer.log_start));
        }
        let mut todos = Vec::new();
        if let Some(fetcher) = self.fetchers.get_mut(at) {
            fetcher.answered(error, session, DurationMs(0), &answers, around.now, |key, asked, todo| {
                todos.push((key, *asked, todo));
            });
        }
        for (key, asked, todo) in todos {
            let sent = records.remove(&key).unwrap_or_default();
            self.carry_on(leader, key, &asked, todo, sent, around, disk);
        }
    }

    #[allow(clippy::too_many_arguments, reason = "what one answer brings for one partition")]
    fn carry_on(
        &mut self,
        leader: BrokerId,
        key: ReplicaKey,
        asked: &FetchPosition,
        todo: Todo,
        (batches, high_watermark, log_start): (Vec<Batch>, Offset, Offset),
        around: &mut Around<'_>,
        disk: &mut Disk,
    ) {
        let Some(replica) = self.replicas.get_mut(&key) else { return };
        if !replica.partition.may_take(asked, &replica.epochs) {
            self.settle(key);
            return;
        }
        let mut effects = Vec::new();
        match todo {
            Todo::Append | Todo::Marks => {
                replica.follow(batches, &mut effects);
                if around.is(Mistake::SkipsTheSync) {
                    replica.partition.synced(replica.partition.log_end(), &mut effects);
                }
                replica.partition.follow_marks(high_watermark, log_start, &mut effects);
            }
            Todo::Cut { epoch, end } => {
                let cut = replica.partition.diverged(epoch, end, &replica.epochs);
                self.cut(key, cut, around, disk);
                return;
            }
            Todo::FindEnds { leader_epoch } => {
                let message = Message::FindEnds { key, epoch: leader_epoch, asked: *asked };
                self.send(Place::Broker(leader), message, around);
                // If nobody answers it is asked for again.
                if let Some(fetcher) = self.fetchers.of(key) {
                    fetcher.delayed(key, around.now);
                }
                return;
            }
            Todo::Later | Todo::AwaitMetadata => return,
        }
        self.carry_out(key, effects, around);
        // What could not be appended is asked for again.
        self.settle(key);
    }

    pub(super) fn found_ends(
        &mut self,
        key: ReplicaKey,
        asked: &FetchPosition,
        ends: Result<(Offset, Offset), ErrorCode>,
        around: &mut Around<'_>,
        disk: &mut Disk,
    ) {
        let Some(replica) = self.replicas.get_mut(&key) else { return };
        if let Ok((start, end)) = ends
            && replica.partition.may_take(asked, &replica.epochs)
        {
            let cut = replica.partition.out_of_range(start, end);
            self.cut(key, cut, around, disk);
        }
    }

    fn cut(&mut self, key: ReplicaKey, cut: Cut, around: &mut Around<'_>, disk: &mut Disk) {
        let Some(replica) = self.replicas.get_mut(&key) else { return };
        let cut = if around.is(Mistake::IgnoresCuts) { Cut::Nothing } else { cut };
        if let Some((to, high_watermark)) = replica.cut(cut, disk.entry(key).or_default()) {
            around.events.push(Event::Cut { key, to, high_watermark });
        }
        self.settle(key);
    }

    pub(super) fn ask_controller(&mut self, around: &mut Around<'_>) {
        if let Some((open, _)) = &self.question {
            if open.until > around.now {
                return;
            }
            self.question = None;
            self.questions.unanswered(around.now);
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
        let number = self.next_number();
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

    fn told(
        &mut self,
        key: ReplicaKey,
        number: u32,
        word: &IsrAnswer<'_>,
        now: MonotonicMs,
        around: &mut Around<'_>,
    ) {
        let Some(replica) = self.replicas.get_mut(&key) else { return };
        let mut effects = Vec::new();
        let next = replica.partition.isr_answered(number, word, now, &mut effects);
        if next == IsrNext::Ask
            && let Some(change) = replica.partition.isr_change()
        {
            self.questions.ask(key, change.clone());
            self.questions.hold(now);
        }
        self.carry_out(key, effects, around);
    }
}
