//! Appends that wait: for room in a journal, and for metadata that their clients know already. core/replica's
//! `await_journal` and `await_metadata` decide.

use barnabas_base::DurationMs;
use barnabas_partition::{Acks, Append, Origin, ReplicaKey, Ticket};
use barnabas_replica::{APPEND_TIMEOUT, AwaitJournal, AwaitMetadata};

use super::{APPEND_PATIENCE, Around, Process};
use crate::batch::Batch;
use crate::network::Place;

/// How long a broker that has ceased to lead passes batches on.
const FORWARDS_FOR: DurationMs = DurationMs(60);
/// Of a batch, about.
const BATCH_BYTES: usize = 500;

#[derive(Debug)]
pub(super) struct Waiting {
    full: AwaitJournal<(usize, ReplicaKey, Vec<Batch>)>,
    early: AwaitMetadata<(usize, ReplicaKey, Batch)>,
}

impl Default for Waiting {
    fn default() -> Self {
        Self { full: AwaitJournal::default(), early: AwaitMetadata::new(APPEND_TIMEOUT) }
    }
}

impl Process {
    /// No append overtakes one that waits.
    pub(super) fn produce_in_turn(
        &mut self,
        from: Place,
        key: ReplicaKey,
        batches: &[Batch],
        around: &mut Around<'_>,
    ) {
        let Place::Client(client) = from else { return };
        if self.waiting.full.must_wait(|| self.host.is_over()) {
            if self.waiting.full.has_room() {
                self.waiting.full.hold(batches.len() * BATCH_BYTES, (client, key, batches.to_vec()));
            }
            return;
        }
        self.append_or_hold((client, key), batches, around);
    }

    fn append_or_hold(
        &mut self,
        (client, key): (usize, ReplicaKey),
        batches: &[Batch],
        around: &mut Around<'_>,
    ) {
        for batch in batches {
            let append = Append {
                origin: Origin::Client,
                acks: Acks::All,
                ticket: Ticket(0),
                deadline: around.now.plus(APPEND_PATIENCE),
                leader_epoch: None,
                verified: false,
                follows_refused: false,
            };
            // Whether the metadata log has more than the image: either may be so.
            let knows_more = || around.now.0.is_multiple_of(2);
            let replica = self.host.replica(key).filter(|replica| {
                replica.append_awaits_metadata(&append, around.now, FORWARDS_FOR, knows_more)
            });
            match replica {
                Some(replica) => {
                    self.waiting.early.hold(replica, around.now, (client, key, batch.clone()));
                }
                None => self.append_all((client, key), std::slice::from_ref(batch), around),
            }
        }
    }

    /// Goes on with what has waited long enough, or for whose partition the image has something new.
    pub(super) fn go_on_with_waiting(&mut self, around: &mut Around<'_>) {
        let Self { waiting, host, .. } = self;
        if waiting.early.due().is_some() && !waiting.early.is_empty() {
            let epoch_of = |key| host.replica(key).and_then(barnabas_replica::Replica::serving_epoch);
            for (client, key, batch) in waiting.early.take_due(around.now, epoch_of) {
                self.append_all((client, key), &[batch], around);
            }
        }
        loop {
            let Self { waiting, host, .. } = self;
            let Some((client, key, batches)) = waiting.full.next(|| host.is_over()) else { break };
            self.append_or_hold((client, key), &batches, around);
        }
    }
}
