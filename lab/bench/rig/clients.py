"""The clients: Apache's producer-perf-test, consumer-perf-test and e2e-latency as they come, librdkafka behind load.rs, and Barnabas's own tools.

A load is what a producer is told; a run of it gives rate, latency and what it cost. Apache's producer counts records, not seconds: how many
make a run of the wished length is learnt from the run that warms up.
"""

import json
import os
import random
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from compat import fetch
from compat.server import _die_with_the_runner

from . import ROOT
from .machine import Usage, children_seconds, settle

HERE = Path(__file__).resolve().parent
# The first rate that is assumed of one producer, records a second.
FIRST_RATE = {100: 400_000, 1000: 80_000}


@dataclass
class Load:
    title: str
    client: str  # java, librdkafka or barnabas
    partitions: int
    record_bytes: int
    producers: int
    settings: dict = field(default_factory=dict)
    spread: int = 0
    rate: int = 0
    # The synced skyline of the baseline, µs of broker CPU per record, where it has this load.
    skyline: float | None = None
    # So many topics of `partitions` each, with an equal share of the producers.
    topics: int = 1
    # "random": letters; "json": records that compress as real ones do (Java only).
    payload: str = "random"


def java(title, partitions, record_bytes, producers, batch, linger, skyline=None, **more):
    settings = {"acks": "all", "batch.size": batch, "linger.ms": linger} | {key.replace("_", "."): value for key, value in more.items()}
    return Load(title, "java", partitions, record_bytes, producers, settings, skyline=skyline)


def librdkafka(title, partitions, record_bytes, producers, skyline=None, spread=0, rate=0, **more):
    settings = {"acks": "all", "linger.ms": 5, "batch.num.messages": 10000} | {key.replace("_", "."): value for key, value in more.items()}
    return Load(title, "librdkafka", partitions, record_bytes, producers, settings, spread, rate, skyline)


def own(title, partitions, record_bytes, producers, rate=0, **more):
    settings = {"acks": "all", "linger.ms": 5} | {key.replace("_", "."): value for key, value in more.items()}
    return Load(title, "barnabas", partitions, record_bytes, producers, settings, rate=rate)


def loader():
    """The librdkafka program that sends, compiled once for each state of its source."""
    return _librdkafka("load", "bench-log")


def reader():
    """The one that reads."""
    return _librdkafka("read", "bench-read")


def _librdkafka(name, folder):
    python = Path(fetch.python())
    found = sorted(python.parents[1].glob("lib/python3*/site-packages/confluent_kafka.libs/librdkafka*.so*"))
    if not found:
        raise fetch.Missing("the confluent-kafka wheel brings no librdkafka")
    out = fetch.CACHE / folder
    out.mkdir(parents=True, exist_ok=True)
    source = HERE / f"{name}.rs"
    fresh, seal = fetch._stamp(out, source.read_text(), str(found[0]))
    if not (fresh and (out / name).exists()):
        # Two rigs may do this at once.
        made = out / f"{name}-{os.getpid()}"
        fetch._run(f"bench-{name}", ["rustc", "--edition", "2024", "-O", str(source), "--crate-name", name, "-o", str(made), "-C", f"link-arg={found[0]}",
                                  "-C", f"link-arg=-Wl,-rpath,{found[0].parent}"])
        made.replace(out / name)
        seal()
    return str(out / name)


def payload_file(directory):
    """1,000 lines of JSON of 1,000 bytes each, always the same."""
    path = Path(directory) / "payload.json"
    if not path.exists():
        chance = random.Random(1)
        words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(3, 9))) for _ in range(300)]
        lines = []
        for number in range(1000):
            record = {"id": chance.getrandbits(48), "at": 1_700_000_000_000 + number * 37, "customer": chance.randint(1, 9999), "price": round(chance.random() * 500, 2), "text": ""}
            while len(json.dumps(record)) < 990:
                record["text"] += chance.choice(words) + " "
            lines.append(json.dumps(record)[:1000].ljust(1000))
        path.write_text("\n".join(lines) + "\n")
    return str(path)


def java_words(classpath, tool):
    return ["java", "-Xmx512M", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", f"-Dlog4j2.configurationFile={ROOT / 'lab/compat/maven/log4j2.properties'}",
            "-cp", classpath, f"org.apache.kafka.tools.{tool}"]


class Clients:
    """in_full: with the figures that only the whole lab reports (bench-log's lines stay as they are)."""

    def __init__(self, classpath, load, seconds, log, binary=None, in_full=False):
        self.classpath, self.load, self.seconds, self.log, self.binary, self.in_full = classpath, load, seconds, log, binary, in_full
        self.records = {}

    def learnt(self, load, peer):
        """Records a second that a run against this peer is laid out for."""
        return self.records.get((load.title, peer.name)) or self.records.get(load.title) or FIRST_RATE.get(load.record_bytes, 400_000) * (2 if load.producers > 1 else 1)

    def command(self, peer, load, topic, seconds):
        """What one process of this load is started with."""
        properties = [f"{key}={value}" for key, value in load.settings.items()]
        if load.client == "librdkafka":
            return [self.load, peer.server.address, topic, str(load.producers // load.topics), str(load.record_bytes), str(seconds), str(seconds / 4), str(load.spread),
                    str(load.rate // load.topics), *properties]
        if load.client == "barnabas":
            records = max(int((load.rate or self.learnt(load, peer)) * seconds), 1000)
            return [str(self.binary), "producer-perf-test", "--bootstrap-server", peer.server.address, "--topic", topic, "--num-records", str(records),
                    "--warmup-records", str(records // 4), "--record-size", str(load.record_bytes), "--throughput", str(load.rate or -1),
                    "--producers", str(load.producers // load.topics), "--json", "--command-property", *properties]
        records = max(int((load.rate or self.learnt(load, peer)) / load.producers * seconds), 1000)
        what = ["--payload-file", payload_file(Path(self.log).parent)] if load.payload == "json" else ["--record-size", str(load.record_bytes)]
        # A shorter first part than a third would leave the client's own compiler in the figures.
        return [*java_words(self.classpath, "ProducerPerformance"), "--bootstrap-server", peer.server.address, "--topic", topic,
                "--num-records", str(records), "--warmup-records", str(records // 3), *what, "--throughput", str(load.rate // load.producers if load.rate else -1),
                # One flag for all: the tool forgets all but the last one.
                "--command-property", *properties]

    def start(self, peer, load, topic, seconds):
        """The processes of a run, started. `topic`: a name, or one for each of the load's topics."""
        topics = [topic] if isinstance(topic, str) else topic
        count = load.producers // load.topics if load.client == "java" else 1
        return [self.process(self.command(peer, load, name, seconds)) for name in topics for _ in range(count)]

    def process(self, command):
        if not command[0] or command[0] == "None":
            raise fetch.Missing("its client is not to be had here")
        with open(self.log, "ab") as errors:
            return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL, text=True, start_new_session=True, preexec_fn=_die_with_the_runner)

    def said(self, running, what, timeout=180):
        """What the processes printed; none is left when one fails or takes too long."""
        try:
            said = [process.communicate(timeout=timeout)[0] for process in running]
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"{what}: no end after {timeout} s") from None
        finally:
            for process in running:
                if process.poll() is None:
                    process.kill()
                    process.wait()
        if any(process.returncode for process in running):
            last = next(text for text, process in zip(said, running) if process.returncode)
            raise RuntimeError(f"{what}: {self.complaint(last)}")
        return said

    def complaint(self, said):
        """The client's last words, on one line."""
        tail = Path(self.log).read_text(errors="replace").strip().splitlines()[-2:] if Path(self.log).exists() else []
        return " | ".join([said[-300:].strip().replace("\n", " | "), *tail])[-500:]

    def results(self, peer, load, running, timeout=180):
        what = f"{load.title} against {peer.server.label}"
        said = self.said(running, what, timeout)
        if load.client == "java":
            return self.java_results(what, said)
        told = [json.loads(text.strip().splitlines()[-1]) for text in said]
        failed = sum(one["failed"] for one in told)
        if failed:
            raise RuntimeError(f"{what}: {failed} records failed, error {next(one.get('error') for one in told if one['failed'])}")
        worst = {name: max(one[name] for one in told) for name in ("p50_ms", "p99_ms", "p999_ms", "max_ms")}
        rate = sum(one["records_per_s"] for one in told)
        if self.in_full and rate == 0:
            raise RuntimeError(f"{what}: nothing was acknowledged in time")
        if load.client == "barnabas":
            return sum(one["records"] for one in told), {"records_per_s": rate, **worst}
        late = sum(one.pop("unacknowledged") for one in told)
        if self.in_full and late:
            raise RuntimeError(f"{what}: {late} records were not acknowledged within a minute of the end")
        if not self.in_full:
            told[0].pop("max_ms")
            return told[0]["acknowledged"], told[0]
        return sum(one["acknowledged"] for one in told), {"records_per_s": rate, **worst}

    def java_results(self, what, said):
        records, rate, tails = 0, 0.0, []
        for text in said:
            found = re.findall(r"^(\d+) (?:steady state )?records sent, ([\d.]+) records/sec.*? ([\d.]+) ms max latency, (\d+) ms 50th, (\d+) ms 95th, (\d+) ms 99th, (\d+) ms 99.9th",
                               text, re.M)
            if len(found) < 2:
                raise RuntimeError(f"{what}: {text[-400:]}")
            # The line of the whole run, then that of what came after the warm-up.
            records += int(found[-2][0])
            rate += float(found[-1][1])
            tails.append([int(found[-1][n]) for n in (3, 5, 6)] + [float(found[-1][2])])
        worst = [max(column) for column in zip(*tails)]
        told = {"records_per_s": rate, "p50_ms": worst[0], "p99_ms": worst[1], "p999_ms": worst[2]}
        return records, {**told, "max_ms": worst[3]} if self.in_full else told

    def run(self, peer, load, topic, seconds=None):
        """One measured run."""
        settle()
        usage = Usage(peer.pids(), children_seconds)
        running = self.start(peer, load, topic, seconds or self.seconds)
        records, told = self.results(peer, load, running, timeout=180 + (seconds or self.seconds))
        if self.in_full and load.client != "librdkafka" and not load.rate:
            self.records[load.title, peer.name] = max(self.learnt(load, peer), told["records_per_s"]) if (load.title, peer.name) in self.records else told["records_per_s"]
        return {**told, "records": records, **self.used(usage, records)}

    def used(self, usage, records):
        return usage.in_full(records) if self.in_full else usage.since(records)

    def warm(self, peer, load, topic, seconds):
        """A run that is thrown away; of the clients that count records it is learnt how many a run should have."""
        told = self.run(peer, load, topic, seconds)
        if load.client == "java" and not self.in_full:
            self.records[load.title] = max(self.learnt(load, peer), told["records_per_s"])

    # Reading

    def consume(self, peer, topic, records, client="java", partitions=1):
        """Reads a topic from its beginning. Of Apache's tool the rate counts from its start, with the joining of its group (0.3 s and more);
        `fetch_records_per_s` is without that."""
        program = reader() if client == "librdkafka" else None
        settle()
        usage = Usage(peer.pids(), children_seconds)
        words = ["--bootstrap-server", peer.server.address, "--topic", topic, "--num-records", str(records), "--timeout", "30000"]
        if client == "java":
            said = self.said([self.process([*java_words(self.classpath, "ConsumerPerformance"), *words, "--hide-header"])], f"consume from {peer.server.label}")[0]
            cells = [cell.strip() for cell in next(line for line in reversed(said.strip().splitlines()) if line.count(",") >= 9).split(",")]
            told = {"records": int(cells[4]), "records_per_s": float(cells[5]), "fetch_records_per_s": float(cells[9])}
        elif client == "librdkafka":
            said = self.said([self.process([program, peer.server.address, topic, str(partitions), str(records)])], f"consume from {peer.server.label}")[0]
            found = json.loads(said.strip().splitlines()[-1])
            told = {"records": found["records"], "records_per_s": found["records_per_s"], "fetch_records_per_s": found["records_per_s"]}
        else:
            said = self.said([self.process([str(self.binary), "consumer-perf-test", *words, "--hide-header", "--json"])], f"consume from {peer.server.label}")[0]
            found = json.loads(said.strip().splitlines()[-1])
            told = {"records": found["records"], "records_per_s": found["records_per_s"], "fetch_records_per_s": found["records_per_s"]}
        if told["records"] < records:
            raise RuntimeError(f"{peer.server.label}: {told['records']} of {records} records read")
        return {**told, **self.used(usage, told["records"])}

    # One record at a time

    def end_to_end(self, peer, topic, records, record_bytes, client="java", acks="all"):
        settle()
        usage = Usage(peer.pids(), children_seconds)
        what = f"e2e-latency against {peer.server.label}"
        if client == "java":
            words = [peer.server.address, topic, str(records), acks, str(record_bytes)]
            said = self.said([self.process([*java_words(self.classpath, "EndToEndLatency"), *words])], what)[0]
            average = re.search(r"Avg latency: ([\d.]+) ms", said)
            tails = re.search(r"50th = (\d+), 99th = (\d+), 99.9th = (\d+)", said)
            if not (average and tails):
                raise RuntimeError(f"{what}: {said[-300:]}")
            told = {"avg_ms": float(average.group(1))} | {name: float(tails.group(n + 1)) for n, name in enumerate(("p50_ms", "p99_ms", "p999_ms"))}
        else:
            words = ["--bootstrap-server", peer.server.address, "--topic", topic, "--num-records", str(records), "--producer-acks", acks, "--record-size", str(record_bytes)]
            said = self.said([self.process([str(self.binary), "e2e-latency", *words, "--json"])], what)[0]
            found = json.loads(said.strip().splitlines()[-1])
            told = {name: found[name] for name in ("avg_ms", "p50_ms", "p99_ms", "p999_ms", "max_ms")}
        return {**told, "records": records, **self.used(usage, records)}
