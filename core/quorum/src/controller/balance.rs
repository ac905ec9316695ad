//! What the controller does for partitions unasked, now and then: preferred leaders lead again, and leaderless partitions get a leader
//! where the topic allows one at the price of records.
//!
//! At most [`CHANGES_MAX`] at a time; where there are more, the rest follows at once.
//!
//! Source: Kafka `ReplicationControlManager.maybeBalancePartitionLeaders`, `maybeElectUncleanLeaders`.

use barnabas_base::{BrokerId, DurationMs, MonotonicMs};
use barnabas_metadata::config::BrokerConfig;
use barnabas_metadata::{Image, Partition};
use barnabas_wire::MetadataRecord;

use super::partition_change::{Election, Electorate, PartitionChange};

/// Kafka `MAX_ELECTIONS_PER_IMBALANCE`.
const CHANGES_MAX: usize = 1000;

/// When what is done next.
#[derive(Debug)]
pub(super) struct Balance {
    preferred_at: MonotonicMs,
    unclean_at: MonotonicMs,
}

impl Balance {
    pub fn new(config: &BrokerConfig, now: MonotonicMs) -> Self {
        Self {
            preferred_at: now.plus(preferred_interval(config)),
            unclean_at: now.plus(unclean_interval(config)),
        }
    }

    pub fn next_due(&self) -> MonotonicMs {
        self.preferred_at.min(self.unclean_at)
    }

    /// The records that are due.
    pub fn tick(&mut self, image: &Image, config: &BrokerConfig, now: MonotonicMs) -> Vec<MetadataRecord> {
        if self.preferred_at <= now {
            let records = match config.boolean("auto.leader.rebalance.enable") {
                true => preferred(image, config),
                false => Vec::new(),
            };
            self.preferred_at = next(now, preferred_interval(config), records.len());
            if !records.is_empty() {
                return records;
            }
        }
        if self.unclean_at <= now {
            let records = leaderless(image, config);
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

/// Partitions whose preferred replica could lead, and does not.
fn preferred(image: &Image, config: &BrokerConfig) -> Vec<MetadataRecord> {
    let is_concerned = |partition: &Partition| partition.leader != partition.preferred_leader();
    elect(image, config, is_concerned, Election::Preferred)
}

/// Partitions that nobody leads, of topics that allow an unclean election.
fn leaderless(image: &Image, config: &BrokerConfig) -> Vec<MetadataRecord> {
    elect(image, config, |partition| partition.leader == BrokerId::NONE, Election::Unclean)
}

fn elect(
    image: &Image,
    config: &BrokerConfig,
    is_concerned: impl Fn(&Partition) -> bool,
    election: Election,
) -> Vec<MetadataRecord> {
    let electorate = Electorate::as_it_is(image);
    let mut records = Vec::new();
    for topic in image.topics.by_ids() {
        for (index, partition) in topic.partitions().filter(|(_, partition)| is_concerned(partition)) {
            if records.len() >= CHANGES_MAX {
                return records;
            }
            let mut change = PartitionChange::new(electorate, config, topic, index, partition);
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
