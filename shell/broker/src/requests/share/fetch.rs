//! ShareFetch and ShareAcknowledge: the sessions, what is acknowledged, and records from the owners of partitions,
//! waited for if there are none.
//!
//! A fetch asks the owners one after another, each for as many records as are still wanted: acquired records are
//! unavailable to other members, so the fetch must not acquire too many. A fetch that finds nothing waits with all
//! owners (mailbox/share/waiters.rs).
//!
//! Share path 2½ of 5. Before: connection.rs. After: core/api/src/k78_share_fetch.rs, partition_worker/share.rs.

use crate::mailbox::Command;
use crate::mailbox::Waiter;
use crate::mailbox::share::{
    ShareAckCommand, ShareAckItem, ShareAckOutcome, ShareCommand, ShareFetchCommand, ShareItem, ShareOutcome,
};
use crate::requests::call::{Answer, Call, Started};
use crate::requests::fetch::{claim_for_session, granted};
use crate::requests::session::reading::Reading;
use crate::requests::session::share_members::{end, partition_key};
use barnabas_api::k78_share_fetch::{self, AckPart, FetchPart, Fetched, Next, Work};
use barnabas_api::k79_share_acknowledge;
use barnabas_api::share::{Connection, MemberKey, Opener, ShareGroupSettings};
use barnabas_api::{Plan, Refusal};
use barnabas_base::ErrorCode;
use barnabas_net::Claim;
use barnabas_partition::{AckBatch, AckType, AcquireMode, Acquired, Isolation};
use barnabas_wire::messages::{ShareAcknowledgeRequest, ShareFetchRequest};
use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;
use tokio::sync::oneshot;

/// What one answer holds at most; the first batch may be larger.
const ANSWER_BYTES_MAX: usize = 8 << 20;

/// An owner has ended: the node is stopping.
struct Gone;

/// Starts a ShareFetch request: when this is done, its acknowledgements are with their owners.
pub async fn share_fetch(call: Call, request: ShareFetchRequest) -> Started {
    let session_bytes = k78_share_fetch::work_bytes(&request, &call.session.node.workers.share_sessions());
    let session_claim = claim_for_session(&call, session_bytes).await;
    let moment = call.moment();
    let plan = {
        let workers = &call.session.node.workers;
        let share = || workers.session_share(call.session.peer.ip(), false);
        let opener = Opener { connection: connection(&call), share: &share };
        let mut sessions = workers.share_sessions();
        k78_share_fetch::plan(&request, call.version, &mut sessions, &opener, &call.context(&moment))
    };
    let mut work = match plan {
        Plan::Answer(response) => return Started::reply(response),
        Plan::Work(Next::Late(wait, response)) => {
            let wait = Duration::from_millis(u64::try_from(wait.0).unwrap_or(0));
            return Started::wait(async move {
                tokio::time::sleep(wait).await;
                Answer::Reply(response.into())
            });
        }
        Plan::Work(Next::Work(work)) => *work,
    };
    drop(moment);
    let acknowledging = acknowledge(&call, &work.key, std::mem::take(&mut work.acknowledge)).await;
    let fetching = Fetching::new(call, work);
    Started::wait(async move {
        let _session_claim = session_claim;
        match fetching.answer(acknowledging).await {
            Ok(answer) => answer,
            Err(Gone) => Answer::Close,
        }
    })
}

/// Starts a ShareAcknowledge request.
pub async fn share_acknowledge(call: Call, request: ShareAcknowledgeRequest) -> Started {
    let moment = call.moment();
    let plan = {
        let mut sessions = call.session.node.workers.share_sessions();
        k79_share_acknowledge::plan(&request, call.version, &mut sessions, &call.context(&moment))
    };
    drop(moment);
    let k79_share_acknowledge::Work { key, acknowledge: parts, is_last, mut pending } = match plan {
        Plan::Answer(response) => return Started::reply(response),
        Plan::Work(work) => work,
    };
    let acknowledging = acknowledge(&call, &key, parts).await;
    Started::wait(async move {
        let Ok(outcomes) = acknowledging.all().await else { return Answer::Close };
        let moment = call.moment();
        let context = call.context(&moment);
        for (slot, result) in outcomes {
            pending.acknowledged(slot, result, &context);
        }
        if is_last {
            end(&call.session.node, &key).await;
        }
        Answer::Reply(pending.respond(&context).into())
    })
}

/// The connection's number among those that share sessions know.
fn connection(call: &Call) -> Connection {
    let known = call.session.share_connection.get();
    let connection = known.unwrap_or_else(|| call.session.node.workers.next_connection());
    call.session.share_connection.set(Some(connection));
    connection
}

/// Acknowledgements that are on their way.
struct Acknowledging {
    slots: Vec<barnabas_api::Slot>,
    receivers: Vec<oneshot::Receiver<Vec<ShareAckOutcome>>>,
}

impl Acknowledging {
    async fn all(self) -> Result<Vec<(barnabas_api::Slot, Result<(), Refusal>)>, Gone> {
        let mut all = Vec::with_capacity(self.slots.len());
        for receiver in self.receivers {
            for outcome in receiver.await.map_err(|_| Gone)? {
                let refusal = outcome
                    .result
                    .map_err(|declined| Refusal { code: declined.code(), message: declined.message() });
                all.push((self.slots[outcome.slot as usize], refusal));
            }
        }
        Ok(all)
    }
}

/// Sends acknowledgements to their owners.
async fn acknowledge(call: &Call, key: &MemberKey, parts: Vec<AckPart>) -> Acknowledging {
    let node = &call.session.node;
    let slots = parts.iter().map(|part| part.slot).collect();
    let mut by_owner: Vec<(usize, Vec<ShareAckItem>)> = Vec::new();
    for (slot, part) in parts.into_iter().enumerate() {
        let partition = partition_key(&part.part);
        let batches = part.batches.into_iter().map(|batch| AckBatch {
            first: batch.first,
            last: batch.last,
            // Checked by core/api.
            types: batch.types.into_iter().filter_map(AckType::from_code).collect(),
        });
        let item = ShareAckItem { slot: slot as u32, partition, batches: batches.collect() };
        let owner = partition.owner(node.workers.count);
        match by_owner.iter_mut().find(|(known, _)| *known == owner) {
            Some((_, items)) => items.push(item),
            None => by_owner.push((owner, vec![item])),
        }
    }
    let mut receivers = Vec::with_capacity(by_owner.len());
    for (owner, items) in by_owner {
        let (reply, receiver) = oneshot::channel();
        receivers.push(receiver);
        let (group, member) = (key.group.clone(), key.member.clone());
        let command = ShareCommand::Acknowledge(ShareAckCommand { group, member, items, reply });
        node.workers.mailboxes[owner].send(Command::Share(Box::new(command))).await;
    }
    Acknowledging { slots, receivers }
}

struct Fetching {
    call: Call,
    work: Work,
    isolation: Isolation,
    /// The partitions by their owners, in the order in which those are asked.
    owners: Vec<(usize, Vec<FetchPart>)>,
    waiter: Option<Arc<Waiter>>,
    deadline: Instant,
    claim: Claim,
    reading: Reading,
}

impl Fetching {
    fn new(call: Call, mut work: Work) -> Self {
        let node = &call.session.node;
        let is_committed = {
            let (image, config) = (node.cluster.image.load(), node.cluster.config.load());
            ShareGroupSettings::of(&work.key.group, &image, &config).read_committed
        };
        let mut owners: Vec<(usize, Vec<FetchPart>)> = Vec::new();
        for part in std::mem::take(&mut work.fetch) {
            let owner = partition_key(&part.part).owner(node.workers.count);
            match owners.iter_mut().find(|(known, _)| *known == owner) {
                Some((_, parts)) => parts.push(part),
                None => owners.push((owner, vec![part])),
            }
        }
        let waits = work.wait.0 > 0 && !owners.is_empty();
        let deadline = barnabas_clock::now() + Duration::from_millis(u64::try_from(work.wait.0).unwrap_or(0));
        let isolation = if is_committed { Isolation::ReadCommitted } else { Isolation::ReadUncommitted };
        let claim = call.session.claim();
        let waiter = waits.then(|| Waiter::new(1, is_committed));
        let mut reading = Reading::new(call.session.clone());
        if !owners.is_empty() {
            // Before it is first polled: requests that came with it are not started meanwhile.
            reading.set(work.bytes_max.min(ANSWER_BYTES_MAX));
        }
        Self { call, work, isolation, owners, waiter, deadline, claim, reading }
    }

    async fn answer(mut self, acknowledging: Acknowledging) -> Result<Answer, Gone> {
        loop {
            let is_last_look = barnabas_clock::now() >= self.deadline;
            self.ask(is_last_look).await?;
            let Some(waiter) = self.waiter.clone() else { break };
            if self.work.pending.has_news() || is_last_look {
                break;
            }
            let _ = tokio::time::timeout_at(self.deadline.into(), waiter.woken()).await;
            waiter.again(1);
        }
        let outcomes = acknowledging.all().await?;
        if self.work.is_last {
            end(&self.call.session.node, &self.work.key).await;
        }
        Ok(self.respond(outcomes))
    }

    /// Asks the owners in turn for what is still wanted.
    async fn ask(&mut self, is_last_look: bool) -> Result<(), Gone> {
        let bytes_max = self.work.bytes_max.min(ANSWER_BYTES_MAX);
        let bytes_max = granted(&self.call, &mut self.claim, bytes_max);
        self.reading.set(bytes_max);
        let mut records_left = self.work.records_max;
        for at in 0..self.owners.len() {
            let bytes_left = bytes_max.saturating_sub(self.work.pending.bytes());
            if records_left <= 0 || (bytes_left == 0 && self.work.pending.bytes() > 0) {
                self.pass_on(at);
                break;
            }
            let outcomes = self.ask_one(at, records_left, bytes_left, is_last_look).await?;
            records_left -= self.take(at, outcomes);
        }
        self.reading.set(self.work.pending.bytes());
        Ok(())
    }

    async fn ask_one(
        &self,
        at: usize,
        records_max: i64,
        max_bytes: usize,
        is_last_look: bool,
    ) -> Result<Vec<ShareOutcome>, Gone> {
        let (owner, parts) = &self.owners[at];
        // Each partition may give its part, as in Kafka's uniform strategy.
        let of_each = max_bytes / parts.len().max(1);
        let items = parts.iter().enumerate().map(|(slot, part)| ShareItem {
            slot: slot as u32,
            partition: partition_key(&part.part),
            max_bytes: of_each,
        });
        let (reply, receiver) = oneshot::channel();
        let command = ShareFetchCommand {
            group: self.work.key.group.clone(),
            member: self.work.key.member.clone(),
            isolation: self.isolation,
            mode: if self.work.is_exact { AcquireMode::RecordLimit } else { AcquireMode::BatchOptimized },
            batch_size: self.work.batch_size.max(1),
            records_max,
            max_bytes,
            bytes_min: if is_last_look { 0 } else { self.work.bytes_min },
            items: items.collect(),
            waiter: self.waiter.clone().filter(|_| !is_last_look),
            reply,
        };
        let mailbox = &self.call.session.node.workers.mailboxes[*owner];
        mailbox.send(Command::Share(Box::new(ShareCommand::Fetch(command)))).await;
        receiver.await.map_err(|_| Gone)
    }

    /// Takes what an owner gave. Returns how many records.
    fn take(&mut self, at: usize, outcomes: Vec<ShareOutcome>) -> i64 {
        let Self { call, work, owners, .. } = self;
        let moment = call.moment();
        let context = call.context(&moment);
        let mut records = 0;
        for outcome in outcomes {
            let slot = owners[at].1[outcome.slot as usize].slot;
            match outcome.result {
                Ok(read) => {
                    records += read.acquired.iter().map(Acquired::count).sum::<i64>();
                    let acquired = read.acquired.iter().map(|of| (of.first, of.last, of.delivery_count));
                    let acquired = acquired.collect();
                    work.pending.fetched(slot, Fetched { records: read.records, acquired });
                }
                Err(declined) => {
                    let code = match declined.code() {
                        // The share partition looks again where the log begins.
                        ErrorCode::OffsetOutOfRange => continue,
                        code => code,
                    };
                    work.pending.refused(slot, Refusal { code, message: declined.message() }, &context);
                }
            }
        }
        records
    }

    /// Wakes the next waiting fetch to look at the records that this one left: the owners from `at` on.
    fn pass_on(&self, at: usize) {
        for (owner, parts) in &self.owners[at..] {
            let group = self.work.key.group.clone();
            let partitions = parts.iter().map(|part| partition_key(&part.part)).collect();
            let command = ShareCommand::Pass { group, partitions };
            // A worker with a full mailbox does not sleep, and a waiting fetch looks again when its wait ends.
            self.call.session.node.workers.mailboxes[*owner].try_send(Command::Share(Box::new(command)));
        }
    }

    fn respond(mut self, acknowledged: Vec<(barnabas_api::Slot, Result<(), Refusal>)>) -> Answer {
        let Self { call, work, claim, .. } = &mut self;
        let moment = call.moment();
        let context = call.context(&moment);
        for (slot, result) in acknowledged {
            work.pending.acknowledged(slot, result, &context);
        }
        let bytes = work.pending.bytes() as u64;
        call.session.recorder.cells().fetched.record(bytes);
        // What no record came for is given back.
        let held = claim.split(bytes);
        let pending = std::mem::take(&mut work.pending);
        let response = pending.respond(&mut call.session.node.workers.share_sessions(), &context);
        for topic in &response.responses {
            let bytes = topic.partitions.iter().filter_map(|partition| partition.records.as_ref());
            let bytes_out = bytes.map(|records| records.len() as u64).sum();
            let fetched = barnabas_metrics::recorder::Fetched { bytes_out, ..Default::default() };
            call.session.recorder.fetched(topic.topic_id, &fetched);
        }
        Answer::Held(response.into(), held)
    }
}

impl Drop for Fetching {
    /// Answered or not: who was woken and does not look has the next one look.
    fn drop(&mut self) {
        if let Some(waiter) = &self.waiter {
            waiter.finish();
            if waiter.is_woken() {
                self.pass_on(0);
            }
        }
    }
}
