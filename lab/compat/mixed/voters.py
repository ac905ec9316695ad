"""The parts in which the quorum itself changes: voters that come and go, levels that rise and fall, directories that one make formats for the other."""

import re
import time

from .nodes import APACHE, OTHER, OURS, Failed, until

# kafka-features, asked of a quorum that Apache Kafka leads and of one that Barnabas leads: what comes of it must be the same.
LEVELS = (
    ("upgrade", "--release-version", "4.3"),
    ("downgrade", "--feature", "transaction.version=1"),
    ("upgrade", "--feature", "transaction.version=2"),
    ("disable", "--feature", "share.version"),
    ("upgrade", "--feature", "share.version=1", "--dry-run"),
    ("upgrade", "--feature", "share.version=1"),
    ("upgrade", "--feature", "transaction.version=9"),
    ("upgrade", "--feature", "nonsense=1"),
    ("downgrade", "--feature", "kraft.version=0"),
    ("downgrade", "--release-version", "4.0"),
    ("downgrade", "--release-version", "3.9"),
)


# The active controller writes a record every half second where nobody else does (metadata.max.idle.interval.ms).
FALLS_BEHIND_S = 2


def pass_to(stage, wanted, tries=6):
    """Has one of these nodes lead the quorum: whoever leads is silenced until another does, and rivals miss what was written last, so that nobody may vote for them.

    Without that the quicker make is always elected: Barnabas, on a busy machine.
    """
    for _ in range(tries):
        leader = stage.who_leads()
        if leader in wanted:
            return leader
        voters = stage.cluster.controllers()
        rivals = [node for node in voters if node is not leader and node not in wanted and node.is_alive()]
        if 2 * (len(voters) - len(rivals)) <= len(voters):
            rivals = []
        for rival in rivals:
            rival.pause()
        try:
            if rivals:
                time.sleep(FALLS_BEHIND_S)
            leader.pause()
        finally:
            for rival in rivals:
                rival.resume()
        try:
            until(lambda: (found := stage.leader()) not in (None, leader) and found, f"another than {leader} leads", 60)
        finally:
            leader.resume()
        stage.await_in_sync()
    raise Failed(f"none of {[str(node) for node in wanted]} came to lead in {tries} elections")


def quorum_tool(stage, *words, at=None, fine=True):
    """kafka-metadata-quorum, asked of the brokers or of one controller."""
    target = ("--bootstrap-controller", f"127.0.0.1:{at.controller_port}") if at else ("--bootstrap-server", stage.cluster.bootstrap(alive=True))
    return stage.makes.tool("MetadataQuorumCommand", *target, *words, fine=fine)


def await_voters(stage, wanted):
    until(lambda: sorted(stage.voters()) == sorted(wanted), f"voters are {sorted(wanted)}", 60)
    stage.say(f"voters: {stage.quorum()['voters']}; {stage.who_leads()} leads")


def add(stage, node, at=None):
    """kafka-metadata-quorum add-controller, as often as it takes: who has just begun to fetch is not caught up yet."""
    words = ("--command-config", node.write(), "add-controller")

    def is_added():
        said = quorum_tool(stage, *words, at=at, fine=False)
        if "Added controller" not in said and node.number not in stage.voters():
            raise Failed(said.strip()[-200:])
        return True
    until(is_added, f"{node} is added", 60, every=1)


def remove(stage, number):
    quorum_tool(stage, "remove-controller", "--controller-id", number, "--controller-directory-id", stage.voters()[number])


def describe(stage):
    """describe --status and --replication, asked of the brokers and of a controller of each make: who leads, who votes, who only reads."""
    leader, voters = stage.who_leads(), stage.voters()
    askable = {node.make: node for node in stage.cluster.controllers() if node.is_alive()}
    shown = {f"{number} {directory} {'Leader' if number == leader.number else 'Follower'}" for number, directory in voters.items()}
    for at in (None, *askable.values()):
        status = quorum_tool(stage, "describe", "--status", at=at)
        ids = [int(number) for number in re.findall(r'"id": (\d+)', re.search(r"CurrentVoters: .*", status).group(0))]
        if f"LeaderId:               {leader.number}\n" not in status or sorted(ids) != sorted(voters):
            raise Failed(f"describe --status at {at or 'the brokers'}: {status}")
        rows = [line.split() for line in quorum_tool(stage, "describe", "--replication", at=at).splitlines() if re.match(r"\d+\s", line)]
        if {f"{row[0]} {row[1]} {row[6]}" for row in rows if row[6] != "Observer"} != shown:
            raise Failed(f"describe --replication at {at or 'the brokers'}: {rows}, and not {shown}")
    observers = [row[0] for row in rows if row[6] == "Observer"]
    stage.say(f"kafka-metadata-quorum describe --status, --replication: voters {sorted(voters)}, {leader} leads, observers {observers}; "
              f"the same of the brokers and of {', '.join(map(str, askable.values()))}")


def change_voters(stage):
    """Voters come and go by Apache's own tools: add-controller, remove-controller, auto-join, and the level from which on they can."""
    layout = {1: (OURS, "broker,controller"), 2: (OURS, "broker,controller"), 3: (APACHE, "broker,controller")}
    patience = {"controller.quorum.fetch.timeout.ms": 6000}
    stage.raise_cluster(layout, own={1: patience, 2: patience})
    stage.await_in_sync()
    raise_level(stage)
    # From here on the voters stand in the log: a fourth joins as an observer, and is added; one leaves. Each formatted by the other make.
    stage.cluster.voters = "dynamic"
    nodes = stage.cluster.nodes
    four, five, six = (stage.cluster.add(number, make, "controller") for number, make in ((4, OURS), (5, OURS), (6, APACHE)))
    five.own = {"controller.quorum.auto.join.enable": "true"}
    for node in (four, five, six):
        node.flags, node.formatter = ["--no-initial-controllers"], OTHER[node.make]
    four.start()
    until(lambda: "4@" in stage.quorum()["observers"], f"{four} observes")
    add(stage, four, at=nodes[1])
    await_voters(stage, [1, 2, 3, 4])
    six.start()
    until(lambda: "6@" in stage.quorum()["observers"], f"{six} observes", 90)
    add(stage, six)
    await_voters(stage, [1, 2, 3, 4, 6])
    five.start()
    await_voters(stage, [1, 2, 3, 4, 5, 6])
    describe(stage)
    for number in (3, 4, 6, 5):
        # Who joins by itself would come back: it stops first.
        if number == 5:
            five.stop()
        wanted = [each for each in stage.voters() if each != number]
        remove(stage, number)
        await_voters(stage, wanted)
        if number in (4, 6):
            nodes[number].stop()
    leader = stage.who_leads()
    remove(stage, leader.number)
    until(lambda: stage.leader() not in (None, leader), f"{leader} leads no longer, since it is no voter")
    stage.say(f"{leader} led and removed itself; {stage.who_leads()} leads alone")
    add(stage, leader)
    add(stage, nodes[3])
    await_voters(stage, [1, 2, 3])
    for node in (four, five, six):
        del nodes[node.number]
    leave_for_good(stage)
    stage.kill(stage.who_leads())
    stage.finish()


def raise_level(stage):
    """`kraft.version` 0 → 1: asked of a leader of either make, and done."""
    nodes = stage.cluster.nodes
    refused = quorum_tool(stage, "remove-controller", "--controller-id", 3, "--controller-directory-id", stage.cluster.uuid(), fine=False)
    if "UnsupportedVersion" not in refused:
        raise Failed(f"remove-controller at kraft.version 0: {refused.strip()[-300:]}")
    stage.say("kraft.version 0, remove-controller: UnsupportedVersionException")
    for make in (APACHE, OURS):
        pass_to(stage, [node for node in nodes.values() if node.make == make], 12)
        # Each voter tells a new leader where it lives within its fetch timeout; until then the level cannot be raised.
        words = ("upgrade", "--feature", "kraft.version=1", "--dry-run")
        said = until(lambda: features(stage, *words), "the leader knows where every voter lives", 30, every=1)
        stage.say(f"{stage.who_leads()} leads; kafka-features upgrade kraft.version=1 --dry-run: {said}")
    stage.say(f"kafka-features upgrade kraft.version=1: {features(stage, 'upgrade', '--feature', 'kraft.version=1')}")
    until(lambda: "AAAAAAAAAAAAAAAAAAAAAA" not in stage.voters().values(), "the voters have directories")
    await_voters(stage, [1, 2, 3])
    describe(stage)


def leave_for_good(stage):
    """A broker that comes, goes, and is struck off."""
    seven = stage.cluster.add(7, OURS, "broker").start().await_answer()
    until(lambda: "7" in stage.client.call("brokers").split(","), f"{seven} is there")
    seven.stop()
    del stage.cluster.nodes[7]
    said = stage.makes.tool("ClusterTool", "unregister", "--bootstrap-server", stage.cluster.bootstrap(), "--id", 7)
    stage.say(f"kafka-cluster unregister: {said.strip().splitlines()[-1]}")


def features(stage, *words):
    said = stage.makes.tool("FeatureCommand", "--bootstrap-server", stage.cluster.bootstrap(alive=True), *words, fine=False)
    line = said.strip().splitlines()[-1] if said.strip() else ""
    if "kraft.version was upgraded" not in said and "can be upgraded" not in said and "upgraded to" not in said:
        raise Failed(f"kafka-features {' '.join(words)}: {said.strip()[-300:]}")
    return line


def formatted(stage):
    """A quorum that begins with one voter and that the others join by themselves, on directories that the other make formatted; its levels.

    Once Apache Kafka begins it and Barnabas joins, once the other way round.
    """
    said = {first: grow(stage, first) for first in (OURS, APACHE)}
    for ours, theirs in zip(said[OURS], said[APACHE]):
        if ours != theirs:
            raise Failed(f"kafka-features, of a quorum that {OURS} leads: {ours}; of one that {APACHE} leads: {theirs}")
    stage.say(f"kafka-features: {len(LEVELS)} times the same under either make")


def grow(stage, first):
    """One such cluster. What its levels were after each request."""
    second = OTHER[first]
    roles = "broker,controller"
    stage.start_over(f"{stage.name}-{'ours' if first == OURS else 'theirs'}")
    stage.raise_cluster({1: (first, roles), 2: (second, roles), 3: (first, roles)}, "joining", crossed=True, release="4.0")
    nodes = stage.cluster.nodes
    await_voters(stage, [1, 2, 3])
    stage.await_in_sync()
    describe(stage)
    levels = []
    for words in LEVELS:
        pass_to(stage, [nodes[1], nodes[3]], 12)
        levels.append(change_levels(stage, *words))
    for number in (2, 3):
        before = stage.voters()[number]
        nodes[number].kill()
        nodes[number].lose_disk()
        nodes[number].start().await_answer()
        until(lambda: stage.voters().get(number) not in (None, before), f"{nodes[number]} votes from its new disk", 60)
        stage.say(f"{nodes[number]} lost its disk, and votes again: {before} before, {stage.voters()[number]} now")
        stage.await_in_sync()
    stage.kill(nodes[1])
    stage.finish()
    return levels


def change_levels(stage, *words):
    """One request of kafka-features: whether it was refused, and the levels after it."""
    said = stage.makes.tool("FeatureCommand", "--bootstrap-server", stage.cluster.bootstrap(alive=True), *words, fine=False)
    refused = re.search(r"(Can|Could) not .*", said)
    described = stage.makes.tool("FeatureCommand", "--bootstrap-server", stage.cluster.bootstrap(alive=True), "describe")
    levels = dict(re.findall(r"Feature: (\S+)\s.*FinalizedVersionLevel: (\S+)", described))
    stage.say(f"kafka-features {' '.join(words)}: {refused.group(0)[:230] if refused else said.strip().splitlines()[-1][:230]}")
    return words, bool(refused), levels
