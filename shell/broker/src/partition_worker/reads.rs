//! Fetches: what of a partition a reader may see, and who is noted to be woken when more comes.

use super::PartitionWorker;
use crate::mailbox::{Declined, Read, ReadCommand, ReadItem, ReadOutcome};
use crate::node::Node;
use crate::scrub::name_damage;
use barnabas_base::{BrokerId, LeaderEpoch, Offset};
use barnabas_partition::{Bounds, Isolation, Refusal};
use barnabas_storage::{AbortedTransaction, Log, StorageError};
use bytes::Bytes;

impl PartitionWorker {
    pub(super) fn read(&mut self, command: ReadCommand) {
        let at_least_one = command.at_least_one;
        let follower = command.follower.map(|life| (life, self.node.clock.monotonic()));
        let mut left = command.max_bytes;
        let mut found = 0;
        let mut outcomes = Vec::with_capacity(command.items.len());
        for item in &command.items {
            let is_first = at_least_one && found == 0;
            let outcome = match follower {
                None => self.read_one(item, &command, left, is_first),
                Some((life, now)) => self.read_for_follower(item, life, (left, is_first), now),
            };
            if let Ok(read) = &outcome.result {
                found += read.records.len();
                left = left.saturating_sub(read.records.len());
            }
            outcomes.push(outcome);
        }
        let Some(ReadCommand { items, waiter, reply, .. }) = self.hold_early_read(command, &outcomes) else {
            return;
        };
        if let Some(waiter) = waiter
            && (found as i64) < waiter.missing_bytes()
        {
            for item in &items {
                let Self { replicas, leading, .. } = self;
                let Some(replica) = replicas.get_mut(&item.partition) else { continue };
                match follower {
                    None => replica.waiters.register(&waiter),
                    Some(_) => {
                        replica.follower_waiters.register(&waiter);
                        if !replica.round.is_empty() {
                            // What was appended in this turn can be read when the round is in the log's memory.
                            leading.to_wake.push(item.partition);
                        }
                    }
                }
            }
        }
        // A connection that is gone does not hear its answer.
        let _ = reply.send(outcomes);
    }

    fn read_one(
        &mut self,
        item: &ReadItem,
        command: &ReadCommand,
        left: usize,
        is_first: bool,
    ) -> ReadOutcome {
        let (slot, taken) = (item.slot, self.tickets.turn);
        if let Some(rack) = &command.rack
            && let Some((broker, bounds)) = self.nearer(item, command.isolation, rack)
        {
            let (bounds, nearer) = (Some(bounds), Some(broker));
            return ReadOutcome { slot, result: Ok(Read::default()), bounds, nearer, taken };
        }
        let mut bounds = None;
        let (isolation, from_any) = (command.isolation, command.from_any);
        let result = self.read_within(item, (isolation, from_any), left, is_first, &mut bounds);
        ReadOutcome { slot, result, bounds, nearer: None, taken }
    }

    /// The replica that a consumer in `rack` should read from, if this one leads and is not the nearest.
    fn nearer(&mut self, item: &ReadItem, isolation: Isolation, rack: &str) -> Option<(BrokerId, Bounds)> {
        self.open(item.partition).ok()?;
        let partition = &self.replicas.get(&item.partition)?.partition;
        let bounds = partition.bounds(isolation, item.leader_epoch).ok()?;
        let image = self.node.image.load();
        let rack_of = |broker| {
            let known = image.cluster.broker(broker).filter(|known| known.is_active())?;
            known.rack.as_deref()
        };
        let broker = partition.preferred_read_replica(self.node.broker_id, rack, item.from, rack_of)?;
        Some((broker, bounds))
    }

    pub(super) fn read_within(
        &mut self,
        item: &ReadItem,
        (isolation, from_any): (Isolation, bool),
        left: usize,
        is_first: bool,
        known: &mut Option<Bounds>,
    ) -> Result<Read, Declined> {
        self.open(item.partition)?;
        let replica = self.replicas.get_mut(&item.partition).ok_or(Declined::Unknown)?;
        let bounds = match from_any {
            true => replica.partition.replica_bounds(isolation, item.leader_epoch)?,
            false => replica.partition.bounds(isolation, item.leader_epoch)?,
        };
        *known = Some(bounds);
        if let Some(epoch) = item.last_fetched_epoch
            && let Some(diverging) = diverging(&replica.log, epoch, item.from)
        {
            // An epoch that no record here is of, nor any older one: there is nothing to fall back to.
            if diverging.1 == Offset::NONE {
                let (start, end) = (bounds.log_start, bounds.log_end);
                return Err(Refusal::OutOfRange { asked: item.from, start, end }.into());
            }
            return Ok(Read { diverging: Some(diverging), ..Read::default() });
        }
        bounds.check(item.from)?;
        let mut read = self.records_within(item, bounds, left, is_first)?;
        if isolation == Isolation::ReadCommitted {
            read.aborted = self.aborted_within(item, bounds, &read)?;
        }
        Ok(read)
    }

    /// Whole batches from where the item asks.
    pub(super) fn records_within(
        &mut self,
        item: &ReadItem,
        bounds: Bounds,
        left: usize,
        is_first: bool,
    ) -> Result<Read, Declined> {
        let Self { replicas, files, node, .. } = self;
        let replica = replicas.get_mut(&item.partition).ok_or(Declined::Unknown)?;
        let out_of_range = out_of_range(item, bounds);
        let max_bytes = item.max_bytes.min(left);
        if item.from >= bounds.end || (max_bytes == 0 && !is_first) {
            return Ok(Read::default());
        }
        let files = &mut files[replica.directory];
        let read = replica.log.read(files, item.from, max_bytes, bounds.end, is_first);
        let mut read = match read {
            Ok(read) => read,
            Err(error) => {
                let declined = refused(node, &error, out_of_range);
                if let StorageError::Damaged { offset, .. } = error {
                    self.met_damage(item.partition, offset);
                }
                return Err(declined);
            }
        };
        if read.position.is_some() && read.next_offset < bounds.end && read.records.len() < max_bytes / 2 {
            // It ended where the segment does; what comes next is mostly in memory. One answer for both.
            let rest =
                replica.log.read(files, read.next_offset, max_bytes - read.records.len(), bounds.end, false);
            // What is wrong there is told to whoever asks for it.
            if let Ok(rest) = rest
                && !rest.records.is_empty()
            {
                read.records = [read.records, rest.records].concat().into();
                read.next_offset = rest.next_offset;
            }
        }
        Ok(Read { records: read.records, next: read.next_offset, ..Read::default() })
    }

    fn aborted_within(
        &mut self,
        item: &ReadItem,
        bounds: Bounds,
        read: &Read,
    ) -> Result<Vec<AbortedTransaction>, Declined> {
        if read.records.is_empty() {
            return Ok(Vec::new());
        }
        let Self { replicas, files, node, .. } = self;
        let replica = replicas.get_mut(&item.partition).ok_or(Declined::Unknown)?;
        let files = &mut files[replica.directory];
        let aborted = replica.log.aborted_transactions(files, item.from, read.next);
        aborted.map_err(|error| refused(node, &error, out_of_range(item, bounds)))
    }
}

fn out_of_range(item: &ReadItem, bounds: Bounds) -> Refusal {
    Refusal::OutOfRange { asked: item.from, start: bounds.log_start, end: bounds.log_end }
}

/// Kafka `Partition.readRecords`: the reader's last epoch ended before the place it wants to read from.
fn diverging(log: &Log, last_fetched: LeaderEpoch, from: Offset) -> Option<(LeaderEpoch, Offset)> {
    let (epoch, end) = log.epochs().end_offset_for(last_fetched, log.end());
    (epoch < last_fetched || end < from).then_some((epoch, end))
}

fn refused(node: &Node, error: &StorageError, out_of_range: Refusal) -> Declined {
    match error {
        StorageError::OffsetOutOfRange { .. } => out_of_range.into(),
        error => {
            name_damage(node, error);
            if matches!(error, StorageError::Damaged { .. }) { Declined::Damaged } else { Declined::Storage }
        }
    }
}

impl Default for Read {
    fn default() -> Self {
        Self { records: Bytes::new(), next: Offset::NONE, aborted: Vec::new(), diverging: None }
    }
}
