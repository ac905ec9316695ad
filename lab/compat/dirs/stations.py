"""The brokers of a chain: three programs that take turns on the same log directories, ports and identity."""

import os
import re
import subprocess
import threading
import time
from pathlib import Path

from compat import fetch
from harness.ports import free_port
from harness.process import spawn
from harness.server import SMALL_JVM, Apache, Barnabas, format_directory, java_words

HERE = Path(__file__).resolve().parent

DIRECTORIES = 3


class Place:
    """What the stations share: directories, ports, how the quorum is named."""

    def __init__(self, root, standalone):
        self.root, self.standalone = Path(root), standalone
        self.directories = [self.root / f"data-{n}" for n in range(DIRECTORIES)]
        self.port, self.controller_port = free_port(), free_port()

    def properties(self, server):
        given = {
            "process.roles": "broker,controller", "node.id": "1",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self.controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self.controller_port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER", "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": ",".join(map(str, self.directories)),
            "offsets.topic.replication.factor": "1", "offsets.topic.num.partitions": "4",
            "transaction.state.log.replication.factor": "1", "transaction.state.log.min.isr": "1", "transaction.state.log.num.partitions": "4",
            "group.initial.rebalance.delay.ms": "0", "log.cleaner.backoff.ms": "300", "broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "1000",
            "log.segment.delete.delay.ms": "1000",
            # So that snapshots of the metadata, not its log alone, are handed on.
            "metadata.log.max.record.bytes.between.snapshots": "20000",
        }
        if self.standalone:
            given["controller.quorum.bootstrap.servers"] = f"127.0.0.1:{self.controller_port}"
        else:
            given["controller.quorum.voters"] = f"1@127.0.0.1:{self.controller_port}"
        if isinstance(server, Apache):
            given |= {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer", "super.users": "User:ANONYMOUS"}
        return given


class Station:
    """Mixed into a server: its place instead of directories of its own."""

    def settle(self, place, name):
        self.place, self.port, self.controller_port = place, place.port, place.controller_port
        self.data = place.directories[0]
        self.log = place.root / f"{name}.log"
        return self

    def properties(self):
        return self.place.properties(self)


class ApacheStation(Station, Apache):
    def format(self, properties):
        format_directory(self.label, self.format_words(), properties, *(["--standalone"] if self.place.standalone else []))


class BarnabasStation(Station, Barnabas):
    def format(self, properties):
        raise RuntimeError("Barnabas was to take a directory over, and found none")


def kafka(place, old):
    version, classpath = fetch.kafka_3() if old else fetch.kafka()
    return ApacheStation(place.root, version, classpath).settle(place, "kafka-3" if old else "kafka-4")


def barnabas(place, binary):
    return BarnabasStation(place.root, binary).settle(place, "barnabas")


def dump_log(directories, old):
    """Apache's kafka-dump-log over every file; (files read, complaints)."""
    _, classpath = fetch.kafka_3() if old else fetch.kafka()
    tool = "kafka.tools.DumpLogSegments" if old else "org.apache.kafka.tools.DumpLogSegments"
    every = [path for directory in directories for path in Path(directory).glob("*/*") if path.stat().st_size > 0 and not path.parent.name.endswith("-delete")]
    metadata = [path for path in every if path.parent.name == "__cluster_metadata-0"]
    rest = [path for path in every if path.parent.name != "__cluster_metadata-0"]
    jobs = [(["--deep-iteration"], [p for p in rest if p.suffix == ".log"]), (["--index-sanity-check"], [p for p in rest if p.suffix == ".index"]),
            ([], [p for p in rest if p.suffix in (".timeindex", ".snapshot", ".txnindex")]),
            (["--cluster-metadata-decoder"], [p for p in metadata if p.suffix in (".log", ".checkpoint")])]
    count, complaints = 0, []
    running = []
    for flags, files in jobs:
        if not files:
            continue
        count += len(files)
        command = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dlog4j2.configurationFile=" + str(HERE.parent / "maven/log4j2.properties"),
                   "-cp", classpath, tool, *flags, "--files", ",".join(map(str, files))]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    for job in running:
        said, _ = job.communicate(timeout=120)
        if job.returncode != 0:
            complaints.append(said.strip()[-200:])
        # What compaction leaves has holes. And the tool of Kafka 4 counts the first record of each file as following offset -1.
        said = re.sub(r"Non-consecutive offsets in \S*/compact\S*|Non-consecutive offsets in .*\n  -1 is followed by \d+\n(?! )", "", said)
        complaints += re.findall(r"^(?:.*isvalid: false.*|Non-consecutive.*|Found .*|Mismatches in.*|Could not .*|.*Exception.*|.*[Cc]orrupt.*)$", said, re.M)
    return count, complaints


class Client:
    """The Java program that lives through a chain."""

    def __init__(self, place, classes, classpath, log):
        self.errors = open(log, "ab")
        self.process = spawn(java_words(f"{classes}:{classpath}", "Dirs", f"127.0.0.1:{place.port}", heap="512m", flags=SMALL_JVM),
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True)

    def call(self, *words, within=150):
        timer, begun = threading.Timer(within, self.process.kill), time.monotonic()
        timer.start()
        try:
            self.process.stdin.write(" ".join(map(str, words)) + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline().strip()
        except BrokenPipeError:
            answer = ""
        finally:
            timer.cancel()
            if os.environ.get("DIRS_TIMES"):
                print(f"    {words[0]} {time.monotonic() - begun:.1f} s", flush=True)
        if not answer.startswith("ok"):
            raise RuntimeError(f"{' '.join(map(str, words))}: {answer or f'the client ended (or was ended after {within} s)'}")
        return answer[3:]

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.errors.close()


@fetch.alone
def client_classes():
    """(compiled classes, class path) of the Java program."""
    version, classpath = fetch._classpath("java", "java-client.xml", fetch.JAVA_CLIENT_VERSIONS)
    fetch._need("javac")
    sources = sorted((HERE / "java").glob("*.java"))
    out = fetch.CACHE / "java" / "dirs"
    out.mkdir(parents=True, exist_ok=True)
    fresh, seal = fetch._stamp(out, *(path.read_text() for path in sources), classpath)
    if not fresh:
        fetch._run("dirs-javac", ["javac", "-nowarn", "-cp", classpath, "-d", str(out), *map(str, sources)])
        seal()
    return version, out, classpath


def read_lines(path):
    with open(path, encoding="utf-8") as file:
        return dict(line.rstrip("\n").split("\t", 1) for line in file)
