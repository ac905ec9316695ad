"""The clients: Apache's producer-perf-test, consumer-perf-test and e2e-latency as they come, librdkafka behind load.rs, and Barnabas's own tools.

A load is what a producer is told; a run of it gives rate, latency and what it cost. What Apache's producer does while its own compiler warms up
does not count: it reports ten times a second, and rate and cost are those between two of its reports, both in steady state. It counts records, not
seconds: how many make a run of the wished length is learnt from the runs before.
"""

import json
import os
import random
import re
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from compat import fetch
from harness.process import die_with_the_rig

from . import ROOT
from .machine import Sampled, interpolated, settle

HERE = Path(__file__).resolve().parent
# The first rate that is assumed of one producer, records a second.
FIRST_RATE = {100: 400_000, 1000: 150_000}
CODEC_RATE = {"gzip": 35_000, "zstd": 80_000}
# What Apache's producer is given to warm up, and what of its steady state is let go for what was under way before.
WARM_UP_S, UNDER_WAY_S = 1.6, 0.4
WINDOW = re.compile(r"(\d+) records sent, [\d.]+ records/sec \([\d.]+ MB/sec\), [\d.]+ ms avg latency, [\d.]+ ms max latency\.$")
SUMMARY = re.compile(r"^(\d+) (?:steady state )?records sent, ([\d.]+) records/sec.*? ([\d.]+) ms max latency, (\d+) ms 50th, (\d+) ms 95th, (\d+) ms 99th, (\d+) ms 99.9th", re.M)


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
    # Records a second that are assumed at first, where loads of its kind are no guide.
    first_rate: int = 0

    @property
    def kind(self):
        """Loads of one kind go about as fast."""
        return self.client, self.record_bytes, self.producers, self.settings.get("compression.type", "none")


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
    fresh, seal = fetch._stamp(out, source.read_text(), (HERE / "librdkafka.rs").read_text(), str(found[0]))
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


class Client(subprocess.Popen):
    """A client's process, what it said, and when."""

    def __init__(self, command, log):
        with open(log, "ab") as errors:
            super().__init__(command, stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL, text=True, start_new_session=True, preexec_fn=die_with_the_rig)
        self.lines, self.reading = [], None

    def read(self):
        """To be called when all clients of a run are started: a fork beside another thread is best avoided."""
        self.reading = threading.Thread(target=self._read, daemon=True)
        self.reading.start()

    def _read(self):
        for line in self.stdout:
            self.lines.append((time.monotonic(), line))

    def said(self, timeout):
        if self.reading is None:
            self.read()
        self.wait(timeout)
        self.reading.join(10)
        self.stdout.close()
        return "".join(line for _, line in self.lines)

    def steady(self):
        """[(when, {"records": acknowledged by then})] in Apache's producer's steady state; what was under way before it is not counted by it."""
        found, records, is_steady = [], 0, False
        for when, line in self.lines:
            is_steady = is_steady or line.startswith("In steady state")
            told = WINDOW.match(line) if is_steady else None
            if told:
                records += int(told[1])
                found.append((when, {"records": records}))
        return found


class Clients:
    def __init__(self, classpath, load, seconds, log, binary=None):
        self.classpath, self.load, self.seconds, self.log, self.binary = classpath, load, seconds, log, binary
        # (title of the load, or what it is like; peer): records a second
        self.rates = {}

    def learnt(self, load, peer):
        """Records a second that a run against this peer is laid out for."""
        first = CODEC_RATE.get(load.settings.get("compression.type")) or FIRST_RATE.get(load.record_bytes, 400_000)
        return self.rates.get((load.title, peer.name)) or load.first_rate or self.rates.get((load.kind, peer.name)) or first * (1.5 if load.producers > 1 else 1)

    def learn(self, load, peer, rate):
        before = self.rates.get((load.title, peer.name), rate)
        self.rates[load.title, peer.name] = (before + rate) / 2
        self.rates[load.kind, peer.name] = rate

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
        # A client that warms up sends half of what it will send.
        rate, warm_up = (load.rate or self.learnt(load, peer)) / load.producers, min(WARM_UP_S, seconds) / 2
        records = max(int(rate * (warm_up + UNDER_WAY_S + seconds)), 1000)
        what = ["--payload-file", payload_file(Path(self.log).parent)] if load.payload == "json" else ["--record-size", str(load.record_bytes)]
        return [*java_words(self.classpath, "ProducerPerformance"), "--bootstrap-server", peer.server.address, "--topic", topic,
                "--num-records", str(records), "--warmup-records", str(int(rate * warm_up)), "--reporting-interval", "100", *what, "--throughput", str(load.rate // load.producers if load.rate else -1),
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
        return Client(command, self.log)

    def said(self, running, what, timeout=180):
        """What the processes printed; none is left when one fails or takes too long."""
        for process in running:
            process.read()
        try:
            said = [process.said(timeout) for process in running]
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
        if rate == 0:
            raise RuntimeError(f"{what}: nothing was acknowledged in time")
        if load.client == "barnabas":
            return sum(one["records"] for one in told), {"records_per_s": rate, **worst}
        late = sum(one["unacknowledged"] for one in told)
        if late:
            raise RuntimeError(f"{what}: {late} records were not acknowledged within a minute of the end")
        return sum(one["acknowledged"] for one in told), {"records_per_s": rate, **worst}

    def java_results(self, what, said):
        records, rate, tails = 0, 0.0, []
        for text in said:
            found = SUMMARY.findall(text)
            if len(found) < 2:
                raise RuntimeError(f"{what}: {text[-400:]}")
            # The line of the whole run, then that of what came after the warm-up.
            records += int(found[-2][0])
            rate += float(found[-1][1])
            tails.append([int(found[-1][n]) for n in (3, 5, 6)] + [float(found[-1][2])])
        worst = [max(column) for column in zip(*tails)]
        return records, {"records_per_s": rate, "p50_ms": worst[0], "p99_ms": worst[1], "p999_ms": worst[2], "max_ms": worst[3]}

    def run(self, peer, load, topic, seconds=None):
        """One measured run. One with Apache's producer that turns out to have had too few records, so that little of it was steady, is made again."""
        seconds = seconds or self.seconds
        for _ in range(3):
            told, steady_s = self._run(peer, load, topic, seconds)
            if load.client != "librdkafka" and not load.rate:
                self.learn(load, peer, told["records_per_s"])
            if load.client != "java" or load.rate or steady_s >= seconds / 2:
                break
        return told

    def _run(self, peer, load, topic, seconds):
        """(its figures, seconds of steady state)"""
        settle()
        used = Sampled(peer.pids())
        running = self.start(peer, load, topic, seconds)
        used.watch(running)
        try:
            records, told = self.results(peer, load, running, timeout=180 + seconds)
        finally:
            used.end()
        steady = steady_state(used, running) if load.client == "java" else {}
        return {**told, "records": records, **used.between(*used.stretch, records), **steady}, steady.get("seconds", 0)

    def measured(self, peer, command, what):
        """A client that is no load: what it said, and what was used meanwhile."""
        settle()
        used = Sampled(peer.pids())
        running = [self.process(command)]
        used.watch(running)
        try:
            said = self.said(running, what)[0]
        finally:
            used.end()
        return said, lambda records: used.between(*used.stretch, records)

    # Reading

    def consume(self, peer, topic, records, client="java", partitions=1, settings=()):
        """Reads a topic from its beginning. `settings`: librdkafka's. Of Apache's tool the rate counts from its start, with the joining of its group (0.3 s and more);
        `fetch_records_per_s` is without that."""
        words = ["--bootstrap-server", peer.server.address, "--topic", topic, "--num-records", str(records), "--timeout", "30000", "--hide-header"]
        what = f"consume from {peer.server.label}"
        if client == "java":
            said, used = self.measured(peer, [*java_words(self.classpath, "ConsumerPerformance"), *words], what)
            cells = [cell.strip() for cell in next(line for line in reversed(said.strip().splitlines()) if line.count(",") >= 9).split(",")]
            told = {"records": int(cells[4]), "records_per_s": float(cells[5]), "fetch_records_per_s": float(cells[9])}
        else:
            command = [reader(), peer.server.address, topic, str(partitions), str(records), *settings] if client == "librdkafka" else [str(self.binary), "consumer-perf-test", *words, "--json"]
            said, used = self.measured(peer, command, what)
            found = json.loads(said.strip().splitlines()[-1])
            told = {"records": found["records"], "records_per_s": found["records_per_s"], "fetch_records_per_s": found["records_per_s"]}
        if told["records"] < records:
            raise RuntimeError(f"{peer.server.label}: {told['records']} of {records} records read")
        return {**told, **used(told["records"])}

    # One record at a time

    def end_to_end(self, peer, topic, records, record_bytes, client="java", acks="all"):
        what = f"e2e-latency against {peer.server.label}"
        if client == "java":
            said, used = self.measured(peer, [*java_words(self.classpath, "EndToEndLatency"), peer.server.address, topic, str(records), acks, str(record_bytes)], what)
            average = re.search(r"Avg latency: ([\d.]+) ms", said)
            tails = re.search(r"50th = (\d+), 99th = (\d+), 99.9th = (\d+)", said)
            if not (average and tails):
                raise RuntimeError(f"{what}: {said[-300:]}")
            told = {"avg_ms": float(average.group(1))} | {name: float(tails.group(n + 1)) for n, name in enumerate(("p50_ms", "p99_ms", "p999_ms"))}
        else:
            words = ["--bootstrap-server", peer.server.address, "--topic", topic, "--num-records", str(records), "--producer-acks", acks, "--record-size", str(record_bytes)]
            said, used = self.measured(peer, [str(self.binary), "e2e-latency", *words, "--json"], what)
            found = json.loads(said.strip().splitlines()[-1])
            told = {name: found[name] for name in ("avg_ms", "p50_ms", "p99_ms", "p999_ms", "max_ms")}
        return {**told, "records": records, **used(records)}


def steady_state(used, running):
    """Rate and cost between two moments at which all of these producers were in steady state; nothing where there is too little of it."""
    found = [process.steady() for process in running]
    if not all(found):
        return {}
    begin, end = max(lines[0][0] for lines in found) + UNDER_WAY_S, min(lines[-1][0] for lines in found)
    if end - begin < 0.5:
        return {}
    records = sum(interpolated(lines, end)["records"] - interpolated(lines, begin)["records"] for lines in found)
    return {"records_per_s": records / (end - begin), "steady_records": round(records), **used.between(begin, end, records)}
