"""Asks both servers what no client of good will asks, and compares the error codes, each with its place in the answer.

Members with false epochs, giant notes, commits for topics that are gone, producers with stale epochs, markers from strangers, expressions that are none
or explode: questions.py. The long form asks Barnabas and Apache Kafka, one after the other. The short form (`--quick`) asks Barnabas alone and compares with
what Apache Kafka said when `--record` was last asked for (recorded.txt). known.toml says what may differ, and why.
"""

import argparse
import json
import re
import subprocess
import sys
import time
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

from compat import fetch
from compat.cli import find_binary, in_scratch
from harness.process import spawn
from harness.server import Apache, Barnabas

from .questions import PARTS, topics

HERE = Path(__file__).resolve().parent
RECORDED = HERE / "recorded.txt"
# The coordinator is on its way: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, CONCURRENT_TRANSACTIONS.
NOT_YET = {14, 15, 16, 51}
PATIENCE_S = 5
SETTINGS = {"group.min.session.timeout.ms": "6000"}


def arguments(words):
    parser = argparse.ArgumentParser(prog="lab/compat/wrong/run", description="Bad input of groups and transactions, on Barnabas beside Apache Kafka.")
    parser.add_argument("--quick", action="store_true", help="Barnabas alone, beside what Apache Kafka is known to say: what `make test` runs")
    parser.add_argument("--record", action="store_true", help="asks Apache Kafka and writes recorded.txt")
    parser.add_argument("--binary", help="the barnabas program")
    parser.add_argument("--verbose", action="store_true", help="each answer whole")
    return parser.parse_args(words)


@fetch.alone
def program():
    """The command that asks, and the version of Apache's classes in it."""
    version, libraries = fetch._classpath("java", "java-client.xml", fetch.JAVA_CLIENT_VERSIONS)
    fetch._need("javac")
    out, source = fetch.CACHE / "java" / "wrong", HERE / "Ask.java"
    out.mkdir(parents=True, exist_ok=True)
    fresh, seal = fetch._stamp(out, source.read_text(), libraries)
    if not fresh:
        fetch._run("wrong-javac", ["javac", "-nowarn", "-cp", libraries, "-d", str(out), str(source)])
        seal()
    return version, ["java", "-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", f"{out}:{libraries}", "Ask"]


# What an element of a list is called in a question: its place in an answer is the broker's own affair.
NAMES = ("groupId", "transactionalId", "topicName", "name", "topicId", "partitionIndex", "memberId", "key", "producerId")


def called(name, ids):
    """Without what is another one each time: ids of topics, and of members that were given theirs."""
    for id, topic in ids.items():
        name = name.replace(id, f"<{topic}>")
    return re.sub(r"wrong-[0-9a-f-]{36}", "<given>", name)


def codes(answer, ids, place=""):
    """[(place, code)] of whatever is called an error code. `ids`: what topics are called that have these ids."""
    found = []
    if isinstance(answer, dict):
        for name, value in answer.items():
            if name in ("closed", "unsent"):
                found.append((name, value))
            elif name.lower().endswith("errorcode"):
                found.append((f"{place}{name}", value))
            else:
                found += codes(value, ids, f"{place}{name}.")
    elif isinstance(answer, list):
        for at, each in enumerate(answer):
            known = next((each[name] for name in NAMES if isinstance(each, dict) and name in each and (each[name] or each[name] == 0)), "")
            found += codes(each, ids, f"{place}{called(str(known), ids)}.")
    return found


class Peer:
    def __init__(self, server, command, verbose):
        self.server, self.command, self.verbose, self.answers, self.names = server, command, verbose, {}, {}
        server.overrides, server.proxied, server.ready_within = SETTINGS, [], 90

    def play(self):
        begun = time.monotonic()
        self.server.start()
        self.asking = spawn(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            ids = topics(self.ask)
            self.names.update({id: name for name, id in ids.items()})
            for part in PARTS:
                part(self.ask, ids)
        finally:
            self.asking.kill()
            self.asking.wait()
            self.server.kill()
        print(f"  {self.server.label}: {len(self.answers)} questions answered after {time.monotonic() - begun:.0f} s", flush=True)
        return self

    def ask(self, name, api, version, on="one", **fields):
        line = json.dumps({"on": on, "port": self.server.port, "api": api, "version": version, "body": fields})
        until = time.monotonic() + PATIENCE_S
        while True:
            self.asking.stdin.write(line + "\n")
            self.asking.stdin.flush()
            said = self.asking.stdout.readline()
            if not said:
                raise RuntimeError(f"a known difference of a question that is not asked: {name}")
            answer = json.loads(said)
            found = codes(answer, self.names)
            if not any(code in NOT_YET for _, code in found) or time.monotonic() > until:
                break
            time.sleep(0.1)
        while name in self.answers:
            name += " (again)"
        self.answers[name] = ", ".join(sorted(f"{place}={code}" for place, code in found if code)) or "no error"
        if self.verbose:
            print(f"{name}\n    {said.strip()[:600]}")
        return answer


def explained(name):
    with open(HERE / "known.toml", "rb") as file:
        known = tomllib.load(file).get("known", [])
    return next((entry["reason"] for entry in known if any(fnmatchcase(name, pattern) for pattern in entry["questions"])), None)


def compare(ours, theirs):
    """(the same, excused, names of those that differ)"""
    same, excused, wrong = 0, 0, []
    for name, answer in ours.items():
        if theirs.get(name) == answer:
            same += 1
            continue
        why = explained(name)
        excused += why is not None
        if why is None:
            wrong.append(name)
        print(f"\n{name}{': known: ' + why if why else ''}\n    Barnabas:     {answer[:300]}\n    Apache Kafka: {theirs.get(name, '(not asked)')[:300]}")
    return same, excused, wrong


def write_recorded(version, answers):
    lines = [f"# The error codes of Kafka {version}, as its classes show them. Written by `lab/compat/wrong/run --record`."]
    RECORDED.write_text("\n".join(lines + [f"{name} => {answer}" for name, answer in answers.items()]) + "\n")


def read_recorded():
    first, *lines = RECORDED.read_text().splitlines()
    return re.search(r"Kafka (\S+),", first).group(1), dict(line.rsplit(" => ", 1) for line in lines)


def run(options, scratch):
    begun = time.monotonic()
    asked_with, command = program()
    version, classpath = fetch.kafka()

    def apache():
        return Peer(Apache(scratch / "kafka-node", version, classpath), command, options.verbose).play().answers

    if options.record:
        write_recorded(version, apache())
        print("1 passed, 0 failed, 0 skipped")
        return 0
    ours = Peer(Barnabas(scratch / "node", find_binary(options.binary)), command, options.verbose).play().answers
    version, theirs = read_recorded() if options.quick else (version, apache())
    same, excused, wrong = compare(ours, theirs)
    print(f"\nwrong: {len(ours)} questions that no client should ask, by the classes of Kafka {asked_with}, beside Kafka {version}{' (as recorded)' if options.quick else ''}: "
          f"{same} answered with the same codes, {excused} differ for a known reason, {len(wrong)} differ; {time.monotonic() - begun:.0f} s")
    print(f"{same} passed, {len(wrong)} failed, {excused} skipped")
    return 1 if wrong else 0


def main(words):
    options = arguments(words)
    return in_scratch("wrong", lambda scratch: run(options, scratch))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
