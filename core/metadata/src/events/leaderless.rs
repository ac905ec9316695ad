//! Partitions that stay without a leader.
//!
//! A partition loses its leader for a moment in many a plain start: brokers register one by one, and one that may lead
//! is not unfenced yet. So the loss is one line at INFO (lines.rs), and the alarm comes when the partition
//! still has no leader after the session of a broker has ended: by then every broker that runs has registered.
//!
//! Two images are compared, so that a million partitions cost no memory here: the one of the loss, and the one when the
//! time is over. Losses in between are looked at once more, as long after. A line names all partitions of that state,
//! not only what was lost last.
//!
//! Without a clock: the first question after a loss says when it was.

use super::line::{Level, Line, NAMED_MAX, ids};
use crate::{Image, Partition};
use barnabas_base::{BrokerId, DurationMs, MonotonicMs, TopicPartition};
use std::sync::Arc;

/// The image in which a loss was seen.
#[derive(Debug)]
struct Seen {
    at: Option<MonotonicMs>,
    image: Arc<Image>,
}

/// See the file's header.
#[derive(Debug, Default)]
pub struct Leaderless {
    seen: Option<Seen>,
    /// Others were lost since.
    has_more: bool,
}

impl Leaderless {
    /// Partitions have no leader in this image.
    pub fn lost(&mut self, image: &Arc<Image>) {
        self.has_more |= self.seen.is_some();
        self.seen.get_or_insert_with(|| Seen { at: None, image: Arc::clone(image) });
    }

    pub fn is_waiting(&self) -> bool {
        self.seen.is_some()
    }

    /// The line, if it is time for one. `image`: the newest one.
    pub fn due(&mut self, now: MonotonicMs, image: &Arc<Image>, patience: DurationMs) -> Option<Line> {
        let seen = self.seen.as_mut()?;
        let since = *seen.at.get_or_insert(now);
        if now.since(since) < patience {
            return None;
        }
        let then = Arc::clone(&seen.image);
        let again = std::mem::take(&mut self.has_more);
        self.seen = again.then(|| Seen { at: Some(now), image: Arc::clone(image) });
        line(&then, image, patience)
    }
}

fn line(then: &Image, now: &Image, patience: DurationMs) -> Option<Line> {
    let (mut count, mut named, mut are_planned) = (0_u64, Vec::new(), true);
    for topic in now.topics.by_ids() {
        let Some(before) = then.topics.by_id(topic.id) else { continue };
        for (index, partition) in topic.partitions().filter(|(_, partition)| has_no_leader(partition)) {
            if !before.partition(index).is_some_and(has_no_leader) {
                continue;
            }
            count += 1;
            are_planned &= last_in_sync(partition).all(|broker| has_stopped(now, broker));
            if named.len() < NAMED_MAX {
                named.push(described(&TopicPartition::new(topic.name.clone(), index), partition));
            }
        }
    }
    let more = count - named.len() as u64;
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let text = format!(
        "partitions without a leader for {} s: {}{more}: they are not served until a broker that was last in sync runs again. If none of \
         them can come back, elect another replica, which gives up what that one lacks: barnabas leader-election --election-type UNCLEAN",
        patience.0 / 1000,
        named.join(", ")
    );
    let level = if are_planned { Level::Warn } else { Level::Error };
    (count > 0).then_some(Line { level, text })
}

fn has_no_leader(partition: &Partition) -> bool {
    partition.leader == BrokerId::NONE
}

/// By a controlled shutdown, or for good.
fn has_stopped(image: &Image, broker: BrokerId) -> bool {
    image.cluster.broker(broker).is_none_or(|broker| broker.fenced && broker.in_controlled_shutdown)
}

/// Who may lead it again: the ISR and the ELR (KIP-966), or else who led it last.
fn last_in_sync(partition: &Partition) -> impl Iterator<Item = BrokerId> {
    let may_lead = partition.isr().iter().chain(partition.elr());
    let is_anybody = may_lead.clone().next().is_some();
    let led_last = partition.placement.last_known_elr.iter().filter(move |_| !is_anybody);
    may_lead.chain(led_last).copied()
}

/// A partition without a leader, as lines name it.
pub fn described(partition: &TopicPartition, state: &Partition) -> String {
    let mut last: Vec<BrokerId> = last_in_sync(state).collect();
    last.sort_unstable();
    format!("{partition} (replicas {}, last in sync {})", ids(state.replicas()), ids(&last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Delta;
    use barnabas_base::Uuid;
    use barnabas_wire::messages::{
        BrokerRegistrationChangeRecord, PartitionChangeRecord, PartitionRecord, RegisterBrokerRecord,
        TopicRecord,
    };

    const PATIENCE: DurationMs = DurationMs(9_000);
    const NOW: MonotonicMs = MonotonicMs(1);
    const NO_LEADER: i32 = -1;

    /// Brokers 1 to 3, and two partitions of three replicas that broker 1 leads.
    struct Cluster(Delta);

    impl Cluster {
        fn new() -> Self {
            let mut cluster = Self(Delta::new(Image::default()));
            for id in 1..=3 {
                cluster
                    .0
                    .replay(
                        &RegisterBrokerRecord { broker_id: id, fenced: false, ..Default::default() }.into(),
                    )
                    .unwrap();
            }
            let topic = TopicRecord { name: "t".into(), topic_id: Uuid([7; 16]), ..Default::default() };
            cluster.0.replay(&topic.into()).unwrap();
            for partition_id in 0..2 {
                let record = PartitionRecord {
                    partition_id,
                    topic_id: Uuid([7; 16]),
                    replicas: vec![1, 2, 3],
                    isr: vec![1, 2],
                    leader: 1,
                    ..Default::default()
                };
                cluster.0.replay(&record.into()).unwrap();
            }
            cluster
        }

        fn leads(&mut self, partition_id: i32, leader: i32, eligible: &[i32]) -> Arc<Image> {
            let record = PartitionChangeRecord {
                partition_id,
                topic_id: Uuid([7; 16]),
                leader,
                isr: Some(if leader < 0 { Vec::new() } else { vec![leader] }),
                eligible_leader_replicas: Some(eligible.to_vec()),
                ..Default::default()
            };
            self.0.replay(&record.into()).unwrap();
            self.image()
        }

        fn image(&mut self) -> Arc<Image> {
            Arc::new(self.0.take().0)
        }
    }

    #[test]
    fn leader_that_is_found_in_time_is_no_alarm() {
        let (mut cluster, mut leaderless, start) = (Cluster::new(), Leaderless::default(), NOW);
        let lost = cluster.leads(0, NO_LEADER, &[1, 2]);
        leaderless.lost(&lost);
        assert_eq!(leaderless.due(start, &lost, PATIENCE), None);
        let found = cluster.leads(0, 2, &[1]);
        assert_eq!(leaderless.due(start.plus(PATIENCE), &found, PATIENCE), None);
        assert!(!leaderless.is_waiting());
    }

    #[test]
    fn partition_that_stays_leaderless_is_named_with_its_last_isr() {
        let (mut cluster, mut leaderless, start) = (Cluster::new(), Leaderless::default(), NOW);
        let lost = cluster.leads(0, NO_LEADER, &[2, 1]);
        leaderless.lost(&lost);
        assert_eq!(leaderless.due(start, &lost, PATIENCE), None);
        let early = leaderless.due(MonotonicMs(9_000), &lost, PATIENCE);
        assert_eq!(early, None);
        // Another one is lost in the meantime, and must wait as long.
        let both = cluster.leads(1, NO_LEADER, &[3]);
        leaderless.lost(&both);
        let line = leaderless.due(start.plus(PATIENCE), &both, PATIENCE).expect("the first");
        assert_eq!(line.level, Level::Error);
        let wanted =
            "partitions without a leader for 9 s: t-0 (replicas [1, 2, 3], last in sync [1, 2]): they";
        assert!(line.text.starts_with(wanted), "{line:?}");
        let line = leaderless.due(start.plus(PATIENCE).plus(PATIENCE), &both, PATIENCE).expect("both");
        assert!(
            line.text.contains("t-0 ") && line.text.contains("t-1 (replicas [1, 2, 3], last in sync [3])"),
            "{line:?}"
        );
        assert!(!leaderless.is_waiting(), "said once");
    }

    #[test]
    fn leaders_that_were_stopped_on_purpose_are_a_warning() {
        let (mut cluster, mut leaderless, start) = (Cluster::new(), Leaderless::default(), NOW);
        let stops = BrokerRegistrationChangeRecord {
            broker_id: 1,
            fenced: 1,
            in_controlled_shutdown: 1,
            ..Default::default()
        };
        cluster.0.replay(&stops.into()).unwrap();
        let lost = cluster.leads(0, NO_LEADER, &[1]);
        leaderless.lost(&lost);
        leaderless.due(start, &lost, PATIENCE);
        let line = leaderless.due(start.plus(PATIENCE), &lost, PATIENCE).expect("a line");
        assert_eq!(line.level, Level::Warn, "{line:?}");
    }

    #[test]
    fn last_leader_is_named_where_no_replica_is_eligible() {
        let mut cluster = Cluster::new();
        let record = PartitionChangeRecord {
            partition_id: 0,
            topic_id: Uuid([7; 16]),
            leader: NO_LEADER,
            isr: Some(Vec::new()),
            last_known_elr: Some(vec![3]),
            ..Default::default()
        };
        cluster.0.replay(&record.into()).unwrap();
        let image = cluster.image();
        let topic = image.topics.by_id(Uuid([7; 16])).expect("a topic");
        let (index, state) = topic.partitions().next().expect("a partition");
        let name = TopicPartition::new("t", index);
        assert_eq!(described(&name, state), "t-0 (replicas [1, 2, 3], last in sync [3])");
    }
}
