"""What does an attack cost the node, and a good producer beside it?

For each attack and each server: a fresh node; a good producer alone (the baseline), then the same producer while the attack goes on. Shown: the producer's
p99 in both, its failed records, the node's largest resident memory during the attack and its memory three seconds after it, whether the node lives, and
whether it starts again.

A row passes when our node lives, starts again, fails no record of the good producer and holds less than MEMORY_MIB. Times are shown and not judged.
Everything goes over loopback; each attack is bounded in requests and in seconds.
"""

import argparse
import gzip
import os
import re
import resource
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from pathlib import Path

from compat import fetch
from harness.ask import crc32c, data, text
from harness.server import Apache, Barnabas
from harness.usage import peak_mb, reset_peak, resident_mb
from held import HELD
from peer import Attack, connect, exchange, frame

ROOT = Path(__file__).resolve().parents[2]

RATE = 2_000
MEMORY_MIB = 1_024


class FalseVote(Attack):
    name, what = "vote", "Vote requests of epoch 2^31-1 from an unknown candidate"

    def run(self):
        partition = struct.pack(">iiiiq", 0, 2**31 - 1, 77, 2**31 - 2, 2**62) + b"\0"
        topic = b"\x13" + b"__cluster_metadata" + b"\x02" + partition + b"\0"
        self.again_and_again(frame(52, 0, b"\0" + b"\x02" + topic + b"\0", is_flexible=True), 20, self.server.controller_port)


class RepeatedResource(Attack):
    name, what = "describe", "DescribeConfigs of 40 kB that names one broker again and again"

    def run(self):
        entry = struct.pack(">b", 4) + text("1") + struct.pack(">i", -1)
        self.again_and_again(frame(32, 1, struct.pack(">i", 5_000) + entry * 5_000 + b"\x01"), 20)


class ManyPartitions(Attack):
    name, what = "partitions", "CreateTopics with a million partitions, five times"

    def run(self):
        connection, codes = connect(self.server.port, 120), []
        for number in range(5):
            topic = text(f"large{number}") + struct.pack(">ihii", 1_000_000, 1, 0, 0)
            answer = exchange(connection, frame(19, 2, struct.pack(">i", 1) + topic + struct.pack(">i?", 30_000, False)))
            if answer is None:
                break
            # Correlation id, throttle time, one topic: name, code.
            codes.append(struct.unpack_from(">h", answer, 4 + 4 + 4 + 2 + len(f"large{number}"))[0])
        self.note = f"error codes {codes}"


class ManyTopics(Attack):
    name, what = "topics", "Metadata of 200 kB that names 20,000 new topics"

    def run(self):
        names = b"".join(text(f"t{number:06d}") for number in range(20_000))
        self.again_and_again(frame(3, 4, struct.pack(">i", 20_000) + names + b"\x01"), 5)


class HalfFrames(Attack):
    name, what = "half frames", "40 connections that announce 100 MB, send 1 kB and stop"

    def run(self):
        held = []
        for _ in range(40):
            connection = connect(self.server.port)
            connection.sendall(struct.pack(">i", 100_000_000) + b"\0" * 1_000)
            held.append(connection)
        self.over.wait()
        self.note = f"{len(held)} held"


class OldGzip(Attack):
    name, what = "old gzip", "Produce of old-format gzip message sets, 20 MB in 60 kB"
    settings = {"message.max.bytes": "1000012"}

    def run(self):
        inner = self.message(b"", 0)
        packed = gzip.compress(inner * (20_000_000 // len(inner)), 9)
        batch = self.message(packed, 1)
        body = struct.pack(">hi", 1, 30_000) + struct.pack(">i", 1) + text("good") + struct.pack(">ii", 1, 0) + data(batch)
        self.again_and_again(frame(0, 2, body), 200)
        self.note += f"; {len(packed) / 1000:.0f} kB each"

    @staticmethod
    def message(value, attributes):
        tail = struct.pack(">bbq", 1, attributes, 1_700_000_000_000) + struct.pack(">i", -1) + data(value)
        return struct.pack(">qiI", 0, 4 + len(tail), zlib.crc32(tail)) + tail


class LargeMembers(Attack):
    name, what = "members", "20 JoinGroup requests with 40 MB of metadata each"

    def run(self):
        held, metadata = [], b"\0" * 40_000_000
        for number in range(20):
            if self.over.is_set():
                break
            try:
                connection = connect(self.server.port, 30)
                body = text("attack") + struct.pack(">ii", 60_000, 60_000) + text("") + text("consumer") + struct.pack(">i", 1) + text("range") + data(metadata)
                connection.sendall(frame(11, 1, body))
                held.append(connection)
            except OSError:
                pass
        self.over.wait(10)
        self.note = f"{len(held)} sent"


class UnreadAnswers(Attack):
    name, what = "unread", "20 connections that ask for all topics again and again and read no answer"

    def run(self):
        held, sent, request = [], 0, frame(18, 0, b"") + frame(3, 1, struct.pack(">i", -1))
        for _ in range(20):
            connection = connect(self.server.port)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.setblocking(False)
            held.append(connection)
        while not self.over.is_set() and sent < 400_000_000:
            progress = 0
            for connection in held:
                try:
                    progress += connection.send(request * 200)
                except (BlockingIOError, OSError):
                    pass
            sent += progress
            if not progress:
                time.sleep(0.05)
        self.note = f"{sent / 2**20:.1f} MiB of requests taken"


class ManyConnections(Attack):
    name, what = "connections", "5,000 connections of 127.0.0.1 that send two bytes; a new client of another address comes meanwhile, then one of the same"

    def run(self):
        held, refused = [], 0
        for _ in range(5_000):
            if self.over.is_set():
                break
            try:
                connection = connect(self.server.port, 2)
                connection.sendall(b"\0\0")
                held.append(connection)
            except OSError:
                refused += 1
        other, same = self.answered_after("127.0.0.2"), self.answered_after("127.0.0.1")
        self.over.wait()
        self.note = f"{len(held)} made, {refused} refused; a new client of another address was answered {other}, one of the same {same}"

    def answered_after(self, source):
        """How long a client tries until it is answered; 50 ms between two tries, as Kafka's clients."""
        started, tries = time.monotonic(), 0
        while time.monotonic() - started < 20:
            tries += 1
            try:
                if exchange(connect(self.server.port, 2, source), frame(18, 0, b"")):
                    return f"after {time.monotonic() - started:.2f} s ({tries} tries)"
            except OSError:
                pass
            time.sleep(0.05)
        return "not within 20 s"


class Rubbish(Attack):
    name, what = "rubbish", "Produce of batches with rubbish under gzip and a right checksum"

    def run(self):
        tail = struct.pack(">hiqqqhii", 1, 0, 1_700_000_000_000, 1_700_000_000_000, -1, -1, -1, 1) + os.urandom(500)
        batch = struct.pack(">qiibI", 0, 4 + 1 + 4 + len(tail), -1, 2, crc32c(tail)) + tail
        body = struct.pack(">hhi", -1, -1, 30_000) + struct.pack(">i", 1) + text("good") + struct.pack(">ii", 1, 0) + data(batch)
        answer = exchange(connect(self.server.port), frame(0, 3, body))
        code = answer and struct.unpack_from(">h", answer, 4 + 4 + 2 + 4 + 4 + 4)[0]
        self.again_and_again(frame(0, 3, body), 200)
        self.note = f"error code {code}"


ATTACKS = [FalseVote, RepeatedResource, ManyPartitions, ManyTopics, HalfFrames, OldGzip, LargeMembers, UnreadAnswers, ManyConnections, Rubbish, *HELD]


class Producer:
    """The good producer: ours, at a fixed rate, the same for every server."""

    def __init__(self, binary, server, seconds):
        self.process = subprocess.Popen(
            [binary, "producer-perf-test", "--topic", "good", "--num-records", str(RATE * seconds), "--record-size", "1000", "--throughput", str(RATE),
             "--producer-props", f"bootstrap.servers={server.address}", "acks=all", "linger.ms=5", "delivery.timeout.ms=60000", "request.timeout.ms=30000"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def result(self):
        """(p99 in ms, failed records); None where no record was sent."""
        try:
            said, _ = self.process.communicate(timeout=150)
        except subprocess.TimeoutExpired:
            self.process.kill()
            said, _ = self.process.communicate()
        found = re.findall(r"([\d.]+) ms 99th", said)
        failed = re.search(r"(\d+) records? (?:failed|were not)", said)
        return (float(found[-1]) if found else None), (int(failed.group(1)) if failed else 0 if found else RATE)


def measure(kind, make, binary, seconds):
    with tempfile.TemporaryDirectory(prefix="barnabas-attack-") as directory:
        server = make(directory, {"num.partitions": "1", **kind.settings})
        server.start()
        subprocess.run([binary, "topics", "--bootstrap-server", server.address, "--create", "--topic", "good", "--partitions", "1"], check=True, capture_output=True)
        Producer(binary, server, 3).result()
        before, _ = Producer(binary, server, seconds).result()
        process = server.process
        reset_peak(process.pid)
        base = resident_mb(process.pid)
        attack = kind(server)

        def guarded():
            try:
                attack.run()
            except Exception as error:  # noqa: BLE001
                attack.note += f" ({type(error).__name__}: {error})"
        good, thread = Producer(binary, server, seconds), threading.Thread(target=guarded, daemon=True)
        time.sleep(1)
        thread.start()
        during, failed = good.result()
        attack.over.set()
        thread.join(30)
        lives = process.poll() is None
        peak = peak_mb(process.pid) if lives else 0
        time.sleep(3)
        after = resident_mb(process.pid) if server.is_alive() else 0
        server.stop()
        starts = True
        try:
            server.start()
            server.stop()
        except RuntimeError as error:
            starts, attack.note = False, attack.note + f"; {str(error)[:160]}"
        server.remove()
        return dict(server=server.label, attack=kind.name, before=before, during=during, failed=failed, base=base, peak=peak, after=after, lives=lives, starts=starts, note=attack.note)


def shown(value):
    return "–" if value is None else f"{value:.1f}"


def row(result):
    state = "lives" if result["lives"] else "DEAD"
    state += "" if result["starts"] else ", DOES NOT START"
    return (f"| {result['attack']} | {result['server']} | {shown(result['before'])} | {shown(result['during'])} | {result['failed']} | {result['base']:.0f} | "
            f"{result['peak']:.0f} | {result['after']:.0f} | {state} | {result['note']} |")


def main():
    parser = argparse.ArgumentParser(prog="lab/attack/run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=str(ROOT / "target/release/barnabas"))
    parser.add_argument("--before", help="an older program, as a further row of each attack")
    parser.add_argument("--only", help="names of attacks, with commas")
    parser.add_argument("--ours", action="store_true", help="without Apache Kafka")
    parser.add_argument("--seconds", type=int, default=10, help="of each measurement")
    parser.add_argument("--markdown", help="a file for the table")
    options = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    makers = [("ours", lambda directory, settings: Barnabas(directory, options.binary, settings))]
    if options.before:
        def older(directory, settings):
            server = Barnabas(directory, options.before, settings)
            server.label = "Barnabas before"
            return server
        makers.insert(0, ("before", older))
    skipped = 0
    if not options.ours:
        try:
            version, classpath = fetch.kafka()
            makers.append(("kafka", lambda directory, settings: Apache(directory, version, classpath, settings)))
        except fetch.Missing as missing:
            print(f"attack: without Apache Kafka: {missing}")
            skipped = 1
    lines = ["| attack | server | p99 before, ms | p99 during, ms | failed records | memory before, MiB | largest | 3 s after | node | |", "|---|---|---|---|---|---|---|---|---|---|"]
    print("\n".join(lines), flush=True)
    passed = failed = 0
    wanted = options.only and options.only.split(",")
    for kind in ATTACKS:
        if wanted and kind.name not in wanted:
            continue
        for who, make in makers:
            result = measure(kind, make, options.binary, options.seconds)
            lines.append(row(result))
            print(lines[-1], flush=True)
            if who == "ours":
                is_fine = result["lives"] and result["starts"] and not result["failed"] and result["peak"] < MEMORY_MIB
                passed, failed = passed + is_fine, failed + (not is_fine)
    lines += ["", *(f"- {kind.name}: {kind.what}" for kind in ATTACKS if not wanted or kind.name in wanted)]
    if options.markdown:
        Path(options.markdown).write_text("\n".join(lines) + "\n")
    print(f"attack: {passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
