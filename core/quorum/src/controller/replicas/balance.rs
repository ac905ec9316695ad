//! What the controller does for partitions unasked, now and then: who cannot write leaves the ISR, leaders that are
//! impaired make place for others, preferred leaders lead again, and leaderless partitions get a leader where the topic
//! allows one at the price of records.
//!
//! At most [`CHANGES_MAX`] at a time; where there are more, the rest follows at once.
//!
//! Source: Kafka `ReplicationControlManager.maybeBalancePartitionLeaders`, `maybeElectUncleanLeaders`.

use barnabas_base::{BrokerId, DurationMs, MonotonicMs, PartitionIndex, TopicId};
use barnabas_metadata::Partition;
use barnabas_metadata::config::BrokerConfig;
use barnabas_wire::MetadataRecord;

use crate::controller::impaired::Impaired;
use crate::controller::impaired::Impairment;
use crate::controller::partition_change::{Election, Electorate, PartitionChange};

/// Kafka `MAX_ELECTIONS_PER_IMBALANCE`.
const CHANGES_MAX: usize = 1000;
/// While any broker is impaired: an unimpaired replica may have joined an ISR.
const HINDERED_INTERVAL: DurationMs = DurationMs(5_000);

/// When what is done next.
#[derive(Debug)]
pub(crate) struct Balance {
    preferred_at: MonotonicMs,
    unclean_at: MonotonicMs,
    impaired_at: MonotonicMs,
}

impl Balance {
    pub fn new(config: &BrokerConfig, now: MonotonicMs) -> Self {
        Self {
            preferred_at: now.plus(preferred_interval(config)),
            unclean_at: now.plus(unclean_interval(config)),
            impaired_at: now,
        }
    }

    pub fn next_due(&self, impaired: &Impaired) -> MonotonicMs {
        let others = self.preferred_at.min(self.unclean_at);
        if impaired.is_empty() { others } else { others.min(self.impaired_at) }
    }

    /// Something has come to impair a broker: what it leads shall not wait.
    pub fn replace_impaired_soon(&mut self, now: MonotonicMs) {
        self.impaired_at = now;
    }

    /// Some topics may allow unclean elections now that did not before: their partitions wait for a leader. Kafka's
    /// lets them wait for the interval.
    pub fn elect_uncleanly_soon(&mut self, now: MonotonicMs) {
        self.unclean_at = now;
    }

    /// The records that are due.
    pub fn tick(&mut self, electorate: Electorate<'_>, now: MonotonicMs) -> Vec<MetadataRecord> {
        let config = electorate.config;
        if self.impaired_at <= now && !electorate.impaired.is_empty() {
            let records = without_the_full(electorate);
            if !records.is_empty() {
                // Leaders come next, once that is so.
                return records;
            }
            let records = impaired(electorate);
            self.impaired_at = next(now, HINDERED_INTERVAL, records.len());
            if !records.is_empty() {
                return records;
            }
        }
        if self.preferred_at <= now {
            let records = match config.boolean("auto.leader.rebalance.enable") {
                true => preferred(electorate),
                false => Vec::new(),
            };
            self.preferred_at = next(now, preferred_interval(config), records.len());
            if !records.is_empty() {
                return records;
            }
        }
        if self.unclean_at <= now {
            let records = leaderless(electorate);
            self.unclean_at = next(now, unclean_interval(config), records.len());
            return records;
        }
        Vec::new()
    }
}

fn next(now: MonotonicMs, interval: DurationMs, changed: usize) -> MonotonicMs {
    if changed >= CHANGES_MAX { now } else { now.plus(interval) }
}

fn preferred_interval(config: &BrokerConfig) -> DurationMs {
    DurationMs(config.long("leader.imbalance.check.interval.seconds").saturating_mul(1000))
}

fn unclean_interval(config: &BrokerConfig) -> DurationMs {
    DurationMs(config.long("unclean.leader.election.interval.ms"))
}

/// Partitions whose leader is impaired more than another member of the ISR, or damaged while another replica is
/// eligible.
fn impaired(electorate: Electorate<'_>) -> Vec<MetadataRecord> {
    let impairment = |topic: TopicId, index, partition: &Partition, broker| {
        let directory = partition.directory(broker);
        electorate.impaired.of(electorate.image, broker, (topic, index), directory)
    };
    let is_concerned = |topic: TopicId, index, partition: &Partition| {
        let of_leader = impairment(topic, index, partition, partition.leader);
        let is_better = |&member: &BrokerId| impairment(topic, index, partition, member) < of_leader;
        of_leader > Impairment::Nothing && partition.isr().iter().any(is_better)
            || of_leader == Impairment::Damage && partition.elr().iter().any(is_better)
    };
    elect(electorate, is_concerned, Election::Unimpaired)
}

/// Partitions with an in-sync replica that cannot write: a wait for it is a wait for the operator.
///
/// # Source
/// Ours. Kafka takes the directory offline, and its replicas out of the ISR.
fn without_the_full(electorate: Electorate<'_>) -> Vec<MetadataRecord> {
    let mut records = Vec::new();
    for topic in electorate.image.topics.by_ids() {
        for (index, partition) in topic.partitions() {
            let impairment = |member: &BrokerId| {
                let directory = partition.directory(*member);
                electorate.impaired.of(electorate.image, *member, (topic.id, index), directory)
            };
            let is_full = |member: &BrokerId| impairment(member) == Impairment::Full;
            if !partition.isr().iter().any(is_full) {
                continue;
            }
            let mut change = PartitionChange::new(electorate, topic, index, partition);
            change.election = Election::Unimpaired;
            change.target_isr.retain(|member| !is_full(member));
            // A damaged copy is none that others could do with alone.
            let whole =
                change.target_isr.iter().filter(|member| impairment(member) < Impairment::Full).count();
            if whole < change.min_isr.max(1) {
                continue;
            }
            records.extend(change.build().map(MetadataRecord::from));
            if records.len() >= CHANGES_MAX {
                return records;
            }
        }
    }
    records
}

/// Partitions whose preferred replica could lead, and does not.
fn preferred(electorate: Electorate<'_>) -> Vec<MetadataRecord> {
    let is_concerned = |_, _, partition: &Partition| partition.leader != partition.preferred_leader();
    elect(electorate, is_concerned, Election::Preferred)
}

/// Partitions without a leader, of topics that allow an unclean election.
fn leaderless(electorate: Electorate<'_>) -> Vec<MetadataRecord> {
    elect(electorate, |_, _, partition| partition.leader == BrokerId::NONE, Election::Unclean)
}

fn elect(
    electorate: Electorate<'_>,
    is_concerned: impl Fn(TopicId, PartitionIndex, &Partition) -> bool,
    election: Election,
) -> Vec<MetadataRecord> {
    let mut records = Vec::new();
    for topic in electorate.image.topics.by_ids() {
        let concerned =
            topic.partitions().filter(|(index, partition)| is_concerned(topic.id, *index, partition));
        for (index, partition) in concerned {
            if records.len() >= CHANGES_MAX {
                return records;
            }
            let mut change = PartitionChange::new(electorate, topic, index, partition);
            match election {
                // Only where the topic asks for it.
                Election::Unclean if change.election != Election::Unclean => continue,
                election => change.election = election,
            }
            records.extend(change.build().map(MetadataRecord::from));
        }
    }
    records
}
