//! A member of a queue's share group.

use super::{BEAT, FETCH_BYTES_MAX, INFLATED_BYTES_MAX, Matching, Order, Outcome, Place, Taken, left, live};
use barnabas_client::{Acknowledge, ClientError, Cluster, ClusterConfig, ShareConfig, ShareConsumer};
use barnabas_queue_access::{Address, group};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// For the group's first assignment.
const JOIN_WITHIN: Duration = Duration::from_secs(10);
/// A get that does not wait: the first fetch of a member opens its session and may come back early.
const FIRST_WITHIN: Duration = Duration::from_secs(1);
const SOON: Duration = Duration::from_millis(50);

pub struct Shared {
    topic: String,
    cluster: Cluster,
    consumer: ShareConsumer,
    has_fetched: bool,
}

impl Shared {
    pub async fn open(kafka: &ClusterConfig, address: &Address) -> Result<Self, ClientError> {
        let mut cluster = Cluster::new(kafka.clone());
        let tries = cluster.tries(format!("finding topic {}", address.topic));
        while let Err(error) = cluster.topic(&address.topic, true).await {
            tries.after(error).await?;
        }
        group::found(&mut cluster, &address.group).await?;
        let config = ShareConfig {
            bytes_max: FETCH_BYTES_MAX,
            records_max: 1,
            is_exact: true,
            inflated_bytes_max: INFLATED_BYTES_MAX,
            ..ShareConfig::new(&address.group)
        };
        let mut consumer = ShareConsumer::new(config, &address.topic)?;
        consumer.join(&mut cluster, JOIN_WITHIN).await?;
        Ok(Self { topic: address.topic.clone(), cluster, consumer, has_fetched: false })
    }

    pub async fn run(mut self, mut orders: mpsc::Receiver<Order>) {
        loop {
            let order = tokio::select! {
                order = orders.recv() => order,
                () = tokio::time::sleep(BEAT) => {
                    if let Err(error) = self.consumer.stay(&mut self.cluster).await {
                        tracing::debug!(%error, "a member of a queue's share group could not be kept alive");
                    }
                    continue;
                }
            };
            match order {
                None => break,
                Some(Order::Take { wait, matching, mut answer }) => {
                    let until = wait.map(|wait| Instant::now() + self.patience(wait));
                    let taken = self.take(until, matching, &mut answer).await;
                    if let Ok(Some(taken)) = &taken
                        && answer.is_closed()
                    {
                        self.consumer.acknowledge(&taken.place.bare(), Acknowledge::Release);
                        continue;
                    }
                    if let Err(Ok(Some(taken))) = answer.send(taken) {
                        self.consumer.acknowledge(&taken.place.bare(), Acknowledge::Release);
                    }
                }
                Some(Order::Settle { places, outcome, answer }) => {
                    // A conversation that is gone does not wait.
                    let _ = answer.send(self.settle(&places, outcome).await);
                }
            }
        }
        if let Err(error) = self.consumer.close(&mut self.cluster).await {
            tracing::debug!(%error, "a member of a queue's share group did not leave in order");
        }
    }

    fn patience(&mut self, wait: Duration) -> Duration {
        let least = if self.has_fetched { SOON } else { FIRST_WITHIN };
        self.has_fetched = true;
        wait.max(least)
    }

    async fn take(
        &mut self,
        until: Option<Instant>,
        matching: Matching,
        answer: &mut super::Answer<Option<Taken>>,
    ) -> Result<Option<Taken>, ClientError> {
        debug_assert!(matching.is_any(), "a share group gives any record");
        loop {
            let next = self.consumer.poll(&mut self.cluster, left(until)).await?;
            if let Some(shared) = next {
                match live(&self.topic, &shared.record, shared.delivery) {
                    Some(taken) => return Ok(Some(taken)),
                    None => self.consumer.acknowledge(&shared.record, Acknowledge::Reject),
                }
            } else if until.is_some_and(|until| Instant::now() >= until) || answer.is_closed() {
                return Ok(None);
            }
        }
    }

    async fn settle(&mut self, places: &[Place], outcome: Outcome) -> Result<(), ClientError> {
        let what = match outcome {
            Outcome::Got => Acknowledge::Accept,
            Outcome::Back => Acknowledge::Release,
        };
        for place in places {
            self.consumer.acknowledge(&place.bare(), what);
        }
        self.consumer.commit(&mut self.cluster).await
    }
}
