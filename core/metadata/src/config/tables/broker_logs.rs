//! The table of broker keys for topics and their logs.
//!
//! Sorted by name (a test holds that). What the node does with each key: [`crate::config::status`].
//! Facts: Kafka 4.4 `AbstractKafkaConfig`, update modes of `DynamicBrokerConfig`. Sentences: ours.

use crate::config::key::{ConfigKey, Valid, boolean, double, int, list, long, string};

#[rustfmt::skip]
pub(crate) const KEYS: &[ConfigKey] = &[
    boolean("auto.create.topics.enable", "true").high()
        .doc("Whether a Metadata request for a topic that does not exist may create it."),
    int("background.threads", "10").at_least(1).high().cluster_wide()
        .doc("Threads for housekeeping."),
    int("compression.gzip.level", "-1").valid(Valid::GzipLevel).cluster_wide()
        .doc("Level for gzip when the broker itself compresses: 1 to 9, or -1 for the codec's own."),
    int("compression.lz4.level", "9").between(1, 17).cluster_wide()
        .doc("Level for lz4 when the broker itself compresses: 1 to 17."),
    string("compression.type", "producer").one_of(&["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"]).high().cluster_wide()
        .doc("Codec that batches are stored in: `producer` keeps the producer's, `uncompressed` stores \
              plainly, the others compress again."),
    int("compression.zstd.level", "3").between(-131072, 22).cluster_wide()
        .doc("Level for zstd when the broker itself compresses."),
    list("cordoned.log.dirs", "").per_broker()
        .doc("Log directories that get no new partitions."),
    int("default.replication.factor", "1")
        .doc("Replicas of a topic whose creator names no number."),
    boolean("delete.topic.enable", "true").high()
        .doc("Whether topics may be deleted at all."),
    long("log.cleaner.backoff.ms", "15000").at_least(0).cluster_wide()
        .doc("How long compaction sleeps when nothing needs it."),
    long("log.cleaner.dedupe.buffer.size", "134217728").cluster_wide()
        .doc("Memory for the keys of one compaction, over all its threads."),
    long("log.cleaner.delete.retention.ms", "86400000").at_least(0).cluster_wide()
        .doc("How long the marker of a deleted key stays in a compacted topic."),
    boolean("log.cleaner.enable", "true")
        .doc("Whether compacted topics are compacted; Kafka always compacts since 4.0."),
    double("log.cleaner.io.buffer.load.factor", "0.9").cluster_wide()
        .doc("How full the key table of a compaction may get."),
    int("log.cleaner.io.buffer.size", "524288").at_least(0).cluster_wide()
        .doc("Memory for reading and writing during compaction, over all its threads."),
    double("log.cleaner.io.max.bytes.per.second", "1.7976931348623157E308").cluster_wide()
        .doc("Bytes per second that compaction may read and write."),
    long("log.cleaner.max.compaction.lag.ms", "9223372036854775807").at_least(1).cluster_wide()
        .doc("A record of a compacted topic waits at most this long for compaction."),
    double("log.cleaner.min.cleanable.ratio", "0.5").valid(Valid::Fraction(0.0, 1.0)).cluster_wide()
        .doc("Share of a compacted log that must be new before it is compacted."),
    long("log.cleaner.min.compaction.lag.ms", "0").at_least(0).cluster_wide()
        .doc("A record of a compacted topic stays untouched for at least this long."),
    int("log.cleaner.threads", "1").at_least(0).cluster_wide()
        .doc("Threads for compaction."),
    list("log.cleanup.policy", "delete").list_of(&["compact", "delete"]).cluster_wide()
        .doc("What happens to old data: `delete` drops old segments, `compact` keeps the newest record of each \
              key; both may be given."),
    list("log.dir", "/tmp/kafka-logs").valid(Valid::NonEmpty).high()
        .doc("Where data is kept; `log.dirs` takes precedence."),
    long("log.dir.failure.timeout.ms", "30000").at_least(1).low()
        .doc("A broker that could not tell the controller about a failed log directory for this long stops."),
    list("log.dirs", "").null().valid(Valid::NonEmpty).high()
        .doc("Where data is kept: directories separated by commas."),
    long("log.flush.interval.messages", "9223372036854775807").at_least(1).high().cluster_wide()
        .doc("After how many records a partition is synced to disk without waiting for an acknowledgement to \
              need it."),
    long("log.flush.interval.ms", "").null().high().cluster_wide()
        .doc("How long a record may stay unsynced; unset means `log.flush.scheduler.interval.ms`."),
    int("log.flush.offset.checkpoint.interval.ms", "60000").at_least(0).high()
        .doc("How often the recovery points are written down."),
    long("log.flush.scheduler.interval.ms", "9223372036854775807").high()
        .doc("How often partitions are looked at for `log.flush.interval.ms`."),
    int("log.flush.start.offset.checkpoint.interval.ms", "60000").at_least(0).high()
        .doc("How often the log start offsets are written down."),
    int("log.index.interval.bytes", "4096").at_least(0).cluster_wide()
        .doc("About how many bytes lie between two entries of a segment's offset index."),
    int("log.index.size.max.bytes", "10485760").at_least(4).cluster_wide()
        .doc("Largest size of a segment's index."),
    long("log.initial.task.delay.ms", "30000").at_least(0).low().internal()
        .doc("How long after the start the first housekeeping of the logs begins."),
    long("log.message.timestamp.after.max.ms", "3600000").at_least(0).cluster_wide()
        .doc("How far a record's timestamp may lie ahead of the broker's clock."),
    long("log.message.timestamp.before.max.ms", "9223372036854775807").at_least(0).cluster_wide()
        .doc("How far a record's timestamp may lie behind the broker's clock."),
    string("log.message.timestamp.type", "CreateTime").one_of(&["CreateTime", "LogAppendTime"]).cluster_wide()
        .doc("Whose time a record carries: the producer's (`CreateTime`) or the broker's (`LogAppendTime`)."),
    boolean("log.preallocate", "false").cluster_wide()
        .doc("Whether a new segment reserves its full size on disk at once."),
    long("log.retention.bytes", "-1").high().cluster_wide()
        .doc("Bytes that a partition may hold before its oldest segments go; -1 means no bound."),
    long("log.retention.check.interval.ms", "300000").at_least(1)
        .doc("How often segments are checked for retention."),
    int("log.retention.hours", "168").high()
        .doc("Hours that records are kept, unless the minutes or milliseconds are given."),
    int("log.retention.minutes", "").null().high()
        .doc("Minutes that records are kept, unless the milliseconds are given."),
    long("log.retention.ms", "").null().high().cluster_wide()
        .doc("Milliseconds that records are kept; -1 means for ever."),
    int("log.roll.hours", "168").at_least(1).high()
        .doc("Hours after which a new segment is begun, unless the milliseconds are given."),
    int("log.roll.jitter.hours", "0").at_least(0).high()
        .doc("Most hours by which beginning a new segment is randomly brought forward, unless the milliseconds \
              are given."),
    long("log.roll.jitter.ms", "").null().at_least(0).high().cluster_wide()
        .doc("Most milliseconds by which beginning a new segment is randomly brought forward."),
    long("log.roll.ms", "").null().at_least(1).high().cluster_wide()
        .doc("Milliseconds after which a new segment is begun, full or not."),
    int("log.segment.bytes", "1073741824").at_least(1048576).high().cluster_wide()
        .doc("Size at which a new segment is begun."),
    long("log.segment.delete.delay.ms", "60000").at_least(0).high().cluster_wide()
        .doc("How long a removed segment stays on disk under another name."),
    int("max.decompressed.message.bytes", "2147483639").between(1, 2147483639).cluster_wide()
        .doc("Most bytes that a compressed batch may grow to where the broker has to open it."),
    int("message.max.bytes", "1048588").at_least(0).high().cluster_wide()
        .doc("Largest batch that a topic takes, after compression."),
    int("min.insync.replicas", "1").at_least(1).high().cluster_wide()
        .doc("How many replicas must hold a record before `acks=all` is answered."),
    int("num.partitions", "1").at_least(1)
        .doc("Partitions of a topic whose creator names no number."),
    int("num.recovery.threads.per.data.dir", "2").at_least(1).high().cluster_wide()
        .doc("Threads per log directory that recover logs at the start and write them out at the end."),
    int("num.replica.alter.log.dirs.threads", "").null().high()
        .doc("Threads that move replicas between log directories."),
];
