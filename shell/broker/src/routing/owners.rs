//! Work for partitions, sent to the workers that own them, and their answers gathered.
//!
//! One command for each worker that is concerned, whatever the number of partitions. Sending waits while a mailbox is
//! full, which holds the connection's next request back; gathering happens when the answer is due.

use crate::mailbox::Waiter;
use crate::mailbox::{
    AppendCommand, AppendItem, AppendOutcome, AskCommand, AskItem, AskOutcome, Command, FollowerLife,
    PartitionKey, ReadCommand, ReadItem, ReadOutcome,
};
use crate::node::Node;
use barnabas_base::LeaderEpoch;
use barnabas_base::{BrokerId, MonotonicMs, Text};
use barnabas_partition::{Acks, BatchSequence, Isolation};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Answers that are on their way from several workers.
#[derive(Debug)]
pub struct Gathering<T> {
    receivers: Vec<oneshot::Receiver<Vec<T>>>,
}

impl<T> Gathering<T> {
    fn new() -> Self {
        Self { receivers: Vec::new() }
    }

    fn expect(&mut self) -> oneshot::Sender<Vec<T>> {
        let (sender, receiver) = oneshot::channel();
        self.receivers.push(receiver);
        sender
    }

    /// Everything that was said. A worker that ended in between says nothing: the node is stopping.
    pub async fn all(self) -> Vec<T> {
        let mut receivers = self.receivers.into_iter();
        let mut said = match receivers.next() {
            Some(receiver) => receiver.await.unwrap_or_default(),
            None => return Vec::new(),
        };
        for receiver in receivers {
            said.extend(receiver.await.unwrap_or_default());
        }
        said
    }
}

/// Sorts items by the worker that owns their partition.
fn by_owner<T>(node: &Node, items: Vec<T>, key: impl Fn(&T) -> PartitionKey) -> Vec<(usize, Vec<T>)> {
    let count = node.workers.count;
    let mut owners = items.iter().map(|item| key(item).owner(count));
    let Some(first) = owners.next() else { return Vec::new() };
    // Most requests are for one worker: nothing is to be moved then.
    if owners.all(|owner| owner == first) {
        return vec![(first, items)];
    }
    let mut parts: Vec<(usize, Vec<T>)> = Vec::with_capacity(items.len().min(count));
    for item in items {
        let owner = key(&item).owner(count);
        match parts.iter_mut().find(|(known, _)| *known == owner) {
            Some((_, part)) => part.push(item),
            None => parts.push((owner, vec![item])),
        }
    }
    parts
}

/// Sends batches to their partitions. With `acks=0` nothing is gathered.
pub async fn append(
    node: &Node,
    items: Vec<AppendItem>,
    acks: Acks,
    deadline: MonotonicMs,
) -> Gathering<AppendOutcome> {
    let mut gathering = Gathering::new();
    for (owner, items) in by_owner(node, items, |item| item.partition) {
        let reply = (acks != Acks::None).then(|| gathering.expect());
        let command = Command::Append(AppendCommand { acks, deadline, items, reply });
        node.workers.mailboxes[owner].send(command).await;
    }
    gathering
}

/// Says of batches that they were refused before they came to their partitions.
pub async fn note_refused(node: &Node, batches: Vec<(PartitionKey, BatchSequence)>) {
    for (owner, batches) in by_owner(node, batches, |batch| batch.0) {
        node.workers.mailboxes[owner].send(Command::Refused(batches)).await;
    }
}

/// Who reads, and so how much of a log is shown.
#[derive(Debug, Clone)]
pub struct ReaderOf {
    pub isolation: Isolation,
    /// See [`ReadCommand`].
    pub from_any: bool,
    pub rack: Option<Text>,
    pub repairs_for: Option<BrokerId>,
    pub follower: Option<FollowerLife>,
}

/// Asks for records.
pub async fn read(
    node: &Node,
    items: Vec<ReadItem>,
    reader: ReaderOf,
    max_bytes: usize,
    at_least_one: bool,
    waiter: Option<Arc<Waiter>>,
) -> Gathering<ReadOutcome> {
    let mut gathering = Gathering::new();
    for (owner, items) in by_owner(node, items, |item| item.partition) {
        let reply = gathering.expect();
        let waiter = waiter.clone();
        let ReaderOf { isolation, from_any, rack, repairs_for, follower } = reader.clone();
        let command = ReadCommand {
            isolation,
            from_any,
            rack,
            items,
            max_bytes,
            at_least_one,
            repairs_for,
            follower,
            waiter,
            was_early: false,
            reply,
        };
        node.workers.mailboxes[owner].send(Command::Read(command)).await;
    }
    gathering
}

/// Asks small questions.
pub async fn ask(node: &Node, items: Vec<AskItem>) -> Gathering<AskOutcome> {
    let mut gathering = Gathering::new();
    for (owner, items) in by_owner(node, items, |item| item.partition) {
        let reply = gathering.expect();
        node.workers.mailboxes[owner].send(Command::Ask(AskCommand { items, reply })).await;
    }
    gathering
}

/// The epoch under which this broker leads the partition now.
pub fn led_under(node: &Node, key: PartitionKey) -> Option<LeaderEpoch> {
    let image = node.cluster.image.load();
    let partition = image.topics.by_id(key.topic)?.partition(key.partition)?;
    (partition.leader == node.identity.broker_id).then_some(partition.leader_epoch)
}

/// Asks every worker and waits for all of them.
pub fn ask_workers<T>(node: &Node, command: impl Fn(oneshot::Sender<Vec<T>>) -> Command) -> Vec<T> {
    let mut answers = Vec::with_capacity(node.workers.count);
    for mailbox in &node.workers.mailboxes {
        let (reply, answer) = oneshot::channel();
        mailbox.send_blocking(command(reply));
        answers.push(answer);
    }
    // A worker that has ended answers nothing: there is nothing of it to note.
    answers.into_iter().flat_map(|answer| answer.blocking_recv().unwrap_or_default()).collect()
}
