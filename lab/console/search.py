"""A search through whole partitions: what it finds, how it narrows, what it says of the rest."""

import http.client
import json
import time
from urllib.parse import urlencode

from .ask import HOST, ask, login

TOPIC = "searched"
PLACE = f"/api/v1/topics/{TOPIC}/search/stream"


class Search:
    """One search, read to its end unless it is closed."""

    def __init__(self, port, query, topic=TOPIC, user=None):
        self.connection = http.client.HTTPConnection(HOST, port, timeout=60)
        headers = {"Authorization": login(*user)} if user else {}
        self.connection.request("GET", f"/api/v1/topics/{topic}/search/stream?{urlencode(query)}", headers=headers)
        self.answer = self.connection.getresponse()
        self.found, self.events, self.end = [], [], None

    def read(self):
        name = None
        for line in self.answer:
            word, _, rest = line.decode().rstrip("\n").partition(": ")
            if word == "event":
                name = rest
                self.events.append(name)
            elif word == "data" and name == "records":
                self.found += json.loads(rest)["data"]
            elif word == "data" and name in ("end", "problem"):
                self.end = json.loads(rest)
                break
        self.close()
        return self

    @property
    def offsets(self):
        return sorted((one["partition"], one["offset"]) for one in self.found)

    def close(self):
        self.connection.close()


def check(table, port, base, is_own=True):
    """`is_own`: the console is in a node."""
    ask(port, "POST", f"{base}/topics", {"topic_name": TOPIC, "partitions_count": 3})
    text = lambda data: {"type": "STRING", "data": data}
    rows = [
        {"partition_id": 0, "key": text("Alpha"), "value": {"type": "JSON", "data": {"id": 1, "who": {"name": "Anna"}}}},
        {"partition_id": 0, "key": text("beta"), "value": text("no JSON, but alpha"), "headers": [{"name": "trace", "value": "YWxwaGE="}]},
        {"partition_id": 0, "value": None, "key": text("gone")},
        {"partition_id": 1, "value": '{"id":9007199254740993,"lines":[{"price":9.50}]}', "key": text("exact")},
        {"partition_id": 2, "value": text("<script>alert(1)</script>"), "key": text("hostile")},
    ]
    rows[3]["value"] = {"type": "STRING", "data": rows[3]["value"]}
    for one in rows:
        assert ask(port, "POST", f"{base}/topics/{TOPIC}/records", one).json["error_code"] == 200

    def row(name, query, offsets, **wanted):
        one = Search(port, query).read()
        end = one.end or {}
        is_right = one.answer.status == 200 and one.offsets == offsets and end.get("not_scanned") == 0 and end.get("found") == len(offsets)
        table.row(f"search stream: {name}", is_right and all(end.get(key) == value for key, value in wanted.items()), (one.answer.status, one.offsets, end))
        return one

    one = row("a text", {"text": "alpha"}, [(0, 1)], why="all", next=None, gaps=[], gaps_left_out=0)
    table.row("search stream: progress comes first and the end last", one.events[0] == "progress" and one.events[-1] == "end", one.events)
    table.row("search stream: it counts", one.end["scanned"]["records"] == 5 and one.end["offsets"] == {"done": 5, "of": 5}, one.end)
    parts = {part["partition"]: part for part in one.end["partitions"]}
    ways = {"segments", "fetch", "segments and fetch"}
    table.row("search stream: each partition with its leader and the way", len(parts) == 3 and all(part["by"] in ways and part["leader"] == 1 for part in parts.values()), parts)
    row("either case", {"text": "ALPHA", "ignore_case": "true"}, [(0, 0), (0, 1)])
    row("in keys", {"text": "alpha", "ignore_case": "true", "in": "key"}, [(0, 0)])
    row("in headers", {"text": "alpha", "in": "headers"}, [(0, 1)])
    row("an expression", {"regex": "^(Al|be)"}, [(0, 0), (0, 1)])
    row("a field", {"json": "who.name", "value": "Anna"}, [(0, 0)])
    row("a number as it was written", {"json": "id", "value": "9007199254740993"}, [(1, 0)])
    row("its neighbour, the same as a double", {"json": "id", "value": "9007199254740992"}, [])
    row("an element", {"json": "lines[0].price", "op": "le", "value": "9.5"}, [(1, 0)])
    row("a field and a text", {"json": "id", "text": "Anna"}, [(0, 0)])
    row("partitions", {"text": "a", "partition": "1,2"}, [(1, 0), (2, 0)])
    row("from an offset to one", {"text": "e", "from": "offset", "offset": "1", "to_offset": "2"}, [(0, 1)])
    row("up to a time", {"text": "a", "to_time": "1"}, [])
    row("committed records", {"text": "hostile", "isolation": "read_committed"}, [(2, 0)])
    row("markup is data", {"text": "<script>"}, [(2, 0)])
    if is_own:
        ways_of(table, port, base)
    one = Search(port, {"regex": ".", "limit": 2}).read()
    table.row("search stream: a limit ends it, and says what is left", one.end["why"] == "limit" and one.end["found"] == 2 and one.end["not_scanned"] > 0 and one.end["next"], one.end)
    rest = Search(port, {"regex": ".", "limit": 500, "cursor": one.end["next"]}).read()
    together = sorted(one.offsets + rest.offsets)
    table.row("search stream: the cursor goes on", rest.end["why"] == "all" and together == [(0, 0), (0, 1), (0, 2), (1, 0), (2, 0)], together)
    for query in ({}, {"text": "x", "regex": "y"}, {"regex": "("}, {"in": "key"}, {"text": "x", "in": "all"}, {"json": "a..b"}, {"json": "a", "op": "eq"}, {"text": "x", "isolation": "dirty"},
                  {"text": "x", "ignore_case": "yes"}, {"text": "x", "from": "newest"}, {"text": "x", "to_offset": "-1"}, {"text": "x", "cursor": "nonsense"}):
        table.answered(f"search stream: {query}", ask(port, "GET", f"{PLACE}?{urlencode(query)}"), 400)
    table.answered("search stream: no such partition", ask(port, "GET", f"{PLACE}?text=x&partition=0,9"), 404)
    table.answered("search stream: no such topic", ask(port, "GET", "/api/v1/topics/absent/search/stream?text=x"), 404, None, "UNKNOWN_TOPIC_OR_PARTITION")
    # Each place is given back, also where the client goes away.
    for _ in range(6):
        Search(port, {"text": "alpha"}).close()
    began = time.monotonic()
    while Search(port, {"text": "alpha"}).read().answer.status != 200 and time.monotonic() - began < 10:
        time.sleep(0.1)
    row("searches that were closed hold no place", {"text": "alpha"}, [(0, 1)])


def ways_of(table, port, base):
    """A large append is written into the segment at once: it is found there, and what comes behind it in the journal by Fetch."""
    topic = "large"
    ask(port, "POST", f"{base}/topics", {"topic_name": topic, "partitions_count": 1})
    for data in ("x" * 900_000 + "needle", "a needle in the journal"):
        sent = ask(port, "POST", f"{base}/topics/{topic}/records", {"value": {"type": "STRING", "data": data}})
        assert sent.json["error_code"] == 200, sent.body[:300]
    one = Search(port, {"text": "needle"}, topic).read()
    part = one.end["partitions"][0]
    is_right = one.offsets == [(0, 0), (0, 1)] and part["segment_bytes"] > 900_000 and part["next"] == part["end"] == 2
    table.row("search stream: segments are read where they lie", is_right, one.end)


def rights(table, node, topic, admin, stranger):
    """DESCRIBE alone finds nothing: a search is a Fetch."""
    config, port = node.client_config("admin"), node.console_port
    acl = ("--allow-principal", "User:stranger", "--operation", "DESCRIBE", "--topic", topic)
    node.tool("acls", "--add", *acl, config=config)
    place = f"/api/v1/topics/{topic}/search/stream?regex=."
    table.answered("a search needs READ", ask(port, "GET", place, user=stranger), 403, None, "TOPIC_AUTHORIZATION_FAILED")
    node.tool("acls", "--remove", "--force", *acl, config=config)
    one = Search(port, {"regex": "."}, topic, admin).read()
    table.row("with READ it finds", len(one.found) == 1, one.end)
