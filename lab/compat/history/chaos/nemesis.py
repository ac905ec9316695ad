"""What goes wrong: one fault after the other, from a bag that holds each kind, in an order that the seed decides.

A fault begins, holds for some seconds and is undone. Then, mostly, everybody has time to get well; at times the next one
comes before that. Losing a disk is the exception: everything has to be well before it, and after it, and when it goes the others
know that its node is down and lead everything.
"""

import random
import signal
import time

from . import net


class Nemesis:
    def __init__(self, nodes, steward, say, plan):
        self.nodes, self.steward, self.say, self.plan = nodes, steward, say, plan
        self.chance = random.Random(plan["seed"])
        self.counts, self.left_out, self.not_now = {}, {}, {}
        # How often a node ended by itself.
        self.ended = {}
        self.bag = []

    # The kinds. Each begins and answers how to undo it.

    def kill(self):
        node = self.any()
        node.kill()
        return node.start

    def kill_leader(self):
        """The node that leads most of topic q."""
        leaders = self.steward.try_ask(op="leaders", topic="q") or []
        known = [number for number in leaders if number > 0]
        node = self.nodes[max(set(known), key=known.count) - 1] if known else self.any()
        node.kill()
        return node.start

    def kill_all(self):
        for node in self.nodes:
            node.signal(signal.SIGKILL)
        for node in self.nodes:
            node.kill()
        return lambda: [node.start() for node in self.nodes]

    def restart(self):
        node = self.any()
        node.stop(20)
        return node.start

    def pause(self):
        node = self.any()
        node.pause()
        return node.resume

    def others(self, node):
        return [net.address(other.number) for other in self.nodes if other is not node]

    def cut_from_peers(self):
        node = self.any()
        net.deaf(node.number, *self.others(node))
        net.mute(node.number, *self.others(node))
        return lambda: net.heal(node.number)

    def cut_from_all(self):
        node = self.any()
        net.deaf(node.number, net.CLIENTS, *self.others(node))
        net.mute(node.number, net.CLIENTS, *self.others(node))
        return lambda: net.heal(node.number)

    def cut_from_clients(self):
        node = self.any()
        net.deaf(node.number, net.CLIENTS)
        return lambda: net.heal(node.number)

    def deaf(self):
        """One way: it speaks and does not hear."""
        node = self.any()
        net.deaf(node.number, *self.others(node))
        return lambda: net.heal(node.number)

    def mute(self):
        """The other way."""
        node = self.any()
        net.mute(node.number, *self.others(node))
        return lambda: net.heal(node.number)

    def cut_pair(self):
        one, other = self.chance.sample(self.nodes, 2)
        net.deaf(one.number, net.address(other.number))
        net.mute(one.number, net.address(other.number))
        return lambda: net.heal(one.number)

    def reset(self):
        node = self.any()
        net.reset(node.number)
        time.sleep(0.5)
        net.heal(node.number)
        return lambda: None

    def fill_disk(self):
        node = self.any()
        if node.file_system is None:
            raise LeftOut("no file system of its own can be mounted here")
        node.fill()

        def undo():
            node.free()
            if not node.is_alive():
                node.start()
        return undo

    def clock(self):
        if not self.plan["faketime"]:
            raise LeftOut(self.plan["no_faketime"])
        node = self.any()
        node.move_clock(self.chance.choice((-1800, -120, -5, 5, 120, 1800)))
        return lambda: node.move_clock(0)

    def replace_disk(self):
        # A node that is being started is among the brokers until it is missed.
        if not self.wait_until_well(60) or not all(other.serves() for other in self.nodes) or not self.wait_until_well(10):
            raise NotNow
        node = self.any()
        node.kill()
        # Nobody may have been left in sync with it alone since all was well: then its disk was the only one, and no server can help.
        if not self.wait_until_done_without(node, 60):
            node.start()
            raise NotNow
        node.wipe()

        def undo():
            node.start()
            self.wait_until_well(90)
        return undo

    def move(self):
        numbers = [node.number for node in self.nodes]
        for _ in range(3):
            topic, count = self.chance.choice((("q", 4), ("r", 3)))
            size = self.chance.choice((2, 3, 3))
            to = self.chance.sample(numbers, min(size, len(numbers)))
            self.steward.try_ask(op="move", topic=topic, p=self.chance.randrange(count), to=to)
        return lambda: None

    def nothing(self):
        return lambda: None

    KINDS = ("kill", "kill_leader", "pause", "cut_from_peers", "cut_from_all", "cut_from_clients", "deaf", "mute", "cut_pair", "reset",
             "fill_disk", "clock", "replace_disk", "move", "restart", "kill_all", "nothing")

    # The run

    def any(self):
        return self.chance.choice(self.nodes)

    def next_kind(self):
        if not self.bag:
            self.bag = list(self.plan["faults"] or self.KINDS)
            self.chance.shuffle(self.bag)
        return self.bag.pop()

    def run(self, until):
        """One fault after the other; after each, `until()` says whether there is time for one more."""
        shortest, longest = self.plan["hold"]
        made = 0
        while until():
            kind = self.next_kind()
            name = kind.replace("_", " ")
            try:
                undo = getattr(self, kind)()
                self.say("fault", "invoke", kind=name)
            except LeftOut as why:
                self.left_out[name] = str(why)
                continue
            except NotNow:
                self.not_now[name] = self.not_now.get(name, 0) + 1
                continue
            self.counts[name] = self.counts.get(name, 0) + 1
            time.sleep(self.chance.uniform(shortest, longest))
            undo()
            self.say("fault", "ok", kind=name)
            self.small_changes(made)
            made += 1
            if self.chance.random() < 0.7:
                self.wait_until_well(self.plan["rest"])
            time.sleep(self.chance.uniform(0.5, 2))
        self.heal_all()

    def small_changes(self, number):
        """Topics and settings that are made, changed and taken away meanwhile (A18)."""
        name = f"side-{number}"
        self.steward.try_ask(op="make", kind="topic", name=name, set="3", factor=3)
        if number >= 2 and number % 2 == 0:
            self.steward.try_ask(op="make", kind="topic", name=f"side-{number - 2}", factor=3)
        self.steward.try_ask(op="make", kind="retention", name="r", set=str(10_000_000_000 + number))

    def heal_all(self):
        for node in self.nodes:
            net.heal(node.number)
            node.move_clock(0)
            node.free()
            if node.paused:
                node.resume()
            if not node.is_alive():
                node.start()

    def wait_until_done_without(self, node, seconds):
        """One node is down, and the others serve, know which one it is, lead every partition, and are in sync for all that they have."""
        others = [other for other in self.nodes if other is not node]
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found = self.steward.try_ask(op="health", without=node.number)
            whole = found and found["ids"] == sorted(other.number for other in others) and not found["leaderless"] and not found["thin"]
            if whole and all(other.serves() for other in others):
                return True
            time.sleep(0.3)
        return False

    def wait_until_well(self, seconds):
        """Every node there, every partition led and every ISR whole; a node that ended by itself is started again."""
        deadline = time.monotonic() + seconds
        self.ill = "nobody answers"
        while time.monotonic() < deadline:
            for node in self.nodes:
                if not node.is_alive():
                    self.ended[node.number] = self.ended.get(node.number, 0) + 1
                    node.start()
            found = self.steward.try_ask(op="health")
            if found:
                self.ill = f"{found['brokers']} brokers, {found['leaderless']} without leader, {found['thin']} thin, {found['moves']} moving: {', '.join(found['named'])}"
                if found["brokers"] == len(self.nodes) and not found["leaderless"] and not found["thin"] and not found["moves"]:
                    return True
            time.sleep(0.3)
        return False


class LeftOut(Exception):
    """This fault cannot be made here; the text says why."""


class NotNow(Exception):
    """All must be well for this fault, and is not."""
