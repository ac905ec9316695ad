"""The kill story: is what was acknowledged there after kill −9, once, in order?

A real log goes line by line through Apache's own console producer (acks=all, idempotent, as it comes)
into a topic. Ten times, at random moments while lines flow, the node is killed with −9 and started
again. Nobody helps the producer: it retries. At the end it must have ended well, which means that
every line was acknowledged; then three other client libraries read the topic back, before and after
one more kill. With one partition the topic must be the file, line for line; with more, the same lines
as often as in the file. Offsets must be contiguous from 0.

The log is a real one: what an Apache Kafka broker wrote about itself at level TRACE while it served
its own performance test; or any file given with --log.

What it does not show: loss of power. kill −9 takes the process, not the page cache.
"""

import argparse
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from compat import fetch
from compat.cli import find_binary
from compat.driver import Driver, Failure, Refusal
from harness.process import spawn
from harness.server import Apache, Barnabas, java_words

CACHE = fetch.REPOSITORY / ".cache" / "kill"
TOPIC = "log"
READY_BAR_S = 1.0
STUCK_S = 20.0


def arguments(words):
    parser = argparse.ArgumentParser(prog="lab/kill/run", description="A real log through Apache's console producer while the node is killed.")
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="100,000 lines, three kills, three partitions: what `make test` runs")
    parser.add_argument("--log", help="a file to take the lines from")
    parser.add_argument("--peer", default="barnabas", choices=("barnabas", "kafka"))
    parser.add_argument("--binary", help="the barnabas program")
    parser.add_argument("--seed", type=int, help="of the kills' moments (default: a new one, printed)")
    parser.add_argument("--keep", action="store_true", help="keep data and logs")
    options = parser.parse_args(words)
    if options.quick:
        options.lines, options.kills, options.partitions = 100_000, 3, 3
    return options


# The log


def real_log(lines, given):
    """(file of exactly `lines` lines, what it is)."""
    CACHE.mkdir(parents=True, exist_ok=True)
    if given:
        return cut(Path(given), lines, CACHE / f"given-{lines}.log"), given
    out = CACHE / f"kafka-trace-{lines}.log"
    what = f"an Apache Kafka {fetch.kafka()[0]} broker's own log, level TRACE, while it served its performance test"
    if not out.exists():
        print(f"making {lines:,} lines of log: {what}", flush=True)
        cut(trace_of_kafka(lines), lines, out)
    return out, what


def trace_of_kafka(lines):
    version, classpath = fetch.kafka()
    directory = Path(tempfile.mkdtemp(prefix="barnabas-kill-log-"))
    os.environ["COMPAT_KAFKA_LEVEL"] = "TRACE"
    broker = Apache(directory, version, classpath)
    try:
        broker.start()
        for _ in range(60):
            subprocess.run(broker.java("org.apache.kafka.tools.ProducerPerformance", "--topic", "perf", "--num-records", "20000", "--record-size", "200",
                                       "--throughput", "-1", "--bootstrap-server", broker.address, "--command-property", "batch.size=1000", "linger.ms=0"),
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300, check=True)
            if count_lines(broker.log) > lines * 1.02:
                break
        broker.kill()
        kept = CACHE / "kafka-trace.tmp"
        shutil.move(broker.log, kept)
        return kept
    finally:
        del os.environ["COMPAT_KAFKA_LEVEL"]
        broker.remove()


def count_lines(path):
    with open(path, "rb") as file:
        return sum(piece.count(b"\n") for piece in iter(lambda: file.read(1 << 20), b""))


def cut(path, lines, out):
    """The first `lines` lines that the console producer passes on as they are: valid UTF-8, not empty, no carriage return."""
    count = 0
    with open(path, "rb") as source, open(f"{out}.tmp", "wb") as target:
        for line in source:
            if line == b"\n" or not line.endswith(b"\n") or b"\r" in line or len(line) > 100_000:
                continue
            try:
                line.decode()
            except UnicodeDecodeError:
                continue
            target.write(line)
            count += 1
            if count == lines:
                break
    if path.suffix == ".tmp":
        path.unlink()
    if count < lines:
        raise fetch.Missing(f"{path} has only {count:,} usable lines of {lines:,}")
    os.replace(f"{out}.tmp", out)
    return out


def expected(path):
    """(SHA-256 of the file, the order-free sum) as the clients' `digest` tells them."""
    whole, total = hashlib.sha256(), 0
    with open(path, "rb") as file:
        for line in file:
            whole.update(line)
            total += int.from_bytes(hashlib.sha256(line[:-1]).digest()[:8], "big")
    return whole.hexdigest(), str(total % (1 << 64))


# Producing under kills


class Producer:
    """Apache's console producer, fed through a pipe; `allowed` holds the feeding back."""

    def __init__(self, server, classpath, path, lines, log):
        properties = {"acks": "all", "enable.idempotence": "true", "retries": "2147483647", "delivery.timeout.ms": "600000", "request.timeout.ms": "10000",
                      "max.block.ms": "600000", "reconnect.backoff.max.ms": "100", "retry.backoff.max.ms": "200", "linger.ms": "5"}
        words = [word for key, value in properties.items() for word in ("--command-property", f"{key}={value}")]
        self.errors = open(log, "wb+")
        self.process = spawn(java_words(classpath, "org.apache.kafka.tools.ConsoleProducer", "--bootstrap-server", server.address, "--topic", TOPIC, *words, heap="512m", level="ERROR"),
                             stdin=subprocess.PIPE, stdout=self.errors, stderr=self.errors)
        self.path, self.lines = path, lines
        self.fed = 0
        self.allowed = 0
        self.more = threading.Condition()
        threading.Thread(target=self._feed, daemon=True).start()

    def _feed(self):
        try:
            with open(self.path, "rb") as file:
                while self.fed < self.lines:
                    with self.more:
                        self.more.wait_for(lambda: self.fed < self.allowed)
                        count = min(200, self.allowed - self.fed)
                    self.process.stdin.write(b"".join(file.readline() for _ in range(count)))
                    self.fed += count
            self.process.stdin.close()
        except (BrokenPipeError, OSError):
            pass

    def allow(self, lines):
        with self.more:
            self.allowed = min(lines, self.lines)
            self.more.notify()

    def wait_fed(self, lines, seconds):
        deadline = time.monotonic() + seconds
        while self.fed < lines:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise Failure(f"the producer stands at line {self.fed:,} (exit {self.process.poll()}): {self.complaints()[-300:]}")
            time.sleep(0.002)

    def complaints(self):
        self.errors.flush()
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")

    def finish(self, seconds):
        """Every line acknowledged, or a failure."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failure(f"the producer did not end within {seconds} s: {self.complaints()[-300:]}") from None
        said = self.complaints()
        if code != 0 or "Error when sending" in said:
            raise Failure(f"not every line was acknowledged (exit {code}): {said[:400]}")

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def kills(server, producer, options, chance):
    """One kill in each stretch of lines, at a random line and a random moment after it."""
    times = []
    stretch = options.lines / (options.kills + 1)
    for number in range(options.kills):
        producer.allow(int(stretch * (number + 1)))
        at = int(stretch * (number + chance.uniform(0.15, 0.9)))
        producer.wait_fed(at, 120)
        time.sleep(chance.uniform(0, 0.1))
        fed = producer.fed
        server.kill()
        server.start()
        times.append(server.ready_after)
        print(f"  kill {number + 1:2}: line {fed:>9,} fed; first Metadata {server.ready_after * 1000:6.0f} ms after exec", flush=True)
    producer.allow(options.lines)
    return times


# Reading back


def readers():
    """Three libraries other than the producer's; where one is missing, the next."""
    wanted = [("confluent-kafka", fetch.python_client("confluent_driver.py", "confluent-kafka")), ("franz-go", fetch.go), ("kafkajs", fetch.javascript),
              ("kafka-python", fetch.python_client("kafka_python_driver.py", "kafka-python"))]
    found = []
    for name, get in wanted:
        try:
            version, command = get()
            found.append((f"{name} {version}", command))
        except fetch.Missing as missing:
            print(f"{name}: skipped: {missing}")
    return found[:3]


def read_back(server, name, command, options, wanted, logs):
    sha, total = wanted
    client = Driver(command, server.address, logs / "reader.log")
    begun = time.monotonic()
    try:
        parts = list(range(options.partitions))
        ends = patient(lambda: client.offsets(TOPIC, parts, "latest"))
        found = client.call("digest", timeout=200, topic=TOPIC, parts=parts, ends=ends, timeout_ms=120000)
    finally:
        client.close()
    count = sum(d["count"] for d in found.values())
    problems = []
    if count != options.lines:
        problems.append(f"{count:,} records for {options.lines:,} lines")
    if any(d["gaps"] or d["first"] != 0 for d in found.values() if d["count"]):
        problems.append("offsets with gaps")
    if str(sum(int(d["sum"]) for d in found.values()) % (1 << 64)) != total:
        problems.append("not the same lines")
    if options.partitions == 1 and found["0"]["sha"] != sha:
        problems.append("not in the file's order")
    print(f"  {name}: {count:,} records, ends {sorted(ends.values())}, {time.monotonic() - begun:.1f} s: {', '.join(problems) or 'nothing missing, nothing doubled, no gap'}", flush=True)
    return not problems


def patient(ask, within=30):
    deadline = time.monotonic() + within
    while True:
        try:
            return ask()
        except Refusal:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def story(options, server, classpath, logs):
    """True for each claim that held."""
    path, what = real_log(options.lines, options.log)
    print(f"{options.lines:,} lines, {path.stat().st_size / 1e6:.0f} MB: {what}")
    wanted = expected(path)
    libraries = readers()
    seed = options.seed if options.seed is not None else random.randrange(1 << 32)
    server.start()
    print(f"{server.label} on {server.address}, first start {server.ready_after * 1000:.0f} ms; seed {seed}", flush=True)
    judge = Driver(libraries[0][1], server.address, logs / "judge.log")
    judge.call("create_topic", name=TOPIC, partitions=options.partitions, config={"retention.ms": "-1"})
    judge.close()
    begun = time.monotonic()
    producer = Producer(server, classpath, path, options.lines, logs / "producer.log")
    claims = {}
    try:
        times = kills(server, producer, options, random.Random(seed))
        producer.finish(600)
    finally:
        producer.kill()
    print(f"the console producer ended well after {time.monotonic() - begun:.1f} s: every line acknowledged")
    claims["every line acknowledged"] = True
    claims["before the last kill"] = read_back(server, *libraries[0], options, wanted, logs)
    server.kill()
    server.start()
    times.append(server.ready_after)
    print(f"killed once more; first Metadata {server.ready_after * 1000:.0f} ms after exec")
    for name, command in libraries:
        claims[name] = read_back(server, name, command, options, wanted, logs)
    # More than a second is said, and no failure: on a machine that does other things as well it is not the node's time alone.
    claims["no start is stuck"] = max(times) <= STUCK_S
    met = "each within" if max(times) <= READY_BAR_S else "not each within"
    print(f"from exec to the first Metadata: {', '.join(f'{t * 1000:.0f}' for t in sorted(times))} ms, {met} {READY_BAR_S:.0f} s")
    return claims


def main(words):
    options = arguments(words)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(130))
    workspace = Path(tempfile.mkdtemp(prefix="barnabas-kill-"))
    server = None
    try:
        version, classpath = fetch.kafka()
        server = Barnabas(workspace / "node", find_binary(options.binary)) if options.peer == "barnabas" else Apache(workspace / "node", version, classpath)
        server.ready_within = 60
        claims = story(options, server, classpath, workspace)
    except fetch.Missing as missing:
        print(f"kill: {missing}")
        print("0 passed, 0 failed, 1 skipped")
        return 0
    except (Failure, Refusal, RuntimeError) as failed:
        print(f"FAILED: {failed}")
        if server:
            print(server.last_lines())
        options.keep = True
        claims = {"the story": False}
    finally:
        if server:
            server.kill()
        if options.keep:
            print(f"kept: {workspace}")
        else:
            shutil.rmtree(workspace, ignore_errors=True)
    failed = [name for name, held in claims.items() if not held]
    for name in failed:
        print(f"did not hold: {name}")
    print(f"{len(claims) - len(failed)} passed, {len(failed)} failed, 0 skipped")
    return 1 if failed else 0


sys.exit(main(sys.argv[1:]))
