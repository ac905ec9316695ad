//! Batches that were refused because this node did not know their topic or partition, as its metadata was older than
//! the client's. What comes behind them must not become their producer's beginning once the topic is known.
//!
//! Kept by the node and not by a worker: without the topic's id no worker owns the partition. Costs one look at an
//! atomic while there are none, and then a producer's first batch in a partition takes the lock, no other.
//!
//! Source: core/partition/src/producers/refused.rs.

use barnabas_api::k00_produce::{TopicRef, Unknown};
use barnabas_base::{MonotonicMs, PartitionIndex, ProducerId};
use barnabas_metadata::Image;
use barnabas_partition::{BatchSequence, PartitionKey, RefusedBatches};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Longer names are no topic's.
const NAME_BYTES_MAX: usize = 249;

/// A partition as a Produce request names it. The name is a copy: the request's own holds on to its frame.
type Named = (TopicRef, PartitionIndex);

/// See the file's header.
#[derive(Debug, Default)]
pub struct UnknownTopics {
    count: AtomicUsize,
    refused: Mutex<RefusedBatches<Named>>,
}

impl UnknownTopics {
    /// A batch was refused.
    pub fn note(&self, unknown: &Unknown, batch: BatchSequence, now: MonotonicMs) {
        let topic = match &unknown.topic {
            TopicRef::Name(name) if name.len() > NAME_BYTES_MAX => return,
            TopicRef::Name(name) => named(name),
            TopicRef::Id(id) => TopicRef::Id(*id),
        };
        self.with(|refused| refused.note((topic, unknown.partition), batch, now));
    }

    /// Whether an earlier batch of the producer is still to come again.
    pub fn are_before(
        &self,
        image: &Image,
        key: PartitionKey,
        batch: BatchSequence,
        now: MonotonicMs,
    ) -> bool {
        let is_before = |refused: &mut RefusedBatches<Named>, name| refused.are_before(name, batch, now);
        self.with(|refused| names(image, key).any(|name| is_before(refused, name)))
    }

    /// The partition has a batch of the producer.
    pub fn placed(&self, image: &Image, key: PartitionKey, producer: ProducerId) {
        self.with(|refused| names(image, key).for_each(|name| refused.placed(name, producer)));
    }

    pub fn is_kept(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    fn with<T>(&self, act: impl FnOnce(&mut RefusedBatches<Named>) -> T) -> T {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let done = act(&mut refused);
        self.count.store(refused.len(), Ordering::Release);
        done
    }
}

/// What a request may call the partition.
fn names(image: &Image, key: PartitionKey) -> impl Iterator<Item = Named> {
    let name = image.topics.by_id(key.topic).map(|topic| named(&topic.name));
    [Some(TopicRef::Id(key.topic)), name].into_iter().flatten().map(move |topic| (topic, key.partition))
}

fn named(name: &str) -> TopicRef {
    TopicRef::Name(name.to_owned().into())
}
