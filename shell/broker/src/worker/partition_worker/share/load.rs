//! The beginning of a share partition: what the share coordinator has of it, or where the group's settings say that it
//! begins.

use super::{PartitionWorker, ShareCommand, ShareKey, settings};
use crate::mailbox::share::ShareDeclined;
use crate::mailbox::{Command, Declined};
use crate::node::workers::repeated::Repeated;
use crate::node::workers::unpacking::AT_ONCE;
use crate::routing::share_persister;
use crate::worker::replica::Replica;
use barnabas_api::share::{ShareGroupSettings, ShareReset};
use barnabas_base::{ErrorCode, LeaderEpoch, Offset, TimestampMs};
use barnabas_coordinator::ShareState;
use barnabas_partition::{
    Isolation, RecordState, ShareEffect, SharePartition, StateBatch, StateEpoch, WrittenState,
};
use barnabas_storage::FilePool;
use std::sync::Arc;

impl PartitionWorker {
    /// Has the state read.
    pub(super) fn load_share(&mut self, key: ShareKey, number: u64, leader_epoch: LeaderEpoch) {
        let (node, me) = (self.node.clone(), self.id);
        tokio::task::spawn_local(async move {
            let state = share_persister::read(&node, super::write::coordinator_key(&key), leader_epoch).await;
            let loaded = ShareCommand::Loaded { key, number, state };
            node.workers.mailboxes[me].send(Command::Share(Box::new(loaded))).await;
        });
    }

    pub(super) fn share_loaded(
        &mut self,
        key: &ShareKey,
        number: u64,
        state: Result<Arc<ShareState>, ErrorCode>,
    ) {
        if !self.shares.partitions.has(key, number) {
            return;
        }
        let state = state.map_err(ShareDeclined::NotLoaded);
        let begun = state.and_then(|state| self.begin_share(key, &state));
        let is_loaded = begun.is_ok();
        if let Err(declined) = &begun {
            tracing::debug!(group = %key.group, partition = ?key.partition, ?declined, "share partition is not loaded");
        }
        let mut effects = Vec::new();
        self.shares.partitions.loaded(key, number, begun, &mut effects);
        self.carry_out_shares(effects);
        // Waiting fetches look again: one acquires what there is, or all get the error.
        if let Some(replica) = self.replicas.get_mut(&key.partition) {
            match is_loaded {
                true => replica.share_waiters.wake_next(&key.group),
                false => replica.share_waiters.wake_all(),
            }
        }
    }

    fn begin_share(
        &mut self,
        key: &ShareKey,
        state: &ShareState,
    ) -> Result<(SharePartition, Vec<ShareEffect>), ShareDeclined> {
        self.open(key.partition)?;
        let replica = self.replicas.get(&key.partition).ok_or(Declined::Unknown)?;
        let leader_epoch = replica.partition.leader_epoch();
        let start =
            if state.start_offset == Offset::NONE { self.reset_share(key)? } else { state.start_offset };
        let batches = state.batches.iter().filter_map(|batch| {
            Some(StateBatch {
                first: batch.first,
                last: batch.last,
                state: RecordState::from_code(batch.delivery_state)?,
                delivery_count: u16::try_from(batch.delivery_count).unwrap_or(0),
            })
        });
        let written =
            WrittenState { state_epoch: StateEpoch(state.state_epoch), start, batches: batches.collect() };
        let settings = settings(&key.group, &self.node.cluster.image.load(), &self.node);
        let mut effects = Vec::new();
        let loaded = SharePartition::load(&written, leader_epoch, settings, &mut effects);
        let machine = loaded.map_err(|error| {
            if let Some(unsaid) = self.node.workers.repeated.happened_to(Repeated::ShareState, &*key.group) {
                tracing::error!(
                    group = %key.group, partition = %key.partition, %error,
                    "the persisted state of a share partition is invalid; reset the group's offsets with \
                     kafka-share-groups{unsaid}"
                );
            }
            ShareDeclined::NotLoaded(ErrorCode::UnknownServerError)
        })?;
        Ok((machine, effects))
    }

    /// Where a group begins that was never here.
    ///
    /// # Source
    /// Kafka 4.4 `SharePartition.startOffsetDuringInitialization`. Where no record is as young as the duration asks
    /// for, Kafka refuses until one comes; here the group begins with that one.
    fn reset_share(&mut self, key: &ShareKey) -> Result<Offset, ShareDeclined> {
        let reset = {
            let (image, config) = (self.node.cluster.image.load(), self.node.cluster.config.load());
            ShareGroupSettings::of(&key.group, &image, &config).reset
        };
        let now = self.node.clock.wall();
        let Self { replicas, files, .. } = self;
        let replica = replicas.get_mut(&key.partition).ok_or(Declined::Unknown)?;
        let bounds = replica.partition.bounds(Isolation::ReadUncommitted, None).map_err(Declined::Refused)?;
        match reset {
            ShareReset::Earliest => Ok(bounds.log_start),
            ShareReset::Latest => Ok(bounds.high_watermark),
            ShareReset::ByDuration(duration) => {
                let since = TimestampMs(now.0.saturating_sub(duration.0));
                let files = &mut files[replica.directory];
                let at = first_since(replica, files, since, bounds.log_start)?;
                let at = at.filter(|at| *at < bounds.high_watermark);
                Ok(at.unwrap_or(bounds.high_watermark))
            }
        }
    }
}

/// The first record of `since` or later. Where the batch that may hold it takes too long to read, or cannot be read,
/// the batch's own first offset: the group gets some records that are older than it asked for, and misses none.
fn first_since(
    replica: &mut Replica,
    files: &mut FilePool,
    since: TimestampMs,
    from: Offset,
) -> Result<Option<Offset>, ShareDeclined> {
    let batch = replica.log.batch_for_timestamp(files, since, from).map_err(|_| Declined::Storage)?;
    Ok(batch.map(|batch| match batch.look(AT_ONCE.read_bytes_max) {
        Ok(Some(found)) => found.offset,
        Ok(None) | Err(_) => batch.first_offset(),
    }))
}
