"""Attacks on what a node holds for its clients: sessions, decoded requests, producer ids, and answers that are large for their question."""

import os
import struct
import time

from harness.ask import data, text
from peer import Attack, batch, connect, exchange, frame, unsigned

CONNECTIONS = 40
# Length, attributes, time delta, offset delta, no key, one byte, no headers.
RECORD = b"\x0e\x00\x00\x00\x01\x02x\x00"


def array(entries):
    return struct.pack(">i", len(entries)) + b"".join(entries)


class FetchSessions(Attack):
    name, what = "fetch sessions", "200 new fetch sessions of 4,500 unknown partitions each (144 kB)"

    def run(self):
        partitions = [struct.pack(">iiqqi", index, -1, 0, 0, 1) for index in range(4_500)]
        topics = array([text("t" * 249) + array(partitions)])
        # Any replica's, at once, of at most 1 MiB; no session yet, its first epoch.
        head = struct.pack(">iiiibii", -1, 0, 0, 1 << 20, 0, 0, 0)
        self.again_and_again(frame(1, 11, head + topics + array([]) + text("")), 200)


class ShareSessions(Attack):
    name, what = "share sessions", "200 new share sessions of 16,000 unknown partitions each (130 kB), over one connection"

    def run(self):
        # No acknowledgements, no tags.
        partitions = b"".join(struct.pack(">i", index) + b"\x01\x00" for index in range(16_000))
        topics = b"\x02" + os.urandom(16) + unsigned(16_001) + partitions + b"\x00"
        connection, codes = connect(self.server.port, 60), {}
        for number in range(200):
            if self.over.is_set():
                break
            member = f"{number:022d}"
            head = b"\x07attack" + unsigned(len(member) + 1) + member.encode() + struct.pack(">iiiiii", 0, 0, 0, 1 << 20, 500, 500)
            answer = exchange(connection, frame(78, 1, head + topics + b"\x01\x00", is_flexible=True))
            if answer is None:
                self.note = "closed; "
                break
            # Correlation id, tags, throttle time.
            code = struct.unpack_from(">h", answer, 4 + 1 + 4)[0]
            codes[code] = codes.get(code, 0) + 1
        self.note += f"error codes {codes}"


class ManyAtOnce(Attack):
    """Requests over many connections at once; their answers are read late."""

    request, rounds = b"", 20

    def prepare(self):
        pass

    def run(self):
        self.prepare()
        held = [connect(self.server.port, 60) for _ in range(CONNECTIONS)]
        sent = 0
        for connection in held:
            connection.setblocking(False)
        for _ in range(self.rounds):
            for connection in held:
                try:
                    sent += connection.send(self.request)
                except OSError:
                    pass
            if self.over.wait(0.3):
                break
        self.over.wait()
        self.note += f"{sent / 2**20:.1f} MiB of requests taken"


class Decoded(Attack):
    name, what = "decoded", "Metadata of 0.9 MB with 100,000 unknown names, over 40 connections at once"
    request = frame(3, 4, array([text(f"x{number:06d}") for number in range(100_000)]) + b"\x00")

    def run(self):
        answered, connections = 0, []
        for _ in range(CONNECTIONS):
            connections.append(connect(self.server.port, 60))
        for connection in connections:
            connection.sendall(self.request)
        for connection in connections:
            try:
                answered += connection.recv(4) != b""
            except OSError:
                pass
        self.note = f"{answered} of {CONNECTIONS} answered"


class LogDirs(ManyAtOnce):
    name, what = "log dirs", "DescribeLogDirs of 2,000 partitions, again and again over 40 connections that read no answer"
    request = frame(35, 1, struct.pack(">i", -1)) * 16

    def prepare(self):
        topic = text("wide") + struct.pack(">ihii", 2_000, 1, 0, 0)
        exchange(connect(self.server.port, 120), frame(19, 2, array([topic]) + struct.pack(">i?", 60_000, False)))


class Groups(ManyAtOnce):
    name, what = "groups", "ListGroups of 1,000 groups with names of 10 kB, again and again over 40 connections that read no answer"
    request = frame(16, 0, b"") * 16

    def prepare(self):
        connection, codes = connect(self.server.port, 60), {}
        exchange(connection, frame(10, 0, text("attack")))
        for number in range(1_000):
            partition = struct.pack(">iq", 0, 1) + text("")
            head = text(f"{number:05d}" + "g" * 10_000) + struct.pack(">i", -1) + text("") + struct.pack(">q", -1)
            answer = exchange(connection, frame(8, 2, head + array([text("good") + array([partition])])))
            if answer is None:
                connection = connect(self.server.port, 60)
                continue
            code = struct.unpack_from(">h", answer, len(answer) - 2)[0]
            codes[code] = codes.get(code, 0) + 1
            # The offsets topic is being made.
            if code in (14, 15, 16):
                time.sleep(0.05)
        self.note = f"commits by code {codes}; "


class ProducerIds(Attack):
    name, what = "producer ids", "200,000 producer ids, one record each, over 100 partitions"

    def run(self):
        connection = connect(self.server.port, 120)
        topic = text("ids") + struct.pack(">ihii", 100, 1, 0, 0)
        exchange(connection, frame(19, 2, array([topic]) + struct.pack(">i?", 60_000, False)))
        time.sleep(2)
        made = 0
        for number in range(2_000):
            if self.over.is_set():
                break
            batches = [struct.pack(">i", index) + data(batch(RECORD, producer=1_000_000 + number * 100 + index)) for index in range(100)]
            body = struct.pack(">hhi", -1, 1, 30_000) + array([text("ids") + array(batches)])
            if exchange(connection, frame(0, 3, body)) is None:
                connection = connect(self.server.port, 60)
            else:
                made += 100
        self.note = f"{made} ids"


HELD = [FetchSessions, ShareSessions, Decoded, ProducerIds, LogDirs, Groups]
