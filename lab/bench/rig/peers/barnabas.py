"""Barnabas: synced, as it comes (an answer means on disk), and written (Kafka's weaker promise, for those who ask for it by name)."""

import subprocess

from compat.cli import find_binary
from harness.server import Barnabas

from .. import ROOT
from .peer import Missing, Peer, several


class BarnabasSynced(Peer):
    name, label, colour = "barnabas", "Barnabas, synced", "#1b9e77"
    settings = {"log.segment.delete.delay.ms": "50", "max.connections": "20000"}
    binary = None

    @classmethod
    def prepare(cls, options):
        return cls.take(options.binary or ROOT / "target/release/barnabas")

    @classmethod
    def take(cls, path):
        """The version of the program at `path`, which is used from now on."""
        cls.binary = find_binary(path)
        said = subprocess.run([str(cls.binary), "--version"], capture_output=True, text=True)
        if said.returncode != 0:
            raise Missing(f"{cls.binary} does not run: {(said.stdout + said.stderr).strip()[-200:]}; build it: cargo build --release -p barnabas")
        return said.stdout.strip().split()[-1].strip("()") if said.stdout.split() else "?"

    def make_server(self, overrides):
        server = Barnabas(self.directory, self.binary or BarnabasSynced.binary, several(self.directory, overrides))
        server.label, server.proxied = self.label, []
        return server


class BarnabasWritten(BarnabasSynced):
    name, label, colour = "written", "Barnabas, written", "#66a61e"
    settings = {**BarnabasSynced.settings, "log.ack.durability": "written"}


class BarnabasBefore(BarnabasSynced):
    """An older program, synced, beside the one that is measured: what a change costs."""
    name, label, colour = "before", "Barnabas, before", "#7570b3"
    binary = None

    @classmethod
    def prepare(cls, options):
        if not options.before:
            raise Missing("no older program is given (--before)")
        return cls.take(options.before)
