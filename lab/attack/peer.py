"""A hostile peer's hand: connections, frames, and what every attack has."""

import socket
import ssl
import struct
import threading
import time

from harness.ask import crc32c, question


def connect(port, within=10, source="127.0.0.1"):
    connection = socket.create_connection(("127.0.0.1", port), within, (source, 0))
    connection.settimeout(within)
    return connection


def frame(key, version, body, is_flexible=False):
    return question(key, version, body, "attack", is_flexible=is_flexible)


def exchange(connection, request):
    """The bytes of the answer; None where the connection was closed."""
    connection.sendall(request)
    head = receive(connection, 4)
    return head and receive(connection, struct.unpack(">i", head)[0])


def shown(counts):
    """{outcome: how often} in words, the most frequent first."""
    return ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items(), key=lambda item: -item[1])) or "none"


def has_ended(connection):
    """True where the server has closed this non-blocking connection; what it sent is dropped."""
    try:
        while piece := connection.recv(1 << 16):
            pass
        return piece == b""
    except (BlockingIOError, ssl.SSLWantReadError):
        return False
    except OSError:
        return True


def unsigned(value):
    """As an unsigned varint."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def batch(record, codec=0, producer=None):
    """A batch of one record, by its header; `record` is packed by the codec. `producer`: the first batch of an idempotent one."""
    who = (-1, -1, -1) if producer is None else (producer, 0, 0)
    tail = struct.pack(">hiqqqhii", codec, 0, 1_700_000_000_000, 1_700_000_000_000, *who, 1) + record
    return struct.pack(">qiibI", 0, 4 + 1 + 4 + len(tail), -1, 2, crc32c(tail)) + tail


def receive(connection, count):
    parts, left = [], count
    while left:
        piece = connection.recv(min(left, 1 << 20))
        if not piece:
            return None
        parts.append(piece)
        left -= len(piece)
    return b"".join(parts)


class Attack:
    """One attack: `run` goes on until `over` is set or it has sent all of its requests. What it notes is shown."""

    name = what = "?"
    # Further server properties, the same for both.
    settings = {}
    # How long the attack lasts at least; how long after it the memory is read.
    seconds, settle_s = 0, 3
    # What the node may hold; whether other load on the machine excuses the producer's p99.
    memory_mib, is_excused = 1_024, True

    def __init__(self, server):
        # `fault`: what the attack itself saw that a node must not do.
        self.server, self.over, self.note, self.fault = server, threading.Event(), "", ""

    def arrange(self, directory):
        """Before the node starts: further listeners and the files that they need."""

    def stage(self):
        """With the node up, before the good producer is measured alone."""

    def good(self):
        """Where the good producer connects, and its further settings."""
        return self.server.address, []

    def run(self):
        raise NotImplementedError

    def broke(self, error, what):
        """`what` of the attack ended early. A node may close connections; any other error is the rig's, and the row shows nothing then."""
        said = f"{what} ended with {type(error).__name__}: {error}"
        self.note += f" ({said}) "
        if not isinstance(error, OSError):
            self.fault = self.fault or f"the attack itself failed: {said}"

    def in_threads(self, count, work):
        """Calls `work(number)` in so many threads, and waits for all. The first error of a thread is noted."""
        errors = []

        def guarded(number):
            try:
                work(number)
            except Exception as error:  # noqa: BLE001
                errors.append(error)
        threads = [threading.Thread(target=guarded, args=(number,), daemon=True) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            self.broke(next((error for error in errors if not isinstance(error, OSError)), errors[0]), f"{len(errors)} of {count} threads")

    def answered_after(self, attempt, within=20):
        """How long a client tries until `attempt` is true; 50 ms between two tries, as Kafka's clients."""
        started, tries = time.monotonic(), 0
        while time.monotonic() - started < within:
            tries += 1
            try:
                if attempt():
                    return f"after {time.monotonic() - started:.2f} s ({tries} tries)"
            except OSError:
                pass
            time.sleep(0.05)
        return f"not within {within} s"

    def again_and_again(self, request, times, port=None):
        """Sends one request after the other, over a new connection where one is closed."""
        answered = closed = 0
        longest = 0
        connection = None
        for _ in range(times):
            if self.over.is_set():
                break
            try:
                connection = connection or connect(port or self.server.port, 60)
                answer = exchange(connection, request)
            except OSError:
                answer = None
            if answer is None:
                closed += 1
                connection = None
                time.sleep(0.02)
            else:
                answered += 1
                longest = max(longest, len(answer))
        self.note = f"{answered} answered, {closed} closed; longest answer {longest / 2**20:.1f} MiB"
