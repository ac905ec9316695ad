"""Partitions against throughput and latency: 1 to 10,000 partitions of one topic.

Question: where is the cliff? The source has it past 1,000 partitions. Units: thousand records a second, ms. Held fixed: 100-byte records, one
producer that goes through the partitions (Java: sticky, 16 KiB batches, linger 5; librdkafka: sticky), acks=all. From 1,000 partitions up the topic is made
once and written by all runs. Left out on purpose: consumers. The bound that matters: flat within a tenth from 10 partitions up, p99.9 at most 200 ms.
"""

from dataclasses import replace

from rig.clients import java, librdkafka
from rig.measures import Produce
from rig.plan import BOTH, KAFKA, SYNCED, THRICE, Bar, Case, Chart, Workload, question

SOURCE = {1: "472 k/s; 0.74 s", 10: "1,071 k/s; 0.16 s", 100: "765 k/s; 0.55 s", 1_000: "702 k/s; 1.5 s", 5_000: "72 k/s; 17.8 s"}
COUNTS = (1, 10, 100, 1_000, 5_000, 10_000)


def case_of(client, count, load):
    bars = ()
    if count >= 10:
        flat = [Bar("records_per_s", 0.9, least=True, to=SYNCED, case=f"{client}, 10 partitions")] if count > 10 else []
        bars = (Bar("p999_ms", 200, to=None), *flat)
    # Kafka makes 100 to 400 partitions a second, refuses 10,000 in one request, and has files for 20,000 in all.
    runs = {KAFKA: 2} if count > 2_000 else {}
    return Case(f"{client}, {count:,} partition{'s' * (count > 1)}", Produce(load(count), topic=f"many-{count}" if count >= 1000 else ""), (SYNCED,) if count > 9_999 else BOTH,
                bars=bars, runs=runs if client == "librdkafka" else {**THRICE, **runs}, line=client, x=count, source=SOURCE.get(count, "") if client == "Java" else "")


def workload(plan):
    cases = []
    for count in (10, 100) if plan.is_quick else COUNTS:
        cases.append(case_of("librdkafka", count, lambda count: librdkafka("", count, 100, 1)))
    for count in (10, 5_000) if plan.is_full else ():
        cases.append(case_of("Java", count, lambda count: replace(java("", count, 100, 1, 16384, 5), first_rate=100_000 if count > 1000 else 0)))
    charts = [Chart(figure, f"{title} over the number of partitions, {client}", kind="lines", x_label="partitions", x_log=True, y_log=figure != "records_per_s", only=f"^{client}, ")
              for client in ("librdkafka", "Java") for figure, title in (("records_per_s", "Throughput"), ("p999_ms", "99.9th percentile"), ("server_us_per_record", "CPU of the server per record"))]
    return Workload("partitions", "Partitions against throughput and latency", question(__doc__), cases,
                    ("records_per_s", "p50_ms", "p99_ms", "p999_ms", "server_us_per_record", "rss_mb"), tuple(charts),
                    note="The source column is our own baseline of Kafka 4.3.1 with the Java client: throughput; p99.9. The study itself breaks past 1,000 partitions.", needs_gb=8, alone=True)
