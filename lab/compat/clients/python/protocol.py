"""The runner's line protocol (../PROTOCOL.md) for Python clients: reading, answering, payloads.

A client subclasses `Client`; one thread runs it, so that libraries whose consumers are not thread
safe need no lock: between two commands a joined member polls.
"""

import hashlib
import json
import os
import queue
import sys
import threading
import traceback


class Unsupported(Exception):
    """This library has no such thing; not a failure."""


class Refused(Exception):
    """The broker said no; carries Kafka's name of the error."""


def payload(spec):
    if spec is None or isinstance(spec, bytes):
        return spec
    if isinstance(spec, str):
        return spec.encode()
    out = bytearray()
    for index in range((spec["len"] + 31) // 32):
        out += hashlib.sha256(f"{spec['rand']}:{index}".encode()).digest()
    return bytes(out[: spec["len"]])


def shown(data):
    if data is None:
        return None
    data = bytes(data)
    if len(data) <= 200:
        try:
            return data.decode()
        except UnicodeDecodeError:
            pass
    return {"sha": hashlib.sha256(data).hexdigest()[:16], "len": len(data)}


class Digest:
    """What a partition holds, in few words: see `digest` in PROTOCOL.md."""

    def __init__(self):
        self.first = self.last = -1
        self.count = self.gaps = self.sum = 0
        self.whole = hashlib.sha256()

    def add(self, offset, value):
        if self.count == 0:
            self.first = offset
        elif offset != self.last + 1:
            self.gaps += 1
        self.last = offset
        self.count += 1
        self.whole.update(value or b"")
        self.whole.update(b"\n")
        self.sum = (self.sum + int.from_bytes(hashlib.sha256(value or b"").digest()[:8], "big")) % (1 << 64)

    def told(self):
        return {"first": self.first, "last": self.last, "count": self.count, "gaps": self.gaps, "sha": self.whole.hexdigest(), "sum": str(self.sum)}


class Client:
    """Override the operations; `poll` is called over and over while `joined`."""

    joined = False

    def __init__(self, bootstrap):
        self.bootstrap = bootstrap
        self.assigned = None

    def poll(self):
        raise NotImplementedError

    def tell_assignment(self, partitions):
        partitions = sorted([topic, number] for topic, number in partitions)
        if partitions != self.assigned:
            self.assigned = partitions
            say({"ev": "assign", "parts": partitions})

    def tell_records(self, records):
        if records:
            say({"ev": "recs", "recs": records})

    def error_name(self, error):
        return type(error).__name__


def say(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def answer(client, command):
    operation = getattr(client, "op_" + command["op"], None)
    reply = {"id": command["id"]}
    try:
        if operation is None:
            raise Unsupported(f"{command['op']} is not in this client")
        reply["ok"] = operation(command)
    except Unsupported as reason:
        reply["unsupported"] = str(reason)
    except Exception as error:  # Whatever the library throws is the answer.
        if os.environ.get("COMPAT_TRACE"):
            traceback.print_exc()
        reply["err"] = client.error_name(error)
        reply["msg"] = str(error)[:300]
    say(reply)


def serve(make):
    commands = queue.Queue()

    def read():
        for line in sys.stdin:
            commands.put(json.loads(line))
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    client = make(sys.argv[1])
    while True:
        try:
            command = commands.get(block=not client.joined)
        except queue.Empty:
            try:
                client.poll()
            except Exception as error:
                say({"ev": "error", "msg": f"{client.error_name(error)}: {error}"[:300]})
            continue
        answer(client, command)
