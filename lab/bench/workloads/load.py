"""What a record costs as a function of the load: from about a hundredth of what the machine can do up to all of it.

Question: does a steady, moderate load pay more for a record than full speed does, and by how much on either side? Units: µs of the server's CPU per record.
Held fixed: two librdkafka producers, linger 5 ms, 10 partitions, acks=all, so that each producer sends a request of one batch every 5 ms whatever the rate. Left out on purpose: consumers, latency from the
intended send time (`cost`, `speed`). The bound that matters: a third of Kafka's at each rate.
"""

from rig.clients import librdkafka
from rig.measures import Produce
from rig.plan import BOTH, Bar, Case, Chart, Workload, question

PRODUCERS, PARTITIONS = 2, 10
# Records a second of both producers together; 0: as many as go.
KILOBYTES = (3_000, 10_000, 30_000, 60_000, 120_000, 0)
SMALL = (5_000, 50_000, 200_000, 800_000, 0)


def case_of(line, record_bytes, rate, seconds):
    name = f"{rate:,} records/s of {line}" if rate else f"as fast as it goes, {line}"
    return Case(name, Produce(librdkafka("", PARTITIONS, record_bytes, PRODUCERS, rate=rate), seconds=seconds), BOTH, bars=(Bar("server_us_per_record", 1 / 3),), line=line, x=rate or None,
                source={"30,000 records/s of 1 kB": "4.13 µs", "50,000 records/s of 100 B": "2.65 µs"}.get(name, ""))


def workload(plan):
    seconds = 2 if plan.is_quick else 6
    kilobytes = KILOBYTES if plan.is_full else (30_000,) if plan.is_quick else (3_000, 30_000, 0)
    small = SMALL if plan.is_full else () if plan.is_quick else (50_000,)
    cases = [case_of("1 kB", 1000, rate, seconds) for rate in kilobytes] + [case_of("100 B", 100, rate, seconds) for rate in small]
    charts = tuple(Chart("server_us_per_record", f"CPU of the server per record over the load, {line}", kind="lines", x_label="records per second", x_log=True, y_log=True, x_of="records_per_s", only=f"{line}$")
                   for line in ("1 kB", "100 B"))
    return Workload("load", "CPU per record as a function of load", question(__doc__), cases,
                    ("records_per_s", "server_us_per_record", "switches_per_record", "device_bytes_per_record", "device_write_ms", "p50_ms", "p99_ms"), charts,
                    note="The rightmost point of a line is what the producers can send at most.", needs_gb=6)
