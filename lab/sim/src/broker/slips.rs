//! Planted mistakes between core/replica and its caller: the core gets a wrong input. One is planted at a time.

use std::collections::BTreeMap;

use barnabas_base::{BrokerId, ErrorCode, Offset};
use barnabas_metadata::Partition as State;
use barnabas_partition::{Cut, FollowerFetch, FollowerState, IsrAnswer, IsrChange, Leadership, ReplicaKey};
use barnabas_replica::registered;

use super::{Around, LAG_MAX, Process};
use crate::mistake::Mistake;

/// What a mistake has to remember.
#[derive(Debug, Default)]
pub(super) struct Slips {
    /// How far each follower had come when it fetched last.
    ends: BTreeMap<(ReplicaKey, BrokerId), Offset>,
}

impl Process {
    /// A follower has fetched.
    pub(super) fn slip_after_fetch(
        &mut self,
        key: ReplicaKey,
        fetch: &FollowerFetch,
        around: &mut Around<'_>,
    ) {
        let Some(mistake) = around.mistake else { return };
        self.slips.ends.insert((key, fetch.broker), fetch.offset);
        match mistake {
            Mistake::CountsTheFastest => {
                for broker in self.followers_of(key) {
                    self.credit(key, broker, fetch.offset, around);
                }
            }
            Mistake::ExpandsAfterTheAnswer => {
                for broker in self.joining(key) {
                    let end = self.host.replica(key).map_or(Offset::ZERO, |replica| replica.log.end());
                    self.credit(key, broker, end, around);
                }
            }
            Mistake::ExpandsWhoLags => self.let_join(key, fetch, around),
            _ => {}
        }
    }

    fn row(&self, key: ReplicaKey) -> Option<&State> {
        self.image.topics.by_id(key.topic)?.partition(key.partition)
    }

    fn followers_of(&self, key: ReplicaKey) -> Vec<BrokerId> {
        let replicas = self.row(key).map(|row| row.replicas().to_vec()).unwrap_or_default();
        replicas.into_iter().filter(|broker| *broker != self.id).collect()
    }

    /// Who the controller is asked to let join.
    fn joining(&self, key: ReplicaKey) -> Vec<BrokerId> {
        let change = self.host.replica(key).and_then(|replica| replica.partition.isr_change());
        let (Some(change), Some(row)) = (change, self.row(key)) else { return Vec::new() };
        let asked = change.in_sync.iter().map(|(broker, _)| *broker);
        asked.filter(|broker| !row.isr().contains(broker)).collect()
    }

    /// The leader believes that a follower has come so far.
    fn credit(&mut self, key: ReplicaKey, broker: BrokerId, offset: Offset, around: &Around<'_>) {
        let Some(registered) = registered(&self.image, broker) else { return };
        let fetch = FollowerFetch {
            broker,
            broker_epoch: registered,
            registered: Some(registered),
            leader_epoch: None,
            offset,
            last_epoch: None,
            log_start: Offset::ZERO,
            now: around.now,
        };
        self.host.step(key, around.now, |replica, around| {
            let offset = fetch.offset.min(replica.log.end());
            let _ = replica.follower_fetch(&FollowerFetch { offset, ..fetch }, around.outbox);
        });
    }

    /// Asks the controller to let a follower join, however far behind.
    fn let_join(&mut self, key: ReplicaKey, fetch: &FollowerFetch, around: &Around<'_>) {
        let (Some(row), Some(replica)) = (self.row(key), self.host.replica(key)) else { return };
        let is_free = replica.partition.is_leader() && replica.partition.isr_change().is_none();
        if !is_free || row.isr().contains(&fetch.broker) || row.leader != self.id {
            return;
        }
        let members = row.isr().iter().filter(|broker| **broker != self.id).chain([&fetch.broker]);
        let in_sync =
            members.filter_map(|broker| Some((*broker, registered(&self.image, *broker)?))).collect();
        let change = IsrChange {
            number: u32::MAX,
            leader_epoch: row.leader_epoch,
            partition_epoch: row.partition_epoch,
            in_sync,
        };
        self.questions.ask(key, change);
        self.questions.hold(around.now);
    }

    /// This broker leads in a new epoch.
    pub(super) fn slip_after_election(&mut self, key: ReplicaKey, state: &State, around: &mut Around<'_>) {
        match around.mistake {
            Some(Mistake::KeepsFollowerEnds) => {
                for broker in self.followers_of(key) {
                    if let Some(end) = self.slips.ends.get(&(key, broker)).copied() {
                        self.credit(key, broker, end, around);
                    }
                }
            }
            Some(Mistake::LeadsAlone) => self.lead_alone(key, state, around),
            _ => {}
        }
    }

    fn lead_alone(&mut self, key: ReplicaKey, state: &State, around: &Around<'_>) {
        let image = std::sync::Arc::clone(&self.image);
        let others = self.followers_of(key).into_iter();
        let followers: Vec<FollowerState> = others
            .map(|broker| FollowerState { broker, in_sync: false, registered: registered(&image, broker) })
            .collect();
        let leadership = Leadership {
            epoch: state.leader_epoch,
            partition_epoch: barnabas_base::PartitionEpoch(state.partition_epoch.get() + 1),
            followers: &followers,
            min_in_sync: 1,
            lag_max: LAG_MAX,
            now: around.now,
        };
        self.host.step(key, around.now, |replica, around| {
            replica.partition.become_leader(&leadership, &mut around.outbox.decisions);
        });
    }

    /// The controller is asked who is in sync.
    pub(super) fn slip_after_question(&mut self, asked: &[(ReplicaKey, IsrChange)], around: &mut Around<'_>) {
        if !around.is(Mistake::ShrinksBeforeTheAnswer) {
            return;
        }
        for (key, change) in asked {
            let in_sync: Vec<BrokerId> =
                change.in_sync.iter().map(|(broker, _)| *broker).chain([self.id]).collect();
            let word = IsrAnswer::Changed {
                leader_epoch: change.leader_epoch,
                partition_epoch: barnabas_base::PartitionEpoch(change.partition_epoch.get() + 1),
                in_sync: &in_sync,
            };
            self.told(*key, change.number, &word, around.now, around);
        }
    }

    /// It has not answered.
    pub(super) fn slip_after_silence(&mut self, asked: Vec<(ReplicaKey, u32)>, around: &mut Around<'_>) {
        if !around.is(Mistake::ForgetsTheQuestion) {
            return;
        }
        for (key, number) in asked {
            let word = IsrAnswer::Refused(ErrorCode::IneligibleReplica);
            self.told(key, number, &word, around.now, around);
        }
    }

    /// Gives up a damaged log at once.
    pub(super) fn heals_while_it_counts(
        &mut self,
        key: ReplicaKey,
        _row: &State,
        around: &mut Around<'_>,
    ) -> bool {
        let Some(replica) = self.host.replica(key).filter(|_| around.is(Mistake::HealsWhileItCounts)) else {
            return false;
        };
        if replica.truncation.is_some() || replica.following.is_none() || replica.partition.is_leader() {
            return true;
        }
        let settled = replica.partition.fetch_position(replica.log.epochs()).is_some();
        if settled {
            let start = replica.partition.log_start();
            self.host.note_truncation(key, Cut::StartAt(start), true, &around.time());
        }
        true
    }
}
