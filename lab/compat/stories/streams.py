"""The streams story: Kafka Streams counts the words of a real text, exactly once, while the broker and Streams are killed in turns.

A line of text is a record of `lines`; Streams (exactly_once_v2, two threads, four partitions) splits it, sends each word through a
repartition topic to its counter, and each count is a record of `totals`. Broker and application are killed with −9 in turns, at random
moments of which some fall into the recovery from the kill before, and started again; nobody helps. At the end the totals must be those of
`wc` and `uniq -c`, and what read_committed shows must be, for each word, the counts 1, 2, 3 … each once and in order: nothing was lost,
nothing was counted twice, and nothing that was counted twice was ever shown.

What it does not show: several brokers; loss of power.
"""

import argparse
import random
import subprocess
import sys
import threading
import time
from collections import Counter

from compat import fetch

from . import text
from .story import VERSIONS, Failed, Java, Node, compiled, create, ends, java_words, read, told, until

PARTITIONS = 4


def arguments(words):
    parser = argparse.ArgumentParser(prog="lab/compat/stories/run streams", description="Kafka Streams' word count, exactly once, with kills on both sides.")
    parser.add_argument("--protocol", choices=("classic", "streams"), default="classic", help="Streams' group.protocol")
    parser.add_argument("--words", type=int, default=100_000, help="of text")
    parser.add_argument("--kills", type=int, default=10, help="of the broker, and as many of Streams")
    parser.add_argument("--quick", action="store_true", help="20,000 words and two kills each: what `make test` runs")
    parser.add_argument("--peer", default="barnabas", choices=("barnabas", "kafka"))
    parser.add_argument("--binary", help="the barnabas program")
    parser.add_argument("--seed", type=int, help="of the kills' moments (default: a new one, printed)")
    parser.add_argument("--keep", action="store_true", help="keep data and logs")
    options = parser.parse_args(words)
    if options.quick:
        options.words, options.kills = 20_000, 2
    return options


class Feeder:
    """Sends the text's lines as far as it is let."""

    def __init__(self, classpath, node, path, log):
        self.lines = path.read_bytes().splitlines(keepends=True)
        self.java = Java(java_words(classpath, "WordCount", "feed", node.address, "lines"), log, subprocess.PIPE)
        self.fed, self.allowed, self.more = 0, 0, threading.Condition()
        threading.Thread(target=self._feed, daemon=True).start()

    def _feed(self):
        try:
            while self.fed < len(self.lines):
                with self.more:
                    self.more.wait_for(lambda: self.fed < self.allowed)
                    piece = self.lines[self.fed:min(self.allowed, self.fed + 20)]
                self.java.process.stdin.write(b"".join(piece))
                self.java.process.stdin.flush()
                self.fed += len(piece)
                time.sleep(0.01)
            self.java.process.stdin.close()
        except OSError:
            pass

    def allow(self, share):
        with self.more:
            self.allowed = max(self.allowed, int(len(self.lines) * share))
            self.more.notify()


class Application:
    """The Streams process: as often as it is killed it is started anew on what it left."""

    def __init__(self, classpath, node, protocol, directory):
        self.words = java_words(classpath, "WordCount", "run", node.address, protocol, str(directory / "state"))
        self.log, self.kills, self.java = directory / "streams.log", 0, None

    def start(self):
        self.java = Java(self.words, self.log)

    def kill(self):
        self.java.kill()
        self.kills += 1
        self.start()

    def check(self):
        if self.java.process.poll() is not None:
            raise Failed(f"Streams ended by itself with {self.java.process.returncode}: {self.java.said()[-600:]}")


def progress(node):
    """How much of the totals is committed."""
    return sum(ends(node.server.port, "totals", PARTITIONS).values())


def killing(node, application, feeder, options, chance):
    """Broker, Streams, broker, Streams …; each after the totals went on since the kill before, but for every fourth, which comes at once."""
    rounds = 2 * options.kills
    for number in range(rounds):
        feeder.allow((number + 1) / (rounds + 1))
        before, begun = progress(node), time.monotonic()
        if number % 4 != 3 or number < 2:
            until(lambda: application.check() or progress(node) > before, f"before kill {number + 1} of {rounds} the totals stand at {before}")
        waited = time.monotonic() - begun
        time.sleep(chance.uniform(0, 1))
        side = (node, application)[number % 2]
        side.kill()
        print(f"  kill {number + 1:2}: {'broker' if side is node else 'Streams'}, {waited:4.1f} s until the totals went on, at {progress(node):,}", flush=True)
    feeder.allow(1)


def settled(node, application, wanted, within=180):
    """Waits until so many totals are committed and no more come."""
    deadline = time.monotonic() + within
    before, since = -1, time.monotonic()
    while True:
        application.check()
        now = progress(node)
        if now != before:
            before, since = now, time.monotonic()
        quiet = time.monotonic() - since
        # Offsets count the markers of transactions too: so many is the least.
        if (now >= wanted and quiet > 3) or time.monotonic() > deadline:
            return
        if quiet > 60:
            raise Failed(f"the totals stand at {now:,} of at least {wanted:,} for a minute: {application.java.said()[-400:]}")
        time.sleep(0.2)


def shown(records):
    """{word: [its counts in order]} of what was read; every word is in one partition."""
    found, homes = {}, {}
    for partition, _, word, count in records:
        found.setdefault(word, []).append(int(count))
        homes.setdefault(word, set()).add(partition)
    scattered = [word for word, places in homes.items() if len(places) > 1]
    if scattered:
        raise Failed(f"{len(scattered)} words are in several partitions, {scattered[0]} for one")
    return found


def judged(found, wanted):
    """{claim: whether it held}, and prints the first of what is wrong."""
    totals = {word: counts[-1] for word, counts in found.items()}
    doubled = Counter({word: len(counts) - len(set(counts)) for word, counts in found.items()})
    disordered = [word for word, counts in found.items() if counts != list(range(1, len(counts) + 1))]
    differing = sorted(word for word in wanted.keys() | totals.keys() if wanted.get(word) != totals.get(word))
    for word in differing[:5]:
        print(f"  {word!r}: wc counts {wanted.get(word)}, Streams {totals.get(word)}")
    for word in disordered[:5]:
        print(f"  {word!r}: its counts are {found[word][:20]} …")
    return {"totals as wc's": not differing, "no count is shown twice": sum(doubled.values()) == 0, "every word's counts are 1, 2, 3 …": not disordered}


def tell(options, directory):
    version, libraries = fetch._classpath("streams", "streams.xml", VERSIONS)
    classpath = compiled("streams", ("WordCount", "Lines"), libraries)
    path = directory / "text"
    lines, words = text.make(path, options.words)
    wanted = text.counts(path)
    seed = options.seed if options.seed is not None else random.randrange(1 << 32)
    begun = time.monotonic()
    node = Node(options, directory / "node", {"num.partitions": str(PARTITIONS), "group.streams.session.timeout.ms": "3000", "group.streams.min.session.timeout.ms": "1000",
                                              "group.streams.heartbeat.interval.ms": "500", "group.streams.min.heartbeat.interval.ms": "500"} if options.protocol == "streams"
                else {"num.partitions": str(PARTITIONS)})
    node.start()
    print(f"{node.label} on {node.address}; Kafka Streams {version}, {options.protocol} protocol; {words:,} words in {lines:,} lines; seed {seed}", flush=True)
    create(node, {"lines": PARTITIONS, "totals": PARTITIONS})
    feeder = Feeder(classpath, node, path, directory / "feeder.log")
    application = Application(classpath, node, options.protocol, directory)
    application.start()
    killing(node, application, feeder, options, random.Random(seed))
    feeder.java.finish("the feeder")
    settled(node, application, words)
    threads = sum(line.startswith("exception ") for line in application.java.said().splitlines())
    application.java.stop()
    found = shown(read(classpath, node, "totals", "long", directory))
    claims = judged(found, wanted)
    updates = sum(map(len, found.values()))
    verdict = "totals equal to wc's, each word counted once" if all(claims.values()) else "NOT what wc counts"
    return (f"Kafka Streams {version} ({options.protocol} protocol, exactly_once_v2) on {node.label}: {words:,} words ({len(wanted):,} different) of a real text, killed with -9: "
            f"broker {node.kills} times, Streams {application.kills} times: {verdict}; {updates:,} counts shown for {words:,} words; {threads} threads replaced in the last process; "
            f"{time.monotonic() - begun:.0f} s (seed {seed})"), claims


if __name__ == "__main__":
    given = arguments(sys.argv[1:])
    sys.exit(told("streams-story", given, lambda directory: tell(given, directory)))
