"""A hostile peer's hand: connections, frames, and what every attack has."""

import socket
import struct
import threading
import time

from harness.ask import question


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

    def __init__(self, server):
        self.server, self.over, self.note = server, threading.Event(), ""

    def run(self):
        raise NotImplementedError

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
