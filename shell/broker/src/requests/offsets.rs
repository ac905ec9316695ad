//! Questions about partitions that their owners answer from what they know: ListOffsets, OffsetForLeaderEpoch,
//! DeleteRecords, DescribeProducers.

use crate::mailbox::{AskItem, AskOutcome, Declined, PartitionKey, Question, Said, Search, Searched};
use crate::requests::call::{Answer, Call, Started};
use crate::routing::owners::{self, Gathering};
use barnabas_api::k02_list_offsets::{self, Asker, Bounds, Found, Target};
use barnabas_api::k61_describe_producers::{self, Producer};
use barnabas_api::{Plan, k21_delete_records, k23_offset_for_leader_epoch};
use barnabas_base::{ErrorCode, LeaderEpoch, Map, Offset, PartitionIndex, TopicId};
use barnabas_coordinator::PART_BYTES;
use barnabas_partition::Isolation;
use barnabas_replica::ListBounds;
use barnabas_storage::FoundTimestamp;
use barnabas_wire::messages::{
    DeleteRecordsRequest, DescribeProducersRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest,
};
use std::collections::VecDeque;
use std::time::Duration;
use std::time::Instant;

/// Between two looks at whether all replicas have deleted what was asked for.
const DELETED_PAUSE_MIN: Duration = Duration::from_millis(2);
const DELETED_PAUSE_MAX: Duration = Duration::from_millis(50);

fn item(
    slot: usize,
    topic: TopicId,
    partition: PartitionIndex,
    leader_epoch: Option<LeaderEpoch>,
    question: Question,
) -> AskItem {
    AskItem { slot: slot as u32, partition: PartitionKey { topic, partition }, leader_epoch, question }
}

/// Asks now, and answers when everybody has spoken. `each` puts one owner's word into the answer.
async fn ask<P: 'static>(
    call: &Call,
    items: Vec<AskItem>,
    mut pending: P,
    mut each: impl FnMut(&mut P, AskOutcome) + 'static,
    respond: impl FnOnce(P) -> Answer + 'static,
) -> Started {
    let asked = items.len();
    let gathering = owners::ask(&call.session.node, items).await;
    Started::wait(async move {
        let outcomes = gathering.all().await;
        // An owner that says nothing is gone: the node is stopping.
        if outcomes.len() < asked {
            return Answer::Close;
        }
        outcomes.into_iter().for_each(|outcome| each(&mut pending, outcome));
        respond(pending)
    })
}

pub async fn list_offsets(call: Call, request: ListOffsetsRequest) -> Started {
    let moment = call.moment();
    let plan = k02_list_offsets::plan(request, call.version, &call.context(&moment));
    let work = match plan {
        Plan::Answer(response) => return Started::reply(response),
        Plan::Work(work) => work,
    };
    let asker = work.asker;
    let isolation = match asker {
        Asker::Consumer { read_committed: true } => Isolation::ReadCommitted,
        Asker::Consumer { read_committed: false } => Isolation::ReadUncommitted,
        Asker::Debugger | Asker::Follower(_) => Isolation::LogEnd,
    };
    let items = work.parts.iter().enumerate().map(|(slot, part)| {
        let question =
            Question::List { isolation, search: search_of(part), from_any: asker == Asker::Debugger };
        item(slot, part.topic.id, part.partition, part.leader_epoch, question)
    });
    let items: Vec<AskItem> = items.collect();
    let asked = items.len();
    let (parts, mut pending) = (work.parts, work.pending);
    let gathering = owners::ask(&call.session.node, items).await;
    Started::wait(async move {
        let outcomes = gathering.all().await;
        // An owner that says nothing is gone: the node is stopping.
        if outcomes.len() < asked {
            return Answer::Close;
        }
        for AskOutcome { slot, result } in outcomes {
            let part = &parts[slot as usize];
            let outcome = match result {
                Ok(Said::Listed { bounds, found }) => listed(&call, part, asker, bounds, found).await,
                Ok(_) => Err(ErrorCode::UnknownServerError),
                Err(declined) => Err(declined.code()),
            };
            pending.set(part.slot, outcome.unwrap_or_else(k02_list_offsets::Outcome::Refused));
        }
        Answer::Reply(pending.respond().into())
    })
}

fn search_of(part: &k02_list_offsets::Part) -> Search {
    match part.target {
        Target::At(time) => Search::ByTime(time, Offset::ZERO),
        Target::MaxTimestamp => Search::MaxTime,
        _ => Search::Nothing,
    }
}

async fn listed(
    call: &Call,
    part: &k02_list_offsets::Part,
    asker: Asker,
    bounds: ListBounds,
    searched: Searched,
) -> Result<k02_list_offsets::Outcome, ErrorCode> {
    let bounds = &Bounds {
        readable_end: bounds.readable_end,
        leader_epoch: bounds.leader_epoch,
        log_start: bounds.log_start,
        log_start_epoch: bounds.log_start_epoch,
        high_watermark_lags: bounds.high_watermark_lags,
    };
    if let Some(outcome) = part.answer(asker, bounds) {
        return Ok(outcome);
    }
    let found = match searched {
        Searched::Nothing => None,
        Searched::Found(found) => Some(found),
        Searched::Later => search(call, part).await?,
    };
    let found = found.map(|found| Found {
        timestamp: found.timestamp,
        offset: found.offset,
        epoch: (found.leader_epoch != LeaderEpoch::NONE).then_some(found.leader_epoch),
    });
    Ok(part.answer_found(asker, found, bounds))
}

/// Searches batches that a worker may not read: one at a time, on the threads of node/workers/unpacking.rs.
async fn search(call: &Call, part: &k02_list_offsets::Part) -> Result<Option<FoundTimestamp>, ErrorCode> {
    let node = &call.session.node;
    let address = call.session.peer.ip().to_canonical();
    let mut search = search_of(part);
    loop {
        let question = Question::TimedBatch(search);
        let items = vec![item(0, part.topic.id, part.partition, part.leader_epoch, question)];
        let outcome = owners::ask(node, items).await.all().await.pop();
        let batch = match outcome.ok_or(ErrorCode::UnknownServerError)?.result {
            Ok(Said::TimedBatch(Some(batch))) => batch,
            Ok(Said::TimedBatch(None)) => return Ok(None),
            Ok(_) => return Err(ErrorCode::UnknownServerError),
            Err(declined) => return Err(declined.code()),
        };
        let mut claim = call.session.claim();
        claim.grow_to(batch.size_bytes() as u64).await;
        let (time, from) = batch.next();
        let looked = node.workers.unpacking.run(Some(address), move || batch.look(usize::MAX)).await;
        match looked.ok_or(ErrorCode::UnknownServerError)? {
            Ok(Some(found)) => return Ok(Some(found)),
            Ok(None) => search = Search::ByTime(time, from),
            // As it was produced: nothing is damaged.
            Err(_) => return Err(ErrorCode::CorruptMessage),
        }
    }
}

pub async fn offset_for_leader_epoch(call: Call, request: OffsetForLeaderEpochRequest) -> Started {
    let moment = call.moment();
    let work = match k23_offset_for_leader_epoch::plan(request, call.version, &call.context(&moment)) {
        Plan::Answer(response) => return Started::reply(response),
        Plan::Work(work) => work,
    };
    let items = work.parts.iter().enumerate().map(|(slot, part)| {
        item(slot, part.topic.id, part.partition, part.current, Question::EpochEnd(part.epoch))
    });
    let items = items.collect();
    let parts = work.parts;
    let each = move |pending: &mut k23_offset_for_leader_epoch::Pending, outcome: AskOutcome| {
        let said = match outcome.result {
            Ok(Said::EpochEnd { leader_epoch: LeaderEpoch::NONE, .. }) => Ok(None),
            Ok(Said::EpochEnd { leader_epoch, end }) => Ok(Some((leader_epoch, end))),
            Ok(_) => Err(ErrorCode::UnknownServerError),
            Err(declined) => Err(declined.code()),
        };
        pending.set(parts[outcome.slot as usize].slot, said);
    };
    ask(&call, items, work.pending, each, |pending| Answer::Reply(pending.respond().into())).await
}

pub async fn delete_records(call: Call, request: DeleteRecordsRequest) -> Started {
    let moment = call.moment();
    let work = match k21_delete_records::plan(request, &call.context(&moment)) {
        Plan::Answer(response) => return Started::reply(response),
        Plan::Work(work) => work,
    };
    let k21_delete_records::Work { timeout, parts, mut pending } = work;
    let deadline = barnabas_clock::now() + Duration::from_millis(u64::try_from(timeout.0).unwrap_or(0));
    let items = parts.iter().enumerate().map(|(slot, part)| {
        item(slot, part.topic.id, part.partition, None, Question::DeleteRecords(part.below))
    });
    let gathering = owners::ask(&call.session.node, items.collect()).await;
    Started::wait(async move {
        let outcomes = gathering.all().await;
        if outcomes.len() < parts.len() {
            return Answer::Close;
        }
        let mut starts: Vec<Result<Offset, ErrorCode>> =
            vec![Err(ErrorCode::UnknownServerError); parts.len()];
        for outcome in outcomes {
            starts[outcome.slot as usize] = match outcome.result {
                Ok(Said::LogStart(start)) => Ok(start),
                Ok(_) => Err(ErrorCode::UnknownServerError),
                Err(declined) => Err(declined.code()),
            };
        }
        await_followers(&call, &parts, &mut starts, deadline).await;
        parts.iter().zip(starts).for_each(|(part, said)| pending.set(part.slot, said));
        Answer::Reply(pending.respond().into())
    })
}

/// Records are deleted once they are on every replica whose broker is there. Asked again and again: it is a rare
/// request, and followers hear of it within their fetch.
async fn await_followers(
    call: &Call,
    parts: &[k21_delete_records::Part],
    starts: &mut [Result<Offset, ErrorCode>],
    deadline: Instant,
) {
    let is_shared = |part: &k21_delete_records::Part| {
        part.topic.partition(part.partition).is_some_and(|row| row.replicas().len() > 1)
    };
    let deleted = |slot: usize| starts[slot].ok().filter(|_| is_shared(&parts[slot]));
    let mut waiting: Vec<(usize, Offset)> =
        (0..parts.len()).filter_map(|slot| Some((slot, deleted(slot)?))).collect();
    let mut pause = DELETED_PAUSE_MIN;
    while !waiting.is_empty() {
        let items = waiting.iter().map(|&(slot, _)| {
            item(slot, parts[slot].topic.id, parts[slot].partition, None, Question::LowWatermark)
        });
        let outcomes = owners::ask(&call.session.node, items.collect()).await.all().await;
        let mut reached: Map<usize, Offset> = Map::default();
        for outcome in outcomes {
            let slot = outcome.slot as usize;
            match outcome.result {
                Ok(Said::LowWatermark(low)) => drop(reached.insert(slot, low)),
                Ok(_) => {}
                Err(declined) => starts[slot] = Err(declined.code()),
            }
        }
        // One pass: a request may name a hundred thousand partitions.
        waiting
            .retain(|(slot, start)| starts[*slot].is_ok() && reached.get(slot).is_none_or(|low| low < start));
        if barnabas_clock::now() >= deadline {
            waiting.drain(..).for_each(|(slot, _)| starts[slot] = Err(ErrorCode::RequestTimedOut));
        } else if !waiting.is_empty() {
            tokio::time::sleep_until(deadline.min(barnabas_clock::now() + pause).into()).await;
            pause = (pause * 2).min(DELETED_PAUSE_MAX);
        }
    }
}

/// Owners first say how many producers a partition has. The producers themselves are asked for once the answer has room
/// for them, a few partitions at a time.
pub async fn describe_producers(call: Call, request: DescribeProducersRequest) -> Started {
    let moment = call.moment();
    let work = match k61_describe_producers::plan(request, &call.context(&moment)) {
        Plan::Answer(response) => return Started::reply(response),
        Plan::Work(work) => work,
    };
    let numbers = (0..work.parts.len()).map(|number| (number, 0));
    let counted = owners::ask(&call.session.node, ask_producers(&work.parts, numbers)).await;
    Started::wait(describe_counted(call, work, counted))
}

/// `numbers`: parts, and how many producers are wanted of each at most.
fn ask_producers(
    parts: &[k61_describe_producers::Part],
    numbers: impl Iterator<Item = (usize, usize)>,
) -> Vec<AskItem> {
    let ask = |(number, max): (usize, usize)| {
        let part = &parts[number];
        item(number, part.topic.id, part.partition, None, Question::Producers { max })
    };
    numbers.map(ask).collect()
}

async fn describe_counted(
    call: Call,
    work: k61_describe_producers::Work,
    counted: Gathering<AskOutcome>,
) -> Answer {
    let k61_describe_producers::Work { parts, mut pending } = work;
    let mut outcomes = counted.all().await;
    // An owner that says nothing is gone: the node is stopping.
    if outcomes.len() < parts.len() {
        return Answer::Close;
    }
    let mut left: VecDeque<(usize, usize)> = VecDeque::new();
    loop {
        for outcome in outcomes {
            let number = outcome.slot as usize;
            match outcome.result {
                // More may have come since they were counted.
                Ok(Said::ManyProducers(count)) => left.push_back((number, count)),
                said => pending.set(number, &producers(said), &call.room),
            }
        }
        let (mut group, mut bytes) = (Vec::new(), 0);
        while let Some((number, count)) = left.front().copied() {
            let more = pending.bytes(number, count);
            if bytes + more > PART_BYTES && !group.is_empty() {
                break;
            }
            left.pop_front();
            group.push((number, count));
            bytes += more;
        }
        if group.is_empty() {
            return call.room.reply(pending.respond());
        }
        if let Err(large) = call.room.reserve(bytes).await {
            group.iter().for_each(|(number, _)| pending.refuse(*number, large));
            outcomes = Vec::new();
            continue;
        }
        let asked = group.len();
        let items = ask_producers(&parts, group.into_iter());
        outcomes = owners::ask(&call.session.node, items).await.all().await;
        if outcomes.len() < asked {
            return Answer::Close;
        }
    }
}

fn producers(said: Result<Said, Declined>) -> k61_describe_producers::Outcome {
    match said {
        Ok(Said::Producers(entries)) => Ok(entries
            .into_iter()
            .map(|entry| Producer {
                id: entry.producer_id,
                epoch: entry.epoch,
                last_sequence: entry.last_sequence,
                last_timestamp: entry.timestamp,
                coordinator_epoch: entry.coordinator_epoch,
                transaction_start: (entry.current_txn_first_offset.get() >= 0)
                    .then_some(entry.current_txn_first_offset),
            })
            .collect()),
        Ok(_) => Err(ErrorCode::UnknownServerError),
        Err(declined) => Err(declined.code()),
    }
}
