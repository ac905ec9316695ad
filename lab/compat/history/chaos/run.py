"""One run, inside its namespaces: nodes, topics, clients, faults; then everything heals, all is read, nodes stop, disks are
written down. Whatever does not get well in time becomes a `liveness` event, which is A2's.
"""

import json
import sys
import time
from pathlib import Path

from . import net, replicas
from .clients import Client, Steward
from .nemesis import Nemesis
from .nodes import Node, data_directory

# Partitions by topic. `q` and `r` are written by everybody, `moved` by the movers from `r`, `c` is compacted.
LOGS = {"q": 4, "r": 3, "moved": 3}
COMPACTED = {"c": 2}
COMPACTION = {"cleanup.policy": "compact", "segment.bytes": "1048576", "segment.ms": "3000", "min.cleanable.dirty.ratio": "0.01",
              "delete.retention.ms": "1000", "max.compaction.lag.ms": "5000"}
SHARE = "group-share"
# Transactions as the clients set them, sessions as KIP-848's groups have them, loading as the reliability reference has it.
LONGEST = {"txn_ms": 15, "rebalance_ms": 45, "loading_ms": 10}


class Run:
    def __init__(self, plan):
        self.plan = plan
        self.place = Path(plan["place"])
        (self.place / "history").mkdir()
        self.lines = open(self.place / "history/rig.jsonl", "a", buffering=1)
        self.clients, self.nodes = [], []

    def say(self, op, phase, **rest):
        self.lines.write(json.dumps({"t": time.monotonic_ns(), "c": "rig", "op": op, "ph": phase, **rest}, separators=(",", ":")) + "\n")

    def note(self, text):
        print(f"chaos: {time.monotonic() - self.begun:6.1f} s  {text}", flush=True)

    def is_stuck(self, what):
        # Once something is, waiting as long for everything else tells nothing new.
        self.plan["patience"] = min(self.plan["patience"], 40)
        self.note(f"STUCK: {what}")
        self.say("liveness", "fail", what=what)

    def tell(self):
        self.begun = time.monotonic()
        try:
            self.set_up()
            self.start_clients()
            self.faults()
            self.converge()
            self.read_all()
            self.write_down_disks()
        finally:
            for client in self.clients:
                client.process.kill()
            for node in self.nodes:
                node.kill()
                node.unmount()
        return 0

    def set_up(self):
        numbers = range(1, self.plan["nodes"] + 1)
        net.build(numbers)
        self.nodes = [Node(number, self.place, self.plan) for number in numbers]
        for node in self.nodes:
            node.format()
            node.start()
        bootstrap = ",".join(f"{net.address(number)}:9092" for number in numbers)
        self.bootstrap = bootstrap
        deadline = time.monotonic() + 240
        while not all(node.serves() for node in self.nodes):
            dead = [node for node in self.nodes if not node.is_alive()]
            if dead or time.monotonic() > deadline:
                node = (dead or self.nodes)[0]
                raise RuntimeError(f"node {node.number} does not answer: {node.last_lines()}")
            time.sleep(0.1)
        self.steward = Steward(self.plan["java"], self.place, bootstrap)
        for topics, config, kind in ((LOGS, {}, "log"), (COMPACTED, COMPACTION, "compact")):
            for name, parts in topics.items():
                self.patiently(op="create", name=name, parts=parts, factor=3, config=config)
                self.say("topic", "ok", topic=name, parts=parts, kind=kind)
        self.nemesis = Nemesis(self.nodes, self.steward, self.say, self.plan)
        if not self.nemesis.wait_until_well(60):
            self.is_stuck(f"a new cluster, before any fault: {self.nemesis.ill}")
        self.note(f"{self.plan['label']}: {self.plan['nodes']} nodes on {self.nodes[0].file_system}, seed {self.plan['seed']}")

    def patiently(self, **command):
        """Asks until it is done, for a minute."""
        deadline = time.monotonic() + 60
        while True:
            try:
                return self.steward.ask(**command)
            except RuntimeError as error:
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{error}; node 1 says: {self.nodes[0].last_lines()}") from None
                time.sleep(0.3)

    # Clients

    def add(self, kind, name, command, **more):
        number = len(self.clients) + 1
        # A writer's numbers: so many producers may one client have, one after the other.
        client = Client(kind, name, command, self.place, self.bootstrap, self.plan["seed"] + number, writer=number * 4000, rate=self.plan["rate"],
                        in_flight=self.plan["in_flight"], **more)
        self.clients.append(client)
        self.say("client", "ok", kind=f"{kind} {more['role']}")

    def start_clients(self):
        both = {"q": 4, "r": 3}
        programs = {"java": ("Java", [*self.plan["java"], "History"]), "go": ("franz-go", self.plan["go"]), "python": ("librdkafka", self.plan["python"])}
        self.groups = {}
        for short, (kind, command) in programs.items():
            if command is None:
                self.note(f"without {kind}: {self.plan['without'][short]}")
                continue
            self.add(kind, f"{short}-producer", command, role="producer", topics=both)
            if short in self.plan["transactions"]:
                self.add(kind, f"{short}-txn", command, role="txn", topics=both, txid=f"txn-{short}")
            group = f"group-{short}"
            self.groups[group] = ["q", "r"]
            for member in range(1 if self.plan["quick"] and short == "java" else 2):
                self.add(kind, f"{short}-member-{member}", command, role="group", topics=both, group=group, iso="rc")
        java = programs["java"]
        self.groups |= {"group-mover": ["r"], "group-848": ["q"]}
        self.add(*("Java", "java-mover"), java[1], role="mover", **{"from": "r"}, topics={"moved": 3}, group="group-mover", txid="txn-mover")
        self.add("Java", "java-848", java[1], role="group", topics={"q": 4}, group="group-848", iso="rc", protocol="consumer")
        self.add("Java", "java-keyed", java[1], role="producer", topics=COMPACTED, keyed=True)
        for member in (1, 2):
            self.add("Java", f"java-share-{member}", java[1], role="share", topics={"r": 3}, group=SHARE)
        # Apache Kafka's default for `group.share.delivery.count.limit`.
        self.say("sharegroup", "ok", group=SHARE, topics=["r"], limit=5)
        self.add("Java", "java-observer", java[1], role="observer", topics=LOGS, groups=list(self.groups))
        for group, topics in self.groups.items():
            self.say("group", "ok", group=group, topics=topics, moves=group == "group-mover")

    def faults(self):
        # Every client has begun before anything goes wrong; on a busy machine a JVM takes its time.
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline and not all(c.history.exists() and c.history.stat().st_size for c in self.clients):
            time.sleep(0.2)
        for client in self.clients:
            if not client.history.exists() or not client.history.stat().st_size:
                self.is_stuck(f"{client.name} did nothing before any fault: {client.last_words()}")
        until = time.monotonic() + self.plan["seconds"]
        self.note(f"{len(self.clients)} clients; faults for {self.plan['seconds']:.0f} s")
        self.nemesis.run(lambda: time.monotonic() < until)
        told = ", ".join(f"{count} {name}" for name, count in sorted(self.nemesis.counts.items()))
        self.note(f"faults: {told}")
        for number, count in sorted(self.nemesis.ended.items()):
            self.note(f"node {number} ended by itself and was started again: {count} times")
        for name, count in sorted(self.nemesis.not_now.items()):
            self.note(f"{name}: not all was well for it, {count} times")
        for name, why in sorted(self.nemesis.left_out.items()):
            self.note(f"SKIP fault {name}: {why}")

    # The end

    def converge(self):
        begun = time.monotonic()
        if self.nemesis.wait_until_well(self.plan["patience"]):
            self.note(f"well again after {time.monotonic() - begun:.1f} s")
            # The clients' timeouts and ten seconds, and something for a slow machine: from here on nothing takes longer (A20).
            slack = 10 + self.plan["patience"] // 6
            self.say("bounds", "ok", **{name: (seconds + slack) * 1000 for name, seconds in LONGEST.items()})
        else:
            self.is_stuck(f"the cluster is not well {self.plan['patience']} s after the last fault: {self.nemesis.ill}")
        self.stop([client for client in self.clients if client.role in ("producer", "txn")])

    def stop(self, clients):
        for client in clients:
            client.stop()
        deadline = time.monotonic() + self.plan["patience"]
        for client in clients:
            if not client.wait(deadline - time.monotonic()):
                self.is_stuck(f"{client.name} does not end: {client.last_words()}")

    def read_all(self):
        """The movers and groups come to the end, then everything is read from the beginning, at both levels."""
        self.read(("r",), {"r": 3})
        self.wait_for(["group-mover"], "r")
        self.stop([client for client in self.clients if client.role == "mover"])
        self.read(("rc", "ru"), {**LOGS, **COMPACTED})
        self.wait_for([group for group in self.groups if group != "group-mover"], "rc")
        self.stop([client for client in self.clients if client.role in ("group", "observer", "share")])
        # They end once nothing is given to them any more.
        self.say("sharegroup", "ok", group=SHARE, drained=True)
        self.patiently(op="listing")

    def read(self, names, topics):
        """A last reading under each of these names, all at once; `ru` reads uncommitted."""
        readers = []
        for name in names:
            self.add("Java", f"java-final-{name}", [*self.plan["java"], "History"], role="final", topics=topics,
                     iso="ru" if name == "ru" else "rc", patience=self.plan["patience"])
            readers.append(self.clients[-1])
        deadline = time.monotonic() + self.plan["patience"] + 60
        for reader in readers:
            if not reader.wait(deadline - time.monotonic()):
                self.is_stuck(f"{reader.name} does not end: {reader.last_words()}")

    def wait_for(self, groups, reading):
        """Until these groups have committed all that this last reading was given."""
        wanted = self.last_offsets(reading)
        deadline = time.monotonic() + self.plan["patience"]
        before = None
        while time.monotonic() < deadline:
            found = self.steward.try_ask(op="committed", groups=groups)
            if found is not None:
                before = found
                if all(found[group].get(f"{topic}-{p}", -1) > last
                       for group in groups for (topic, p), last in wanted.items() if topic in self.groups[group]):
                    return
            time.sleep(0.5)
        behind = [f"{group} at {topic}-{p}: {(before or {}).get(group, {}).get(f'{topic}-{p}', -1)} of {last + 1}"
                  for group in groups for (topic, p), last in wanted.items()
                  if topic in self.groups[group] and (before or {}).get(group, {}).get(f"{topic}-{p}", -1) <= last]
        self.is_stuck(f"groups do not come to the end: {'; '.join(behind[:6])}")
        told = self.steward.try_ask(op="groups", groups=sorted({line.split()[0] for line in behind}))
        self.note(f"their coordinators say: {told}")

    def last_offsets(self, reading):
        """The last offsets that a last reading was given, by partition."""
        found = {}
        for line in self.finals(reading):
            if line["op"] == "poll":
                for topic, partition, _, offset, *_ in line["recs"]:
                    if topic in LOGS:
                        found[topic, partition] = offset
        return found

    def finals(self, name):
        path = self.place / f"history/java-final-{name}.jsonl"
        if path.exists():
            with open(path) as lines:
                yield from map(json.loads, lines)

    def write_down_disks(self):
        ends = {(row[0], row[1]): row[2] for line in self.finals("ru") if line["op"] == "final" for row in line["offs"]}
        for node in self.nodes:
            for complaint in node.complaints()[:3]:
                self.note(f"node {node.number} complains: {complaint}")
        begun = time.monotonic()
        for node in self.nodes:
            node.signal(15)
        clean = []
        for node in self.nodes:
            if node.stop(max(1, 60 - (time.monotonic() - begun))):
                clean.append(node)
            else:
                self.note(f"node {node.number} did not stop within 60 s: {node.last_lines(2)}")
        # Apache Kafka has all in its segments at any time; Barnabas after a clean stop.
        if self.plan["label"] != "Barnabas":
            clean = self.nodes
        count = sum(replicas.tell(node.number, data_directory(node), LOGS, ends, self.say) for node in clean)
        self.note(f"{count} batches on the disks of {len(clean)} nodes")


if __name__ == "__main__":
    sys.exit("run me with lab/compat/history/run")
