"""Cost per message at a fixed 3,000 messages per second of 1 KB, and what happens at 10,000.

Question: what does a message cost where there is little to do? Units: µs of the server's CPU per record, ms from the intended send time.
Held fixed: the rate (open loop, own client), 1,000 bytes, 10 partitions, acks=all, linger 0. Left out on purpose: consumers.
"""

from rig.clients import own
from rig.measures import Produce
from rig.plan import BOTH, THRICE, Bar, Case, Chart, Workload, question


def workload(plan):
    rates = (3_000,) if plan.is_quick else (3_000, 10_000) if not plan.is_full else (3_000, 10_000, 30_000)
    seconds = 2 if plan.is_quick else 4
    bars = (Bar("server_us_per_record", 1 / 3), Bar("p99_ms", 1))
    cases = [Case(f"{rate:,} records/s of 1 KB", Produce(own("", 10, 1000, 1, rate=rate, linger_ms=0), seconds=seconds), BOTH, bars=bars, line="1 KB records", x=rate, runs={} if rate < 30_000 else THRICE,
                  source="the source's load: 3,000 messages/s of 1 KB" if rate == 3_000 else "") for rate in rates]
    return Workload("cost", "Cost per message at a fixed rate", question(__doc__), cases,
                    ("records_per_s", "p50_ms", "p99_ms", "p999_ms", "max_ms", "server_us_per_record", "switches_per_record", "device_bytes_per_record", "device_write_ms", "rss_mb"),
                    (Chart("server_us_per_record", "CPU of the server per record at a fixed rate", kind="lines", x_label="records per second", x_log=True),
                     Chart("p999_ms", "99.9th percentile at a fixed rate", kind="lines", x_label="records per second", x_log=True, y_log=True)),
                    note="Latency counts from when a record was meant to be sent.", needs_gb=3)
