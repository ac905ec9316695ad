"""Confluent's REST API v2: every operation and its answer, in the order in which one uses them; and what Strimzi's bridge has beyond it."""

import base64
import json
import time

from .ask import ask

BINARY, JSON, TEXT, AVRO = (f"application/vnd.kafka.{name}.v2+json" for name in ("binary", "json", "text", "avro"))
V2 = "application/vnd.kafka.v2+json"
CODES = {
    # As Confluent's reference gives them.
    "no topic": 40401, "no partition": 40402, "no consumer": 40403, "another format": 40601, "exists": 40902, "illegal state": 40903,
    "no key schema": 42201, "no value schema": 42202, "invalid consumer": 42204, "no registry": 42206,
}


def b64(text):
    return base64.b64encode(text.encode()).decode()


def given(port, method, path, body=None, kind=V2, accept=None, user=None):
    headers = {"Content-Type": kind} if method != "DELETE" else {}
    return ask(port, method, path, body, {**headers, **({"Accept": accept} if accept else {})}, user)


def coded(name):
    return {"error_code": CODES[name]}


def check(table, port):
    made = {"topic_name": "proxied", "partitions_count": 2, "replication_factor": 1}
    table.answered("v2: admin/topics", given(port, "POST", "/admin/topics", made, JSON), 201)
    table.answered("v2: admin/topics again", given(port, "POST", "/admin/topics", made, JSON), 400, {"error_code": 40002}, "TOPIC_ALREADY_EXISTS")
    topics(table, port)
    media(table, port)
    produce(table, port)
    consumer(table, port)
    positions(table, port)
    groups(table, port)
    formats(table, port)
    extras(table, port)


def topics(table, port):
    row = table.answered
    row("v2: brokers", ask(port, "GET", "/brokers"), 200, {"brokers": [1]})
    row("v2: topics", ask(port, "GET", "/topics"), 200, lambda names: "proxied" in names and "orders" in names)
    replica = {"partitions.1.partition": 1, "partitions.1.leader": 1, "partitions.1.replicas": [{"broker": 1, "leader": True, "in_sync": True}]}
    named = row("v2: topic", ask(port, "GET", "/topics/proxied"), 200, {"name": "proxied", **replica})
    table.row("v2: a topic has its configs as texts", named.json["configs"].get("cleanup.policy") == "delete", named.body[:200])
    row("v2: no topic", ask(port, "GET", "/topics/absent"), 404, coded("no topic"), "UNKNOWN_TOPIC_OR_PARTITION")
    row("v2: partitions", ask(port, "GET", "/topics/proxied/partitions"), 200, lambda rows: [one["partition"] for one in rows] == [0, 1])
    row("v2: partitions of no topic", ask(port, "GET", "/topics/absent/partitions"), 404, coded("no topic"))
    row("v2: partition", ask(port, "GET", "/topics/proxied/partitions/1"), 200, {"partition": 1, "leader": 1})
    row("v2: no partition", ask(port, "GET", "/topics/proxied/partitions/9"), 404, coded("no partition"))
    row("v2: a partition that is no number", ask(port, "GET", "/topics/proxied/partitions/foo/offsets"), 404, {"error_code": 404})
    row("v2: offsets", ask(port, "GET", "/topics/proxied/partitions/0/offsets"), 200, {"beginning_offset": 0, "end_offset": 0})
    row("v2: offsets of no partition", ask(port, "GET", "/topics/proxied/partitions/9/offsets"), 404, coded("no partition"))
    row("v2: a slash at the end", ask(port, "GET", "/topics/proxied/partitions/"), 200)
    row("v2: no such path", ask(port, "GET", "/topics/proxied/colours"), 404, {"error_code": 404})
    row("v2: no such method", ask(port, "DELETE", "/topics/proxied"), 405, {"error_code": 405})


def media(table, port):
    for accept, status in (
        ("application/vnd.kafka.v2+json", 200), ("application/vnd.kafka+json", 200), ("application/json", 200), ("application/*", 200), ("*/*", 200),
        ("text/html", 406), ("application/octet-stream", 406), ("application/vnd.kafka+foo", 406), ("image/png", 406),
    ):
        table.answered(f"v2: Accept: {accept}", ask(port, "GET", "/brokers", headers={"Accept": accept}), status)
    kinds = [ask(port, "GET", "/brokers", headers={"Accept": accept}).headers["content-type"] for accept in ("*/*", "application/json")]
    table.row("v2: the answer's media type", kinds == [V2, "application/json"], kinds)
    error = ask(port, "GET", "/topics/absent")
    table.row("v2: an error is of the same media type, with two fields", error.headers["content-type"] == V2 and set(error.json) == {"error_code", "message", "kafka_error"}, error.body)
    one = {"records": [{"value": "Zm9v"}]}
    given(port, "POST", "/admin/topics", {"topic_name": "kinds", "partitions_count": 1}, JSON)
    for kind, status in (
        ("application/vnd.kafka.binary.v2+json", 200), ("application/vnd.kafka.binary.v1+json", 200), ("application/vnd.kafka+json", 200), ("application/json", 200),
        ("application/vnd.kafka.v3+json", 415), ("application/vnd.kafka.xml.v2+json", 415), ("application/vnd.kafka", 415), ("text/plain", 415),
    ):
        table.answered(f"v2: Content-Type: {kind}", given(port, "POST", "/topics/kinds", one, kind), status)


def produce(table, port):
    row = table.answered
    place = "/topics/proxied"
    stored = {"offsets.0.partition": 1, "offsets.0.error_code": None, "offsets.0.error": None, "key_schema_id": None, "value_schema_id": None}
    exact = '{"records":[{"key":"k","partition":1,"value":[9223372036854775807,18446744073709551615,1e400,-0]}]}'
    row("v2: produce JSON", given(port, "POST", place, exact, JSON), 200, stored)
    row("v2: produce binary", given(port, "POST", place, {"records": [{"key": b64("k"), "value": b64("v"), "partition": 1}]}, BINARY), 200, stored)
    row("v2: produce to a partition", given(port, "POST", f"{place}/partitions/1", {"records": [{"value": {"a": 1}}]}, JSON), 200, stored)
    several = {"records": [{"value": n, "partition": n % 3} for n in range(6)]}
    answer = row("v2: a record to no partition is refused alone", given(port, "POST", place, several, JSON), 200)
    table.row("v2: its error may pass, as Kafka counts it", [one["error_code"] for one in answer.json["offsets"]] == [None, None, 2] * 2, answer.body)
    row("v2: produce to no topic", given(port, "POST", "/topics/absent", {"records": [{"value": 1}]}, JSON), 404, coded("no topic"))
    row("v2: produce to no partition", given(port, "POST", f"{place}/partitions/9", {"records": [{"value": 1}]}, JSON), 404, coded("no partition"))
    for body, kind, status, code in (
        ({"records": []}, JSON, 422, 422), ({"foo": 1}, JSON, 422, 422), ({"records": [{"valur": 1}]}, JSON, 422, 422),
        ({"records": [{"value": 1}], "topic": "t"}, JSON, 422, 422), ({"records": [{"value": 1, "partitoin": 1}]}, JSON, 422, 422),
        ({"records": "text"}, BINARY, 400, 400), ({"records": ["text"]}, BINARY, 400, 400), ({"records": [{"value": "not base64"}]}, BINARY, 400, 400),
        ({"records": [{"value": {"a": 1}}]}, BINARY, 400, 400), ("nonsense", JSON, 400, 400), ({"records": [{"value": 1}]}, TEXT, 422, 422),
        ({"records": [{"value": 1}]}, AVRO, 422, CODES["no value schema"]), ({"records": [{"key": 1}]}, AVRO, 422, CODES["no key schema"]),
        ({"value_schema": '"int"', "records": [{"value": 1}]}, AVRO, 422, CODES["no registry"]),
    ):
        row(f"v2: produce {json.dumps(body)[:50]} as {kind.split('.')[2]}", given(port, "POST", place, body, kind), status, {"error_code": code})
    row("v2: a body of more than 1 MiB", given(port, "POST", place, {"records": [{"value": "x" * 1_048_576}]}, JSON), 413, {"error_code": 413})


class Consumer:
    def __init__(self, port, group, user=None, **config):
        self.port, self.user = port, user
        self.made = given(port, "POST", f"/consumers/{group}", config, user=user)
        made = self.made.json if self.made.status == 200 else {}
        self.name = made.get("instance_id", config.get("name"))
        self.place = f"/consumers/{group}/instances/{self.name}"

    def ask(self, method, path, body=None, accept=None):
        return given(self.port, method, f"{self.place}{path}", body, accept=accept, user=self.user)

    def read(self, query="timeout=2000", accept=None):
        return self.ask("GET", f"/records?{query}", accept=accept)

    def until(self, count, within=30):
        """Records as they come, until there are as many."""
        found, until = [], time.monotonic() + within
        while len(found) < count and time.monotonic() < until:
            answer = self.read()
            if answer.status != 200:
                return answer.body
            found += answer.json
        return found


def parts(*indexes, topic="proxied"):
    return {"partitions": [{"topic": topic, "partition": index} for index in indexes]}


def consumer(table, port):
    """A consumer that has chosen its partitions."""
    row = table.answered
    config = {"name": "a", "format": "json", "auto.offset.reset": "earliest", "auto.commit.enable": "false"}
    one = Consumer(port, "v2-alone", **config)
    row("v2: make a consumer", one.made, 200, {"instance_id": "a", "base_uri": f"http://127.0.0.1:{port}/consumers/v2-alone/instances/a"})
    row("v2: make it again", given(port, "POST", "/consumers/v2-alone", config), 409, coded("exists"))
    for bad in ({"format": "xml"}, {"fetch.min.bytes": -10}, {"auto.offset.reset": "foo"}, {"colour": "red"}):
        row(f"v2: make one with {bad}", given(port, "POST", "/consumers/v2-alone", bad), 422, coded("invalid consumer"))
    unnamed = Consumer(port, "v2-alone")
    table.row("v2: a consumer without a name gets one", len(unnamed.name) > 32, unnamed.name)
    row("v2: records without an assignment", one.read(), 409, coded("illegal state"))
    row("v2: no assignment", one.ask("GET", "/assignments"), 200, {"partitions": []})
    row("v2: no subscription", one.ask("GET", "/subscription"), 200, {"topics": [], "partitions": []})
    row("v2: assign", one.ask("POST", "/assignments", parts(1)), 204)
    row("v2: assignment", one.ask("GET", "/assignments"), 200, parts(1))
    row("v2: subscribe to more", one.ask("POST", "/subscription", {"topics": ["orders"]}), 409, coded("illegal state"))
    got = row("v2: records", one.read(), 200, {"0.topic": "proxied", "0.key": "k", "0.partition": 1, "0.offset": 0})
    table.row("v2: numbers come as they are stored", '"value":[9223372036854775807,18446744073709551615,1e400,-0]' in got.body, got.body[:200])
    kind = got.headers["content-type"]
    table.row("v2: records have their format's media type and no tag", kind == JSON and "etag" not in got.headers, got.headers)
    row("v2: the next record has another format", one.read(), 422, lambda error: "deserialization error for format json" in error["message"] and "offset 1" in error["message"])
    row("v2: the position has not moved", one.read(), 422)
    row("v2: seek behind it", one.ask("POST", "/positions", {"offsets": [{"topic": "proxied", "partition": 1, "offset": 2}]}), 204)
    row("v2: and read on", one.read(), 200, {"0.offset": 2, "0.value": {"a": 1}})
    row("v2: another format", one.read(accept=BINARY), 406, coded("another format"))
    commits(table, one)
    row("v2: delete a consumer", one.ask("DELETE", ""), 204)
    row("v2: it is gone", one.read(), 404, coded("no consumer"))
    row("v2: its name is free", Consumer(port, "v2-alone", **config).made, 200)
    row("v2: delete no consumer", given(port, "DELETE", "/consumers/v2-alone/instances/absent"), 404, coded("no consumer"))


def commits(table, one):
    row = table.answered
    row("v2: nothing is committed", one.ask("GET", "/offsets", parts(0, 1)), 200, {"offsets": []})
    row("v2: commit what was read", one.ask("POST", "/offsets"), 204)
    end = row("v2: it is committed", one.ask("GET", "/offsets"), 200, {"offsets.0.topic": "proxied", "offsets.0.partition": 1, "offsets.0.metadata": ""})
    table.row("v2: up to the last record", end.json["offsets"][0]["offset"] > 3, end.body)
    row("v2: commit an offset", one.ask("POST", "/offsets", {"offsets": [{"topic": "proxied", "partition": 0, "offset": 1}]}), 204)
    row("v2: the next one is committed", one.ask("GET", "/offsets", parts(0)), 200, {"offsets": [{"topic": "proxied", "partition": 0, "offset": 2, "metadata": ""}]})
    row("v2: commit of no partition", one.ask("POST", "/offsets", {"offsets": [{"topic": "proxied", "partition": 9, "offset": 1}]}), 404, coded("no partition"))
    row("v2: commit nonsense", one.ask("POST", "/offsets", {"offsets": [{"topic": "proxied"}]}), 400)


def positions(table, port):
    row = table.answered
    one = Consumer(port, "v2-seek", **{"auto.offset.reset": "earliest"})
    row("v2: seek without an assignment", one.ask("POST", "/positions/beginning", parts(1)), 409, coded("illegal state"))
    one.ask("POST", "/assignments", parts(0, 1))
    row("v2: seek to the end", one.ask("POST", "/positions/end", parts(0, 1)), 204)
    row("v2: nothing is there", one.read("timeout=300"), 200, lambda records: records == [])
    row("v2: seek to the beginning", one.ask("POST", "/positions/beginning", parts(1)), 204)
    first = row("v2: all is there again", one.read(), 200, {"0.offset": 0, "0.partition": 1, "0.key": b64('"k"')})
    row("v2: seek to before", one.ask("POST", "/positions/beginning", parts(1)), 204)
    row("v2: max_bytes ends an answer", one.read("timeout=2000&max_bytes=1"), 200, lambda records: len(records) == 1)
    row("v2: the next goes on behind it", one.read(), 200, lambda records: [one["offset"] for one in records] == list(range(1, len(first.json))))
    for bad in ("timeout=x", "timeout=0", "max_bytes=-1"):
        row(f"v2: records?{bad}", one.read(bad), 400)
    row("v2: seek to where nothing is", one.ask("POST", "/positions", {"offsets": [{"topic": "proxied", "partition": 1, "offset": 9999}]}), 204)
    row("v2: it begins where auto.offset.reset says", one.read(), 200, {"0.offset": 0})


def groups(table, port):
    """Consumers that share a group, with each other and with Kafka's own clients."""
    row = table.answered
    config = {"format": "text", "auto.offset.reset": "earliest", "topic.metadata.refresh.interval.ms": 1000}
    for name in ("shared", "shared2"):
        given(port, "POST", "/admin/topics", {"topic_name": name, "partitions_count": 2}, JSON)
    values = {"records": [{"value": f"v{n}", "partition": n % 2} for n in range(10)]}
    table.answered("v2: produce text", given(port, "POST", "/topics/shared", values, TEXT), 200)
    one = Consumer(port, "v2-group", **config)
    row("v2: subscribe", one.ask("POST", "/subscription", {"topics": ["shared"]}), 204)
    got = one.until(10)
    table.row("v2: a member reads all", sorted(record["value"] for record in got) == sorted(f"v{n}" for n in range(10)), got)
    row("v2: what it reads", one.ask("GET", "/subscription"), 200, {"topics": ["shared"], "partitions": [{"shared": [0, 1]}]})
    row("v2: assign it too", one.ask("POST", "/assignments", parts(0, topic="shared")), 409, coded("illegal state"))
    for body, status in (
        ({"topics": ["a"], "topic_pattern": "b"}, 409), ({"topic_pattern": "b"}, 409), ({"topics": "a"}, 422), ({"topic_pattern": ["a"]}, 422), ({}, 422),
    ):
        row(f"v2: subscribe by {body}", one.ask("POST", "/subscription", body), status)
    two = Consumer(port, "v2-group", **config)
    two.ask("POST", "/subscription", {"topics": ["shared"]})
    until, shares = time.monotonic() + 40, []
    while time.monotonic() < until and sorted(shares) != [1, 1]:
        one.read("timeout=500")
        two.read("timeout=500")
        shares = [len(member.ask("GET", "/assignments").json["partitions"]) for member in (one, two)]
    table.row("v2: two members share the partitions", shares == [1, 1], shares)
    described = ask(port, "GET", "/api/v1/groups/v2-group")
    table.row("v2: Kafka's protocol sees both", len(described.json["members"]) == 2, described.body[:300])
    row("v2: a member leaves", two.ask("DELETE", ""), 204)
    given(port, "POST", "/topics/shared", values, TEXT)
    got = one.until(10)
    table.row("v2: the other reads on, and nothing twice", len(got) == 10 and min(record["offset"] for record in got) == 5, got)
    row("v2: unsubscribe", one.ask("DELETE", "/subscription"), 204)
    row("v2: subscribe by a pattern", one.ask("POST", "/subscription", {"topic_pattern": "shared.+"}), 204)
    given(port, "POST", "/topics/shared2", values, TEXT)
    got = one.until(10)
    table.row("v2: it reads what matches", {record["topic"] for record in got} == {"shared2"} and len(got) == 10, got)
    given(port, "POST", "/admin/topics", {"topic_name": "shared3", "partitions_count": 1}, JSON)
    given(port, "POST", "/topics/shared3", {"records": [{"value": "late"}]}, TEXT)
    got = one.until(1)
    table.row("v2: and what matches later", [record["topic"] for record in got] == ["shared3"], got)
    row("v2: delete the last", one.ask("DELETE", ""), 204)
    left = ask(port, "GET", "/api/v1/groups/v2-group").json
    # What was read before it unsubscribed and not asked behind is not committed, as with Kafka's own consumer.
    lags = {one["topic"]: one["lag"] for one in left["partitions"] if one["topic"] != "shared"}
    table.row("v2: it has left, and committed", left["members"] == [] and lags == {"shared2": 0, "shared3": 0}, left)


def formats(table, port):
    row = table.answered
    for name in ("avro", "jsonschema", "protobuf"):
        one = Consumer(port, "v2-schemas", format=name)
        one.ask("POST", "/assignments", parts(0))
        row(f"v2: records as {name}", one.read(), 422, coded("no registry"))
        one.ask("DELETE", "")
    empty = ask(port, "POST", "/consumers/v2-empty", "", {"Content-Type": V2})
    row("v2: a consumer with an empty body", empty, 200)


def extras(table, port):
    """Of Strimzi's bridge."""
    row = table.answered
    for path in ("/healthy", "/ready"):
        answer = ask(port, "GET", path)
        table.row(f"GET {path}", (answer.status, answer.body) == (200, "ok\n"), answer.body)
    for path in ("/openapi", "/openapi/v3"):
        row(f"GET {path}", ask(port, "GET", path), 200, {"openapi": "3.1.0"})
    info = ask(port, "GET", "/", headers={"Accept": "application/json"})
    row("GET / as JSON", info, 200, lambda document: document["bridge_version"])
    with_headers = {"records": [{"key": "k", "value": "v", "timestamp": 7, "headers": [{"key": "h", "value": b64("x")}, {"key": "none", "value": None}]}]}
    given(port, "POST", "/admin/topics", {"topic_name": "headed", "partitions_count": 1}, JSON)
    row("v2: produce headers and a timestamp", given(port, "POST", "/topics/headed", with_headers, TEXT), 200)
    row("v2: produce without waiting for offsets", given(port, "POST", "/topics/headed?async=true", {"records": [{"value": "a"}]}, TEXT), 204)
    row("v2: async by another word", given(port, "POST", "/topics/headed?async=maybe", {"records": [{"value": "a"}]}, TEXT), 400)
    one = Consumer(port, "v2-headers", **{"format": "text", "auto.offset.reset": "earliest", "isolation.level": "read_committed"})
    one.ask("POST", "/assignments", parts(0, topic="headed"))
    headers = [{"key": "h", "value": b64("x")}, {"key": "none", "value": None}]
    row("v2: headers and timestamps are read", one.read(), 200, {"0.headers": headers, "0.timestamp": 7, "0.value": "v", "1.value": "a"})
