//! What the stories ask of a node, as requests of Kafka's protocol.
//!
//! One request at a time on one connection; whoever wants more at once opens more connections ([`Many`]).

use crate::node::Failure;
use barnabas_base::{TimestampMs, TopicId};
use barnabas_client::Connection;
use barnabas_wire::messages::create_partitions_request::CreatePartitionsTopic;
use barnabas_wire::messages::create_topics_request::CreatableTopic;
use barnabas_wire::messages::delete_topics_request::DeleteTopicState;
use barnabas_wire::messages::describe_topic_partitions_request::Cursor;
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use barnabas_wire::messages::metadata_request::MetadataRequestTopic;
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::{
    CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest, DescribeLogDirsRequest,
    DescribeTopicPartitionsRequest, FetchRequest, MetadataRequest, MetadataResponse, ProduceRequest,
};
use barnabas_wire::records::{BatchBuilder, BatchOptions};
use bytes::Bytes;
use std::ops::Range;
use std::time::{Duration, Instant};

/// The longest that one answer is waited for.
const PATIENCE: Duration = Duration::from_secs(180);
/// Partitions in one Produce or Fetch.
const AT_ONCE: usize = 1000;

/// Connects, trying again until the node is there.
///
/// # Errors
/// It is not there within `within`.
pub async fn connect(address: &str, within: Duration) -> Result<Connection, Failure> {
    let begun = Instant::now();
    loop {
        match Connection::open(address, "density", PATIENCE).await {
            Ok(connection) => return Ok(connection),
            Err(error) if begun.elapsed() > within => return Err(error.into()),
            Err(_) => tokio::time::sleep(Duration::from_millis(2)).await,
        }
    }
}

fn ok(what: &str, code: i16) -> Result<(), Failure> {
    if code == 0 {
        Ok(())
    } else {
        Err(format!("{what}: {}", barnabas_base::ErrorCode::from_code(code)).into())
    }
}

/// Creates topics with so many partitions each, in one request; their ids in the same order.
///
/// # Errors
/// Any of them was refused.
pub async fn create(c: &mut Connection, names: &[String], partitions: i32) -> Result<Vec<TopicId>, Failure> {
    let topic = |name: &String| CreatableTopic {
        name: name.as_str().into(),
        num_partitions: partitions,
        replication_factor: 1,
        ..CreatableTopic::default()
    };
    let topics = names.iter().map(topic).collect();
    let request = CreateTopicsRequest { topics, timeout_ms: 120_000, ..CreateTopicsRequest::default() };
    let answer = c.call(&request).await?;
    if answer.topics.len() != names.len() {
        return Err(format!("{} topics asked for, {} answered", names.len(), answer.topics.len()).into());
    }
    for topic in &answer.topics {
        ok(&format!("creating {}", &*topic.name), topic.error_code)?;
    }
    Ok(answer.topics.iter().map(|topic| topic.topic_id).collect())
}

/// Gives a topic more partitions, in one request.
///
/// # Errors
/// It was refused.
pub async fn enlarge(c: &mut Connection, name: &str, count: i32) -> Result<(), Failure> {
    let topic = CreatePartitionsTopic { name: name.into(), count, assignments: None, ..Default::default() };
    let request = CreatePartitionsRequest { topics: vec![topic], timeout_ms: 120_000, ..Default::default() };
    let answer = c.call(&request).await?;
    answer.results.iter().try_for_each(|result| ok(&format!("enlarging {name}"), result.error_code))
}

/// # Errors
/// Any of them was refused.
pub async fn delete(c: &mut Connection, names: &[String]) -> Result<(), Failure> {
    let topic = |name: &String| DeleteTopicState { name: Some(name.as_str().into()), ..Default::default() };
    let topics = names.iter().map(topic).collect();
    let request = DeleteTopicsRequest { topics, timeout_ms: 120_000, ..DeleteTopicsRequest::default() };
    let answer = c.call(&request).await?;
    answer.responses.iter().try_for_each(|result| ok("deleting", result.error_code))
}

/// Metadata of the named topics, or of all.
///
/// # Errors
/// No answer.
pub async fn metadata(c: &mut Connection, names: Option<&[String]>) -> Result<MetadataResponse, Failure> {
    let topic =
        |name: &String| MetadataRequestTopic { name: Some(name.as_str().into()), ..Default::default() };
    let topics = names.map(|names| names.iter().map(topic).collect());
    Ok(c.call(&MetadataRequest { topics, ..MetadataRequest::default() }).await?)
}

/// Partitions with a leader in a Metadata answer.
pub fn led(answer: &MetadataResponse) -> usize {
    let partitions =
        answer.topics.iter().filter(|topic| topic.error_code == 0).flat_map(|topic| &topic.partitions);
    partitions.filter(|partition| partition.error_code == 0 && partition.leader_id >= 0).count()
}

/// Describes everything page by page, as Apache's admin client does: (topics, partitions, pages).
///
/// # Errors
/// A refusal.
pub async fn describe_in_pages(c: &mut Connection) -> Result<(usize, usize, usize), Failure> {
    let (mut topics, mut partitions, mut pages) = (0, 0, 0);
    let mut cursor: Option<Cursor> = None;
    loop {
        let request = DescribeTopicPartitionsRequest { cursor: cursor.take(), ..Default::default() };
        let goes_on = request.cursor.clone();
        let answer = c.call(&request).await?;
        pages += 1;
        for topic in &answer.topics {
            ok("describing", topic.error_code)?;
            let is_rest = goes_on.as_ref().is_some_and(|cursor| {
                cursor.partition_index > 0
                    && topic.name.as_ref().is_some_and(|name| *name == cursor.topic_name)
            });
            topics += usize::from(!is_rest);
            partitions += topic.partitions.len();
        }
        let Some(next) = answer.next_cursor else { return Ok((topics, partitions, pages)) };
        cursor = Some(Cursor {
            topic_name: next.topic_name,
            partition_index: next.partition_index,
            ..Cursor::default()
        });
    }
}

/// Partitions in the log directories.
///
/// # Errors
/// A refusal.
pub async fn log_dirs(c: &mut Connection) -> Result<usize, Failure> {
    let request = DescribeLogDirsRequest { topics: None, ..DescribeLogDirsRequest::default() };
    let answer = c.call(&request).await?;
    answer.results.iter().try_for_each(|result| ok("log directories", result.error_code))?;
    Ok(answer.results.iter().flat_map(|dir| &dir.topics).map(|topic| topic.partitions.len()).sum())
}

/// One batch of one small record.
///
/// # Errors
/// None that is known.
pub fn one_record() -> Result<Bytes, Failure> {
    let mut builder = BatchBuilder::new(BatchOptions::default());
    builder.push(TimestampMs(1_700_000_000_000), None, Some(b"a record of a few bytes"), &[]);
    Ok(builder.build()?)
}

/// Writes `batch` to each of some partitions of a topic, `acks=all`.
///
/// # Errors
/// Any of them was refused.
pub async fn produce(
    c: &mut Connection,
    (name, id): (&str, TopicId),
    partitions: Range<i32>,
    batch: &Bytes,
) -> Result<(), Failure> {
    let data = |index| PartitionProduceData { index, records: Some(batch.clone()), ..Default::default() };
    let topic = TopicProduceData {
        name: name.into(),
        topic_id: id,
        partition_data: partitions.map(data).collect(),
        ..Default::default()
    };
    let request =
        ProduceRequest { acks: -1, timeout_ms: 60_000, topic_data: vec![topic], ..ProduceRequest::default() };
    let answer = c.call(&request).await?;
    for partition in answer.responses.iter().flat_map(|topic| &topic.partition_responses) {
        ok(&format!("producing to {name}-{}", partition.index), partition.error_code)?;
    }
    Ok(())
}

/// Reads some partitions of a topic from `offset` on: how many of them held records there.
///
/// # Errors
/// Any of them was refused.
pub async fn fetch(
    c: &mut Connection,
    (name, id): (&str, TopicId),
    partitions: Range<i32>,
    offset: i64,
) -> Result<usize, Failure> {
    let wanted = |partition| FetchPartition {
        partition,
        fetch_offset: offset,
        partition_max_bytes: 4096,
        ..FetchPartition::default()
    };
    let topic = FetchTopic {
        topic: name.into(),
        topic_id: id,
        partitions: partitions.map(wanted).collect(),
        ..Default::default()
    };
    let request = FetchRequest {
        replica_id: -1,
        max_wait_ms: 1000,
        min_bytes: 1,
        max_bytes: 50 << 20,
        session_epoch: -1,
        topics: vec![topic],
        ..FetchRequest::default()
    };
    let answer = c.call(&request).await?;
    ok("fetching", answer.error_code)?;
    let mut held = 0;
    for partition in answer.responses.iter().flat_map(|topic| &topic.partitions) {
        ok(&format!("fetching {name}-{}", partition.partition_index), partition.error_code)?;
        held += usize::from(partition.records.as_ref().is_some_and(|records| !records.is_empty()));
    }
    Ok(held)
}

/// A topic by name, id and number of partitions.
pub type Known = (String, TopicId, i32);

/// Several connections, for work that a fleet of clients would do.
#[derive(Debug)]
pub struct Many {
    connections: Vec<Connection>,
}

impl Many {
    /// # Errors
    /// The node is not there.
    pub async fn open(address: &str, count: usize) -> Result<Self, Failure> {
        Self::open_within(address, count, Duration::from_secs(10)).await
    }

    /// # Errors
    /// The node is not there `within` that time.
    pub async fn open_within(address: &str, count: usize, within: Duration) -> Result<Self, Failure> {
        let mut connections = Vec::with_capacity(count);
        for _ in 0..count {
            connections.push(connect(address, within).await?);
        }
        Ok(Self { connections })
    }

    /// One of the connections.
    ///
    /// # Errors
    /// There is none.
    pub fn one(&mut self) -> Result<&mut Connection, Failure> {
        Ok(self.connections.first_mut().ok_or("no connection")?)
    }

    /// Writes one record to every partition of these topics.
    ///
    /// # Errors
    /// Any of them was refused.
    pub async fn produce_all(&mut self, topics: &[Known]) -> Result<usize, Failure> {
        let batch = one_record()?;
        let pieces = pieces(topics);
        self.share(&pieces, async |c, (topic, range)| {
            produce(c, topic, range.clone(), &batch).await?;
            Ok(range.len())
        })
        .await
    }

    /// Reads every partition of these topics from `offset` on; how many held records there.
    ///
    /// # Errors
    /// Any of them was refused.
    pub async fn fetch_all(&mut self, topics: &[Known], offset: i64) -> Result<usize, Failure> {
        let pieces = pieces(topics);
        self.share(&pieces, async |c, (topic, range)| fetch(c, topic, range, offset).await).await
    }

    /// Gives every connection its part of the pieces and adds up what came of them.
    async fn share<'a>(
        &mut self,
        pieces: &[Piece<'a>],
        work: impl AsyncFn(&mut Connection, Piece<'a>) -> Result<usize, Failure>,
    ) -> Result<usize, Failure> {
        let lanes = self.connections.len();
        let work = &work;
        let mut running = Vec::with_capacity(lanes);
        for (lane, connection) in self.connections.iter_mut().enumerate() {
            let mine: Vec<Piece<'a>> = pieces.iter().skip(lane).step_by(lanes).cloned().collect();
            running.push(Box::pin(run_lane(connection, mine, work)));
        }
        let mut sum = 0;
        let mut open: Vec<usize> = (0..running.len()).collect();
        std::future::poll_fn(|context| {
            let mut failed = None;
            open.retain(|&at| match running[at].as_mut().poll(context) {
                std::task::Poll::Pending => true,
                std::task::Poll::Ready(Ok(done)) => {
                    sum += done;
                    false
                }
                std::task::Poll::Ready(Err(error)) => {
                    failed = Some(error);
                    false
                }
            });
            match failed {
                Some(error) => std::task::Poll::Ready(Err(error)),
                None if open.is_empty() => std::task::Poll::Ready(Ok(sum)),
                None => std::task::Poll::Pending,
            }
        })
        .await
    }
}

type Piece<'a> = ((&'a str, TopicId), Range<i32>);

async fn run_lane<'a>(
    connection: &mut Connection,
    pieces: Vec<Piece<'a>>,
    work: &impl AsyncFn(&mut Connection, Piece<'a>) -> Result<usize, Failure>,
) -> Result<usize, Failure> {
    let mut sum = 0;
    for piece in pieces {
        sum += work(connection, piece).await?;
    }
    Ok(sum)
}

fn pieces(topics: &[Known]) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    for (name, id, count) in topics {
        for from in (0..*count).step_by(AT_ONCE) {
            pieces.push(((name.as_str(), *id), from..(*count).min(from + AT_ONCE as i32)));
        }
    }
    pieces
}
