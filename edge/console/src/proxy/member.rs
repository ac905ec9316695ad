//! A consumer's task: joins its group and stays in it between requests, commits, and ends when the consumer is deleted
//! or idle. It has connections of its own to the cluster, as the caller that made the consumer.
//!
//! | what | when |
//! |---|---|
//! | heartbeat | every 3 s (`GroupConfig`) |
//! | commit, with `auto.commit.enable` | every [`COMMIT_EVERY`] of what was processed, before a rebalance, at the end |
//! | a look at the topics' partitions | every `Setup::refresh`; where they have changed it joins again |
//! | another try to join | [`RETRY_AFTER`] after a failure |
//!
//! Source: Kafka `ConsumerCoordinator` (what is committed before a rebalance), KIP-62.

use super::instance::{Commit, Instance, Offsets};
use super::subscription::{Subscription, matching};
use crate::http::problem::Problem;
use crate::kafka::{Partition, metadata};
use barnabas_base::{ErrorCode, Offset};
use barnabas_client::{ClientError, Cluster, Group, GroupConfig};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::Receiver;
use tokio::time::timeout;

/// Confluent's `consumer.instance.timeout.ms`.
const IDLE_FOR: Duration = Duration::from_secs(300);
const TICK: Duration = Duration::from_secs(1);
const COMMIT_EVERY: Duration = Duration::from_secs(5);
const RETRY_AFTER: Duration = Duration::from_secs(5);
/// For the last commit and the leave.
const END_WITHIN: Duration = Duration::from_secs(5);

/// The topics that are read, and how many partitions each has.
type Sizes = BTreeMap<String, usize>;

struct Member {
    instance: Arc<Instance>,
    cluster: Cluster,
    group: Option<Group>,
    is_joined: bool,
    /// As the group was joined for.
    sizes: Sizes,
    looked: Option<Instant>,
    retry_at: Instant,
    committed: BTreeMap<Partition, i64>,
    committed_at: Instant,
}

/// Until the consumer is deleted or idle. `remove` takes an idle one out of the list; `false`: a request has, by now.
pub async fn keep(
    instance: Arc<Instance>,
    remove: impl Fn(&Arc<Instance>) -> bool,
    cluster: Cluster,
    mut commits: Receiver<Commit>,
) {
    let mut member = Member::new(instance, cluster);
    let is_deleted = loop {
        tokio::select! {
            () = member.instance.stopped.notified() => break true,
            Some(commit) = commits.recv() => member.answer(commit).await,
            () = member.instance.woken.notified() => {}
            () = tokio::time::sleep(TICK) => {}
        }
        if member.instance.is_idle_for(IDLE_FOR) && remove(&member.instance) {
            tracing::debug!(name = member.instance.id.name, "a consumer of REST v2 idled out");
            break false;
        }
        if member.turn().await {
            break true;
        }
    };
    // The session's end removes a member that could not leave.
    let _ = timeout(END_WITHIN, member.end(is_deleted)).await;
    member.instance.ended.notify_one();
}

impl Member {
    fn new(instance: Arc<Instance>, cluster: Cluster) -> Self {
        let now = Instant::now();
        Self {
            instance,
            cluster,
            group: None,
            is_joined: false,
            sizes: Sizes::new(),
            looked: None,
            retry_at: now,
            committed: BTreeMap::new(),
            committed_at: now,
        }
    }

    /// What is due. `true`: the consumer was deleted meanwhile.
    async fn turn(&mut self) -> bool {
        let subscription = self.instance.subscription();
        let done = match &subscription {
            Subscription::Nothing | Subscription::Partitions => {
                self.leave().await;
                self.commit_processed(false).await;
                Ok(false)
            }
            Subscription::Topics(_) | Subscription::Pattern(_) => self.stay(&subscription).await,
        };
        match done {
            Ok(is_deleted) => is_deleted,
            Err(error) => {
                tracing::debug!(%error, "a consumer of REST v2 is not in its group");
                self.is_joined = false;
                self.retry_at = Instant::now() + RETRY_AFTER;
                self.instance.set_trouble(error.into());
                false
            }
        }
    }

    async fn stay(&mut self, subscription: &Subscription) -> Result<bool, ClientError> {
        if Instant::now() < self.retry_at {
            return Ok(false);
        }
        self.look(subscription).await?;
        if let Some(group) = self.group.as_mut().filter(|_| self.is_joined) {
            self.is_joined = group.stay(&mut self.cluster).await?;
        }
        // What was processed is committed before others may get the partitions.
        self.commit_processed(!self.is_joined).await;
        let has_partitions = self.sizes.values().any(|size| *size > 0);
        if self.is_joined || !has_partitions {
            return Ok(false);
        }
        self.join().await
    }

    /// Which topics are meant, and how many partitions they have: where that has changed, it has to join again.
    async fn look(&mut self, subscription: &Subscription) -> Result<(), ClientError> {
        let named = match subscription {
            Subscription::Topics(topics) => Some(topics),
            _ => None,
        };
        let is_other = named.is_some_and(|named| !self.sizes.keys().eq(named));
        let is_due = self.looked.is_none_or(|looked| looked.elapsed() >= self.instance.setup.refresh);
        if !is_other && !is_due && self.group.is_some() {
            return Ok(());
        }
        let sizes = match subscription {
            Subscription::Topics(topics) => self.sizes_of(topics).await?,
            Subscription::Pattern(pattern) => {
                let all = metadata::topics(&mut self.cluster).await?;
                let names =
                    all.iter().filter(|topic| !topic.is_internal).filter_map(|topic| topic.name.as_deref());
                self.sizes_of(&matching(pattern, names)).await?
            }
            Subscription::Nothing | Subscription::Partitions => Sizes::new(),
        };
        self.looked = Some(Instant::now());
        if sizes != self.sizes || self.group.is_none() {
            self.is_joined = false;
            self.sizes = sizes;
        }
        Ok(())
    }

    /// A topic that is not there has no partitions; once it has, the group is joined again.
    async fn sizes_of(&mut self, topics: &BTreeSet<String>) -> Result<Sizes, ClientError> {
        let names: Vec<&str> = topics.iter().map(String::as_str).collect();
        if names.is_empty() {
            return Ok(Sizes::new());
        }
        let answer = self.cluster.refresh(Some(&names), false).await?;
        let mut sizes: Sizes = topics.iter().map(|topic| (topic.clone(), 0)).collect();
        for topic in &answer.topics {
            let name = topic.name.as_deref().unwrap_or_default();
            if ErrorCode::from_code(topic.error_code) == ErrorCode::TopicAuthorizationFailed {
                return Err(ClientError::refused(format!("topic {name}"), topic.error_code, None));
            }
            sizes.insert(name.to_owned(), topic.partitions.len());
        }
        Ok(sizes)
    }

    /// A rebalance may take as long as the slowest member: the consumer may be deleted meanwhile (`true`).
    async fn join(&mut self) -> Result<bool, ClientError> {
        let sizes = self.sizes.iter().filter(|topic| *topic.1 > 0);
        let topics: Vec<String> = sizes.map(|topic| topic.0.clone()).collect();
        let config = GroupConfig::new(&self.instance.id.group);
        let group = self.group.get_or_insert_with(|| Group::of_topics(config, Vec::new()));
        group.subscribe(topics);
        let joined = tokio::select! {
            joined = group.join_all(&mut self.cluster) => Some(joined?),
            () = self.instance.stopped.notified() => None,
        };
        let Some(partitions) = joined else {
            // An answer is outstanding on its connection.
            self.cluster = self.cluster.with_new_connections();
            return Ok(true);
        };
        self.is_joined = true;
        let partitions = partitions.into_iter();
        let partitions: Vec<(Partition, Option<i64>)> =
            partitions.map(|(partition, offset)| (partition, offset.map(Offset::get))).collect();
        self.committed = partitions
            .iter()
            .filter_map(|(partition, offset)| Some((partition.clone(), (*offset)?)))
            .collect();
        self.instance.assigned(partitions);
        Ok(false)
    }

    async fn answer(&mut self, commit: Commit) {
        let committed = self.commit(commit.offsets).await;
        // The request may be gone.
        let _ = commit.done.send(committed);
    }

    async fn commit(&mut self, offsets: Offsets) -> Result<(), Problem> {
        let offsets = offsets.unwrap_or_else(|| self.instance.read());
        self.send(&offsets).await?;
        self.committed.extend(offsets);
        Ok(())
    }

    /// `is_due`: whatever time has passed. A failure is no trouble of reading: it is tried again with the next commit,
    /// as Kafka's consumer does.
    async fn commit_processed(&mut self, is_due: bool) {
        let is_due = is_due || self.committed_at.elapsed() >= COMMIT_EVERY;
        if !self.instance.setup.is_auto_commit || !is_due {
            return;
        }
        let mut offsets = self.instance.processed();
        offsets.retain(|partition, offset| self.committed.get(partition) != Some(offset));
        self.committed_at = Instant::now();
        if offsets.is_empty() {
            return;
        }
        match self.send(&offsets).await {
            Ok(()) => self.committed.extend(offsets),
            Err(error) => tracing::debug!(%error, "a consumer of REST v2 did not commit by itself"),
        }
    }

    async fn send(&mut self, offsets: &BTreeMap<Partition, i64>) -> Result<(), ClientError> {
        let name = &self.instance.id.group;
        let Some(group) = &mut self.group else { return self.cluster.commit_offsets(name, offsets).await };
        let rows = offsets.iter().map(|(partition, offset)| (partition.clone(), Offset(*offset)));
        if group.commit_all(&mut self.cluster, rows).await? {
            return Ok(());
        }
        self.is_joined = false;
        let code = ErrorCode::RebalanceInProgress.code();
        Err(ClientError::refused(format!("committing to group {name}"), code, None))
    }

    async fn leave(&mut self) {
        let Some(mut group) = self.group.take() else { return };
        (self.is_joined, self.sizes, self.looked) = (false, Sizes::new(), None);
        if let Err(error) = group.leave(&mut self.cluster).await {
            tracing::debug!(%error, "a consumer of REST v2 did not leave its group");
        }
    }

    /// A client that deletes its consumer has processed what it has got.
    async fn end(&mut self, is_deleted: bool) {
        if self.instance.setup.is_auto_commit {
            let offsets = if is_deleted { self.instance.read() } else { self.instance.processed() };
            let changed: BTreeMap<Partition, i64> = offsets
                .into_iter()
                .filter(|(partition, offset)| self.committed.get(partition) != Some(offset))
                .collect();
            if !changed.is_empty()
                && let Err(error) = self.send(&changed).await
            {
                tracing::debug!(%error, "a consumer of REST v2 ended without its last commit");
            }
        }
        self.leave().await;
    }
}
