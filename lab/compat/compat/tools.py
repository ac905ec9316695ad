"""Apache's command-line tools, as they come, each run as its own process against the node.

A cell is one tool; it passes when everything that it was asked to do did it and said so, checked by
what the tool printed and, where something changed, by asking another way.
"""

import contextlib
import copy
import json
import re
import subprocess
import tempfile
import time
from pathlib import Path

from . import fetch
from .driver import Failure, until
from .scenarios import RECENT, expect, lines
from .suite import SKIP, Judges, Result, judged

TOOLS = {}
PACKAGE = "org.apache.kafka.tools."
# Where the name does not follow from the tool's.
CLASSES = {
    "topics": PACKAGE + "TopicCommand", "configs": "kafka.admin.ConfigCommand", "console-producer": PACKAGE + "ConsoleProducer",
    "console-consumer": PACKAGE + "consumer.ConsoleConsumer", "consumer-groups": PACKAGE + "consumer.group.ConsumerGroupCommand",
    "groups": PACKAGE + "GroupsCommand", "share-groups": PACKAGE + "consumer.group.ShareGroupCommand", "streams-groups": PACKAGE + "streams.StreamsGroupCommand", "get-offsets": PACKAGE + "GetOffsetShell", "delete-records": PACKAGE + "DeleteRecordsCommand",
    "log-dirs": PACKAGE + "LogDirsCommand", "producer-perf-test": PACKAGE + "ProducerPerformance",
    "consumer-perf-test": PACKAGE + "ConsumerPerformance", "e2e-latency": PACKAGE + "EndToEndLatency",
    "broker-api-versions": PACKAGE + "BrokerApiVersionsCommand", "metadata-quorum": PACKAGE + "MetadataQuorumCommand",
    "features": PACKAGE + "FeatureCommand", "cluster": PACKAGE + "ClusterTool", "leader-election": PACKAGE + "LeaderElectionCommand",
    "verifiable-producer": PACKAGE + "VerifiableProducer", "verifiable-consumer": PACKAGE + "VerifiableConsumer",
    "transactions": PACKAGE + "TransactionsCommand", "reassign-partitions": PACKAGE + "reassign.ReassignPartitionsCommand",
    "console-share-consumer": PACKAGE + "consumer.ConsoleShareConsumer", "replica-verification": PACKAGE + "ReplicaVerificationTool", "streams-application-reset": PACKAGE + "StreamsResetter", "share-consumer-perf-test": PACKAGE + "ShareConsumerPerformance",
    "client-metrics": PACKAGE + "ClientMetricsCommand", "dump-log": PACKAGE + "DumpLogSegments",
}


def tool(name, quick=True):
    def add(function):
        TOOLS["kafka-" + name] = function
        function.quick = quick
        return function
    return add


class Shell:
    """Runs tools against one server, and knows an independent client."""

    def __init__(self, server, judge, classpath, scratch):
        self.server, self.judge, self.classpath, self.scratch = server, judge, classpath, scratch
        self.bootstrap = ["--bootstrap-server", server.address]

    def call(self, name, *words, given=None, timeout=60, code=0, connect=True):
        """What the tool printed on both outputs; another exit code than `code` fails the cell."""
        done, said = self.ask(name, *words, given=given, timeout=timeout, connect=connect)
        if code is not None and done != code:
            raise Failure(f"kafka-{name} {' '.join(words)[:80]}: exit {done}: {said.strip()[-220:]}")
        return said

    def ask(self, name, *words, given=None, timeout=60, connect=True, seconds=0):
        """The exit code, and what the tool printed on both outputs. With `seconds` it is asked to end after so many."""
        settings = fetch.HERE / "maven/log4j2.properties"
        command = [*stopped_after(seconds), "java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Duser.timezone=UTC", f"-Dlog4j2.configurationFile={settings}",
                   "-cp", self.classpath, CLASSES[name], *(self.bootstrap if connect else []), *words]
        try:
            done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=timeout, errors="replace")
        except subprocess.TimeoutExpired:
            raise Failure(f"kafka-{name} {' '.join(words)[:80]} did not end within {timeout} s") from None
        return done.returncode, done.stdout + done.stderr

    def file(self, text):
        with tempfile.NamedTemporaryFile("w", dir=self.scratch, delete=False) as out:
            out.write(text)
        return out.name

    def topic(self, name, partitions=1, **config):
        self.judge.call("create_topic", name=name, partitions=partitions, config={key.replace("_", "."): value for key, value in config.items()})
        return name


def stopped_after(seconds):
    """What stands before a command that is ended by SIGTERM after so many seconds; coreutils' exit code is then 124."""
    return ["timeout", "-s", "TERM", str(seconds)] if seconds else []


def has(said, *patterns):
    for pattern in patterns:
        expect(re.search(pattern, said, re.M), f"expected /{pattern}/ in: {' | '.join(said.strip().splitlines())[-260:]}")


@tool("topics")
def topics(t):
    has(t.call("topics", "--create", "--topic", "tool-topics", "--partitions", "3", "--replication-factor", "1", "--config", "retention.ms=777000"),
        r"Created topic tool-topics\.")
    expect("tool-topics" in t.call("topics", "--list").splitlines(), "not in --list")
    has(t.call("topics", "--describe", "--topic", "tool-topics"),
        r"^Topic: tool-topics\tTopicId: [\w-]{22}\tPartitionCount: 3\tReplicationFactor: 1\tConfigs: .*retention\.ms=777000",
        r"Topic: tool-topics\tPartition: 2\tLeader: 1\tReplicas: 1\tIsr: 1")
    t.call("topics", "--alter", "--topic", "tool-topics", "--partitions", "6")
    has(t.call("topics", "--describe", "--topic", "tool-topics"), r"PartitionCount: 6")
    has(t.call("topics", "--create", "--topic", "tool-topics", code=1), r"already exists")
    has(t.call("topics", "--create", "--topic", "bad/name", code=1), r"(?i)illegal|invalid")
    has(t.call("topics", "--create", "--topic", "tool-rf", "--replication-factor", "3", code=1), r"(?i)replication factor")
    has(t.call("topics", "--create", "--topic", "tool-assigned", "--replica-assignment", "1,1"), r"Created topic")
    expect(t.call("topics", "--describe", "--under-replicated-partitions").strip() == "", "under-replicated partitions on one node")
    expect(t.call("topics", "--describe", "--unavailable-partitions").strip() == "", "unavailable partitions")
    t.call("topics", "--delete", "--topic", "tool-topics")
    time.sleep(0.3)
    expect("tool-topics" not in t.call("topics", "--list").splitlines(), "still there after --delete")


@tool("configs")
def configs(t):
    topic = t.topic("tool-configs")
    entity = ["--entity-type", "topics", "--entity-name", topic]
    has(t.call("configs", "--alter", *entity, "--add-config", "retention.ms=888000,cleanup.policy=[compact,delete]"), r"Completed updating config")
    has(t.call("configs", "--describe", *entity), r"retention\.ms=888000 sensitive=false synonyms=\{DYNAMIC_TOPIC_CONFIG:retention\.ms=888000",
        r"cleanup\.policy=compact,delete")
    t.call("configs", "--alter", *entity, "--delete-config", "retention.ms")
    expect("retention.ms=888000" not in t.call("configs", "--describe", *entity), "retention.ms is still set")
    has(t.call("configs", "--describe", "--all", *entity), r"retention\.ms=604800000", r"max\.message\.bytes=1048588")
    broker = ["--entity-type", "brokers", "--entity-name", "1"]
    has(t.call("configs", "--describe", "--all", *broker), r"node\.id=1 ", r"log\.retention\.hours=168 ")
    has(t.call("configs", "--alter", *broker, "--add-config", "log.cleaner.threads=2"), r"Completed updating config")
    has(t.call("configs", "--describe", *broker), r"log\.cleaner\.threads=2 sensitive=false synonyms=\{DYNAMIC_BROKER_CONFIG:log\.cleaner\.threads=2")
    t.call("configs", "--alter", *broker, "--delete-config", "log.cleaner.threads")
    default = ["--entity-type", "brokers", "--entity-default"]
    t.call("configs", "--alter", *default, "--add-config", "message.max.bytes=2000000")
    has(t.call("configs", "--describe", *default), r"message\.max\.bytes=2000000")
    t.call("configs", "--alter", *default, "--delete-config", "message.max.bytes")
    has(t.call("configs", "--alter", *entity, "--add-config", "retention.ms=soon", code=1), r"(?i)invalid")


@tool("configs (groups)", quick=False)
def configs_groups(t):
    group = ["--entity-type", "groups", "--entity-name", "tool-group-config"]
    t.call("configs", "--alter", *group, "--add-config", "consumer.session.timeout.ms=50000")
    has(t.call("configs", "--describe", *group), r"consumer\.session\.timeout\.ms=50000")
    has(t.call("configs", "--describe", "--entity-type", "groups"), r"for group tool-group-config")


@tool("console-producer")
def console_producer(t):
    topic = t.topic("tool-produce", 1)
    text = "".join(f"line {n}\n" for n in range(1000))
    t.call("console-producer", "--topic", topic, given=text)
    read = t.judge.fetch(topic, [0], 1001, timeout_ms=3000)
    expect([r.value for r in read] == [f"line {n}" for n in range(1000)], f"{len(read)} of 1000 lines, or another order")
    topic = t.topic("tool-produce-keys", 1)
    t.call("console-producer", "--topic", topic, "--compression-codec", "zstd", "--reader-property", "parse.key=true", "--reader-property", "parse.headers=true",
           "--reader-property", "null.marker=NULL", given="h1:v1,h2:v2\tk1\tone\nh1:v1\tk2\tNULL\n")
    read = t.judge.fetch(topic, [0], 2)
    expect([(r.key, r.value, r.headers) for r in read] == [("k1", "one", [["h1", "v1"], ["h2", "v2"]]), ("k2", None, [["h1", "v1"]])], f"read {read}")


@tool("console-consumer")
def console_consumer(t):
    topic = t.topic("tool-consume", 1)
    t.judge.produce(topic, [{"p": 0, "k": f"k{n}", "v": f"v{n}", "t": RECENT + n, "h": [["a", str(n)]]} for n in range(50)])
    said = t.call("console-consumer", "--topic", topic, "--from-beginning", "--max-messages", "50", "--group", "tool-console", *[word for name in (
        "key", "offset", "partition", "timestamp", "headers") for word in ("--formatter-property", f"print.{name}=true")])
    has(said, r"^CreateTime:%d\tPartition:0\tOffset:7\ta:7\tk7\tv7$" % (RECENT + 7), r"Processed a total of 50 messages")
    said = t.call("console-consumer", "--topic", topic, "--partition", "0", "--offset", "45", "--max-messages", "5")
    expect([line for line in said.splitlines() if re.fullmatch(r"v\d+", line)] == [f"v{n}" for n in range(45, 50)], f"from offset 45: {said[-200:]}")
    said = t.call("console-consumer", "--include", "tool-consum.", "--from-beginning", "--max-messages", "1", "--isolation-level", "read_committed")
    has(said, r"^v0$")
    # It gives up when nothing came for so long, which on a busy machine may be before the first record.
    for patience in ("4000", "15000", "40000"):
        said = t.call("console-consumer", "--topic", "__consumer_offsets", "--from-beginning", "--timeout-ms", patience, "--formatter",
                      PACKAGE + "consumer.OffsetsMessageFormatter", code=None, timeout=120)
        if '"group":"tool-console"' in said:
            break
    has(said, r'"group":"tool-console"')


@tool("consumer-groups")
def consumer_groups(t):
    topic, group = t.topic("tool-groups", 2), "tool-group"
    base = RECENT
    t.judge.produce(topic, [{"p": n % 2, "k": None, "v": str(n), "t": base + 1000 * n} for n in range(100)])
    t.call("console-consumer", "--topic", topic, "--group", group, "--from-beginning", "--max-messages", "100")
    expect(group in t.call("consumer-groups", "--list").splitlines(), "not in --list")
    has(t.call("consumer-groups", "--list", "--state"), rf"^{group} +Empty")
    has(t.call("consumer-groups", "--describe", "--group", group), rf"^{group} +{topic} +1 +50 +50 +0 ")
    has(t.call("consumer-groups", "--describe", "--group", group, "--state"), rf"^{group} .*Empty +0")
    has(t.call("consumer-groups", "--describe", "--group", group, "--members"), r"has no active members")

    def reset(*how):
        t.call("consumer-groups", "--reset-offsets", "--group", group, "--topic", topic, *how, "--execute")
        return t.judge.committed(group, topic, [0, 1])

    has(t.call("consumer-groups", "--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--dry-run"), rf"{group} +{topic} +0 +0")
    expect(t.judge.committed(group, topic, [0, 1]) == {0: 50, 1: 50}, "--dry-run changed something")
    for how, wanted in ((["--to-earliest"], {0: 0, 1: 0}), (["--shift-by", "7"], {0: 7, 1: 7}), (["--to-offset", "11"], {0: 11, 1: 11}),
                        (["--to-datetime", time.strftime("%Y-%m-%dT%H:%M:%S.000", time.gmtime(base / 1000 + 20))], {0: 10, 1: 10}), (["--to-current"], {0: 10, 1: 10}),
                        (["--by-duration", "PT1M"], {0: 50, 1: 50}), (["--to-latest"], {0: 50, 1: 50})):
        got = reset(*how)
        expect(got == wanted, f"reset {' '.join(how)}: {got}, expected {wanted}")
    exported = t.call("consumer-groups", "--reset-offsets", "--group", group, "--topic", topic, "--to-offset", "33", "--export", "--dry-run")
    plan = "".join(line.strip('"') + "\n" for line in exported.splitlines() if re.match(rf'"?{topic}"?,', line))
    t.call("consumer-groups", "--reset-offsets", "--group", group, "--from-file", t.file(plan), "--execute")
    expect(t.judge.committed(group, topic, [0, 1]) == {0: 33, 1: 33}, f"reset from a file: {t.judge.committed(group, topic, [0, 1])}")
    has(t.call("consumer-groups", "--delete-offsets", "--group", group, "--topic", f"{topic}:1"), r"Successful")
    expect(t.judge.committed(group, topic, [0, 1]) == {0: 33, 1: -1}, "the offset of partition 1 is still there")
    has(t.call("consumer-groups", "--delete", "--group", group), r"successful")
    expect(group not in t.call("consumer-groups", "--list").splitlines(), "still in --list after --delete")


@tool("consumer-groups (KIP-848)")
def new_consumer_groups(t):
    topic, group = t.topic("tool-new-groups", 2), "tool-new-group"
    t.judge.produce(topic, [{"p": n % 2, "k": None, "v": str(n)} for n in range(40)])
    property_ = ["--command-property", "group.protocol=consumer"]
    t.call("console-consumer", "--topic", topic, "--group", group, "--from-beginning", "--max-messages", "40", *property_)
    has(t.call("consumer-groups", "--list", "--type", "consumer"), rf"^{group} +.*Consumer|^{group}$")
    has(t.call("consumer-groups", "--describe", "--group", group), rf"^{group} +{topic} +1 +20 +20 +0 ")
    has(t.call("consumer-groups", "--describe", "--group", group, "--state"), rf"^{group} .*Empty +0")
    has(t.call("groups", "--list"), rf"^{group} +Consumer +consumer")
    has(t.call("consumer-groups", "--delete", "--group", group), r"successful")
    expect(group not in t.call("consumer-groups", "--list").splitlines(), "still in --list after --delete")


@tool("groups")
def groups(t):
    topic = t.topic("tool-groups-tool", 1)
    t.judge.produce(topic, lines(3, 1))
    t.call("console-consumer", "--topic", topic, "--group", "tool-listed", "--from-beginning", "--max-messages", "3")
    has(t.call("groups", "--list"), r"^tool-listed +Classic +consumer")


@tool("get-offsets")
def get_offsets(t):
    topic = t.topic("tool-offsets", 2)
    base = RECENT
    t.judge.produce(topic, [{"p": n % 2, "k": None, "v": str(n), "t": base + 1000 * n} for n in range(20)])
    for at, wanted in (("latest", "10"), ("earliest", "0"), ("max-timestamp", "9"), (str(base + 5000), r"[23]"), ("earliest-local", "0")):
        said = t.call("get-offsets", "--topic", topic, "--time", at)
        has(said, rf"^{topic}:0:{wanted}$", rf"^{topic}:1:{wanted}$")


@tool("delete-records")
def delete_records(t):
    topic = t.topic("tool-delete", 1)
    t.judge.produce(topic, lines(30, 1))
    plan = t.file(f'{{"version": 1, "partitions": [{{"topic": "{topic}", "partition": 0, "offset": 12}}]}}')
    has(t.call("delete-records", "--offset-json-file", plan), rf"{topic}-0\s+low_watermark: 12")
    expect(t.judge.offsets(topic, [0], "earliest") == {0: 12}, "the log does not start at 12")


@tool("log-dirs")
def log_dirs(t):
    topic = t.topic("tool-dirs", 2)
    t.judge.produce(topic, lines(100, 2))
    said = t.call("log-dirs", "--describe", "--topic-list", topic)
    has(said, rf'"partition":"{topic}-0","size":[1-9]\d*,"offsetLag":0,"isFuture":false', rf'"logDir":"{re.escape(str(t.server.data))}"', r'"error":null')


@tool("reassign-partitions")
def reassign_partitions(t):
    """Partitions move between the log directories of a node of its own, and directories are cordoned."""
    with three_directories(t) as (three, dirs):
        three.call("topics", "--create", "--topic", "moved", "--partitions", "3", "--replication-factor", "1")
        lines = "".join(f"k{n % 3}\tline {n}\n" for n in range(3000))
        three.call("console-producer", "--topic", "moved", "--reader-property", "parse.key=true", given=lines)

        def places():
            said = three.call("log-dirs", "--describe", "--topic-list", "moved")
            found = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
            return {(row["partition"], row["isFuture"]): dir["logDir"] for broker in found["brokers"] for dir in broker["logDirs"] for row in dir["partitions"]}

        before = places()
        expect(len(before) == 3 and len(set(before.values())) == 3, f"three partitions over three directories: {before}")
        target = {p: dirs[(dirs.index(before[(f"moved-{p}", False)]) + 1) % 3] for p in range(3)}
        plan = three.file(json.dumps({"version": 1, "partitions": [
            {"topic": "moved", "partition": p, "replicas": [1], "log_dirs": [target[p]]} for p in range(3)]}))
        has(three.call("reassign-partitions", "--reassignment-json-file", plan, "--execute", "--replica-alter-log-dirs-throttle", "100000000"),
            r"Successfully started (log directory moves|partition reassignments?)")
        until(lambda: three.call("reassign-partitions", "--reassignment-json-file", plan, "--verify", code=None).count("completed successfully") >= 3, 40,
              "--verify says that all moves are complete")
        expect(places() == {(f"moved-{p}", False): target[p] for p in range(3)}, f"lie elsewhere than asked for: {places()}")
        said = three.call("console-consumer", "--topic", "moved", "--from-beginning", "--max-messages", "3000", "--timeout-ms", "20000")
        expect(sorted(line for line in said.splitlines() if line.startswith("line ")) == sorted(f"line {n}" for n in range(3000)), "records differ after the moves")
        broker = ["--entity-type", "brokers", "--entity-name", "1"]
        three.call("configs", "--alter", *broker, "--add-config", f"cordoned.log.dirs=[{dirs[0]},{dirs[1]}]")
        three.call("topics", "--create", "--topic", "later", "--partitions", "4", "--replication-factor", "1")
        said = three.call("log-dirs", "--describe", "--topic-list", "later")
        found = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
        holding = {dir["logDir"] for broker in found["brokers"] for dir in broker["logDirs"] if dir["partitions"]}
        expect(holding == {dirs[2]}, f"cordoned directories got partitions: {holding}")


@contextlib.contextmanager
def three_directories(t):
    """Tools for a second node like the one at hand, with three log directories."""
    other = copy.copy(t.server)
    other.directory = Path(tempfile.mkdtemp(dir=t.scratch))
    other.data, other.log = other.directory / "data", other.directory / "server.log"
    dirs = [str(other.data), str(other.directory / "data-2"), str(other.directory / "data-3")]
    other.overrides = {**t.server.overrides, "log.dirs": ",".join(dirs)}
    other.process = None
    other.new_ports()
    try:
        other.start()
        yield Shell(other, None, t.classpath, t.scratch), dirs
    finally:
        other.remove()


@tool("producer-perf-test")
def producer_perf(t):
    topic = t.topic("tool-perf", 3)
    said = t.call("producer-perf-test", "--topic", topic, "--num-records", "50000", "--record-size", "100", "--throughput", "-1", "--command-property",
                  "acks=all", "compression.type=lz4")
    has(said, r"50000 records sent, [\d.]+ records/sec")
    ends = t.judge.offsets(topic, [0, 1, 2], "latest")
    expect(sum(ends.values()) == 50000, f"the log holds {sum(ends.values())} records")


@tool("consumer-perf-test")
def consumer_perf(t):
    topic = t.topic("tool-read-perf", 3)
    t.judge.produce(topic, lines(20000, 3))
    said = t.call("consumer-perf-test", "--topic", topic, "--num-records", "20000", "--hide-header", "--timeout", "10000")
    fields = [line.split(", ") for line in said.splitlines() if line.count(", ") >= 8]
    expect(fields and int(fields[-1][4]) >= 20000, f"said: {said[-200:]}")


@tool("e2e-latency", quick=False)
def e2e(t):
    topic = t.topic("tool-e2e", 1)
    said = t.call("e2e-latency", "--topic", topic, "--num-records", "200", "--producer-acks", "all", "--record-size", "100")
    has(said, r"Avg latency: [\d.]+ ms", r"Percentiles: 50th = \d+, 99th = \d+")


@tool("broker-api-versions")
def api_versions(t):
    said = t.call("broker-api-versions")
    has(said, r"id: 1 ", r"Produce\(0\): \d+ to 1[3-9]", r"Fetch\(1\): \d+ to 1[7-9]", r"ApiVersions\(18\): 0 to [4-9]")
    expect("UNSUPPORTED" not in re.findall(r"JoinGroup\(11\): .*", said)[0], "JoinGroup is not offered")


@tool("metadata-quorum")
def metadata_quorum(t):
    has(t.call("metadata-quorum", "describe", "--status"), r"LeaderId: +1", r"CurrentVoters: +\[.*1", r"HighWatermark: +\d+")
    has(t.call("metadata-quorum", "describe", "--replication"), r"^1\s.*Leader")


@tool("features")
def features(t):
    has(t.call("features", "describe"), r"Feature: metadata\.version\s.*FinalizedVersionLevel: (\d|4)", r"Epoch: \d+")


@tool("features (update)", quick=False)
def features_update(t):
    """One level down and up again; what is not supported is refused."""
    def level():
        found = re.search(r"Feature: transaction\.version\s.*FinalizedVersionLevel: (\d+)", t.call("features", "describe"))
        return int(found.group(1)) if found else None
    before = level()
    expect(before is not None, "transaction.version is not listed")
    t.call("features", "downgrade" if before == 2 else "upgrade", "--feature", "transaction.version=1")
    expect(level() == 1, f"transaction.version is {level()} after setting it to 1")
    t.call("features", "upgrade", "--feature", "transaction.version=2")
    expect(level() == 2, f"transaction.version is {level()} after setting it to 2")
    has(t.call("features", "upgrade", "--feature", "transaction.version=90", code=1), r"(?i)could not|invalid|not support")


@tool("transactions")
def transactions(t):
    """Who has written to a partition and with which sequence; which transactions there are; an open one is ended by hand."""
    topic = t.topic("tool-producers", 1)
    t.judge.produce(topic, lines(10, 1), idempotent=True)
    has(t.call("transactions", "describe-producers", "--topic", topic, "--partition", "0"), r"^\d+\s+0\s+-1\s+9\s+\d{13}\s+None")
    topic, txid = t.topic("tool-transactions", 1), "tool-transaction"
    one = {"p": 0, "k": None, "v": "open"}
    t.judge.call("txn", txid=txid, topic=topic, records=[one], end="open", timeout_ms=120000)
    has(t.call("transactions", "list"), rf"^{txid}\s+1\s+\d+\s+Ongoing")
    has(t.call("transactions", "list", "--duration-filter", "0"), rf"^{txid}\s")
    expect(txid not in t.call("transactions", "list", "--duration-filter", "3600000"), "a filter by duration")
    expect(txid not in t.call("transactions", "list", "--transactional-id-pattern", "other.*"), "a filter by pattern")
    has(t.call("transactions", "describe", "--transactional-id", txid), rf"^1\s+{txid}\s+\d+\s+\d+\s+Ongoing\s+120000\s+\d{{13}}\s+\d+\s+{topic}-0")
    has(t.call("transactions", "describe-producers", "--topic", topic, "--partition", "0"), r"^\d+\s+\d+\s+(-1|\d+)\s+0\s+\d{13}\s+0")
    has(t.call("transactions", "find-hanging", "--broker-id", "1", "--topic", topic), r"^Topic\s+Partition")
    expect([] == t.judge.fetch(topic, [0], 1, timeout_ms=1000, isolation="committed"), "an open transaction is read")
    t.call("transactions", "abort", "--topic", topic, "--partition", "0", "--start-offset", "0")
    end = t.judge.fetch(topic, [0], 1, timeout_ms=1000, isolation="committed")
    expect(end == [], f"an aborted transaction is read: {end}")
    expect("None" in t.call("transactions", "describe-producers", "--topic", topic, "--partition", "0").splitlines()[-1], "still open after abort")


@tool("cluster")
def cluster(t):
    has(t.call("cluster", "cluster-id", *t.bootstrap, connect=False), r"Cluster ID: [\w-]{10,}")
    has(t.call("cluster", "list-endpoints", *t.bootstrap, connect=False), rf"1 +127\.0\.0\.1 +{t.server.port}")


@tool("leader-election", quick=False)
def leader_election(t):
    topic = t.topic("tool-election", 1)
    has(t.call("leader-election", "--election-type", "preferred", "--topic", topic, "--partition", "0"), r"(?i)valid replica already elected|no election|not needed|Valid")


@tool("verifiable-producer", quick=False)
def verifiable(t):
    topic = t.topic("tool-verifiable", 1)
    said = t.call("verifiable-producer", "--topic", topic, "--max-messages", "200", "--acks", "-1")
    has(said, r'"sent":200', r'"acked":200')
    said = t.call("verifiable-consumer", "--topic", topic, "--group-id", "tool-verifiable", "--max-messages", "200", "--reset-policy", "earliest")
    has(said, r'"name":"records_consumed"', r'"name":"offsets_committed"')


def cells(server, quick, logs, scratch, names=None):
    """(row, column, function) for every tool; skipped as one when Apache's tools are not to be had."""
    try:
        version, classpath = fetch.kafka()
        row = f"Apache Kafka's tools {version}"
    except fetch.Missing as missing:
        version, classpath, row, why = None, None, "Apache Kafka's tools", str(missing)
    judges = Judges(server, logs)
    out = []
    for name, function in TOOLS.items():
        if names is not None and name not in names or names is None and quick and not function.quick:
            continue
        out.append((row, name, (lambda: Result(SKIP, why)) if version is None
                    else lambda function=function: run(function, server, judges, classpath, scratch)))
    return out, judges


def run(function, server, judges, classpath, scratch):
    return judged(lambda: function(Shell(server, judges.mine(), classpath, Path(scratch))))
