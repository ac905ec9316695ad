"""The parts of the story. Each is a function of a `Stage`; it prints what it saw, and fails where something is not as it must be.

What is checked in all of them: stage.py. Those in which the quorum's members and levels change: voters.py.
"""

from harness.ask import metadata_answers

from .nodes import APACHE, OURS, Failed
from .stage import RATE
from .voters import change_voters, formatted, pass_to


def brokers_on(stage, ours, guest):
    """Two brokers of one make on that make's controllers, and one of the other make beside them."""
    layout = {1: (ours, "broker,controller"), 2: (ours, "broker,controller"), 3: (guest, "broker"), 4: (ours, "controller")}
    stage.raise_cluster(layout, "dynamic", crossed=True)
    nodes = stage.cluster.nodes
    stage.await_in_sync()
    stage.await_leaders("t", [1, 2, 3])
    stage.say(f"{nodes[3]} leads and follows beside {nodes[1]} and {nodes[2]}: every replica in sync")
    stage.client.call("group", "t", "readers")
    positions = stage.client.call("positions", "readers")
    stage.create("m", 4, "@1,2", "min.insync.replicas=1")
    stage.begin("m", 4 * RATE)
    stage.progress("m")
    for brokers in ([1, 3], [3, 2], [3], [2], [3], [2, 1]):
        stage.move("m", brokers)
        stage.progress("m")
    for number in (3, 1, 2, 3):
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


def mixed_quorum(stage):
    """A quorum of one Apache controller and two of ours: each leads in turn, and is killed in turn."""
    layout = {1: (APACHE, "broker,controller"), 2: (OURS, "broker,controller"), 3: (OURS, "broker,controller")}
    # Whom silence tells that the leader is gone asks for votes after its own patience: ours is long here, so that Apache's gets its turn.
    # (A killed leader our controllers miss at once.)
    patience = {"controller.quorum.fetch.timeout.ms": 6000}
    stage.raise_cluster(layout, own={2: patience, 3: patience})
    stage.await_in_sync()
    led = []
    for number in (1, 2, 3):
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


def take_over(stage):
    """A whole Apache cluster taken over node by node, each on its own directory, and given back."""
    stage.raise_cluster({n: (APACHE, "broker,controller") for n in (1, 2, 3)})
    stage.await_in_sync()
    stage.client.call("group", "t", "readers")
    positions = stage.client.call("positions", "readers")
    nodes = stage.cluster.nodes
    for node in nodes.values():
        stage.replace(node, OURS)
        stage.say(f"{stage.who_leads()} leads the quorum")
    stage.say(f"taken over: {', '.join(map(str, nodes.values()))}")
    stage.create("ours", 3, 3)
    stage.begin("ours", 50)
    stage.kill(nodes[3])
    for node in nodes.values():
        stage.replace(node, APACHE)
        stage.say(f"{stage.who_leads()} leads the quorum")
    stage.say(f"given back: {', '.join(map(str, nodes.values()))}")
    stage.create("theirs", 3, 3)
    stage.begin("theirs", 50)
    stage.finish([("readers", positions)])


def short(stage):
    """All of it in short: an Apache node beside two of ours, moves both ways, each make killed, one node handed over and back."""
    layout = {1: (APACHE, "broker,controller"), 2: (OURS, "broker,controller"), 3: (OURS, "broker,controller")}
    stage.raise_cluster(layout, "dynamic", crossed=True)
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


def guarded(stage):
    """TLS with a login between Apache's node and ours: each make leads the quorum and partitions, and is killed; one node handed over and back."""
    layout = {1: (APACHE, "broker,controller"), 2: (OURS, "broker,controller"), 3: (OURS, "broker,controller")}
    patience = {"controller.quorum.fetch.timeout.ms": 6000}
    stage.raise_cluster(layout, own={2: patience, 3: patience}, guarded=True)
    nodes = stage.cluster.nodes
    stage.await_in_sync()
    for node in nodes.values():
        for name, port in (("BROKERS", node.broker_port), ("CONTROLLER", node.controller_port)):
            if metadata_answers(port, 5):
                raise Failed(f"{node} answers on {name} in plaintext, without a login")
    stage.say("no listener among the nodes answers in plaintext")
    stage.create("m", 2, "@1", "min.insync.replicas=1")
    stage.begin("m", 100)
    stage.move("m", [2])
    stage.move("m", [1])
    for number in (1, 2):
        leader = pass_to(stage, [nodes[number]], 12)
        stage.create(f"by-{number}", 3, 3)
        stage.say(f"{leader} leads the quorum: topic by-{number} made")
        stage.kill(leader)
    stage.replace(nodes[1], OURS)
    stage.replace(nodes[1], APACHE)
    stage.finish()


PARTS = {
    "an Apache broker beside two of ours on our controllers": apache_beside_ours,
    "one of ours beside two of Apache's on theirs": ours_beside_apache,
    "a quorum of one Apache controller and two of ours": mixed_quorum,
    "voters come and go by Apache's tools": change_voters,
    "directories that one make formatted and the other uses; levels up and down": formatted,
    "a whole Apache cluster taken over node by node, and given back": take_over,
}
GUARDED = {"Apache's and ours, TLS and logins between them": guarded}
QUICK = {"Apache's and ours in one cluster, in short": short}
