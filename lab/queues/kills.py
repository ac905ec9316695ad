"""kill −9 of the node under units of work of IBM's client, and under puts and gets of Qpid JMS: every message is counted by its id.

| what | must hold |
|---|---|
| lost | a message whose put was confirmed is got at least once |
| from nothing | a put of a unit that was not committed, or that MQCMIT said went back, is never got |
| torn | of a unit in doubt all puts come, or none |
| doubled | a get that was confirmed is the last of its message. A message comes more often only if a unit that moved it was in doubt (MQCMIT lost its answer, or said 2123); with AMQP, whose accepts are not confirmed, if the connection that took it broke soon after |

Not shown: several nodes, loss of power.
"""

import argparse
import random
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict

from compat import fetch as registry
from compat.cli import find_binary, in_scratch
from compat.driver import Failure
from harness.process import spawn

import clients
import mq
from clients import HERE
from servers import QueueNode

UNIT = 6
# An accept of AMQP is on its way so long at most.
SETTLED_MS = 2_000
# Longer than a transaction that was left open lasts.
QUIET_S, DRAIN_S = 20, 120


class Player:
    """The program under load, and what it says."""

    def __init__(self, words, log):
        with open(log, "ab") as errors:
            self.process = spawn(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, bufsize=1, cwd=clients.CACHE)
        self.lines, self.heard, self.last = [], [], time.monotonic()
        threading.Thread(target=self.hear, daemon=True).start()

    def hear(self):
        for line in self.process.stdout:
            self.last = time.monotonic()
            self.heard.append(self.last)
            self.lines.append(line.split())

    def say(self, word):
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()

    def wait_for(self, word, within):
        until = time.monotonic() + within
        while [word] not in self.lines[-200:]:
            if time.monotonic() > until or self.process.poll() is not None and [word] not in self.lines:
                raise Failure(f"the clients do not say {word} within {within} s: {self.lines[-3:]}")
            time.sleep(0.05)


def judge_mq(lines):
    """{claim: number of messages that break it}, and words."""
    of = defaultdict(list)
    for what, how, *ids in lines:
        ids = ids[:ids.index("#")] if "#" in ids else ids
        of[what, how].append(ids)
    flat = {key: [one for ids in units for one in ids] for key, units in of.items()}
    flat = defaultdict(list, flat)
    got, doubt = Counter(flat["got", "sure"]), Counter(flat["got", "doubt"])
    came = set(got) | set(doubt)
    moved, known = set(flat["moved", "sure"]), {*flat["put", "sure"], *flat["put", "doubt"]}
    allowed = Counter(flat["moved", "doubt"])
    doubled = [one for one, count in got.items() if count > 1]
    found = {
        "lost": [one for one in flat["put", "sure"] if one not in came],
        "from nothing": [one for one in flat["put", "not"] if one in came or one in moved],
        "torn": [ids for ids in of["put", "doubt"] if 0 < sum(one in came for one in ids) < len(ids)],
        "doubled": [one for one in doubled if got[one] > 1 + allowed[one]],
        "strange": [one for one in came if one not in known],
    }
    sure, open_puts = len(flat["put", "sure"]), of["put", "doubt"]
    words = (f"{sure} puts confirmed, {len(found['lost'])} lost; {len(open_puts)} units of puts in doubt ({sum(any(one in came for one in ids) for ids in open_puts)} of them there, "
             f"{len(found['torn'])} torn); {len(doubled)} doubled, {len(found['doubled'])} of them without a unit in doubt; {len(flat['moved', 'doubt'])} messages moved in doubt; "
             f"{len(flat['put', 'not'])} put in units that were not committed, {len(found['from nothing'])} of them came")
    return found, words


def judge_amqp(lines):
    sure, doubt = {line[2] for line in lines if line[:2] == ["put", "sure"]}, {line[2] for line in lines if line[:2] == ["put", "doubt"]}
    broke = {line[1]: int(line[2]) for line in lines if line[0] == "broke"}
    got = defaultdict(list)
    for line in lines:
        if line[0] == "got":
            got[line[3]].append((line[1], int(line[2])))
    doubled = {one: times for one, times in got.items() if len(times) > 1}
    # All but the last must have been taken on a connection that broke soon after.
    wrong = [one for one, times in doubled.items()
             if any(life not in broke or broke[life] - at > SETTLED_MS for life, at in sorted(times, key=lambda pair: pair[1])[:-1])]
    found = {"lost": [one for one in sure if one not in got], "doubled": wrong, "strange": [one for one in got if one not in sure | doubt]}
    words = (f"{len(sure)} puts confirmed, {len(found['lost'])} lost; {len(doubt)} puts in doubt ({sum(one in got for one in doubt)} of them there); "
             f"{len(doubled)} doubled, {len(wrong)} of them not around a broken connection")
    return found, words


def run(name, words, judge, node, options, scratch):
    """Kills the node `options.kills` times, and once more at the end: the claims that did not hold."""
    chance = random.Random(options.seed)
    player = Player(words, scratch / f"{name}.log")
    gaps = []
    try:
        time.sleep(3)
        for number in range(options.kills):
            time.sleep(chance.uniform(0.3, 1) * options.every)
            seen = len(player.lines)
            node.kill()
            time.sleep(chance.uniform(0, 0.5))
            begun = time.monotonic()
            node.start()
            while not any(line[:2] in (["got", "sure"], ["put", "sure"]) or line[0] == "got" for line in player.lines[seen + 20:]):
                if time.monotonic() - begun > 90:
                    raise Failure(f"{name}: nothing goes on within 90 s after kill {number + 1}: {player.lines[-3:]}; {node.last_lines()}")
                time.sleep(0.05)
            gaps.append(time.monotonic() - begun)
        time.sleep(2)
        # The last time the senders do not come back: what they left open must not keep the others from what was confirmed.
        node.kill()
        player.say("STOP")
        node.start()
        ended = time.monotonic()
        player.wait_for("STOPPED", 60)
        while time.monotonic() - player.last < QUIET_S and time.monotonic() - ended < DRAIN_S:
            time.sleep(0.2)
        quiet = player.last - ended
        player.say("END")
        player.wait_for("ENDED", 60)
    finally:
        if player.process.poll() is None:
            player.process.kill()
        player.process.wait()
    found, words = judge([line for line in player.lines if len(line) > 1])
    print(f"kills: {name}: {options.kills + 1} kills -9, {words}; goes on {max(gaps, default=0):.1f} s after a start at most, the last message {max(0, quiet):.1f} s after the last start, without senders", flush=True)
    if options.keep or any(found.values()):
        kept = registry.CACHE / "logs" / f"kills-{name}.txt"
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text("".join(f"{at - player.heard[0]:.2f} {' '.join(line)}\n" for at, line in zip(player.heard, player.lines)))
        (kept.parent / f"kills-{name}-node.log").write_text(node.log.read_text(errors="replace"))
    for claim, wrong in found.items():
        if wrong:
            print(f"  {claim}: {wrong[:10]}")
    panics = [line for line in node.log.read_text(errors="replace").splitlines() if "panicked" in line]
    for line in panics:
        print(f"  the node's log: {line}")
    return [f"{name}: {claim}" for claim, wrong in found.items() if wrong] + panics


def mq_words(node):
    player, = mq.fetch(["mqi"])
    libraries, classes = mq.CACHE / "mq-libs", mq.CACHE / "mq-classes"
    subprocess.run(["javac", "-nowarn", "-cp", f"{libraries}/*", "-d", str(classes), str(HERE / "clients/mq/MqKills.java")], check=True)
    return [*player.words[:-1], "MqKills", node.mq_port, node.user, node.password, "KILLS.1", "KILLS.2", UNIT]


def amqp_words(node):
    words = clients.jms().words
    libraries, classes = clients.ends.CACHE / "libs", clients.CACHE / "classes"
    subprocess.run(["javac", "-nowarn", "-cp", f"{libraries}/*", "-d", str(classes), str(HERE / "clients/java/JmsKills.java")], check=True)
    return [*words[:-1], "JmsKills", node.amqp_port, node.user, node.password, "kills"]


ALL = {"mq": (mq_words, judge_mq), "amqp": (amqp_words, judge_amqp)}


def play(options, scratch):
    """All runs: (how many passed, what did not hold)."""
    print(f"kills: seed {options.seed}", flush=True)
    passed, wrong = 0, []
    for name, (words_of, judge) in ALL.items():
        if options.only and name not in options.only.split(","):
            continue
        node = QueueNode(scratch / f"kills-{name}", find_binary(options.binary)).start()
        try:
            found = run(name, words_of(node), judge, node, options, scratch)
        except (Failure, RuntimeError) as reason:
            print(f"kills: {name}: FAILED: {reason}", flush=True)
            found = [f"{name}: {reason}"]
            kept = registry.CACHE / "logs"
            kept.mkdir(parents=True, exist_ok=True)
            (kept / f"kills-{name}-node.log").write_text(node.log.read_text(errors="replace"))
        finally:
            node.kill()
        passed, wrong = passed + (not found), wrong + found
    return passed, wrong


def arguments(words):
    parser = argparse.ArgumentParser(prog="lab/queues/run kills", description="The node is killed under clients of its MQ and AMQP listeners.")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--every", type=float, default=6, help="seconds between two kills, at most")
    parser.add_argument("--quick", action="store_true", help="three kills of each")
    parser.add_argument("--only", help="mq or amqp")
    parser.add_argument("--binary", help="the barnabas program")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--keep", action="store_true", help="keep what the clients said and the node's log")
    options = parser.parse_args(words)
    if options.quick:
        options.kills, options.every = 3, 5
    return options


def main(words):
    options = arguments(words)

    def all_of_them(scratch):
        passed, wrong = play(options, scratch)
        print(f"{passed} passed, {len(wrong)} failed, 0 skipped")
        return 1 if wrong or not passed else 0

    return in_scratch("queue-kills", all_of_them)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
