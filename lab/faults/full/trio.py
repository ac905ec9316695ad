"""One of three nodes has a full disk, and it is the one that led the metadata quorum: nobody waits for it.

Producers of all partitions send one record after the other, acks=all. Somebody else's file takes the last byte of that node's disk, and
again whatever comes free. The others take the quorum's lead and the partitions', wait for that node's copies no more, and make topics;
when there is room again it is in sync again. Every acknowledged record is there, in order.
"""

import re
import struct
import subprocess
import threading
import time

from compat.driver import Failure, until
from disks import Volume, produce_once
from harness import cluster
from harness.server import Barnabas

PARTITIONS = 6
SETTINGS = {"default.replication.factor": "3", "min.insync.replicas": "2", "offsets.topic.replication.factor": "3"}
PATIENCE_S = 60
# While they are produced to, with one node that cannot write.
FULL_S = 5
NOT_THERE_YET = (3, 5, 6, 7, 13, 19, 20, 56)


class Node(Barnabas):
    """One of three, on a file system of its own."""

    def __init__(self, directory, binary, number, volume):
        super().__init__(directory, binary, SETTINGS)
        self.number, self.volume, self.data = number, volume, volume.point / "data"

    def tool(self, *words, within=30):
        done = subprocess.run([self.binary, *words, "--bootstrap-server", self.address], capture_output=True, text=True, timeout=within)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(words)}: {(done.stdout + done.stderr).strip()[-300:]}")
        return done.stdout


class Producer(threading.Thread):
    """Sends to one partition, one record at a time, to whoever takes it, and notes when it was acknowledged."""

    def __init__(self, nodes, partition):
        super().__init__(daemon=True)
        self.nodes, self.partition, self.ends, self.acknowledged, self.trouble = nodes, partition, False, [], None

    def run(self):
        number, at = 0, 0
        while not self.ends:
            try:
                code, message = produce_once(self.nodes[at].port, "t", b"%d" % number, partition=self.partition)
            except (OSError, struct.error):
                code, message = 7, "no answer"
            if code == 0:
                self.acknowledged.append((time.monotonic(), number))
                number += 1
                time.sleep(0.01)
            elif code in NOT_THERE_YET:
                # One that was not acknowledged may be there: what is counted are distinct numbers.
                at = (at + 1) % len(self.nodes)
                time.sleep(0.01)
            else:
                self.trouble = f"t-{self.partition} is refused with {code} ({message})"
                return

    def longest_gap(self, since):
        times = [since, *(at for at, _ in self.acknowledged if at >= since)]
        return max((later - earlier for earlier, later in zip(times, times[1:])), default=float("inf"))


def leader_of_quorum(node):
    try:
        found = re.search(r"LeaderId:\s+(\d+)", node.tool("metadata-quorum", "describe", "--status", within=10))
    except (RuntimeError, subprocess.TimeoutExpired):
        return None
    return int(found.group(1)) if found else None


def in_sync(node):
    """Each partition's ISR, as `node` knows it; nothing where it does not say."""
    try:
        told = node.tool("topics", "--describe", "--topic", "t")
    except (RuntimeError, subprocess.TimeoutExpired):
        return []
    return [{int(number) for number in found.split(",")} for found in re.findall(r"Isr: ([0-9,]+)", told)]


def every_isr(node, is_so):
    found = in_sync(node)
    return len(found) == PARTITIONS and all(is_so(isr) for isr in found)


def story(workspace, binary):
    with Volume("ext4", workspace, "trio-1", 96) as one, Volume("ext4", workspace, "trio-2", 96) as two, Volume("ext4", workspace, "trio-3", 96) as three:
        nodes = [Node(workspace / f"trio-node-{number}", binary, number, volume) for number, volume in enumerate((one, two, three), 1)]
        cluster.join(dict(enumerate(nodes, 1)))
        producers, ends = [], []
        try:
            cluster.start(nodes)
            tell(nodes, producers, ends)
        except (Failure, RuntimeError) as failed:
            raise Failure(f"{failed} | {' || '.join(node.last_lines(4) for node in nodes)}") from None
        finally:
            for stop in [*producers, *ends]:
                stop.ends = True
            for node in nodes:
                node.kill()


class Filler(threading.Thread):
    """Takes whatever room there is, until it is told to end and gives all back."""

    def __init__(self, volume):
        super().__init__(daemon=True)
        self.volume, self.ends = volume, False

    def run(self):
        while not self.ends:
            try:
                self.volume.fill()
            except OSError:
                # Not even the file itself has room.
                pass
            time.sleep(0.2)


def tell(nodes, producers, ends):
    until(lambda: leader_of_quorum(nodes[0]), PATIENCE_S, "a quorum")
    until(lambda: made(nodes[0], "t", PARTITIONS, 3), PATIENCE_S, "three brokers")
    until(lambda: every_isr(nodes[0], lambda isr: len(isr) == 3), PATIENCE_S, "three in sync")
    producers += [Producer(nodes, partition) for partition in range(PARTITIONS)]
    for producer in producers:
        producer.start()
    until(lambda: all(len(producer.acknowledged) > 20 for producer in producers), PATIENCE_S, "first acknowledgements")
    full = nodes[(leader_of_quorum(nodes[0]) or 1) - 1]
    others = [node for node in nodes if node is not full]
    begun = time.monotonic()
    filler = Filler(full.volume)
    ends.append(filler)
    filler.start()
    until(lambda: every_isr(others[0], lambda isr: full.number not in isr), PATIENCE_S, "partitions that do not wait for the full node")
    until(lambda: leader_of_quorum(others[0]) not in (None, full.number), PATIENCE_S, "another leader of the quorum")
    for number, node in enumerate(others):
        until(lambda: made(node, f"made-{number}"), PATIENCE_S, f"a topic made through node {node.number}")
    time.sleep(FULL_S)
    since = time.monotonic()
    until(lambda: all(producer.trouble or producer.acknowledged[-1][0] > since for producer in producers), PATIENCE_S, "acknowledgements while one is full")
    gap = max(producer.longest_gap(begun) for producer in producers)
    took = time.monotonic() - begun
    filler.ends = True
    filler.join()
    full.volume.foreign.unlink(missing_ok=True)
    until(lambda: every_isr(others[0], lambda isr: len(isr) == 3), PATIENCE_S, "the full node in sync again, with room")
    for producer in producers:
        producer.ends = True
        producer.join(30)
        if producer.trouble:
            raise Failure(producer.trouble)
    count = verify(nodes, producers)
    print(f"  one of three nodes, the quorum's leader, full for {took:.0f} s: another leads, topics are made, no partition waits for it (longest without an "
          f"acknowledgement {gap:.2f} s); in sync again with room; {count} records acknowledged, all there, in order", flush=True)


def made(node, name, partitions=1, factor=2):
    try:
        node.tool("topics", "--create", "--if-not-exists", "--topic", name, "--partitions", str(partitions), "--replication-factor", str(factor))
        return True
    except (RuntimeError, subprocess.TimeoutExpired):
        return False


def verify(nodes, producers):
    """What was acknowledged is there, and first copies are in each producer's order."""
    count = 0
    words = [nodes[0].binary, "console-consumer", "--bootstrap-server", nodes[0].address, "--topic", "t", "--offset", "earliest", "--timeout-ms", "10000"]
    readers = [subprocess.Popen([*words, "--partition", str(producer.partition)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) for producer in producers]
    for producer, reader in zip(producers, readers):
        told, _ = reader.communicate(timeout=120)
        first = list(dict.fromkeys(int(line) for line in told.splitlines()))
        if first != sorted(first):
            raise Failure(f"t-{producer.partition} is out of order")
        missing = {number for _, number in producer.acknowledged} - set(first)
        if missing:
            raise Failure(f"t-{producer.partition} lacks {len(missing)} acknowledged records: {sorted(missing)[:5]}")
        count += len(producer.acknowledged)
    return count
