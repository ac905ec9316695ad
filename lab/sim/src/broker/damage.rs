//! Damage in a log: found by a reader or by the scrub, told to the controller, repaired from the leader. core/replica's
//! `repair` decides.

use std::sync::Arc;

use barnabas_api::replication::fetch;
use barnabas_base::{BrokerId, Offset};
use barnabas_partition::{FetchPosition, ReplicaKey};
use barnabas_replica::{RepairStep, RepairView};

use super::{Around, Event, LAG_MAX, Process};

impl Process {
    pub(super) fn host_is_damaged(&self, key: ReplicaKey) -> bool {
        self.hindered.contains(&key)
    }

    pub(super) fn met_damage(&mut self, key: ReplicaKey, offset: Offset, around: &mut Around<'_>) {
        let Some(hosted) = self.host.replicas.get_mut(&key) else { return };
        if hosted.replica.note_damage(offset, true).is_some() {
            self.hindered.insert(key);
            self.settle(key, around);
        }
    }

    /// A follower has asked this leader for what is damaged here.
    pub(super) fn refused_follower(&mut self, key: ReplicaKey, offset: Offset, follower: BrokerId) {
        let topic = self.image.topics.by_id(key.topic);
        let row = topic.and_then(|topic| topic.partition(key.partition));
        if let Some((hosted, row)) = self.host.replicas.get_mut(&key).zip(row) {
            // An operator is warned then.
            hosted.replica.refused_follower(offset, follower, self.id, row);
        }
    }

    /// The scrub reads a log now and then.
    pub(super) fn look_for_damage(&mut self, around: &mut Around<'_>) {
        if self.host.replicas.is_empty() || !around.random.one_in(25) {
            return;
        }
        let keys = self.keys();
        let key = keys[around.random.below(keys.len())];
        if let Some(offset) = self.host.scrub(key) {
            self.met_damage(key, offset, around);
        }
    }

    /// What a damaged replica waits for may have come, or a fetch aside was lost.
    pub(super) fn repair_again(&mut self, around: &mut Around<'_>) {
        if !self.host.ways().fetches_aside {
            return;
        }
        for key in self.keys() {
            let is_damaged = self.host.replica(key).is_some_and(|it| it.repair.is_under_way());
            if is_damaged && around.random.one_in(10) {
                self.repair(key, around);
            }
        }
    }

    /// Goes on with a replica that is damaged and follows.
    pub(super) fn repair(&mut self, key: ReplicaKey, around: &mut Around<'_>) {
        let image = Arc::clone(&self.image);
        let topic = image.topics.by_id(key.topic);
        let Some(row) = topic.and_then(|topic| topic.partition(key.partition)) else { return };
        let Some(hosted) = self.host.replicas.get_mut(&key) else { return };
        if !hosted.replica.repair.is_under_way() {
            return;
        }
        if self.heals_while_it_counts(key, row, around) {
            return;
        }
        let has_no_holes = self.host.has_no_holes(key);
        let Some(hosted) = self.host.replicas.get_mut(&key) else { return };
        let view = RepairView {
            me: self.id,
            row,
            known_by: Some(self.known_by),
            min_in_sync: 2,
            elr_enabled: image.features.elr_enabled(),
            lag_max: LAG_MAX,
            has_no_holes,
            now: around.now,
        };
        let step = loop {
            match hosted.replica.repair_step(&view, &mut self.host.files[hosted.replica.directory]) {
                Ok(RepairStep::Check) => {}
                step => break step,
            }
        };
        match step {
            Ok(RepairStep::Wait | RepairStep::Check) => {}
            Ok(RepairStep::FetchAside { from }) => self.fetch_aside(key, from, around),
            Ok(RepairStep::Refetch { .. } | RepairStep::Ask | RepairStep::FetchOn) => self.tell_position(key),
            Ok(RepairStep::Repaired { mended }) => {
                hosted.replica.forget_damage();
                self.hindered.remove(&key);
                if mended.is_some() {
                    around.events.push(Event::Mended { key });
                }
                self.tell_position(key);
            }
            Ok(RepairStep::GiveUp { cut, .. }) => {
                self.host.note_truncation(key, cut, true, &around.time());
            }
            Err(error) => self.host.truncation_failed(key, error),
        }
    }

    /// Takes what the leader has sent to a replica that fetches again what it has.
    pub(super) fn take_again(
        &mut self,
        key: ReplicaKey,
        asked: &FetchPosition,
        answer: fetch::Answer,
        around: &mut Around<'_>,
    ) {
        let Some(hosted) = self.host.replicas.get_mut(&key) else { return };
        let fetch::Answer { records, high_watermark, .. } = answer;
        let replica = &mut hosted.replica;
        let files = &mut self.host.files[replica.directory];
        match replica.take_again(asked.offset, records, high_watermark, files) {
            Ok(_) => {}
            Err(error) => return self.host.truncation_failed(key, error),
        }
        self.repair(key, around);
        let position =
            self.host.replica(key).and_then(|replica| replica.partition.fetch_position(replica.log.epochs()));
        if position.is_none_or(|position| position.offset == asked.offset) {
            self.delay(key, around);
        }
    }
}
