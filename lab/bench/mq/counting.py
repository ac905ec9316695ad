"""A proxy that counts what a client says to a queue manager or an AMQP broker: segments of MQ, frames of AMQP. Heartbeats count too."""

import socket
import struct
import threading

from harness.ports import free_port


class Framing:
    """Counts whole frames in a stream, however it is cut."""

    def __init__(self):
        self.rest, self.count = b"", 0

    def feed(self, piece):
        self.rest += piece
        at = 0
        while len(self.rest) - at >= 8:
            if self.rest[at:at + 4] == b"AMQP":
                length = 8
            else:
                # MQ: `TSH?`, then the length; AMQP: the length.
                length = struct.unpack_from(">I", self.rest, at + 4 if self.rest[at:at + 3] == b"TSH" else at)[0]
            if length < 8:
                raise ValueError(f"a frame of {length} bytes")
            if len(self.rest) - at < length:
                break
            self.count += 1
            at += length
        self.rest = self.rest[at:]


class Proxy:
    """Listens on `port` and connects to `target`; `count` is what clients have sent."""

    def __init__(self, target):
        self.target, self.port, self.framings, self.sockets = target, free_port(), [], []
        self.listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self.accept, daemon=True).start()

    @property
    def count(self):
        return sum(framing.count for framing in self.framings)

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.target))
            self.sockets += [client, server]
            for one in (client, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            framing = Framing()
            self.framings.append(framing)
            threading.Thread(target=self.pump, args=(client, server, framing), daemon=True).start()
            threading.Thread(target=self.pump, args=(server, client, None), daemon=True).start()

    @staticmethod
    def pump(source, target, framing):
        try:
            while piece := source.recv(1 << 16):
                if framing:
                    framing.feed(piece)
                target.sendall(piece)
        except OSError:
            pass
        for one in (source, target):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.listener.close()
        for one in self.sockets:
            one.close()
