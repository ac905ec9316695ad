"""The bridge story: a queue in Artemis → a topic → another queue in Artemis, while everything is killed.

Qpid JMS puts numbered messages into the first queue, each once (a duplicate id, and again after a failure). A bridge of two connectors
drains the queue into a topic and the topic into the second queue. Meanwhile bridge, node and Artemis are killed with −9, in turn, at
random moments, and started again. At the end the topic (read_committed) and the second queue must hold each number once. Then a message
that no topic takes must end as a dead letter (`refusals.py`).

What it does not show: loss of power, and a peer without duplicate detection, where a sink is at least once.
"""

import argparse
import random
import subprocess
import sys
import threading
import time
from collections import Counter

from compat.cli import find_binary, in_scratch
from compat.driver import Failure
from harness.ports import free_port
from harness.process import NodeProcess, spawn
from harness.server import Barnabas, write_properties

from ends import IN, OUT, Artemis, browsed, jms_words
from refusals import refusals

TOPIC = "story"


class Bridge(NodeProcess):
    """`barnabas bridge` with both connectors."""

    label = "the bridge"

    def __init__(self, directory, binary, node, artemis, options):
        self.words, self.log, self.page = options.bridge or [str(binary), "bridge"], directory / "bridge.log", free_port()
        common = {"bootstrap.servers": node.address, "amqp.url": f"amqp://{artemis.address}", "mq.user.name": "admin", "mq.password": "admin",
                  "mq.message.body.jms": "true", "metrics.listener": f"127.0.0.1:{self.page}"}
        # The keys of IBM's connectors, as their users have them.
        source = {"name": "in", "connector.class": "com.ibm.eventstreams.connect.mqsource.MQSourceConnector", "topic": TOPIC, "mq.queue": IN,
                  "mq.record.builder": "com.ibm.eventstreams.connect.mqsource.builders.DefaultRecordBuilder", "mq.batch.size": options.batch,
                  "mq.jms.properties.copy.to.kafka.headers": "true", **common}
        sink = {"name": "out", "connector.class": "com.ibm.eventstreams.connect.mqsink.MQSinkConnector", "topics": TOPIC, "mq.queue": OUT,
                "mq.message.builder": "com.ibm.eventstreams.connect.mqsink.builders.DefaultMessageBuilder",
                "mq.kafka.headers.copy.to.jms.properties": "true", "value.converter": "org.apache.kafka.connect.storage.StringConverter", **common}
        self.files = [write_properties(directory / "source.properties", source), write_properties(directory / "sink.properties", sink)]

    def start(self):
        self.run([*self.words, *self.files])

    def status(self):
        return subprocess.run([*self.words, "status", *map(str, self.files)], capture_output=True, text=True).stdout

    def counted(self):
        """Messages that are done, by connector, since this start."""
        rows = [line.split() for line in self.status().splitlines()[1:]]
        return {row[0]: int(row[1]) for row in rows}


class Put(threading.Thread):
    """The sender, in a process of its own."""

    def __init__(self, words, artemis, options, log):
        super().__init__(daemon=True)
        with open(log, "ab") as errors:
            arguments = ["put", f"amqp://{artemis.address}", IN, str(options.messages), str(options.rate)]
            self.process = spawn([*words, *arguments], stdout=subprocess.PIPE, stderr=errors, text=True)
        self.said = ""

    def run(self):
        self.said = self.process.stdout.read()


def topic_texts(binary, node):
    """Every committed record of the topic."""
    words = [str(binary), "console-consumer", "--bootstrap-server", node.address, "--topic", TOPIC, "--from-beginning", "--isolation-level",
             "read_committed", "--timeout-ms", "5000"]
    return subprocess.run(words, capture_output=True, text=True, timeout=120).stdout.split()


def kills(victims, options, put, chance):
    """Each victim in turn, at random moments while messages flow: how many kills."""
    count = 0
    while count < options.kills and put.process.poll() is None:
        victim = victims[count % len(victims)]
        time.sleep(chance.uniform(0.3, 1) * options.every)
        victim.kill()
        time.sleep(chance.uniform(0, 0.5))
        victim.start()
        count += 1
        print(f"  kill {count:2}: {victim}", flush=True)
    return count


def judge(name, found, messages):
    """(lost, doubled) among the numbers that were found."""
    counts = Counter(found)
    lost = [number for number in range(messages) if str(number) not in counts]
    doubled = [number for number, count in counts.items() if count > 1]
    strange = [number for number in counts if not (number.isdigit() and int(number) < messages)]
    print(f"  {name}: {len(found)} messages, {len(lost)} lost, {len(doubled)} doubled", flush=True)
    if lost or doubled or strange:
        print(f"    lost {lost[:10]}, doubled {doubled[:10]}, strange {strange[:10]}")
    return len(lost) + len(strange), len(doubled)


def settle(bridge, binary, node, messages, within):
    """Waits until the sink has moved everything, by the end of the group's lag."""
    until = time.monotonic() + within
    while time.monotonic() < until:
        words = [str(binary), "consumer-groups", "--bootstrap-server", node.address, "--describe", "--group", "connect-out"]
        rows = [line.split() for line in subprocess.run(words, capture_output=True, text=True).stdout.splitlines() if TOPIC in line]
        lags = [row[5] for row in rows if len(row) > 5]
        if rows and all(lag == "0" for lag in lags) and len(topic_texts(binary, node)) >= messages:
            return
        if not bridge.is_alive():
            raise Failure(f"the bridge ended: {bridge.last_lines()}")
        time.sleep(0.5)
    print(f"  not everything has moved within {within} s: {bridge.last_lines()}")


def story(options, scratch):
    binary, words = find_binary(options.binary), jms_words()
    chance = random.Random(options.seed)
    node, artemis = Barnabas(scratch / "node", binary, {"num.partitions": "3"}), Artemis(scratch / "artemis")
    bridge = Bridge(scratch, binary, node, artemis, options)
    node.start()
    artemis.start()
    bridge.start()
    print(f"{options.messages} messages at {options.rate}/s, {options.kills} kills, seed {options.seed}", flush=True)
    put = Put(words, artemis, options, scratch / "put.log")
    put.start()
    done = kills([bridge, node, artemis], options, put, chance)
    put.join(options.messages / options.rate + 120)
    if put.said.split() != ["put", str(options.messages)]:
        raise Failure(f"the sender did not end: {put.said}")
    settle(bridge, binary, node, options.messages, 60)
    print(bridge.status(), end="")
    in_topic = judge("topic", topic_texts(binary, node), options.messages)
    rows = browsed(words, artemis, OUT)
    in_queue = judge("queue", [row[0] for row in rows], options.messages)
    if any(row[0] != row[1] or not row[2].startswith("out:story:") for row in rows):
        raise Failure(f"properties did not come through: {[row for row in rows if row[0] != row[1]][:3]}")
    ended = bridge.stop(20)
    if not ended:
        raise Failure(f"the bridge does not stop: {bridge.last_lines()}")
    refusals(bridge.words, binary, node, artemis, words, scratch)
    node.stop()
    artemis.kill()
    lost, doubled = in_topic[0] + in_queue[0], in_topic[1] + in_queue[1]
    if done < options.kills:
        print(f"  only {done} of {options.kills} kills: the sender was done before")
    is_good = not lost and not doubled and done == options.kills
    if not is_good and options.keep:
        print((scratch / "bridge.log").read_text()[-6000:])
    print(f"{int(is_good)} passed, {int(not is_good)} failed, 0 skipped")
    print(f"bridge: {options.messages} messages, {lost} lost, {doubled} doubled, {done} kills")
    return 0 if is_good else 1


def main(words):
    parser = argparse.ArgumentParser(prog="lab/bridge/run", description="Queue → topic → queue while bridge, node and Artemis are killed.")
    parser.add_argument("--messages", type=int, default=30_000)
    parser.add_argument("--rate", type=int, default=250, help="messages a second into the first queue")
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--every", type=float, default=4, help="seconds between two kills, at most")
    parser.add_argument("--batch", type=int, default=250)
    parser.add_argument("--quick", action="store_true", help="2,000 messages and three kills")
    parser.add_argument("--binary", help="the barnabas program")
    parser.add_argument("--bridge", nargs=1, help="another program that is the command `bridge` alone")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--keep", action="store_true", help="print the bridge's log where something is wrong")
    options = parser.parse_args(words)
    if options.quick:
        options.messages, options.rate, options.kills, options.every = 2_000, 150, 3, 3
    return in_scratch("bridge", lambda scratch: story(options, scratch))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
