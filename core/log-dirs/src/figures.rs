//! The figures that placement goes by: how free each device is, how much is written to it, how many partitions lie
//! there.
//!
//! Counted as the image changes; measured once a second by shell/broker/src/log_dirs/directories/figures.rs.
//! The rule itself is core/storage/src/log_dir/placement.rs.

use barnabas_base::{BrokerId, DirectoryId, Map};
use barnabas_metadata::{Changes, Image};
use barnabas_partition::PartitionKey;
use barnabas_storage::placement::{self, Candidate};

/// A measurement counts for a sixteenth of the average: what is written shows within about a quarter of a minute.
const SMOOTHING: u64 = 16;

/// What one directory shows at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub struct Measured {
    /// Its device and the bytes that are free there. `None`: not known; the figures before go on.
    pub space: Option<(u64, u64)>,
    /// Bytes written since the process started.
    pub written_bytes: u64,
}

/// See the file's header. Directories are named by their place in the list.
#[derive(Debug, Default)]
pub struct PlacementFigures {
    directories: Vec<Counted>,
    /// Partitions that were placed in this life of the node, and whose place the metadata log does not know yet.
    /// Nothing was acknowledged in them by an earlier life, or they were found nowhere while every directory could be
    /// looked at.
    placed: Map<PartitionKey, usize>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Counted {
    device: u64,
    free_bytes: u64,
    /// By the image.
    assigned: u64,
    /// Of [`PlacementFigures::placed`].
    placed: u64,
    written_per_s: u64,
    unmeasured: u64,
    written_before: u64,
}

impl PlacementFigures {
    pub fn new(directories: usize) -> Self {
        Self { directories: vec![Counted::default(); directories], placed: Map::default() }
    }

    /// Called once a second, with all directories in their order.
    pub fn measure(&mut self, measured: impl IntoIterator<Item = Measured>) {
        for (counted, measured) in self.directories.iter_mut().zip(measured) {
            if let Some((device, free_bytes)) = measured.space {
                (counted.device, counted.free_bytes) = (device, free_bytes);
            }
            let since = measured.written_bytes.saturating_sub(counted.written_before);
            counted.written_before = measured.written_bytes;
            counted.written_per_s =
                counted.written_per_s - counted.written_per_s.div_ceil(SMOOTHING) + since / SMOOTHING;
            counted.unmeasured -= counted.unmeasured.div_ceil(SMOOTHING);
        }
    }

    /// Where a partition was placed that the image knows no place of.
    pub fn placed(&self, key: PartitionKey) -> Option<usize> {
        self.placed.get(&key).copied()
    }

    /// Chooses among the directories that `may_be_chosen` and remembers the choice until the image shows it.
    pub fn place(&mut self, key: PartitionKey, may_be_chosen: impl Fn(usize) -> bool) -> Option<usize> {
        if let Some(&placed) = self.placed.get(&key) {
            return Some(placed);
        }
        let places: Vec<usize> = (0..self.directories.len()).filter(|&at| may_be_chosen(at)).collect();
        let candidates: Vec<Candidate> =
            places.iter().map(|&at| self.directories[at].as_candidate()).collect();
        let chosen = places[placement::choose(&candidates)?];
        self.note_placed(key, chosen);
        Some(chosen)
    }

    /// A partition that was never written to is to begin here, wherever the metadata log says that it does.
    pub fn prefer(&mut self, key: PartitionKey, directory: usize) {
        self.forget_placed(key);
        self.note_placed(key, directory);
    }

    /// Partitions that the metadata log is still to be told of.
    pub fn untold(&self) -> Vec<(PartitionKey, usize)> {
        self.placed.iter().map(|(&key, &directory)| (key, directory)).collect()
    }

    /// Follows the image that was just published: assigned partitions are counted there, and no longer as placed. A
    /// reader that finds a partition not placed and then looks at the image sees where it is assigned.
    pub fn follow(
        &mut self,
        before: &Image,
        image: &Image,
        changes: &Changes,
        broker: BrokerId,
        index_of: impl Fn(DirectoryId) -> Option<usize>,
    ) {
        if changes.everything {
            for counted in &mut self.directories {
                counted.assigned = 0;
            }
            for topic in image.topics.iter() {
                for (partition, row) in topic.partitions() {
                    let key = PartitionKey { topic: topic.id, partition };
                    self.note_assigned(key, row.directory(broker).and_then(&index_of));
                }
            }
            return;
        }
        for (&id, change) in &changes.topics {
            if let Some(topic) = before.topics.by_id(id) {
                let old = |partition| topic.partition(partition).and_then(|row| row.directory(broker));
                if change.deleted {
                    for (partition, row) in topic.partitions() {
                        self.forget_assigned(row.directory(broker).and_then(&index_of));
                        self.forget_placed(PartitionKey { topic: id, partition });
                    }
                } else {
                    for &partition in &change.partitions {
                        self.forget_assigned(old(partition).and_then(&index_of));
                    }
                }
            }
            let Some(topic) = image.topics.by_id(id) else { continue };
            for &partition in &change.partitions {
                let directory = topic.partition(partition).and_then(|row| row.directory(broker));
                self.note_assigned(PartitionKey { topic: id, partition }, directory.and_then(&index_of));
            }
        }
    }

    fn note_placed(&mut self, key: PartitionKey, directory: usize) {
        self.placed.insert(key, directory);
        self.directories[directory].placed += 1;
        self.directories[directory].unmeasured += 1;
    }

    fn forget_placed(&mut self, key: PartitionKey) {
        if let Some(directory) = self.placed.remove(&key) {
            let placed = &mut self.directories[directory].placed;
            *placed = placed.saturating_sub(1);
        }
    }

    fn note_assigned(&mut self, key: PartitionKey, directory: Option<usize>) {
        if let Some(directory) = directory {
            self.directories[directory].assigned += 1;
            // One that is to begin elsewhere waits until the metadata log says so.
            if self.placed.get(&key) == Some(&directory) {
                self.forget_placed(key);
            }
        }
    }

    fn forget_assigned(&mut self, directory: Option<usize>) {
        if let Some(directory) = directory {
            let assigned = &mut self.directories[directory].assigned;
            *assigned = assigned.saturating_sub(1);
        }
    }
}

impl Counted {
    fn as_candidate(&self) -> Candidate {
        Candidate {
            device: self.device,
            free_bytes: self.free_bytes,
            partitions: self.assigned + self.placed,
            written_per_s: self.written_per_s,
            unmeasured: self.unmeasured,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::{PartitionIndex, Uuid};

    fn key(partition: i32) -> PartitionKey {
        PartitionKey { topic: Uuid([1; 16]), partition: PartitionIndex(partition) }
    }

    fn figures() -> PlacementFigures {
        let mut figures = PlacementFigures::new(2);
        figures.measure(
            [(1, 1 << 40), (2, 1 << 40)].map(|space| Measured { space: Some(space), written_bytes: 0 }),
        );
        figures
    }

    #[test]
    fn choice_is_remembered_and_counts_against_its_directory() {
        let mut figures = figures();
        let first = figures.place(key(0), |_| true).expect("a place");
        assert_eq!(figures.place(key(0), |at| at != first), Some(first), "chosen already");
        assert_eq!(figures.place(key(1), |_| true), Some(1 - first));
        assert_eq!(figures.place(key(2), |_| false), None);
        let mut untold = figures.untold();
        untold.sort();
        assert_eq!(untold, [(key(0), first), (key(1), 1 - first)]);
    }

    #[test]
    fn preference_replaces_the_choice() {
        let mut figures = figures();
        let first = figures.place(key(0), |_| true).expect("a place");
        figures.prefer(key(0), 1 - first);
        assert_eq!(figures.placed(key(0)), Some(1 - first));
        let placed: Vec<u64> = figures.directories.iter().map(|counted| counted.placed).collect();
        assert_eq!(placed.iter().sum::<u64>(), 1, "counted once: {placed:?}");
    }

    #[test]
    fn rate_follows_what_is_written_and_unknown_space_keeps_the_last() {
        let mut figures = figures();
        for second in 1..=200 {
            figures.measure([Measured { space: None, written_bytes: second * 16_000 }, Measured::default()]);
        }
        let [busy, idle] = [0, 1].map(|at: usize| figures.directories[at]);
        assert!((14_000..=16_000).contains(&busy.written_per_s), "{}", busy.written_per_s);
        assert_eq!((busy.free_bytes, idle.written_per_s), (1 << 40, 0));
        for _ in 0..400 {
            figures.measure([Measured { space: None, written_bytes: 3_200_000 }, Measured::default()]);
        }
        assert_eq!(figures.directories[0].written_per_s, 0);
    }
}
