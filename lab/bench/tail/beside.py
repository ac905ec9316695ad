"""What goes on beside a load in production, each switched on by itself: a file's table, `BESIDE`.

Each is made ready once for a peer (`prepare`), and goes on as long as its `with` lasts; `told` says what it did, so that a row in which nothing happened is not
taken for one that nothing disturbs. `settings` are the server's, `topic` those of the load's topic, for both makes alike.
"""

import json
import os
import struct
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from cluster.asks import ClusterAsks, batch_of
from compat import fetch
from harness.ask import text
from harness.process import spawn
from rig.clients import own

from .peers import nodes
from .programs import HERE, built

PARTITIONS = 10
# Of segments where they are to come and go within seconds.
SMALL_SEGMENT = str(4 << 20)
# What goes on by itself. A process ends with the thread that started it (harness/process.py): these threads live as long as the rig.
ALONGSIDE = ThreadPoolExecutor(4)
# A reader that finds nothing new waits as long as a broker lets it.
COLD = ("fetch.message.max.bytes=1048576", "queued.max.messages.kbytes=65536")


def made(peer, name, partitions, replicas, settings=None, rows=None, within=600):
    """A topic: made, led, and with its directories where the peer makes them later. `rows`: the replicas of each partition, by hand."""
    port = next(node.port for node in nodes(peer) if node.is_alive())
    asks, begun = ClusterAsks(port, within), time.monotonic()
    errors = asks.create_assigned({name: rows}, settings) if rows else asks.create({name: partitions}, replicas, settings)
    if any(errors.values()):
        raise RuntimeError(f"{peer.label} does not make {name}: {errors}")
    while asks.led([name]) < partitions:
        if time.monotonic() - begun > within:
            raise RuntimeError(f"{peer.label}: not all of {partitions} partitions of {name} are led within {within} s")
        time.sleep(0.05)
    asks.close()
    while peer.makes_files_later and peer.directories([name]) < partitions * replicas and time.monotonic() - begun < within:
        time.sleep(0.1)


class Process:
    """A client that runs until its input ends, and then says one line of JSON."""

    def __init__(self, words):
        self.process = spawn(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def ended(self, within=90):
        try:
            said, _ = self.process.communicate(timeout=within)
            return json.loads(said.strip().splitlines()[-1])
        except (subprocess.TimeoutExpired, IndexError, ValueError):
            self.process.kill()
            self.process.communicate()
            return {"failed": True}


class Beside:
    """Nothing beside; the others are more."""

    settings, topic, replicas = {}, {}, (1, 3)
    # Seconds that `prepare` takes about.
    ready_s = 0

    def rows(self):
        """The load's replicas by hand, or None."""
        return None

    def prepare(self, rig, peer, name):
        pass

    @contextmanager
    def going(self, rig, peer, name, seconds):
        """`name`: the load's topic. Gives (what to sum as clients, {what it did}, filled at its end)."""
        yield [], {}

    def pids(self, peer):
        """Of the processes whose cost is the peer's, as long as the turn lasts."""
        return peer.pids()

    def finish(self, rig, peer, name):
        pass


class Head(Beside):
    """A consumer that reads what has just been written."""

    @contextmanager
    def going(self, rig, peer, name, seconds):
        told, reader = {}, Process([built("tail"), "read", peer.server.address, name, PARTITIONS, -1, 0])
        try:
            yield [reader.process], told
        finally:
            told.update(reader.ended())


class Cold(Beside):
    """A consumer that reads a backlog which is in no page cache, again and again."""

    def ready(self, rig):
        return 10_000_000 if rig.plan.is_full else 1_000_000

    def prepare(self, rig, peer, name):
        made(peer, f"{name}-backlog", PARTITIONS, replicas_of(peer))
        rig.clients.rates["fill", peer.name] = self.ready(rig)
        rig.clients.run(peer, own("fill", PARTITIONS, 1000, 2), f"{name}-backlog", 1)
        os.sync()

    def finish(self, rig, peer, name):
        peer.delete([f"{name}-backlog"])

    @staticmethod
    def forget(peer, name):
        """The backlog's files leave the page cache; it was synced when it was made."""
        for directory in peer.log_directories():
            for path in directory.glob(f"{name}-backlog-*/*.log"):
                with open(path, "rb") as file:
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    @contextmanager
    def going(self, rig, peer, name, seconds):
        told, ended, found = {}, threading.Event(), []
        self.forget(peer, name)
        current = []

        def again():
            current.append(self.reader(rig, peer, name))
            while not ended.is_set():
                if current[0].process.poll() is not None:
                    found.append(current[0].ended())
                    self.forget(peer, name)
                    current[0] = self.reader(rig, peer, name)
                ended.wait(0.05)

        doing = ALONGSIDE.submit(again)
        try:
            yield [], told
        finally:
            ended.set()
            doing.result(60)
            found.append(current[0].ended())
            told.update({"mb_per_s": max(one.get("mb_per_s", 0) for one in found), "records": sum(one.get("records", 0) for one in found), "times": len(found)})

    def reader(self, rig, peer, name):
        return Process([built("tail"), "read", peer.server.address, f"{name}-backlog", PARTITIONS, -2, self.ready(rig), *COLD])


class Retention(Beside):
    """Segments of 4 MiB, two of which a partition keeps: retention deletes all the time."""

    settings = {"log.retention.check.interval.ms": "1000"}
    topic = {"segment.bytes": SMALL_SEGMENT, "retention.bytes": str(8 << 20), "file.delete.delay.ms": "1000"}

    @contextmanager
    def going(self, rig, peer, name, seconds):
        told, before = {}, self.first(peer, name)
        try:
            yield [], told
        finally:
            after = self.first(peer, name)
            told["segments_deleted_at_least"] = sum(after.get(place, 0) > offset for place, offset in before.items())

    @staticmethod
    def first(peer, name):
        """{partition directory: the first offset that has a segment}"""
        found = {}
        for directory in peer.log_directories():
            for path in directory.glob(f"{name}-*/*.log"):
                found[path.parent] = min(found.get(path.parent, int(path.stem)), int(path.stem))
        return found


class Compaction(Beside):
    """Another topic, of 5,000 keys at 4 MB/s, is compacted as it grows."""

    settings = {"log.cleaner.backoff.ms": "1000"}
    compacted = {"cleanup.policy": "compact", "segment.bytes": SMALL_SEGMENT, "min.cleanable.dirty.ratio": "0.01", "file.delete.delay.ms": "1000"}

    def prepare(self, rig, peer, name):
        made(peer, f"{name}-compacted", 4, replicas_of(peer), self.compacted)

    def finish(self, rig, peer, name):
        peer.delete([f"{name}-compacted"])

    def bytes(self, peer, name):
        return sum(path.stat().st_size for top in peer.log_directories() for path in top.glob(f"{name}-compacted-*/*.log") if path.exists())

    @contextmanager
    def going(self, rig, peer, name, seconds):
        told, before = {}, self.bytes(peer, name)
        load = Process([built("tail"), "produce", peer.server.address, f"{name}-compacted", 1, 4000, 1000, seconds, 0, 5000, "acks=all", "linger.ms=5"])
        try:
            yield [load.process], told
        finally:
            said = load.ended()
            told.update({"written_mb": round(said.get("acked", 0) / 1000, 1), "kept_mb": round((self.bytes(peer, name) - before) / 1e6, 1)})


class Snapshot(Beside):
    """A topic's settings change fifty times a second beside 1,000 partitions, and the controller writes a snapshot every few seconds."""

    settings = {"metadata.log.max.record.bytes.between.snapshots": "10000"}

    def prepare(self, rig, peer, name):
        made(peer, f"{name}-many", 1000, replicas_of(peer))

    def finish(self, rig, peer, name):
        peer.delete([f"{name}-many"])

    @contextmanager
    def going(self, rig, peer, name, seconds):
        told, ended, changes, failed = {}, threading.Event(), [0], []

        def change():
            asks = peer.ask()
            while not ended.wait(0.02):
                body = struct.pack(">ib", 1, 2) + text(f"{name}-many") + struct.pack(">i", 1) + text("retention.ms") + b"\0" + text(str(86_400_000 + changes[0])) + b"\0"
                error, = struct.unpack_from(">h", asks.ask(44, 0, body), 8)
                changes[0] += 1
                if error:
                    failed.append(error)
            asks.close()

        before = self.snapshots(peer)
        doing = ALONGSIDE.submit(change)
        try:
            yield [], told
        finally:
            ended.set()
            doing.result(60)
            told.update({"changes": changes[0], "failed": len(failed), "snapshots_of_others": len(self.snapshots(peer) - before)})

    @staticmethod
    def snapshots(peer):
        return {path for top in peer.log_directories() for path in top.glob("__cluster_metadata-0/*.checkpoint")}


class Transactions(Beside):
    """A producer commits 20 transactions of ten records a second, to another topic."""

    def prepare(self, rig, peer, name):
        made(peer, f"{name}-transactions", 4, replicas_of(peer))

    def finish(self, rig, peer, name):
        peer.delete([f"{name}-transactions"])

    @contextmanager
    def going(self, rig, peer, name, seconds):
        told, client = {}, Process([fetch.python(), HERE / "transact.py", peer.server.address, f"{name}-transactions", 20, 10])
        try:
            yield [client.process], told
        finally:
            told.update(client.ended())


class Reassignment(Beside):
    """Twenty partitions of 5 MB move from one broker to another and back, as often as the time allows."""

    replicas = (3,)
    MOVED, BATCHES = 20, 25

    def prepare(self, rig, peer, name):
        moved = f"{name}-moved"
        made(peer, moved, self.MOVED, 2, {"min.insync.replicas": "1"}, [[1, 2]] * self.MOVED)
        asks, batch = peer.ask_node(1), batch_of(200, 985)
        taken = sum(asks.produce_to_each({moved: self.MOVED}, batch, 5) for _ in range(self.BATCHES))
        asks.close()
        if taken != self.MOVED * self.BATCHES:
            raise RuntimeError(f"{peer.label}: {taken} of {self.MOVED * self.BATCHES} batches were taken")

    def finish(self, rig, peer, name):
        peer.delete([f"{name}-moved"])

    @contextmanager
    def going(self, rig, peer, name, seconds):
        told, ended, moved, failed = {}, threading.Event(), [0], []

        def move():
            asks, places = peer.ask(), ([1, 3], [1, 2])
            while not ended.is_set():
                asks.send_move(f"{name}-moved", {number: places[moved[0] % 2] for number in range(self.MOVED)})
                refused = asks.moved()
                if refused:
                    failed.append(refused)
                while asks.is_moving() and not failed:
                    time.sleep(0.05)
                moved[0] += 1
                if failed:
                    break
            if moved[0] % 2 and not failed:
                # Back to where it was, for the next turn.
                asks.send_move(f"{name}-moved", {number: places[1] for number in range(self.MOVED)})
                asks.moved()
                while asks.is_moving():
                    time.sleep(0.05)
            asks.close()

        doing = ALONGSIDE.submit(move)
        try:
            yield [], told
        finally:
            ended.set()
            doing.result(120)
            told.update({"moves_of_20": moved[0], **({"failed": failed[0]} if failed else {})})


class Follower(Beside):
    """A broker that leads nothing was stopped before the turn; it comes back after a third of it and fetches what it has missed."""

    replicas, BACK = (3,), 3

    def rows(self):
        return [[1, 2, 3], [2, 1, 3]] * (PARTITIONS // 2)

    def pids(self, peer):
        """Without the one that comes and goes."""
        return [node.pid for number, node in peer.nodes.items() if number != self.BACK]

    @contextmanager
    def going(self, rig, peer, name, seconds):
        told = {}
        peer.nodes[self.BACK].stop(60)
        self.await_isr(peer, name, 2)

        def back():
            time.sleep(seconds / 3)
            begun = time.monotonic()
            peer.spawn(self.BACK)
            peer.wait_ready(self.BACK)
            told["ready_s"] = round(time.monotonic() - begun, 2)
            peer.wait_in_sync([name], 300)
            told["in_sync_s"] = round(time.monotonic() - begun, 2)

        doing = ALONGSIDE.submit(back)
        try:
            yield [], told
        finally:
            doing.result(400)

    @staticmethod
    def await_isr(peer, name, size, within=60):
        begun, asks = time.monotonic(), peer.ask()
        while any(len(led.isr) != size for led in asks.described([name])[1].values()):
            if time.monotonic() - begun > within:
                raise RuntimeError(f"{peer.label}: the ISR has not {size} replicas within {within} s")
            time.sleep(0.1)
        asks.close()


def replicas_of(peer):
    return len(nodes(peer))


BESIDE = {"": Beside(), "a consumer at the head": Head(), "a cold reader": Cold(), "retention": Retention(), "compaction": Compaction(), "snapshots": Snapshot(), "transactions": Transactions(),
          "a reassignment": Reassignment(), "a follower that comes back": Follower()}
