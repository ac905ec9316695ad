//! What the log directories say of this broker's life before, and what they are to say of this one.
//!
//! The controller keeps a broker in ISR and ELR (KIP-966) over a restart if that has everything that it acknowledged.
//! After a clean stop `.kafka_cleanshutdown` says so. After a kill `barnabas-last-life` does, as acknowledgements wait
//! for the sync. Not so:
//! - with `log.ack.durability=written`, where acknowledgements do not wait
//! - where a directory has failed since, has a damaged checkpoint or journal, or says something else than the others:
//!   its disk is another one
//! - where the metadata log shows that the broker lived on after what the file says: the disk was restored to an
//!   earlier moment
//!
//! core/storage keeps the files; core/quorum's `node/outlived.rs` compares with the metadata log. The server and
//! housekeeping note this life, and the registration tells the controller.

use crate::log_dirs::directories::{Directories, Directory};
use crate::node::Node;
use barnabas_base::{BrokerEpoch, BrokerId, DurationMs};
use barnabas_metadata::config::BrokerConfig;
use barnabas_quorum::node::BrokerLife;
use barnabas_storage::LastLife;
use std::time::Duration;

/// A life says this often that it goes on.
pub const NOTE_INTERVAL: Duration = Duration::from_secs(10);
/// For so long it may be unable to: the disk is slow, or housekeeping is.
const NOTE_PATIENCE: DurationMs = DurationMs(60_000);
/// The sessions of a broker that was killed: its own, and as many of controllers that came and went meanwhile.
const SESSIONS: i64 = 5;

/// The life of which every directory that holds partitions has all. One that has another word, or none, may have lost
/// what that life had.
///
/// # Source
/// KIP-966; Kafka `LogManager.readBrokerEpochFromCleanShutdownFiles`.
fn kept(directories: &Directories) -> Option<LastLife> {
    let holding = directories.iter().filter(|directory| directory.holds_partitions);
    let mut words = holding.map(|directory| match directory.is_online() {
        true => directory.lock().kept_life(),
        false => None,
    });
    let first = words.next()??;
    words.try_fold(first, |all, word| {
        let word = word.filter(|word| word.epoch == all.epoch)?;
        let seen = match (all.seen, word.seen) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        Some(LastLife { seen, ..all })
    })
}

/// Its broker epoch, or none.
pub fn previous_epoch(directories: &Directories) -> BrokerEpoch {
    kept(directories).map_or(BrokerEpoch::NONE, |life| life.epoch)
}

/// As [`previous_epoch`], once the metadata log is known.
pub fn previous_of(node: &Node) -> BrokerEpoch {
    let epoch = previous_epoch(&node.log_dirs.directories);
    if epoch == BrokerEpoch::NONE || !node.peers.controller.has_outlived_disk() {
        return epoch;
    }
    tracing::warn!(
        broker = %node.identity.broker_id, %epoch,
        "the log directories of this broker are older than its last registration: the metadata log shows it \
         running after their newest mark. Were they restored from an earlier copy? Its replicas may lack \
         acknowledged records, so they are neither in sync nor eligible to lead until they have caught up"
    );
    BrokerEpoch::NONE
}

/// What the metadata log is to be compared with; `None` after a clean stop.
pub fn to_compare(directories: &Directories, broker: BrokerId, config: &BrokerConfig) -> Option<BrokerLife> {
    let LastLife { epoch, seen } = kept(directories)?;
    let sessions = config.long("broker.session.timeout.ms").saturating_mul(SESSIONS);
    let spare = DurationMs(NOTE_PATIENCE.0.saturating_add(sessions));
    Some(BrokerLife { broker, epoch, seen: seen?, spare })
}

/// Writes down that this life goes on. Before the broker is unfenced for the first time: until then it is in sync for
/// nothing. Where it cannot be written, the broker counts as shut down uncleanly after a kill.
pub fn note(node: &Node) {
    let (epoch, seen) = (node.identity.broker_epoch(), node.cluster.image.load().provenance.last_timestamp);
    if epoch == BrokerEpoch::NONE || !node.log_dirs.acks_are_synced {
        return;
    }
    let directories = &node.log_dirs.directories;
    let has_failed = |dir: &Directory| dir.holds_partitions && !dir.is_online() && !dir.dead_from_start;
    let is_whole = !directories.iter().any(has_failed);
    for (index, directory) in directories.iter().enumerate().filter(|(_, dir)| dir.is_usable()) {
        let mut log_dir = directory.lock();
        // A journal that is gone must be missed from now on.
        let is_news = log_dir.set_journal(directory.journal.life());
        let guarded = if is_news { log_dir.write_checkpoints() } else { Ok(()) };
        let noted = guarded.and_then(|()| match is_whole {
            true => log_dir.note_life(epoch, seen),
            // When that disk is back, it may have less than was acknowledged.
            false => log_dir.forget_life(),
        });
        drop(log_dir);
        if let Err(error) = noted {
            node.write_failed(index, &error);
        }
    }
}
