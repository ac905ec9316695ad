//! One replica in a running broker: the real partition, and a log of which the disk has a part.

use std::collections::VecDeque;

use barnabas_base::{
    BrokerId, CoordinatorEpoch, EpochEntry, ErrorCode, LeaderEpoch, LeaderEpochs, MonotonicMs, Offset,
    ProducerEpoch, Sequence,
};
use barnabas_coordinator::BatchId;
use barnabas_partition::{
    AbortedTxn, Acks, Append, BatchKind, Cut, Effect, Follow, LogEnds, Origin, Partition, Placed, Ticket,
};

use crate::batch::{Batch, Contents};
use crate::network::Reply;

/// What outlives the process.
#[derive(Debug, Clone, Default)]
pub(crate) struct DiskLog {
    pub log: Vec<Batch>,
    pub start: Offset,
    pub end: Offset,
    pub high_watermark: Offset,
}

impl DiskLog {
    pub fn has(&self, batch: &Batch) -> bool {
        let at = self.log.partition_point(|other| other.base < batch.base);
        self.log.get(at) == Some(batch) || batch.end() <= self.start
    }
}

/// Who waits for an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiter {
    Producer {
        client: usize,
        sequence: Sequence,
    },
    Asker(Reply),
    /// The coordinator beside the partition, as it was loaded in this epoch.
    Shard(LeaderEpoch, BatchId),
}

/// How a batch is handed to a partition.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Handing {
    pub origin: Origin,
    pub acks: Acks,
    pub verified: bool,
    /// Of a marker.
    pub version: i16,
    pub deadline: MonotonicMs,
    /// A mistake that is planted: a marker's epochs are made to fit.
    pub bends: Bends,
}

/// What of a marker is made to fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Bends {
    pub producer_epoch: bool,
    pub coordinator_epoch: bool,
}

#[derive(Debug)]
pub(crate) struct Replica {
    pub partition: Partition,
    pub log: Vec<Batch>,
    pub epochs: LeaderEpochs,
    /// Whom it follows, in which epoch.
    pub following: Option<(BrokerId, LeaderEpoch)>,
    /// The transaction index.
    pub aborted: Vec<AbortedTxn>,
    waiting: VecDeque<(Ticket, Waiter)>,
    tickets: u64,
}

impl Replica {
    /// `forgets`: a mistake that is planted.
    pub fn open(disk: &DiskLog, forgets: bool) -> Self {
        let (partition, aborted) = opened(disk, forgets);
        Self {
            partition,
            aborted,
            epochs: epochs_of(&disk.log),
            log: disk.log.clone(),
            following: None,
            waiting: VecDeque::new(),
            tickets: 0,
        }
    }

    /// Hands a batch in. Who waits for it hears by an effect, unless it is refused here.
    pub fn append(
        &mut self,
        batch: &Batch,
        how: Handing,
        waiter: Waiter,
        effects: &mut Vec<Effect>,
    ) -> Result<(), ErrorCode> {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let Handing { origin, acks, verified, deadline, .. } = how;
        let append = Append { origin, acks, ticket, deadline, leader_epoch: None, verified };
        let batch = self.bent(batch, how.bends);
        let mut info = batch.info();
        if let BatchKind::Marker(marker) = &mut info.kind {
            marker.transaction_version = if how.bends.producer_epoch { 0 } else { how.version };
        }
        self.waiting.push_back((ticket, waiter));
        match self.partition.append(&info, &append, effects) {
            Ok(Placed::Write { base, leader_epoch }) => {
                self.index(effects);
                self.log.push(Batch { base, epoch: leader_epoch, ..batch });
                Ok(())
            }
            Ok(Placed::Duplicate { .. }) => Ok(()),
            Err(refusal) => {
                self.waiting.pop_back();
                Err(refusal.code())
            }
        }
    }

    /// A marker as the partition would have it.
    fn bent(&self, batch: &Batch, bends: Bends) -> Batch {
        let mut batch = batch.clone();
        let Contents::Marker { coordinator_epoch, .. } = &mut batch.contents else { return batch };
        let known = self.partition.producers().into_iter().find(|known| known.producer_id == batch.producer);
        let none = (ProducerEpoch::NONE, CoordinatorEpoch::NONE);
        let known = known.map_or(none, |known| (known.producer_epoch, known.coordinator_epoch));
        if bends.producer_epoch {
            batch.producer_epoch = batch.producer_epoch.max(known.0);
        }
        if bends.coordinator_epoch {
            *coordinator_epoch = (*coordinator_epoch).max(known.1);
        }
        batch
    }

    /// Notes aborted transactions.
    fn index(&mut self, effects: &[Effect]) {
        for effect in effects {
            if let Effect::Aborted(aborted) = effect
                && !self.aborted.contains(aborted)
            {
                self.aborted.push(*aborted);
            }
        }
    }

    pub fn answered(&mut self, ticket: Ticket) -> Option<Waiter> {
        let at = self.waiting.iter().position(|(waiting, _)| *waiting == ticket)?;
        self.waiting.remove(at).map(|(_, waiter)| waiter)
    }

    /// Appends what a leader has sent, as far as it fits.
    pub fn follow(&mut self, batches: Vec<Batch>, effects: &mut Vec<Effect>) {
        for batch in batches {
            match self.partition.judge(batch.base, batch.offsets, batch.epoch) {
                Ok(Follow::Skip) => continue,
                Ok(Follow::Stop) | Err(_) => return,
                Ok(Follow::Append | Follow::AppendFromBelow) => {}
            }
            self.partition.follow(batch.base, &batch.info(), effects);
            self.index(effects);
            self.epochs.assign(batch.epoch, batch.base);
            self.log.push(batch);
        }
    }

    /// Cuts the log; what is left is synced. Returns to where, and where the high watermark stood.
    pub fn cut(&mut self, cut: Cut, disk: &mut DiskLog) -> Option<(Offset, Offset)> {
        let high_watermark = self.partition.high_watermark();
        let to = match cut {
            Cut::Nothing => return None,
            Cut::To(end) => {
                self.log.retain(|batch| batch.end() <= end);
                self.epochs.truncate_from_end(end);
                self.partition.truncate(end);
                end
            }
            Cut::StartAt(start) => {
                self.log.clear();
                self.epochs.clear();
                disk.start = start;
                start
            }
        };
        disk.log.clone_from(&self.log);
        disk.end = to;
        disk.high_watermark = self.partition.high_watermark();
        let epoch = self.partition.leader_epoch();
        (self.partition, self.aborted) = opened(disk, false);
        self.partition.become_follower(epoch, &mut Vec::new());
        Some((to, high_watermark))
    }

    /// Everything up to `end` is on the disk.
    pub fn synced(&mut self, end: Offset, disk: &mut DiskLog, effects: &mut Vec<Effect>) {
        let from = disk.log.len();
        let more = self.log[from..].iter().take_while(|batch| batch.end() <= end);
        disk.log.extend(more.cloned());
        disk.end = end;
        self.partition.synced(end, effects);
        disk.high_watermark = self.partition.high_watermark();
    }
}

fn opened(disk: &DiskLog, forgets: bool) -> (Partition, Vec<AbortedTxn>) {
    let mut partition = Partition::new();
    let batches = disk.log.iter().filter(|_| !forgets);
    let aborted = batches.filter_map(|batch| partition.replay(batch.base, &batch.info())).collect();
    let DiskLog { start, end, high_watermark, .. } = *disk;
    partition.open(LogEnds { log_start: start, log_end: end, high_watermark });
    (partition, aborted)
}

fn epochs_of(log: &[Batch]) -> LeaderEpochs {
    let mut entries: Vec<EpochEntry> = Vec::new();
    for batch in log {
        if entries.last().is_none_or(|last| last.epoch < batch.epoch) {
            entries.push(EpochEntry { epoch: batch.epoch, start: batch.base });
        }
    }
    LeaderEpochs::from_entries(entries).expect("invariant: epochs rise in a log")
}
