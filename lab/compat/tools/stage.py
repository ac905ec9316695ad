"""Groups of every kind in every state, and transactions, on one server: the same on each that is asked.

What a member is counts, not which client it is: most are franz-go, since its processes are small. A member that is to hold up its group is
stopped where it stands (SIGSTOP), with a session that outlasts the questions.

    classic    stable (2 members)  resting (Empty)  joining (PreparingRebalance)  leaderless (CompletingRebalance)  simple (no members ever)
    consumer   modern (2)  modern-rest (Empty)  modern-range (1, static, range)  modern-regex (1)  moving (Reconciling)  mixed (1 of each protocol)
    share      queue (2)  queue-rest (Empty)
    streams    counting (2)  counted (Empty)  uncounted (NotReady)
    nobody     is none
"""

import re
import time

from compat import fetch
from compat.driver import Driver, Refusal, until
from compat.raw import configure_group, join_and_be_silent, producer_id, write_beside_the_coordinator
from compat.scenarios import RECENT
from stories.story import Java, compiled, java_words

PARTITIONS = 4
SETTINGS = {
    # A member that stands still is to hold its place as long as questions are asked.
    "group.max.session.timeout.ms": "1800000", "group.consumer.max.session.timeout.ms": "1800000",
    "group.streams.min.session.timeout.ms": "1000", "group.streams.min.heartbeat.interval.ms": "500", "group.streams.initial.rebalance.delay.ms": "0",
    # Else no transaction can be made to hang.
    "transaction.partition.verification.enable": "false",
}
BRISK = {"consumer.heartbeat.interval.ms": 1000, "consumer.session.timeout.ms": 600_000}
# An hour before everything else: what resets by time go by.
LONG_AGO = RECENT


class Stage:
    """`small`: without Kafka Streams and without members that stand still, as the short form has it."""

    def __init__(self, server, shell, logs, scratch, small):
        self.server, self.shell, self.logs, self.scratch, self.small = server, shell, logs, scratch, small
        self.go = fetch.go()[1]
        self.judge = self._driver(fetch.python_client("confluent_driver.py", "confluent-kafka")()[1], "judge")
        self.drivers, self.programs = [], []

    def _driver(self, command, name):
        return Driver(command, self.server.address, self.logs / f"{name}.log")

    def close(self):
        for driver in [*self.drivers, self.judge]:
            driver.kill()
            driver.close()
        for program in self.programs:
            program.kill()

    # Members

    def member(self, group, topics, assignor="range", **more):
        driver = self._driver(self.go, f"{group}-{len(self.drivers)}")
        self.drivers.append(driver)
        driver.call("join", group=group, topics=topics, assignor=assignor, client="member", session_ms=600_000 if more.pop("patient", False) else 20_000, **more)
        return driver

    def sharer(self, group, topic):
        driver = self._driver(self.go, f"{group}-{len(self.drivers)}")
        self.drivers.append(driver)
        driver.call("share_join", group=group, topic=topic, client="member")
        return driver

    def owned(self, members, topic):
        wanted = {(topic, number) for number in range(PARTITIONS)}
        until(lambda: set().union(*(m.assigned or set() for m in members)) == wanted and sum(len(m.assigned or ()) for m in members) == PARTITIONS
              and all(m.assigned for m in members), 60, lambda: f"{topic} shared by {len(members)} (now {[len(m.assigned or ()) for m in members]}, {[m.errors[-1:] for m in members]})")

    def read_up(self, members, group, topic):
        """Until everything there is has been read and committed."""
        ends = self.judge.offsets(topic, list(range(PARTITIONS)), "latest")
        until(lambda: self.judge.committed(group, topic, list(range(PARTITIONS))) == ends, 40, lambda: f"{group} to have read up {topic}")

    # Topics

    def topic(self, name, records, timestamp=None, partitions=PARTITIONS):
        self.judge.call("create_topic", name=name, partitions=partitions, config={})
        until(lambda: name in self.judge.call("list_topics"), 10, f"the topic {name}")
        self.write(name, records, timestamp, partitions)

    def write(self, name, count, timestamp=None, partitions=PARTITIONS):
        records = [{"p": n % partitions, "k": None, "v": f"record {n}", **({"t": timestamp + n} if timestamp else {})} for n in range(count)]
        if records:
            self.judge.produce(name, records)

    # The groups

    def build(self):
        begun = time.monotonic()
        self.topic("orders", 40, LONG_AGO)
        self.topic("jobs", 40, LONG_AGO)
        self.topic("shrinking", 20, partitions=2)
        self.topic("moving-topic", 4, partitions=2)
        for group in ("modern", "modern-rest", "modern-range", "modern-regex", "moving", "mixed"):
            configure_group(self.server.port, group, BRISK)
        for group in ("queue", "queue-rest"):
            configure_group(self.server.port, group, {"share.auto.offset.reset": "earliest", "share.heartbeat.interval.ms": 1000})
        self.rested("resting", "range")
        self.rested("modern-rest", "server-uniform")
        self.queued()
        self.write("orders", 12)
        for group, assignor in (("stable", "range"), ("modern", "server-uniform")):
            first = self.member(group, ["orders"], assignor)
            self.owned([first], "orders")
            second = self.member(group, ["orders"], assignor)
            self.owned([first, second], "orders")
            self.read_up([first, second], group, "orders")
        for group, more in (("modern-range", {"static": "one"}), ("modern-regex", {"pattern": "^order.*"})):
            one = self.member(group, [] if "pattern" in more else ["orders"], "server-range" if group == "modern-range" else "server-uniform", **more)
            self.owned([one], "orders")
            self.read_up([one], group, "orders")
        if not self.small:
            self.held_up()
            self.streams()
        self.transactions()
        self.settle()
        print(f"  {self.server.label}: the stage is set after {time.monotonic() - begun:.0f} s", flush=True)

    def rested(self, group, assignor):
        one = self.member(group, ["orders"], assignor)
        self.owned([one], "orders")
        self.read_up([one], group, "orders")
        one.call("leave")

    def queued(self):
        """`queue-rest` had a member that accepted all that there was; the two of `queue` accept what comes after that too."""
        rest = self.sharer("queue-rest", "jobs")
        self.accept([rest], 40)
        rest.call("share_leave")
        self.write("jobs", 12)
        self.accept([self.sharer("queue", "jobs") for _ in range(2)], 52)

    def accept(self, sharers, count):
        done, deadline = 0, time.monotonic() + 60
        while done < count and time.monotonic() < deadline:
            for sharer in sharers:
                got = sharer.call("share_poll", 60, timeout_ms=1_000)
                if got:
                    sharer.call("share_ack", words={f"{p}:{offset}": "accept" for p, offset, _, _ in got})
                done += len(got)

    def held_up(self):
        frozen = self.member("joining", ["orders"], patient=True)
        self.owned([frozen], "orders")
        self.read_up([frozen], "joining", "orders")
        frozen.freeze()
        self.member("joining", ["orders"], patient=True)
        join_and_be_silent(self.server.port, "leaderless", "orders")
        frozen = self.member("moving", ["orders"], "server-uniform")
        self.owned([frozen], "orders")
        self.read_up([frozen], "moving", "orders")
        frozen.freeze()
        self.member("moving", ["orders"], "server-uniform")
        old = self.member("mixed", ["orders"], patient=True)
        self.owned([old], "orders")
        new = self.member("mixed", ["orders"], "server-uniform")
        self.owned([old, new], "orders")
        self.read_up([old, new], "mixed", "orders")

    # Kafka Streams

    def streams(self):
        version, libraries = fetch._classpath("streams", "streams.xml", fetch.KAFKA_VERSIONS)
        self.streams_classpath = compiled("streams", ("WordCount", "Lines"), libraries)
        self.topic("lines", 40, LONG_AGO)
        self.topic("totals", 0)
        for group in ("counting", "counted", "uncounted"):
            configure_group(self.server.port, group, {"streams.heartbeat.interval.ms": 1000, "streams.session.timeout.ms": 20_000})
        counted = self.application("counted", "lines")
        self.counted_up("counted")
        counted.stop()
        self.write("lines", 12)
        self.application("counting", "lines")
        self.counted_up("counting")
        self.application("uncounted", "not-there")

    def application(self, name, source):
        words = java_words(self.streams_classpath, "WordCount", "run", self.server.address, "streams", str(self.scratch / f"state-{name}"), name, source, "totals", heap="200m")
        program = Java(words, self.logs / f"{name}.log")
        self.programs.append(program)
        return program

    def counted_up(self, name):
        """Until all of `lines`, and of the topic between the two halves of the topology, is read and committed."""
        def whole():
            for topic in ("lines", f"{name}-words-repartition"):
                ends = self.judge.offsets(topic, list(range(PARTITIONS)), "latest")
                at = self.judge.committed(name, topic, list(range(PARTITIONS)))
                # Where a partition ends in markers of transactions, what is committed lies before them.
                if any(ends[p] and at[p] < (ends[p] if topic == "lines" else 1) for p in range(PARTITIONS)):
                    return False
            return True
        until(lambda: _true(whole), 90, f"Streams to have counted ({name})")
        time.sleep(2)

    # Transactions

    def transactions(self):
        self.topic("ledger", 0, partitions=2)
        self.topic("stray", 0, partitions=1)
        write = {"p": 0, "k": None, "v": "entry"}
        for txid, end in (("tx-done", "commit"), ("tx-undone", "abort"), ("tx-open", "open")):
            self.judge.call("txn", txid=txid, topic="ledger", records=[write], end=end, timeout_ms=600_000)
        producer_id(self.server.port, "tx-new")
        producer, epoch = producer_id(self.server.port, "tx-stray")
        code = write_beside_the_coordinator(self.server.port, "tx-stray", "stray", producer, epoch, b"stray", int(time.time() * 1000) - 7_200_000)
        if code:
            raise RuntimeError(f"{self.server.label} takes no record beside the coordinator: error {code}")

    # At rest

    def settle(self):
        """Until the tools say that every group is in the state that it is to be in."""
        wanted = {"stable": "Stable", "resting": "Empty", "modern": "Stable", "modern-rest": "Empty", "modern-range": "Stable", "modern-regex": "Stable"}
        if not self.small:
            wanted |= {"joining": "PreparingRebalance", "leaderless": "CompletingRebalance", "moving": "Reconciling", "mixed": "Stable"}
        self.states("consumer-groups", wanted)
        self.states("share-groups", {"queue": "Stable", "queue-rest": "Empty"})
        if not self.small:
            self.states("streams-groups", {"counting": "Stable", "counted": "Empty", "uncounted": "NotReady"})

    def states(self, tool, wanted):
        deadline = time.monotonic() + 90
        while True:
            said = self.shell.ask(tool, "--list", "--state")[1]
            found = dict(re.findall(r"^(\S+)\s+(\S+)\s*$", said, re.M))
            if all(found.get(group) == state for group, state in wanted.items()):
                return
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.server.label}: groups are {found}, not {wanted}")
            time.sleep(1)


def _true(asked):
    try:
        return asked()
    except Refusal:  # A topic that Streams has not made yet.
        return False
