"""An idempotent librdkafka producer for the kill loop: writes numbered records until its input ends, says what was acknowledged.

    python librdkafka_producer.py ADDRESS TOPIC PARTITIONS PRODUCER
"""

import select
import struct
import sys
import time

from confluent_kafka import Producer

address, topic, partitions, name = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
producer = Producer({
    "bootstrap.servers": address, "enable.idempotence": True, "acks": "all", "linger.ms": 1, "log_level": 2,
    "max.in.flight.requests.per.connection": 5, "message.timeout.ms": 0, "retry.backoff.ms": 5, "retry.backoff.max.ms": 50,
    "reconnect.backoff.ms": 5, "reconnect.backoff.max.ms": 50, "topic.metadata.refresh.fast.interval.ms": 20,
    # By default it forgets every node that it loses and begins anew, which takes longer than a node lives here.
    "metadata.recovery.strategy": "none",
})
sent = [0] * partitions
acked = [0] * partitions


def delivered(error, message):
    if error:
        print(f"failed {error}", flush=True)
    else:
        acked[message.partition()] += 1


def tell(verb, counts):
    for partition, count in enumerate(counts):
        if count:
            sys.stdout.write(f"{verb} {partition} {count}\n")
            counts[partition] = 0
    sys.stdout.flush()


numbers = [0] * partitions
while not select.select([sys.stdin], [], [], 0)[0]:
    # A librdkafka queue that is full waits; the node may be dead for a moment.
    if len(producer) < 2000:
        for partition in range(partitions):
            for _ in range(8):
                value = struct.pack(">IQ", name, numbers[partition]).ljust(120, b".")
                sent[partition] += 1
                numbers[partition] += 1
                producer.produce(topic, value, partition=partition, on_delivery=delivered)
    tell("sent", sent)
    producer.poll(0.004)
    tell("acked", acked)
    time.sleep(0.004)
left = producer.flush(60)
tell("acked", acked)
sys.exit(1 if left else 0)
