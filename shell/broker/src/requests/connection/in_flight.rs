//! How many requests of one connection may wait for their answers.
//!
//! Each Produce that is under way lengthens the turns of its worker, and so the wait of the next one. While a
//! worker's connections have [`PRODUCES_MAX`] of them under way together, one that has its own part starts no more:
//! eight clients that pipeline all they can otherwise keep a thousand in a queue before another client's request.

use super::Waiting;
use barnabas_wire::ApiKey;
use std::cell::Cell;
use std::collections::VecDeque;

/// Kafka's clients keep five requests in flight; librdkafka may keep many more.
const OF_CONNECTION_MAX: usize = 128;
/// Kafka works on one at a time.
const OTHERS_MAX: usize = 16;
/// Produce requests of all connections of a worker.
const PRODUCES_MAX: usize = 128;
/// What a connection may have in flight whatever others have.
const OWN_PART: usize = 16;

thread_local! {
    /// Produce requests of all of this worker's connections that wait for their answers.
    static PRODUCES: Cell<usize> = const { Cell::new(0) };
}

/// A Produce request's part in those of its worker, given back with its answer.
#[derive(Debug)]
pub(super) struct Place(());

impl Place {
    pub(super) fn of(api: ApiKey) -> Option<Self> {
        (api == ApiKey::Produce).then(|| {
            PRODUCES.set(PRODUCES.get() + 1);
            Self(())
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        PRODUCES.set(PRODUCES.get() - 1);
    }
}

/// Whether as many requests wait for their answers as a connection may have now. It is asked again with each of its
/// answers.
pub(super) fn is_full(queue: &VecDeque<Waiting>) -> bool {
    is_full_with(queue.len(), PRODUCES.get(), || {
        queue.iter().any(|waiting| !matches!(waiting.api, ApiKey::Produce | ApiKey::Fetch))
    })
}

/// `produces`: of all connections of the worker.
fn is_full_with(own: usize, produces: usize, has_others: impl FnOnce() -> bool) -> bool {
    let is_shared = own >= OWN_PART && produces >= PRODUCES_MAX;
    own >= OF_CONNECTION_MAX || is_shared || (own >= OTHERS_MAX && has_others())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_that_is_alone_has_more_in_flight_than_one_among_others() {
        assert!(!is_full_with(127, 127, || false));
        assert!(is_full_with(128, 128, || false));
        // Beside another that has all it may have.
        assert!(!is_full_with(15, 128 + 15, || false));
        assert!(is_full_with(16, 128 + 16, || false));
    }

    #[test]
    fn five_in_flight_are_never_too_many() {
        assert!(!is_full_with(5, 100_000, || true));
    }

    #[test]
    fn connections_that_send_all_they_can_share_the_worker() {
        let mut own = [0; 4];
        let send = |own: &mut [usize; 4], at: usize| {
            if !is_full_with(own[at], own.iter().sum(), || false) {
                own[at] += 1;
            }
        };
        (0..1_000).for_each(|turn| send(&mut own, turn % 4));
        assert_eq!(own, [32; 4]);
        // One that was alone leaves the others their part.
        own = [128, 0, 0, 0];
        (0..1_000).for_each(|turn| send(&mut own, turn % 4));
        assert_eq!(own, [128, 16, 16, 16]);
    }

    #[test]
    fn places_are_given_back() {
        let places: Vec<_> = (0..3).map(|_| Place::of(ApiKey::Produce)).collect();
        assert!(Place::of(ApiKey::Fetch).is_none());
        assert_eq!(PRODUCES.get(), 3);
        drop(places);
        assert_eq!(PRODUCES.get(), 0);
    }
}
