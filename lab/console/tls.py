"""The console with TLS: in a node, by the keys of a listener with the name `console`, and in a process of its own."""

import ssl
import socket
from pathlib import Path

from security.tls import Authority

from .ask import HOST, ask, raw
from .nodes import OwnProcess, WithConsole


class WithTls(WithConsole):
    def __init__(self, directory, binary, pair):
        keys = {"type": "PEM", "location": pair.store}
        own = {f"listener.name.console.ssl.keystore.{name}": value for name, value in keys.items()}
        super().__init__(directory, binary, {"console.security.protocol": "SSL", **own})
        self.authority = pair.authority


def check(table, directory, binary):
    authority = Authority(Path(directory) / "tls", "authority")
    pair = authority.issue("console")
    node = WithTls(Path(directory) / "with-tls", binary, pair).start()
    answers(table, node.console_port, pair, "in a node")
    config = Path(directory) / "tls" / "console.properties"
    config.write_text(f"ssl.keystore.type=PEM\nssl.keystore.location={pair.store}\n")
    own = OwnProcess(directory, binary, node.address, words=["--tls-config", str(config)])
    own.authority = pair.authority
    own.start()
    answers(table, own.port, pair, "own process")
    before = shown(own.port, pair), shown(node.console_port, pair)
    authority.issue("console")
    node.wait_until(lambda: shown(own.port, pair) != before[0] and shown(node.console_port, pair) != before[1], 20, every=0.2)
    table.row("a new certificate is used", True)
    own.stop()
    node.stop()
    return node


def answers(table, port, pair, where):
    told = ask(port, "GET", "/v3/clusters", authority=pair.authority)
    table.answered(f"TLS, {where}", told, 200, lambda document: document["metadata"]["self"].startswith("https://"))
    plain = raw(port, b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n", within=3)
    table.row(f"TLS, {where}: no answer without it", b"HTTP/" not in plain, plain[:80])
    # One that does not shake hands holds up no other.
    with socket.create_connection((HOST, port)) as silent:
        silent.sendall(b"\x16")
        table.answered(f"TLS, {where}: beside a client that is silent", ask(port, "GET", "/v3/clusters", authority=pair.authority), 200)
    try:
        ask(port, "GET", "/livez", authority=None, is_tls=True)
        table.row(f"TLS, {where}: a client that does not trust it", False, "it was answered")
    except ssl.SSLError:
        table.row(f"TLS, {where}: a client that does not trust it", True)


def shown(port, pair):
    """The certificate that new connections get."""
    context = ssl.create_default_context(cafile=pair.authority)
    with socket.create_connection((HOST, port), timeout=10) as tcp, context.wrap_socket(tcp, server_hostname=HOST) as tls:
        return tls.getpeercert(binary_form=True)
