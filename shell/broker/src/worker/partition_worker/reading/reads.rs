//! Fetches: what of a partition a reader may see, and who is noted to be woken when more comes.

use crate::mailbox::{Declined, PartitionKey, Read, ReadCommand, ReadItem, ReadOutcome};
use crate::upkeep::scrub::name_damage;
use crate::worker::partition_worker::PartitionWorker;
use barnabas_base::BrokerId;
use barnabas_partition::{Bounds, Isolation};
use barnabas_replica::ReadRequest;
use barnabas_storage::{FilePool, StorageError};

impl PartitionWorker {
    pub fn read(&mut self, command: ReadCommand) {
        let at_least_one = command.at_least_one;
        let follower = command.follower.map(|life| (life, self.node.clock.monotonic()));
        let missing = command.waiter.as_ref().map_or(0, |waiter| waiter.missing_bytes());
        let mut left = command.max_bytes;
        if follower.is_none() {
            left = self.read_turn.bound(left, usize::try_from(missing).unwrap_or(0));
        }
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
        self.read_turn.read(found);
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
        if let (Err(Declined::Damaged), Some(broker)) = (&result, command.repairs_for) {
            self.refused_follower(item.partition, broker, item.from);
        }
        ReadOutcome { slot, result, bounds, nearer: None, taken }
    }

    /// The replica that a consumer in `rack` should read from, if this one leads and is not the nearest.
    fn nearer(&mut self, item: &ReadItem, isolation: Isolation, rack: &str) -> Option<(BrokerId, Bounds)> {
        self.open(item.partition).ok()?;
        let partition = &self.replicas.get(&item.partition)?.partition;
        let bounds = partition.bounds(isolation, item.leader_epoch).ok()?;
        let image = self.node.cluster.image.load();
        let rack_of = |broker| {
            let known = image.cluster.broker(broker).filter(|known| known.is_active())?;
            known.rack.as_deref()
        };
        let broker =
            partition.preferred_read_replica(self.node.identity.broker_id, rack, item.from, rack_of)?;
        Some((broker, bounds))
    }

    pub fn read_within(
        &mut self,
        item: &ReadItem,
        (isolation, from_any): (Isolation, bool),
        left: usize,
        is_first: bool,
        known: &mut Option<Bounds>,
    ) -> Result<Read, Declined> {
        self.open(item.partition)?;
        let Self { replicas, files, effects, .. } = self;
        let replica = replicas.get_mut(&item.partition).ok_or(Declined::Unknown)?;
        let request = request_of(item, (isolation, from_any), left, is_first);
        let bounds = replica.bounds_for(&request)?;
        *known = Some(bounds);
        let files = &mut files[replica.directory];
        let read = replica.read(&request, bounds, files, effects);
        self.apply_effects(item.partition);
        read
    }

    /// Batches that readers have found sound are checked again from now on: their files may have changed.
    pub fn expire_checks(&mut self) {
        self.files.iter_mut().for_each(FilePool::expire_checks);
    }

    /// A read met an error: damage is named, and noted with its partition.
    pub fn read_failed(&mut self, key: PartitionKey, error: &StorageError) {
        name_damage(&self.node, error);
        if let StorageError::Damaged { offset, .. } = error {
            self.met_damage(key, *offset);
        }
    }
}

/// An item of a fetch that has so many bytes left; `is_first`: its first batch comes whole.
pub fn request_of(
    item: &ReadItem,
    (isolation, from_any): (Isolation, bool),
    left: usize,
    is_first: bool,
) -> ReadRequest {
    ReadRequest {
        from: item.from,
        max_bytes: item.max_bytes.min(left),
        at_least_one: is_first,
        isolation,
        from_any,
        leader_epoch: item.leader_epoch,
        last_fetched_epoch: item.last_fetched_epoch,
    }
}
