"""Requests that no client library sends: settings of groups, a member that never answers, a transaction that nobody will end.

Old, inflexible versions which Barnabas and Apache Kafka 4 both take; one connection for each request. It knows one broker, on loopback.
"""

import struct
import time

from harness.ask import ask, crc32c, data, text

INCREMENTAL_ALTER_CONFIGS, JOIN_GROUP, INIT_PRODUCER_ID, PRODUCE = 44, 11, 22, 0
GROUP = 32
# The coordinator is on its way: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, CONCURRENT_TRANSACTIONS.
NOT_YET = (14, 15, 16, 51)


class Refused(Exception):
    """An error code of Kafka's that was not asked for."""


def configure_group(port, group, settings):
    entries = b"".join(text(name) + b"\0" + text(str(value)) for name, value in settings.items())
    body = struct.pack(">ib", 1, GROUP) + text(group) + struct.pack(">i", len(settings)) + entries + b"\0"
    answer = ask(port, INCREMENTAL_ALTER_CONFIGS, 0, body)
    code, = struct.unpack_from(">h", answer, 8)
    if code:
        raise Refused(f"settings of {group}: error {code}")


def join_and_be_silent(port, group, topic, session_ms=300_000):
    """A classic member that joins, is made the leader and never hands out partitions: the group stays in CompletingRebalance."""
    subscription = struct.pack(">hi", 0, 1) + text(topic) + struct.pack(">i", -1)
    body = text(group) + struct.pack(">ii", session_ms, session_ms) + text("") + text("consumer") + struct.pack(">i", 1) + text("range") + data(subscription)
    for _ in range(100):
        answer = ask(port, JOIN_GROUP, 3, body)
        code, = struct.unpack_from(">h", answer, 4)
        if code == 0:
            return
        if code not in NOT_YET:
            raise Refused(f"joining {group}: error {code}")
        time.sleep(0.1)
    raise Refused(f"joining {group}: no coordinator")


def producer_id(port, transactional_id, timeout_ms=60_000):
    """(producer id, epoch) as InitProducerId 1 gives them."""
    for _ in range(100):
        answer = ask(port, INIT_PRODUCER_ID, 1, text(transactional_id) + struct.pack(">i", timeout_ms))
        code, producer, epoch = struct.unpack_from(">hqh", answer, 4)
        if code == 0:
            return producer, epoch
        if code not in NOT_YET:
            raise Refused(f"producer id for {transactional_id}: error {code}")
        time.sleep(0.1)
    raise Refused(f"producer id for {transactional_id}: no coordinator")


def write_beside_the_coordinator(port, transactional_id, topic, producer, epoch, value, timestamp):
    """One record of a transaction that the coordinator has not heard of: where partitions are not verified, it hangs. The error code."""
    batch = transactional_batch(producer, epoch, value, timestamp)
    body = text(transactional_id) + struct.pack(">hi", -1, 30_000) + struct.pack(">i", 1) + text(topic) + struct.pack(">ii", 1, 0) + data(batch)
    answer = ask(port, PRODUCE, 7, body)
    code, = struct.unpack_from(">h", answer, 4 + 2 + len(topic) + 4 + 4)
    return code


def transactional_batch(producer, epoch, value, timestamp):
    record = b"\0" + varint(0) + varint(0) + varint(-1) + varint(len(value)) + value + varint(0)
    record = varint(len(record)) + record
    attributes = 0x10
    tail = struct.pack(">hiqqqhii", attributes, 0, timestamp, timestamp, producer, epoch, 0, 1) + record
    return struct.pack(">qiibI", 0, 4 + 1 + 4 + len(tail), -1, 2, crc32c(tail)) + tail


def varint(number):
    number = (number << 1) ^ (number >> 63)
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
