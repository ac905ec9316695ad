//! The table of broker keys that are ours and that Kafka does not know.
//!
//! Sorted by name (a test holds that). What the node does with each key: [`crate::config::status`]. docs/SETTINGS.md is
//! generated from this table: `doc` says what a key does, its default, and what other values cost.
//! Bounds that depend on the machine (its memory, the size of a file system) are checked at the start:
//! shell/broker/src/upkeep/in_force.rs.

use crate::config::key::{ConfigKey, Valid, double, long, password, string};

#[rustfmt::skip]
pub(crate) const KEYS: &[ConfigKey] = &[
    string("amqp.listener", "").null().valid(Valid::HostPort)
        .doc("The address and port, such as 127.0.0.1:5672, at which the node answers AMQP 1.0: applications of message \
              queues put to and get from topics (docs/QUEUES.md). Unset: no such listener. Clients act as Kafka's users: \
              with logins on the node's listener by SASL PLAIN, else as ANONYMOUS. An address off loopback without TLS \
              (`amqp.security.protocol`) is a WARN. The node needs a listener without TLS for it, on loopback for instance."),
    string("amqp.security.protocol", "PLAINTEXT").one_of(&["PLAINTEXT", "SSL"])
        .doc("`SSL`: the AMQP listener speaks TLS alone, with the key store of `listener.name.amqp.ssl.*` or else of `ssl.*`, \
              which is read again when its file changes. A client's certificate, where `ssl.client.auth` asks for one, opens \
              the connection and names no user. `PLAINTEXT`: AMQP without TLS."),
    long("answer.bytes.max", "104857600").between(1 << 20, 2_000_000_000).unit("bytes")
        .doc("The largest answer to a request that describes or lists configurations, groups, producers, transactions \
              or committed offsets. Entries beyond it are refused with INVALID_REQUEST. A larger value lets one \
              request describe more; a smaller one bounds what a client can make the node compute with a short \
              request. Fetch is bounded by `fetch.max.bytes`; Metadata is not bounded."),
    string("audit.log.events", "logins,failed-logins,denials,changes").valid(Valid::NonEmpty)
        .doc("What the audit log contains, separated by commas: `logins`, `failed-logins`, `denials` (with \
              `authorizer.shadow`: what would be denied), `changes`. Changes are requests that alter topics, \
              configurations, ACLs, users, quotas, tokens, groups' offsets or the quorum, and what became of them."),
    string("audit.log.file", "").null().valid(Valid::NonEmpty)
        .doc("The file of the audit log: who did what from where, one JSON object a line (docs/SECURITY.md). Its \
              directory must exist; the file has mode 0600. Unset: no audit log. A request never waits for it: what the \
              queue cannot take is counted in `barnabas_audit_events_dropped_total`, and in a line of the file."),
    long("audit.log.file.bytes.max", "104857600").between(4096, 1 << 40).unit("bytes")
        .doc("The size at which the audit log starts a new file; the one before is renamed to `FILE.1`, that one to \
              `FILE.2`. The log takes at most `audit.log.files.max` times this space."),
    long("audit.log.files.max", "10").between(1, 1000).unit("files")
        .doc("The most files that the audit log keeps, the current one included. The oldest is removed."),
    string("audit.topic", "").null().valid(Valid::NonEmpty)
        .doc("The topic that each broker writes the lines of its audit log to, besides `audit.log.file` or alone: the key \
              is the node's id, the value the JSON object. Created with the cluster's defaults if it does not exist. \
              Brokers write it in their own names: where ACLs are enforced, a broker that is no super user needs WRITE on \
              it. While its leader is away 16,384 lines or 16 MiB wait; further ones are dropped, counted in \
              `barnabas_audit_topic_dropped_total`, and in a line of the topic. Unset: no topic."),
    string("authorizer.shadow", "false").one_of(&["true", "false"]).high()
        .doc("Whether the authorizer only reports. `true`: requests are answered as without an authorizer, and what \
              ACLs would deny is logged as `would be denied` and written to the audit log. ACLs can be tried that way \
              before they are enforced. Needs `authorizer.class.name`; the node logs a WARN at each start. `false`: the \
              authorizer denies."),
    long("auto.create.topics.request.max", "100").between(0, 10_000).unit("topics").cluster_wide()
        .doc("The most topics that one Metadata request creates. The answer reports the others as unknown, and the \
              client's next request creates more. 0: none. Topics of coordinators do not count."),
    long("auto.create.topics.second.max", "100").between(0, 100_000).unit("topics a second").cluster_wide()
        .doc("The most topics that Metadata requests to this broker create in a second, over all clients. The answer \
              reports the others as unknown; the broker creates them when the client asks again. 0: none. A larger \
              value lets one client that names many topics fill the metadata sooner. Topics of coordinators do not \
              count."),
    long("connections.per.ip.second.max", "5000").between(1, 1_000_000).unit("connections a second")
        .doc("The most new connections that the node accepts from one address in a second. It closes any more at once. \
              Listeners for brokers and controllers do not count. Opening and closing a connection costs 35 µs of the \
              node's CPU: without a bound, one client that does nothing else opens 21,000 a second and takes three \
              quarters of a core. A smaller value lowers that cost; a larger one lets more clients behind one address \
              reconnect in the same second after a restart. `max.connection.creation.rate` bounds all addresses \
              together, by delaying connections. An address with the quota `connection_creation_rate` is bounded by that \
              quota instead."),
    string("console.advertised.url", "").null().valid(Valid::NonEmpty)
        .doc("How clients reach the console of this node alone, such as https://node1.example:8080, where a load balancer \
              stands before the consoles of several nodes. A consumer of REST v2 lives in one node: its `base_uri` begins \
              with this URL. Its name counts as one of `console.hosts`. Unset: `base_uri` begins as the request was addressed."),
    string("console.hosts", "").null().valid(Valid::NonEmpty)
        .doc("The names by which the console is reached, separated by commas, without ports. A request whose Host header has \
              another name is refused, so that no web page can reach the console under a name of its own (DNS rebinding). \
              Addresses and `localhost` are always accepted."),
    string("console.listener", "").null().valid(Valid::HostPort)
        .doc("The address and port, such as 127.0.0.1:8080, at which the node answers HTTP: the console, Confluent's REST API v2 and v3, \
              and `/livez`, `/readyz`, `/startupz` (docs/CONSOLE.md). Unset: no listener; `make run` sets it. Requests act as \
              their callers: with logins on the node's listener by HTTP basic, else as ANONYMOUS. An address off loopback \
              without TLS (`console.security.protocol`) is a WARN. The node needs a listener without TLS for it, on loopback for instance."),
    string("console.read.only", "false").one_of(&["true", "false"])
        .doc("Whether the console refuses every request that could change something: all methods but GET and HEAD, of its \
              page, of `/api/v1`, of `/v3` and of REST v2. A user's rights do not matter then. The Kafka protocol is not concerned."),
    password("console.schema.registry.basic.auth.user.info", "").null().valid(Valid::NonEmpty)
        .doc("The console's login at `console.schema.registry.url`: user and password with a colon between, as Confluent's \
              clients write it. Unset: none."),
    string("console.schema.registry.url", "").null().valid(Valid::NonEmpty)
        .doc("A schema registry with Confluent's API, such as https://registry.example:8081. The console asks it for schemas of \
              records that it decodes (docs/CONSOLE.md), once for each id. It asks as itself: a user who may read a topic sees \
              its records decoded. With https the registry is trusted by `ssl.truststore.*`. Unset: only the files of `console.schemas.dir` are known."),
    string("console.schemas.dir", "").null().valid(Valid::NonEmpty)
        .doc("A directory with schemas of records that the console decodes: `ID.avsc` for Avro, `ID.json` for JSON Schema, \
              `NAME-ID.avsc` likewise, where ID is the number in front of a record in Confluent's wire format. A file is read \
              when its id is first needed; a new file within 30 s. They precede `console.schema.registry.url`. Unset: none."),
    string("console.security.protocol", "PLAINTEXT").one_of(&["PLAINTEXT", "SSL"])
        .doc("`SSL`: the console answers HTTPS alone, with the key store of `listener.name.console.ssl.*` or else of `ssl.*`, \
              which is read again when its file changes. A client's certificate, where `ssl.client.auth` asks for one, opens \
              the connection and names no user: requests act as without it. `PLAINTEXT`: HTTP."),
    long("delegation.token.owner.max", "10000").between(1, 10_000_000).unit("tokens").cluster_wide()
        .doc("The most delegation tokens of one owner, expired ones included until they are removed. A request that \
              exceeds it is refused with POLICY_VIOLATION; existing tokens can be renewed and expired. \
              `metadata.access.entries.max` bounds all owners together."),
    long("doctor.interval.ms", "60000").or_between(0, 1000, 86_400_000).unit("milliseconds")
        .doc("How often the node compares two of its own metrics pages, and looks for what `barnabas doctor` would find \
              of it (docs/DOCTOR.md). Findings are `barnabas_finding` on the metrics page, and a line of the log when two \
              checks in a row have them, and when they are gone. It costs a metrics page in each interval. 0: never."),
    string("doctor.silence.file", "").null().valid(Valid::NonEmpty)
        .doc("A file of findings that the operator knows of: `ID[:SUBJECT] DATE REASON` in each line, as for \
              `barnabas doctor --silence`. The node reads it before each check, and leaves these findings out of its log \
              and metrics. Unset: none."),
    long("group.member.metadata.max.bytes", "1048576").between(1024, 1 << 30).unit("bytes").cluster_wide()
        .doc("The most bytes of metadata that one member of a classic group may send in JoinGroup, over all its \
              protocols. More is refused with GROUP_MAX_SIZE_REACHED. For consumer, share and streams groups the bound \
              is `message.max.bytes`. Also the most bytes of the topology description of one streams group; a longer \
              one is refused with STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED. A larger value lets one member hold more \
              of the broker's memory."),
    long("group.memory.max.bytes", "67108864").between(65_536, 1 << 40).unit("bytes").cluster_wide()
        .doc("The most memory that one group may hold in the broker, by an estimate: its members with their metadata, \
              their assignments, and its offsets. At the bound the broker refuses new members with \
              GROUP_MAX_SIZE_REACHED and offsets of new partitions with INVALID_COMMIT_OFFSET_SIZE; existing members \
              continue. The default is enough for some 10,000 members with 100,000 partitions."),
    long("group.settling.heartbeat.interval.ms", "0").between(0, 60_000).unit("milliseconds").cluster_wide()
        .doc("The heartbeat interval of consumer, share and streams groups during a rebalance, and for three intervals \
              after a change; never longer than the group's `heartbeat.interval.ms`, and never more than 4,000 \
              heartbeats a second for one group. 0: always `heartbeat.interval.ms`, as in Kafka. Members learn each \
              step of a rebalance from a heartbeat. In simulated time, with half of the members new and an interval of \
              5 s, 250 completes the rebalance of 200 members in 5.1 s instead of 10.1 s, and makes no difference for \
              2 or 20 members."),
    long("groups.memory.max.bytes", "268435456").between(1 << 20, 1 << 40).unit("bytes").cluster_wide()
        .doc("The most memory that all groups, share-partitions and transactional ids that this broker coordinates may \
              hold together, by the same estimate as `group.memory.max.bytes`. Unset: an eighth of the machine's \
              memory, at most the default. At the bound the broker refuses new groups, members and offsets with the \
              same errors; existing ones continue. More than a quarter of the machine's memory leaves little for \
              everything else."),
    string("insecure.listeners.allowed", "false").one_of(&["true", "false"]).high()
        .doc("Whether the node starts with a listener that other machines can reach and that authenticates no client: \
              protocol PLAINTEXT, or SSL without `ssl.client.auth=required`, on another address than a loopback one. \
              Everyone who can reach it may do what `User:ANONYMOUS` may do; without an authorizer, everything. \
              So does `console.listener`, `amqp.listener` or `mq.listener` on such an address whose clients act through a listener \
              without SASL. `true`: the node starts, with a WARN for each such listener. Kafka has no such check: a node whose file \
              was made for Kafka and binds PLAINTEXT to every address needs this key, a login, or a loopback address."),
    string("java.security.auth.login.config", "").null().valid(Valid::NonEmpty)
        .doc("The JAAS file: login modules of listeners that have none in `sasl.jaas.config`, in its sections \
              `NAME.KafkaServer` and `KafkaServer`. Unset: the file that `-Djava.security.auth.login.config=…` names in \
              the environment variable KAFKA_OPTS, as Kafka's scripts pass it to the JVM; else none."),
    string("java.security.krb5.conf", "").null().valid(Valid::NonEmpty)
        .doc("krb5.conf, of which a broker with GSSAPI takes `default_realm`, `clockskew`, `domain_realm` and KDCs. Unset: the file that \
              `-Djava.security.krb5.conf=…` names in the environment variable KAFKA_OPTS, as Kafka's scripts pass it to \
              the JVM; else that of the environment variable KRB5_CONFIG; else /etc/krb5.conf, where it exists."),
    string("java.security.krb5.realm", "").null().valid(Valid::NonEmpty)
        .doc("The default realm of Kerberos, instead of that of krb5.conf. Unset: `-Djava.security.krb5.realm=…` in the \
              environment variable KAFKA_OPTS; else krb5.conf's; else the realm of the broker's own principal."),
    string("log.ack.durability", "synced").one_of(&["synced", "written"]).high()
        .doc("When the broker acknowledges a batch. `synced`: when it is on disk, with `acks=all` on every in-sync \
              replica. `written`: when it is in the page cache, as in Kafka. `written` saves the journal and its \
              writes; a power cut then loses the records acknowledged in the seconds before it."),
    long("log.cache.bytes", "").null().between(0, 1 << 40).unit("bytes")
        .doc("Memory of the node for recently appended batches that are already in their segments, so that consumers \
              near the end of the log read no file. Unset: a sixteenth of the machine's memory, at most 224 MiB. More \
              than half of the machine's memory is refused at the start. A larger value serves consumers that are \
              further behind without reading files; with 0 only the page cache does."),
    long("log.dir.min.free.bytes", "-1").or_between(-1, 0, 1 << 50).unit("bytes").high().cluster_wide()
        .doc("The broker refuses producers with a retriable error while a log directory's file system has less free \
              space than this, and accepts them again when it has a quarter more. Everything else continues. -1: a \
              hundredth of the file system, between 32 MiB and 1 GiB, but at most an eighth of it. More than the whole \
              file system is refused at the start. With 0 producers may fill the disk; consumers, retention and the \
              next start then use a small reserve."),
    string("log.file", "").null().valid(Valid::NonEmpty)
        .doc("The file of the node's log, instead of standard error. Its directory must exist; the file has mode 0640. A \
              thread of its own writes it, so that a slow disk holds up no worker: lines that its queue cannot take are \
              counted in `barnabas_log_lines_dropped_total`. Lines that the file does not take go to standard error. A \
              file that logrotate has renamed is opened again within a second or two, without a signal. Unset: \
              standard error, which systemd or a container's runtime keeps and rotates."),
    long("log.file.bytes.max", "104857600").between(4096, 1 << 40).unit("bytes")
        .doc("The size at which the node's log starts a new file; the one before is renamed to `FILE.1`, that one to \
              `FILE.2`. Where logrotate does this, set it above logrotate's size."),
    long("log.files.max", "10").between(1, 1000).unit("files")
        .doc("The most files of its log that the node keeps, the current one included. The oldest is removed."),
    string("log.format", "text").one_of(&["text", "json"])
        .doc("How the node writes the lines of its log. `json`: one JSON object a line, with `time`, `level`, `logger`, \
              `message` and the line's fields."),
    long("log.journal.append.bytes.max", "524288").between(0, 2_097_152).unit("bytes")
        .doc("The largest append of one partition, in one round, that goes through the journal. A larger append goes \
              straight to the segment and is synced there, so that it is written once. A larger value writes large \
              appends twice; a smaller one costs one sync for each append above it. 0: no records go through the \
              journal."),
    long("log.journal.bytes", "").null().between(12_582_912, 8_589_934_592).unit("bytes")
        .doc("The size of each log directory's journal. The node allocates it with the directory's first record and \
              frees it at a clean stop. Unset: 256 MiB, at most a twentieth of the file system, at least 12 MiB. More \
              than half of the file system is refused at the start. With a larger journal, small appends gather longer \
              and are written back to segments in larger pieces; a start after a kill replays at most this much. A \
              changed value takes effect when the node creates the journal again, at the start after the next clean \
              stop. After a kill the node keeps the existing journal files."),
    long("log.journal.linger.us", "200").between(0, 100_000).unit("microseconds")
        .doc("The least time between the ends of two rounds of the journal, unless a round is large. A larger value \
              makes rounds larger and fewer under a load of small batches, which saves CPU and writes, and delays \
              answers by up to as much. If 24 KiB arrive during the linger, the journal lingers again, up to five \
              times. An idle journal does not linger."),
    string("log.level", "info").valid(Valid::NonEmpty)
        .doc("Which lines the node logs: a level (`error`, `warn`, `info`, `debug`, `trace`), or a list that names \
              loggers, such as `info,barnabas::requests::connection=debug`. The environment variables BARNABAS_LOG and \
              RUST_LOG take precedence. `kafka-configs --entity-type broker-loggers` lists the loggers and changes \
              their levels while the node runs."),
    long("log.open.files.max", "-1").or_between(-1, 64, 1_048_576).unit("files")
        .doc("The most log files that are open at a time, over all partitions and log directories, including those \
              that wait for a sync; the node opens others on demand. -1: three quarters of the process's descriptors \
              (`ulimit -n`; the node raises the soft limit to the hard one) less the node's own; the rest is for \
              connections. Never more than the limit allows with 16 connections left. Opening a file again costs about \
              2 µs."),
    long("log.scrub.bytes.per.second", "33554432").or_between(0, 65_536, 1 << 40).unit("bytes a second").cluster_wide()
        .doc("How fast the node reads segments in the background to find corrupt bytes. A larger value finds them \
              sooner and uses that much more of the disk's bandwidth. 0: no background check; the node then checks \
              only what consumers read."),
    long("log.scrub.interval.ms", "604800000").between(1000, 315_360_000_000).unit("milliseconds").cluster_wide()
        .doc("The time between the starts of two checks of all segments of a log directory. The default is a week."),
    long("metadata.access.entries.max", "200000").between(1, 10_000_000).unit("entries").cluster_wide()
        .doc("The most ACLs of the cluster; also the most SCRAM credentials, the most delegation tokens, and the most \
              entities with quotas. A request that exceeds it is refused with POLICY_VIOLATION. Each takes about 500 \
              bytes of memory on every node."),
    long("metadata.configs.bytes.max", "268435456").between(4096, 1 << 40).unit("bytes").cluster_wide()
        .doc("The most memory that configurations of topics, brokers, groups and client-metrics subscriptions take \
              together in each node's metadata: names and values, and about 1 KiB for each resource. A change that \
              exceeds it is refused with POLICY_VIOLATION; existing configurations stay, and can be removed."),
    long("metadata.configs.resource.bytes.max", "1048576").between(4096, 4_194_304).unit("bytes").cluster_wide()
        .doc("The most memory that the configurations of one resource take, counted as for \
              `metadata.configs.bytes.max`. A change that exceeds it is refused with POLICY_VIOLATION."),
    long("metadata.nodes.max", "10000").between(1, 1_000_000).unit("nodes").cluster_wide()
        .doc("The most brokers that are registered at a time, and the most controllers. Another one is refused with \
              INVALID_REGISTRATION; registered nodes can register again."),
    long("metadata.partitions.max", "2000000").between(1, 100_000_000).unit("partitions").cluster_wide()
        .doc("The most partitions of all topics of the cluster. A request that exceeds it is refused with \
              POLICY_VIOLATION. Each partition takes 24 bytes of memory on every node and about 80 more on its \
              replicas; a topic takes about 500."),
    long("metadata.partitions.request.max", "250000").between(1, 10_000_000).unit("partitions").cluster_wide()
        .doc("The most partitions that one CreateTopics or CreatePartitions request creates, one \
              AlterPartitionReassignments or ElectLeaders request names, or one ElectLeaders request for all \
              partitions elects; also the most topics that one DeleteTopics or CreatePartitions request names, and the \
              most resources that one request alters. More is refused with POLICY_VIOLATION. The controller holds the \
              records of one request in memory, about 400 bytes for each partition."),
    long("metadata.topics.request.max", "10000").between(1, 1_000_000).unit("topics").cluster_wide()
        .doc("The most topics that one CreateTopics request creates. More is refused with POLICY_VIOLATION. The answer \
              contains some forty configurations for each topic, about 5 KiB."),
    string("metrics.listener", "").null().valid(Valid::HostPort)
        .doc("The address and port, such as 127.0.0.1:9404, at which the node answers `GET /metrics` over HTTP, in \
              Prometheus' text format, with the names that the JMX exporter gives Kafka's metrics (docs/METRICS.md). \
              Unset: no listener. The page contains client ids and log directories, and everyone who can reach the \
              address can read it. `barnabas hotspots` does not need it."),
    long("metrics.topics.max", "500").between(0, 100_000).unit("topics")
        .doc("The most topics with series of their own on the metrics page (`kafka_server_brokertopicmetrics_…` with \
              the label `topic`): eight series, about 800 bytes of the page, and 64 bytes of memory for each worker. \
              The first topics that a batch or a fetch is counted of have them, until they are deleted; the others \
              share the value `(others)`. 0: no topic has any."),
    string("mq.listener", "").null().valid(Valid::HostPort)
        .doc("The address and port, such as 127.0.0.1:1414, at which the node answers IBM MQ's clients: their applications put \
              to and get from topics (docs/QUEUES.md). Experimental. Unset: no such listener. Clients act as Kafka's users: \
              with logins on the node's listener by the user and password of MQCSP, else as ANONYMOUS. An address off \
              loopback without TLS (`mq.security.protocol`) is a WARN. The node needs a listener without TLS for it, on \
              loopback for instance."),
    string("mq.queue.manager", "BARNABAS").valid(Valid::NonEmpty)
        .doc("The name of the queue manager that MQ's clients meet. A client that connects to another name is refused with \
              reason 2058; one that names none is let in."),
    string("mq.queues", "").null().valid(Valid::NonEmpty)
        .doc("The queues of MQ's clients and their topics, as `QUEUE:topic` pairs separated by commas. Other queues are unknown \
              then (reason 2085). Unset: a queue's name is its topic's."),
    string("mq.security.protocol", "PLAINTEXT").one_of(&["PLAINTEXT", "SSL"])
        .doc("`SSL`: the MQ listener speaks TLS alone, with the key store of `listener.name.mq.ssl.*` or else of `ssl.*`, which \
              is read again when its file changes. A client's certificate, where `ssl.client.auth` asks for one, opens the \
              connection and names no user. `PLAINTEXT`: MQ without TLS, and passwords travel readable."),
    string("org.apache.kafka.sasl.oauthbearer.allowed.files", "").null().valid(Valid::NonEmpty)
        .doc("The files that `sasl.oauthbearer.assertion.*` may name, separated by commas. \
              Unset: the value of `-Dorg.apache.kafka.sasl.oauthbearer.allowed.files=…` in the environment variable \
              KAFKA_OPTS, where Kafka has this as a property of the JVM; \
              else none."),
    string("org.apache.kafka.sasl.oauthbearer.allowed.urls", "").null().valid(Valid::NonEmpty)
        .doc("The URLs that `sasl.oauthbearer.jwks.endpoint.url` and `sasl.oauthbearer.token.endpoint.url` may have, \
              `file:` included, separated by commas. Unset: the value of \
              `-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=…` in the environment variable KAFKA_OPTS, where Kafka \
              has this as a property of the JVM."),
    string("otlp.endpoint", "").null().valid(Valid::NonEmpty)
        .doc("Where the node pushes its metrics as OTLP over HTTP (protobuf, gzip), such as http://127.0.0.1:4318 of an \
              OpenTelemetry collector. Without a path it is `/v1/metrics`. https trusts `ssl.truststore.*`, or what the \
              system trusts. Names, labels and values are those of the metrics page. A push that fails is not repeated: \
              counts are since the start of the node, so that the next one has all. Unset: none (docs/MONITORING.md)."),
    password("otlp.headers", "").null().valid(Valid::NonEmpty)
        .doc("Headers of each push: `name=value` pairs with commas between, for a collector that wants a key. A comma in a \
              value is written %2C. The values are never shown."),
    long("otlp.interval.ms", "60000").between(1000, 86_400_000).unit("milliseconds")
        .doc("How often metrics are pushed to `otlp.endpoint`. It costs a metrics page in each interval. While pushes fail, \
              the pause doubles, up to ten intervals or five minutes, whichever is less."),
    long("otlp.traces.per.second.max", "100").between(1, 10_000).unit("requests")
        .doc("The most requests a second that are pushed as spans, of the node. What is sampled above it is dropped and counted \
              (`barnabas_otlp_span_requests_total`, result dropped)."),
    double("otlp.traces.sample.ratio", "0").valid(Valid::Fraction(0.0, 1.0))
        .doc("The share of requests that are pushed as spans to `otlp.endpoint`, to `/v1/traces` where metrics go to \
              `/v1/metrics`. A span has the API, its version, client id, listener, correlation id, error code and bytes, and \
              a child for each phase of docs/METRICS.md. No topic, record, principal or address is in it. 0: none, at no cost."),
    long("producer.ids.max", "1000000").between(1_000, 1_000_000_000).unit("producers")
        .doc("The most idempotent producers that all partitions of the node remember together; about 250 bytes of \
              memory each. Above it, the partitions with the most producers forget those that have been silent \
              longest, as with `producer.ids.per.partition.max`. The node checks every second; with very many \
              partitions, every minute."),
    long("producer.ids.per.partition.max", "10000").between(100, 10_000_000).unit("producers")
        .doc("The most idempotent producers that a partition remembers; about 250 bytes of memory each. A new producer \
              above it makes the partition forget the tenth that has been silent longest, as if they had expired \
              (`producer.id.expiration.ms`). Forgotten producers can continue, but the partition does not recognise \
              their duplicates. Producers with an open transaction are never forgotten. A larger value remembers \
              producers that are silent for long among very many; a smaller one saves memory on nodes with many \
              partitions. A changed value takes effect when a partition is opened."),
    string("record.validation", "header").one_of(&["header", "structure", "full"])
        .doc("How much of a produced batch the broker checks when no other rule requires more. `header`: the batch \
              header, and the lengths of uncompressed records. `structure`: also that every record, decompressed, is \
              readable by consumers; timestamps are not checked. `full`: everything that Kafka checks. CPU of the \
              server per record of 250 bytes in batches of 16 KiB, `header` and `structure`: uncompressed 0.40 and \
              0.40 µs, lz4 0.28 and 0.43, snappy 0.27 and 0.45, zstd 0.23 and 0.75, gzip 0.80 and 1.33; `full` costs \
              the same as `structure`. An unreadable batch harms only the consumers of its own topic, so the default \
              is `header`."),
    string("ssl.crl.expired", "refuse").one_of(&["refuse", "accept"]).per_broker()
        .doc("What becomes of a certificate whose authority's revocation list is past its next update. `refuse`: it is \
              refused, since a newer list may name it. `accept`: the old list counts as long as there is no newer one."),
    string("ssl.crl.location", "").null().valid(Valid::NonEmpty).per_broker()
        .doc("Files with lists of revoked certificates (CRLs), separated by commas: one list in DER, or any number in \
              PEM. A peer's certificate that its authority's list names is refused, of clients and of nodes that this \
              one connects to; so is one with such a certificate in its chain. The files are read again when they \
              change, within ten seconds; a file that cannot be used stops the start, and later leaves the lists before \
              in use. Unset: no certificate is checked for revocation. With the prefix of a listener it can be changed \
              while the node runs."),
    string("ssl.crl.missing", "refuse").one_of(&["refuse", "accept"]).per_broker()
        .doc("What becomes of a certificate whose authority has no list in `ssl.crl.location`. `refuse`: it is refused. \
              `accept`: only authorities with a list can revoke."),
    long("telemetry.series.max", "10000").between(0, 1_000_000).unit("series")
        .doc("The most series that the node keeps of what clients push (KIP-714); about 300 bytes of memory each, and \
              150 bytes of the metrics page. One client has a tenth of them at most. Further series are dropped and \
              counted (`barnabas_client_metrics_points_dropped_total`)."),
];
