"""The rows of the table: what is asked of both brokers, and the bar of each.

Groups and transactions: what do they cost beside Apache Kafka, whose coordinator does not sync before it answers? Units: a second; ms. Held
fixed: one node, loopback, Kafka's own numbers of partitions for its internal topics (50), the same client for both. A transaction is ten
records of 100 bytes on five partitions. Left out on purpose: replication; a client's own time, which is the same for both and bounds the ratio of what is quick.
"""

import json
import time

from rig.measures import topic_name
from rig.plan import BOTH, Bar, Case, Workload, question

SETTINGS = {"offsets.topic.num.partitions": "50", "transaction.state.log.num.partitions": "50", "share.coordinator.state.topic.num.partitions": "50", "group.initial.rebalance.delay.ms": "0",
            "group.min.session.timeout.ms": "6000"}
# figure: (what tables call it, unit of plots, scale, digits), as rig/report.py has them.
FIGURES = {
    "transactions_per_s": ("transactions/s", "transactions per second", 1, 0),
    "commits_per_s": ("commits/s", "commits per second", 1, 0),
    "join_s": ("all joined, s", "seconds", 1, 2),
    "leave_s": ("all left, s", "seconds", 1, 2),
    "stop_ms": ("untouched member stopped, ms", "milliseconds", 1, 0),
    "gap_ms": ("its longest pause between records, ms", "milliseconds", 1, 0),
    "longest_heartbeat_ms": ("slowest heartbeat, ms", "milliseconds", 1, 1),
    "loaded_s": ("exec to all offsets, s", "seconds", 1, 2),
    "killed_loaded_s": ("the same after kill −9, s", "seconds", 1, 2),
}


class Row:
    """A measure of the rig (measures.py) that knows the drivers; its topic is made for each run and deleted behind it."""

    partitions = 1
    # Of a run, beside what is measured: a JVM's start, topics.
    each_s = 14

    def __init__(self, drivers, quick):
        self.drivers, self.quick = drivers, quick

    def takes(self, plan, peer):
        """Seconds to prepare, and of a run."""
        return (2, 6) if self.quick else (5, self.each_s)

    def warm_up(self, rig, peer):
        """What its compiler needs to have seen of transactions and commits before a figure is a server's own."""
        if getattr(peer, "is_warm", False):
            return
        peer.create({"warm-up": 5})
        seconds = 1 if self.quick else 10
        self.drivers.ask(peer, "java", "transactions", "warm-up", 10, 10, 5, seconds, 0.5)
        self.drivers.ask(peer, "own", "commits", "warm-up", 100, 5, seconds / 2, 0.5)
        peer.delete(["warm-up"])
        peer.is_warm = True

    def prepare(self, rig, peer, case):
        self.warm_up(rig, peer)

    def run(self, rig, peer, case, number):
        topic = topic_name(case, number)
        peer.create({topic: self.partitions})
        try:
            return self.measure(peer, topic)
        finally:
            peer.delete([topic])

    def measure(self, peer, topic):
        raise NotImplementedError

    def finish(self, rig, peer, case):
        pass


class Transactions(Row):
    partitions = 5

    def __init__(self, drivers, quick, producers):
        super().__init__(drivers, quick)
        self.producers = producers

    def measure(self, peer, topic):
        seconds = (1, 1) if self.quick else (6, 3)
        return self.drivers.measured(peer, "transactions", "java", "transactions", topic, self.producers, 10, 5, *seconds)


class Process(Row):
    """Read-process-write of 1 kB: as fast as it goes, or at a rate."""

    partitions = 4

    def __init__(self, drivers, quick, rate=0):
        super().__init__(drivers, quick)
        self.rate = rate

    def measure(self, peer, topic):
        out = f"{topic}-out"
        peer.create({out: self.partitions})
        try:
            if not self.rate:
                self.drivers.ask(peer, "java", "fill", topic, 10_000 if self.quick else 100_000, 1000)
            seconds = (2, 1) if self.quick else (7, 4)
            return self.drivers.measured(peer, "records", "java", "process", topic, out, f"group-{topic}", *seconds, self.rate)
        finally:
            peer.delete([out])


class Commits(Row):
    """Each group keeps so many commits under way."""

    def __init__(self, drivers, quick, under_way):
        super().__init__(drivers, quick)
        self.under_way = under_way

    def measure(self, peer, topic):
        groups, seconds = (100, (1, 0.5)) if self.quick else (1000, (6, 3))
        return self.drivers.measured(peer, "commits", "own", "commits", topic, groups, self.under_way, *seconds)


class Members(Row):
    """A thousand come and go; one of another topic in the same group is watched meanwhile."""

    each_s = 35

    def measure(self, peer, topic):
        members, stayers = (100, 5) if self.quick else (1000, 10)
        moving, still = f"{topic}-moving", f"{topic}-still"
        peer.create({moving: 2 * (members + stayers), still: 1})
        group = f"group-{topic}"
        watching = self.drivers.begin(peer, "java", "watch", still, group)
        try:
            if not json.loads(watching.stdout.readline() or "{}").get("watching"):
                raise RuntimeError(f"{peer.server.label}: the member that is watched has got nothing")
            told = self.drivers.measured(peer, "join_heartbeats", "own", "members", moving, group, members, stayers, beside=[watching])
            return {**told, **self.drivers.end(peer, "watch", watching, 60)}
        finally:
            watching.kill()
            watching.wait()
            peer.delete([moving, still])


class Share(Row):
    """Ten share consumers on one partition."""

    def measure(self, peer, topic):
        records = 5_000 if self.quick else 200_000
        self.drivers.ask(peer, "java", "fill", topic, records, 100)
        return self.drivers.measured(peer, "records", "java", "share", topic, f"group-{topic}", 10, records)


class Loaded:
    """A server of its own with a million offsets of a thousand groups; stopped and started, then killed and started. From exec to the last group's answer."""

    def __init__(self, drivers, quick):
        self.drivers, self.groups, self.partitions = drivers, *((100, 100) if quick else (1000, 1000))

    def takes(self, plan, peer):
        return 0, 10 if self.groups == 100 else 40

    def run(self, rig, peer, case, number):
        peer.start()
        peer.create({"million": self.partitions})
        told = self.drivers.ask(peer, "own", "fill", "million", self.groups, self.partitions)
        if not peer.stop():
            raise RuntimeError(f"{peer.server.label} did not stop within two minutes")
        told |= self._again(peer, "")
        peer.kill()
        return told | self._again(peer, "killed_")

    def _again(self, peer, name):
        begun = time.time()
        peer.server.start()
        ready = peer.server.ready_after
        found = self.drivers.ask(peer, "own", "loaded", "million", self.groups, self.partitions)
        return {f"{name}loaded_s": found["done_at"] - begun, f"{name}ready_s": ready}


def at_least(figure, bound):
    return Bar(figure, bound, least=True)


def workload(drivers, quick, share):
    """`share`: why share groups cannot be measured, or nothing."""
    # Of what takes long, or carries no bar.
    runs, beside, few = {"kafka": 3, "barnabas": 3}, {"kafka": 1, "barnabas": 3}, {"kafka": 2, "barnabas": 2}

    def case(name, measure, *bars, **more):
        return Case(name, measure, BOTH, SETTINGS, bars=bars, **more)

    cases = [
        case("one producer, 10 records on 5 partitions each", Transactions(drivers, quick, 1), at_least("transactions_per_s", 2)),
        case("ten producers, 10 records on 5 partitions each", Transactions(drivers, quick, 10), at_least("transactions_per_s", 2)),
        case("read-process-write, 1 kB, exactly once", Process(drivers, quick), at_least("records_per_s", 1.5)),
        case("read-process-write at 2,000 records/s, send to read_committed", Process(drivers, quick, 2000), Bar("p99_ms", 0.5)),
        case("offset commits, 1,000 groups", Commits(drivers, quick, 5), at_least("commits_per_s", 3)),
        case("offset commits, 1,000 groups, each waits for its answer", Commits(drivers, quick, 1), at_least("commits_per_s", 3), runs=few),
        case("1,000 members join and leave a KIP-848 group", Members(drivers, quick), Bar("join_s", 0.5), Bar("leave_s", 0.5), Bar("stop_ms", 0, to=None), runs=runs),
        case("start with 1,000,000 committed offsets", Loaded(drivers, quick), Bar("loaded_s", 2, to=None), own_server=True, runs=beside),
    ]
    if not share:
        cases.insert(7, case("share group, 10 consumers, one partition", Share(drivers, quick), at_least("records_per_s", 2)))
    figures = ("transactions_per_s", "records_per_s", "commits_per_s", "p50_ms", "p99_ms", "p999_ms", "join_s", "leave_s", "stop_ms", "gap_ms", "longest_heartbeat_ms", "loaded_s", "killed_loaded_s",
               "ready_s", "server_us_per_record", "rss_mb")
    note = ("*Server CPU* is by what the row counts (transactions, records, commits, heartbeats). Transactions, read-process-write and share groups: Apache's Java client in one process. Commits, members "
            "and a million offsets: our own program (src/), a connection for each group or member, because a thousand Java clients on four cores would be what is measured; the member that is watched is "
            "Apache's. A group that commits offsets keeps five commits under way, as a consumer does that calls commitAsync; beside it stands the same with groups that wait for each answer, where the "
            "system calls of both sides are half of what a commit costs. The group that a thousand join has just been founded by ten; in a group that was quiet for a quarter of a minute the first news reaches each member within its interval of five "
            "seconds, with either broker.")
    return Workload("coordinators", "Groups and transactions", question(__doc__), cases, figures, (), note + (f" Share groups: {share}." if share else ""), needs_gb=4, alone=True)
