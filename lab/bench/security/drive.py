"""The programs beside librdkafka: src/ (handshakes, connections, ACLs, our decisions) and Decisions.java (Apache's). Each prints one line of JSON."""

import json
import subprocess
from pathlib import Path

from compat import fetch
from harness.process import spawn
from harness.server import java_words

from rig import ROOT
from rig.machine import Sampled, settle

HERE = Path(__file__).resolve().parent
# What clients that are not to take CPU from others get: the broker and a good producer are what is measured.
YIELDING = 10


class Drivers:
    """Raises Missing where one of them cannot be had. Built as the program under test is: by its folder."""

    def __init__(self, binary, directory, acls):
        profile = "release" if binary.parent.name == "release" else "dev"
        built = subprocess.run(["cargo", "build", "--profile", profile, "--locked", "--quiet", "-p", "barnabas-security-load"], cwd=ROOT, capture_output=True, text=True)
        if built.returncode != 0:
            raise fetch.Missing(f"the program that loads TLS and ACLs does not build: {built.stderr.strip()[-300:]}")
        self.own = str(binary.parent / "barnabas-security-load")
        self.tool, self.set, self.names = str(binary), str(Path(directory) / "acls"), str(Path(directory) / "topics")
        self.ask("set", acls, self.set, self.names)

    def decisions(self, peer, seconds):
        """What one decision costs: in core/security, or in Apache's StandardAuthorizer."""
        if peer.name != "kafka":
            return self.ask("decisions", self.set, self.names, seconds)
        _, classpath = fetch.kafka()
        fetch._need("javac")
        out, source = fetch.CACHE / "java" / "security-decisions", HERE / "Decisions.java"
        out.mkdir(parents=True, exist_ok=True)
        fresh, seal = fetch._stamp(out, source.read_text(), classpath)
        if not fresh:
            fetch._run("security-decisions-javac", ["javac", "-nowarn", "-cp", classpath, "-d", str(out), str(source)])
            seal()
        words = java_words(f"{out}:{classpath}", "Decisions", self.set, self.names, str(seconds), heap="512m")
        return self.told(subprocess.run(words, capture_output=True, text=True, timeout=120 + 3 * seconds), "decisions of Apache's authorizer")

    def ask(self, *words, within=120):
        return self.told(subprocess.run([self.own, *map(str, words)], capture_output=True, text=True, timeout=within), words[0])

    def told(self, done, what):
        if done.returncode != 0 or not done.stdout.strip():
            raise RuntimeError(f"{what}: {(done.stderr or done.stdout).strip()[-400:]}")
        return json.loads(done.stdout.strip().splitlines()[-1])

    def begin(self, *words, yielding=False):
        command = ["nice", "-n", str(YIELDING), self.own] if yielding else [self.own]
        return spawn([*command, *map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self, process, what, within=180):
        try:
            out, err = process.communicate("", timeout=within)
        finally:
            process.kill()
            process.wait()
        return self.told(subprocess.CompletedProcess(process.args, process.returncode, out, err), what)

    def measured(self, peer, *words, within=180):
        """What it said, and what the server used meanwhile."""
        settle()
        used = Sampled(peer.pids())
        process = self.begin(*words)
        used.watch([process])
        try:
            told = self.end(process, f"{words[0]} against {peer.server.label}", within)
        finally:
            used.end()
        return told, used.between(*used.stretch, told["handshakes"])

    def quota(self, peer, user, key, value):
        """Sets it, or removes it where `value` is None."""
        change = ["--delete-config", key] if value is None else ["--add-config", f"{key}={value}"]
        words = ["configs", "--bootstrap-server", peer.server.address, "--alter", "--entity-type", "users", "--entity-name", user, *change]
        done = subprocess.run([self.tool, *words], capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            raise RuntimeError(f"{peer.server.label} takes no quota: {(done.stderr or done.stdout).strip()[-300:]}")


def heap_kb(pid):
    """KiB of live objects in a JVM's heap after a full collection."""
    subprocess.run(["jcmd", str(pid), "GC.run"], capture_output=True, timeout=120)
    said = subprocess.run(["jcmd", str(pid), "GC.heap_info"], capture_output=True, text=True, timeout=60).stdout
    found = [int(word.removesuffix("K")) for line in said.splitlines() for before, word in zip(line.split(), line.split()[1:]) if before == "used" and "garbage-first" in line]
    if not found:
        raise RuntimeError(f"the JVM does not say what its heap holds: {said.strip()[-200:]}")
    return found[0]
