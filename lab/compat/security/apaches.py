"""Apache's command-line tools: one JVM runs them one after the other, as each start of a JVM costs more than the tool."""

import base64
import subprocess
import threading

from compat import fetch
from harness.process import spawn
from harness.server import SMALL_JVM, java_words


@fetch.alone
def _words():
    _, classpath = fetch.kafka()
    fetch._need("javac")
    out, source = fetch.CACHE / "java" / "security-tools", fetch.HERE / "security/clients/Tools.java"
    out.mkdir(parents=True, exist_ok=True)
    fresh, seal = fetch._stamp(out, source.read_text(), classpath)
    if not fresh:
        fetch._run("security-tools-javac", ["javac", "-nowarn", "-cp", classpath, "-d", str(out), str(source)])
        seal()
    return java_words(f"{out}:{classpath}", "Tools", heap="256m", flags=SMALL_JVM, level="OFF")


class Tools:
    """A JVM with the tools, which ends with this process or by `close`. One call at a time."""

    def __init__(self):
        self.lock = threading.Lock()
        self.process = spawn(_words(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def run(self, name, *words):
        """(exit code, what the tool of this class printed on both)."""
        with self.lock:
            self.process.stdin.write("\t".join((name, *words)) + "\n")
            self.process.stdin.flush()
            said = self.process.stdout.readline()
        if not said:
            raise RuntimeError(f"the JVM with Apache's tools has ended, at {name} {' '.join(words)}")
        code, printed = said.rstrip("\n").split("\t")
        return int(code), base64.b64decode(printed).decode(errors="replace")

    def close(self):
        self.process.kill()
        self.process.wait()


_shared = []
_starting = threading.Lock()


def tool(name, *words):
    """One of Apache's tools, in the JVM that all parts share."""
    with _starting:
        if not _shared:
            _shared.append(Tools())
    return _shared[0].run(name, *words)


def close():
    while _shared:
        _shared.pop().close()
