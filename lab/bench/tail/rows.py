"""The rows, and the bar of each.

The tail: how late is the slowest of a thousand records under a load that does not wait, beside what goes on in production? Units: ms from the time at which a record
was due to its acknowledgement; µs of CPU of all brokers together. Held fixed: two librdkafka producers, linger 5 ms, acks=all, no key; ours synced, Kafka as it comes;
replication factor 3 with min.insync.replicas 2. Left out on purpose: a network; loads above what the machine can do (the other benches have them).
"""

import re
from itertools import product

from rig.plan import Bar, Case, Chart, Workload, question

from .beside import BESIDE
from .peers import OF
from .turn import Row, Steady

# figure: (what tables call it, unit of plots, scale, digits), as rig/report.py has them.
FIGURES = {
    "p9999_ms": ("p99.99, ms", "milliseconds", 1, 1),
    "floor_p50_ms": ("floor p50, ms", "milliseconds", 1, 2),
    "floor_p99_ms": ("floor p99, ms", "milliseconds", 1, 2),
    "floor_max_ms": ("floor max, ms", "milliseconds", 1, 1),
    "rest_ms": ("floor at rest, ms", "milliseconds", 1, 2),
    "p99_above_floor_ms": ("p99 above linger and floor, ms", "milliseconds", 1, 1),
    "p99_over_floor": ("p99 ÷ floor p99", "ratio", 1, 1),
    "late_p99_ms": ("sent late, p99, ms", "milliseconds", 1, 2),
    "never": ("never acknowledged", "records", 1, 0),
}
SHOWN = ("mb_per_s", "p50_ms", "p99_ms", "p999_ms", "p9999_ms", "max_ms", "rest_ms", "floor_p50_ms", "floor_p99_ms", "floor_max_ms", "p99_above_floor_ms", "p99_over_floor", "server_us_per_record",
         "late_p99_ms", "never", "device_bytes_per_record", "rss_mb")
RATES, SIZES, PARTITIONS, REPLICAS = (1, 5, 30, 60), (100, 1000), (1, 10, 100, 10_000), (1, 3)
# The load beside which things go on.
BESIDE_MB, BESIDE_BYTES, BESIDE_PARTITIONS = 10, 1000, 10
# For both makes, so that what a long row wrote does not fill the disk.
SETTINGS = {"log.retention.check.interval.ms": "20000"}

CROSS = [Row(*shape) for shape in product(RATES, SIZES, PARTITIONS, REPLICAS)]
STEADY_3 = Row(20, 1000, 10, 3)
ALONG = [Row(BESIDE_MB, BESIDE_BYTES, BESIDE_PARTITIONS, max(what.replicas) if 1 not in what.replicas else 1, name) for name, what in BESIDE.items() if name]
SHORT = [Row(5, 100, 10, 1), Row(30, 1000, 10, 1), Row(1, 1000, 10, 1), Row(60, 1000, 10, 1), Row(5, 1000, 10_000, 1), Row(5, 100, 10, 3), STEADY_3, *ALONG]
# Not every crossing says something new: rates by size at ten partitions, partitions by size at 5 MB/s and at 30.
FULL = [row for row in CROSS if row.partitions == 10 or (row.mb_per_s == 5 and row.replicas == 1) or (row.mb_per_s == 30 and row.record_bytes == 1000)] + [STEADY_3, *ALONG]
QUICK = [Row(5, 100, 10, 1), Row(BESIDE_MB, BESIDE_BYTES, BESIDE_PARTITIONS, 1, "retention"), Row(5, 1000, 10, 3)]
# What issue and table ask for, where it is not the same as everywhere.
BOUNDS = {Row(30, 1000, 10, 1): {"p99_ms": 1}, Row(5, 100, 10, 1): {"p999_ms": 0.5, "max_ms": 1}, STEADY_3: {"p99_ms": 0.5, "p999_ms": 0.5}}
USUAL = {"p99_ms": 1, "p999_ms": 1, "max_ms": 1}
CPU = 1 / 3


def of_set(name, only=None, cross=False):
    """The rows of a set; of `only`, a regular expression, those whose name it is found in, wherever they stand."""
    rows = {"quick": QUICK, "short": SHORT, "full": FULL}[name]
    if cross:
        rows = CROSS + [row for row in FULL if row not in CROSS]
    if only:
        everywhere = list(dict.fromkeys([*rows, *CROSS, STEADY_3, *ALONG]))
        found = [row for row in rows if re.search(only, row.name)]
        rows = found or [row for row in everywhere if re.search(only, row.name)]
    return rows


def bars(row, before):
    kafka, ours, older = OF[row.replicas]
    wanted = {**USUAL, **BOUNDS.get(row, {}), "server_us_per_record": CPU}
    found = [Bar(figure, bound, to=kafka, of=ours) for figure, bound in wanted.items()]
    return tuple(found + [Bar(figure, 1, to=older, of=ours) for figure in ("p99_ms", "p999_ms", "max_ms", "server_us_per_record") if before])


def workloads(rows, seconds, before=False, **load):
    """One for each replication factor: the servers of the other do not run meanwhile. `load`: what Steady has besides."""
    made = []
    for replicas in REPLICAS:
        cases = []
        for row in (row for row in rows if row.replicas == replicas):
            peers = OF[replicas] if before else OF[replicas][:2]
            cases.append(Case(row.name, Steady(row, seconds, **load), peers, settings={**SETTINGS, **BESIDE[row.beside].settings}, bars=bars(row, before)))
        charts = (Chart("p99_ms", f"p99 of steady loads, replication factor {replicas}"), Chart("p999_ms", f"p99.9 of steady loads, replication factor {replicas}"),
                  Chart("server_us_per_record", f"CPU of the brokers, replication factor {replicas}"))
        if cases:
            made.append(Workload(f"rf-{replicas}", f"Steady loads, replication factor {replicas}", question(__doc__), cases, SHOWN, charts, NOTE, needs_gb=20 if seconds > 60 else 6, alone=True))
    return made


NOTE = ("Latency is from the time at which a record was due, linger included. *Floor*: a synced write of 4 KiB by another program, ten a second, on the same file system in the same seconds, from when "
        "it was due; *at rest*: before the load, median. A floor's p99 needs a hundred seconds: of shorter turns it is nearly the largest. *Above linger and floor*: what is left of the p99 without 5 ms of linger "
        "and the floor's p99. *Sent late*: from due to handed over, the generator's own part. Client CPU holds the generator, the observer and what goes on beside. A turn's first quarter, at most 10 s, is not counted.")
