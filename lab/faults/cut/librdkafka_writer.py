"""librdkafka as an idempotent producer that recovers from the power cuts by itself. See ../src/cut/librdkafka.rs.

Arguments: port, topic, partitions, the writer's number. Ends when its input does, after everything was acknowledged.
"""

import ctypes
import os
import random
import select
import signal
import struct
import sys
import time

from confluent_kafka import Producer

ctypes.CDLL(None).prctl(1, signal.SIGKILL)
port, topic, partitions, writer = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
out = []


def say(line):
    out.append(line + "\n")
    if len(out) > 200:
        flush()


def flush():
    os.write(1, "".join(out).encode())
    out.clear()


producer = Producer({
    "bootstrap.servers": f"127.0.0.1:{port}", "enable.idempotence": True, "acks": "all", "linger.ms": 1, "log_level": 2,
    "delivery.timeout.ms": 600000, "request.timeout.ms": 5000, "socket.timeout.ms": 10000, "retry.backoff.ms": 10, "retry.backoff.max.ms": 50,
    "reconnect.backoff.ms": 5, "reconnect.backoff.max.ms": 20, "batch.size": 30000, "queue.buffering.max.messages": 20000,
    "error_cb": lambda error: say(f"e {error}") if error.fatal() else None,
})
counts = [0] * partitions


def delivered(partition, number):
    def report(error, message):
        say(f"e record {number} of partition {partition}: {error}" if error else f"a {partition} {message.offset()} {number}")
    return report


ended = False
while not ended:
    for _ in range(random.randrange(1, 20)):
        partition = random.randrange(partitions)
        number = counts[partition]
        head = struct.pack(">IQ", writer, number)
        value = head + bytes([((number & 255) * 31 + writer) & 255]) * random.randrange(8, 600)
        try:
            producer.produce(topic, value, partition=partition, on_delivery=delivered(partition, number))
        except BufferError:
            break
        counts[partition] += 1
    producer.poll(0.003)
    flush()
    ended = bool(select.select([sys.stdin], [], [], 0)[0])
left = producer.flush(60)
if left:
    say(f"e {left} records were not acknowledged")
say("end")
flush()
