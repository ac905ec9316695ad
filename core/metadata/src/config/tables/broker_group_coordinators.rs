//! The table of broker keys for groups of every protocol.
//!
//! Sorted by name (a test holds that). What the node does with each key: [`crate::config::status`].
//! Facts: Kafka 4.4 `AbstractKafkaConfig`, update modes of `DynamicBrokerConfig`. Sentences: ours.

use crate::config::key::{ConfigKey, Valid, boolean, class, int, list, long, string};

#[rustfmt::skip]
pub(crate) const KEYS: &[ConfigKey] = &[
    int("group.consumer.assignment.interval.ms", "1000").at_least(0).cluster_wide()
        .doc("Shortest time between two assignments of one consumer group."),
    boolean("group.consumer.assignor.offload.enable", "true").cluster_wide().internal()
        .doc("Whether assignments of consumer groups are computed outside the coordinator's own thread."),
    list("group.consumer.assignors", "uniform,range").valid(Valid::NonEmpty)
        .doc("Server-side assignors for consumer groups, the default first: names or Java classes."),
    int("group.consumer.heartbeat.interval.ms", "5000").at_least(1)
        .doc("How often members of a consumer group send heartbeats while nothing changes; sooner while the group settles."),
    int("group.consumer.max.assignment.interval.ms", "15000").at_least(0)
        .doc("Upper bound for a group's own `consumer.assignment.interval.ms`."),
    int("group.consumer.max.heartbeat.interval.ms", "15000").at_least(1)
        .doc("Upper bound for a group's own `consumer.heartbeat.interval.ms`."),
    int("group.consumer.max.session.timeout.ms", "60000").at_least(1)
        .doc("Upper bound for a group's own `consumer.session.timeout.ms`."),
    int("group.consumer.max.size", "2147483647").at_least(1)
        .doc("Most members in one consumer group."),
    string("group.consumer.migration.policy", "bidirectional").valid(Valid::OneOfIgnoringCase(&["DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"]))
        .doc("Whether groups may move between the classic and the consumer protocol while they have members."),
    int("group.consumer.min.assignment.interval.ms", "0").at_least(0)
        .doc("Lower bound for a group's own `consumer.assignment.interval.ms`."),
    int("group.consumer.min.heartbeat.interval.ms", "5000").at_least(1)
        .doc("Lower bound for a group's own `consumer.heartbeat.interval.ms`."),
    int("group.consumer.min.session.timeout.ms", "45000").at_least(1)
        .doc("Lower bound for a group's own `consumer.session.timeout.ms`."),
    int("group.consumer.regex.refresh.interval.ms", "600000").at_least(10000).internal()
        .doc("How often a group's regular expressions are matched against the topics again."),
    int("group.consumer.session.timeout.ms", "45000").at_least(1)
        .doc("A member of a consumer group that has been silent for this long is removed."),
    int("group.coordinator.append.linger.ms", "-1").at_least(-1)
        .doc("How long the group coordinator gathers writes before it appends them; -1 adapts to the load."),
    int("group.coordinator.background.threads", "2").at_least(1).high()
        .doc("Threads for the group coordinator's slow work."),
    int("group.coordinator.cached.buffer.max.bytes", "1048588").at_least(524288).cluster_wide()
        .doc("Largest write buffer that the group coordinator keeps for the next append."),
    list("group.coordinator.rebalance.protocols", "classic,consumer,streams").some_of(&["consumer", "classic", "share", "streams"])
        .doc("The group protocols that the broker accepts."),
    int("group.coordinator.threads", "4").at_least(1).high()
        .doc("Threads that run group coordinator shards."),
    int("group.initial.rebalance.delay.ms", "3000")
        .doc("How long the first rebalance of an empty classic group waits for more members."),
    int("group.max.session.timeout.ms", "1800000")
        .doc("Longest session timeout that a member of a classic group may ask for."),
    int("group.max.size", "2147483647").at_least(1)
        .doc("Most members in one classic group."),
    int("group.min.session.timeout.ms", "6000")
        .doc("Shortest session timeout that a member of a classic group may ask for."),
    int("group.share.assignment.interval.ms", "1000").at_least(0).cluster_wide()
        .doc("Shortest time between two assignments of one share group."),
    boolean("group.share.assignor.offload.enable", "true").cluster_wide().internal()
        .doc("Whether assignments of share groups are computed outside the coordinator's own thread."),
    list("group.share.assignors", "simple").valid(Valid::NonEmpty)
        .doc("Server-side assignors for share groups."),
    int("group.share.delivery.count.limit", "5").between(2, 10)
        .doc("How often a record is delivered to a share group before it is given up."),
    string("group.share.dlq.manager.class.name", "org.apache.kafka.server.share.dlq.DefaultShareGroupDLQManager").internal()
        .doc("Java class that writes dead-letter records of share groups."),
    int("group.share.heartbeat.interval.ms", "5000").at_least(1)
        .doc("How often members of a share group send heartbeats."),
    int("group.share.initialize.retry.interval.ms", "30000").at_least(1).low().internal()
        .doc("Pause before the state of a share partition is initialised again after a failure."),
    int("group.share.max.assignment.interval.ms", "15000").at_least(0)
        .doc("Upper bound for a group's own `share.assignment.interval.ms`."),
    int("group.share.max.delivery.count.limit", "10").between(5, 25)
        .doc("Upper bound for a group's own `share.delivery.count.limit`."),
    int("group.share.max.heartbeat.interval.ms", "15000").at_least(1)
        .doc("Upper bound for a group's own `share.heartbeat.interval.ms`."),
    int("group.share.max.partition.max.record.locks", "4000").between(2000, 10000)
        .doc("Upper bound for a group's own `share.partition.max.record.locks`."),
    int("group.share.max.record.lock.duration.ms", "60000").between(30000, 3600000)
        .doc("Upper bound for a group's own `share.record.lock.duration.ms`."),
    int("group.share.max.session.timeout.ms", "60000").at_least(1)
        .doc("Upper bound for a group's own `share.session.timeout.ms`."),
    int("group.share.max.share.sessions", "2000").at_least(1)
        .doc("Most share sessions open on one broker."),
    int("group.share.max.size", "200").between(1, 1000)
        .doc("Most members in one share group."),
    int("group.share.min.assignment.interval.ms", "0").at_least(0)
        .doc("Lower bound for a group's own `share.assignment.interval.ms`."),
    int("group.share.min.delivery.count.limit", "2").between(2, 5)
        .doc("Lower bound for a group's own `share.delivery.count.limit`."),
    int("group.share.min.heartbeat.interval.ms", "5000").at_least(1)
        .doc("Lower bound for a group's own `share.heartbeat.interval.ms`."),
    int("group.share.min.partition.max.record.locks", "100").between(100, 2000)
        .doc("Lower bound for a group's own `share.partition.max.record.locks`."),
    int("group.share.min.record.lock.duration.ms", "15000").between(1000, 30000)
        .doc("Lower bound for a group's own `share.record.lock.duration.ms`."),
    int("group.share.min.session.timeout.ms", "45000").at_least(1)
        .doc("Lower bound for a group's own `share.session.timeout.ms`."),
    int("group.share.partition.max.record.locks", "2000").between(100, 10000)
        .doc("Most records of one partition that a share group may hold locked at once."),
    string("group.share.persister.class.name", "org.apache.kafka.server.share.persister.DefaultStatePersister").internal()
        .doc("Java class that keeps the state of share groups."),
    int("group.share.record.lock.duration.ms", "30000").between(1000, 3600000)
        .doc("How long a record stays locked for the consumer that acquired it."),
    int("group.share.session.timeout.ms", "45000").at_least(1)
        .doc("A member of a share group that has been silent for this long is removed."),
    long("group.streams.acceptable.recovery.lag", "10000").at_least(0).internal()
        .doc("How far behind a streams task may be and still count as caught up."),
    int("group.streams.assignment.interval.ms", "1000").at_least(0).cluster_wide()
        .doc("Shortest time between two assignments of one streams group."),
    boolean("group.streams.assignor.offload.enable", "true").cluster_wide().internal()
        .doc("Whether assignments of streams groups are computed outside the coordinator's own thread."),
    list("group.streams.assignors", "sticky")
        .doc("Server-side assignors for streams groups, the default first."),
    int("group.streams.heartbeat.interval.ms", "5000").at_least(1)
        .doc("How often members of a streams group send heartbeats."),
    int("group.streams.initial.rebalance.delay.ms", "3000").at_least(0)
        .doc("How long the first rebalance of an empty streams group waits for more members."),
    int("group.streams.max.assignment.interval.ms", "15000").at_least(0)
        .doc("Upper bound for a group's own `streams.assignment.interval.ms`."),
    int("group.streams.max.heartbeat.interval.ms", "15000").at_least(1)
        .doc("Upper bound for a group's own `streams.heartbeat.interval.ms`."),
    int("group.streams.max.session.timeout.ms", "60000").at_least(1)
        .doc("Upper bound for a group's own `streams.session.timeout.ms`."),
    int("group.streams.max.size", "2147483647").at_least(1)
        .doc("Most members in one streams group."),
    int("group.streams.max.standby.replicas", "2").at_least(0)
        .doc("Upper bound for a group's own `streams.num.standby.replicas`."),
    int("group.streams.max.warmup.replicas", "20").at_least(0).internal()
        .doc("Upper bound for a group's own `streams.num.warmup.replicas`."),
    int("group.streams.min.assignment.interval.ms", "0").at_least(0)
        .doc("Lower bound for a group's own `streams.assignment.interval.ms`."),
    int("group.streams.min.heartbeat.interval.ms", "5000").at_least(1)
        .doc("Lower bound for a group's own `streams.heartbeat.interval.ms`."),
    int("group.streams.min.session.timeout.ms", "45000").at_least(1)
        .doc("Lower bound for a group's own `streams.session.timeout.ms`."),
    int("group.streams.min.task.offset.interval.ms", "15000").at_least(1).internal()
        .doc("Lower bound for a group's own `streams.task.offset.interval.ms`."),
    int("group.streams.num.standby.replicas", "0").at_least(0)
        .doc("Standby copies of each stateful streams task."),
    int("group.streams.num.warmup.replicas", "2").at_least(0).internal()
        .doc("Most extra copies that warm up at once before a streams task moves."),
    list("group.streams.rack.aware.assignment.tags", "").low()
        .doc("Client tags over which standby copies of streams tasks are spread."),
    int("group.streams.session.timeout.ms", "45000").at_least(1)
        .doc("A member of a streams group that has been silent for this long is removed."),
    int("group.streams.task.offset.interval.ms", "60000").at_least(1).internal()
        .doc("How often members of a streams group report the offsets of their tasks."),
    class("group.streams.topology.description.plugin.class", "").null()
        .doc("Class that stores the topology descriptions sent by Kafka Streams. Unset: none is asked for or stored. \
              org.apache.kafka.server.streams.InMemoryTopologyDescriptionPlugin: the broker stores them in memory."),
];
