"""What can go wrong, done for real: a peer that cannot be fetched, one that ends as it starts, a port that is taken, a disk that fills up.

Each must cost one line that says what and what to do; what is left runs; nothing is left running. The servers are small Python programs that
answer Metadata as a broker does.
"""

import contextlib
import io
import os
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace

from harness.server import Server

from . import main
from .peers import PEERS
from .peers.peer import Missing, Peer
from .plan import PLANS, Case, Workload
from .runner import Lines, Rig

ANSWERS = """
import os, socket, struct, sys
if sys.argv[2] == "ends":
    sys.exit("it has no licence")
listening = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    connection, _ = listening.accept()
    asked = connection.recv(4096)
    if b"fill" in asked:
        with open(sys.argv[3], "wb", 0) as file:
            while True:
                file.write(bytes(65536))
    connection.sendall(struct.pack(">iii", 8, 7, 1))
    connection.close()
"""


class Small(Server):
    """A server of one file, which answers with one broker; told to, it writes until the disk is full."""

    how = "answers"

    def format(self, properties):
        self.data.mkdir(parents=True, exist_ok=True)

    def command(self, properties):
        return [sys.executable, "-c", ANSWERS, str(self.port), self.how, str(self.data / "file")]


class Ends(Small):
    how = "ends"


class Fake(Peer):
    name = label = "kafka"
    server_class = Small

    @classmethod
    def prepare(cls, options):
        return "1"

    def make_server(self, overrides):
        server = self.server_class(self.directory)
        server.label = self.label
        return server

    def log_directories(self):
        return [self.server.data]


class Other(Fake):
    name = label = "barnabas"


class EndsAtOnce(Other):
    server_class = Ends


class Unfetched(Other):
    @classmethod
    def prepare(cls, options):
        raise Missing("kafka could not be fetched (mvn 1; see .cache/compat/logs/fetch-kafka.log)")


class Measure:
    """Notes the process of every server; `fills`: has this peer's write until there is no room."""

    def __init__(self, fills=""):
        self.fills, self.processes, self.ran = fills, [], []

    def prepare(self, rig, peer, case):
        self.processes.append(peer.server.process)

    def run(self, rig, peer, case, number):
        if peer.name == self.fills:
            with socket.create_connection(("127.0.0.1", peer.server.port)) as connection:
                connection.sendall(b"fill")
                if not connection.recv(1):
                    peer.server.process.wait(10)
                    raise RuntimeError(f"{peer.label} ended: {peer.server.last_lines()}")
        self.ran.append(peer.name)
        return {"records_per_s": 1.0}

    def finish(self, rig, peer, case):
        """Nothing."""

    def takes(self, plan, peer):
        return 0, 1


def workload(measure, needs_gb=0):
    return Workload("w", "W", "What?", [Case("c", measure, ("kafka", "barnabas"))], ("records_per_s",), needs_gb=needs_gb)


class BadInput(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        kept = dict(PEERS)
        PEERS.clear()
        PEERS.update({"kafka": Fake, "barnabas": Other})
        self.addCleanup(lambda: (PEERS.clear(), PEERS.update(kept)))

    def rig(self, work=None, **more):
        options = SimpleNamespace(**{"runs": 1, "attempts": 1, "skip_done": False, "port": None, "case": None, "minutes": None, "peers": "kafka,barnabas", **more})
        return Rig(options, PLANS["short"], Path(work or self.folder.name), None, {"kafka": "1", "barnabas": "1"}, Lines(Path(self.folder.name) / "results/t.jsonl"))

    def ran(self, rig, load):
        """Runs it, ends it, and sees that nothing is left: no process, no directory."""
        with contextlib.redirect_stdout(io.StringIO()):
            rig.run(load)
            rig.end_peers()
        for process in load.cases[0].measure.processes:
            self.assertIsNotNone(process.poll())
        self.assertEqual([path.name for path in rig.work.iterdir() if path.name != "results"], [])
        return load.cases[0].measure.ran

    def test_a_peer_that_cannot_be_fetched(self):
        PEERS["barnabas"] = Unfetched
        rig, load = self.rig(), workload(Measure())
        versions, missing = main.prepared(rig.options, rig.plan, [load])
        self.assertEqual(missing, ["barnabas is left out: kafka could not be fetched (mvn 1; see .cache/compat/logs/fetch-kafka.log)"])
        rig.versions = versions
        self.assertEqual(self.ran(rig, load), ["kafka"])

    def test_a_peer_that_ends_as_it_starts(self):
        PEERS["barnabas"] = EndsAtOnce
        rig = self.rig()
        self.assertEqual(self.ran(rig, workload(Measure())), ["kafka"])
        self.assertEqual(len(rig.complaints), 1)
        self.assertRegex(rig.complaints[0], "w: c: barnabas: barnabas ended with 1: it has no licence")

    def test_a_port_that_is_taken(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            rig = self.rig(port=port)
            # The other has the port two above.
            self.assertEqual(self.ran(rig, workload(Measure())), ["barnabas"])
            self.assertEqual(rig.complaints, [f"w: c: kafka: port {port} is taken; give another one with --port, or leave it out and a free one is found"])

    @contextlib.contextmanager
    def small_disk(self):
        disk = Path(self.folder.name) / "disk"
        disk.mkdir()
        if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)], capture_output=True).returncode != 0:
            self.skipTest("a small tmpfs cannot be mounted here")
        try:
            yield disk
        finally:
            subprocess.run(["umount", "-l", str(disk)], check=True)

    def test_a_disk_that_has_no_room(self):
        with self.small_disk() as disk:
            rig = self.rig(work=disk)
            self.assertEqual(self.ran(rig, workload(Measure(), needs_gb=3)), [])
            self.assertEqual(rig.complaints, [f"w: skipped: {disk} has 0.0 GB free and it needs 3; make room, or give another directory with --work"])

    def test_a_disk_that_fills_up(self):
        with self.small_disk() as disk:
            rig = self.rig(work=disk)
            self.assertEqual(self.ran(rig, workload(Measure(fills="kafka"))), ["barnabas"])
            self.assertEqual(len(rig.complaints), 1)
            # Its last words had no room either.
            self.assertRegex(rig.complaints[0], f"^w: c: kafka: kafka ended.*; {disk} has 0.0 GB free; make room, or give another directory with --work$")


if __name__ == "__main__":
    unittest.main()
