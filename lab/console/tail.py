"""Live tail and search: what comes, what is skipped, what was not scanned."""

import base64
import http.client
import json
import time

from .ask import HOST, ask

COUNT = 3000


def check(table, port, base):
    ask(port, "POST", f"{base}/topics", {"topic_name": "fast", "partitions_count": 1})
    values = [f"record {at}" if at != 1500 else "the planted one" for at in range(COUNT)]
    send(port, base, values)
    search(table, port)
    tail(table, port, base)


def send(port, base, values):
    body = "".join(json.dumps({"partition_id": 0, "value": {"type": "STRING", "data": value}}) + "\n" for value in values)
    answer = ask(port, "POST", f"{base}/topics/fast/records", body)
    assert [json.loads(line)["error_code"] for line in answer.body.splitlines()] == [200] * len(values), answer.body[:300]


def search(table, port):
    row = table.answered
    place = "/api/v1/topics/fast/search"
    found = row("search for a text", ask(port, "GET", f"{place}?text=planted"), 200, {"data.0.offset": 1500, "not_scanned": 0, "next": None, "scanned.records": COUNT})
    table.row("it finds that alone", len(found.json["data"]) == 1, found.body[:300])
    row("search by a regular expression", ask(port, "GET", f"{place}?regex=%5Ethe+p.%2Aed"), 200, {"data.0.offset": 1500, "not_scanned": 0, "scanned.records": COUNT})
    row("search for what is not there", ask(port, "GET", f"{place}?text=absent"), 200, {"data": [], "not_scanned": 0})
    row("search from an offset", ask(port, "GET", f"{place}?text=planted&from=offset&offset=1501"), 200, {"data": [], "scanned.records": COUNT - 1501})
    row("a search that has found enough says what is left", ask(port, "GET", f"{place}?text=record&limit=10"), 200, {"not_scanned": COUNT - 10, "partitions.0.next": 10})
    offsets, cursor = [], ""
    while cursor is not None and len(offsets) <= COUNT:
        page = ask(port, "GET", f"{place}?text=record&limit=500&cursor={cursor}").json
        offsets += [one["offset"] for one in page["data"]]
        cursor = page["next"]
    table.row("its pages have every record once", offsets == [at for at in range(COUNT) if at != 1500], len(offsets))
    for query in ("", "text=x&regex=x", "regex=(", "regex=(a%7B1000%7D)%7B1000%7D", "text=", f"text={'x' * 1025}", "text=x&from=newest", "text=x&cursor=nonsense", "text=x&limit=0"):
        row(f"search?{query[:40]}", ask(port, "GET", f"{place}?{query}"), 400)
    row("search in no topic", ask(port, "GET", "/api/v1/topics/absent/search?text=x"), 404, None, "UNKNOWN_TOPIC_OR_PARTITION")


class Tail:
    """An open tail."""

    def __init__(self, port, query="", last=None, topic="fast"):
        self.connection = http.client.HTTPConnection(HOST, port, timeout=20)
        self.connection.request("GET", f"/api/v1/topics/{topic}/tail{query}", headers={"Last-Event-ID": last} if last else {})
        self.answer = self.connection.getresponse()
        self.id, self.values, self.skipped = None, [], 0

    def event(self):
        """The next event: its name and data."""
        name, data = None, None
        while line := self.answer.readline().decode():
            word, _, rest = line.rstrip("\n").partition(": ")
            if word == "id":
                self.id = rest
            elif word == "event":
                name = rest
            elif word == "data":
                data = json.loads(rest)
            elif not word:
                break
        if data and name == "records":
            self.values += [base64.b64decode(one["value"]["base64"]).decode() for one in data["data"]]
            self.skipped += sum(data["skipped"].values())
        return name, data

    def until(self, count):
        began = time.monotonic()
        while len(self.values) < count and time.monotonic() - began < 20:
            self.event()
        return self.values

    def close(self):
        self.connection.close()


def tail(table, port, base):
    one = Tail(port)
    kind = one.answer.getheader("content-type")
    one.event()
    table.row("a tail begins at the end", (one.answer.status, kind, one.id, one.values) == (200, "text/event-stream", f"0:{COUNT}", []), (kind, one.id))
    send(port, base, ["first", "second"])
    table.row("it shows what comes", one.until(2) == ["first", "second"] and one.id == f"0:{COUNT + 2}", (one.values, one.id))
    one.close()
    send(port, base, ["while it was cut"])
    two = Tail(port, last=one.id)
    table.row("a tail that was cut goes on without a gap", two.until(1) == ["while it was cut"] and two.skipped == 0, two.values)
    two.close()
    text = Tail(port, "?text=nail&partition=0")
    send(port, base, ["hammer", "a nail", "saw"])
    table.row("a tail with a text shows what contains it", text.until(1) == ["a nail"], text.values)
    text.close()
    pattern = Tail(port, "?regex=%5Bmn%5Dail$&partition=0")
    send(port, base, ["hammer", "a nail", "saw"])
    table.row("a tail with an expression shows what matches", pattern.until(1) == ["a nail"], pattern.values)
    pattern.close()
    behind = Tail(port, last="0:0")
    behind.until(150)
    end = COUNT + 9
    is_counted = behind.skipped + len(behind.values) == end and behind.values[:2] == ["record 0", "record 1"] and behind.values[-1] == "saw"
    table.row("a tail that is far behind skips, and counts", is_counted, (behind.skipped, len(behind.values), end))
    behind.close()
    limits(table, port)


def limits(table, port):
    row = table.answered
    place = "/api/v1/topics/fast/tail"
    row("a tail from nowhere", ask(port, "GET", place, headers={"Last-Event-ID": "here"}), 400)
    row("a tail of no partition", ask(port, "GET", f"{place}?partition=9"), 404)
    row("a tail of no topic", ask(port, "GET", "/api/v1/topics/absent/tail"), 404, None, "UNKNOWN_TOPIC_OR_PARTITION")
    # Those that were closed are noticed when they are written to.
    began, tails = time.monotonic(), []
    while time.monotonic() - began < 30:
        tails.append(Tail(port))
        if tails[-1].answer.status == 429:
            break
    table.row("tails are bounded", tails[-1].answer.status == 429 and len(tails) <= 17, len(tails))
    row("and others are answered", ask(port, "GET", "/api/v1/topics"), 200)
    for one in tails:
        one.close()
