"""A message that its topic refuses as too large, and whose dead letter is refused too: it must end as a letter that is cut, and hold up none."""

import subprocess
import time

from compat.driver import Failure
from harness.ports import free_port
from harness.process import NodeProcess
from harness.server import write_properties

from ends import browsed, last_words

QUEUE, TOPIC, LETTERS = "LARGE", "small", "letters"
SIZES = [10, 50_000, 20]


class Source(NodeProcess):
    """`barnabas bridge` with one source."""

    label = "the bridge of large messages"

    def __init__(self, words, scratch, node, artemis):
        self.words, self.log = words, scratch / "refusals.log"
        self.file = write_properties(scratch / "refusals.properties", {
            "name": "large", "connector.class": "source", "topic": TOPIC, "mq.queue": QUEUE, "bootstrap.servers": node.address,
            "amqp.url": f"amqp://{artemis.address}", "mq.user.name": "admin", "mq.password": "admin",
            "errors.deadletterqueue.topic.name": LETTERS, "metrics.listener": f"127.0.0.1:{free_port()}"})

    def start(self):
        self.run([*self.words, self.file])

    def status(self):
        return subprocess.run([*self.words, "status", str(self.file)], capture_output=True, text=True).stdout


def tool(binary, node, *words):
    done = subprocess.run([str(binary), words[0], "--bootstrap-server", node.address, *words[1:]], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise Failure(f"{' '.join(words)}: {last_words(done)}")
    return done.stdout


def records(binary, node, topic):
    return tool(binary, node, "console-consumer", "--topic", topic, "--from-beginning", "--isolation-level", "read_committed",
                "--timeout-ms", "2000", "--property", "print.headers=true").splitlines()


def refusals(words, binary, node, artemis, jms, scratch):
    """Raises Failure where the message is lost, held, or comes for ever."""
    for topic, largest in ((TOPIC, 10_000), (LETTERS, 4_000)):
        tool(binary, node, "topics", "--create", "--topic", topic, "--partitions", "1", "--config", f"max.message.bytes={largest}")
    put = subprocess.run([*jms, "sizes", f"amqp://{artemis.address}", QUEUE, *map(str, SIZES)], capture_output=True, text=True, timeout=60)
    if put.returncode != 0:
        raise Failure(f"the sender of large messages failed: {last_words(put)}")
    source = Source(words, scratch, node, artemis)
    source.start()
    until = time.monotonic() + 60
    while len(records(binary, node, LETTERS)) < 1 or len(records(binary, node, TOPIC)) < 2:
        if time.monotonic() > until or not source.is_alive():
            raise Failure(f"no letter came: {source.last_lines()}")
    status = source.status()
    if not source.stop(20):
        raise Failure(f"the bridge of large messages does not stop: {source.last_lines()}")
    letter, left = records(binary, node, LETTERS)[0], browsed(jms, artemis, QUEUE)
    headers, _, value = letter.rpartition("\t")
    if len(value) != 1024 or f"__barnabas.bridge.value.bytes:{SIZES[1]}" not in headers or "max.message.bytes" not in headers:
        raise Failure(f"the letter is not as it should be: {len(value)} letters, {headers}")
    if left or "tries again" in source.log.read_text():
        raise Failure(f"{len(left)} messages are left in the queue; {source.last_lines()}")
    print(f"  a message of {SIZES[1]} bytes became a letter of {len(value)}; {len(SIZES) - 1} others passed", flush=True)
    print(status, end="")
