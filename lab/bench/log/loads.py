"""bench-log's loads: what Apache's producer-perf-test and librdkafka (lab/bench/rig/clients.py) are told."""

from rig.clients import Clients, Load, java, librdkafka, loader  # noqa: F401

LOADS = [
    java("Java, 1 producer, 100 B, 1 partition, 16 KiB, linger 0", 1, 100, 1, 16384, 0, 0.35),
    java("Java, 1 producer, 100 B, 16 partitions, 16 KiB, linger 0", 16, 100, 1, 16384, 0, 0.19),
    java("Java, 1 producer, 100 B, 16 partitions, 64 KiB, linger 5", 16, 100, 1, 65536, 5, 0.153),
    java("Java, 1 producer, 100 B, 1,000 partitions, 16 KiB, linger 5", 1000, 100, 1, 16384, 5),
    java("Java, 3 producers, 100 B, 16 partitions, 64 KiB, linger 5", 16, 100, 3, 65536, 5),
    java("Java, 1 producer, 1 kB, 16 partitions, 64 KiB, linger 5", 16, 1000, 1, 65536, 5),
    librdkafka("librdkafka, 1 producer, 100 B, 1 partition", 1, 100, 1, 0.040),
    librdkafka("librdkafka, 1 producer, 100 B, 16 partitions", 16, 100, 1, 0.082),
    librdkafka("librdkafka, 3 producers, 100 B, 16 partitions", 16, 100, 3, 0.085),
    librdkafka("librdkafka, 1 producer, 100 B, 1,000 partitions", 1000, 100, 1),
    librdkafka("librdkafka, 3 producers, 100 B, 1,000 partitions, keyed", 1000, 100, 3, spread=1000),
    librdkafka("librdkafka, 1 producer, 1 kB, 1 partition", 1, 1000, 1),
    librdkafka("librdkafka, 3 producers, 1 kB, 16 partitions", 16, 1000, 3),
    librdkafka("librdkafka, 3 producers, 1 kB, 1,000 partitions", 1000, 1000, 3),
    librdkafka("librdkafka, 1 producer, 100 B, 16 partitions, 100,000/s", 16, 100, 1, rate=100_000),
]
QUICK = ("Java, 1 producer, 100 B, 16 partitions, 64 KiB, linger 5", "librdkafka, 3 producers, 100 B, 16 partitions",
         "librdkafka, 1 producer, 100 B, 1,000 partitions", "librdkafka, 3 producers, 1 kB, 16 partitions")
