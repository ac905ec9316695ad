"""`decode=`: records of internal topics, and those in Confluent's wire format, with a schema of a file and of a registry."""

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from .ask import HOST, ask
from .nodes import OwnProcess
from .search import Search

TOPIC = "framed"
ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}, {"name": "who", "type": ["null", "string"]}]}
SCHEMAS = {"/schemas/ids/7": {"schema": json.dumps(ORDER)}, "/schemas/ids/8": {"schemaType": "JSON", "schema": "{}"}}


class Registry(BaseHTTPRequestHandler):
    asked = []

    def do_GET(self):
        self.asked.append(self.path)
        known = SCHEMAS.get(self.path)
        body = json.dumps(known or {"error_code": 40403}).encode()
        self.send_response(200 if known else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def framed(schema, payload):
    return base64.b64encode(b"\0" + schema.to_bytes(4, "big") + payload).decode()


# 2^53 + 1, which no double is, as Avro writes it.
EXACT = bytes([0x82, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20, 0])
VALUES = [
    framed(7, bytes([14, 2, 8]) + b"Anna"),
    framed(7, EXACT),
    framed(8, b'{"n":1.50}'),
    framed(9, bytes([14, 0])),
    framed(7, bytes([14, 2, 200])),
    framed(10, bytes([6])),
    base64.b64encode(b"text").decode(),
]


def internal(table, port):
    place = "/api/v1/topics/__consumer_offsets"
    commits = lambda rows: [row for row in rows if row["decoded_key"] and '"topic":"orders"' in (row["decoded_key"]["json"] or "")]
    read = ask(port, "GET", f"{place}/records?decode=auto&limit=500")
    rows = table.answered("offsets are decoded", read, 200, lambda document: commits(document["data"])).json["data"]
    found = commits(rows)
    value = json.loads(found[-1]["decoded_value"]["json"]) if found else {}
    table.row("a commit has its offset", "offset" in value.get("data", {}), value)
    table.row("no record of the topic is unreadable", not [row for row in rows if row["decoded_key"] and row["decoded_key"]["trouble"]], rows[:1])
    groups = [row for row in rows if row["decoded_key"] and row["decoded_key"]["json"] and '"group":"readers"' in row["decoded_key"]["json"]]
    table.row("the group's metadata is decoded", any(json.loads(row["decoded_key"]["json"])["type"] != "1" for row in groups), groups[:1])
    plain = ask(port, "GET", f"{place}/records?limit=1")
    table.answered("nothing is decoded unasked", plain, 200, lambda document: "decoded_key" not in document["data"][0])
    search = Search(port, {"json": "data.offset", "op": "ge", "value": "0", "decode": "auto"}, topic="__consumer_offsets").read()
    table.row("a field of what was decoded is found", search.found and all('"offset"' in one["decoded_value"]["json"] for one in search.found), search.end)
    table.answered("another decoder", ask(port, "GET", f"{place}/records?decode=xml"), 400)


def check(table, node, base, directory, binary):
    internal(table, node.console_port)
    registry = ThreadingHTTPServer((HOST, 0), Registry)
    threading.Thread(target=registry.serve_forever, daemon=True).start()
    files = Path(directory) / "schemas"
    files.mkdir()
    (files / "numbers-10.avsc").write_text('"int"')
    words = ["--schemas-dir", str(files), "--schema-registry-url", f"http://{HOST}:{registry.server_port}"]
    own = OwnProcess(directory, binary, node.address, words=words).start()
    ask(own.port, "POST", f"{base}/topics", {"topic_name": TOPIC, "partitions_count": 1})
    for value in VALUES:
        assert ask(own.port, "POST", f"{base}/topics/{TOPIC}/records", {"value": {"type": "BINARY", "data": value}}).json["error_code"] == 200
    place = f"/api/v1/topics/{TOPIC}"
    read = table.answered("framed records", ask(own.port, "GET", f"{place}/records?decode=auto&from=oldest"), 200)
    decoded = [row["decoded_value"] for row in read.json["data"]]
    texts = [one and one["json"] for one in decoded]
    wanted = ['{"id":7,"who":"Anna"}', '{"id":9007199254740993,"who":null}', '{"n":1.50}', None, None, "3", None]
    table.row("they are decoded by the registry and by a file", texts == wanted, texts)
    formats = [one and (one["format"], one["schema_id"]) for one in decoded]
    table.row("each says its schema", formats == [("avro", 7), ("avro", 7), ("json-schema", 8), ("unknown", 9), ("avro", 7), ("avro", 10), None], formats)
    troubles = [decoded[3]["trouble"], decoded[4]["trouble"]]
    table.row("what is not says why", "schema 9 is not known" in troubles[0] and "are left" in troubles[1], troubles)
    search = Search(own.port, {"json": "id", "value": "9007199254740993", "decode": "auto"}, topic=TOPIC).read()
    table.row("a field is searched to its last digit", search.offsets == [(0, 1)], search.offsets)
    once = ask(own.port, "GET", f"{place}/search?json=n&op=gt&value=1.4&decode=schema")
    table.answered("one request searches too", once, 200, lambda document: [row["offset"] for row in document["data"]] == [2])
    table.row("the registry is asked once for an id", sorted(Registry.asked) == ["/schemas/ids/7", "/schemas/ids/8", "/schemas/ids/9"], Registry.asked)
    registry.shutdown()
    own.stop()
    alone = ask(node.console_port, "GET", f"{place}/records?decode=auto&from=oldest&limit=1")
    table.answered("without a place for schemas", alone, 200, lambda document: "console.schemas.dir" in document["data"][0]["decoded_value"]["trouble"])
