"""Transactions beside a load, until the end of standard input: `transact.py BOOTSTRAP TOPIC PER_SECOND RECORDS`. Run by lab/compat's Python (confluent-kafka).

Each is begun when it is due or, where the one before was late, at once. One JSON line: commits, failures, p50 and p99 of a transaction in ms.
"""

import json
import sys
import threading
import time

from confluent_kafka import KafkaException, Producer


def main():
    bootstrap, topic, per_second, records = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "tail-beside", "linger.ms": 0})
    producer.init_transactions(60)
    took, failed, due = [], 0, time.monotonic()
    while not ended.wait(max(due - time.monotonic(), 0)):
        due = max(due + 1 / per_second, time.monotonic())
        begun = time.monotonic()
        try:
            producer.begin_transaction()
            for _ in range(records):
                producer.produce(topic, b"t" * 1000)
            producer.commit_transaction(30)
            took.append(time.monotonic() - begun)
        except KafkaException:
            failed += 1
            producer.abort_transaction(30)
    took.sort()
    of = lambda share: round(took[int(len(took) * share)] * 1e3, 2) if took else None
    print(json.dumps({"commits": len(took), "failed": failed, "p50_ms": of(0.5), "p99_ms": of(0.99)}))


main()
