"""Changes by /api/v1: a dry run that changes nothing, the command line that does the same, the change; the audit log; and a console that
only reads."""

import json
import subprocess

from .ask import ask
from .nodes import OwnProcess, who
from .routes import eventually

TOPIC = "/api/v1/topics/made"


def check(table, node):
    port = node.console_port
    topics(table, node, port)
    configs(table, node, port)
    records(table, node, port)
    offsets(table, node, port)
    deletion(table, node, port)
    for query in ("dryRun=yes", "dryrun=true", "dryRun="):
        table.answered(f"?{query} is no dry run, and does nothing", ask(port, "DELETE", f"/api/v1/topics/orders?{query}"), 400)


def run(table, node, name, answer):
    """The command line as it is written, with this rig's program for `barnabas`."""
    script = answer.json["command"].replace("barnabas ", f"{node.binary} ", 1)
    ran = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    table.row(f"{name}: the command line runs as it is written", ran.returncode == 0, f"{script}: {ran.stdout}{ran.stderr}")


def topics(table, node, port):
    row = table.answered
    new = {"name": "made", "partitions": 2, "replication_factor": 1, "configs": {"cleanup.policy": "compact,delete"}}
    only = row("make a topic, dry run", ask(port, "POST", "/api/v1/topics?dryRun=true", new), 200, {"dry_run": True, "partitions": 2})
    row("it was not made", ask(port, "GET", TOPIC), 404)
    run(table, node, "make a topic", only)
    row("it was made by the command line", eventually(port, TOPIC, "compact,delete"), 200)
    row("make it again", ask(port, "POST", "/api/v1/topics", new), 400, {"kafka_error": "TOPIC_ALREADY_EXISTS"})
    row("make it again, dry run", ask(port, "POST", "/api/v1/topics?dryRun=true", new), 400, {"kafka_error": "TOPIC_ALREADY_EXISTS"})
    row("make a topic of defaults", ask(port, "POST", "/api/v1/topics", {"name": "plain"}), 200, {"dry_run": False, "partitions": 1})
    row("make a topic without a name", ask(port, "POST", "/api/v1/topics", {}), 400)
    row("make a topic with a number as config", ask(port, "POST", "/api/v1/topics", {"name": "x", "configs": {"retention.ms": 5}}), 400)


def configs(table, node, port):
    row = table.answered
    place = f"{TOPIC}/configs"
    change = {"configs": {"retention.ms": "7000", "cleanup.policy": None}}
    told = {"changes.0.before": "compact,delete", "changes.0.after": None, "changes.1.name": "retention.ms", "changes.1.after": "7000"}
    only = row("change configs, dry run", ask(port, "PATCH", f"{place}?dryRun=true", change), 200, {"dry_run": True, **told})
    table.row("nothing was changed", '"7000"' not in ask(port, "GET", TOPIC).body, "")
    run(table, node, "change configs", only)
    table.row("the command line changed them", '"7000"' in eventually(port, TOPIC, '"7000"').body, "")
    row("change one back", ask(port, "PATCH", place, {"configs": {"retention.ms": None}}), 200, {"changes.0.before": "7000", "changes.0.source": "DYNAMIC_TOPIC_CONFIG"})
    row("it is the default again", eventually(port, TOPIC, '"name":"retention.ms","source":"DEFAULT_CONFIG"'), 200)
    row("a bad value, dry run", ask(port, "PATCH", f"{place}?dryRun=true", {"configs": {"retention.ms": "x"}}), 400, {"kafka_error": "INVALID_CONFIG"})
    row("no configs", ask(port, "PATCH", place, {"configs": {}}), 400)


def records(table, node, port):
    row = table.answered
    base = ask(port, "GET", "/v3/clusters").json["data"][0]["metadata"]["self"].split("/", 3)[3]
    body = "".join(json.dumps({"partition_id": n % 2, "value": {"type": "STRING", "data": str(n)}}) for n in range(20))
    ask(port, "POST", f"/{base}/topics/made/records", body)
    place = f"{TOPIC}/delete-records"
    some = {"offsets": {"0": 4}}
    only = row("delete records, dry run", ask(port, "POST", f"{place}?dryRun=true", some), 200, {"dry_run": True, "records": 4, "partitions.0.after": 4})
    row("all are there", ask(port, "GET", TOPIC), 200, {"partitions.0.start_offset": 0})
    run(table, node, "delete records", only)
    row("the command line deleted them", eventually(port, TOPIC, '"start_offset":4'), 200, {"partitions.0.start_offset": 4})
    row("delete to beyond the end", ask(port, "POST", f"{place}?dryRun=true", {"offsets": {"0": 99}}), 400, {"kafka_error": "OFFSET_OUT_OF_RANGE"})
    row("delete from no partition", ask(port, "POST", place, {"offsets": {"9": 1}}), 404, {"kafka_error": "UNKNOWN_TOPIC_OR_PARTITION"})
    for bad in ({}, {"all": True, "offsets": {"0": 1}}, {"all": False}, {"offsets": {"x": 1}}, {"offsets": {"0": -1}}):
        row(f"delete records by {bad}", ask(port, "POST", place, bad), 400)
    row("empty a topic", ask(port, "POST", place, {"all": True}), 200, {"dry_run": False, "records": 16})
    emptied = eventually(port, TOPIC, '"start_offset":10').json["partitions"]
    table.row("it is empty", [one["end_offset"] - one["start_offset"] for one in emptied] == [0, 0], emptied)


def offsets(table, node, port):
    row = table.answered
    node.tool("console-consumer", "--topic", "orders", "--group", "resetters", "--from-beginning", "--max-messages", "5", "--timeout-ms", "20000")
    place = "/api/v1/groups/resetters/reset-offsets"
    end = {one["partition"]: one["end_offset"] for one in ask(port, "GET", "/api/v1/topics/orders").json["partitions"]}
    only = row("reset a group, dry run", ask(port, "POST", f"{place}?dryRun=true", {"to": "latest", "topic": "orders"}), 200, {"dry_run": True})
    table.row("it tells each new offset", {one["partition"]: one["after"] for one in only.json["partitions"]} == end, only.body)
    committed = lambda: {one["partition"]: one["current_offset"] for one in ask(port, "GET", "/api/v1/groups/resetters").json["partitions"]}
    table.row("nothing was reset", committed() != end, committed())
    run(table, node, "reset a group", only)
    table.row("the command line reset it", committed() == end, committed())
    row("reset one partition", ask(port, "POST", place, {"to": "offset", "value": 1, "topic": "orders", "partition": 0}), 200, {"partitions.0.before": end[0], "partitions.0.after": 1})
    table.row("that one alone", committed() == {**end, 0: 1}, committed())
    row("shift all", ask(port, "POST", place, {"to": "shift", "value": -1}), 200, lambda document: {one["after"] for one in document["partitions"] if one["partition"] == 0} == {0})
    row("reset to a time to come", ask(port, "POST", f"{place}?dryRun=true", {"to": "time", "value": 4102444800000}), 200, lambda document: {one["partition"]: one["after"] for one in document["partitions"]} == end)
    row("a group with members", ask(port, "POST", "/api/v1/groups/readers/reset-offsets", {"to": "earliest"}), 400, {"kafka_error": "NON_EMPTY_GROUP"})
    row("no group", ask(port, "POST", "/api/v1/groups/absent/reset-offsets", {"to": "earliest"}), 404, {"kafka_error": "GROUP_ID_NOT_FOUND"})
    for bad in ({}, {"to": "now"}, {"to": "offset"}, {"to": "latest", "partition": 0}):
        row(f"reset by {bad}", ask(port, "POST", place, bad), 400)
    row("reset no topic", ask(port, "POST", place, {"to": "latest", "topic": "absent"}), 404, {"kafka_error": "UNKNOWN_TOPIC_OR_PARTITION"})


def deletion(table, node, port):
    row = table.answered
    only = row("delete a topic, dry run", ask(port, "DELETE", f"{TOPIC}?dryRun=true"), 200, {"dry_run": True, "partitions": 2, "records": 0})
    row("it is there", ask(port, "GET", TOPIC), 200)
    run(table, node, "delete a topic", only)
    row("the command line deleted it", eventually(port, TOPIC, "UNKNOWN"), 404)
    row("delete a topic", ask(port, "DELETE", "/api/v1/topics/plain"), 200, {"dry_run": False, "name": "plain"})
    row("it is gone", eventually(port, "/api/v1/topics/plain", "UNKNOWN"), 404)


def audited(table, node):
    """The broker's own audit log names who has changed what by the console."""
    port, admin = node.console_port, who("admin")
    change = {"configs": {"retention.ms": "9000"}}
    table.answered("a change with a login", ask(port, "PATCH", "/api/v1/topics/orders/configs", change, user=admin), 200)
    refused = ask(port, "PATCH", "/api/v1/topics/orders/configs", change, user=who("stranger"))
    table.answered("a change without the right", refused, 403, {"kafka_error": "TOPIC_AUTHORIZATION_FAILED"})
    asked = {"principal": "User:admin", "client_id": "barnabas-console", "request": "IncrementalAlterConfigs", "outcome": "success"}
    node.wait_until(lambda: any(asked.items() <= line.items() for line in lines(node)), 10, every=0.1)
    found = [line for line in lines(node) if asked.items() <= line.items()]
    table.row("the audit log has it with before and after", found[-1].get("changes") and found[-1]["changes"][0]["to"] == "9000", found[-1:])
    table.row("and the denial", any(line["event"] == "denied" and line["principal"] == "User:stranger" for line in lines(node)), lines(node)[-3:])


def lines(node):
    return [json.loads(line) for line in node.audit.read_text().splitlines()]


def read_only(table, directory, binary, node, cluster):
    """No way in changes anything."""
    own = OwnProcess(directory, binary, node.address, words=["--read-only"]).start()
    base = f"/v3/clusters/{cluster}"
    row = table.answered
    row("read-only: it says so", ask(own.port, "GET", "/api/v1/overview"), 200, {"is_read_only": True})
    record = {"value": {"type": "STRING", "data": "x"}}
    for method, path, body in (
        ("POST", "/api/v1/topics", {"name": "unwanted"}),
        ("POST", "/api/v1/topics?dryRun=true", {"name": "unwanted"}),
        ("DELETE", "/api/v1/topics/orders", None),
        ("PATCH", "/api/v1/topics/orders/configs", {"configs": {"retention.ms": "1"}}),
        ("POST", f"{base}/topics", {"topic_name": "unwanted"}),
        ("POST", f"{base}/topics/orders/records", record),
        ("PUT", f"/kafka{base}/topics/orders/configs/retention.ms", {"value": "1"}),
        ("POST", "/topics/orders", {"records": [{"value": "eA=="}]}),
        ("POST", "/consumers/unwanted", {}),
        ("POST", "/admin/topics", {"topic_name": "unwanted"}),
    ):
        row(f"read-only: {method} {path}", ask(own.port, method, path, body), 403, lambda document: "only reads" in document.get("detail", document.get("message")))
    row("read-only: it reads", ask(own.port, "GET", "/api/v1/topics/orders"), 200)
    row("read-only: nothing was made", ask(own.port, "GET", "/api/v1/topics/unwanted"), 404)
    own.stop()
