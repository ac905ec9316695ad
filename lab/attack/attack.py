"""What does an attack cost the node, and a good producer beside it?

For each attack and each server: a fresh node; a good producer alone (the baseline), then the same producer while the attack goes on. Shown: the producer's
p99 in both, its failed records, the node's largest resident memory during the attack and its memory three seconds after it (thirty, where the row says so),
whether the node lives, and whether it starts again.

A row of ours passes when the node lives, starts again, fails no record of the good producer, holds less than the attack's memory_mib, and the producer's p99 is at most
P99_TIMES that of the producer alone; an attack may see a further fault. The attack's threads yield to the node (nice). p99 is not judged, and the row says so,
where the attack's client or other processes take more than CLIENT_SHARE of the machine. A row that fails by p99 alone is measured once more, and
passes if the second p99 is judged and passes.
Everything goes over loopback; each attack is bounded in requests and in seconds. With --planted, rows of which each must fail: they check the judgement.
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
import signal
import tempfile
import threading
import time
import zlib
from pathlib import Path

from compat import fetch
from harness.ask import data, text
from harness.usage import cpu_seconds, peak_mb, reset_peak, resident_mb
from bombs import BOMBS
from floods import FLOODS
from greedy import GREEDY, PLANTED_GREEDY
from held import HELD
from login import LOGIN
from nodes import OpenApache, OpenBarnabas
from peer import Attack, batch, connect, exchange, frame
from timing import PLANTED_TIMING, TIMING
from tls import TLS

ROOT = Path(__file__).resolve().parents[2]

RATE = 2_000
P99_TIMES = 2
# Of all cores.
CLIENT_SHARE = 0.25
ALONE_S = 5
YIELDING = 10


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
        other, same = (self.answered_after(lambda: exchange(connect(self.server.port, 2, source), frame(18, 0, b""))) for source in ("127.0.0.2", "127.0.0.1"))
        self.over.wait()
        self.note = f"{len(held)} made, {refused} refused; a new client of another address was answered {other}, one of the same {same}"


class Rubbish(Attack):
    name, what = "rubbish", "Produce of batches with rubbish under gzip and a right checksum"

    def run(self):
        body = struct.pack(">hhi", -1, -1, 30_000) + struct.pack(">i", 1) + text("good") + struct.pack(">ii", 1, 0) + data(batch(os.urandom(500), codec=1))
        answer = exchange(connect(self.server.port), frame(0, 3, body))
        code = answer and struct.unpack_from(">h", answer, 4 + 4 + 2 + 4 + 4 + 4)[0]
        self.again_and_again(frame(0, 3, body), 200)
        self.note = f"error code {code}"


class Paused(Attack):
    name, what, must_say = "planted pause", "the node is stopped for three seconds", "p99"
    is_excused = False

    def run(self):
        self.server.pause()
        time.sleep(3)
        self.server.resume()


class Killed(Attack):
    name, what, must_say = "planted end", "the node is killed", "ended"

    def run(self):
        self.server.signal(signal.SIGKILL)


class Fat(HalfFrames):
    name, what, must_say = "planted memory", "the budget is one MiB", "memory"
    memory_mib = 1


class Fault(Attack):
    name, what, must_say = "planted fault", "the attack sees a fault", "seen"

    def run(self):
        self.fault = "seen"


ATTACKS = [FalseVote, RepeatedResource, ManyPartitions, ManyTopics, HalfFrames, OldGzip, LargeMembers, UnreadAnswers, ManyConnections, Rubbish, *HELD, *FLOODS, *BOMBS, *TLS, *LOGIN, *TIMING, *GREEDY]
PLANTED = [Paused, Killed, Fat, Fault, *PLANTED_TIMING, *PLANTED_GREEDY]


class Producer:
    """The good producer: ours, at a fixed rate, the same for every server."""

    def __init__(self, binary, attack, seconds):
        address, settings = attack.good()
        # A login has more than one "=", which --producer-props does not take.
        config = attack.server.directory / "good.properties"
        config.write_text("".join(f"{setting}\n" for setting in settings))
        self.process = subprocess.Popen(
            [binary, "producer-perf-test", "--topic", "good", "--num-records", str(RATE * seconds), "--record-size", "1000", "--throughput", str(RATE),
             "--producer-props", f"bootstrap.servers={address}", "acks=all", "linger.ms=5", "delivery.timeout.ms=60000", "request.timeout.ms=30000",
             "--command-config", str(config)],
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


class Cores:
    """How many cores were taken since it was made: by this rig (the attack's client, the good producer and what else it started), by the node, by others."""

    def __init__(self, process):
        self.process, self.begun = process, time.monotonic()
        self.first = self.read()

    def read(self):
        words = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        # All but idle and waiting; of a hypervisor's other guests as well.
        every = (sum(words) - words[3] - words[4]) / os.sysconf("SC_CLK_TCK")
        own = sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))
        node = cpu_seconds(self.process.pid) if self.process.poll() is None else 0
        return every, own, node

    def taken(self):
        """(rig, others)"""
        every, own, node = (now - then for now, then in zip(self.read(), self.first))
        lasted = time.monotonic() - self.begun
        return own / lasted, max(0, every - own - max(0, node)) / lasted


def warm_up(attack, binary):
    subprocess.run([binary, "topics", "--bootstrap-server", attack.server.address, "--create", "--topic", "good", "--partitions", "1"], check=True, capture_output=True)
    attack.stage()
    Producer(binary, attack, 3).result()


def attacked(attack, binary, seconds):
    """(p99, failed records of the good producer; cores that the rig and others took)"""
    def guarded():
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), YIELDING)
        try:
            attack.run()
        except Exception as error:  # noqa: BLE001
            attack.broke(error, "it")
    good, thread = Producer(binary, attack, seconds), threading.Thread(target=guarded, daemon=True)
    cores = Cores(attack.server.process)
    time.sleep(1)
    thread.start()
    # A good producer that is behind does not lengthen the attack.
    end = threading.Timer(seconds + 2, attack.over.set)
    end.start()
    during, failed = good.result()
    end.cancel()
    attack.over.set()
    thread.join(30)
    if thread.is_alive():
        attack.note += " (the attack did not end within 30 s)"
    return during, failed, cores.taken()


def start_again(attack):
    attack.server.stop()
    try:
        attack.server.start()
        attack.server.stop()
        return True
    except RuntimeError as error:
        attack.note += f"; {str(error)[:160]}"
        return False


def measure(kind, make, binary, seconds, is_ours):
    with tempfile.TemporaryDirectory(prefix="barnabas-attack-") as directory:
        server = make(directory, {"num.partitions": "1", **kind.settings})
        attack = kind(server)
        attack.arrange(directory)
        server.start()
        try:
            warm_up(attack, binary)
            alone = Cores(server.process)
            before, _ = Producer(binary, attack, ALONE_S).result()
            rig_alone, others_alone = alone.taken()
            process = server.process
            reset_peak(process.pid)
            base = resident_mb(process.pid)
            during, failed, (rig, others) = attacked(attack, binary, max(seconds, kind.seconds))
            lives = process.poll() is None
            peak = peak_mb(process.pid) if lives else 0
            time.sleep(kind.settle_s)
            after = resident_mb(process.pid) if server.is_alive() else 0
            # Of another make it is not judged: only where it has ended.
            starts = start_again(attack) if is_ours or not lives else True
        finally:
            server.stop()
            server.remove()
        client = rig - rig_alone
        return dict(server=server.label, attack=kind.name, before=before, during=during, failed=failed, base=base, peak=peak, after=after, lives=lives, starts=starts,
                    note=attack.note, fault=attack.fault, client=client, others=max(others, others_alone), budget=kind.memory_mib, is_excused=kind.is_excused)


def excuse(result, cores=os.cpu_count()):
    """Why p99 is not judged; empty where it is."""
    if not result["is_excused"]:
        return ""
    for who, taken in (("the attack's client", result["client"]), ("other processes", result["others"])):
        if taken > CLIENT_SHARE * cores:
            return f"{who} took {taken:.1f} of {cores} cores"
    return ""


def judged(result):
    """What is wrong with a row; empty where nothing is."""
    wrong = [said for is_wrong, said in (
        (not result["lives"], "the node ended"),
        (not result["starts"], "it does not start again"),
        (result["failed"], f"{result['failed']} records failed"),
        (result["peak"] >= result["budget"], f"memory of {result['peak']:.0f} MiB, {result['budget']} are allowed"),
        (result["fault"], result["fault"]),
    ) if is_wrong]
    if None not in (result["before"], result["during"]) and result["during"] > P99_TIMES * result["before"] and not excuse(result):
        wrong.append(f"p99 is {result['during'] / max(result['before'], 0.1):.1f} times that of before")
    return wrong


def shown(value):
    return "–" if value is None else f"{value:.1f}"


def row(result):
    state = "lives" if result["lives"] else "DEAD"
    state += "" if result["starts"] else ", DOES NOT START"
    why = excuse(result)
    verdict = "; ".join(judged(result)) or "passes"
    verdict += f" (p99 not judged: {why})" if why else ""
    return (f"| {result['attack']} | {result['server']} | {shown(result['before'])} | {shown(result['during'])} | {result['failed']} | {result['base']:.0f} | "
            f"{result['peak']:.0f} | {result['after']:.0f} | {state} | {verdict} | {result['note']} |")


HEAD = ["| attack | server | p99 before, ms | p99 during, ms | failed records | memory before, MiB | largest | after | node | verdict | |", "|---|---|---|---|---|---|---|---|---|---|---|"]


def peers(options):
    """([(name, how a node of it is made)], how many were left out)"""
    def named(binary, label):
        def make(directory, settings):
            server = OpenBarnabas(directory, binary, settings)
            server.label = label
            return server
        return make

    makers = [("before", named(options.before, "Barnabas before"))] if options.before else []
    makers.append(("ours", named(options.binary, "Barnabas")))
    if options.ours or options.planted:
        return makers, 0
    try:
        version, classpath = fetch.kafka()
        return [*makers, ("kafka", lambda directory, settings: OpenApache(directory, version, classpath, settings))], 0
    except fetch.Missing as missing:
        print(f"attack: without Apache Kafka: {missing}")
        return makers, 1


def main():
    parser = argparse.ArgumentParser(prog="lab/attack/run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=str(ROOT / "target/release/barnabas"))
    parser.add_argument("--before", help="an older program, as a further row of each attack")
    parser.add_argument("--only", help="names of attacks, with commas between them; spaces may be hyphens")
    parser.add_argument("--ours", action="store_true", help="without Apache Kafka")
    parser.add_argument("--planted", action="store_true", help="only rows that must fail, on our node")
    parser.add_argument("--seconds", type=int, default=8, help="of an attack, at least")
    parser.add_argument("--markdown", help="a file for the table")
    options = parser.parse_args()
    kinds = PLANTED if options.planted else ATTACKS
    if options.only:
        wanted = options.only.replace(" ", "-").split(",")
        unknown = set(wanted) - {plain(kind) for kind in kinds}
        if unknown:
            parser.error(f"no such attack: {', '.join(sorted(unknown))}. There are {', '.join(plain(kind) for kind in kinds)}")
        kinds = [kind for kind in kinds if plain(kind) in wanted]
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    makers, skipped = peers(options)
    lines = list(HEAD)
    print("\n".join(lines), flush=True)
    passed = failed = 0
    for kind in kinds:
        for who, make in makers:
            is_ours, first = who == "ours", []
            for is_last in (not is_ours or options.planted, True):
                result = measure(kind, make, options.binary, options.seconds, is_ours)
                # What the second measurement cannot judge stays as the first one did.
                wrong = judged(result) or (first if excuse(result) else [])
                lines.append(row(result))
                print(lines[-1], flush=True)
                if is_last or len(wrong) != 1 or not wrong[0].startswith("p99"):
                    break
                first = wrong
            if is_ours:
                is_fine = any(kind.must_say in each for each in wrong) if options.planted else not wrong
                passed, failed = passed + is_fine, failed + (not is_fine)
    lines += ["", *(f"- {kind.name}: {kind.what}" for kind in kinds)]
    if options.markdown:
        Path(options.markdown).write_text("\n".join(lines) + "\n")
    print(f"attack: {passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


def plain(kind):
    return kind.name.replace(",", "").replace(" ", "-")


if __name__ == "__main__":
    sys.exit(main())
