"""A partition whose directory is gone: what the console, the probes and Kafka's tools say of it."""

import shutil

from .ask import ask
from .nodes import WithConsole

TOPIC = "lost"


def check(table, directory, binary):
    node = WithConsole(directory / "offline", binary).start()
    port = node.console_port
    ask(port, "POST", "/api/v1/topics", {"name": TOPIC, "partitions": 2, "replication_factor": 1})
    for partition in (0, 1):
        sent = ask(port, "POST", f"/topics/{TOPIC}/partitions/{partition}", {"records": [{"value": "a record"}]}, {"Content-Type": "application/vnd.kafka.json.v2+json"})
        assert sent.json["offsets"][0]["offset"] == 0, sent.body
    healthy = ask(port, "GET", "/readyz?verbose")
    table.row("all replicas are there", (healthy.status, "[+] replicas" in healthy.body) == (200, True), healthy.body)
    node.stop()
    shutil.rmtree(node.data / f"{TOPIC}-0")
    node.start()

    def is_known():
        return ask(port, "GET", "/api/v1/overview").json["offline"] == 1

    node.wait_until(is_known, 60, every=0.2)
    seen = ask(port, "GET", "/api/v1/overview")
    table.answered("overview: a partition without a leader, an offline replica", seen, 200, {"offline": 1, "offline_replicas": 1})
    listed = ask(port, "GET", f"/api/v1/topics?q={TOPIC}")
    table.answered("topics: it is one of this topic", listed, 200, {"data.0.name": TOPIC, "data.0.offline": 1})
    shown = {"partitions.0.leader": None, "partitions.0.offline": [1], "partitions.1.leader": 1, "partitions.1.offline": [], "partitions.1.end_offset": 1}
    table.answered("topic: which one", ask(port, "GET", f"/api/v1/topics/{TOPIC}"), 200, shown)
    ready = ask(port, "GET", "/readyz?verbose")
    table.row("the node is ready, and says it", ready.status == 200 and f"[!] replicas: 1 replicas are offline" in ready.body and f"{TOPIC}-0" in ready.body, ready.body)
    table.row("without verbose it is short", ask(port, "GET", "/readyz").body == "ok\n", "")
    described = node.tool("topics", "--describe", "--unavailable-partitions")
    table.row("--unavailable-partitions shows it", "Partition: 0" in described and "Leader: none" in described and "Partition: 1" not in described, described)
    node.stop()
    return node
