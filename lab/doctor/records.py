"""Records and transactions that no client library makes: a record dated as the caller wants, a transaction that stays open."""

import struct
import time

from compat.raw import varint
from harness.ask import ask, crc32c, data, text

PRODUCE, FIND_COORDINATOR, INIT_PRODUCER_ID, ADD_PARTITIONS = 0, 10, 22, 24


TRANSACTIONAL = 0x10


def dated_batch(value, timestamp, keys=(None,), producer=None):
    """A record of `value` for each key. `producer`: (id, epoch) of a transaction's first batch."""
    records = b""
    for place, key in enumerate(keys):
        key = varint(-1) if key is None else varint(len(key)) + key
        record = b"\0" + varint(0) + varint(place) + key + varint(len(value)) + value + varint(0)
        records += varint(len(record)) + record
    attributes, (number, epoch, sequence) = (TRANSACTIONAL, (*producer, 0)) if producer else (0, (-1, -1, -1))
    tail = struct.pack(">hiqqqhii", attributes, len(keys) - 1, timestamp, timestamp, number, epoch, sequence, len(keys)) + records
    return struct.pack(">qiibI", 0, 4 + 1 + 4 + len(tail), -1, 2, crc32c(tail)) + tail


def produce(port, topic, batch, partition=0, acks=-1, transactional_id=None, client="doctor-test"):
    """The answer's error code for one batch."""
    name = struct.pack(">h", -1) if transactional_id is None else text(transactional_id)
    body = name + struct.pack(">hi", acks, 30_000) + struct.pack(">i", 1) + text(topic) + struct.pack(">ii", 1, partition) + data(batch)
    return struct.unpack_from(">h", ask(port, PRODUCE, 7, body, client=client), 4 + 2 + len(topic) + 4 + 4)[0]


def write(ports, topic, age_s, count=1):
    """`count` records, dated `age_s` seconds ago, into partition 0, at whichever broker leads it."""
    batch = dated_batch(b"x" * 100, int((time.time() - age_s) * 1000))
    body = struct.pack(">hhi", -1, -1, 30_000) + struct.pack(">i", 1) + text(topic) + struct.pack(">ii", 1, 0) + data(batch)
    for _ in range(count):
        for _ in range(50):
            codes = [struct.unpack_from(">h", ask(port, PRODUCE, 7, body, client="doctor-test"), 4 + 2 + len(topic) + 4 + 4)[0] for port in ports]
            if 0 in codes:
                break
            time.sleep(0.1)
        else:
            raise RuntimeError(f"no broker takes a record for {topic}: errors {codes}")
        # Every leader took it: only one of them can.
        if codes.count(0) != 1:
            raise RuntimeError(f"{codes.count(0)} brokers took the record for {topic}")


def open_transaction(ports, transactional_id, topic):
    """A transaction with one partition that its producer leaves open: (producer id, epoch)."""
    codes = []
    for _ in range(50):
        for port in ports:
            # This makes the coordinators' topic.
            ask(port, FIND_COORDINATOR, 1, text(transactional_id) + b"\1", client="doctor-test")
            answer = ask(port, INIT_PRODUCER_ID, 1, text(transactional_id) + struct.pack(">i", 600_000), client="doctor-test")
            code, producer, epoch = struct.unpack_from(">hqh", answer, 4)
            if code == 0:
                body = text(transactional_id) + struct.pack(">qh", producer, epoch) + struct.pack(">i", 1) + text(topic) + struct.pack(">ii", 1, 0)
                answer = ask(port, ADD_PARTITIONS, 0, body, client="doctor-test")
                code, = struct.unpack_from(">h", answer, 4 + 4 + 2 + len(topic) + 4 + 4)
                if code == 0:
                    return producer, epoch
            codes.append(code)
        time.sleep(0.2)
    raise RuntimeError(f"no broker begins the transaction {transactional_id}: errors {codes[-3:]}")
