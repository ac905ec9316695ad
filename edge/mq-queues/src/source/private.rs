//! The reader of a temporary queue: what came is kept here until it is got, so that it can be matched by its ids.
//!
//! Bounded: [`KEPT_MAX`] messages and [`KEPT_BYTES_MAX`]. Past that the topic is not read.

use super::{FETCH_BYTES_MAX, INFLATED_BYTES_MAX, Matching, Order, Outcome, Place, Taken, left, live};
use barnabas_base::PartitionIndex;
use barnabas_client::{ClientError, Cluster, ClusterConfig, Consumer, ConsumerConfig, Received, StartAt};
use barnabas_queue_access::Address;
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

const KEPT_MAX: usize = 2000;
const KEPT_BYTES_MAX: usize = 8 * 1024 * 1024;
const EARLIEST: i64 = -2;
/// A get that does not wait still looks at the topic.
const SOON: Duration = Duration::from_millis(50);

struct Kept {
    record: Received,
    delivery: i16,
}

impl Kept {
    fn bytes(&self) -> usize {
        self.record.value.as_ref().map_or(0, bytes::Bytes::len) + 512
    }
}

pub struct Private {
    topic: String,
    cluster: Cluster,
    consumer: Consumer,
    kept: VecDeque<Kept>,
    kept_bytes: usize,
    /// Given out, and not settled.
    out: BTreeMap<Place, Kept>,
}

impl Private {
    pub async fn open(kafka: &ClusterConfig, address: &Address) -> Result<Self, ClientError> {
        let mut cluster = Cluster::new(kafka.clone());
        cluster.topic(&address.topic, false).await?;
        let config = ConsumerConfig {
            bytes_max: FETCH_BYTES_MAX,
            partition_bytes_max: FETCH_BYTES_MAX,
            inflated_bytes_max: INFLATED_BYTES_MAX,
            wait_max: super::LOOK_EVERY,
            read_committed: true,
            ..ConsumerConfig::default()
        };
        let mut consumer = Consumer::new(&address.topic, config);
        let first = PartitionIndex(0);
        let start = cluster.list_offset(&address.topic, first, EARLIEST).await?;
        consumer.assign([(first, StartAt::Offset(start))]);
        let topic = address.topic.clone();
        Ok(Self { topic, cluster, consumer, kept: VecDeque::new(), kept_bytes: 0, out: BTreeMap::new() })
    }

    pub async fn run(mut self, mut orders: mpsc::Receiver<Order>) {
        while let Some(order) = orders.recv().await {
            match order {
                Order::Take { wait, matching, mut answer } => {
                    let until = wait.map(|wait| Instant::now() + wait.max(SOON));
                    let taken = self.take(until, matching, &mut answer).await;
                    if let Err(Ok(Some(taken))) = answer.send(taken) {
                        self.settle(&[taken.place], Outcome::Back);
                    }
                }
                Order::Settle { places, outcome, answer } => {
                    self.settle(&places, outcome);
                    // A conversation that is gone does not wait.
                    let _ = answer.send(Ok(()));
                }
            }
        }
    }

    async fn take(
        &mut self,
        until: Option<Instant>,
        matching: Matching,
        answer: &mut super::Answer<Option<Taken>>,
    ) -> Result<Option<Taken>, ClientError> {
        loop {
            if let Some(taken) = self.kept_one(matching) {
                return Ok(Some(taken));
            }
            if self.kept.len() >= KEPT_MAX || self.kept_bytes >= KEPT_BYTES_MAX {
                let words = format!("{} messages of the temporary queue wait for other ids", self.kept.len());
                return Err(ClientError::Invalid(words));
            }
            match self.consumer.poll(&mut self.cluster, left(until)).await? {
                Some(record) => self.keep(Kept { record, delivery: 1 }, false),
                None if until.is_some_and(|until| Instant::now() >= until) || answer.is_closed() => {
                    return Ok(None);
                }
                None => {}
            }
        }
    }

    fn keep(&mut self, kept: Kept, is_first: bool) {
        self.kept_bytes += kept.bytes();
        if is_first { self.kept.push_front(kept) } else { self.kept.push_back(kept) }
    }

    fn kept_one(&mut self, matching: Matching) -> Option<Taken> {
        let mut at = 0;
        while let Some(kept) = self.kept.get(at) {
            let taken = live(&self.topic, &kept.record, kept.delivery);
            if taken.as_ref().is_some_and(|taken| !matching.fits(&taken.message)) {
                at += 1;
                continue;
            }
            let kept = self.kept.remove(at)?;
            self.kept_bytes -= kept.bytes();
            if let Some(taken) = taken {
                self.out.insert(taken.place, kept);
                return Some(taken);
            }
        }
        None
    }

    fn settle(&mut self, places: &[Place], outcome: Outcome) {
        for place in places.iter().rev() {
            let Some(kept) = self.out.remove(place) else { continue };
            if outcome == Outcome::Back {
                let delivery = kept.delivery.saturating_add(1);
                self.keep(Kept { delivery, ..kept }, true);
            }
        }
    }
}
