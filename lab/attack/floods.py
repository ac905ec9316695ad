"""Slow senders, half-open connections, giant frames and floods of topic names."""

import os
import random
import select
import socket
import struct
import time
from collections import Counter

from harness.ask import text
from peer import Attack, connect, exchange, frame, has_ended, shown

TCP_REPAIR = 19
# Kafka's socket.request.max.bytes.
FRAME_BYTES = 104_857_600


class WithTls(Attack):
    def arrange(self, directory):
        self.server.open(TLS="SSL").use_tls(directory)


class SlowSenders(WithTls):
    name, what = "slow senders", "1,000 connections that send a byte every half second: half of them a Produce of 1 MB, half a TLS ClientHello"
    count, seconds = 1_000, 18

    def run(self):
        held, refused, sent = [], 0, 0
        produce = frame(0, 7, b"\0" * 1_000_000)
        hello = b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03" + os.urandom(500)
        for number in range(self.count):
            if self.over.is_set():
                break
            try:
                connection = connect(self.server.ports["TLS"] if number % 2 else self.server.port, 2)
                connection.setblocking(False)
                held.append((connection, hello if number % 2 else produce))
            except OSError:
                refused += 1
        begun, place = time.monotonic(), 0
        while not self.over.wait(0.5):
            for connection, octets in held:
                try:
                    sent += connection.send(octets[place:place + 1])
                except OSError:
                    pass
            place += 1
        ended = Counter("ClientHello" if octets is hello else "Produce" for connection, octets in held if has_ended(connection))
        self.note = f"{len(held)} made, {refused} refused; {sent} bytes sent; after {time.monotonic() - begun:.0f} s closed: {shown(ended)}"


class HalfOpen(WithTls):
    """Of five kinds. A client that vanishes sends neither FIN nor RST: the kernel's repair mode closes a socket so (for root)."""

    name, what = "half open", "1,000 connections: mute, vanished without FIN, half closed within a frame or behind a request, and half a ClientHello"
    count, seconds = 1_000, 15

    def run(self):
        held, made, refused, begun = [], Counter(), 0, time.monotonic()
        request = frame(3, 1, struct.pack(">i", -1))
        kinds = ("mute", "vanished", "half a frame, closed", "request, closed", "half a ClientHello")
        for number in range(self.count):
            if self.over.is_set():
                break
            kind = kinds[number % len(kinds)]
            try:
                connection = connect(self.server.ports["TLS"] if kind == "half a ClientHello" else self.server.port, 2)
                made[self.leave(connection, kind, request)] += 1
                if kind != "vanished":
                    connection.setblocking(False)
                    held.append((connection, kind))
            except OSError:
                refused += 1
        self.over.wait()
        ended = Counter(kind for connection, kind in held if has_ended(connection))
        self.note = f"{shown(made)}; {refused} refused; after {time.monotonic() - begun:.0f} s closed: {shown(ended)}"

    @staticmethod
    def leave(connection, kind, request):
        if kind == "vanished":
            connection.sendall(request[:7])
            try:
                connection.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
            except PermissionError:
                kind = "closed, since only root may vanish"
            connection.close()
        elif kind == "half a frame, closed":
            connection.sendall(request[:7])
            connection.shutdown(socket.SHUT_WR)
        elif kind == "request, closed":
            connection.sendall(request * 20)
            connection.shutdown(socket.SHUT_WR)
        elif kind == "half a ClientHello":
            connection.sendall(b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03" + os.urandom(200))
        return kind


class GiantFrames(Attack):
    """At the rate of a network of 1 Gbit/s. At loopback's own rate the senders take both cores of a small machine."""

    name, what = "giant frames", "frames of 100 MiB, the largest that is taken, whole over 8 connections at 1 Gbit/s together, again and again; and frames announced as 2 GiB, as one byte too large, as empty and as negative"
    sizes, lanes, seconds = (2**31 - 1, FRAME_BYTES + 1, 0, -1, -2**31), 8, 15
    pause_s = lanes * (1 << 20) / 125_000_000

    def run(self):
        outcomes, whole = Counter(), Counter()
        # Produce 7: a topic's name, then bytes of no meaning.
        head = struct.pack(">hhih", 0, 7, 1, -1) + struct.pack(">hhi", -1, -1, 30_000) + struct.pack(">i", 1) + text("good")
        piece = b"\xff" * (1 << 20)

        def work(number):
            while not self.over.is_set():
                if number < len(self.sizes):
                    outcomes[f"{self.sizes[number]:,} {self.announce(self.sizes[number])}"] += 1
                    self.over.wait(0.2)
                else:
                    whole[self.send(head, piece)] += 1
        self.in_threads(len(self.sizes) + self.lanes, work)
        self.note += f"whole: {shown(whole)}. Announced: {shown(outcomes)}"

    def announce(self, size):
        with connect(self.server.port, 3) as connection:
            try:
                connection.sendall(struct.pack(">i", size))
                connection.sendall(b"\0" * 1_000)
                return "closed" if connection.recv(1) == b"" else "answered"
            except TimeoutError:
                return "HELD"
            except OSError:
                return "closed"

    def send(self, head, piece):
        try:
            with connect(self.server.port, 20) as connection:
                connection.sendall(struct.pack(">i", FRAME_BYTES) + head)
                left = FRAME_BYTES - len(head)
                while left and not self.over.is_set():
                    connection.sendall(piece[:left])
                    left -= min(left, len(piece))
                    self.over.wait(self.pause_s)
                if left:
                    return "cut short at the end"
                return "answered" if connection.recv(1) else "closed"
        except TimeoutError:
            return "not read within 20 s"
        except OSError:
            return "closed"


class NameFlood(Attack):
    requests, names = 100, 1_000

    def run(self):
        outcomes, chosen, longest = Counter(), random.Random(1), 0
        connection, asked = connect(self.server.port, 60), 0
        for _ in range(self.requests):
            if self.over.is_set():
                break
            names = b"".join(text(f"{chosen.getrandbits(80):020x}") for _ in range(self.names))
            try:
                begun = time.monotonic()
                connection.sendall(frame(3, 4, struct.pack(">i", self.names) + names + b"\x01"))
                while not select.select([connection], [], [], 0.1)[0]:
                    if self.over.is_set():
                        break
                else:
                    answer = exchange(connection, b"")
                    longest = max(longest, time.monotonic() - begun)
                    asked += self.names if answer else 0
                    outcomes.update(self.codes(answer) if answer else ["closed"])
                    connection = connection if answer else connect(self.server.port, 60)
            except OSError as error:
                outcomes[type(error).__name__] += 1
                connection = connect(self.server.port, 60)
        answer = exchange(connect(self.server.port, 60), frame(3, 4, struct.pack(">i", -1) + b"\0"))
        # But the good one.
        created = sum(1 for _ in self.codes(answer)) - 1
        self.note = f"{asked:,} names, {shown(outcomes)}; the slowest answer in {longest:.1f} s; {created:,} topics created"

    @staticmethod
    def codes(answer):
        """Of each topic of a Metadata 4."""
        # Correlation id, throttle time, brokers: id, host, port, rack.
        at = 8
        count, at = struct.unpack_from(">i", answer, at)[0], at + 4
        for _ in range(count):
            at += 4
            at += 2 + struct.unpack_from(">h", answer, at)[0] + 4
            at += 2 + max(0, struct.unpack_from(">h", answer, at)[0])
        # Cluster id, controller.
        at += 2 + max(0, struct.unpack_from(">h", answer, at)[0]) + 4
        count, at = struct.unpack_from(">i", answer, at)[0], at + 4
        for _ in range(count):
            yield f"× error {struct.unpack_from('>h', answer, at)[0]}"
            at += 2
            at += 2 + struct.unpack_from(">h", answer, at)[0] + 1
            partitions, at = struct.unpack_from(">i", answer, at)[0], at + 4
            for _ in range(partitions):
                at += 2 + 4 + 4
                for _ in range(2):
                    at += 4 + 4 * struct.unpack_from(">i", answer, at)[0]


class NamesCreated(NameFlood):
    name, what = "names created", "Metadata of 100,000 random names, 1,000 a request, on a node that creates topics by themselves"
    settings = {"auto.create.topics.enable": "true"}


class NamesUnknown(NameFlood):
    name, what = "names unknown", "Metadata of 100,000 random names, 1,000 a request, on a node that does not"
    settings = {"auto.create.topics.enable": "false"}


FLOODS = [SlowSenders, HalfOpen, GiantFrames, NamesCreated, NamesUnknown]
