"""Kerberos tokens as no client makes them: expired, of another time, played twice. A ticket is forged with the service's key from its keytab.

Encryption type 20 (RFC 8009), without mutual authentication: the acceptor's first answer is its offer (RFC 4752). `Forger.ask` says what a server
made of a token: `ok` where a request is answered after the login, `58: text`, or `closed`.
"""

import hashlib
import hmac
import os
import socket
import struct
import subprocess
import time
from dataclasses import dataclass, field

ENCTYPE, MAC_BYTES = 20, 24
OID = bytes.fromhex("06092a864886f712010202")
HANDSHAKE, AUTHENTICATE, VERSIONS = 17, 36, 18


def element(tag, content):
    size = len(content)
    length = bytes([size]) if size < 128 else (lambda b: bytes([0x80 | len(b)]) + b)(size.to_bytes((size.bit_length() + 7) // 8))
    return bytes([tag]) + length + content


def context(number, content):
    return element(0xA0 | number, content)


def integer(value):
    return element(2, value.to_bytes(max(1, value.bit_length() // 8 + 1), signed=True))


def octets(content):
    return element(4, content)


def text(value):
    return element(0x1B, value.encode())


def moment(seconds):
    return element(0x18, time.strftime("%Y%m%d%H%M%SZ", time.gmtime(seconds)).encode())


def sequence(*parts):
    return element(0x30, b"".join(parts))


def bits(word):
    return element(3, b"\0" + struct.pack(">I", word))


def name(components):
    return sequence(context(0, integer(1)), context(1, sequence(*map(text, components))))


def derived(key, usage, purpose):
    size = 32 if purpose == 0xAA else 24
    return hmac.digest(key, struct.pack(">IIBBI", 1, usage, purpose, 0, size * 8), hashlib.sha384)[:size]


def encrypt(key, usage, plain):
    text = os.urandom(16) + plain
    padded = text + bytes(-len(text) % 16)
    # CBC by openssl, then the last two blocks change places: ciphertext stealing.
    command = ["openssl", "enc", "-aes-256-cbc", "-nopad", "-K", derived(key, usage, 0xAA).hex(), "-iv", "00" * 16]
    made = subprocess.run(command, input=padded, capture_output=True, check=True).stdout
    made = (made[:-32] + made[-16:] + made[-32:-16])[:len(text)]
    return made + hmac.digest(derived(key, usage, 0x55), bytes(16) + made, hashlib.sha384)[:MAC_BYTES]


def keys(path):
    """{principal: key of type 20} of a keytab."""
    found, data, at = {}, path.read_bytes(), 2
    while at < len(data):
        size = struct.unpack_from(">i", data, at)[0]
        at += 4
        if size > 0:
            place, parts = at + 2, []
            for _ in range(struct.unpack_from(">H", data, at)[0] + 1):
                length = struct.unpack_from(">H", data, place)[0]
                parts.append(data[place + 2:place + 2 + length].decode())
                place += 2 + length
            enctype, length = struct.unpack_from(">HH", data, place + 9)
            if enctype == ENCTYPE:
                found["/".join(parts[1:]) + "@" + parts[0]] = data[place + 13:place + 13 + length]
        at += abs(size)
    return found


@dataclass
class Token:
    """One login: what each test changes of it."""

    key: bytes
    client: tuple = ("alice",)
    realm: str = "EXAMPLE.COM"
    service: tuple = ("kafka", "localhost")
    said_client: tuple = None
    starts_s: int = None
    ends_s: int = 600
    off_s: int = 0
    flags: int = 0
    checksum: bool = True
    session: bytes = field(default_factory=lambda: os.urandom(32))

    def bytes(self):
        now = int(time.time())
        key = lambda tag, value: context(tag, sequence(context(0, integer(ENCTYPE)), context(1, octets(value))))  # noqa: E731
        sealed = lambda value: sequence(context(0, integer(ENCTYPE)), context(2, octets(value)))  # noqa: E731
        part = [context(0, bits(self.flags)), key(1, self.session), context(2, text(self.realm)), context(3, name(self.client)),
                context(4, sequence(context(0, integer(0)), context(1, octets(b"")))), context(5, moment(now - 7200))]
        if self.starts_s is not None:
            part.append(context(6, moment(now + self.starts_s)))
        part = element(0x63, sequence(*part, context(7, moment(now + self.ends_s))))
        ticket = element(0x61, sequence(context(0, integer(5)), context(1, text(self.realm)), context(2, name(self.service)), context(3, sealed(encrypt(self.key, 2, part)))))
        said = [context(0, integer(5)), context(1, text(self.realm)), context(2, name(self.said_client or self.client))]
        if self.checksum:
            said.append(context(3, sequence(context(0, integer(0x8003)), context(1, octets(struct.pack("<I", 16) + bytes(16) + struct.pack("<I", 0))))))
        said += [context(4, integer(int.from_bytes(os.urandom(2)))), context(5, moment(now + self.off_s)), context(7, integer(0))]
        said = element(0x62, sequence(*said))
        request = sequence(context(0, integer(5)), context(1, integer(14)), context(2, bits(0)), context(3, ticket), context(4, sealed(encrypt(self.session, 11, said))))
        return element(0x60, OID + b"\x01\x00" + element(0x6E, request))

    def choice(self, data):
        """The last token: signed with the session's key."""
        header = lambda size: struct.pack(">2sBBHHQ", b"\x05\x04", 0, 0xFF, size, 0, 0)  # noqa: E731
        checksum = hmac.digest(derived(self.session, 24, 0x99), data + header(0), hashlib.sha384)[:MAC_BYTES]
        return header(MAC_BYTES) + data + checksum


class Closed(Exception):
    pass


def _read(sock, count):
    found = b""
    while len(found) < count:
        piece = sock.recv(count - len(found))
        if not piece:
            raise Closed
        found += piece
    return found


def exchange(sock, frame):
    sock.sendall(struct.pack(">i", len(frame)) + frame)
    return _read(sock, struct.unpack(">i", _read(sock, 4))[0])


def request(api, version, body):
    return struct.pack(">hhih", api, version, 7, -1) + body


def authenticate(sock, token):
    """What SaslAuthenticate v1 answers: (error, text, token)."""
    answer = exchange(sock, request(AUTHENTICATE, 1, struct.pack(">i", len(token)) + token))
    error, size = struct.unpack_from(">hh", answer, 4)
    at = 8 + max(0, size)
    length = struct.unpack_from(">i", answer, at)[0]
    return error, answer[8:at].decode(), answer[at + 4:at + 4 + length]


def ask(port, first, last=None, is_framed=True):
    """What a server makes of these tokens. `last` is sent when the first is answered."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=20) as sock:
            exchange(sock, request(HANDSHAKE, int(is_framed), struct.pack(">h", 6) + b"GSSAPI"))
            for token in (first, last):
                if token is None:
                    continue
                if not is_framed:
                    if token is first:
                        exchange(sock, token)
                    else:
                        # Not answered, by either server.
                        sock.sendall(struct.pack(">i", len(token)) + token)
                    continue
                error, said, _ = authenticate(sock, token)
                if error:
                    return f"{error}: {said}"
            answer = exchange(sock, request(VERSIONS, 0, b""))
            return "ok" if struct.unpack_from(">h", answer, 4)[0] == 0 else "an error after the login"
    except (Closed, ConnectionError):
        return "closed"
    except TimeoutError:
        return "no answer"


NO_LAYER = b"\x01\x00\x00\x00"


def play(port, key, foreign):
    """{label: what came of it}"""
    results = {}

    def attempt(label, token, data=NO_LAYER, is_framed=True):
        results[label] = ask(port, token.bytes(), token.choice(data), is_framed)

    attempt("right ticket", Token(key))
    attempt("right ticket, SaslHandshake v0", Token(key), is_framed=False)
    attempt("right ticket, another authorization id is ignored", Token(key), NO_LAYER + b"bob")
    attempt("right ticket, of another service with this key", Token(key, service=("other", "elsewhere")))
    attempt("right ticket, ended within the clock skew", Token(key, ends_s=-120))
    attempt("right ticket, clock two minutes ahead", Token(key, off_s=120))
    attempt("expired ticket", Token(key, ends_s=-900))
    attempt("ticket that is not valid yet", Token(key, starts_s=900, ends_s=1800))
    attempt("clock a quarter of an hour behind", Token(key, off_s=-900))
    attempt("clock a quarter of an hour ahead", Token(key, off_s=900))
    attempt("ticket of another key", Token(foreign))
    attempt("ticket of another client than the authenticator", Token(key, said_client=("bob",)))
    attempt("authenticator without a checksum", Token(key, checksum=False))
    attempt("principal without a rule", Token(key, client=("carol",)))
    attempt("principal without a rule, SaslHandshake v0", Token(key, client=("carol",)), is_framed=False)
    attempt("principal of three components", Token(key, client=("a", "b", "c")))
    attempt("principal of another realm", Token(key, realm="OTHER.COM"))
    attempt("security layer asked for", Token(key), b"\x02\x00\x10\x00")
    token = Token(key)
    results["choice that another key has signed"] = ask(port, token.bytes(), Token(key).choice(NO_LAYER))
    token = Token(key)
    first = token.bytes()
    ask(port, first, token.choice(NO_LAYER))
    results["token that is played again"] = ask(port, first, token.choice(NO_LAYER))
    results["token that is played again, SaslHandshake v0"] = ask(port, first, token.choice(NO_LAYER), False)
    results["no token of Kerberos"] = ask(port, b"nonsense")
    results["token cut short"] = ask(port, Token(key).bytes()[:-9])
    return results
