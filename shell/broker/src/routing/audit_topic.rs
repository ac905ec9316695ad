//! The audit log's lines, from their queue to the topic that `audit.topic` names. The topic is created if it does not
//! exist, and written as a producer's is, with `acks=all`.
//!
//! A thread of its own: no request and no worker waits for it. What fails is tried again, at most every
//! [`LAST_PAUSE`], for as long as the node runs; meanwhile lines wait in the queue, which is bounded. A batch whose
//! answer was lost is written twice. What is written here is in no audit log: Produce is none of its events, and the
//! records of a partition that is led here pass no listener.
//!
//! Before: node/audit/topic.rs. What is written: core/api's `audited::topic`. After: own_records.rs.

use crate::mailbox::PartitionKey;
use crate::node::Node;
use crate::node::audit::TopicLines;
use crate::node::log_rate_limit::LogRateLimit;
use crate::node::peers::broker_links::Purpose;
use crate::routing::own_records::{self, Target};
use barnabas_api::audited::line::notice;
use barnabas_api::audited::topic::{AuditTopic, Batched, batch};
use barnabas_base::{BrokerId, ErrorCode};
use barnabas_quorum::controller::Asked;
use barnabas_wire::ResponseBody;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Pauses between tries double from the first to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LAST_PAUSE: Duration = Duration::from_secs(30);
/// Lines that are taken out of the queue at a time.
const LINES_AT_ONCE: usize = 1024;
/// For what is left when the node stops.
const AT_STOP: Duration = Duration::from_secs(2);
/// Of CreateTopics, in which it is handed to the controller.
const CREATE_VERSION: i16 = 7;

/// Why lines were not written.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("the topic does not exist yet")]
    Missing,
    #[error("the topic cannot be created: {0}")]
    NotCreated(ErrorCode),
    #[error("its partition has no leader")]
    NoLeader,
    #[error("its partition's leader answers {0}")]
    Refused(ErrorCode),
}

/// Starts the thread, if there is an audit topic.
///
/// # Errors
/// The system gives no thread, or no event queue.
pub fn start(node: &Arc<Node>) -> io::Result<()> {
    let Some(lines) = node.audit.topic_lines() else { return Ok(()) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let of = node.clone();
    let thread = std::thread::Builder::new().name("audit-topic".to_owned());
    let thread = thread.spawn(move || runtime.block_on(Sending::new(&of, lines).run()))?;
    node.audit.follow_topic(thread);
    Ok(())
}

struct Sending<'a> {
    node: &'a Node,
    lines: TopicLines,
    /// Taken out of the queue, in order.
    taken: Vec<String>,
    /// How many lines were dropped when that was last written.
    dropped_said: u64,
    complaints: LogRateLimit<()>,
}

impl<'a> Sending<'a> {
    fn new(node: &'a Node, lines: TopicLines) -> Self {
        let complaints = LogRateLimit::default();
        Self { node, lines, taken: Vec::new(), dropped_said: 0, complaints }
    }

    /// Ends with the node.
    async fn run(mut self) {
        let node = self.node;
        tokio::select! {
            () = self.send() => {}
            () = node.audit.topic_stops() => {}
        }
        self.lines.take_rest(&mut self.taken);
        // One more try for what is left. The file, if there is one, has it.
        let _ = tokio::time::timeout(AT_STOP, self.send_taken()).await;
        node.workers.meter.audit.topic_dropped.add(self.taken.len() as u64);
    }

    async fn send(&mut self) {
        let mut pause = FIRST_PAUSE;
        loop {
            if self.taken.is_empty() && !self.lines.take(LINES_AT_ONCE, &mut self.taken).await {
                return;
            }
            match self.send_taken().await {
                Ok(()) => pause = FIRST_PAUSE,
                Err(trouble) => {
                    self.complain(&trouble);
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LAST_PAUSE);
                }
            }
        }
    }

    /// Writes what was taken out of the queue, batch by batch.
    async fn send_taken(&mut self) -> Result<(), Trouble> {
        let node = self.node;
        self.note_dropped();
        while !self.taken.is_empty() {
            let (image, config) = (node.cluster.image.load_full(), node.cluster.config.load_full());
            let topic = self.lines.topic.clone();
            let own = node.identity.broker_id;
            let Some(place) = topic.destination(own, &image, &config) else {
                create(node, &topic).await?;
                return Err(Trouble::Missing);
            };
            if place.leader == BrokerId::NONE {
                return Err(Trouble::NoLeader);
            }
            let lines = self.taken.iter().map(String::as_str);
            let built = batch(lines, own, node.clock.wall(), place.bytes_max);
            let count = match built {
                Ok(Batched::Lines { records, count }) => {
                    let at = PartitionKey { topic: place.topic, partition: place.partition };
                    let (topic, leader) = (topic.name().clone(), place.leader);
                    let target = Target { topic, at, leader, purpose: Purpose::AuditTopic };
                    match own_records::write(node, &target, records).await {
                        Ok(()) => node.workers.meter.audit.topic_written.add(count as u64),
                        Err(code) if is_final(code) => self.give_up(count, code.name()),
                        Err(code) => return Err(Trouble::Refused(code)),
                    }
                    count
                }
                Ok(Batched::TooLarge { .. }) | Err(_) => {
                    self.give_up(1, "larger than max.message.bytes of the topic");
                    1
                }
            };
            self.lines.done(self.taken[..count].iter());
            self.taken.drain(..count);
        }
        Ok(())
    }

    /// Lines that no try can bring into the topic.
    fn give_up(&self, count: usize, why: &str) {
        self.node.workers.meter.audit.topic_dropped.add(count as u64);
        let topic = self.lines.topic.name();
        if let Some(unsaid) = self.complaints.happened(&(), barnabas_clock::now()) {
            tracing::warn!(%topic, lines = count, why, "lines of the audit log are not in its topic{unsaid}");
        }
    }

    fn complain(&self, trouble: &Trouble) {
        // A leader that changes, and a topic that was just created, are there after a few tries.
        const PATIENCE: Duration = Duration::from_secs(5);
        let topic = self.lines.topic.name();
        if let Some(unsaid) = self.complaints.lasts(&(), PATIENCE, barnabas_clock::now()) {
            tracing::warn!(
                %topic,
                why = %trouble,
                "the audit log does not reach its topic; lines wait, and are dropped once the queue is full. Check the \
                 topic's leader, and that the principal of this broker may write to it{unsaid}"
            );
        }
    }

    /// One line for lines that the queue did not take.
    fn note_dropped(&mut self) {
        let dropped = self.node.workers.meter.audit.topic_dropped.get();
        if dropped > self.dropped_said && self.taken.len() < LINES_AT_ONCE * 2 {
            let (wall, own) = (self.node.clock.wall(), self.node.identity.broker_id);
            let count = dropped - self.dropped_said;
            let line = notice(wall, own, "dropped", "the audit topic did not take it", count);
            self.lines.note_own(&line);
            self.taken.push(line);
            self.dropped_said = dropped;
        }
    }
}

/// Trying again would not help.
fn is_final(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::MessageTooLarge | ErrorCode::RecordListTooLarge | ErrorCode::InvalidRecord)
}

async fn create(node: &Node, topic: &AuditTopic) -> Result<(), Trouble> {
    let request = topic.creation(&node.cluster.config.load());
    let asked = Asked { version: CREATE_VERSION, ..Asked::default() };
    let code = match node.peers.controller.ask(request, asked).await {
        Ok(ResponseBody::CreateTopics(response)) => {
            let made = response.topics.first();
            made.map_or(ErrorCode::UnknownServerError, |made| ErrorCode::from_code(made.error_code))
        }
        // Not taken, for whatever reason.
        Ok(_) | Err(_) => ErrorCode::RequestTimedOut,
    };
    match code {
        // Another broker was faster: the topic exists, or is about to.
        ErrorCode::None | ErrorCode::TopicAlreadyExists => Ok(()),
        code => Err(Trouble::NotCreated(code)),
    }
}
