"""Encryption on and off: what does TLS cost the broker and the client per record? Measured by lab/bench/security."""

from rig.plan import Workload


def workload(plan):
    return Workload("tls", "Encryption on and off", __doc__.splitlines()[0], [], (), skipped="make bench-security measures it "
                    "(our baseline of Kafka 4.3.1, 100 B, 1 partition: plain 999 k/s and 0.53 µs, TLS 664 k/s and 1.19 µs)")
