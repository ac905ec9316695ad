"""What is done in one run of a case: a producer's load, reading, one record at a time, or a story of the workload's own.

A measure is asked to `prepare` once for each peer (its first run is thrown away), then for `run` after `run`, then to `finish`. A run answers with
its figures by name (report.FIGURES); what it made on the server is gone afterwards. `takes` is what the estimate of a set is made of: seconds to
prepare, and of a run.
"""

import os
import time
from dataclasses import dataclass, field, replace
from typing import Callable

from .clients import UNDER_WAY_S, WARM_UP_S, Load, java, librdkafka, own


def topic_name(case, number):
    return "w-" + "".join(letter if letter.isalnum() else "-" for letter in case)[:40].lower() + f"-{number}"


def names(load, first):
    return [first] if load.topics == 1 else [f"{first}-of-{number}" for number in range(load.topics)]


# What a run costs beside its own seconds: making and deleting a topic, writing out what the one before left behind; a Java client's start besides.
AROUND_S, JAVA_START_S = 0.5, 0.8


def warm(rig, peer):
    """What a server's compiler, files and memory need once before its figures are its own: many small requests (a compiler counts calls, not
    bytes), then large ones, then reads."""
    if getattr(peer, "is_warm", False):
        return
    small, large = warm_up_seconds(rig.plan, peer)
    peer.create({"warm-up": 16})
    records = 0
    for load, seconds in ((librdkafka("warm-up, small", 16, 100, 3, batch_num_messages=20, linger_ms=0), small), (librdkafka("warm-up", 16, 100, 3), large)):
        records += rig.clients.run(peer, load, "warm-up", seconds)["records"] if seconds else 0
    if peer.serves_reads and not rig.plan.is_quick:
        rig.clients.consume(peer, "warm-up", min(records, 5_000_000), "librdkafka", 16)
    if peer.compiles and not rig.plan.is_quick:
        # It learns most from what it will be asked.
        rig.clients.run(peer, replace(java("warm-up, Java", 16, 100, 1, 16384, 0), first_rate=200_000), "warm-up", 3)
    peer.delete(["warm-up"])
    peer.is_warm = True


def warm_up_seconds(plan, peer):
    """(of small requests, of large ones)"""
    return (0, 1) if plan.is_quick else (peer.warm_up_seconds * 0.7, peer.warm_up_seconds * 0.3)


@dataclass
class Produce:
    """A load. Without a `topic` each run is on one of its own; with one all share it, and nobody deletes it: for partitions that take long to make."""

    load: Load
    seconds: float | None = None
    topic: str = ""

    def _seconds(self, plan):
        return self.seconds or plan.seconds

    def _create(self, peer, topics):
        made = peer.__dict__.setdefault("kept_topics", set())
        if not made.issuperset(topics):
            peer.create({name: self.load.partitions for name in topics})
        if self.topic:
            made.update(topics)

    def prepare(self, rig, peer, case):
        warm(rig, peer)
        self.load.title = case
        if self._warms_itself(peer) and not self.topic:
            return
        topics = [self.topic] if self.topic else names(self.load, topic_name(case, "warm"))
        self._create(peer, topics)
        rig.clients.run(peer, self.load, topics, self._first_seconds(rig.plan, peer))
        if not self.topic:
            peer.delete(topics)

    def _codec(self):
        return self.load.settings.get("compression.type") or self.load.settings.get("compression.codec") or "none"

    def _warms_itself(self, peer):
        """Apache's producer does in each run; what a server that is compiled as it runs does for a codec is new to it."""
        return self.load.client == "java" and (self._codec() == "none" or not peer.compiles)

    def _first_seconds(self, plan, peer):
        """Of the run that is thrown away."""
        return 3 if peer.compiles and self._codec() != "none" and not plan.is_quick else min(self._seconds(plan), 1)

    def run(self, rig, peer, case, number):
        topics = [self.topic] if self.topic else names(self.load, topic_name(case, number))
        self._create(peer, topics)
        told = rig.clients.run(peer, self.load, topics, self._seconds(rig.plan))
        if not self.topic:
            peer.delete(topics)
        return {**told, "mb_per_s": round(told["records_per_s"] * self.load.record_bytes / 1e6, 1)}

    def finish(self, rig, peer, case):
        """Nothing is left, or it is to stay."""

    def takes(self, plan, peer):
        around = AROUND_S + (JAVA_START_S + WARM_UP_S + UNDER_WAY_S if self.load.client == "java" else 0)
        # Kafka makes some 130 partitions a second; the second case on a topic finds it made.
        making = self.load.partitions / 130 if peer.makes_files_later and self.load.partitions >= 1000 and self.load.client == "librdkafka" else 0
        return making + (0 if self._warms_itself(peer) and not self.topic else around + self._first_seconds(plan, peer)), around + self._seconds(plan)


@dataclass
class Consume:
    """Reads one topic again and again. `cold`: its files are written out and dropped from the page cache before each run, after so much else was
    sent that the server's own memory of recent batches holds none of it."""

    partitions: int
    record_bytes: int
    records: int
    cold: bool = False
    client: str = "java"

    def prepare(self, rig, peer, case):
        warm(rig, peer)
        topic = topic_name(case, "r")
        peer.create({topic: self.partitions})
        fill = own("fill", self.partitions, self.record_bytes, 2)
        rig.clients.rates["fill", peer.name] = self.records
        rig.clients.run(peer, fill, topic, 1)
        if self.cold:
            peer.create({"other": 16})
            rig.clients.run(peer, librdkafka("push out", 16, 1000, 3), "other", 1 if rig.plan.is_quick else 3)
            peer.delete(["other"])
        self._read(rig, peer, topic)

    def run(self, rig, peer, case, number):
        if self.cold:
            drop_page_cache(peer)
        return self._read(rig, peer, topic_name(case, "r"))

    def _read(self, rig, peer, topic):
        return rig.clients.consume(peer, topic, self.records, self.client, self.partitions)

    def finish(self, rig, peer, case):
        peer.delete([topic_name(case, "r")])

    def takes(self, plan, peer):
        a_run = self.records / 2_200_000 + (JAVA_START_S + 0.5 if self.client == "java" else 0.3)
        return self.records / 1_500_000 + 2 * AROUND_S + (4 if self.cold else 0) + a_run, a_run


def drop_page_cache(peer):
    """What the server's files have in the page cache is forgotten; what a server keeps in its own memory is not."""
    os.sync()
    for directory in peer.log_directories():
        for path in directory.glob("*/*.log"):
            try:
                with open(path, "rb") as file:
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            except OSError:
                continue


@dataclass
class EndToEnd:
    records: int
    record_bytes: int = 100
    client: str = "barnabas"

    def prepare(self, rig, peer, case):
        warm(rig, peer)
        peer.create({topic_name(case, "e"): 1})
        rig.clients.end_to_end(peer, topic_name(case, "e"), max(self.records // 5, 200), self.record_bytes, self.client)

    def run(self, rig, peer, case, number):
        return rig.clients.end_to_end(peer, topic_name(case, "e"), self.records, self.record_bytes, self.client)

    def finish(self, rig, peer, case):
        peer.delete([topic_name(case, "e")])

    def takes(self, plan, peer):
        return AROUND_S + 0.5, self.records * (0.0012 if peer.makes_files_later else 0.0005) + (JAVA_START_S if self.client == "java" else 0) + 0.3


@dataclass
class Story:
    """A run on a server of its own: `tell(rig, peer)` is given one that is not started, and answers with figures. `seconds`: how long it takes
    about, {peer: seconds}, for the estimate; others a second."""

    tell: Callable
    seconds: dict = field(default_factory=dict)

    def run(self, rig, peer, case, number):
        return self.tell(rig, peer)

    def takes(self, plan, peer):
        return 0, self.seconds.get(peer.name, 1) + peer.start_seconds
