"""The rows of the table: what is asked of three brokers of each kind, and the bar of each.

The cluster: what does a record cost that three brokers hold, and how long does a producer wait when one of them is gone? Units: records a second; µs of
CPU of all three brokers together; ms and s. Held fixed: three nodes, each broker and controller, on loopback; replication factor 3,
min.insync.replicas 2, acks=all; the same clients. Left out on purpose: a network and its time; a client's own time between a broken connection and the
next try, which is in every gap and the same for both.
"""

from rig.clients import java, librdkafka
from rig.measures import Produce
from rig.plan import Bar, Case, Workload, question

from .losses import Kills, Restarts
from .many import Many
from .moves import Moves
from .peers import KAFKA, OURS

# figure: (what tables call it, unit of plots, scale, digits), as rig/report.py has them.
FIGURES = {
    "events": ("brokers lost", "brokers", 1, 0),
    "gap_p50_ms": ("longest gap, p50, ms", "milliseconds", 1, 0),
    "gap_p99_ms": ("longest gap, p99, ms", "milliseconds", 1, 0),
    "read_gap_p50_ms": ("reader's gap, p50, ms", "milliseconds", 1, 0),
    "read_gap_p99_ms": ("reader's gap, p99, ms", "milliseconds", 1, 0),
    "others_p50_ms": ("live leaders, p50, ms", "milliseconds", 1, 0),
    "others_p99_ms": ("live leaders, p99, ms", "milliseconds", 1, 0),
    "others_read_p50_ms": ("live leaders, reader, p50, ms", "milliseconds", 1, 0),
    "apart_p50_ms": ("apart, p50, ms", "milliseconds", 1, 0),
    "apart_p99_ms": ("apart, p99, ms", "milliseconds", 1, 0),
    "apart_read_p50_ms": ("apart, reader, p50, ms", "milliseconds", 1, 0),
    "return_p50_ms": ("coming back, p50, ms", "milliseconds", 1, 0),
    "return_p99_ms": ("coming back, p99, ms", "milliseconds", 1, 0),
    "undisturbed_p50_ms": ("before, p50, ms", "milliseconds", 1, 0),
    "undisturbed_read_p50_ms": ("before, reader, p50, ms", "milliseconds", 1, 0),
    "failed": ("records failed", "records", 1, 0),
    "refused": ("refused without retries", "records", 1, 0),
    "moved_s": ("moved, s", "seconds", 1, 2),
    "moved_mb_per_s": ("moved, MB/s", "MB per second", 1, 0),
    "device_mb_per_s": ("the device, MB/s", "MB per second", 1, 0),
    "of_device": ("of the device", "share", 1, 2),
    "beside_before_p99_ms": ("producer's p99 before, ms", "milliseconds", 1, 1),
    "beside_p99_ms": ("producer's p99 meanwhile, ms", "milliseconds", 1, 1),
    "beside_ratio": ("producer's p99, meanwhile ÷ before", "ratio", 1, 2),
    "beside_gap_ms": ("producer's longest gap, ms", "milliseconds", 1, 0),
    "made_s": ("made, s", "seconds", 1, 2),
    "failover_s": ("all led again, s", "seconds", 1, 2),
    "pulse_gap_ms": ("longest gap, ms", "milliseconds", 1, 0),
}
# What "none" is: pauses are known to five milliseconds, and four cores are shared by six processes.
NONE_MS = 50
# "At device speed": of what one writer gets.
DEVICE_SHARE = 0.8


def bars(*found):
    """(figure, bound) of ours alone."""
    return tuple(Bar(figure, bound, to=None, of=OURS) for figure, bound in found)


def throughput(quick, case):
    beside = {(100, 65536): "655 k/s, 2.41 µs", (100, 16384): "346 k/s, 6.07 µs", (1000, 65536): "100 k/s, 19.75 µs"}
    found = []
    for partitions in (6, 100):
        for record_bytes, batch in [(100, 16384)] if quick and partitions > 6 else beside:
            name = f"{partitions} partitions, {'100 B' if record_bytes == 100 else '1 kB'}, {batch // 1024} KiB"
            against = (Bar("records_per_s", 1.5, least=True, to=KAFKA, of=OURS), Bar("server_us_per_record", 0.25, to=KAFKA, of=OURS))
            source = f"baseline: {beside[record_bytes, batch]}" if partitions == 6 else ""
            found.append(case(name, Produce(java(name, partitions, record_bytes, 1, batch, 5), 1 if quick else 3), *against, runs=5, source=source))
    if not quick:
        # A client that is no bound: what the brokers can do.
        for record_bytes in (100, 1000):
            name = f"librdkafka, 3 producers, 6 partitions, {'100 B' if record_bytes == 100 else '1 kB'}"
            found.append(case(name, Produce(librdkafka(name, 6, record_bytes, 3), 3), runs=3))
    return found


def workload(quick):
    def case(name, measure, *bars, runs=1, kafka_runs=None, peers=(KAFKA, OURS), **more):
        return Case(name, measure, peers, bars=bars, runs={KAFKA: kafka_runs or runs, OURS: runs}, **more)

    # In a run; there are five runs, of restarts three.
    kills, controllers, restarts = ({KAFKA: 1, OURS: 5}, {KAFKA: 1, OURS: 2}, {KAFKA: 1, OURS: 2}) if quick else ({KAFKA: 2, OURS: 10}, {KAFKA: 2, OURS: 10}, {KAFKA: 1, OURS: 6})
    moved, topics, many = (200, 4, 1000) if quick else (10_000, 20, 100_000)
    large, megabytes = (20, 10) if quick else (40, 25)
    at_speed = (Bar("of_device", DEVICE_SHARE, least=True, to=None, of=OURS), *bars(("beside_ratio", 2)))
    cases = [
        *throughput(quick, case),
        case("kill −9 of a broker", Kills(quick, kills), *bars(("gap_p50_ms", 500), ("gap_p99_ms", 1500)), runs=5, source="baseline: 8.4–9.5 s on all partitions"),
        case("kill −9 of the active controller", Kills(quick, controllers, controller=True), *bars(("gap_p99_ms", 1500), ("apart_p50_ms", NONE_MS), ("apart_read_p50_ms", NONE_MS)), runs=5,
             source="baseline: 10.8 s"),
        case("planned restart of a broker", Restarts(quick, restarts), *bars(("gap_p99_ms", 100), ("return_p99_ms", 100), ("failed", 0), ("refused", 0)), runs=3,
             source="baseline: 1.0 s, 26 failed without retries"),
        case(f"{moved:,} partitions moved, empty", Moves(quick, moved, topics, 0), *bars(("moved_s", 5)), runs=3, kafka_runs=1, source="baseline: 1,000 in 8.8 s"),
        case(f"{moved:,} partitions moved, 100 kB in each", Moves(quick, moved, topics, 100_000), *at_speed, runs=2, kafka_runs=1, source="baseline: 1,000 of 1 MB in 15.6 s"),
        # What the controller does is hardly seen beside these.
        case(f"{large} partitions moved, {megabytes} MB in each", Moves(quick, large, 4, megabytes * 1_000_000), *at_speed, runs=2, kafka_runs=1),
        case(f"{many:,} partitions: a third of the leaders", Many(quick, many), *bars(("failover_s", 2)), runs=3, kafka_runs=1, own_server=True,
             peers=(OURS,) if quick else (KAFKA, OURS)),
    ]
    figures = ("records_per_s", "mb_per_s", "p50_ms", "p99_ms", "server_us_per_record", "client_us_per_record", "device_bytes_per_record", *FIGURES, "rss_mb")
    note = (
        "CPU, memory and bytes written are those of all three brokers together. *Longest gap*: of each broker lost, the longest time that any partition was not acknowledged which it led "
        "(planned restart: any partition); p50 and p99 are over the brokers lost (nearest rank: up to 100, p99 is the largest). *Live leaders*: partitions with a replica on the lost broker, led "
        "by others. *Apart*: partitions of which the lost broker had nothing, with a client of their "
        f"own (answers on one connection come in order); an effect of up to {NONE_MS} ms there counts as none. *Coming back*: from its start until it leads again what it led. *Before*: the longest pause of any partition in two seconds before the first loss. "
        "The producer is librdkafka, idempotent, 200 records a second to each partition whatever happens, retrying as it does by default; *refused without retries* is what a second one was told "
        "that does not retry. One broker in ten stays away for 11 s, longer than a session of Kafka's. Moves: partitions with two replicas off broker 1 onto the two others, from the first request "
        "until nothing moves; the producer beside sends 3,000 records a second. *The device*: one writer, direct, 4 MB at a time.")
    return Workload("cluster", "Three brokers", question(__doc__), cases, figures, (), note, needs_gb=6, alone=True)
