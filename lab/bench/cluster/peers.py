"""Three brokers as one peer: Apache Kafka in KRaft mode, and Barnabas; each node is broker and controller, all on loopback.

What the three use together is the peer's: CPU, memory, bytes written. One node can be killed, stopped and brought back while the others run.
"""

import os
import shutil
import time
from pathlib import Path
from types import SimpleNamespace

from harness import cluster
from harness.server import Barnabas

from rig.peers.barnabas import BarnabasSynced
from rig.peers.kafka import Kafka, Server as KafkaServer
from rig.peers.peer import Peer

from .asks import ClusterAsks

IDS = (1, 2, 3)
# What Kafka's documentation advises for three brokers; everything else is as each of them has it.
ADVISED = {"default.replication.factor": "3", "min.insync.replicas": "2", "offsets.topic.replication.factor": "3", "transaction.state.log.replication.factor": "3",
           "transaction.state.log.min.isr": "2", "share.coordinator.state.topic.replication.factor": "3", "share.coordinator.state.topic.min.isr": "2",
           "group.initial.rebalance.delay.ms": "0"}


class Three(Peer):
    # Where the servers' own logs are kept when a cluster is removed; nowhere if it is not said.
    logs = None

    def __init__(self, directory, settings=None, port=None):
        self.directory = Path(directory)
        overrides = {**self.settings, **ADVISED, **(settings or {})}
        self.nodes = {number: self.make_node(self.directory / f"node-{number}", {**overrides, "node.id": str(number)}) for number in IDS}
        if port:
            # The rig gives each server two numbers.
            for number, node in self.nodes.items():
                node.port, node.controller_port = port + 2 * number, port + 2 * number + 1
        cluster.join(self.nodes)
        for node in self.nodes.values():
            node.proxied = []

    # What the rig asks of a peer

    @property
    def server(self):
        """What the rig and its clients look at of one server."""
        dead = next((node.process.poll() for node in self.nodes.values() if node.process is not None and node.process.poll() is not None), None)
        return SimpleNamespace(address=",".join(node.address for node in self.nodes.values()), label=self.label, process=SimpleNamespace(poll=lambda: dead))

    def pids(self):
        return [node.pid for node in self.nodes.values() if node.process is not None and node.process.returncode is None]

    def log_directories(self):
        return [node.data for node in self.nodes.values()]

    def alive(self):
        return [number for number, node in self.nodes.items() if node.is_alive()]

    def ask(self, within=60):
        """A connection to the first node that lives."""
        return self.ask_node(self.alive()[0], within)

    def ask_node(self, number, within=60):
        return ClusterAsks(self.nodes[number].port, within)

    def start(self):
        cluster.launch(self.nodes.values())
        for number in IDS:
            self.wait_ready(number)
        return self

    def stop(self, within=120):
        """One after the other: each hands over to those that are left."""
        return all([node.stop(within) for node in self.nodes.values()])

    def kill(self):
        for node in self.nodes.values():
            node.kill()

    def remove(self):
        self.kill()
        if self.logs is not None:
            for number, node in self.nodes.items():
                if node.log.exists():
                    kept = Path(self.logs) / f"{os.getpid()}-{self.directory.name}"
                    kept.mkdir(parents=True, exist_ok=True)
                    shutil.copy(node.log, kept / f"node-{number}.log")
        shutil.rmtree(self.directory, ignore_errors=True)

    # One node

    def spawn(self, number):
        """Starts it, and does not wait: alone it is no cluster."""
        self.nodes[number].launch()

    def wait_ready(self, number, within=60):
        """Until it answers, and knows all brokers that live."""
        node, begun, wanted = self.nodes[number], time.monotonic(), set(self.alive())
        while True:
            if node.process.poll() is not None:
                raise RuntimeError(f"{self.label}: node {number} ended with {node.process.returncode}: {node.last_lines()}")
            try:
                asks = ClusterAsks(node.port, 5)
                brokers, _ = asks.described([])
                asks.close()
                if wanted <= set(brokers):
                    return time.monotonic() - begun
            except OSError:
                pass
            if time.monotonic() - begun > within:
                raise RuntimeError(f"{self.label}: node {number} was not ready within {within} s: {node.last_lines()}")
            time.sleep(0.01)

    # Topics

    def create(self, topics, within=300):
        return self._made(lambda asks: asks.create(topics), topics, within)

    def create_assigned(self, topics, settings=None, within=300):
        """topics: {name: [[replica …] …]}"""
        return self._made(lambda asks: asks.create_assigned(topics, settings), {name: len(rows) for name, rows in topics.items()}, within, sum(map(len, sum(topics.values(), []))))

    def _made(self, make, topics, within, copies=None):
        """Made, led as every node says, with directories where the peer makes them later. Seconds to the leaders."""
        begun, asks, wanted = time.monotonic(), self.ask(within), sum(topics.values())
        errors = {name: error for name, error in make(asks).items() if error}
        if errors:
            raise RuntimeError(f"{self.label} does not create topics: {dict(list(errors.items())[:3])}")
        asks.close()
        for number in self.alive():
            # A client may ask any of them first.
            asks = self.ask_node(number, within)
            while asks.led(list(topics)) < wanted:
                if time.monotonic() - begun > within:
                    raise RuntimeError(f"{self.label}: not all of {wanted} partitions are led within {within} s, says node {number}")
                time.sleep(0.02)
            asks.close()
        took, copies = time.monotonic() - begun, copies or 3 * wanted
        while self.makes_files_later and self.directories(topics) < copies and time.monotonic() - begun < within:
            time.sleep(0.05 if copies < 1000 else 0.5)
        return took

    def wait_in_sync(self, names, within=60, preferred=False):
        """Until every replica of these topics is in sync (and, `preferred`, the first one leads). Seconds."""
        begun, asks = time.monotonic(), self.ask()
        try:
            while True:
                _, found = asks.described(names)
                behind = [key for key, led in found.items() if set(led.isr) != set(led.replicas) or led.leader < 0 or (preferred and led.leader != led.replicas[0])]
                if found and not behind:
                    return time.monotonic() - begun
                if time.monotonic() - begun > within:
                    raise RuntimeError(f"{self.label}: {len(behind)} of {len(found)} partitions are not in sync{' or not led by their first replica' if preferred else ''} "
                                       f"within {within} s: {[(key, found[key]) for key in behind[:3]]}")
                time.sleep(0.02)
        finally:
            asks.close()


class ThreeKafka(Three):
    name, colour = "kafka-cluster", Kafka.colour
    label = "three of Kafka"
    settings = {"log.segment.delete.delay.ms": "50"}
    makes_files_later = compiles = True
    version = classpath = None
    warm_up_seconds, start_seconds = 25, 10

    @classmethod
    def prepare(cls, options):
        cls.version = Kafka.prepare(options)
        cls.classpath = Kafka.classpath
        cls.label = f"three of Kafka {cls.version}"
        return cls.version

    def make_node(self, directory, overrides):
        return KafkaServer(directory, self.version, self.classpath, overrides)


class ThreeBarnabas(Three):
    name, label, colour = "barnabas-cluster", "three of Barnabas, synced", BarnabasSynced.colour
    settings = {"log.segment.delete.delay.ms": "50"}

    @classmethod
    def prepare(cls, options):
        return BarnabasSynced.prepare(options)

    def make_node(self, directory, overrides):
        return Barnabas(directory, BarnabasSynced.binary, overrides)


KAFKA, OURS = ThreeKafka.name, ThreeBarnabas.name
