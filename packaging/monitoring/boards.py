"""What stands on Grafana's dashboards: each panel's question, its expressions and its unit. `generate` writes them in Grafana's words, and
lab/dashboards evaluates each expression on a loaded cluster.

A figure is a sum over nodes where it is of the cluster, and by node where nodes are compared. `$n` selects the job and the chosen nodes.
"""

from dataclasses import dataclass

N = 'job="$job",instance=~"$instance"'
RATE = "[$__rate_interval]"


@dataclass(frozen=True)
class Panel:
    title: str
    why: str
    unit: str
    # (expression, legend)
    queries: tuple
    kind: str = "timeseries"
    stacked: bool = False
    red_from: float | None = None


@dataclass(frozen=True)
class Board:
    name: str
    title: str
    panels: tuple
    # (name, query) beside datasource, job and instance
    variables: tuple = ()


def of(expression):
    return expression.replace("$n", N).replace("$rate", RATE)


def graph(title, why, unit, *queries, stacked=False):
    return Panel(title, why, unit, tuple((of(expression), legend) for expression, legend in queries), stacked=stacked)


def stat(title, why, expression, unit="short", red_from=None):
    return Panel(title, why, unit, ((of(expression), ""),), kind="stat", red_from=red_from)


TOPICS = "kafka_server_brokertopicmetrics"
REQUESTS = "kafka_network_requestmetrics"

OVERVIEW = Board("overview", "overview", (
    stat("Brokers", "Registered and not fenced.", 'max(kafka_controller_kafkacontroller_activebrokercount{job="$job"})'),
    stat("Partitions without a leader", "They are not served.", 'max(kafka_controller_kafkacontroller_offlinepartitionscount{job="$job"})', red_from=1),
    stat("Partitions under min.insync.replicas", "They refuse acks=all.", 'sum(kafka_server_replicamanager_underminisrpartitioncount{job="$job"})', red_from=1),
    stat("Partitions under-replicated", "Replicas are missing or catch up.", 'sum(kafka_server_replicamanager_underreplicatedpartitions{job="$job"})', red_from=1),
    stat("Active controllers", "One, always.", 'sum(kafka_controller_kafkacontroller_activecontrollercount{job="$job"})', red_from=2),
    stat("Damage found", "Corrupt ranges and logs since the nodes' starts.", 'sum(barnabas_damage_found_total{job="$job"})', red_from=1),
    graph("Bytes in", "Produced, by node.", "Bps", (f"sum by (instance) (rate({TOPICS}_bytesin_total{{$n,topic=\"\"}}$rate))", "{{instance}}"), stacked=True),
    graph("Bytes out", "To consumers, by node.", "Bps", (f"sum by (instance) (rate({TOPICS}_bytesout_total{{$n,topic=\"\"}}$rate))", "{{instance}}"), stacked=True),
    graph("Records in", "By node.", "cps", (f"sum by (instance) (rate({TOPICS}_messagesin_total{{$n,topic=\"\"}}$rate))", "{{instance}}"), stacked=True),
    graph("Produce, 99 of 100 within", "From a whole request to its answer at the socket, replication included.", "ms",
          (f'max by (instance) ({REQUESTS}_totaltimems{{$n,request="Produce",quantile="0.99"}})', "{{instance}}")),
    graph("Fetch of consumers, 99 of 100 without the wait for data", "Work and disk; RemoteTimeMs is the wait.", "ms",
          (f'max by (instance) ({REQUESTS}_localtimems{{$n,request="FetchConsumer",quantile="0.99"}})', "{{instance}}")),
    graph("Workers idle", "0 is saturation.", "percentunit", ("kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent{$n}", "{{instance}}")),
    graph("Refused batches and fetches", "For any reason; by node.", "cps", (f"sum by (instance) (rate({TOPICS}_failedproducerequests_total{{$n,topic=\"\"}}$rate))", "produce {{instance}}"),
          (f"sum by (instance) (rate({TOPICS}_failedfetchrequests_total{{$n,topic=\"\"}}$rate))", "fetch {{instance}}")),
    graph("Largest lags", "Groups that are furthest behind.", "short", ('topk(10, sum by (group) (barnabas_group_lag{job="$job"}))', "{{group}}")),
    graph("Room on disks", "Free share of the file system.", "percentunit", ("barnabas_log_directory_free_bytes{$n} / barnabas_log_directory_total_bytes{$n}", "{{instance}} {{log_directory}}")),
))

NODE = Board("node", "nodes", (
    graph("CPU", "Cores in use.", "short", ("sum by (instance) (rate(process_cpu_seconds_total{$n}$rate))", "{{instance}}")),
    graph("CPU by thread", "Cores; the ten busiest.", "short", ("topk(10, sum by (thread) (rate(barnabas_thread_cpu_seconds_total{$n}$rate)))", "{{thread}}")),
    graph("Waiting for a processor", "Runnable, and no processor free: seconds per second.", "short", ("sum by (instance) (rate(barnabas_thread_runqueue_seconds_total{$n}$rate))", "{{instance}}")),
    graph("Workers busy", "Share of the time; one at 1 limits its partitions.", "percentunit", ("rate(barnabas_worker_busy_seconds_total{$n}$rate)", "{{instance}} {{worker}}")),
    graph("Mailboxes", "Commands that wait for their worker.", "short", ("barnabas_worker_mailbox_commands{$n}", "{{instance}} {{worker}}")),
    graph("Requests in flight", "Started and not answered.", "short", ("barnabas_requests_in_flight{$n}", "{{instance}}")),
    graph("Memory", "Resident.", "bytes", ("process_resident_memory_bytes{$n}", "{{instance}}")),
    graph("Request memory", "Share of its limit; at 1 sockets are not read.", "percentunit", ("barnabas_request_memory_bytes{$n} / barnabas_request_memory_limit_bytes{$n}", "{{instance}}")),
    graph("Descriptors", "Share of the limit.", "percentunit", ("process_open_fds{$n} / process_max_fds{$n}", "{{instance}}")),
    graph("Connections", "Open, by listener.", "short", ("sum by (instance, listener) (kafka_server_socket_server_metrics_connection_count{$n})", "{{instance}} {{listener}}")),
    graph("New connections", "Per second, by listener.", "cps", ('sum by (instance, listener) (kafka_server_socket_server_metrics_connection_accept_rate{$n,ip=""})', "{{instance}} {{listener}}")),
    graph("Network", "Bytes of requests and answers.", "Bps", ("rate(barnabas_network_bytes_in_total{$n}$rate)", "in {{instance}}"), ("rate(barnabas_network_bytes_out_total{$n}$rate)", "out {{instance}}")),
    graph("Partitions", "With a replica here; of these led.", "short", ("kafka_server_replicamanager_partitioncount{$n}", "{{instance}}"), ("kafka_server_replicamanager_leadercount{$n}", "led {{instance}}")),
    graph("ISR changes", "Of partitions led here.", "cps", ("rate(kafka_server_replicamanager_isrshrinks_total{$n}$rate)", "shrinks {{instance}}"), ("rate(kafka_server_replicamanager_isrexpands_total{$n}$rate)", "expands {{instance}}")),
    graph("Replication", "Bytes fetched from leaders, and by followers.", "Bps", (f"rate({TOPICS}_replicationbytesin_total{{$n}}$rate)", "in {{instance}}"), (f"rate({TOPICS}_replicationbytesout_total{{$n}}$rate)", "out {{instance}}")),
    graph("Clients by time used", "Seconds of all phases but waiting, per second; the ten largest.", "short",
          ('topk(10, sum by (client_id) (rate(barnabas_client_phase_seconds_total{$n,phase!="wait"}$rate)))', "{{client_id}}")),
    graph("Uptime", "A fall is a restart.", "s", ("barnabas_uptime_seconds{$n}", "{{instance}}")),
    graph("Throttled", "Requests over a quota.", "cps", ("sum by (instance, quota) (rate(barnabas_quota_throttled_requests_total{$n}$rate))", "{{instance}} {{quota}}")),
))

TOPIC = Board("topics", "topics", tuple(
    graph(title, why, unit, (f'topk(20, sum by (topic) (rate({TOPICS}_{figure}_total{{$n,topic=~"$topic",topic!=""}}$rate)))', "{{topic}}"))
    for title, why, unit, figure in (
        ("Bytes in", "The twenty largest of the chosen topics.", "Bps", "bytesin"),
        ("Bytes out", "To consumers.", "Bps", "bytesout"),
        ("Records in", "The twenty largest.", "cps", "messagesin"),
        ("Produce", "Partitions of requests.", "cps", "totalproducerequests"),
        ("Fetch", "Partitions of requests, of consumers and followers.", "cps", "totalfetchrequests"),
        ("Batches refused", "For any reason.", "cps", "failedproducerequests"),
        ("Fetches refused", "Partitions answered with an error.", "cps", "failedfetchrequests"),
        ("Bytes rejected", "Batches over max.message.bytes.", "Bps", "bytesrejected"),
    )
) + (
    stat("Topics without series", "Counted as (others): raise metrics.topics.max.", "max(barnabas_topics_unlisted{$n})", red_from=1),
    stat("Topics", "Of the cluster.", 'max(kafka_controller_kafkacontroller_globaltopiccount{job="$job"})'),
    stat("Partitions", "Of the cluster.", 'max(kafka_controller_kafkacontroller_globalpartitioncount{job="$job"})'),
    graph("Record size", "Average bytes of a record, as it came.", "bytes",
          (f'topk(20, sum by (topic) (rate({TOPICS}_bytesin_total{{$n,topic=~"$topic",topic!=""}}$rate)) / sum by (topic) (rate({TOPICS}_messagesin_total{{$n,topic=~"$topic",topic!=""}}$rate)))', "{{topic}}")),
), (("topic", f'label_values({TOPICS}_bytesin_total{{job="$job",topic!=""}}, topic)'),))

LATENCY = Board("latency", "latency by phase", (
    graph("Where a Produce spends its time", "Average by phase; the phases add up.", "s",
          ('sum by (phase) (rate(barnabas_request_phase_seconds_sum{$n,request="Produce"}$rate)) / scalar(sum(rate(barnabas_request_seconds_count{$n,request="Produce"}$rate)))', "{{phase}}"), stacked=True),
    graph("Where a Fetch spends its time", "Without the wait for data.", "s",
          ('sum by (phase) (rate(barnabas_request_phase_seconds_sum{$n,request="Fetch",phase!="wait"}$rate)) / scalar(sum(rate(barnabas_request_seconds_count{$n,request="Fetch"}$rate)))', "{{phase}}"), stacked=True),
    graph("Where the chosen requests spend theirs", "Average by phase.", "s",
          ('sum by (phase) (rate(barnabas_request_phase_seconds_sum{$n,request=~"$request"}$rate)) / scalar(sum(rate(barnabas_request_seconds_count{$n,request=~"$request"}$rate)))', "{{phase}}"), stacked=True),
    graph("Produce", "Quantiles of the last minute or two; the slowest node.", "ms", (f'max by (quantile) ({REQUESTS}_totaltimems{{$n,request="Produce"}})', "{{quantile}}")),
    graph("Produce by node", "99 of 100 within.", "ms", (f'{REQUESTS}_totaltimems{{$n,request="Produce",quantile="0.99"}}', "{{instance}}")),
    graph("Produce: disk", "Sync of the journal, 99 of 100 within.", "s",
          ('histogram_quantile(0.99, sum by (instance, le) (rate(barnabas_request_phase_seconds_bucket{$n,request="Produce",phase="sync"}$rate)))', "{{instance}}")),
    graph("Produce: replication", "On disk here, not yet everywhere; 99 of 100 within.", "s",
          ('histogram_quantile(0.99, sum by (instance, le) (rate(barnabas_request_phase_seconds_bucket{$n,request="Produce",phase="replicate"}$rate)))', "{{instance}}")),
    graph("Queue", "In the mailboxes of the partitions' owners, 99 of 100 within.", "ms", (f'max by (request) ({REQUESTS}_requestqueuetimems{{$n,request=~"Produce|FetchConsumer|FetchFollower",quantile="0.99"}})', "{{request}}")),
    graph("Requests", "By API; the ten most frequent.", "cps", (f"topk(10, sum by (request) (rate({REQUESTS}_requests_total{{$n}}$rate)))", "{{request}}")),
    graph("Turns of workers", "99 of 100 within. A worker serves nothing else meanwhile.", "s", ("histogram_quantile(0.99, sum by (instance, le) (rate(barnabas_worker_turn_seconds_bucket{$n}$rate)))", "{{instance}}")),
    graph("Slowest clients, Produce", "99 of 100 within; the ten slowest.", "s",
          ('topk(10, histogram_quantile(0.99, sum by (client_id, le) (rate(barnabas_client_request_seconds_bucket{$n,request="Produce"}$rate))))', "{{client_id}}")),
    graph("Request size", "Bytes, 95 of 100 below.", "bytes", (f'max by (request) ({REQUESTS}_requestbytes{{$n,request=~"Produce|Fetch",quantile="0.95"}})', "{{request}}")),
), (("request", "label_values(barnabas_request_seconds_count, request)"),))

DISK = Board("disks", "journal and disks", (
    graph("Journal's writes", "A synced round, 99 of 100 within.", "s", ("histogram_quantile(0.99, sum by (instance, log_directory, le) (rate(barnabas_journal_write_seconds_bucket{$n}$rate)))", "{{instance}} {{log_directory}}")),
    graph("Rounds", "Per second.", "cps", ("rate(barnabas_journal_write_seconds_count{$n}$rate)", "{{instance}} {{log_directory}}")),
    graph("Bytes of a round", "Average. Small rounds under load: the disk is fast, or producers wait.", "bytes", ("rate(barnabas_journal_round_bytes_sum{$n}$rate) / rate(barnabas_journal_round_bytes_count{$n}$rate)", "{{instance}} {{log_directory}}")),
    graph("Journal's queue", "Bytes for the next round.", "bytes", ("barnabas_journal_queue_bytes{$n}", "{{instance}} {{log_directory}}")),
    graph("Appends that waited", "The journal's queue was full.", "cps", ("rate(barnabas_appends_delayed_total{$n}$rate)", "{{instance}}")),
    graph("Written back", "From journals to segments.", "Bps", ("rate(barnabas_journal_written_back_bytes_total{$n}$rate)", "{{instance}}")),
    graph("Segments' syncs", "Average duration.", "s", ("rate(barnabas_segment_sync_seconds_sum{$n}$rate) / rate(barnabas_segment_sync_seconds_count{$n}$rate)", "{{instance}} {{log_directory}}")),
    graph("Disk", "Bytes that the process reads and writes.", "Bps", ("rate(kafka_server_kafkaserver_linux_disk_read_bytes{$n}$rate)", "read {{instance}}"), ("rate(kafka_server_kafkaserver_linux_disk_write_bytes{$n}$rate)", "write {{instance}}")),
    graph("Free", "On the file system.", "bytes", ("barnabas_log_directory_free_bytes{$n}", "{{instance}} {{log_directory}}")),
    stat("Directories that refuse producers", "Their disk is full.", "sum(barnabas_log_directory_refuses_producers{$n})", red_from=1),
    stat("Directories offline", "A write or sync failed.", "sum(kafka_log_logmanager_offlinelogdirectorycount{$n})", red_from=1),
    stat("Replicas impaired", "Corrupt, or cannot be opened.", "sum(barnabas_partitions_leadership_impaired{$n})", red_from=1),
    graph("Compaction", "Bytes read and written.", "Bps", ("rate(barnabas_compaction_read_bytes_total{$n}$rate)", "read {{instance}}"), ("rate(barnabas_compaction_written_bytes_total{$n}$rate)", "written {{instance}}")),
    graph("Dirty", "Bytes eligible for compaction.", "bytes", ("barnabas_compaction_dirty_bytes{$n}", "{{instance}}")),
    graph("Scrubbed", "Sealed segments read in the background.", "Bps", ("rate(barnabas_scrubbed_bytes_total{$n}$rate)", "{{instance}}")),
))

GROUPS = Board("groups", "groups", (
    graph("Lag in records", "The twenty groups that are furthest behind.", "short", ('topk(20, sum by (group) (barnabas_group_lag{job="$job",group=~"$group"}))', "{{group}}")),
    graph("Lag in seconds", "Age of the oldest unread record.", "s", ('topk(20, max by (group) (barnabas_group_lag_seconds{job="$job",group=~"$group"}))', "{{group}}")),
    graph("Largest lag of one partition", "Far above the group's average: one partition is stuck, or hot.", "short", ('topk(20, max by (group) (barnabas_group_lag_max_partition{job="$job",group=~"$group"}))', "{{group}}")),
    graph("Held up by transactions", "Records that read_committed consumers cannot read yet.", "short",
          ('topk(20, sum by (group) (barnabas_group_lag{job="$job",group=~"$group"}) - sum by (group) (barnabas_group_lag_read_committed{job="$job",group=~"$group"}))', "{{group}}")),
    graph("Lag by protocol", "Of all groups.", "short", ("sum by (protocol) (barnabas_groups_lag{$n})", "{{protocol}}")),
    graph("Groups by protocol", "Of all coordinators.", "short", ("sum by (protocol) (kafka_server_group_coordinator_metrics_group_count{$n})", "{{protocol}}")),
    graph("Consumer groups by state", "KIP-848.", "short", ("sum by (state) (kafka_server_group_coordinator_metrics_consumer_group_count{$n})", "{{state}}")),
    graph("Classic groups by state", "Groups that stay in a rebalance read nothing.", "short", ("sum by (state) (kafka_server_group_coordinator_metrics_classic_group_count{$n})", "{{state}}")),
    graph("Rebalances", "Per second, by kind of group.", "cps", ("sum(rate(kafka_server_group_coordinator_metrics_group_completed_rebalance_count{$n}$rate))", "classic"),
          ("sum(rate(kafka_server_group_coordinator_metrics_consumer_group_rebalance_count{$n}$rate))", "consumer")),
    graph("Commits", "Offsets per second.", "cps", ("sum by (instance) (rate(kafka_server_group_coordinator_metrics_offset_commit_count{$n}$rate))", "{{instance}}")),
    stat("Groups not computed", "Within two seconds; they are in no sum.", "sum(barnabas_groups_lag_unknown{$n})", red_from=1),
    stat("Partitions unknown", "The topic is gone, or another broker did not answer.", "sum(barnabas_group_partitions_unknown{$n})", red_from=1),
), (("group", 'label_values(barnabas_group_lag{job="$job"}, group)'),))

QUORUM = Board("quorum", "metadata quorum", (
    stat("Leader", "The node's id.", 'max(kafka_server_raft_metrics_current_leader{job="$job"})'),
    stat("Epoch", "Grows with each election.", 'max(kafka_server_raft_metrics_current_epoch{job="$job"})'),
    stat("Voters", "As the nodes know them.", 'max(kafka_server_raft_metrics_number_of_voters{job="$job"})'),
    graph("State", "1 for the state in which a node is.", "short", ("kafka_server_raft_metrics_current_state{$n}", "{{instance}} {{current_state}}")),
    graph("Behind the leader", "Metadata records.", "short", ('scalar(max(kafka_server_raft_metrics_log_end_offset{job="$job"})) - kafka_server_raft_metrics_log_end_offset{$n}', "{{instance}}")),
    graph("Commit latency", "From the leader's append to a majority's.", "ms", ("kafka_server_raft_metrics_commit_latency_avg{$n}", "average {{instance}}"), ("kafka_server_raft_metrics_commit_latency_max{$n}", "longest {{instance}}")),
    graph("Time without a leader", "Longest of the last minute or two.", "ms", ("kafka_server_raft_metrics_election_latency_max{$n}", "{{instance}}")),
    graph("Metadata records", "Appended by the leader.", "cps", ("kafka_server_raft_metrics_append_records_rate{$n}", "{{instance}}")),
    graph("Requests between members", "Sent by a node.", "cps", ("rate(kafka_server_raft_channel_metrics_request_total{$n}$rate)", "{{instance}}")),
    graph("Brokers fenced", "Registered, and not served.", "short", ('max(kafka_controller_kafkacontroller_fencedbrokercount{job="$job"})', "fenced")),
    graph("Leaders that are not preferred", "After restarts, until the next election.", "short", ('max(kafka_controller_kafkacontroller_preferredreplicaimbalancecount{job="$job"})', "partitions")),
    graph("Unclean elections", "Records may be lost.", "short", ('max(increase(kafka_controller_controllerstats_uncleanleaderelections_total{job="$job"}$rate))', "elections")),
))

BOARDS = (OVERVIEW, NODE, TOPIC, LATENCY, DISK, GROUPS, QUORUM)
