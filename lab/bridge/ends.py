"""The foreign end: Apache Artemis, and Qpid JMS as its client. Both come from Maven Central into `.cache/bridge`."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from compat import fetch
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
    return ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-cp", f"{libraries}/*:{classes}", "Queue"]


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
        broker.write_text(re.sub(r"(?m)^.*<acceptor name=\"amqp\".*\n", "", broker.read_text()))
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
