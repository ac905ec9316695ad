"""One JVM that runs test classes of Apache's, and what each test came to.

The nodes that a test starts are children of the JVM. They share its session and end with it.
"""

import os
import shutil
import signal
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

from harness.process import die_with_the_rig

PASSED, FAILED, SKIPPED = "passed", "FAILED", "skipped"
WORDS = {"passed": PASSED, "failed": FAILED, "skipped": SKIPPED}
# What Apache's build opens for its tests.
OPENED = [word for package in ("java.lang", "java.util", "java.util.concurrent", "java.util.concurrent.atomic", "java.nio", "java.nio.file", "java.security", "sun.nio.ch",
                               "sun.security.jca") for word in ("--add-opens", f"java.base/{package}=ALL-UNNAMED")]


@dataclass
class Outcome:
    status: str
    seconds: float
    where: str
    message: str


class Peer:
    """How one make's tests are started: the class path decides what a test runs on."""

    def __init__(self, name, jars, classes, binary=None, timeout=120, verbose=False):
        self.name, self.path, self.binary, self.timeout, self.verbose = name, ":".join([*classes, jars]), binary, timeout, verbose

    def command(self, out, place, selectors):
        logging = Path(__file__).resolve().parent.parent / "maven/log4j2.properties"
        words = ["java", "-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xshare:auto", *OPENED, f"-Djava.io.tmpdir={place}", f"-Dbarnabas.work={place}",
                 f"-Dlog4j2.configurationFile={logging}", f"-Dcompat.level={os.environ.get('COMPAT_KAFKA_LEVEL', 'ERROR')}"]
        if self.binary:
            words.append(f"-Dbarnabas.binary={self.binary}")
        if os.environ.get("KEEP"):
            words.append("-Dbarnabas.keep=yes")
        return [*words, "-cp", self.path, "barnabas.Run", str(out), str(self.timeout), *selectors]

    def run(self, place, selectors, within):
        """{case: Outcome}; a class that does not end within this many seconds counts as one failed case."""
        place.mkdir(parents=True, exist_ok=True)
        out, log = place / "outcomes", place / "said.log"
        with open(log, "wb") as said:
            jvm = subprocess.Popen(self.command(out, place, selectors), stdout=said, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=place,
                                   start_new_session=True, preexec_fn=die_with_the_rig)
            try:
                jvm.wait(within)
            except subprocess.TimeoutExpired:
                pass
            finally:
                end_session(jvm)
        found, ended = read(out)
        if not ended:
            last = log.read_text(errors="replace").strip().splitlines()[-1:]
            found[selectors[0].split(".")[-1]] = Outcome(FAILED, within, "", f"the JVM did not end within {within} s, or ended early: {' '.join(last)[:300]}")
        if not os.environ.get("KEEP"):
            shutil.rmtree(place, ignore_errors=True)
        return found

    def settle(self, place, name, within):
        """One class; what fails is run a second time by itself, since a busy machine is slower than Apache's timeouts allow."""
        found = self.run(place / "first", [name], within)
        again = {case: outcome for case, outcome in found.items() if outcome.status == FAILED and outcome.where}
        if again:
            second = self.run(place / "second", [f"uid:{outcome.where}" for outcome in again.values()], within)
            for case, outcome in second.items():
                if case in again and outcome.status != FAILED:
                    found[case] = replace(outcome, message=f"the second time; first: {again[case].message}" if outcome.status == PASSED else outcome.message)
        return found


def end_session(jvm):
    try:
        os.killpg(jvm.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    jvm.wait()


def read(out):
    found, ended = {}, False
    for line in out.read_text(errors="replace").splitlines() if out.exists() else []:
        parts = line.split("\t")
        if line == "end":
            ended = True
        elif len(parts) == 5:
            found[parts[0]] = Outcome(WORDS[parts[1]], float(parts[2].replace(",", ".")), parts[3], parts[4])
    return found, ended
