"""The two brokers under load, what they use, and that nothing of one run is left for the next."""

import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "lab/compat"), str(ROOT / "lab/bench/node")]

from compat.server import Barnabas  # noqa: E402
from measure import Kafka, cpu_seconds, machine_busy, resident_mb, spread  # noqa: E402, F401

from asks import Asks  # noqa: E402

CORES = os.cpu_count() or 1


class Peer:
    """A server and the topics that the rig made on it."""

    def __init__(self, name, server):
        self.name, self.server = name, server

    @property
    def pid(self):
        return self.server.process.pid

    def ask(self):
        return Asks(self.server.port)

    def create(self, topics, within=300):
        """{name: partitions}: made, led, and (Kafka makes them later) with their directories. Seconds to the leaders, or None."""
        begun = time.monotonic()
        asks = self.ask()
        errors = asks.create(topics)
        if any(errors.values()):
            raise RuntimeError(f"{self.server.label} does not create {topics}: {errors}")
        wanted = sum(topics.values())
        while asks.led(list(topics)) < wanted:
            if time.monotonic() - begun > within:
                raise RuntimeError(f"{self.server.label}: not all of {wanted} partitions are led within {within} s")
            time.sleep(0.05)
        took = time.monotonic() - begun
        asks.close()
        if self.name == "kafka":
            while time.monotonic() - begun < within and self.directories(topics) < wanted:
                time.sleep(0.2)
        return took

    def directories(self, topics):
        names = [path.name.rsplit("-", 1)[0] for path in self.server.data.iterdir() if path.is_dir()]
        return sum(name in topics for name in names)

    def delete(self, names):
        """Deletes topics and waits until their files are gone."""
        asks = self.ask()
        asks.delete(names)
        asks.close()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and any(path.name.startswith(tuple(f"{name}-" for name in names)) for path in self.server.data.iterdir()):
            time.sleep(0.2)

    def written(self):
        """Bytes that the process had written to the device or left in the page cache for it."""
        for line in Path(f"/proc/{self.pid}/io").read_text().splitlines():
            if line.startswith("write_bytes:"):
                return int(line.split()[1])
        raise RuntimeError("no write_bytes")


def log_bytes(data):
    """Bytes of record batches in the segments of ordinary topics."""
    return sum(path.stat().st_size for path in Path(data).glob("*/*.log") if not path.parent.name.startswith("__"))


def settle():
    """What one run left in the page cache is not written during the next."""
    os.sync()


class Usage:
    """What a server, its clients and everybody else used between two moments."""

    def __init__(self, peer, client_seconds):
        self.peer, self.client_seconds = peer, client_seconds
        self.before = self._now()

    def _now(self):
        return cpu_seconds(self.peer.pid), self.client_seconds(), machine_busy(), time.monotonic(), self.peer.written()

    def since(self, records):
        server, client, busy, seconds, written = (now - before for now, before in zip(self._now(), self.before))
        return {"server_us_per_record": server * 1e6 / max(records, 1), "client_us_per_record": client * 1e6 / max(records, 1),
                "other_load": round(max(busy - server - client, 0) / (seconds * CORES), 3), "device_bytes_per_record": written / max(records, 1)}


def make(directory, options):
    """{name: maker of a Peer in a subdirectory}"""
    # The files of deleted topics go soon; everything else is as it comes.
    overrides = {"log.segment.delete.delay.ms": "500", "max.connections": "20000"}

    def kafka(name):
        return Peer("kafka", Kafka(Path(directory) / f"kafka-{name}", options.version, options.classpath, dict(overrides)))

    def barnabas(name):
        return Peer("barnabas", Barnabas(Path(directory) / f"barnabas-{name}", options.binary, dict(overrides)))

    return {"kafka": kafka, "barnabas": barnabas}
