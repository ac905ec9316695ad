"""`make bench-cluster`: three brokers beside three of Apache Kafka, interleaved; rows.py has the rows, the rig does the rest.

Writes lab/bench/results/cluster.{jsonl,md}; QUICK=1 (or --quick) is three minutes' check that all rows work, its results in target/. A run that was ended
goes on with --skip-done, row by row. Ends in one line.
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

from coordinators.bench import prepared
from rig import RESULTS, ROOT, report
from rig.estimate import set_seconds
from rig.machine import DISTURBED, all_descriptors, busy_share
from rig.main import clients, remove_remains
from rig.peers import PEERS
from rig.peers.peer import Missing
from rig.plan import Plan
from rig.runner import Lines, Rig, about_machine

from .beat import built
from .losses import Pooled
from .peers import KAFKA, OURS, Three, ThreeBarnabas, ThreeKafka
from .rows import FIGURES, workload

# What the closing line calls them.
SHORT = {"records_per_s": "throughput", "server_us_per_record": "CPU"}


@dataclass(frozen=True)
class ClusterPlan(Plan):
    quick: bool = False

    @property
    def is_quick(self):
        return self.quick


def arguments():
    parser = argparse.ArgumentParser(prog="lab/bench/cluster/run", description="Three brokers beside three of Apache Kafka.")
    parser.add_argument("--quick", action="store_true", default=os.environ.get("QUICK") == "1", help="one short run of each row")
    parser.add_argument("--peers", default=f"{KAFKA},{OURS}", help=f"{KAFKA}, {OURS} or both")
    parser.add_argument("--case", help="only rows whose name contains this")
    parser.add_argument("--runs", type=int, help="of each row, at most")
    parser.add_argument("--attempts", type=int, default=1, help="times that a run which other load disturbs is made")
    parser.add_argument("--skip-done", action="store_true", help="leave out rows of which all runs are there")
    parser.add_argument("--minutes", type=float, help="begin no row that would not be done by then")
    parser.add_argument("--report", action="store_true", help="only write the report of what was measured")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--work", type=Path, default=ROOT / "target", help="where the servers' data goes while they run")
    parser.add_argument("--logs", type=Path, help="keep the servers' logs there")
    parser.add_argument("--port", type=int)
    parser.add_argument("--binary", help="the barnabas program (default: target/release)")
    options = parser.parse_args()
    options.runs = options.runs or (1 if options.quick else 5)
    options.results = options.results or (ROOT / "target/bench-quick" if options.quick else RESULTS)
    return options


def quoted(found, load):
    """The line to quote: ratios to Kafka over all rows that have them, then each row's own figures."""
    ratios, said = {}, []
    for case in load.cases:
        figures = []
        for bar in case.bars:
            measured = found.ratio(load, case, bar)
            if measured is None:
                continue
            met = report.is_met(found, load, case, bar, measured[0])
            if bar.to:
                ratios.setdefault(bar.figure, []).append((measured[0], met))
            else:
                name, _, _, digits = report.FIGURES[bar.figure]
                figures.append(f"{name} {measured[0]:,.{digits}f}{'' if met else ' (missed)'}")
        if figures:
            said.append(f"{case.name}: {', '.join(figures)}")
    for figure, values in reversed(ratios.items()):
        numbers = [value for value, _ in values]
        said.insert(0, f"{SHORT.get(figure, figure)} {min(numbers):.2f}–{max(numbers):.2f} × ({sum(met for _, met in values)} of {len(values)} rows met)")
    return "; ".join(said)


def measure(options, plan, load, lines, versions, missing):
    """Runs the rows; the rig, with what it complains of."""
    with tempfile.TemporaryDirectory(prefix=f"bench-{os.getpid()}-", dir=options.work, ignore_cleanup_errors=True) as directory:
        found, without = clients(options, plan, directory)
        rig = Rig(options, plan, directory, found, versions, lines)
        for line in [*missing, *without]:
            rig.complain(line)
        busy = 0 if options.quick else busy_share(2)
        if busy > DISTURBED:
            rig.complain(f"other processes use {busy:.0%} of this machine: what they disturb is marked, and better measured again without them")
        lines.machine(about_machine(versions, directory))
        print(f"cluster: about {sum(set_seconds(rig, [load]).values()) / 60:.0f} min", flush=True)
        try:
            rig.run(load)
        except KeyboardInterrupt:
            sys.exit("cluster: ended; go on with --skip-done")
        finally:
            rig.end_peers()
    return rig


def main():
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("cluster: ended by SIGTERM; go on with --skip-done"))
    report.FIGURES.update(FIGURES)
    PEERS.update({peer.name: peer for peer in (ThreeKafka, ThreeBarnabas)})
    all_descriptors()
    begun, Three.logs = time.monotonic(), options.logs
    plan = ClusterPlan("cluster", options.runs, 1 if options.quick else 3, options.attempts, quick=options.quick)
    lines, load, rig = Lines(options.results / "cluster.jsonl"), workload(options.quick), None
    if options.quick and not options.report and not options.skip_done:
        lines.all = []
    options.work.mkdir(parents=True, exist_ok=True)
    remove_remains(options.work)
    if not options.report:
        try:
            versions, missing = prepared(options)
            for program in ("beat", "leaders"):
                built(program)
        except Missing as reason:
            print(f"cluster: SKIP: {reason}\n0 passed, 0 failed, 1 skipped")
            return 0
        rig = measure(options, plan, load, lines, versions, missing)
    pooled = Pooled(lines)
    told = report.write_report(options, plan, [load], pooled, [text for text in rig.complaints if text not in rig.failed] if rig else [])
    kafka = next((line["machine"]["versions"].get(KAFKA, "") for line in lines.all if "machine" in line), "")
    print(f"cluster: three of Barnabas, synced, beside three of Kafka {kafka}, unsynced: {quoted(report.Found(pooled), load)}; {told}; "
          f"{rig.disturbed if rig else 0} runs disturbed, {(time.monotonic() - begun) / 60:.0f} min")
    if options.quick and rig:
        done = {line["case"] for line in lines.all if "run" in line}
        tested = unittest.TextTestRunner(sys.stdout, verbosity=0).run(unittest.defaultTestLoader.loadTestsFromName("cluster.test_cluster"))
        wrong = len(tested.failures) + len(tested.errors)
        print(f"{tested.testsRun - wrong + len(done)} passed, {wrong + len(rig.failed)} failed, {len(rig.complaints) - len(rig.failed)} skipped")
        return 1 if wrong or rig.failed or not done else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
