//! Sampled requests with their times, on their way from the workers to the thread that pushes them as spans.
//!
//! Off unless the node was started with a share above 0: then a request costs one look at an `Option`. On, the worker
//! decides when the answer is with the socket, by a generator of its own; a chosen request takes the queue's lock once.
//!
//! Always true: the queue holds [`QUEUE_MAX`] requests at most, and what did not fit is counted. No client id in it is
//! longer than [`NAME_BYTES_MAX`] bytes.

use crate::counters::Counter;
use crate::requests::Track;
use barnabas_base::Text;
use barnabas_clock::Stamp;
use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError};

/// About a megabyte.
pub const QUEUE_MAX: usize = 4096;
/// A client id is cut here.
pub const NAME_BYTES_MAX: usize = 128;
const NS_PER_S: u64 = 1_000_000_000;

/// Which requests are chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampling {
    /// Of all requests, 0 to 1.
    pub ratio: f64,
    /// Of the node.
    pub per_second_max: u64,
}

/// Who asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asker {
    pub client_id: Option<Text>,
    pub listener: Text,
}

/// A request that was chosen.
#[derive(Debug, Clone)]
pub struct Sampled {
    pub track: Track,
    /// Its answer was with the socket.
    pub written: Stamp,
    pub asker: Asker,
}

/// What the workers put and one thread takes.
#[derive(Debug)]
pub struct Samples {
    sampling: Sampling,
    queue: Mutex<Queue>,
    /// Put into the queue; and chosen, but the queue was full or the second had its number.
    pub taken: Counter,
    pub dropped: Counter,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<Sampled>,
    /// The second that is counted, and how many it has had.
    second: u64,
    in_second: u64,
}

impl Samples {
    /// `None`: no request is ever chosen.
    pub fn new(sampling: Sampling) -> Option<Arc<Self>> {
        (sampling.ratio > 0.0 && sampling.per_second_max > 0).then(|| {
            let (taken, dropped) = (Counter::default(), Counter::default());
            Arc::new(Self { sampling, queue: Mutex::default(), taken, dropped })
        })
    }

    /// All that waits, in the order in which it was answered by each worker.
    pub fn drain(&self) -> Vec<Sampled> {
        std::mem::take(&mut self.queue.lock().unwrap_or_else(PoisonError::into_inner).waiting)
    }

    fn put(&self, sampled: Sampled) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let second = sampled.written.0 / NS_PER_S;
        if second > queue.second {
            (queue.second, queue.in_second) = (second, 0);
        }
        if queue.in_second >= self.sampling.per_second_max || queue.waiting.len() >= QUEUE_MAX {
            self.dropped.one();
            return;
        }
        queue.in_second += 1;
        queue.waiting.push(sampled);
        self.taken.one();
    }
}

/// A worker's part: chooses, without a lock.
#[derive(Debug)]
pub struct Sampler {
    samples: Arc<Samples>,
    /// A draw below it chooses.
    threshold: u64,
    state: Cell<u64>,
}

impl Sampler {
    /// `seed`: another one for each worker.
    pub fn new(samples: Arc<Samples>, seed: u64) -> Self {
        let threshold = (samples.sampling.ratio * u64::MAX as f64) as u64;
        // The generator stands still at 0.
        Self { samples, threshold, state: Cell::new(seed | 1) }
    }

    fn chooses(&self) -> bool {
        let mut state = self.state.get();
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        self.state.set(state);
        // xorshift64*: the state's low bits alone are poor.
        self.threshold == u64::MAX || state.wrapping_mul(0x2545_f491_4f6c_dd1d) < self.threshold
    }

    /// A request whose answer is with the socket.
    pub fn answered(&self, track: &Track, written: Stamp, asker: &dyn Fn() -> Asker) {
        if self.chooses() {
            let mut asker = asker();
            if let Some(id) = asker.client_id.as_mut().filter(|id| id.len() > NAME_BYTES_MAX) {
                *id = Text::from(&id[..id.floor_char_boundary(NAME_BYTES_MAX)]);
            }
            self.samples.put(Sampled { track: *track, written, asker });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requests::Passed;
    use barnabas_wire::ApiKey;

    fn track() -> Track {
        let (read, started, ready) = (Stamp(1), Stamp(2), Stamp(3));
        Track {
            api: ApiKey::Fetch,
            version: 4,
            correlation_id: 5,
            error: None,
            is_follower: false,
            client: 0,
            bytes: 10,
            bytes_out: 20,
            read,
            started,
            ready,
            passed: Passed::Untold,
        }
    }

    fn sampler(ratio: f64, per_second_max: u64) -> Sampler {
        Sampler::new(Samples::new(Sampling { ratio, per_second_max }).expect("it is on"), 42)
    }

    fn asker(id: &str) -> Asker {
        Asker { client_id: Some(Text::from(id)), listener: Text::from("PLAINTEXT") }
    }

    fn answer(sampler: &Sampler, requests: u64, at: impl Fn(u64) -> u64) {
        for number in 0..requests {
            sampler.answered(&track(), Stamp(at(number)), &|| asker("a"));
        }
    }

    #[test]
    fn nothing_is_sampled_without_a_ratio_or_a_rate() {
        assert!(Samples::new(Sampling { ratio: 0.0, per_second_max: 100 }).is_none());
        assert!(Samples::new(Sampling { ratio: 1.0, per_second_max: 0 }).is_none());
    }

    #[test]
    fn share_of_requests_is_chosen() {
        let all = sampler(1.0, u64::MAX);
        answer(&all, 1000, |_| 9);
        assert_eq!(all.samples.drain().len(), 1000);
        let tenth = sampler(0.1, u64::MAX);
        answer(&tenth, 20_000, |_| 9);
        let taken = tenth.samples.taken.get();
        assert!((1_700..2_300).contains(&taken), "{taken}");
        assert_eq!(tenth.samples.dropped.get(), 0);
    }

    #[test]
    fn full_queue_drops_and_counts() {
        let all = sampler(1.0, u64::MAX);
        answer(&all, QUEUE_MAX as u64 + 7, |_| 9);
        assert_eq!((all.samples.taken.get(), all.samples.dropped.get()), (QUEUE_MAX as u64, 7));
        assert_eq!(all.samples.drain().len(), QUEUE_MAX);
        answer(&all, 1, |_| 9);
        assert_eq!(all.samples.drain().len(), 1);
    }

    #[test]
    fn second_has_no_more_than_its_number() {
        let all = sampler(1.0, 3);
        answer(&all, 10, |number| number / 5 * NS_PER_S + number);
        assert_eq!((all.samples.taken.get(), all.samples.dropped.get()), (6, 4));
    }

    #[test]
    fn long_client_id_is_cut_between_letters() {
        let all = sampler(1.0, 9);
        all.answered(&track(), Stamp(9), &|| asker(&"ä".repeat(500)));
        all.answered(&track(), Stamp(9), &|| asker(&format!("a{}", "ä".repeat(500))));
        let ids: Vec<usize> =
            all.samples.drain().iter().filter_map(|one| Some(one.asker.client_id.as_ref()?.len())).collect();
        assert_eq!(ids, [128, 127]);
    }
}
