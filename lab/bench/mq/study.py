"""`make mq-study`: what a message between MQ or AMQP and a topic costs, by which way, and how long it takes.

IBM's client puts persistent messages into the node's MQ listener and a Kafka consumer reads the queue's topic (direct); a queue of Apache Artemis is coupled with a topic, both
ways, by the native bridge and by Kafka Connect with a JMS connector (java/). Fixed: one node on loopback, acks synced, one partition, Artemis with its journal synced,
commits of the bridge and batches of Connect at 250 messages. Measured: CPU of each process and of the coupling for each message that became readable; requests to the queue
manager for each; put → readable (times in the messages, from the begin of the put; *due*: from when it was due); backlog each second.
Beside: puts that wait for their answer, of many clients, on the node and on Artemis; 10,000 idle AMQP connections.

Left out on purpose: several nodes, TLS, logins, IBM's connectors and queue manager (neither is to be had: their figures are quoted).
Writes results/mq.{jsonl,md}, mq-backlog.{csv,svg}. Ends in one line. FULL=1: all sizes and rates, a minute each.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from compat import fetch
from compat.cli import find_binary, in_scratch
from compat.driver import Failure
from harness.process import spawn
from harness.usage import cpu_seconds, resident_mb
from rig import RESULTS
from rig.machine import busy_share
from rig.runner import about_machine

from . import report
from .counting import Proxy
from .programs import Failed, class_path, ends
from .ways import BridgeIn, BridgeOut, ConnectIn, ConnectOut, Direct, Load, Stage, StudyNode, counted, run

IDLE = 10_000
EVERY = 10


def idle(seconds):
    return Load(1000, 2, seconds, warm=2, clients=1)


SHORT = (
    (Direct, (Load(1000, 3000, 10, unit=1, warm=8), Load(1000, 3000, 8, unit=EVERY), Load(100, 3000, 6, unit=EVERY), Load(10_000, 3000, 6, unit=EVERY),
              Load(1000, 10_000, 60, unit=EVERY), idle(10))),
    (BridgeIn, (Load(1000, 3000, 10, warm=8), Load(1000, 10_000, 20), idle(10))),
    (BridgeOut, (Load(1000, 3000, 10), Load(1000, 10_000, 20), idle(10))),
    (ConnectIn, (Load(1000, 3000, 10, warm=15), idle(10))),
    (ConnectOut, (Load(1000, 3000, 10, warm=15),)),
)


def full():
    loads = [Load(size, rate, 60, warm=15) for size in (100, 1000, 10_000) for rate in (3000, 10_000)]
    direct = [Load(size, rate, 60, warm=15, unit=unit) for size in (100, 1000, 10_000) for rate in (3000, 10_000) for unit in (1, EVERY, 100)]
    return tuple((way, (*(direct if way is Direct else loads), idle(120))) for way in (Direct, BridgeIn, BridgeOut, ConnectIn, ConnectOut))


def arguments(words):
    parser = argparse.ArgumentParser(prog="lab/bench/mq/run", description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", default=os.environ.get("FULL") == "1", help="all sizes and rates, a minute each (an hour)")
    parser.add_argument("--only", help="of direct, bridge in, bridge out, Connect in, Connect out, puts, idle; separated by commas")
    parser.add_argument("--binary", help="the barnabas program (default: the newest of target/release and target/debug)")
    parser.add_argument("--note", default="", help="a sentence for the report, on how the program was built for instance")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--keep", action="store_true", help="keep the logs")
    return parser.parse_args(words)


def play(stage, makes, loads):
    """All loads of one way: the lines, and their backlogs."""
    way, lines, backlogs = makes(stage), [], []
    way.start()
    try:
        for load in loads:
            line, backlog = run(way, load)
            print(report.row(line), flush=True)
            lines.append(line)
            backlogs += [(way.name, line["load"], second, count) for second, count in backlog]
        if makes is Direct:
            lines += [asked_of_us(way, unit) for unit in (0, 1, EVERY)]
        elif hasattr(way, "go_through_proxy"):
            way.go_through_proxy()
            lines.append({"way": way.name, "load": "1 kB, 1,000/s, counted", "requests_per_message": counted(way, Load(1000, 1000, 5), way.proxy)})
            print(f"  {lines[-1]['way']}: {lines[-1]['requests_per_message']} requests a message", flush=True)
    finally:
        way.stop()
    return lines, backlogs


def asked_of_us(way, unit):
    """What an application says to the MQ listener for each message."""
    proxy = Proxy(way.stage.node.mq_port)
    try:
        load = Load(1000, 500, 3, unit=unit, clients=4)
        line = {"way": "application", "load": load.named(True), "requests_per_message": counted(way, load, proxy, proxy.port)}
    finally:
        proxy.close()
    print(f"  the application, {line['load']}: {line['requests_per_message']} requests a message", flush=True)
    return line


def puts(stage, seconds):
    """Puts that wait for their answer, of 32 clients, as fast as they go: messages for each second of the server's CPU."""
    lines = []
    for server, words, pid in (("Artemis, AMQP", ("JmsPut", stage.artemis.port, ends.OUT, 1000, 0, 32), stage.artemis.pid),
                               ("node, AMQP", ("JmsPut", stage.node.amqp_port, "PUTS", 1000, 0, 32), stage.node.pid),
                               ("node, MQ", ("MqPut", stage.node.mq_port, "PUTS", 1000, 0, 32, 0), stage.node.pid),
                               ("node, MQ, syncpoint each 10", ("MqPut", stage.node.mq_port, "PUTS", 1000, 0, 32, EVERY), stage.node.pid)):
        sender = stage.program(*words)
        try:
            sender.wait_for("READY", 60)
            start, warm = time.time() + 0.2, 6
            sender.say(f"GO {int(start * 1000)} {warm + seconds}")
            time.sleep(start + warm - time.time())
            begun, before = time.time(), cpu_seconds(pid)
            time.sleep(seconds - 0.5)
            ended, after = time.time(), cpu_seconds(pid)
            sender.wait_for("DONE", 60)
        finally:
            sender.end()
        count = sender.count_at(ended) - sender.count_at(begun)
        lines.append({"way": "puts", "server": server, "per_s": round(count / (ended - begun)), "server_us": round((after - before) * 1e6 / max(1, count), 2),
                      "per_s_per_core": round(count / max(0.01, after - before))})
        print(f"  puts: {server}: {lines[-1]['per_s']:,}/s, {lines[-1]['per_s_per_core']:,}/s for each core of its CPU", flush=True)
    return lines


def idle_connections(stage, binary, directory):
    """Resident memory of a node of its own, before and with 10,000 connections."""
    node = StudyNode(directory / "idle", binary, {})
    node.start()
    time.sleep(1)
    before = resident_mb(node.pid)
    clients = spawn([sys.executable, "-B", str(Path(__file__).parent / "idle.py"), str(node.amqp_port), str(IDLE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        said = clients.stdout.readline().split()
        time.sleep(12)
        after = resident_mb(node.pid)
        clients.stdin.close()
        closed = clients.stdout.readline().split()
    finally:
        clients.kill()
        clients.wait()
        node.stop()
    if said != ["OPEN", str(IDLE)] or closed != ["CLOSED", "0"]:
        raise Failed(f"{IDLE} connections do not stay open: {said} {closed}")
    print(f"  {IDLE:,} idle AMQP connections: {after:.0f} MB resident, {before:.0f} MB without", flush=True)
    return {"way": "idle connections", "count": IDLE, "resident_mb": round(after, 1), "before_mb": round(before, 1)}


def study(options, scratch):
    begun = time.monotonic()
    binary = find_binary(options.binary)
    version, classpath = class_path()
    wanted = options.only.split(",") if options.only else None
    chosen = [(way, loads) for way, loads in (full() if options.full else SHORT) if wanted is None or way.name in wanted]
    busy = busy_share(2)
    stage = Stage(scratch, binary, classpath)
    stage.start()
    lines, backlogs, failed = [], [], []
    if wanted is None or set(wanted) - {"direct", "idle"}:
        stage.warm(60 if options.full else 12)
    machine = about_machine({"artemis": ends.ARTEMIS, "connect": version}, scratch)
    for name, work in [*((way.name, lambda way=way, loads=loads: play(stage, way, loads)) for way, loads in chosen),
                       ("puts", lambda: (puts(stage, 60 if options.full else 8), [])), ("idle", lambda: ([idle_connections(stage, binary, scratch)], []))]:
        if wanted is not None and name not in wanted:
            continue
        try:
            found, more = work()
            lines += found
            backlogs += more
        except (Failed, Failure, RuntimeError, OSError, ValueError) as reason:
            failed.append(f"{name}: {reason}")
            print(f"  {failed[-1]}", flush=True)
    stage.node.stop()
    stage.artemis.kill()
    lost = [line for line in lines if "put" in line and line["read"] < line["put"]]
    failed += [f"{line['way']}, {line['load']}: {line['put'] - line['read']} of {line['put']} were not read within a minute" for line in lost]
    about = {"machine": machine, "busy_before": round(busy, 2), "note": options.note, "full": options.full}
    report.write(options.results, about, lines, backlogs, failed)
    print(report.text(about, lines, failed))
    print(f"mq-study: {report.quoted(lines)}; {(time.monotonic() - begun) / 60:.0f} min")
    print(f"{len(lines)} passed, {len(failed)} failed, 0 skipped")
    return 1 if failed or not lines else 0


def main(words):
    options = arguments(words)
    try:
        return in_scratch("mq-study", lambda scratch: study(options, scratch))
    except (fetch.Missing, Failure) as missing:
        print(f"mq-study: SKIP: {missing}\n0 passed, 0 failed, 1 skipped")
        return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
