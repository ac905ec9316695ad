"""A cluster of two makes with its client: what is begun on it, what is seen of it, what is done to it, how it ends.

What is checked everywhere: every acknowledged record is read back once, in order, at the offset that its producer was told; committed
transactions are shown whole and in order, aborted ones not at all; a group's positions stay; after a clean stop every replica holds the same
batches, byte for byte, and `kafka-dump-log` reads the same from all of them.
"""

import json
import re
import time

from harness.ask import quorum_leader

from . import logs
from .nodes import Cluster, Failed, until

RATE = 300
# Nobody dies when a replica moves: what a leader's change costs, on a machine that is busy with much else.
MOVE_GAP_MAX_MS = 15_000


class Stage:
    """A cluster, its client, and what was begun on it."""

    def __init__(self, show, name, makes, place, client):
        self.show, self.name, self.makes, self.place, self.new_client = show, name, makes, place / name, client
        self.cluster, self.client, self.loads, self.topics, self.factors = None, None, [], [], {}

    def start_over(self, name):
        """Another cluster, once this one is done with."""
        self.close()
        self.__init__(self.show, name, self.makes, self.place.parent, self.new_client)

    def say(self, text):
        self.show(f"{self.name}: {text}")

    def raise_cluster(self, layout, voters="static", topics=("t",), transactions=True, own=None, **cluster):
        self.cluster = Cluster(self.makes, self.place, layout, voters, **cluster)
        for number, settings in (own or {}).items():
            self.cluster.nodes[number].own |= settings
        self.cluster.start()
        self.client = self.new_client(self.cluster)
        brokers = sorted(node.number for node in self.cluster.brokers())
        until(lambda: self.client.call("brokers") == ",".join(map(str, brokers)), f"brokers {brokers} are there")
        formatted = ", each directory formatted by the other make" if cluster.get("crossed") else ""
        self.say(f"{', '.join(f'{n}: {n.roles}' for n in self.cluster.nodes.values())}; voters {voters}{formatted}; {self.who_leads()} leads the quorum")
        for topic in topics:
            self.create(topic, 6, 3)
            self.begin(topic, RATE)
        if transactions:
            self.create("tx", 2, 3)
            self.begin("tx", 20, "transactions")

    def create(self, topic, partitions, placed, *configs):
        self.client.call("create", topic, partitions, placed, *configs)
        self.topics.append(topic)
        self.factors[topic] = placed if isinstance(placed, int) else len(placed[1:].split(","))

    def begin(self, topic, rate, *kind):
        self.client.call("begin", topic, rate, *kind)
        self.loads.append(topic)

    # What is seen of the cluster

    def quorum(self):
        said = self.client.call("quorum")
        return dict(word.split("=", 1) for word in said.split(" "))

    def leader(self):
        """Who leads the quorum, as the controllers themselves say: brokers may be waiting for one that says nothing any more."""
        running = [node for node in self.cluster.controllers() if node.is_alive() and not node.paused]
        said = [found for node in running if (found := quorum_leader(node.asked_port))]
        return self.cluster.nodes.get(max(said, key=lambda each: each[1])[0]) if said else None

    def who_leads(self):
        return until(self.leader, "somebody leads the metadata quorum")

    def voters(self):
        return {int(part.split("@")[0]): part.split("@")[1].split(":")[0] for part in self.quorum()["voters"].split(",")}

    def partitions(self, topic):
        """{partition: (leader, replicas, isr)}"""
        found = {}
        for word in self.client.call("partitions", topic).split(" "):
            partition, leader, replicas, isr = word.split(":")
            found[int(partition)] = (int(leader), [int(n) for n in replicas.split(",")], sorted(int(n) for n in isr.split(",") if n))
        return found

    def await_in_sync(self, *topics, within=90):
        def are_in_sync():
            return all(sorted(replicas) == isr and leader >= 0 for topic in topics or self.topics for leader, replicas, isr in self.partitions(topic).values())
        until(are_in_sync, f"{' '.join(topics or self.topics)}: all replicas in sync", within)

    def await_leaders(self, topic, wanted, within=60):
        """Waits until each of these brokers leads something of a topic, after asking for preferred leaders."""
        self.prefer()
        until(lambda: {leader for leader, _, _ in self.partitions(topic).values()} == set(wanted), f"brokers {wanted} lead {topic}", within)

    def prefer(self):
        self.makes.tool("LeaderElectionCommand", "--bootstrap-server", self.cluster.bootstrap(alive=True), "--election-type", "PREFERRED", "--all-topic-partitions", fine=False)

    def pulse(self, topic):
        """(how much is acknowledged, the longest time that a partition waited for an acknowledgement since the last pulse in ms)"""
        said = re.match(r"acked=(\d+) gap-ms=(\d+)", self.client.call("pulse", topic))
        return int(said.group(1)), int(said.group(2))

    def progress(self, topic="t", within=60):
        """Waits until the load has gone on for a second's worth; the longest wait for an acknowledgement since the last pulse, in ms."""
        begun, gap = self.pulse(topic)
        gaps = [gap]

        def goes_on():
            acked, gap = self.pulse(topic)
            gaps.append(gap)
            return acked >= begun + RATE
        until(goes_on, f"the load on {topic} goes on", within)
        return max(gaps)

    # What is done to it

    def gap(self, what, act, topic="t"):
        """Does something under load; the longest time that a partition waited for an acknowledgement."""
        self.client.call("pulse", topic)
        act()
        self.say(f"{what}; longest wait for an acknowledgement {self.progress(topic)} ms")

    def kill(self, node):
        self.gap(f"{node} killed with -9", node.kill)
        node.start().await_answer()
        self.await_in_sync()

    def replace(self, node, make):
        """A clean stop, and the other make starts on the same directory, under the same name."""
        before = str(node)

        def change():
            node.stop()
            node.start(make).await_answer()
        self.gap(f"{before} stopped, {make} started on its directory", change)
        self.await_in_sync()
        self.prefer()

    def move(self, topic, brokers):
        """kafka-reassign-partitions, --execute and --verify."""
        count = len(self.partitions(topic))
        plan = {"version": 1, "partitions": [{"topic": topic, "partition": n, "replicas": brokers} for n in range(count)]}
        file = self.place / "plan.json"
        file.write_text(json.dumps(plan))
        words = ("reassign.ReassignPartitionsCommand", "--bootstrap-server", self.cluster.bootstrap(alive=True), "--reassignment-json-file", file)
        begun, (before, _) = time.monotonic(), self.pulse(topic)
        self.makes.tool(*words, "--execute")

        def is_done():
            said = self.makes.tool(*words, "--verify")
            if "failed" in said or "no active reassignment" in said:
                raise Failed(f"kafka-reassign-partitions --verify: {said.strip()[-300:]}")
            return len(re.findall(r"is completed\.", said)) >= count
        until(is_done, f"{topic} is moved to {brokers}", 120, every=0.5)
        if any(sorted(replicas) != sorted(brokers) for _, replicas, _ in self.partitions(topic).values()):
            raise Failed(f"{topic} is not on {brokers}: {self.partitions(topic)}")
        took, (acked, gap) = time.monotonic() - begun, self.pulse(topic)
        makes = ", ".join(str(self.cluster.nodes[n]) for n in brokers)
        self.say(f"{topic} moved to {makes} by kafka-reassign-partitions in {took:.1f} s; {acked - before} records acknowledged meanwhile, longest wait {gap} ms")
        if acked == before or gap > MOVE_GAP_MAX_MS:
            raise Failed(f"while {topic} moved, {acked - before} records were acknowledged, and a partition waited {gap} ms")
        self.factors[topic] = len(brokers)

    def finish(self, groups=()):
        """The load ends, everything is read, the nodes stop, the replicas are compared."""
        self.await_in_sync()
        for topic in self.loads:
            ended, read = self.client.call("end", topic, within=240), self.client.call("verify", topic, within=240)
            self.say(f"{topic}: {ended}; read back: {read}")
            if "failed=0" not in ended and topic != "tx":
                raise Failed(f"{topic}: a producer that retries for three minutes was refused: {ended}")
        for group, positions in groups:
            found = self.client.call("positions", group)
            if found != positions:
                raise Failed(f"group {group} stood at {positions}, and stands at {found}")
            self.say(f"group {group} stands where it stood: {found}")
        self.await_in_sync()
        self.client.end()
        self.cluster.stop()
        for factor in sorted(set(self.factors.values())):
            topics = [topic for topic, n in self.factors.items() if n == factor]
            self.say(f"{', '.join(topics)}: {logs.compare(self.makes, self.cluster.brokers(), topics, factor)}")
        self.say(logs.compare_metadata(self.makes, self.cluster.controllers()))

    def close(self):
        if self.client:
            self.client.end()
        if self.cluster:
            self.cluster.end()
