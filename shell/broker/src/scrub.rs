//! Looks through cold segments for bytes that have changed by themselves, on one thread of low priority; and what is known to be
//! damaged.
//!
//! Every segment of every directory, the newest up to its recovery point, is read once in `log.scrub.interval.ms` and each batch's checksum compared, at most
//! `log.scrub.bytes.per.second`. Reads for consumers check what they serve too (core/storage/src/log/sound.rs): the scrub finds
//! what nobody reads, while a copy may still exist elsewhere. Progress is kept in `barnabas-scrub` in the directory, written
//! without a sync: an old one costs a second look.
//!
//! Always true:
//! 1. nothing is changed, cut or deleted here, whatever is found
//! 2. a damaged place is named once at ERROR, by file, byte and offset, whoever finds it; and counted
//! 3. a partition in which damage was found checks again what it reads, and heals itself from another replica
//!    (partition_worker/repair.rs)

use crate::directories::Directory;
use crate::mailbox::{Command, PartitionKey};
use crate::node::Node;
use crate::topic_settings;
use barnabas_base::{Offset, TopicPartition};
use barnabas_storage::scrub::{Scrubbed, SegmentScrub, segments};
use barnabas_storage::{DirKind, OpenMode, PartitionDir, StorageError};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Checked between two looks at the clock.
const PIECE_BYTES: u64 = 256 << 10;
/// A change of the settings is noticed after this long.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const PROGRESS: &str = "barnabas-scrub";

/// Names `error` at ERROR, a damaged place only once, and counts those.
pub fn name_damage(node: &Node, error: &StorageError) {
    match error {
        StorageError::Damaged { file, position, .. } => {
            if node.log_dirs.damages.note(file, *position) {
                node.workers.meter.damage_found.one();
                tracing::error!(%error, "corruption found: the corrupt range is not served, the records \
                    before and after it are");
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

/// # Errors
/// The system gives no thread.
pub fn start(node: Arc<Node>) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("scrub".to_owned()).spawn(move || run(&node))
}

fn run(node: &Node) {
    if let Err(error) = rustix::process::setpriority_process(None, 15) {
        tracing::debug!(%error, "the scrub keeps its priority");
    }
    while node.log_dirs.deletions.go_on_after(LOOK_EVERY) {
        for directory in node.log_dirs.directories.iter().filter(|directory| directory.is_online()) {
            if !Round::of(node, directory).is_none_or(|mut round| round.run()) {
                return;
            }
        }
    }
}

fn rate(node: &Node) -> u64 {
    u64::try_from(node.cluster.config.load().long("log.scrub.bytes.per.second")).unwrap_or(0)
}

/// How far the look through a directory has come.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Progress {
    begun_ms: i64,
    /// Everything up to this partition's segment is done. `None`: all is done.
    at: Option<(String, i64)>,
}

impl Progress {
    fn render(&self) -> String {
        let at = self.at.as_ref().map(|(name, base)| format!("{name} {base}\n")).unwrap_or_default();
        format!("0\n{}\n{at}", self.begun_ms)
    }

    /// Whatever cannot be read is as if there were none.
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let begun_ms = (lines.next()? == "0").then(|| lines.next()?.parse().ok()).flatten()?;
        let at = lines.next().and_then(|line| {
            let (name, base) = line.split_once(' ')?;
            Some((name.to_owned(), base.parse().ok()?))
        });
        Some(Self { begun_ms, at })
    }
}

/// One look through one directory.
struct Round<'a> {
    node: &'a Node,
    directory: &'a Directory,
    progress: Progress,
    since: Instant,
    bytes: u64,
    looked_at: Instant,
}

impl<'a> Round<'a> {
    /// `None`: nothing is due.
    fn of(node: &'a Node, directory: &'a Directory) -> Option<Self> {
        if rate(node) == 0 {
            return None;
        }
        let now = node.clock.wall();
        let interval_ms = node.cluster.config.load().long("log.scrub.interval.ms");
        let read = read_progress(directory);
        let progress = match read {
            // A clock that was put back ends no pause.
            Some(done) if done.at.is_none() && (0..interval_ms).contains(&(now.0 - done.begun_ms)) => {
                return None;
            }
            Some(begun) if begun.at.is_some() => begun,
            _ => Progress { begun_ms: now.0, at: Some((String::new(), -1)) },
        };
        let since = barnabas_clock::now();
        Some(Self { node, directory, progress, since, bytes: 0, looked_at: since })
    }

    /// Whether to go on with the next directory.
    fn run(&mut self) -> bool {
        let listed = self.directory.lock().partitions();
        let mut partitions = listed.unwrap_or_default();
        partitions.retain(|partition| partition.kind == DirKind::Current);
        partitions.sort_by(|one, other| one.name.cmp(&other.name));
        let from = self.progress.at.clone().unwrap_or_default();
        for partition in partitions.iter().filter(|partition| partition.name >= from.0) {
            let after = if partition.name == from.0 { from.1 } else { -1 };
            match self.partition(partition, after) {
                Ok(true) => {}
                Ok(false) => return false,
                Err(error) => name_damage(self.node, &error),
            }
        }
        self.progress.at = None;
        self.write_progress();
        true
    }

    fn partition(&mut self, partition: &PartitionDir, after: i64) -> Result<bool, StorageError> {
        let dir = self.directory.path.join(&partition.name);
        let disk = self.directory.disk.clone();
        let name = &partition.topic_partition;
        let (synced, was_compacted) = {
            let log_dir = self.directory.lock();
            (log_dir.recovery_point(name), log_dir.cleaner_point(name).is_some())
        };
        let has_no_holes = !was_compacted && self.is_never_compacted(name);
        for segment in segments(&*disk, &dir)? {
            if segment.base.get() <= after {
                continue;
            }
            let Some(mut walk) = SegmentScrub::open(&disk, &dir, segment, synced, has_no_holes)? else {
                continue;
            };
            loop {
                let (read, ended) = match walk.step(PIECE_BYTES)? {
                    Scrubbed::Sound(read) => (read, false),
                    Scrubbed::End(read) => (read, true),
                    Scrubbed::Damage(read, error) => {
                        // First, so that what is named is served no more.
                        if let StorageError::Damaged { offset, .. } = error {
                            self.tell_owner(partition, offset);
                        }
                        name_damage(self.node, &error);
                        (read, false)
                    }
                };
                self.node.workers.meter.bytes_scrubbed.add(read);
                self.bytes += read;
                if !self.keep_pace() {
                    return Ok(false);
                }
                if ended {
                    break;
                }
            }
            self.progress.at = Some((partition.name.clone(), segment.base.get()));
        }
        Ok(true)
    }

    fn is_never_compacted(&self, name: &TopicPartition) -> bool {
        let image = self.node.cluster.image.load_full();
        let is_known = image.topics.by_name(&name.topic).is_some();
        is_known && !topic_settings::log_config(self.node, &image, &name.topic).cleanup.compact
    }

    /// What readers found sound before may be what has changed.
    fn tell_owner(&self, partition: &PartitionDir, from: Offset) {
        let name = &partition.topic_partition;
        if let Some(topic) = self.node.cluster.image.load().topics.id_of(&name.topic) {
            let key = PartitionKey { topic, partition: name.partition };
            self.node.workers.mailboxes[key.owner(self.node.workers.count)]
                .send_blocking(Command::Damaged(key, from));
        }
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

    fn write_progress(&self) {
        let path = self.directory.path.join(PROGRESS);
        let file = self.directory.disk.open(&path, OpenMode::Truncate);
        let written = file.and_then(|file| file.write_at(0, &[self.progress.render().as_bytes()]));
        if let Err(error) = written {
            tracing::debug!(%error, "the scrub's progress is not kept");
        }
    }
}

fn read_progress(directory: &Directory) -> Option<Progress> {
    let file = directory.disk.open(&directory.path.join(PROGRESS), OpenMode::Read).ok()?;
    let bytes = file.read_bytes(0, usize::try_from(file.len().ok()?.min(4096)).ok()?).ok()?;
    Progress::parse(std::str::from_utf8(&bytes).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_read_back_and_nonsense_is_none() {
        let at = Some(("some topic-7".replace(' ', "."), 12_345));
        for progress in [Progress { begun_ms: 99, at }, Progress { begun_ms: 5, at: None }] {
            assert_eq!(Progress::parse(&progress.render()), Some(progress));
        }
        for nonsense in ["", "1\n5\n", "0\n", "0\nx\n", "\0\0\0"] {
            assert_eq!(Progress::parse(nonsense), None, "{nonsense:?}");
        }
    }

    #[test]
    fn a_place_is_new_once() {
        let damages = crate::node::log_dirs::damages::Damages::default();
        let file = std::path::Path::new("/a/b");
        assert!(damages.note(file, 7) && !damages.note(file, 7) && damages.note(file, 8));
    }
}
