"""What is done in one run of a case: a producer's load, reading, one record at a time, or a story of the workload's own.

A measure is asked to `prepare` once for each peer (its first run is thrown away), then for `run` after `run`, then to `finish`. A run answers with
its figures by name (report.FIGURES); what it made on the server is gone afterwards.
"""

import os
import time
from dataclasses import dataclass
from typing import Callable

from .clients import Load, librdkafka, own


def topic_name(case, number):
    return "w-" + "".join(letter if letter.isalnum() else "-" for letter in case)[:40].lower() + f"-{number}"


def names(load, first):
    return [first] if load.topics == 1 else [f"{first}-of-{number}" for number in range(load.topics)]


def warm(rig, peer):
    """What a server's compiler, files and memory need once before its figures are its own."""
    if getattr(peer, "is_warm", False):
        return
    seconds = 1 if rig.plan.is_quick else peer.warm_up_seconds if rig.plan.is_full else peer.warm_up_seconds * 2 // 3
    peer.create({"warm-up": 16})
    rig.clients.run(peer, librdkafka("warm-up", 16, 100, 3), "warm-up", seconds)
    peer.delete(["warm-up"])
    peer.is_warm = True


@dataclass
class Produce:
    """A load; with `keeps_topic` all runs are on one topic, for partitions that take long to make."""

    load: Load
    seconds: float | None = None
    keeps_topic: bool = False

    def _seconds(self, rig):
        return self.seconds or rig.plan.seconds

    def prepare(self, rig, peer, case):
        warm(rig, peer)
        self.load.title = case
        topics = names(self.load, topic_name(case, "warm"))
        peer.create({name: self.load.partitions for name in topics})
        rig.clients.warm(peer, self.load, topics, min(self._seconds(rig), rig.plan.seconds, 3))
        if not self.keeps_topic:
            peer.delete(topics)

    def run(self, rig, peer, case, number):
        topics = names(self.load, topic_name(case, "warm" if self.keeps_topic else number))
        if not self.keeps_topic:
            peer.create({name: self.load.partitions for name in topics})
        told = rig.clients.run(peer, self.load, topics, self._seconds(rig))
        if not self.keeps_topic:
            peer.delete(topics)
        return {**told, "mb_per_s": round(told["records_per_s"] * self.load.record_bytes / 1e6, 1)}

    def finish(self, rig, peer, case):
        if self.keeps_topic:
            peer.delete(names(self.load, topic_name(case, "warm")))


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
        rig.clients.records["fill", peer.name] = self.records
        rig.clients.run(peer, fill, topic, 1)
        if self.cold:
            peer.create({"other": 16})
            rig.clients.run(peer, librdkafka("push out", 16, 1000, 3), "other", 1 if rig.plan.is_quick else 4)
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


@dataclass
class Story:
    """A run on a server of its own: `tell(rig, peer)` is given one that is not started, and answers with figures."""

    tell: Callable

    def run(self, rig, peer, case, number):
        return self.tell(rig, peer)


def until(asked, within=180, every=0.01):
    """Seconds until `asked` answers true."""
    begun = time.monotonic()
    while not asked():
        if time.monotonic() - begun > within:
            raise RuntimeError(f"not within {within} s")
        time.sleep(every)
    return time.monotonic() - begun
