"""`Idempotency-Key`: a change of /api/v1 that is sent again is made once."""

import threading

from .ask import ask


def check(table, port):
    row = table.answered

    def make(key, name, query="", partitions=1):
        return ask(port, "POST", f"/api/v1/topics{query}", {"name": name, "partitions": partitions}, {"Idempotency-Key": key})

    first = row("a change with a key", make("k1", "once"), 200, {"name": "once"})
    again = row("the same again", make("k1", "once"), 200)
    table.row("is answered as before", again.body == first.body, again.body)
    row("and was made once: without the key it is there", ask(port, "POST", "/api/v1/topics", {"name": "once", "partitions": 1}), 400, None, "TOPIC_ALREADY_EXISTS")
    row("the key with quotes is the same key", make('"k1"', "once"), 200)
    row("the key for another body", make("k1", "twice"), 422)
    row("the key for another query", make("k1", "once", "?dryRun=true"), 422)
    row("nothing was made by it", ask(port, "GET", "/api/v1/topics/twice"), 404)
    row("a refusal with a key", make("k2", "a b"), 400, None, "INVALID_TOPIC_EXCEPTION")
    row("is kept too", make("k2", "a b"), 400, None, "INVALID_TOPIC_EXCEPTION")
    for key in ("", "x" * 256):
        row(f"a key of {len(key)} bytes", make(key, "once"), 400)
    gone = ask(port, "DELETE", "/api/v1/topics/once", headers={"Idempotency-Key": "k3"})
    row("a deletion with a key", gone, 200)
    row("again", ask(port, "DELETE", "/api/v1/topics/once", headers={"Idempotency-Key": "k3"}), 200, {"name": "once"})
    together(table, port)


def together(table, port):
    """Ten requests at once with one key."""
    answers = []

    def one():
        answers.append(ask(port, "POST", "/api/v1/topics", {"name": "raced", "partitions": 1}, {"Idempotency-Key": "race"}))

    threads = [threading.Thread(target=one) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    statuses = sorted(answer.status for answer in answers)
    is_once = statuses[0] == 200 and set(statuses) <= {200, 409} and len({answer.body for answer in answers if answer.status == 200}) == 1
    table.row("of ten at once one makes it", is_once, [answer.body for answer in answers])
