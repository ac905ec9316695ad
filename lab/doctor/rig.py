"""A cluster of three, its load, and the doctor's answers about it."""

import json
import shlex
import subprocess
import threading
import time

from harness import cluster
from harness.process import spawn
from harness.server import Barnabas

REPLICATED = {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "min.insync.replicas": "2",
    # Planted leaders stay where they are.
    "auto.leader.rebalance.enable": "false",
}
RACKS = {1: "a", 2: "a", 3: "b"}


class Node(Barnabas):
    """Formatted with the newest levels, or those of `release`."""

    def format_words(self):
        return super().format_words() if self.release else [self.binary, "storage", "format"]


def trio(directory, binary):
    nodes = {number: Node(directory / str(number), binary, {**REPLICATED, "broker.rack": rack}, release=None) for number, rack in RACKS.items()}
    cluster.join(nodes)
    cluster.start(list(nodes.values()))
    return nodes


class Rig:
    """`nodes` {number: server}; the binary is tool and doctor too."""

    def __init__(self, nodes, binary, directory):
        self.nodes, self.binary, self.directory = nodes, str(binary), directory
        self.thresholds, self.silences = [], []
        # Of the topics that faults make.
        self.replicas = min(3, len(nodes))
        self.log = open(directory / "tools.log", "ab")

    @property
    def ports(self):
        return [node.port for node in self.nodes.values() if node.is_alive()]

    @property
    def bootstrap(self):
        return ",".join(node.address for node in self.nodes.values())

    def tool(self, *words, within=60):
        """Runs a tool on the cluster; RuntimeError where it fails."""
        words = [self.binary, words[0], "--bootstrap-server", self.bootstrap, *words[1:]]
        done = subprocess.run(words, capture_output=True, text=True, timeout=within)
        self.log.write(f"$ {shlex.join(words)}\n{done.stdout}{done.stderr}".encode())
        self.log.flush()
        if done.returncode != 0:
            raise RuntimeError(f"{shlex.join(words[1:])}: {(done.stdout + done.stderr).strip()[-400:]}")
        return done.stdout

    def background(self, *words):
        """A tool that runs until it is stopped."""
        return spawn([self.binary, words[0], "--bootstrap-server", self.bootstrap, *words[1:]], stdout=self.log, stderr=self.log)

    def shell(self, line, replacements):
        """Runs a command as the doctor printed it."""
        for old, new in replacements.items():
            line = line.replace(old, new)
        line = line.replace("barnabas ", shlex.quote(self.binary) + " ", 1) if line.startswith("barnabas ") else line.replace("| barnabas ", f"| {shlex.quote(self.binary)} ")
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60)
        self.log.write(f"$ {line}\n{done.stdout}{done.stderr}".encode())
        self.log.flush()
        if done.returncode != 0:
            raise RuntimeError(f"{line}: {(done.stdout + done.stderr).strip()[-400:]}")

    def doctor(self, interval=2.0):
        words = [self.binary, "doctor", "--bootstrap-server", self.bootstrap, "--json", "--interval", str(interval)]
        for threshold in self.thresholds:
            words += ["--threshold", threshold]
        if self.silences:
            path = self.directory / "silences"
            path.write_text("".join(f"{line}\n" for line in self.silences))
            words += ["--silence", str(path)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=180)
        if done.returncode != 0:
            raise RuntimeError(f"doctor: {(done.stdout + done.stderr).strip()[-400:]}")
        return json.loads(done.stdout)


class Load:
    """What a healthy cluster does: a producer with batches worth the name, and a group that keeps up."""

    def __init__(self, rig, records_per_s=1000):
        # With an end: what it would keep for seven days is more than some disks have (D7, D8).
        rig.tool("topics", "--create", "--topic", "orders", "--partitions", "6", "--replication-factor", "3", "--config", "retention.bytes=1000000")
        self.processes = [
            rig.background("producer-perf-test", "--topic", "orders", "--num-records", "100000000", "--record-size", "200", "--throughput", str(records_per_s),
                           "--command-property", "linger.ms=50", "--command-property", "client.id=load"),
            rig.background("console-consumer", "--topic", "orders", "--group", "readers", "--formatter-property", "print.value=false"),
        ]

    def stop(self):
        for process in self.processes:
            process.terminate()
            process.wait()


class Repeated:
    """Something that is done `per_s` times a second until it is stopped."""

    def __init__(self, per_s, action):
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._run, args=(1 / per_s, action), daemon=True)
        self.thread.start()

    def _run(self, pause, action):
        while not self.ended.wait(pause):
            try:
                action()
            except OSError:
                # The node is down for now: that is another fault's.
                time.sleep(pause)

    def terminate(self):
        self.ended.set()

    def wait(self):
        self.thread.join()
