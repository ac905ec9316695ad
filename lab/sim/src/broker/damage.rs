//! Damage in a log: found by a reader or by the scrub, told to the controller, repaired from the leader. core/replica's
//! `repair` decides.

use std::sync::Arc;

use barnabas_base::Offset;
use barnabas_partition::ReplicaKey;
use barnabas_replica::{RepairStep, RepairView};

use super::{Around, LAG_MAX, Process};

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

    /// Goes on with a replica that is damaged and follows.
    pub(super) fn repair(&mut self, key: ReplicaKey, around: &mut Around<'_>) {
        let image = Arc::clone(&self.image);
        let topic = image.topics.by_id(key.topic);
        let Some(row) = topic.and_then(|topic| topic.partition(key.partition)) else { return };
        let Some(hosted) = self.host.replicas.get_mut(&key) else { return };
        if hosted.replica.repair.damaged_from().is_none() {
            return;
        }
        if self.heals_while_it_counts(key, row, around) {
            return;
        }
        let Some(hosted) = self.host.replicas.get_mut(&key) else { return };
        let view = RepairView {
            me: self.id,
            row,
            known_by: Some(self.known_by),
            min_in_sync: 2,
            elr_enabled: image.features.elr_enabled(),
            lag_max: LAG_MAX,
            now: around.now,
        };
        match hosted.replica.repair_step(&view) {
            RepairStep::Wait => {}
            RepairStep::Refetch { .. } | RepairStep::FetchOn => self.tell_position(key),
            RepairStep::Repaired => {
                hosted.replica.forget_damage();
                self.hindered.remove(&key);
            }
            RepairStep::GiveUp { cut, .. } => self.host.note_truncation(key, cut, true, &around.time()),
        }
    }
}
