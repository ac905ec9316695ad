//! What is counted by topic: Kafka's BrokerTopicMetrics, in one cache line for each topic and worker.
//!
//! A topic gets cells of its own when the first of its batches or fetches is counted, until `metrics.topics.max` topics
//! have them. The others share one place, which the page calls `(others)`, so that the sum over topics is the node's
//! total. Topics that are deleted give their cells back when the page is next written ([`Topics::keep`]).
//!
//! Each worker remembers the cells that it has found, and the topic that it counted last: a batch costs a comparison,
//! at most one look into a map of the worker's own. The lock is taken once for each topic and worker.
//!
//! Always true:
//! 1. no more than `metrics.topics.max` topics have cells
//! 2. one worker alone writes its cell of a topic

use crate::histogram::Cell;
use barnabas_base::{Map, TopicId};
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One topic's figures on one worker.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct TopicCells {
    pub messages_in: Cell,
    pub bytes_in: Cell,
    /// Of batches that exceed `max.message.bytes`.
    pub bytes_rejected: Cell,
    pub bytes_out: Cell,
    /// One for each partition of a request.
    pub produces: Cell,
    pub produces_failed: Cell,
    pub fetches: Cell,
    pub fetches_failed: Cell,
}

/// One topic's figures of all workers.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct TopicCounts {
    pub messages_in: u64,
    pub bytes_in: u64,
    pub bytes_rejected: u64,
    pub bytes_out: u64,
    pub produces: u64,
    pub produces_failed: u64,
    pub fetches: u64,
    pub fetches_failed: u64,
}

impl TopicCounts {
    pub fn sum<'a>(cells: impl IntoIterator<Item = &'a TopicCells>) -> Self {
        let mut sum = Self::default();
        for cells in cells {
            sum.messages_in += cells.messages_in.get();
            sum.bytes_in += cells.bytes_in.get();
            sum.bytes_rejected += cells.bytes_rejected.get();
            sum.bytes_out += cells.bytes_out.get();
            sum.produces += cells.produces.get();
            sum.produces_failed += cells.produces_failed.get();
            sum.fetches += cells.fetches.get();
            sum.fetches_failed += cells.fetches_failed.get();
        }
        sum
    }
}

/// A cell for each worker.
type Place = Arc<[TopicCells]>;

/// All topics of the node. See the file's header.
#[derive(Debug)]
pub struct Topics {
    max: usize,
    workers: usize,
    places: Mutex<Map<TopicId, Place>>,
    others: Place,
    /// Counts how often topics gave their cells back: what workers remember of an earlier one is void.
    generation: AtomicU64,
}

fn place(workers: usize) -> Place {
    (0..workers).map(|_| TopicCells::default()).collect()
}

impl Topics {
    pub fn new(workers: usize, max: usize) -> Self {
        let (places, generation) = (Mutex::default(), AtomicU64::new(0));
        Self { max, workers, places, others: place(workers), generation }
    }

    fn lock(&self) -> MutexGuard<'_, Map<TopicId, Place>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None`: all places are taken.
    fn enter(&self, topic: TopicId) -> Option<Place> {
        let mut places = self.lock();
        if let Some(known) = places.get(&topic) {
            return Some(known.clone());
        }
        (places.len() < self.max).then(|| places.entry(topic).or_insert_with(|| place(self.workers)).clone())
    }

    /// Takes the cells from topics that are not there any more.
    pub fn keep(&self, is_there: impl Fn(TopicId) -> bool) {
        let mut places = self.lock();
        let before = places.len();
        places.retain(|topic, _| is_there(*topic));
        if places.len() < before {
            self.generation.fetch_add(1, Ordering::Release);
        }
    }

    /// Every topic with cells, in no order.
    pub fn each(&self) -> Vec<(TopicId, TopicCounts)> {
        self.lock().iter().map(|(topic, place)| (*topic, TopicCounts::sum(place.iter()))).collect()
    }

    /// The topics without cells together.
    pub fn others(&self) -> TopicCounts {
        TopicCounts::sum(self.others.iter())
    }

    pub fn is_full(&self) -> bool {
        self.lock().len() >= self.max
    }
}

/// What one worker remembers of [`Topics`]. Stays on its thread.
#[derive(Debug)]
pub struct TopicPen {
    topics: Arc<Topics>,
    worker: usize,
    known: RefCell<Known>,
}

#[derive(Debug, Default)]
struct Known {
    generation: u64,
    /// No place was left, and `places` are all that there are.
    is_full: bool,
    /// Where its cells are in `places`; `None`: it has none of its own.
    last: Option<(TopicId, Option<usize>)>,
    at: Map<TopicId, usize>,
    places: Vec<Place>,
}

impl Known {
    fn add(&mut self, topic: TopicId, place: Place) -> usize {
        self.places.push(place);
        let at = self.places.len() - 1;
        self.at.insert(topic, at);
        at
    }
}

impl TopicPen {
    pub fn new(topics: Arc<Topics>, worker: usize) -> Self {
        Self { topics, worker, known: RefCell::default() }
    }

    /// Counts something of a topic.
    pub fn count(&self, topic: TopicId, count: impl FnOnce(&TopicCells)) {
        let known = &mut *self.known.borrow_mut();
        let generation = self.topics.generation.load(Ordering::Acquire);
        if known.generation != generation {
            *known = Known { generation, ..Known::default() };
        }
        let at = match known.last {
            Some((last, at)) if last == topic => at,
            _ => self.find(known, topic),
        };
        known.last = Some((topic, at));
        let place = at.map_or(&self.topics.others, |at| &known.places[at]);
        count(&place[self.worker]);
    }

    fn find(&self, known: &mut Known, topic: TopicId) -> Option<usize> {
        if let Some(at) = known.at.get(&topic) {
            return Some(*at);
        }
        if known.is_full {
            return None;
        }
        if let Some(place) = self.topics.enter(topic) {
            return Some(known.add(topic, place));
        }
        // No topic comes in before another goes, so that all places are known from now on: topics without one are not
        // looked for under the lock again.
        known.is_full = true;
        for (topic, place) in self.topics.lock().iter() {
            if !known.at.contains_key(topic) {
                known.add(*topic, place.clone());
            }
        }
        known.at.get(&topic).copied()
    }
}

#[cfg(test)]
mod tests;
