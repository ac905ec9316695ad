"""Attacks before and around a login, and by a client that has one."""

import base64
import hashlib
import json
import os
import random
import struct
import time
from collections import Counter

from harness.ask import data, text
from harness.usage import resident_mb
from peer import Attack, connect, exchange, frame, has_ended, shown
from security.nodes import password
from tls import client

HANDSHAKE, AUTHENTICATE = 17, 36
# Kafka's sasl.server.max.receive.size.
LOGIN_FRAME_BYTES = 524_288


def begin(connection, mechanism):
    """Chooses a mechanism; False where the server closed the connection."""
    return exchange(connection, frame(HANDSHAKE, 1, text(mechanism))) is not None


def authenticate(connection, token):
    """(error code, the server's token) of SaslAuthenticate 1; None where the server closed the connection."""
    answer = exchange(connection, frame(AUTHENTICATE, 1, data(token)))
    if answer is None:
        return None
    # Correlation id, error, message, token, session lifetime.
    error, size = struct.unpack_from(">hh", answer, 4)
    at = 8 + max(0, size)
    length = struct.unpack_from(">i", answer, at)[0]
    return error, answer[at + 4:at + 4 + max(0, length)]


def plain(user, given=None):
    return b"\0" + user.encode() + b"\0" + (password(user) if given is None else given).encode()


def log_in(connection, user="alice"):
    """True once the user is logged in and a request is answered."""
    if not begin(connection, "PLAIN"):
        return False
    answer = authenticate(connection, plain(user))
    return answer is not None and answer[0] == 0 and exchange(connection, frame(18, 0, b"")) is not None


class WrongLogins(Attack):
    """Logins over as many connections at once, at full rate. Meanwhile a client with the right password logs in by PLAIN."""

    mechanism, at_once, seconds = "?", 64, 10

    def arrange(self, directory):
        self.server.open(SASL="SASL_PLAINTEXT").take_logins("SASL", directory)

    def attempt(self, connection, number):
        """What came of one login, for the count."""
        raise NotImplementedError

    def run(self):
        outcomes, right = Counter(), []

        def wrong(number):
            tries = 0
            while not self.over.is_set():
                tries += 1
                try:
                    with connect(self.server.ports["SASL"], 20) as connection:
                        outcomes[self.attempt(connection, tries * self.at_once + number) if begin(connection, self.mechanism) else "closed"] += 1
                except OSError as error:
                    outcomes[type(error).__name__] += 1
                    time.sleep(0.02)

        def good():
            while not self.over.wait(0.3):
                begun = time.monotonic()
                try:
                    with connect(self.server.ports["SASL"], 20) as connection:
                        right.append(time.monotonic() - begun if log_in(connection) else None)
                except OSError:
                    right.append(None)
        self.in_threads(self.at_once + 1, lambda number: good() if number == self.at_once else wrong(number))
        took = [each for each in right if each is not None]
        self.note += f"{shown(outcomes)}; {len(took)} of {len(right)} right logins meanwhile, the slowest in {max(took, default=0) * 1000:.0f} ms"
        if len(took) < len(right):
            self.fault = f"{len(right) - len(took)} right logins failed"


def outcome(answer):
    return "closed" if answer is None else f"× error {answer[0]}"


class PlainFlood(WrongLogins):
    name, what, mechanism = "PLAIN logins", "wrong PLAIN logins over 64 connections at once, of users that exist and that do not, some with passwords of 100 kB", "PLAIN"

    def attempt(self, connection, number):
        user = "alice" if number % 2 else f"user{number}"
        return outcome(authenticate(connection, plain(user, "x" * (100_000 if number % 8 == 0 else 10))))


class ScramFlood(WrongLogins):
    name, what, mechanism = "SCRAM logins", "wrong SCRAM-SHA-256 logins over 64 connections at once: wrong proofs of a user that exists, and users that do not", "SCRAM-SHA-256"

    def stage(self):
        iterations, salt = 4096, os.urandom(16)
        salted = hashlib.pbkdf2_hmac("sha256", b"right", salt, iterations)
        # AlterUserScramCredentials 0: no deletions; one of mechanism 1.
        entry = b"\x06alice" + b"\x01" + struct.pack(">i", iterations) + bytes([17]) + salt + bytes([33]) + salted + b"\0"
        exchange(connect(self.server.port), frame(51, 0, b"\x01" + b"\x02" + entry + b"\0", is_flexible=True))

    def attempt(self, connection, number):
        nonce = base64.b64encode(os.urandom(18)).decode()
        user = "alice" if number % 2 else f"user{number}"
        first = authenticate(connection, f"n,,n={user},r={nonce}".encode())
        if first is None or first[0]:
            return "first message " + outcome(first)
        both = dict(part.split("=", 1) for part in first[1].decode().split(","))["r"]
        proof = base64.b64encode(os.urandom(32)).decode()
        return "wrong proof " + outcome(authenticate(connection, f"c=biws,r={both},p={proof}".encode()))


class BearerFlood(WrongLogins):
    name, what, mechanism = "OAUTHBEARER logins", "garbage tokens over 64 connections at once: no token, unknown keys, no signature, 400 kB, deep JSON", "OAUTHBEARER"

    def attempt(self, connection, number):
        answer = authenticate(connection, b"n,,\x01auth=Bearer " + self.token(number) + b"\x01\x01")
        if answer and answer[0] == 0:
            # The first answer holds the error; the client's next message ends the exchange (RFC 7628).
            answer = authenticate(connection, b"\x01")
        return outcome(answer)

    @staticmethod
    def token(number):
        def part(value):
            return base64.urlsafe_b64encode(value if isinstance(value, bytes) else json.dumps(value).encode()).rstrip(b"=")
        claims = part({"sub": "alice", "aud": "kafka", "iss": "https://issuer", "iat": int(time.time()), "exp": int(time.time()) + 600})
        signature = part(os.urandom(256))
        return [
            part(os.urandom(60)),
            part({"alg": "RS256", "kid": f"unknown{number}"}) + b"." + claims + b"." + signature,
            part({"alg": "RS256", "kid": "rig"}) + b"." + claims + b"." + signature,
            part({"alg": "none"}) + b"." + claims + b".",
            part({"alg": "RS256", "kid": "rig"}) + b"." + part(b"{" + b'"a":' + b"[" * 100_000) + b"." + signature,
            part({"alg": "RS256", "kid": "rig", "x": "x" * 290_000}) + b"." + claims + b"." + signature,
            b"." * 10_000,
        ][number % 7]


class HalfLogins(Attack):
    name, what = "half logins", "1,500 connections without a login that announce the largest frame of one and send half of it; memory 30 s after"
    seconds, settle_s, count, sent = 20, 30, 1_500, 0

    def arrange(self, directory):
        self.server.open(SASL="SASL_PLAINTEXT").take_logins("SASL", directory)

    def run(self):
        held, left, refused, begun = [], {}, 0, time.monotonic()
        piece = memoryview(struct.pack(">i", LOGIN_FRAME_BYTES) + b"\0" * (LOGIN_FRAME_BYTES // 2))
        while not self.over.is_set():
            if len(held) + refused < self.count:
                try:
                    connection = connect(self.server.ports["SASL"], 2)
                    connection.setblocking(False)
                    held.append(connection)
                    left[connection] = piece
                except OSError:
                    refused += 1
            else:
                self.over.wait(0.1)
            for connection in list(left) if len(held) % 50 == 0 else held[-1:]:
                self.push(left, connection)
        after = time.monotonic() - begun
        ended = sum(has_ended(connection) for connection in held)
        memory = resident_mb(self.server.pid)
        self.note = f"{len(held)} made, {refused} refused; {self.sent / 2**20:.0f} MiB sent; after {after:.0f} s {ended} are closed and {memory:.0f} MiB held"

    def push(self, left, connection):
        rest = left.get(connection)
        if rest is None:
            return
        try:
            count = connection.send(rest)
        except BlockingIOError:
            return
        except OSError:
            del left[connection]
            return
        self.sent += count
        left[connection] = rest[count:]
        if count == len(rest):
            del left[connection]


class AclStorm(Attack):
    name, what = "ACL storm", "an administrator over 4 connections creates 200 ACLs with * patterns, lists all and deletes them, again and again; the good producer has ACLs"

    def arrange(self, directory):
        self.server.open(SASL="SASL_PLAINTEXT").take_logins("SASL", directory)
        self.server.use_acls()

    def stage(self):
        # Topic, literal; write and describe are allowed.
        self.create(connect(self.server.port), [self.entry("good", "User:alice", "*", operation) for operation in (4, 8)])

    def good(self):
        return self.server.through("SASL", "alice")

    @staticmethod
    def entry(name, principal, host, operation, permission=3):
        return struct.pack(">b", 2) + text(name) + struct.pack(">b", 3) + text(principal) + text(host) + struct.pack(">bb", operation, permission)

    @staticmethod
    def create(connection, entries):
        return exchange(connection, frame(30, 1, struct.pack(">i", len(entries)) + b"".join(entries)))

    def run(self):
        done = Counter()
        any_acl = struct.pack(">bhbhhbb", 1, -1, 1, -1, -1, 1, 1)

        def storm(number):
            connection, principal = connect(self.server.ports["SASL"], 30), f"User:storm{number}"
            log_in(connection, "admin")
            of_one = struct.pack(">bhb", 1, -1, 1) + text(principal) + struct.pack(">hbb", -1, 1, 1)
            while not self.over.is_set():
                entries = [self.entry("*", principal, f"10.{random.randrange(256)}.{index}.1", random.randrange(3, 9), random.choice((2, 3))) for index in range(200)]
                for what, answer in (("created", self.create(connection, entries)), ("listed", exchange(connection, frame(29, 1, any_acl))),
                                     ("deleted", exchange(connection, frame(31, 1, struct.pack(">i", 1) + of_one)))):
                    if answer is None:
                        done["closed"] += 1
                        return
                    done[what] += 200 if what == "created" else 1
        self.in_threads(4, storm)
        self.note += f"{done['created']} ACLs created; {done['listed']} lists, {done['deleted']} deletions, {done['closed']} closed"


class IdleAtLimit(Attack):
    """Three stages on one listener with TLS and logins: connections that shake no hands, that do not log in, that are logged in."""

    name, what = "idle at limit", "max.connections=300 is reached by idle TLS connections before and after a login; a good client comes to their listener and to the other one"
    settings, limit, seconds = {"max.connections": "300"}, 300, 45
    # Longer than the login timeout of either make.
    patience_s = 11

    def arrange(self, directory):
        self.server.open(SECURE="SASL_SSL").take_logins("SECURE", directory)
        self.server.use_tls(directory)

    def secure(self, source="127.0.0.1", within=1):
        return client(self.server.keys.authority).wrap_socket(connect(self.server.ports["SECURE"], within, source), server_hostname="127.0.0.1")

    def fill(self, make):
        held, refused = [], 0
        while len(held) + refused < self.limit and refused < 3 and not self.over.is_set():
            try:
                connection = make()
                connection.setblocking(False)
                held.append(connection)
            except OSError:
                refused += 1
        return held

    def run(self):
        def logged_in():
            connection = self.secure()
            if not log_in(connection):
                raise OSError("no login")
            return connection

        notes = []
        for label, make in (("without a handshake", lambda: connect(self.server.ports["SECURE"], 1)), ("without a login", self.secure), ("logged in", logged_in)):
            held, answers, clients = self.fill(make), {}, self.good_clients()

            def come(number):
                who, must_come, attempt = clients[number]
                answers[who] = self.answered_after(attempt, self.patience_s)
                if must_come and answers[who].startswith("not"):
                    self.fault = f"{label}: {who} was not answered"
            self.in_threads(len(clients), come)
            ended = sum(has_ended(connection) for connection in held)
            notes.append(f"{len(held)} {label}: {', '.join(f'{who} {answers.get(who)}' for who, _, _ in clients)}; {ended} of them closed by then")
            for connection in held:
                connection.close()
            if self.over.is_set():
                break
            time.sleep(0.5)
        self.note = ". ".join(notes)

    def good_clients(self):
        def login(source):
            with self.secure(source) as connection:
                return log_in(connection)

        def open_listener():
            with connect(self.server.port, 2) as connection:
                return exchange(connection, frame(18, 0, b""))
        # (who, must it come in, one try); an address may have its share and no more.
        return [("a client of another address", True, lambda: login("127.0.0.2")), ("of the same", False, lambda: login("127.0.0.1")), ("on the other listener", True, open_listener)]


LOGIN = [PlainFlood, ScramFlood, BearerFlood, HalfLogins, AclStorm, IdleAtLimit]
