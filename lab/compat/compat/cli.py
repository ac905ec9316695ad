"""The command: which peers, which cells, then the table, the differences and one closing line."""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from harness.server import Apache, Barnabas

from . import fetch, node, suite, tools
from .driver import Failure, Refusal
from .scenarios import SCENARIOS
from .table import explained, print_accidents, print_differences, print_failures, print_skips, print_table

# Apache Kafka 4 refuses these clients (KIP-896): they are compared with the last Kafka that took them.
REFUSED_BY_KAFKA_4 = ("java-0.9", "py-as-0.10")
# More failures than this are no accident.
AGAIN_MOST = 8
# What --groups is about.
GROUP_PARTS, GROUP_ROWS = ("groups", "transactions", "shares"), ("java", "confluent", "franz-go")


def arguments(words):
    parser = argparse.ArgumentParser(prog="lab/compat/run", description="Real Kafka clients against a fresh node, as one table.")
    parser.add_argument("--quick", action="store_true", help="the subset that `make test` runs (Barnabas alone)")
    parser.add_argument("--full", action="store_true", help="everything, with Apache Kafka beside it")
    parser.add_argument("--groups", action="store_true", help="groups of KIP-848, transactions and share groups: Java, librdkafka and franz-go, with Apache Kafka beside it")
    parser.add_argument("--peers", help="barnabas,kafka,kafka-3 (default: barnabas; with --full all three)")
    parser.add_argument("--clients", help="rows, by name, separated by commas")
    parser.add_argument("--scenarios", help="columns, by name, separated by commas")
    parser.add_argument("--tools", help="Apache's tools, by name (kafka-topics,…), separated by commas")
    parser.add_argument("--no-tools", action="store_true", help="leave Apache's command-line tools out")
    parser.add_argument("--no-node", action="store_true", help="leave restart, kill -9 and the files out")
    parser.add_argument("--jobs", type=int, default=0, help="cells at a time (default: twice the cores)")
    parser.add_argument("--binary", help="the barnabas program (default: the newest of target/release and target/debug)")
    parser.add_argument("--keep", action="store_true", help="keep data and logs")
    parser.add_argument("--verbose", action="store_true", help="a line for each cell")
    return parser.parse_args(words)


def find_binary(given):
    target = Path(os.environ.get("CARGO_TARGET_DIR", fetch.REPOSITORY / "target"))
    found = [Path(given)] if given else [target / kind / "barnabas" for kind in ("release", "debug")]
    found = [path.resolve() for path in found if path.exists()]
    if not found:
        raise fetch.Missing("no barnabas program: cargo build --release -p barnabas")
    return max(found, key=lambda path: path.stat().st_mtime)


def in_scratch(name, run):
    """`run` in a directory of its own that goes away with it: its exit code, and a closing line where it could not begin or end."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(130))
    scratch = Path(tempfile.mkdtemp(prefix=f"barnabas-{name}-"))
    try:
        return run(scratch)
    except fetch.Missing as missing:
        print(f"{name}: SKIP: {missing}\n0 passed, 0 failed, 1 skipped")
        return 0
    except (Failure, Refusal, RuntimeError) as failed:
        print(f"{name}: FAILED: {failed}\n0 passed, 1 failed, 0 skipped")
        return 1
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def make_server(peer, directory, options):
    if peer == "barnabas":
        return Barnabas(directory, find_binary(options.binary))
    version, classpath = fetch.kafka() if peer == "kafka" else fetch.kafka_3()
    return Apache(directory, version, classpath)


def run_peer(peer, options, rows, names, workspace):
    server = make_server(peer, workspace / peer, options)
    if options.full and peer.startswith("kafka"):
        rows = [row for row in rows if (row.name in REFUSED_BY_KAFKA_4) == (peer == "kafka-3")]
    logs = fetch.LOGS / peer
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(parents=True)

    def progress(row, column, result, done, count):
        if options.verbose:
            print(f"  {server.label}: {row} · {column}: {result.status} {result.seconds:.1f}s {result.reason}", flush=True)

    begun = time.monotonic()
    try:
        server.start()
        print(f"{server.label} answers on {server.address} after {server.ready_after:.2f} s", flush=True)
        jobs = options.jobs or 2 * (os.cpu_count() or 2)
        more, judges = [], None
        if not options.no_tools and peer != "kafka-3":
            more, judges = tools.cells(server, options.quick, logs, workspace, options.tools and options.tools.split(","))
        results = suite.run_all(rows, names, server, logs, jobs, more, progress)
        if judges:
            judges.close()
        results |= play_again(peer, options, rows, names, results, logs, workspace, progress)
        if not options.no_node and peer != "kafka-3":
            results |= node.run(server, peer, logs, progress)
        print(f"{server.label}: {len(results)} cells in {time.monotonic() - begun:.0f} s", flush=True)
        return server.label, results
    finally:
        server.kill()
        shutil.copy(server.log, logs / "server.log") if server.log.exists() else None


def play_again(peer, options, rows, names, results, logs, workspace, progress):
    """What failed plays once more on a fresh node, one cell at a time: a time-out of a machine under load does not come twice, a difference does."""
    failed = {key: result for key, result in results.items() if result.status == suite.FAIL and not explained(key, peer)}
    if not 0 < len(failed) <= AGAIN_MOST:
        return {}
    server = make_server(peer, workspace / f"{peer}-again", options)
    more, judges = [], None
    try:
        server.start()
        if not options.no_tools and peer != "kafka-3":
            more, judges = tools.cells(server, options.quick, logs / "again", workspace, options.tools and options.tools.split(","))
        again = suite.run_all(rows, names, server, logs / "again", 1, more, progress, only=failed)
    finally:
        if judges:
            judges.close()
        server.kill()
        shutil.copy(server.log, logs / "again.log") if server.log.exists() else None
    for key, result in again.items():
        if result.status == suite.FAIL:
            result.reason = f"{failed[key].reason}; alone: {result.reason}"
        else:
            result.first = failed[key].reason
    return again


def main(words):
    options = arguments(words)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(130))
    peers = (options.peers or ("barnabas,kafka,kafka-3" if options.full else "barnabas,kafka" if options.groups else "barnabas")).split(",")
    rows = suite.clients()
    if options.clients:
        rows = [row for row in rows if row.name in options.clients.split(",")]
    names = [name for name, function in SCENARIOS.items() if function.quick or not options.quick]
    if options.groups:
        rows = [row for row in rows if row.name in GROUP_ROWS]
        names = [name for name in names if SCENARIOS[name].part in GROUP_PARTS]
        options.no_tools = options.no_node = True
    if options.scenarios:
        names = [name for name in SCENARIOS if name in options.scenarios.split(",")]
    workspace = Path(tempfile.mkdtemp(prefix="barnabas-compat-"))
    try:
        suite.prepare(rows)
        for row in rows:
            if row.missing:
                print(f"{row.name}: skipped: {row.missing}")
        columns, labels, begun = {}, [], time.monotonic()
        for peer in peers:
            label, columns[peer] = run_peer(peer, options, rows, names, workspace)
            labels.append(label)
        if "kafka" in columns and "kafka-3" in columns:
            columns["kafka"] |= columns.pop("kafka-3")
            peers = [peer for peer in peers if peer != "kafka-3"]
        return report(peers, columns, rows, names, lambda said: quotable(labels, rows, names, columns[peers[0]], said, time.monotonic() - begun) if options.groups else None)
    except fetch.Missing as missing:
        print(f"compat: {missing}")
        print("0 passed, 0 failed, 1 skipped" if peers != ["barnabas"] else "0 passed, 1 failed")
        return 0 if peers != ["barnabas"] else 1
    except KeyboardInterrupt:
        return 130
    finally:
        if options.keep:
            print(f"kept: {workspace}")
        else:
            shutil.rmtree(workspace, ignore_errors=True)


def quotable(labels, rows, names, results, said, seconds):
    told = sum(len(result.told) for result in results.values())
    passed, failed, differing = said
    return (f"groups: {len(names)} scenarios of KIP-848 groups, transactions and share groups × {', '.join(f'{row.name} {row.version}'.strip() for row in rows)} on {' beside '.join(labels)}: "
            f"{passed} cells as they should be, {failed} not, {differing} that differ from the other, {told} answers compared word for word; {seconds:.0f} s")


def report(peers, columns, rows, names, quote):
    first = columns[peers[0]]
    other = columns[peers[1]] if len(peers) > 1 else None
    print_table(rows, names, first, other, peers)
    print_failures(peers, columns)
    print_accidents(peers, columns)
    print_skips(first)
    passed = failed = skipped = 0
    for key, result in first.items():
        if result.status == suite.PASS:
            passed += 1
        elif result.status == suite.SKIP or explained(key, peers[0]):
            skipped += 1
        else:
            failed += 1
    differing = print_differences(first, other, peers) if other is not None else 0
    if line := quote((passed, failed, differing)):
        print(f"\n{line}")
    failed += differing
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0
