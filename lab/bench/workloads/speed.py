"""The table of what Barnabas is held to: produce, compress, consume, one at a time, at a fixed rate, own client, start.

Question: what does a synced record cost beside Apache Kafka's unsynced one, row by row? Units: thousand records a second, ms, µs of the
server's CPU per record. Held fixed: acks=all, one node, loopback, the same client for all peers. Left out on purpose: replication, TLS.
"""

import time

from harness.usage import resident_mb
from rig.clients import java, librdkafka, own
from rig.measures import Consume, EndToEnd, Produce, Story
from rig.plan import BOTH, FLOOR, KAFKA, SYNCED, THREE, THRICE, WRITTEN, Bar, Case, Chart, Workload, question
from rig.speed_table import Line

CPU = "server_us_per_record"
PRODUCE = "^(Java|own client|[34 ]*librdkafka), 100 B"


def cpu(bound):
    return Bar(CPU, bound)


def at_least_kafka():
    return Bar("records_per_s", 1, least=True)


def of_floor(bound):
    return Bar("records_per_s", bound, least=True, to=FLOOR)


def produce(plan):
    floor, three = (*THREE, FLOOR), plan.peers(THREE, BOTH)
    return [
        Case("Java, 100 B, 1 partition, 16 KiB, linger 0", Produce(java("", 1, 100, 1, 16384, 0)), plan.peers(floor, (*BOTH, FLOOR)), bars=(cpu(1 / 3), at_least_kafka(), of_floor(0.95)), source="1.07 µs; 592 k/s"),
        Case("Java, 100 B, 16 partitions, 64 KiB, linger 5", Produce(java("", 16, 100, 1, 65536, 5)), floor, bars=(cpu(1 / 3), at_least_kafka(), of_floor(0.95)), source="0.52 µs; 1,224 k/s"),
        Case("librdkafka, 100 B, 1 partition", Produce(librdkafka("", 1, 100, 1)), three, bars=(cpu(1 / 4),), source="0.32 µs; 2,231 k/s"),
        Case("librdkafka, 100 B, 16 partitions", Produce(librdkafka("", 16, 100, 1)), three, bars=(cpu(1 / 4),), source="0.40 µs; 2,249 k/s"),
        Case("3 librdkafka, 100 B, 16 partitions", Produce(librdkafka("", 16, 100, 3)), floor, bars=(cpu(1 / 5), Bar("records_per_s", 0.9, least=True, to=FLOOR, or_itself=5_500_000)), source="0.54 µs; 3,006 k/s"),
    ]


def compression(plan):
    source = {"none": "2.49 µs; 258 k/s", "lz4": "3.62 µs; 170 k/s", "zstd": "3.63 µs; 162 k/s", "gzip": "10.89 µs; 37 k/s"}
    # What JSON of the same size costs was no different enough for its minutes (2.4 to 3.7 µs; gzip 9.5).
    peers, bars = plan.peers((*THREE, FLOOR), BOTH), (cpu(1 / 4), at_least_kafka(), *((of_floor(0.95),) if plan.is_full else ()))
    runs = {WRITTEN: 2, FLOOR: 2}
    return [Case(f"Java, 1 kB, 6 partitions, {kind}", Produce(java("", 6, 1000, 1, 65536, 5, compression_type=kind)), peers, bars=bars, runs=runs, source=told) for kind, told in source.items()]


def consume(plan):
    records = 200_000 if plan.is_quick else 4_000_000
    peers, bars = plan.peers(THREE, BOTH), (cpu(1 / 2),)
    return [Case("consume 100 B, 16 partitions, cached", Consume(16, 100, records), peers, bars=bars, source="0.09 µs; 2,290 k/s"),
            Case("consume 100 B, 16 partitions, cold", Consume(16, 100, records, cold=True), BOTH, bars=bars)]


def one_at_a_time(plan):
    count = 300 if plan.is_quick else 4000
    bars = (Bar("p50_ms", 0.3, to=None), Bar("p99_ms", 0.7, to=None), Bar("p999_ms", 1.5, to=None), cpu(1 / 8))
    cases = [Case("one record at a time, 100 B, own client", EndToEnd(count), THREE, bars=bars, source="0.32, 0.71, 4.1 ms; 367 µs (librdkafka)")]
    if plan.is_full:
        cases.append(Case("one record at a time, 100 B, Apache's e2e-latency", EndToEnd(count // 2, client="java"), BOTH, bars=(cpu(1 / 8),), runs=THRICE, source="0, 5, 11 ms; 480 µs"))
    return cases


def fixed_rate(plan):
    seconds = 3 if plan.is_quick else 300 if plan.is_full else 8
    bars = (Bar("p999_ms", 1 / 5), Bar("max_ms", 1 / 5))
    runs = {KAFKA: 1, SYNCED: 1} if plan.is_full else THRICE
    return [Case(f"50,000 records/s of 100 B for {seconds} s, own client", Produce(own("", 16, 100, 1, rate=50_000), seconds=seconds), BOTH, bars=bars, runs=runs)]


def one_against_sixteen(plan):
    flat = Bar("records_per_s", 0.9, least=True, to=SYNCED, case="4 librdkafka, 100 B, 16 partitions")
    return [Case("4 librdkafka, 100 B, 16 partitions", Produce(librdkafka("", 16, 100, 4)), (SYNCED,)),
            Case("4 librdkafka, 100 B, 1 partition", Produce(librdkafka("", 1, 100, 4)), (SYNCED,), bars=(flat,))]


def own_client(plan):
    half = Bar("client_us_per_record", 0.5, to=SYNCED, case="librdkafka, 100 B, 16 partitions")
    return [Case("own client, 100 B, 16 partitions", Produce(own("", 16, 100, 1, batch_size=65536)), (SYNCED,), bars=(half,), source="0.62 µs (librdkafka)")]


def start_and_idle(rig, peer):
    peer.start()
    ready = peer.server.ready_after
    time.sleep(2 if rig.plan.is_full else 1)
    return {"ready_s": ready, "idle_rss_mb": sum(resident_mb(pid) for pid in peer.pids())}


def start(plan):
    bars = (Bar("ready_s", 1 / 20), Bar("idle_rss_mb", 1 / 20))
    return [Case("start to ready, fresh directory", Story(start_and_idle), plan.peers(THREE, BOTH), own_server=True, bars=bars, runs={} if plan.is_full else {KAFKA: 3}, source="2.6–4.2 s; 400 MB")]


# The table, line by line, in its own words; the bars are those of the cases.
TABLE = [
    Line("produce 100 B, Java client, 1 partition, 16 KiB batches: broker µs/record", "1.0–1.1", [("speed", "Java, 100 B, 1 partition, 16 KiB, linger 0", CPU)]),
    Line("the same, 16 partitions, 64 KiB", "0.45–0.65", [("speed", "Java, 100 B, 16 partitions, 64 KiB, linger 5", CPU)]),
    Line("librdkafka, 1 and 16 partitions", "0.32–0.40", [("speed", f"librdkafka, 100 B, {count}", CPU) for count in ("1 partition", "16 partitions")]),
    Line("3 librdkafka producers, 16 partitions: throughput; µs/record", "3.0–3.3 M/s; 0.54", [("speed", "3 librdkafka, 100 B, 16 partitions", figure) for figure in ("records_per_s", CPU)]),
    Line("1 kB with none, lz4, zstd, gzip: broker µs/record", "2.5–3.7, 2.4–3.6, 3.4, 9.5–10.9", [("speed", f"Java, 1 kB, 6 partitions, {kind}", CPU) for kind in ("none", "lz4", "zstd", "gzip")]),
    Line("Java producer throughput, every workload: against the skyline", "client-bound", [("speed", "Java, *", "records_per_s")], worst_to=FLOOR),
    Line("and against Kafka", "", [("speed", "Java, *", "records_per_s"), ("ladder", "*", "records_per_s"), ("modes", "Java, *", "records_per_s")], worst_to=KAFKA),
    Line("consume 100 B: broker µs/record, cached and cold", "0.09–0.27", [("speed", f"consume 100 B, 16 partitions, {how}", CPU) for how in ("cached", "cold")]),
    Line("one record at a time, produce to consume: p50, p99, p99.9; CPU per record", "0.32, 0.7–3.8, 4–8 ms; 370–830 µs",
         [("speed", "one record at a time, 100 B, own client", figure) for figure in ("p50_ms", "p99_ms", "p999_ms", CPU)]),
    Line("fixed 50,000 msg/s of 100 B for 5 minutes: p99.9, max", "–", [("speed", "50,000 records/s*", figure) for figure in ("p999_ms", "max_ms")]),
    Line("1 partition against 16 with four producers", "–", [("speed", "4 librdkafka, 100 B, 1 partition", "records_per_s")]),
    Line("1, 10, 100, 1,000, 5,000, 10,000 partitions: throughput", "472 k, 1,071 k, 765 k, 702 k, 72 k, –", [("partitions", "*", "records_per_s")]),
    Line("and p99.9", "18 s at 5,000", [("partitions", "*", "p999_ms")]),
    Line("own client against librdkafka, against the same broker: client µs/record", "0.62", [("speed", "own client, 100 B, 16 partitions", "client_us_per_record")]),
    Line("start to ready; idle RSS", "2.6–4.2 s; 400 MB", [("speed", "start to ready*", figure) for figure in ("ready_s", "idle_rss_mb")]),
]


def workload(plan):
    cases = [case for part in (produce, own_client, one_against_sixteen, compression, consume, one_at_a_time, fixed_rate, start) for case in part(plan)]
    if plan.is_quick:
        quick = ("Java, 100 B, 16 partitions", "librdkafka, 100 B, 16 partitions", "own client, 100 B", "consume 100 B, 16 partitions, cached", "one record", "50,000", "start")
        cases = [case for case in cases if case.name.startswith(quick)]
    return Workload(
        "speed", "Speed: what a record costs", question(__doc__), cases,
        ("records_per_s", "fetch_records_per_s", "p50_ms", "p99_ms", "p999_ms", "max_ms", CPU, "client_us_per_record", "device_bytes_per_record", "device_write_ms", "switches_per_record", "rss_mb", "ready_s", "idle_rss_mb"),
        (Chart(CPU, "Producing 100-byte records: CPU of the server per record", only=PRODUCE), Chart("records_per_s", "Producing 100-byte records: throughput", only=PRODUCE),
         Chart(CPU, "Reading 100-byte records: CPU of the server per record", only="consume 100 B"),
         Chart(CPU, "1 kB records by compression: CPU of the server per record", only="1 kB, 6"), Chart("p999_ms", "50,000 records/s of 100 B: 99.9th percentile", only="50,000"),
         Chart("p99_ms", "One record at a time: 99th percentile", only="one record")),
        note="The source column is our own baseline of Kafka 4.3.1 on a quiet machine of the same kind: server CPU per record; throughput.", needs_gb=8)
