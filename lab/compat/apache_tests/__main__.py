"""Runs Apache Kafka's published tests on clusters of Barnabas and on Apache's own, and prints a table: test case × {ours, Apache's}.

The long form runs both. The short form (`--quick`) runs some classes on Barnabas alone, beside what Apache Kafka came to when `--record` was last
asked for (recorded.txt). A case counts as failed when Apache Kafka passes it, Barnabas does not, and known.toml does not say why.
"""

import argparse
import re
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path

from compat import fetch
from compat.cli import find_binary, in_scratch

from .jvm import FAILED, PASSED, SKIPPED, Outcome, Peer
from .published import classes

HERE = Path(__file__).resolve().parent
RECORDED = HERE / "recorded.txt"
OURS, APACHE = "Barnabas", "Apache Kafka"
# What `make test` runs: requests of groups and of the quorum, and a tool.
QUICK = ("JoinGroupRequestTest", "HeartbeatRequestTest", "OffsetCommitRequestTest", "OffsetDeleteRequestTest", "DescribeQuorumRequestTest", "WriteTxnMarkersRequestTest",
         "DeleteRecordsCommandTest")


def arguments(words):
    parser = argparse.ArgumentParser(prog="lab/compat/apache_tests/run", description="Apache Kafka's published tests, on Barnabas beside Apache Kafka.")
    parser.add_argument("--quick", action="store_true", help="some classes, on Barnabas alone, beside what Apache Kafka is known to come to: what `make test` runs")
    parser.add_argument("--ours", action="store_true", help="on Barnabas alone, beside what Apache Kafka is known to come to")
    parser.add_argument("--record", action="store_true", help="on Apache Kafka alone; writes recorded.txt")
    parser.add_argument("--only", default="*", help="test classes or cases that match, with * for anything; several are separated by commas")
    parser.add_argument("--from", dest="artifact", default="*", help="test classes of these artifacts, such as kafka-tools")
    parser.add_argument("--jobs", type=int, default=2, help="classes at a time")
    parser.add_argument("--timeout", type=int, default=120, help="seconds for one test")
    parser.add_argument("--within", type=int, default=1500, help="seconds for one class")
    parser.add_argument("--binary", help="the barnabas program")
    parser.add_argument("--list", action="store_true", help="names the test classes and ends")
    parser.add_argument("--verbose", action="store_true", help="a line for each case that did not pass, as it ends")
    return parser.parse_args(words)


def chosen(options, found):
    """(the classes to run, the methods wanted of a class)"""
    wanted = QUICK if options.quick else options.only.split(",")
    return [name for name, artifact in found.items()
            if fnmatchcase(artifact, options.artifact) and any(fnmatchcase(name, word) or fnmatchcase(name.split(".")[-1], word) for word in wanted)]


def play(peer, names, options, scratch):
    """{case: Outcome} of one peer."""
    found, begun = {}, time.monotonic()

    def one(name):
        outcomes = peer.settle(scratch / peer.name.replace(" ", "-") / name, name, options.within)
        count = [sum(o.status == word for o in outcomes.values()) for word in (PASSED, FAILED, SKIPPED)]
        print(f"  {peer.name}: {name.split('.')[-1]}: {count[0]} passed, {count[1]} not, {count[2]} skipped ({time.monotonic() - begun:.0f} s)", flush=True)
        if options.verbose:
            for case, outcome in outcomes.items():
                if outcome.status != PASSED:
                    print(f"    {outcome.status} {case}: {outcome.message}", flush=True)
        found.update(outcomes)

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(one, names))
    return found


def known(case):
    for entry in tomllib.loads((HERE / "known.toml").read_text()).get("known", []):
        if any(fnmatchcase(case, word.replace("[", "[[]")) for word in entry["cases"]):
            return entry["reason"]
    return None


def recorded(names):
    """What Apache Kafka came to when it was last asked, of these classes."""
    simple = {name.split(".")[-1] for name in names}
    found = {}
    for line in RECORDED.read_text().splitlines() if RECORDED.exists() else []:
        case, status, message = (line.split("\t") + ["", ""])[:3]
        if case.split(".")[0] in simple:
            found[case] = Outcome(status, 0, "", message)
    return found


def record(found, names):
    """Replaces what is recorded of these classes."""
    simple = {name.split(".")[-1] for name in names}
    kept = [line for line in RECORDED.read_text().splitlines() if line.split(".")[0] not in simple] if RECORDED.exists() else []
    new = [f"{case}\t{o.status}\t{'' if o.status == PASSED else o.message[:160].strip()}".rstrip() for case, o in found.items()]
    RECORDED.write_text("".join(line + "\n" for line in sorted(kept + new)))


def judge(ours, apache):
    """(passed, failed, skipped, the lines to print)"""
    passed = failed = skipped = 0
    lines = []
    for case in sorted(ours):
        mine, theirs = ours[case], apache.get(case)
        if mine.status == PASSED:
            passed += 1
            if known(case):
                lines.append(f"passes now, known.toml can go: {case}")
        elif mine.status == SKIPPED:
            skipped += 1
        elif theirs is not None and theirs.status != PASSED:
            skipped += 1
            lines.append(f"fails on Apache Kafka, too: {case}")
        elif reason := known(case):
            skipped += 1
            lines.append(f"known: {case}: {reason}")
        else:
            failed += 1
            lines.append(f"FAILED: {case}\n    {brief(mine.message)}")
    return passed, failed, skipped, lines


def reasons(ours):
    """{why: how many} of the cases that were skipped."""
    found = {}
    for outcome in ours.values():
        if outcome.status == SKIPPED:
            why = re.sub(r" *\[[^\]]*\]$", "", outcome.message.split("Exception: ")[-1])[:140]
            found[why] = found.get(why, 0) + 1
    return found


def brief(message):
    """A message with two long values is shown from where they part."""
    found = re.match(r"(.*?expected: <)(.*)(> but was: <)(.*?)(>(?:  \[[^\]]*\]| \[[^\]]*\])?)$", message)
    if not found or len(message) < 240:
        return message[:500]
    begin, wanted, middle, had, end = found.groups()
    at = max(0, next((n for n, (a, b) in enumerate(zip(wanted, had)) if a != b), min(len(wanted), len(had))) - 60)
    parts = [("…" if at else "") + word[at:at + 200] + ("…" if len(word) > at + 200 else "") for word in (wanted, had)]
    return f"{begin[-120:]}{parts[0]}{middle}{parts[1]}{end}"


def table(ours, apache, out):
    """Every case in Markdown."""
    rows = ["| test case | Barnabas | Apache Kafka | message |", "|---|---|---|---|"]
    for case in sorted(set(ours) | set(apache)):
        mine, theirs = ours.get(case), apache.get(case)
        words = [each.status if each else "-" for each in (mine, theirs)]
        message = brief(mine.message if mine else "").replace("|", "\\|")
        rows.append(f"| {case} | {words[0]} | {words[1]} | {message} |")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("\n".join(rows) + "\n")
    return out


def run(options, scratch):
    version, jars, runner, cluster = fetch.apache_tests()
    found = classes(jars)
    names = chosen(options, found)
    if options.list:
        print("\n".join(f"{artifact}\t{name}" for name, artifact in found.items()))
        return 0
    begun = time.monotonic()
    apache, ours = recorded(names), {}
    if not (options.quick or options.ours):
        apache = play(Peer(APACHE, jars, [runner], timeout=options.timeout), names, options, scratch)
        if options.record:
            record(apache, names)
            print(f"{sum(o.status == PASSED for o in apache.values())} of {len(apache)} pass on Apache Kafka {version}")
            return 0
    ours = play(Peer(OURS, jars, [cluster, runner], find_binary(options.binary), options.timeout), names, options, scratch)
    passed, failed, skipped, lines = judge(ours, apache)
    print("\n".join(lines))
    for reason, count in sorted(reasons(ours).items(), key=lambda pair: -pair[1])[:20]:
        print(f"skipped {count}: {reason}")
    print(f"table: {table(ours, apache, fetch.LOGS / 'apache-tests.md').relative_to(fetch.REPOSITORY)}")
    cases = [case for case in ours if ours[case].status != SKIPPED]
    print(f"of {len(cases)} cases that run on both, Apache Kafka {version} passes {sum(case in apache and apache[case].status == PASSED for case in cases)}, "
          f"Barnabas {sum(ours[case].status == PASSED for case in cases)} ({time.monotonic() - begun:.0f} s)")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


def main(words):
    options = arguments(words)
    return in_scratch("apache-tests", lambda scratch: run(options, scratch))


sys.exit(main(sys.argv[1:]))
