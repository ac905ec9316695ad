"""What this bench asks of a cluster beside what the rig asks of a node: replicas by hand, who leads, elections, moves. Versions that both know."""

import random
import struct
import time
from collections import namedtuple

from rig.asks import Asks, crc32c, text

Led = namedtuple("Led", "leader replicas isr")


def varint(number):
    """A count, zigzag."""
    number, out = number << 1, bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def batch_of(records, record_bytes):
    """A batch, format 2, of random letters that no disk or wire makes smaller."""
    value, made, now = random.Random(1).randbytes(record_bytes), bytearray(), int(time.time() * 1000)
    for number in range(records):
        body = b"\0\0" + varint(number) + b"\x01" + varint(record_bytes) + value + b"\0"
        made += varint(len(body)) + body
    rest = struct.pack(">hiqqqhii", 0, records - 1, now, now, -1, -1, -1, records) + made
    return struct.pack(">qiibI", 0, 9 + len(rest), -1, 2, crc32c(rest)) + rest


class ClusterAsks(Asks):
    # CreateTopics 2

    def create(self, topics, replicas=3, settings=None):
        return self._created(topics, lambda count: struct.pack(">ihi", count, replicas, 0), settings)

    def create_assigned(self, topics, settings=None):
        """topics: {name: [[replica …] …]}"""
        return self._created(topics, lambda rows: struct.pack(">ihi", -1, -1, len(rows)) + b"".join(
            struct.pack(f">ii{len(row)}i", number, len(row), *row) for number, row in enumerate(rows)), settings)

    def _created(self, topics, shape, settings):
        """{name: error}. A request for each topic, four under way: one of Kafka's makes at most 10,000 partitions."""
        errors, waiting, pairs = {}, 0, b"".join(text(key) + text(value) for key, value in (settings or {}).items())
        for name, wanted in topics.items():
            self.send(19, 2, struct.pack(">i", 1) + text(name) + shape(wanted) + struct.pack(">i", len(settings or {})) + pairs + struct.pack(">ib", 120_000, 0))
            waiting += 1
            if waiting == 4:
                errors |= self._errors(self.receive())
                waiting -= 1
        for _ in range(waiting):
            errors |= self._errors(self.receive())
        return errors

    def _errors(self, answer):
        at, errors = 8, {}
        for _ in range(struct.unpack_from(">i", answer, 4)[0]):
            name, at = self._text(answer, at)
            error, = struct.unpack_from(">h", answer, at)
            message, at = self._text(answer, at + 2)
            errors[name] = error and f"{error} {message or ''}".strip()
        return errors

    # DeleteTopics 6

    def delete(self, names):
        named = b"".join(compact(name) + bytes(16) + b"\0" for name in names)
        answer = self.ask(20, 6, b"\0" + count(len(names)) + named + struct.pack(">i", 60_000) + b"\0")
        topics, at = uvarint(answer, 5)
        for _ in range(topics - 1):
            name, at = compact_text(answer, at)
            error, = struct.unpack_from(">h", answer, at + 16)
            message, at = compact_text(answer, at + 18)
            at += 1
            if error:
                raise RuntimeError(f"DeleteTopics: {name}: error {error} {message or ''}")

    # Metadata 1

    def described(self, names):
        """(ids of the brokers, {(topic, partition): Led}); a partition with an error that says nothing of its replicas has leader -1."""
        answer = self.ask(3, 1, struct.pack(">i", len(names)) + b"".join(map(text, names)))
        at, brokers, found = 4, [], {}
        for _ in range(struct.unpack_from(">i", answer, 0)[0]):
            brokers.append(struct.unpack_from(">i", answer, at)[0])
            _, at = self._text(answer, at + 4)
            _, at = self._text(answer, at + 4)
        topics, = struct.unpack_from(">i", answer, at + 4)
        at += 8
        for _ in range(topics):
            name, at = self._text(answer, at + 2)
            partitions, = struct.unpack_from(">i", answer, at + 1)
            at += 5
            for _ in range(partitions):
                _, number, leader = struct.unpack_from(">hii", answer, at)
                replicas, at = self._ints(answer, at + 10)
                isr, at = self._ints(answer, at)
                found[name, number] = Led(leader, replicas, isr)
        return brokers, found

    @staticmethod
    def _ints(data, at):
        count, = struct.unpack_from(">i", data, at)
        return struct.unpack_from(f">{count}i", data, at + 4), at + 4 + 4 * count

    # ElectLeaders 1, DescribeQuorum 0

    def elect_preferred(self):
        """Every partition's first replica is to lead it."""
        answer = self.ask(43, 1, struct.pack(">bii", 0, -1, 60_000))
        return struct.unpack_from(">h", answer, 4)[0]

    def controller(self):
        """The active one."""
        answer = self.ask(55, 0, b"\0" + b"\x02" + compact("__cluster_metadata") + b"\x02" + struct.pack(">i", 0) + b"\0\0\0")
        at = 1
        error, = struct.unpack_from(">h", answer, at)
        at += 2 + 1
        name_size = answer[at] - 1
        at += 1 + name_size + 1
        _, of_partition, leader = struct.unpack_from(">ihi", answer, at)
        if error or of_partition:
            raise RuntimeError(f"DescribeQuorum: error {error or of_partition}")
        return leader

    # AlterPartitionReassignments 0, ListPartitionReassignments 0

    def send_move(self, name, rows):
        """Asks that these partitions get these replicas; `moved` takes the answer."""
        parts = b"".join(struct.pack(">i", number) + count(len(row)) + struct.pack(f">{len(row)}i", *row) + b"\0" for number, row in rows.items())
        self.send(45, 0, b"\0" + struct.pack(">i", 60_000) + count(1) + compact(name) + count(len(rows)) + parts + b"\0\0")

    def moved(self):
        """The answer: nothing, or what is refused."""
        answer = self.receive()
        error, = struct.unpack_from(">h", answer, 5)
        if error:
            return f"error {error}"
        at = 7
        _, at = compact_text(answer, at)
        topics, at = uvarint(answer, at)
        for _ in range(topics - 1):
            _, at = compact_text(answer, at)
            partitions, at = uvarint(answer, at)
            for _ in range(partitions - 1):
                number, error = struct.unpack_from(">ih", answer, at)
                message, at = compact_text(answer, at + 6)
                at += 1
                if error:
                    return f"partition {number}: error {error} {message or ''}"
            at += 1
        return ""

    def is_moving(self):
        answer = self.ask(46, 0, b"\0" + struct.pack(">i", 60_000) + b"\0\0")
        error, = struct.unpack_from(">h", answer, 5)
        if error:
            raise RuntimeError(f"ListPartitionReassignments: error {error}")
        _, at = compact_text(answer, 7)
        return uvarint(answer, at)[0] > 1


def count(number):
    """The length of a compact array: an unsigned varint, one more than it is."""
    number, out = number + 1, bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def compact(word):
    return count(len(word)) + word.encode()


def uvarint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value, shift, at = value | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:
            return value, at


def compact_text(data, at):
    size, at = uvarint(data, at)
    return (data[at:at + size - 1].decode(), at + size - 1) if size > 0 else (None, at)
