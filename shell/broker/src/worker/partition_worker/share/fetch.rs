//! Fetches of share groups: read from where the share partition says, acquire, and hand out whole batches around that.

use super::{
    PartitionWorker, ShareFetchCommand, ShareItem, ShareKey, ShareOutcome, ShareRead, Shares, Stage,
};
use crate::mailbox::share::ShareDeclined;
use crate::mailbox::{Declined, Read, ReadItem};
use crate::worker::replica::batch_info;
use barnabas_base::{LeaderEpoch, MonotonicMs, Offset, ProducerId};
use barnabas_partition::{
    Acquire, Acquired, BatchKind, Bounds, FetchedBatch, Isolation, Outcome, SharePartition,
};
use barnabas_wire::records::BatchHeader;
use bytes::Bytes;

/// What is read for a share partition, at least: batches are read whole.
const READ_BYTES_MIN: usize = 64 << 10;

/// What was read for one item, and the headers of its batches with their places.
struct Gathered {
    records: Bytes,
    batches: Vec<(usize, FetchedBatch)>,
    aborted: Vec<(ProducerId, Offset)>,
    from: Offset,
    /// There is more behind it.
    has_more: bool,
}

impl PartitionWorker {
    pub(super) fn share_fetch(&mut self, command: ShareFetchCommand) {
        let mut gathered: Vec<(ShareItem, Result<Option<Gathered>, ShareDeclined>)> = Vec::new();
        let mut left = command.max_bytes;
        let mut bytes = 0;
        for item in &command.items {
            let key = ShareKey { group: command.group.clone(), partition: item.partition };
            let found = self.gather(&key, &command, item, left, bytes == 0);
            if let Ok(Some(found)) = &found {
                bytes += found.records.len();
                left = left.saturating_sub(found.records.len());
            }
            gathered.push((*item, found));
        }
        let is_enough = bytes >= command.bytes_min || gathered.iter().any(|(_, found)| found.is_err());
        let mut records_left = command.records_max;
        let mut outcomes = Vec::with_capacity(gathered.len());
        for (item, found) in gathered {
            let found = found.map(|found| found.filter(|_| is_enough));
            let result = found.map(|found| match found {
                Some(found) => self.acquire(&command, &item, found, records_left),
                None => ShareRead::default(),
            });
            if let Ok(read) = &result {
                records_left -= read.acquired.iter().map(Acquired::count).sum::<i64>();
            }
            outcomes.push(ShareOutcome { slot: item.slot, result });
        }
        let is_answered = outcomes
            .iter()
            .any(|outcome| outcome.result.as_ref().map_or(true, |read| !read.acquired.is_empty()));
        self.settle_waiters(&command, is_answered);
        // A connection that is gone does not hear its answer; the locks of what it got will end.
        let _ = command.reply.send(outcomes);
    }

    /// Who got nothing waits; who got something leaves the rest to the next.
    fn settle_waiters(&mut self, command: &ShareFetchCommand, is_answered: bool) {
        for item in &command.items {
            let key = ShareKey { group: command.group.clone(), partition: item.partition };
            if !is_answered {
                if let (Some(waiter), Some(replica)) =
                    (&command.waiter, self.replicas.get_mut(&item.partition))
                {
                    replica.share_waiters.register(&command.group, waiter);
                }
            } else if self.has_more(&key, command.isolation) {
                self.wake_share(&command.group, item.partition);
            }
        }
    }

    fn has_more(&mut self, key: &ShareKey, isolation: Isolation) -> bool {
        let Some(replica) = self.replicas.get(&key.partition) else { return true };
        let Ok(bounds) = replica.partition.bounds(isolation, None) else { return true };
        match self.shares.get_active(key) {
            Some(share) => share.machine.can_acquire() && share.machine.next_fetch_offset() < bounds.end,
            None => false,
        }
    }

    /// Reads what may be acquired; `None`: there is nothing now.
    fn gather(
        &mut self,
        key: &ShareKey,
        command: &ShareFetchCommand,
        item: &ShareItem,
        left: usize,
        is_first: bool,
    ) -> Result<Option<Gathered>, ShareDeclined> {
        self.open(key.partition)?;
        let replica = self.replicas.get(&key.partition).ok_or(Declined::Unknown)?;
        let bounds = replica.partition.bounds(command.isolation, None).map_err(Declined::Refused)?;
        let epoch = replica.partition.leader_epoch();
        if !self.is_loaded(key, epoch)? {
            return Ok(None);
        }
        let Some(share) = self.shares.get_active(key) else { return Ok(None) };
        // The group has a member again.
        share.is_leaving = false;
        let Some((from, wish)) = next_read(&mut share.machine, &bounds, command, share.bytes_per_record)
        else {
            return Ok(None);
        };
        let max_bytes = wish.min(item.max_bytes);
        let item = ReadItem {
            slot: item.slot,
            partition: item.partition,
            from,
            max_bytes,
            leader_epoch: None,
            last_fetched_epoch: None,
            log_start: Offset::NONE,
        };
        let mut known = None;
        let Read { records, aborted, .. } =
            self.read_within(&item, (command.isolation, false), left, is_first, &mut known)?;
        let aborted = aborted.iter().map(|entry| (entry.producer_id, entry.first_offset)).collect();
        let batches = headers(&records, command.isolation);
        let Some((_, last)) = batches.last() else { return Ok(None) };
        let has_more = last.last.plus(1) < bounds.end;
        if let Some(share) = self.shares.get_active(key) {
            let first = batches.first().map_or(from, |(_, first)| first.base);
            let count = usize::try_from(last.last.get() - first.get() + 1).unwrap_or(1).max(1);
            share.bytes_per_record = (records.len() / count).max(1);
        }
        Ok(Some(Gathered { records, batches, aborted, from, has_more }))
    }

    /// Whether there is a share partition to acquire from; if not, it is on its way.
    fn is_loaded(&mut self, key: &ShareKey, epoch: LeaderEpoch) -> Result<bool, ShareDeclined> {
        match self.shares.map.get(key).map(|share| &share.stage) {
            Some(Stage::Active(share)) if share.machine.leader_epoch() == epoch => return Ok(true),
            Some(Stage::Active(_)) => self.drop_share(key),
            Some(Stage::Loading) => return Ok(false),
            Some(Stage::Failed(declined)) => {
                let declined = *declined;
                self.shares.map.remove(key);
                return Err(declined);
            }
            None => {}
        }
        self.load_share(key, epoch);
        Ok(false)
    }

    fn acquire(
        &mut self,
        command: &ShareFetchCommand,
        item: &ShareItem,
        found: Gathered,
        records_max: i64,
    ) -> ShareRead {
        let key = ShareKey { group: command.group.clone(), partition: item.partition };
        let now = self.node.clock.monotonic();
        let Some(share) = self.shares.get_active(&key) else { return ShareRead::default() };
        let ask = Acquire {
            member: &command.member,
            mode: command.mode,
            records_max,
            batch_size: command.batch_size,
            from: found.from,
        };
        let fetched: Vec<FetchedBatch> = found.batches.iter().map(|(_, batch)| *batch).collect();
        let acquired = share.machine.acquire(&ask, &fetched, &found.aborted, now);
        let next_lock = share.machine.next_deadline();
        self.shares.note_lock(next_lock);
        if acquired.is_empty() {
            // All of it was aborted or acquired already: the fetch may read on.
            if found.has_more {
                self.wake_share_later(&key, command);
            }
            return ShareRead::default();
        }
        ShareRead { records: around(&found, &acquired), acquired }
    }

    /// Nothing that was read could be acquired, and there is more: the caller asks again at once.
    fn wake_share_later(&mut self, key: &ShareKey, command: &ShareFetchCommand) {
        if self.has_more(key, command.isolation)
            && let Some(waiter) = &command.waiter
        {
            waiter.wake();
        }
    }
}

impl Shares {
    pub(super) fn note_lock(&mut self, ends: Option<MonotonicMs>) {
        self.next_lock = [self.next_lock, ends].into_iter().flatten().min();
    }
}

/// Where to read next, and about how many bytes.
fn next_read(
    machine: &mut SharePartition,
    bounds: &Bounds,
    command: &ShareFetchCommand,
    bytes_per_record: usize,
) -> Option<(Offset, usize)> {
    if machine.start() < bounds.log_start {
        machine.log_start_moved(bounds.log_start);
    }
    if !machine.can_acquire() {
        return None;
    }
    let from = machine.next_fetch_offset();
    if from >= bounds.end {
        return None;
    }
    let records = usize::try_from(command.records_max).unwrap_or(0).saturating_add(1);
    let wish = records.saturating_mul(bytes_per_record);
    Some((from, wish.saturating_add(wish / 4).max(READ_BYTES_MIN)))
}

/// The batches of what was read, by their headers.
fn headers(records: &Bytes, isolation: Isolation) -> Vec<(usize, FetchedBatch)> {
    let mut batches = Vec::new();
    let mut at = 0;
    while let Ok(header) = BatchHeader::parse(&records[at..]) {
        let end = (at + header.size_bytes()).min(records.len());
        // Only where aborted records are left out does it matter whose end a marker is.
        let is_marker = header.attributes.is_control() && isolation == Isolation::ReadCommitted;
        let is_abort = is_marker
            && matches!(
                batch_info(&header, || records.slice(at..end)).kind,
                BatchKind::Marker(marker) if marker.outcome == Outcome::Abort
            );
        let batch = FetchedBatch {
            base: header.base_offset,
            last: header.last_offset(),
            producer_id: header.producer_id,
            is_transactional: header.attributes.is_transactional(),
            is_abort,
        };
        batches.push((at, batch));
        at = end;
        if at >= records.len() {
            break;
        }
    }
    batches
}

/// The batches from the first to the last that holds something acquired.
fn around(found: &Gathered, acquired: &[Acquired]) -> Bytes {
    let (Some(first), Some(last)) = (acquired.first(), acquired.last()) else { return Bytes::new() };
    let begin = found.batches.partition_point(|(_, batch)| batch.last < first.first);
    let end = found.batches.partition_point(|(_, batch)| batch.base <= last.last);
    let from = found.batches.get(begin).map_or(0, |(at, _)| *at);
    let to = found.batches.get(end).map_or(found.records.len(), |(at, _)| *at);
    found.records.slice(from.min(to)..to)
}
