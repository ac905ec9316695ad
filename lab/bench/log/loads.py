"""The clients: Apache's producer-perf-test as it comes, and librdkafka behind load.rs. Each load is one run with one result."""

import json
import re
import resource
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from compat import fetch
from peers import ROOT, Usage, settle

HERE = Path(__file__).resolve().parent


@dataclass
class Load:
    title: str
    client: str
    partitions: int
    record_bytes: int
    producers: int
    settings: dict = field(default_factory=dict)
    spread: int = 0
    rate: int = 0
    # The synced skyline of the baseline, µs of broker CPU per record, where it has this load.
    skyline: float | None = None


def java(title, partitions, record_bytes, producers, batch, linger, skyline=None):
    return Load(title, "java", partitions, record_bytes, producers, {"acks": "all", "batch.size": batch, "linger.ms": linger}, skyline=skyline)


def librdkafka(title, partitions, record_bytes, producers, skyline=None, spread=0, rate=0, **more):
    settings = {"acks": "all", "linger.ms": 5, "batch.num.messages": 10000} | {key.replace("_", "."): value for key, value in more.items()}
    return Load(title, "librdkafka", partitions, record_bytes, producers, settings, spread, rate, skyline)


LOADS = [
    java("Java, 1 producer, 100 B, 1 partition, 16 KiB, linger 0", 1, 100, 1, 16384, 0, 0.35),
    java("Java, 1 producer, 100 B, 16 partitions, 16 KiB, linger 0", 16, 100, 1, 16384, 0, 0.19),
    java("Java, 1 producer, 100 B, 16 partitions, 64 KiB, linger 5", 16, 100, 1, 65536, 5, 0.153),
    java("Java, 1 producer, 100 B, 1,000 partitions, 16 KiB, linger 5", 1000, 100, 1, 16384, 5),
    java("Java, 3 producers, 100 B, 16 partitions, 64 KiB, linger 5", 16, 100, 3, 65536, 5),
    java("Java, 1 producer, 1 kB, 16 partitions, 64 KiB, linger 5", 16, 1000, 1, 65536, 5),
    librdkafka("librdkafka, 1 producer, 100 B, 1 partition", 1, 100, 1, 0.040),
    librdkafka("librdkafka, 1 producer, 100 B, 16 partitions", 16, 100, 1, 0.082),
    librdkafka("librdkafka, 3 producers, 100 B, 16 partitions", 16, 100, 3, 0.085),
    librdkafka("librdkafka, 1 producer, 100 B, 1,000 partitions", 1000, 100, 1),
    librdkafka("librdkafka, 3 producers, 100 B, 1,000 partitions, keyed", 1000, 100, 3, spread=1000),
    librdkafka("librdkafka, 1 producer, 1 kB, 1 partition", 1, 1000, 1),
    librdkafka("librdkafka, 3 producers, 1 kB, 16 partitions", 16, 1000, 3),
    librdkafka("librdkafka, 3 producers, 1 kB, 1,000 partitions", 1000, 1000, 3),
    librdkafka("librdkafka, 1 producer, 100 B, 16 partitions, 100,000/s", 16, 100, 1, rate=100_000),
]
QUICK = ("Java, 1 producer, 100 B, 16 partitions, 64 KiB, linger 5", "librdkafka, 3 producers, 100 B, 16 partitions",
         "librdkafka, 1 producer, 100 B, 1,000 partitions", "librdkafka, 3 producers, 1 kB, 16 partitions")


def loader():
    """The librdkafka program, compiled once for each state of its source."""
    python = Path(fetch.python())
    found = sorted(python.parents[1].glob("lib/python3*/site-packages/confluent_kafka.libs/librdkafka*.so*"))
    if not found:
        raise fetch.Missing("the confluent-kafka wheel brings no librdkafka")
    out = fetch.CACHE / "bench-log"
    out.mkdir(parents=True, exist_ok=True)
    source = HERE / "load.rs"
    fresh, seal = fetch._stamp(out, source.read_text(), str(found[0]))
    if not (fresh and (out / "load").exists()):
        fetch._run("bench-load", ["rustc", "--edition", "2024", "-O", str(source), "-o", str(out / "load"), "-C", f"link-arg={found[0]}",
                                  "-C", f"link-arg=-Wl,-rpath,{found[0].parent}"])
        seal()
    return str(out / "load")


class Clients:
    def __init__(self, classpath, load, seconds, log):
        self.classpath, self.load, self.seconds, self.log = classpath, load, seconds, log
        self.records = {}

    def command(self, peer, load, topic, seconds):
        if load.client == "java":
            rate = self.records[load.title] / load.producers
            records = max(int(rate * seconds), 1000)
            # A shorter first part than a third would leave the client's own compiler in the figures.
            return ["java", "-Xmx512M", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", f"-Dlog4j2.configurationFile={ROOT / 'lab/compat/maven/log4j2.properties'}",
                    "-cp", self.classpath, "org.apache.kafka.tools.ProducerPerformance", "--bootstrap-server", peer.server.address, "--topic", topic,
                    "--num-records", str(records), "--warmup-records", str(records // 3), "--record-size", str(load.record_bytes), "--throughput", "-1",
                    # One flag for all: the tool forgets all but the last one.
                    "--command-property", *(f"{key}={value}" for key, value in load.settings.items())]
        return [self.load, peer.server.address, topic, str(load.producers), str(load.record_bytes), str(seconds), str(seconds / 4), str(load.spread), str(load.rate),
                *(f"{key}={value}" for key, value in load.settings.items())]

    def start(self, peer, load, topic, seconds):
        """The processes of a run, started."""
        count = load.producers if load.client == "java" else 1
        with open(self.log, "ab") as errors:
            return [subprocess.Popen(self.command(peer, load, topic, seconds), stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True) for _ in range(count)]

    def results(self, peer, load, running):
        said = [process.communicate(timeout=180)[0] for process in running]
        if any(process.returncode for process in running):
            raise RuntimeError(f"{load.title} against {peer.server.label}: {said[-1][-400:]} (see {self.log})")
        if load.client == "librdkafka":
            told = json.loads(said[0])
            if told["failed"]:
                raise RuntimeError(f"{load.title} against {peer.server.label}: {told['failed']} records failed, error {told['error']}")
            return told["acknowledged"], told
        return self.java_results(peer, load, said)

    @staticmethod
    def java_results(peer, load, said):
        records, rate, tails = 0, 0.0, []
        for text in said:
            found = re.findall(r"^(\d+) (?:steady state )?records sent, ([\d.]+) records/sec.*? (\d+) ms 50th, (\d+) ms 95th, (\d+) ms 99th, (\d+) ms 99.9th", text, re.M)
            if len(found) < 2:
                raise RuntimeError(f"{load.title} against {peer.server.label}: {text[-400:]}")
            # The line of the whole run, then that of what came after the warm-up.
            records += int(found[-2][0])
            rate += float(found[-1][1])
            tails.append([int(found[-1][n]) for n in (2, 4, 5)])
        worst = [max(column) for column in zip(*tails)]
        return records, {"records_per_s": rate, "p50_ms": worst[0], "p99_ms": worst[1], "p999_ms": worst[2]}

    def run(self, peer, load, topic, seconds=None):
        """One measured run."""
        settle()
        usage = Usage(peer, children_seconds)
        running = self.start(peer, load, topic, seconds or self.seconds)
        records, told = self.results(peer, load, running)
        return {**told, "records": records, **usage.since(records)}

    def warm(self, peer, load, topic, seconds):
        """A run that is thrown away; of the Java client's it is learnt how many records a run should have."""
        self.records.setdefault(load.title, {100: 400_000, 1000: 80_000}[load.record_bytes] * (2 if load.producers > 1 else 1))
        told = self.run(peer, load, topic, seconds)
        if load.client == "java":
            self.records[load.title] = max(self.records[load.title], told["records_per_s"])


def children_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
