"""`barnabas doctor`, put to the test: a healthy cluster of three under load gives no finding; each planted fault is found, mended by what was printed, and gone.

Rounds of faults are planted side by side. A fault counts as found when the doctor names its id and its subject, as mended when the printed commands (or
the step in the table, where no command can do it) ran, and as gone when the doctor no longer names it. At the end the cluster is healthy again: whatever
the doctor still finds there is a false alarm too.

`--quick` looks at the healthy cluster for ten seconds, the long form for MINUTES (10).
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import alone
import apache
from compat.cli import find_binary
from faults import DESCRIPTORS, DOWN, LEADERS, PLACEMENT, TOGETHER, TRAFFIC
from rig import Load, Rig, trio

# The machine belongs to other programs as well, and the bars are about the doctor: what it says of processors and disk is shown, not judged.
OF_THE_MACHINE = ("O1", "O2", "O3", "O4", "O5", "O7", "O8", "D1", "D2", "D3", "D4", "D5", "D6", "D9", "D10", "D14", "N1", "N2", "N3", "N4")
# The looks are two seconds apart, so that the limits of minutes are lower.
THRESHOLDS = ("W11=2", "G1=2", "G5=5")
WITHIN_S = 60


def arguments(words):
    parser = argparse.ArgumentParser(prog="lab/doctor/run", description="The doctor on a healthy cluster and on planted faults.")
    parser.add_argument("--quick", action="store_true", help="the short form, without the hour of a healthy cluster")
    parser.add_argument("--minutes", type=float, default=10, help="how long the healthy cluster is looked at")
    parser.add_argument("--only", help="ids, with commas between")
    parser.add_argument("--binary")
    parser.add_argument("--keep", action="store_true")
    return parser.parse_args(words)


class Test:
    def __init__(self, wanted):
        self.wanted, self.rows, self.alarms, self.refused, self.begun = wanted, [], [], [], time.monotonic()

    def say(self, text):
        print(f"{time.monotonic() - self.begun:6.1f} s  {text}", flush=True)

    def healthy(self, rig, seconds):
        """No finding, however often one looks."""
        end, looks = time.monotonic() + seconds, 0
        while True:
            looks += 1
            self.judge(rig.doctor())
            if time.monotonic() > end:
                break
        self.say(f"healthy: {looks} looks, {len(self.alarms)} false alarms")

    def judge(self, told):
        for finding in told["findings"]:
            line = f"{finding['id']} {finding['subject']}: {finding['sentence']}"
            if finding["id"] in OF_THE_MACHINE:
                self.say(f"  of the machine: {line}")
            else:
                self.alarms.append(line)
                self.say(f"  FALSE ALARM {line}")

    def round(self, rig, makers, make=""):
        """Plants, finds, mends. `make` is what the table adds to the subject."""
        faults = [fault for fault in (make() for make in makers) if not self.wanted or fault.id in self.wanted]
        if not faults:
            return
        for fault in faults:
            try:
                fault.plant(rig, fault)
            except (RuntimeError, OSError, subprocess.SubprocessError) as trouble:
                self.say(f"  {fault.id} could not be planted: {trouble}")
        self.say(f"planted: {' '.join(fault.id for fault in faults)}")
        found = self.until(rig, lambda told: all(match(fault, told) for fault in faults), collect=faults)
        rows = {fault.id: [fault, found.get(fault.id), False, make] for fault in faults}
        for fault, finding, *_ in rows.values():
            if finding is None:
                self.say(f"  NOT FOUND {fault.id} {fault.subject}")
                continue
            self.mend(rig, fault, finding)
        left = self.until(rig, lambda told: not any(match(fault, told) for fault in faults), collect=None)
        for row in rows.values():
            finding = match(row[0], left)
            row[2] = row[1] is not None and finding is None
            if finding:
                self.say(f"  NOT MENDED {row[0].id} {row[0].subject}: {finding['sentence']}")
        for fault in faults:
            fault.stop()
        self.rows += rows.values()

    def mend(self, rig, fault, finding):
        try:
            if fault.first:
                fault.first(rig, fault)
            for command in finding["commands"]:
                rig.shell(command, fault.replacements)
            if fault.mend:
                fault.mend(rig, fault)
        except (RuntimeError, OSError, subprocess.SubprocessError) as trouble:
            self.refused.append(f"{fault.id}: {trouble}")
            self.say(f"  {fault.id}: {trouble}")

    def until(self, rig, is_so, collect):
        """Looks until it is so; what was found of `collect` on the way, or the last look."""
        found, end = {}, time.monotonic() + WITHIN_S
        while True:
            told = rig.doctor()
            for fault in collect or []:
                finding = match(fault, told)
                if finding:
                    found[fault.id] = finding
            done = len(found) == len(collect) if collect else is_so(told)
            if done or time.monotonic() > end:
                return found if collect else told

    def table(self):
        print("\n| id | subject | what the doctor said | mended by | gone |\n|---|---|---|---|---|")
        for fault, finding, gone, make in sorted(self.rows, key=lambda row: row[0].id):
            by = fault.step or ("`" + finding["commands"][0][:100].replace("|", "\\|") + "`" if finding and finding["commands"] else "–")
            print(f"| {fault.id} | {fault.subject}{make} | {finding['sentence'] if finding else '**not found**'} | {by} | {'yes' if gone else '**no**'} |")

    def verdict(self):
        found, mended = sum(row[1] is not None for row in self.rows), sum(row[2] for row in self.rows)
        print(f"\ndoctor: {len(self.rows)} findings planted, {found} found, {mended} mended, {len(self.alarms)} false alarms, {len(self.refused)} printed commands refused")
        return 0 if found == mended == len(self.rows) and not self.alarms and not self.refused else 1


def match(fault, told):
    """The fault's finding. A subject that ends in a kind ("node") is any of that kind."""
    same = lambda subject: subject == fault.subject or (" " not in fault.subject and subject.startswith(fault.subject + " "))
    return next((finding for finding in told["findings"] if finding["id"] == fault.id and same(finding["subject"])), None)


def on_three(test, directory, binary, minutes):
    nodes = trio(directory, binary)
    rig = Rig(nodes, binary, directory)
    rig.thresholds = list(THRESHOLDS)
    load = Load(rig)
    time.sleep(3)
    try:
        test.healthy(rig, minutes * 60)
        for makers in (TOGETHER, TRAFFIC, DESCRIPTORS, LEADERS, PLACEMENT, DOWN):
            test.round(rig, makers)
        # A leader that came back leads again after the election of preferred leaders.
        rig.tool("leader-election", "--election-type", "preferred", "--all-topic-partitions")
        # N8's printed command has raised it at one node.
        rig.tool("configs", "--alter", "--entity-type", "brokers", "--entity-name", "1", "--delete-config", "max.connections")
        # Producers ask the former leaders once more, and members that were killed are forgotten.
        time.sleep(15)
        test.healthy(rig, 0)
    finally:
        load.stop()
        for node in nodes.values():
            node.stop()


def main(words):
    options = arguments(words)
    binary = find_binary(options.binary)
    directory = Path(tempfile.mkdtemp(prefix="barnabas-doctor-"))
    test = Test(set(options.only.split(",")) if options.only else None)
    try:
        on_three(test, directory / "three", binary, 1 / 6 if options.quick else options.minutes)
        alone.run(test, directory / "alone", binary)
        if not options.quick:
            apache.run(test, directory / "apache", binary)
    finally:
        if options.keep:
            print(f"kept: {directory}")
        else:
            shutil.rmtree(directory, ignore_errors=True)
    test.table()
    return test.verdict()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
