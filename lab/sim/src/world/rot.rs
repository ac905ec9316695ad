//! What befalls the files of a broker that is down: checkpoints, indexes and snapshots are changed or lost, segments
//! are lost or cut short, a journal is another broker's. Only segments that the checkpoints call synced are chosen: a
//! start takes other damage for a torn tail, as Kafka's does.

use std::path::{Path, PathBuf};

use barnabas_base::PartitionIndex;
use barnabas_partition::ReplicaKey;
use barnabas_storage::{Disk, MemoryDisk};

use super::World;
use crate::counts::Fault;

const CHECKPOINTS: [&str; 3] =
    ["recovery-point-offset-checkpoint", "replication-offset-checkpoint", "barnabas-checkpoints"];
const ROOT: &str = "/data";
const JOURNAL_PREFIX: &str = "barnabas-journal";

impl World {
    /// `may_harm`: segments may be lost, too.
    pub(super) fn rot(&mut self, at: usize, may_harm: bool) {
        if self.brokers[at].process.is_some() {
            return;
        }
        match self.random.below(if may_harm { 8 } else { 4 }) {
            0 => self.rot_checkpoint(at),
            1 | 2 => self.rot_small_file(at, true),
            3 => self.rot_small_file(at, false),
            7 => self.rot_journal(at),
            what => self.rot_segment(at, what == 4),
        }
    }

    fn rot_checkpoint(&mut self, at: usize) {
        let path = Path::new(ROOT).join(CHECKPOINTS[self.random.below(CHECKPOINTS.len())]);
        self.change(at, &path);
    }

    /// A byte is changed, or the end is gone.
    fn change(&mut self, at: usize, path: &Path) {
        let Self { random, brokers, day, .. } = self;
        let disk = &brokers[at].disk;
        let len = disk.contents(path).map_or(0, |bytes| bytes.len());
        if len == 0 {
            return;
        }
        day.faults.note(Fault::RottenFile);
        let (byte, is_cut) = (random.below(len), random.one_in(3));
        disk.corrupt(path, |bytes| match is_cut {
            true => bytes.truncate(byte),
            false => bytes[byte] ^= 0x40,
        });
    }

    /// An index, or a snapshot of producers.
    fn rot_small_file(&mut self, at: usize, removes: bool) {
        let files = files_of(&self.brokers[at].disk, &["index", "timeindex", "txnindex", "snapshot"]);
        if files.is_empty() {
            return;
        }
        let path = &files[self.random.below(files.len())];
        if !removes {
            return self.change(at, path);
        }
        let disk = &self.brokers[at].disk;
        if disk.remove_file(path).is_ok() {
            let _ = path.parent().map(|dir| disk.sync_dir(dir));
            self.day.faults.note(Fault::RottenFile);
        }
    }

    /// A file of the journal is cut short, or is another broker's: its directory is refused, and the disk replaced.
    fn rot_journal(&mut self, at: usize) {
        let journals = |disk: &MemoryDisk| {
            let listed = disk.list(Path::new(ROOT)).unwrap_or_default().into_iter();
            let slots = listed.filter(|entry| entry.name.starts_with(JOURNAL_PREFIX));
            slots.map(|entry| Path::new(ROOT).join(entry.name)).collect::<Vec<_>>()
        };
        let files = journals(&self.brokers[at].disk);
        let other = self.random.below(self.brokers.len());
        let others = journals(&self.brokers[other].disk);
        if files.is_empty() || others.is_empty() {
            return;
        }
        let path = &files[self.random.below(files.len())];
        let foreign = self.brokers[other].disk.contents(&others[self.random.below(others.len())]);
        let is_cut = other == at || self.random.one_in(2);
        self.day.faults.note(Fault::RottenFile);
        let broker = &mut self.brokers[at];
        broker.has_rotten_journal = true;
        broker.disk.corrupt(path, |bytes| match is_cut {
            true => bytes.truncate(bytes.len() / 2),
            false => *bytes = foreign.unwrap_or_default(),
        });
    }

    fn rot_segment(&mut self, at: usize, removes: bool) {
        let disk = self.brokers[at].disk.clone();
        let segments = files_of(&disk, &["log"]);
        let is_synced = |path: &&PathBuf| self.key_if_synced(&disk, &segments, path).is_some();
        let synced: Vec<&PathBuf> = segments.iter().filter(is_synced).collect();
        if synced.is_empty() {
            return;
        }
        let path = synced[self.random.below(synced.len())].clone();
        let Some(key) = self.key_if_synced(&disk, &segments, &path) else { return };
        self.brokers[at].damaged.insert(key);
        if !removes {
            let len = disk.contents(&path).map_or(1, |bytes| bytes.len().max(1));
            let left = self.random.below(len);
            self.day.faults.note(Fault::RottenFile);
            return disk.corrupt(&path, |bytes| bytes.truncate(left));
        }
        if disk.remove_file(&path).is_ok() {
            let _ = path.parent().map(|dir| disk.sync_dir(dir));
            self.day.faults.note(Fault::RottenFile);
        }
    }

    /// Whose segment it is, if all of it is synced and the directory says so.
    fn key_if_synced(&self, disk: &MemoryDisk, segments: &[PathBuf], path: &Path) -> Option<ReplicaKey> {
        let dir = path.parent()?;
        let base = |path: &Path| path.file_stem()?.to_str()?.parse::<i64>().ok();
        let own = base(path)?;
        let behind =
            segments.iter().filter(|other| other.parent() == Some(dir)).filter_map(|other| base(other));
        let end = behind.filter(|other| *other > own).min()?;
        let (topic, partition) = dir.file_name()?.to_str()?.rsplit_once('-')?;
        let text = disk.contents(&Path::new(ROOT).join(CHECKPOINTS[0]))?;
        let text = String::from_utf8(text).ok()?;
        let prefix = format!("{topic} {partition} ");
        let synced: i64 = text.lines().find_map(|line| line.strip_prefix(&prefix)?.parse().ok())?;
        let key = ReplicaKey {
            topic: self.host.image().topics.id_of(topic)?,
            partition: PartitionIndex(partition.parse().ok()?),
        };
        (end <= synced).then_some(key)
    }
}

/// Files of that kind in the directories of partitions.
fn files_of(disk: &MemoryDisk, extensions: &[&str]) -> Vec<PathBuf> {
    let root = Path::new(ROOT);
    let mut found = Vec::new();
    for dir in disk.list(root).unwrap_or_default().into_iter().filter(|entry| entry.is_dir) {
        let is_current = !dir.name.ends_with("-delete") && !dir.name.ends_with("-future");
        let path = root.join(&dir.name);
        for entry in disk.list(&path).unwrap_or_default().into_iter().filter(|_| is_current) {
            if entry.name.rsplit_once('.').is_some_and(|(_, extension)| extensions.contains(&extension)) {
                found.push(path.join(entry.name));
            }
        }
    }
    found.sort();
    found
}
