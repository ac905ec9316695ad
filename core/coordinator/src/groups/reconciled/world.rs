//! What a shard knows of topics: the metadata image, and a hash over each topic that a group reads.
//!
//! The hash is Kafka's to the bit, so that a group that moves from one of our brokers to one of Apache's, or back, is
//! not rebalanced for it.
//!
//! ```text
//! topic: XXH3_64( 0u8 | id | name, UTF-16 | its length in units i32 | partitions i32
//!                 | for each partition: its number i32
//!                     | for each of its racks, sorted: length i32, rack, UTF-16, length i32 )
//! group: XXH3_64( the topics' hashes, in the order of their names )          0 without topics; all little-endian
//! ```
//!
//! # Source
//! Kafka 4.4 `Utils.computeTopicHash`, `Utils.computeGroupHash`; hash4j 0.22 `HashStream64.putString`.

use barnabas_base::{DurationMs, Map, Text};
use barnabas_metadata::{Image, Topic};
use twox_hash::XxHash3_64;

/// A group's topics are looked at this often though nothing is known to have changed.
pub(crate) const METADATA_REFRESH: DurationMs = DurationMs(3_600_000);

#[derive(Debug)]
pub(crate) struct World {
    pub image: Image,
    /// The metadata offset at which the last topic was created.
    pub last_created_at: i64,
    hashes: Map<Text, i64>,
}

impl World {
    pub fn new(image: Image) -> Self {
        let last_created_at = image.provenance.end.get() - 1;
        Self { image, last_created_at, hashes: Map::default() }
    }

    /// The metadata offset that the image is at.
    pub fn version(&self) -> i64 {
        self.image.provenance.end.get() - 1
    }

    pub fn change(&mut self, image: Image, topics: Option<&[Text]>, has_new: bool) {
        self.image = image;
        match topics {
            Some(topics) => topics.iter().for_each(|topic| {
                self.hashes.remove(topic);
            }),
            None => self.hashes.clear(),
        }
        if has_new {
            self.last_created_at = self.version();
        }
    }

    /// The hash over all topics that there are of those that `each` shows, which is in the order of their names.
    pub fn hash_of_each(&mut self, each: impl FnOnce(&mut dyn FnMut(&Text))) -> i64 {
        let mut bytes = Vec::new();
        each(&mut |name| self.add_hash(name, &mut bytes));
        over(&bytes)
    }

    /// As [`World::hash_of_each`].
    pub fn hash_of<'a>(&mut self, names: impl Iterator<Item = &'a Text>) -> i64 {
        let mut bytes = Vec::new();
        names.for_each(|name| self.add_hash(name, &mut bytes));
        over(&bytes)
    }

    fn add_hash(&mut self, name: &Text, bytes: &mut Vec<u8>) {
        if let Some(hash) = self.hashes.get(name) {
            bytes.extend(hash.to_le_bytes());
        } else if let Some(topic) = self.image.topics.by_name(name) {
            let hash = topic_hash(topic, &self.image);
            self.hashes.insert(name.clone(), hash);
            bytes.extend(hash.to_le_bytes());
        }
    }
}

fn over(hashes: &[u8]) -> i64 {
    if hashes.is_empty() { 0 } else { XxHash3_64::oneshot(hashes) as i64 }
}

fn topic_hash(topic: &Topic, image: &Image) -> i64 {
    let mut bytes = vec![0];
    let (high, low) = topic.id.0.split_at(8);
    bytes.extend(high.iter().rev());
    bytes.extend(low.iter().rev());
    put_text(&mut bytes, &topic.name);
    bytes.extend((topic.partition_count() as i32).to_le_bytes());
    for (index, partition) in topic.partitions() {
        bytes.extend(index.get().to_le_bytes());
        let brokers = partition.replicas().iter().filter_map(|id| image.cluster.broker(*id));
        let mut racks: Vec<&Text> = brokers.filter_map(|broker| broker.rack.as_ref()).collect();
        racks.sort();
        for rack in racks {
            bytes.extend((rack.encode_utf16().count() as i32).to_le_bytes());
            put_text(&mut bytes, rack);
        }
    }
    XxHash3_64::oneshot(&bytes) as i64
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    let mut units = 0i32;
    for unit in text.encode_utf16() {
        bytes.extend(unit.to_le_bytes());
        units += 1;
    }
    bytes.extend(units.to_le_bytes());
}

#[cfg(test)]
mod tests;
