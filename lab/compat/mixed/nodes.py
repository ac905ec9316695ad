"""Nodes of two makes in one cluster: the same settings, ports and directories for both, so that either can take the other's place.

A node's file is written for whoever reads it next; a directory is formatted by whoever starts on it first, or by the other make (`crossed`).
Voters stand in every file (`static`), or in the log: all from the beginning (`dynamic`: --initial-controllers), or the first alone, and the
others join by themselves (`joining`: --standalone, --no-initial-controllers, KIP-1186). A node ends by its process id.

In a cluster that is `guarded` nodes connect to each other by TLS with a login: brokers by SCRAM-SHA-512, controllers by PLAIN (they must reach each
other before they know a user). Clients come in by PLAINTEXT as before, and the rig asks controllers by another listener.
"""

import shutil
import subprocess
import time
from pathlib import Path

from compat import fetch
from harness.ask import metadata_answers
from harness.ports import free_port
from harness.process import NodeProcess
from harness.server import SMALL_JVM, format_directory, java_words, write_properties
from security.nodes import MODULES
from security.tls import Authority

OURS, APACHE = "Barnabas", "Apache Kafka"
OTHER = {OURS: APACHE, APACHE: OURS}
# What both know: Apache Kafka 4.3's level, where 4.4 is not to be had.
RELEASE = "4.3"
# What is waited for takes seconds. On a machine that is busy with much else it is given more than was said.
PATIENCE = 3
# What nodes of a guarded cluster log in with.
USER, PASSWORD = "node", "node-secret"


class Failed(Exception):
    """What did not come out; the text is for the reader."""


def until(asked, what, within=60, every=0.1):
    """Waits until `asked` answers something; that."""
    within *= PATIENCE
    deadline, last = time.monotonic() + within, None
    while True:
        try:
            found = asked()
        except Failed as error:
            found, last = None, error
        if found:
            return found
        if time.monotonic() > deadline:
            raise Failed(f"not within {within} s: {what}" + (f" ({last})" if last else ""))
        time.sleep(every)


class Makes:
    """How each make is started, and Apache's tools."""

    def __init__(self, binary):
        self.binary = str(binary)
        self.version, self.classpath = fetch.kafka()

    def java(self, *words, heap=None):
        return java_words(self.classpath, *words, heap=heap, flags=SMALL_JVM)

    def server(self, make, file):
        return [self.binary, "server", str(file)] if make == OURS else self.java("kafka.Kafka", str(file), heap="512m")

    def format(self, make, file, release, cluster, *flags):
        words = [self.binary, "storage"] if make == OURS else self.java("kafka.tools.StorageTool")
        format_directory(make, [*words, "format", "--release-version", release], file, *flags, cluster=cluster)

    def tool(self, name, *words, within=300, fine=True):
        """One of Apache's tools by its class: what it said."""
        done = subprocess.run(self.java(f"org.apache.kafka.tools.{name}", *map(str, words)), capture_output=True, text=True, timeout=within)
        if fine and done.returncode != 0:
            raise Failed(f"{name} {' '.join(map(str, words))}: {(done.stdout + done.stderr).strip()[-500:]}")
        return done.stdout + done.stderr


class Node(NodeProcess):
    def __init__(self, cluster, number, make, roles):
        self.cluster, self.number, self.make, self.roles = cluster, number, make, roles
        self.place = cluster.place / f"node-{number}"
        self.place.mkdir(parents=True)
        self.data, self.log = self.place / "data", self.place / "node.log"
        self.port, self.controller_port = free_port(), free_port()
        # Where the rig asks a controller.
        self.asked_port, self.broker_port = self.controller_port, None
        if cluster.authority is not None:
            self.asked_port, self.broker_port = free_port(), free_port()
            self.pair = cluster.authority.issue(f"node-{number}", "ec", "-pkeyopt", "ec_paramgen_curve:P-256")
        self.own, self.flags, self.formatter = {}, [], None

    def __str__(self):
        return f"node {self.number} ({self.make})"

    @property
    def is_broker(self):
        return "broker" in self.roles

    @property
    def is_controller(self):
        return "controller" in self.roles

    def properties(self):
        listeners = [f"PLAINTEXT://127.0.0.1:{self.port}"] * self.is_broker + [f"CONTROLLER://127.0.0.1:{self.controller_port}"] * self.is_controller
        return {
            "process.roles": self.roles, "node.id": self.number, "listeners": ",".join(listeners), "advertised.listeners": ",".join(listeners),
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT", "controller.listener.names": "CONTROLLER",
            "log.dirs": self.data, **({"inter.broker.listener.name": "PLAINTEXT"} if self.is_broker else {}),
            **self.cluster.quorum(), **self.cluster.settings, **(self.guard(listeners) if self.cluster.authority else {}), **self.own,
        }

    def guard(self, listeners):
        """What a guarded cluster's node has besides, or in place of what others have."""
        listeners = listeners + [f"BROKERS://127.0.0.1:{self.broker_port}"] * self.is_broker + [f"ASKED://127.0.0.1:{self.asked_port}"] * self.is_controller
        login = f'username="{USER}" password="{PASSWORD}"'
        return {
            "listeners": ",".join(listeners), "advertised.listeners": ",".join(listeners), "controller.listener.names": "CONTROLLER,ASKED",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_SSL,BROKERS:SASL_SSL,ASKED:PLAINTEXT",
            **({"inter.broker.listener.name": "BROKERS"} if self.is_broker else {}),
            "ssl.keystore.type": "PEM", "ssl.keystore.location": self.pair.store, "ssl.truststore.type": "PEM", "ssl.truststore.location": self.pair.authority,
            "listener.name.brokers.sasl.enabled.mechanisms": "SCRAM-SHA-512", "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512", "sasl.mechanism.controller.protocol": "PLAIN",
            "listener.name.brokers.scram-sha-512.sasl.jaas.config": f"{MODULES}scram.ScramLoginModule required {login};",
            "listener.name.controller.plain.sasl.jaas.config": f'{MODULES}plain.PlainLoginModule required {login} user_{USER}="{PASSWORD}";',
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer", "super.users": f"User:{USER};User:ANONYMOUS",
        }

    def write(self):
        listed = self.properties()
        if not self.is_broker:
            # A controller alone advertises what it listens on.
            listed.pop("advertised.listeners")
        return write_properties(self.place / "server.properties", listed)

    def start(self, make=None):
        """Starts the process; `make`: from now on this one."""
        self.make = make or self.make
        file = self.write()
        if not (self.data / "meta.properties").exists():
            self.cluster.makes.format(self.formatter or self.make, file, self.cluster.release, self.cluster.id, *self.flags)
        with open(self.log, "ab") as log:
            log.write(f"---- {self.make}\n".encode())
        self.run(self.cluster.makes.server(self.make, file), cwd=self.place)
        return self

    def await_answer(self, within=90):
        self.wait_until(lambda: not self.is_broker or metadata_answers(self.port), within * PATIENCE, every=0.1)
        return self

    def kill(self):
        self.resume()
        super().kill()

    def stop(self, within=60):
        if self.is_alive() and not super().stop(within):
            raise Failed(f"{self} does not stop within {within} s: {self.last_lines()}")

    def lose_disk(self):
        """Another disk in its place, empty; such a node joins the quorum anew."""
        shutil.rmtree(self.data)
        self.flags = ["--no-initial-controllers"]


class Cluster:
    """Nodes {number: (make, roles)}. `voters` and `crossed`: see above; `release`: the levels that it begins with."""

    def __init__(self, makes, place, layout, voters="static", settings=None, crossed=False, release=RELEASE, guarded=False):
        self.makes, self.place, self.voters, self.release = makes, Path(place), voters, release
        self.place.mkdir(parents=True)
        self.authority = Authority(self.place / "authority", "authority") if guarded else None
        self.id = subprocess.run([makes.binary, "storage", "random-uuid"], capture_output=True, text=True, check=True).stdout.strip()
        self.settings = {
            "min.insync.replicas": 2, "default.replication.factor": 3, "offsets.topic.replication.factor": 3, "offsets.topic.num.partitions": 4,
            "transaction.state.log.replication.factor": 3, "transaction.state.log.min.isr": 2, "transaction.state.log.num.partitions": 4,
            "group.initial.rebalance.delay.ms": 200, "log.segment.bytes": 4 << 20, "auto.create.topics.enable": "false",
            "log.cleaner.enable": "true", "log.cleaner.dedupe.buffer.size": 8 << 20, "broker.session.timeout.ms": 6000,
            # So that snapshots of one make are fetched and loaded by the other.
            "metadata.log.max.record.bytes.between.snapshots": 100_000,
            **(settings or {}),
        }
        self.nodes = {number: Node(self, number, make, roles) for number, (make, roles) in layout.items()}
        for node in self.nodes.values():
            node.formatter = OTHER[node.make] if crossed else node.make
        if voters == "dynamic":
            directories = {n.number: self.uuid() for n in self.controllers()}
            self.initial = ",".join(f"{n.number}@127.0.0.1:{n.controller_port}:{directories[n.number]}" for n in self.controllers())
            for node in self.controllers():
                node.flags = ["--initial-controllers", self.initial]
        if voters == "joining":
            for place, node in enumerate(self.controllers()):
                node.flags = ["--no-initial-controllers"] if place else ["--standalone"]
                node.own = {"controller.quorum.auto.join.enable": "true"}
        if guarded:
            for node in self.nodes.values():
                node.flags = [*node.flags, "--add-scram", f"SCRAM-SHA-512=[name={USER},password={PASSWORD}]"]

    def uuid(self):
        return subprocess.run([self.makes.binary, "storage", "random-uuid"], capture_output=True, text=True, check=True).stdout.strip()

    def add(self, number, make, roles):
        self.nodes[number] = Node(self, number, make, roles)
        return self.nodes[number]

    def controllers(self):
        return [node for node in self.nodes.values() if node.is_controller]

    def brokers(self):
        return [node for node in self.nodes.values() if node.is_broker]

    def quorum(self):
        if self.voters == "static":
            return {"controller.quorum.voters": ",".join(f"{n.number}@127.0.0.1:{n.controller_port}" for n in self.controllers())}
        return {"controller.quorum.bootstrap.servers": ",".join(f"127.0.0.1:{n.controller_port}" for n in self.controllers())}

    def bootstrap(self, alive=False):
        return ",".join(f"127.0.0.1:{node.port}" for node in self.brokers() if not alive or node.is_alive())

    def start(self):
        for node in self.nodes.values():
            node.start()
        for node in self.nodes.values():
            node.await_answer()
        return self

    def stop(self):
        """Clean stops, controllers alone last: brokers need them to say goodbye.

        Apache's broker waits for a controller to let it go; the last ones of a quorum have none, and are killed. What they wrote is in their files.
        """
        order = sorted(self.nodes.values(), key=lambda node: (not node.is_broker, node.is_controller, node.make == APACHE, node.number))
        for node in order:
            if node.is_alive() and (node.make == OURS or self.has_majority_without(node)):
                node.stop()
        for node in order:
            node.kill()

    def has_majority_without(self, leaving):
        others = [node for node in self.controllers() if node is not leaving and node.is_alive()]
        return 2 * len(others) > len(self.controllers())

    def end(self):
        for node in self.nodes.values():
            node.kill()
