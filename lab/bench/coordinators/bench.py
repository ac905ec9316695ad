"""`make bench-coordinators`: groups and transactions beside Apache Kafka, interleaved; rows.py has the rows, the rig does the rest.

Writes lab/bench/results/coordinators.{jsonl,md}; QUICK=1 (or --quick) is two minutes' check that all rows work, its results in target/. Ends in one line.
"""

import argparse
import os
import re
import signal
import sys
import tempfile
import time
from pathlib import Path

from rig import RESULTS, ROOT, report
from rig.machine import DISTURBED, all_descriptors, busy_share
from rig.main import remove_remains
from rig.peers import PEERS
from rig.peers.peer import Missing
from rig.plan import BOTH, KAFKA, SYNCED, Plan
from rig.runner import Lines, Rig, about_machine

from .drive import Drivers
from .rows import FIGURES, workload

SHARE_FETCH = 78


def arguments():
    parser = argparse.ArgumentParser(prog="lab/bench/coordinators/run", description="Groups and transactions beside Apache Kafka.")
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


def without_share(rig):
    """Why share groups cannot be measured: what a node says that it speaks."""
    peer = rig.make(SYNCED)
    try:
        peer.start()
        asks = peer.ask()
        answer = asks.ask(18, 0, b"")
        asks.close()
    finally:
        peer.remove()
    keys = {int.from_bytes(answer[at:at + 2], "big") for at in range(6, len(answer) - 5, 6)}
    return "" if SHARE_FETCH in keys else "not measured: ShareFetch is not in Barnabas's ApiVersions yet"


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
    """The line to quote: each bar's ratio."""
    said = []
    for case in load.cases:
        for bar in case.bars:
            measured = found.ratio(load, case, bar)
            if measured:
                value = f"{measured[0]:.1f} ×" if bar.to else f"{measured[0]:.2f}"
                name = re.sub(r"(\d),(\d)", r"\1\2", case.name).split(",")[0]
                said.append(f"{name}{'' if len(case.bars) == 1 else ' ' + report.FIGURES[bar.figure][0]} {value}")
    return "; ".join(said)


def main():
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("coordinators: ended by SIGTERM; go on with --skip-done"))
    report.FIGURES.update(FIGURES)
    all_descriptors()
    begun = time.monotonic()
    plan = Plan("coordinators", options.runs, 0, options.attempts)
    lines = Lines(options.results / "coordinators.jsonl")
    if options.quick:
        lines.all = []
    options.work.mkdir(parents=True, exist_ok=True)
    remove_remains(options.work)
    try:
        versions, missing = prepared(options)
        drivers = Drivers()
    except Missing as reason:
        print(f"coordinators: SKIP: {reason}\n0 passed, 0 failed, 1 skipped")
        return 0
    with tempfile.TemporaryDirectory(prefix=f"bench-{os.getpid()}-", dir=options.work, ignore_cleanup_errors=True) as directory:
        rig = Rig(options, plan, directory, None, versions, lines)
        share = without_share(rig) if SYNCED in versions else "not measured: Barnabas is left out"
        for line in [*missing, *([share] if share else [])]:
            rig.complain(line)
        busy = 0 if options.quick else busy_share(2)
        if busy > DISTURBED:
            rig.complain(f"other processes use {busy:.0%} of this machine: what they disturb is marked, and better measured again without them")
        load = workload(drivers, options.quick, share)
        if not options.report:
            lines.machine(about_machine(versions, directory))
            try:
                rig.run(load)
            except KeyboardInterrupt:
                sys.exit("coordinators: ended; go on with --skip-done")
            finally:
                rig.end_peers()
    told = report.write_report(options, plan, [load], lines, [text for text in rig.complaints if text not in rig.failed])
    kafka = versions.get(KAFKA, "")
    print(f"coordinators: Barnabas, synced, beside Kafka {kafka}, unsynced: {quoted(report.Found(lines), load)}; {told}; {rig.disturbed} runs disturbed, {(time.monotonic() - begun) / 60:.0f} min")
    if options.quick:
        done = {line["case"] for line in lines.all if "run" in line}
        print(f"{len(done)} passed, {len(rig.failed)} failed, {len(rig.complaints) - len(rig.failed)} skipped")
        return 1 if rig.failed or not done else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
