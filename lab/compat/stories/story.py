"""What both stories share: the node, Java programs that can be killed, how far a topic is committed, and what is said at the end."""

import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from compat import fetch
from compat.cli import find_binary
from harness import server
from harness.process import kill_all, spawn
from harness.server import SMALL_JVM, Apache, Barnabas

VERSIONS = ("4.4.0", "4.3.1")
# A claim that cannot be tried here.
SKIPPED = object()


class Failed(Exception):
    """A claim that did not hold; the text is for the reader."""


class Node:
    """The broker under test, Barnabas or (as the oracle) Apache Kafka."""

    def __init__(self, options, directory, overrides):
        if options.peer == "barnabas":
            binary = find_binary(options.binary)
            self.server = Barnabas(directory, binary, overrides)
            version = subprocess.run([str(binary), "--version"], capture_output=True, text=True).stdout.split()
            self.label = f"Barnabas {version[-1] if version else '?'}"
        else:
            version, classpath = fetch.kafka()
            self.server = Apache(directory, version, classpath, overrides)
            self.label = f"Kafka {version}"
        self.server.proxied = []
        self.server.ready_within = 90
        self.kills = 0

    @property
    def address(self):
        return self.server.address

    def start(self):
        self.server.start()

    def kill(self):
        """kill −9, and started again."""
        self.server.kill()
        self.kills += 1
        self.server.start()

    def restart(self):
        if not self.server.stop(60):
            raise Failed(f"{self.label} did not stop by itself: {self.server.last_lines()}")
        self.server.start()


class Java:
    """One Java program, its output in a file."""

    def __init__(self, words, log, stdin=subprocess.DEVNULL):
        self.log = Path(log)
        self.begins_at = self.log.stat().st_size if self.log.exists() else 0
        with open(log, "ab") as out:
            self.process = spawn(words, stdout=out, stderr=subprocess.STDOUT, stdin=stdin)

    def said(self):
        with open(self.log, "rb") as file:
            file.seek(self.begins_at)
            return file.read().decode(errors="replace")

    def kill(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self, within=60):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(within)
            except subprocess.TimeoutExpired:
                self.kill()

    def finish(self, what, within=600):
        try:
            code = self.process.wait(within)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failed(f"{what} did not end within {within} s: {self.said()[-400:]}") from None
        if code != 0:
            raise Failed(f"{what} ended with {code}: {self.said()[-600:]}")


def java_words(classpath, *more, heap="256m"):
    return server.java_words(classpath, *more, heap=heap, flags=SMALL_JVM)


@fetch.alone
def compiled(name, programs, classpath):
    """The class path with these programs of java/."""
    fetch._need("javac")
    sources = [Path(__file__).parent / "java" / f"{program}.java" for program in programs]
    out = fetch.CACHE / "java" / name
    out.mkdir(parents=True, exist_ok=True)
    fresh, seal = fetch._stamp(out, *(source.read_text() for source in sources), classpath)
    if not fresh:
        fetch._run(f"{name}-javac", ["javac", "-nowarn", "-cp", classpath, "-d", str(out), *map(str, sources)])
        seal()
    return f"{out}:{classpath}"


def read(classpath, node, topic, kind, directory, isolation="read_committed"):
    """[(partition, offset, key, value)] of all that is shown of a topic now."""
    out = directory / f"{topic}.{isolation}.txt"
    Java(java_words(classpath, "Lines", node.address, topic, str(out), kind, isolation), directory / "reader.log").finish(f"reading {topic}", 120)
    return [line.split(" ", 3) for line in out.read_text().splitlines()]


def _text(word):
    return struct.pack(">h", len(word)) + word.encode()


def ends(port, topic, partitions, committed=True):
    """{partition: end}, as read_committed or read_uncommitted shows it (ListOffsets 2); nothing while the node does not answer."""
    body = struct.pack(">hhi", 2, 2, 1) + _text("story") + struct.pack(">ibi", -1, int(committed), 1) + _text(topic) + struct.pack(">i", partitions)
    body += b"".join(struct.pack(">iq", number, -1) for number in range(partitions))
    try:
        with socket.create_connection(("127.0.0.1", port), 2) as connection:
            connection.settimeout(5)
            connection.sendall(struct.pack(">i", len(body)) + body)
            with connection.makefile("rb") as answers:
                answer = answers.read(struct.unpack(">i", answers.read(4))[0])
    except (OSError, struct.error):
        return {}
    at = 4 + 4 + 4 + 2 + len(topic)
    count, = struct.unpack_from(">i", answer, at)
    found = {}
    for place in range(count):
        number, error, _, offset = struct.unpack_from(">ihqq", answer, at + 4 + 22 * place)
        if error == 0:
            found[number] = offset
    return found


def create(node, topics):
    """Makes topics {name: partitions} (CreateTopics 2)."""
    body = struct.pack(">hhi", 19, 2, 1) + _text("story") + struct.pack(">i", len(topics))
    body += b"".join(_text(name) + struct.pack(">ihii", partitions, 1, 0, 0) for name, partitions in topics.items()) + struct.pack(">ib", 60_000, 0)
    with socket.create_connection(("127.0.0.1", node.server.port), 10) as connection:
        connection.settimeout(60)
        connection.sendall(struct.pack(">i", len(body)) + body)
        with connection.makefile("rb") as answers:
            answers.read(struct.unpack(">i", answers.read(4))[0])
    for name, partitions in topics.items():
        until(lambda: len(ends(node.server.port, name, partitions)) == partitions, f"the topic {name} is not led")


def until(asked, what, within=120, every=0.05):
    """Waits until `asked` answers something; that."""
    deadline = time.monotonic() + within
    while True:
        found = asked()
        if found:
            return found
        if time.monotonic() > deadline:
            raise Failed(f"{what}: not within {within} s")
        time.sleep(every)


def told(name, options, tell):
    """Runs a story: `tell(directory)` answers with (the line to quote, {claim: whether it held, or SKIPPED}). The exit code."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(130))
    slug = name.replace(" ", "-")
    directory = Path(tempfile.mkdtemp(prefix=f"barnabas-{slug}-"))
    line, claims = "", {}
    try:
        line, claims = tell(directory)
    except fetch.Missing as missing:
        print(f"{name}: SKIP: {missing}")
        print("0 passed, 0 failed, 1 skipped")
        return 0
    except (Failed, RuntimeError, OSError) as failed:
        line, claims = f"FAILED: {failed}", {"the story": False}
    finally:
        kill_all()
        wrong = [claim for claim, held in claims.items() if not held]
        if options.keep or wrong:
            kept = fetch.CACHE / "logs" / slug
            shutil.rmtree(kept, ignore_errors=True)
            kept.mkdir(parents=True)
            for path in directory.rglob("*.log"):
                place = path.relative_to(directory)
                if "data" not in place.parts:
                    shutil.copy(path, kept / "-".join(place.parts))
            print(f"{name}: logs are kept in {os.path.relpath(kept, fetch.REPOSITORY)}" + (f", all in {directory}" if options.keep else ""))
        if not options.keep:
            shutil.rmtree(directory, ignore_errors=True)
    for claim in wrong:
        print(f"{name}: did not hold: {claim}")
    skipped = [claim for claim, held in claims.items() if held is SKIPPED]
    for claim in skipped:
        print(f"{name}: skipped: {claim}")
    print(f"{name}: {line}")
    print(f"{len(claims) - len(wrong) - len(skipped)} passed, {len(wrong)} failed, {len(skipped)} skipped")
    return 1 if wrong else 0
