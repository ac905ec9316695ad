"""Installs each package in an empty root and uses it there.

`lab/dist/run [--binary FILE] [--only deb,image] [--keep] [--packages DIR]`: FILE is a stripped binary
(target/dist/barnabas); DIR has the packages of a run before, which was kept. Each case
that installs prints the seconds from the empty root to the first record that was consumed. Ends in
`dist-test: N passed, N failed, N skipped`.
"""

import argparse
import os
import re
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path

import cases
from machine import debian_root, run

ROOT = Path(__file__).resolve().parents[2]
# What the upgrades come from. The binary is the same: what is tested is the packages' part.
OLDER = "0.0.9"


class Rig:
    """The packages of two versions, the empty root, and a folder for each case."""

    def __init__(self, folder: Path, binary: Path, packages: Path | None):
        self.folder, self.binary = folder, binary
        self.are_built = packages is not None
        self.packages = packages or folder / "packages"
        self.again = folder / "again"
        self.older = self.packages / "older"
        self.number = 0

    def build(self, out: Path, *words):
        run(ROOT / "packaging/dist", "--binary", self.binary, "--out", out, "--all", *words)

    def prepare(self):
        if not self.are_built:
            self.build(self.packages)
            self.build(self.older, "--only", "deb,rpm", "--package-version", OLDER)
        self.debian = debian_root(self.folder)

    def package(self, pattern: str, folder=None) -> Path:
        [found] = (folder or self.packages).glob(pattern)
        return found

    def case(self) -> Path:
        self.number += 1
        folder = self.folder / f"case-{self.number}"
        folder.mkdir()
        return folder


def main() -> int:
    parser = argparse.ArgumentParser(prog="dist-test", description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, default=ROOT / "target/dist/barnabas")
    parser.add_argument("--only", type=lambda text: text.split(","), default=[])
    parser.add_argument("--keep", action="store_true", help="keep the folder of the run")
    parser.add_argument("--packages", type=lambda text: Path(text).resolve())
    arguments = parser.parse_args()
    if os.geteuid() != 0 or not shutil.which("mmdebstrap"):
        print("dist-test: needs root, and mmdebstrap of Debian")
        print("dist-test: 0 passed, 0 failed, 1 skipped")
        return 0
    # Not below a folder that only root may enter: the nodes run as other users.
    folder = Path(tempfile.mkdtemp(prefix="barnabas-dist.", dir=os.environ.get("TMPDIR", "/var/tmp")))
    folder.chmod(0o755)
    try:
        return run_cases(Rig(folder, arguments.binary.resolve(), arguments.packages), arguments.only)
    finally:
        if arguments.keep:
            print(f"kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)


def run_cases(rig: Rig, only: list) -> int:
    counted = {"passed": 0, "failed": 0, "skipped": 0}
    began = time.monotonic()
    rig.prepare()
    print(f"packages of two versions and the empty root: {time.monotonic() - began:.0f} s")
    for name, case in cases.ALL.items():
        if only and not any(re.search(word, name) for word in only):
            continue
        began = time.monotonic()
        try:
            outcome, said = "passed", case(rig)
        except cases.Skipped as reason:
            outcome, said = "skipped", str(reason)
        except Exception as error:
            outcome, said = "failed", str(error)
            if not said or not isinstance(error, AssertionError):
                traceback.print_exc()
        counted[outcome] += 1
        seconds = time.monotonic() - began
        print(f"{outcome:8}{name}: {said or ''} ({seconds:.1f} s)", flush=True)
    print("dist-test: " + ", ".join(f"{number} {outcome}" for outcome, number in counted.items()))
    return 1 if counted["failed"] or not counted["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
