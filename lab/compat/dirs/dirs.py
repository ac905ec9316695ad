"""One data directory, four owners: is every record, offset, setting and id the same after each change of hands?

A combined KRaft node of Apache Kafka 3.9 fills three log directories with everything that could be lost on the way (java/Fill.java);
then Barnabas takes them over, then Apache Kafka 4, then Barnabas, then Apache Kafka 4 once more. Before and after each hop the same
client tells all that can be seen (java/Snapshot.java), and the two must be equal, line for line; the batches in the segments must be
the same, byte for byte; a batch that was acknowledged by the broker before and is sent once more must be recognised; no producer id
may be given twice. Each owner appends before it hands on. Two kinds of ends: a clean stop, and kill -9. A Barnabas that was killed is
first recovered by Barnabas (docs/format/journal.md); a Kafka that was killed is taken over as it lies.

Not asked here: loss of power; several nodes. ZooKeeper mode has its own part: such a directory must be refused, and left as it is.
"""

import argparse
import hashlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from compat.cli import find_binary
import files
import stations
from stations import fetch
from zookeeper import zookeeper_mode

INTERNAL = ("__consumer_offsets", "__transaction_state")
# Compaction goes on between two looks at these; what must stay of them, the snapshots say.
COMPACTED = ("compacted", "compacted-txn", "compact-delete", *INTERNAL)
CHAINS = {
    # name: (kraft.version 1?, how each owner ends, who raises metadata.version)
    "clean stops": (False, ("stop", "stop", "stop", "stop"), None),
    "kill -9, static voters": (False, ("kill", "kill", "kill", "kill"), None),
    "clean stops, voters in the log, upgraded by Kafka": (True, ("stop", "stop", "stop", "stop"), "kafka-4"),
    "kill -9, voters in the log, upgraded by Barnabas": (True, ("kill", "kill", "kill", "kill"), "barnabas"),
}
QUICK = {"kill -9": (True, ("kill", "kill", "kill"), None)}


class Broken(Exception):
    """A claim that did not hold."""


def arguments(words):
    parser = argparse.ArgumentParser(prog="lab/compat/dirs/run", description="Kafka 3.9 → Barnabas → Kafka 4 → Barnabas on one data directory.")
    parser.add_argument("--quick", action="store_true", help="one chain: what `make test` runs")
    parser.add_argument("--chain", help="only chains whose name contains this")
    parser.add_argument("--binary", help="the barnabas program")
    parser.add_argument("--keep", action="store_true", help="keep data and logs")
    return parser.parse_args(words)


# What must be equal


def topic_of(name):
    return name.rsplit("-", 1)[0]


def compare(before, after):
    """Differences between two snapshots, in words. Internal topics may have grown; nothing else may."""
    found = []
    for key in sorted(before.keys() | after.keys()):
        was, now = before.get(key), after.get(key)
        if was == now:
            continue
        if key.startswith("time ") and "-1 -1 -1" in (was, now) and first_at(before, key) in (was, now):
            # Kafka finds nothing where the first segment is empty or wholly deleted (it takes a file's date for the time of its records).
            continue
        if key.startswith("kept ") and not any(other.startswith("kept ") for other in (before if was is None else after)):
            continue
        if any(f" {name}" in key for name in INTERNAL):
            if was is None or (key.startswith("offsets") and int(now.split()[2]) >= int(was.split()[2])):
                continue
        if key == "group g-gone" and was is None and now.endswith("Empty"):
            # Kafka 3.9 deletes a group that was never joined without saying so in the log: Kafka 4, too, has it back without offsets.
            continue
        found.append(f"{key}: {was} → {now}")
    return found


def first_at(snapshot, key):
    """What the right answer to a time look-up is, by the records themselves."""
    _, partition, at = key.split()
    prefix = f"record {partition} "
    found = [(int(line[len(prefix):]), value.split()) for line, value in snapshot.items() if line.startswith(prefix)]
    later = [(offset, value) for offset, value in found if int(value[0]) >= int(at)]
    if not later:
        return "-1 -1 -1"
    offset, value = min(later)
    return f"{offset} {value[0]} {value[2][1:]}"


def same_batches(before, after, starts):
    """How many batches of `before` stand in `after` byte for byte; those below the log start may be gone."""
    count = 0
    for name, old in before.items():
        if topic_of(name) in COMPACTED or f"topic {topic_of(name)}" not in starts["topics"]:
            continue
        now = {batch.base: batch for batch in after.get(name, [])}
        start = starts["starts"].get(name, 0)
        for batch in old:
            if batch.last < start:
                continue
            if batch.base not in now or now[batch.base].digest != batch.digest:
                raise Broken(f"{name}: the batch at offset {batch.base} is {'gone' if batch.base not in now else 'changed'}")
            count += 1
    return count


def ids_given_once(found):
    """Each batch in `ids` was written by a producer of its own."""
    ids = [batch.producer for name, list_ in found.items() if topic_of(name) == "ids" for batch in list_]
    others = {batch.producer for name, list_ in found.items() if topic_of(name) in ("continued", "txn") for batch in list_} - {-1}
    if len(set(ids)) != len(ids) or others & set(ids):
        raise Broken(f"a producer id was given twice: {sorted(ids)}, {sorted(others)}")
    continued = {batch.producer for name, list_ in found.items() if topic_of(name) == "continued" for batch in list_}
    if len(continued) != 1:
        raise Broken(f"the producer that lives on had to begin anew: ids {sorted(continued)}")
    return len(ids) + len(others)


def counted(snapshot):
    kinds = {}
    for key in snapshot:
        kinds[key.split()[0]] = kinds.get(key.split()[0], 0) + 1
    words = (("topic", "topics"), ("offsets", "partitions"), ("record", "records"), ("committed", "committed-only"), ("time", "time look-ups"),
             ("producer", "producers"), ("group", "groups"), ("position", "group offsets"), ("config", "settings"))
    return ", ".join(f"{kinds.get(kind, 0):,} {word}" for kind, word in words)


class Chain:
    def __init__(self, name, root, binary, java):
        self.name, (self.standalone, self.ends, self.upgrade) = name, (CHAINS | QUICK)[name]
        self.place = stations.Place(root, self.standalone)
        self.binary, self.java, self.root = binary, java, Path(root)
        self.client, self.found, self.taken = None, None, 0

    def snapshot(self, peer):
        self.taken += 1
        path = self.root / f"snapshot-{self.taken}.txt"
        self.client.call("snapshot", path, peer)
        return stations.read_lines(path)

    def station(self, kind):
        return stations.barnabas(self.place, self.binary) if kind == "barnabas" else stations.kafka(self.place, kind == "kafka-3")

    def run(self):
        route = ("kafka-3", "barnabas", "kafka-4", "barnabas", "kafka-4")[:len(self.ends) + 1]
        server = self.station(route[0]).start()
        self.client = stations.Client(self.place, *self.java[1:], self.root / "client.log")
        lines = []
        try:
            self.client.call("fill", 0, route[0], "trim")
            # A restart, for leader epochs that are past.
            server.stop()
            server.start()
            seen = self.fill(1, route[0])
            for hop, kind in enumerate(route[1:]):
                leaving = server.label
                said = self.end(server, route[hop], self.ends[hop], seen)
                server = self.station(kind)
                server.start()
                now = self.snapshot(kind)
                differences = compare(seen, now)
                if differences:
                    (self.root / f"differences-{hop}.txt").write_text("\n".join(differences))
                    raise Broken(f"{leaving} → {server.label}: {len(differences)} of {len(seen):,} lines differ: " + "; ".join(differences[:6])[:900])
                self.retry(leaving, server)
                print(f"  {leaving} ({'killed' if self.ends[hop] == 'kill' else 'stopped'}) → {server.label}: equal: {counted(now)}; {said}; "
                      f"metadata.version {now.get('feature metadata.version')}; answers after {server.ready_after:.2f} s", flush=True)
                lines.append(len(now))
                if hop < len(route) - 2:
                    seen = self.go_on(hop, kind, now)
            server.stop()
        finally:
            self.client.end()
            server.kill()
        return lines

    def go_on(self, hop, kind, now):
        """The new owner's own part: upgrades, ends what was left open, appends."""
        if kind == "kafka-4":
            self.take_over(now)
        if kind == self.upgrade and hop < 2:
            self.client.call("feature", "metadata.version", 30)
            if kind == "kafka-4":
                for feature, level in (("group.version", 1), ("transaction.version", 2), ("eligible.leader.replicas.version", 1)):
                    self.client.call("feature", feature, level)
        return self.fill(2 + hop, kind)

    def take_over(self, now):
        """The transaction left open under Kafka 3 hides what lies behind it until a producer of its name aborts it."""
        start, stable, end = map(int, now["offsets txn-2"].split())
        if stable >= end:
            raise Broken(f"txn-2: the open transaction does not hold the stable offset back: {stable} of {end}")
        self.client.call("finish")
        after = self.snapshot("kafka-4")
        if int(after["offsets txn-2"].split()[1]) <= stable or f"committed txn-2 {stable}" in after:
            raise Broken(f"txn-2: not aborted: {now['offsets txn-2']} → {after['offsets txn-2']}")

    def fill(self, stage, kind):
        # Kafka notes where a log starts once a minute, the first time after half a minute, and promises no more after a kill
        # (DIFFERENCES.md): what is deleted just before one is not asked about.
        ending = self.ends[max(stage - 1, 0)] if stage <= len(self.ends) else "stop"
        self.client.call("fill", stage, kind, "keep" if ending == "kill" and kind != "barnabas" else "trim")
        self.thinned = self.client.call("freeze", 20)
        return self.snapshot(kind)

    def end(self, server, kind, how, seen):
        """Ends the owner, recovers Barnabas if it was killed, and looks at the files."""
        if how == "kill":
            server.kill()
            if kind == "barnabas":
                server.start()
        if (how == "stop" or kind == "barnabas") and not server.stop():
            raise Broken(f"{server.label} did not stop within 30 s")
        found = files.all_batches(self.place.directories)
        about = {"topics": seen, "starts": {key.split()[1]: int(value.split()[0]) for key, value in seen.items() if key.startswith("offsets ")}}
        same = same_batches(self.found, found, about) if self.found else 0
        self.found = found
        used = sum(1 for directory in self.place.directories if files.partitions([directory]))
        if used < stations.DIRECTORIES:
            raise Broken(f"only {used} of {stations.DIRECTORIES} directories hold partitions")
        said = f"{same:,} batches of the owners before byte for byte, {ids_given_once(found)} producer ids given once, compacted to {self.thinned}"
        if how == "stop" or kind == "barnabas":
            for old in (True, False):
                count, complaints = stations.dump_log(self.place.directories, old)
                if complaints:
                    raise Broken(f"kafka-dump-log of Kafka {'3.9' if old else '4'} after {server.label}: {len(complaints)} complaints: {complaints[:3]}")
            said += f", kafka-dump-log of both Kafkas reads {count} files"
        return said

    def retry(self, leaving, server):
        """The last batch of the idempotent producer, sent once more to the next owner: not written twice."""
        last = [batch for batch in self.found["continued-0"] if batch.producer >= 0][-1]
        error, base = files.produce_again(server.port, "continued", 0, files.as_sent(last))
        if (error, base) != (0, last.base):
            raise Broken(f"a batch acknowledged by {leaving} at offset {last.base}, sent again to {server.label}: error {error}, offset {base}")


def run_chain(name, workspace, binary, java):
    """(held?, lines compared)"""
    print(f"{name} (kraft.version {1 if (CHAINS | QUICK)[name][0] else 0}):", flush=True)
    root = Path(workspace) / hashlib.sha256(name.encode()).hexdigest()[:8]
    root.mkdir()
    begun = time.monotonic()
    try:
        lines = Chain(name, root, binary, java).run()
    except (Broken, RuntimeError, OSError, ValueError, subprocess.SubprocessError) as reason:
        print(f"  FAILED after {time.monotonic() - begun:.0f} s: {reason}\n  logs: {root}", flush=True)
        return False, []
    warned = [line for line in (root / "barnabas.log").read_text(errors="replace").splitlines() if " WARN " in line or " ERROR " in line]
    warned = [line for line in warned if "has no effect" not in line]
    for line in warned[:5]:
        print(f"  Barnabas said: {line[-220:]}")
    if warned:
        # What Kafka writes is never damage, and what we wrote is not either.
        print(f"  FAILED: {len(warned)} lines of level WARN or ERROR that nothing here should cause")
        return False, lines
    print(f"  {len(lines)} hops, {sum(lines):,} lines equal, {time.monotonic() - begun:.0f} s", flush=True)
    shutil.rmtree(root)
    return True, lines


def main(words):
    options = arguments(words)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(130))
    workspace = tempfile.mkdtemp(prefix="barnabas-dirs-")
    begun = time.monotonic()
    failed = []
    try:
        binary = find_binary(options.binary)
        java = stations.client_classes()
        handed_back = "" if options.quick else f" → Kafka {fetch.kafka()[0]}"
        versions = f"Kafka {fetch.kafka_3()[0]} → Barnabas → Kafka {fetch.kafka()[0]} → Barnabas{handed_back}"
        print(f"{versions}; {stations.DIRECTORIES} log directories; client: Apache's, {java[0]}")
        names = [name for name in (QUICK if options.quick else CHAINS) if not options.chain or options.chain in name]
        hops = total = 0
        for name in names:
            held, lines = run_chain(name, workspace, binary, java)
            failed += [] if held else [name]
            hops, total = hops + len(lines), total + sum(lines)
        claims = len(names)
        if not options.chain and not options.quick:
            claims += 1
            said, held = zookeeper_mode(Path(workspace) / "zookeeper", binary)
            print(f"ZooKeeper mode: {said}", flush=True)
            failed += [] if held else ["ZooKeeper mode"]
    except fetch.Missing as missing:
        print(f"kafka-dirs: {missing}")
        print("0 passed, 0 failed, 1 skipped")
        return 0
    finally:
        if failed or options.keep:
            print(f"kept: {workspace}")
        else:
            shutil.rmtree(workspace, ignore_errors=True)
    for name in failed:
        print(f"did not hold: {name}")
    print(f"{claims - len(failed)} passed, {len(failed)} failed, 0 skipped")
    print(f"kafka-dirs: {versions}: {len(names)} chains, {hops} hops, {total:,} lines of records, offsets and settings equal, {time.monotonic() - begun:.0f} s: "
          f"{'all held' if not failed else f'{len(failed)} did not hold'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
