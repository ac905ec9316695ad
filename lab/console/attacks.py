"""What hostile pages and hostile clients try."""

import socket
import time

from .ask import HOST, ask, raw


def check(table, port, base):
    hosts(table, port)
    pages(table, port, base)
    heads(table, port)
    bodies(table, port, base)
    paths(table, port)
    idle(table, port)


def hosts(table, port):
    for host, status in (
        ("evil.example", 421),
        (f"evil.example:{port}", 421),
        ("127.0.0.1.evil.example", 421),
        ("console.example", 200),
        ("console.example:443", 200),
        ("localhost", 200),
        ("[::1]:8080", 200),
    ):
        table.answered(f"Host: {host}", ask(port, "GET", "/v3/clusters", headers={"Host": host}), status)
    two = raw(port, b"GET /v3/clusters HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
    table.row("two Host headers", two.startswith(b"HTTP/1.1 400"), two[:100])
    none = raw(port, b"GET /v3/clusters HTTP/1.1\r\nConnection: close\r\n\r\n")
    table.row("no Host header", none.startswith(b"HTTP/1.1 400"), none[:100])
    rebound = ask(port, "GET", "/livez", headers={"Host": "10.0.0.7.node.example"})
    table.row("a probe may have any Host", rebound.status == 200, rebound.body)


def pages(table, port, base):
    topic = {"topic_name": "made-by-a-page"}
    json = {"Content-Type": "application/json"}
    for name, headers, status in (
        ("a form", {"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ("text", {"Content-Type": "text/plain"}, 415),
        ("another origin", {**json, "Origin": "http://evil.example"}, 403),
        ("no origin at all", {**json, "Origin": "null"}, 403),
        ("another port", {**json, "Origin": f"http://127.0.0.1:{port + 1}"}, 403),
        ("another site", {**json, "Sec-Fetch-Site": "cross-site"}, 403),
    ):
        table.answered(f"a change by {name}", ask(port, "POST", f"{base}/topics", topic, headers), status)
    table.answered("nothing was made", ask(port, "GET", f"{base}/topics/made-by-a-page"), 404)
    deleted = ask(port, "DELETE", f"{base}/topics/orders", headers={"Origin": "http://evil.example"})
    table.answered("a deletion from another origin", deleted, 403)
    consumers(table, port)
    answer = ask(port, "OPTIONS", f"{base}/topics", headers={"Origin": "http://evil.example"})
    table.row("no answer allows another origin", not any(name.startswith("access-control") for name in answer.headers), answer.headers)
    answer = ask(port, "GET", "/v3/clusters")
    guarded = answer.headers.get("x-content-type-options") == "nosniff" and "frame-ancestors 'none'" in answer.headers.get("content-security-policy", "")
    table.row("answers cannot be framed or sniffed", guarded, answer.headers)


def consumers(table, port):
    """A page of another site moves no consumer of REST v2 by an image or a fetch, and their number is bounded."""
    ask(port, "POST", "/consumers/attacked", {"name": "c", "auto.offset.reset": "earliest"})
    place = "/consumers/attacked/instances/c"
    ask(port, "POST", f"{place}/assignments", {"partitions": [{"topic": "orders", "partition": 0}]})
    for name, headers in (
        ("another origin", {"Origin": "http://evil.example"}),
        ("another site", {"Sec-Fetch-Site": "cross-site"}),
        ("another site of the same domain", {"Sec-Fetch-Site": "same-site"}),
    ):
        table.answered(f"records read by {name}", ask(port, "GET", f"{place}/records", headers=headers), 403)
    table.answered("records read as an image", ask(port, "GET", f"{place}/records", headers={"Accept": "image/avif,image/png"}), 406)
    ask(port, "POST", f"{place}/offsets", {})
    table.answered("the consumer has not moved", ask(port, "GET", f"{place}/offsets"), 200, {"offsets": []})
    made = [ask(port, "POST", "/consumers/many", {"name": f"c{n}"}).status for n in range(70)]
    table.row("consumers are bounded", made[0] == 200 and made[-1] == 429 and made.count(200) <= 64, made)
    for n in range(70):
        ask(port, "DELETE", f"/consumers/many/instances/c{n}")
    pattern = ask(port, "POST", f"{place}/subscription", {"topic_pattern": "(a{1000}){1000}"})
    table.row("a pattern that would take memory without bound is refused", pattern.status in (409, 422), pattern.body)
    split = ask(port, "POST", "/consumers/many", {"name": "a\r\nSet-Cookie: x=1"})
    is_quoted = split.status == 200 and "set-cookie" not in split.headers and "%0D%0A" in split.json["base_uri"]
    table.row("a line break in a consumer's name is no header", is_quoted, split.body)
    ask(port, "DELETE", "/consumers/many/instances/a%0d%0aSet-Cookie:%20x=1")


def heads(table, port):
    long = raw(port, b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000 + b"\r\n\r\n")
    table.row("a head of 100 kB", long.startswith(b"HTTP/1.1 431"), long[:80])
    many = raw(port, b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"".join(b"X%d: y\r\n" % n for n in range(500)) + b"\r\n")
    table.row("500 headers", many.startswith(b"HTTP/1.1 431"), many[:80])
    began = time.monotonic()
    slow = raw(port, b"GET / HTTP/1.1\r\nHost: loc", within=20)
    table.row("a head that does not end is not waited for", time.monotonic() - began < 19, slow[:80])


def bodies(table, port, base):
    large = ask(port, "POST", f"{base}/topics", "{" + " " * 2_000_000 + "}")
    table.answered("a body of 2 MB", large, 413)
    head = f"POST {base}/topics HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{"
    slow = raw(port, head.encode(), within=20)
    table.row("a body that does not come", slow.startswith(b"HTTP/1.1 408"), slow[:80])
    deep = ask(port, "POST", f"{base}/topics", "[" * 100_000)
    table.answered("100,000 brackets", deep, 400)
    smuggled = raw(port, b"POST /v3/clusters HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /livez HTTP/1.1\r\nHost: x\r\n\r\n", within=3)
    table.row("two lengths are one request at most", smuggled.count(b"HTTP/1.1 200") <= 1, smuggled[:200])


def paths(table, port):
    for path in ("/../etc/passwd", "/v3/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/assets/..%2f..%2fCargo.toml", "//etc/passwd", "/v3/clusters/%00"):
        answer = raw(port, f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        table.row(f"GET {path}", answer.startswith((b"HTTP/1.1 404", b"HTTP/1.1 400")) and b"root:" not in answer, answer[:200])
    injected = ask(port, "GET", "/v3/clusters/a%0d%0aSet-Cookie:%20x=1")
    table.row("a line break in a name is no header", injected.status == 404 and "set-cookie" not in injected.headers, injected.headers)


def idle(table, port):
    """Connections that say nothing take no place for ever."""
    held = []
    for _ in range(300):
        connection = socket.socket()
        connection.setblocking(False)
        connection.connect_ex((HOST, port))
        held.append(connection)
    began = time.monotonic()
    answer = ask(port, "GET", "/livez")
    table.row("300 idle connections end, and others are answered", answer.status == 200 and time.monotonic() - began < 45, answer.body)
    for connection in held:
        connection.close()
