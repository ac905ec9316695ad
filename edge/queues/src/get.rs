//! A link that a peer receives on: a member of the queue's share group.
//!
//! As many records are acquired as the peer has credit for (KIP-1206), so that competing receivers share a queue
//! evenly. What becomes of a delivery:
//!
//! | AMQP | Kafka |
//! |---|---|
//! | accepted | accept |
//! | rejected | reject: the group gives it to no member again |
//! | released, modified | release: the next member gets it, at most `share.delivery.count.limit` times |
//! | the link ends without an outcome | release |
//! | an outcome in a transaction | it waits for the transaction's end, and for it the link's task |
//!
//! A message whose time is over is not delivered and rejected at the group.
//!
//! Before: open.rs.

use crate::link::{Deliver, Demand, FromLink, Opening, Place, Served, Settled, ToLink, UNSETTLED_MAX};
use barnabas_amqp::{DeliveryKey, Outcome, encode_message};
use barnabas_amqp_records::whole;
use barnabas_client::{Acknowledge, ClientError, Cluster, ShareConfig, ShareConsumer, Shared};
use barnabas_queue_access::{Address, group, is_temporary};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::error::TryRecvError;

/// Records of one fetch.
const RECORDS_MAX: usize = 500;
const FETCH_BYTES_MAX: i32 = 1024 * 1024;
/// What a batch of the topic may inflate to.
pub const INFLATED_BYTES_MAX: usize = 64 * 1024 * 1024;
/// A fetch is not interrupted: outcomes wait so long for the group to hear of them, where deliveries have none.
const WAIT_UNSETTLED: Duration = Duration::from_millis(100);
const WAIT: Duration = Duration::from_millis(500);
/// Between two heartbeats' checks, where nothing is fetched.
const BEAT: Duration = Duration::from_secs(1);
/// For the group's first assignment.
const JOIN_WITHIN: Duration = Duration::from_secs(10);

struct Get {
    opening: Opening,
    topic: String,
    cluster: Cluster,
    consumer: ShareConsumer,
    /// Deliveries given to the connection.
    given: u64,
    /// Of them, those without an outcome, by their places.
    unsettled: BTreeMap<Place, Shared>,
    /// The drain that was answered.
    drained: Option<Demand>,
}

/// Serves the link. The peer learns the address where its node was made for it.
///
/// # Errors
/// What keeps the link from being, or ends it.
pub async fn serve(opening: Opening, address: &Address, told: Option<String>) -> Served {
    let mut cluster = Cluster::new(opening.kafka.clone());
    let tries = cluster.tries(format!("finding topic {}", address.topic));
    let creates = !is_temporary(&address.topic);
    while let Err(error) = cluster.topic(&address.topic, creates).await {
        tries.after(error).await?;
    }
    group::found(&mut cluster, &address.group).await?;
    let config = ShareConfig {
        bytes_max: FETCH_BYTES_MAX,
        is_exact: true,
        inflated_bytes_max: INFLATED_BYTES_MAX,
        ..ShareConfig::new(&address.group)
    };
    let mut consumer = ShareConsumer::new(config, &address.topic)?;
    consumer.join(&mut cluster, JOIN_WITHIN).await?;
    let topic = address.topic.clone();
    let is_there = opening.report(FromLink::Ready(opening.link, told)).await;
    let mut get =
        Get { opening, topic, cluster, consumer, given: 0, unsettled: BTreeMap::new(), drained: None };
    let served = if is_there { get.run().await } else { Ok(()) };
    let closed = get.consumer.close(&mut get.cluster).await;
    served.and(closed.map_err(Into::into))
}

impl Get {
    async fn run(&mut self) -> Served {
        while self.take_outcomes().await {
            let demand = *self.opening.demanded.borrow_and_update();
            if self.opening.is_gone() {
                // Transactions still have deliveries of it.
                self.consumer.stay(&mut self.cluster).await?;
                if !self.wait().await {
                    return Ok(());
                }
                continue;
            }
            let room = demand.limit.saturating_sub(self.given);
            let room = (room as usize).min(UNSETTLED_MAX - self.unsettled.len().min(UNSETTLED_MAX));
            if room == 0 || self.drained == Some(demand) {
                self.consumer.stay(&mut self.cluster).await?;
                if !self.wait().await {
                    return Ok(());
                }
                continue;
            }
            let wait = match (demand.drain, self.unsettled.is_empty()) {
                (true, _) => Duration::ZERO,
                (false, false) => WAIT_UNSETTLED,
                (false, true) => WAIT,
            };
            self.consumer.set_records_max(room.min(RECORDS_MAX) as i32);
            let mut next = self.consumer.poll(&mut self.cluster, wait).await?;
            if next.is_none() && demand.drain {
                self.drained = Some(demand);
                self.opening.report(FromLink::Drained(self.opening.link)).await;
            }
            while let Some(shared) = next {
                self.deliver(shared).await?;
                next = if self.consumer.is_drained() {
                    None
                } else {
                    self.consumer.poll(&mut self.cluster, Duration::ZERO).await?
                };
            }
        }
        Ok(())
    }

    /// What the peer said since. `false`: the link is gone.
    async fn take_outcomes(&mut self) -> bool {
        loop {
            match self.opening.from_peer.try_recv() {
                Ok(word) => self.take(word).await,
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    /// Until the peer says something, or a heartbeat may be due. `false`: the link is gone.
    async fn wait(&mut self) -> bool {
        let is_there = !self.opening.is_gone();
        tokio::select! {
            word = self.opening.from_peer.recv() => match word {
                Some(word) => self.take(word).await,
                None => return false,
            },
            // Where the connection is gone, what it said before still waits.
            _ = self.opening.demanded.changed(), if is_there => {}
            () = tokio::time::sleep(BEAT) => {}
        }
        true
    }

    async fn take(&mut self, word: ToLink) {
        let (id, place, outcome, is_settled) = match word {
            ToLink::Outcome { id, place, outcome, is_settled } => (id, place, outcome, is_settled),
            ToLink::Settle { places, answer } => {
                // A connection that is gone does not wait.
                let _ = answer.send(self.settle(places).await);
                return;
            }
            ToLink::Arrived(_) | ToLink::Discharge(_) => return,
        };
        let Some(shared) = self.unsettled.remove(&place) else { return };
        self.consumer.acknowledge(&shared.record, acknowledgement(&outcome));
        if !is_settled {
            self.conclude(id, outcome).await;
        }
    }

    /// The peer waits for this: the group hears of the outcome first. An outcome that the group does not take is
    /// answered with `released`, since the message is delivered once more.
    async fn conclude(&mut self, id: DeliveryKey, outcome: Outcome) {
        let outcome = match self.consumer.commit(&mut self.cluster).await {
            Ok(()) => outcome,
            Err(error) => {
                tracing::debug!(%error, "an outcome of an AMQP client was not taken by the share group");
                Outcome::Released
            }
        };
        self.opening.report(FromLink::Concluded(id, outcome)).await;
    }

    /// A transaction's end.
    async fn settle(&mut self, places: Vec<(Place, Outcome)>) -> Settled {
        let mut is_whole = true;
        let partitions: BTreeSet<_> = places.iter().map(|(place, _)| place.partition).collect();
        for (place, outcome) in places {
            match self.unsettled.remove(&place) {
                Some(shared) => self.consumer.acknowledge(&shared.record, acknowledgement(&outcome)),
                None => is_whole = false,
            }
        }
        match self.consumer.commit(&mut self.cluster).await {
            Ok(()) if is_whole && !partitions.iter().any(|of| self.consumer.has_untold(*of)) => {
                Settled::Taken
            }
            Ok(()) => Settled::Unknown,
            Err(error) => {
                tracing::debug!(%error, "a share group did not take the end of an AMQP client's transaction");
                if is_whole && matches!(error, ClientError::Refused { .. }) {
                    Settled::Refused
                } else {
                    Settled::Unknown
                }
            }
        }
    }

    async fn deliver(&mut self, shared: Shared) -> Result<(), ClientError> {
        let record = &shared.record;
        let made = whole::message(&self.topic, record, shared.delivery);
        let message = made.map_err(ClientError::Invalid)?;
        if whole::expires_at_ms(&message, record).is_some_and(|at| at <= now_ms()) {
            self.consumer.acknowledge(record, Acknowledge::Reject);
            return Ok(());
        }
        let payload = encode_message(&message);
        let place = Place { partition: record.partition, offset: record.offset };
        let Some(permit) = self.permit(payload.len()).await? else { return Ok(()) };
        let is_settled = self.opening.sends_settled;
        if is_settled {
            self.consumer.acknowledge(record, Acknowledge::Accept);
        } else {
            self.unsettled.insert(place, shared);
        }
        self.given += 1;
        self.opening
            .report(FromLink::Deliver(
                self.opening.link,
                Deliver { payload, place, is_settled, _permit: permit },
            ))
            .await;
        Ok(())
    }

    /// Room for a payload on its way out. The group's heartbeats go on meanwhile. `None`: the link is gone.
    async fn permit(&mut self, bytes: usize) -> Result<Option<OwnedSemaphorePermit>, ClientError> {
        loop {
            match tokio::time::timeout(BEAT, self.opening.room(bytes)).await {
                Ok(permit) => return Ok(permit),
                Err(_) => self.consumer.stay(&mut self.cluster).await?,
            }
        }
    }
}

fn acknowledgement(outcome: &Outcome) -> Acknowledge {
    match outcome {
        Outcome::Accepted => Acknowledge::Accept,
        Outcome::Rejected(_) => Acknowledge::Reject,
        Outcome::Released
        | Outcome::Modified { .. }
        | Outcome::Received
        // Of a transaction's state its inner outcome counts.
        | Outcome::Declared { .. }
        | Outcome::Transactional { .. }
        | Outcome::Other(_) => Acknowledge::Release,
    }
}

pub fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
