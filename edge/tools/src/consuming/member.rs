//! A member of a classic group that reads one topic: joins, beats, commits, joins again, leaves.

use super::settings::{Reset, Settings};
use crate::ToolError;
use crate::waiting::telling;
use barnabas_base::{Offset, PartitionIndex};
use barnabas_client::{Cluster, Consumer, Group, StartAt};
use std::time::{Duration, Instant};

pub struct Member {
    tool: &'static str,
    group: Group,
    id: String,
    topic: String,
    reset: Reset,
    commit_interval: Option<Duration>,
    committed: Instant,
    is_member: bool,
    shared: Vec<PartitionIndex>,
}

impl Member {
    /// `reset`: where partitions without a committed offset begin.
    pub fn new(tool: &'static str, settings: &Settings, id: &str, topic: &str, reset: Reset) -> Self {
        Self {
            tool,
            group: Group::new(settings.group(id), topic),
            id: id.to_owned(),
            topic: topic.to_owned(),
            reset,
            commit_interval: settings.auto_commit.then_some(settings.commit_interval),
            committed: Instant::now(),
            is_member: false,
            shared: Vec::new(),
        }
    }

    /// Joins if it has to, else beats and commits if it is time to. Returns how long joining took.
    ///
    /// # Errors
    /// What joining again does not cure.
    pub async fn tend(
        &mut self,
        cluster: &mut Cluster,
        consumer: &mut Consumer,
    ) -> Result<Option<Duration>, ToolError> {
        if self.stay(cluster, consumer).await? {
            return Ok(None);
        }
        let joining = Instant::now();
        self.join(cluster, consumer).await?;
        Ok(Some(joining.elapsed()))
    }

    /// Beats and commits if it is time to. `false`: it has to join.
    ///
    /// # Errors
    /// What joining again does not cure.
    pub async fn stay(&mut self, cluster: &mut Cluster, consumer: &Consumer) -> Result<bool, ToolError> {
        if self.is_member {
            self.is_member = self.group.stay(cluster).await?;
        }
        if self.is_member && self.commit_interval.is_some_and(|interval| self.committed.elapsed() >= interval)
        {
            self.committed = Instant::now();
            let positions: Vec<_> = consumer.positions().collect();
            self.is_member = self.group.commit(cluster, positions).await?;
        }
        Ok(self.is_member)
    }

    /// Joins, and assigns the consumer its share.
    ///
    /// # Errors
    /// What joining again does not cure; a partition without an offset where `auto.offset.reset` is none.
    pub async fn join(&mut self, cluster: &mut Cluster, consumer: &mut Consumer) -> Result<(), ToolError> {
        let config = cluster.config().clone();
        let shared = telling(self.tool, config, self.group.join(cluster)).await?;
        let mut starts = Vec::new();
        for (partition, committed) in shared {
            let start = committed.map(StartAt::Offset).or(self.reset.start());
            let start = start.ok_or_else(|| {
                ToolError::Usage(format!(
                    "group {} has no committed offset of {}-{partition}, and auto.offset.reset is none",
                    self.id, self.topic
                ))
            })?;
            starts.push((partition, start));
        }
        self.shared = starts.iter().map(|(partition, _)| *partition).collect();
        consumer.assign(starts);
        self.is_member = true;
        self.committed = Instant::now();
        Ok(())
    }

    /// What it was assigned last.
    pub fn shared(&self) -> &[PartitionIndex] {
        &self.shared
    }

    /// Commits these offsets. `false`: the group rebalances, and they are not committed.
    ///
    /// # Errors
    /// What joining again does not cure.
    pub async fn commit(
        &mut self,
        cluster: &mut Cluster,
        offsets: &[(PartitionIndex, Offset)],
    ) -> Result<bool, ToolError> {
        self.is_member = self.group.commit(cluster, offsets.iter().copied()).await?;
        Ok(self.is_member)
    }

    /// Commits and leaves. A member that has not joined has nothing to commit.
    ///
    /// # Errors
    /// The coordinator does not take it.
    pub async fn leave(mut self, cluster: &mut Cluster, consumer: &Consumer) -> Result<(), ToolError> {
        if !self.is_member {
            return Ok(());
        }
        if self.commit_interval.is_some() {
            let positions: Vec<_> = consumer.positions().collect();
            self.group.commit(cluster, positions).await?;
        }
        Ok(self.group.leave(cluster).await?)
    }
}
