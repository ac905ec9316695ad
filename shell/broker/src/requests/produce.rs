//! Produce: judge each partition's records, then send them to their owners; or, for a moment, to the broker that has
//! just become their leader (produce/forwarding.rs).
//!
//! Headers and small batches are judged here, on the connection's worker. What would hold the worker up (batches that
//! inflate far, or are written again) goes to the threads of node/workers/unpacking.rs, one batch at a time, while the
//! connection's next request waits.
//!
//! Batches that are written again may be larger than they came. They are claimed from the memory budget before they go
//! on, and together they are no more than `socket.request.max.bytes`.

mod forwarding;

use crate::mailbox::{AppendItem, AppendOutcome, Declined, PartitionKey, Standing};
use crate::node::Node;
use crate::node::topic_settings;
use crate::node::workers::unpacking::{Spare, TURN};
use crate::requests::call::{Answer, Call, Moment, Started};
use crate::requests::session::turns::Turn;
use crate::requests::transactions::verification::{self, Wish};
use crate::routing::owners;
use barnabas_api::k00_produce::forwarding::{Kept, may_forward};
use barnabas_api::k00_produce::{self, Acks as Wanted, Outcome, Part, Pending, Reply, Unknown, Work};
use barnabas_api::{Plan, Slot};
use barnabas_base::{ErrorCode, Map, Offset, TimestampMs, TopicPartition};
use barnabas_metrics::Passed;
use barnabas_net::Claim;
use barnabas_partition::{Acks, BatchSequence, Origin, Refusal as Refused};
use barnabas_replica::batch_sequence;
use barnabas_wire::messages::ProduceRequest;
use barnabas_wire::records::{
    AtOnce, BatchHeader, Refusal, Rules, TimestampType, Validated, Verdict, validate_at_once,
    validate_produce,
};
use bytes::Bytes;
use std::time::Instant;

/// Starts a Produce request: when this is done, its batches are on their way to their owners.
pub async fn produce(call: Call, request: ProduceRequest) -> Started {
    let moment = call.moment();
    let plan = k00_produce::plan(request, call.version, &call.context(&moment));
    let Work { acks: wanted, timeout, transaction, parts, elsewhere, unknown, mut pending } = match plan {
        Plan::Answer(reply) => return Started::Answer(answer(reply)),
        Plan::Work(work) => work,
    };
    let session = call.session.clone();
    let node = &session.node;
    let rebuilt = session.claim();
    let mut judge =
        Judge { call: &call, moment: &moment, last: None, rebuilt, rebuilt_bytes: 0, turn_began: None };
    let mut slots = Vec::with_capacity(parts.len());
    let mut items = Vec::with_capacity(parts.len());
    let mut in_transaction = Vec::new();
    let mut kept =
        match wanted != Wanted::None && may_forward(call.client.client_id.as_deref(), &moment.image) {
            true => parts.iter().chain(&elsewhere).filter_map(Kept::of).collect(),
            false => Vec::new(),
        };
    count(&call, wanted, parts.iter().chain(&elsewhere));
    let refused = elsewhere.iter().filter_map(numbered).collect();
    let elsewhere: Vec<Slot> = elsewhere.iter().map(|part| part.slot).collect();
    note_unknown(node, &unknown);
    for part in parts {
        let slot = part.slot;
        let name =
            part.is_transactional.then(|| TopicPartition::new(part.topic.name.clone(), part.partition));
        let number = slots.len() as u32;
        if let Some((item, append_time)) = judge.judge(part, number, &mut pending).await {
            items.push(item);
            slots.push((slot, append_time));
            in_transaction.extend(name.map(|name| (number, name)));
        }
    }
    let rebuilt = judge.rebuilt;
    drop(moment);
    owners::note_refused(node, refused).await;
    if let Some(transaction) = transaction {
        verify(&call, transaction, in_transaction, &mut items, &slots, &mut pending).await;
    }
    let acks = acks_of(wanted);
    if items.is_empty() && (elsewhere.is_empty() || kept.is_empty()) {
        return Started::Answer(answer(pending.respond()));
    }
    let deadline = node.clock.monotonic().plus(timeout);
    let turn = (!kept.is_empty()).then(|| Turn::take(&call.session, kept.iter().map(Kept::key).collect()));
    call.session.worked_for(items.iter().map(|item| item.partition.owner(node.workers.count)));
    let sent = items.len();
    let gathering = owners::append(node, items, acks, deadline).await;
    if acks == Acks::None {
        return Started::Answer(answer(pending.respond()));
    }
    Started::wait(async move {
        let outcomes = gathering.all().await;
        // An owner that says nothing is gone: the node is stopping, and an answer would be a guess.
        if outcomes.len() < sent {
            return Answer::Close;
        }
        let slowest = outcomes.iter().map(|outcome| outcome.times).max_by_key(|times| times.round.durable);
        let refused = set_outcomes(&call, &mut pending, &slots, outcomes);
        kept.retain(|batch| refused.contains(&batch.slot()) || elsewhere.contains(&batch.slot()));
        if let Some(turn) = turn.filter(|_| !kept.is_empty()) {
            forwarding::forward(&call, &turn, (wanted, deadline), kept, &mut pending).await;
        }
        call.session.passed.set(slowest.map_or(Passed::Untold, Passed::Appended));
        drop(rebuilt);
        answer(pending.respond())
    })
}

/// Counts the partitions of a request.
fn count<'a>(call: &Call, wanted: Wanted, parts: impl Iterator<Item = &'a Part>) {
    let recorder = &call.session.recorder;
    let mut partitions = 0;
    for part in parts {
        recorder.produced(part.topic.id);
        partitions += 1;
    }
    if wanted != Wanted::All {
        recorder.produced_weakly(partitions);
    }
}

/// Before a transaction begins on a partition its coordinator is asked, while the connection's next request waits, so
/// that batches keep their order. Batches that may not be appended are taken out.
async fn verify(
    call: &Call,
    transaction: k00_produce::Transaction,
    names: Vec<(u32, TopicPartition)>,
    items: &mut Vec<AppendItem>,
    slots: &[(Slot, Option<TimestampMs>)],
    pending: &mut Pending,
) {
    let wish = Wish {
        transactional_id: transaction.transactional_id,
        producer_id: transaction.producer_id,
        producer_epoch: transaction.producer_epoch,
        joins: transaction.bumps,
    };
    let mut names: Map<u32, TopicPartition> = names.into_iter().collect();
    let asked: Vec<(u32, (PartitionKey, TopicPartition))> = items
        .iter()
        .filter_map(|item| Some((item.slot, (item.partition, names.remove(&item.slot)?))))
        .collect();
    let (numbers, partitions): (Vec<u32>, Vec<_>) = asked.into_iter().unzip();
    let verdicts = verification::verify(call, &wish, partitions).await;
    let mut verdicts: Map<u32, Result<Standing, ErrorCode>> = numbers.into_iter().zip(verdicts).collect();
    let moment = call.moment();
    let context = call.context(&moment);
    let mut refused = Vec::new();
    items.retain_mut(|item| match verdicts.remove(&item.slot) {
        None => true,
        Some(Ok(standing)) => {
            item.standing = standing;
            true
        }
        Some(Err(code)) => {
            if code.is_retriable() {
                refused.push((item.partition, batch_sequence(item.batch.header())));
            }
            pending.set(slots[item.slot as usize].0, k00_produce::unverified(code, call.version), &context);
            false
        }
    });
    drop(moment);
    owners::note_refused(&call.session.node, refused).await;
}

fn acks_of(wanted: Wanted) -> Acks {
    match wanted {
        Wanted::None => Acks::None,
        Wanted::Leader => Acks::Leader,
        Wanted::All => Acks::All,
    }
}

/// Which batch of its producer it is that another broker leads.
fn numbered(part: &Part) -> Option<(PartitionKey, BatchSequence)> {
    let header = BatchHeader::parse(&part.records).ok()?;
    let partition = PartitionKey { topic: part.topic.id, partition: part.partition };
    Some((partition, batch_sequence(&header)))
}

fn note_unknown(node: &Node, unknown: &[Unknown]) {
    for unknown in unknown {
        if let Ok(header) = BatchHeader::parse(&unknown.records) {
            let now = node.clock.monotonic();
            node.cluster.unknown_topics.note(unknown, batch_sequence(&header), now);
        }
    }
}

fn answer(reply: Reply) -> Answer {
    match reply {
        Reply::Respond(response) => Answer::Reply(response.into()),
        Reply::Nothing => Answer::Nothing,
        Reply::Close => Answer::Close,
    }
}

/// Judges batches, remembering the rules of the topic that was judged last.
struct Judge<'a> {
    call: &'a Call,
    moment: &'a Moment,
    last: Option<(barnabas_base::TopicId, Rules)>,
    /// The share of the memory budget that rebuilt batches take.
    rebuilt: Claim,
    rebuilt_bytes: u64,
    /// Since when this request keeps the worker; `None`: it is to begin.
    turn_began: Option<Instant>,
}

impl Judge<'_> {
    /// A batch that may be appended, and the time it gets under LogAppendTime; refusals go into `pending`.
    async fn judge(
        &mut self,
        part: Part,
        number: u32,
        pending: &mut Pending,
    ) -> Option<(AppendItem, Option<TimestampMs>)> {
        let call = self.call;
        let node = &call.session.node;
        let rules = match &self.last {
            Some((topic, rules)) if *topic == part.topic.id => *rules,
            _ => {
                let config = topic_settings::topic_config(node, &self.moment.image, &part.topic.name);
                let rules = k00_produce::rules(&part.topic.name, &config, self.call.version, self.moment.now);
                self.last = Some((part.topic.id, rules));
                rules
            }
        };
        let bytes = part.records.len() as u64;
        let verdict = self.verdict(part.records, rules).await;
        let context = call.context(self.moment);
        match verdict {
            Ok(Some(validated)) => {
                let is_append_time = rules.timestamp_type == TimestampType::LogAppendTime;
                let append_time = is_append_time.then_some(self.moment.now);
                let partition = PartitionKey { topic: part.topic.id, partition: part.partition };
                let item = AppendItem {
                    slot: number,
                    partition,
                    origin: Origin::Client,
                    standing: Standing::Open,
                    batch: validated.batch,
                };
                Some((item, append_time))
            }
            Ok(None) => {
                let nothing =
                    Outcome::Appended { base: Offset::NONE, append_time: None, log_start: Offset::NONE };
                pending.set(part.slot, nothing, &context);
                None
            }
            Err(refusal) => {
                node.workers.meter.batches_refused.one();
                call.session.recorder.refused(part.topic.id);
                if refusal.code == ErrorCode::MessageTooLarge {
                    call.session.recorder.too_large(part.topic.id, bytes);
                }
                pending.set(part.slot, Outcome::Refused { refusal, log_start: Offset::NONE }, &context);
                None
            }
        }
    }
}

impl Judge<'_> {
    async fn verdict(&mut self, records: Bytes, rules: Rules) -> Result<Option<Validated>, Refusal> {
        let mut now = barnabas_clock::now();
        if now.saturating_duration_since(*self.turn_began.get_or_insert(now)) > TURN {
            tokio::task::yield_now().await;
            now = barnabas_clock::now();
            self.turn_began = Some(now);
        }
        let validated = match here(&records, &rules, now) {
            Some(verdict) => verdict?,
            None => {
                let validated = self.elsewhere(records, rules).await?;
                self.turn_began = None;
                validated
            }
        };
        if let Some(validated) = validated.as_ref().filter(|validated| validated.rebuilt) {
            self.claim(validated.batch.size_bytes() as u64).await?;
        }
        Ok(validated)
    }

    /// On a thread that nothing waits for.
    async fn elsewhere(&self, records: Bytes, rules: Rules) -> Result<Option<Validated>, Refusal> {
        let session = &self.call.session;
        let address = session.peer.ip().to_canonical();
        let work = move || validate_produce(records, &rules);
        let verdict = session.node.workers.unpacking.run(Some(address), work).await;
        verdict.unwrap_or_else(|| {
            Err(refusal(ErrorCode::UnknownServerError, "no thread to read the records with"))
        })
    }

    /// Takes the bytes of a rebuilt batch from the budget.
    async fn claim(&mut self, bytes: u64) -> Result<(), Refusal> {
        self.rebuilt_bytes += bytes;
        if self.rebuilt_bytes > self.call.session.node.workers.request_bytes_max as u64 {
            let what = "the request's batches, as they are stored, exceed socket.request.max.bytes";
            return Err(refusal(ErrorCode::MessageTooLarge, what));
        }
        self.rebuilt.grow_to(self.rebuilt_bytes).await;
        Ok(())
    }
}

/// The verdict, if it takes the worker no longer than it may.
fn here(records: &Bytes, rules: &Rules, now: Instant) -> Option<Result<Option<Validated>, Refusal>> {
    let at_once: AtOnce = Spare::at_once(now);
    let verdict = validate_at_once(records.clone(), rules, at_once);
    // What a header decides takes next to nothing, and is decided in any case.
    let counts = !matches!(&verdict, Verdict::Taken(Some(validated)) if !validated.walked);
    if counts {
        Spare::spent(barnabas_clock::since(now));
    }
    match verdict {
        Verdict::Taken(validated) => Some(Ok(validated)),
        Verdict::Refused(refusal) => Some(Err(refusal)),
        Verdict::TooMuch => None,
    }
}

fn refusal(code: ErrorCode, message: &str) -> Refusal {
    Refusal { code, message: message.to_owned(), record_errors: Vec::new() }
}

/// What clients that show messages (Produce from version 8 on) print while they retry.
fn no_room() -> Outcome {
    let message = "the log directory is short of room; it is taken again when there is more";
    Outcome::Refused { refusal: refusal(Declined::Full.code(), message), log_start: Offset::NONE }
}

/// Returns those that another broker leads by now.
fn set_outcomes(
    call: &Call,
    pending: &mut Pending,
    slots: &[(Slot, Option<TimestampMs>)],
    outcomes: Vec<AppendOutcome>,
) -> Vec<Slot> {
    let mut elsewhere = Vec::new();
    let moment = call.moment();
    let context = call.context(&moment);
    for outcome in outcomes {
        let (slot, append_time) = slots[outcome.slot as usize];
        let outcome = match outcome.result {
            Ok(acked) => {
                let append_time = append_time.map(|time| acked.duplicate_timestamp.unwrap_or(time));
                Outcome::Appended { base: acked.base, append_time, log_start: acked.log_start }
            }
            Err(declined) => {
                if declined == Declined::Refused(Refused::NotLeader) {
                    elsewhere.push(slot);
                }
                call.session.open_transactions.borrow_mut().forget_all();
                if declined == Declined::Full { no_room() } else { Outcome::refused(declined.code()) }
            }
        };
        pending.set(slot, outcome, &context);
    }
    elsewhere
}
