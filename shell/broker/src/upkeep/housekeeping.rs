//! What is done now and then, on one thread of low priority: checkpoints, retention, files whose time to go has come.
//!
//! Workers do the part that concerns their partitions on request (partition_worker/upkeep.rs). This thread writes
//! the checkpoint files, which belong to directories and not to partitions (upkeep/checkpoints.rs), and searches the
//! directories for partitions that are not open (housekeeping/sweep.rs).

mod sweep;

use crate::mailbox::Command;
use crate::node::Node;
use crate::node::log_dirs::deletions::Deletion;
use crate::node::peers::replication::arrivals;
use crate::routing::owners::ask_workers;
use crate::upkeep::checkpoints::write_checkpoints;
use crate::upkeep::cleaner;
use crate::upkeep::impairments;
use crate::upkeep::last_life;
use crate::upkeep::placement::{lost, reports};
use crate::upkeep::scrub;
use barnabas_base::TimestampMs;
use barnabas_storage::remove_dir;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often due deletions are looked at.
const TICK: Duration = Duration::from_secs(1);
/// Open partitions are not looked through for expired producers more often than this, whatever the interval is set to.
const EXPIRATION_INTERVAL_MIN: Duration = Duration::from_millis(100);
/// Between two checkpoints there are so many times as long as one takes: they cost a hundredth of one core, whatever
/// the number of partitions. What was synced before the newest checkpoint is never cut at the next start, so they come
/// often.
const CHECKPOINT_PAUSE_FACTOR: u32 = 100;
const CHECKPOINT_PAUSE_MIN: Duration = Duration::from_secs(1);
/// Kafka's `log.flush.offset.checkpoint.interval.ms`.
const CHECKPOINT_PAUSE_MAX: Duration = Duration::from_secs(60);

/// While a directory is short of room, retention looks this often: what it finds may be what producers wait for.
const RETAIN_WHILE_SHORT: Duration = Duration::from_secs(2);

/// # Errors
/// The system gives no thread.
pub fn start(node: Arc<Node>, replayed: scrub::Replayed) -> std::io::Result<JoinHandle<()>> {
    let mut background = cleaner::start(&node)?;
    background.push(scrub::start(node.clone(), replayed)?);
    std::thread::Builder::new().name("housekeeping".to_owned()).spawn(move || {
        run(&node);
        // They stop for the same reason. One that panicked has said so.
        background.into_iter().for_each(|thread| drop(thread.join()));
    })
}

fn run(node: &Node) {
    if let Err(error) = rustix::process::setpriority_process(None, 10) {
        tracing::debug!(%error, "housekeeping keeps its priority");
    }
    sweep::put_strays_aside(node);
    let mut checkpoint_at = barnabas_clock::now() + CHECKPOINT_PAUSE_MIN;
    let mut retain_at = barnabas_clock::now() + retention_interval(node);
    let mut retain_short_at = barnabas_clock::now();
    let mut expire_at = barnabas_clock::now() + expiration_interval(node);
    let mut noted = (barnabas_clock::now(), TimestampMs::NONE);
    while node.log_dirs.deletions.go_on_after(TICK.min(expiration_interval(node))) {
        expire_producers(node, &mut expire_at);
        let mut is_short = false;
        for directory in node.log_dirs.directories.iter().filter(|directory| directory.is_online()) {
            directory.room.look_if_due(node.clock.monotonic());
            is_short |= directory.room.is_short();
            directory.journal.write_back_all(directory.room.is_short());
        }
        delete_due(node);
        note_journals(node);
        note_life(node, &mut noted);
        reports::watch(node);
        lost::watch(node);
        impairments::watch(node);
        arrivals::watch(&node.peers.replication.arrivals, node.workers.metering.arriving());
        node.workers.complaints.count(false);
        let now = barnabas_clock::now();
        let retain = now >= retain_at || (is_short && now >= retain_short_at);
        if now < checkpoint_at && !retain {
            continue;
        }
        if retain {
            retain_at = now + retention_interval(node);
            sweep::retain_unopened(node);
        }
        let checkpoints = ask_workers(node, |reply| Command::Housekeep { retain, reply });
        write_checkpoints(node, checkpoints);
        if retain {
            // A million partitions are not looked through all the time.
            retain_short_at = barnabas_clock::now() + RETAIN_WHILE_SHORT.max(barnabas_clock::since(now) * 10);
        }
        let pause = (barnabas_clock::since(now) * CHECKPOINT_PAUSE_FACTOR)
            .clamp(CHECKPOINT_PAUSE_MIN, CHECKPOINT_PAUSE_MAX);
        checkpoint_at = barnabas_clock::now() + pause;
    }
    node.workers.complaints.count(true);
}

/// So that after an unclean stop a journal that is gone is missed, and so is its newest file.
fn note_journals(node: &Node) {
    for directory in node.log_dirs.directories.iter().filter(|directory| directory.is_online()) {
        let mut log_dir = directory.lock();
        if log_dir.set_journal(directory.journal.life())
            && let Err(error) = log_dir.write_checkpoints()
        {
            // It is tried again with the next checkpoints, which complain.
            tracing::debug!(%error, "the journal of {} is not noted", directory.path.display());
        }
    }
}

/// Now and then, while the metadata log goes on.
fn note_life(node: &Node, noted: &mut (Instant, TimestampMs)) {
    let seen = node.cluster.image.load().provenance.last_timestamp;
    if barnabas_clock::since(noted.0) >= last_life::NOTE_INTERVAL && seen != noted.1 {
        *noted = (barnabas_clock::now(), seen);
        last_life::note(node);
    }
}

/// Sends workers to look for expired producers, if it is time for it. A changed interval counts from now on.
fn expire_producers(node: &Node, expire_at: &mut Instant) {
    let (now, interval) = (barnabas_clock::now(), expiration_interval(node));
    *expire_at = (*expire_at).min(now + interval);
    if now >= *expire_at {
        *expire_at = now + interval;
        node.workers.mailboxes.iter().for_each(|mailbox| mailbox.send_blocking(Command::ExpireProducers));
    }
}

fn expiration_interval(node: &Node) -> Duration {
    let interval_ms = node.cluster.config.load().long("producer.id.expiration.check.interval.ms");
    Duration::from_millis(u64::try_from(interval_ms).unwrap_or(600_000)).max(EXPIRATION_INTERVAL_MIN)
}

fn retention_interval(node: &Node) -> Duration {
    let interval_ms = node.cluster.config.load().long("log.retention.check.interval.ms");
    Duration::from_millis(u64::try_from(interval_ms).unwrap_or(300_000).max(1))
}

fn delete_due(node: &Node) {
    let is_short = |directory: usize| node.log_dirs.directories[directory].room.is_short();
    for deletion in node.log_dirs.deletions.take_due(node.clock.wall(), is_short) {
        let (directory, done) = match deletion {
            Deletion::Files { directory, delete } => {
                let disk = &node.log_dirs.directories[directory].disk;
                let done = delete.files.iter().try_for_each(|file| disk.remove_file(file));
                (directory, done.map_err(Into::into))
            }
            Deletion::Directory { directory, path, .. } => {
                (directory, remove_dir(&*node.log_dirs.directories[directory].disk, &path))
            }
        };
        if let Err(error) = done {
            let path = node.log_dirs.directories[directory].path.display();
            tracing::warn!(%error, "unused files could not be removed from {path}; the next start \
                removes them");
        }
    }
}
