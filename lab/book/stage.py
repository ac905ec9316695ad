"""Where a page is run: a folder, a shell that lives as long as the page, ports of its own.

Ports that a page names behind a host of this machine are replaced by free ones, in commands, files and what is expected; in what is printed they are
put back. Names that a page has others read for are replaced first. Every process that the page starts is in the session of its shell, and ends with it.
"""

import os
import re
import signal
import subprocess
import threading
from pathlib import Path

from harness.ports import free_port
from harness.process import spawn

PORT = re.compile(r"(?:127\.0\.0\.1|localhost):(\d{4,5})\b")
# A block that takes longer has hung.
SECONDS_MAX = 120
# Apache Kafka begins its lines with another form of the time.
OURS = re.compile(r"^\d{4}-\d\d-\d\dT\S+Z +(?P<level>WARN|ERROR) +(?P<rest>.*)$")


# Stages whose shells run.
OPEN = set()


class Failed(Exception):
    """A block that did not do what the page says; the text is for the reader."""


class Ports:
    """Which free port stands for which of the page, and which name for which."""

    def __init__(self, texts, names=()):
        self.given, self.names = {}, names
        for text in texts:
            for port in PORT.findall(self.named(text)):
                self.given.setdefault(port, str(free_port()))
        taken = {ours: page for page, ours in self.given.items()}
        self.there = re.compile(r"(?<!\d)(" + "|".join(self.given) + r")(?!\d)") if self.given else None
        self.back = re.compile(r"(?<!\d)(" + "|".join(taken) + r")(?!\d)") if taken else None
        self.taken = taken

    def named(self, text):
        for theirs, ours in self.names:
            text = text.replace(theirs, ours)
        return text

    def replaced(self, text):
        text = self.named(text)
        return self.there.sub(lambda found: self.given[found.group()], text) if self.there else text

    def put_back(self, text):
        return self.back.sub(lambda found: self.taken[found.group()], text) if self.back else text


class Stage:
    def __init__(self, folder, binary, ports, variables=None):
        self.folder, self.ports = Path(folder), ports
        programs = self.folder / "bin"
        programs.mkdir(parents=True)
        (programs / "barnabas").symlink_to(binary)
        environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8", **(variables or {})}
        for name in ("BARNABAS_LOG", "RUST_LOG", "KAFKA_OPTS"):
            environment.pop(name, None)
        self.shell = spawn(["bash", "--noprofile", "--norc"], cwd=self.folder, env=environment, text=True,
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        OPEN.add(self)
        self.shell.stdin.write("set -o pipefail\n")

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.ports.replaced(text))

    def run(self, text, fails=False):
        """What the block printed. Raises `Failed` where a command fails, or where `fails` and the last one does not."""
        (self.folder / ".block").write_text(self.ports.replaced(text))
        on, off = ("set +e", "") if fails else ("set -e", "set +e")
        late = threading.Timer(SECONDS_MAX, self.end)
        late.start()
        try:
            self.shell.stdin.write(f"{on}\nsource {self.folder}/.block >{self.folder}/.printed 2>&1 </dev/null\necho code $?\n{off}\n")
            self.shell.stdin.flush()
            answer = self.shell.stdout.readline().split()
        except BrokenPipeError:
            answer = []
        finally:
            late.cancel()
        printed = self.ports.put_back((self.folder / ".printed").read_text(errors="replace")) if (self.folder / ".printed").exists() else ""
        if not answer:
            raise Failed(f"a command failed, or took longer than {SECONDS_MAX} s:\n{printed[-3000:]}")
        if fails and answer[1] == "0":
            raise Failed(f"the page says that this fails, and it does not:\n{printed[-3000:]}")
        return printed

    def warnings(self):
        """(file, level, line) of each line of WARN or ERROR in the logs of nodes."""
        for log in self.logs():
            for line in log.read_text(errors="replace").splitlines():
                found = OURS.match(line)
                if found:
                    yield log.name, found["level"], self.ports.put_back(found["rest"])

    def logs(self):
        """The files that nodes write their log into; segments end in the same way."""
        return sorted(log for log in self.folder.rglob("*.log") if log.is_file() and not log.stem.isdigit())

    def last_lines(self):
        return "\n".join(f"  {log.name}: {line[:300]}" for log in self.logs() for line in log.read_text(errors="replace").splitlines()[-4:])

    def end(self):
        """Ends the shell and all that it started."""
        try:
            os.killpg(self.shell.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.shell.wait()
        OPEN.discard(self)


def end_all():
    """For a signal: ends what every page has started."""
    for place in list(OPEN):
        place.end()
