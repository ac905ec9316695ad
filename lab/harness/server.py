"""One combined node: Barnabas, or Apache Kafka of any version.

A server is started in an empty directory on free loopback ports and ended by its process id; `stop` asks, `kill` is kill -9. Beside the listener that
clients use it has some whose advertised address is a proxy's port (compat/proxy.py).
"""

import os
import shutil
import subprocess
from pathlib import Path

from .ask import accepts, metadata_answers
from .ports import free_port
from .process import NodeProcess

HOST = "127.0.0.1"
# Listeners for proxies: so many cells can lose acknowledgements at a time.
PROXIED = 4
# Of every cluster of the rigs: directories pass from one make to the other.
CLUSTER_ID = "Y29tcGF0LWNvbXBhdC1jbw"
LOGGING = Path(__file__).resolve().parent.parent / "compat/maven/log4j2.properties"
# For JVMs that live for seconds.
SMALL_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def write_properties(path, settings):
    Path(path).write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return Path(path)


def format_directory(label, words, properties, *flags, cluster=CLUSTER_ID):
    """Runs a make's `storage format`. RuntimeError with what it printed where it fails."""
    made = subprocess.run([*words, "-t", cluster, "-c", str(properties), *flags], capture_output=True, text=True)
    if made.returncode != 0:
        raise RuntimeError(f"{label}: storage format: {(made.stdout + made.stderr).strip()[-400:]}")


def java_words(classpath, *words, heap=None, flags=(), level=None):
    """A Java program with logging as the rigs want it: WARN, where no `level` is given. `flags` are the JVM's."""
    return ["java", *([f"-Xmx{heap}"] if heap else []), *flags, "-XX:-UsePerfData", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            f"-Dlog4j2.configurationFile={LOGGING}", f"-Dcompat.level={level or os.environ.get('COMPAT_KAFKA_LEVEL', 'WARN')}", "-cp", classpath, *words]


class Server(NodeProcess):
    """One node. `label` is what tables call it; `overrides` are further server properties."""

    ready_within = 30

    def __init__(self, directory, overrides=None):
        self.directory = Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.data = self.directory / "data"
        self.log = self.directory / "server.log"
        self.new_ports()
        self.overrides = dict(overrides or {})
        self.ready_after = None

    def new_ports(self):
        self.port, self.controller_port = free_port(), free_port()
        # (the advertised port, the node's)
        self.proxied = [(free_port(), free_port()) for _ in range(PROXIED)]

    @property
    def address(self):
        return f"{HOST}:{self.port}"

    def properties(self):
        names = [f"PROXIED{n}" for n in range(len(self.proxied))]
        listening = "".join(f",{name}://{HOST}:{port}" for name, (_, port) in zip(names, self.proxied))
        advertised = "".join(f",{name}://{HOST}:{port}" for name, (port, _) in zip(names, self.proxied))
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{HOST}:{self.controller_port}",
            "listeners": f"PLAINTEXT://{HOST}:{self.port}{listening},CONTROLLER://{HOST}:{self.controller_port}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{self.port}{advertised}",
            "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in ("PLAINTEXT", "CONTROLLER", *names)),
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": str(self.data),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "4",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "4",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.share.min.record.lock.duration.ms": "1000",
            "group.consumer.min.session.timeout.ms": "1000",
            "group.consumer.min.heartbeat.interval.ms": "500",
            "group.share.min.session.timeout.ms": "1000",
            "group.share.min.heartbeat.interval.ms": "500",
            "group.initial.rebalance.delay.ms": "200",
            "group.min.session.timeout.ms": "1000",
            "log.segment.delete.delay.ms": "1000",
            **self.overrides,
        }

    def write_properties(self):
        return write_properties(self.directory / "server.properties", self.properties())

    def format_words(self):
        """The make's `storage format`."""
        raise NotImplementedError

    def format(self, properties):
        """Makes the empty data directory a Kafka one."""
        format_directory(self.label, self.format_words(), properties)

    def command(self, properties):
        raise NotImplementedError

    def prepare(self):
        """Writes the properties, and formats a directory that is not yet: the properties' path."""
        properties = self.write_properties()
        if not (self.data / "meta.properties").exists():
            self.format(properties)
        return properties

    def start(self):
        """Starts and waits for the first Metadata answer; the seconds from exec to it are `ready_after`."""
        self.launch()
        return self.await_ready()

    def launch(self):
        self.run(self.command(self.prepare()), cwd=self.directory)

    def await_ready(self):
        self.ready_after = self.wait_until(lambda: metadata_answers(self.port), self.ready_within)
        return self

    def remove(self):
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)


class Barnabas(Server):
    label = "Barnabas"

    def __init__(self, directory, binary, overrides=None, release="4.3"):
        super().__init__(directory, overrides)
        # The release of the Apache Kafka that is given the directory afterwards (compat/node.py): younger metadata it would refuse.
        self.binary, self.release = str(binary), release

    def format_words(self):
        return [self.binary, "storage", "format", "--release-version", self.release]

    def command(self, properties):
        return [self.binary, "server", str(properties)]


class Apache(Server):
    ready_within = 90
    # The heap and the collector of the server's JVM.
    jvm = ("-Xms512m", "-Xmx1g")

    def __init__(self, directory, version, classpath, overrides=None):
        super().__init__(directory, overrides)
        self.version, self.classpath = version, classpath
        self.label = f"Kafka {version}"

    def java(self, *words, heap="256m"):
        return java_words(self.classpath, *words, heap=heap)

    def format_words(self):
        return self.java("kafka.tools.StorageTool", "format")

    def command(self, properties):
        return java_words(self.classpath, "kafka.Kafka", str(properties), flags=self.jvm)


class ZooKeeperApache(Apache):
    """Apache Kafka 3.9, the last that has the ZooKeeper mode, beside a ZooKeeper of its own, which runs until `end_zookeeper`."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.zookeeper_port, self.zookeeper = free_port(), NodeProcess()
        self.zookeeper.label, self.zookeeper.log = "ZooKeeper", self.directory / "zookeeper.log"

    def properties(self):
        ours = {"broker.id": "1", "zookeeper.connect": f"{HOST}:{self.zookeeper_port}", "listeners": f"PLAINTEXT://{HOST}:{self.port}", "log.dirs": str(self.data)}
        kraft = ("process.roles", "node.id", "controller.", "listener", "advertised.listeners", "inter.broker.listener.name", "share.")
        return {**{key: value for key, value in super().properties().items() if not key.startswith(kraft)}, **ours, **self.overrides}

    def format(self, properties):
        """Nothing: it makes its directory by itself."""

    def launch(self):
        if not self.zookeeper.is_alive():
            words = ("org.apache.zookeeper.server.ZooKeeperServerMain", str(self.zookeeper_port), str(self.directory / "zookeeper"))
            self.zookeeper.run(java_words(self.classpath, *words, heap="512m", flags=("-Dzookeeper.admin.enableServer=false",)))
            self.zookeeper.wait_until(lambda: accepts(self.zookeeper_port), 20, every=0.05)
        super().launch()

    def end_zookeeper(self):
        self.zookeeper.kill()

    def remove(self):
        self.kill()
        self.end_zookeeper()
        super().remove()
