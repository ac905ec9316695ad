"""The tuning ladder of the mainframe study: 100-byte messages, one broker, one change after the other.

Question: how far do Kafka's knobs carry it, and do our defaults stand where its best setting stands? Units: thousand records a second, µs of
CPU. Held fixed: Apache's Java producer, acks=all; each rung keeps what the rungs above it changed, except where its name says otherwise.
Left out on purpose: a broker of several machines. The bound that matters: Barnabas out of the box on 16 partitions ÷ Kafka's best rung.
"""

from rig.clients import Load
from rig.measures import Produce
from rig.plan import BOTH, KAFKA, THRICE, Bar, Case, Chart, Workload, question

DIRS = {"lab.log.dirs": "4"}
IO = {"num.io.threads": "16"}
NETWORK = {**IO, "num.network.threads": "6"}
MIB_64 = 64 << 20
TOP = "num.network.threads 6, all knobs turned"


def producer(partitions, producers=1, topics=1, **settings):
    return Load("", "java", partitions, 100, producers, {"acks": "all"} | {key.replace("_", "."): value for key, value in settings.items()}, topics=topics)


def workload(plan):
    best = {"batch_size": 131072, "linger_ms": 10}
    rungs = [
        ("out of the box", producer(1), {}, "short"),
        ("4 log directories", producer(1), DIRS, "full"),
        ("2 partitions", producer(2), DIRS, "full"),
        ("4 partitions", producer(4), DIRS, "full"),
        ("16 partitions", producer(16), DIRS, "short"),
        ("2 producers, 1 topic × 16", producer(16, 2), DIRS, "full"),
        ("2 producers, 2 topics × 8", producer(8, 2, 2), DIRS, "full"),
        ("batch.size 64 KiB", producer(16, batch_size=65536), DIRS, "short"),
        ("batch.size 128 KiB", producer(16, batch_size=131072), DIRS, "full"),
        ("linger.ms 10", producer(16, **best), DIRS, "full"),
        ("num.io.threads 16", producer(16, **best), DIRS, "full", IO),
        ("buffer.memory 64 MiB", producer(16, **best, buffer_memory=MIB_64), DIRS, "full", IO),
        (TOP, producer(16, **best, buffer_memory=MIB_64), DIRS, "short", NETWORK),
        ("defaults, 16 partitions", producer(16), {}, "short"),
    ]
    if plan.is_quick:
        rungs = rungs[:1]
    cases = [Case(name, Produce(load), BOTH, settings=settings, altered=dict(*altered), bars=(Bar("records_per_s", 1, least=True),), runs=THRICE)
             for name, load, settings, least, *altered in rungs if plan.is_full or least == "short" or plan.is_quick]
    if not plan.is_quick:
        # The claim itself: nothing turned but the number of partitions, against Kafka's ladder climbed to the top.
        cases[-1].bars = (Bar("records_per_s", 1, least=True, to=KAFKA, case=TOP),)
    return Workload("ladder", "The tuning ladder", question(__doc__), cases, ("records_per_s", "p50_ms", "p99_ms", "server_us_per_record", "client_us_per_record", "switches_per_record"),
                    (Chart("records_per_s", "The tuning ladder: throughput, 100-byte records"), Chart("server_us_per_record", "The tuning ladder: CPU of the server per record")),
                    note="Three runs a rung. linger.ms out of the box is the client's default of 5, batch.size 16 KiB; each rung keeps those above it. The last rung turns no knob at all. Threads are altered while the broker runs, as it can.", needs_gb=8)
