//! A link that a peer sends on: each transfer becomes a record of the topic, with acks=all.
//!
//! Transfers of all links of the same caller to the topic go together in batches. A transfer is settled when its record
//! is answered: `accepted`, or `rejected` with Kafka's error. A peer that sent it settled learns nothing of an error;
//! the log does.
//!
//! Transfers that belong to a transaction do not come here: connection/transacting.rs.
//!
//! Always true: a delivery is settled once, and only after Produce has been answered for its record.
//!
//! Before: open.rs. After: edge/queue-access/src/puts.rs.

use crate::link::{FromLink, Opening, Served, ToLink};
use crate::refusal::condition;
use barnabas_amqp::{Arrived, Condition, DeliveryKey, Outcome, decode_message};
use barnabas_amqp_records::whole;
use barnabas_queue_access::{Outcome as Written, Putter};
use std::collections::BTreeMap;

/// Taken at once.
const TOGETHER: usize = 256;

/// A delivery whose record is on its way.
#[derive(Debug)]
struct Waiting {
    id: DeliveryKey,
    is_settled: bool,
    bytes: usize,
}

struct Put {
    opening: Opening,
    putter: Putter,
    waiting: BTreeMap<u64, Waiting>,
    next_tag: u64,
}

/// Serves the link. The peer learns the address where its node was made for it.
///
/// # Errors
/// What keeps the link from being.
pub async fn serve(opening: Opening, topic: &str, told: Option<String>) -> Served {
    let mut putter = opening.producers.putter(&opening.kafka, topic, opening.origin);
    putter.open().await?;
    if opening.report(FromLink::Ready(opening.link, told)).await {
        Put { opening, putter, waiting: BTreeMap::new(), next_tag: 0 }.run().await;
    }
    Ok(())
}

impl Put {
    /// Until the peer ends the link. What was taken is written, though its sender learns nothing of it any more.
    async fn run(mut self) {
        let mut came = Vec::with_capacity(TOGETHER);
        loop {
            let is_busy = self.putter.outstanding() > 0;
            tokio::select! {
                count = self.opening.from_peer.recv_many(&mut came, TOGETHER) => {
                    if count == 0 {
                        return;
                    }
                }
                (tag, written) = self.putter.next(), if is_busy => self.conclude(tag, written).await,
            }
            for word in came.drain(..) {
                if let ToLink::Arrived(arrived) = word {
                    self.take(arrived).await;
                }
            }
            while let Some((tag, written)) = self.putter.try_next() {
                self.conclude(tag, written).await;
            }
        }
    }

    async fn take(&mut self, arrived: Arrived) {
        let Arrived { id, is_settled, payload, .. } = arrived;
        let waiting = Waiting { id, is_settled, bytes: payload.len() };
        let made = decode_message(payload).map_err(|error| error.to_string());
        let record = match made.and_then(|message| whole::record(&message)) {
            Ok(record) => record,
            Err(why) => {
                let error = Condition::new("amqp:decode-error", why);
                return self.settle(waiting, Outcome::Rejected(error)).await;
            }
        };
        let tag = self.next_tag;
        self.next_tag += 1;
        match self.putter.submit(record, tag).await {
            Ok(()) => drop(self.waiting.insert(tag, waiting)),
            Err(error) => self.settle(waiting, Outcome::Rejected(condition(&error))).await,
        }
    }

    async fn conclude(&mut self, tag: u64, written: Written) {
        let Some(waiting) = self.waiting.remove(&tag) else { return };
        let outcome = match written {
            Ok(()) => Outcome::Accepted,
            Err(error) => Outcome::Rejected(condition(&error)),
        };
        self.settle(waiting, outcome).await;
    }

    async fn settle(&self, waiting: Waiting, outcome: Outcome) {
        let Waiting { id, is_settled, bytes } = waiting;
        if let (true, Outcome::Rejected(error)) = (is_settled, &outcome) {
            tracing::info!(%error, "a message that an AMQP client had sent settled is lost");
        }
        let outcome = (!is_settled).then_some(outcome);
        // A connection that is gone waits for nothing.
        self.opening.report(FromLink::Settled { link: self.opening.link, id, outcome, bytes }).await;
    }
}
