//! What this node does with each key, as one table.
//!
//! A row ending in `*` stands for every key with that beginning; the longest row that fits a key decides. Every key
//! of every table is covered (a test holds that), so a key that Kafka adds must be decided here before it compiles
//! into a release.
//!
//! The reasons are printed by `barnabas config explain` and are meant for operators.

use super::key::Status::{self, Applied, Emulated, Ignored, NotAvailable, Refused};
use super::{ConfigKey, Resource};

const NO_JVM: Status = NotAvailable("Barnabas has no Java virtual machine and cannot load a class");
const TICKETS: Status = Ignored(
    "no program is started: a keytab gets a new ticket at the first login after 80 % of its life, a ticket cache is read again",
);
const TOKEN_RENEWAL: Status =
    Emulated("a token is replaced at the first login after this time, not by a thread in the background");
const TLS_OF_JVM: Status = Ignored("it chooses a part of a Java virtual machine, and TLS is built in");
const POLICY: Status =
    Refused("Barnabas has no Java virtual machine and cannot load the policy, so nothing would enforce it");
const TIERED: Status = NotAvailable("tiered storage is not implemented yet");
const LARGE_TARGETS: Status =
    Emulated("large assignments are computed on another thread, small ones at once");
const WARMUP: Status = Ignored("no warm-up tasks are assigned: Kafka 4.4's own assignors assign none either");
const PURGATORY: Status = Ignored("an answered request leaves no entry behind, so there is nothing to purge");
const WORKERS: Status = Emulated("one worker thread per core does this work, instead of thread pools");
const COORDINATORS: Status = Emulated("coordinators run on the workers, one per core");
const CHECKPOINTS: Status =
    Emulated("the node writes checkpoints every 1 to 60 seconds, so that they take at most 1 % of one core");
const FLUSH: Status = Emulated(
    "with log.ack.durability=synced every acknowledged record is synced already; with written these settings apply as in \
     Kafka, and the node syncs everything else within ten seconds",
);
const METRICS: Status = Ignored("metrics are not sampled in windows: counters count from the start");

const BROKER: &[(&str, Status)] = &[
    ("add.partitions.to.txn.retry.backoff.max.ms", Applied),
    (
        "add.partitions.to.txn.retry.backoff.ms",
        Ignored(
            "the coordinator holds the request until the previous transaction has ended, so there is no retry",
        ),
    ),
    ("advertised.listeners", Applied),
    ("alter.config.policy.class.name", POLICY),
    (
        "alter.log.dirs.replication.quota.*",
        Ignored("the node limits the rate of moves between log directories by pausing after each piece"),
    ),
    ("amqp.*", Applied),
    ("answer.bytes.max", Applied),
    ("audit.log.*", Applied),
    ("audit.topic", Applied),
    ("authorizer.class.name", Emulated("StandardAuthorizer is built in; no other class can run here")),
    ("authorizer.shadow", Applied),
    ("auto.create.topics.*", Applied),
    ("auto.leader.rebalance.enable", Applied),
    ("background.threads", WORKERS),
    ("broker.heartbeat.interval.ms", Applied),
    ("broker.id", Applied),
    ("broker.rack", Applied),
    ("broker.session.timeout.ms", Applied),
    ("client.quota.callback.class", NO_JVM),
    ("compression.*", Applied),
    ("config.providers", NO_JVM),
    ("connection.failed.authentication.delay.ms", Applied),
    ("connections.max.idle.ms", Applied),
    ("connections.max.reauth.ms", Applied),
    ("connections.per.ip.second.max", Applied),
    ("console.*", Applied),
    ("controlled.shutdown.enable", Emulated("a stopping broker always moves its leaderships away first")),
    ("controller.listener.names", Applied),
    ("controller.performance.*", Ignored("the controller does not record slow events")),
    ("controller.quorum.*", Applied),
    (
        "controller.quorum.append.linger.ms",
        Ignored("the controller writes metadata records at once; one sync covers all that are waiting"),
    ),
    (
        "controller.quorum.fetch.max.bytes",
        Emulated("8 MiB of the metadata log, or of a snapshot, in one answer at most"),
    ),
    (
        "controller.quorum.fetch.snapshot.max.bytes",
        Emulated("8 MiB of the metadata log, or of a snapshot, in one answer at most"),
    ),
    ("controller.quota.*", Applied),
    ("controller.socket.timeout.ms", Emulated("the broker looks for the active controller for 20 s")),
    ("cordoned.log.dirs", Applied),
    ("create.topic.policy.class.name", POLICY),
    ("default.replication.factor", Applied),
    ("delegation.token.*", Applied),
    ("delete.records.purgatory.*", PURGATORY),
    ("delete.topic.enable", Applied),
    ("doctor.interval.ms", Applied),
    ("doctor.silence.file", Applied),
    (
        "early.start.listeners",
        Emulated(
            "it decides about controllers' listeners; those of brokers open after the ACLs are loaded, named here or not",
        ),
    ),
    ("errors.deadletterqueue.*", Applied),
    ("fetch.max.bytes", Applied),
    ("fetch.purgatory.*", PURGATORY),
    ("follower.fetch.last.tiered.offset.enable", TIERED),
    ("group.consumer.*", Applied),
    ("group.consumer.assignor.offload.enable", LARGE_TARGETS),
    (
        "group.coordinator.append.linger.ms",
        Emulated("writes that arrive during a sync are written together by the next one"),
    ),
    ("group.coordinator.background.threads", COORDINATORS),
    (
        "group.coordinator.cached.buffer.max.bytes",
        Ignored("the coordinator keeps no write buffer between appends"),
    ),
    (
        "group.coordinator.rebalance.protocols",
        Emulated("consumer and streams are applied; classic is always on, share as share.version says"),
    ),
    ("group.coordinator.threads", COORDINATORS),
    ("group.initial.rebalance.delay.ms", Applied),
    ("group.max.session.timeout.ms", Applied),
    ("group.max.size", Applied),
    ("group.member.metadata.max.bytes", Applied),
    ("group.memory.max.bytes", Applied),
    ("group.min.session.timeout.ms", Applied),
    ("group.settling.heartbeat.interval.ms", Applied),
    ("group.share.*", Applied),
    (
        "group.share.assignor.offload.enable",
        Emulated("assignments of share groups are small and computed at once"),
    ),
    ("group.share.assignors", Emulated("simple is the only assignor")),
    ("group.share.dlq.manager.class.name", NO_JVM),
    (
        "group.share.initialize.retry.interval.ms",
        Emulated("the broker retries an unreachable share coordinator after 20 ms, with exponential backoff"),
    ),
    ("group.share.persister.class.name", NO_JVM),
    ("group.streams.*", Applied),
    ("group.streams.assignor.offload.enable", LARGE_TARGETS),
    ("group.streams.assignors", Emulated("sticky is the only assignor")),
    ("group.streams.max.warmup.replicas", WARMUP),
    ("group.streams.num.warmup.replicas", WARMUP),
    (
        "group.streams.topology.description.plugin.class",
        Emulated("Kafka's InMemoryTopologyDescriptionPlugin is built in; no other class can run here"),
    ),
    ("groups.memory.max.bytes", Applied),
    ("initial.broker.registration.timeout.ms", Applied),
    ("insecure.listeners.allowed", Applied),
    ("inter.broker.listener.name", Applied),
    ("internal.metadata.*", Ignored("a switch of Kafka's own tests")),
    ("kafka.metrics.*", METRICS),
    ("java.security.*", Applied),
    ("leader.imbalance.check.interval.seconds", Applied),
    ("listener.security.protocol.map", Applied),
    ("listeners", Applied),
    ("log.ack.durability", Applied),
    ("log.cache.bytes", Applied),
    ("log.cleaner.*", Applied),
    ("log.cleaner.enable", Ignored("compacted topics are always compacted, as in Kafka since 4.0")),
    ("log.cleaner.threads", Emulated("a changed number of threads takes effect at the next start")),
    (
        "log.cleaner.io.buffer.size",
        Emulated("compaction has its own buffer size, and needs memory for one batch beside its keys"),
    ),
    ("log.cleanup.policy", Applied),
    ("log.dir", Applied),
    ("log.dir.failure.timeout.ms", Applied),
    ("log.dir.min.free.bytes", Applied),
    ("log.dirs", Applied),
    ("log.file", Applied),
    ("log.file.bytes.max", Applied),
    ("log.files.max", Applied),
    ("log.flush.*", FLUSH),
    ("log.flush.offset.checkpoint.interval.ms", CHECKPOINTS),
    ("log.flush.start.offset.checkpoint.interval.ms", CHECKPOINTS),
    ("log.format", Applied),
    ("log.index.interval.bytes", Applied),
    ("log.index.size.max.bytes", Applied),
    ("log.initial.task.delay.ms", Ignored("housekeeping starts with the node")),
    ("log.journal.append.bytes.max", Applied),
    ("log.journal.bytes", Applied),
    ("log.journal.linger.us", Applied),
    ("log.level", Applied),
    ("log.local.retention.*", TIERED),
    ("log.message.timestamp.*", Applied),
    ("log.open.files.max", Applied),
    ("log.preallocate", Applied),
    ("log.remote.*", TIERED),
    ("log.retention.*", Applied),
    ("log.roll.*", Applied),
    ("log.scrub.*", Applied),
    ("log.segment.*", Applied),
    ("max.connection.creation.rate", Applied),
    (
        "max.connections",
        Emulated("a lower number closes no open connection: new ones are refused until enough have ended"),
    ),
    ("max.connections.per.ip", Applied),
    ("max.connections.per.ip.overrides", Applied),
    ("max.decompressed.message.bytes", Applied),
    ("max.incremental.fetch.session.cache.slots", Applied),
    ("max.request.partition.size.limit", Applied),
    ("message.max.bytes", Applied),
    ("metadata.log.dir", Applied),
    ("metadata.log.max.*", Applied),
    ("metadata.log.segment.*", Applied),
    (
        "metadata.max.idle.interval.ms",
        Emulated(
            "on a single node no other node waits for the metadata log, so the interval is sixty times longer",
        ),
    ),
    (
        "metadata.max.retention.*",
        Emulated("the node keeps two snapshots and the log after them, whatever their age and size"),
    ),
    ("metric.reporters", NO_JVM),
    ("metrics.*", METRICS),
    ("metadata.access.entries.max", Applied),
    ("metadata.configs.*", Applied),
    ("metadata.nodes.max", Applied),
    ("metadata.partitions.*", Applied),
    ("metadata.topics.request.max", Applied),
    ("metrics.listener", Applied),
    ("metrics.topics.max", Applied),
    ("min.insync.replicas", Applied),
    ("mq.*", Applied),
    ("node.id", Applied),
    ("num.io.threads", WORKERS),
    ("num.network.threads", WORKERS),
    ("num.partitions", Applied),
    ("num.recovery.threads.per.data.dir", WORKERS),
    (
        "num.replica.alter.log.dirs.threads",
        Emulated("one thread of the lowest priority copies a piece of each move in turn"),
    ),
    (
        "num.replica.fetchers",
        Emulated("the number of fetchers for each worker and leader; up to four under load"),
    ),
    ("offset.metadata.max.bytes", Applied),
    ("offsets.*", Applied),
    ("offsets.load.buffer.size", Ignored("loading reads whole batches under a fixed bound")),
    ("offsets.topic.compression.codec", Ignored("the coordinator does not compress its records")),
    ("offsets.topic.replication.factor", Emulated("never more replicas than there are brokers")),
    ("org.apache.kafka.sasl.oauthbearer.*", Applied),
    ("otlp.endpoint", Applied),
    ("otlp.headers", Applied),
    ("otlp.interval.ms", Applied),
    ("otlp.traces.*", Applied),
    (
        "principal.builder.class",
        Refused(
            "Barnabas has no Java virtual machine and cannot load the class: principals would have other names",
        ),
    ),
    ("process.roles", Applied),
    ("producer.id.expiration.*", Applied),
    ("producer.ids.max", Applied),
    ("producer.ids.per.partition.max", Applied),
    ("producer.purgatory.*", PURGATORY),
    (
        "queued.max.request.bytes",
        Emulated(
            "bounds the bytes of all requests in progress; instead of no bound, a quarter of the machine's memory",
        ),
    ),
    (
        "queued.max.requests",
        Emulated(
            "each connection may have a bounded number of requests in progress; at the bound the node stops reading from it",
        ),
    ),
    ("quota.window.num", Applied),
    ("quota.window.size.seconds", Applied),
    ("record.validation", Applied),
    ("remote.*", TIERED),
    ("replica.*", Applied),
    ("replica.high.watermark.checkpoint.interval.ms", CHECKPOINTS),
    (
        "replica.selector.class",
        Emulated("Kafka's RackAwareReplicaSelector is built in; other classes cannot be loaded"),
    ),
    (
        "replica.socket.receive.buffer.bytes",
        Ignored("the system sizes the socket buffers of connections between brokers"),
    ),
    ("replication.quota.*", Applied),
    ("request.timeout.ms", Emulated("the broker looks for the active controller for 20 s")),
    ("sasl.*", Applied),
    ("sasl.kerberos.*", Applied),
    ("sasl.kerberos.kinit.cmd", TICKETS),
    ("sasl.kerberos.min.time.before.relogin", TICKETS),
    ("sasl.kerberos.ticket.*", TICKETS),
    ("sasl.login.*", Applied),
    ("sasl.login.refresh.*", TOKEN_RENEWAL),
    ("sasl.oauthbearer.*", Applied),
    ("security.inter.broker.protocol", Applied),
    ("security.providers", NO_JVM),
    ("server.max.startup.time.ms", Ignored("a start that fails ends at once with the reason")),
    ("share.coordinator.*", Applied),
    (
        "share.coordinator.append.linger.ms",
        Emulated("writes that arrive during a sync are written together by the next one"),
    ),
    (
        "share.coordinator.cached.buffer.max.bytes",
        Ignored("the coordinator keeps no write buffer between appends"),
    ),
    ("share.coordinator.load.buffer.size", Emulated("the coordinator reads the state topic in pieces")),
    (
        "share.coordinator.state.topic.compression.codec",
        Ignored("the coordinator does not compress its records"),
    ),
    ("share.coordinator.threads", COORDINATORS),
    ("share.fetch.purgatory.purge.interval.requests", PURGATORY),
    (
        "socket.connection.setup.timeout.*",
        Ignored("the connection timeout between brokers is the request timeout"),
    ),
    ("socket.listen.backlog.size", Applied),
    ("socket.receive.buffer.bytes", Applied),
    ("socket.request.max.bytes", Applied),
    ("socket.send.buffer.bytes", Applied),
    ("ssl.*", Applied),
    (
        "ssl.engine.factory.class",
        Emulated("Kafka's own two factories are built in; another class stops the start"),
    ),
    ("ssl.keymanager.algorithm", TLS_OF_JVM),
    ("ssl.protocol", Ignored("ssl.enabled.protocols says which versions are spoken")),
    ("ssl.provider", TLS_OF_JVM),
    ("ssl.secure.random.implementation", TLS_OF_JVM),
    ("ssl.trustmanager.algorithm", TLS_OF_JVM),
    ("telemetry.max.bytes", Applied),
    ("telemetry.series.max", Applied),
    ("transaction*", Applied),
    (
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        Ignored("each transaction has a timer and is aborted when it expires"),
    ),
    ("transaction.state.log.load.buffer.size", Ignored("loading reads whole batches under a fixed bound")),
    ("transaction.state.log.replication.factor", Emulated("never more replicas than there are brokers")),
    (
        "transaction.two.phase.commit.enable",
        NotAvailable("two-phase commit (KIP-939) is not implemented yet"),
    ),
    ("unclean.leader.election.enable", Applied),
    (
        "unclean.leader.election.interval.ms",
        Emulated(
            "the controller checks partitions without a leader this often, and at once after a change of configuration",
        ),
    ),
    ("unstable.*", NotAvailable("Barnabas offers no unstable APIs")),
];

const TOPIC: &[(&str, Status)] = &[
    ("cleanup.policy", Applied),
    ("compression.*", Applied),
    ("delete.retention.ms", Applied),
    ("errors.deadletterqueue.group.enable", Applied),
    ("file.delete.delay.ms", Applied),
    ("flush.*", FLUSH),
    ("follower.replication.throttled.replicas", Applied),
    ("index.interval.bytes", Applied),
    ("internal.segment.bytes", Applied),
    ("leader.replication.throttled.replicas", Applied),
    ("local.retention.*", TIERED),
    ("max.compaction.lag.ms", Applied),
    ("max.decompressed.message.bytes", Applied),
    ("max.message.bytes", Applied),
    ("message.timestamp.*", Applied),
    ("min.cleanable.dirty.ratio", Applied),
    ("min.compaction.lag.ms", Applied),
    ("min.insync.replicas", Applied),
    ("preallocate", Applied),
    ("remote.*", TIERED),
    ("retention.*", Applied),
    ("segment.*", Applied),
    ("unclean.leader.election.enable", Applied),
];

const GROUP: &[(&str, Status)] = &[
    ("consumer.*", Applied),
    ("consumer.assignor.offload.enable", LARGE_TARGETS),
    ("errors.*", Applied),
    ("share.*", Applied),
    ("share.assignor.offload.enable", Emulated("assignments of share groups are small and computed at once")),
    ("streams.*", Applied),
    ("streams.assignor.offload.enable", LARGE_TARGETS),
    ("streams.num.warmup.replicas", WARMUP),
];

const CLIENT_METRICS: &[(&str, Status)] =
    &[("interval.ms", Applied), ("match", Applied), ("metrics", Applied)];

/// Kafka's own authorizer, the only one that there is here.
pub const STANDARD_AUTHORIZER: &str = "org.apache.kafka.metadata.authorizer.StandardAuthorizer";

/// Why this authorizer cannot be had; `None` for the one that can.
pub(super) fn refused_authorizer(class: &str) -> Option<&'static str> {
    match class {
        STANDARD_AUTHORIZER => None,
        "kafka.security.authorizer.AclAuthorizer" | "kafka.security.auth.SimpleAclAuthorizer" => Some(
            "it keeps its ACLs in ZooKeeper, which this cluster does not have; set \
             org.apache.kafka.metadata.authorizer.StandardAuthorizer and add the ACLs by barnabas acls",
        ),
        _ => Some(
            "a Java class cannot run here, and every client could do everything without it; \
             org.apache.kafka.metadata.authorizer.StandardAuthorizer is built in",
        ),
    }
}

/// Whether `name` is one of the authorizer's own settings: without an authorizer they protect nothing, in Kafka as
/// here.
pub(super) fn of_authorizer(name: &str) -> bool {
    super::authorizer_key(name).is_some()
}

/// What the node does with a setting that Kafka hands to a plug-in; `None` where `name` is none of those.
pub fn of_plug_in(name: &str) -> Option<Status> {
    if of_authorizer(name) {
        return Some(NotAvailable(
            "applied with authorizer.class.name; without it there is no authorizer, and every client may do everything",
        ));
    }
    // The plug-in's own key is warned of.
    let prefixes = ["rlmm.config.", "rsm.config.", "config.providers."];
    prefixes.iter().any(|prefix| name.starts_with(prefix)).then_some(Ignored("the plug-in is not loaded"))
}

/// The key that names the plug-in for descriptions of topologies (KIP-1331).
pub(super) const TOPOLOGY_PLUG_IN: &str = "group.streams.topology.description.plugin.class";

/// The only such plug-in that comes with Kafka 4.4, and the only one that is built in here.
const IN_MEMORY_PLUG_IN: &str = "org.apache.kafka.server.streams.InMemoryTopologyDescriptionPlugin";

/// Whether a value of [`TOPOLOGY_PLUG_IN`] names what is built in.
pub(super) fn is_built_in_plug_in(class: &str) -> bool {
    class.trim() == IN_MEMORY_PLUG_IN
}

/// What the node does with `key`.
pub fn status(resource: Resource, key: &ConfigKey) -> Status {
    lookup(resource, key.name).expect("invariant: a test holds that every key has a row")
}

pub(super) fn lookup(resource: Resource, name: &str) -> Option<Status> {
    let table = match resource {
        Resource::Broker => BROKER,
        Resource::Topic => TOPIC,
        Resource::Group => GROUP,
        Resource::ClientMetrics => CLIENT_METRICS,
    };
    let fits = |pattern: &str| match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == pattern,
    };
    let found = table.iter().filter(|row| fits(row.0)).max_by_key(|row| row.0.len());
    found.map(|row| row.1)
}

/// The rows as written, for the test that none of them is stale.
#[cfg(test)]
pub(super) fn rows(resource: Resource) -> &'static [(&'static str, Status)] {
    match resource {
        Resource::Broker => BROKER,
        Resource::Topic => TOPIC,
        Resource::Group => GROUP,
        Resource::ClientMetrics => CLIENT_METRICS,
    }
}
