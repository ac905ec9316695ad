//! Every metric of the node: the list that the text is written by, and docs/METRICS.md made from.
//!
//! Where Kafka has a figure, its name is the one that the JMX exporter's sample configuration for Kafka gives it (all in lower case, `PerSec`
//! counters as `_total`, histograms as quantiles and `_count`), so that dashboards made for that find it. What Kafka has no word
//! for begins with `barnabas_`, in seconds and bytes; `process_` is as Prometheus's own clients name it.

/// What a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only rises, until the process ends.
    Counter,
    Gauge,
    /// Quantiles of the last one to two minutes; count and sum since the start.
    Summary,
    Histogram,
}

impl Kind {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Summary => "summary",
            Self::Histogram => "histogram",
        }
    }
}

/// One metric with all its samples.
#[derive(Debug)]
#[cfg_attr(not(test), expect(dead_code, reason = "labels and Kafka's names are for docs/METRICS.md"))]
pub struct Family {
    pub name: &'static str,
    pub kind: Kind,
    pub labels: &'static str,
    /// As JMX calls it; empty where Kafka has none.
    pub kafka: &'static str,
    pub help: &'static str,
}

const fn row(
    name: &'static str,
    kind: Kind,
    labels: &'static str,
    kafka: &'static str,
    help: &'static str,
) -> Family {
    Family { name, kind, labels, kafka, help }
}

use Kind::{Counter, Gauge, Histogram, Summary};

/// In the order in which they are written.
#[rustfmt::skip]
pub const FAMILIES: &[Family] = &[
    row("kafka_server_brokertopicmetrics_messagesin_total", Counter, "", "kafka.server:type=BrokerTopicMetrics,name=MessagesInPerSec",
        "Records of batches that were given offsets, the node's own topics included"),
    row("kafka_server_brokertopicmetrics_bytesin_total", Counter, "", "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec",
        "Bytes of these batches, as they came"),
    row("kafka_server_brokertopicmetrics_bytesout_total", Counter, "", "kafka.server:type=BrokerTopicMetrics,name=BytesOutPerSec",
        "Bytes of records that consumers were given"),
    row("kafka_server_brokertopicmetrics_totalproducerequests_total", Counter, "", "kafka.server:type=BrokerTopicMetrics,name=TotalProduceRequestsPerSec",
        "Produce requests answered; Kafka counts one for each partition"),
    row("kafka_server_brokertopicmetrics_totalfetchrequests_total", Counter, "", "kafka.server:type=BrokerTopicMetrics,name=TotalFetchRequestsPerSec",
        "Fetch requests answered; Kafka counts one for each partition"),
    row("kafka_server_brokertopicmetrics_failedproducerequests_total", Counter, "", "kafka.server:type=BrokerTopicMetrics,name=FailedProduceRequestsPerSec",
        "Batches that were refused, for whatever reason"),
    row("kafka_network_requestmetrics_requests_total", Counter, "request, version", "kafka.network:type=RequestMetrics,name=RequestsPerSec",
        "Requests answered"),
    row("kafka_network_requestmetrics_requestbytes", Summary, "request", "kafka.network:type=RequestMetrics,name=RequestBytes",
        "Bytes of a request"),
    row("kafka_network_requestmetrics_requestqueuetimems", Summary, "request", "kafka.network:type=RequestMetrics,name=RequestQueueTimeMs",
        "Milliseconds in the mailboxes of the partitions' owners (phase queue)"),
    row("kafka_network_requestmetrics_localtimems", Summary, "request", "kafka.network:type=RequestMetrics,name=LocalTimeMs",
        "Milliseconds of work here and of waiting for the disk (phases decide, read, journal_wait, sync, answer)"),
    row("kafka_network_requestmetrics_remotetimems", Summary, "request", "kafka.network:type=RequestMetrics,name=RemoteTimeMs",
        "Milliseconds of waiting for others: data that a consumer waits for, members of a group, the controller, replicas (phases wait, replicate)"),
    row("kafka_network_requestmetrics_responsesendtimems", Summary, "request", "kafka.network:type=RequestMetrics,name=ResponseSendTimeMs",
        "Milliseconds from the answer to its last byte at the socket, behind earlier answers included (phase write; Kafka's ResponseQueueTimeMs is in it)"),
    row("kafka_network_requestmetrics_totaltimems", Summary, "request", "kafka.network:type=RequestMetrics,name=TotalTimeMs",
        "Milliseconds from a whole frame to its answer at the socket"),
    row("kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent", Gauge, "", "kafka.server:type=KafkaRequestHandlerPool,name=RequestHandlerAvgIdlePercent",
        "Share of the last one to two minutes (0 to 1) in which the workers waited for something to do"),
    row("kafka_network_socketserver_networkprocessoravgidle_percent", Gauge, "", "kafka.network:type=SocketServer,name=NetworkProcessorAvgIdlePercent",
        "The same: connections are served by the workers"),
    row("kafka_network_requestchannel_requestqueuesize", Gauge, "", "kafka.network:type=RequestChannel,name=RequestQueueSize",
        "Commands in the mailboxes of all workers"),
    row("kafka_server_replicamanager_leadercount", Gauge, "", "kafka.server:type=ReplicaManager,name=LeaderCount", "Partitions that this node leads"),
    row("kafka_server_replicamanager_partitioncount", Gauge, "", "kafka.server:type=ReplicaManager,name=PartitionCount", "Partitions with a replica on this node"),
    row("kafka_server_replicamanager_offlinereplicacount", Gauge, "", "kafka.server:type=ReplicaManager,name=OfflineReplicaCount",
        "Of these, those in log directories that are offline"),
    row("kafka_server_replicamanager_underreplicatedpartitions", Gauge, "", "kafka.server:type=ReplicaManager,name=UnderReplicatedPartitions",
        "Partitions led here with fewer replicas in sync than assigned"),
    row("kafka_server_replicamanager_underminisrpartitioncount", Gauge, "", "kafka.server:type=ReplicaManager,name=UnderMinIsrPartitionCount",
        "Partitions led here with fewer replicas in sync than min.insync.replicas"),
    row("kafka_server_replicamanager_atminisrpartitioncount", Gauge, "", "kafka.server:type=ReplicaManager,name=AtMinIsrPartitionCount",
        "Partitions led here with as many replicas in sync as min.insync.replicas"),
    row("kafka_server_replicamanager_reassigningpartitions", Gauge, "", "kafka.server:type=ReplicaManager,name=ReassigningPartitions",
        "Partitions led here that are being reassigned"),
    row("kafka_controller_kafkacontroller_activecontrollercount", Gauge, "", "kafka.controller:type=KafkaController,name=ActiveControllerCount",
        "1 where this node leads the metadata quorum"),
    row("kafka_controller_kafkacontroller_activebrokercount", Gauge, "", "kafka.controller:type=KafkaController,name=ActiveBrokerCount", "Brokers that are registered and not fenced"),
    row("kafka_controller_kafkacontroller_fencedbrokercount", Gauge, "", "kafka.controller:type=KafkaController,name=FencedBrokerCount", "Brokers that are registered and fenced"),
    row("kafka_controller_kafkacontroller_globaltopiccount", Gauge, "", "kafka.controller:type=KafkaController,name=GlobalTopicCount", "Topics of the cluster"),
    row("kafka_controller_kafkacontroller_globalpartitioncount", Gauge, "", "kafka.controller:type=KafkaController,name=GlobalPartitionCount", "Partitions of the cluster"),
    row("kafka_controller_kafkacontroller_offlinepartitionscount", Gauge, "", "kafka.controller:type=KafkaController,name=OfflinePartitionsCount", "Partitions of the cluster without a leader"),
    row("kafka_controller_kafkacontroller_preferredreplicaimbalancecount", Gauge, "", "kafka.controller:type=KafkaController,name=PreferredReplicaImbalanceCount",
        "Partitions of the cluster that another replica leads than the preferred one"),
    row("kafka_controller_kafkacontroller_lastappliedrecordoffset", Gauge, "", "kafka.controller:type=KafkaController,name=LastAppliedRecordOffset",
        "The newest offset of the metadata log that this node's image holds"),
    row("kafka_coordinator_group_groupmetadatamanager_numgroups", Gauge, "", "kafka.coordinator.group:type=GroupMetadataManager,name=NumGroups",
        "Groups of the coordinators here that are loaded; a few seconds old"),
    row("kafka_coordinator_group_groupmetadatamanager_numoffsets", Gauge, "", "kafka.coordinator.group:type=GroupMetadataManager,name=NumOffsets",
        "Offsets committed to them; a few seconds old"),
    row("kafka_log_logflushstats_logflushrateandtimems", Summary, "", "kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs",
        "Milliseconds of a sync: the journals' rounds and the committers' syncs of segments"),
    row("kafka_log_logmanager_offlinelogdirectorycount", Gauge, "", "kafka.log:type=LogManager,name=OfflineLogDirectoryCount", "Log directories that are offline"),
    row("kafka_log_logmanager_logdirectoryoffline", Gauge, "logDirectory", "kafka.log:type=LogManager,name=LogDirectoryOffline", "1 where it is offline"),
    row("kafka_log_logcleanermanager_uncleanable_partitions_count", Gauge, "", "kafka.log:type=LogCleanerManager,name=uncleanable-partitions-count",
        "Compacted partitions that compaction has given up until the next start"),
    row("kafka_log_logcleanermanager_uncleanable_bytes", Gauge, "", "kafka.log:type=LogCleanerManager,name=uncleanable-bytes", "Their bytes"),
    row("kafka_log_logcleanermanager_max_dirty_percent", Gauge, "", "kafka.log:type=LogCleanerManager,name=max-dirty-percent",
        "The dirtiest partition's share that waits for compaction, in hundredths"),
    row("kafka_log_log_size", Gauge, "topic, partition", "kafka.log:type=Log,name=Size",
        "Bytes of a partition's log. Only where it is asked for: /metrics?topic=NAME, up to 10,000 partitions"),
    row("barnabas_request_seconds", Histogram, "request", "", "From a whole frame to its answer at the socket"),
    row("barnabas_request_phase_seconds", Histogram, "request, phase", "",
        "The same by phase; of one request they add up to its time. Where a request skips a phase it is not counted there"),
    row("barnabas_requests_in_flight", Gauge, "", "", "Requests that were started and are not answered"),
    row("barnabas_client_requests_total", Counter, "client_id, request", "",
        "Requests answered, by client id: 64 have their own, all others are (others), those without one (none)"),
    row("barnabas_client_phase_seconds_total", Counter, "client_id, request, phase", "", "What their time went into; request is Produce, Fetch or other"),
    row("barnabas_client_request_seconds", Histogram, "client_id, request", "", "Their latency"),
    row("barnabas_client_bytes_in_total", Counter, "client_id", "", "Bytes of their requests"),
    row("barnabas_client_bytes_out_total", Counter, "client_id", "", "Bytes of the answers"),
    row("barnabas_broker_link_waiting", Gauge, "purpose", "",
        "What other brokers were asked and have not answered, waiting to be sent or under way: markers of transactions, verification of transactions, state of share groups, ends of logs"),
    row("barnabas_broker_link_oldest_seconds", Gauge, "purpose", "", "For how long the oldest of it has waited; 0 where nothing does"),
    row("barnabas_worker_busy_seconds_total", Counter, "worker", "", "Time in which the worker did not wait for something to do"),
    row("barnabas_worker_turn_seconds", Histogram, "worker", "", "One look of a worker after its partitions: while it lasts, nobody else of this worker is served"),
    row("barnabas_worker_lay_seconds", Histogram, "worker", "", "Of these, the part that brings batches from memory into segments"),
    row("barnabas_worker_mailbox_commands", Gauge, "worker", "", "Commands that wait for the worker"),
    row("barnabas_worker_turn_commands", Histogram, "", "", "Commands that a turn found in its mailbox"),
    row("barnabas_thread_cpu_seconds_total", Counter, "thread", "", "CPU time of the node's threads; those of one name together"),
    row("barnabas_thread_runqueue_seconds_total", Counter, "thread", "", "Time in which they could have run and no processor was free"),
    row("barnabas_batch_records", Histogram, "", "", "Records of a batch that was given offsets"),
    row("barnabas_batch_bytes", Histogram, "", "", "Its bytes"),
    row("barnabas_fetch_bytes", Histogram, "", "", "Bytes of records in the answer to a Fetch"),
    row("barnabas_journal_write_seconds", Histogram, "log_directory", "", "The synced write of a round of the journal"),
    row("barnabas_journal_round_bytes", Histogram, "log_directory", "", "Bytes of a round, padding included"),
    row("barnabas_journal_round_partitions", Histogram, "log_directory", "", "Partitions that a round made durable"),
    row("barnabas_journal_queue_bytes", Gauge, "log_directory", "", "Bytes that wait for a round"),
    row("barnabas_journal_laid_bytes_total", Counter, "", "", "Bytes brought from the journals into segments"),
    row("barnabas_direct_appends_total", Counter, "", "", "Appends that went past the journal, straight into their segment"),
    row("barnabas_appends_held_total", Counter, "", "", "Appends that waited because the journal had too much to write"),
    row("barnabas_segment_sync_seconds", Histogram, "log_directory", "", "A committer's sync of segments"),
    row("barnabas_segment_sync_files", Histogram, "log_directory", "", "Files of such a sync"),
    row("barnabas_log_directory_free_bytes", Gauge, "log_directory", "", "Room on its file system"),
    row("barnabas_log_directory_total_bytes", Gauge, "log_directory", "", "Size of its file system"),
    row("barnabas_log_directory_refuses_producers", Gauge, "log_directory", "", "1 while there is too little room for producers"),
    row("barnabas_batches_refused_full_total", Counter, "", "", "Batches refused for want of room"),
    row("barnabas_compaction_dirty_bytes", Gauge, "", "", "Bytes that could be compacted now, as of the newest look: compaction's debt"),
    row("barnabas_compaction_held_back_bytes", Gauge, "", "", "Bytes that have to wait: for min.compaction.lag.ms, or a transaction's end"),
    row("barnabas_compaction_partitions_waiting", Gauge, "", "", "Partitions with either"),
    row("barnabas_compaction_read_bytes_total", Counter, "", "", "Bytes that compaction has read"),
    row("barnabas_compaction_written_bytes_total", Counter, "", "", "Bytes that it has written"),
    row("barnabas_retention_segments_deleted_total", Counter, "", "", "Segments that retention has taken out of the logs"),
    row("barnabas_scrubbed_bytes_total", Counter, "", "", "Bytes of sealed segments read in the background to compare checksums"),
    row("barnabas_damage_found_total", Counter, "", "", "Places in segments that are not what was written"),
    row("barnabas_request_memory_bytes", Gauge, "", "", "Memory that requests and large answers hold of the budget"),
    row("barnabas_request_memory_limit_bytes", Gauge, "", "", "The budget (queued.max.request.bytes, or a quarter of the machine)"),
    row("barnabas_connections_accepted_total", Counter, "", "", "Connections accepted"),
    row("barnabas_connections_refused_total", Counter, "", "", "Connections turned away because a worker had too much to do"),
    row("barnabas_connections", Gauge, "", "", "Connections that are open"),
    row("barnabas_bad_requests_total", Counter, "", "", "Frames and requests that could not be read, or whose API or version is not served"),
    row("barnabas_network_bytes_in_total", Counter, "", "", "Bytes of requests, their lengths included"),
    row("barnabas_network_bytes_out_total", Counter, "", "", "Bytes of answers"),
    row("barnabas_log_files_open_max", Gauge, "", "", "Log files that may be open at a time (log.open.files.max)"),
    row("barnabas_uptime_seconds", Gauge, "", "", "Since the node's start"),
    row("kafka_server_kafkaserver_linux_disk_read_bytes", Gauge, "", "kafka.server:type=KafkaServer,name=linux-disk-read-bytes", "Bytes that the process had read from storage"),
    row("kafka_server_kafkaserver_linux_disk_write_bytes", Gauge, "", "kafka.server:type=KafkaServer,name=linux-disk-write-bytes", "Bytes that the process had written to storage"),
    row("process_cpu_seconds_total", Counter, "", "", "CPU time of the process, user and system"),
    row("process_resident_memory_bytes", Gauge, "", "", "Resident memory"),
    row("process_open_fds", Gauge, "", "", "Open descriptors"),
    row("process_max_fds", Gauge, "", "", "As many may be open (ulimit -n)"),
];

#[cfg(test)]
mod tests;
