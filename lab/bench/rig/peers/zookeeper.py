"""Apache Kafka 3.9, the last that has the ZooKeeper mode, beside a ZooKeeper of its own. What ZooKeeper uses is its cost as well."""

import signal
import socket
import subprocess
import time

from compat import fetch, server as compat_server

from .kafka import Kafka, Server
from .peer import free_port


class ZooKeeperServer(Server):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.zookeeper_port, self.zookeeper = free_port(), None

    def properties(self):
        ours = {"broker.id": "1", "zookeeper.connect": f"127.0.0.1:{self.zookeeper_port}", "listeners": f"PLAINTEXT://127.0.0.1:{self.port}", "log.dirs": str(self.data)}
        kraft = ("process.roles", "node.id", "controller.", "listener", "advertised.listeners", "inter.broker.listener.name", "share.")
        return {**{key: value for key, value in super().properties().items() if not key.startswith(kraft)}, **ours, **self.overrides}

    def format(self, properties):
        """Nothing: it makes its directory by itself."""

    def start(self):
        if self.zookeeper is None:
            words = ("org.apache.zookeeper.server.ZooKeeperServerMain", str(self.zookeeper_port), str(self.directory / "zookeeper"))
            with open(self.directory / "zookeeper.log", "ab") as log:
                self.zookeeper = subprocess.Popen(self.java("-Dzookeeper.admin.enableServer=false", *words, heap="512m"), stdout=log, stderr=log,
                                                  stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=compat_server._die_with_the_runner)
            compat_server._running.add(self.zookeeper)
            self._wait()
        return super().start()

    def _wait(self, within=20):
        deadline = time.monotonic() + within
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.zookeeper_port), 1).close()
                return
            except OSError:
                if self.zookeeper.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"ZooKeeper does not start; see {self.directory}/zookeeper.log") from None
                time.sleep(0.05)

    def end_zookeeper(self):
        if self.zookeeper is not None:
            self.zookeeper.send_signal(signal.SIGKILL)
            self.zookeeper.wait()
            compat_server._running.discard(self.zookeeper)
            self.zookeeper = None

    def remove(self):
        self.kill()
        self.end_zookeeper()
        super().remove()


class KafkaZooKeeper(Kafka):
    name, label, colour = "kafka-zk", "Kafka, ZooKeeper", "#e6ab02"
    server_class, start_seconds = ZooKeeperServer, 6

    @classmethod
    def prepare(cls, options):
        cls.version, cls.classpath = fetch.kafka_3()
        cls.label = f"Kafka {cls.version}, ZooKeeper"
        return cls.version

    def pids(self):
        return [self.pid, self.server.zookeeper.pid]
