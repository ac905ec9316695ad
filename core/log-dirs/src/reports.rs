//! What a broker tells the controller of its log directories, and whether the metadata log shows it: which partition
//! lies where, which directories have failed, which are cordoned (KIP-858, KIP-1066).
//!
//! Neighbour: shell/broker/src/upkeep/placement/reports.rs, which sends it.
//!
//! Source: Kafka `AssignmentsManager`, `BrokerLifecycleManager.propagateDirectoryFailure`.

use std::collections::BTreeMap;

use barnabas_base::{BrokerEpoch, BrokerId, DirectoryId, TopicPartition};
use barnabas_metadata::{Changes, Image};
use barnabas_partition::PartitionKey;
use barnabas_wire::messages::assign_replicas_to_dirs_request as assign;
use barnabas_wire::messages::{AssignReplicasToDirsRequest, BrokerHeartbeatRequest};

/// Partitions in one request.
const ASSIGNED_MAX: usize = 10_000;

/// A broker, as it is registered.
#[derive(Debug, Clone, Copy)]
pub struct Reporter {
    pub broker: BrokerId,
    pub epoch: BrokerEpoch,
}

/// What is so of its directories.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DirectoryState {
    /// Failed, and known by their ids.
    pub offline: Vec<DirectoryId>,
    /// They take no new partitions.
    pub cordoned: Vec<DirectoryId>,
}

impl Reporter {
    /// Where partitions lie: as many requests as that takes.
    pub fn assignments<'a>(
        self,
        placed: &'a [(PartitionKey, DirectoryId)],
    ) -> impl Iterator<Item = AssignReplicasToDirsRequest> + 'a {
        placed.chunks(ASSIGNED_MAX).map(move |part| {
            let mut by_directory: BTreeMap<DirectoryId, BTreeMap<_, Vec<_>>> = BTreeMap::new();
            for &(key, directory) in part {
                let partition_index = key.partition.get();
                let row = assign::PartitionData { partition_index, ..Default::default() };
                by_directory.entry(directory).or_default().entry(key.topic).or_default().push(row);
            }
            let topic =
                |(topic_id, partitions)| assign::TopicData { topic_id, partitions, ..Default::default() };
            let directories = by_directory.into_iter().map(|(id, topics)| assign::DirectoryData {
                id,
                topics: topics.into_iter().map(topic).collect(),
                ..Default::default()
            });
            AssignReplicasToDirsRequest {
                broker_id: self.broker.get(),
                broker_epoch: self.epoch.get(),
                directories: directories.collect(),
                ..AssignReplicasToDirsRequest::default()
            }
        })
    }

    /// A heartbeat of a broker that serves.
    pub fn heartbeat(self, image: &Image, state: DirectoryState) -> BrokerHeartbeatRequest {
        let tells_cordons = image.metadata_version().has_cordoned_log_dirs();
        BrokerHeartbeatRequest {
            broker_id: self.broker.get(),
            broker_epoch: self.epoch.get(),
            current_metadata_offset: image.provenance.end.get() - 1,
            want_fence: false,
            want_shut_down: false,
            offline_log_dirs: state.offline,
            cordoned_log_dirs: tells_cordons.then_some(state.cordoned),
            ..BrokerHeartbeatRequest::default()
        }
    }

    /// Whether the metadata log says something else of this broker's directories than is so. `offline`: those too whose
    /// ids are not known.
    pub fn is_out_of_step(self, image: &Image, state: &DirectoryState) -> bool {
        let Some(broker) = image.cluster.broker(self.broker) else { return false };
        let version = image.metadata_version();
        let mut offline = state.offline.iter();
        if version.has_directories() && offline.any(|id| broker.log_dirs.contains(id)) {
            return true;
        }
        let told = broker.cordoned_log_dirs.as_deref().unwrap_or_default();
        version.has_cordoned_log_dirs() && told != state.cordoned
    }

    /// The new replicas of this broker between two images that need a directory of its choice, by name. `true`: the
    /// controller has given them none.
    pub fn unplaced(
        self,
        before: &Image,
        image: &Image,
        changes: &Changes,
        mut take: impl FnMut(PartitionKey, TopicPartition, bool),
    ) {
        if changes.everything || !image.metadata_version().has_directories() {
            return;
        }
        for (&id, change) in &changes.topics {
            let Some(topic) = image.topics.by_id(id) else { continue };
            let known = before.topics.by_id(id);
            for &partition in &change.partitions {
                // One that was there before may hold records that only a failed directory knows of.
                let is_new = known.is_none_or(|topic| topic.partition(partition).is_none());
                let Some(row) = topic.partition(partition).filter(|_| is_new) else { continue };
                let is_unassigned = row.directory(self.broker) == Some(DirectoryId::DIRECTORY_UNASSIGNED);
                let name = TopicPartition { topic: change.name.clone(), partition };
                take(PartitionKey { topic: id, partition }, name, is_unassigned);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Of, TOPIC, with};
    use barnabas_base::{PartitionIndex, Uuid};

    const ME: Reporter = Reporter { broker: BrokerId(1), epoch: BrokerEpoch(7) };

    #[test]
    fn assignments_are_split_and_grouped_by_directory_and_topic() {
        let key = |topic: u8, partition: i32| PartitionKey {
            topic: Uuid([topic; 16]),
            partition: PartitionIndex(partition),
        };
        let placed: Vec<_> = (0..ASSIGNED_MAX as i32 + 3)
            .map(|at| (key(u8::from(at % 2 == 0), at), Uuid([u8::from(at % 3 == 0) + 5; 16])))
            .collect();
        let requests: Vec<_> = ME.assignments(&placed).collect();
        let count = |request: &AssignReplicasToDirsRequest| {
            let topics = request.directories.iter().flat_map(|directory| &directory.topics);
            topics.map(|topic| topic.partitions.len()).sum::<usize>()
        };
        assert_eq!(requests.iter().map(count).collect::<Vec<_>>(), [ASSIGNED_MAX, 3]);
        let first = &requests[0];
        assert_eq!((first.broker_id, first.broker_epoch, first.directories.len()), (1, 7, 2));
        assert!(first.directories.iter().all(|directory| directory.topics.len() == 2));
    }

    #[test]
    fn new_replicas_are_offered_once_and_old_ones_are_not() {
        let (unassigned, here) = (DirectoryId::DIRECTORY_UNASSIGNED, Uuid([7; 16]));
        let [neither, mine, theirs] = [[unassigned, unassigned], [unassigned, here], [here, unassigned]];
        let of = |directories| Of { leader: 1, replicas: &[1, 2], isr: &[1, 2], directories };
        let (before, _) = with(Image::default(), &[1, 2], 0, &[of(&neither)]);
        let (image, changes) = with(before.clone(), &[], 0, &[of(&mine), of(&mine), of(&theirs)]);
        let mut offered = Vec::new();
        ME.unplaced(&before, &image, &changes, |key, name, is_unassigned| {
            assert_eq!((key.topic, &*name.topic, key.partition), (TOPIC, "t", name.partition));
            offered.push((key.partition.get(), is_unassigned));
        });
        offered.sort_unstable();
        assert_eq!(offered, [(1, true), (2, false)]);
        let whole = Changes { everything: true, ..changes };
        ME.unplaced(&before, &image, &whole, |_, _, _| panic!("a snapshot names no new ones"));
    }

    #[test]
    fn unknown_broker_has_nothing_to_report() {
        let state = DirectoryState { offline: vec![Uuid([5; 16])], cordoned: Vec::new() };
        assert!(!ME.is_out_of_step(&Image::default(), &state));
        let beat = ME.heartbeat(&Image::default(), state.clone());
        assert_eq!((beat.broker_id, beat.broker_epoch, beat.offline_log_dirs), (1, 7, state.offline));
    }
}
