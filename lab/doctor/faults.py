"""The faults: how each is planted, and what mends it where the printed commands are not the whole cure."""

import resource
import socket
import struct
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

from harness.ask import ask
from records import dated_batch, open_transaction, produce, write
from rig import Repeated

DAY_S = 86_400


@dataclass
class Fault:
    id: str
    # The finding's subject.
    subject: str
    plant: Callable
    # What is done besides the printed commands, and its words for the table; "" where the commands mend it alone.
    mend: Callable = None
    step: str = ""
    # What stands for a word that only the operator knows.
    replacements: dict = field(default_factory=dict)
    # What is done before the printed commands run.
    first: Callable = None
    # Processes of this fault, which `mend` or the end stops.
    running: list = field(default_factory=list)

    def stop(self):
        for process in self.running:
            process.terminate()
            process.wait()
        self.running.clear()


def topic(name, *flags, partitions=1):
    def plant(rig, fault):
        rig.tool("topics", "--create", "--topic", name, "--partitions", str(partitions), "--replication-factor", str(rig.replicas), *flags)
    return plant


def placed(name, assignment, *flags):
    def plant(rig, fault):
        rig.tool("topics", "--create", "--topic", name, "--replica-assignment", assignment, *flags)
    return plant


def dated(name, age_s, *flags, count=1):
    def plant(rig, fault):
        topic(name, *flags)(rig, fault)
        write(rig.ports, name, age_s, count)
    return plant


def configured(kind, entity, change):
    def plant(rig, fault):
        rig.tool("configs", "--alter", "--entity-type", kind, "--entity-name", entity, "--add-config", change)
    return plant


def reassign(rig, rows):
    rows = ",".join(f'{{"topic":"{name}","partition":{partition},"replicas":{replicas}}}' for name, partition, replicas in rows)
    path = rig.directory / "plan.json"
    path.write_text(f'{{"version":1,"partitions":[{rows}]}}')
    rig.tool("reassign-partitions", "--execute", "--reassignment-json-file", str(path))
    while "is still in progress" in rig.tool("reassign-partitions", "--verify", "--reassignment-json-file", str(path)):
        time.sleep(0.2)


def other_leaders(rig, fault):
    placed("led", ",".join(["1:2:3"] * 40))(rig, fault)
    reassign(rig, [("led", partition, [2, 1, 3]) for partition in range(40)])


def single_internal(rig, fault):
    reassign(rig, [("__consumer_offsets", 0, [1])])


def consumer(rig, fault, name, group, *flags):
    words = ("console-consumer", "--topic", name, "--group", group, "--from-beginning", "--formatter-property", "print.value=false", *flags)
    fault.running.append(rig.background(*words))


def read_one(rig, name, group):
    """The group commits behind the first record, and ends."""
    rig.tool("console-consumer", "--topic", name, "--group", group, "--from-beginning", "--max-messages", "1", "--timeout-ms", "20000")


def idle_members(rig, fault):
    topic("narrow")(rig, fault)
    for _ in range(3):
        consumer(rig, fault, "narrow", "idlers")


def members_again(rig, fault):
    """They see the new partitions at once; else after metadata.max.age.ms."""
    fault.stop()
    for _ in range(3):
        consumer(rig, fault, "narrow", "idlers")


def late_group(rig, fault):
    dated("late", 3000, "--config", "retention.ms=3600000", count=20)(rig, fault)
    read_one(rig, "late", "slow")


def stuck_group(rig, fault):
    dated("stuck", 600, count=20)(rig, fault)
    read_one(rig, "stuck", "hanging")
    consumer(rig, fault, "stuck", "hanging", "--command-property", "enable.auto.commit=false")


def unstick(rig, fault):
    fault.stop()
    consumer(rig, fault, "stuck", "hanging")


def lost_offsets(rig, fault):
    topic("cut")(rig, fault)
    write(rig.ports, "cut", 0, 20)
    read_one(rig, "cut", "behind")
    path = rig.directory / "delete.json"
    path.write_text('{"version":1,"partitions":[{"topic":"cut","partition":0,"offset":10}]}')
    rig.tool("delete-records", "--offset-json-file", str(path))


def eager_group(rig, fault):
    topic("wide", partitions=12)(rig, fault)
    for _ in range(12):
        consumer(rig, fault, "wide", "eager", "--command-property", "partition.assignment.strategy=org.apache.kafka.clients.consumer.RangeAssignor")


def fewer_members(rig, fault):
    for process in fault.running[3:]:
        process.terminate()
        process.wait()
    del fault.running[3:]


def producer(rig, fault, name, client, throughput, *properties):
    words = [word for setting in (f"client.id={client}", *properties) for word in ("--command-property", setting)]
    words = ("producer-perf-test", "--topic", name, "--num-records", "100000000", "--record-size", "100", "--throughput", str(throughput), *words)
    fault.running.append(rig.background(*words))


def small_batches(rig, fault):
    # One leader, so that one node's median is this producer's.
    placed("small", "2:1:3")(rig, fault)
    producer(rig, fault, "small", "small", 800, "linger.ms=0", "batch.size=1")


def larger_batches(rig, fault):
    fault.stop()
    producer(rig, fault, "small", "small", 800, "linger.ms=50")


def loud(rig, fault):
    topic("loud")(rig, fault)
    configured("clients", "loud", "producer_byte_rate=1000")(rig, fault)
    producer(rig, fault, "loud", "loud", 200, "linger.ms=0", "batch.size=1")


def commits(rig, fault):
    topic("commits")(rig, fault)
    producer(rig, fault, "commits", "busy", 100)
    consumer(rig, fault, "commits", "committers", "--command-property", "auto.commit.interval.ms=20", "--command-property", "client.id=committer")


def metadata_storm(rig, fault):
    port = rig.nodes[1].port
    fault.running.append(Repeated(20, lambda: ask(port, 3, 1, b"\0\0\0\0", client="restless")))


def nameless(rig, fault):
    port = rig.nodes[2].port
    fault.running.append(Repeated(4, lambda: ask(port, 3, 1, b"\0\0\0\0", client="")))


def crowd(rig, fault):
    class Sockets:
        def __init__(self, port):
            self.open = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]

        def terminate(self):
            for connection in self.open:
                connection.close()

        def wait(self):
            pass

    fault.running.append(Sockets(rig.nodes[1].port))
    configured("brokers", "1", "max.connections=120")(rig, fault)


def few_descriptors(rig, fault):
    pid = rig.nodes[2].pid
    now = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    subprocess.run(["prlimit", "--pid", str(pid), f"--nofile={now + 12}:"], check=True)


def more_descriptors(rig, fault):
    pid = rig.nodes[2].pid
    # The most that the process may have; more takes a right that a rig lacks.
    _, most = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    subprocess.run(["prlimit", "--pid", str(pid), f"--nofile={most}:"], check=True)


def kill_three(rig, fault):
    rig.nodes[3].kill()
    time.sleep(2)


def start_three(rig, fault):
    if not rig.nodes[3].is_alive():
        rig.nodes[3].start()


def end_transaction(rig, fault):
    topic("paid")(rig, fault)
    open_transaction(rig.ports, "payments", "paid")


def batches(rig, fault, name, batch, per_s, node=1, acks=-1):
    """One batch again and again, at the node that leads the partition; refused ones too."""
    port = rig.nodes[node].port
    fault.running.append(Repeated(per_s, lambda: produce(port, name, batch, acks=acks, client=fault.id)))


def now_ms():
    return int(time.time() * 1000)


def heavy(rig, fault):
    """Two megabytes a second into one of eight partitions: records that shrink, without a producer id, most with one key."""
    placed("heavy", ",".join(["1:2:3", *["2:3:1"] * 7]), "--config", "retention.bytes=8000000")(rig, fault)
    keys = [b"same"] * 150 + [str(number).encode() for number in range(50)]
    batches(rig, fault, "heavy", dated_batch(b"x" * 2000, now_ms(), keys), 6)


def weak_acks(rig, fault):
    placed("hasty", "3:1:2")(rig, fault)
    producer(rig, fault, "hasty", "hasty", 200, "acks=1", "linger.ms=20")


def all_acks(rig, fault):
    fault.stop()
    producer(rig, fault, "hasty", "hasty", 200, "acks=all", "linger.ms=20")


def keyless(rig, fault):
    placed("keyed", "1:2:3", "--config", "cleanup.policy=compact")(rig, fault)
    batches(rig, fault, "keyed", dated_batch(b"x", now_ms()), 20)


def old_fetches(rig, fault):
    port = rig.nodes[2].port
    # Fetch of version 4, of no partition.
    body = struct.pack(">iiiibi", -1, 0, 0, 1024, 0, 0)
    fault.running.append(Repeated(2, lambda: ask(port, 1, 4, body, client="antique")))


def tiny_fetches(rig, fault):
    placed("drops", "3:1:2")(rig, fault)
    producer(rig, fault, "drops", "drops", 500, "linger.ms=0", "batch.size=1")
    consumer(rig, fault, "drops", "sippers")


def larger_fetches(rig, fault):
    fault.running.pop().terminate()
    consumer(rig, fault, "drops", "sippers", "--command-property", "fetch.min.bytes=65536")


def many_producers(rig, fault):
    port = rig.nodes[2].port
    body = struct.pack(">hi", -1, 60_000)
    fault.running.append(Repeated(20, lambda: ask(port, 22, 1, body, client="forgetful")))


def restless_members(rig, fault):
    topic("restless")(rig, fault)
    # Members that end before they have joined are gone soon.
    soon = ("--command-property", "session.timeout.ms=6000", "--command-property", "max.poll.interval.ms=6000")
    consumer(rig, fault, "restless", "restless", *soon)
    words = ("console-consumer", "--topic", "restless", "--group", "restless", "--timeout-ms", "500", *soon)
    # It ends with an error, since no record comes.
    fault.running.append(Repeated(5, lambda: rig.background(*words).wait()))


def slow_group(rig, fault):
    topic("fast")(rig, fault)
    configured("clients", "slowly", "consumer_byte_rate=3000")(rig, fault)
    producer(rig, fault, "fast", "fast", 300, "linger.ms=20")
    consumer(rig, fault, "fast", "slowly", "--command-property", "client.id=slowly", "--command-property", "fetch.max.bytes=4000",
             "--command-property", "auto.commit.interval.ms=200")


def faster_group(rig, fault):
    rig.tool("configs", "--alter", "--entity-type", "clients", "--entity-name", "slowly", "--delete-config", "consumer_byte_rate")
    fault.running.pop().terminate()
    consumer(rig, fault, "fast", "slowly")


def poison(rig, fault):
    """A reader of committed records stays before an open transaction in one partition and reads the other one."""
    placed("mixed", "1:2:3,1:2:3")(rig, fault)
    number, epoch = open_transaction(rig.ports, "held", "mixed")
    batch = dated_batch(b"x", now_ms() - 600_000, producer=(number, epoch))
    code = produce(rig.nodes[1].port, "mixed", batch, transactional_id="held")
    if code != 0:
        raise RuntimeError(f"the transaction's batch: error {code}")
    port = rig.nodes[1].port
    fault.running.append(Repeated(10, lambda: produce(port, "mixed", dated_batch(b"x", now_ms()), partition=1)))
    consumer(rig, fault, "mixed", "choosy", "--isolation-level", "read_committed", "--command-property", "auto.commit.interval.ms=200")


def end_poison(rig, fault):
    rig.tool("transactions", "forceTerminateTransaction", "--transactionalId", "held")


def rejecting(rig, fault):
    placed("shared", "1:2:3")(rig, fault)
    rig.tool("configs", "--alter", "--entity-type", "groups", "--entity-name", "rejecters", "--add-config", "share.auto.offset.reset=earliest")
    producer(rig, fault, "shared", "shared", 50, "linger.ms=20")
    words = ("console-share-consumer", "--topic", "shared", "--group", "rejecters", "--reject", "--formatter-property", "print.value=false")
    fault.running.append(rig.background(*words))


def without(name):
    return lambda rig, fault: (fault.stop(), rig.tool("topics", "--delete", "--topic", name))


def stopped(rig, fault):
    fault.stop()


PASSWORD = {"PASSWORD": "p4ssw0rd"}

# Together on one cluster: each is found by its id and its subject.
TOGETHER = [
    lambda: Fault("T1", "topic alone", placed("alone", "1")),
    lambda: Fault("T2", "topic weak", topic("weak", "--config", "min.insync.replicas=1")),
    lambda: Fault("T3", "topic unclean", topic("unclean", "--config", "unclean.leader.election.enable=true")),
    lambda: Fault("T4", "topic old", dated("old", 40 * DAY_S, "--config", f"retention.ms={400 * DAY_S * 1000}")),
    lambda: Fault("T8", "topic large", topic("large", "--config", "max.message.bytes=20971520")),
    lambda: Fault("T9", "topic rolling", topic("rolling", "--config", "segment.ms=10000")),
    lambda: Fault("T10", "topic ahead", dated("ahead", -3 * 3600, "--config", f"message.timestamp.after.max.ms={DAY_S * 1000}")),
    lambda: Fault("T13", "topic endless", topic("endless", "--config", "retention.ms=-1")),
    lambda: Fault("C5", "topic near", placed("near", "1:2", "--config", "min.insync.replicas=1")),
    lambda: Fault("C10", "topic throttled", topic("throttled", "--config", "leader.replication.throttled.replicas=*")),
    lambda: Fault("C12", "setting log.retention.ms", configured("brokers", "1", "log.retention.ms=86400000")),
    lambda: Fault("C13", "topic __consumer_offsets", single_internal),
    lambda: Fault("G3", "group hanging", stuck_group, unstick, "the member started again, with commits"),
    lambda: Fault("G4", "group slow", late_group),
    lambda: Fault("G6", "group idlers", idle_members, members_again, "the printed command, and the members started again"),
    lambda: Fault("G8", "group behind", lost_offsets),
    lambda: Fault("G10", "group eager", eager_group, fewer_members, "fewer members"),
    lambda: Fault("W11", "transaction payments", end_transaction),
    lambda: Fault("S4", "user anna", configured("users", "anna", "SCRAM-SHA-512=[iterations=4096,password=secret]"), replacements=PASSWORD),
    lambda: Fault("N8", "node 1", crowd),
    lambda: Fault("W1", "node 2", small_batches, larger_batches, "linger.ms=50"),
    lambda: Fault("W8", "client committer", commits, lambda rig, fault: fault.stop(), "the client stopped"),
    lambda: Fault("W9", "client restless", metadata_storm, lambda rig, fault: fault.stop(), "the client stopped"),
    lambda: Fault("N7", "node 1", lambda rig, fault: None, lambda rig, fault: None, "the client of W9 stopped"),
    lambda: Fault("W12", "node", loud, lambda rig, fault: fault.stop(), "the client stopped"),
    lambda: Fault("W14", "node 2", nameless, lambda rig, fault: fault.stop(), "the client stopped"),
]
# What clients send and how groups read, after the clients of the first round have ended.
TRAFFIC = [
    lambda: Fault("T5", "topic heavy", heavy, stopped, "the client stopped"),
    lambda: Fault("T6", "topic heavy", lambda rig, fault: None, stopped, "the client of T5 stopped"),
    lambda: Fault("W2", "topic heavy", lambda rig, fault: None),
    lambda: Fault("W4", "topic heavy", lambda rig, fault: None, stopped, "the client of T5 stopped"),
    lambda: Fault("T7", "topic vast", topic("vast", partitions=120), without("vast"), "another topic with fewer partitions"),
    lambda: Fault("T12", "topic dusty", topic("dusty", "--config", "cleanup.policy=compact", "--config", f"min.compaction.lag.ms={60 * DAY_S * 1000}")),
    lambda: Fault("W3", "node 3", weak_acks, all_acks, "acks=all"),
    lambda: Fault("W5", "node 2", old_fetches, stopped, "the client stopped"),
    lambda: Fault("W7", "node 3", tiny_fetches, larger_fetches, "fetch.min.bytes=65536"),
    lambda: Fault("W10", "node 1", keyless, stopped, "the client stopped"),
    lambda: Fault("W15", "node 2", many_producers, stopped, "the client stopped"),
    lambda: Fault("G1", "node", restless_members, stopped, "the members stopped"),
    lambda: Fault("G5", "group slowly", slow_group, faster_group, "the group's quota removed"),
    lambda: Fault("G7", "group choosy", poison, end_poison, "the members stopped, the printed command, and the transaction ended", first=stopped),
    lambda: Fault("G11", "node", rejecting, stopped, "the members stopped"),
]
# Alone: the clients of the others would take the last descriptors, and no tool would reach the node.
DESCRIPTORS = [
    lambda: Fault("O6", "node 2", few_descriptors, more_descriptors, "prlimit --nofile"),
]
# Later, one after the other: they move replicas and leaders of the others.
LEADERS = [lambda: Fault("C3", "cluster", other_leaders)]
PLACEMENT = [
    lambda: Fault("C4", "cluster", placed("skewed", ",".join(["1:3"] * 100), "--config", "min.insync.replicas=1")),
]
DOWN = [
    lambda: Fault("C6", "node 3", kill_three, start_three, "the node started again"),
    lambda: Fault("C11", "node 3", lambda rig, fault: None, start_three, "the node started again"),
    lambda: Fault("C2", "node 3", lambda rig, fault: None, start_three, "the node started again"),
]
