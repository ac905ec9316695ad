//! The table of broker keys for tiered storage.
//!
//! Sorted by name (a test holds that). What the node does with each key: [`crate::config::status`].
//! Facts: Kafka 4.4 `AbstractKafkaConfig`, update modes of `DynamicBrokerConfig`. Sentences: ours.

use crate::config::key::{ConfigKey, Valid, boolean, double, int, long, string};

#[rustfmt::skip]
pub(crate) const KEYS: &[ConfigKey] = &[
    boolean("follower.fetch.last.tiered.offset.enable", "false").cluster_wide()
        .doc("Whether a new follower starts at the end of what tiered storage holds instead of copying \
              everything that is local."),
    long("log.local.retention.bytes", "-2").at_least(-2).cluster_wide()
        .doc("Bytes of a tiered partition that stay on local disks; -2 means as `retention.bytes`."),
    long("log.local.retention.ms", "-2").at_least(-2).cluster_wide()
        .doc("How long records of a tiered partition stay on local disks; -2 means as `retention.ms`."),
    long("log.remote.copy.lag.bytes", "-1").at_least(-1).cluster_wide()
        .doc("Bytes by which copying to tiered storage stays behind the log's end; -1 means as the local \
              retention."),
    long("log.remote.copy.lag.ms", "0").at_least(-1).cluster_wide()
        .doc("Time by which copying to tiered storage stays behind the log's end; -1 means as the local \
              retention."),
    int("remote.fetch.max.wait.ms", "500").at_least(1).cluster_wide()
        .doc("Longest time that a fetch waits for tiered storage."),
    long("remote.list.offsets.request.timeout.ms", "30000").at_least(1).cluster_wide()
        .doc("Longest time that ListOffsets waits for tiered storage."),
    long("remote.log.index.file.cache.total.size.bytes", "1073741824").at_least(1).low().cluster_wide()
        .doc("Disk space for indexes fetched from tiered storage."),
    long("remote.log.index.file.cache.ttl.ms", "900000").at_least(-1).low().internal()
        .doc("How long an unused index from tiered storage is kept; -1 means until the space is needed."),
    int("remote.log.manager.copier.thread.pool.size", "10").at_least(1).cluster_wide()
        .doc("Threads that copy segments to tiered storage."),
    long("remote.log.manager.copy.max.bytes.per.second", "9223372036854775807").at_least(1).cluster_wide()
        .doc("Bytes per second that may go to tiered storage."),
    int("remote.log.manager.copy.quota.window.num", "11").at_least(1)
        .doc("Samples kept to measure what goes to tiered storage."),
    int("remote.log.manager.copy.quota.window.size.seconds", "1").at_least(1)
        .doc("Length of one sample when measuring what goes to tiered storage."),
    int("remote.log.manager.expiration.thread.pool.size", "10").at_least(1).cluster_wide()
        .doc("Threads that remove expired segments from tiered storage."),
    long("remote.log.manager.fetch.max.bytes.per.second", "9223372036854775807").at_least(1).cluster_wide()
        .doc("Bytes per second that may come from tiered storage."),
    int("remote.log.manager.fetch.quota.window.num", "11").at_least(1)
        .doc("Samples kept to measure what comes from tiered storage."),
    int("remote.log.manager.fetch.quota.window.size.seconds", "1").at_least(1)
        .doc("Length of one sample when measuring what comes from tiered storage."),
    int("remote.log.manager.follower.thread.pool.size", "2").at_least(1).cluster_wide()
        .doc("Threads for the followers' part of tiered storage."),
    long("remote.log.manager.task.interval.ms", "30000").at_least(1).low()
        .doc("How often each partition's work for tiered storage is done."),
    long("remote.log.manager.task.retry.backoff.max.ms", "30000").at_least(1).low().internal()
        .doc("Longest pause before failed work for tiered storage is tried again."),
    long("remote.log.manager.task.retry.backoff.ms", "500").at_least(1).low().internal()
        .doc("First pause before failed work for tiered storage is tried again."),
    double("remote.log.manager.task.retry.jitter", "0.2").valid(Valid::Fraction(0.0, 0.5)).low().internal()
        .doc("Random share by which that pause varies."),
    int("remote.log.manager.thread.pool.size", "2").at_least(1)
        .doc("Threads that plan the work for tiered storage."),
    int("remote.log.metadata.custom.metadata.max.bytes", "128").at_least(0).low()
        .doc("Most bytes of a storage plug-in's own notes per segment."),
    string("remote.log.metadata.manager.class.name", "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager").valid(Valid::NonEmpty)
        .doc("Java class that keeps account of what is in tiered storage."),
    string("remote.log.metadata.manager.class.path", "").null()
        .doc("Where that Java class is loaded from."),
    string("remote.log.metadata.manager.impl.prefix", "rlmm.config.").valid(Valid::NonEmpty)
        .doc("Prefix of the settings that are passed to that Java class."),
    string("remote.log.metadata.manager.listener.name", "").null().valid(Valid::NonEmpty)
        .doc("Listener that this account-keeping connects to."),
    int("remote.log.reader.max.pending.tasks", "100").at_least(1)
        .doc("Reads from tiered storage that may wait."),
    int("remote.log.reader.threads", "10").at_least(1).cluster_wide()
        .doc("Threads that read from tiered storage."),
    string("remote.log.storage.manager.class.name", "").null().valid(Valid::NonEmpty)
        .doc("Java class that stores and fetches segments."),
    string("remote.log.storage.manager.class.path", "").null()
        .doc("Where the storing Java class is loaded from."),
    string("remote.log.storage.manager.impl.prefix", "rsm.config.").valid(Valid::NonEmpty)
        .doc("Prefix of the settings that are passed to the storing Java class."),
    boolean("remote.log.storage.system.enable", "false")
        .doc("Whether tiered storage is switched on for this broker."),
];
