//! Fetches of share groups: read from where the share partition says, acquire, and hand out whole batches around that.

use super::{PartitionWorker, ShareFetchCommand, ShareItem, ShareKey, ShareOutcome};
use crate::mailbox::share::{ShareDeclined, ShareRead};
use crate::mailbox::{Declined, Read, ReadItem};
use barnabas_base::{LeaderEpoch, Offset};
use barnabas_partition::{Acquire, Acquired, Isolation};
use barnabas_replica::Fetched;

/// What was read for one item.
struct Gathered {
    fetched: Fetched,
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
                bytes += found.fetched.size_bytes();
                left = left.saturating_sub(found.fetched.size_bytes());
            }
            gathered.push((*item, found));
        }
        let is_enough = bytes >= command.bytes_min || gathered.iter().any(|(_, found)| found.is_err());
        let mut records_left = command.records_max;
        let mut outcomes = Vec::with_capacity(gathered.len());
        for (item, found) in gathered {
            let found = found.map(|found| found.filter(|_| is_enough));
            let result = found.map(|found| match found {
                Some(found) => self.acquire(&command, &item, &found, records_left),
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
        self.shares.partitions.can_acquire_before(key, bounds.end).unwrap_or(false)
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
        let next = self.shares.partitions.next_read(key, &bounds, command.records_max);
        let Some((from, wish)) = next else { return Ok(None) };
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
        let Some(fetched) = Fetched::of(records, aborted, from, command.isolation) else { return Ok(None) };
        let has_more = fetched.end() < bounds.end;
        self.shares.partitions.note_read(key, &fetched);
        Ok(Some(Gathered { fetched, has_more }))
    }

    /// Whether there is a share partition to acquire from; if not, it is on its way.
    fn is_loaded(&mut self, key: &ShareKey, epoch: LeaderEpoch) -> Result<bool, ShareDeclined> {
        let mut effects = Vec::new();
        let is_loaded = self.shares.partitions.is_loaded(key, epoch, &mut effects);
        self.carry_out_shares(effects);
        is_loaded
    }

    fn acquire(
        &mut self,
        command: &ShareFetchCommand,
        item: &ShareItem,
        found: &Gathered,
        records_max: i64,
    ) -> ShareRead {
        let key = ShareKey { group: command.group.clone(), partition: item.partition };
        let now = self.node.clock.monotonic();
        let ask = Acquire {
            member: &command.member,
            mode: command.mode,
            records_max,
            batch_size: command.batch_size,
            from: found.fetched.from,
        };
        let read = self.shares.partitions.acquire(&key, &ask, &found.fetched, now);
        if read.acquired.is_empty() && found.has_more {
            // All of it was aborted or acquired already: the fetch may read on.
            self.wake_share_later(&key, command);
        }
        read
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
