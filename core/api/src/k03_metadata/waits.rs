//! What an answer to Metadata waits for, and how long.
//!
//! - **The first broker.** When all brokers start at once, all are fenced for some milliseconds. Kafka then answers
//!   without brokers. librdkafka forgets all that it knew by such an answer, its coordinator too, and may ask no broker
//!   again (librdkafka#5511). So the answer waits for the first unfenced broker, at most [`FIRST_BROKER_TIMEOUT`].
//! - **The controller's verdict on an unreachable broker.** When a broker is killed, its clients lose their connections
//!   in the same instant as the other brokers do, and ask one of these for the new leader. The election is 10 to 100 ms
//!   away. A client that gets the old leader looks again after a second or two (librdkafka). So the answer waits until
//!   the metadata log has fenced the broker, at most [`VERDICT_TIMEOUT`] from the loss.
//!
//! Without a clock or a timer: the caller looks again, and says what time it is.
//!
//! Bounded: one entry for each broker of the image.

use std::collections::BTreeMap;

use barnabas_base::{BrokerEpoch, BrokerId, DurationMs, MonotonicMs};
use barnabas_metadata::Image;

/// How long Metadata waits for a cluster of which no broker is unfenced.
const FIRST_BROKER_TIMEOUT: DurationMs = DurationMs(10_000);
/// How long answers wait for the controller's verdict on a broker.
const VERDICT_TIMEOUT: DurationMs = DurationMs(300);
/// An unreachable broker is tried again sooner than after so long: what comes later is another loss.
const APART: DurationMs = DurationMs(30_000);

/// Whether a request that arrived at `arrived` still waits for the cluster's first unfenced broker.
pub fn awaits_first_broker(image: &Image, arrived: MonotonicMs, now: MonotonicMs) -> bool {
    image.cluster.alive().next().is_none() && now.since(arrived) < FIRST_BROKER_TIMEOUT
}

/// Brokers that this one does not reach any more, while the metadata log names them as alive.
#[derive(Debug, Default)]
pub struct Unreachable {
    since: BTreeMap<BrokerId, Loss>,
}

#[derive(Debug)]
struct Loss {
    /// Which life of the broker.
    epoch: BrokerEpoch,
    since: MonotonicMs,
    /// When there was last no connection. It may be that nothing was sent to the broker since, which would show that it
    /// lives.
    last: MonotonicMs,
}

impl Unreachable {
    /// The broker closed a connection, or does not take one.
    pub fn lost(&mut self, image: &Image, broker: BrokerId, now: MonotonicMs) {
        let Some(known) = image.cluster.broker(broker).filter(|known| known.is_active()) else { return };
        let loss = self.since.entry(broker).or_insert(Loss { epoch: known.epoch, since: now, last: now });
        if loss.epoch != known.epoch || now.since(loss.last) >= APART {
            (loss.epoch, loss.since) = (known.epoch, now);
        }
        loss.last = now;
    }

    /// The broker has answered.
    pub fn found(&mut self, broker: BrokerId) {
        self.since.remove(&broker);
    }

    /// Whether answers wait for the controller's verdict on a broker.
    pub fn awaits_verdict(&mut self, image: &Image, now: MonotonicMs) -> bool {
        // A broker that stays away is kept: it is lost once, not again with each connection that fails.
        self.since.retain(|id, loss| {
            let known = image.cluster.broker(*id);
            now.since(loss.last) < APART
                && known.is_some_and(|known| known.epoch == loss.epoch && known.is_active())
        });
        self.since.values().any(|loss| now.since(loss.since) < VERDICT_TIMEOUT)
    }

    /// How many brokers are unreachable.
    pub fn len(&self) -> usize {
        self.since.len()
    }

    pub fn is_empty(&self) -> bool {
        self.since.is_empty()
    }
}

#[cfg(test)]
mod tests;
