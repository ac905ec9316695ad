//! The table of a group's keys.
//!
//! Sorted by name (a test holds that). What the node does with each key: [`crate::config::status`].
//! Facts: Kafka 4.4 `GroupConfig`. Sentences: ours.

use crate::config::key::{ConfigKey, Valid, boolean, int, list, long, string};

#[rustfmt::skip]
pub(crate) const KEYS: &[ConfigKey] = &[
    int("consumer.assignment.interval.ms", "1000").at_least(0)
        .doc("Shortest time between two assignments of the group."),
    boolean("consumer.assignor.offload.enable", "true").internal()
        .doc("Whether the group's assignments are computed outside the coordinator's own thread."),
    int("consumer.heartbeat.interval.ms", "5000").at_least(1)
        .doc("How often members send heartbeats."),
    int("consumer.session.timeout.ms", "45000").at_least(1)
        .doc("A member that has been silent for this long is removed."),
    boolean("errors.deadletterqueue.copy.record.enable", "false")
        .doc("Whether a dead letter carries the record itself and not only where it stood."),
    string("errors.deadletterqueue.topic.name", "")
        .doc("Topic that records go to which the share group gave up; empty means none."),
    int("share.assignment.interval.ms", "1000").at_least(0)
        .doc("Shortest time between two assignments of the group."),
    boolean("share.assignor.offload.enable", "true").internal()
        .doc("Whether the group's assignments are computed outside the coordinator's own thread."),
    string("share.auto.offset.reset", "latest").valid(Valid::OffsetReset)
        .doc("Where a new share group starts: `latest`, `earliest` or `by_duration:` and an ISO 8601 duration."),
    int("share.delivery.count.limit", "5").at_least(2)
        .doc("How often a record is delivered before it is given up."),
    int("share.heartbeat.interval.ms", "5000").at_least(1)
        .doc("How often members send heartbeats."),
    string("share.isolation.level", "read_uncommitted").one_of(&["read_committed", "read_uncommitted"])
        .doc("Whether records of unfinished or aborted transactions are delivered."),
    int("share.partition.max.record.locks", "2000").at_least(100)
        .doc("Most records of one partition that the group may hold locked at once."),
    int("share.record.lock.duration.ms", "30000").at_least(1000)
        .doc("How long a record stays locked for the consumer that acquired it."),
    boolean("share.renew.acknowledge.enable", "true")
        .doc("Whether consumers may prolong the lock of a record."),
    int("share.session.timeout.ms", "45000").at_least(1)
        .doc("A member that has been silent for this long is removed."),
    long("streams.acceptable.recovery.lag", "10000").at_least(0).internal()
        .doc("How far behind a task may be and still count as caught up."),
    int("streams.assignment.interval.ms", "1000").at_least(0)
        .doc("Shortest time between two assignments of the group."),
    string("streams.assignor.name", "").null()
        .doc("The assignor that the group uses."),
    boolean("streams.assignor.offload.enable", "true").internal()
        .doc("Whether the group's assignments are computed outside the coordinator's own thread."),
    int("streams.heartbeat.interval.ms", "5000").at_least(1)
        .doc("How often members send heartbeats."),
    int("streams.initial.rebalance.delay.ms", "3000").at_least(0)
        .doc("How long the first rebalance of the empty group waits for more members."),
    int("streams.num.standby.replicas", "0").at_least(0)
        .doc("Standby copies of each stateful task."),
    int("streams.num.warmup.replicas", "2").at_least(0).internal()
        .doc("Most extra copies that warm up at once before a task moves."),
    list("streams.rack.aware.assignment.tags", "").low()
        .doc("Client tags over which standby copies are spread."),
    int("streams.session.timeout.ms", "45000").at_least(1)
        .doc("A member that has been silent for this long is removed."),
    int("streams.task.offset.interval.ms", "60000").at_least(1).internal()
        .doc("How often members report the offsets of their tasks."),
];
