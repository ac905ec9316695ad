"""The rows of the table: what protection costs on both brokers, and the bar of each.

TLS, ACLs and quotas: what do they cost a broker, and do they keep what they promise? Held fixed: one node, loopback, the same client on both sides, TLS 1.3,
certificates of ECDSA P-256 where RSA is not named, the authorizer on. Within a run both sides of a ratio are taken one after the other, in turns. Left out on purpose: logins (make compat-security has
them), encryption between brokers, TLS 1.2.
"""

import time
from dataclasses import replace

from harness.usage import resident_mb
from rig.clients import librdkafka, own
from rig.machine import Sampled, settle
from rig.measures import topic_name, warm
from rig.plan import BOTH, Bar, Case, Workload, question

from .drive import heap_kb
from .nodes import GUARDED, Through, login, tls

ACLS = 10_000
QUOTA = 2_000_000
# figure: (what tables call it, unit of plots, scale, digits), as rig/report.py has them.
FIGURES = {
    "plain_records_per_s": ("plain, k/s", "thousand records per second", 0.001, 0),
    "kept": ("TLS ÷ plain, rate", "share", 1, 2),
    "plain_us_per_record": ("plain: server CPU, µs/record", "µs of CPU per record", 1, 3),
    "cpu_ratio": ("TLS ÷ plain, server CPU", "ratio", 1, 2),
    "per_core_s": ("handshakes/s of a core", "handshakes per second of CPU", 1, 0),
    "resumed_pct": ("of them resumed, %", "per cent", 1, 0),
    "handshakes_per_s": ("handshakes/s", "handshakes per second", 1, 0),
    "kib_each": ("RSS, KiB/connection", "KiB", 1, 1),
    "heap_kib_each": ("live heap, KiB/connection", "KiB", 1, 1),
    "acl_ns": ("a decision, ns", "nanoseconds", 1, 1),
    "request_us": ("small request: server CPU, µs", "µs of CPU", 1, 1),
    "super_request_us": ("the same of a super user, µs", "µs of CPU", 1, 1),
    "acl_share_pct": ("decision ÷ small request, %", "per cent", 1, 2),
    "quota_rate_mb": ("rate under the quota, MB/s", "MB per second", 1, 3),
    "quota_error_pct": ("error of the rate, %", "per cent", 1, 1),
    "alone_p99_ms": ("p99 alone, ms", "milliseconds", 1, 2),
    "quota_p99_ms": ("p99 beside it, ms", "milliseconds", 1, 2),
    "free_p99_ms": ("p99 beside it without the quota, ms", "milliseconds", 1, 2),
    "neighbour_ratio": ("p99 beside it ÷ alone", "ratio", 1, 2),
    "storm_p99_ms": ("p99 in the storm, ms", "milliseconds", 1, 2),
    "storm_ratio": ("p99 in the storm ÷ alone", "ratio", 1, 2),
    "storm_s": ("the storm took, s", "seconds", 1, 1),
}


def in_turn(number, legs):
    """The legs of a run, the other way round in every second one: what drifts hits both."""
    return legs if int(str(number).split("-")[0]) % 2 == 0 else legs[::-1]


def mixed(told, legs):
    """What the machine did in all legs of a run."""
    return {**told, "other_load": max(leg["other_load"] for leg in legs), "kernel_load": max(leg["kernel_load"] for leg in legs)}


# After that a producer is connected and has had its first answers.
ESTABLISHED_S = 2


def load_of(name, record_bytes, producers, settings, partitions=1, rate=0, **more):
    load = librdkafka(name, partitions, record_bytes, producers, rate=rate, **more)
    return replace(load, settings={**load.settings, **settings})


def measured(rig, view, load, topic, seconds, beside=(), begin=None):
    """A load's figures, and what the server used meanwhile; `beside`: other clients of the same run. `begin` starts one more of them once the load is under way."""
    settle()
    used = Sampled(view.pids())
    running = rig.clients.start(view, load, topic, seconds)
    try:
        if begin:
            time.sleep(ESTABLISHED_S)
            beside = [*beside, begin()]
        used.watch([*running, *beside])
        records, told = rig.clients.results(view, load, running, 180 + seconds)
    finally:
        used.end()
    return {**told, "records": records, **used.between(*used.stretch, records)}


class Row:
    """A measure of the rig (rig/measures.py). `lasts`: seconds of a leg; `few`: in the quick form."""

    lasts, few, legs = 4, 1, 2
    # Of the server.
    settings = {}

    def __init__(self, drivers, keys, quick):
        self.drivers, self.keys, self.quick = drivers, keys, quick
        self.seconds = self.few if quick else self.lasts

    def takes(self, plan, peer):
        return 10, self.legs * (self.seconds + 2)

    def prepare(self, rig, peer, case):
        warm(rig, peer)
        self.run(rig, peer, case, "0-first")

    def on(self, peer, topic, work, partitions=1):
        """What `work` finds on a topic of its own."""
        peer.create({topic: partitions})
        try:
            return work()
        finally:
            peer.delete([topic])

    def finish(self, rig, peer, case):
        pass


def compared(plain, encrypted):
    return mixed({"plain_records_per_s": plain["records_per_s"], "records_per_s": encrypted["records_per_s"], "kept": encrypted["records_per_s"] / plain["records_per_s"],
                  "plain_us_per_record": plain["server_us_per_record"], "server_us_per_record": encrypted["server_us_per_record"],
                  "cpu_ratio": encrypted["server_us_per_record"] / plain["server_us_per_record"] if plain["server_us_per_record"] else float("nan")}, (plain, encrypted))


class Produce(Row):
    def __init__(self, *all, record_bytes):
        super().__init__(*all)
        self.record_bytes = record_bytes

    def run(self, rig, peer, case, number):
        found = {}
        for listener in in_turn(number, (None, "EC")):
            topic = f"{topic_name(case, number)}-{listener or 'plain'}"
            load = load_of("produce", self.record_bytes, 2, tls(self.keys) if listener else {}, partitions=4)
            found[listener] = self.on(peer, topic, lambda: measured(rig, Through(peer, listener), load, topic, self.seconds), 4)
        return compared(found[None], found["EC"])


class Consume(Row):
    def __init__(self, *all, record_bytes, records):
        super().__init__(*all)
        self.record_bytes, self.records = record_bytes, 20_000 if self.quick else records

    def prepare(self, rig, peer, case):
        warm(rig, peer)
        topic = topic_name(case, "r")
        peer.create({topic: 4})
        rig.clients.rates["fill", peer.name] = self.records
        rig.clients.run(peer, own("fill", 4, self.record_bytes, 2), topic, 1)
        self.run(rig, peer, case, "0-first")

    def run(self, rig, peer, case, number):
        found = {}
        for listener in in_turn(number, (None, "EC")):
            settings = [f"{key}={value}" for key, value in tls(self.keys).items()] if listener else []
            found[listener] = rig.clients.consume(Through(peer, listener), topic_name(case, "r"), self.records, "librdkafka", 4, settings)
        return compared(found[None], found["EC"])

    def finish(self, rig, peer, case):
        peer.delete([topic_name(case, "r")])


class Handshakes(Row):
    lasts, legs = 5, 1

    def __init__(self, *all, kind, listener="EC"):
        super().__init__(*all)
        self.kind, self.listener = kind, listener

    def prepare(self, rig, peer, case):
        self.drive(peer, 10 if peer.compiles and not self.quick else 1)

    def drive(self, peer, seconds):
        address = Through(peer, self.listener).server.address
        return self.drivers.measured(peer, "handshakes", address, self.keys.authority, self.kind, 4, seconds)

    def run(self, rig, peer, case, number):
        told, used = self.drive(peer, self.seconds)
        if peer.name == "barnabas" and self.kind == "resumed" and told["resumed"] < told["handshakes"] * 0.9:
            raise RuntimeError(f"{peer.server.label} resumes {told['resumed']} of {told['handshakes']} sessions")
        return {**told, **used, "per_core_s": 1e6 / used["server_us_per_record"], "resumed_pct": 100 * told["resumed"] / told["handshakes"]}


class Held(Row):
    """A server of its own. What a first two hundred connections cost, once, is not counted."""

    first = 200

    def __init__(self, *all, count):
        super().__init__(*all)
        self.count = count

    def takes(self, plan, peer):
        return 0, 5 + self.count / 400

    def hold(self, peer, count, look):
        process = self.drivers.begin("hold", Through(peer, "EC").server.address, self.keys.authority, count)
        try:
            if not process.stdout.readline():
                raise RuntimeError(f"{peer.server.label}: {process.stderr.read().strip()[-300:]}")
            return look()
        finally:
            process.kill()
            process.wait()

    def run(self, rig, peer, case, number):
        peer.start()
        live = heap_kb if peer.compiles else lambda _: None
        self.hold(peer, min(self.first, self.count), lambda: None)
        time.sleep(1)
        heap, before = live(peer.pid), resident_mb(peer.pid)
        after, heap_after = self.hold(peer, self.count, lambda: (resident_mb(peer.pid), live(peer.pid)))
        told = {"kib_each": (after - before) * 1024 / self.count, "rss_mb": round(after, 1)}
        return told if heap is None else {**told, "heap_kib_each": (heap_after - heap) / self.count}


class Decisions(Row):
    """The decision by itself, and a request of one record on a broker with that many ACLs: of a user whom they concern, and of a super user."""

    def __init__(self, *all):
        super().__init__(*all)
        self.created = set()

    def prepare(self, rig, peer, case):
        warm(rig, peer)
        if peer.pid not in self.created:
            self.drivers.ask("create", peer.server.address, self.drivers.set, f"User:{GUARDED}", "w-")
            self.created.add(peer.pid)
        self.run(rig, peer, case, "0-first")

    def run(self, rig, peer, case, number):
        found = {}
        for user in in_turn(number, ("admin", GUARDED)):
            topic = f"{topic_name(case, number)}-{user}"
            load = load_of("small", 100, 4, login(user), batch_num_messages=1, linger_ms=0, queue_buffering_max_messages=1000)
            found[user] = self.on(peer, topic, lambda: measured(rig, Through(peer, "SASL"), load, topic, self.seconds))
        decided = self.drivers.decisions(peer, 0.5 if self.quick else 3)
        if rig.remembered.setdefault("allowed", decided["allowed"]) != decided["allowed"]:
            raise RuntimeError(f"{decided['allowed']} names are allowed, and {rig.remembered['allowed']} by the other authorizer")
        request = found[GUARDED]["server_us_per_record"]
        return mixed({"acl_ns": decided["acl_ns"], "allowed": decided["allowed"], "request_us": request, "super_request_us": found["admin"]["server_us_per_record"],
                      "acl_share_pct": decided["acl_ns"] / 10 / max(request, 1e-9)}, found.values())


def quota_error_pct(bytes_per_s):
    return abs(bytes_per_s / QUOTA - 1) * 100


class Quota(Row):
    """One producer with a quota that asks for more, and a neighbour of 1,000 records a second. Records of 10 kB: what a batch and its request have beside them, which the broker counts, is less
    than a hundredth. Two windows of a second, not eleven: what one run of windows allows may be sent at once, and by eleven seconds the average of a minute would be off."""

    settings = {"quota.window.num": "2"}
    lasts, few, neighbour, legs = 52, 8, 12, 2

    def polite(self, rig, peer, topic, seconds, beside=()):
        load = load_of("neighbour", 100, 1, login("polite"), rate=1000, linger_ms=0)
        return measured(rig, Through(peer, "SASL"), load, topic, seconds, beside)

    def beside_greedy(self, rig, peer, topic, greedy_topic, seconds):
        """(the neighbour's figures, bytes a second of the greedy producer)"""
        load = load_of("greedy", 10_000, 1, login("greedy"), batch_size=100_000, queue_buffering_max_messages=100)
        view = Through(peer, "SASL")
        running = rig.clients.start(view, load, greedy_topic, seconds)
        try:
            time.sleep(seconds / 4)
            found = self.polite(rig, peer, topic, min(self.neighbour, seconds / 2), running)
            _, told = rig.clients.results(view, load, running, 180 + seconds)
        finally:
            for process in running:
                process.kill()
                process.wait()
        return found, told["records_per_s"] * 10_000

    def run(self, rig, peer, case, number):
        topic = topic_name(case, number)
        greedy, short = f"{topic}-greedy", min(self.neighbour, self.seconds)
        peer.create({topic: 1, greedy: 1})
        try:
            alone = self.polite(rig, peer, topic, short)
            free, _ = self.beside_greedy(rig, peer, topic, greedy, short)
            self.drivers.quota(peer, "greedy", "producer_byte_rate", QUOTA)
            held, rate = self.beside_greedy(rig, peer, topic, greedy, self.seconds)
        finally:
            self.drivers.quota(peer, "greedy", "producer_byte_rate", None)
            peer.delete([topic, greedy])
        return mixed({"quota_rate_mb": rate / 1e6, "quota_error_pct": quota_error_pct(rate), "alone_p99_ms": alone["p99_ms"], "quota_p99_ms": held["p99_ms"], "free_p99_ms": free["p99_ms"],
                      "neighbour_ratio": held["p99_ms"] / alone["p99_ms"]}, (alone, free, held))

    def prepare(self, rig, peer, case):
        warm(rig, peer)


class Storm(Row):
    """A producer over TLS of 1,000 records a second, then the same; once it is connected, so many new connections shake hands. Their client yields to others (nice): its CPU is not what is measured."""

    lasts, few = 10, 3

    def __init__(self, *all, count):
        super().__init__(*all)
        self.count = count

    def steady(self, rig, peer, topic, begin=None):
        load = load_of("established", 100, 1, tls(self.keys), rate=1000, linger_ms=0)
        return measured(rig, Through(peer, "EC"), load, topic, self.seconds, begin=begin)

    def run(self, rig, peer, case, number):
        topic = topic_name(case, number)

        def both():
            alone, begun = self.steady(rig, peer, topic), []

            def storm():
                begun.append(self.drivers.begin("storm", Through(peer, "EC").server.address, self.keys.authority, 64, self.count, yielding=True))
                return begun[0]
            try:
                during = self.steady(rig, peer, topic, storm)
            except BaseException:
                for process in begun:
                    process.kill()
                    process.wait()
                raise
            return alone, during, self.drivers.end(begun[0], "storm")

        alone, during, told = self.on(peer, topic, both)
        if told["storm_failed"]:
            raise RuntimeError(f"{peer.server.label}: {told['storm_failed']} of {self.count} connections of the storm failed")
        return mixed({"alone_p99_ms": alone["p99_ms"], "storm_p99_ms": during["p99_ms"], "storm_ratio": during["p99_ms"] / alone["p99_ms"], "storm_s": told["storm_s"]}, (alone, during))


def itself(figure, bound, least=False):
    return Bar(figure, bound, least, to=None)


def workload(drivers, keys, quick, descriptors):
    """`descriptors`: how many files a process may have open."""
    held = min(300 if quick else 10_000, descriptors - 500)
    storm = 200 if quick else 10_000
    common = (drivers, keys, quick)
    few = {name: 3 for name in BOTH}

    def case(name, measure, *bars, **more):
        return Case(name, measure, BOTH, measure.settings, bars=bars, **more)

    def handshakes(name, bound, **how):
        return case(name, Handshakes(*common, **how), itself("per_core_s", bound, least=True), Bar("per_core_s", 3, least=True))

    def encryption(name, measure):
        return case(name, measure, itself("kept", 0.9, least=True), itself("cpu_ratio", 1.4))

    cases = [
        encryption("TLS, produce, 100 B", Produce(*common, record_bytes=100)),
        encryption("TLS, produce, 1 kB", Produce(*common, record_bytes=1000)),
        encryption("TLS, consume, 100 B", Consume(*common, record_bytes=100, records=3_000_000)),
        encryption("TLS, consume, 1 kB", Consume(*common, record_bytes=1000, records=1_000_000)),
        handshakes("full handshakes, ECDSA P-256", 3000, kind="full"),
        handshakes("full handshakes, RSA 2048", 1000, kind="full", listener="RSA"),
        handshakes("resumed handshakes", 5000, kind="resumed"),
        case(f"{held:,} TLS connections, memory", Held(*common, count=held), Bar("kib_each", 0.25), own_server=True, runs=few),
        case(f"storm of {storm:,} handshakes", Storm(*common, count=storm), itself("storm_ratio", 1.5), runs=few),
        case("quota of 2 MB/s and a neighbour", Quota(*common), itself("quota_error_pct", 5), itself("neighbour_ratio", 1.2), runs=few),
        case(f"an ACL check with {ACLS:,} ACLs", Decisions(*common), itself("acl_ns", 100), itself("acl_share_pct", 1)),
    ]
    figures = ("plain_records_per_s", "records_per_s", "kept", "plain_us_per_record", "server_us_per_record", "cpu_ratio", "per_core_s", "resumed_pct", "handshakes_per_s", "p50_ms", "p99_ms", "kib_each",
               "heap_kib_each", "alone_p99_ms", "storm_p99_ms", "storm_ratio", "storm_s", "quota_rate_mb", "quota_error_pct", "quota_p99_ms", "free_p99_ms", "neighbour_ratio", "acl_ns", "request_us",
               "super_request_us", "acl_share_pct", "rss_mb")
    note = (f"*Handshakes/s of a core* is by the server's CPU: connect, handshake, one ApiVersions and its answer. There *server CPU* is by handshake. A client that resumes offers its newest ticket each time; Java's server does not send a new one after each resumption, so a part of its handshakes are full ones. Memory: growth of the resident set of a fresh server; a JVM "
            f"has room in its heap that connections fill first, so its live heap after a full collection stands beside. {held:,} connections were held; a process here may open {descriptors:,} files. "
            "A decision is of core/security and of Apache's StandardAuthorizer, with the same ACLs and names, and the same answers. The ratio of rates is what one client gets on a machine that it shares with the broker: its own encryption is in it.")
    return Workload("security", "TLS, ACLs and quotas", question(__doc__), cases, figures, (), note, needs_gb=4, alone=True)
