"""The nodes under test: Barnabas or Apache Kafka, each in its namespace, on a small file system of its own, with a clock
that can be moved.

The first three are broker and controller, others are brokers. A node ends by its process id.
"""

import os
import shutil
import time
from pathlib import Path

from harness.ask import metadata_answers
from harness.process import NodeProcess
from harness.server import format_directory, write_properties

from . import net

CLUSTER = "Y2hhb3MtY2hhb3MtY2hhbw"
VOTERS = (1, 2, 3)


class Node(NodeProcess):
    def __init__(self, number, place, plan):
        self.number, self.plan = number, plan
        self.place = place / f"node-{number}"
        self.place.mkdir(parents=True)
        self.volume, self.log = self.place / "disk", self.place / "node.log"
        self.volume.mkdir()
        self.offset_file = self.place / "clock"
        self.offset_file.write_text("+0s\n")
        self.mount()
        write_properties(self.place / "server.properties", self.properties())

    def serves(self):
        return metadata_answers(9092, host=net.address(self.number))

    # Its disk

    def mount(self):
        """A file system of its own: ext4 in a sparse file, else memory, else none (then it cannot be filled)."""
        image, mib = self.place / "disk.img", self.plan["disk_mib"]
        with open(image, "wb") as file:
            file.truncate(mib << 20)
        made = net.run("mkfs.ext4", "-q", "-F", "-m", "0", str(image), check=False)
        if made.returncode == 0 and net.run("mount", "-o", "loop", str(image), str(self.volume), check=False).returncode == 0:
            self.file_system = "ext4"
            return
        image.unlink()
        mounted = net.run("mount", "-t", "tmpfs", "-o", f"size={mib}m", "none", str(self.volume), check=False)
        self.file_system = "tmpfs" if mounted.returncode == 0 else None

    def unmount(self):
        for _ in range(50):
            if self.file_system is None or net.run("umount", str(self.volume), check=False).returncode == 0:
                break
            time.sleep(0.1)

    def fill(self):
        """Somebody else's file takes every byte that is left. Nothing is written for it: the sparse file stays small."""
        path = self.volume / "foreign-file"
        with open(path, "ab") as file:
            size, piece = 0, 256 << 20
            while piece >= 4096:
                try:
                    os.posix_fallocate(file.fileno(), size, piece)
                    size += piece
                except OSError:
                    piece //= 2

    def free(self):
        (self.volume / "foreign-file").unlink(missing_ok=True)

    # Its life

    def properties(self):
        host = net.address(self.number)
        is_voter = self.number in VOTERS
        listeners = f"PLAINTEXT://{host}:9092" + (f",CONTROLLER://{host}:9093" if is_voter else "")
        return {
            "process.roles": "broker,controller" if is_voter else "broker",
            "node.id": self.number,
            "controller.quorum.voters": ",".join(f"{n}@{net.address(n)}:9093" for n in VOTERS),
            "listeners": listeners,
            "advertised.listeners": f"PLAINTEXT://{host}:9092",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            # The addresses of its namespaces are no loopback ones.
            "insecure.listeners.allowed": "true",
            "log.dirs": self.volume / "data",
            "min.insync.replicas": 2,
            "default.replication.factor": 3,
            "offsets.topic.replication.factor": 3,
            "offsets.topic.num.partitions": 4,
            "transaction.state.log.replication.factor": 3,
            "transaction.state.log.min.isr": 2,
            "transaction.state.log.num.partitions": 4,
            "share.coordinator.state.topic.num.partitions": 4,
            "share.coordinator.state.topic.replication.factor": 3,
            "share.coordinator.state.topic.min.isr": 2,
            "auto.create.topics.enable": "false",
            "log.retention.hours": -1,
            "log.segment.bytes": 16 << 20,
            "offsets.topic.segment.bytes": 4 << 20,
            "transaction.state.log.segment.bytes": 4 << 20,
            "log.cleaner.backoff.ms": 2000,
            "log.cleaner.dedupe.buffer.size": 8 << 20,
            "log.segment.delete.delay.ms": 1000,
            "group.initial.rebalance.delay.ms": 200,
            "group.min.session.timeout.ms": 1000,
            "group.consumer.min.session.timeout.ms": 3000,
            "group.consumer.session.timeout.ms": 6000,
            "group.consumer.heartbeat.interval.ms": 1000,
            "group.consumer.min.heartbeat.interval.ms": 500,
            # A member that could not say that it leaves keeps its partitions for a session.
            "group.share.min.session.timeout.ms": 3000,
            "group.share.session.timeout.ms": 6000,
            "group.share.min.heartbeat.interval.ms": 500,
            "group.share.heartbeat.interval.ms": 1000,
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": 2000,
            **self.plan["overrides"],
        }

    def environment(self):
        if not self.plan["faketime"]:
            return os.environ
        return {**os.environ, "LD_PRELOAD": self.plan["faketime"], "FAKETIME_TIMESTAMP_FILE": str(self.offset_file),
                "FAKETIME_CACHE_DURATION": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1",
                "FAKETIME_DISABLE_SHM": "1"}

    def format(self):
        format_directory(f"node {self.number}", self.plan["format"], self.place / "server.properties", cluster=CLUSTER)

    def start(self):
        words = ["ip", "netns", "exec", f"n{self.number}", *self.plan["server"], self.place / "server.properties"]
        self.run(words, cwd=self.place, env=self.environment())

    def wipe(self):
        """A new disk in the old one's place."""
        for path in self.volume.iterdir():
            if path.is_dir() and path.name != "lost+found":
                shutil.rmtree(path)
            elif path.is_file():
                path.unlink()
        self.format()

    def move_clock(self, seconds):
        self.offset_file.write_text(f"{seconds:+d}s\n")

    def complaints(self):
        """Lines that say that this node thinks itself broken."""
        found = []
        with open(self.log, errors="replace") as lines:
            for line in lines:
                if "panicked at" in line or " FATAL " in line or "invariant" in line:
                    found.append(line.strip()[:300])
        return found


def data_directory(node):
    return Path(node.volume) / "data"
