"""`make bench-tail`: steady open-loop loads on Barnabas and Apache Kafka by turns; how late the slowest records are, beside what, and why. rows.py has the rows.

Writes lab/bench/results/tail.{jsonl,md} and plots. The short set takes 20 s a turn and three turns of each peer; the full one ten minutes. A set that was ended goes
on with --skip-done, row by row. Ends in one line.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
import time
import unittest
from dataclasses import dataclass
from pathlib import Path

from rig import RESULTS, ROOT, report
from rig.estimate import set_seconds
from rig.machine import DISTURBED, all_descriptors, busy_share
from rig.main import clients, prepared, remove_remains
from rig.peers import PEERS
from rig.peers.barnabas import BarnabasSynced
from rig.peers.peer import Missing
from rig.plan import Plan
from rig.runner import Lines, Rig, about_machine

from . import story
from .peers import ALL, OF
from .programs import built
from .rows import FIGURES, of_set, workloads
from .turn import LINGER_MS, PRODUCERS

SECONDS = {"quick": 4, "short": 20, "full": 600}
TOLD = ("p50_ms", "p99_ms", "p999_ms", "p9999_ms", "max_ms", "floor_p99_ms", "server_us_per_record", "other_load")


@dataclass(frozen=True)
class TailPlan(Plan):
    set: str = "short"

    @property
    def is_quick(self):
        return self.set == "quick"

    @property
    def is_full(self):
        return self.set == "full"

    def runs_of(self, peer):
        return self.runs


class TurnLines(Lines):
    """What is printed of a turn is its figures; all of it is kept."""

    def keep(self, line):
        self.all.append(line)
        if "failed" in line:
            print(f"bench-tail: {line['case']}: {line['peer']}: {line['failed']}", flush=True)
        else:
            figures = ", ".join(f"{name.removesuffix('_ms')} {line[name]:.2f}" for name in TOLD if line.get(name) is not None)
            print(f"bench-tail: {line['case']}: {line['peer']}, turn {line['run'] + 1}: {figures}; causes {json.dumps(line['causes'])}, of all above p99 {json.dumps(line['causes_of_p99'])}; beside {json.dumps(line['beside'])}", flush=True)
            for sentence in line["slowest"][:3]:
                print(f"    {sentence}", flush=True)
        self.write()


def arguments():
    parser = argparse.ArgumentParser(prog="lab/bench/tail/run", description="The tail laboratory: steady loads by turns, histograms, time lines, and what the slowest requests waited for.")
    parser.add_argument("--set", choices=SECONDS, default="full" if os.environ.get("FULL") == "1" else "quick" if os.environ.get("QUICK") == "1" else "short", help="quick: that all works; short: 20 s a turn; full: ten minutes a turn")
    parser.add_argument("--quick", action="store_const", const="quick", dest="set")
    parser.add_argument("--full", action="store_const", const="full", dest="set")
    parser.add_argument("--only", default=os.environ.get("ROWS"), help="only rows in whose name this expression is found (or ROWS=); rows of all sets, where the set has none")
    parser.add_argument("--cross", action="store_true", help="every rate × size × partitions × replication factor")
    parser.add_argument("--seconds", type=float, help="of a turn")
    parser.add_argument("--turns", type=int, help="of each peer (3)")
    parser.add_argument("--linger", type=float, default=LINGER_MS, help="linger.ms of the producers")
    parser.add_argument("--producers", type=int, default=PRODUCERS, help="clients that share a row's rate")
    parser.add_argument("--setting", action="append", default=[], help="of the producers, KEY=VALUE (librdkafka's); may be given more than once")
    parser.add_argument("--fresh", action="store_true", help="each turn on a topic of its own, its begin not left out")
    parser.add_argument("--peers", help="kafka, barnabas, before (three of each at replication factor 3); default: those that a row has")
    parser.add_argument("--binary", default=os.environ.get("BARNABAS"), help="the barnabas program (or BARNABAS=; default: target/release)")
    parser.add_argument("--before", default=os.environ.get("BEFORE"), help="an older barnabas program (or BEFORE=), by turns with it; without Kafka unless --peers names it")
    parser.add_argument("--skip-done", action="store_true", help="leave out rows of which all turns are there")
    parser.add_argument("--minutes", type=float, help="begin no row that would not be done by then")
    parser.add_argument("--report", action="store_true", help="only write the report of what was measured")
    parser.add_argument("--list", action="store_true", help="the rows, and end")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--work", type=Path, default=ROOT / "target", help="where the servers' data goes while they run: the device that is measured")
    parser.add_argument("--port", type=int)
    options = parser.parse_args()
    options.seconds = options.seconds or SECONDS[options.set]
    options.runs = options.turns or (1 if options.set == "quick" else 3)
    options.attempts, options.case = 1, None
    options.results = options.results or (ROOT / "target/bench-quick" if options.set == "quick" else RESULTS)
    return options


def wanted_peers(options):
    """The names of peers, of one node and of three."""
    named = (options.peers or ("before,barnabas" if options.before else "barnabas" if options.set == "quick" else "kafka,barnabas")).split(",")
    unknown = [name for name in named if name not in OF[1]]
    if unknown:
        sys.exit(f"bench-tail: no peer {', '.join(unknown)}; there are {', '.join(OF[1])}")
    return ",".join(name for replicas in OF for name in (OF[replicas][OF[1].index(one)] for one in named))


def measure(options, plan, loads, lines):
    """Runs the rows; the rig, with what it complains of."""
    options.peers = wanted_peers(options)
    versions, missing = prepared(options, plan, loads)
    if any("barnabas" in name for name in versions):
        BarnabasSynced.prepare(options)
    with tempfile.TemporaryDirectory(prefix=f"bench-{os.getpid()}-", dir=options.work, ignore_cleanup_errors=True) as directory:
        found, without = clients(options, plan, directory)
        rig = Rig(options, plan, directory, found, versions, lines)
        for line in [*missing, *without]:
            rig.complain(line)
        busy = 0 if plan.is_quick else busy_share(2)
        if busy > DISTURBED:
            rig.complain(f"other processes use {busy:.0%} of this machine: a tail is theirs as well; measure again without them")
        lines.machine(about_machine(versions, directory))
        print(f"bench-tail: {sum(len(load.cases) for load in loads)} rows, about {sum(set_seconds(rig, loads).values()) / 60:.0f} min", flush=True)
        try:
            for load in loads:
                rig.run(load)
        except KeyboardInterrupt:
            sys.exit("bench-tail: ended; go on with --skip-done")
        finally:
            rig.end_peers()
    return rig


def write(options, plan, loads, lines, complaints):
    """The report with its own part behind; one line of what was found."""
    told = report.write_report(options, plan, loads, lines, complaints)
    text, charts = story.part(lines, loads)
    for chart in charts:
        chart["file"] = str(options.results / chart["file"])
    complaint = report.plots(charts)
    path = options.results / f"{plan.name}.md"
    path.write_text("\n".join([path.read_text(), *text, *([f"No time lines: {complaint}", ""] if complaint else [])]))
    return told


def of_all(lines, options):
    """All rows of which there are turns, in the order of the sets: the report holds them all, whichever run measured them."""
    names = {line["case"] for line in lines.all if "case" in line}
    rows = [row for row in of_set("full", cross=True) if row.name in names]
    return workloads(rows, options.seconds, any(line.get("peer", "").startswith("before") for line in lines.all))


def quoted(lines, loads):
    """The line to quote: of each row ratios to Kafka (or to the older one) of p99 and p99.9, and ours above the floor."""
    found, said = report.Found(lines), []
    for load in loads:
        for case in load.cases:
            ratios = {(bar.figure, bar.to): found.ratio(load, case, bar) for bar in case.bars}
            words = [f"{report.FIGURES[figure][0].split(',')[0]} {report.spread_text(*ratio)} × {to.removesuffix('-cluster')}'s" for (figure, to), ratio in ratios.items() if ratio and figure in ("p99_ms", "p999_ms")]
            said += [f"{case.name}: {', '.join(words)}"] if words else []
    return "; ".join(said) or "no row has both"


def main():
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("bench-tail: ended by SIGTERM; go on with --skip-done"))
    rows = of_set(options.set, options.only, options.cross)
    if options.list or not rows:
        print("\n".join(row.name for row in rows) or f"bench-tail: no row has {options.only!r} in its name")
        return 0 if rows else 1
    report.FIGURES.update(FIGURES)
    PEERS.update(ALL)
    all_descriptors()
    begun, plan = time.monotonic(), TailPlan("tail", options.runs, options.seconds, 1, set=options.set)
    lines, rig = TurnLines(options.results / "tail.jsonl"), None
    loads = workloads(rows, options.seconds, bool(options.before), linger_ms=options.linger, producers=options.producers, fresh=options.fresh, settings=tuple(options.setting))
    if plan.is_quick and not options.report and not options.skip_done:
        lines.all = []
    options.work.mkdir(parents=True, exist_ok=True)
    remove_remains(options.work)
    if not options.report:
        try:
            for program in ("tail", "watch"):
                built(program)
            rig = measure(options, plan, loads, lines)
        except Missing as reason:
            print(f"bench-tail: SKIP: {reason}\n0 passed, 0 failed, 1 skipped")
            return 0
    told = write(options, plan, of_all(lines, options), lines, [text for text in rig.complaints if text not in rig.failed] if rig else [])
    print(f"bench-tail: {quoted(lines, of_all(lines, options))}; {told}; {rig.disturbed if rig else 0} turns disturbed by other load, {(time.monotonic() - begun) / 60:.0f} min")
    return closing(plan, rig, lines)


def closing(plan, rig, lines):
    """The quick form is a test: its last line counts the bench's own tests and the rows that ran."""
    if not plan.is_quick or rig is None:
        return 0
    tested = unittest.TextTestRunner(sys.stdout, verbosity=0).run(unittest.defaultTestLoader.loadTestsFromName("tail.test_tail"))
    wrong, done = len(tested.failures) + len(tested.errors), {line["case"] for line in lines.all if "run" in line}
    print(f"bench-tail: {tested.testsRun - wrong + len(done)} passed, {wrong + len(rig.failed)} failed, {len(rig.complaints) - len(rig.failed)} skipped")
    return 1 if wrong or rig.failed or not done else 0


if __name__ == "__main__":
    sys.exit(main())
