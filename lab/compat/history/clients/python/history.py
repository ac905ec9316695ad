"""confluent-kafka (librdkafka) as one client of a chaos run: writes what it saw as a history (../../README.md).

Roles: producer, txn, group. `stop` on standard input ends it in good order, the end of standard input at once.
"""

import json
import os
import random
import sys
import threading
import time

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

args = json.loads(sys.argv[1])
out = os.open(args["out"], os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o644)
stopping = threading.Event()
chance = random.Random(args["seed"])
topics = sorted(args.get("topics", {}))
per_op = args.get("per_op", 10)
ids = iter(range(1, 1 << 60))


def say(op, phase, **rest):
    line = {"t": time.monotonic_ns(), "c": args["name"], "op": op, "ph": phase, **rest}
    os.write(out, (json.dumps(line, separators=(",", ":")) + "\n").encode())


def listen():
    for line in sys.stdin:
        if line.strip() == "stop":
            stopping.set()
    os._exit(3)


def settings(**more):
    return {"bootstrap.servers": args["bootstrap"], "client.id": args["name"], "log_level": 2, "reconnect.backoff.max.ms": 500,
            "error_cb": lambda error: print("error:", error, file=sys.stderr), "socket.timeout.ms": 8000, "topic.metadata.refresh.interval.ms": 10000, **more}


def producing(**more):
    # A record that times out here makes librdkafka take a new epoch and send again what is in flight: twice, whoever the
    # broker is. So none does while a fault lasts.
    return Producer(settings(**{"acks": "all", "enable.idempotence": True, "linger.ms": 5, "delivery.timeout.ms": 600000,
                                "request.timeout.ms": 5000, "max.in.flight": args.get("in_flight", 5), **more}))


class Op:
    """Sends of one operation: when all ended, an ok line for those that are in, an info line for those of which nobody knows."""

    def __init__(self, records, **txn):
        self.id, self.txn, self.left = next(ids), txn, len(records)
        self.good, self.open, self.error = [], [], ""
        say("send", "invoke", id=self.id, **txn, recs=records)

    def report(self, record):
        def reported(error, message):
            self.ended(record, None if error else message.offset(), error)
        return reported

    def ended(self, record, offset, error):
        if error:
            self.open.append(record)
            self.error = str(error)[:100]
        else:
            self.good.append([*record, offset])
        self.left -= 1
        if self.left:
            return
        if self.good:
            say("send", "ok", id=self.id, **self.txn, recs=self.good)
        if self.open:
            say("send", "info", id=self.id, **self.txn, recs=self.open, err=self.error)


class Writer:
    def __init__(self):
        self.writer, self.sequence, self.producer = args["writer"], 0, None
        self.is_dead = False

    def renew(self, **more):
        """A new producer is a new writer: what the old one left open may come in late."""
        self.writer, self.sequence, self.is_dead = self.writer + 1, 0, False
        self.producer = producing(**more)

    def records(self):
        topic = chance.choice(topics)
        partitions = args["topics"][topic]
        first, made = chance.randrange(partitions), []
        for index in range(per_op):
            made.append([topic, (first + index % 2) % partitions, self.writer << 32 | self.sequence])
            self.sequence += 1
        return made

    def send(self, **txn):
        records = self.records()
        op = Op(records, **txn)
        for record in records:
            try:
                self.producer.produce(record[0], str(record[2]), partition=record[1], on_delivery=op.report(record))
            except (KafkaException, BufferError) as error:
                # A producer whose error is fatal takes nothing any more.
                self.is_dead |= isinstance(error, KafkaException) and error.args[0].fatal()
                op.ended(record, None, error)
            self.producer.poll(0)


def pace(last, pause, producer):
    last = max(last + pause, time.monotonic() - 1)
    while (left := last - time.monotonic()) > 0:
        producer.poll(min(left, 0.1))
    return last


def produce():
    writer = Writer()
    writer.renew()
    last = time.monotonic()
    while not stopping.is_set():
        if writer.is_dead:
            writer.renew()
        try:
            if len(writer.producer) < 8 * per_op:
                writer.send()
            last = pace(last, per_op / args["rate"], writer.producer)
        except SystemError as error:
            print("send:", error.__cause__ or error, file=sys.stderr)
            writer.is_dead = True
    writer.producer.flush(60)


def transactions():
    writer, number, last = Writer(), 0, time.monotonic()
    writer.producer = None
    while not stopping.is_set():
        if writer.producer is None:
            writer.renew(**{"transactional.id": args["txid"], "transaction.timeout.ms": 15000, "delivery.timeout.ms": 12000})
            try:
                writer.producer.init_transactions(15)
            except KafkaException as error:
                print("init:", error, file=sys.stderr)
                writer.producer = None
                time.sleep(0.3)
                continue
        number += 1
        if not transaction(writer, number, chance.randrange(5) != 0):
            writer.producer = None
            continue
        last = pace(last, 2 * per_op / args["rate"], writer.producer)


def transaction(writer, number, commit):
    """Whether the producer may go on."""
    say("begin", "invoke", txn=number)
    try:
        writer.producer.begin_transaction()
        for _ in range(chance.randrange(1, 4)):
            writer.send(txn=number)
        writer.producer.flush(30)
        end(writer, number, commit)
        return True
    except SystemError as error:
        # So confluent-kafka tells of a fatal error that it meets within a callback.
        print("transaction:", error.__cause__ or error, file=sys.stderr)
        return False
    except KafkaException as error:
        print("transaction:", error, file=sys.stderr)
        if not error.args[0].txn_requires_abort():
            return False
    try:
        end(writer, number, False)
        return True
    except KafkaException as error:
        print("abort:", error, file=sys.stderr)
        return False


def end(writer, number, commit):
    """A commit whose end is not known is asked for again: nothing else may follow it."""
    say("end", "invoke", txn=number, commit=commit)
    for attempt in range(5):
        try:
            (writer.producer.commit_transaction if commit else writer.producer.abort_transaction)(10)
            say("end", "ok", txn=number, commit=commit)
            return
        except KafkaException as error:
            if error.args[0].retriable() and attempt < 4:
                continue
            say("end", "info", txn=number, commit=commit, err=str(error)[:100])
            raise


class Member:
    """One member's life: it polls, writes down, commits; after a while it leaves."""

    def __init__(self):
        self.records = []
        self.consumer = Consumer(settings(**{
            "group.id": args["group"], "enable.auto.commit": False, "auto.offset.reset": "earliest", "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 1000, "partition.assignment.strategy": "cooperative-sticky" if args.get("cooperative") else "range",
            "isolation.level": "read_committed" if args["iso"] == "rc" else "read_uncommitted",
            # A commit that never returned (seen once, in both members at once) could not be told from a coordinator's silence.
            "debug": "cgrp", "log_level": 7}))
        self.consumer.subscribe(topics, on_assign=self.changed, on_revoke=self.changed, on_lost=self.changed)

    def changed(self, consumer, parts):
        # What was polled before belongs to the assignment of before.
        self.tell()
        say("assign", "ok", group=args["group"], parts=[[p.topic, p.partition] for p in parts])

    def tell(self):
        if self.records:
            say("poll", "ok", group=args["group"], iso=args["iso"], recs=self.records)
            self.records = []

    def turn(self):
        ends = {}
        until = time.monotonic() + 0.2
        while len(self.records) < 200 and (left := until - time.monotonic()) > 0:
            message = self.consumer.poll(left)
            if message is None:
                break
            if message.error():
                print("poll:", message.error(), file=sys.stderr)
                continue
            self.records.append([message.topic(), message.partition(), int(message.value()), message.offset()])
        for topic, partition, _, offset in self.records:
            ends[topic, partition] = offset + 1
        self.tell()
        if ends:
            self.commit(ends)

    def commit(self, ends):
        op, offs = next(ids), [[topic, partition, offset] for (topic, partition), offset in ends.items()]
        say("commit", "invoke", id=op, group=args["group"])
        try:
            told = self.consumer.commit(offsets=[TopicPartition(*row) for row in offs], asynchronous=False)
            good = [[p.topic, p.partition, p.offset] for p in told if p.error is None]
            say("commit", "ok", id=op, group=args["group"], offs=good)
        except KafkaException as error:
            say("commit", "info", id=op, group=args["group"], offs=offs, err=str(error)[:100])


def group():
    while not stopping.is_set():
        member, until = Member(), time.monotonic() + chance.randrange(20, 60)
        try:
            while not stopping.is_set() and time.monotonic() < until:
                member.turn()
        except (KafkaException, RuntimeError) as error:
            print("member:", error, file=sys.stderr)
        member.consumer.close()
        say("assign", "ok", parts=[])


threading.Thread(target=listen, daemon=True).start()
{"producer": produce, "txn": transactions, "group": group}[args["role"]]()
os._exit(0)
