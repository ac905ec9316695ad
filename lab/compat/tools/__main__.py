"""Asks Apache's tools the same of both servers, compares what they say word for word, and prints what differs. With `--native` the tools asked
of Barnabas are its own: what is compared is then the tools.

The long form sets the stage on Barnabas and on Apache Kafka, one after the other, and compares. The short form (`--quick`) sets a smaller
stage on Barnabas alone and compares with what Apache Kafka said when `--record` was last asked for (recorded.txt).
"""

import argparse
import difflib
import re
import shutil
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path

from compat import fetch
from compat.cli import find_binary, in_scratch
from compat.driver import Failure
from compat.tools import Shell
from harness.server import Apache, Barnabas

from .masks import masked
from .native import TOOLS as NATIVE
from .native import Native
from .questions import alone, changes, looks, refusals
from .stage import SETTINGS, Stage

HERE = Path(__file__).resolve().parent
RECORDED = HERE / "recorded.txt"


def arguments(words):
    parser = argparse.ArgumentParser(prog="lab/compat/tools/run",
                                     description="Apache's tools for groups and transactions, on Barnabas beside Apache Kafka.")
    parser.add_argument("--quick", action="store_true", help="a part of it, on Barnabas alone, beside what Apache Kafka is known to say: what `make test` runs")
    parser.add_argument("--record", action="store_true", help="asks Apache Kafka what the short form asks, and writes recorded.txt")
    parser.add_argument("--only", default="*", help="questions whose line matches, with * for anything")
    parser.add_argument("--native", action="store_true", help="asks Barnabas with its own tools instead of Apache's")
    parser.add_argument("--jobs", type=int, default=4, help="tools at a time")
    parser.add_argument("--binary", help="the barnabas program")
    parser.add_argument("--tools", help="with --native: the program whose tools are asked, where it is not that of --binary")
    parser.add_argument("--verbose", action="store_true", help="what each tool said, masked")
    return parser.parse_args(words)


class Peer:
    """One server with its stage, and what was answered: {question: (exit code, lines)}."""

    def __init__(self, server, name, options, scratch, is_native=False):
        self.server, self.options, self.answers, self.is_native = server, options, {}, is_native
        self.logs = fetch.LOGS / f"tools-{name}"
        shutil.rmtree(self.logs, ignore_errors=True)
        self.logs.mkdir(parents=True)
        self.scratch = scratch / name
        self.scratch.mkdir()
        server.overrides = SETTINGS
        server.proxied = []
        server.ready_within = 90

    def play(self):
        begun = time.monotonic()
        self.server.start()
        version, classpath = fetch.kafka()
        shell = Native(self.server, self.options, classpath, self.scratch) if self.is_native else Shell(self.server, None, classpath, self.scratch)
        stage = Stage(self.server, shell, self.logs, self.scratch, self.options.quick or self.options.record)
        try:
            staged = [acts for acts in (looks(), refusals(), *changes(self.plan(shell))) if self.chosen(acts)]
            if staged:
                stage.build()
            with ThreadPoolExecutor(self.options.jobs) as pool:
                list(pool.map(lambda acts: [self.ask(shell, question, place) for place, question in enumerate(self.chosen(acts))], alone()))
                list(pool.map(lambda question: self.ask(shell, question), self.chosen(looks() + refusals())))
                list(pool.map(lambda acts: [self.ask(shell, question, place) for place, question in enumerate(self.chosen(acts))], changes(self.plan(shell))))
        finally:
            stage.close()
            self.server.kill()
            if self.server.log.exists():
                shutil.copy(self.server.log, self.logs / "server.log")
        print(f"  {self.server.label}: {len(self.answers)} questions answered after {time.monotonic() - begun:.0f} s", flush=True)
        return self

    def plan(self, shell):
        """The names of files are the same on both, so that questions are."""
        self.files = {}

        def file(text):
            name = f"plan-{len(self.files)}.csv"
            self.files[name] = shell.file(text)
            return name
        return file

    def chosen(self, questions):
        short = self.options.quick or self.options.record
        asked = [question for question in questions
                 if not question.setup and (not self.options.native or question.tool in NATIVE) and (question.quick and question.tool != "streams-groups" or not short) and fnmatchcase(question.name, self.options.only)]
        return [question for question in questions if question in asked or question.setup] if asked else []

    def ask(self, shell, question, place=None):
        words = [self.files.get(word, word) if place is not None else word for word in question.words]
        try:
            code, said = shell.ask(question.tool, *(word.replace("{node}", self.server.address) for word in words), timeout=120, connect="{node}" not in words, seconds=question.seconds)
        except Failure as failure:
            code, said = -1, str(failure)
        for name, path in self.files.items() if place is not None else ():
            said = said.replace(path, name)
        # The same may be asked twice: before and after something changed.
        name = question.name if place is None else f"{question.name}  [{place + 1}]"
        self.answers[name] = (code, masked(said))


def known():
    with open(HERE / "known.toml", "rb") as file:
        return tomllib.load(file).get("known", [])


def explained(name):
    return next((entry["reason"] for entry in known() if any(fnmatchcase(name, pattern) for pattern in entry["questions"])), None)


def compare(ours, theirs, verbose):
    """(how many are the same, how many differ and are explained, names of those that differ)"""
    same, excused, wrong = 0, 0, []
    for name, answer in ours.items():
        if verbose:
            print(f"\n{name}  → {answer[0]}\n    " + "\n    ".join(answer[1]))
        if theirs.get(name) == answer:
            same += 1
            continue
        why = explained(name)
        excused += why is not None
        if why is None:
            wrong.append(name)
        print(f"\n{name}{': known: ' + why if why else ''}")
        before = theirs.get(name, (None, ["(not asked)"]))
        if before[0] != answer[0]:
            print(f"    exit code {answer[0]}, there {before[0]}")
        for line in difflib.unified_diff(before[1], answer[1], "Apache Kafka", "Barnabas", lineterm="", n=0):
            if not line.startswith(("---", "+++", "@@")):
                print(f"    {line[:300]}")
    return same, excused, wrong


def write_recorded(version, answers):
    text = [f"# What Kafka {version}'s tools said of Kafka {version}, masked and sorted. Written by `lab/compat/tools/run --record`."]
    for name, (code, lines) in answers.items():
        text += ["", f"> {name}", f"= {code}", *lines]
    RECORDED.write_text("\n".join(text) + "\n")


def read_recorded():
    text = RECORDED.read_text()
    version = re.search(r"Kafka (\S+)'s", text).group(1)
    answers = {}
    for block in text.split("\n> ")[1:]:
        name, code, *lines = block.rstrip("\n").split("\n")
        answers[name] = (int(code.removeprefix("= ")), lines)
    return version, answers


def run(options, scratch):
    begun = time.monotonic()
    version, classpath = fetch.kafka()
    apache = lambda: Peer(Apache(scratch / "kafka-node", version, classpath), "kafka", options, scratch).play()  # noqa: E731
    if options.record:
        write_recorded(version, apache().answers)
        print("1 passed, 0 failed, 0 skipped")
        return 0
    recorded = read_recorded() if options.quick else None
    if recorded and recorded[0] != version:
        print(f"tools: SKIP: these are {version}'s, recorded were {recorded[0]}'s")
        print("0 passed, 0 failed, 1 skipped")
        return 0
    ours = Peer(Barnabas(scratch / "node", find_binary(options.binary)), "barnabas", options, scratch, options.native).play()
    theirs = recorded[1] if recorded else apache().answers
    same, excused, wrong = compare(ours.answers, theirs, options.verbose)
    tools = sorted({name.split()[0] for name in ours.answers})
    whose = "of Barnabas beside those " if options.native else ""
    print(f"\ntools: {', '.join(tools)} {whose}of Kafka {version}, {len(ours.answers)} questions on {ours.server.label} beside Kafka {version}{' (as recorded)' if recorded else ''}: "
          f"{same} answered word for word the same, {excused} differ for a known reason, {len(wrong)} differ; {time.monotonic() - begun:.0f} s")
    print(f"{same} passed, {len(wrong)} failed, {excused} skipped")
    return 1 if wrong else 0


def main(words):
    options = arguments(words)
    return in_scratch("tools", lambda scratch: run(options, scratch))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
