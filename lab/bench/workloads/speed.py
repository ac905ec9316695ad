"""The table of what Barnabas is held to: produce, compress, consume, one at a time, at a fixed rate, own client, start.

Question: what does a synced record cost beside Apache Kafka's unsynced one, row by row? Units: thousand records a second, ms, µs of the
server's CPU per record. Held fixed: acks=all, one node, loopback, the same client for all peers. Left out on purpose: replication, TLS.
"""

import time

from rig import machine
from rig.clients import java, librdkafka, own
from rig.measures import Consume, EndToEnd, Produce, Story
from rig.plan import BOTH, FLOOR, KAFKA, SYNCED, THREE, Bar, Case, Chart, Workload, question

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
        Case("3 librdkafka, 100 B, 16 partitions", Produce(librdkafka("", 16, 100, 3)), floor, bars=(cpu(1 / 5), of_floor(0.9)), source="0.54 µs; 3,006 k/s"),
    ]


def compression(plan):
    source = {"none": "2.49 µs; 258 k/s", "lz4": "3.62 µs; 170 k/s", "zstd": "3.63 µs; 162 k/s", "gzip": "10.89 µs; 37 k/s"}
    cases = [Case(f"Java, 1 kB, 6 partitions, {kind}", Produce(java("", 6, 1000, 1, 65536, 5, compression_type=kind)), BOTH, bars=(cpu(1 / 4), at_least_kafka()), source=told)
             for kind, told in source.items()]
    if plan.is_full:
        json = {"none": "3.74 µs; 213 k/s", "lz4": "2.42 µs; 267 k/s", "zstd": "3.39 µs; 135 k/s", "gzip": "9.46 µs; 19 k/s"}
        for kind, told in json.items():
            load = java("", 6, 1000, 1, 65536, 5, compression_type=kind)
            load.payload = "json"
            cases.append(Case(f"Java, 1 kB of JSON, 6 partitions, {kind}", Produce(load), BOTH, bars=(cpu(1 / 4), at_least_kafka()), source=told))
    return cases


def consume(plan):
    records = 200_000 if plan.is_quick else 5_000_000 if plan.is_full else 3_000_000
    bars = (cpu(1 / 2),)
    cases = [Case("consume 100 B, 16 partitions, cached", Consume(16, 100, records), BOTH, bars=bars, source="0.09 µs; 2,290 k/s"),
             Case("consume 100 B, 16 partitions, cold", Consume(16, 100, records, cold=True), BOTH, bars=bars)]
    if plan.is_full:
        cases += [Case("librdkafka, consume 100 B, 1 partition", Consume(1, 100, records, client="librdkafka"), BOTH, bars=bars, source="0.19–0.27 µs; 2,240 k/s"),
                  Case("librdkafka, consume 100 B, 16 partitions", Consume(16, 100, records, client="librdkafka"), BOTH, bars=bars, source="0.11 µs; 2,336 k/s"),
                  Case("consume 100 B, 1 partition, cached", Consume(1, 100, records), BOTH, bars=bars, source="0.11 µs; 2,093 k/s"),
                  Case("own client, consume 100 B, 16 partitions", Consume(16, 100, records, client="barnabas"), BOTH, bars=bars)]
    return cases


def one_at_a_time(plan):
    count = 300 if plan.is_quick else 5000 if plan.is_full else 3000
    bars = (Bar("p50_ms", 0.3, to=None), Bar("p99_ms", 0.7, to=None), Bar("p999_ms", 1.5, to=None), cpu(1 / 8))
    cases = [Case("one record at a time, 100 B, own client", EndToEnd(count), THREE, bars=bars, source="0.32, 0.71, 4.1 ms; 367 µs (librdkafka)")]
    if plan.is_full:
        cases.append(Case("one record at a time, 100 B, Apache's e2e-latency", EndToEnd(count, client="java"), THREE, bars=(cpu(1 / 8),), source="0, 5, 11 ms; 480 µs"))
    return cases


def fixed_rate(plan):
    seconds = 3 if plan.is_quick else 300 if plan.is_full else 8
    bars = (Bar("p999_ms", 1 / 5), Bar("max_ms", 1 / 5))
    runs = {KAFKA: 2, SYNCED: 2} if plan.is_full else {KAFKA: 3, SYNCED: 3}
    return [Case(f"50,000 records/s of 100 B for {seconds} s, own client", Produce(own("", 16, 100, 1, rate=50_000), seconds=seconds), BOTH, bars=bars, runs=runs)]


def one_against_sixteen(plan):
    flat = Bar("records_per_s", 0.9, least=True, to=SYNCED, case="4 librdkafka, 100 B, 16 partitions")
    return [Case("4 librdkafka, 100 B, 16 partitions", Produce(librdkafka("", 16, 100, 4)), plan.peers(BOTH, (SYNCED,))),
            Case("4 librdkafka, 100 B, 1 partition", Produce(librdkafka("", 1, 100, 4)), plan.peers(BOTH, (SYNCED,)), bars=(flat,))]


def own_client(plan):
    half = Bar("client_us_per_record", 0.5, to=SYNCED, case="librdkafka, 100 B, 16 partitions")
    return [Case("own client, 100 B, 16 partitions", Produce(own("", 16, 100, 1, batch_size=65536)), plan.peers(BOTH, (SYNCED,)), bars=(half,), source="0.62 µs (librdkafka)")]


def start_and_idle(rig, peer):
    peer.start()
    ready = peer.server.ready_after
    time.sleep(5 if rig.plan.is_full else 1)
    return {"ready_s": ready, "idle_rss_mb": sum(machine.resident_mb(pid) for pid in peer.pids())}


def start(plan):
    bars = (Bar("ready_s", 1 / 20), Bar("idle_rss_mb", 1 / 20))
    return [Case("start to ready, fresh directory", Story(start_and_idle), THREE if plan.is_full else BOTH, own_server=True, bars=bars, runs={} if plan.is_full else {KAFKA: 3}, source="2.6–4.2 s; 400 MB")]


def workload(plan):
    cases = [case for part in (produce, own_client, one_against_sixteen, compression, consume, one_at_a_time, fixed_rate, start) for case in part(plan)]
    if plan.is_quick:
        quick = ("Java, 100 B, 16 partitions", "librdkafka, 100 B, 16 partitions", "own client, 100 B", "consume 100 B, 16 partitions, cached", "one record", "50,000", "start")
        cases = [case for case in cases if case.name.startswith(quick)]
    return Workload(
        "speed", "Speed: what a record costs", question(__doc__), cases,
        ("records_per_s", "fetch_records_per_s", "p50_ms", "p99_ms", "p999_ms", "max_ms", CPU, "client_us_per_record", "device_bytes_per_record", "switches_per_record", "rss_mb", "ready_s", "idle_rss_mb"),
        (Chart(CPU, "Producing 100-byte records: CPU of the server per record", only=PRODUCE), Chart("records_per_s", "Producing 100-byte records: throughput", only=PRODUCE),
         Chart(CPU, "Reading 100-byte records: CPU of the server per record", only="consume 100 B"),
         Chart(CPU, "1 kB records by compression: CPU of the server per record", only="1 kB, 6"), Chart("p999_ms", "50,000 records/s of 100 B: 99.9th percentile", only="50,000"),
         Chart("p99_ms", "One record at a time: 99th percentile", only="one record")),
        note="The source column is our own baseline of Kafka 4.3.1 on a quiet machine of the same kind: server CPU per record; throughput.", needs_gb=8)
