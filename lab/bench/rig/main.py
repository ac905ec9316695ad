"""`make bench` and `make bench-full`: runs a set of workloads, then writes the report and draws the plots.

The set that was ended goes on with --skip-done; parts of it are measured anew with --only and --case. The report is made of the lines of all
runs so far, whoever made them: `--report` makes it again without measuring.
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
import unittest
from dataclasses import replace
from pathlib import Path

from . import RESULTS, ROOT
from . import clients as loads
from .estimate import set_seconds
from .machine import DISTURBED, all_descriptors, busy_share
from .peers import PEERS
from .peers.peer import Missing
from .plan import PLANS
from .runner import Lines, Rig, about_machine

QUICK_PEERS = "barnabas,skyline-null"


def arguments():
    parser = argparse.ArgumentParser(prog="lab/bench/run", description="Workloads on Barnabas, Apache Kafka and a skyline, interleaved; report and plots under lab/bench/results.")
    parser.add_argument("--set", choices=PLANS, default="short", help="quick: about a minute, to see that all works; short: half an hour; full: an hour")
    parser.add_argument("--quick", action="store_const", const="quick", dest="set", help="the same as --set quick")
    parser.add_argument("--only", help="only these workloads (separated by commas)")
    parser.add_argument("--case", help="only cases whose name contains this")
    parser.add_argument("--peers", help=f"only these of {', '.join(PEERS)} (quick: {QUICK_PEERS})")
    parser.add_argument("--skip-done", action="store_true", help="leave out cases of which all runs of all peers are there")
    parser.add_argument("--runs", type=int, help="runs of each case")
    parser.add_argument("--attempts", type=int, help="times that a run which other load disturbs is made")
    parser.add_argument("--seconds", type=float, help="of each run")
    parser.add_argument("--minutes", type=float, help="begin no case that would not be done by then (short: 30, full: 55; 0: no limit); --skip-done goes on later")
    parser.add_argument("--flames", action="store_true", help="only draw the flame graphs (the full set does it by itself)")
    parser.add_argument("--report", action="store_true", help="only make the report and the plots of what was measured")
    parser.add_argument("--results", type=Path, help="where lines, report and plots go (lab/bench/results; quick: target/bench-quick)")
    parser.add_argument("--work", type=Path, help="where the servers' data goes while they run (target)")
    parser.add_argument("--port", type=int, help="servers get this port, the one two above it, and so on (default: free ones)")
    parser.add_argument("--binary", help="the barnabas program (default: target/release)")
    parser.add_argument("--before", help="an older barnabas program, measured beside it, without others unless --peers names them")
    parser.add_argument("--list", action="store_true", help="what there is, and end")
    options = parser.parse_args()
    return options


def completed(options):
    """The plan, with what flags change of it."""
    plan = PLANS[options.set]
    plan = replace(plan, runs=options.runs or plan.runs, seconds=options.seconds or plan.seconds, attempts=options.attempts or plan.attempts)
    options.minutes = plan.minutes if options.minutes is None else options.minutes
    options.only = "flames" if options.flames else options.only
    options.runs, options.attempts = plan.runs, plan.attempts
    options.results = options.results or (ROOT / "target/bench-quick" if plan.is_quick else RESULTS)
    return plan


def chosen(options, plan):
    from workloads import WORKLOADS
    wanted = options.only.split(",") if options.only else list(WORKLOADS)
    unknown = [name for name in wanted if name not in WORKLOADS]
    if unknown:
        sys.exit(f"bench: no workload {', '.join(unknown)}; there are {', '.join(WORKLOADS)}")
    made = [WORKLOADS[name](plan) for name in WORKLOADS if name in wanted]
    made = [workload for workload in made if options.only or not workload.by_name]
    if options.before:
        options.peers = options.peers or "before,barnabas"
        for workload in made:
            workload.cases = [replace(case, peers=(*case.peers, "before")) if "barnabas" in case.peers else case for case in workload.cases]
    if options.case and not any(options.case in case.name for workload in made for case in workload.cases):
        sys.exit(f"bench: no case of {', '.join(workload.name for workload in made)} has {options.case!r} in its name; --list tells them")
    return made


def prepared(options, plan, workloads):
    """({peer: version} of those that can be had, [a line for each that cannot])"""
    asked = (options.peers or (QUICK_PEERS if plan.is_quick else ",".join(PEERS))).split(",")
    unknown = [name for name in asked if name not in PEERS]
    if unknown:
        sys.exit(f"bench: no peer {', '.join(unknown)}; there are {', '.join(PEERS)}")
    needed = {name for workload in workloads for case in workload.cases for name in case.peers}
    versions, missing = {}, []
    for name in asked:
        if name in needed:
            try:
                versions[name] = PEERS[name].prepare(options)
            except (Missing, OSError) as reason:
                missing.append(f"{PEERS[name].label} is left out: {reason}")
    return versions, missing


def clients(options, plan, work):
    """The clients, and a line for each that cannot be had; what needs it then fails by case."""
    missing, classpath, program = [], "", ""
    for name, get in (("kafka", lambda: PEERS["kafka"].classpath or (PEERS["kafka"].prepare(options), PEERS["kafka"].classpath)[1]), ("librdkafka", loads.loader)):
        try:
            if name == "kafka":
                classpath = get()
            else:
                program = get()
        except (Missing, OSError) as reason:
            missing.append(f"the clients of {name} are left out: {reason}")
    binary = PEERS["barnabas"].binary
    if binary is None:
        try:
            PEERS["barnabas"].prepare(options)
            binary = PEERS["barnabas"].binary
        except Missing as reason:
            missing.append(f"Barnabas's clients are left out: {reason}")
    return loads.Clients(classpath, program, plan.seconds, f"{work}/clients.log", binary), missing


def listed(workloads):
    for workload in workloads:
        print(f"{workload.name}: {workload.title}" + (f" (skipped: {workload.skipped})" if workload.skipped else ""))
        for case in workload.cases:
            print(f"    {case.name} [{', '.join(case.peers)}]")


def remove_remains(work):
    """What a rig that was killed could not remove: its servers have ended with it."""
    for left in work.glob("bench-*-*"):
        owner = left.name.split("-")[1]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            shutil.rmtree(left, ignore_errors=True)


def measured(options, plan, workloads, lines):
    """Runs them; the rig, with what it complains of."""
    work = options.work or ROOT / "target"
    try:
        work.mkdir(parents=True, exist_ok=True)
    except OSError as reason:
        sys.exit(f"bench: --work {work}: {reason}; give a directory that can be written")
    remove_remains(work)
    versions, missing = prepared(options, plan, workloads)
    with tempfile.TemporaryDirectory(prefix=f"bench-{os.getpid()}-", dir=work, ignore_cleanup_errors=True) as directory:
        found, without = clients(options, plan, directory)
        rig = Rig(options, plan, directory, found, versions, lines)
        for line in missing + without:
            rig.complain(line)
        busy = 0 if plan.is_quick else busy_share(2)
        if busy > DISTURBED:
            rig.complain(f"other processes use {busy:.0%} of this machine: what they disturb is marked, and better measured again without them")
        if versions:
            lines.machine(about_machine(versions, directory))
        estimated = set_seconds(rig, workloads)
        print(f"bench: about {sum(estimated.values()) / 60:.0f} min: " + ", ".join(f"{name} {seconds:.0f} s" for name, seconds in estimated.items()), flush=True)
        try:
            for workload in workloads:
                rig.run(workload)
            if rig.left:
                rig.complain(f"{rig.left} cases were not begun, as they would not have been done within {options.minutes:g} minutes; go on with --skip-done")
        finally:
            rig.end_peers()
    return rig


def main():
    from .report import write_report
    options = arguments()
    plan = completed(options)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("bench: ended by SIGTERM; go on with --skip-done"))
    workloads = chosen(options, plan)
    if options.list:
        return listed(workloads)
    all_descriptors()
    begun, lines = time.monotonic(), Lines(options.results / f"{plan.name}.jsonl")
    if options.report:
        print(write_report(options, plan, chosen_all(plan), lines, []))
        return None
    if plan.is_quick:
        lines.all = []
    try:
        rig = measured(options, plan, workloads, lines)
    except KeyboardInterrupt:
        sys.exit("bench: ended; go on with --skip-done")
    told = write_report(options, plan, chosen_all(plan), lines, [text for text in rig.complaints if text not in rig.failed])
    for name, seconds in rig.took.items():
        print(f"bench: {name} took {seconds:.0f} s")
    print(f"bench: {plan.name}: {told}; {sum('run' in line for line in lines.all)} runs, {rig.disturbed} disturbed by other load, {len(rig.failed)} failed, {rig.left} cases left, "
          f"{(time.monotonic() - begun) / 60:.0f} min")
    return closing(plan, rig, lines)


def chosen_all(plan):
    from workloads import WORKLOADS
    return [make(plan) for make in WORKLOADS.values()]


def closing(plan, rig, lines):
    """The quick form is a test: its last line counts the rig's own tests and the cases that ran."""
    if plan.is_quick:
        tests = unittest.defaultTestLoader.loadTestsFromNames(("rig.test_rig", "rig.test_bad_input"))
        tested = unittest.TextTestRunner(sys.stdout, verbosity=0).run(tests)
        wrong = len(tested.failures) + len(tested.errors)
        failed, kept = rig.failed, {(line["workload"], line["case"]) for line in lines.all if "run" in line}
        left_out = len(rig.complaints) - len(failed)
        print(f"bench: {tested.testsRun - wrong + len(kept)} passed, {wrong + len(failed)} failed, {left_out} skipped")
        sys.exit(1 if wrong or failed or not kept else 0)


if __name__ == "__main__":
    main()
