"""What lies on the nodes' disks after a clean stop: the same batches on every replica, by their own CRCs and by `kafka-dump-log`."""

import re
import struct
import subprocess

from .nodes import Failed

HEADER = struct.Struct(">qiibIhi")


def batches(directory):
    """(base, last, epoch, CRC) of every batch of a partition's directory, in order."""
    found = []
    for path in sorted(directory.glob("*.log")):
        data, at = path.read_bytes(), 0
        while at + HEADER.size <= len(data):
            base, length, epoch, magic, crc, _, delta = HEADER.unpack_from(data, at)
            if length < HEADER.size - 12 or magic != 2:
                break
            found.append((base, base + delta, epoch, crc))
            at += 12 + length
    return found


def replicas(nodes, topic):
    """{partition: {node: directory}}"""
    found = {}
    for node in nodes:
        for directory in node.data.glob(f"{topic}-*"):
            if re.fullmatch(rf"{re.escape(topic)}-\d+", directory.name):
                found.setdefault(int(directory.name.rsplit("-", 1)[1]), {})[node] = directory
    return found


def dumped(makes, directories, *flags):
    """What `kafka-dump-log` says of these partitions, {directory: lines} without paths and positions."""
    files = [path for directory in directories for path in sorted(directory.glob("*.log")) if path.stat().st_size > 0]
    said = {str(directory): [] for directory in directories}
    if not files:
        return said
    done = subprocess.run(makes.java("org.apache.kafka.tools.DumpLogSegments", *(flags or ("--deep-iteration",)), "--files", ",".join(map(str, files))),
                          capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise Failed(f"kafka-dump-log: {(done.stdout + done.stderr).strip()[-400:]}")
    current = None
    for line in done.stdout.splitlines():
        begun = re.match(r"Dumping (\S+)/[^/]+\.log", line)
        if begun:
            current = said[begun.group(1)]
        elif line.startswith(("baseOffset:", "|")) and current is not None:
            # Where a segment begins is each replica's own business.
            current.append(re.sub(r"position: \d+ ?", "", line))
        elif "isvalid: false" in line or "orrupt" in line:
            raise Failed(f"kafka-dump-log: {line[:300]}")
    return said


def compare(makes, nodes, topics, factor):
    """Every replica of these topics holds the same; what was compared."""
    partitions, count, lines = 0, 0, 0
    for topic in topics:
        for partition, places in sorted(replicas(nodes, topic).items()):
            each = {node: batches(directory) for node, directory in places.items()}
            # Where nothing was ever written ours have no directory yet.
            if len(places) != factor and any(each.values()):
                raise Failed(f"{topic}-{partition} lies on {[str(node) for node in places]}, not on {factor} nodes")
            partitions += 1
            first, *others = each
            for other in others:
                if each[other] != each[first]:
                    at = next((pair for pair in zip(each[first], each[other]) if pair[0] != pair[1]), (each[first][-1:], each[other][-1:]))
                    raise Failed(f"{topic}-{partition} differs: {first} has {len(each[first])} batches, {other} {len(each[other])}; {at[0]} and {at[1]}")
            count += len(each[first])
    texts = {}
    for node in nodes:
        mine = {(topic, partition): places[node] for topic in topics for partition, places in replicas(nodes, topic).items() if node in places}
        said = dumped(makes, list(mine.values()))
        for key, directory in mine.items():
            text = said[str(directory)]
            lines += len(text)
            known = texts.setdefault(key, (node, text))
            if known[1] != text:
                at = next((pair for pair in zip(known[1], text) if pair[0] != pair[1]), ("", ""))
                raise Failed(f"kafka-dump-log of {key[0]}-{key[1]} differs between {known[0]} and {node}: {at[0][:200]} / {at[1][:200]}")
    return f"{partitions} partitions, {count} batches equal on {factor} replicas each, {lines} lines of kafka-dump-log equal"


def compare_metadata(makes, nodes):
    """The metadata logs say the same wherever two nodes have them both: each may begin at a snapshot of its own."""
    each = {node: batches(node.data / "__cluster_metadata-0") for node in nodes}
    reference = max(nodes, key=lambda node: each[node][-1][1] - each[node][0][0])
    by_base = {batch[0]: batch for batch in each[reference]}
    compared = 0
    for node in nodes:
        for batch in each[node]:
            known = by_base.get(batch[0])
            if known and known != batch:
                raise Failed(f"the metadata logs of {reference} and {node} differ: {known} and {batch}")
            compared += bool(known)
    said = dumped(makes, [reference.data / "__cluster_metadata-0"], "--cluster-metadata-decoder")
    lines = sum(map(len, said.values()))
    return f"metadata log: {compared} batches equal on {len(nodes)} nodes, {lines} lines decoded"
