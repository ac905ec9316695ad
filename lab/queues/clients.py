"""The clients, unchanged, as their package managers bring them. clients/PROTOCOL.md has what the rig asks of each."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from compat import fetch as registry
from harness.process import spawn

import servers  # noqa: F401  (lab/bridge on the path)
import ends

HERE = Path(__file__).resolve().parent
CACHE = registry.REPOSITORY / ".cache" / "queues"
ALL = ("proton", "rhea", "jms")


class Client:
    def __init__(self, short, label, words):
        self.short, self.label, self.words = short, label, words

    def start(self, server, verb, *words, user=None, password=None):
        said = [verb, "127.0.0.1", str(server.amqp_port), user or server.user, password or server.password]
        asked = [word if isinstance(word, str) else json.dumps(word) for word in words]
        return spawn([*self.words, *said, *asked], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)

    def ask(self, server, verb, *words, within=60, **login):
        return self.answer(self.start(server, verb, *words, **login), within)

    def answer(self, process, within=60):
        """What a client says last."""
        try:
            out, err = process.communicate(timeout=within)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
        lines = [line for line in out.splitlines() if line.startswith("{")]
        if not lines:
            raise ValueError(f"{self.label} said nothing: {out[-200:]} {err[-400:]}")
        return json.loads(lines[-1])


def proton():
    for python in ("/usr/bin/python3", sys.executable):
        if Path(python).exists():
            made = subprocess.run([python, "-c", "import proton; print('.'.join(map(str, proton.VERSION)))"], capture_output=True, text=True)
            if made.returncode == 0:
                return Client("proton", f"Qpid Proton {made.stdout.strip()}", [python, "-B", str(HERE / "clients/proton_client.py")])
    raise registry.Missing("Qpid Proton's Python binding is not installed (Debian: python3-qpid-proton)")


def rhea():
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise registry.Missing(f"{program} is not installed")
    out, source = CACHE / "js", HERE / "clients/js"
    out.mkdir(parents=True, exist_ok=True)
    names = ("package.json", "package-lock.json", "client.js")
    is_fresh = all((out / name).exists() and (out / name).read_text() == (source / name).read_text() for name in names)
    for name in names:
        shutil.copy(source / name, out / name)
    if not (is_fresh and (out / "node_modules/rhea").exists()):
        done = subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=out, capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            raise registry.Missing(f"npm does not bring rhea: {done.stderr.strip()[-200:]}")
    version = json.loads((source / "package.json").read_text())["dependencies"]["rhea"]
    return Client("rhea", f"rhea {version}", ["node", str(out / "client.js")])


def jms():
    ends.jms_words()
    libraries, classes = ends.CACHE / "libs", CACHE / "classes"
    subprocess.run(["javac", "-nowarn", "-cp", f"{libraries}/*", "-d", str(classes), str(HERE / "clients/java/JmsClient.java")], check=True)
    words = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-cp", f"{libraries}/*:{classes}", "JmsClient"]
    return Client("jms", "Qpid JMS", words)


def fetch(names):
    """The clients that are to be had here, and a line for each that is not."""
    found, missing = [], []
    for name in names:
        try:
            found.append({"proton": proton, "rhea": rhea, "jms": jms}[name]())
            print(f"client: {found[-1].label}", flush=True)
        except (registry.Missing, subprocess.SubprocessError) as error:
            missing.append(f"{name}: {error}")
    return found, missing
