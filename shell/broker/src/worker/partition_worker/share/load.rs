//! The beginning of a share partition: what the share coordinator has of it, or where the group's settings say that it
//! begins.

use super::{
    Active, Letters, PartitionWorker, Share, ShareCommand, ShareDeclined, ShareKey, Stage, settings,
};
use crate::mailbox::{Command, Declined};
use crate::node::workers::repeated::Repeated;
use crate::node::workers::unpacking::AT_ONCE;
use crate::routing::share_persister;
use crate::worker::replica::Replica;
use barnabas_api::share::{ShareGroupSettings, ShareReset};
use barnabas_base::{ErrorCode, LeaderEpoch, Offset, TimestampMs};
use barnabas_coordinator::ShareState;
use barnabas_partition::{Isolation, RecordState, SharePartition, StateBatch, StateEpoch, WrittenState};
use barnabas_storage::FilePool;
use std::sync::Arc;

/// What a record takes, until it is known better.
const BYTES_PER_RECORD: usize = 1024;

impl PartitionWorker {
    /// Has the state read.
    pub(super) fn load_share(&mut self, key: &ShareKey, leader_epoch: LeaderEpoch) {
        self.shares.made += 1;
        let number = self.shares.made;
        self.shares.map.insert(key.clone(), Share { number, stage: Stage::Loading });
        let (node, me, key) = (self.node.clone(), self.id, key.clone());
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
        if self.shares.map.get(key).is_none_or(|share| share.number != number) {
            return;
        }
        let mut effects = Vec::new();
        let state = state.map_err(ShareDeclined::NotLoaded);
        let stage = match state.and_then(|state| self.begin_share(key, &state, &mut effects)) {
            Ok(machine) => Stage::Active(Box::new(Active {
                machine,
                queue: Vec::new(),
                is_writing: false,
                letters: Letters::default(),
                is_leaving: false,
                bytes_per_record: BYTES_PER_RECORD,
            })),
            Err(declined) => {
                tracing::debug!(group = %key.group, partition = ?key.partition, ?declined, "share partition is not loaded");
                Stage::Failed(declined)
            }
        };
        self.shares.map.insert(key.clone(), Share { number, stage });
        self.carry_out_share(key, effects);
        // Waiting fetches look again: one acquires what there is, or all get the error.
        if let Some(replica) = self.replicas.get_mut(&key.partition) {
            match self.shares.map.get(key).map(|share| &share.stage) {
                Some(Stage::Active(_)) => replica.share_waiters.wake_next(&key.group),
                _ => replica.share_waiters.wake_all(),
            }
        }
    }

    fn begin_share(
        &mut self,
        key: &ShareKey,
        state: &ShareState,
        effects: &mut Vec<barnabas_partition::ShareEffect>,
    ) -> Result<SharePartition, ShareDeclined> {
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
        SharePartition::load(&written, leader_epoch, settings, effects).map_err(|error| {
            if let Some(unsaid) = self.node.workers.repeated.happened_to(Repeated::ShareState, &*key.group) {
                tracing::error!(
                    group = %key.group, partition = %key.partition, %error,
                    "the persisted state of a share partition is invalid; reset the group's offsets with \
                     kafka-share-groups{unsaid}"
                );
            }
            ShareDeclined::NotLoaded(ErrorCode::UnknownServerError)
        })
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
