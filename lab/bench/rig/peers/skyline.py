"""The least work that a broker can do (lab/bench/skyline), in four steps: what of a figure is the client's, and what no broker gets below.

null: acknowledges unread. file: CRC, then the partition's file in the page cache. journal: an answer after a synced round of one journal.
segments: journal, and the batches written_back into the partitions' files behind it.
"""

import os
import subprocess

from harness.server import Server

from .. import ROOT
from .peer import Missing, Peer


class SkylineServer(Server):
    def __init__(self, directory, binary, mode):
        super().__init__(directory)
        self.binary, self.mode = binary, mode

    def format(self, properties):
        self.data.mkdir(parents=True, exist_ok=True)

    def write_properties(self):
        return None

    def command(self, properties):
        return [str(self.binary), self.mode, str(self.port), str(self.data)]


class SkylineNull(Peer):
    name, label, colour, mode = "skyline-null", "skyline: unread", "#bbbbbb", "null"
    binary = ROOT / "target/release/barnabas-skyline"
    serves_reads, warm_up_seconds = False, 1

    @classmethod
    def prepare(cls, options):
        if os.environ.get("BARNABAS_BUILT"):
            return "-"
        built = subprocess.run(["cargo", "build", "--release", "--locked", "--quiet", "-p", "barnabas-skyline"], cwd=ROOT, capture_output=True, text=True)
        if built.returncode != 0:
            raise Missing(f"the skyline does not build: {built.stderr.strip()[-200:]}")
        return "-"

    def make_server(self, overrides):
        server = SkylineServer(self.directory, self.binary, self.mode)
        server.label = self.label
        return server

    def log_directories(self):
        return [self.server.data]


class SkylineFile(SkylineNull):
    name, label, colour, mode = "skyline-file", "skyline: page cache", "#999999", "file"


class SkylineJournal(SkylineNull):
    name, label, colour, mode = "skyline-journal", "skyline: synced", "#777777", "journal"


class SkylineSegments(SkylineNull):
    name, label, colour, mode = "skyline-segments", "skyline: synced, written back", "#555555", "segments"
