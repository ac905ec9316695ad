//! One replica in a running broker: the real partition, and a log of which the disk has a part.

use std::collections::VecDeque;

use barnabas_base::{BrokerId, EpochEntry, LeaderEpoch, LeaderEpochs, MonotonicMs, Offset, Sequence};
use barnabas_partition::{Acks, Append, Cut, Effect, Follow, LogEnds, Origin, Partition, Placed, Ticket};

use crate::batch::Batch;

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

/// A producer that waits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waiting {
    ticket: Ticket,
    pub client: usize,
    pub sequence: Sequence,
}

#[derive(Debug)]
pub(crate) struct Replica {
    pub partition: Partition,
    pub log: Vec<Batch>,
    pub epochs: LeaderEpochs,
    /// Whom it follows, in which epoch.
    pub following: Option<(BrokerId, LeaderEpoch)>,
    waiting: VecDeque<Waiting>,
    tickets: u64,
}

impl Replica {
    /// `forgets`: a mistake that is planted.
    pub fn open(disk: &DiskLog, forgets: bool) -> Self {
        Self {
            partition: opened(disk, forgets),
            epochs: epochs_of(&disk.log),
            log: disk.log.clone(),
            following: None,
            waiting: VecDeque::new(),
            tickets: 0,
        }
    }

    /// The answer, if there is one at once.
    pub fn produce(
        &mut self,
        client: usize,
        batch: &Batch,
        at_once: bool,
        now: MonotonicMs,
        effects: &mut Vec<Effect>,
    ) -> Result<(), barnabas_base::ErrorCode> {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let how = Append {
            origin: Origin::Client,
            acks: if at_once { Acks::Leader } else { Acks::All },
            ticket,
            deadline: MonotonicMs(now.0 + 100),
            leader_epoch: None,
            verified: false,
        };
        self.waiting.push_back(Waiting { ticket, client, sequence: batch.sequence });
        match self.partition.append(&batch.info(), &how, effects) {
            Ok(Placed::Write { base, leader_epoch }) => {
                self.log.push(Batch { base, epoch: leader_epoch, ..*batch });
                Ok(())
            }
            Ok(Placed::Duplicate { .. }) => Ok(()),
            Err(refusal) => {
                self.waiting.pop_back();
                Err(refusal.code())
            }
        }
    }

    pub fn answered(&mut self, ticket: Ticket) -> Option<Waiting> {
        let at = self.waiting.iter().position(|waiting| waiting.ticket == ticket)?;
        self.waiting.remove(at)
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
        self.partition = opened(disk, false);
        self.partition.become_follower(epoch, &mut Vec::new());
        Some((to, high_watermark))
    }

    /// Everything up to `end` is on the disk.
    pub fn synced(&mut self, end: Offset, disk: &mut DiskLog, effects: &mut Vec<Effect>) {
        let from = disk.log.len();
        let more = self.log[from..].iter().take_while(|batch| batch.end() <= end);
        disk.log.extend(more.copied());
        disk.end = end;
        self.partition.synced(end, effects);
        disk.high_watermark = self.partition.high_watermark();
    }
}

fn opened(disk: &DiskLog, forgets: bool) -> Partition {
    let mut partition = Partition::new();
    for batch in disk.log.iter().filter(|_| !forgets) {
        partition.replay(batch.base, &batch.info());
    }
    let DiskLog { start, end, high_watermark, .. } = *disk;
    partition.open(LogEnds { log_start: start, log_end: end, high_watermark });
    partition
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
