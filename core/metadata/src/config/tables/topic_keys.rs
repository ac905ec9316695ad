//! The table of a topic's keys.
//!
//! Sorted by name (a test holds that). What the node does with each key: [`crate::config::status`].
//! Facts: Kafka 4.4 `LogConfig`. Sentences: ours.

use crate::config::key::{ConfigKey, Valid, boolean, double, int, list, long, string};

#[rustfmt::skip]
pub(crate) const KEYS: &[ConfigKey] = &[
    list("cleanup.policy", "delete").list_of(&["compact", "delete"])
        .doc("What happens to old data: `delete` drops old segments, `compact` keeps the newest record of each \
              key; both may be given."),
    int("compression.gzip.level", "-1").valid(Valid::GzipLevel)
        .doc("Level for gzip when `compression.type` is gzip: 1 to 9, or -1 for the codec's own."),
    int("compression.lz4.level", "9").between(1, 17)
        .doc("Level for lz4 when `compression.type` is lz4: 1 to 17."),
    string("compression.type", "producer").one_of(&["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"])
        .doc("Codec that batches are stored in: `producer` keeps the producer's, `uncompressed` stores \
              plainly, the others compress again."),
    int("compression.zstd.level", "3").between(-131072, 22)
        .doc("Level for zstd when `compression.type` is zstd."),
    long("delete.retention.ms", "86400000").at_least(0)
        .doc("How long the marker of a deleted key stays in a compacted topic."),
    boolean("errors.deadletterqueue.group.enable", "false")
        .doc("Whether share groups may use this topic for dead letters."),
    long("file.delete.delay.ms", "60000").at_least(0)
        .doc("How long a removed segment stays on disk under another name."),
    long("flush.messages", "9223372036854775807").at_least(1)
        .doc("After how many records a partition is synced to disk without waiting for an acknowledgement to \
              need it."),
    long("flush.ms", "9223372036854775807").at_least(0)
        .doc("How long a record may stay unsynced."),
    list("follower.replication.throttled.replicas", "").valid(Valid::ThrottledReplicas)
        .doc("Replicas whose incoming replication is throttled: partition:broker, separated by commas, or `*`."),
    int("index.interval.bytes", "4096").at_least(0)
        .doc("About how many bytes lie between two entries of a segment's offset index."),
    int("internal.segment.bytes", "").null().internal()
        .doc("Segment size for tests, without the usual lower bound."),
    list("leader.replication.throttled.replicas", "").valid(Valid::ThrottledReplicas)
        .doc("Replicas whose outgoing replication is throttled: partition:broker, separated by commas, or `*`."),
    long("local.retention.bytes", "-2").at_least(-2)
        .doc("Bytes of a tiered partition that stay on local disks; -2 means as `retention.bytes`."),
    long("local.retention.ms", "-2").at_least(-2)
        .doc("How long records of a tiered partition stay on local disks; -2 means as `retention.ms`."),
    long("max.compaction.lag.ms", "9223372036854775807").at_least(1)
        .doc("A record of a compacted topic waits at most this long for compaction."),
    int("max.decompressed.message.bytes", "2147483639").between(1, 2147483639)
        .doc("Most bytes that a compressed batch may grow to where the broker has to open it."),
    int("max.message.bytes", "1048588").at_least(0)
        .doc("Largest batch that the topic takes, after compression."),
    long("message.timestamp.after.max.ms", "3600000").at_least(0)
        .doc("How far a record's timestamp may lie ahead of the broker's clock."),
    long("message.timestamp.before.max.ms", "9223372036854775807").at_least(0)
        .doc("How far a record's timestamp may lie behind the broker's clock."),
    string("message.timestamp.type", "CreateTime").one_of(&["CreateTime", "LogAppendTime"])
        .doc("Whose time a record carries: the producer's (`CreateTime`) or the broker's (`LogAppendTime`)."),
    double("min.cleanable.dirty.ratio", "0.5").valid(Valid::Fraction(0.0, 1.0))
        .doc("Share of a compacted log that must be new before it is compacted."),
    long("min.compaction.lag.ms", "0").at_least(0)
        .doc("A record of a compacted topic stays untouched for at least this long."),
    int("min.insync.replicas", "1").at_least(1)
        .doc("How many replicas must hold a record before `acks=all` is answered."),
    boolean("preallocate", "false")
        .doc("Whether a new segment reserves its full size on disk at once."),
    long("remote.copy.lag.bytes", "-1").at_least(-1)
        .doc("Bytes by which copying to tiered storage stays behind the log's end; -1 means as the local \
              retention."),
    long("remote.copy.lag.ms", "0").at_least(-1)
        .doc("Time by which copying to tiered storage stays behind the log's end; -1 means as the local \
              retention."),
    boolean("remote.log.copy.disable", "false")
        .doc("Whether a tiered topic stops copying new segments, and only reads what is there."),
    boolean("remote.log.delete.on.disable", "false")
        .doc("Whether the tiered data is deleted when tiered storage is switched off for the topic."),
    boolean("remote.storage.enable", "false")
        .doc("Whether the topic's old segments go to tiered storage."),
    long("retention.bytes", "-1")
        .doc("Bytes that a partition may hold before its oldest segments go; -1 means no bound."),
    long("retention.ms", "604800000").at_least(-1)
        .doc("How long records are kept; -1 means for ever."),
    int("segment.bytes", "1073741824").at_least(1048576)
        .doc("Size at which a new segment is begun."),
    int("segment.index.bytes", "10485760").at_least(4)
        .doc("Largest size of a segment's index."),
    long("segment.jitter.ms", "0").at_least(0)
        .doc("Most milliseconds by which beginning a new segment is randomly brought forward."),
    long("segment.ms", "604800000").at_least(1)
        .doc("After this long a new segment is begun, full or not."),
    boolean("unclean.leader.election.enable", "false")
        .doc("Whether a replica outside the in-sync set may become leader, at the price of losing records."),
];
