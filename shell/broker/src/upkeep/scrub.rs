//! Looks through cold segments for bytes that have changed by themselves, on one thread of low priority; and what is
//! known to be damaged.
//!
//! Every segment of every directory, the newest up to its recovery point, is read once in `log.scrub.interval.ms` and
//! each batch's checksum compared, at most `log.scrub.bytes.per.second`. Reads for consumers check what they serve too
//! (core/storage/src/log/sound.rs): the scrub finds what no consumer reads, while a copy may still exist elsewhere.
//! Progress is kept in `barnabas-scrub` in the directory, written without a sync: an old one costs a second look.
//!
//! A start does not wait for the round. It checks at once the segments that were written to after the last clean stop,
//! or after the last checkpoint before a kill, so that changes to a stopped node's files are found then and not a week
//! later. Partitions of which files came or went meanwhile are opened, so that one that cannot be opened is known
//! before a client asks for it.
//!
//! Always true:
//! 1. nothing is changed, cut or deleted here, whatever is found
//! 2. each damaged place is logged once at ERROR, with file, byte and offset, and counted, by the partition's owner;
//!    where the log cannot be opened for it, the line that says so is the only one
//! 3. a partition in which damage was found checks again what it reads, and heals itself from another replica
//!    (partition_worker/replication/repair.rs)

use crate::log_dirs::directories::Directory;
use crate::mailbox::{Command, PartitionKey};
use crate::node::Node;
use crate::node::topic_settings;
use barnabas_base::{Map, Offset, TimestampMs, TopicPartition};
use barnabas_log_dirs::scrubbing::{self, Progress};
use barnabas_metadata_log::metadata_partition;
use barnabas_storage::scrub::{
    Changed, KnownEpochs, Listed, Scrubbed, SegmentScrub, changed_segments, segments,
};
use barnabas_storage::{DirKind, DiskError, OpenMode, PartitionDir, StorageError};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Checked between two looks at the clock.
const PIECE_BYTES: u64 = 256 << 10;
/// A change of the settings is noticed after this long.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// So many partitions of a directory are opened at a start because files of them came or went.
const OPENED_MAX: usize = 1000;
const PROGRESS: &str = "barnabas-scrub";
/// What is read of it: it names a thousand partitions at most.
const PROGRESS_BYTES_MAX: u64 = 512 << 10;

/// Names `error` at ERROR, a damaged place only once, and counts those.
pub fn name_damage(node: &Node, error: &StorageError) {
    match error {
        StorageError::Damaged { file, position, .. } => {
            if node.log_dirs.damages.note(file, *position) {
                node.workers.meter.damage_found.one();
                let remedy = remedy(node, file);
                tracing::error!(%error, "corruption found: the corrupt range is not served, the records \
                    before and after it are. {remedy}");
            }
        }
        // Nothing is wrong with what was to be read.
        error if error.is_passing() => {
            let file = match error {
                StorageError::Exhausted(error) => &error.path,
                _ => return,
            };
            if let Some(directory) =
                node.log_dirs.directories.iter().find(|each| file.starts_with(&each.path))
            {
                directory.room.hit(error, node.clock.monotonic());
            }
        }
        StorageError::Disk(disk) if !node.log_dirs.damages.note(&disk.path, u64::MAX) => {}
        error => tracing::error!(%error, "records cannot be read; fetches of them are refused"),
    }
}

/// What is, or is to be, done about damage in this segment.
fn remedy(node: &Node, segment: &Path) -> &'static str {
    let dir =
        segment.parent().and_then(Path::file_name).and_then(OsStr::to_str).and_then(PartitionDir::parse);
    let partition = dir.map(|dir| dir.topic_partition);
    scrubbing::remedy(partition.as_ref(), &node.cluster.image.load(), node.identity.broker_id)
}

/// Tells the owner of a partition that its log is damaged. It names the damage.
pub fn tell_damaged(node: &Node, key: PartitionKey, damage: StorageError) {
    let command = Command::Damaged(key, Box::new(damage));
    node.workers.mailboxes[key.owner(node.workers.count)].send_blocking(command);
}

/// What is known just before the first partition is opened.
#[derive(Debug)]
pub struct Replayed {
    /// Up to where logs are synced by what journals hold of them, by log directory. The checkpoints lag behind that,
    /// and a newest segment is checked no further than its log is synced.
    synced: Vec<Map<PartitionKey, Offset>>,
    /// A segment with a later modification time was written by this process.
    at: TimestampMs,
}

impl Replayed {
    /// To be asked before the first partition is opened.
    pub fn of(node: &Node) -> Self {
        let of = |directory| {
            let waiting = node.log_dirs.unreplayed.all(directory, |_| true);
            waiting.into_iter().map(|(key, replay)| (key, replay.synced_below())).collect()
        };
        Self { synced: (0..node.log_dirs.directories.len()).map(of).collect(), at: node.clock.wall() }
    }
}

/// # Errors
/// The system gives no thread.
pub fn start(node: Arc<Node>, replayed: Replayed) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("scrub".to_owned()).spawn(move || run(&node, replayed))
}

fn run(node: &Node, replayed: Replayed) {
    if let Err(error) = rustix::process::setpriority_process(None, 15) {
        tracing::debug!(%error, "the scrub keeps its priority");
    }
    let online = || node.log_dirs.directories.iter().filter(|directory| directory.is_online());
    if rate(node) > 0 {
        for (directory, synced) in node.log_dirs.directories.iter().zip(&replayed.synced) {
            if directory.is_online() && !Walk::new(node, directory, None).changed(synced, replayed.at) {
                return;
            }
        }
    }
    drop(replayed);
    let mut noted = vec![BTreeSet::new(); node.log_dirs.directories.len()];
    while node.log_dirs.deletions.go_on_after(LOOK_EVERY) {
        for (directory, noted) in node.log_dirs.directories.iter().zip(&mut noted) {
            note_damaged(node, directory, noted);
        }
        for directory in online() {
            if !Walk::due(node, directory).is_none_or(|mut walk| walk.round()) {
                return;
            }
        }
    }
}

fn rate(node: &Node) -> u64 {
    u64::try_from(node.cluster.config.load().long("log.scrub.bytes.per.second")).unwrap_or(0)
}

/// Damage that is not repaired yet is looked for again by the next start: what is known of it goes with the process.
fn note_damaged(node: &Node, directory: &Directory, noted: &mut BTreeSet<String>) {
    let damaged = damaged_in(node, directory);
    if !directory.is_online() || damaged == *noted {
        return;
    }
    let begun = read_progress(directory).unwrap_or_else(|| Progress::begin(node.clock.wall()));
    write_progress(node, directory, &begun);
    *noted = damaged;
}

/// The directories of damaged partitions.
fn damaged_in(node: &Node, directory: &Directory) -> BTreeSet<String> {
    let damaged = node.log_dirs.impaired.all_damaged();
    if damaged.is_empty() {
        return BTreeSet::new();
    }
    let image = node.cluster.image.load();
    let name = |key: PartitionKey| {
        let topic = image.topics.by_id(key.topic)?.name.clone();
        Some(TopicPartition { topic, partition: key.partition }.to_string())
    };
    let is_here =
        |name: &String| directory.disk.stat(&directory.path.join(name)).is_ok_and(|stat| stat.is_some());
    damaged.into_iter().filter_map(name).filter(is_here).collect()
}

/// One walk through one directory.
struct Walk<'a> {
    node: &'a Node,
    directory: &'a Directory,
    /// Of a round through all of it: what the next start goes on with.
    progress: Option<Progress>,
    since: Instant,
    bytes: u64,
    looked_at: Instant,
}

impl<'a> Walk<'a> {
    fn new(node: &'a Node, directory: &'a Directory, progress: Option<Progress>) -> Self {
        let since = barnabas_clock::now();
        Self { node, directory, progress, since, bytes: 0, looked_at: since }
    }

    /// A round. `None`: none is due.
    fn due(node: &'a Node, directory: &'a Directory) -> Option<Self> {
        if rate(node) == 0 {
            return None;
        }
        let interval_ms = node.cluster.config.load().long("log.scrub.interval.ms");
        let progress = Progress::due(read_progress(directory), node.clock.wall(), interval_ms)?;
        Some(Self::new(node, directory, Some(progress)))
    }

    fn partitions(&self) -> Vec<PartitionDir> {
        let listed = self.directory.lock().partitions();
        let mut partitions = listed.unwrap_or_default();
        partitions.retain(|partition| partition.kind == DirKind::Current);
        partitions.sort_by(|one, other| one.name.cmp(&other.name));
        partitions
    }

    /// Checks everything. Returns whether to go on with the next directory.
    fn round(&mut self) -> bool {
        let begun = self.progress.clone().unwrap_or_default();
        for partition in &self.partitions() {
            let Some(after) = begun.after(&partition.name) else { continue };
            let dir = self.directory.path.join(&partition.name);
            let checked = segments(&*self.directory.disk, &dir).map_err(StorageError::from).and_then(|all| {
                let left = all.into_iter().filter(|segment| segment.base.get() > after);
                self.partition(partition, left, Offset::ZERO)
            });
            match checked {
                Ok(true) => {}
                Ok(false) => return false,
                Err(error) => name_damage(self.node, &error),
            }
        }
        self.note_progress(None);
        self.write_progress();
        true
    }

    /// Checks what was written to after the last process vouched for it, and what that one knew to be damaged. Returns
    /// whether to go on with the next directory.
    ///
    /// All of it is listed first. What this process has appended since it `began` is checked with the rest.
    fn changed(&mut self, replayed: &Map<PartitionKey, Offset>, began: TimestampMs) -> bool {
        let Some(since) = self.directory.vouched_at else { return true };
        let disk = &*self.directory.disk;
        let damaged = read_progress(self.directory).unwrap_or_default().damaged;
        let (mut changed, mut renamed, mut while_stopped) = (Vec::new(), Vec::new(), 0);
        let partitions = self.partitions();
        for partition in &partitions {
            let dir = self.directory.path.join(&partition.name);
            if disk.stat(&dir).is_ok_and(|stat| stat.is_some_and(|stat| stat.modified > since)) {
                renamed.extend(self.key_of(partition));
            }
            let found = self.changed_in(partition, since).and_then(|found| {
                while_stopped += usize::from(found.iter().any(|segment| segment.modified <= began));
                match damaged.contains(&partition.name) {
                    true => segments(disk, &dir),
                    false => Ok(found.into_iter().map(|changed| changed.segment).collect()),
                }
            });
            match found {
                Ok(segments) if segments.is_empty() => {}
                Ok(segments) => changed.push((partition, segments)),
                Err(error) => name_damage(self.node, &error.into()),
            }
            if !self.node.log_dirs.deletions.go_on_after(Duration::ZERO) {
                return false;
            }
        }
        renamed.extend(self.vanished(&partitions));
        self.open(renamed);
        if while_stopped > 0 && self.directory.lock().was_clean() {
            let path = self.directory.path.display();
            tracing::info!(
                partitions = while_stopped,
                "{path}: segments changed while the node was stopped; their checksums are compared"
            );
        }
        for (partition, segments) in changed {
            let synced = self.key_of(partition).and_then(|key| replayed.get(&key)).copied();
            match self.partition(partition, segments.into_iter(), synced.unwrap_or(Offset::ZERO)) {
                Ok(true) => {}
                Ok(false) => return false,
                Err(error) => name_damage(self.node, &error),
            }
        }
        true
    }

    fn changed_in(&self, partition: &PartitionDir, since: TimestampMs) -> Result<Vec<Changed>, DiskError> {
        if partition.topic_partition == metadata_partition() {
            return Ok(self.directory.changed_metadata.clone());
        }
        changed_segments(&*self.directory.disk, &self.directory.path.join(&partition.name), since)
    }

    /// Partitions of which the checkpoints know, and whose directories are gone.
    fn vanished(&self, partitions: &[PartitionDir]) -> Vec<PartitionKey> {
        let known: Vec<TopicPartition> = self.directory.lock().checkpointed().cloned().collect();
        let is_there = |name: &TopicPartition| {
            let name = name.to_string();
            partitions.binary_search_by(|partition| partition.name.as_str().cmp(&name)).is_ok()
        };
        let gone = known.iter().filter(|name| !is_there(name));
        gone.filter_map(|name| self.key_of_name(name)).collect()
    }

    /// Has partitions opened: a replica that cannot be opened is counted then. In a copied directory all files are new;
    /// its logs are opened on demand.
    fn open(&self, mut keys: Vec<PartitionKey>) {
        keys.sort_unstable();
        keys.dedup();
        if keys.len() > OPENED_MAX {
            return;
        }
        for key in keys {
            self.node.workers.mailboxes[key.owner(self.node.workers.count)].send_blocking(Command::Open(key));
        }
    }

    /// Checks some segments of a partition. Its log is known to be synced up to `synced`, if the checkpoints do not say
    /// more.
    fn partition(
        &mut self,
        partition: &PartitionDir,
        segments: impl Iterator<Item = Listed>,
        synced: Offset,
    ) -> Result<bool, StorageError> {
        let name = &partition.topic_partition;
        let (checkpointed, was_compacted) = {
            let log_dir = self.directory.lock();
            (log_dir.recovery_point(name), log_dir.cleaner_point(name).is_some())
        };
        let synced = synced.max(checkpointed);
        let has_no_holes = !was_compacted && self.is_never_compacted(name);
        let dir = self.directory.path.join(&partition.name);
        let epochs = KnownEpochs::read(&*self.directory.disk, &dir, checkpointed)?;
        for segment in segments {
            let walk = SegmentScrub::open(&self.directory.disk, &dir, segment, synced, has_no_holes)?;
            let Some(walk) = walk else { continue };
            if !self.segment(partition, walk.with_epochs(epochs.clone()))? {
                return Ok(false);
            }
            self.note_progress(Some((partition.name.clone(), segment.base.get())));
        }
        Ok(true)
    }

    fn segment(&mut self, partition: &PartitionDir, mut walk: SegmentScrub) -> Result<bool, StorageError> {
        loop {
            let (read, ended) = match walk.step(PIECE_BYTES)? {
                Scrubbed::Sound(read) => (read, false),
                Scrubbed::End(read) => (read, true),
                Scrubbed::Damage(read, error) => {
                    match self.key_of(partition) {
                        // First the log is checked again as it is read: what is named is served no more.
                        Some(key) => self.tell_owner(key, error),
                        None => name_damage(self.node, &error),
                    }
                    (read, false)
                }
            };
            self.node.workers.meter.bytes_scrubbed.add(read);
            self.bytes += read;
            if !self.keep_pace() {
                return Ok(false);
            }
            if ended {
                return Ok(true);
            }
        }
    }

    fn is_never_compacted(&self, name: &TopicPartition) -> bool {
        let image = self.node.cluster.image.load_full();
        let is_known = image.topics.by_name(&name.topic).is_some();
        is_known && !topic_settings::log_config(self.node, &image, &name.topic).cleanup.compact
    }

    /// Its log is opened first: where it cannot be, a line says so.
    fn tell_owner(&self, key: PartitionKey, damage: StorageError) {
        self.node.workers.mailboxes[key.owner(self.node.workers.count)].send_blocking(Command::Open(key));
        tell_damaged(self.node, key, damage);
    }

    fn key_of(&self, partition: &PartitionDir) -> Option<PartitionKey> {
        self.key_of_name(&partition.topic_partition)
    }

    fn key_of_name(&self, name: &TopicPartition) -> Option<PartitionKey> {
        let topic = self.node.cluster.image.load().topics.id_of(&name.topic)?;
        Some(PartitionKey { topic, partition: name.partition })
    }

    /// Sleeps as long as the rate asks for. Whether to go on.
    fn keep_pace(&mut self) -> bool {
        if barnabas_clock::since(self.looked_at) >= LOOK_EVERY * 10 {
            self.looked_at = barnabas_clock::now();
            self.write_progress();
        }
        loop {
            let rate = rate(self.node);
            let owed = Duration::from_secs_f64(self.bytes as f64 / rate.max(1) as f64);
            let wait = owed.saturating_sub(barnabas_clock::since(self.since));
            if !self.directory.is_online() || !self.node.log_dirs.deletions.go_on_after(wait.min(LOOK_EVERY))
            {
                self.write_progress();
                return false;
            }
            if wait <= LOOK_EVERY && rate > 0 {
                return true;
            }
        }
    }

    fn note_progress(&mut self, at: Option<(String, i64)>) {
        if let Some(progress) = &mut self.progress {
            progress.at = at;
        }
    }

    fn write_progress(&self) {
        if let Some(progress) = &self.progress {
            write_progress(self.node, self.directory, progress);
        }
    }
}

/// Writes how far a round has come, and what is known to be damaged.
fn write_progress(node: &Node, directory: &Directory, progress: &Progress) {
    let mut progress = progress.clone();
    progress.damaged = damaged_in(node, directory);
    let file = directory.disk.open(&directory.path.join(PROGRESS), OpenMode::Truncate);
    let written = file.and_then(|file| file.write_at(0, &[progress.render().as_bytes()]));
    if let Err(error) = written {
        tracing::debug!(%error, "the scrub's progress is not kept");
    }
}

fn read_progress(directory: &Directory) -> Option<Progress> {
    let file = directory.disk.open(&directory.path.join(PROGRESS), OpenMode::Read).ok()?;
    let bytes = file.read_bytes(0, usize::try_from(file.len().ok()?.min(PROGRESS_BYTES_MAX)).ok()?).ok()?;
    Progress::parse(std::str::from_utf8(&bytes).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_new_once_until_it_is_repaired() {
        let damages = crate::node::log_dirs::damages::Damages::default();
        let (file, other) = (Path::new("/a/t-0/b"), Path::new("/a/t-1/b"));
        assert!(damages.note(file, 7) && !damages.note(file, 7) && damages.note(file, 8));
        assert!(damages.note(other, 7));
        damages.repaired(Path::new("/a/t-0"));
        assert!(damages.note(file, 7) && damages.note(file, 8) && !damages.note(other, 7));
    }
}
