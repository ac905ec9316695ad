"""Flame graphs: who calls whom in Barnabas under the loads that cost most.

Question: what of a load's CPU is the kernel's, the journal's, a connection's? Units: samples. Held fixed: a release build, DWARF stacks (perf).
Left out on purpose: Kafka (its stacks need another build of its virtual machine; `hotspot` has its functions by own time), and figures: sampling costs.
"""

from rig.clients import java, librdkafka, own
from rig.plan import SYNCED, Case, Workload, question
from rig.profile import Flame

LOADS = [
    ("Java, 100 B, 1 partition, 16 KiB", java("", 1, 100, 1, 16384, 0)),
    ("3 librdkafka, 100 B, 16 partitions", librdkafka("", 16, 100, 3)),
    ("10 producers, gzip, 1 partition", librdkafka("", 1, 1000, 10, compression_codec="gzip", batch_num_messages=100, queue_buffering_max_messages=10_000)),
    ("50,000 records a second", own("", 16, 100, 1, rate=50_000)),
]


def workload(plan):
    cases = [Case(name, Flame(load, seconds=3), (SYNCED,), runs={SYNCED: 1}) for name, load in LOADS[:1 if plan.is_quick else None]]
    return Workload("flames", "Flame graphs", question(__doc__), cases, ("samples",), needs_gb=4, by_name=not plan.is_full)
