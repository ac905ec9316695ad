//! What the image says: partitions, leaders, replicas, brokers. Counted again only when the image has changed: with a
//! million partitions that takes a while.

use crate::mailbox::PartitionKey;
use crate::node::Node;
use crate::node::topic_settings;
use barnabas_base::BrokerId;
use barnabas_metadata::Image;
use barnabas_metrics::text::Page;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An image that changes all the time is looked through this often.
const AT_MOST_EVERY: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub struct ClusterCounts {
    of: Option<(Arc<Image>, Instant)>,
    leaders: u64,
    partitions: u64,
    under_replicated: u64,
    under_min_isr: u64,
    at_min_isr: u64,
    reassigning: u64,
    leaderless: u64,
    imbalanced: u64,
}

impl ClusterCounts {
    pub fn follow(&mut self, node: &Node) {
        let image = node.cluster.image.load_full();
        let is_as_it_was = |(known, at): &(Arc<Image>, Instant)| {
            Arc::ptr_eq(known, &image) || barnabas_clock::since(*at) < AT_MOST_EVERY
        };
        if self.of.as_ref().is_some_and(is_as_it_was) {
            return;
        }
        *self = Self::default();
        for topic in image.topics.iter() {
            let min_in_sync = usize::from(topic_settings::min_in_sync(node, &image, &topic.name));
            for (_, partition) in topic.partitions() {
                self.leaderless += u64::from(partition.leader == BrokerId::NONE);
                self.imbalanced += u64::from(partition.leader != partition.preferred_leader());
                self.partitions += u64::from(partition.has_replica(node.identity.broker_id));
                if partition.leader == node.identity.broker_id {
                    let in_sync = partition.isr().len();
                    self.leaders += 1;
                    self.under_replicated += u64::from(in_sync < partition.replicas().len());
                    self.under_min_isr += u64::from(in_sync < min_in_sync);
                    self.at_min_isr += u64::from(in_sync == min_in_sync);
                    self.reassigning += u64::from(partition.is_reassigning());
                }
            }
        }
        self.of = Some((image, barnabas_clock::now()));
    }

    pub fn write(&self, page: &mut Page, node: &Node) {
        let Some((image, _)) = &self.of else { return };
        let offline: Vec<_> =
            node.log_dirs.directories.iter().filter(|each| !each.is_online()).map(|each| each.id).collect();
        let in_offline = |partition: &barnabas_metadata::Partition| {
            partition.directory(node.identity.broker_id).is_some_and(|id| offline.contains(&id))
        };
        let impaired = &node.log_dirs.impaired;
        let offline_replicas = match offline.is_empty() {
            true => impaired.offline_count(),
            false => {
                let all = image.topics.iter().flat_map(|topic| {
                    let key = |partition| PartitionKey { topic: topic.id, partition };
                    topic.partitions().map(move |(partition, row)| (key(partition), row))
                });
                all.filter(|(key, row)| in_offline(row) || impaired.is_offline(*key)).count()
            }
        };
        let here = [
            ("leadercount", self.leaders),
            ("partitioncount", self.partitions),
            ("offlinereplicacount", offline_replicas as u64),
            ("underreplicatedpartitions", self.under_replicated),
            ("underminisrpartitioncount", self.under_min_isr),
            ("atminisrpartitioncount", self.at_min_isr),
            ("reassigningpartitions", self.reassigning),
        ];
        for (name, value) in here {
            page.count(&format!("kafka_server_replicamanager_{name}"), &[], value);
        }
        let arriving = node.workers.metering.arriving();
        page.count("barnabas_replicas_adding", &[], arriving.replicas);
        page.count("barnabas_replicas_adding_records_left", &[], arriving.records_left);
        let seconds = match arriving.replicas {
            0 => Some(0),
            _ => node.peers.replication.arrivals.seconds_left(),
        };
        if let Some(seconds) = seconds {
            page.value("barnabas_replicas_adding_seconds_left", &[], seconds as f64);
        }
        let fenced = image.cluster.brokers().filter(|broker| broker.fenced).count();
        let applied = image.provenance.end.get() - 1;
        let cluster = [
            ("activecontrollercount", i64::from(node.peers.controller.is_active())),
            ("activebrokercount", (image.cluster.broker_count() - fenced) as i64),
            ("fencedbrokercount", fenced as i64),
            ("globaltopiccount", image.topics.len() as i64),
            ("globalpartitioncount", image.topics.partition_count() as i64),
            ("offlinepartitionscount", self.leaderless as i64),
            ("preferredreplicaimbalancecount", self.imbalanced as i64),
            ("lastappliedrecordoffset", applied),
        ];
        for (name, value) in cluster {
            page.value(&format!("kafka_controller_kafkacontroller_{name}"), &[], value as f64);
        }
        let cells = || node.workers.metering.workers().iter();
        let groups = cells().map(|cells| cells.groups.get()).sum();
        let offsets = cells().map(|cells| cells.group_offsets.get()).sum();
        page.count("kafka_coordinator_group_groupmetadatamanager_numgroups", &[], groups);
        page.count("kafka_coordinator_group_groupmetadatamanager_numoffsets", &[], offsets);
    }
}
