"""The two brokers of bench-log: Apache Kafka and Barnabas (lab/bench/rig/peers), each in directories of its own for every part."""

from pathlib import Path

from rig.machine import settle, spread  # noqa: F401
from rig.peers import PEERS


def log_bytes(data):
    """Bytes of record batches in the segments of ordinary topics."""
    return sum(path.stat().st_size for path in Path(data).glob("*/*.log") if not path.parent.name.startswith("__"))


def make(directory, options):
    """{name: maker of a Peer in a subdirectory}"""
    def maker(name):
        return lambda part: PEERS[name](Path(directory) / f"{name}-{part}")

    return {name: maker(name) for name in ("kafka", "barnabas")}
