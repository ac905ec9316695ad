"""A data directory of Kafka's ZooKeeper mode: what its topics are stands in ZooKeeper, not in the directory.

What is supported: nothing is taken over from ZooKeeper. The way is Kafka's own (KIP-866, with Kafka 3.9): migrate to KRaft, then hand the
directory over. What is asked here: that such a directory is refused in words, that nothing in it changes, and that Kafka goes on with it.
"""

import hashlib
import socket
import subprocess
import time
from pathlib import Path

from compat import fetch
from compat.server import Apache, Barnabas, free_port


class ZooKeeperKafka(Apache):
    """Kafka 3.9 beside a ZooKeeper of its own."""

    def __init__(self, directory):
        super().__init__(directory, *fetch.kafka_3())
        self.zookeeper_port, self.zookeeper = free_port(), None

    def properties(self):
        return {"broker.id": "1", "zookeeper.connect": f"127.0.0.1:{self.zookeeper_port}", "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
                "log.dirs": str(self.data), "offsets.topic.replication.factor": "1", "offsets.topic.num.partitions": "1"}

    def format(self, properties):
        pass

    def start(self):
        if self.zookeeper is None:
            with open(self.directory / "zookeeper.log", "ab") as log:
                self.zookeeper = subprocess.Popen(self.java("org.apache.zookeeper.server.ZooKeeperServerMain", str(self.zookeeper_port), str(self.directory / "zookeeper")),
                                                  stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
            wait_for(self.zookeeper_port)
        return super().start()

    def end_all(self):
        self.kill()
        if self.zookeeper is not None:
            self.zookeeper.kill()
            self.zookeeper.wait()


def wait_for(port, within=20):
    deadline = time.monotonic() + within
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise RuntimeError("ZooKeeper does not start") from None
            time.sleep(0.1)


class Refused(Barnabas):
    def format(self, properties):
        pass


def contents(directory):
    """Names and hashes of everything below; the lock file is nobody's data."""
    return {str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(Path(directory).rglob("*")) if path.is_file() and path.name != ".lock"}


def tool(server, name, *words, text=None):
    done = subprocess.run(server.java(name, "--bootstrap-server", server.address, *words), input=text, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise RuntimeError(f"{name}: {(done.stdout + done.stderr)[-300:]}")
    return done.stdout


def zookeeper_mode(root, binary):
    """(what happened, whether it is as it should be)"""
    kafka = ZooKeeperKafka(root)
    try:
        kafka.start()
        tool(kafka, "org.apache.kafka.tools.TopicCommand", "--create", "--topic", "old", "--partitions", "3")
        tool(kafka, "kafka.tools.ConsoleProducer", "--topic", "old", text="".join(f"line {n}\n" for n in range(100)))
        kafka.stop()
        before = contents(kafka.data)
        barnabas = Refused(root / "barnabas", binary)
        barnabas.data = kafka.data
        try:
            barnabas.start()
            barnabas.stop()
            return "Barnabas started on the directory", False
        except RuntimeError as refused:
            words = str(refused)
        if contents(kafka.data) != before:
            changed = sorted(set(before.items()) ^ set(contents(kafka.data).items()))
            return f"Barnabas refused and changed the directory: {changed[:3]}", False
        if "ZooKeeper" not in words:
            return f"Barnabas refused without saying why: {words[-400:]}", False
        kafka.start()
        read = tool(kafka, "org.apache.kafka.tools.consumer.ConsoleConsumer", "--topic", "old", "--from-beginning", "--max-messages", "100", "--timeout-ms", "20000")
        held = len(read.split("\n")) >= 100
        return f"refused, nothing changed, Kafka 3.9 {'goes on' if held else 'lost records'} (“{words.split(': ', 1)[-1].strip()[-300:]}”)", held
    finally:
        kafka.end_all()
