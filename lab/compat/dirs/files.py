"""The files of log directories, read without either broker: which batches stand in which partition.

Formats: docs/format/segments.md. Only whole batches of format 2 are expected; anything else is a failure here.
"""

import hashlib
import re
import socket
import struct
from collections import namedtuple
from pathlib import Path

Batch = namedtuple("Batch", "base last epoch producer sequence transactional control digest start path")
PARTITION = re.compile(r"^(.+)-(\d+)$")


def partitions(directories):
    """{name: its directory} of all log directories; one name twice is a failure."""
    found = {}
    for directory in directories:
        for path in sorted(Path(directory).iterdir()):
            if path.is_dir() and PARTITION.match(path.name) and path.name != "__cluster_metadata-0":
                if path.name in found:
                    raise ValueError(f"{path.name} lies in {found[path.name].parent.name} and in {directory}")
                found[path.name] = path
    return found


def batches(directory):
    """All batches of a partition in order."""
    found = []
    for path in sorted(directory.glob("*.log")):
        data = path.read_bytes()
        at = 0
        while at < len(data):
            base, length, epoch, magic = struct.unpack_from(">qiib", data, at)
            if length < 49 or at + 12 + length > len(data):
                # Preallocated or torn tails have no place in a directory that was stopped or recovered.
                raise ValueError(f"{path}: no batch at byte {at} of {len(data)}")
            if magic != 2:
                raise ValueError(f"{path}: format {magic} at byte {at}")
            attributes, delta, _, _, producer, _, sequence = struct.unpack_from(">hiqqqhi", data, at + 21)
            digest = hashlib.sha256(data[at:at + 12 + length]).hexdigest()[:16]
            found.append(Batch(base, base + delta, epoch, producer, sequence, bool(attributes & 16), bool(attributes & 32), digest, at, path))
            at += 12 + length
    return found


def all_batches(directories):
    return {name: batches(path) for name, path in partitions(directories).items()}


def as_sent(batch):
    """The batch's bytes as its producer sent them: offset 0, no leader epoch; neither is part of the checksum."""
    with open(batch.path, "rb") as file:
        file.seek(batch.start)
        length = struct.unpack(">i", file.read(12)[8:])[0]
        rest = file.read(length)
        return struct.pack(">qii", 0, length, -1) + rest[4:]


def produce_again(port, topic, partition, records, within=10):
    """Sends a batch as it stands in a file once more (Produce 3, acks=all). (error code, base offset) of the answer."""
    def text(word):
        return struct.pack(">h", len(word)) + word.encode()

    body = struct.pack(">hhi", 0, 3, 1) + text("again") + struct.pack(">hhi", -1, -1, 10_000)
    body += struct.pack(">i", 1) + text(topic) + struct.pack(">ii", 1, partition) + struct.pack(">i", len(records)) + records
    with socket.create_connection(("127.0.0.1", port), within) as connection:
        connection.settimeout(within)
        connection.sendall(struct.pack(">i", len(body)) + body)
        answer = b""
        while len(answer) < 4 or len(answer) < 4 + struct.unpack(">i", answer[:4])[0]:
            piece = connection.recv(65536)
            if not piece:
                raise OSError("the connection was closed")
            answer += piece
    at = 4 + 4 + 4 + 2 + len(topic) + 4
    _, error, base = struct.unpack_from(">ihq", answer, at)
    return error, base
