"""The few requests that the rig itself makes, of either broker, in versions that both know: no client library's time is measured."""

import socket
import struct
import time

from harness.ask import crc32c, question, text


def one_record(value=b"one"):
    """A batch of one record, format 2."""
    body = bytes([0, 0, 0, 1]) + bytes([len(value) * 2]) + value + bytes([0])
    record = bytes([len(body) * 2]) + body
    now = int(time.time() * 1000)
    rest = struct.pack(">hiqqqhii", 0, 0, now, now, -1, -1, -1, 1) + record
    return struct.pack(">qiibI", 0, 9 + len(rest), -1, 2, crc32c(rest)) + rest


class Asks:
    """One connection; several requests may be under way."""

    def __init__(self, port, within=60):
        self.connection = socket.create_connection(("127.0.0.1", port), within)
        self.connection.settimeout(within)
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.number = 0

    def close(self):
        self.connection.close()

    def send(self, key, version, body):
        self.number += 1
        self.connection.sendall(question(key, version, body, "bench", self.number))

    def receive(self):
        answer = self._exactly(struct.unpack(">i", self._exactly(4))[0])
        return answer[4:]

    def _exactly(self, count):
        found = bytearray()
        while len(found) < count:
            piece = self.connection.recv(min(count - len(found), 1 << 20))
            if not piece:
                raise ConnectionError("the connection was closed")
            found += piece
        return bytes(found)

    def ask(self, key, version, body):
        self.send(key, version, body)
        return self.receive()

    # CreateTopics 2, DeleteTopics 1

    def create(self, topics):
        """topics: {name: partitions}. {name: error}"""
        body = struct.pack(">i", len(topics))
        for name, partitions in topics.items():
            body += text(name) + struct.pack(">ihii", partitions, 1, 0, 0)
        answer = self.ask(19, 2, body + struct.pack(">ib", 60_000, 0))
        at, errors = 8, {}
        for _ in range(struct.unpack_from(">i", answer, 4)[0]):
            name, at = self._text(answer, at)
            errors[name], = struct.unpack_from(">h", answer, at)
            _, at = self._text(answer, at + 2)
        return errors

    def delete(self, names):
        self.ask(20, 1, struct.pack(">i", len(names)) + b"".join(map(text, names)) + struct.pack(">i", 60_000))

    # IncrementalAlterConfigs 0

    def alter(self, node, settings):
        """Settings of a running broker; what it says against it, or nothing."""
        configs = b"".join(text(key) + b"\0" + text(value) for key, value in settings.items())
        answer = self.ask(44, 0, struct.pack(">ib", 1, 4) + text(str(node)) + struct.pack(">i", len(settings)) + configs + b"\0")
        error, = struct.unpack_from(">h", answer, 8)
        return (self._text(answer, 10)[0] or f"error {error}") if error else ""

    @staticmethod
    def _text(data, at):
        size, = struct.unpack_from(">h", data, at)
        return (data[at + 2:at + 2 + size].decode(), at + 2 + size) if size >= 0 else (None, at + 2)

    # Metadata 1

    def led(self, names):
        """How many partitions of these topics have a leader and no error."""
        answer = self.ask(3, 1, struct.pack(">i", len(names)) + b"".join(map(text, names)))
        at, count = 4, 0
        for _ in range(struct.unpack_from(">i", answer, 0)[0]):
            _, at = self._text(answer, at + 4)
            _, at = self._text(answer, at + 4)
        at += 4
        topics, = struct.unpack_from(">i", answer, at)
        at += 4
        for _ in range(topics):
            _, at = self._text(answer, at + 2)
            partitions, = struct.unpack_from(">i", answer, at + 1)
            at += 5
            for _ in range(partitions):
                error, _, leader, replicas = struct.unpack_from(">hiii", answer, at)
                at += 14 + 4 * replicas
                at += 4 + 4 * struct.unpack_from(">i", answer, at)[0]
                count += error == 0 and leader >= 0
        return count

    # Produce 3, acks=all

    def produce_to_each(self, topics, batch, at_a_time=1000):
        """A batch to each partition; how many were taken."""
        taken, waiting = 0, 0
        pieces = [(name, range(first, min(first + at_a_time, count))) for name, count in topics.items() for first in range(0, count, at_a_time)]
        for name, partitions in pieces:
            body = struct.pack(">hhi", -1, -1, 60_000) + struct.pack(">i", 1) + text(name) + struct.pack(">i", len(partitions))
            body += b"".join(struct.pack(">ii", p, len(batch)) + batch for p in partitions)
            self.send(0, 3, body)
            waiting += 1
            if waiting >= 4:
                taken, waiting = taken + self._taken(self.receive()), waiting - 1
        for _ in range(waiting):
            taken += self._taken(self.receive())
        return taken

    def _taken(self, answer):
        at, count = 4, 0
        for _ in range(struct.unpack_from(">i", answer, 0)[0]):
            _, at = self._text(answer, at)
            partitions, = struct.unpack_from(">i", answer, at)
            at += 4
            for _ in range(partitions):
                _, error = struct.unpack_from(">ih", answer, at)
                at += 22
                count += error == 0
        return count
