"""`make console-test`: starts a node, fills it, and runs tasks.mjs in a browser against its console. The last line counts."""

import argparse
import subprocess
import tempfile
from pathlib import Path

from harness.process import spawn

from ..ask import ask
from ..nodes import WithConsole

ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).resolve().parent
# Names and contents that a page which makes HTML of them would run.
HOSTILE = "<img src=x onerror=alert(1)>"


def fill(node):
    """Topics, records of every kind, a group that is behind."""
    port = node.console_port
    base = f"/v3/clusters/{ask(port, 'GET', '/v3/clusters').json['data'][0]['cluster_id']}"
    made = [("orders", 3), ("payments", 2), ("audit.log", 1), *((f"sensor-{n:03}", 1) for n in range(60))]
    for name, partitions in made:
        ask(port, "POST", f"{base}/topics", {"topic_name": name, "partitions_count": partitions, "configs": [{"name": "retention.ms", "value": "86400000"}]})
    text = lambda data: {"type": "STRING", "data": data}
    values = [
        {"key": text("k1"), "value": {"type": "JSON", "data": {"order": 17, "items": [{"sku": "A-1", "price": 9.5}], "note": "first"}}},
        {"key": text("k2"), "value": text("plain text")},
        {"key": text("k3"), "value": None},
        {"key": text(""), "value": text("")},
        {"value": {"type": "BINARY", "data": "AAECAwT/gIA="}},
        {"key": text(HOSTILE), "value": text(f"<script>alert(1)</script>{HOSTILE}"), "headers": [{"name": HOSTILE, "value": "PGI+"}]},
        {"key": text("long"), "value": text("x" * 40_000)},
    ]
    for value in values:
        answer = ask(port, "POST", f"{base}/topics/orders/records", {"partition_id": 0, **value})
        assert answer.json["error_code"] == 200, answer.body
    exact = '{"partition_id":1,"value":{"type":"JSON","data":{"max":9223372036854775807,"more":18446744073709551615,"huge":1e400}}}'
    assert ask(port, "POST", f"{base}/topics/orders/records", exact).status == 200
    node.tool("console-consumer", "--topic", "orders", "--group", "billing", "--from-beginning", "--max-messages", "3", "--timeout-ms", "20000")
    words = [node.binary, "console-consumer", "--bootstrap-server", node.address, "--topic", "payments", "--group", "payers"]
    spawn(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def is_stable():
        return ask(port, "GET", "/api/v1/groups/payers").body.find('"state":"Stable"') >= 0

    node.wait_until(is_stable, 60, every=0.2)


def main():
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--binary", default=ROOT / "target/release/barnabas")
    flags.add_argument("--pictures")
    given = flags.parse_args()
    with tempfile.TemporaryDirectory(prefix="barnabas-console.") as directory:
        node = WithConsole(Path(directory) / "node", Path(given.binary).resolve()).start()
        fill(node)
        words = ["node", HERE / "tasks.mjs", f"http://127.0.0.1:{node.console_port}", str(node.pid), given.pictures or ""]
        done = subprocess.run([str(word) for word in words], timeout=300)
        node.stop()
    raise SystemExit(done.returncode)


main()
