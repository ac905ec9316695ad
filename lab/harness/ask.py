"""A few requests as bytes, in old versions that Barnabas and Apache Kafka both take: no client library stands between."""

import socket
import struct


def text(word):
    return struct.pack(">h", len(word.encode())) + word.encode()


def data(octets):
    return struct.pack(">i", len(octets)) + octets


def crc32c(octets, table=[]):
    if not table:
        for number in range(256):
            for _ in range(8):
                number = number >> 1 ^ 0x82F63B78 * (number & 1)
            table.append(number)
    value = 0xFFFFFFFF
    for octet in octets:
        value = value >> 8 ^ table[(value ^ octet) & 0xFF]
    return value ^ 0xFFFFFFFF


def question(key, version, body, client="harness", number=1, is_flexible=False):
    """A request's frame, with header version 1 (2, `is_flexible`)."""
    return data(struct.pack(">hhi", key, version, number) + text(client) + (b"\0" if is_flexible else b"") + body)


def ask(port, key, version, body, within=30, host="127.0.0.1", **header):
    """The answer behind its correlation id, over a connection of its own."""
    with socket.create_connection((host, port), within) as connection:
        connection.settimeout(within)
        connection.sendall(question(key, version, body, **header))
        with connection.makefile("rb") as answers:
            return answers.read(struct.unpack(">i", answers.read(4))[0])[4:]


def metadata_answers(port, timeout=0.5, host="127.0.0.1"):
    """True when a Metadata request (version 1, no topic) is answered with at least one broker."""
    try:
        return struct.unpack_from(">i", ask(port, 3, 1, struct.pack(">i", 0), timeout, host))[0] > 0
    except (OSError, struct.error):
        return False


def quorum_leader(port, timeout=1.0):
    """(leader, epoch) of the metadata quorum, if the controller on this port leads it (DescribeQuorum 0)."""
    topic = b"__cluster_metadata"
    body = bytes([2, len(topic) + 1]) + topic + b"\2" + struct.pack(">i", 0) + b"\0\0\0"
    try:
        answer = ask(port, 55, 0, body, timeout, is_flexible=True)
        # Tags, error, one topic, its name, one partition: index, error, leader, epoch.
        _, error, leader, epoch = struct.unpack_from(">ihii", answer, 1 + 2 + 1 + 1 + len(topic) + 1)
        return (leader, epoch) if error == 0 and leader >= 0 else None
    except (OSError, struct.error):
        return None


def accepts(port, timeout=1.0):
    """True when a connection is accepted."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout).close()
        return True
    except OSError:
        return False
