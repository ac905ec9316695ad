"""The hotspot study: 10 producer threads, 1,000-byte messages, gzip, batches of 100 messages, 1 and 10 partitions.

Question: does one partition hold ten producers up, as the one lock of a partition's log does in Kafka? Units: thousand records a second, µs of
the server's CPU per record, ms. Held fixed: librdkafka with a client of its own for each thread, gzip, 100 messages a batch, acks=all.
Left out on purpose: other codecs (`speed` has them). The bound that matters: 1 partition ÷ 10 partitions.
"""

from rig.clients import librdkafka
from rig.measures import Produce
from rig.plan import BOTH, KAFKA, SYNCED, THREE, THRICE, Bar, Case, Chart, Workload, question
from rig.profile import Profile


def workload(plan):
    def load(partitions, kind):
        return librdkafka("", partitions, 1000, 10, compression_codec=kind, batch_num_messages=100, queue_buffering_max_messages=10_000)

    flat = Bar("records_per_s", 0.9, least=True, to=SYNCED, case="10 producers, gzip, 10 partitions")
    cpu = Bar("server_us_per_record", 1 / 4)
    cases = [Case(f"10 producers, gzip, {count} partition{'s' * (count > 1)}", Produce(load(count, "gzip")), plan.peers(THREE, BOTH),
                  bars=(cpu, flat) if count == 1 else (cpu,)) for count in ((10,) if plan.is_quick else (10, 1))]
    if plan.is_full:
        # gzip fills the cores with the clients' work: what the broker alone would do shows without.
        cases += [Case(f"10 producers, no compression, {count} partition{'s' * (count > 1)}", Produce(load(count, "none")), (KAFKA, SYNCED), bars=(cpu,), runs=THRICE) for count in (10, 1)]
    if not plan.is_quick:
        cases.append(Case("where the time goes: gzip, 1 partition", Profile(load(1, "gzip")), (KAFKA, SYNCED), runs={KAFKA: 1, SYNCED: 1}))
    return Workload("hotspot", "Ten producers on one partition and on ten", question(__doc__), cases,
                    ("records_per_s", "p50_ms", "p99_ms", "p999_ms", "server_us_per_record", "client_us_per_record", "switches_per_record", "device_bytes_per_record"),
                    (Chart("records_per_s", "Ten producers of 1,000-byte records: throughput"), Chart("server_us_per_record", "Ten producers of 1,000-byte records: CPU of the server per record")),
                    note="The source finds request handlers queueing on the lock of the one partition, and more partitions as the cure.", needs_gb=8)
