"""Runs workloads: peers started when they are first needed, runs interleaved, disturbed ones repeated, a line of JSON kept for each.

What goes wrong costs its case and its peer one line, and the rest runs. What is kept is written after every run, so that a set that was
ended is gone on with (`--skip-done`). Servers stay for the workloads behind, unless one wants
its own; at the end all are stopped and their directories removed.
"""

import json
import shutil
import subprocess
import time
from pathlib import Path

from . import ROOT
from .estimate import case_seconds
from .machine import DISTURBED, settle
from .peers import PEERS
from .peers.peer import Missing
from .plan import server_key

# What a case may fail with; anything else is a bug of the rig and ends it.
FAILURES = (RuntimeError, OSError, Missing, subprocess.SubprocessError, ValueError, KeyError, StopIteration)


class Lines:
    """One set's runs: a line of JSON each, in the order in which they were made."""

    def __init__(self, path):
        self.path = Path(path)
        self.all = [json.loads(line) for line in self.path.read_text().splitlines()] if self.path.exists() else []

    def of(self, workload, case, peer):
        return [line for line in self.all if (line.get("workload"), line.get("case"), line.get("peer")) == (workload, case, peer)]

    def counted(self, workload, case, peer):
        """The last attempt of each run."""
        return list({line["run"]: line for line in self.of(workload, case, peer) if "run" in line}.values())

    def failures(self):
        """What went wrong where, of cases that were not measured again since."""
        return [f"{line['workload']}: {line['case']}: {line['peer']}: {line['failed']}" for line in self.all if isinstance(line.get("failed"), str)]

    def forget(self, workload, case, peer):
        gone = self.of(workload, case, peer)
        self.all = [line for line in self.all if line not in gone]

    def keep(self, line):
        self.all.append(line)
        print(json.dumps(line, ensure_ascii=False), flush=True)
        self.write()

    def machine(self, about):
        before = next((line["machine"].get("versions", {}) for line in self.all if "machine" in line), {})
        about = {**about, "versions": {**before, **about["versions"]}}
        self.all = [{"machine": about}, *(line for line in self.all if "machine" not in line)]
        self.write()

    def write(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_suffix(".new")
        fresh.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in self.all))
        fresh.replace(self.path)


class Rig:
    def __init__(self, options, plan, work, clients, versions, lines):
        self.options, self.plan, self.work, self.clients, self.versions, self.lines = options, plan, Path(work), clients, versions, lines
        self.running, self.number, self.begun, self.left = {}, 0, time.monotonic(), 0
        self.complaints, self.failed, self.disturbed, self.took = [], [], 0, {}
        # What a workload wants to remember between its stories.
        self.remembered = {}

    def complain(self, text):
        text = " ".join(str(text).split())[:400]
        self.complaints.append(text)
        print(f"bench: {text}", flush=True)
        return text

    def make(self, name, settings=None):
        self.number += 1
        port = self.options.port and self.options.port + 2 * (self.number - 1)
        return PEERS[name](self.work / f"{name}-{self.number}", settings, port=port)

    def peer(self, name, settings):
        """A running server of this kind with these settings, started when it is first asked for."""
        key = server_key(name, settings)
        found = self.running.get(key)
        if found is not None and found.server.process.poll() is None:
            return found
        if found is not None:
            found.remove()
        peer = self.make(name, settings)
        try:
            self.running[key] = peer.start()
        except FAILURES:
            self.running.pop(key, None)
            peer.remove()
            raise
        return peer

    def explained(self, error):
        """A failure on a disk that is full is the disk's."""
        free = shutil.disk_usage(self.work).free / 1e9
        return error if free > 0.1 else RuntimeError(f"{error}; {self.work} has {free:.1f} GB free; make room, or give another directory with --work")

    def end_peer(self, key):
        peer = self.running.pop(key, None)
        if peer is not None:
            peer.remove()

    def end_peers(self):
        for peer in self.running.values():
            peer.remove()
        self.running.clear()
        settle()

    def run(self, workload):
        begun = time.monotonic()
        if workload.skipped:
            self.complain(f"{workload.name}: skipped: {workload.skipped}")
            return
        free = shutil.disk_usage(self.work).free / 1e9
        if free < workload.needs_gb:
            self.complain(f"{workload.name}: skipped: {self.work} has {free:.1f} GB free and it needs {workload.needs_gb:g}; make room, or give another directory with --work")
            return
        if workload.alone:
            self.end_peers()
        try:
            for case in workload.cases:
                self.run_case(workload, case)
        finally:
            for key in [key for key in self.running if workload.alone or key[1]]:
                # Nobody else wants a server with these settings.
                self.end_peer(key)
            self.took[workload.name] = self.took.get(workload.name, 0) + time.monotonic() - begun

    def wanted(self, case, name):
        return min(case.runs.get(name, self.plan.runs_of(name)), self.options.runs)

    def to_measure(self, workload, case):
        """The peers of a case that is to be run; none where it is not wanted or done. All peers or none: runs made at other times are not interleaved."""
        names = [name for name in case.peers if name in self.versions]
        is_done = all(len(self.lines.counted(workload.name, case.name, name)) >= self.wanted(case, name) for name in names)
        return [] if (self.options.case and self.options.case not in case.name) or (self.options.skip_done and is_done) else names

    def run_case(self, workload, case):
        names = self.to_measure(workload, case)
        begun = time.monotonic()
        if names and self.options.minutes and begun - self.begun + case_seconds(self, case, names) > self.options.minutes * 60:
            self.left += 1
            return
        for name in names:
            self.lines.forget(workload.name, case.name, name)
        doing = {}
        for name in names:
            with Trouble(self, workload, case, name) as trouble:
                doing[name] = None if case.own_server else self.peer(name, case.settings)
                if doing[name] is not None:
                    if case.altered:
                        doing[name].alter(case.altered)
                    case.measure.prepare(self, doing[name], case.name)
            if trouble.met:
                doing.pop(name, None)
        for run in range(max((self.wanted(case, name) for name in doing), default=0)):
            for name in list(doing):
                if run < self.wanted(case, name):
                    with Trouble(self, workload, case, name) as trouble:
                        self.one_run(workload, case, name, run)
                    if trouble.met:
                        del doing[name]
        for name in doing:
            if not case.own_server:
                with Trouble(self, workload, case, name):
                    case.measure.finish(self, self.peer(name, case.settings), case.name)
        if names:
            print(f"bench: {workload.name}: {case.name}: {time.monotonic() - begun:.0f} s (estimated {case_seconds(self, case, names):.0f})", flush=True)

    def one_run(self, workload, case, name, run):
        for attempt in range(self.options.attempts):
            if case.own_server:
                peer = self.make(name, case.settings)
                try:
                    told = case.measure.run(self, peer, case.name, run)
                finally:
                    peer.remove()
                    settle()
            else:
                told = case.measure.run(self, self.peer(name, case.settings), case.name, f"{run}-{attempt}")
            quiet = told.get("other_load", 0) <= DISTURBED
            self.lines.keep({"workload": workload.name, "case": case.name, "peer": name, "version": self.versions[name], "run": run, "attempt": attempt, "at": time.strftime("%Y-%m-%d %H:%M"), **told})
            if quiet:
                return
        self.disturbed += 1


class Trouble:
    """What goes wrong with one peer in one case is one line; the others go on."""

    def __init__(self, rig, workload, case, name):
        self.rig, self.key, self.met = rig, server_key(name, case.settings), False
        self.line = {"workload": workload.name, "case": case.name, "peer": name}
        self.what = f"{workload.name}: {case.name}: {PEERS[name].label}"

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if error is None or not isinstance(error, FAILURES):
            return False
        self.met = True
        error = self.rig.explained(error)
        self.rig.failed.append(self.rig.complain(f"{self.what}: {error or kind.__name__}"))
        self.rig.lines.keep({**self.line, "failed": " ".join(str(error or kind.__name__).split())[:400]})
        # Who knows what it is left with: the next case gets another.
        self.rig.end_peer(self.key)
        return True


def about_machine(versions, work):
    """What a reader must know of the machine that the figures are of."""
    def first(path, start):
        return next((line.split(":", 1)[1].strip() for line in Path(path).read_text().splitlines() if line.startswith(start)), "?")

    mount = subprocess.run(["df", "--output=fstype,source", str(work)], capture_output=True, text=True).stdout.split("\n")[1:2]
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    return {"cpu": first("/proc/cpuinfo", "model name"), "cores": sum(line.startswith("processor") for line in Path("/proc/cpuinfo").read_text().splitlines()),
            "memory_gb": round(int(first("/proc/meminfo", "MemTotal").split()[0]) / 1e6, 1), "kernel": Path("/proc/sys/kernel/osrelease").read_text().strip(),
            "file_system": mount[0].split()[0] if mount and mount[0].split() else "?", "versions": versions, "commit": commit,
            "date": time.strftime("%Y-%m-%d")}
