"""The Connect story: two distributed workers with exactly-once source support; one is killed with −9, and so is the broker.

A file grows, line by line. FileStreamSource brings it into the topic `lines`, MirrorSource copies that into `here.lines`, FileStreamSink
writes that into a file. Of both source connectors exactly-once is *required* (`exactly.once.support`): Connect itself refuses them where the
connector does not say that it can. While lines flow, the worker that runs the file's task is killed and later started again, and then the
broker. At the end read_committed must show every line once and in the file's order, in both topics. The file of the sink must have every
line; FileStreamSink promises no more than at least once, and how many it has twice is said. Then everything is stopped and started again:
connectors, offsets and states must be there as they were (they live in three internal topics), and lines go on from where they stood.

What it does not show: several brokers; a mirror between two clusters (both of its ends are this node, and so there is no heartbeat connector:
heartbeats are mirrored without being asked for, here in a circle).
"""

import argparse
import json
import sys
import threading
import time
import urllib.error
import urllib.request

from compat import fetch
from harness.ports import free_port

from . import text
from .story import VERSIONS, Failed, Java, Node, compiled, create, ends, java_words, read, told, until

MIRRORED = "here.lines"
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"


def arguments(words):
    parser = argparse.ArgumentParser(prog="lab/compat/stories/run connect", description="Kafka Connect, exactly once, with a worker and the broker killed.")
    parser.add_argument("--lines", type=int, default=30_000)
    parser.add_argument("--rounds", type=int, default=3, help="kills of a worker, and as many of the broker")
    parser.add_argument("--quick", action="store_true", help="4,000 lines and one kill each: what `make test` runs")
    parser.add_argument("--peer", default="barnabas", choices=("barnabas", "kafka"))
    parser.add_argument("--binary", help="the barnabas program")
    parser.add_argument("--keep", action="store_true", help="keep data and logs")
    options = parser.parse_args(words)
    if options.quick:
        options.lines, options.rounds = 4_000, 1
    return options


def connectors(node, directory):
    mirror = {"source.cluster.alias": "here", "target.cluster.alias": "there", "source.cluster.bootstrap.servers": node.address, "target.cluster.bootstrap.servers": node.address,
              "key.converter": BYTES, "value.converter": BYTES, "replication.factor": "1", "offset-syncs.topic.replication.factor": "1",
              "sync.topic.acls.enabled": "false", "topics": "lines", "refresh.topics.interval.seconds": "5"}
    classes = "org.apache.kafka.connect"
    return {
        "file-source": {"connector.class": f"{classes}.file.FileStreamSourceConnector", "file": str(directory / "in"), "topic": "lines", "tasks.max": "1", "batch.size": "100",
                        "exactly.once.support": "required", "transaction.boundary": "poll"},
        "mirror": {"connector.class": f"{classes}.mirror.MirrorSourceConnector", "tasks.max": "1", "exactly.once.support": "required", "source.consumer.isolation.level": "read_committed",
                   "consumer.poll.timeout.ms": "200", **mirror},
        "file-sink": {"connector.class": f"{classes}.file.FileStreamSinkConnector", "file": str(directory / "out"), "topics": MIRRORED, "tasks.max": "1",
                      "consumer.override.isolation.level": "read_committed", "consumer.override.auto.offset.reset": "earliest", "consumer.override.session.timeout.ms": "6000"},
    }


class Worker:
    """One distributed worker with its REST port."""

    def __init__(self, name, classpath, node, directory):
        self.name, self.port, self.java, self.log, self.kills = name, free_port(), None, directory / f"{name}.log", 0
        settings = {"bootstrap.servers": node.address, "group.id": "story", "listeners": f"http://127.0.0.1:{self.port}", "rest.advertised.host.name": "127.0.0.1",
                    "key.converter": "org.apache.kafka.connect.storage.StringConverter", "value.converter": "org.apache.kafka.connect.storage.StringConverter",
                    "exactly.once.source.support": "enabled", "scheduled.rebalance.max.delay.ms": "2000", "session.timeout.ms": "6000", "heartbeat.interval.ms": "1000",
                    "offset.flush.interval.ms": "1000", "plugin.discovery": "hybrid_warn", "offset.storage.partitions": "5",
                    **{f"{what}.storage.topic": f"connect-{what}" for what in ("config", "offset", "status")},
                    **{f"{what}.storage.replication.factor": "1" for what in ("config", "offset", "status")}}
        path = directory / f"{name}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        self.words = java_words(classpath, "org.apache.kafka.connect.cli.ConnectDistributed", str(path), heap="400m")

    @property
    def id(self):
        return f"127.0.0.1:{self.port}"

    def start(self):
        self.java = Java(self.words, self.log)

    def ask(self, path, body=None, method=None, within=30):
        """The answer of its REST interface, or None while it has none."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=within) as answer:
                said = answer.read()
                return json.loads(said) if said else {}
        except urllib.error.HTTPError as refused:
            # 404: not known yet; 409: a rebalance is under way; 5xx: not ready.
            if refused.code in (404, 409) or refused.code >= 500:
                return None
            raise Failed(f"{self.name} answers {path} with {refused.code}: {refused.read().decode(errors='replace')[:400]}") from None
        except OSError:
            return None

    def check(self):
        if self.java.process.poll() is not None:
            raise Failed(f"{self.name} ended by itself with {self.java.process.returncode}: {self.java.said()[-600:]}")


class Workers:
    def __init__(self, classpath, node, directory):
        self.all = [Worker(f"worker-{number}", classpath, node, directory) for number in (1, 2)]
        self.revived = 0

    def start(self):
        for worker in self.all:
            worker.start()
        for worker in self.all:
            until(lambda: worker.check() or worker.ask("/") is not None, f"{worker.name} has not begun to answer", 90)

    def ask(self, path, *more):
        return next((answer for worker in self.all if worker.java.process.poll() is None and (answer := worker.ask(path, *more)) is not None), None)

    def statuses(self):
        found = self.ask("/connectors?expand=status")
        return {name: one["status"] for name, one in found.items()} if found else {}

    def is_running(self, wanted):
        """Whether each of these connectors and its tasks run; a task that failed is started again, and counted."""
        found = self.statuses()
        for name, status in found.items():
            for task in status["tasks"]:
                if task["state"] == "FAILED":
                    print(f"  a task of {name} failed and is started again: {task.get('trace', '')[:300]}", flush=True)
                    self.revived += 1
                    self.ask(f"/connectors/{name}/tasks/{task['id']}/restart", {}, "POST")
        return all(name in found and found[name]["connector"]["state"] == "RUNNING" and found[name]["tasks"] and all(task["state"] == "RUNNING" for task in found[name]["tasks"]) for name in wanted)

    def owner(self, connector):
        """The worker that runs its only task."""
        tasks = (self.statuses().get(connector) or {}).get("tasks") or [{}]
        return next((worker for worker in self.all if worker.id == tasks[0].get("worker_id")), None)


class Writer:
    """Appends lines to the file that is read, as far as it is let."""

    def __init__(self, path, lines):
        self.path, self.lines, self.written, self.allowed, self.ended = path, lines, 0, 0, False
        path.write_bytes(b"")
        threading.Thread(target=self._write, daemon=True).start()

    def _write(self):
        with open(self.path, "ab", buffering=0) as file:
            while not self.ended:
                piece = self.lines[self.written:min(self.allowed, self.written + 20)]
                if piece:
                    file.write("".join(f"{line}\n" for line in piece).encode())
                    self.written += len(piece)
                time.sleep(0.02)


def committed(node, topic):
    return sum(ends(node.server.port, topic, 1).values())


def numbered(directory, count):
    """Real lines, each with its number before it."""
    text.make(directory / "text", 10 * count)
    lines = (directory / "text").read_text().splitlines()
    return [f"{number:08d} {lines[number % len(lines)]}" for number in range(count)]


def moved(node, before, what):
    until(lambda: committed(node, MIRRORED) > before, f"{what}: the mirrored topic stands at {before}", 180)


def kill_worker(node, workers):
    """kill −9 of the one that reads the file; when the other has taken over it comes back."""
    victim = until(lambda: workers.owner("file-source"), "nobody runs the file's task")
    begun, before = time.monotonic(), committed(node, MIRRORED)
    victim.java.kill()
    victim.kills += 1
    until(lambda: workers.owner("file-source") not in (None, victim), "the other worker does not take the file's task over", 180)
    moved(node, before, "after the worker's kill")
    print(f"  {victim.name} killed; lines go on after {time.monotonic() - begun:.1f} s with the other", flush=True)
    victim.start()
    until(lambda: victim.check() or victim.ask("/") is not None, f"{victim.name} has not begun to answer", 90)


def kill_broker(node):
    begun = time.monotonic()
    node.kill()
    before = until(lambda: committed(node, MIRRORED), "the broker does not answer")
    moved(node, before, "after the broker's kill")
    print(f"  broker killed; lines go on after {time.monotonic() - begun:.1f} s", flush=True)


def arrived(node, workers, wanted, count, out):
    """Waits until the sink's file has the last line."""
    last = f"{count - 1:08d} ".encode()

    def look():
        workers.is_running(wanted)
        with open(out, "rb") as file:
            return last in file.read()
    try:
        until(look, "", 120, 0.5)
    except Failed:
        print(f"  the last line has not come to the sink's file; {committed(node, 'lines')} and {committed(node, MIRRORED)} are the topics' ends", flush=True)


def kept(workers, names):
    """What the internal topics hold: configs, and offsets of the sources."""
    return {name: (workers.ask(f"/connectors/{name}/config"), workers.ask(f"/connectors/{name}/offsets")) for name in names}


def at_rest(workers, names):
    """`kept`, once two looks are the same: offsets are committed some time after what they stand for has arrived."""
    before = None
    for _ in range(20):
        now = kept(workers, names)
        if now == before:
            return now
        before = now
        time.sleep(2)
    raise Failed("offsets go on though nothing is written any more")


def whether_once(classpath, node, topic, lines, directory):
    """(each line once and in order, how many are missing, how many too many, how many of aborted transactions were not shown)"""
    found = [value for _, _, _, value in read(classpath, node, topic, "string", directory)]
    everything = len(read(classpath, node, topic, "string", directory, "read_uncommitted"))
    return found == lines, len(set(lines) - set(found)), len(found) - len(set(found)), everything - len(found)


def tell(options, directory):
    version, libraries = fetch._classpath("connect", "connect.xml", VERSIONS)
    classpath = compiled("connect", ("Lines",), libraries)
    lines = numbered(directory, options.lines)
    begun = time.monotonic()
    node = Node(options, directory / "node", {})
    node.start()
    print(f"{node.label} on {node.address}; Kafka Connect {version}; {len(lines):,} lines", flush=True)
    create(node, {"lines": 1, MIRRORED: 1})
    writer = Writer(directory / "in", lines)
    workers = Workers(classpath, node, directory)
    workers.start()
    wanted = connectors(node, directory)
    for name, config in wanted.items():
        until(lambda: workers.ask(f"/connectors/{name}/config", config, "PUT"), f"{name} is not taken", 60)
    writer.allowed = 200
    until(lambda: workers.is_running(wanted), "not all connectors run", 120, 0.5)
    moved(node, 0, "at the beginning")
    steps = 2 * options.rounds
    ordinary = int(len(lines) * 0.9)
    for number in range(steps):
        writer.allowed = ordinary * (number + 1) // steps
        time.sleep(1)
        kill_broker(node) if number % 2 else kill_worker(node, workers)
    arrived(node, workers, wanted, ordinary, directory / "out")
    before = at_rest(workers, wanted)
    print("  everything is stopped and started again", flush=True)
    for worker in workers.all:
        worker.java.stop()
    node.restart()
    workers.start()
    until(lambda: workers.is_running(wanted), "not all connectors run again after the restart", 120, 0.5)
    after = kept(workers, wanted)
    for name in wanted:
        if after[name] != before[name]:
            print(f"  {name} was {before[name]} and is {after[name]}")
    survived = after == before
    writer.allowed = len(lines)
    arrived(node, workers, wanted, len(lines), directory / "out")
    for worker in workers.all:
        worker.java.stop()
    writer.ended = True
    claims, words = {"connectors, their settings and offsets survive a restart of everything": survived}, []
    for topic in ("lines", MIRRORED):
        claims[f"{topic}: every line once, in order"], missing, doubled, hidden = whether_once(classpath, node, topic, lines, directory)
        words.append(f"{topic} {missing} lost, {doubled} doubled" + (f" ({hidden} of aborted transactions not shown)" if hidden else ""))
    written = (directory / "out").read_text().splitlines()
    claims["the sink's file has every line"] = set(written) == set(lines)
    return (f"Kafka Connect {version} on {node.label}: 2 workers, exactly-once source; {len(lines):,} lines file → topic → mirror → file, {sum(worker.kills for worker in workers.all)} workers and "
            f"{node.kills} brokers killed with -9, one restart of everything: {'; '.join(words)}; the sink's file (at least once) {len(set(lines) - set(written))} lost, "
            f"{len(written) - len(set(written))} doubled; {workers.revived} tasks restarted by hand; internal topics {'as they were' if survived else 'CHANGED'}; {time.monotonic() - begun:.0f} s"), claims


if __name__ == "__main__":
    given = arguments(sys.argv[1:])
    sys.exit(told("connect-story", given, lambda directory: tell(given, directory)))
