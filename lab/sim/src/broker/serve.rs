//! A leader's answers to its followers: core/api plans and words them, the partitions decide. And to what waits for an
//! append.

use std::sync::Arc;

use barnabas_api::k01_fetch::{self, Outcome, Part, Read, Reader, Work};
use barnabas_api::{Access, AnswerRoom, Client, Context, Plan};
use barnabas_base::{BrokerEpoch, BrokerId, ErrorCode, LeaderEpoch, Offset, Text, TimestampMs};
use barnabas_partition::{Acked, FollowerFetch, FollowerRead, Isolation, ReplicaKey};
use barnabas_replica::{ReadRequest, RequestError, registered};
use barnabas_wire::messages::{FetchRequest, FetchResponse};

use super::{Around, Event, Process};
use crate::batch::{Batch, Contents};
use crate::controller::CLUSTER;
use crate::host::Waiter;
use crate::mistake::Mistake;
use crate::network::{Answer, FETCH, Message, Place, Reply};

/// Bytes of one partition in an answer, but for its first batch.
const BYTES_PER_ANSWER: usize = 1500;

impl Process {
    pub(super) fn serve(&mut self, request: FetchRequest, around: &mut Around<'_>) -> FetchResponse {
        let client = Client {
            listener: Text::from("PLAINTEXT"),
            client_id: None,
            host: Text::from("/127.0.0.1"),
            principal: Text::from("User:ANONYMOUS"),
            is_authenticated: false,
            token_authenticated: false,
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
            offline: None,
            client: &client,
            access: Access::OPEN,
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
        let draw = || around.random.draw() as u32;
        pending.respond(&mut self.sessions, draw, now, || Box::new(barnabas_api::Unlimited))
    }

    fn read(&mut self, reader: Reader, part: &Part, around: &mut Around<'_>) -> Outcome {
        let key = ReplicaKey { topic: part.topic.id, partition: part.partition };
        let Reader::Follower { id, epoch } = reader else {
            return Outcome::Refused(ErrorCode::InvalidRequest);
        };
        let fetch = self.fetch_of(id, epoch, part, around);
        let outcome = self.host.step(key, around.now, |replica, around| {
            match replica.follower_fetch(&fetch, around.outbox) {
                (Ok(FollowerRead::Records(_)), Some(bounds)) => {
                    let request = ReadRequest {
                        from: fetch.offset,
                        max_bytes: BYTES_PER_ANSWER,
                        at_least_one: true,
                        isolation: Isolation::LogEnd,
                        from_any: false,
                        leader_epoch: None,
                        last_fetched_epoch: None,
                    };
                    match replica.read_records(&request, bounds, around.files, around.outbox) {
                        Ok(read) => Outcome::Read(Read {
                            records: Ok(read.records),
                            high_watermark: bounds.high_watermark,
                            last_stable: bounds.last_stable,
                            log_start: bounds.log_start,
                            aborted: None,
                        }),
                        Err(error) => Outcome::Refused(RequestError::code(error)),
                    }
                }
                (Ok(FollowerRead::Diverging { epoch, end }), _) => diverging(epoch, end),
                (Ok(FollowerRead::Records(_)), None) => Outcome::Refused(ErrorCode::NotLeaderOrFollower),
                (Err(refusal), _) => Outcome::Refused(refusal.code()),
            }
        });
        if matches!(outcome, Some(Outcome::Read(_) | Outcome::Diverging { .. }))
            && let Some(replica) = self.host.replica(key)
        {
            let (asked, epoch) = (part.leader_epoch, replica.partition.leader_epoch());
            around.events.push(Event::Served { key, asked, epoch });
        }
        if matches!(outcome, Some(Outcome::Refused(ErrorCode::CorruptMessage))) {
            self.refused_follower(key, fetch.offset, id);
        }
        self.slip_after_fetch(key, &fetch, around);
        self.hear(around);
        outcome.unwrap_or(Outcome::Refused(ErrorCode::NotLeaderOrFollower))
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
            registered: match around.is(Mistake::ExpandsAnyLife) {
                true => Some(broker_epoch),
                false => registered(&self.image, broker),
            },
            leader_epoch: part.leader_epoch.filter(|_| !around.is(Mistake::ServesAnyEpoch)),
            offset: part.from,
            last_epoch: part.last_fetched_epoch,
            log_start: part.follower_log_start.unwrap_or(Offset::ZERO),
            now: around.now,
        }
    }

    pub(super) fn answered(
        &mut self,
        key: ReplicaKey,
        waiter: Waiter,
        answer: Result<Acked, ErrorCode>,
        batch: Option<Batch>,
        around: &mut Around<'_>,
    ) {
        if let Ok(acked) = answer {
            // What a coordinator or a marker rests on is judged by what comes of it.
            let is_a_clients = |batch: &Batch| matches!(batch.contents, Contents::Words | Contents::Value(_));
            if batch.as_ref().is_none_or(is_a_clients) && !self.host_is_damaged(key) {
                around.events.push(Event::Acked { key, base: acked.base, batch });
            }
        }
        self.appended(key, waiter, answer, around);
    }

    /// An append is safe, or is not and will not be.
    pub(super) fn appended(
        &mut self,
        key: ReplicaKey,
        waiter: Waiter,
        answer: Result<Acked, ErrorCode>,
        around: &mut Around<'_>,
    ) {
        match waiter {
            Waiter::Producer { client, sequence } => {
                let message = Message::Produced { sequence, answer: answer.map(|acked| acked.base) };
                self.send(Place::Client(client), message, around);
            }
            Waiter::Asker(reply) => self.reply(reply, Answer::Written(answer.map(|_| ())), around),
            Waiter::Shard(epoch, batch) => self.decided(key, epoch, batch, answer.map(|_| ()), around),
        }
    }

    pub(super) fn reply(&self, reply: Reply, answer: Answer, around: &mut Around<'_>) {
        self.send(reply.to, Message::Told { number: reply.number, answer }, around);
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
