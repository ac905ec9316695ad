"""The foreign end: Apache Artemis, and Qpid JMS as its client. Both come from Maven Central into `.cache/bridge`."""

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

from compat import fetch
from compat.driver import Failure
from harness.ask import accepts
from harness.ports import free_port
from harness.process import NodeProcess

HERE = Path(__file__).resolve().parent
CACHE = fetch.REPOSITORY / ".cache" / "bridge"
ARTEMIS = "2.56.0"
IN, OUT = "IN", "OUT"


def maven(*words):
    """Runs Maven, or says that what it should bring is missing."""
    if shutil.which("mvn") is None or shutil.which("javac") is None:
        raise fetch.Missing("mvn or javac is not installed")
    CACHE.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["mvn", "-q", "-B", *words], capture_output=True, text=True, timeout=420, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise fetch.Missing(f"Maven does not bring {words[-1]}: {done.stdout.strip()[-200:]}")


def artemis_home():
    """The unpacked distribution."""
    home = CACHE / f"apache-artemis-{ARTEMIS}"
    if not (home / "bin" / "artemis").exists():
        plugin = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
        maven(plugin, f"-DoutputDirectory={CACHE}", f"-Dartifact=org.apache.artemis:apache-artemis:{ARTEMIS}:tar.gz:bin")
        archive = CACHE / f"apache-artemis-{ARTEMIS}-bin.tar.gz"
        subprocess.run(["tar", "xzf", archive.name], cwd=CACHE, check=True)
        archive.unlink()
    return home


def jms_words():
    """How the client of java/Queue.java is started."""
    libraries, source = CACHE / "libs", HERE / "java" / "Queue.java"
    if not list(libraries.glob("qpid-jms-client-*.jar")):
        plugin = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
        maven("-f", str(HERE / "pom.xml"), plugin, f"-DoutputDirectory={libraries}")
    classes = CACHE / "classes"
    subprocess.run(["javac", "-nowarn", "-cp", f"{libraries}/*", "-d", str(classes), str(source)], check=True)
    return ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-cp", f"{libraries}/*:{classes}", "Queue"]


def last_words(done):
    """How a client ended: exit or signal, how much it printed, and the end of both streams. A JVM that cannot start or go on says so on its
    standard output, with nothing on standard error."""
    code = done.returncode
    how = f"killed by {signal.Signals(-code).name}" if code is not None and code < 0 else f"exit {code}"
    out, err = done.stdout or "", done.stderr or ""
    return f"{how} after {len(out.splitlines())} lines, the last {out[-200:]!r}; standard error {err[-500:]!r}"


def browsed(words, artemis, queue, tries=3):
    """What a queue holds: (text, number, duplicate id) of each message. Looking again changes nothing, so a reader that dies is no loss."""
    for left in reversed(range(tries)):
        try:
            asked = [*words, "browse", f"amqp://{artemis.address}", queue]
            done = subprocess.run(asked, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=180)
        except subprocess.TimeoutExpired as late:
            raise Failure(f"the reader of {queue} took more than {late.timeout:.0f} s") from late
        lines = done.stdout.splitlines()
        if done.returncode == 0 and lines and lines[-1] == f"end {len(lines) - 1}":
            return [line.split("\t") for line in lines[:-1]]
        alive = "runs" if artemis.is_alive() else f"has ended with {artemis.process.returncode}"
        print(f"  the reader of {queue} failed: {last_words(done)}; {artemis} {alive}", flush=True)
        if left:
            time.sleep(1)
    raise Failure(f"queue {queue} cannot be read, {tries} tries")


class Artemis(NodeProcess):
    """One Artemis with two queues. Its journal is synced: what it has acknowledged it has after a kill."""

    label = f"Artemis {ARTEMIS}"

    def __init__(self, directory):
        self.directory, self.log = Path(directory), Path(directory).with_suffix(".log")
        self.port = free_port()
        words = ["create", str(self.directory), "--user", "admin", "--password", "admin", "--require-login", "--host", "127.0.0.1",
                 "--http-host", "127.0.0.1", "--http-port", str(free_port()), "--default-port", str(self.port), "--no-stomp-acceptor",
                 "--no-mqtt-acceptor", "--no-hornetq-acceptor", "--queues", f"{IN}:anycast,{OUT}:anycast", "--no-autotune", "--silent"]
        made = subprocess.run([str(artemis_home() / "bin" / "artemis"), *words], capture_output=True, text=True)
        if made.returncode != 0:
            raise RuntimeError(f"artemis create: {made.stdout[-300:]}{made.stderr[-300:]}")
        broker = self.directory / "etc" / "broker.xml"
        # One acceptor, on a free port, speaks AMQP too.
        text = re.sub(r"(?m)^.*<acceptor name=\"amqp\".*\n", "", broker.read_text())
        # Where the machine's disk is nine tenths full it would stop every sender, without a word to them.
        broker.write_text(re.sub(r"<max-disk-usage>\d+<", "<max-disk-usage>-1<", text))
        bootstrap = self.directory / "etc" / "bootstrap.xml"
        bootstrap.write_text(re.sub(r"(?s)<web .*?</web>", "", bootstrap.read_text()))

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def start(self):
        # `artemis run` is a shell script that becomes the JVM by exec.
        environment = {**os.environ, "JAVA_ARGS": ""}
        self.run([str(self.directory / "bin" / "artemis"), "run"], cwd=self.directory, env=environment)
        return self.wait_until(lambda: accepts(self.port), 60, every=0.05)
