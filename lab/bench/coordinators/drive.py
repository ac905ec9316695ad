"""The two programs that load a coordinator: Load.java (Apache's own client) and src/ (ours, where a thousand of Apache's clients would be what is
measured). Each run is a process of its own; its last line is JSON."""

import json
import subprocess
from pathlib import Path

from compat import fetch
from harness.process import spawn

from rig import ROOT
from rig.machine import Sampled, settle

HERE = Path(__file__).resolve().parent


class Drivers:
    """Raises Missing where one of them cannot be had."""

    def __init__(self):
        self.version, libraries = fetch._classpath("java", "java-client.xml", fetch.JAVA_CLIENT_VERSIONS)
        fetch._need("javac")
        out, source = fetch.CACHE / "java" / "coordinators", HERE / "Load.java"
        out.mkdir(parents=True, exist_ok=True)
        fresh, seal = fetch._stamp(out, source.read_text(), libraries)
        if not fresh:
            fetch._run("coordinators-javac", ["javac", "-nowarn", "-cp", libraries, "-d", str(out), str(source)])
            seal()
        self.java = ["java", "-Xmx768m", "-XX:-UsePerfData", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", f"{out}:{libraries}", "Load"]
        built = subprocess.run(["cargo", "build", "--release", "--locked", "--quiet", "-p", "barnabas-coordinators-load"], cwd=ROOT, capture_output=True, text=True)
        if built.returncode != 0:
            raise fetch.Missing(f"the program that loads coordinators does not build: {built.stderr.strip()[-300:]}")
        self.own = [str(ROOT / "target/release/barnabas-coordinators-load")]

    def command(self, peer, program, load, words):
        return [*(self.java if program == "java" else self.own), load, peer.server.address, *map(str, words)]

    def ask(self, peer, program, load, *words, within=300):
        """What it said."""
        return self.end(peer, load, self.begin(peer, program, load, *words), within)

    def begin(self, peer, program, load, *words):
        """The program, started; the end of what is written to it may end it."""
        return spawn(self.command(peer, program, load, words), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self, peer, load, process, within=300):
        try:
            out, err = process.communicate("", timeout=within)
        finally:
            process.kill()
            process.wait()
        if process.returncode != 0 or not out.strip():
            raise RuntimeError(f"{load} against {peer.server.label}: {(err or out).strip()[-400:]}")
        return json.loads(out.strip().splitlines()[-1])

    def measured(self, peer, count, program, load, *words, beside=()):
        """What it said and what the server used meanwhile, by `count` of what was done, its warm-up included. `beside`: other clients of the same run."""
        settle()
        used = Sampled(peer.pids())
        process = self.begin(peer, program, load, *words)
        used.watch([process, *beside])
        try:
            told = self.end(peer, load, process)
        finally:
            used.end()
        return {**told, **used.between(*used.stretch, told[count])}
