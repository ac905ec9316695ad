"""A broker under test: how it is had, started and stopped, where it listens, what it costs.

A subclass is a file. It says its `name` (in files and on command lines), `label` (in reports), `colour` (in plots), how it is fetched
(`prepare`, which raises `Missing` with one line that says what and what to do) and which server it is (`make_server`).
"""

import shutil
import socket
import time
from pathlib import Path

from compat.fetch import Missing  # noqa: F401
from harness.usage import written_bytes

from ..asks import Asks


class Peer:
    name, label, colour = "?", "?", "#777777"
    # Held against others with the best that it has: what a peer is told beyond its own defaults stands here and in the report.
    settings = {}
    # Whether it makes the files of a new partition some time after it has answered.
    makes_files_later = False
    serves_reads = True
    # Whether it is compiled while it runs: what it is asked for the first time is slow.
    compiles = False
    # Load that it needs to have seen before its figures are its own; what a start takes, for the estimate.
    warm_up_seconds, start_seconds = 3, 0.5

    def __init__(self, directory, settings=None, port=None):
        self.directory = Path(directory)
        overrides = {**self.settings, **(settings or {})}
        self.server = self.make_server(overrides)
        if port:
            self.server.port, self.server.controller_port = port, port + 1

    @classmethod
    def prepare(cls, options):
        """Fetches what it needs; the version. Raises Missing."""
        raise NotImplementedError

    def make_server(self, overrides):
        raise NotImplementedError

    @property
    def pid(self):
        return self.server.pid

    def pids(self):
        """Every process whose cost is the peer's."""
        return [self.pid]

    def written(self):
        return sum(written_bytes(pid) for pid in self.pids())

    def log_directories(self):
        return [Path(one) for one in self.server.properties()["log.dirs"].split(",")]

    def start(self):
        self.refuse_taken_port()
        self.server.start()
        return self

    def refuse_taken_port(self):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", self.server.port))
            except OSError:
                raise RuntimeError(f"port {self.server.port} is taken; give another one with --port, or leave it out and a free one is found") from None

    def stop(self, within=120):
        return self.server.stop(within)

    def kill(self):
        self.server.kill()

    def remove(self):
        self.kill()
        self.server.remove()
        shutil.rmtree(self.directory, ignore_errors=True)

    def alter(self, settings):
        asks = self.ask()
        said = asks.alter(1, settings)
        asks.close()
        if said:
            raise RuntimeError(f"{self.server.label} does not change {settings}: {said}")

    def log_bytes(self):
        """Bytes of record batches in the segments of ordinary topics."""
        return sum(path.stat().st_size for top in self.log_directories() for path in top.glob("*/*.log") if not path.parent.name.startswith("__"))

    # Topics

    def ask(self, within=60):
        return Asks(self.server.port, within)

    def create(self, topics, within=300):
        """{name: partitions}: made, led, and (some make them later) with their directories. Seconds to the leaders."""
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
        if self.makes_files_later:
            while time.monotonic() - begun < within and self.directories(topics) < wanted:
                time.sleep(0.05 if wanted < 500 else 0.5)
        return took

    def partition_directories(self):
        return [path for top in self.log_directories() if top.is_dir() for path in top.iterdir() if path.is_dir()]

    def directories(self, topics):
        return sum(path.name.rsplit("-", 1)[0] in topics for path in self.partition_directories())

    def delete(self, names, within=60):
        """Deletes topics and waits until their files are gone."""
        asks = self.ask()
        asks.delete(names)
        asks.close()
        starts = tuple(f"{name}-" for name in names)
        deadline = time.monotonic() + within
        while time.monotonic() < deadline and any(path.name.startswith(starts) for path in self.partition_directories()):
            time.sleep(0.05)


def several(directory, settings):
    """`log.dirs` as a number of directories (a setting of the rig's) as the paths that a server wants."""
    count = settings.pop("lab.log.dirs", None)
    if count:
        settings["log.dirs"] = ",".join(str(Path(directory) / f"data-{number}") for number in range(int(count)))
    return settings


__all__ = ["Missing", "Peer", "several"]
