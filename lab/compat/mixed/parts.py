"""The parts of the story. Each is a function of a `Stage`; it prints what it saw, and fails where something is not as it must be.

What is checked everywhere: every acknowledged record is read back once, in order, at the offset that its producer was told; committed
transactions are shown whole and in order, aborted ones not at all; a group's positions stay; after a clean stop every replica holds the same
batches, byte for byte, and `kafka-dump-log` reads the same from all of them.
"""

import json
import re
import time

from . import logs
from .nodes import APACHE, OURS, Cluster, Failed, quorum_leader, until

RATE = 300


class Stage:
    """A cluster, its client, and what was begun on it."""

    def __init__(self, show, name, makes, place, client):
        self.show, self.name, self.makes, self.place, self.new_client = show, name, makes, place / name, client
        self.cluster, self.client, self.loads, self.topics, self.factors = None, None, [], [], {}

    def say(self, text):
        self.show(f"{self.name}: {text}")

    def raise_cluster(self, layout, voters="static", settings=None, topics=("t",), transactions=True, own=None):
        self.cluster = Cluster(self.makes, self.place, layout, voters, settings)
        for number, settings in (own or {}).items():
            self.cluster.nodes[number].own = settings
        self.cluster.start()
        self.client = self.new_client(self.cluster)
        brokers = sorted(node.number for node in self.cluster.brokers())
        until(lambda: self.client.call("brokers") == ",".join(map(str, brokers)), f"brokers {brokers} are there")
        self.say(f"{', '.join(f'{n}: {n.roles}' for n in self.cluster.nodes.values())}; {voters} voters; {self.who_leads()} leads the quorum")
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
        said = [found for node in running if (found := quorum_leader(node.controller_port))]
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

    def progress(self, topic="t", within=60):
        """Waits until the load has gone on for a second's worth; the longest wait for an acknowledgement since the last pulse, in ms."""
        gaps = []

        def acked():
            said = re.match(r"acked=(\d+) gap-ms=(\d+)", self.client.call("pulse", topic))
            gaps.append(int(said.group(2)))
            return int(said.group(1))
        before = acked()
        until(lambda: acked() >= before + RATE, f"the load on {topic} goes on", within)
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
        begun = time.monotonic()
        self.makes.tool(*words, "--execute")

        def is_done():
            said = self.makes.tool(*words, "--verify")
            if "failed" in said or "no active reassignment" in said:
                raise Failed(f"kafka-reassign-partitions --verify: {said.strip()[-300:]}")
            return len(re.findall(r"is completed\.", said)) >= count
        until(is_done, f"{topic} is moved to {brokers}", 120, every=0.5)
        if any(sorted(replicas) != sorted(brokers) for _, replicas, _ in self.partitions(topic).values()):
            raise Failed(f"{topic} is not on {brokers}: {self.partitions(topic)}")
        makes = ", ".join(str(self.cluster.nodes[n]) for n in brokers)
        self.say(f"{topic} moved to {makes} by kafka-reassign-partitions in {time.monotonic() - begun:.1f} s")
        self.factors[topic] = len(brokers)

    def finish(self, groups=()):
        """The load ends, everything is read, the nodes stop, the replicas are compared."""
        self.await_in_sync()
        for topic in self.loads:
            ended, read = self.client.call("end", topic, within=240), self.client.call("verify", topic, within=240)
            self.say(f"{topic}: {ended}; read back: {read}")
            if "failed=0" not in ended and topic != "tx":
                self.say(f"{topic}: some sends failed")
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


def brokers_on(stage, ours, guest, quick=False):
    """Two brokers of one make on that make's controllers, and one of the other make beside them."""
    stage.raise_cluster({1: (ours, "broker,controller"), 2: (ours, "broker,controller"), 3: (guest, "broker"), 4: (ours, "controller")})
    nodes = stage.cluster.nodes
    stage.await_in_sync()
    stage.await_leaders("t", [1, 2, 3])
    stage.say(f"{nodes[3]} leads and follows beside {nodes[1]} and {nodes[2]}: every replica in sync")
    stage.client.call("group", "t", "readers")
    positions = stage.client.call("positions", "readers")
    stage.create("m", 4, "@1,2", "min.insync.replicas=1")
    stage.begin("m", RATE)
    stage.progress("m")
    for brokers in ([1, 3], [3, 2], [2, 1]) if quick else ([1, 3], [3, 2], [3], [2], [3], [2, 1]):
        stage.move("m", brokers)
        stage.progress("m")
    for number in (3,) if quick else (3, 1, 2, 3):
        stage.kill(nodes[number])
        stage.prefer()
    leader = stage.who_leads()
    stage.gap(f"{leader}, which led the quorum, killed with -9", leader.kill)
    leader.start().await_answer()
    stage.create("late", 3, 3)
    stage.begin("late", 50)
    stage.await_in_sync()
    stage.finish([("readers", positions)])


def apache_beside_ours(stage):
    """An Apache broker beside two of ours on our controllers."""
    brokers_on(stage, OURS, APACHE)


def ours_beside_apache(stage):
    """One of ours beside two of Apache's on theirs."""
    brokers_on(stage, APACHE, OURS)


def pass_to(stage, wanted, tries=6):
    """Has one of these nodes lead the quorum, by silencing whoever leads until another does."""
    for _ in range(tries):
        leader = stage.who_leads()
        if leader in wanted:
            return leader
        leader.pause()
        try:
            until(lambda: (found := stage.leader()) not in (None, leader) and found, f"another than {leader} leads", 60)
        finally:
            leader.resume()
        stage.await_in_sync()
    raise Failed(f"none of {[str(node) for node in wanted]} came to lead in {tries} elections")


def mixed_quorum(stage, voters="static", rounds=None):
    """A quorum of one Apache controller and two of ours: each leads in turn, and is killed in turn."""
    layout = {1: (APACHE, "broker,controller"), 2: (OURS, "broker,controller"), 3: (OURS, "broker,controller")}
    # Whom silence tells that the leader is gone asks for votes after its own patience: ours is long here, so that Apache's gets its turn.
    # (A killed leader our controllers miss at once.)
    patience = {"controller.quorum.fetch.timeout.ms": 6000}
    stage.raise_cluster(layout, voters, own={2: patience, 3: patience})
    stage.await_in_sync()
    led = []
    for number in rounds or (1, 2, 3):
        wanted = stage.cluster.nodes[number]
        leader = pass_to(stage, [wanted], 12)
        topic = f"by-{number}"
        stage.create(topic, 3, 3)
        stage.say(f"{leader} leads in epoch {stage.quorum()['epoch']}: topic {topic} made, DescribeQuorum {stage.quorum()['voters']}")
        led.append(number)
        stage.gap(f"{leader}, which led the quorum, killed with -9", leader.kill)
        stage.say(f"{stage.who_leads()} leads instead")
        leader.start().await_answer()
        stage.await_in_sync()
        stage.prefer()
    stage.say(f"each led and was killed: {led}")
    stage.finish()


def take_over(stage, back=True, numbers=(1, 2, 3), voters="static"):
    """A whole Apache cluster taken over node by node, each on its own directory, and given back."""
    stage.raise_cluster({n: (APACHE, "broker,controller") for n in (1, 2, 3)}, voters)
    stage.await_in_sync()
    stage.client.call("group", "t", "readers")
    positions = stage.client.call("positions", "readers")
    nodes = stage.cluster.nodes
    for number in numbers:
        stage.replace(nodes[number], OURS)
        stage.say(f"{stage.who_leads()} leads the quorum")
    stage.say(f"taken over: {', '.join(map(str, nodes.values()))}")
    stage.create("ours", 3, 3)
    stage.begin("ours", 50)
    stage.kill(nodes[numbers[-1]])
    if back:
        for number in numbers:
            stage.replace(nodes[number], APACHE)
            stage.say(f"{stage.who_leads()} leads the quorum")
        stage.say(f"given back: {', '.join(map(str, nodes.values()))}")
        stage.create("theirs", 3, 3)
        stage.begin("theirs", 50)
    stage.finish([("readers", positions)])


def change_voters(stage):
    """Voters come and go by Apache's own tools: add-controller, remove-controller, auto-join, and the level from which on they can."""
    layout = {1: (OURS, "broker,controller"), 2: (OURS, "broker,controller"), 3: (APACHE, "broker,controller")}
    patience = {"controller.quorum.fetch.timeout.ms": 6000}
    stage.raise_cluster(layout, own={1: patience, 2: patience})
    nodes, makes = stage.cluster.nodes, stage.makes
    stage.await_in_sync()

    def quorum_tool(*words, at=None, fine=True):
        target = ("--bootstrap-controller", f"127.0.0.1:{at.controller_port}") if at else ("--bootstrap-server", stage.cluster.bootstrap(alive=True))
        return makes.tool("MetadataQuorumCommand", *target, *words, fine=fine)

    def await_voters(wanted):
        until(lambda: sorted(stage.voters()) == sorted(wanted), f"voters are {wanted}", 60)
        stage.say(f"voters: {stage.quorum()['voters']}; {stage.who_leads()} leads")

    refused = quorum_tool("remove-controller", "--controller-id", 3, "--controller-directory-id", stage.cluster.uuid(), fine=False)
    stage.say(f"kraft.version 0, remove-controller: {refused.strip().splitlines()[-1][:160]}")
    for make in (APACHE, OURS):
        pass_to(stage, [node for node in nodes.values() if node.make == make], 12)
        # Each voter tells a new leader where it lives within its fetch timeout; until then the level cannot be raised.
        said = until(lambda: features(stage, "upgrade", "--feature", "kraft.version=1", "--dry-run"), "the leader knows where every voter lives", 30, every=1)
        stage.say(f"{stage.who_leads()} leads; kafka-features upgrade kraft.version=1 --dry-run: {said}")
    stage.say(f"kafka-features upgrade kraft.version=1: {features(stage, 'upgrade', '--feature', 'kraft.version=1')}")
    until(lambda: "AAAAAAAAAAAAAAAAAAAAAA" not in stage.voters().values(), "the voters have directories")
    await_voters([1, 2, 3])
    status = quorum_tool("describe", "--status")
    stage.say("kafka-metadata-quorum describe --status: " + "; ".join(line.strip() for line in status.splitlines() if re.match(r"LeaderId|CurrentVoters|CurrentObservers", line))[:400])
    # From here on the voters stand in the log: a fourth joins as an observer, and is added; one leaves.
    stage.cluster.voters = "dynamic"
    four, five = stage.cluster.add(4, OURS, "controller"), stage.cluster.add(5, OURS, "controller")
    six = stage.cluster.add(6, APACHE, "controller")
    five.own = {"controller.quorum.auto.join.enable": "true"}
    for node in (four, five, six):
        node.flags = ["--no-initial-controllers"]
    four.start()
    until(lambda: "4@" in stage.quorum()["observers"], f"{four} observes")
    until(lambda: "Added controller" in quorum_tool("--command-config", four.write(), "add-controller", at=nodes[1], fine=False), f"{four} is added", 60, every=1)
    await_voters([1, 2, 3, 4])
    six.start()
    until(lambda: "6@" in stage.quorum()["observers"], f"{six} observes", 90)
    until(lambda: "Added controller" in quorum_tool("--command-config", six.write(), "add-controller", fine=False), f"{six} is added", 60, every=1)
    await_voters([1, 2, 3, 4, 6])
    five.start()
    await_voters([1, 2, 3, 4, 5, 6])
    for number in (3, 4, 6, 5):
        directory = stage.voters()[number]
        quorum_tool("remove-controller", "--controller-id", number, "--controller-directory-id", directory)
        # One that joins by itself would come back.
        if number != 3:
            nodes[number].stop()
        await_voters([n for n in stage.voters() if n != number])
    leader = stage.who_leads()
    quorum_tool("remove-controller", "--controller-id", leader.number, "--controller-directory-id", stage.voters()[leader.number])
    until(lambda: stage.leader() not in (None, leader), f"{leader} leads no longer, since it is no voter")
    stage.say(f"{leader} led and removed itself; {stage.who_leads()} leads alone")
    quorum_tool("--command-config", leader.write(), "add-controller")
    quorum_tool("--command-config", nodes[3].write(), "add-controller")
    await_voters([1, 2, 3])
    for node in (four, five, six):
        del stage.cluster.nodes[node.number]
    # A broker that goes for good.
    seven = stage.cluster.add(7, OURS, "broker").start().await_answer()
    until(lambda: "7" in stage.client.call("brokers").split(","), f"{seven} is there")
    seven.stop()
    del stage.cluster.nodes[7]
    stage.say(f"kafka-cluster unregister: {makes.tool('ClusterTool', 'unregister', '--bootstrap-server', stage.cluster.bootstrap(), '--id', 7).strip().splitlines()[-1]}")
    stage.kill(stage.who_leads())
    stage.finish()


def features(stage, *words):
    said = stage.makes.tool("FeatureCommand", "--bootstrap-server", stage.cluster.bootstrap(alive=True), *words, fine=False)
    line = said.strip().splitlines()[-1] if said.strip() else ""
    if "kraft.version was upgraded" not in said and "can be upgraded" not in said and "upgraded to" not in said:
        raise Failed(f"kafka-features {' '.join(words)}: {said.strip()[-300:]}")
    return line


def short(stage):
    """All of it in short: an Apache node beside two of ours, moves both ways, each make killed, one node handed over and back."""
    stage.raise_cluster({1: (APACHE, "broker,controller"), 2: (OURS, "broker,controller"), 3: (OURS, "broker,controller")})
    nodes = stage.cluster.nodes
    stage.await_in_sync()
    stage.create("m", 2, "@1", "min.insync.replicas=1")
    stage.begin("m", 100)
    stage.move("m", [2])
    stage.move("m", [1])
    stage.kill(nodes[1])
    stage.kill(nodes[2])
    stage.replace(nodes[1], OURS)
    stage.replace(nodes[1], APACHE)
    stage.finish()


PARTS = {
    "an Apache broker beside two of ours on our controllers": apache_beside_ours,
    "one of ours beside two of Apache's on theirs": ours_beside_apache,
    "a quorum of one Apache controller and two of ours": mixed_quorum,
    "voters come and go by Apache's tools": change_voters,
    "a whole Apache cluster taken over node by node, and given back": take_over,
}
QUICK = {"Apache's and ours in one cluster, in short": short}
