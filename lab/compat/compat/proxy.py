"""A TCP proxy that loses acknowledgements on purpose.

It stands between a client and the listener whose advertised address is the proxy's. Every n-th
Produce request is handed to the server whole; when the server's answer arrives, it is thrown away
and both connections are cut. The client cannot know that its records were written: it must send
them again, and the server must not write them twice (KIP-98).
"""

import socket
import struct
import threading

PRODUCE = 0


class CuttingProxy:
    """`cut_every`: the n-th Produce request of all connections together loses its answer."""

    def __init__(self, port, target, cut_every=4, cuts_most=12):
        self.target = target
        self.cut_every, self.cuts_most = cut_every, cuts_most
        self.produced = self.cuts = 0
        self.lock = threading.Lock()
        self.open = set()
        self.listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        _shut(self.listener)
        for connection in list(self.open):
            _shut(connection)

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.target), 5)
            except OSError:
                return
            self.open.update((client, server))
            doomed = set()
            threading.Thread(target=self._requests, args=(client, server, doomed), daemon=True).start()
            threading.Thread(target=self._responses, args=(client, server, doomed), daemon=True).start()

    def _requests(self, client, server, doomed):
        try:
            while frame := _frame(client):
                key, _, correlation = struct.unpack(">hhi", frame[4:12])
                if key == PRODUCE:
                    with self.lock:
                        self.produced += 1
                        if self.produced % self.cut_every == 0 and self.cuts < self.cuts_most:
                            self.cuts += 1
                            doomed.add(correlation)
                server.sendall(frame)
        except OSError:
            pass
        finally:
            _shut(client), _shut(server)

    def _responses(self, client, server, doomed):
        try:
            while frame := _frame(server):
                if struct.unpack(">i", frame[4:8])[0] in doomed:
                    return
                client.sendall(frame)
        except OSError:
            pass
        finally:
            _shut(client), _shut(server)


def _frame(connection):
    head = _exactly(connection, 4)
    if head is None:
        return None
    body = _exactly(connection, struct.unpack(">i", head)[0])
    return None if body is None else head + body


def _exactly(connection, count):
    pieces = bytearray()
    while len(pieces) < count:
        piece = connection.recv(min(1 << 20, count - len(pieces)))
        if not piece:
            return None
        pieces += piece
    return bytes(pieces)


def _shut(connection):
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    connection.close()
