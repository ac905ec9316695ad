"""The log beside Apache Kafka: what does a synced acknowledgement cost, and what do many partitions and a crash?

Unit: thousand records a second; ms from send to acknowledgement as the client sees it; µs of CPU (user + system) of the server process per
record; bytes. Held fixed: one combined node each on the same file system, acks=all, the same clients with the same settings; Kafka with
its start script's 1 GB heap and G1 and no sync (its default), Barnabas with a sync before every acknowledgement (its default).
Interleaved: Kafka, Barnabas, Kafka, Barnabas …, each run on a topic of its own, with what the run before left behind deleted and the page
cache written out before it starts. Both are warmed: Kafka's compiler with half a minute of load, then each load once on both. Medians with [min..max].
Left out on purpose: replication, consumers (lab/bench/node has some), TLS. At full throughput latency is queueing in the client, which a
faster server shortens; one row has a fixed rate. The bounds are the issue's: throughput ≥ and p99 ≤ Kafka's, CPU ≤ a third.
Other load on the machine is measured and shown; runs that more than a tenth of the machine disturbed are repeated, at most twice.

Prints one JSON line per run (kept under lab/bench/results/log.jsonl) and tables (log.md); ends in one line.
A million partitions and the topic of 100,000 are lab/density's (`make density`); --density runs it and takes its rows.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rig import ROOT
from rig.machine import DISTURBED, all_descriptors, median, spread
from rig.peers import PEERS
from rig.peers.peer import Missing

import loads
import stories
from stories import Row


class Bench:
    """What every part needs: how many runs, the clients, where lines go."""

    def __init__(self, options, work, clients):
        self.quick, self.runs, self.data_gb, self.work, self.clients = options.quick, options.runs, options.data_gb, work, clients
        self.lines, self.disturbed = [], 0

    def peers(self, name):
        """Both brokers, each in directories of its own for every part."""
        return {kind: PEERS[kind](Path(self.work) / f"{kind}-{name}") for kind in ("kafka", "barnabas")}

    def keep(self, **line):
        self.lines.append(line)
        print(json.dumps(line), flush=True)


def warm_up(bench, servers):
    load = loads.librdkafka("warm-up", 16, 100, 3)
    for name, seconds in (("kafka", 5 if bench.quick else 30), ("barnabas", 3 if bench.quick else 15)):
        servers[name].create({"warm-up": 16})
        for _ in range(max(seconds // 10, 1)):
            bench.clients.run(servers[name], load, "warm-up", min(seconds, 10))
        servers[name].delete(["warm-up"])


def measure_load(bench, servers, number, load):
    """{peer: its runs}, interleaved."""
    for name, peer in servers.items():
        peer.create({"w": load.partitions})
        bench.clients.run(peer, load, "w", 2 if bench.quick else 3)
        peer.delete(["w"])
    runs = {name: [] for name in servers}
    for run in range(bench.runs):
        for name, peer in servers.items():
            for attempt in range(1 if bench.quick else 3):
                topic = f"l{number}-{run}-{attempt}"
                peer.create({topic: load.partitions})
                told = bench.clients.run(peer, load, topic)
                peer.delete([topic])
                bench.keep(what=load.title, peer=name, attempt=attempt, **told)
                if told["other_load"] <= DISTURBED:
                    break
            else:
                bench.disturbed += 1
            runs[name].append(told)
    return runs


def load_rows(load, runs):
    """The row of the wide table, and the bars as rows."""
    def of(field, name, scale=1.0):
        return [run[field] * scale for run in runs[name]]

    cells, ratios = [load.title], {}
    for field, scale, digits in (("records_per_s", 0.001, 0), ("p50_ms", 1, 1), ("p99_ms", 1, 1), ("p999_ms", 1, 1), ("server_us_per_record", 1, 3), ("device_bytes_per_record", 1, 0)):
        both = {name: of(field, name, scale) for name in ("kafka", "barnabas")}
        cells += [spread(both["kafka"], digits), spread(both["barnabas"], digits)]
        ratios[field] = median(both["barnabas"]) / max(median(both["kafka"]), 1e-9)
    verdicts = [] if load.rate else [("throughput", "≥ 1", ratios["records_per_s"], ratios["records_per_s"] >= 1)]
    verdicts += [("p99", "≤ 1", ratios["p99_ms"], ratios["p99_ms"] <= 1), ("CPU", "≤ 0.33", ratios["server_us_per_record"], ratios["server_us_per_record"] <= 1 / 3)]
    cells.append("; ".join(f"{what} ×{ratio:.2f} {'met' if met else 'MISSED'}" for what, _, ratio, met in verdicts))
    cells.append(f"{median(of('server_us_per_record', 'barnabas')) / load.skyline:.1f}" if load.skyline else "–")
    return cells, [Row(f"{load.title}: {what}", "1", f"{ratio:.2f}", bar, met) for what, bar, ratio, met in verdicts]


def plain_loads(bench, only):
    servers = bench.peers("load")
    for peer in servers.values():
        peer.server.start()
    wide, rows = [], []
    try:
        warm_up(bench, servers)
        for number, load in enumerate(loads.LOADS):
            if (bench.quick and not only and load.title not in loads.QUICK) or (only and only not in load.title):
                continue
            cells, bars = load_rows(load, measure_load(bench, servers, number, load))
            wide.append(cells)
            rows += bars
    finally:
        for peer in servers.values():
            peer.server.kill()
            peer.server.remove()
    return wide, rows


def density_rows():
    """lab/density's own rows with a bar, of the million partitions and the topic of 100,000."""
    rows = []
    for story in ("crowd-mixed", "one-topic"):
        done = subprocess.run([str(ROOT / "lab/density/run"), "--only", story], capture_output=True, text=True, timeout=900)
        print(done.stdout, flush=True)
        for line in done.stdout.splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if line.startswith("|") and len(cells) == 4 and cells[3] in ("met", "MISSED"):
                rows.append(Row(f"{story}: {cells[0]}", "", cells[2], cells[1], cells[3] == "met"))
        if not rows:
            rows.append(Row(f"density {story}", "", (done.stdout + done.stderr)[-80:].replace("\n", " "), "must run", False))
    return rows


def table(options, wide, rows):
    kafka = f"Kafka {options.version}, unsynced"
    lines = []
    if wide:
        heads = ["k records/s", "p50 ms", "p99 ms", "p99.9 ms", "server µs/record", "bytes written/record in the run"]
        lines += [f"Each pair: {kafka} | Barnabas, synced. Bars: throughput ≥ 1 ×, p99 ≤ 1 ×, CPU ≤ 0.33 × Kafka's.", "",
                  "| load, acks=all |" + "".join(f" {head}: Kafka | Barnabas |" for head in heads) + " bars | × synced skyline |",
                  "|---" * (2 * len(heads) + 3) + "|"]
        lines += ["| " + " | ".join(cells) + " |" for cells in wide] + [""]
    lines += [f"| what | {kafka} | Barnabas, synced | bar | |", "|---|---|---|---|---|"]
    lines += [f"| {row.what} | {row.kafka} | {row.ours} | {row.bar} | { {True: 'met', False: 'MISSED', None: ''}[row.met]} |" for row in rows]
    return "\n".join(lines)


def arguments():
    parser = argparse.ArgumentParser(prog="lab/bench/log/run", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", default=bool(os.environ.get("QUICK")), help="two runs, few rows (or QUICK=1)")
    parser.add_argument("--runs", type=int, help="runs of each row (5; quick: 2)")
    parser.add_argument("--seconds", type=float, help="of each run (4)")
    parser.add_argument("--data-gb", type=int, default=int(os.environ.get("DATA_GB", "20")), help="data behind the kill (20, less where the disk has less)")
    parser.add_argument("--only", help="loads whose title contains this, and no story")
    parser.add_argument("--stories", help="only these of many, crowd, kill, bytes (separated by commas), and no load")
    parser.add_argument("--density", action="store_true", help="also lab/density's million and 100,000 partitions")
    parser.add_argument("--binary", help="the barnabas program (default: target/release)")
    options = parser.parse_args()
    options.runs = options.runs or (2 if options.quick else 5)
    options.seconds = options.seconds or 4
    return options


def main():
    options = arguments()
    all_descriptors()
    try:
        options.version = PEERS["kafka"].prepare(options)
        program = loads.loader()
        PEERS["barnabas"].prepare(options)
    except Missing as missing:
        sys.exit(f"bench-log: {missing}")
    begun = time.monotonic()
    parts = {"many": stories.many_partitions, "crowd": stories.twenty_thousand, "kill": stories.kill_with_data, "bytes": stories.amplification}
    chosen = options.stories.split(",") if options.stories else [] if options.only else list(parts)
    with tempfile.TemporaryDirectory(prefix="bench-log-", dir=ROOT / "target") as work:
        bench = Bench(options, work, loads.Clients(PEERS["kafka"].classpath, program, options.seconds, f"{work}/clients.log"))
        wide, rows = ([], []) if options.stories else plain_loads(bench, options.only)
        if options.quick:
            bench.runs = 1
        for name in chosen:
            rows += parts[name](bench)
    if options.density:
        rows += density_rows()
    finish(options, bench, wide, rows, time.monotonic() - begun)


def finish(options, bench, wide, rows, seconds):
    text = table(options, wide, rows)
    if not (options.quick or options.only or options.stories):
        results = ROOT / "lab/bench/results"
        (results / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in bench.lines))
        (results / "log.md").write_text(text + "\n")
    print("\n" + text)
    if not options.density:
        print("\nA million partitions, and a topic of 100,000: `make density`.")
    rows = [row for row in rows if row.met is not None]
    met = sum(row.met for row in rows)
    print(f"\nbench-log: {met} of {len(rows)} bars met; {options.runs} runs each, {len(bench.lines)} in all, {seconds / 60:.0f} min; "
          f"{bench.disturbed} disturbed by other load; missed: {', '.join(row.what for row in rows if not row.met) or 'none'}")


if __name__ == "__main__":
    main()
