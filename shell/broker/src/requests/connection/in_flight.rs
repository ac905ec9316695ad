//! How many requests of one connection may wait for their answers.
//!
//! Each Produce that is under way lengthens the turns of its worker, and so the wait of everybody's next one. Beside
//! [`OF_OTHERS_MAX`] of them of other connections, a connection that has its own part under way starts no more: eight
//! clients that pipeline all they can otherwise keep a thousand in a queue before a request of somebody else.

use super::Waiting;
use barnabas_wire::ApiKey;
use std::cell::Cell;
use std::collections::VecDeque;

/// Kafka's clients keep five requests in flight; librdkafka may keep many more.
const OF_CONNECTION_MAX: usize = 128;
/// Kafka works on one at a time.
const OTHERS_MAX: usize = 16;
/// Produce requests of a worker's other connections, beside which a connection has no more than its own part.
const OF_OTHERS_MAX: usize = 96;
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
    let own = queue.len();
    if own < OWN_PART {
        return false;
    }
    let has_others = || queue.iter().any(|waiting| !matches!(waiting.api, ApiKey::Produce | ApiKey::Fetch));
    let is_shared = || PRODUCES.get() >= OF_OTHERS_MAX + own;
    own >= OF_CONNECTION_MAX || (own >= OTHERS_MAX && has_others()) || is_shared()
}
