//! The clean end of a node.

use crate::log_dirs::directories::Directory;
use crate::mailbox::Command;
use crate::node::Node;
use crate::routing::owners::ask_workers;
use crate::server::lifecycle::Lifecycle;
use crate::server::threads::Threads;
use crate::upkeep::checkpoints::{note_metadata_log, write_checkpoints};
use crate::upkeep::last_life;
use barnabas_base::{BrokerEpoch, DurationMs, Set, TopicPartition};
use barnabas_metadata_log::metadata_partition;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// What has to end, in the order of [`Stopping::stop`].
pub struct Stopping {
    pub node: Arc<Node>,
    pub accepting: Vec<tokio::task::JoinHandle<()>>,
    /// They are needed until the quorum has stopped.
    pub accepting_controllers: Vec<tokio::task::JoinHandle<()>>,
    pub lifecycle: Lifecycle,
    pub threads: Threads,
}

impl Stopping {
    /// Ends everything. Returns whether every log was closed and vouched for.
    pub fn stop(self) -> bool {
        let Self { node, accepting, accepting_controllers, lifecycle, threads } = self;
        // Others lead its partitions before it stops to serve them.
        node.shutdown.waits_for("the controller to move the leadership of its partitions");
        if node.identity.is_broker && !node.shutdown.has_failed() && lifecycle.controlled_shutdown(&node) {
            let_producers_go(&node);
        }
        node.peers.controller.resign();
        node.shutdown.waits_for("its background threads");
        accepting.into_iter().for_each(|accept| accept.abort());
        // They ask workers.
        stop_metering(&node, threads.metrics, threads.doctor);
        node.log_dirs.deletions.stop();
        join(threads.housekeeping);
        // Before the workers close: it waits for them.
        node.log_dirs.moves.stop();
        join(threads.mover);
        if let Err(error) =
            node.peers.controller.give_reserve_away(&node, |directory| directory.room.is_short())
        {
            tracing::warn!(%error, "the space reserved for the metadata log could not be released before \
                the stop. If the disk is full, logs may not close cleanly, and the next start recovers \
                them");
        }
        node.audit.stop_topic();
        node.shutdown.waits_for("its workers to close connections and logs");
        // Workers close their connections first, so that nothing is appended after its log is closed.
        let checkpoints = ask_workers(&node, Command::Close);
        let mut closed: Set<TopicPartition> = checkpoints.iter().map(|one| one.partition.clone()).collect();
        closed.insert(metadata_partition());
        node.shutdown.waits_for("what it wrote to be synced");
        // All deleted topics are closed, and nothing of them may be vouched for.
        node.log_dirs.deleted.stop();
        join(threads.deletions);
        write_checkpoints(&node, checkpoints);
        for directory in node.log_dirs.directories.iter().filter(|directory| directory.is_online()) {
            let left = directory.room.uncounted();
            tracing::debug!(directory = %directory.path.display(), left, "bytes let in and neither written nor given up");
        }
        // Everything is in segments and synced: the journals say so, and go.
        for directory in node.log_dirs.directories.iter() {
            forget_journal(directory);
            directory.journal.stop();
        }
        threads.journals.into_iter().for_each(join);
        for directory in node.log_dirs.directories.iter() {
            directory.committer.stop();
        }
        threads.committers.into_iter().for_each(join);
        for mailbox in &node.workers.mailboxes {
            mailbox.send_blocking(Command::End);
        }
        threads.workers.into_iter().for_each(|worker| drop(worker.join()));
        node.shutdown.waits_for("its metadata log to be closed");
        let stopped = node.peers.controller.stop();
        // The quorum's thread has ended already where it failed: its end of the answer is gone then.
        let metadata_is_clean = stopped.blocking_recv().is_ok();
        join(threads.quorum);
        accepting_controllers.into_iter().for_each(|accept| accept.abort());
        node.audit.stop();
        node.peers.links.stop();
        join(threads.links);
        let clean = metadata_is_clean & mark_clean(&node, &closed);
        let figures = node.log_dirs.compaction.figures.snapshot(&node.log_dirs.compaction.candidates);
        for (name, value) in node.workers.meter.snapshot().into_iter().chain(figures) {
            tracing::debug!("{name} {value}");
        }
        tracing::info!("stopped{}", if clean { "" } else { "; the next start recovers what was not closed" });
        clean
    }
}

/// The doctor asks the metrics' thread, which ends once it has answered.
fn stop_metering(node: &Node, metrics: JoinHandle<()>, doctor: Option<JoinHandle<()>>) {
    node.doctor.stop();
    node.workers.metering.stop();
    join(metrics);
    doctor.into_iter().for_each(join);
}

/// Producers whose batches are handed on to the next leaders (requests/produce/forwarding.rs) hear of these with the
/// answers: their connections stay until they have gone there. A connection that is closed over a batch costs its
/// producer a pause.
fn let_producers_go(node: &Node) {
    const QUIET: Duration = Duration::from_millis(100);
    const MOST: Duration = Duration::from_millis(800);
    let quiet_ms = DurationMs(QUIET.as_millis() as i64);
    let begun = barnabas_clock::now();
    while barnabas_clock::since(begun) < QUIET
        || node.forwards(quiet_ms) && barnabas_clock::since(begun) < MOST
    {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Before its files go: a crash from here on must not ask for them.
fn forget_journal(directory: &Directory) {
    let mut log_dir = directory.lock();
    log_dir.set_journal(None);
    let written = if directory.is_online() { log_dir.write_checkpoints() } else { Ok(()) };
    if let Err(error) = written {
        tracing::warn!(%error, "checkpoints of {} were not written; the next start reads more of its logs", directory.path.display());
    }
}

fn join(thread: JoinHandle<()>) {
    // A thread that panicked has said so; what it held is not clean, which its directory's state tells.
    drop(thread.join());
}

/// Marks the directories in which every log was closed by this process, or not touched since a clean stop. Returns
/// whether nothing went wrong.
fn mark_clean(node: &Node, closed: &Set<TopicPartition>) -> bool {
    let mut clean = true;
    note_metadata_log(node);
    let epoch =
        epoch_to_mark(node.identity.broker_epoch(), last_life::previous_epoch(&node.log_dirs.directories));
    for directory in node.log_dirs.directories.iter() {
        if !directory.is_online() {
            // One that was not there from the start has nothing of this life in it.
            clean &= directory.dead_from_start;
            continue;
        }
        let mut log_dir = directory.lock();
        let left = log_dir.unrecovered(closed);
        if let Ok(logs @ 1..) = left {
            let path = directory.path.display();
            tracing::info!(
                "{path}: {logs} logs were not opened since an unclean stop; they are recovered when they \
                 open"
            );
        }
        let marked = log_dir.write_checkpoints().and(left).and_then(|left| match left {
            // What a process before this one left unsynced, the next one would not look at.
            0 if log_dir.is_settled() => log_dir.mark_clean(epoch),
            _ => log_dir.mark_left(),
        });
        if let Err(error) = marked {
            let path = directory.path.display();
            tracing::error!(%error, "the clean-shutdown mark of log directory {path} could not be \
                written; the next start recovers its logs");
            clean = false;
        }
    }
    clean
}

/// The broker epoch that the mark names: this life's. A life that never registered was no member: what the one before
/// it had is there still, and the cluster knows the broker under that one's epoch.
///
/// # Source
/// KIP-966. Kafka writes -1 where the broker never registered (`BrokerServer.shutdown`), and the next start counts as
/// unclean.
fn epoch_to_mark(mine: BrokerEpoch, before: BrokerEpoch) -> BrokerEpoch {
    if mine == BrokerEpoch::NONE { before } else { mine }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mark_of_an_unregistered_life_names_the_epoch_before() {
        let (none, before, mine) = (BrokerEpoch::NONE, BrokerEpoch(7), BrokerEpoch(12));
        assert_eq!(epoch_to_mark(mine, before), mine);
        assert_eq!(epoch_to_mark(none, before), before);
        assert_eq!(epoch_to_mark(none, none), none);
    }
}
