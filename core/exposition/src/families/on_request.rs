//! Metrics that a page has only where its query asks for them, since there is one for each partition, or since they are
//! another program's.

use super::Kind::{Counter, Gauge};
use super::{Family, row};

/// By which query each comes: docs/METRICS.md names it.
#[rustfmt::skip]
pub const ON_REQUEST: &[(&str, Family)] = &[
    (PARTITIONS, row("kafka_cluster_partition_replicascount", Gauge, "topic, partition", "kafka.cluster:type=Partition,name=ReplicasCount", "Replicas of a partition led here")),
    (PARTITIONS, row("kafka_cluster_partition_insyncreplicascount", Gauge, "topic, partition", "kafka.cluster:type=Partition,name=InSyncReplicasCount", "Of these, those in sync")),
    (PARTITIONS, row("kafka_cluster_partition_underreplicated", Gauge, "topic, partition", "kafka.cluster:type=Partition,name=UnderReplicated", "1 if fewer replicas are in sync than assigned")),
    (PARTITIONS, row("kafka_cluster_partition_atminisr", Gauge, "topic, partition", "kafka.cluster:type=Partition,name=AtMinIsr", "1 if as many replicas are in sync as min.insync.replicas")),
    (PARTITIONS, row("kafka_cluster_partition_underminisr", Gauge, "topic, partition", "kafka.cluster:type=Partition,name=UnderMinIsr", "1 if fewer replicas are in sync than min.insync.replicas")),
    (PARTITIONS, row("kafka_log_log_size", Gauge, "topic, partition", "kafka.log:type=Log,name=Size", "Bytes of a log on this node")),
    (PARTITIONS, row("kafka_log_log_logstartoffset", Gauge, "topic, partition", "kafka.log:type=Log,name=LogStartOffset", "Where the log begins; absent while the log is not open, as it is until it is first used")),
    (PARTITIONS, row("kafka_log_log_logendoffset", Gauge, "topic, partition", "kafka.log:type=Log,name=LogEndOffset", "Where the log ends; absent while the log is not open")),
    ("`?names=reporter`", row("kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_total", Counter, "", "", "Nanoseconds in which the workers waited for something to do, divided by their number: what that reporter makes of RequestHandlerAvgIdlePercent")),
    (EXPORTER, row("kafka_brokers", Gauge, "", "", "Brokers that are registered and not fenced")),
    (EXPORTER, row("kafka_broker_info", Gauge, "id, address", "", "1 for this broker")),
    (EXPORTER, row("kafka_topic_partitions", Gauge, "topic", "", "Partitions of a topic; from the leader of its first partition")),
    (EXPORTER, row("kafka_topic_partition_current_offset", Gauge, "topic, partition", "", "High watermark; this one and those below from the partition's leader")),
    (EXPORTER, row("kafka_topic_partition_oldest_offset", Gauge, "topic, partition", "", "Log start offset")),
    (EXPORTER, row("kafka_topic_partition_leader", Gauge, "topic, partition", "", "The leader's id")),
    (EXPORTER, row("kafka_topic_partition_leader_is_preferred", Gauge, "topic, partition", "", "1 if it is the preferred replica")),
    (EXPORTER, row("kafka_topic_partition_replicas", Gauge, "topic, partition", "", "Replicas assigned")),
    (EXPORTER, row("kafka_topic_partition_in_sync_replica", Gauge, "topic, partition", "", "Replicas in sync")),
    (EXPORTER, row("kafka_topic_partition_under_replicated_partition", Gauge, "topic, partition", "", "1 if fewer are in sync than assigned")),
    (EXPORTER, row("kafka_consumergroup_current_offset", Gauge, "consumergroup, topic, partition", "", "Committed offset; this one and those below from the group's coordinator")),
    (EXPORTER, row("kafka_consumergroup_current_offset_sum", Gauge, "consumergroup, topic", "", "Their sum over a topic's partitions")),
    (EXPORTER, row("kafka_consumergroup_lag", Gauge, "consumergroup, topic, partition", "", "Records up to the high watermark")),
    (EXPORTER, row("kafka_consumergroup_lag_sum", Gauge, "consumergroup, topic", "", "Their sum over a topic's partitions")),
    (LAG_EXPORTER, row("kafka_partition_latest_offset", Gauge, "cluster_name, topic, partition", "", "High watermark; from the partition's leader. cluster_name is the cluster's id")),
    (LAG_EXPORTER, row("kafka_partition_earliest_offset", Gauge, "cluster_name, topic, partition", "", "Log start offset; from the partition's leader")),
    (LAG_EXPORTER, row("kafka_consumergroup_group_offset", Gauge, "cluster_name, group, topic, partition", "", "Committed offset; this one and those below from the group's coordinator")),
    (LAG_EXPORTER, row("kafka_consumergroup_group_lag", Gauge, "cluster_name, group, topic, partition", "", "Records up to the high watermark")),
    (LAG_EXPORTER, row("kafka_consumergroup_group_lag_seconds", Gauge, "cluster_name, group, topic, partition", "", "Age of the next unread batch; absent if unknown")),
    (LAG_EXPORTER, row("kafka_consumergroup_group_max_lag", Gauge, "cluster_name, group", "", "The largest lag of the group's partitions")),
    (LAG_EXPORTER, row("kafka_consumergroup_group_max_lag_seconds", Gauge, "cluster_name, group", "", "The largest age of them; absent if none is known")),
    (LAG_EXPORTER, row("kafka_consumergroup_group_sum_lag", Gauge, "cluster_name, group", "", "The lag of all its partitions")),
];

const PARTITIONS: &str = "`?topic=NAME`; of all topics `?names=strimzi`, `reporter`, `confluent`";
const EXPORTER: &str = "`?names=exporter`";
const LAG_EXPORTER: &str = "`?names=lag-exporter`";
