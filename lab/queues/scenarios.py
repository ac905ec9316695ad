"""What is tried with each client. A scenario comes to a text that is the same wherever the broker does the same."""

import time


class Skipped(Exception):
    """This client has no way to do it."""


class Stage:
    """One scenario: a client, a broker, and a queue of its own."""

    def __init__(self, client, server, queue):
        self.client, self.server, self.queue, self.started = client, server, queue, []

    def ask(self, verb, *words, **login):
        return self.client.ask(self.server, verb, *words, **login)

    def put(self, *texts, **options):
        return self.ask("put", self.queue, list(texts), options)

    def get(self, number, outcome="accept", **options):
        return self.ask("get", self.queue, str(number), outcome, options)["got"]

    def begin_get(self, number, outcome="accept", **options):
        process = self.client.start(self.server, "get", self.queue, str(number), outcome, options)
        self.started.append(process)
        return process

    def end(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.communicate()


SCENARIOS = {}


def scenario(expected, needs_kafka=False):
    def keep(function):
        function.expected, function.needs_kafka = expected, needs_kafka
        SCENARIOS[function.__name__] = function
        return function

    return keep


def texts(got):
    return " ".join(message.get("text", f"{message['length']} characters") for message in got) or "nothing"


@scenario("connected")
def connect(stage):
    return "connected" if stage.ask("connect")["connected"] else "refused"


@scenario("refused")
def wrong_password(stage):
    return "connected" if stage.ask("connect", password="wrong").get("connected") else "refused"


@scenario("accepted 3")
def put(stage):
    said = stage.put("a", "b", "c")
    return f"accepted {said['accepted']}" if not said["refused"] else f"refused {said['refused']}"


@scenario("a b c")
def get(stage):
    stage.put("a", "b", "c")
    return texts(stage.get(3))


@scenario("{'flag': True, 'n': -3, 's': '007'} type")
def properties(stage):
    stage.put("a", properties={"n": -3, "s": "007", "flag": True}, subject="type", group="g")
    message = stage.get(1)[0]
    return f"{dict(sorted(message['properties'].items()))} {message['subject']}"


@scenario("each once, both got some")
def competing_consumers(stage):
    stage.put("first")
    stage.get(1)
    both = [stage.begin_get(20, credit=1, wait=6, pause=0.05) for _ in range(2)]
    time.sleep(3)
    stage.put(*[str(number) for number in range(20)])
    parts = [[message["text"] for message in stage.client.answer(one)["got"]] for one in both]
    once = sorted(parts[0] + parts[1]) == sorted(str(number) for number in range(20))
    return f"{'each once' if once else parts}, {'both got some' if all(parts) else 'one got all'}"


@scenario("again, and counted 0")
def release(stage):
    stage.put("a")
    stage.get(1, "release")
    again = stage.get(1)
    return f"again, and counted {again[0]['count']}" if again else "lost"


@scenario("again, and counted 1")
def modify(stage):
    stage.put("a")
    stage.get(1, "modify")
    again = stage.get(1)
    return f"again, and counted {again[0]['count']}" if again else "lost"


@scenario("b")
def reject(stage):
    stage.put("a", "b")
    stage.get(1, "reject", credit=1)
    return texts(stage.get(2, wait=1.5))


@scenario("another gets a")
def lost_connection(stage):
    stage.put("a")
    holder = stage.begin_get(1, "leave", hold=30)
    line = holder.stdout.readline().strip()
    if line != "holding":
        raise ValueError(f"the holder said {line!r}")
    meanwhile = stage.get(1, wait=1)
    holder.kill()
    holder.communicate()
    after = stage.get(1, wait=10)
    return f"another gets {texts(after)}" if not meanwhile else "two have it at a time"


@scenario("900000 characters")
def large_message(stage):
    stage.put("a", size=900_000)
    return texts(stage.get(1))


@scenario("2000 accepted, each once, in order")
def many_messages(stage):
    numbers = [str(number) for number in range(2000)]
    said = stage.put(*numbers)
    got = [message["text"] for message in stage.get(2000, credit=100, wait=5)]
    order = "in order" if got == numbers else f"{len(got)} in another order"
    return f"{said['accepted']} accepted, {'each once' if len(set(got)) == len(got) == 2000 else 'not each once'}, {order}"


@scenario("accepted 2")
def idle_timeout(stage):
    return f"accepted {stage.ask('idle', stage.queue, '5')['accepted']}"


@scenario("nothing")
def expiry(stage):
    stage.put("a", ttl=300)
    time.sleep(1)
    return texts(stage.get(1, wait=1.5))


@scenario("browsed a b c, then got a b c")
def browse(stage):
    stage.put("a", "b", "c")
    seen = stage.get(3, "browse", wait=2)
    return f"browsed {texts(seen)}, then got {texts(stage.get(3))}"


@scenario("ping-pong")
def request_reply(stage):
    return str(stage.ask("request", stage.queue).get("reply"))


def transact(stage, *steps):
    """The texts that were got; a refusal is one of them."""
    if stage.client.short == "rhea":
        raise Skipped
    said = stage.ask("transact", stage.queue, [list(step) for step in steps])
    return " ".join([*said["got"], *said["refused"]]) or "nothing"


@scenario("a b")
def transaction_put(stage):
    transact(stage, ("put", "a"), ("put", "b"), ("commit",))
    return texts(stage.get(2))


@scenario("b")
def transaction_put_rollback(stage):
    transact(stage, ("put", "a"), ("rollback",), ("put", "b"), ("commit",))
    return texts(stage.get(2, wait=1.5))


@scenario("a, again a, then nothing")
def transaction_get_rollback(stage):
    stage.put("a")
    first, *again = transact(stage, ("get", 1), ("rollback",), ("get", 1), ("commit",)).split()
    return f"{first}, again {' '.join(again)}, then {texts(stage.get(1, wait=1.5))}"


@scenario("a b, then c")
def transaction_move(stage):
    stage.put("a", "b")
    moved = transact(stage, ("get", 2), ("put", "c"), ("commit",))
    return f"{moved}, then {texts(stage.get(2, wait=1.5))}"


@scenario("a")
def transaction_lost(stage):
    if stage.client.short == "rhea":
        raise Skipped
    stage.put("a")
    holder = stage.client.start(stage.server, "transact", stage.queue, [["get", 1], ["put", "b"], ["hold", 30]])
    stage.started.append(holder)
    line = holder.stdout.readline().strip()
    if line != "holding":
        raise ValueError(f"the holder said {line!r}")
    holder.kill()
    holder.communicate()
    return texts(stage.get(2, wait=5))


@scenario("browsed b, then got a b")
def browse_selector(stage):
    stage.put("a", properties={"n": 1})
    stage.put("b", properties={"n": 2})
    seen = stage.get(2, "browse", wait=2, selector="n > 1 AND n IS NOT NULL")
    return f"browsed {texts(seen)}, then got {texts(stage.get(2))}"


@scenario("hello with n=5, key g", needs_kafka=True)
def kafka_reads_amqp(stage):
    stage.put("hello", properties={"n": 5}, group="g")
    line = stage.server.tool("console-consumer", "--topic", stage.queue, "--from-beginning", "--max-messages", "1", "--timeout-ms", "10000",
                             "--property", "print.key=true", "--property", "print.headers=true").rstrip("\n")
    # One header is binary: tabs and line feeds may be in it.
    headers, key, value = line.rsplit("\t", 2)
    return f"{value} with {'n=5' if 'n:5' in headers.split(',') else headers}, key {key}"


@scenario("one two", needs_kafka=True)
def amqp_reads_kafka(stage):
    stage.server.tool("console-producer", "--topic", stage.queue, given="one\ntwo\n")
    return texts(stage.get(2, wait=5))


@scenario("['amqp:unauthorized-access']", needs_kafka=True)
def no_rights(stage):
    stage.put("a")
    said = stage.ask("put", stage.queue, ["b"], {}, user="reader", password="reader")
    return str(said["refused"])
