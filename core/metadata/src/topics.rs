//! Topics and their partitions, small enough for millions of them on one node.
//!
//! A partition is 24 bytes: leader, leader epoch, partition epoch, and a pointer to its *placement*
//! (replicas, directories, ISR), which partitions with the same placement share. Partitions are stored in
//! chunks of [`CHUNK_PARTITIONS`]; a change copies one chunk and the topic's list of chunks, whatever the
//! number of partitions. A topic with one partition stores it without a chunk.
//!
//! Always true:
//! 1. `Topics::by_name` and `Topics::by_id` hold the same topics
//! 2. two placements that are equal and came through the same [`Topics`] are one allocation (but for hash collisions)

use std::hash::BuildHasher;
use std::sync::Arc;

use barnabas_base::{
    BrokerId, DirectoryId, HashState, LeaderEpoch, PartitionEpoch, PartitionIndex, Text, TopicId,
};
use imbl::OrdMap;

const CHUNK_PARTITIONS: usize = 256;

/// Partitions of one topic. A higher number in a record is damage, not a topic: it would cost memory for all below it.
pub const PARTITIONS_PER_TOPIC_MAX: i32 = 10_000_000;

/// Whether the leader was elected cleanly (KIP-704).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum LeaderRecoveryState {
    #[default]
    Recovered,
    Recovering,
}

impl LeaderRecoveryState {
    /// The number in records and requests: 0 recovered, 1 recovering.
    pub const fn code(self) -> i8 {
        match self {
            Self::Recovered => 0,
            Self::Recovering => 1,
        }
    }

    pub const fn from_code(code: i8) -> Option<Self> {
        match code {
            0 => Some(Self::Recovered),
            1 => Some(Self::Recovering),
            _ => None,
        }
    }
}

/// The replicas of a partition, their directories, and the ISR: shared by many partitions.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Placement {
    /// In order of preference: the first is the preferred leader.
    pub replicas: Vec<BrokerId>,
    /// One for each replica, in the order of `replicas`.
    pub directories: Vec<DirectoryId>,
    pub isr: Vec<BrokerId>,
    /// Eligible leader replicas (KIP-966): out of sync by membership, not by data.
    pub elr: Vec<BrokerId>,
    pub last_known_elr: Vec<BrokerId>,
    pub adding: Vec<BrokerId>,
    pub removing: Vec<BrokerId>,
    pub recovery: LeaderRecoveryState,
}

/// The state of one partition. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// [`BrokerId::NONE`]: no leader.
    pub leader: BrokerId,
    pub leader_epoch: LeaderEpoch,
    pub partition_epoch: PartitionEpoch,
    pub placement: Arc<Placement>,
}

impl Partition {
    pub fn replicas(&self) -> &[BrokerId] {
        &self.placement.replicas
    }

    pub fn isr(&self) -> &[BrokerId] {
        &self.placement.isr
    }

    pub fn elr(&self) -> &[BrokerId] {
        &self.placement.elr
    }

    pub fn preferred_leader(&self) -> BrokerId {
        self.placement.replicas.first().copied().unwrap_or(BrokerId::NONE)
    }

    pub fn has_replica(&self, broker: BrokerId) -> bool {
        self.placement.replicas.contains(&broker)
    }

    /// The directory in which `broker` holds this partition.
    pub fn directory(&self, broker: BrokerId) -> Option<DirectoryId> {
        let position = self.placement.replicas.iter().position(|&replica| replica == broker)?;
        self.placement.directories.get(position).copied()
    }

    pub fn is_reassigning(&self) -> bool {
        !self.placement.adding.is_empty() || !self.placement.removing.is_empty()
    }
}

type Chunk = Vec<Option<Partition>>;

/// A topic's partitions. Most topics of a large cluster have one: it lies in the topic itself.
#[derive(Debug, Clone)]
enum Rows {
    One(Partition),
    /// Empty for a topic without partitions.
    Many(Vec<Arc<Chunk>>),
}

/// One topic.
#[derive(Debug, Clone)]
pub struct Topic {
    pub name: Text,
    pub id: TopicId,
    partitions: u32,
    rows: Rows,
}

impl Topic {
    pub(crate) fn new(name: Text, id: TopicId) -> Self {
        Self { name, id, partitions: 0, rows: Rows::Many(Vec::new()) }
    }

    pub fn partition_count(&self) -> usize {
        self.partitions as usize
    }

    pub fn partition(&self, index: PartitionIndex) -> Option<&Partition> {
        let index = usize::try_from(index.get()).ok()?;
        match &self.rows {
            Rows::One(partition) => (index == 0).then_some(partition),
            Rows::Many(chunks) => {
                chunks.get(index / CHUNK_PARTITIONS)?.get(index % CHUNK_PARTITIONS)?.as_ref()
            }
        }
    }

    /// In the order of their numbers.
    pub fn partitions(&self) -> impl Iterator<Item = (PartitionIndex, &Partition)> {
        self.partitions_from(PartitionIndex(0))
    }

    /// In the order of their numbers, from `first` on. Gets there without passing those before it.
    pub fn partitions_from(
        &self,
        first: PartitionIndex,
    ) -> impl Iterator<Item = (PartitionIndex, &Partition)> {
        let first = usize::try_from(first.get()).unwrap_or(0);
        let (one, chunks) = match &self.rows {
            Rows::One(partition) => (Some((PartitionIndex(0), partition)), [].as_slice()),
            Rows::Many(chunks) => (None, chunks.as_slice()),
        };
        let many = chunks.iter().enumerate().skip(first / CHUNK_PARTITIONS).flat_map(move |(at, chunk)| {
            let before = first.saturating_sub(at * CHUNK_PARTITIONS);
            chunk.iter().enumerate().skip(before).filter_map(move |(offset, partition)| {
                let index = PartitionIndex((at * CHUNK_PARTITIONS + offset) as i32);
                partition.as_ref().map(|partition| (index, partition))
            })
        });
        one.into_iter().filter(move |_| first == 0).chain(many)
    }

    /// `index` is not negative: the caller has checked the record.
    pub(crate) fn set(&mut self, index: PartitionIndex, partition: Partition) {
        let index = index.get() as usize;
        if index == 0
            && self.partitions <= 1
            && self.partition(PartitionIndex(0)).is_some() == (self.partitions == 1)
        {
            self.partitions = 1;
            self.rows = Rows::One(partition);
            return;
        }
        let chunks = self.chunks();
        let at = index / CHUNK_PARTITIONS;
        while chunks.len() <= at {
            chunks.push(Arc::new(Vec::new()));
        }
        let chunk = Arc::make_mut(&mut chunks[at]);
        let offset = index % CHUNK_PARTITIONS;
        if chunk.len() <= offset {
            // Exact for the first partition of a chunk, by doubling after that.
            chunk.reserve_exact((offset + 1 - chunk.len()).max(chunk.len()));
            chunk.resize(offset + 1, None);
        }
        if chunk[offset].replace(partition).is_none() {
            self.partitions += 1;
        }
    }

    /// The chunks. The one partition that was stored in the topic itself moves into the first of
    /// them.
    fn chunks(&mut self) -> &mut Vec<Arc<Chunk>> {
        if let Rows::One(partition) = &self.rows {
            self.rows = Rows::Many(vec![Arc::new(vec![Some(partition.clone())])]);
        }
        match &mut self.rows {
            Rows::Many(chunks) => chunks,
            Rows::One(_) => unreachable!("invariant: it was just made many"),
        }
    }
}

impl PartialEq for Topic {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
            && self.id == other.id
            && self.partitions == other.partitions
            && self.partitions().eq(other.partitions())
    }
}

/// Every topic of the cluster. A clone costs nothing; a change costs what changes.
#[derive(Debug, Clone, Default)]
pub struct Topics {
    by_name: OrdMap<Text, TopicId>,
    by_id: OrdMap<TopicId, Arc<Topic>>,
    placements: OrdMap<u64, Arc<Placement>>,
    partitions: usize,
}

impl Topics {
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// All partitions of all topics.
    pub fn partition_count(&self) -> usize {
        self.partitions
    }

    pub fn by_name(&self, name: &str) -> Option<&Arc<Topic>> {
        self.by_id.get(self.by_name.get(name)?)
    }

    pub fn by_id(&self, id: TopicId) -> Option<&Arc<Topic>> {
        self.by_id.get(&id)
    }

    pub fn id_of(&self, name: &str) -> Option<TopicId> {
        self.by_name.get(name).copied()
    }

    pub fn partition(&self, name: &str, index: PartitionIndex) -> Option<&Partition> {
        self.by_name(name)?.partition(index)
    }

    /// In the order of names.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Topic>> {
        self.by_name.values().filter_map(|id| self.by_id.get(id))
    }

    /// In the order of ids: without a look-up for each, which is most of the cost of [`Topics::iter`] when there are
    /// millions.
    pub fn by_ids(&self) -> impl Iterator<Item = &Arc<Topic>> {
        self.by_id.values()
    }

    /// In the order of ids, from the one after `id` on.
    pub fn by_ids_after(&self, id: TopicId) -> impl Iterator<Item = &Arc<Topic>> {
        let after = (std::ops::Bound::Excluded(id), std::ops::Bound::Unbounded);
        self.by_id.range::<_, TopicId>(after).map(|(_, topic)| topic)
    }

    /// In the order of names, from `name` on (itself included).
    pub fn iter_from<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a Arc<Topic>> + use<'a> {
        self.by_name
            .range::<_, str>((std::ops::Bound::Included(name), std::ops::Bound::Unbounded))
            .filter_map(|(_, id)| self.by_id.get(id))
    }

    /// A topic whose name differs from `name` in nothing but '.' for '_': the two would share their metrics' names.
    ///
    /// Walks the names as a tree: at each such character it looks down the branches that exist, so that it costs a few
    /// look-ups however many topics there are.
    pub fn colliding(&self, name: &str) -> Option<&Text> {
        let mut prefixes = vec![String::with_capacity(name.len())];
        let mut rest = name;
        while let Some(at) = rest.find(['.', '_']) {
            let (plain, after) = rest.split_at(at);
            let with = |(prefix, separator): (&String, char)| {
                let next = format!("{prefix}{plain}{separator}");
                self.any_name_with(&next).then_some(next)
            };
            let both = prefixes.iter().flat_map(|prefix| [(prefix, '.'), (prefix, '_')]);
            prefixes = both.filter_map(with).collect();
            rest = &after[1..];
        }
        let whole = prefixes.into_iter().map(|prefix| prefix + rest).filter(|other| other != name);
        whole.into_iter().find_map(|other| self.by_name.get_key_value(&*other).map(|(known, _)| known))
    }

    fn any_name_with(&self, prefix: &str) -> bool {
        let from = (std::ops::Bound::Included(prefix), std::ops::Bound::Unbounded);
        self.by_name.range::<_, str>(from).next().is_some_and(|(name, _)| name.starts_with(prefix))
    }

    /// How many different placements there are: what decides a partition's share of memory.
    pub fn placement_count(&self) -> usize {
        self.placements.len()
    }

    pub(crate) fn insert(&mut self, topic: Topic) {
        self.by_name.insert(topic.name.clone(), topic.id);
        self.partitions += topic.partition_count();
        self.by_id.insert(topic.id, Arc::new(topic));
    }

    /// Many at once: in each order once, so that neighbours come after one another. Returns one whose name or id was
    /// there already; the topics are of no use then.
    pub(crate) fn insert_all(&mut self, topics: Vec<Arc<Topic>>) -> Result<(), Arc<Topic>> {
        for topic in &topics {
            if self.by_name.insert(topic.name.clone(), topic.id).is_some() {
                return Err(topic.clone());
            }
            self.partitions += topic.partition_count();
        }
        let mut by_id: Vec<(TopicId, Arc<Topic>)> =
            topics.into_iter().map(|topic| (topic.id, topic)).collect();
        by_id.sort_unstable_by_key(|&(id, _)| id);
        for (id, topic) in by_id {
            if let Some(twice) = self.by_id.insert(id, topic) {
                return Err(twice);
            }
        }
        Ok(())
    }

    pub(crate) fn remove(&mut self, id: TopicId) -> Option<Arc<Topic>> {
        let topic = self.by_id.remove(&id)?;
        self.by_name.remove(&topic.name);
        self.partitions -= topic.partition_count();
        Some(topic)
    }

    /// Puts a partition in its place. Returns whether the topic is known.
    pub(crate) fn set_partition(&mut self, id: TopicId, index: PartitionIndex, partition: Partition) -> bool {
        let Some(topic) = self.by_id.get_mut(&id) else { return false };
        let topic = Arc::make_mut(topic);
        let before = topic.partitions;
        topic.set(index, partition);
        self.partitions += (topic.partitions - before) as usize;
        true
    }

    /// The one allocation for placements that are equal.
    pub(crate) fn share(&mut self, placement: Placement) -> Arc<Placement> {
        let hash = HashState::default().hash_one(&placement);
        if let Some(known) = self.placements.get(&hash) {
            // Two placements with one hash: the later one goes unshared, which costs bytes and nothing else.
            return if **known == placement { known.clone() } else { Arc::new(placement) };
        }
        let placement = Arc::new(placement);
        self.placements.insert(hash, placement.clone());
        placement
    }

    /// Forgets placements that no partition has any more. Called now and then: see `Delta`.
    pub(crate) fn forget_unused_placements(&mut self) {
        let unused =
            |(&hash, placement): (&u64, &Arc<Placement>)| (Arc::strong_count(placement) == 1).then_some(hash);
        let unused: Vec<u64> = self.placements.iter().filter_map(unused).collect();
        for hash in unused {
            self.placements.remove(&hash);
        }
    }
}

impl PartialEq for Topics {
    fn eq(&self, other: &Self) -> bool {
        self.by_name == other.by_name && self.by_id == other.by_id
    }
}

#[cfg(test)]
mod tests;
