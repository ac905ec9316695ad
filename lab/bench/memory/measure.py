"""What does a node do within little memory? Beside Apache Kafka, by turns, in a control group of the kernel with a limit.

Units: records a second, ms, MiB; the memory of a control group is the process's and the page cache of its files, the peak of the run.
Held fixed: one combined node each with its own defaults, our own client, two producers, acks=all, linger 5 ms, 10 partitions, as fast as it goes; Kafka's heap is
half of the limit, or 1 GB without one. Left out on purpose: readers, replication.
The bound that matters: no process is killed, and at 256 MiB 0.9 of the rate that there is without a limit.

Needs root and a file system of control groups that may be written (version 1 or 2). Prints a table and ends in one line.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from rig import ROOT

from compat import fetch
from harness.process import die_with_the_rig
from harness.server import Apache, Barnabas
from harness.usage import resident_mb

MIB = 1 << 20
LIMITS = (256, 512, 1024, None)
# name, record bytes, records, configs of the producer
LOADS = (("1 kB", 1000, 2_000_000, ("batch.size=1000000",)), ("100 B", 100, 6_000_000, ()))
SETTINGS = {"log.retention.bytes": "300000000", "log.segment.bytes": "100000000", "log.retention.check.interval.ms": "5000", "log.segment.delete.delay.ms": "50"}


class Group:
    """A control group with a limit of `mib`, or none."""

    V1, V2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")

    def __init__(self, name, mib):
        self.is_new = (self.V2 / "cgroup.controllers").exists()
        self.path = (self.V2 if self.is_new else self.V1) / name
        self.path.mkdir()
        if mib:
            self.write("memory.max" if self.is_new else "memory.limit_in_bytes", mib * MIB)

    def write(self, name, value):
        (self.path / name).write_text(str(value))

    def enter(self):
        """For `preexec_fn`."""
        die_with_the_rig()
        self.write("cgroup.procs", os.getpid())

    def peak_mb(self):
        return int((self.path / ("memory.peak" if self.is_new else "memory.max_usage_in_bytes")).read_text()) / MIB

    def kills(self):
        text = (self.path / ("memory.events" if self.is_new else "memory.oom_control")).read_text()
        return int(dict(line.split() for line in text.splitlines())["oom_kill"])

    def remove(self):
        self.path.rmdir()


class Limited:
    """A server whose process runs in a control group."""

    group = None

    def run(self, words, **how):
        super().run(words, preexec_fn=self.group.enter, **how)


class OursLimited(Limited, Barnabas):
    pass


class KafkaLimited(Limited, Apache):
    pass


def kafka(directory, mib):
    version, classpath = fetch.kafka()
    server = KafkaLimited(directory, version, classpath, SETTINGS)
    heap = f"{mib // 2}m" if mib else "1g"
    server.jvm = (f"-Xms{heap}", f"-Xmx{heap}", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")
    return server


def produce(client, node, load):
    name, size, records, configs = load
    words = [client, "producer-perf-test", "--bootstrap-server", node.address, "--topic", "t", "--record-size", str(size), "--num-records", str(records), "--throughput", "-1",
             "--producers", "2", "--json", "--command-property", "acks=all", "linger.ms=5", *configs]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=180)
    if ran.returncode != 0:
        raise RuntimeError(f"{name}: {(ran.stderr or ran.stdout).strip()[-200:]}")
    return json.loads(ran.stdout.strip().splitlines()[-1])


def turn(client, node, mib, label):
    """One life of a node: a line for each load. What ends it is in `trouble`."""
    node.group = Group(f"barnabas-bench-{os.getpid()}", mib)
    lines = []
    try:
        node.start()
        subprocess.run([client, "topics", "--bootstrap-server", node.address, "--create", "--topic", "t", "--partitions", "10"], check=True, capture_output=True)
        for load in LOADS:
            line = {"peer": label, "limit_mb": mib, "load": load[0]}
            lines.append(line)
            try:
                made = produce(client, node, load)
            except (RuntimeError, subprocess.TimeoutExpired) as trouble:
                line["trouble"] = "killed for its memory" if node.group.kills() else str(trouble)[-120:]
                break
            line |= {key: made[key] for key in ("records_per_s", "p99_ms", "p999_ms")}
            line |= {"resident_mb": resident_mb(node.pid), "group_peak_mb": node.group.peak_mb(), "kills": node.group.kills()}
    except (RuntimeError, subprocess.CalledProcessError) as trouble:
        lines.append({"peer": label, "limit_mb": mib, "load": "start", "trouble": "killed for its memory" if node.group.kills() else str(trouble)[-120:]})
    finally:
        node.remove()
        node.group.remove()
    return lines


def table(lines):
    """Markdown rows, medians over the turns with [min..max] of the rate."""
    keys = list(dict.fromkeys((line["load"], line["limit_mb"], line["peer"]) for line in lines))
    yield "| load | limit, MiB | | records/s | p99.9, ms | resident, MiB | peak with page cache, MiB |"
    yield "|---|---|---|---|---|---|---|"
    for load, mib, peer in sorted(keys, key=lambda key: (key[0], key[1] or 1 << 20, key[2])):
        found = [line for line in lines if (line["load"], line["limit_mb"], line["peer"]) == (load, mib, peer)]
        good = [line for line in found if "trouble" not in line]
        if not good:
            yield f"| {load} | {mib or 'none'} | {peer} | {found[0]['trouble']} | | | |"
            continue
        of = {key: [line[key] for line in good] for key in ("records_per_s", "p999_ms", "resident_mb", "group_peak_mb")}
        rate = f"{statistics.median(of['records_per_s']):,.0f} [{min(of['records_per_s']):,.0f}..{max(of['records_per_s']):,.0f}]"
        yield f"| {load} | {mib or 'none'} | {peer} | {rate} | " + " | ".join(f"{statistics.median(of[key]):,.0f}" for key in ("p999_ms", "resident_mb", "group_peak_mb")) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default=ROOT / "target/release/barnabas")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--ours", action="store_true", help="without Apache Kafka")
    parser.add_argument("--results", type=Path, help="a file for the lines in JSON")
    options = parser.parse_args()
    if os.geteuid() != 0 or not os.access(Group.V2, os.W_OK):
        print("bench-memory: needs root and control groups that may be written\n0 passed, 0 failed, 1 skipped")
        return 0
    binary, lines = str(Path(options.binary).resolve()), []
    folder = Path(tempfile.mkdtemp(prefix="bench-memory-", dir=ROOT / "target"))
    makers = {"Barnabas": lambda mib: OursLimited(folder / "ours", binary, SETTINGS)}
    if not options.ours:
        makers["Kafka"] = lambda mib: kafka(folder / "kafka", mib)
    try:
        for _ in range(options.runs):
            for mib in LIMITS:
                for label, make in makers.items():
                    lines += turn(binary, make(mib), mib, label)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if options.results:
        options.results.write_text("".join(json.dumps(line) + "\n" for line in lines))
    print("\n".join(table(lines)))
    ours = [line for line in lines if line["peer"] == "Barnabas"]
    rate = lambda mib: statistics.median([line.get("records_per_s", 0) for line in ours if line["limit_mb"] == mib and line["load"] == "1 kB"])
    print(f"bench-memory: {sum('trouble' in line for line in ours)} of {len(ours)} runs of ours in trouble; 1 kB at 256 MiB {rate(256) / rate(None):.2f} of the rate without a limit (at least 0.9)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
