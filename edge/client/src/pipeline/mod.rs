//! A producer with several requests in flight: for load generators and for programs that need
//! throughput from one thread.
//!
//! [`PipelinedProducer::send`] writes the record into its partition's open batch and returns, without I/O.
//! [`PipelinedProducer::turn`] does the work that is due: connects, sends batches, reads answers, retries.
//! [`PipelinedProducer::next_delivery`] returns the outcome of each record, by batch, with the caller's
//! marks. All of it runs on the caller's thread, so a record costs no lock and no hand-over.
//!
//! One topic each. Bounded by `buffer.memory`: a record that finds no room is not taken ([`Taken::Full`]).
//!
//! Always true:
//! 1. each record that was taken comes out of `next_delivery` once, delivered or with its error
//! 2. with idempotence a record is stored at most once, and those of a partition in the order in which they were taken
//!
//! | file | answers |
//! |---|---|
//! | `config` | what do Kafka's property names mean |
//! | `partitioner` | which partition is next |
//! | `batch` | how do records become a batch |
//! | `lane` | which batch of a partition is next, with which sequence |
//! | `link` | what goes over one connection |
//! | `drive` | the work that is due, and when work is due next |
//! | `outcome` | what does an answer, or its absence, mean for a batch |
//! | `errand` | metadata and the producer id |
//!
//! Source: Kafka `KafkaProducer`, `RecordAccumulator`, `Sender`, `TransactionManager`; KIP-98, KIP-360, KIP-480,
//! KIP-794.

mod batch;
mod config;
mod drive;
mod errand;
mod lane;
mod link;
mod outcome;
mod partitioner;
#[cfg(test)]
mod tests;

pub use config::{Parsed, PipelineConfig};
pub use partitioner::Spread;

use crate::troubles::Troubles;
use crate::{ClientError, Cluster, ClusterConfig, Trouble};
use barnabas_wire::records::{Compression, HEADER_BYTES, HeaderRef};
use batch::{Batch, Identity, OpenBatch, record_size_max};
use bytes::BytesMut;
use lane::Lane;
use link::{Event, Link, TopicName};
use partitioner::Partitioner;
use std::collections::VecDeque;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Buffers that are kept for the next batches.
const SPARE_MAX: usize = 256;

/// One record to be sent, borrowed: it is copied once, into its batch.
#[derive(Debug, Clone, Copy, Default)]
pub struct Record<'a> {
    /// Chosen by the producer where `None`.
    pub partition: Option<i32>,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    pub headers: &'a [HeaderRef<'a>],
    /// Now, where `None`.
    pub timestamp_ms: Option<i64>,
}

/// What became of a record at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    Yes,
    /// No room: [`PipelinedProducer::turn`], then offer it again.
    Full,
}

/// What became of a batch in the end.
#[derive(Debug)]
pub struct Delivery {
    pub partition: i32,
    /// The offset of the first record; −1 if the broker did not return it (`acks=0`, a duplicate).
    pub base_offset: i64,
    pub records: i32,
    /// Of keys and values.
    pub content_bytes: u64,
    /// The marks given to [`PipelinedProducer::send`], in order: (mark, records that carry it).
    pub marks: Vec<(u64, u32)>,
    pub error: Option<ClientError>,
}

/// What a producer has done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    pub requests: u64,
    pub batches: u64,
    pub records: u64,
    /// On the wire, headers of batches included.
    pub bytes: u64,
    pub bytes_before_compression: u64,
    pub retries: u64,
    pub errors: u64,
    pub metadata: u64,
    /// Connections that ended.
    pub lost: u64,
    /// From the writing of a request to its answer.
    pub request_ns: u64,
    pub request_ns_max: u64,
    pub exhausted: u64,
}

/// Sends to one topic.
#[derive(Debug)]
pub struct PipelinedProducer {
    config: PipelineConfig,
    topic: TopicName,
    lanes: Vec<Lane>,
    links: Vec<Link>,
    partitioner: Partitioner,
    /// The partition that records without a key go to now.
    stuck_to: usize,
    identity: Option<Identity>,
    /// Sending stops until all requests in flight are answered and a new producer id has arrived.
    is_renewing: bool,
    errands: errand::Errands,
    /// (when, partition, batch): in the order of the times, as all linger equally long.
    lingers: VecDeque<(Instant, usize, u64)>,
    retries: Vec<(Instant, usize)>,
    sweep_at: Instant,
    used_bytes: usize,
    spare: Vec<BytesMut>,
    /// What compression leaves of a byte, as it was lately.
    ratio: f64,
    /// Where a batch is full, before compression.
    fill_bytes: usize,
    next_batch: u64,
    outstanding: usize,
    is_due: bool,
    deliveries: VecDeque<Delivery>,
    events: Vec<Event>,
    last_error: String,
    troubles: Troubles,
    counters: Counters,
}

impl PipelinedProducer {
    /// Finds the topic, which may create it, and, where idempotent, gets a producer id.
    ///
    /// # Errors
    /// The topic's error once `max.block.ms` has passed.
    pub async fn new(topic: &str, config: PipelineConfig, spread: Spread) -> Result<Self, ClientError> {
        let mut cluster = Cluster::new(ClusterConfig {
            request_timeout: config.request_timeout,
            deadline: config.block_max,
            retry_backoff: config.retry_backoff,
            security: config.security.clone(),
            ..ClusterConfig::new(&config.bootstrap, &config.client_id)
        });
        let tries = cluster.tries(format!("finding topic {topic}"));
        while let Err(error) = cluster.topic(topic, true).await {
            tries.after(error).await?;
        }
        let mut identity = None;
        if config.is_idempotent {
            let tries = cluster.tries("getting a producer id");
            identity = loop {
                match errand::identity(&mut cluster).await {
                    Ok(identity) => break Some(identity),
                    Err(error) => tries.after(error).await?,
                }
            };
        }
        let now = Instant::now();
        let mut producer = Self {
            topic: TopicName { name: topic.into(), id: Default::default() },
            lanes: Vec::new(),
            links: Vec::new(),
            partitioner: Partitioner::new(spread, config.is_adaptive, config.batch_bytes, seed()),
            stuck_to: usize::MAX,
            identity,
            is_renewing: false,
            errands: errand::Errands::new(cluster, now + config.metadata_age_max),
            lingers: VecDeque::new(),
            retries: Vec::new(),
            sweep_at: now,
            used_bytes: 0,
            spare: Vec::new(),
            ratio: 1.0,
            fill_bytes: config.batch_bytes,
            next_batch: 0,
            outstanding: 0,
            is_due: false,
            deliveries: VecDeque::new(),
            events: Vec::new(),
            last_error: String::new(),
            troubles: Troubles::new(config.patience),
            counters: Counters::default(),
            config,
        };
        producer.learn_from_cluster()?;
        if let Spread::Only(partition) = spread
            && partition as usize >= producer.lanes.len()
        {
            return Err(ClientError::Invalid(format!("topic {topic} has no partition {partition}")));
        }
        Ok(producer)
    }

    pub fn config(&self) -> &PipelineConfig {
        &self.config
    }

    pub fn partitions(&self) -> usize {
        self.lanes.len()
    }

    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Batches that are open, wait, or are under way.
    pub fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Bytes of `buffer.memory` in use.
    pub fn used_bytes(&self) -> usize {
        self.used_bytes
    }

    /// Whether something can be sent that could not at the last [`Self::turn`].
    #[inline]
    pub fn is_due(&self) -> bool {
        self.is_due
    }

    /// Takes one record. `mark` comes back with its delivery.
    ///
    /// # Errors
    /// A partition that the topic does not have; a record larger than `max.request.size` or `buffer.memory`.
    #[inline]
    pub fn send(&mut self, record: &Record<'_>, mark: u64) -> Result<Taken, ClientError> {
        let bytes = record_size_max(record);
        let partition = self.choose(record, bytes)?;
        let timestamp = record.timestamp_ms.unwrap_or_else(now_ms);
        if let Some(open) = &mut self.lanes[partition].open
            && open.size_bytes() + bytes <= self.fill_bytes
        {
            open.push(record, timestamp, mark);
            return Ok(Taken::Yes);
        }
        self.send_to_new_batch(record, (bytes, timestamp, mark), partition)
    }

    fn send_to_new_batch(
        &mut self,
        record: &Record<'_>,
        (bytes, timestamp, mark): (usize, i64, u64),
        mut partition: usize,
    ) -> Result<Taken, ClientError> {
        let limit = self.config.request_bytes_max.min(self.config.buffer_bytes);
        if bytes + HEADER_BYTES > limit {
            let bytes = bytes + HEADER_BYTES;
            return Err(ClientError::Invalid(format!(
                "a record of {bytes} bytes is more than max.request.size or buffer.memory, {limit}, allows"
            )));
        }
        if self.lanes[partition].open.is_some() {
            self.close(partition)?;
            // A full batch is where records without a key move on.
            if partition == self.stuck_to {
                self.partitioner.turn(&self.lanes);
                partition = self.choose(record, bytes)?;
                if let Some(open) = &mut self.lanes[partition].open
                    && open.size_bytes() + bytes <= self.fill_bytes
                {
                    open.push(record, timestamp, mark);
                    return Ok(Taken::Yes);
                }
                if self.lanes[partition].open.is_some() {
                    self.close(partition)?;
                }
            }
        }
        let reserved = self.fill_bytes.max(bytes + HEADER_BYTES);
        // Where one batch is larger than all memory, one batch is what there is.
        if self.used_bytes + reserved > self.config.buffer_bytes && self.outstanding > 0 {
            self.make_room()?;
            return Ok(Taken::Full);
        }
        let mut open = self.open(partition, reserved);
        open.push(record, timestamp, mark);
        self.lanes[partition].open = Some(open);
        Ok(Taken::Yes)
    }

    #[inline]
    fn choose(&mut self, record: &Record<'_>, bytes: usize) -> Result<usize, ClientError> {
        if let Some(partition) = record.partition {
            let index = usize::try_from(partition).ok().filter(|index| *index < self.lanes.len());
            return index.ok_or_else(|| {
                ClientError::Invalid(format!("topic {} has no partition {partition}", &*self.topic.name))
            });
        }
        if let Some(key) = record.key.filter(|_| !self.config.ignores_keys) {
            return Ok(Partitioner::of_key(key, self.lanes.len()));
        }
        let next = self.partitioner.next(&self.lanes, bytes);
        if self.partitioner.spread == Spread::Sticky && next != self.stuck_to {
            let left = std::mem::replace(&mut self.stuck_to, next);
            // Nothing more comes for the one that is left: it need not wait out its time.
            if self.lanes.get(left).is_some_and(|lane| lane.open.is_some()) {
                self.close(left)?;
            }
        }
        Ok(next)
    }

    fn open(&mut self, partition: usize, reserved: usize) -> OpenBatch {
        let (id, now) = (self.next_batch, Instant::now());
        self.next_batch += 1;
        self.outstanding += 1;
        self.used_bytes += reserved;
        if self.config.linger.is_zero() {
            self.list(partition);
        } else {
            self.lingers.push_back((now + self.config.linger, partition, id));
        }
        let buffer = self.spare.pop().unwrap_or_else(|| BytesMut::with_capacity(reserved));
        OpenBatch::new(id, now, reserved, buffer)
    }

    /// Ends a partition's open batch.
    fn close(&mut self, partition: usize) -> Result<(), ClientError> {
        let Some(open) = self.lanes[partition].open.take() else { return Ok(()) };
        let compression = self.config.compression;
        let (mut batch, freed) = open.close(compression, || self.spare.pop().unwrap_or_default())?;
        if compression != Compression::NONE {
            self.spare.extend(freed);
            self.note_ratio(&batch);
            let kept = batch.size_bytes().min(batch.reserved);
            self.used_bytes -= batch.reserved - kept;
            batch.reserved = kept;
        }
        self.lanes[partition].closed.push_back(batch);
        self.list(partition);
        Ok(())
    }

    /// A batch is filled until it is expected to be `batch.size` large once it is compressed.
    ///
    /// # Source
    /// Kafka `CompressionRatioEstimator`: rises fast, falls slowly.
    fn note_ratio(&mut self, batch: &Batch) {
        const RISE: f64 = 0.05;
        const FALL: f64 = 0.005;
        const MARGIN: f64 = 1.05;
        let seen = (batch.size_bytes() - HEADER_BYTES) as f64 / batch.inflated_bytes.max(1) as f64;
        let next = if seen > self.ratio { seen.max(self.ratio + RISE) } else { seen.max(self.ratio - FALL) };
        self.ratio = next.clamp(0.05, 1.0);
        let fill = self.config.batch_bytes as f64 / (self.ratio * MARGIN);
        self.fill_bytes = (fill as usize).max(self.config.batch_bytes).min(self.config.buffer_bytes);
    }

    /// Memory is used up. Where nothing waits to be sent, the open batches have to go.
    fn make_room(&mut self) -> Result<(), ClientError> {
        self.counters.exhausted += 1;
        if self.links.iter().all(|link| link.ready.is_empty()) {
            for partition in 0..self.lanes.len() {
                self.close(partition)?;
            }
        }
        Ok(())
    }

    /// Puts a partition in the row of those with something to send.
    fn list(&mut self, partition: usize) {
        let lane = &mut self.lanes[partition];
        if lane.is_listed {
            return;
        }
        match lane.leader {
            Some(link) => {
                lane.is_listed = true;
                self.links[link].ready.push_back(partition);
                self.is_due = true;
            }
            None => self.errands.wants_metadata = true,
        }
    }

    /// What has kept batches from being delivered since the last call, once for each partition and reason; and which
    /// partitions can be written again. What was given up is among the deliveries, with its error.
    pub fn next_trouble(&mut self) -> Option<Trouble> {
        if self.troubles.is_empty() { None } else { self.troubles.next(Instant::now()) }
    }

    /// What became of the next batch.
    pub fn next_delivery(&mut self) -> Option<Delivery> {
        self.deliveries.pop_front()
    }

    /// Sends all that is held and waits until it is answered or given up. What became of it is among the deliveries.
    ///
    /// # Errors
    /// A codec failed.
    pub async fn flush(&mut self) -> Result<(), ClientError> {
        self.close_batches()?;
        while self.outstanding > 0 {
            self.turn(Duration::from_secs(1)).await?;
        }
        Ok(())
    }

    /// Has all that is held sent with the next [`Self::turn`], full or not.
    ///
    /// # Errors
    /// A codec failed.
    pub fn close_batches(&mut self) -> Result<(), ClientError> {
        (0..self.lanes.len()).try_for_each(|partition| self.close(partition))
    }
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

/// Different for each producer of a process, and for each process.
fn seed() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    now ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(std::process::id()) << 32
}
