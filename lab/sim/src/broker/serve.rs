//! A leader's answers to its followers: core/api plans and words them, the partitions decide.

use std::sync::Arc;

use barnabas_api::k01_fetch::{self, Outcome, Part, Read, Reader, Work};
use barnabas_api::{AnswerRoom, Client, Context, Plan};
use barnabas_base::{BrokerEpoch, BrokerId, ErrorCode, LeaderEpoch, Offset, Text, TimestampMs};
use barnabas_partition::{FollowerFetch, FollowerRead, ReplicaKey};
use barnabas_wire::messages::{FetchRequest, FetchResponse};

use super::learn::registered;
use super::{Around, Process};
use crate::batch::Batch;
use crate::controller::CLUSTER;
use crate::mistake::Mistake;
use crate::network::FETCH;

const BATCHES_PER_ANSWER: usize = 4;

impl Process {
    pub(super) fn serve(&mut self, request: FetchRequest, around: &mut Around<'_>) -> FetchResponse {
        let client = Client {
            listener: Text::from("PLAINTEXT"),
            client_id: None,
            host: Text::from("/127.0.0.1"),
            principal: Text::from("User:ANONYMOUS"),
        };
        let (image, config) = (Arc::clone(&self.image), Arc::clone(&self.config));
        let now = TimestampMs(around.now.0 as i64);
        let room = AnswerRoom::unlimited();
        let ctx = Context {
            loggers: Vec::new,
            image: &image,
            config: &config,
            cluster_id: CLUSTER,
            node: self.id,
            client: &client,
            now,
            room: &room,
        };
        let work = match k01_fetch::plan(request, FETCH, &mut self.sessions, &ctx) {
            Plan::Answer(response) => return response,
            Plan::Work(work) => work,
        };
        let Work { reader, parts, mut pending, .. } = work;
        for part in parts {
            let outcome = self.read(reader, &part, around);
            pending.set(part.slot, outcome, &ctx);
        }
        let draw = around.random.draw() as u32;
        pending.respond(&mut self.sessions, draw, now)
    }

    fn read(&mut self, reader: Reader, part: &Part, around: &mut Around<'_>) -> Outcome {
        let key = ReplicaKey { topic: part.topic.id, partition: part.partition };
        let Reader::Follower { id, epoch } = reader else {
            return Outcome::Refused(ErrorCode::InvalidRequest);
        };
        let fetch = self.fetch_of(id, epoch, part, around);
        let Some(replica) = self.replicas.get_mut(&key) else {
            return Outcome::Refused(ErrorCode::NotLeaderOrFollower);
        };
        let mut effects = Vec::new();
        let read = replica.partition.follower_fetch(&fetch, &replica.epochs, &mut effects);
        let outcome = match read {
            Ok(FollowerRead::Records(bounds)) => {
                let at = replica.log.partition_point(|batch| batch.end() <= part.from);
                let upto = replica.log.len().min(at + BATCHES_PER_ANSWER);
                Outcome::Read(Read {
                    records: Ok(Batch::write(&replica.log[at..upto])),
                    high_watermark: bounds.high_watermark,
                    last_stable: bounds.last_stable,
                    log_start: bounds.log_start,
                    aborted: None,
                })
            }
            Ok(FollowerRead::Diverging { epoch, end }) => diverging(epoch, end),
            Err(refusal) => Outcome::Refused(refusal.code()),
        };
        self.carry_out(key, effects, around);
        outcome
    }

    fn fetch_of(
        &self,
        broker: BrokerId,
        broker_epoch: BrokerEpoch,
        part: &Part,
        around: &Around<'_>,
    ) -> FollowerFetch {
        FollowerFetch {
            broker,
            broker_epoch,
            registered: registered(&self.image, broker),
            leader_epoch: part.leader_epoch.filter(|_| !around.is(Mistake::ServesAnyEpoch)),
            offset: part.from,
            last_epoch: part.last_fetched_epoch,
            log_start: part.follower_log_start.unwrap_or(Offset::ZERO),
            now: around.now,
        }
    }
}

fn diverging(epoch: LeaderEpoch, end: Offset) -> Outcome {
    let nothing = Read {
        records: Ok(bytes::Bytes::new()),
        high_watermark: Offset::NONE,
        last_stable: Offset::NONE,
        log_start: Offset::NONE,
        aborted: None,
    };
    Outcome::Diverging { epoch, end, read: nothing }
}
