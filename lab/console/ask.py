"""Requests to the console, as a client sends them, and the one table of what was asked and how it was answered."""

import base64
import http.client
import json
import socket
import ssl

HOST = "127.0.0.1"


class Answer:
    def __init__(self, status, headers, body, method="", path=""):
        self.status, self.headers, self.body = status, headers, body
        self.method, self.path = method, path

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def kafka_error(self):
        try:
            return self.json.get("kafka_error")
        except ValueError:
            return None


def login(user, password):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def ask(port, method, path, body=None, headers=None, user=None, authority=None, is_tls=False):
    """`body`: text or bytes as they are, everything else as JSON. `user`: (name, password). `authority`: TLS, and whom to trust."""
    headers = dict(headers or {})
    if body is not None:
        headers.setdefault("Content-Type", "application/json")
        body = body if isinstance(body, (str, bytes)) else json.dumps(body)
    if user:
        headers.setdefault("Authorization", login(*user))
    if authority or is_tls:
        connection = http.client.HTTPSConnection(HOST, port, timeout=60, context=ssl.create_default_context(cafile=authority))
    else:
        connection = http.client.HTTPConnection(HOST, port, timeout=60)
    try:
        connection.request(method, path, body=body, headers=headers)
        answer = connection.getresponse()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, headers, answer.read().decode(), method, path)
    finally:
        connection.close()


def raw(port, sent, within=5):
    """Bytes as they are: what comes back until the other side closes, or `within` seconds are over."""
    with socket.create_connection((HOST, port), timeout=within) as connection:
        connection.sendall(sent)
        got = b""
        try:
            while piece := connection.recv(65536):
                got += piece
        except (TimeoutError, ConnectionResetError):
            pass
        return got


class Table:
    """Counts rows; prints those that are not as they should be, or all."""

    def __init__(self, is_verbose):
        self.passed, self.failed, self.is_verbose = 0, 0, is_verbose
        # The console's description of its answers: each answer of /api/v1 and /v3 is compared with it.
        self.described = None

    def row(self, name, is_right, seen=""):
        if is_right:
            self.passed += 1
        else:
            self.failed += 1
        if self.is_verbose or not is_right:
            print(f"{'ok    ' if is_right else 'FAILED'} {name}{'' if is_right else f': {seen}'}", flush=True)

    def answered(self, name, answer, status, has=None, error=None):
        """`has`: what is to be found in the document, by its path `a.b.0.c`, or a function of the document."""
        seen = f"{answer.status} {answer.body[:300]}"
        is_right = answer.status == status and (error is None or answer.kafka_error == error)
        try:
            if is_right and callable(has):
                is_right = bool(has(answer.json))
            elif is_right and has:
                for path, wanted in has.items():
                    found = answer.json
                    for key in path.split("."):
                        found = found[int(key)] if isinstance(found, list) else found[key]
                    is_right = is_right and found == wanted
        except (KeyError, IndexError, TypeError, ValueError) as error:
            is_right, seen = False, f"{seen} ({error!r})"
        if is_right and self.described and answer.path.startswith(("/api/v1/", "/v3/")):
            trouble = self.described.trouble(answer)
            is_right, seen = not trouble, f"not as described: {trouble}: {seen}"
        self.row(name, is_right, seen)
        return answer
