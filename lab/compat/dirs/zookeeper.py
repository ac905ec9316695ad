"""A data directory of Kafka's ZooKeeper mode: what its topics are stands in ZooKeeper, not in the directory.

What is supported: nothing is taken over from ZooKeeper. The way is Kafka's own (KIP-866, with Kafka 3.9): migrate to KRaft, then hand the
directory over. What is asked here: that such a directory is refused in words, that nothing in it changes, and that Kafka goes on with it.
"""

import hashlib
import subprocess
from pathlib import Path

from compat import fetch
from harness.server import Barnabas, ZooKeeperApache


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
    kafka = ZooKeeperApache(root, *fetch.kafka_3())
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
        kafka.kill()
        kafka.end_zookeeper()
