"""Partitions are moved off one broker onto the two others, empty and with data, while a producer with a steady rate writes to another topic.

From the first request to the answer that nothing moves any more. Each partition with two replicas gives up the one on broker 1 and gets one more
copy elsewhere: what is moved is each partition's bytes once.
"""

import mmap
import os
import time

from rig.measures import topic_name, warm
from rig.machine import calm

from .asks import batch_of
from .beat import Beat, all_beat
from .losses import Around
from .peers import KAFKA

# By topic: before, after. Broker 1 leads half of what it has.
SHAPES = [([1, 2], [3, 2]), ([2, 1], [2, 3]), ([1, 3], [2, 3]), ([3, 1], [3, 2])]
BESIDE_PARTITIONS, BESIDE_PER_SECOND = 6, 500
LIMIT_S = 240
# How much later than the controller a broker may know.
HEARD_S = 20
# Up to here a partition is filled with one batch, beyond with many of the other size.
ONE_BATCH, RECORDS_OF_MANY = 200_000, 200


def device_mb_per_s(directory, megabytes=512):
    """What the disk below takes in large direct writes, one after the other."""
    path = directory / "device"
    block = mmap.mmap(-1, 4 << 20)
    block.write(os.urandom(4 << 20))
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
    try:
        begun = time.monotonic()
        for _ in range(megabytes // 4):
            os.write(handle, block)
        os.fdatasync(handle)
        return round((megabytes // 4) * (4 << 20) / 1e6 / (time.monotonic() - begun))
    finally:
        os.close(handle)
        path.unlink()


class Moves:
    """`partitions` in `topics`, each with `bytes_each` bytes."""

    def __init__(self, quick, partitions, topics, bytes_each):
        self.quick, self.partitions, self.topics, self.bytes_each = quick, partitions, topics, bytes_each

    def takes(self, plan, peer):
        share = self.partitions / 10_000
        return 0, ((230 if peer.name == KAFKA else 25) + (10 if self.bytes_each else 0)) * share + 5 + self.partitions * self.bytes_each / 5e7

    def prepare(self, rig, peer, case):
        warm(rig, peer)

    def finish(self, rig, peer, case):
        pass

    def run(self, rig, peer, case, number):
        each = self.partitions // self.topics
        shapes = {f"{topic_name(case, number)}-{place}": SHAPES[place % len(SHAPES)] for place in range(self.topics)}
        beside = topic_name(case, f"{number}-beside")
        peer.create({beside: BESIDE_PARTITIONS})
        made = peer.create_assigned({name: [before] * each for name, (before, _) in shapes.items()})
        if self.bytes_each:
            self.fill(peer, shapes, each)
        calm(peer.directory)
        device = device_mb_per_s(peer.directory) if self.bytes_each else None
        with Beat(peer.server.address, beside, BESIDE_PARTITIONS, BESIDE_PER_SECOND, reads=False) as beat:
            all_beat([beat], 60)
            around = Around(peer, [beat])
            beat.ask("from")
            time.sleep(1 if self.quick else 5)
            before = beat.ask("to")["acks"]
            beat.ask("from")
            took = self.move(peer, shapes, each)
            during = beat.ask("to")["acks"]
            told = around.told()
        peer.delete([*shapes, beside], 120)
        told |= {"made_s": round(made, 2), "beside_before_p99_ms": before["p99_ms"], "beside_p99_ms": during["p99_ms"], "beside_ratio": during["p99_ms"] / max(before["p99_ms"], 0.001),
                 "beside_gap_ms": max(during["pauses_ms"]), "failed": during["failed"]}
        if took is None:
            return {**told, "ended": f"> {LIMIT_S} s"}
        told["moved_s"] = round(took, 3)
        if self.bytes_each:
            speed = self.partitions * self.bytes_each / 1e6 / took
            told |= {"moved_mb_per_s": round(speed), "device_mb_per_s": device, "of_device": round(speed / device, 3)}
        return told

    def fill(self, peer, shapes, each):
        is_one = self.bytes_each <= ONE_BATCH
        batch, taken = batch_of(max(self.bytes_each // 1000, 1) if is_one else RECORDS_OF_MANY, 985), 0
        times = 1 if is_one else self.bytes_each // len(batch)
        for name, (before, _) in shapes.items():
            asks = peer.ask_node(before[0])
            taken += sum(asks.produce_to_each({name: each}, batch, 20 if is_one else 5) for _ in range(times))
            asks.close()
        if taken != self.partitions * times:
            raise RuntimeError(f"{peer.label}: {taken} of {self.partitions * times} batches were taken")
        peer.wait_in_sync(list(shapes))

    def move(self, peer, shapes, each):
        """Seconds, or None where it was not done in time."""
        asks = peer.ask(LIMIT_S)
        begun = time.monotonic()
        try:
            waiting = 0
            for name, (_, after) in shapes.items():
                asks.send_move(name, {number: after for number in range(each)})
                waiting += 1
                if waiting == 4:
                    self.taken(peer, asks)
                    waiting -= 1
            for _ in range(waiting):
                self.taken(peer, asks)
            while asks.is_moving():
                if time.monotonic() - begun > LIMIT_S:
                    return None
                time.sleep(0.02 if each * len(shapes) < 5000 else 0.1)
            took = time.monotonic() - begun
            self.check(peer, asks, list(shapes))
        finally:
            asks.close()
        return took

    def check(self, peer, asks, names):
        """All are where they were to go, by Metadata of a broker. That broker may hear of it later than the controller that was asked above."""
        begun = time.monotonic()
        while True:
            _, found = asks.described(names)
            left = [key for key, led in found.items() if sorted(led.replicas) != [2, 3] or led.leader not in (2, 3) or sorted(led.isr) != [2, 3]]
            if not left and len(found) == self.partitions:
                return
            if time.monotonic() - begun > HEARD_S:
                raise RuntimeError(f"{peer.label}: nothing moves, and after {HEARD_S} s {len(left)} of {len(found)} partitions are not on brokers 2 and 3 alone: "
                                   f"{[(key, found[key]) for key in left[:3]]}")
            time.sleep(0.1)

    @staticmethod
    def taken(peer, asks):
        refused = asks.moved()
        if refused:
            raise RuntimeError(f"{peer.label}: AlterPartitionReassignments: {refused}")
