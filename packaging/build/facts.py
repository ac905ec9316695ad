"""What is packaged: version, commit, time, architecture, and what the binary needs of the system."""

import os
import re
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILES = ROOT / "packaging"
SUMMARY = "Event streaming platform that Apache Kafka's clients and tools use unchanged"


def run(*words, **options):
    """Standard output of a command. Its failure is an error that names the command."""
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, text=True, **options)
    if done.returncode:
        raise SystemExit(f"dist: {' '.join(map(str, words))} ended with {done.returncode}")
    return done.stdout


class Missing(Exception):
    """A package cannot be built here; the text names the tool that is missing and how to get it."""


@dataclass(frozen=True)
class Facts:
    binary: Path
    debug: Path | None
    out: Path
    version: str

    @cached_property
    def epoch(self) -> int:
        """Seconds since 1970 that every file and archive carries: SOURCE_DATE_EPOCH, or the time of the commit."""
        given = os.environ.get("SOURCE_DATE_EPOCH")
        return int(given or run("git", "log", "-1", "--format=%ct", cwd=ROOT))

    @cached_property
    def commit(self) -> str:
        return run("git", "rev-parse", "--short=12", "HEAD", cwd=ROOT).strip()

    @cached_property
    def elf(self) -> str:
        return run("readelf", "--file-header", "--dynamic", "--version-info", "--wide", self.binary)

    @cached_property
    def machine(self) -> str:
        """As `uname -m` has it."""
        machines = {"X86-64": "x86_64", "AArch64": "aarch64"}
        return next(name for known, name in machines.items() if re.search(rf"Machine:.*{known}", self.elf))

    @property
    def debian_arch(self) -> str:
        return {"x86_64": "amd64", "aarch64": "arm64"}[self.machine]

    @property
    def is_static(self) -> bool:
        return "(NEEDED)" not in self.elf

    @property
    def libc(self) -> str:
        return "musl" if self.is_static else "gnu"

    @cached_property
    def glibc(self) -> str:
        """The oldest glibc whose symbols the binary names, for example `2.34`."""
        found = [tuple(map(int, text.split("."))) for text in re.findall(r"GLIBC_([\d.]+)", self.elf)]
        return ".".join(map(str, max(found)))

    @property
    def release(self) -> str:
        """The stem of file names: `barnabas-0.1.0-x86_64-linux-gnu`."""
        return f"barnabas-{self.version}-{self.machine}-linux-{self.libc}"

    def environment(self) -> dict:
        """For tools that write times."""
        return {**os.environ, "SOURCE_DATE_EPOCH": str(self.epoch), "TZ": "UTC", "LC_ALL": "C.UTF-8"}


def workspace_version() -> str:
    text = (ROOT / "Cargo.toml").read_text()
    return re.search(r'\[workspace\.package\]\s+version = "([^"]+)"', text)[1]
