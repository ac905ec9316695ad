"""The clients: where their programs come from, and how they are started, stopped and asked."""

import json
import os
import queue
import subprocess
import threading
from pathlib import Path

from compat import fetch

HERE = Path(__file__).resolve().parent.parent

HEAP = ["-Xmx128m", "-Xss512k", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]


@fetch.alone
def java():
    version, classpath = fetch._classpath("java", "java-client.xml", fetch.JAVA_CLIENT_VERSIONS)
    fetch._need("javac")
    out = fetch.CACHE / "java" / "history"
    out.mkdir(parents=True, exist_ok=True)
    sources = [HERE / "clients/java" / name for name in ("History.java", "Steward.java")]
    fresh, seal = fetch._stamp(out, *(source.read_text() for source in sources), classpath)
    if not fresh:
        fetch._run("history-javac", ["javac", "-nowarn", "-cp", classpath, "-d", str(out), *map(str, sources)])
        seal()
    return version, ["java", *HEAP, "-cp", f"{out}:{classpath}"]


@fetch.alone
def go():
    fetch._need("go")
    source, out = HERE / "clients/go", fetch.CACHE / "go-history"
    out.mkdir(parents=True, exist_ok=True)
    inputs = [(source / name).read_text() for name in ("main.go", "go.mod", "go.sum")]
    fresh, seal = fetch._stamp(out, *inputs)
    if not (fresh and (out / "history").exists()):
        fetch._run("go-history", ["go", "build", "-o", str(out / "history"), "."], cwd=source,
                   env={**os.environ, "GOFLAGS": "-buildvcs=false -mod=readonly"})
        seal()
    return [str(out / "history")]


def python():
    return [fetch.python(), "-B", str(HERE / "clients/python/history.py")]


class Client:
    """One process in one role, with one history file."""

    def __init__(self, kind, name, command, place, bootstrap, seed, **more):
        self.kind, self.name, self.role = kind, name, more["role"]
        self.history = place / "history" / f"{name}.jsonl"
        told = {"name": name, "bootstrap": bootstrap, "out": str(self.history), "seed": seed, **more}
        self.errors = place / f"{name}.err"
        with open(self.errors, "ab") as errors:
            self.process = subprocess.Popen([*command, json.dumps(told)], stdin=subprocess.PIPE, stdout=errors, stderr=errors)

    def stop(self):
        try:
            self.process.stdin.write(b"stop\n")
            self.process.stdin.flush()
        except OSError:
            pass

    def wait(self, seconds):
        """Whether it ended in good order; ends it otherwise."""
        try:
            return self.process.wait(max(seconds, 0.1)) == 0
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return False

    def last_words(self):
        return " | ".join(self.errors.read_text(errors="replace").splitlines()[-3:])[-400:]


class Steward:
    """The admin: asked by JSON lines."""

    def __init__(self, command, place, bootstrap):
        self.errors = open(place / "steward.err", "ab")
        self.process = subprocess.Popen([*command, "Steward", bootstrap, str(place / "history/steward.jsonl")], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.errors)
        self.answers = queue.Queue(100)
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.process.stdout:
            self.answers.put(json.loads(line))
        self.answers.put({"err": "the admin client ended"})

    def ask(self, **command):
        self.process.stdin.write((json.dumps(command) + "\n").encode())
        self.process.stdin.flush()
        answer = self.answers.get(timeout=120)
        if "err" in answer:
            raise RuntimeError(f"{command['op']}: {answer['err'][:300]}")
        return answer["ok"]

    def try_ask(self, **command):
        """None where it could not be done just now."""
        try:
            return self.ask(**command)
        except RuntimeError:
            return None
