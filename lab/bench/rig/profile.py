"""Where a server's time goes while a load runs: its functions by own time (perf, of any peer alike), `barnabas hotspots` of ours, and flame graphs.

Units: per cent of the server's CPU samples. A Java server's compiled functions get their names from the map that its own `jcmd` writes.
Where perf cannot be had, a Java server's own Flight Recorder says it, of Java functions alone. Call graphs copy stacks and cost the server what they measure: flame graphs are made in runs of their own, and of Barnabas alone.
"""

import os
import re
import shutil
import subprocess
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from compat import fetch

from . import flame
from .clients import Load
from .measures import AROUND_S, topic_name, warm
from .peers.peer import Missing

SAMPLES_PER_SECOND = 1999
FLAME_SAMPLES_PER_SECOND = 997
ROWS = 18


def words_of(command, timeout=60):
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]}: {(done.stderr or done.stdout).strip()[-200:]}")
    return done.stdout


def perf():
    """The program; from Debian where it is missing and this may install."""
    if shutil.which("perf") is None:
        if os.geteuid() != 0 or shutil.which("apt-get") is None:
            raise Missing("perf is not installed: no profile and no flame graph (Debian: apt-get install linux-perf)")
        try:
            fetch._run("linux-perf", ["apt-get", "install", "-y", "-q", "linux-perf"])
        except Missing:
            fetch._run("debian-lists", ["apt-get", "update"])
            fetch._run("linux-perf", ["apt-get", "install", "-y", "-q", "linux-perf"])
    return "perf"


def own_time(pid, seconds, work, is_java):
    """[(per cent, function)] of a process, the dearest first."""
    perf()
    recording, names = Path(work) / "perf.data", Path(f"/tmp/perf-{pid}.map")
    try:
        words_of(["perf", "record", "-q", "-F", str(SAMPLES_PER_SECOND), "-p", str(pid), "-o", str(recording), "--", "sleep", str(seconds)], seconds + 60)
        if is_java:
            words_of(["jcmd", str(pid), "Compiler.perfmap"])
        told = words_of(["perf", "report", "-i", str(recording), "--stdio", "--no-children", "-g", "none", "--sort", "symbol"], 300)
    finally:
        recording.unlink(missing_ok=True)
        names.unlink(missing_ok=True)
    found = re.findall(r"^\s+([\d.]+)%\s+\[(.)\]\s+(.+?)\s*$", told, re.M)
    sums = {}
    for share, kind, name in found:
        name = ("kernel: " if kind == "k" else "") + shortened(name)
        sums[name] = sums.get(name, 0) + float(share)
    return sorted(((round(share, 2), name) for name, share in sums.items()), reverse=True)[:ROWS]


def own_time_by_recorder(pid, seconds, work):
    """The same of a Java server, by its Flight Recorder: the share of its samples in which a function was innermost. Native and kernel time is not seen."""
    recording = Path(work) / "server.jfr"
    try:
        words_of(["jcmd", str(pid), "JFR.start", "name=lab", "settings=profile", f"filename={recording}"])
        time.sleep(seconds)
        words_of(["jcmd", str(pid), "JFR.stop", "name=lab"])
        told = words_of(["jfr", "print", "--events", "jdk.ExecutionSample", "--stack-depth", "1", str(recording)], 300)
    finally:
        recording.unlink(missing_ok=True)
    return innermost(told)


def innermost(told):
    """[(per cent, function)] of what `jfr print` says of samples with one frame each."""
    counts = Counter(".".join(name.split(".")[-2:]) for name in re.findall(r"stackTrace = \[\s*([\w.$<>]+)\(", told))
    return [(round(100 * count / counts.total(), 2), name) for name, count in counts.most_common(ROWS)]


def shortened(name):
    """A function's name without types, templates and hashes, so that a table can hold it."""
    name = re.sub(r"(\s+-)+$", "", name.strip())
    if name.startswith("0x"):
        return "(without a name)"
    java = re.match(r"(?:.* )?([\w.$]+)\(", name)
    if java:
        return ".".join(java.group(1).split(".")[-2:])
    name, before = re.sub(r"::h[0-9a-f]{16}$", "", name), None
    while name != before:
        # A method of a trait goes by the trait's name.
        before, name = name, re.sub(r"<([^<>]*)>", lambda found: found.group(1).split(" as ")[1] if " as " in found.group(1) else "", name)
    return name[:80]


def metered(peer, seconds):
    """What `barnabas hotspots` says over some seconds; nothing of a peer that has none. To be called beside the load."""
    binary = getattr(peer, "binary", None)
    if binary is None or not peer.name.startswith(("barnabas", "written")):
        return None
    return subprocess.Popen([str(binary), "hotspots", "--bootstrap-server", peer.server.address, "--interval", str(seconds)], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True)


def stacks(pid, seconds, work):
    """{(thread, outermost function, …, innermost): samples} of a native server."""
    recording = Path(work) / "stacks.data"
    try:
        words_of([perf(), "record", "-q", "-F", str(FLAME_SAMPLES_PER_SECOND), "--call-graph", "dwarf,16384", "-p", str(pid), "-o", str(recording), "--", "sleep", str(seconds)], seconds + 60)
        told = words_of(["perf", "script", "-i", str(recording), "--no-inline", "-F", "comm,ip,sym"], 300)
    finally:
        recording.unlink(missing_ok=True)
    return flame.folded(told, shortened)


@dataclass
class UnderLoad:
    """One run that is looked into. Its figures are no measurement: the looking costs as well."""

    load: Load
    seconds: float = 4

    def prepare(self, rig, peer, case):
        warm(rig, peer)
        if peer.compiles:
            # Its compiler at work on this load is not what is asked for.
            topic = topic_name(case, "warm")
            self.load.title = case
            peer.create({topic: self.load.partitions})
            rig.clients.run(peer, self.load, topic, 8)
            peer.delete([topic])

    def run(self, rig, peer, case, number):
        topic = topic_name(case, number)
        self.load.title = case
        peer.create({topic: self.load.partitions})
        running = rig.clients.start(peer, self.load, topic, self.seconds + 4)
        try:
            time.sleep(2)
            found = self.look(rig, peer, case)
            rig.clients.results(peer, self.load, running)
        finally:
            for process in running:
                if process.poll() is None:
                    process.kill()
                    process.wait()
        peer.delete([topic])
        return found

    def finish(self, rig, peer, case):
        """Nothing is left."""

    def takes(self, plan, peer):
        return (9 if peer.compiles else 0), self.seconds + 6 + 2 * AROUND_S


class Profile(UnderLoad):
    """Functions by own time, and what our own metering says of the same seconds."""

    def look(self, rig, peer, case):
        told = metered(peer, self.seconds)
        table, by = self._table(rig, peer)
        said, _ = told.communicate(timeout=30) if told else (None, None)
        return {"profile": table, "profile_by": by, **({"hotspots": said.strip().splitlines()} if said and told.returncode == 0 else {})}


    def _table(self, rig, peer):
        try:
            return own_time(peer.pid, self.seconds, rig.work, is_java=peer.compiles), "perf"
        except Missing as reason:
            rig.complain(reason)
        if peer.compiles:
            return own_time_by_recorder(peer.pid, self.seconds, rig.work), "Flight Recorder"
        time.sleep(self.seconds)
        return [], "nobody"


class Flame(UnderLoad):
    """A flame graph beside the results."""

    def look(self, rig, peer, case):
        found = stacks(peer.pid, self.seconds, rig.work)
        samples = sum(found.values())
        if not samples:
            raise RuntimeError("perf saw no sample: no flame graph")
        name = f"flame-{re.sub('[^a-z0-9]+', '-', case.lower())}.svg"
        rig.options.results.mkdir(parents=True, exist_ok=True)
        (rig.options.results / name).write_text(flame.drawn(found, f"{peer.label}: {case}", FLAME_SAMPLES_PER_SECOND * self.seconds))
        return {"flame": name, "samples": samples}
