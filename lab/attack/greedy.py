"""One client that takes what it can get, without any quota: over one connection, then over eight. A good producer and a small consumer go on beside it.

The client's bytes are made before, sent in large pieces and their answers dropped in large pieces (MSG_TRUNC: the kernel does not copy them), with a pause between
two rounds: it takes little of the CPU that it asks the node for.
"""

import os
import selectors
import socket
import statistics
import struct
import threading
import time

from harness.ask import data, text
from peer import Attack, batch, connect, exchange, frame, unsigned

TOPIC, PARTITIONS = "greedy", 4
PIECE_BYTES, PAUSE_S = 256 << 10, 0.001
# Length, attributes, time delta, offset delta, no key, one byte, no headers.
RECORD = b"\x0e\x00\x00\x00\x01\x02x\x00"


def produce(partition, octets):
    """Produce 7, acks=all. The answer has the same size whatever is in it."""
    body = struct.pack(">hhi", -1, -1, 30_000) + struct.pack(">i", 1) + text(TOPIC) + struct.pack(">ii", 1, partition) + data(octets)
    return frame(0, 7, body)


def fetch(topic, partition, offset, size):
    """Fetch 4 of any replica's, at once."""
    return frame(1, 4, struct.pack(">iiiibi", -1, 0, 1, size, 0, 1) + text(topic) + struct.pack(">iiqi", 1, partition, offset, size))


class SmallConsumer:
    """Reads what the good producer has sent since, a hundred times a second at most, and notes how long each answer takes."""

    def __init__(self, port, over):
        self.connection, self.over, self.took, self.errors = connect(port, 30), over, [], 0
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def work(self):
        # ListOffsets 1: the end of the log.
        answer = exchange(self.connection, frame(2, 1, struct.pack(">ii", -1, 1) + text("good") + struct.pack(">iiq", 1, 0, -1)))
        offset = struct.unpack_from(">q", answer, len(answer) - 8)[0]
        while not self.over.wait(0.01):
            begun = time.monotonic()
            try:
                answer = exchange(self.connection, fetch("good", 0, offset, 64 << 10))
            except OSError:
                answer = None
            if answer is None:
                self.errors += 1
                return
            self.took.append((begun, (time.monotonic() - begun) * 1_000))
            # Correlation id, throttle time, one topic, its name, one partition: index, error, the high watermark.
            offset = struct.unpack_from(">q", answer, 4 + 4 + 4 + 2 + len("good") + 4 + 4 + 2)[0]

    def between(self, begun, ended):
        """(median, p99) in ms of the answers to requests of this time."""
        took = sorted(each for at, each in self.took if begun <= at < ended)
        return (statistics.median(took), took[int(len(took) * 0.99)]) if took else (float("inf"), float("inf"))


class Greedy(Attack):
    # Without it, then beside it: over so many connections, s.
    alone_s, stages, stage_s = 2, (1, 8), 6
    seconds = alone_s + len(stages) * stage_s + 2
    # A small request that waits longer, and so many times longer than alone, is starved whatever else the machine does.
    consumer_p99_ms, consumer_times = 150, 10

    def stage(self):
        topic = text(TOPIC) + struct.pack(">ihii", PARTITIONS, 1, 0, 0)
        exchange(connect(self.server.port, 60), frame(19, 2, struct.pack(">i", 1) + topic + struct.pack(">i?", 30_000, False)))
        self.fill()
        # Here and not in `run`: it does not yield as the attack's threads do.
        self.consumer_over = threading.Event()
        self.consumer = SmallConsumer(self.server.port, self.consumer_over)

    def fill(self):
        """What the client asks for."""

    def pipelined(self):
        """Requests as bytes, at least PIECE_BYTES."""
        raise NotImplementedError

    def shown(self, read, lasted):
        raise NotImplementedError

    def run(self):
        begun = time.monotonic()
        self.over.wait(self.alone_s)
        spans, octets = [("alone", begun, time.monotonic())], self.pipelined()
        for count in self.stages:
            begun = time.monotonic()
            read = self.take(count, octets, begun + self.stage_s)
            ended = time.monotonic()
            spans.append((f"over {count}, {self.shown(read, ended - begun)}", begun, ended))
        # With the answer that it may still wait for.
        self.consumer_over.set()
        self.consumer.thread.join(20)
        waited = {label: self.consumer.between(begun, ended) for label, begun, ended in spans}
        _, alone = waited["alone"]
        for label, (_, p99) in waited.items():
            if label != "alone" and p99 > max(self.consumer_p99_ms, self.consumer_times * alone):
                self.fault = self.fault or f"beside a greedy client {label}, the small consumer waits {p99:.0f} ms"
        if self.consumer.errors:
            self.fault = self.fault or "the small consumer's connection was closed"
        self.note += "; ".join(f"{label}: small consumer {median:.1f} ms, p99 {p99:.1f} ms" for label, (median, p99) in waited.items())

    def take(self, count, octets, until):
        """Bytes of answers until then, over so many connections."""
        view, sink, read, places = memoryview(octets), bytearray(4 << 20), 0, {}
        with selectors.DefaultSelector() as selector:
            for _ in range(count):
                connection = connect(self.server.port, 30)
                connection.setblocking(False)
                selector.register(connection, selectors.EVENT_READ | selectors.EVENT_WRITE)
                places[connection] = 0
            while places and time.monotonic() < until and not self.over.is_set():
                for key, events in selector.select(0.1):
                    connection = key.fileobj
                    try:
                        if events & selectors.EVENT_READ:
                            size = connection.recv_into(sink, len(sink), socket.MSG_TRUNC)
                            if not size:
                                raise ConnectionResetError("closed")
                            read += size
                        if events & selectors.EVENT_WRITE:
                            place = places[connection]
                            place += connection.send(view[place:place + PIECE_BYTES])
                            places[connection] = place % len(view)
                    except BlockingIOError:
                        pass
                    except OSError as error:
                        self.fault = self.fault or f"a greedy connection was closed: {error}"
                        selector.unregister(connection)
                        del places[connection]
                        connection.close()
                time.sleep(PAUSE_S)
            for connection in places:
                connection.close()
        return read


class GreedyProduce(Greedy):
    name, what = "greedy produce", "one client pipelines Produce requests of one byte as fast as the node takes them, over 1 connection, then over 8; a small consumer beside it"

    def pipelined(self):
        requests = b"".join(produce(partition, batch(RECORD)) for partition in range(PARTITIONS))
        # Correlation id, one topic, its name, one partition: index, error, base offset and two more; throttle time.
        self.answer_bytes = 4 + 4 + 4 + 2 + len(TOPIC) + 4 + 4 + 2 + 3 * 8 + 4
        answer = exchange(connect(self.server.port, 30), produce(0, batch(RECORD)))
        code = struct.unpack_from(">h", answer, 4 + 4 + 2 + len(TOPIC) + 4 + 4)[0]
        if code or len(answer) + 4 != self.answer_bytes:
            self.fault = f"the rig's Produce is answered with error {code} in {len(answer)} bytes"
        return requests * (PIECE_BYTES // len(requests) + 1)

    def shown(self, read, lasted):
        return f"{read / self.answer_bytes / lasted:,.0f} requests/s"


class GreedyFetch(Greedy):
    name, what = "greedy fetch", "one client pipelines Fetch requests of 16 MiB each as fast as the node answers, over 1 connection, then over 8; a small consumer beside it"
    batches, batch_bytes, fetch_bytes = 32, 900_000, 16 << 20

    def fill(self):
        # One record of bytes of no meaning; the rig's checksum is slow, so the batch is made once.
        value = os.urandom(self.batch_bytes)
        octets = batch(self.record(value))
        connection = connect(self.server.port, 60)
        for number in range(self.batches * PARTITIONS):
            exchange(connection, produce(number % PARTITIONS, octets))

    @staticmethod
    def record(value):
        # Lengths are signed varints: twice the number.
        body = b"\0\0\0\x01" + unsigned(2 * len(value)) + value + b"\0"
        return unsigned(2 * len(body)) + body

    def pipelined(self):
        requests = b"".join(fetch(TOPIC, partition, 0, self.fetch_bytes) for partition in range(PARTITIONS))
        return requests * (PIECE_BYTES // len(requests) + 1)

    def shown(self, read, lasted):
        return f"{read / lasted / 2**20:,.0f} MiB/s"


class PlantedConsumer(GreedyProduce):
    name, what, must_say = "planted consumer", "the small consumer may not wait at all", "the small consumer waits"
    consumer_p99_ms, consumer_times = 0, 0


GREEDY = [GreedyProduce, GreedyFetch]
PLANTED_GREEDY = [PlantedConsumer]
