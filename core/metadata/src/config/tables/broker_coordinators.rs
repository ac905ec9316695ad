//! The table of broker keys for committed offsets, transactions, producers and share state.
//!
//! Sorted by name (a test holds that). What the node does with each key: [`crate::config::status`].
//! Facts: Kafka 4.4 `AbstractKafkaConfig`, update modes of `DynamicBrokerConfig`. Sentences: ours.

use crate::config::key::{ConfigKey, boolean, int, long, short, string};

#[rustfmt::skip]
pub(crate) const KEYS: &[ConfigKey] = &[
    int("add.partitions.to.txn.retry.backoff.max.ms", "100").at_least(0).high()
        .doc("Longest time that the broker keeps trying to add a partition to a transaction before it tells \
              the producer."),
    int("add.partitions.to.txn.retry.backoff.ms", "20").at_least(1).high()
        .doc("Pause between two of the broker's own attempts to add a partition to a transaction."),
    boolean("errors.deadletterqueue.auto.create.topics.enable", "false").cluster_wide()
        .doc("Whether the dead-letter topic of a share group may be created by itself."),
    string("errors.deadletterqueue.topic.name.prefix", "dlq.").cluster_wide()
        .doc("Prefix that dead-letter topics of share groups must carry."),
    int("offset.metadata.max.bytes", "4096").high()
        .doc("Longest note that a consumer may store with a committed offset."),
    int("offsets.commit.timeout.ms", "5000").at_least(1).high()
        .doc("How long a commit may wait for the replicas of the offsets topic."),
    int("offsets.load.buffer.size", "5242880").at_least(1).high()
        .doc("Bytes read at once when a coordinator loads the offsets topic."),
    long("offsets.retention.check.interval.ms", "600000").at_least(1).high()
        .doc("How often committed offsets are checked for expiry."),
    int("offsets.retention.minutes", "10080").at_least(1).high()
        .doc("How long committed offsets are kept after their group became empty."),
    int("offsets.topic.compression.codec", "0").between(0, 4).high()
        .doc("Codec for what the group coordinator writes: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."),
    int("offsets.topic.num.partitions", "50").at_least(1).high()
        .doc("Partitions of the offsets topic; must not change once the topic exists."),
    short("offsets.topic.replication.factor", "3").at_least(1).high()
        .doc("Replicas of the offsets topic."),
    int("offsets.topic.segment.bytes", "104857600").at_least(1).high()
        .doc("Segment size of the offsets topic."),
    int("producer.id.expiration.check.interval.ms", "600000").at_least(1).low().internal()
        .doc("How often producers are checked for expiry."),
    int("producer.id.expiration.ms", "86400000").at_least(1).low().cluster_wide()
        .doc("A partition forgets an idempotent producer that it has not heard of for this long."),
    int("share.coordinator.append.linger.ms", "-1").at_least(-1)
        .doc("How long the share coordinator gathers writes before it appends them; -1 adapts to the load."),
    int("share.coordinator.cached.buffer.max.bytes", "1048588").at_least(524288).cluster_wide()
        .doc("Largest write buffer that the share coordinator keeps for the next append."),
    int("share.coordinator.cold.partition.snapshot.interval.ms", "300000").at_least(1).low().internal()
        .doc("How often a share partition without traffic gets a snapshot."),
    int("share.coordinator.load.buffer.size", "5242880").at_least(1).high()
        .doc("Bytes read at once when the share coordinator loads its topic."),
    int("share.coordinator.snapshot.update.records.per.snapshot", "500").between(0, 500)
        .doc("Updates of a share partition between two snapshots."),
    int("share.coordinator.state.topic.compression.codec", "0").between(0, 4).high()
        .doc("Codec for what the share coordinator writes: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."),
    short("share.coordinator.state.topic.min.isr", "2").at_least(1).high()
        .doc("Replicas of the share state topic that must hold a write."),
    int("share.coordinator.state.topic.num.partitions", "50").at_least(1).high()
        .doc("Partitions of the share state topic; must not change once the topic exists."),
    int("share.coordinator.state.topic.prune.interval.ms", "300000").at_least(1).low().internal()
        .doc("How often the share state topic is pruned."),
    short("share.coordinator.state.topic.replication.factor", "3").at_least(1).high()
        .doc("Replicas of the share state topic."),
    int("share.coordinator.state.topic.segment.bytes", "104857600").at_least(1).high()
        .doc("Segment size of the share state topic."),
    int("share.coordinator.threads", "1").at_least(1)
        .doc("Threads that run share coordinator shards."),
    int("share.coordinator.write.timeout.ms", "5000").at_least(1).high()
        .doc("How long a write may wait for the replicas of the share state topic."),
    int("share.fetch.purgatory.purge.interval.requests", "1000")
        .doc("After how many finished share fetches Kafka tidies its list of waiting ones."),
    int("transaction.abort.timed.out.transaction.cleanup.interval.ms", "10000").at_least(1).low()
        .doc("How often transactions that ran out of time are looked for and aborted."),
    int("transaction.max.timeout.ms", "900000").at_least(1).high()
        .doc("Longest timeout that a transactional producer may ask for."),
    boolean("transaction.partition.verification.enable", "true").low().cluster_wide()
        .doc("Whether a partition asks the coordinator before it takes a transaction's first record."),
    int("transaction.remove.expired.transaction.cleanup.interval.ms", "3600000").at_least(1).low()
        .doc("How often unused transactional ids are looked for and removed."),
    int("transaction.state.log.load.buffer.size", "5242880").at_least(1).high()
        .doc("Bytes read at once when the transaction coordinator loads its topic."),
    int("transaction.state.log.min.isr", "2").at_least(1).high()
        .doc("Replicas of the transaction topic that must hold a write."),
    int("transaction.state.log.num.partitions", "50").at_least(1).high()
        .doc("Partitions of the transaction topic; must not change once the topic exists."),
    short("transaction.state.log.replication.factor", "3").at_least(1).high()
        .doc("Replicas of the transaction topic."),
    int("transaction.state.log.segment.bytes", "104857600").at_least(1).high()
        .doc("Segment size of the transaction topic."),
    boolean("transaction.two.phase.commit.enable", "false").low()
        .doc("Whether producers may keep a transaction open without a timeout, for two-phase commit."),
    int("transactional.id.expiration.ms", "604800000").at_least(1).high()
        .doc("A transactional id that has not been used for this long is forgotten."),
];
