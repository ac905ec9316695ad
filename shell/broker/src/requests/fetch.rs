//! Fetch: read from the owners; while there is too little, wait for their word, without asking again.

use crate::mailbox::Waiter;
use crate::mailbox::{FollowerLife, PartitionKey, ReadItem, ReadOutcome};
use crate::requests::call::{Answer, Call, Started};
use crate::requests::connection::throttle::{Fetched, bound_fetch, charge_records};
use crate::requests::decode::FREE_BYTES;
use crate::requests::session::reading::Reading;
use crate::routing::owners::{self, ReaderOf};
use crate::worker::replica::registered;
use barnabas_api::Plan;
use barnabas_api::k01_fetch::{self, Budget, Outcome, Part, Pending, Read, Reader, Work};
use barnabas_base::{ErrorCode, Offset, TopicId};
use barnabas_metrics::recorder as metering;
use barnabas_metrics::{Passed, Stamp};
use barnabas_net::{Claim, Standing};
use barnabas_partition::Isolation;
use barnabas_wire::messages::FetchRequest;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

/// What one answer may hold where the memory budget has no room for what is asked for, and where it has none at all.
const LESS_BYTES: usize = 1 << 20;
const SCARCE_BYTES: usize = 64 * 1024;

/// Starts a Fetch request: when this is done, the partitions have been asked once.
pub async fn fetch(call: Call, mut request: FetchRequest) -> Started {
    bound_fetch(&call, &mut request);
    let session_bytes = call.session.fetch_sessions(request.session_id).work_bytes(request.session_id);
    let session_claim = claim_for_session(&call, session_bytes).await;
    let moment = call.moment();
    let plan = {
        let mut sessions = call.session.fetch_sessions(request.session_id);
        k01_fetch::plan(request, call.version, &mut sessions, &call.context(&moment))
    };
    let work = match plan {
        Plan::Answer(response) => return Started::reply(response),
        Plan::Work(work) => work,
    };
    let Work { reader, is_follower, from_any, repairs_for, rack, wait, bytes_min, budget, parts, pending } =
        work;
    let isolation = match reader {
        Reader::Consumer { read_committed: false } => Isolation::ReadUncommitted,
        Reader::Consumer { read_committed: true } => Isolation::ReadCommitted,
        Reader::Follower { .. } => Isolation::LogEnd,
    };
    let follower = match reader {
        Reader::Consumer { .. } => None,
        Reader::Follower { id, epoch } => {
            Some(FollowerLife { broker: id, epoch, registered: registered(&moment.image, id) })
        }
    };
    drop(moment);
    call.session.follows.set(is_follower);
    // One that the cluster knows, in its present life, with CLUSTER_ACTION: another's word does not give the room that
    // followers have.
    let is_known =
        is_follower && follower.as_ref().is_some_and(|follower| follower.registered == Some(follower.epoch));
    call.session.is_follower.set(is_known);
    // A follower's worker asks for its own partitions, which one worker owns here too: it is served there.
    let workers = call.session.node.workers.count;
    call.session.worked_for(parts.iter().map(|part| key_of(part).owner(workers)));
    let deadline = barnabas_clock::now() + Duration::from_millis(u64::try_from(wait.0).unwrap_or(0));
    let waiter = (wait.0 > 0 && bytes_min > 0)
        .then(|| Waiter::new(bytes_min as i64, isolation == Isolation::ReadCommitted));
    let (reading, claim) = (Reading::new(call.session.clone()), claim_for_answer(&call, is_known));
    let mut fetching = Fetching {
        call,
        reader: ReaderOf { isolation, from_any, rack, repairs_for, follower },
        bytes_min,
        budget,
        parts,
        pending,
        waiter,
        deadline,
        passed: Passed::Untold,
        fetched: 0,
        by_topic: Vec::new(),
        claim,
        reading,
        _session_claim: session_claim,
    };
    let first = fetching.ask(true).await;
    Started::wait(async move {
        let answer = fetching.answer(first).await;
        if let Some(waiter) = &fetching.waiter {
            waiter.finish();
        }
        match answer {
            Ok(()) => fetching.respond(),
            Err(Gone) => Answer::Close,
        }
    })
}

fn key_of(part: &Part) -> PartitionKey {
    PartitionKey { topic: part.topic.id, partition: part.partition }
}

fn draw() -> u32 {
    let bytes = crate::log_dirs::directories::random_uuid().0;
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// A request's share of the memory budget for partitions that its session names: claimed before anything is made of
/// them.
pub(super) async fn claim_for_session(call: &Call, bytes: u64) -> Claim {
    let mut claim = call.session.claim();
    if bytes > FREE_BYTES as u64 {
        let is_follower = call.session.is_follower.get();
        claim.stand(if is_follower { Standing::Replication } else { Standing::of(bytes) });
        claim.grow_to(bytes).await;
    }
    claim
}

/// An empty claim for an answer; a known follower's has replication's standing.
fn claim_for_answer(call: &Call, is_known: bool) -> Claim {
    let mut claim = call.session.claim();
    if is_known {
        claim.stand(Standing::Replication);
    }
    claim
}

/// Claims room for an answer, and returns how much it may read. Never waits: clients that do not read their answers
/// would hold all others up. A connection that gets an answer beyond the budget gets no second one before it has read
/// the first.
pub(super) fn granted(call: &Call, claim: &mut Claim, wanted: usize) -> usize {
    for bytes in [wanted, wanted.min(LESS_BYTES)] {
        if claim.standing() != Standing::Replication {
            claim.stand(Standing::of(bytes as u64));
        }
        if claim.try_grow_to(bytes as u64) {
            return bytes;
        }
    }
    call.session.is_scarce.set(true);
    wanted.min(SCARCE_BYTES)
}

/// The records as the client's version has them: made over for old consumers, on the threads of
/// node/workers/unpacking.rs.
async fn in_words_of(call: &Call, records: Bytes, from: Offset) -> Result<Bytes, ErrorCode> {
    let version = call.version;
    if records.is_empty() || k01_fetch::reads_stored_format(version) {
        return Ok(records);
    }
    let session = &call.session;
    let work = move || k01_fetch::in_words_of(records, from, version);
    let made = session.node.workers.unpacking.run(Some(session.peer.ip().to_canonical()), work).await;
    made.unwrap_or(Err(ErrorCode::UnknownServerError))
}

/// Adds a partition that was read to the figures of its topic.
fn note(by_topic: &mut Vec<(TopicId, metering::Fetched)>, topic: TopicId, is_failed: bool, bytes: usize) {
    if by_topic.last().is_none_or(|(last, _)| *last != topic) {
        by_topic.push((topic, metering::Fetched::default()));
    }
    if let Some((_, fetched)) = by_topic.last_mut() {
        fetched.partitions += 1;
        fetched.failed += u64::from(is_failed);
        fetched.bytes_out += bytes as u64;
    }
}

/// An owner has ended: the node is stopping.
struct Gone;

struct Fetching {
    call: Call,
    reader: ReaderOf,
    bytes_min: usize,
    budget: Budget,
    parts: Vec<Part>,
    pending: Pending,
    waiter: Option<Arc<Waiter>>,
    deadline: Instant,
    passed: Passed,
    /// Bytes of records in the answer.
    fetched: u64,
    /// The same by topic: one entry for each run of partitions of one topic.
    by_topic: Vec<(TopicId, metering::Fetched)>,
    /// The answer's share of the memory budget: what may be read while it is read, what was read after that.
    claim: Claim,
    reading: Reading,
    /// For the partitions that the request does not name. Given back before the answer is written.
    _session_claim: Claim,
}

impl Fetching {
    /// Sends the partitions to their owners.
    async fn ask(&mut self, wait: bool) -> owners::Gathering<ReadOutcome> {
        let items = self.parts.iter().enumerate().map(|(slot, part)| ReadItem {
            slot: slot as u32,
            partition: key_of(part),
            from: part.from,
            max_bytes: part.bytes_max,
            leader_epoch: part.leader_epoch,
            last_fetched_epoch: part.last_fetched_epoch,
            log_start: part.follower_log_start.unwrap_or(Offset::ZERO),
        });
        let whole = self.budget.allow(usize::MAX);
        let wanted: usize = self.parts.iter().map(|part| part.bytes_max).sum();
        let wanted = wanted.min(whole.bytes);
        let max_bytes = granted(&self.call, &mut self.claim, wanted);
        self.reading.set(max_bytes);
        let waiter = self.waiter.clone().filter(|_| wait);
        let node = &self.call.session.node;
        owners::read(node, items.collect(), self.reader.clone(), max_bytes, whole.at_least_one, waiter).await
    }

    /// Reads until there is enough, or the time is over.
    async fn answer(&mut self, first: owners::Gathering<ReadOutcome>) -> Result<(), Gone> {
        let mut asked = first;
        loop {
            let outcomes = asked.all().await;
            if self.passed == Passed::Untold {
                let taken = outcomes.iter().map(|outcome| outcome.taken).max().unwrap_or_default();
                self.passed = Passed::Read { taken, read: Stamp::now() };
            }
            let found = self.take(outcomes).await?;
            let Some(waiter) = &self.waiter else { return Ok(()) };
            if self.pending.is_enough(self.bytes_min) || barnabas_clock::now() >= self.deadline {
                return Ok(());
            }
            // What was found counts towards what is wanted; its owners count what comes after it.
            waiter.add(found as i64);
            let timed_out = tokio::time::timeout_at(self.deadline.into(), waiter.woken()).await.is_err();
            if timed_out && !waiter.has_news(self.bytes_min as i64 - found as i64) {
                return Ok(());
            }
            waiter.again(self.bytes_min as i64);
            asked = self.ask(!timed_out).await;
        }
    }

    /// Shares out the answer's bytes over what the owners gave. Returns the bytes taken.
    async fn take(&mut self, mut outcomes: Vec<ReadOutcome>) -> Result<usize, Gone> {
        if outcomes.len() < self.parts.len() {
            return Err(Gone);
        }
        outcomes.sort_unstable_by_key(|outcome| outcome.slot);
        let moment = self.call.moment();
        let context = self.call.context(&moment);
        let mut budget = self.budget;
        let mut taken = 0;
        self.by_topic.clear();
        for (part, outcome) in self.parts.iter().zip(outcomes) {
            let before = taken;
            let outcome = match (outcome.result, outcome.bounds) {
                (Ok(read), Some(bounds)) => {
                    let allowance = budget.allow(part.bytes_max);
                    let fits = read.records.len() <= allowance.bytes || allowance.at_least_one;
                    let records = if fits { read.records } else { Bytes::new() };
                    budget.take(records.len());
                    taken += records.len();
                    let records = in_words_of(&self.call, records, part.from).await;
                    let aborted = read.aborted.iter().map(|entry| (entry.producer_id, entry.first_offset));
                    let aborted =
                        (self.reader.isolation == Isolation::ReadCommitted).then(|| aborted.collect());
                    let shown = Read {
                        records,
                        high_watermark: bounds.high_watermark,
                        last_stable: bounds.last_stable,
                        log_start: bounds.log_start,
                        aborted,
                    };
                    match (read.diverging, outcome.nearer) {
                        (Some((epoch, end)), _) => Outcome::Diverging { epoch, end, read: shown },
                        (None, Some(broker)) => Outcome::Elsewhere { broker, read: shown },
                        (None, None) => Outcome::Read(shown),
                    }
                }
                (Err(declined), _) => Outcome::Refused(declined.code()),
                (Ok(_), None) => Outcome::Refused(ErrorCode::UnknownServerError),
            };
            let is_failed = matches!(outcome, Outcome::Refused(_));
            note(&mut self.by_topic, part.topic.id, is_failed, taken - before);
            self.pending.set(part.slot, outcome, &context);
        }
        self.fetched = taken as u64;
        // What no record came for is given back.
        let held = self.claim.split(taken as u64);
        self.claim = held;
        self.reading.set(taken);
        Ok(taken)
    }

    fn respond(self) -> Answer {
        self.call.session.passed.set(self.passed);
        let Fetched { wait, is_withheld } = match self.reader.follower {
            None => charge_records(&self.call, self.fetched),
            Some(_) => Fetched::default(),
        };
        if is_withheld {
            let mut sessions = self.call.session.fetch_sessions(self.pending.session_id());
            return Answer::Reply(self.pending.throttled(&mut sessions, wait).into());
        }
        let recorder = &self.call.session.recorder;
        match self.reader.follower {
            None => recorder.cells().fetched.record(self.fetched),
            Some(_) => recorder.cells().replicated_out.add(self.fetched),
        }
        for (topic, fetched) in &self.by_topic {
            let bytes_out = if self.reader.follower.is_none() { fetched.bytes_out } else { 0 };
            recorder.fetched(*topic, &metering::Fetched { bytes_out, ..*fetched });
        }
        let session = self.call.session;
        let now = session.node.clock.wall();
        let wants_session = self.pending.wants_session();
        let share = || session.node.workers.session_share(session.peer.ip(), session.is_follower.get());
        let mut response = {
            let mut sessions = session.fetch_sessions(self.pending.session_id());
            self.pending.respond(&mut sessions, draw, now, share)
        };
        response.throttle_time_ms = i32::try_from(wait.0).unwrap_or(i32::MAX);
        if wants_session && response.session_id == 0 {
            // There may be room for the next one.
            session.node.workers.fetch_sessions.evict_stale(now);
        }
        Answer::Held(response.into(), self.claim)
    }
}
