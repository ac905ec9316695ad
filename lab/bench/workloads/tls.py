"""Encryption on and off: what does TLS cost the broker and the client per record? Waits for a TLS listener; see `skipped`."""

from rig.plan import Workload


def workload(plan):
    return Workload("tls", "Encryption on and off", __doc__.splitlines()[0], [], (), skipped="Barnabas has no TLS listener yet; the workload runs once it has "
                    "(our baseline of Kafka 4.3.1, 100 B, 1 partition: plain 999 k/s and 0.53 µs, TLS 664 k/s and 1.19 µs)")
