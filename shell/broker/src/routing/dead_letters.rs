//! Dead letters of share groups (KIP-1191), from the partition that they stood in to the topic that their group names:
//! the topic is made if need be, records are copied if the group says so, and written as a producer's are, with
//! `acks=all`.
//!
//! Errors that may pass (the partition has no leader, the topic is not known everywhere yet) are retried as often
//! and as long as in Kafka. After that, and for errors that only the operator can fix, the records are archived
//! without a dead letter, as in Kafka. If the leader changes in between, the new one sends the letters that it finds
//! unfinished: a letter is written once, or, rarely, more often.
//!
//! Bounded: one errand for each share partition at a time, of as many records as the group may hold locked; a read of
//! the source takes [`READ_BYTES`], and copies no more than the topic takes in one batch.
//!
//! Asked by: partition_worker/share/letters.rs. What is written: core/api's `dead_letters`. After: own_records.rs.
//!
//! # Source
//! Kafka 4.4 `ShareGroupDLQStateManager`, `ShareGroupDLQRecordFetcher`.

use crate::mailbox::share::Undelivered;
use crate::mailbox::{PartitionKey, ReadItem};
use crate::node::Node;
use crate::node::peers::broker_links::Purpose;
use crate::routing::own_records::{self, Target};
use crate::routing::owners::{self, ReaderOf};
use barnabas_api::dead_letters::{
    Copied, Copies, DeadLetters, Destination, Letter, NoDestination, Sender, batch,
};
use barnabas_base::{BrokerId, ErrorCode, Offset, Text};
use barnabas_partition::Isolation;
use barnabas_quorum::controller::Asked;
use barnabas_wire::ResponseBody;
use barnabas_wire::messages::CreateTopicsRequest;
use barnabas_wire::records::batches;
use bytes::Bytes;
use std::time::Duration;

/// Pauses between tries double from the first to the last.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LAST_PAUSE: Duration = Duration::from_secs(30);
/// Tries that fail one after another.
const TRIES: u32 = 5;
/// Of the source's log at once.
const READ_BYTES: usize = 1 << 20;
/// Of CreateTopics, in which it is handed to the controller.
const CREATE_VERSION: i16 = 7;
/// How long a topic that was just made may take to be known here, before that counts as a try that failed.
const KNOWN_WITHIN: Duration = Duration::from_secs(1);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Where letters go now.
#[derive(Debug)]
struct Place {
    letters: DeadLetters,
    at: PartitionKey,
    leader: BrokerId,
    bytes_max: usize,
}

/// Writes what a group has given up of a partition, in the order of `letters`.
///
/// # Errors
/// [`Undelivered`]: those before may be written, and nothing more is tried.
pub async fn deliver(
    node: &Node,
    group: &Text,
    source: PartitionKey,
    letters: &[Letter],
) -> Result<(), Undelivered> {
    let mut tries = Tries::default();
    let mut left = letters;
    while !left.is_empty() {
        let place = find(node, group, source, &mut tries).await?;
        let (copies, ready) = match place.letters.copies_records {
            true => copy(node, source, left, place.bytes_max).await,
            false => (Copies::new(), left.len()),
        };
        let topic = source_name(node, source);
        let sender = Sender { group, topic: &topic, partition: source.partition };
        let now = node.clock.wall();
        let built = batch(&sender, &left[..ready], &copies, now, place.bytes_max);
        let (records, count) = built.map_err(|_| Undelivered::NoBatch)?;
        node.workers.meter.dead_letter_requests.one();
        let target = Target {
            topic: place.letters.topic.clone(),
            at: place.at,
            leader: place.leader,
            purpose: Purpose::DeadLetters,
        };
        match own_records::write(node, &target, records).await {
            Ok(()) => {
                node.workers.meter.dead_letters.add(count as u64);
                left = &left[count..];
                tries = Tries::default();
            }
            Err(code) if may_pass(code) => {
                tries
                    .again(&place.letters.topic)
                    .await
                    .inspect_err(|_| node.workers.meter.dead_letters_failed.one())?;
            }
            Err(code) => {
                node.workers.meter.dead_letters_failed.one();
                return Err(Undelivered::Refused { topic: place.letters.topic, code });
            }
        }
    }
    Ok(())
}

/// Tries that have failed since something last went well.
#[derive(Debug, Default)]
struct Tries(u32);

impl Tries {
    /// Waits for the next try.
    async fn again(&mut self, topic: &Text) -> Result<(), Undelivered> {
        self.0 += 1;
        if self.0 >= TRIES {
            return Err(Undelivered::TriedInVain { topic: topic.clone() });
        }
        tokio::time::sleep((FIRST_PAUSE * (1 << (self.0 - 1))).min(LAST_PAUSE)).await;
        Ok(())
    }
}

/// What Kafka tries again after.
fn may_pass(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::NotLeaderOrFollower | ErrorCode::NetworkException | ErrorCode::RequestTimedOut)
}

/// The name that letters call the source by; its id, where the topic is gone.
fn source_name(node: &Node, source: PartitionKey) -> Text {
    let image = node.cluster.image.load();
    let topic = image.topics.by_id(source.topic);
    topic.map_or_else(|| Text::from(source.topic.to_string()), |topic| topic.name.clone())
}

/// The topic of the dead letters, looked up for each batch as settings may change, and created if it does not exist.
async fn find(
    node: &Node,
    group: &Text,
    source: PartitionKey,
    tries: &mut Tries,
) -> Result<Place, Undelivered> {
    loop {
        let (image, config) = (node.cluster.image.load_full(), node.cluster.config.load_full());
        let letters = DeadLetters::of(group, &image).ok_or(NoDestination::NotNamed)?;
        match letters.destination(source.partition, &image, &config)? {
            Destination::Partition(at) if at.leader != BrokerId::NONE => {
                let key = PartitionKey { topic: at.topic, partition: at.partition };
                return Ok(Place { letters, at: key, leader: at.leader, bytes_max: at.bytes_max });
            }
            Destination::Partition(_) => tries.again(&letters.topic).await?,
            Destination::Missing => {
                let is_made = create(node, letters.creation(&config), &letters.topic).await?;
                if !(is_made && becomes_known(node, &letters.topic).await) {
                    tries.again(&letters.topic).await?;
                }
            }
        }
    }
}

/// Has the topic made. Gives whether it was, or at least is to be tried again.
async fn create(node: &Node, request: CreateTopicsRequest, topic: &Text) -> Result<bool, Undelivered> {
    let asked = Asked { version: CREATE_VERSION, ..Asked::default() };
    let response = match node.peers.controller.ask(request, asked).await {
        Ok(ResponseBody::CreateTopics(response)) => response,
        // Not taken, for whatever reason.
        Ok(_) | Err(_) => return Ok(false),
    };
    let made = response.topics.first();
    let code = made.map_or(ErrorCode::UnknownTopicOrPartition, |made| ErrorCode::from_code(made.error_code));
    match code {
        ErrorCode::None => Ok(true),
        // Another broker was faster: the topic exists, or is about to.
        ErrorCode::TopicAlreadyExists => Ok(true),
        ErrorCode::ThrottlingQuotaExceeded => Ok(false),
        code => Err(Undelivered::NotCreated { topic: topic.clone(), code }),
    }
}

async fn becomes_known(node: &Node, topic: &Text) -> bool {
    let begun = barnabas_clock::now();
    while barnabas_clock::since(begun) < KNOWN_WITHIN {
        if node.cluster.image.load().topics.by_name(topic).is_some() {
            return true;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    false
}

/// Copies of the records that the first letters are about, and how many letters that settles: one at least. Records
/// that cannot be read, or are gone, have no copy.
async fn copy(node: &Node, source: PartitionKey, letters: &[Letter], bytes_max: usize) -> (Copies, usize) {
    let (mut copies, mut bytes, mut settled) = (Copies::new(), 0, 0);
    while settled < letters.len() && (settled == 0 || bytes < bytes_max) {
        let from = letters[settled].offset;
        let records = read(node, source, from).await;
        // Letters that follow in the order of the log are served from the same bytes.
        let ahead = &letters[settled..];
        let rising = ahead.windows(2).take_while(|pair| pair[0].offset < pair[1].offset).count() + 1;
        let (wanted, most) = (ahead[..rising].to_vec(), bytes_max.saturating_sub(bytes));
        let Some((end, taken)) = node.workers.unpacking.run(None, move || take(records, &wanted, most)).await
        else {
            settled += rising;
            continue;
        };
        for (offset, copied) in taken {
            bytes += copied.bytes();
            copies.insert(offset, copied);
        }
        let done = ahead[..rising].partition_point(|letter| letter.offset < end);
        settled += done.max(1);
    }
    (copies, settled)
}

/// Takes over the records that `letters` (rising) are about, until they have `most` bytes. Gives the offset up to which
/// everything is settled.
fn take(records: Bytes, letters: &[Letter], most: usize) -> (Offset, Copies) {
    let mut copies = Copies::new();
    let mut end = letters[0].offset;
    let mut taken = 0;
    let is_wanted = |offset: Offset| letters.binary_search_by_key(&offset, |letter| letter.offset).is_ok();
    for batch in batches(records).map_while(Result::ok) {
        let header = *batch.header();
        let (first, last) = (header.base_offset, header.last_offset());
        let is_concerned = letters.iter().any(|letter| (first..=last).contains(&letter.offset));
        if is_concerned && !header.attributes.is_control() {
            // What cannot be inflated has no copies.
            let Ok(records) = batch.records() else {
                end = last.plus(1);
                continue;
            };
            for record in records.iter().map_while(Result::ok).filter(|record| is_wanted(record.offset)) {
                if taken > 0 && taken >= most {
                    return (record.offset, copies);
                }
                let copied = Copied::of(&record, &records);
                taken += copied.bytes();
                copies.insert(record.offset, copied);
            }
        }
        end = last.plus(1);
    }
    (end, copies)
}

/// Whole batches of the source from `from` on; nothing where that cannot be read.
async fn read(node: &Node, source: PartitionKey, from: Offset) -> Bytes {
    let item = ReadItem {
        slot: 0,
        partition: source,
        from,
        max_bytes: READ_BYTES,
        leader_epoch: None,
        last_fetched_epoch: None,
        log_start: Offset::NONE,
    };
    let isolation = Isolation::ReadUncommitted;
    let reader = ReaderOf { isolation, from_any: false, rack: None, repairs_for: None, follower: None };
    let outcomes = owners::read(node, vec![item], reader, READ_BYTES, true, None).await.all().await;
    let read = outcomes.into_iter().next().and_then(|outcome| outcome.result.ok());
    read.map_or_else(Bytes::new, |read| read.records)
}

#[cfg(test)]
mod tests;
