"""The skyline in four steps: what no broker gets below on this machine, and how much of a figure is the client's.

Question: what does each step cost: answering unread; checking and writing to the page cache; a synced journal; segments behind it? Units: thousand
records a second, µs of the server's CPU per record. Held fixed: acks=all, the clients of `speed`. Left out on purpose: everything that a broker
owes beyond these steps. The bound that matters: the last step, to which `speed` compares.
"""

from rig.clients import java, librdkafka
from rig.measures import Produce
from rig.plan import FILE, FLOOR, JOURNAL, NULL, Case, Chart, Workload, question

STEPS = (NULL, FILE, JOURNAL, FLOOR)
# What our first one did: unread; page cache; synced; synced and written back (µs per record).
LOADS = [
    ("Java, 100 B, 1 partition, 16 KiB, linger 0", java("", 1, 100, 1, 16384, 0), "0.158; 0.227; 0.35; –"),
    ("Java, 100 B, 16 partitions, 64 KiB, linger 5", java("", 16, 100, 1, 65536, 5), "0.070; 0.18; 0.107; 0.153"),
    ("librdkafka, 100 B, 1 partition", librdkafka("", 1, 100, 1), "0.016; 0.080; 0.040; –"),
    ("librdkafka, 100 B, 16 partitions", librdkafka("", 16, 100, 1), "0.016; 0.090; 0.051; 0.062–0.082"),
    ("3 librdkafka, 100 B, 16 partitions", librdkafka("", 16, 100, 3), "0.024; 0.084; 0.055; 0.085"),
]


def workload(plan):
    # Neither set has room for it: `speed` has the last step.
    chosen = LOADS[-2:-1] if plan.is_quick else LOADS
    cases = [Case(name, Produce(load), STEPS, source=told) for name, load, told in chosen]
    return Workload("skyline", "The skyline", question(__doc__), cases, ("records_per_s", "p50_ms", "p99_ms", "server_us_per_record", "client_us_per_record", "switches_per_record", "device_bytes_per_record"),
                    (Chart("server_us_per_record", "The skyline: CPU of the server per record"), Chart("records_per_s", "The skyline: throughput")),
                    note="The source column is our first skyline's CPU in µs per record: unread; page cache; synced; synced and written back.", by_name=not plan.is_quick)
