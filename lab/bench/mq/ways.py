"""The ways between a queue and a topic, and one run of one way.

| way | queue manager | coupling |
|---|---|---|
| direct | none: IBM's client puts into the node's MQ listener | the thread `mq` of the node |
| bridge in, out | Artemis, AMQP | the process of `barnabas bridge` |
| Connect in, out | Artemis, AMQP | the JVM of a standalone worker with java/JmsSource, JmsSink |
"""

import json
import os
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from harness.ports import free_port
from harness.process import NodeProcess
from harness.server import HOST, Barnabas, write_properties
from harness.usage import TICK, cpu_seconds

from .counting import Proxy
from .programs import Failed, Program, ends, java, until

CORES = os.cpu_count()
DRAIN_S = 60


@dataclass(frozen=True)
class Load:
    """`unit`: messages of a unit of work of MQ (0: without syncpoint). `clients`: connections of the sender."""

    size: int
    rate: int
    seconds: int
    warm: int = 4
    unit: int = 1
    clients: int = 0

    @property
    def threads(self):
        """A put waits for its answer: more clients are needed for a higher rate. A message of a unit waits for the whole unit: fewer clients fill theirs sooner."""
        return self.clients or (16 if self.rate <= 3000 else 64) // (4 if self.unit > 1 else 1)

    @property
    def is_idle(self):
        return self.rate <= 2

    def named(self, with_unit):
        size = f"{self.size // 1000} kB" if self.size >= 1000 else f"{self.size} B"
        rate = "one each 500 ms" if self.is_idle else f"{self.rate:,}/s"
        unit = "" if not with_unit else ", no syncpoint" if self.unit == 0 else f", syncpoint each {self.unit}"
        return f"{size}, {rate}{unit}"


def thread_seconds(pid, name):
    """CPU of the threads of that name."""
    ticks = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            if (task / "comm").read_text().strip() == name:
                fields = (task / "stat").read_text().rsplit(")", 1)[1].split()
                ticks += int(fields[11]) + int(fields[12])
        except OSError:
            continue
    return ticks / TICK


def machine_seconds():
    """CPU of everything that runs here."""
    fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    idle = fields[3] + fields[4]
    return (sum(fields) - idle) / TICK


class StudyNode(Barnabas):
    """One partition a queue, everything synced, no logins: the two listeners are on."""

    def new_ports(self):
        super().new_ports()
        self.proxied, self.amqp_port, self.mq_port = [], free_port(), free_port()

    def properties(self):
        return {**super().properties(), "amqp.listener": f"{HOST}:{self.amqp_port}", "mq.listener": f"{HOST}:{self.mq_port}",
                "mq.queue.manager": "QM1", "num.partitions": "1", "max.message.bytes": "4000000"}


class Stage:
    """Both brokers, and where programs log."""

    def __init__(self, directory, binary, classpath):
        self.directory, self.binary, self.classpath = directory, binary, classpath
        self.node = StudyNode(directory / "node", binary, {})
        self.artemis = ends.Artemis(directory / "artemis")
        self.log = directory / "programs.log"

    def start(self):
        self.node.start()
        self.artemis.start()

    def warm(self, seconds):
        """Artemis compiles what it does under load: as many puts and gets as there can be, before anything is measured."""
        reader, sender = self.program("JmsRead", self.artemis.port, "WARM"), self.program("JmsPut", self.artemis.port, "WARM", 1000, 0, 32)
        try:
            reader.wait_for("READY", 60)
            sender.wait_for("READY", 60)
            sender.say(f"GO {int(time.time() * 1000)} {seconds}")
            put = int(sender.wait_for("DONE", seconds + 60).split()[1])
            until(lambda: reader.count_at(time.time() + 1) >= put, "Artemis gives back what was put", DRAIN_S)
        finally:
            reader.end()
            sender.end()

    def program(self, *words):
        return Program(self.classpath, self.log, *words)

    def make_topic(self, name):
        made = subprocess.run([str(self.binary), "topics", "--bootstrap-server", self.node.address, "--create", "--if-not-exists", "--topic", name, "--partitions", "1"],
                              capture_output=True, text=True)
        if made.returncode != 0:
            raise Failed(f"topic {name}: {made.stdout}{made.stderr}")


class Way:
    """How messages get from a sender to a reader."""

    name, has_unit = "", False

    def __init__(self, stage):
        self.stage = stage

    def start(self):
        """Starts the coupling."""

    def stop(self):
        """Ends it."""

    def sender(self, load):
        raise NotImplementedError

    def reader(self):
        raise NotImplementedError

    def processes(self):
        """Name → pid, beside sender and reader."""
        return {"node": self.stage.node.pid, "Artemis": self.stage.artemis.pid, **self.own()}

    def own(self):
        return {}

    def coupling_seconds(self):
        raise NotImplementedError

    def requests(self):
        """(requests to the queue manager, messages) so far, where the coupling says so itself."""
        return None


class Direct(Way):
    name, has_unit = "direct", True

    def start(self):
        self.stage.make_topic("DIRECT")

    def sender(self, load):
        return self.stage.program("MqPut", self.stage.node.mq_port, "DIRECT", load.size, load.rate, load.threads, load.unit)

    def reader(self):
        return self.stage.program("KafkaRead", self.stage.node.address, "DIRECT")

    def processes(self):
        return {"node": self.stage.node.pid}

    def coupling_seconds(self):
        return thread_seconds(self.stage.node.pid, "mq")


class In(Way):
    """A queue of Artemis → a topic."""

    def sender(self, load):
        return self.stage.program("JmsPut", self.stage.artemis.port, ends.IN, load.size, load.rate, load.threads)

    def reader(self):
        return self.stage.program("KafkaRead", self.stage.node.address, self.topic)


class Out(Way):
    """A topic → a queue of Artemis."""

    def sender(self, load):
        return self.stage.program("KafkaPut", self.stage.node.address, self.topic, load.size, load.rate)

    def reader(self):
        return self.stage.program("JmsRead", self.stage.artemis.port, ends.OUT)


class Bridge(NodeProcess):
    label = "the bridge"

    def __init__(self, stage, settings):
        self.log, self.page = stage.directory / "bridge.log", free_port()
        common = {"bootstrap.servers": stage.node.address, "amqp.url": f"amqp://{stage.artemis.address}", "mq.user.name": "admin", "mq.password": "admin",
                  "metrics.listener": f"{HOST}:{self.page}"}
        self.words = [stage.binary, "bridge", write_properties(stage.directory / f"{settings['name']}.properties", {**settings, **common})]

    def metric(self, name):
        with urllib.request.urlopen(f"http://{HOST}:{self.page}/metrics", timeout=5) as answer:
            text = answer.read().decode()
        return next((float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(f"barnabas_bridge_{name}{{")), None)

    def is_running(self):
        try:
            with urllib.request.urlopen(f"http://{HOST}:{self.page}/metrics", timeout=5) as answer:
                return 'state="running"' in answer.read().decode()
        except OSError:
            return False


class Bridged:
    """The native bridge. `settings` are the connector's own."""

    def start(self):
        self.stage.make_topic(self.topic)
        self.bridge = Bridge(self.stage, self.settings)
        self.bridge.run(self.bridge.words)
        self.bridge.wait_until(self.bridge.is_running, 30, every=0.1)

    def stop(self):
        if not self.bridge.stop(20):
            raise Failed(f"the bridge does not stop: {self.bridge.last_lines()}")

    def own(self):
        return {"bridge": self.bridge.pid}

    def coupling_seconds(self):
        return cpu_seconds(self.bridge.pid)

    def requests(self):
        return self.bridge.metric("requests_total"), self.bridge.metric("messages_total")


class BridgeIn(Bridged, In):
    name, topic = "bridge in", "BRIDGE.IN"
    settings = {"name": "in", "connector.class": "com.ibm.eventstreams.connect.mqsource.MQSourceConnector", "mq.queue": ends.IN, "topic": topic,
                "mq.record.builder": "com.ibm.eventstreams.connect.mqsource.builders.DefaultRecordBuilder"}


class BridgeOut(Bridged, Out):
    name, topic = "bridge out", "BRIDGE.OUT"
    settings = {"name": "out", "connector.class": "com.ibm.eventstreams.connect.mqsink.MQSinkConnector", "mq.queue": ends.OUT, "topics": topic,
                "mq.message.builder": "com.ibm.eventstreams.connect.mqsink.builders.DefaultMessageBuilder"}


class Connected:
    """A standalone worker of Connect, with a connector of java/."""

    def start(self):
        self.stage.make_topic(self.topic)
        self.worker, self.port, self.proxy = NodeProcess(), free_port(), None
        self.worker.label, self.worker.log = "Connect", self.stage.directory / "connect.log"
        directory, converter = self.stage.directory, "org.apache.kafka.connect.converters.ByteArrayConverter"
        worker = {"bootstrap.servers": self.stage.node.address, "key.converter": converter, "value.converter": converter, "plugin.discovery": "only_scan",
                  "offset.storage.file.filename": directory / "offsets", "listeners": f"http://{HOST}:{self.port}"}
        files = [write_properties(directory / "worker.properties", worker), write_properties(directory / "connector.properties", {"name": "one", **self.connector(self.stage.artemis.port)})]
        self.worker.run(java(self.stage.classpath, "org.apache.kafka.connect.cli.ConnectStandalone", *files))
        until(self.is_running, f"Connect: {self.worker.last_lines()}", 90)

    def ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://{HOST}:{self.port}{path}", data, {"Content-Type": "application/json"}, method="PUT" if data else "GET")
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.loads(answer.read())
        except (urllib.error.HTTPError, OSError):
            return None

    def is_running(self):
        if not self.worker.is_alive():
            raise Failed(f"Connect has ended: {self.worker.last_lines()}")
        status = self.ask("/connectors/one/status")
        tasks = status["tasks"] if status else []
        if any(task["state"] == "FAILED" for task in tasks):
            raise Failed(f"Connect: {tasks[0].get('trace', '')[:400]}")
        return bool(tasks) and all(task["state"] == "RUNNING" for task in tasks)

    def go_through_proxy(self):
        """From here on what it says to Artemis is counted."""
        self.proxy = Proxy(self.stage.artemis.port)
        if self.ask("/connectors/one/config", self.connector(self.proxy.port)) is None:
            raise Failed("Connect does not take the connector's new address")
        until(lambda: self.proxy.count > 4, "Connect's way through the proxy", 30)
        until(self.is_running, "Connect after its new address", 30)

    def stop(self):
        self.worker.stop(20)
        if self.proxy:
            self.proxy.close()

    def own(self):
        return {"Connect": self.worker.pid}

    def coupling_seconds(self):
        return cpu_seconds(self.worker.pid)

    def connector(self, port):
        return {"connector.class": self.java_class, "tasks.max": "1", "url": f"amqp://{HOST}:{port}?jms.receiveNoWaitLocalOnly=true", **self.settings}


class ConnectIn(Connected, In):
    name, topic, java_class = "Connect in", "CONNECT.IN", "JmsSource"
    settings = {"queue": ends.IN, "topic": topic, "batch": "250"}


class ConnectOut(Connected, Out):
    name, topic, java_class = "Connect out", "CONNECT.OUT", "JmsSink"
    settings = {"queue": ends.OUT, "topics": topic}


WAYS = (Direct, BridgeIn, BridgeOut, ConnectIn, ConnectOut)


def sampled(way, sender, reader):
    """CPU seconds by process; of the coupling; of the whole machine."""
    pids = {**way.processes(), "sender": sender.pid, "reader": reader.pid}
    return {name: cpu_seconds(pid) for name, pid in pids.items()}, way.coupling_seconds(), machine_seconds()


def run(way, load):
    """One run: the line for the results, and [(second, backlog)]."""
    reader = way.reader()
    sender = None
    try:
        reader.wait_for("READY", 60)
        sender = way.sender(load)
        sender.wait_for("READY", 120)
        start = time.time() + 0.3
        total = load.warm + load.seconds
        sender.say(f"GO {int(start * 1000)} {total}")
        time.sleep(max(0, start + load.warm - time.time()))
        begun, before, asked = time.time(), sampled(way, sender, reader), way.requests()
        time.sleep(max(0, start + total - 0.2 - time.time()))
        ended, after, answered = time.time(), sampled(way, sender, reader), way.requests()
        put = int(sender.wait_for("DONE", 60).split()[1])
        loaded = time.time()
        try:
            until(lambda: reader.count_at(time.time() + 1) >= put, "", DRAIN_S)
        except Failed:
            pass
        drained = time.time()
        time.sleep(0.2)
        reader.say(f"END {int(begun * 1e6)} {int(ended * 1e6)}")
        took = [int(word) for word in reader.wait_for("SENT", 20).split()[1:]]
        late = [int(word) for word in reader.wait_for("DUE", 20).split()[1:]]
        got = int(reader.wait_for("DONE", 20).split()[1])
    finally:
        for one in (sender, reader):
            if one:
                one.end()
    moved, span = reader.count_at(ended) - reader.count_at(begun), ended - begun
    cpu = {name: (after[0][name] - before[0][name]) * 1e6 / max(1, moved) for name in before[0]}
    others = after[2] - before[2] - sum(after[0][name] - before[0][name] for name in before[0])
    backlog = [(second, max(0, round(sender.count_at(start + second) - reader.count_at(start + second)))) for second in range(1, total + 1)]
    line = {"way": way.name, "load": load.named(way.has_unit), "size": load.size, "rate": load.rate, "unit": load.unit if way.has_unit else None, "seconds": round(span, 1),
            "put_per_s": round((sender.count_at(ended) - sender.count_at(begun)) / span, 1), "read_per_s": round(moved / span, 1),
            "coupling_us": round((after[1] - before[1]) * 1e6 / max(1, moved), 2), "cpu_us": {name: round(value, 1) for name, value in cpu.items()},
            "other_load": round(max(0, others) / span / CORES, 2), "p50_ms": took[1] / 1000, "p99_ms": took[2] / 1000, "max_ms": took[3] / 1000,
            "due_p99_ms": late[2] / 1000, "measured": took[0], "put": put, "read": got, "backlog_end": backlog[-1][1], "backlog_max": max(count for _, count in backlog),
            "drained_s": round(drained - loaded, 2)}
    if asked and answered[1] > asked[1]:
        line["requests_per_message"] = round((answered[0] - asked[0]) / (answered[1] - asked[1]), 3)
    return line, backlog


def counted(way, load, proxy, sender_port=None):
    """Requests for each message of a load that goes through the proxy; `sender_port`: the sender is who is counted."""
    reader = way.reader()
    sender = None
    try:
        reader.wait_for("READY", 60)
        sender = way.sender(load) if sender_port is None else way.stage.program("MqPut", sender_port, "DIRECT", load.size, load.rate, load.threads, load.unit)
        sender.wait_for("READY", 60)
        time.sleep(1)
        before = proxy.count
        sender.say(f"GO {int(time.time() * 1000) + 300} {load.seconds}")
        put = int(sender.wait_for("DONE", 60).split()[1])
        until(lambda: reader.count_at(time.time() + 1) >= put, f"{way.name}: not all {put} are read", DRAIN_S)
        time.sleep(1)
        return round((proxy.count - before) / put, 3)
    finally:
        for one in (sender, reader):
            if one:
                one.end()
