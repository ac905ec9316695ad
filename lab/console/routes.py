"""Every route × its answer, on a node without logins, in the order in which one uses them."""

import json
import time

from .ask import ask

# Fields that a resource has, by the public reference of Confluent's API v3.
KINDS = {
    "KafkaCluster": "kind metadata cluster_id controller acls brokers broker_configs consumer_groups topics partition_reassignments",
    "KafkaBroker": "kind metadata cluster_id broker_id host port rack configs partition_replicas",
    "KafkaTopic": "kind metadata cluster_id topic_name is_internal replication_factor partitions_count partitions configs partition_reassignments",
    "KafkaPartition": "kind metadata cluster_id topic_name partition_id leader replicas reassignment",
    "KafkaReplica": "kind metadata cluster_id topic_name partition_id broker_id is_leader is_in_sync broker",
    "KafkaTopicConfig": "kind metadata cluster_id topic_name name value is_default is_read_only is_sensitive source synonyms",
    "KafkaBrokerConfig": "kind metadata cluster_id broker_id name value is_default is_read_only is_sensitive source synonyms",
    "KafkaClusterConfig": "kind metadata cluster_id config_type name value is_default is_read_only is_sensitive source synonyms",
    "KafkaConsumerGroup": "kind metadata cluster_id consumer_group_id is_simple partition_assignor state coordinator consumers lag_summary",
    "KafkaConsumer": "kind metadata cluster_id consumer_group_id consumer_id instance_id client_id assignments",
    "KafkaConsumerAssignment": "kind metadata cluster_id consumer_group_id consumer_id topic_name partition_id partition lag",
    "KafkaConsumerLag": "kind metadata cluster_id consumer_group_id topic_name partition_id current_offset log_end_offset lag consumer_id instance_id client_id",
    "KafkaConsumerGroupLagSummary": "kind metadata cluster_id consumer_group_id max_lag total_lag max_lag_topic_name max_lag_partition_id max_lag_consumer_id",
    "KafkaAcl": "kind metadata cluster_id resource_type resource_name pattern_type principal host operation permission",
}


def shaped(kind):
    """A check that the document is one of this kind, with its fields."""
    return lambda document: document["kind"] == kind and set(KINDS[kind].split()) <= set(document)


def listed(kind, count=None):
    def check(document):
        rows = document["data"]
        is_counted = rows if count is None else len(rows) == count
        return document["kind"] == f"{kind}List" and is_counted and all(shaped(kind)(row) for row in rows) and "self" in document["metadata"]

    return check


def probes(table, port):
    for path in ("/livez", "/healthz", "/readyz", "/startupz"):
        answer = ask(port, "GET", path)
        table.row(f"GET {path}", (answer.status, answer.body) == (200, "ok\n"), f"{answer.status} {answer.body}")
    verbose = ask(port, "GET", "/readyz?verbose")
    is_right = verbose.status == 200 and "[+] broker" in verbose.body
    table.row("GET /readyz?verbose", is_right, verbose.body)


def clusters(table, port, cluster):
    row = table.answered
    row("clusters", ask(port, "GET", "/v3/clusters"), 200, listed("KafkaCluster", 1))
    row("clusters under /kafka", ask(port, "GET", "/kafka/v3/clusters"), 200, {"data.0.metadata.self": f"http://127.0.0.1:{port}/kafka/v3/clusters/{cluster}"})
    base = f"/v3/clusters/{cluster}"
    row("cluster", ask(port, "GET", base), 200, shaped("KafkaCluster"))
    row("another cluster", ask(port, "GET", "/v3/clusters/nonsense"), 404, {"error_code": 404})
    row("brokers", ask(port, "GET", f"{base}/brokers"), 200, listed("KafkaBroker", 1))
    row("broker", ask(port, "GET", f"{base}/brokers/1"), 200, shaped("KafkaBroker"))
    row("no broker", ask(port, "GET", f"{base}/brokers/7"), 404)
    row("broker that is no number", ask(port, "GET", f"{base}/brokers/x"), 404)


def topics(table, port, base):
    row = table.answered
    made = {"topic_name": "orders", "partitions_count": 3, "replication_factor": 1, "configs": [{"name": "retention.ms", "value": "3600000"}]}
    only = ask(port, "POST", f"{base}/topics", {**made, "validate_only": True})
    row("create topic, validated only", only, 201)
    row("it was not made", ask(port, "GET", f"{base}/topics/orders"), 404, {"error_code": 40403}, "UNKNOWN_TOPIC_OR_PARTITION")
    created = row("create topic", ask(port, "POST", f"{base}/topics", made), 201, {"topic_name": "orders", "partitions_count": 3})
    table.row("Location of a new topic", created.headers.get("location", "").endswith(f"{base}/topics/orders"), created.headers)
    row("create it again", ask(port, "POST", f"{base}/topics", made), 400, {"error_code": 40002}, "TOPIC_ALREADY_EXISTS")
    row("topic without a name", ask(port, "POST", f"{base}/topics", {}), 400)
    row("topic with a bad name", ask(port, "POST", f"{base}/topics", {"topic_name": "a b"}), 400, None, "INVALID_TOPIC_EXCEPTION")
    row("topic with a bad config", ask(port, "POST", f"{base}/topics", {"topic_name": "x", "configs": [{"name": "no.such", "value": "1"}]}), 400, None, "INVALID_CONFIG")
    assigned = {"topic_name": "assigned", "replicas_assignments": [{"partition_id": 0, "broker_ids": [1]}]}
    row("create topic with its replicas", ask(port, "POST", f"{base}/topics", assigned), 201, {"partitions_count": 1})
    row("topics", eventually(port, f"{base}/topics", "assigned"), 200, listed("KafkaTopic"))
    row("topic", ask(port, "GET", f"{base}/topics/orders"), 200, shaped("KafkaTopic"))
    row("more partitions", ask(port, "PATCH", f"{base}/topics/orders", {"partitions_count": 4}), 200, {"partitions_count": 4})
    row("fewer partitions", ask(port, "PATCH", f"{base}/topics/orders", {"partitions_count": 1}), 400, None, "INVALID_PARTITIONS")
    row("partitions", eventually(port, f"{base}/topics/orders/partitions", '"partition_id":3'), 200, listed("KafkaPartition", 4))
    row("partition", ask(port, "GET", f"{base}/topics/orders/partitions/2"), 200, shaped("KafkaPartition"))
    row("no partition", ask(port, "GET", f"{base}/topics/orders/partitions/9"), 404, None, "UNKNOWN_TOPIC_OR_PARTITION")
    row("replicas", ask(port, "GET", f"{base}/topics/orders/partitions/0/replicas"), 200, listed("KafkaReplica", 1))
    row("replica", ask(port, "GET", f"{base}/topics/orders/partitions/0/replicas/1"), 200, {"is_leader": True, "is_in_sync": True})
    row("no replica", ask(port, "GET", f"{base}/topics/orders/partitions/0/replicas/2"), 404)
    row("replicas of a broker", ask(port, "GET", f"{base}/brokers/1/partition-replicas"), 200, listed("KafkaReplica"))
    for path in ("topics/-/partitions/-/reassignment", "topics/orders/partitions/-/reassignment"):
        row(f"GET {path}", ask(port, "GET", f"{base}/{path}"), 200, {"kind": "KafkaReassignmentList", "data": []})
    row("no reassignment", ask(port, "GET", f"{base}/topics/orders/partitions/0/reassignment"), 404)
    row("delete topic", ask(port, "DELETE", f"{base}/topics/assigned"), 204)
    row("it is gone", eventually(port, f"{base}/topics/assigned", "error_code"), 404, None, "UNKNOWN_TOPIC_OR_PARTITION")
    row("delete it again", ask(port, "DELETE", f"{base}/topics/assigned"), 404, None, "UNKNOWN_TOPIC_OR_PARTITION")


def eventually(port, path, words):
    """The answer that has these words, or the last within five seconds: Apache Kafka's brokers learn of a change a little later."""
    until = time.monotonic() + 5
    while words not in (answer := ask(port, "GET", path)).body and time.monotonic() < until:
        time.sleep(0.05)
    return answer


def configs(table, port, base):
    row = table.answered
    place = f"{base}/topics/orders/configs"
    row("topic configs", ask(port, "GET", place), 200, listed("KafkaTopicConfig"))
    set_by_topic = {"value": "3600000", "source": "DYNAMIC_TOPIC_CONFIG", "is_default": False}
    row("topic config and its origin", ask(port, "GET", f"{place}/retention.ms"), 200, set_by_topic)
    row("no such config", ask(port, "GET", f"{place}/no.such"), 404)
    row("set", ask(port, "PUT", f"{place}/retention.ms", {"value": "7200000"}), 204)
    row("it is set", eventually(port, f"{place}/retention.ms", "7200000"), 200, {"value": "7200000"})
    row("set a bad value", ask(port, "PUT", f"{place}/retention.ms", {"value": "x"}), 400, None, "INVALID_CONFIG")
    row("set nothing", ask(port, "PUT", f"{place}/retention.ms", {}), 400)
    row("reset", ask(port, "DELETE", f"{place}/retention.ms"), 204)
    row("it is the default", eventually(port, f"{place}/retention.ms", "\"source\":\"DEFAULT_CONFIG\",\"synonyms\""), 200, {"is_default": True, "source": "DEFAULT_CONFIG"})
    many = {"data": [{"name": "retention.ms", "value": "1000"}, {"name": "cleanup.policy", "operation": "APPEND", "value": "compact"}]}
    row("alter, validated only", ask(port, "POST", f"{place}:alter", {**many, "validate_only": True}), 204)
    row("it did nothing", ask(port, "GET", f"{place}/retention.ms"), 200, {"is_default": True})
    row("alter", ask(port, "POST", f"{place}:alter", many), 204)
    row("it is altered", eventually(port, f"{place}/cleanup.policy", "compact"), 200, lambda document: set(document["value"].split(",")) == {"compact", "delete"})
    row("alter back", ask(port, "POST", f"{place}:alter", {"data": [{"name": name, "operation": "DELETE"} for name in ("retention.ms", "cleanup.policy")]}), 204)
    row("alter nothing", ask(port, "POST", f"{place}:alter", {"data": []}), 400)
    row("alter how", ask(port, "POST", f"{place}:alter", {"data": [{"name": "retention.ms", "operation": "TURN"}]}), 400)
    row("configs of every topic", ask(port, "GET", f"{base}/topics/-/configs"), 200, listed("KafkaTopicConfig"))
    row("configs of no topic", ask(port, "GET", f"{base}/topics/absent/configs"), 404, None, "UNKNOWN_TOPIC_OR_PARTITION")
    brokers(table, port, base)


def brokers(table, port, base):
    row = table.answered
    for place, kind in ((f"{base}/brokers/1/configs", "KafkaBrokerConfig"), (f"{base}/broker-configs", "KafkaClusterConfig")):
        own = place.removeprefix(f"{base}/")
        row(f"set at {own}", ask(port, "PUT", f"{place}/log.cleaner.threads", {"value": "1"}), 204)
        row(f"{own}/{{name}}", eventually(port, f"{place}/log.cleaner.threads", "DYNAMIC"), 200, shaped(kind))
        row(own, ask(port, "GET", place), 200, listed(kind))
        row(f"reset at {own}", ask(port, "DELETE", f"{place}/log.cleaner.threads"), 204)
        changes = {"data": [{"name": "log.cleaner.threads", "value": "2"}], "validate_only": True}
        row(f"alter {own}", ask(port, "POST", f"{place}:alter", changes), 204)
        bad = {"data": [{"name": "log.cleaner.threads", "value": "-1"}]}
        row(f"alter {own} badly", ask(port, "POST", f"{place}:alter", bad), 400, None, None)
    row("configs of no broker", ask(port, "GET", f"{base}/brokers/9/configs"), 404)
    row("configs of every broker", ask(port, "GET", f"{base}/brokers/-/configs"), 200, listed("KafkaBrokerConfig"))


def produce(table, port, base, node):
    row = table.answered
    place = f"{base}/topics/orders/records"
    one = {"partition_id": 1, "key": {"type": "STRING", "data": "k"}, "value": {"type": "JSON", "data": {"a": 1}}, "headers": [{"name": "h", "value": "AQI="}]}
    row("produce", ask(port, "POST", place, one), 200, {"error_code": 200, "partition_id": 1, "offset": 0, "key.type": "STRING", "value.size": 8})
    exact = '{"partition_id":2,"value":{"type":"JSON","data":[9223372036854775807,18446744073709551615,1e400,-0]}}'
    row("produce numbers", ask(port, "POST", place, exact), 200, {"partition_id": 2})
    words = ("--topic", "orders", "--partition", "2", "--from-beginning", "--max-messages", "1", "--timeout-ms", "10000")
    read = node.tool("console-consumer", *words).strip()
    table.row("numbers are stored as written", read == "[9223372036854775807,18446744073709551615,1e400,-0]", read)
    row("produce binary", ask(port, "POST", place, {"value": {"type": "BINARY", "data": "AAEC"}}), 200, {"value.size": 3})
    row("produce a tombstone", ask(port, "POST", place, {"key": {"type": "STRING", "data": "k"}, "value": None}), 200)
    row("produce an unknown type", ask(port, "POST", place, {"value": {"type": "AVRO", "data": 1}}), 400)
    row("produce an unknown field", ask(port, "POST", place, {**one, "partition": 1}), 400, lambda error: "'partition'" in error["message"])
    row("produce an unknown field of a value", ask(port, "POST", place, {"value": {"type": "STRING", "data": "v", "size": 1}}), 400)
    row("produce what is no base64", ask(port, "POST", place, {"value": {"type": "BINARY", "data": "!"}}), 400)
    row("produce to no partition", ask(port, "POST", place, {**one, "partition_id": 99}), 404, None, "UNKNOWN_TOPIC_OR_PARTITION")
    row("produce to no topic", ask(port, "POST", f"{base}/topics/absent/records", one), 404, None, "UNKNOWN_TOPIC_OR_PARTITION")
    row("produce no JSON", ask(port, "POST", place, "nonsense"), 400)
    several = ask(port, "POST", place, "".join(json.dumps({**one, "partition_id": n % 9}) + "\n" for n in range(1200)))
    reports = [json.loads(line)["error_code"] for line in several.body.splitlines()]
    expected = [200 if n % 9 < 4 else 40403 for n in range(1200)]
    table.row("1200 records in one body, each with its report", several.status == 200 and reports == expected, several.body[:300])
    streamed(table, port, place)
    entries = {"entries": [{"id": "a", **one}, {"id": "b", "value": {"type": "AVRO", "data": 1}}]}
    row("records:batch", ask(port, "POST", f"{place}:batch", entries), 207, {"successes.0.id": "a", "failures.0.id": "b", "failures.0.error_code": 400})


def streamed(table, port, place):
    """One record, its report, then the next: in one request."""
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.putrequest("POST", place)
    for name, value in (("Content-Type", "application/json"), ("Transfer-Encoding", "chunked")):
        connection.putheader(name, value)
    connection.endheaders()

    def send(text):
        connection.send(f"{len(text):x}\r\n{text}\r\n".encode())

    record = json.dumps({"partition_id": 3, "value": {"type": "STRING", "data": "streamed"}})
    send(record)
    answer = connection.getresponse()
    offsets = [json.loads(answer.readline())["offset"]]
    for _ in range(3):
        send(record[:20])
        send(record[20:])
        offsets.append(json.loads(answer.readline())["offset"])
    send("{}{\"value\":1}")
    codes = [json.loads(answer.readline())["error_code"] for _ in range(2)]
    connection.send(b"0\r\n\r\n")
    is_over = answer.read() == b""
    connection.close()
    is_right = offsets == list(range(offsets[0], offsets[0] + 4)) and codes == [200, 400] and is_over
    table.row("records are answered while the request goes on", is_right, (offsets, codes, is_over))


def api(table, port, group):
    """/api/v1, after records were produced."""
    row = table.answered
    conventions(table, port)
    row("overview", ask(port, "GET", "/api/v1/overview"), 200, {"user": None, "under_replicated": 0, "offline": 0, "refused": {}, "quorum.leader_id": 1})
    row("quorum", ask(port, "GET", "/api/v1/quorum"), 200, {"leader_id": 1, "voters.0.lag": 0})
    named = row("topics with sizes", ask(port, "GET", "/api/v1/topics"), 200, lambda document: any(topic["bytes"] > 0 for topic in document["data"]))
    table.row("orders is among them", "orders" in [topic["name"] for topic in named.json["data"]], named.body)
    row("a topic", ask(port, "GET", "/api/v1/topics/orders"), 200, lambda document: document["partitions"][1]["end_offset"] > 0 and len(document["configs"]) > 20)
    row("no topic", ask(port, "GET", "/api/v1/topics/absent"), 404, {"status": 404, "kafka_error": "UNKNOWN_TOPIC_OR_PARTITION"})
    problem = ask(port, "GET", "/api/v1/topics/absent").headers.get("content-type")
    table.row("errors are problem documents", problem == "application/problem+json", problem)
    records(table, port)
    row("groups", ask(port, "GET", "/api/v1/groups"), 200, {"data.0.id": group})
    row("a group", ask(port, "GET", f"/api/v1/groups/{group}"), 200, lambda document: len(document["members"]) == 1 and len(document["partitions"]) == 4)
    row("no group", ask(port, "GET", "/api/v1/groups/absent"), 404, None, "GROUP_ID_NOT_FOUND")


def conventions(table, port):
    """What all lists and documents of /api/v1 do alike."""
    row = table.answered
    row("openapi.json", ask(port, "GET", "/api/v1/openapi.json"), 200, {"openapi": "3.1.0"})
    first = row("a document has a tag", ask(port, "GET", "/api/v1/topics/orders"), 200)
    tag = first.headers.get("etag", "")
    again = ask(port, "GET", "/api/v1/topics/orders", headers={"If-None-Match": tag})
    table.row("what is known is not sent again", (again.status, again.body) == (304, "") and tag, again.status)
    row("what has changed is", ask(port, "GET", "/api/v1/topics/orders", headers={"If-None-Match": '"x"'}), 200)
    whole = [topic["name"] for topic in ask(port, "GET", "/api/v1/topics?sort=-name").json["data"]]
    table.row("topics in the order that is asked for", whole == sorted(whole, reverse=True), whole)
    seen, cursor = [], ""
    while cursor is not None and len(seen) <= len(whole):
        page = ask(port, "GET", f"/api/v1/topics?sort=-name&limit=1&cursor={cursor}").json
        seen += [topic["name"] for topic in page["data"]]
        cursor = page["next"]
    table.row("pages of one topic are the whole list", seen == whole, (seen, whole))
    row("topics by a part of the name", ask(port, "GET", "/api/v1/topics?q=RDER"), 200, lambda document: {"orders"} == {one["name"] for one in document["data"]} and document["total"] == 1)
    for query in ("sort=colour", "limit=0", "cursor=nonsense"):
        row(f"topics?{query}", ask(port, "GET", f"/api/v1/topics?{query}"), 400)


def documented(table, node, root):
    """Each command of docs/CONSOLE.md, as it stands there but for the ports."""
    import re
    import subprocess

    page = (root / "docs/CONSOLE.md").read_text()
    blocks = re.findall(r"```sh\n(.*?)```", page, re.S)
    table.row("docs/CONSOLE.md has commands", len(blocks) >= 3, len(blocks))
    for block in blocks:
        script = block.replace("127.0.0.1:8080", f"127.0.0.1:{node.console_port}")
        ran = subprocess.run(["bash", "-euo", "pipefail", "-c", script], capture_output=True, text=True, timeout=60)
        table.row(f"docs/CONSOLE.md: {block.splitlines()[-1][:60]}", ran.returncode == 0, ran.stdout + ran.stderr)


def page(table, port):
    import re

    index = ask(port, "GET", "/")
    policy = index.headers.get("content-security-policy", "")
    is_strict = "default-src 'none'" in policy and "unsafe" not in policy and "script-src 'self';" in policy
    table.row("the page and its policy", index.status == 200 and is_strict, policy)
    for path in sorted(set(re.findall(r'(?:src|href)="([^"#]+)"', index.body))):
        answer = ask(port, "GET", f"/{path}", headers={"Accept-Encoding": "identity"})
        table.row(f"GET /{path}", answer.status == 200 and answer.body, answer.status)
    foreign = ask(port, "GET", "/", headers={"Host": "evil.example"})
    table.row("the page is for its own hosts", foreign.status == 421, foreign.status)


def records_of(port, query):
    return ask(port, "GET", f"/api/v1/topics/orders/records?{query}")


def records(table, port):
    import base64

    row = table.answered
    oldest = row("records of a partition from the oldest", records_of(port, "from=oldest&partition=2&limit=1"), 200, {"partitions.0.next": 1, "data.0.offset": 0})
    value = base64.b64decode(oldest.json["data"][0]["value"]["base64"]).decode()
    table.row("records are shown byte for byte", value == "[9223372036854775807,18446744073709551615,1e400,-0]", value)
    row("from an offset", records_of(port, "from=offset&offset=3&partition=1&limit=2"), 200, lambda document: [one["offset"] for one in document["data"]] == [3, 4])
    row("from beyond the end", records_of(port, "from=offset&offset=999999&partition=1"), 200, {"data": []})
    row("from a time to come", records_of(port, "from=time&time=4102444800000"), 200, {"data": []})
    row("from a time that is past", records_of(port, "from=time&time=0&limit=500"), 200, lambda document: len(document["data"]) == 500)
    newest = row("the newest of all partitions", records_of(port, "limit=5"), 200, lambda document: len(document["data"]) == 5)
    times = [one["timestamp_ms"] for one in newest.json["data"]]
    table.row("merged by time", times == sorted(times), times)
    nulls = records_of(port, "from=oldest&limit=500").json["data"]
    table.row("a tombstone has no value", any(one["value"] is None and one["key"] for one in nulls), "")
    for query in ("from=somewhere", "from=offset", "limit=0", "limit=501", "from=time&time=x"):
        row(f"records?{query}", records_of(port, query), 400)
    row("records of no partition", records_of(port, "partition=77"), 404)


def groups(table, port, base, group):
    row = table.answered
    place = f"{base}/consumer-groups/{group}"
    row("consumer groups", ask(port, "GET", f"{base}/consumer-groups"), 200, lambda document: any(row["consumer_group_id"] == group for row in document["data"]))
    row("consumer group", ask(port, "GET", place), 200, shaped("KafkaConsumerGroup"))
    row("it is stable", ask(port, "GET", place), 200, {"state": "STABLE"})
    consumers = row("consumers", ask(port, "GET", f"{place}/consumers"), 200, listed("KafkaConsumer", 1))
    one = consumers.json["data"][0]["consumer_id"]
    row("consumer", ask(port, "GET", f"{place}/consumers/{one}"), 200, shaped("KafkaConsumer"))
    row("assignments", ask(port, "GET", f"{place}/consumers/{one}/assignments"), 200, listed("KafkaConsumerAssignment", 4))
    row("assignment", ask(port, "GET", f"{place}/consumers/{one}/assignments/orders/partitions/0"), 200, shaped("KafkaConsumerAssignment"))
    row("no assignment", ask(port, "GET", f"{place}/consumers/{one}/assignments/orders/partitions/9"), 404)
    row("lag summary", ask(port, "GET", f"{place}/lag-summary"), 200, shaped("KafkaConsumerGroupLagSummary"))
    row("lags", ask(port, "GET", f"{place}/lags"), 200, listed("KafkaConsumerLag", 4))
    row("lag", ask(port, "GET", f"{place}/lags/orders/partitions/1"), 200, shaped("KafkaConsumerLag"))
    row("no lag", ask(port, "GET", f"{place}/lags/orders/partitions/9"), 404)
    row("no consumer", ask(port, "GET", f"{place}/consumers/absent"), 404)
    for path in ("", "/consumers", "/lags", "/lag-summary"):
        row(f"no group{path}", ask(port, "GET", f"{base}/consumer-groups/absent{path}"), 404, {"error_code": 40403}, "GROUP_ID_NOT_FOUND")


def acls(table, port, base, user):
    """On a node with an authorizer."""
    row = table.answered
    one = {
        "resource_type": "TOPIC",
        "resource_name": "orders-",
        "pattern_type": "PREFIXED",
        "principal": "User:anna",
        "host": "*",
        "operation": "READ",
        "permission": "ALLOW",
    }
    made = row("create ACL", ask(port, "POST", f"{base}/acls", one, user=user), 201)
    table.row("Location of a new ACL", "resource_name=orders-" in made.headers.get("location", ""), made.headers)
    row("ACLs", ask(port, "GET", f"{base}/acls", user=user), 200, listed("KafkaAcl"))
    row("ACLs of one", ask(port, "GET", f"{base}/acls?principal=User%3Aanna&resource_type=topic", user=user), 200, {"data.0.operation": "READ"})
    row("ACLs of a type that is none", ask(port, "GET", f"{base}/acls?resource_type=shoe", user=user), 400)
    many = {"data": [{**one, "principal": f"User:{name}"} for name in ("ben", "carl")]}
    row("create ACLs", ask(port, "POST", f"{base}/acls:batch", many, user=user), 201)
    row("create half an ACL", ask(port, "POST", f"{base}/acls", {"resource_type": "TOPIC"}, user=user), 400)
    row("create an ACL for anything", ask(port, "POST", f"{base}/acls", {**one, "operation": "ANY"}, user=user), 400)
    row("delete without a filter", ask(port, "DELETE", f"{base}/acls", user=user), 400)
    all_of = "resource_type=TOPIC&pattern_type=PREFIXED&operation=ANY&permission=ANY"
    row("delete one", ask(port, "DELETE", f"{base}/acls?{all_of}&principal=User%3Aanna", user=user), 200, lambda document: len(document["data"]) == 1)
    row("delete the others", ask(port, "DELETE", f"{base}/acls?{all_of}", user=user), 200, lambda document: len(document["data"]) == 2)
    row("they are gone", ask(port, "GET", f"{base}/acls?{all_of}", user=user), 200, {"data": []})
