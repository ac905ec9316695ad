"""One turn of a row: a steady load beside what goes on, watched from outside, and what is made of it.

Open loop: each record has a time at which it is due, and its latency counts from there (tail.rs). The floor is what another program's synced writes of 4 KiB
took on the same file system in the same seconds (watch.rs), from when they were due as well.
"""

import json
import os
import platform
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from harness.process import spawn
from rig.clients import Client
from rig.machine import Sampled, settle
from rig.measures import warm

from . import moments
from .beside import BESIDE, made
from .histogram import percentile_ms, rank_ms
from .peers import metrics_ports, safepoint_logs
from .phases import Pages
from .programs import built

PRODUCERS, LINGER_MS = 2, 5
SAMPLE_US, PROBE_MS = 5000, 100
# The device at rest, before the load begins.
REST_S, REST_PROBE_MS = 1.5, 10
# Of a turn that is not counted, at its begin: a share, and at most so many seconds.
WARM_UP, WARM_UP_S = 0.25, 10
# Threads that are looked at, as each costs some µs a sample: those that write, read, sync and delete, and the generator's.
JAVA_THREADS = "data-plane,kafka-schedule,kafka-log-clea,ReplicaFetcher,kafka-raft,raft-,rdk:broker,tail"
THREADS = "worker-,journal-,committer-,cleaner-,deletions,housekeeping,mover,scrub,quorum,snapshot,settle-,group-jobs,rdk:broker,tail"
# What all copies of a load's topic may take: beyond that retention is set.
ROOM_BYTES = 8e9


@dataclass(frozen=True)
class Row:
    """A steady load."""

    mb_per_s: float
    record_bytes: int
    partitions: int
    replicas: int
    beside: str = ""

    @property
    def name(self):
        size = "100 B" if self.record_bytes == 100 else "1 kB"
        return f"{self.mb_per_s:g} MB/s, {size}, {self.partitions:,} partition{'s' if self.partitions > 1 else ''}, RF {self.replicas}{f', beside {self.beside}' if self.beside else ''}"

    @property
    def records_per_s(self):
        return self.mb_per_s * 1e6 / self.record_bytes


class Watched:
    """watch.rs beside a server, as long as the `with` lasts; then `lines`."""

    def __init__(self, peer, probe_ms=PROBE_MS, pids=None):
        directory = peer.directory
        device = os.stat(directory).st_dev
        pids = peer.pids() if pids is None else pids
        self.process = spawn([built("watch"), directory, f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat", SAMPLE_US, probe_ms, JAVA_THREADS if peer.compiles else THREADS, *pids],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.lines, self.reading = [], threading.Thread(target=self._read, daemon=True)
        self.reading.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(json.loads(line))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.reading.join(30)
        self.process.stdout.close()


def bounded(row, seconds):
    """Topic settings that keep a long and large load within ROOM_BYTES; nothing where it stays there by itself."""
    total = row.mb_per_s * 1e6 * seconds * row.replicas
    if total <= ROOM_BYTES:
        return {}
    return {"retention.bytes": str(int(ROOM_BYTES / row.replicas / row.partitions)), "segment.bytes": str(256 << 20), "file.delete.delay.ms": "1000"}


@dataclass
class Steady:
    row: Row
    seconds: float
    linger_ms: float = LINGER_MS
    producers: int = PRODUCERS
    # Each turn has a topic of its own, and its begin counts.
    fresh: bool = False
    # Of librdkafka, over those below.
    settings: tuple = ()
    topics: dict = field(default_factory=dict)

    @property
    def beside(self):
        return BESIDE[self.row.beside]

    @property
    def warm_up(self):
        return 0 if self.fresh else min(self.seconds * WARM_UP, WARM_UP_S)

    def takes(self, plan, peer):
        many = self.row.partitions * self.row.replicas / (300 if peer.makes_files_later else 5000)
        return 8 + many + 10 * bool(self.row.beside), self.seconds + REST_S + 3

    def prepare(self, rig, peer, case):
        warm(rig, peer)
        self.topics[peer.name] = name = f"tail-{self.row.mb_per_s:g}-{self.row.record_bytes}-{self.row.partitions}{'-' + self.row.beside.split()[-1] if self.row.beside else ''}"
        self.make(rig, peer, name)
        self.beside.prepare(rig, peer, name)
        # What comes first in a new topic (files, memory, a JVM's code) is no steady load.
        said(self.command(peer, name, 2 if rig.plan.is_quick else 6), rig)

    def make(self, rig, peer, name):
        settings = {**bounded(self.row, self.seconds * rig.plan.runs), **self.beside.topic}
        made(peer, name, self.row.partitions, self.row.replicas, settings, self.beside.rows())

    def finish(self, rig, peer, case):
        self.beside.finish(rig, peer, self.topics[peer.name])
        peer.delete([self.topics[peer.name]], 300)

    def command(self, peer, name, seconds):
        return [built("tail"), "produce", peer.server.address, name, str(self.producers), str(self.row.records_per_s), str(self.row.record_bytes), str(seconds), str(self.warm_up), "0",
                "acks=all", f"linger.ms={self.linger_ms:g}", "batch.num.messages=10000", "queue.buffering.max.messages=1000000", "queue.buffering.max.kbytes=1000000", *self.settings]

    def run(self, rig, peer, case, number):
        name = self.topics[peer.name]
        if self.fresh:
            peer.delete([name], 300)
            self.make(rig, peer, name)
        settle()
        with Watched(peer, REST_PROBE_MS, pids=[]) as rest:
            time.sleep(REST_S)
        rested = [one[2] for one in rest.lines if one[0] == "probe" and one[2] >= 0]
        with self.beside.going(rig, peer, name, self.seconds) as (clients, did):
            pids = self.beside.pids(peer)
            used = Sampled(pids)
            # It begins after a fifth of a second.
            process = Client(self.command(peer, name, self.seconds), rig.clients.log)
            with Watched(peer, pids=[*pids, process.pid]) as watched, Pages(metrics_ports(peer)) as pages:
                used.watch([process, watched.process, *clients])
                try:
                    found = json.loads(rig.clients.said([process], f"{case} against {peer.label}", self.seconds + 150)[0].strip().splitlines()[-1])
                finally:
                    used.end()
        parsed = moments.parsed(watched.lines, [*pids, process.pid], platform.machine())
        parsed[0].extend(pause for place, path in enumerate(safepoint_logs(peer)) for pause in moments.pauses(path.read_text(errors="replace"), place))
        return {**self.figures(found, used, rested, parsed), **self.told(found, rested, parsed, pages, len(pids)), "beside": did, "page_failures": pages.failed}

    def figures(self, found, used, rested, parsed):
        """Numbers by name (rows.FIGURES)."""
        begun, histogram = found["begun_us"], found["histogram"]
        counted = sum(count for _, count in histogram)
        first, last = begun / 1e6 + self.warm_up, begun / 1e6 + self.seconds
        floor = [one.us for one in parsed[3] if first * 1e6 <= one.due <= last * 1e6 and one.us >= 0]
        of = {name: percentile_ms(histogram, share, found["max_us"]) for name, share in (("p50_ms", 0.5), ("p99_ms", 0.99), ("p999_ms", 0.999), ("p9999_ms", 0.9999), ("max_ms", 1))}
        span = max(found["last_ack_us"] / 1e6, last) - first
        floors = {f"floor_{name}": rank_ms(floor, share) for name, share in (("p50_ms", 0.5), ("p99_ms", 0.99), ("max_ms", 1))}
        acked = counted - found["never"]
        used_of = used.between(first, last, max(acked, 1))
        return {**{name: round(value, 3) for name, value in {**of, **floors, "rest_ms": rank_ms(rested, 0.5)}.items()}, "records": acked, "records_per_s": round(acked / span),
                "mb_per_s": round(acked * self.row.record_bytes / span / 1e6, 1), "never": found["never"], "failed_records": found["failed"],
                "late_p99_ms": found["late_p99_ms"], "late_max_ms": found["late_max_ms"], "p99_above_floor_ms": round(of["p99_ms"] - floors["floor_p99_ms"] - self.linger_ms, 3),
                "p99_over_floor": round(of["p99_ms"] / max(floors["floor_p99_ms"], 0.001), 2), "probes": len(floor), **used_of,
                **({f"watch_{name}": value for name, value in parsed[4].items()})}

    def told(self, found, rested, parsed, pages, nodes):
        """Histogram, time line, sentences. `nodes`: processes of the peer."""
        calls, waited, devices, probes, _ = parsed
        origin = found["begun_us"]
        requests = [moments.Request(*one) for one in found["slowest"] if one[0] >= origin + self.warm_up * 1e6]
        p99_us = percentile_ms(found["histogram"], 0.99, found["max_us"]) * 1e3
        seen = moments.Seen(calls, waited, devices, probes, rank_ms(rested, 0.5) * 1e3, pages.between, generator=nodes)
        slowest = moments.moments(requests)
        floor = {}
        for one in probes:
            place = int((one.due - origin) // 1_000_000)
            floor[place] = max(floor.get(place, 0), one.us)
        seconds = found["seconds"]
        return {"histogram": found["histogram"], "seconds_line": [[one[2], one[3], round(floor.get(place, 0) / 1e3, 2)] for place, one in enumerate(seconds)],
                "slow_seconds": moments.slow_seconds([[0, 0, 0, 0]] * int(self.warm_up) + seconds[int(self.warm_up):]), "causes": moments.causes([request for request, _ in slowest], seen),
                "causes_of_p99": moments.causes([one for one in requests if one.acked - one.due >= p99_us], seen),
                "company": moments.company(seen),
                "slowest": [moments.sentence(request, seen, origin, others, nodes > 1) for request, others in slowest]}


def said(command, rig):
    """A load that is not looked at."""
    process = Client(command, rig.clients.log)
    return rig.clients.said([process], " ".join(Path(word).name for word in command[:4]), 150)[0]
