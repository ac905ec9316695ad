//! Keeps the partition short: deletes redundant records, rewrites idle share-partitions, ends those of deleted
//! topics. And the shard's invariants.

use std::sync::Arc;

use barnabas_base::{Offset, TopicId};

use super::{ShareStateShard, TimerKey, exists};
use crate::framework::Now;
use crate::share_state::entry::Change;
use crate::share_state::{SharePartitionKey, ShareStateEffect, record};

/// Share-partitions that go into one batch.
const CHANGES_MAX: usize = 500;

impl ShareStateShard {
    /// Asks for the deletion of what lies before every share-partition's last snapshot.
    ///
    /// # Source
    /// Kafka 4.4 `ShareCoordinatorService.performRecordPruning`, `ShareCoordinatorOffsetsManager`.
    pub(super) fn prune(&mut self) {
        self.set_timer(TimerKey::Prune, self.config.prune_interval);
        self.end_gone_topics();
        let before = self.redundant_before();
        if before > self.pruned {
            self.pruned = before;
            self.effects.push(ShareStateEffect::Prune { before });
        }
    }

    /// The first offset that a replay needs.
    fn redundant_before(&self) -> Offset {
        self.entries.values().filter_map(|entry| entry.snapshot_at).min().unwrap_or(self.end).min(self.end)
    }

    /// # Source
    /// Kafka 4.4 `ShareCoordinatorShard.snapshotColdPartitions`: also those that are updated all the time, as their
    /// last snapshot may be as old.
    pub(super) fn snapshot_cold(&mut self) {
        self.set_timer(TimerKey::Cold, self.config.cold_snapshot_interval);
        let (now, interval) = (self.now.wall, self.config.cold_snapshot_interval.0);
        let is_cold_already = |state: &crate::share_state::ShareState| state.created != state.written;
        let mut known = self.entries.values().filter_map(|entry| entry.latest());
        if known.all(|state| is_cold_already(state)) {
            // A prefix that is nothing but cold snapshots is as short as it can be.
            return;
        }
        let due = self.entries.iter().filter(|(_, entry)| !entry.is_changing());
        let due = due.filter_map(|(key, entry)| Some((key, entry.committed()?)));
        let due = due.filter(|(_, state)| now.0.saturating_sub(state.written.0) >= interval);
        let mut due: Vec<_> = due
            .map(|(key, state)| {
                (key.clone(), Change::Snapshot(Arc::new(state.as_snapshot(state.created, now))))
            })
            .collect();
        due.sort_by(|a, b| a.0.cmp(&b.0));
        self.append_all(due);
    }

    /// Topics that are gone since this shard was loaded, or were before: what their share-partitions were is of no use
    /// to anybody, as no topic has their id again.
    fn end_gone_topics(&mut self) {
        let gone = self.entries.iter().filter(|(key, entry)| {
            entry.latest().is_some() && !exists(&self.image, key.topic, key.partition)
        });
        let mut gone: Vec<_> = gone.map(|(key, _)| (key.clone(), Change::End)).collect();
        gone.sort_by(|a, b| a.0.cmp(&b.0));
        self.append_all(gone);
    }

    /// These topics were deleted: their share-partitions end.
    ///
    /// # Source
    /// Kafka 4.4 `ShareCoordinatorShard.maybeCleanupShareState`.
    pub fn topics_deleted(&mut self, topics: &[TopicId], now: Now) -> Vec<ShareStateEffect> {
        self.now = now;
        if self.is_active {
            let of = self
                .entries
                .iter()
                .filter(|(key, entry)| entry.latest().is_some() && topics.contains(&key.topic));
            let mut of: Vec<_> = of.map(|(key, _)| (key.clone(), Change::End)).collect();
            of.sort_by(|a, b| a.0.cmp(&b.0));
            self.append_all(of);
        }
        self.take_effects()
    }

    fn append_all(&mut self, changes: Vec<(SharePartitionKey, Change)>) {
        let (mut records, mut taken, mut bytes) = (Vec::new(), Vec::new(), 0);
        for (key, change) in changes {
            let record = match &change {
                Change::Snapshot(state) => record::snapshot(&key, state),
                Change::Update(update) => record::update(&key, update),
                Change::End => record::tombstone(&key),
            };
            let is_full = taken.len() == CHANGES_MAX || bytes + record.bytes() > self.config.batch_bytes_max;
            if is_full && !taken.is_empty() {
                self.append(std::mem::take(&mut records), std::mem::take(&mut taken));
                bytes = 0;
            }
            bytes += record.bytes();
            records.push(record);
            taken.push((key, change));
        }
        // What there is no room for now is found again by the next look.
        if !taken.is_empty() && self.pending.len() < self.config.pending_batches_max {
            self.append(records, taken);
        }
    }

    /// What is not as it must always be, in words; empty as long as there is no bug. Costs a look at everything: for
    /// tests and the simulator.
    pub fn violations(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (key, entry) in &self.entries {
            let key = key.coordinator_key();
            if entry.is_gone() {
                found.push(format!("{key}: nothing is left of it, and it is still there"));
            }
            if let Some(newest) = entry.newest().filter(|newest| !self.pending.is_pending(*newest)) {
                found.push(format!("{key}: waits for batch {}, which is decided", newest.0));
            }
            match (entry.committed(), entry.snapshot_at) {
                (Some(_), None) => found.push(format!("{key}: is on disk nowhere")),
                (Some(_), Some(at)) if at < self.pruned => {
                    found.push(format!("{key}: its snapshot at {at} was pruned"));
                }
                _ => {}
            }
            for state in entry.committed().into_iter().chain(entry.latest()) {
                let ordered = state.batches.windows(2).all(|two| two[0].last < two[1].first);
                let begins = state.batches.first().is_none_or(|first| first.first >= state.start_offset);
                if !ordered || !begins {
                    found.push(format!("{key}: batches are not in order from the start offset on"));
                }
            }
        }
        let held = self.entries.iter().map(|(key, entry)| super::bytes(key, entry)).sum::<usize>();
        if held != self.room.held() {
            found.push(format!("share-partitions take {held} bytes, and {} are counted", self.room.held()));
        }
        if self.is_active && self.timers.len() != 2 {
            found.push("no timer for pruning, or none for cold share-partitions".to_owned());
        }
        found.sort();
        found
    }
}
