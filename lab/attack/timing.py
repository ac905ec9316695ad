"""Does a refused login reveal whether the user exists: by how long the answer takes, or by what it says?

Users that exist with a wrong password, and names that no user has, in random order. A login comes from an address of its own and a name is used NAME_USES times:
the delay that grows by address and by user stays out. Compared for each answer: PLAIN's, SCRAM's to the first message and to the last. Two classes are
separable where a login of one takes longer than one of the other in a share outside SHARES, 95 % interval and half included, and the medians differ by more
than MEDIAN_US.
"""

import base64
import bisect
import os
import random
import statistics
import struct
import time
from collections import Counter, defaultdict

from harness.ask import data
from login import AUTHENTICATE, begin
from peer import Attack, connect, exchange, frame

SHARES, MEDIAN_US = (0.45, 0.55), 20
# Of each class; with fewer the interval of the share is wider than SHARES.
ATTEMPTS_MIN = 400
# Refusals of a user that cost no growing delay: ten.
NAME_USES, USERS = 9, 500
# By mechanism: its code in records, the bytes of its keys.
SCRAM = {"SCRAM-SHA-256": (1, 32), "SCRAM-SHA-512": (2, 64)}
MECHANISMS = ("PLAIN", *SCRAM)
ITERATIONS = (4096, 8192)
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def share_and_interval(first, second):
    """(share of pairs in which `second` is larger, half of its 95 % interval): Mann-Whitney's U, the interval by DeLong's variance."""
    def beaten(values, others):
        others = sorted(others)
        return [(bisect.bisect_left(others, value) + bisect.bisect_right(others, value)) / 2 / len(others) for value in values]
    of_second, of_first = beaten(second, first), beaten(first, second)
    variance = statistics.variance(of_second) / len(second) + statistics.variance(of_first) / len(first)
    return statistics.fmean(of_second), 1.96 * variance ** 0.5


def salt():
    """As kafka-configs makes it: 130 random bits in base 36, as text."""
    number, digits = random.getrandbits(130), ""
    while number:
        number, rest = divmod(number, 36)
        digits = DIGITS[rest] + digits
    return digits.encode()


def name_of(mechanism, is_known, number):
    """Of one length; a name of one mechanism is no name of another."""
    return f"{'real' if is_known else 'none'}{MECHANISMS.index(mechanism)}{number:04d}"


def answered(connection, token):
    """(error code, message, the server's token, ns until the answer) of SaslAuthenticate 1; None where the server closed the connection."""
    request = frame(AUTHENTICATE, 1, data(token))
    begun = time.perf_counter_ns()
    answer = exchange(connection, request)
    took = time.perf_counter_ns() - begun
    if answer is None:
        return None
    error, size = struct.unpack_from(">hh", answer, 4)
    at = 8 + max(0, size)
    length = struct.unpack_from(">i", answer, at)[0]
    return error, answer[8:at], answer[at + 4:at + 4 + max(0, length)], took


class LoginTiming(Attack):
    name, what = "login timing", "wrong logins by PLAIN and SCRAM of users that exist and of unknown names in random order: does time or text separate them; refusals are not held back"
    settings = {"connection.failed.authentication.delay.ms": "0"}
    seconds, lanes, settle_s = 45, 1, 3
    # Planted: by how much longer a login of a user that exists takes.
    longer_us = 0

    def __init__(self, server):
        super().__init__(server)
        # By (mechanism, step): ns of the unknown, of the known.
        self.took = defaultdict(lambda: ([], []))
        # By (mechanism, step, is known): (error, message). By (mechanism, name): what SCRAM's first answers had.
        self.said, self.challenges = defaultdict(Counter), defaultdict(set)
        self.uses, self.closed = Counter(), 0

    def arrange(self, directory):
        users = [name_of("PLAIN", True, number) for number in range(USERS)]
        self.server.open(SASL="SASL_PLAINTEXT").take_logins("SASL", directory, users)

    def stage(self):
        for mechanism, (code, size) in SCRAM.items():
            entries = b""
            for number in range(USERS):
                user, salted, random_salt = name_of(mechanism, True, number).encode(), os.urandom(size), salt()
                iterations = struct.pack(">i", ITERATIONS[number % len(ITERATIONS)])
                entries += bytes([len(user) + 1]) + user + bytes([code]) + iterations + bytes([len(random_salt) + 1]) + random_salt + bytes([size + 1]) + salted + b"\0"
            # AlterUserScramCredentials 0: no deletions; a count of entries as a varint.
            count = USERS + 1
            exchange(connect(self.server.port, 60), frame(51, 0, b"\x01" + bytes([count & 127 | 128, count >> 7]) + entries + b"\0", is_flexible=True))

    def next_name(self, mechanism, is_known):
        """The next of its class; None once all are used up."""
        used = self.uses[mechanism, is_known]
        self.uses[mechanism, is_known] += 1
        return name_of(mechanism, is_known, used % USERS) if used < NAME_USES * USERS else None

    def run(self):
        def work(_):
            while not self.over.is_set():
                mechanism, is_known = random.choice(MECHANISMS), random.random() < 0.5
                user = self.next_name(mechanism, is_known)
                if user is None:
                    self.over.wait(0.01)
                    continue
                source = f"127.{random.randrange(1, 255)}.{random.randrange(256)}.{random.randrange(1, 255)}"
                try:
                    with connect(self.server.ports["SASL"], 20, source) as connection:
                        if not begin(connection, mechanism) or not self.attempt(connection, mechanism, user, is_known):
                            self.closed += 1
                except OSError:
                    self.closed += 1
        self.in_threads(self.lanes, work)
        self.judge()

    def attempt(self, connection, mechanism, user, is_known):
        if mechanism == "PLAIN":
            return self.step(connection, mechanism, "answer", is_known, b"\0" + user.encode() + b"\0" + os.urandom(6).hex().encode())
        nonce = base64.b64encode(os.urandom(18)).decode()
        first = self.step(connection, mechanism, "first answer", is_known, f"n,,n={user},r={nonce}".encode())
        if not first or first[0]:
            return first
        parts = dict(part.split("=", 1) for part in first[2].decode().split(","))
        self.challenges[mechanism, is_known, user].add((parts["s"], parts["i"], len(parts["r"])))
        proof = base64.b64encode(os.urandom(SCRAM[mechanism][1])).decode()
        return self.step(connection, mechanism, "last answer", is_known, f"c=biws,r={parts['r']},p={proof}".encode())

    def step(self, connection, mechanism, step, is_known, token):
        answer = answered(connection, token)
        if answer:
            took = answer[3]
            if is_known and self.longer_us:
                begun = time.perf_counter_ns()
                while time.perf_counter_ns() - begun < self.longer_us * 1_000:
                    pass
                took += time.perf_counter_ns() - begun
            self.took[mechanism, step][is_known].append(took)
            self.said[mechanism, step, is_known][answer[:2]] += 1
        return answer

    def judge(self):
        notes, faults = [], []
        for mechanism in MECHANISMS:
            for step in ("first answer", "last answer") if mechanism in SCRAM else ("answer",):
                label, (unknown, known) = f"{mechanism} {step}", self.took[mechanism, step]
                if different := self.different(mechanism, step):
                    # What comes after it cannot be compared, nor can its times.
                    faults.append(f"{label}: {different}")
                    break
                if min(len(unknown), len(known)) < ATTEMPTS_MIN:
                    faults.append(f"{label}: {len(known)} and {len(unknown)} attempts are too few")
                    break
                share, half = share_and_interval(unknown, known)
                without, within = (statistics.median(values) / 1_000 for values in (unknown, known))
                notes.append(f"{label}: {len(known)} known {within:,.0f} µs, {len(unknown)} unknown {without:,.0f} µs, known later in {share:.3f} ± {half:.3f}")
                is_outside = not SHARES[0] <= share <= SHARES[1] and abs(share - 0.5) > half
                if is_outside and abs(within - without) > MEDIAN_US:
                    faults.append(f"{label}: users that exist are separable by time, {within - without:+,.0f} µs in the median, share {share:.3f}")
            if mechanism in SCRAM:
                faults += self.challenges_differ(mechanism)
        self.note += "; ".join([*notes, self.challenges_shown(), f"{self.closed} closed"])
        self.fault = self.fault or "; ".join(faults)

    def different(self, mechanism, step):
        """What unknown names are answered in this step that users that exist are not, or the other way round; empty where nothing."""
        known, unknown = (set(self.said[mechanism, step, is_known]) for is_known in (True, False))
        only = ", ".join(f"error {error} {message.decode()!r}" for error, message in sorted(known ^ unknown) if error) or "another answer"
        return f"users that exist are separable by text: one class alone gets {only}" if known != unknown else ""

    def challenges_differ(self, mechanism):
        """What separates the classes in SCRAM's first answers."""
        known, unknown = (self.of_class(mechanism, is_known) for is_known in (True, False))
        if not (known and unknown):
            return []
        faults, changing = [], sum(len(challenges) > 1 for challenges in unknown)
        if changing:
            faults.append(f"{mechanism}: salt or iterations of {changing} unknown names change")
        for what, of in self.traits:
            ours, theirs = (Counter(of(*next(iter(challenges))) for challenges in of_class) for of_class in (known, unknown))
            for value in sorted(ours.keys() | theirs.keys()):
                shares = ours[value] / len(known), theirs[value] / len(unknown)
                pooled = (ours[value] + theirs[value]) / (len(known) + len(unknown))
                # Chance does this once in 15,000.
                if abs(shares[0] - shares[1]) > 4 * (pooled * (1 - pooled) * (1 / len(known) + 1 / len(unknown))) ** 0.5:
                    faults.append(f"{mechanism}: {what} {value} in {shares[0]:.0%} of the users and in {shares[1]:.0%} of the unknown names")
        return faults

    traits = (("iterations", lambda salted, iterations, nonce: iterations), ("bytes of the salt", lambda salted, iterations, nonce: len(base64.b64decode(salted))),
              ("length of the nonce", lambda salted, iterations, nonce: nonce),
              ("salt in base 36", lambda salted, iterations, nonce: set(base64.b64decode(salted)) <= set(DIGITS.encode())))

    def of_class(self, mechanism, is_known):
        return [challenges for (of, known, _), challenges in self.challenges.items() if (of, known) == (mechanism, is_known)]

    def challenges_shown(self):
        counts = {is_known: sum(len(self.of_class(mechanism, is_known)) for mechanism in SCRAM) for is_known in (True, False)}
        return f"SCRAM's salts, iterations and nonces of {counts[True]} users and of {counts[False]} unknown names compared"


class LoginTimingHeldBack(LoginTiming):
    """The kernel's and the runtime's timers are a millisecond wide: they hide what is far below it."""

    name, what = "login timing, held back", "the same over 16 connections at once, and refusals are held back as by default (100 ms)"
    settings, seconds, lanes = {}, 60, 16


class PlantedTiming(LoginTiming):
    name, what, must_say = "planted timing", "the rig adds 100 µs to the answers for users that exist", "separable by time"
    longer_us = 100


class PlantedText(LoginTiming):
    name, what, must_say = "planted text", "the rig takes unknown names for ones that get a new salt each time", "unknown names change"
    seconds = 20

    def attempt(self, connection, mechanism, user, is_known):
        answer = super().attempt(connection, mechanism, user, is_known)
        if mechanism != "PLAIN" and not is_known:
            self.challenges[mechanism, is_known, user].add((base64.b64encode(salt()).decode(), "4096", 48))
        return answer


TIMING = [LoginTiming, LoginTimingHeldBack]
PLANTED_TIMING = [PlantedTiming, PlantedText]
