"""The programs of java/: compiled against what lab/queues, lab/bridge and connect-story bring, and how a sender and a reader are asked."""

import subprocess
import sys
import threading
import time
from pathlib import Path

from compat import fetch
from harness.process import spawn
from harness.server import LOGGING

HERE = Path(__file__).resolve().parent
for folder in ("lab/queues", "lab/bridge"):
    sys.path.insert(0, str(fetch.REPOSITORY / folder))

import ends  # noqa: E402  (lab/bridge)
import mq  # noqa: E402  (lab/queues)

JVM = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:-UsePerfData")


class Failed(Exception):
    """A run that came to nothing; the text is for the reader."""


def class_path():
    """(version of Connect, class path of everything): IBM's client, Qpid JMS, Apache's clients and Connect, and java/."""
    mq.fetch([])
    ends.jms_words()
    version, kafka = fetch._classpath("connect", "connect.xml", ("4.4.0", "4.3.1"))
    libraries = f"{mq.CACHE / 'mq-libs'}/*:{ends.CACHE / 'libs'}/*:{kafka}"
    out = fetch.CACHE / "java" / "mq-study"
    out.mkdir(parents=True, exist_ok=True)
    sources = sorted((HERE / "java").glob("*.java"))
    fresh, seal = fetch._stamp(out, *(source.read_text() for source in sources), libraries)
    if not fresh:
        made = subprocess.run(["javac", "-nowarn", "-cp", libraries, "-d", str(out), *map(str, sources)], capture_output=True, text=True)
        if made.returncode != 0:
            raise fetch.Missing(f"the programs do not compile: {made.stderr[-400:]}")
        for kind, name in (("source.SourceConnector", "JmsSource"), ("sink.SinkConnector", "JmsSink")):
            services = out / "META-INF" / "services"
            services.mkdir(parents=True, exist_ok=True)
            (services / f"org.apache.kafka.connect.{kind}").write_text(f"{name}\n")
        seal()
    return version, f"{out}:{libraries}"


def java(classpath, *words):
    return ["java", *JVM, f"-Dlog4j2.configurationFile={LOGGING}", "-Dcompat.level=WARN", "-cp", classpath, *map(str, words)]


class Program:
    """A sender or a reader: lines in, lines out."""

    def __init__(self, classpath, log, *words):
        self.words, self.at, self.lines = words, [], []
        with open(log, "ab") as errors:
            self.process = spawn(java(classpath, *words), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, bufsize=1, cwd=Path(log).parent)
        self.changed = threading.Condition()
        threading.Thread(target=self.hear, daemon=True).start()

    @property
    def pid(self):
        return self.process.pid

    def hear(self):
        for line in self.process.stdout:
            words = line.split()
            with self.changed:
                if words and words[0] == "AT":
                    self.at.append((int(words[1]) / 1e6, int(words[2])))
                else:
                    self.lines.append(line.strip())
                self.changed.notify_all()
        with self.changed:
            self.lines.append("ENDED")
            self.changed.notify_all()

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def wait_for(self, word, within):
        """The line that begins with `word`."""
        def found():
            return next((line for line in self.lines if line.startswith(word)), None)
        with self.changed:
            self.changed.wait_for(lambda: found() or any(line.startswith(("FAILED", "ENDED")) for line in self.lines), within)
            line = found()
        if line is None:
            raise Failed(f"{' '.join(map(str, self.words))} does not say {word}: {self.lines[-3:]}")
        return line

    def count_at(self, moment):
        """The count at a time of the clock, between two lines of it."""
        with self.changed:
            known = list(self.at)
        before = [point for point in known if point[0] <= moment]
        after = [point for point in known if point[0] > moment]
        if not before:
            return 0
        if not after:
            return before[-1][1]
        (t0, n0), (t1, n1) = before[-1], after[0]
        return n0 + (n1 - n0) * (moment - t0) / (t1 - t0)

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def until(asked, what, within, every=0.1):
    deadline = time.monotonic() + within
    while True:
        found = asked()
        if found:
            return found
        if time.monotonic() > deadline:
            raise Failed(f"{what}: not within {within} s")
        time.sleep(every)
