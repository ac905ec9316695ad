"""What the node itself must do with what the clients left on it: be found again, whole.

Runs after all other cells, one after the other, since each of them ends the node and starts it again.
"""

import copy
import hashlib
import json
import re
import shutil
import time
from concurrent.futures import ThreadPoolExecutor

from harness.server import Apache, Barnabas

from . import fetch
from .driver import Driver, Failure, Refusal
from .scenarios import expect
from .suite import PASS, SKIP, Result, judged
from .tools import Shell

ROW = "The node"
TOPICS_MOST = 24


class Memory:
    """What an independent client finds: every record of some topics, and what groups have committed."""

    def __init__(self, server, command, logs):
        self.server, self.command, self.logs = server, command, logs
        self.topics = None
        self.groups = None
        self.deleted_from = []

    def client(self):
        return Driver(self.command, self.server.address, self.logs / "memory.log")

    def look(self, within=30):
        """Asks until the node leads everything again, which Kafka does a while after its first answer."""
        deadline = time.monotonic() + within
        while True:
            try:
                return self.look_once()
            except Refusal:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def look_once(self):
        client = self.client()
        try:
            if self.topics is None:
                names = sorted(name for name in client.call("list_topics") if name.startswith(("t-", "tool-")))
                # Where records were deleted the log's start is noted now and then only, here as in Kafka: kill -9 may
                # bring back what was deleted last. A clean stop may not; that is looked at by itself.
                self.deleted_from = [name for name in names if "out-of-range" in name or "admin-records" in name][:3]
                # Of transactions' offsets some are markers, which no reader gets: lab/compat/dirs compares those, record by record.
                names = [name for name in names if not any(word in name for word in ("out-of-range", "records", "delete", "transaction"))]
                self.topics = names[::max(1, len(names) // TOPICS_MOST)]
                self.groups = [name for name in client.call("list_groups") if "range" in name or "resume" in name][:6]
            with ThreadPoolExecutor(4) as pool:
                seen = dict(pool.map(self.contents, self.topics))
            seen["groups"] = {group: self.committed(client, group) for group in self.groups}
            return seen
        finally:
            client.close()

    def starts(self):
        client = self.client()
        try:
            return {topic: client.offsets(topic, [0], "earliest") for topic in self.deleted_from}
        finally:
            client.close()

    def contents(self, topic):
        client = self.client()
        try:
            parts = list(range(client.call("describe_topic", name=topic)["partitions"]))
            first, last = client.offsets(topic, parts, "earliest"), client.offsets(topic, parts, "latest")
            count = sum(last[p] - first[p] for p in parts)
            read = client.fetch(topic, parts, count, max_bytes=8000000) if count else []
        finally:
            client.close()
        expect(len(read) == count, f"{topic}: {len(read)} of {count} records")
        whole = sorted((r.partition, r.offset, json.dumps([r.key, r.value, r.headers, r.timestamp])) for r in read)
        return topic, (first, last, hashlib.sha256(repr(whole).encode()).hexdigest())

    def committed(self, client, group):
        topic = re.sub(r"^group-(.*)-\d+$", r"t-\1-1", group)
        return client.committed(group, topic, [0, 1]) if topic in self.topics else None


def same(before, after):
    changed = [name for name, was in before.items() if after.get(name) != was]
    expect(not changed, f"{len(changed)} of {len(before)} differ: " + "; ".join(f"{n}: {before[n]} → {after.get(n)}" for n in changed[:2])[:260])


def run(server, peer, logs, progress=None):
    """The row's results, in order."""
    memory = Memory(server, fetch.python_client("confluent_driver.py", "confluent-kafka")()[1], logs)
    results = {}

    def cell(name, function):
        said = None

        def play():
            nonlocal said
            said = function()

        result = judged(play)
        if result.status == PASS:
            seconds, result = result.seconds, said if isinstance(said, Result) else Result(PASS, said or "")
            result.seconds = seconds
        results[ROW, name] = result
        if progress:
            progress(ROW, name, result, 0, 0)

    before = {}
    cell("what clients left is readable", lambda: before.update(memory.look()))
    cell("a second instance is refused", lambda: second_instance(server))
    cell("kill -9: everything is found again", lambda: again(server, server.kill, memory, before))
    cell("clean stop: everything is found again", lambda: clean_stop(server, memory, before))
    server.stop()
    cell("kafka-dump-log reads every file", lambda: dump_log(server, logs))
    if peer == "barnabas":
        cell("Apache Kafka serves the directory", lambda: hand_over(server, memory, before))
    return results


def again(server, end, memory, before):
    end()
    server.start()
    same(before, memory.look())
    return f"ready {server.ready_after:.2f} s after exec"


def clean_stop(server, memory, before):
    starts = memory.starts()
    said = again(server, lambda: expect(server.stop(), "SIGTERM did not end it within 30 s"), memory, before)
    same(starts, memory.starts())
    return said


def second_instance(server):
    other = copy.copy(server)
    other.directory = server.directory / "second"
    other.directory.mkdir(exist_ok=True)
    other.log = other.directory / "server.log"
    other.new_ports()
    # Apache Kafka tells at once that the directory is locked, and takes its time to end.
    other.process, other.ready_within = None, 15 if isinstance(server, Barnabas) else 90
    try:
        other.start()
    except RuntimeError as refused:
        expect("was not ready" not in str(refused), "it neither served nor ended")
        said = other.log.read_text(errors="replace")
        expect(re.search(r"(?i)lock|in use|another|already", said), f"it ended without a word about the other: {said[-200:]}")
        return ""
    finally:
        other.kill()
    raise Failure("a second instance serves the same directory")


def dump_log(server, logs):
    """Every kind of file, for the largest partitions and for the metadata log."""
    try:
        _, classpath = fetch.kafka()
    except fetch.Missing as missing:
        return Result(SKIP, str(missing))
    shell = Shell(server, None, classpath, logs)
    segments = sorted(server.data.glob("*/*.log"), key=lambda path: -path.stat().st_size)
    plain = [path for path in segments if not path.parent.name.startswith("__")][:25]
    offsets = [path for path in segments if path.parent.name.startswith("__consumer_offsets")]
    metadata = [path for path in segments if path.parent.name.startswith("__cluster_metadata")]
    beside = [other for path in plain for kind in ("index", "timeindex", "txnindex", "snapshot") for other in path.parent.glob(f"*.{kind}")]
    jobs = [(["--deep-iteration", "--print-data-log"], plain), (["--index-sanity-check"], [p for p in beside if p.suffix == ".index"]),
            ([], [p for p in beside if p.suffix == ".timeindex"]), ([], [p for p in beside if p.suffix in (".snapshot", ".txnindex")]),
            (["--offsets-decoder"], offsets), (["--cluster-metadata-decoder"], metadata),
            (["--cluster-metadata-decoder"], list(server.data.glob("__cluster_metadata-0/*.checkpoint")))]
    count = 0
    for flags, files in jobs:
        if not files:
            continue
        said = shell.call("dump-log", *flags, "--files", ",".join(map(str, files)), connect=False, timeout=120)
        (logs / f"dump-log-{count}.txt").write_text(said)
        count += len(files)
        bad = re.findall(r"^(?:.*isvalid: false.*|Non-consecutive.*|Found .*|Mismatches in.*|Could not .*|.*Exception.*|.*[Cc]orrupt.*)$", said, re.M)
        expect(not bad, f"{len(bad)} complaints: {bad[:2]}")
        if files is metadata:
            expect(re.search(r"TOPIC_RECORD", said), "no TOPIC_RECORD in the metadata log")
        if files is plain:
            expect(said.count("isvalid: true") >= len(plain), "batches that are not called valid")
    return f"{count} files"


def hand_over(server, memory, before):
    """Barnabas's directory, started by Apache Kafka: same records, same committed offsets."""
    try:
        version, classpath = fetch.kafka()
    except fetch.Missing as missing:
        return Result(SKIP, str(missing))
    apache = Apache(server.directory / "apache", version, classpath)
    shutil.copytree(server.data, apache.data)
    (apache.data / ".lock").unlink(missing_ok=True)
    memory.server = apache
    try:
        apache.start()
        same(before, memory.look())
    finally:
        apache.kill()
        memory.server = server
    return f"by Apache Kafka {version}"
