"""Route × caller: a caller without rights gets what the broker's authorizer says, with Kafka's error name, and nothing is done. A route that
is missing here fails the run: the rows are compared with the tables of routes in the source."""

import re
from pathlib import Path

from . import search
from .ask import ask
from .nodes import who

ROOT = Path(__file__).resolve().parents[2]
C, T, G, R = "CLUSTER_AUTHORIZATION_FAILED", "TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED", "orders"
# A list shows what its caller may see, as Kafka's own lists do: 200, and nothing that is not the caller's.
EMPTY = "empty"
# What everyone who is logged in may know, as by Metadata.
OPEN = "open"
# A consumer of REST v2 is found by its maker alone.
ABSENT = "absent"

RECORD = {"value": {"type": "STRING", "data": "x"}}
VALUE = {"value": "1000"}
CHANGES = {"data": [{"name": "retention.ms", "value": "1000"}]}
ACL = {
    "resource_type": "TOPIC", "resource_name": "t", "pattern_type": "LITERAL", "principal": "User:stranger", "host": "*",
    "operation": "ALL", "permission": "ALLOW",
}
GROUP = "/v3/clusters/{cluster}/consumer-groups/{group}"
TOPIC = "/v3/clusters/{cluster}/topics/{topic}"
BROKER = "/v3/clusters/{cluster}/brokers/{broker}"
ALL = "/v3/clusters/{cluster}"
INSTANCE = "/consumers/{group}/instances/{instance}"
V2_RECORDS = {"records": [{"value": "eA=="}]}
V2_PARTS = {"partitions": [{"topic": R, "partition": 0}]}
V2_OFFSETS = {"offsets": [{"topic": R, "partition": 0, "offset": 1}]}

# (method, pattern): (what a caller without rights gets, body, query)
ROWS = {
    ("GET", "/v3/clusters"): (OPEN,),
    ("GET", ALL): (OPEN,),
    ("GET", f"{ALL}/brokers"): (OPEN,),
    ("GET", f"{ALL}/brokers/-/configs"): (C,),
    ("GET", BROKER): (OPEN,),
    ("GET", f"{BROKER}/partition-replicas"): (EMPTY,),
    ("GET", f"{BROKER}/configs"): (C,),
    ("POST", f"{BROKER}/configs:alter"): (C, CHANGES),
    ("GET", f"{BROKER}/configs/{{name}}"): (C,),
    ("PUT", f"{BROKER}/configs/{{name}}"): (C, VALUE),
    ("DELETE", f"{BROKER}/configs/{{name}}"): (C,),
    ("GET", f"{ALL}/broker-configs"): (C,),
    ("POST", f"{ALL}/broker-configs:alter"): (C, CHANGES),
    ("GET", f"{ALL}/broker-configs/{{name}}"): (C,),
    ("PUT", f"{ALL}/broker-configs/{{name}}"): (C, VALUE),
    ("DELETE", f"{ALL}/broker-configs/{{name}}"): (C,),
    ("GET", f"{ALL}/topics"): (EMPTY,),
    ("POST", f"{ALL}/topics"): (T, {"topic_name": "mine"}),
    ("GET", f"{ALL}/topics/-/configs"): (EMPTY,),
    ("GET", f"{ALL}/topics/-/partitions/-/reassignment"): (C,),
    ("GET", TOPIC): (T,),
    ("PATCH", TOPIC): (T, {"partitions_count": 9}),
    ("DELETE", TOPIC): (T,),
    ("GET", f"{TOPIC}/configs"): (T,),
    ("POST", f"{TOPIC}/configs:alter"): (T, CHANGES),
    ("GET", f"{TOPIC}/configs/{{name}}"): (T,),
    ("PUT", f"{TOPIC}/configs/{{name}}"): (T, VALUE),
    ("DELETE", f"{TOPIC}/configs/{{name}}"): (T,),
    ("GET", f"{TOPIC}/partitions"): (T,),
    ("GET", f"{TOPIC}/partitions/-/reassignment"): (T,),
    ("GET", f"{TOPIC}/partitions/{{partition}}"): (T,),
    ("GET", f"{TOPIC}/partitions/{{partition}}/reassignment"): (T,),
    ("GET", f"{TOPIC}/partitions/{{partition}}/replicas"): (T,),
    ("GET", f"{TOPIC}/partitions/{{partition}}/replicas/{{broker}}"): (T,),
    ("POST", f"{TOPIC}/records"): (T, RECORD),
    ("POST", f"{TOPIC}/records:batch"): (T, {"entries": [{"id": "1", **RECORD}]}),
    ("GET", f"{ALL}/consumer-groups"): (EMPTY,),
    ("GET", GROUP): (G,),
    ("GET", f"{GROUP}/consumers"): (G,),
    ("GET", f"{GROUP}/consumers/{{consumer}}"): (G,),
    ("GET", f"{GROUP}/consumers/{{consumer}}/assignments"): (G,),
    ("GET", f"{GROUP}/consumers/{{consumer}}/assignments/{{topic}}/partitions/{{partition}}"): (G,),
    ("GET", f"{GROUP}/lag-summary"): (G,),
    ("GET", f"{GROUP}/lags"): (G,),
    ("GET", f"{GROUP}/lags/{{topic}}/partitions/{{partition}}"): (G,),
    ("GET", f"{ALL}/acls"): (C,),
    ("POST", f"{ALL}/acls"): (C, ACL),
    ("POST", f"{ALL}/acls:batch"): (C, {"data": [ACL]}),
    ("GET", "/brokers"): (OPEN,),
    ("GET", "/topics"): (EMPTY,),
    ("GET", "/topics/{topic}"): (T,),
    ("POST", "/topics/{topic}"): (T, V2_RECORDS),
    ("GET", "/topics/{topic}/partitions"): (T,),
    ("GET", "/topics/{topic}/partitions/{partition}"): (T,),
    ("POST", "/topics/{topic}/partitions/{partition}"): (T, V2_RECORDS),
    ("GET", "/topics/{topic}/partitions/{partition}/offsets"): (T,),
    ("POST", "/consumers/{group}"): (G, {"name": "mine"}),
    ("DELETE", INSTANCE): (ABSENT,),
    ("GET", f"{INSTANCE}/subscription"): (ABSENT,),
    ("POST", f"{INSTANCE}/subscription"): (ABSENT, {"topics": [R]}),
    ("DELETE", f"{INSTANCE}/subscription"): (ABSENT,),
    ("GET", f"{INSTANCE}/assignments"): (ABSENT,),
    ("POST", f"{INSTANCE}/assignments"): (ABSENT, V2_PARTS),
    ("POST", f"{INSTANCE}/positions"): (ABSENT, V2_OFFSETS),
    ("POST", f"{INSTANCE}/positions/beginning"): (ABSENT, V2_PARTS),
    ("POST", f"{INSTANCE}/positions/end"): (ABSENT, V2_PARTS),
    ("GET", f"{INSTANCE}/offsets"): (ABSENT,),
    ("POST", f"{INSTANCE}/offsets"): (ABSENT, V2_OFFSETS),
    ("GET", f"{INSTANCE}/records"): (ABSENT,),
    ("POST", "/admin/topics"): (T, {"topic_name": "mine"}),
    ("GET", "/openapi"): (OPEN,),
    ("GET", "/openapi/v3"): (OPEN,),
    ("GET", "/api/v1/openapi.json"): (OPEN,),
    ("GET", "/api/v1/overview"): (OPEN,),
    ("GET", "/api/v1/quorum"): (C,),
    ("GET", "/api/v1/topics"): (EMPTY,),
    ("GET", "/api/v1/topics/{topic}"): (T,),
    ("GET", "/api/v1/topics/{topic}/records"): (T,),
    ("POST", "/api/v1/topics"): (T, {"name": "mine"}),
    ("DELETE", "/api/v1/topics/{topic}"): (T,),
    ("PATCH", "/api/v1/topics/{topic}/configs"): (T, {"configs": {"retention.ms": "1000"}}),
    ("POST", "/api/v1/topics/{topic}/delete-records"): (T, {"all": True}),
    ("POST", "/api/v1/groups/{group}/reset-offsets"): (G, {"to": "latest"}),
    ("GET", "/api/v1/topics/{topic}/search"): (T, None, "text=x"),
    ("GET", "/api/v1/topics/{topic}/search/stream"): (T, None, "text=x"),
    ("GET", "/api/v1/topics/{topic}/tail"): (T,),
    ("GET", "/api/v1/groups"): (EMPTY,),
    ("GET", "/api/v1/groups/{group}"): (G,),
    ("DELETE", f"{ALL}/acls"): (C, None, "resource_type=ANY&pattern_type=ANY&operation=ANY&permission=ANY"),
}


def routes():
    """(method, pattern) of every route in the source."""
    found = set()
    for path in (ROOT / "edge/console/src").rglob("*.rs"):
        text = path.read_text().split("#[cfg(test)]")[0]
        found |= set(re.findall(r'^ {4}(GET|POST|PUT|PATCH|DELETE) "(/[^"]+)"', text, re.M))
        found |= set(re.findall(r'method: "([A-Z]+)",\s+pattern: "(/[^"]+)"', text))
    return found


def check(table, node, cluster, group):
    found = routes()
    table.row("every route has a row", found == set(ROWS), sorted(found ^ set(ROWS)))
    names = {"instance": "admins", "cluster": cluster, "topic": R, "group": group, "broker": "1", "name": "retention.ms", "partition": "0", "consumer": "c"}

    def rows(is_wanted):
        for (method, pattern), row in ROWS.items():
            if is_wanted(pattern):
                expected, body, query = (*row, None, None)[:3]
                one(table, node.console_port, method, pattern.format(**names) + (f"?{query}" if query else ""), body, expected)

    # Of a consumer that is there, while it is: its maker's, and no one else's.
    made = ask(node.console_port, "POST", f"/consumers/{group}", {"name": "admins", "auto.commit.enable": False}, user=who("admin"))
    table.answered("admin makes a consumer", made, 200)
    place = f"/consumers/{group}/instances/admins"
    ask(node.console_port, "POST", f"{place}/assignments", V2_PARTS, user=who("admin"))
    rows(lambda pattern: "{instance}" in pattern)
    table.answered("admin's consumer is as it was", ask(node.console_port, "GET", f"{place}/assignments", user=who("admin")), 200, V2_PARTS)
    table.answered("and nothing is committed", ask(node.console_port, "GET", f"{place}/offsets", user=who("admin")), 200, {"offsets": []})
    rows(lambda pattern: "{instance}" not in pattern)
    unchanged(table, node)


def one(table, port, method, path, body, expected):
    name = f"{method} {path}"
    answer = ask(port, method, path, body, user=who("stranger"))
    if expected == OPEN:
        table.answered(f"{name} as stranger", answer, 200)
    elif expected == EMPTY:
        table.answered(f"{name} as stranger", answer, 200, lambda document: not (document if isinstance(document, list) else document["data"]))
    elif expected == ABSENT:
        table.answered(f"{name} as stranger", answer, 404, {"error_code": 40403})
    else:
        has = {"status": 403} if path.startswith("/api/") else {"error_code": 40301}
        table.answered(f"{name} as stranger", answer, 403, has, expected)
    table.answered(f"{name} without a login", ask(port, method, path, body), 401, None, "SASL_AUTHENTICATION_FAILED")
    wrong = ask(port, method, path, body, user=("admin", "wrong"))
    table.answered(f"{name} with a wrong password", wrong, 401, None, "SASL_AUTHENTICATION_FAILED")


def unchanged(table, node):
    """What was refused was not done, seen by Kafka's protocol."""
    config = node.client_config("admin")
    topics = node.tool("topics", "--list", config=config).split()
    table.row("no topic was made or deleted", R in topics and "mine" not in topics, topics)
    described = node.tool("topics", "--describe", "--topic", R, config=config)
    table.row("no config and no partition was changed", "PartitionCount: 4" in described and "retention.ms" not in described, described)
    ends = node.tool("get-offsets", "--topic", R, config=config)
    table.row("no record was written", all(line.endswith(":0") for line in ends.split()), ends)
    table.row("no ACL was made", "User:stranger" not in node.tool("acls", "--list", config=config), "")


def rights(table, node, cluster):
    """A right that is given is had, and no other."""
    config = node.client_config("admin")
    port, base = node.console_port, f"/v3/clusters/{cluster}"
    node.tool("acls", "--add", "--allow-principal", "User:reader", "--operation", "READ", "--topic", R, config=config)
    reader = who("reader")
    table.answered("reader sees the topic", ask(port, "GET", f"{base}/topics", user=reader), 200, lambda document: [row["topic_name"] for row in document["data"]] == [R])
    table.answered("reader describes it", ask(port, "GET", f"{base}/topics/{R}", user=reader), 200)
    table.answered("reader reads records", ask(port, "GET", f"/api/v1/topics/{R}/records", user=reader), 200, {"data": []})
    shown = ask(port, "GET", "/api/v1/overview", user=who("stranger"))
    hidden = {"topics": 0, "partitions": 0, "quorum": None, "log_dirs": None, "refused.quorum": C, "refused.log_dirs": C, "user": "stranger"}
    table.answered("an overview has what its caller may see", shown, 200, hidden)
    part = {"configs": None, "refused.configs": T, "name": R}
    table.answered("a topic without its configs", ask(port, "GET", f"/api/v1/topics/{R}", user=reader), 200, part)
    table.answered("reader does not write", ask(port, "POST", f"{base}/topics/{R}/records", RECORD, user=reader), 403, None, T)
    table.answered("reader does not delete", ask(port, "DELETE", f"{base}/topics/{R}", user=reader), 403, None, T)
    table.answered("reader reads no configs", ask(port, "GET", f"{base}/topics/{R}/configs", user=reader), 403, None, T)
    # A dry run of a change needs the right to make it.
    for method, path, body in (
        ("DELETE", f"/api/v1/topics/{R}", None),
        ("POST", f"/api/v1/topics/{R}/delete-records", {"all": True}),
        ("PATCH", f"/api/v1/topics/{R}/configs", {"configs": {"retention.ms": "1"}}),
        ("POST", "/api/v1/topics", {"name": "mine"}),
    ):
        table.answered(f"reader, dry run of {method} {path}", ask(port, method, f"{path}?dryRun=true", body, user=reader), 403, None, T)
    table.answered("admin writes", ask(port, "POST", f"{base}/topics/{R}/records", RECORD, user=who("admin")), 200, {"error_code": 200})
    search.rights(table, node, R, who("admin"), who("stranger"))
    consumers(table, node, reader)


def consumers(table, node, reader):
    """Of REST v2: a right on the group makes one, and reads no topic without the right on that."""
    config, port = node.client_config("admin"), node.console_port
    node.tool("acls", "--add", "--allow-principal", "User:stranger", "--operation", "READ", "--group", "theirs", config=config)
    stranger = who("stranger")
    made = ask(port, "POST", "/consumers/theirs", {"name": "c", "auto.offset.reset": "earliest"}, user=stranger)
    table.answered("stranger makes a consumer of its own group", made, 200)
    place = "/consumers/theirs/instances/c"
    ask(port, "POST", f"{place}/assignments", V2_PARTS, user=stranger)
    table.answered("it reads no topic of others", ask(port, "GET", f"{place}/records?timeout=1000", user=stranger), 403, {"error_code": 40301}, T)
    table.answered("it commits for none", ask(port, "POST", f"{place}/offsets", V2_OFFSETS, user=stranger), 403, {"error_code": 40301}, T)
    ask(port, "POST", f"{place}/assignments", {"partitions": []}, user=stranger)
    ask(port, "POST", f"{place}/subscription", {"topics": [R]}, user=stranger)
    table.answered("it joins its group for none", ask(port, "GET", f"{place}/records?timeout=8000", user=stranger), 403, {"error_code": 40301}, T)
    table.answered("reader does not find it", ask(port, "GET", f"{place}/records", user=reader), 404, {"error_code": 40403})
    produced = ask(port, "POST", f"/topics/{R}", V2_RECORDS, user=reader)
    table.answered("reader does not write by v2", produced, 403, {"error_code": 40301}, T)
