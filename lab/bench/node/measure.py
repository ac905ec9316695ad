"""What does one node cost: memory, start, CPU per record, connections? Beside Apache Kafka in one run.

Unit: µs of CPU (user + system) of the server process per record of 100 bytes; ms; MB of resident memory.
Held fixed: one combined node each, data on the same file system, Apache's own producer-perf-test as the load, acks=all,
Kafka with its start script's 1 GB heap and G1 and no sync (its default), Barnabas with a sync before every ack (its default).
Interleaved: Kafka, Barnabas, Kafka, Barnabas …; a warm-up run of each load is thrown away; medians with [min..max].
Left out on purpose: latency at full throughput (it is queueing in the client), several clients, replication.
The bound that matters: a third of Kafka's CPU per record. Other load on the machine is measured and shown; runs that more than
a tenth of the machine disturbed are repeated, at most twice.

Prints one JSON line per run (kept under lab/bench/results/node.jsonl) and a table; ends in one line.
"""

import argparse
import json
import os
import re
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rig import ROOT
from rig.machine import all_descriptors, machine_busy, spread
from rig.peers.kafka import Server as Kafka

from compat import fetch
from harness.ask import metadata_answers
from harness.server import Barnabas
from harness.usage import cpu_seconds, resident_mb

LOADS = [
    # name, partitions, batch.size, linger.ms
    ("1 partition, 16 KiB, linger 0", 1, 16384, 0),
    ("1 partition, 64 KiB, linger 5", 1, 65536, 5),
    ("16 partitions, 16 KiB, linger 0", 16, 16384, 0),
    ("16 partitions, 64 KiB, linger 5", 16, 65536, 5),
]


def create_topic(server, name, partitions):
    subprocess.run([str(binary()), "topics", "--bootstrap-server", server.address, "--create", "--topic", name,
                    "--partitions", str(partitions), "--replication-factor", "1"], check=True, capture_output=True)


def binary():
    return ROOT / "target/release/barnabas"


def produce(server, classpath, topic, records, batch, linger):
    """One run of producer-perf-test; the server's CPU over it."""
    command = ["java", "-Xmx512M", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
               f"-Dlog4j2.configurationFile={ROOT / 'lab/compat/maven/log4j2.properties'}", "-cp", classpath,
               "org.apache.kafka.tools.ProducerPerformance", "--bootstrap-server", server.address, "--topic", topic,
               "--num-records", str(records), "--record-size", "100", "--throughput", "-1",
               # One flag for all: the tool forgets all but the last one.
               "--command-property", "acks=all", f"batch.size={batch}", f"linger.ms={linger}"]
    before, client_before, busy_before, begun = (cpu_seconds(server.process.pid), resource.getrusage(resource.RUSAGE_CHILDREN),
                                                 machine_busy(), time.monotonic())
    done = subprocess.run(command, capture_output=True, text=True)
    seconds = time.monotonic() - begun
    cpu = cpu_seconds(server.process.pid) - before
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    client = after.ru_utime + after.ru_stime - client_before.ru_utime - client_before.ru_stime
    other = (machine_busy() - busy_before - cpu - client) / (seconds * os.cpu_count())
    told = re.findall(r"(\d+) records sent, ([\d.]+) records/sec.*?([\d.]+) ms avg latency.*?(\d+) ms 99th", done.stdout)
    if done.returncode != 0 or not told or int(told[-1][0]) != records:
        raise RuntimeError(f"producer-perf-test against {server.label}: {(done.stdout + done.stderr)[-600:]}")
    return {"records_per_s": float(told[-1][1]), "p99_ms": int(told[-1][3]), "server_us_per_record": cpu * 1e6 / records,
            "client_us_per_record": client * 1e6 / records, "other_load": round(max(other, 0), 3)}


def idle_connections(server, count):
    """Resident memory with `count` connections that have asked for versions once and are silent since."""
    hello = bytes.fromhex("0000000e" "0012" "0000" "00000001" "0004") + b"idle"
    before, open_sockets = resident_mb(server.process.pid), []
    try:
        for number in range(count):
            connection = socket.socket()
            connection.bind((f"127.0.0.{2 + number // 20000}", 0))
            connection.connect(("127.0.0.1", server.port))
            connection.sendall(hello)
            open_sockets.append(connection)
        for connection in open_sockets:
            connection.settimeout(10)
            if not connection.recv(65536):
                raise RuntimeError("a connection was closed")
        time.sleep(1)
        return {"connections": count, "rss_mb": resident_mb(server.process.pid), "rss_before_mb": before}
    finally:
        for connection in open_sockets:
            connection.close()


def starts(make, directory, times):
    """Time from exec to the first Metadata answer, in ms, on a fresh directory each; and RSS after five idle seconds."""
    found, resident = [], []
    for number in range(times):
        server = make(Path(directory) / f"start-{number}")
        server.start()
        found.append(server.ready_after * 1000)
        if number == times - 1:
            time.sleep(5)
            resident.append(resident_mb(server.process.pid))
        server.stop()
        server.remove()
    return found, resident[0]


def measure(options, classpath, version, work):
    makers = {
        "kafka": lambda directory: Kafka(directory, version, classpath),
        "barnabas": lambda directory: Barnabas(directory, binary(), {"max.connections": "20000"}),
    }
    rows, lines = [], []

    def keep(**line):
        lines.append(line)
        print(json.dumps(line), flush=True)

    ready, idle = {}, {}
    for name, make in makers.items():
        ready[name], idle[name] = starts(make, f"{work}/{name}", 5 if name == "barnabas" else 3)
        keep(what="start", peer=name, ready_ms=ready[name], idle_rss_mb=idle[name])
    rows.append(("exec to first Metadata, ms", spread(ready["kafka"], 0), spread(ready["barnabas"], 0),
                 statistics.median(ready["barnabas"]) / statistics.median(ready["kafka"]), "≤ 100 ms"))
    rows.append(("idle RSS, MB", f"{idle['kafka']:.0f}", f"{idle['barnabas']:.1f}", idle["barnabas"] / idle["kafka"], "≤ 25 MB"))

    servers = {name: make(f"{work}/{name}/load") for name, make in makers.items()}
    for server in servers.values():
        server.start()
    for load, (title, partitions, batch, linger) in enumerate(LOADS):
        for server in servers.values():
            create_topic(server, f"load-{load}", partitions)
            produce(server, classpath, f"load-{load}", options.records // 3, batch, linger)
        runs = {name: [] for name in servers}
        for _ in range(options.runs):
            for name, server in servers.items():
                for attempt in range(3):
                    run = produce(server, classpath, f"load-{load}", options.records, batch, linger)
                    keep(what=title, peer=name, attempt=attempt, **run)
                    if run["other_load"] <= 0.1:
                        break
                runs[name].append(run)
        for field, shown, digits in (("server_us_per_record", "server µs/record", 3), ("records_per_s", "k records/s", 0)):
            scale = 1000 if field == "records_per_s" else 1
            of = {name: [run[field] / scale for run in found] for name, found in runs.items()}
            ratio = statistics.median(of["barnabas"]) / statistics.median(of["kafka"])
            rows.append((f"{title}: {shown}", spread(of["kafka"], digits), spread(of["barnabas"], digits), ratio,
                         "≤ 0.33" if scale == 1 else ""))
    for server in servers.values():
        server.stop()
        server.remove()

    server = makers["barnabas"](f"{work}/barnabas/idle").start()
    held = idle_connections(server, options.connections)
    keep(what="idle connections", peer="barnabas", **held)
    rows.append((f"{held['connections']} idle connections, RSS MB", "–", f"{held['rss_mb']:.0f}", None, "≤ 200 MB"))
    if not metadata_answers(server.port):
        raise RuntimeError("the node does not answer after the idle connections")
    server.stop()
    server.remove()
    return rows, lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--records", type=int, default=3_000_000)
    parser.add_argument("--connections", type=int, default=10_000)
    options = parser.parse_args()
    all_descriptors()
    try:
        version, classpath = fetch.kafka()
    except fetch.Missing as missing:
        sys.exit(f"bench-node: {missing}")
    with tempfile.TemporaryDirectory(prefix="bench-node-", dir=ROOT / "target") as work:
        rows, lines = measure(options, classpath, version, work)
    results = ROOT / "lab/bench/results"
    results.mkdir(parents=True, exist_ok=True)
    (results / "node.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    table = [f"| 100-byte records, acks=all, one Java producer | Kafka {version}, unsynced | Barnabas, synced | ratio | bar |",
             "|---|---|---|---|---|"]
    table += [f"| {what} | {kafka} | {ours} | {'' if ratio is None else f'{ratio:.2f}'} | {bar} |" for what, kafka, ours, ratio, bar in rows]
    (results / "node.md").write_text("\n".join(table) + "\n")
    print("\n" + "\n".join(table))
    print(f"\nbench-node: {len(lines)} runs, table in lab/bench/results/node.md")


if __name__ == "__main__":
    main()
