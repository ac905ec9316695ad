//! The table of broker keys for the node, its roles, the controller and the metadata log.
//!
//! Sorted by name (a test holds that). What the node does with each key: [`crate::config::status`].
//! Facts: Kafka 4.4 `AbstractKafkaConfig`, update modes of `DynamicBrokerConfig`. Sentences: ours.

use crate::config::key::{ConfigKey, boolean, int, list, long, string};

#[rustfmt::skip]
pub(crate) const KEYS: &[ConfigKey] = &[
    boolean("auto.leader.rebalance.enable", "true").high()
        .doc("Whether leadership goes back to the preferred replica by itself."),
    int("broker.heartbeat.interval.ms", "2000")
        .doc("How often a broker tells the controller that it is alive."),
    int("broker.id", "-1").high()
        .doc("The node's id; `node.id` is the newer name and must agree with it."),
    string("broker.rack", "").null()
        .doc("The rack or zone that this broker stands in; replicas are spread over racks, consumers may read \
              from a near one."),
    int("broker.session.timeout.ms", "9000")
        .doc("How long the controller waits for a heartbeat before it takes a broker for dead."),
    boolean("controlled.shutdown.enable", "true")
        .doc("Whether leadership is handed over before the broker stops."),
    list("controller.listener.names", "").required().high()
        .doc("Which of the `listeners` the controller answers on."),
    long("controller.performance.always.log.threshold.ms", "2000").at_least(0).internal()
        .doc("A controller event that takes longer than this is logged."),
    long("controller.performance.sample.period.ms", "60000").at_least(100).internal()
        .doc("Length of the period over which the controller's slowest events are gathered."),
    int("controller.quorum.append.linger.ms", "25").at_least(0)
        .doc("How long the controller gathers metadata records before it writes them to disk."),
    boolean("controller.quorum.auto.join.enable", "false").low()
        .doc("Whether a controller that is not yet a voter asks to become one when it starts."),
    list("controller.quorum.bootstrap.servers", "").high()
        .doc("Controllers to ask first for the quorum's leader: host:port, separated by commas."),
    int("controller.quorum.election.backoff.max.ms", "1000").at_least(0).high()
        .doc("Longest pause before a lost election is tried again."),
    int("controller.quorum.election.timeout.ms", "1000").at_least(0).high()
        .doc("How long a candidate waits for votes before it starts another election."),
    int("controller.quorum.fetch.max.bytes", "1048576").at_least(1).low()
        .doc("Most bytes of the metadata log fetched at once."),
    int("controller.quorum.fetch.snapshot.max.bytes", "1048576").at_least(1).low()
        .doc("Most bytes of a metadata snapshot fetched at once."),
    int("controller.quorum.fetch.timeout.ms", "2000").at_least(0).high()
        .doc("A voter that has not fetched from the leader for this long starts an election; a leader that a \
              majority has not fetched from for this long resigns."),
    int("controller.quorum.request.timeout.ms", "2000").at_least(0)
        .doc("How long a quorum request may take before it is given up."),
    int("controller.quorum.retry.backoff.ms", "20").at_least(0).low()
        .doc("Pause before a failed quorum request is sent again."),
    list("controller.quorum.voters", "").high()
        .doc("The fixed set of voters: id@host:port, separated by commas."),
    int("controller.quota.window.num", "11").at_least(1).low()
        .doc("Samples kept to measure the rate of topic changes per client."),
    int("controller.quota.window.size.seconds", "1").at_least(1).low()
        .doc("Length of one sample when measuring topic changes per client."),
    int("controller.socket.timeout.ms", "30000")
        .doc("How long a broker waits for the controller's answer on the socket."),
    int("initial.broker.registration.timeout.ms", "60000")
        .doc("A broker that has not registered with the controller within this time stops."),
    long("internal.metadata.delete.delay.millis", "60000").low().internal()
        .doc("How long an old metadata log file is kept after it was marked for deletion."),
    int("internal.metadata.log.segment.bytes", "").null().low().internal()
        .doc("Segment size of the metadata log, for tests, without the usual lower bound."),
    int("internal.metadata.max.batch.size.in.bytes", "8388608").low().internal()
        .doc("Largest batch in the metadata log."),
    long("leader.imbalance.check.interval.seconds", "300").at_least(1).high()
        .doc("How often the controller looks for partitions that are not led by their preferred replica."),
    string("metadata.log.dir", "").null().high()
        .doc("Where the metadata log is kept; by default in the first log directory."),
    long("metadata.log.max.record.bytes.between.snapshots", "20971520").at_least(1).high()
        .doc("After this many bytes of new metadata records a snapshot is written."),
    long("metadata.log.max.snapshot.interval.ms", "3600000").at_least(0).high()
        .doc("After this long with new metadata records a snapshot is written; 0 turns it off."),
    int("metadata.log.segment.bytes", "1073741824").at_least(8388608).high()
        .doc("Segment size of the metadata log."),
    long("metadata.log.segment.ms", "604800000").high()
        .doc("After this long a new segment of the metadata log is begun."),
    int("metadata.max.idle.interval.ms", "500").at_least(0).low()
        .doc("An idle controller writes an empty record this often, so that the log's end moves; 0 turns it \
              off."),
    long("metadata.max.retention.bytes", "104857600").high()
        .doc("Bytes of old metadata log and snapshots that are kept; -1 means no bound."),
    long("metadata.max.retention.ms", "604800000").high()
        .doc("How long old metadata log and snapshots are kept; -1 means for ever."),
    int("node.id", "").required().at_least(0).high()
        .doc("The node's id in the cluster, unique among brokers and controllers."),
    list("process.roles", "").required().list_of(&["broker", "controller"]).high()
        .doc("What this node is: `broker`, `controller` or both."),
    int("request.timeout.ms", "30000").high()
        .doc("How long this node waits for the answer to a request of its own."),
    long("server.max.startup.time.ms", "9223372036854775807").at_least(0).internal()
        .doc("A node that is not up after this long stops."),
    boolean("unclean.leader.election.enable", "false").high().cluster_wide()
        .doc("Whether a replica outside the in-sync set may become leader, at the price of losing records."),
    long("unclean.leader.election.interval.ms", "300000").at_least(1).internal()
        .doc("How often the controller looks for partitions that may elect such a leader."),
    boolean("unstable.api.versions.enable", "false").high().internal()
        .doc("Whether API versions that are still being worked on are offered."),
    boolean("unstable.feature.versions.enable", "false").high().internal()
        .doc("Whether feature levels that are still being worked on may be used."),
];
