"""Message size against throughput and cost: 10 bytes to 100 kB.

Question: what does a record cost as such, and what its bytes? Units: MB a second, µs of the server's CPU per record, ms. Held fixed: one librdkafka
producer, 16 partitions, acks=all, linger 5. Left out on purpose: compression (`speed` has it). The bound that matters: never under Kafka's.
"""

from rig.clients import librdkafka
from rig.measures import Produce
from rig.plan import BOTH, THRICE, Bar, Case, Chart, Workload, question


def workload(plan):
    # Half an hour has no room for it: `speed` has 100 bytes and 1 kB.
    sizes = (10, 1_000, 10_000, 100_000) if plan.is_full else (1_000,) if plan.is_quick else ()
    bars = (Bar("records_per_s", 1, least=True), Bar("server_us_per_record", 1 / 4))
    cases = [Case(f"librdkafka, {size:,} B, 16 partitions", Produce(librdkafka("", 16, size, 1)), BOTH, bars=bars, runs=THRICE, line="librdkafka", x=size) for size in sizes]
    lines = (("mb_per_s", "Throughput", False), ("server_us_per_record", "CPU of the server per record", True), ("p99_ms", "99th percentile", True))
    return Workload("sizes", "Message size against throughput and cost", question(__doc__), cases, ("mb_per_s", "records_per_s", "p50_ms", "p99_ms", "server_us_per_record", "client_us_per_record", "device_bytes_per_record"),
                    tuple(Chart(figure, f"{title} over the size of records", kind="lines", x_label="bytes per record", x_log=True, y_log=is_log) for figure, title, is_log in lines), needs_gb=8)
