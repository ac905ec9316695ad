//! The table of broker keys for listeners, sockets, fetching, replication, quotas and metrics.
//!
//! Sorted by name (a test holds that). What the node does with each key: [`crate::config::status`].
//! Facts: Kafka 4.4 `AbstractKafkaConfig`, update modes of `DynamicBrokerConfig`. Sentences: ours.

use crate::config::key::{ConfigKey, Valid, class, int, list, long, string};

#[rustfmt::skip]
pub(crate) const KEYS: &[ConfigKey] = &[
    list("advertised.listeners", "").null().valid(Valid::NonEmpty).high()
        .doc("The addresses that clients and other nodes are told to use, where they differ from `listeners`: \
              NAME://host:port, separated by commas."),
    class("alter.config.policy.class.name", "").null().low()
        .doc("Java class that may refuse a change of configuration."),
    int("alter.log.dirs.replication.quota.window.num", "11").at_least(1).low()
        .doc("Samples kept to measure the rate of moves between log directories."),
    int("alter.log.dirs.replication.quota.window.size.seconds", "1").at_least(1).low()
        .doc("Length of one sample when measuring moves between log directories."),
    class("client.quota.callback.class", "").null().low()
        .doc("Java class that decides which quota a client falls under."),
    list("config.providers", "").low().cluster_wide()
        .doc("Names of Java plug-ins that values in this file may be fetched from."),
    long("connections.max.idle.ms", "600000")
        .doc("A connection on which nothing has moved for this long is closed."),
    class("create.topic.policy.class.name", "").null().low()
        .doc("Java class that may refuse the creation of a topic."),
    int("delete.records.purgatory.purge.interval.requests", "1")
        .doc("After how many finished DeleteRecords requests Kafka tidies its list of waiting ones."),
    int("fetch.max.bytes", "57671680").at_least(1024)
        .doc("Most bytes in one answer to a fetch; the first batch is sent even if it is larger."),
    int("fetch.purgatory.purge.interval.requests", "1000")
        .doc("After how many finished fetches Kafka tidies its list of waiting ones."),
    string("inter.broker.listener.name", "").null()
        .doc("The listener that brokers use among themselves."),
    int("kafka.metrics.polling.interval.secs", "10").at_least(1).low()
        .doc("How often Kafka's metrics reporters look at the figures."),
    list("kafka.metrics.reporters", "").low()
        .doc("Java classes that report Kafka's Yammer metrics."),
    string("listener.security.protocol.map", "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT").low().per_broker()
        .doc("Which security protocol each listener name stands for: NAME:PROTOCOL, separated by commas."),
    list("listeners", "PLAINTEXT://:9092").valid(Valid::NonEmpty).high().per_broker()
        .doc("The addresses to listen on: NAME://host:port, separated by commas; an empty host listens on \
              every interface."),
    int("max.connection.creation.rate", "2147483647").at_least(0).cluster_wide()
        .doc("New connections per second that the broker, or one listener, accepts."),
    int("max.connections", "2147483647").at_least(0).cluster_wide()
        .doc("Most connections open at once, over all listeners or on one."),
    int("max.connections.per.ip", "2147483647").at_least(0).cluster_wide()
        .doc("Most connections open at once from one address."),
    string("max.connections.per.ip.overrides", "").valid(Valid::AddressCounts).cluster_wide()
        .doc("Other bounds for single addresses: address:number, separated by commas."),
    int("max.incremental.fetch.session.cache.slots", "1000").at_least(0)
        .doc("Fetch sessions that the broker remembers at once."),
    int("max.request.partition.size.limit", "2000").at_least(1)
        .doc("Most partitions in one answer to DescribeTopicPartitions."),
    list("metric.reporters", "org.apache.kafka.common.metrics.JmxReporter").low().cluster_wide()
        .doc("Java classes that report metrics."),
    int("metrics.num.samples", "2").at_least(1).low()
        .doc("Samples kept for each metric."),
    string("metrics.recording.level", "INFO").low()
        .doc("Which metrics are recorded: INFO, DEBUG or TRACE."),
    long("metrics.sample.window.ms", "30000").at_least(1).low()
        .doc("Length of one sample of a metric."),
    int("num.io.threads", "8").at_least(1).high().cluster_wide()
        .doc("Threads that work on requests, disk included."),
    int("num.network.threads", "3").at_least(1).high().cluster_wide()
        .doc("Threads per listener that read requests and write answers."),
    int("num.replica.fetchers", "1").at_least(1).high().cluster_wide()
        .doc("Threads per source broker that copy records from leaders."),
    int("producer.purgatory.purge.interval.requests", "1000")
        .doc("After how many finished produce requests Kafka tidies its list of waiting ones."),
    long("queued.max.request.bytes", "-1")
        .doc("Bytes of requests that may wait to be worked on before no more is read; -1 means no bound."),
    int("queued.max.requests", "500").at_least(1).high()
        .doc("Requests that may wait to be worked on before no more is read."),
    int("quota.window.num", "11").at_least(1).low()
        .doc("Samples kept to measure what a client uses."),
    int("quota.window.size.seconds", "1").at_least(1).low()
        .doc("Length of one sample when measuring what a client uses."),
    int("replica.fetch.backoff.ms", "1000").at_least(0)
        .doc("Pause after a failed fetch from a leader."),
    int("replica.fetch.max.bytes", "1048576").at_least(0)
        .doc("Most bytes that a follower asks for per partition; the first batch is sent even if it is larger."),
    int("replica.fetch.min.bytes", "1").high()
        .doc("Fewest bytes that a follower waits for."),
    int("replica.fetch.response.max.bytes", "10485760").at_least(0)
        .doc("Most bytes in one answer to a follower."),
    int("replica.fetch.wait.max.ms", "500").high()
        .doc("Longest time that a follower's fetch waits for data; below `replica.lag.time.max.ms`."),
    long("replica.high.watermark.checkpoint.interval.ms", "5000").high()
        .doc("How often the high watermarks are written down."),
    long("replica.lag.time.max.ms", "30000").high()
        .doc("A follower that has not caught up for this long leaves the in-sync set."),
    string("replica.selector.class", "").null()
        .doc("Java class that picks the replica a consumer should read from."),
    int("replica.socket.receive.buffer.bytes", "65536").high()
        .doc("Receive buffer of a follower's connection to its leader."),
    int("replica.socket.timeout.ms", "30000").high()
        .doc("How long a follower waits for its leader's answer on the socket."),
    int("replication.quota.window.num", "11").at_least(1).low()
        .doc("Samples kept to measure replication traffic."),
    int("replication.quota.window.size.seconds", "1").at_least(1).low()
        .doc("Length of one sample when measuring replication traffic."),
    long("socket.connection.setup.timeout.max.ms", "30000")
        .doc("Longest time that this node's own connections may take to set up, after repeated failures."),
    long("socket.connection.setup.timeout.ms", "10000")
        .doc("How long this node's own connections may take to set up at first."),
    int("socket.listen.backlog.size", "50").at_least(1)
        .doc("Connections that may wait to be accepted on a listener."),
    int("socket.receive.buffer.bytes", "102400").high()
        .doc("Receive buffer of client connections; -1 leaves it to the system."),
    int("socket.request.max.bytes", "104857600").at_least(1).high()
        .doc("Largest request that is taken."),
    int("socket.send.buffer.bytes", "102400").high()
        .doc("Send buffer of client connections; -1 leaves it to the system."),
    int("telemetry.max.bytes", "1048576").at_least(1).low()
        .doc("Largest package of metrics that a client may push, compressed and as it is."),
];
