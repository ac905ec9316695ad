"""The servers under test: Barnabas, Apache Kafka of today, and the Apache Kafka that old clients knew.

A server is started in an empty directory on free loopback ports and ended by its process id; `stop`
asks, `kill` is kill -9. Each has a listener that clients use, and some whose advertised address is
somebody else's port, so that a proxy can stand between (`proxy.py`).
"""

import atexit
import ctypes
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path

_running = set()
# Listeners for proxies: so many cells can lose acknowledgements at a time.
PROXIED = 4
# Below those from which the system numbers outgoing connections.
PORTS = range(12_000, 32_000)
_given_ports = set()


def _end_all():
    for process in list(_running):
        if process.poll() is None:
            process.kill()


atexit.register(_end_all)


def _die_with_the_runner():
    """Linux: the kernel ends the server when the runner is gone, whatever ended it."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def free_port():
    """Nobody listens on it and no connection will take it; never the same twice in one process, since who was given one may not listen yet."""
    while True:
        port = random.choice([port for port in PORTS if port not in _given_ports])
        _given_ports.add(port)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


def metadata_answers(port, timeout=0.5):
    """True when a Metadata request (version 1, no topic) is answered with at least one broker."""
    body = struct.pack(">hhih", 3, 1, 7, 5) + b"ready" + struct.pack(">i", 0)
    try:
        with socket.create_connection(("127.0.0.1", port), timeout) as connection:
            connection.settimeout(timeout)
            connection.sendall(struct.pack(">i", len(body)) + body)
            answer = b""
            while len(answer) < 12:
                piece = connection.recv(4096)
                if not piece:
                    return False
                answer += piece
            return struct.unpack(">i", answer[8:12])[0] > 0
    except OSError:
        return False


class Server:
    """One node. `label` is what tables call it; `overrides` are further server properties."""

    label = "?"
    ready_within = 30

    def __init__(self, directory, overrides=None):
        self.directory = Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.data = self.directory / "data"
        self.log = self.directory / "server.log"
        self.new_ports()
        self.overrides = overrides or {}
        self.process = None
        self.ready_after = None

    def new_ports(self):
        self.port, self.controller_port = free_port(), free_port()
        # (what a client is told, where the node listens)
        self.proxied = [(free_port(), free_port()) for _ in range(PROXIED)]

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def properties(self):
        host = "127.0.0.1"
        names = [f"PROXIED{n}" for n in range(PROXIED)]
        listening = "".join(f",{name}://{host}:{port}" for name, (_, port) in zip(names, self.proxied))
        told = "".join(f",{name}://{host}:{port}" for name, (port, _) in zip(names, self.proxied))
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{host}:{self.controller_port}",
            "listeners": f"PLAINTEXT://{host}:{self.port}{listening},CONTROLLER://{host}:{self.controller_port}",
            "advertised.listeners": f"PLAINTEXT://{host}:{self.port}{told}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT," + ",".join(f"{name}:PLAINTEXT" for name in names),
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
        path = self.directory / "server.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in self.properties().items()))
        return path

    def format(self, properties):
        """Makes the empty data directory a Kafka one."""
        raise NotImplementedError

    def command(self, properties):
        raise NotImplementedError

    def start(self):
        """Starts and waits for the first Metadata answer; the seconds from exec to it are `ready_after`."""
        self.launch()
        return self.await_ready()

    def launch(self):
        properties = self.write_properties()
        if not (self.data / "meta.properties").exists():
            self.format(properties)
        out = open(self.log, "ab")
        self.launched = time.monotonic()
        self.process = subprocess.Popen(self.command(properties), stdout=out, stderr=subprocess.STDOUT,
                                        stdin=subprocess.DEVNULL, cwd=self.directory, start_new_session=True,
                                        preexec_fn=_die_with_the_runner)
        out.close()
        _running.add(self.process)

    def await_ready(self):
        while not metadata_answers(self.port):
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.label} ended with {self.process.returncode}: {self.last_lines()}")
            if time.monotonic() - self.launched > self.ready_within:
                self.kill()
                raise RuntimeError(f"{self.label} was not ready within {self.ready_within} s: {self.last_lines()}")
            time.sleep(0.002)
        self.ready_after = time.monotonic() - self.launched
        return self

    def last_lines(self, count=5):
        if not self.log.exists():
            return ""
        return " | ".join(self.log.read_text(errors="replace").splitlines()[-count:])[-800:]

    def stop(self, within=30):
        """A clean stop; True when it ended by itself in time."""
        if self.process is None or self.process.poll() is not None:
            return False
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(within)
            clean = True
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            clean = False
        _running.discard(self.process)
        return clean

    def kill(self):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        _running.discard(self.process)

    def remove(self):
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)


class Barnabas(Server):
    label = "Barnabas"

    def __init__(self, directory, binary, overrides=None, release="4.3"):
        super().__init__(directory, overrides)
        self.release = release
        self.binary = str(binary)

    def format(self, properties):
        cluster = subprocess.run([self.binary, "storage", "random-uuid"], capture_output=True, text=True, check=True).stdout.strip()
        # The release of the Apache Kafka that is given the directory afterwards (node.py): younger metadata it would refuse.
        made = subprocess.run([self.binary, "storage", "format", "-t", cluster, "-c", str(properties), "--release-version", self.release],
                              capture_output=True, text=True)
        if made.returncode != 0:
            raise RuntimeError(f"storage format: {(made.stdout + made.stderr).strip()[-400:]}")

    def command(self, properties):
        return [self.binary, "server", str(properties)]


class Apache(Server):
    ready_within = 90

    def __init__(self, directory, version, classpath, overrides=None):
        super().__init__(directory, overrides)
        self.version, self.classpath = version, classpath
        self.label = f"Kafka {version}"

    def java(self, *arguments, heap="256m"):
        return ["java", f"-Xmx{heap}", "-XX:-UsePerfData", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
                f"-Dlog4j2.configurationFile={Path(__file__).resolve().parent.parent / 'maven/log4j2.properties'}",
                f"-Dcompat.level={os.environ.get('COMPAT_KAFKA_LEVEL', 'WARN')}", "-cp", self.classpath, *arguments]

    def format(self, properties):
        made = subprocess.run(self.java("kafka.tools.StorageTool", "format", "-t", "Y29tcGF0LWNvbXBhdC1jbw", "-c", str(properties)),
                              capture_output=True, text=True)
        if made.returncode != 0:
            raise RuntimeError(f"StorageTool format: {(made.stdout + made.stderr).strip()[-400:]}")

    def command(self, properties):
        return [self.java()[0], "-Xms512m", *self.java("kafka.Kafka", str(properties), heap="1g")[1:]]
