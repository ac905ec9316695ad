//! One partition's next state when brokers come, go, or a leader is asked for: who leads, who is in sync.
//!
//! Always true:
//! 1. a leader is a member of the ISR; but for an unclean election it was one before, or an eligible leader replica
//! 2. with ELR, ISR and ELR do not overlap, and the ELR is empty while the ISR has the minimum (KIP-966)
//! 3. a change that changes nothing makes no record
//! 4. a reassignment ends with the change that brings all its new replicas into the ISR
//! 5. of those who may lead, one that is not impaired is taken ([`crate::controller::impaired`])
//! 6. who led last is not taken for having done so once its directory is gone: what it has now may be empty
//! 7. where all that are alive of the ISR are damaged, an eligible leader replica may take over: while there is one,
//!    the high watermark stands still, so it has all that was acknowledged. The damaged ones are in sync no more, and
//!    can be repaired
//! 8. a leader that a reassignment takes away leads until one of those that stay or come is in sync, and no longer
//!    (Kafka: until the end)
//!
//! Source: KIP-966; Kafka `PartitionChangeBuilder`, `ReplicationControlManager.generateLeaderAndIsrUpdates`.

use barnabas_base::{BrokerId, DirectoryId, LeaderEpoch, PartitionEpoch, PartitionIndex, TopicId};
use barnabas_metadata::snapshot::numbers;
use barnabas_metadata::{Broker, Image, LeaderRecoveryState, Partition, Placement, Topic};
use barnabas_wire::messages::PartitionChangeRecord;

use super::configs::topic_values;
use super::placement::{directory_for, directory_in_turn};
use crate::controller::impaired::Impaired;
use crate::controller::impaired::Impairment;
use barnabas_metadata::config::BrokerConfig;

/// The leader in a record that leaves it as it is.
const NO_LEADER_CHANGE: i32 = -2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Election {
    /// The preferred replica if possible, else any that keeps the partition online.
    Preferred,
    /// Any replica of the ISR that keeps the partition online.
    Online,
    /// The same, but a leader that is impaired makes place for a member of the ISR that is less so.
    Unimpaired,
    /// The same as online, and anybody alive if there is no other.
    Unclean,
}

/// Brokers as they will be once the records at hand are replayed.
#[derive(Clone, Copy)]
pub(super) struct Electorate<'a> {
    pub image: &'a Image,
    pub config: &'a BrokerConfig,
    pub impaired: &'a Impaired,
    /// Counts as gone, whatever the image says.
    removed: Option<BrokerId>,
    /// Counts as alive, with these directories, whatever the image says.
    added: Option<&'a Broker>,
}

impl<'a> Electorate<'a> {
    pub fn new(image: &'a Image, config: &'a BrokerConfig, impaired: &'a Impaired) -> Self {
        Self { image, config, impaired, removed: None, added: None }
    }

    pub fn without(self, broker: BrokerId) -> Self {
        Self { removed: Some(broker), ..self }
    }

    pub fn with(self, broker: &'a Broker) -> Self {
        Self { added: Some(broker), ..self }
    }

    /// `moved`: a replica's directory once the change at hand is made.
    fn may_lead(
        &self,
        partition: &Partition,
        broker: BrokerId,
        moved: Option<(BrokerId, DirectoryId)>,
    ) -> bool {
        if self.removed == Some(broker) {
            return false;
        }
        let registration = match self.added {
            Some(added) if added.id == broker => added,
            _ => match self.image.cluster.broker(broker) {
                Some(known) if known.is_active() => known,
                _ => return false,
            },
        };
        directory_after(partition, broker, moved).is_none_or(|at| registration.has_online_directory(at))
    }

    /// Whether the directory that the metadata log names for a replica is none of its broker's any more.
    fn has_lost_directory(&self, partition: &Partition, broker: BrokerId) -> bool {
        let added = self.added.filter(|added| added.id == broker);
        let registration = added.or_else(|| self.image.cluster.broker(broker).map(|known| &**known));
        let is_lost = |at| registration.is_some_and(|known| !known.has_online_directory(at));
        partition.directory(broker).is_some_and(is_lost)
    }
}

fn directory_after(
    partition: &Partition,
    broker: BrokerId,
    moved: Option<(BrokerId, DirectoryId)>,
) -> Option<DirectoryId> {
    let moved = moved.filter(|(replica, _)| *replica == broker).map(|(_, directory)| directory);
    moved.or_else(|| partition.directory(broker))
}

/// What shall become of one partition.
pub(super) struct PartitionChange<'a> {
    pub electorate: Electorate<'a>,
    pub topic: TopicId,
    pub index: PartitionIndex,
    pub partition: &'a Partition,
    pub election: Election,
    pub min_isr: usize,
    pub target_isr: Vec<BrokerId>,
    /// In order of preference; while it is reassigned, those that go last.
    pub target_replicas: Vec<BrokerId>,
    pub adding: Vec<BrokerId>,
    pub removing: Vec<BrokerId>,
    pub recovery: LeaderRecoveryState,
    /// A broker that came back without knowing what it had: neither in sync nor eligible.
    pub unclean_shutdown: Option<BrokerId>,
    /// A replica's directory, if that is what changes.
    pub directory: Option<(BrokerId, DirectoryId)>,
    /// The only replica starts empty in that directory.
    starts_empty: bool,
}

impl<'a> PartitionChange<'a> {
    pub fn new(
        electorate: Electorate<'a>,
        topic: &Topic,
        index: PartitionIndex,
        partition: &'a Partition,
    ) -> Self {
        let values = topic_values(electorate.image, electorate.config, &topic.name);
        let election =
            if values.unclean_leader_election_enable { Election::Unclean } else { Election::Online };
        let min_isr = usize::try_from(values.min_insync_replicas).unwrap_or(1);
        Self {
            electorate,
            topic: topic.id,
            index,
            partition,
            election,
            min_isr: min_isr.min(partition.replicas().len()),
            target_isr: partition.isr().to_vec(),
            target_replicas: partition.replicas().to_vec(),
            adding: partition.placement.adding.clone(),
            removing: partition.placement.removing.clone(),
            recovery: partition.placement.recovery,
            unclean_shutdown: None,
            directory: None,
            starts_empty: false,
        }
    }

    /// For an unclean election on request: an only replica whose directory its broker does not have any more (its
    /// disk was replaced) starts empty in another one. Only the operator may decide that.
    ///
    /// # Source
    /// Ours. Kafka creates such a replica again by itself, at offset 0, once every remaining directory is online
    /// (`LogManager.getOrCreateLog`).
    pub fn start_empty_if_lost(&mut self) {
        let [alone] = *self.partition.replicas() else { return };
        let Some(broker) = self.electorate.image.cluster.broker(alone).filter(|known| known.is_active())
        else {
            return;
        };
        let is_lost = self.partition.directory(alone).is_some_and(|at| !broker.has_online_directory(at));
        if is_lost && let Some(directory) = directory_in_turn(broker, self.index) {
            self.directory = Some((alone, directory));
            self.starts_empty = true;
        }
    }

    /// The record of the change, unless there is none.
    pub fn build(mut self) -> Option<PartitionChangeRecord> {
        let elr_enabled = self.electorate.image.features.elr_enabled();
        let version = self.electorate.image.metadata_version();
        let partition = self.partition;
        let mut record = PartitionChangeRecord {
            partition_id: self.index.get(),
            topic_id: self.topic,
            ..PartitionChangeRecord::default()
        };
        self.complete_reassignment();
        let mut elr = self.eligible(elr_enabled);
        let (leader, unclean) = self.elect(&elr, elr_enabled);
        let unclean = unclean || self.starts_empty;
        if leader != partition.leader {
            record.leader = leader.get();
            if let Some(at) = elr.iter().position(|&eligible| eligible == leader) {
                elr.remove(at);
                self.target_isr = vec![leader];
            }
            if unclean {
                // Whatever others have that the new leader has not is lost.
                self.target_isr = vec![leader];
                if partition.placement.recovery != LeaderRecoveryState::Recovering {
                    record.leader_recovery_state = LeaderRecoveryState::Recovering.code();
                }
            }
        }
        let keeps_all = partition.replicas().iter().all(|replica| self.target_replicas.contains(replica));
        if record.leader == NO_LEADER_CHANGE && !keeps_all {
            // Who is a replica no more must not go on fetching.
            record.leader = partition.leader.get();
        }
        if unclean || !elr_enabled {
            elr.clear();
        }
        elr.retain(|eligible| self.target_replicas.contains(eligible));
        if elr != partition.elr() {
            record.eligible_leader_replicas = Some(numbers(&elr));
        }
        // Without ELR the last member stays in the ISR, so that it can be told who may lead again.
        if self.target_isr != partition.isr() && (!self.target_isr.is_empty() || elr_enabled) {
            let shrinks = partition.isr().iter().any(|member| !self.target_isr.contains(member));
            if shrinks && version.bumps_leader_epoch_on_isr_shrink() && record.leader == NO_LEADER_CHANGE {
                record.leader = partition.leader.get();
            }
            record.isr = Some(numbers(&self.target_isr));
        }
        self.last_known_leader(elr_enabled, &mut record);
        self.assignment(&mut record);
        if self.recovery != partition.placement.recovery {
            record.leader_recovery_state = self.recovery.code();
        }
        let nothing = PartitionChangeRecord {
            partition_id: record.partition_id,
            topic_id: record.topic_id,
            ..PartitionChangeRecord::default()
        };
        (record != nothing).then_some(record)
    }

    /// Where every replica that comes is in sync, those that go are gone.
    ///
    /// # Source
    /// Kafka `PartitionReassignmentReplicas.maybeCompleteReassignment`.
    fn complete_reassignment(&mut self) {
        if self.adding.is_empty() && self.removing.is_empty() {
            return;
        }
        let stay = |all: &[BrokerId]| -> Vec<BrokerId> {
            all.iter().copied().filter(|id| !self.removing.contains(id)).collect()
        };
        let (isr, replicas) = (stay(&self.target_isr), stay(&self.target_replicas));
        let is_complete = !isr.is_empty() && replicas.iter().all(|replica| isr.contains(replica));
        if is_complete && !replicas.is_empty() {
            (self.target_isr, self.target_replicas) = (isr, replicas);
            self.adding.clear();
            self.removing.clear();
        }
    }

    /// The ELR after the change: replicas that were in the ISR while it had enough, and are not now.
    fn eligible(&self, elr_enabled: bool) -> Vec<BrokerId> {
        if !elr_enabled {
            return self.partition.elr().to_vec();
        }
        if self.target_isr.len() >= self.min_isr {
            return Vec::new();
        }
        let mut eligible: Vec<BrokerId> =
            self.partition.elr().iter().chain(self.partition.isr()).copied().collect();
        eligible.sort_unstable();
        eligible.dedup();
        eligible.retain(|broker| !self.target_isr.contains(broker) && self.unclean_shutdown != Some(*broker));
        eligible
    }

    /// The leader, and whether it was chosen at the price of records.
    fn elect(&self, elr: &[BrokerId], elr_enabled: bool) -> (BrokerId, bool) {
        let accepted = |broker: BrokerId| {
            self.unclean_shutdown != Some(broker)
                && self.electorate.may_lead(self.partition, broker, self.directory)
        };
        let (replicas, leader) = (&self.target_replicas, self.partition.leader);
        let impairment = |broker: BrokerId| self.impairment(broker);
        let isr_is_damaged = self.election == Election::Unimpaired
            && self
                .target_isr
                .iter()
                .all(|&member| !accepted(member) || impairment(member) == Impairment::Damage);
        let valid = |broker: BrokerId| {
            let is_eligible = (self.target_isr.is_empty() || isr_is_damaged) && elr.contains(&broker);
            (self.target_isr.contains(&broker) || is_eligible) && accepted(broker)
        };
        let least = match self.electorate.impaired.is_empty() {
            true => Some(Impairment::Nothing),
            false => replicas.iter().copied().filter(|&replica| valid(replica)).map(impairment).min(),
        };
        let fits = |broker: BrokerId| valid(broker) && Some(impairment(broker)) == least;
        if self.election == Election::Preferred
            && let Some(&preferred) = replicas.first()
            && fits(preferred)
        {
            return (preferred, false);
        }
        // Leadership moves first: the leaving replica has less to do for the new ones, and the end of the move
        // disturbs no client.
        if self.removing.contains(&leader)
            && let Some(&next) =
                replicas.iter().find(|&&replica| !self.removing.contains(&replica) && fits(replica))
        {
            return (next, false);
        }
        let stays = match self.election {
            Election::Preferred | Election::Unimpaired => fits(leader),
            // The request does not ask for another leader.
            Election::Online | Election::Unclean => valid(leader),
        };
        if stays {
            return (leader, false);
        }
        if let Some(&leader) = replicas.iter().find(|&&replica| fits(replica)) {
            return (leader, false);
        }
        if let [last] = *self.partition.placement.last_known_elr.as_slice()
            && elr_enabled
            && elr.is_empty()
            && self.target_isr.is_empty()
            && accepted(last)
            && !self.may_be_empty(last)
        {
            return (last, true);
        }
        let alive =
            replicas.iter().copied().filter(|&replica| accepted(replica)).min_by_key(|&id| impairment(id));
        match alive {
            Some(leader) if self.election == Election::Unclean => (leader, true),
            _ => (BrokerId::NONE, false),
        }
    }

    /// What keeps the preferred replica from leading, if that is alive.
    pub fn preferred_impairment(&self) -> Impairment {
        let preferred = self.target_replicas.first().copied();
        let alive = preferred.filter(|id| self.electorate.may_lead(self.partition, *id, self.directory));
        alive.map_or(Impairment::Nothing, |id| self.impairment(id))
    }

    fn impairment(&self, broker: BrokerId) -> Impairment {
        let directory = directory_after(self.partition, broker, self.directory);
        self.electorate.impaired.of(self.electorate.image, broker, (self.topic, self.index), directory)
    }

    /// Whether this change moves the replica from a missing directory into another one. A broker without the log
    /// creates it there (Kafka `LogManager.getOrCreateLog`), and does not report that.
    fn may_be_empty(&self, broker: BrokerId) -> bool {
        self.directory.is_some_and(|(moved, _)| moved == broker)
            && self.electorate.has_lost_directory(self.partition, broker)
    }

    /// With ELR, a partition without a leader remembers its last one.
    fn last_known_leader(&self, elr_enabled: bool, record: &mut PartitionChangeRecord) {
        let known = &self.partition.placement.last_known_elr;
        if !elr_enabled {
            return;
        }
        if record.leader == BrokerId::NONE.get() && known.is_empty() {
            record.last_known_elr = Some(vec![self.partition.leader.get()]);
        } else if !known.is_empty()
            && (record.leader >= 0 || known.iter().any(|&last| self.may_be_empty(last)))
        {
            // Once the metadata log names the new directory, nothing shows any more that the replica may be empty.
            record.last_known_elr = Some(Vec::new());
        }
    }

    /// The replicas, where they lie, and which of them come and go.
    fn assignment(&self, record: &mut PartitionChangeRecord) {
        let Placement { replicas, directories, adding, removing, .. } = &*self.partition.placement;
        let image = self.electorate.image;
        let directory = |&replica: &BrokerId| match self.directory {
            Some((moved, to)) if moved == replica => to,
            _ => self.partition.directory(replica).unwrap_or_else(|| directory_for(image, replica)),
        };
        let has_changed = self.directory.is_some() || self.target_replicas != *replicas;
        if image.metadata_version().has_directories() && has_changed {
            let target: Vec<DirectoryId> = self.target_replicas.iter().map(directory).collect();
            if target != *directories {
                record.directories = Some(target);
            }
        }
        if self.target_replicas != *replicas {
            record.replicas = Some(numbers(&self.target_replicas));
        }
        if self.removing != *removing {
            record.removing_replicas = Some(numbers(&self.removing));
        }
        if self.adding != *adding {
            record.adding_replicas = Some(numbers(&self.adding));
        }
    }
}

/// What a partition is after a change.
pub(super) struct Changed {
    pub leader: BrokerId,
    pub leader_epoch: LeaderEpoch,
    pub partition_epoch: PartitionEpoch,
    pub isr: Vec<BrokerId>,
    pub recovery: LeaderRecoveryState,
}

impl Changed {
    pub fn after(partition: &Partition, record: Option<&PartitionChangeRecord>) -> Self {
        let mut changed = Self {
            leader: partition.leader,
            leader_epoch: partition.leader_epoch,
            partition_epoch: partition.partition_epoch,
            isr: partition.isr().to_vec(),
            recovery: partition.placement.recovery,
        };
        let Some(record) = record else { return changed };
        changed.partition_epoch.0 += 1;
        if record.leader != NO_LEADER_CHANGE {
            changed.leader = BrokerId(record.leader);
            changed.leader_epoch.0 += 1;
        }
        if let Some(isr) = &record.isr {
            changed.isr = isr.iter().copied().map(BrokerId).collect();
        }
        changed.recovery =
            LeaderRecoveryState::from_code(record.leader_recovery_state).unwrap_or(changed.recovery);
        changed
    }
}
