"""What does record.validation cost the server per record?

Unit: microseconds of CPU (user and system, all threads of the server process) per record produced, median of RUNS interleaved runs: every
codec and batch size is produced to a `header`, a `structure` and a `full` node in turn. Held fixed: records (JSON lines of a log, 250 bytes
on average), one producer, acks=all, one topic of four partitions. Left out: the producer's own CPU, consumers, replication.
The bound that matters: decision 10 of the design (records are not inflated unless a rule must see them).

    lab/bench/records/run [RECORDS] [RUNS]      prints a table and one JSON line
"""
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile

from harness.server import Barnabas
from harness.usage import cpu_seconds

BINARY = os.environ.get("BARNABAS", os.path.join(os.path.dirname(__file__), "../../../target/release/barnabas"))
MODES = ["header", "structure", "full"]
CODECS = ["none", "lz4", "zstd", "gzip", "snappy"]
BATCHES = [16384, 262144]


def payloads(path):
    draw = random.Random(7)
    paths = ["/api/v1/orders", "/api/v1/users/{}", "/static/app.js", "/health", "/api/v2/search?q={}"]
    with open(path, "w", encoding="utf-8") as file:
        for number in range(20000):
            line = {
                "ts": "2026-11-22T%02d:%02d:%02d.%03dZ" % (draw.randrange(24), draw.randrange(60), draw.randrange(60), draw.randrange(1000)),
                "level": draw.choice(["INFO", "INFO", "INFO", "WARN", "ERROR"]),
                "service": draw.choice(["checkout", "search", "gateway", "billing"]),
                "path": draw.choice(paths).format(draw.randrange(100000)),
                "status": draw.choice([200, 200, 200, 204, 404, 500]),
                "took_ms": draw.randrange(2000),
                "trace": "%032x" % draw.getrandbits(128),
                "user": draw.randrange(10**9),
                "message": " ".join(draw.choice(["cache", "miss", "for", "key", "retry", "upstream", "timeout", "ok"]) for _ in range(6)),
            }
            file.write(json.dumps(line) + "\n")


def start(folder, mode):
    return Barnabas(f"{folder}/{mode}", BINARY, {"record.validation": mode, "num.partitions": "4", "log.retention.bytes": "268435456"}).start()


def produce(address, codec, batch, records, payload):
    subprocess.run(
        [
            BINARY, "producer-perf-test", "--topic", f"t-{codec}-{batch}", "--num-records", str(records), "--throughput", "-1",
            "--payload-file", payload, "--command-property", f"bootstrap.servers={address}", "acks=all",
            f"compression.type={codec}", f"batch.size={batch}", "linger.ms=5",
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )


def main():
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 500_000
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    folder = tempfile.mkdtemp(prefix="barnabas-records-")
    payload = f"{folder}/payload"
    payloads(payload)
    nodes, costs = {}, {}
    try:
        nodes |= {mode: start(folder, mode) for mode in MODES}
        for run in range(-1, runs):
            for codec in CODECS:
                for batch in BATCHES:
                    for mode in MODES:
                        node = nodes[mode]
                        before = cpu_seconds(node.pid)
                        produce(node.address, codec, batch, records if run >= 0 else 20_000, payload)
                        if run >= 0:
                            spent = (cpu_seconds(node.pid) - before) / records * 1e6
                            costs.setdefault((codec, batch, mode), []).append(spent)
    finally:
        for node in nodes.values():
            node.stop()
        shutil.rmtree(folder, ignore_errors=True)
    rows = []
    print("| codec | batch.size | " + " | ".join(MODES) + " |")
    print("|---|---|" + "---|" * len(MODES))
    for codec in CODECS:
        for batch in BATCHES:
            cells = []
            for mode in MODES:
                found = costs[(codec, batch, mode)]
                cells.append("%.2f (%.2f to %.2f)" % (statistics.median(found), min(found), max(found)))
                rows.append({"codec": codec, "batch": batch, "mode": mode, "us_per_record": [round(cost, 3) for cost in found]})
            print(f"| {codec} | {batch} | " + " | ".join(cells) + " |")
    print(json.dumps({"bench": "record.validation", "records": records, "runs": runs, "rows": rows}))


if __name__ == "__main__":
    main()
