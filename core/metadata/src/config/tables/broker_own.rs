//! The table of broker keys that are ours and that Kafka does not know.
//!
//! Sorted by name (a test holds that). What the node does with each key: [`crate::config::status`]. docs/SETTINGS.md is
//! made from this table: `doc` says what a key does, what is in force where it is not set, and what more and less of it
//! cost and give. What does not depend on the table alone (the machine's memory, the size of a file system) is judged
//! at the start: shell/broker/src/upkeep/in_force.rs.

use crate::config::key::{ConfigKey, Valid, long, string};

#[rustfmt::skip]
pub(crate) const KEYS: &[ConfigKey] = &[
    long("answer.bytes.max", "104857600").between(1 << 20, 2_000_000_000).unit("bytes")
        .doc("The largest answer to a request that describes or lists: configurations, groups, producers, transactions, committed \
              offsets. Entries beyond it are refused with INVALID_REQUEST. More lets one request describe more; less bounds what a \
              client can make the node compute with a short request. Fetch is bounded by `fetch.max.bytes`, Metadata not at all."),
    long("auto.create.topics.request.max", "100").between(0, 10_000).unit("topics").cluster_wide()
        .doc("Most topics that one Metadata request creates. The others are answered as unknown, and the client's next request \
              creates more. 0: none. Topics of coordinators do not count."),
    long("auto.create.topics.second.max", "100").between(0, 100_000).unit("topics a second").cluster_wide()
        .doc("Most topics that Metadata requests to this broker create in a second, over all clients. The others are answered as \
              unknown, and are created when the client asks again. 0: none. More lets one client that names many topics fill the \
              metadata sooner. Topics of coordinators do not count."),
    long("connections.per.ip.second.max", "5000").between(1, 1_000_000).unit("connections a second")
        .doc("Most new connections that the node accepts from one address in a second; one more is closed at once. Listeners of brokers \
              and controllers do not count. A connection that is made and closed costs 35 µs of the node's CPU: without a bound one client \
              that does nothing else makes 21,000 a second and takes three quarters of a core. Less bounds that lower; more lets more \
              clients behind one address come back in the same second after a restart. `max.connection.creation.rate` bounds all \
              addresses together, by letting them wait."),
    long("group.member.metadata.max.bytes", "1048576").between(1024, 1 << 30).unit("bytes").cluster_wide()
        .doc("What one member of a classic group may say of itself with JoinGroup, over all protocols that it names. More is refused with \
              GROUP_MAX_SIZE_REACHED. What members of consumer, share and streams groups say is bounded by `message.max.bytes`. More lets \
              one member hold more of the broker's memory."),
    long("group.memory.max.bytes", "67108864").between(65_536, 1 << 40).unit("bytes").cluster_wide()
        .doc("What one group may hold of the broker's memory, by an estimate: its members with all that they said, their assignments, and its \
              offsets. At the bound new members are refused with GROUP_MAX_SIZE_REACHED and offsets of new partitions with \
              INVALID_COMMIT_OFFSET_SIZE; known members go on. The default is room for some 10,000 members with 100,000 partitions."),
    long("group.settling.heartbeat.interval.ms", "0").between(0, 60_000).unit("milliseconds").cluster_wide()
        .doc("The heartbeat interval in answers to members of consumer, share and streams groups while their group settles, \
              and for three intervals after a change; never more than the group's `heartbeat.interval.ms`, nor more than 4,000 heartbeats a \
              second for one group. 0: always `heartbeat.interval.ms`, as Kafka. Members learn each step of a rebalance with a heartbeat. \
              In virtual time, with half of the members new and an interval of 5 s, 250 settles 200 members in 5.1 s in place of \
              10.1 s, and makes no difference to 2 or 20 members."),
    long("groups.memory.max.bytes", "268435456").between(1 << 20, 1 << 40).unit("bytes").cluster_wide()
        .doc("What groups, share-partitions and transactional ids that this broker coordinates may hold of its memory together, by the same \
              estimate as `group.memory.max.bytes`. Not set: an eighth of the machine's memory, at most the default. At the \
              bound new groups, members and offsets are refused as there; what is known goes on. More than a quarter of the machine's \
              memory leaves little for the rest."),
    string("log.ack.durability", "synced").one_of(&["synced", "written"]).high()
        .doc("When producers are answered: `synced`, after their batch is on disk (with `acks=all`, on every in-sync replica); \
              `written`, as Kafka does it, after it is in page caches. `written` saves the journal and its writes; a power cut then \
              loses what was acknowledged in the seconds before it."),
    long("log.cache.bytes", "").null().between(0, 1 << 40).unit("bytes")
        .doc("Memory of the node for recently appended batches that are in their segments already, so that readers near the \
              end read no file. Unset: a sixteenth of the machine's memory, at most 512 MiB. More than half of the machine's memory is \
              refused at the start. More serves readers that are further behind without a read; 0 leaves all of that to the \
              page cache."),
    long("log.dir.min.free.bytes", "-1").or_between(-1, 0, 1 << 50).unit("bytes").high().cluster_wide()
        .doc("Producers are refused with a retriable error while a log directory's file system has less room than this, and \
              let in again when it has a quarter more. The rest goes on. -1: a hundredth of the file system, between \
              32 MiB and 1 GiB, but not more than an eighth of it. More than the whole file system is refused at the start. 0 lets \
              producers fill the disk; what consumers, retention and the next start need is then taken from a small reserve."),
    long("log.journal.append.bytes.max", "524288").between(0, 2_097_152).unit("bytes")
        .doc("What one partition appends at once goes through the journal up to so many bytes; more goes straight into the \
              segment and is synced there, so that it is written once. More writes large appends twice; less costs a sync of its own \
              for each that is larger. 0: the journal takes no records."),
    long("log.journal.bytes", "").null().between(12_582_912, 8_589_934_592).unit("bytes")
        .doc("Size of each log directory's journal, which is set aside with the directory's first record and given back at a clean \
              stop. Unset: 256 MiB, at most a twentieth of the file system, at least 12 MiB. More than half of the file system is \
              refused at the start. More lets small appends gather longer before they are laid into segments, in larger \
              pieces; a start after a kill replays at most this much. A changed value holds for a journal that is made anew: after the next clean stop. After a kill the journal goes on with the files that it has."),
    long("log.journal.linger.us", "200").between(0, 100_000).unit("microseconds")
        .doc("The least time between the ends of two rounds of the journal, unless a round is large: more makes rounds larger \
              and fewer under a load of small batches, which saves CPU and writes, and answers later by up to as much; where each \
              such time brings 24 KiB it is followed by another, up to five. A journal that is idle never waits."),
    string("log.level", "info").valid(Valid::NonEmpty)
        .doc("Which lines the node's log takes: a level (`error`, `warn`, `info`, `debug`, `trace`), or a list that names loggers, such as \
              `info,barnabas::requests::connection=debug`. The environment variables BARNABAS_LOG and RUST_LOG take precedence. \
              `kafka-configs --entity-type broker-loggers` lists the loggers and changes their levels while the node runs."),
    long("log.open.files.max", "-1").or_between(-1, 64, 1_048_576).unit("files")
        .doc("Log files that are open at a time, over all partitions and log directories, those that wait for a sync included; others \
              are opened when they are needed. -1: three quarters of what the process's limit of descriptors (`ulimit -n`, the soft \
              limit is raised to the hard one) leaves beside the node's own; the rest is for connections. Never more than that limit \
              allows with 16 connections left. Fewer cost about 2 µs for each file that has to be opened again."),
    long("log.scrub.bytes.per.second", "33554432").or_between(0, 65_536, 1 << 40).unit("bytes a second").cluster_wide()
        .doc("How fast segments are read in the background to find bytes that have changed by themselves. More finds them \
              sooner and takes as much of the disk's bandwidth. 0: not at all; then only what consumers read is checked."),
    long("log.scrub.interval.ms", "604800000").between(1000, 315_360_000_000).unit("milliseconds").cluster_wide()
        .doc("How long after the beginning of one look through all segments of a log directory the next one begins. A week \
              where it is not set."),
    long("metadata.configs.bytes.max", "268435456").between(4096, 1 << 40).unit("bytes").cluster_wide()
        .doc("Most memory that configurations of topics, brokers, groups and client-metrics subscriptions take together in each \
              node's metadata: their names and values, and about 1 KiB for each resource. What would add more is refused with \
              POLICY_VIOLATION; what is there stays, and can be unset."),
    long("metadata.configs.resource.bytes.max", "1048576").between(4096, 4_194_304).unit("bytes").cluster_wide()
        .doc("Most memory that the configurations of one resource take, counted as for `metadata.configs.bytes.max`. What would add \
              more is refused with POLICY_VIOLATION."),
    long("metadata.nodes.max", "10000").between(1, 1_000_000).unit("nodes").cluster_wide()
        .doc("Most brokers, and as many controllers, that are registered at a time. One more is refused with INVALID_REGISTRATION; \
              those that are registered can register again."),
    long("metadata.partitions.max", "2000000").between(1, 100_000_000).unit("partitions").cluster_wide()
        .doc("Most partitions of all topics of the cluster. What would add more is refused with POLICY_VIOLATION. Each takes 24 \
              bytes of memory of every node and about 80 more of those that hold it; a topic takes about 500."),
    long("metadata.partitions.request.max", "250000").between(1, 10_000_000).unit("partitions").cluster_wide()
        .doc("Most partitions that one CreateTopics or CreatePartitions request creates, one AlterPartitionReassignments or \
              ElectLeaders request names, or one ElectLeaders for all partitions elects; most topics that one DeleteTopics or \
              CreatePartitions request names, and most resources that one request alters. More is refused with \
              POLICY_VIOLATION. The controller holds the records of one request in memory, about 400 bytes for each partition."),
    long("metadata.topics.request.max", "10000").between(1, 1_000_000).unit("topics").cluster_wide()
        .doc("Most topics that one CreateTopics request creates. More is refused with POLICY_VIOLATION. The answer names some forty \
              configurations of each, about 5 KiB."),
    string("metrics.listener", "").null().valid(Valid::HostPort)
        .doc("Where `GET /metrics` is answered over HTTP, in the text that Prometheus reads, with the names that the JMX exporter gives \
              Kafka's figures (docs/METRICS.md): an address and a port, such as 127.0.0.1:9404. Unset: nowhere. The page names client ids \
              and log directories, and whoever reaches the address may read it. `barnabas hotspots` does not need it."),
    long("producer.ids.max", "1000000").between(1_000, 1_000_000_000).unit("producers")
        .doc("Idempotent producers that all partitions of the node remember at most together; about 250 bytes of memory each. Beyond \
              that the partitions with the most forget those that wrote longest ago, as with `producer.ids.per.partition.max`. \
              Looked after every second, on nodes with very many partitions every minute."),
    long("producer.ids.per.partition.max", "10000").between(100, 10_000_000).unit("producers")
        .doc("Idempotent producers that a partition remembers at most; about 250 bytes of memory each. A new one beyond that makes \
              the partition forget the tenth that wrote longest ago, as if they had expired (`producer.id.expiration.ms`): they go on, \
              but a batch that they send twice is not recognised. Producers with an open transaction are never forgotten. More keeps \
              producers that are silent for long among very many; fewer save memory on nodes with many partitions. A changed \
              value holds for partitions that are opened from then on."),
    string("record.validation", "header").one_of(&["header", "structure", "full"])
        .doc("How much of a produced batch is looked at when no rule asks for more. `header`: its header, and the lengths of records that \
              are not compressed. `structure`: every record, decompressed, can be read by consumers; timestamps are believed. `full`: all \
              that Kafka looks at. CPU of the server per record of 250 bytes in batches of 16 KiB, `header` and `structure`: none 0.40 and \
              0.40 µs, lz4 0.28 and 0.43, snappy 0.27 and 0.45, zstd 0.23 and 0.75, gzip 0.80 and 1.33; `full` costs what `structure` \
              costs. A batch that consumers cannot read hurts the readers of its own topic alone, so `header` is the default."),
];
