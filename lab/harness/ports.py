"""Which port is free."""

import random
import socket

# Below those from which the system numbers outgoing connections.
PORTS = range(12_000, 32_000)
_given = set()


def free_port():
    """A port of loopback on which no process listens and which no connection takes; one process gets each once, since its node may not listen yet."""
    while True:
        port = random.choice([port for port in PORTS if port not in _given])
        _given.add(port)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
