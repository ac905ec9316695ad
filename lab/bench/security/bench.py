"""`make bench-security`: TLS, ACLs and quotas beside Apache Kafka, interleaved; rows.py has the rows, the rig does the rest.

Writes lab/bench/results/security.{jsonl,md}; QUICK=1 (or --quick) is a check of a minute or two that all rows work, its results in target/. Ends in one line.
"""

import argparse
import os
import signal
import sys
import tempfile
import time
import unittest
from dataclasses import dataclass
from pathlib import Path

from compat.cli import find_binary
from rig import RESULTS, ROOT, report
from rig.machine import DISTURBED, all_descriptors, busy_share
from rig.main import clients, remove_remains
from rig.peers import PEERS
from rig.peers.peer import Missing
from rig.plan import BOTH, KAFKA, Plan
from rig.runner import Lines, Rig, about_machine

from .drive import Drivers
from .nodes import Keys, Listening, SecureBarnabas, SecureKafka
from .rows import ACLS, FIGURES, workload


@dataclass(frozen=True)
class SecurityPlan(Plan):
    quick: bool = False

    @property
    def is_quick(self):
        return self.quick


def arguments():
    parser = argparse.ArgumentParser(prog="lab/bench/security/run", description="TLS, ACLs and quotas beside Apache Kafka.")
    parser.add_argument("--quick", action="store_true", default=os.environ.get("QUICK") == "1", help="one short run of each row")
    parser.add_argument("--peers", default=",".join(BOTH), help="kafka, barnabas or both")
    parser.add_argument("--case", help="only rows whose name contains this")
    parser.add_argument("--runs", type=int, help="of each row")
    parser.add_argument("--attempts", type=int, default=1, help="times that a run which other load disturbs is made")
    parser.add_argument("--skip-done", action="store_true", help="leave out rows of which all runs are there")
    parser.add_argument("--minutes", type=float, help="begin no row after that")
    parser.add_argument("--report", action="store_true", help="only write the report of what was measured")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--work", type=Path, default=ROOT / "target", help="where the servers' data goes while they run")
    parser.add_argument("--port", type=int)
    parser.add_argument("--binary", help="the barnabas program (default: target/release)")
    options = parser.parse_args()
    options.runs = options.runs or (1 if options.quick else 5)
    options.results = options.results or (ROOT / "target/bench-quick" if options.quick else RESULTS)
    return options


def prepared(options):
    """({peer: version}, [why one is left out])"""
    versions, missing = {}, []
    for name in options.peers.split(","):
        try:
            versions[name] = PEERS[name].prepare(options)
        except (Missing, OSError) as reason:
            missing.append(f"{PEERS[name].label} is left out: {reason}")
    return versions, missing


def quoted(found, load):
    """The line to quote: what each bar bounds, of Barnabas; with Kafka's beside it where both have it."""
    said = []
    for case in load.cases:
        parts = []
        for figure in dict.fromkeys(bar.figure for bar in case.bars):
            name, _, _, digits = FIGURES[figure]
            ours, theirs = (found.values(load.name, case.name, peer, figure) for peer in ("barnabas", KAFKA))
            if ours:
                beside = f" ({report.median(theirs):,.{digits}f})" if theirs else ""
                parts.append(f"{name} {report.median(ours):,.{digits}f}{beside}")
        if parts:
            said.append(f"{case.name}: {', '.join(parts)}")
    return "; ".join(said)


def run(options, plan, load_with, lines, directory):
    """(the workload, the rig) after all rows."""
    versions, missing = prepared(options)
    binary = find_binary(options.binary)
    Listening.keys = Keys(Path(directory) / "keys")
    load = load_with(Drivers(binary, directory, ACLS), Listening.keys)
    own_clients, without = clients(options, plan, directory)
    rig = Rig(options, plan, directory, own_clients, versions, lines)
    for line in [*missing, *without]:
        rig.complain(line)
    busy = 0 if options.quick else busy_share(2)
    if busy > DISTURBED:
        rig.complain(f"other processes use {busy:.0%} of this machine: what they disturb is marked, and better measured again without them")
    if not options.report:
        lines.machine(about_machine(versions, directory))
        try:
            rig.run(load)
        except KeyboardInterrupt:
            sys.exit("security: ended; go on with --skip-done")
        finally:
            rig.end_peers()
    return load, rig


def main():
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("security: ended by SIGTERM; go on with --skip-done"))
    report.FIGURES.update(FIGURES)
    PEERS.update({peer.name: peer for peer in (SecureKafka, SecureBarnabas)})
    descriptors, begun = all_descriptors(), time.monotonic()
    plan = SecurityPlan("security", options.runs, 1, options.attempts, quick=options.quick)
    lines = Lines(options.results / "security.jsonl")
    if options.quick:
        lines.all = []
    options.work.mkdir(parents=True, exist_ok=True)
    remove_remains(options.work)
    try:
        options.binary = options.binary or (str(find_binary(None)) if options.quick else None)
        with tempfile.TemporaryDirectory(prefix=f"bench-{os.getpid()}-", dir=options.work, ignore_cleanup_errors=True) as directory:
            load, rig = run(options, plan, lambda drivers, keys: workload(drivers, keys, options.quick, descriptors), lines, directory)
    except Missing as reason:
        print(f"security: SKIP: {reason}\n0 passed, 0 failed, 1 skipped")
        return 0
    told = report.write_report(options, plan, [load], lines, [text for text in rig.complaints if text not in rig.failed])
    print(f"security: Barnabas (Kafka {rig.versions.get(KAFKA, 'left out')}): {quoted(report.Found(lines), load)}; {told}; {rig.disturbed} runs disturbed, {(time.monotonic() - begun) / 60:.0f} min")
    if options.quick:
        done = {line["case"] for line in lines.all if "run" in line}
        tested = unittest.TextTestRunner(sys.stdout, verbosity=0).run(unittest.defaultTestLoader.loadTestsFromName("bench.security.test_security"))
        wrong = len(tested.failures) + len(tested.errors)
        print(f"{len(done) + tested.testsRun - wrong} passed, {len(rig.failed) + wrong} failed, {len(rig.complaints) - len(rig.failed)} skipped")
        return 1 if rig.failed or wrong or not done else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
