"""`make mixed`: Apache Kafka's brokers and controllers and ours in one cluster, on loopback; everything under load, everything read back.

Seven parts (parts.py, voters.py), each a cluster of its own, each ends in what was compared. One line to quote for each part, and a count. `--quick`
(or QUICK=1) is one short story of all of it; `--security` is the part with TLS and logins between the nodes.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from compat import fetch
from compat.cli import find_binary
from harness.process import spawn
from harness.server import SMALL_JVM, java_words

from .nodes import Failed, Makes
from .parts import GUARDED, PARTS, QUICK
from .stage import Stage

HERE = Path(__file__).resolve().parent


def arguments(words):
    parser = argparse.ArgumentParser(prog="lab/compat/mixed/run", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one short story")
    parser.add_argument("--security", action="store_true", help="one story with TLS and logins between the nodes")
    parser.add_argument("--only", help="parts whose title holds one of these words, with commas")
    parser.add_argument("--binary", help="the barnabas program")
    parser.add_argument("--keep", action="store_true", help="keep data and logs (logs of a part that fails are kept anyway)")
    return parser.parse_args(words)


@fetch.alone
def classes(classpath):
    """The client's class path."""
    fetch._need("javac")
    source = HERE / "java/Mixed.java"
    out = fetch.CACHE / "java" / "mixed"
    out.mkdir(parents=True, exist_ok=True)
    fresh, seal = fetch._stamp(out, source.read_text(), classpath)
    if not fresh:
        fetch._run("mixed-javac", ["javac", "-nowarn", "-cp", classpath, "-d", str(out), str(source)])
        seal()
    return f"{out}:{classpath}"


class Client:
    """The Java program of one cluster."""

    def __init__(self, words, log):
        self.errors = open(log, "ab")
        self.process = spawn(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True)

    def call(self, *words, within=200):
        timer = threading.Timer(within, self.process.kill)
        timer.start()
        said = " ".join(map(str, words))
        try:
            self.process.stdin.write(said + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline().strip()
        except (BrokenPipeError, ValueError):
            answer = ""
        finally:
            timer.cancel()
        if not answer.startswith("ok"):
            raise Failed(f"{said}: {answer or 'the client ended'}")
        return answer[3:]

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.errors.close()


def main(options):
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(130))
    try:
        makes = Makes(find_binary(options.binary))
        classpath = classes(makes.classpath)
    except fetch.Missing as missing:
        print(f"mixed: SKIP: {missing}\n0 passed, 0 failed, 1 skipped")
        return 0
    place = Path(tempfile.mkdtemp(prefix="barnabas-mixed-"))
    begun = time.monotonic()

    def show(text):
        print(f"mixed: {time.monotonic() - begun:6.1f} s  {text}", flush=True)

    def client(cluster):
        log = cluster.place / "client.log"
        return Client(java_words(classpath, "Mixed", cluster.bootstrap(), heap="384m", flags=SMALL_JVM), log)

    show(f"Apache Kafka {makes.version}")
    parts = GUARDED if options.security else QUICK if options.quick else {**PARTS, **GUARDED}
    if options.only:
        wanted = options.only.split(",")
        parts = {title: part for title, part in {**PARTS, **GUARDED, **QUICK}.items() if any(word in title for word in wanted)}
    passed, wrong = 0, []
    for index, (title, part) in enumerate(parts.items(), 1):
        show(f"-- {title}")
        stage, since = Stage(show, f"part-{index}", makes, place, client), time.monotonic()
        try:
            part(stage)
            passed += 1
            show(f"{title}: fine, {time.monotonic() - since:.0f} s")
        except (Failed, RuntimeError, OSError, KeyError, ValueError, subprocess.TimeoutExpired) as error:
            wrong.append(f"{title}: {error}")
            show(f"{title}: FAILED: {error}")
            keep(stage, title)
        finally:
            stage.close()
            if not options.keep:
                shutil.rmtree(stage.place, ignore_errors=True)
    if not options.keep:
        shutil.rmtree(place, ignore_errors=True)
    for line in wrong:
        print(f"mixed: did not hold: {line}")
    print(f"{passed} passed, {len(wrong)} failed, 0 skipped")
    return 1 if wrong else 0


def keep(stage, title):
    kept = fetch.CACHE / "logs" / "mixed" / stage.name
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    for path in [*stage.place.glob("node-*/node.log"), *stage.place.glob("client.log"), *stage.place.glob("node-*/server.properties")]:
        shutil.copy(path, kept / f"{path.parent.name}-{path.name}")
    stage.show(f"logs of \"{title}\" are kept in {os.path.relpath(kept, fetch.REPOSITORY)}")


if __name__ == "__main__":
    sys.exit(main(arguments(sys.argv[1:])))
