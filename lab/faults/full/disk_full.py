"""The story of a full disk: who is refused, who goes on, and what it takes to be let in again.

On a small file system of its own (ext4, then XFS), while Java, librdkafka and franz-go produce:

    fill it; look at who is refused with what, and at who is served; kill -9 while full, start while full, stop cleanly
    while full; somebody else's file takes the last byte; delete a topic; fill again; retention makes room

and in the end every acknowledged record is there once, in its producer's order, and every producer has sent everything it
had, by itself. Nobody restarts, deletes or repairs anything by hand but what the story says.

`--peer kafka` tells the beginning with Apache Kafka, for the report.
"""

import argparse
import hashlib
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

from compat import fetch
from compat.cli import find_binary
from compat.driver import Driver, Failure, Refusal, until
from disks import IMAGE_MIB, MIB, STORAGE_ERROR, Volume, need_tools, produce_once
from harness.server import Apache, Barnabas
import trio

RECORD_BYTES = 20_000
# So many different values; what tells records apart is the key.
VALUES = 40
# What another process or the disk did not leave is asked for once a second.
RESUMES_WITHIN_S = 5.0
WRITTEN_BACK_WITHIN_S = 4.0


def arguments(words):
    parser = argparse.ArgumentParser(prog="lab/faults/full/run", description="The story of a full disk.")
    parser.add_argument("--only", choices=("ext4", "xfs"))
    parser.add_argument("--quick", action="store_true", help="ext4 alone, without Apache Kafka: what `make test` runs")
    parser.add_argument("--peer", default="barnabas", choices=("barnabas", "kafka"))
    parser.add_argument("--binary")
    parser.add_argument("--override", action="append", default=[], metavar="KEY=VALUE", help="further server properties")
    parser.add_argument("--keep", action="store_true")
    return parser.parse_args(words)


# Clients


CLIENTS = (("Java", fetch.java), ("librdkafka", fetch.python_client("confluent_driver.py", "confluent-kafka")), ("franz-go", fetch.go))


class Sender:
    """One client that sends `count` records to two partitions of its own and does not give up."""

    def __init__(self, name, driver, topic, partitions, start, count):
        self.name, self.driver, self.topic = name, driver, topic
        self.records = [{"p": partitions[i % len(partitions)], "k": f"{name}-{i}", "v": {"rand": f"v{i % VALUES}", "len": RECORD_BYTES}}
                        for i in range(start, start + count)]
        self.results, self.trouble, self.ended = None, None, None
        self.thread = threading.Thread(target=self._send, daemon=True)
        self.thread.start()

    def _send(self):
        try:
            config = {"idempotent": True, "acks": "all", "delivery_ms": 600_000, "batch_bytes": 100_000, "linger_ms": 2}
            self.results = self.driver.call("produce", 600, topic=self.topic, records=self.records, config=config)["results"]
        except (Failure, Refusal) as trouble:
            self.trouble = str(trouble)
        self.ended = time.monotonic()

    def finish(self, seconds):
        self.thread.join(seconds)
        if self.ended is None:
            raise Failure(f"{self.name} has not sent everything {seconds} s after there was room")
        refused = [result for result in self.results or [] if isinstance(result, str)]
        if self.trouble or refused:
            raise Failure(f"{self.name}: {self.trouble or f'{len(refused)} of {len(self.results)} records refused: {refused[0]}'}")
        return self


def stat_of(file):
    """`None`: it is gone; the journal gives back files that it had beyond its share."""
    try:
        return file.stat()
    except FileNotFoundError:
        return None


def shown_value(number):
    out, block = b"", 0
    while len(out) < RECORD_BYTES:
        out += hashlib.sha256(f"v{number}:{block}".encode()).digest()
        block += 1
    return {"sha": hashlib.sha256(out[:RECORD_BYTES]).hexdigest()[:16], "len": RECORD_BYTES}


# The story


class Story:
    def __init__(self, kind, volume, server, clients, workspace):
        self.kind, self.volume, self.server, self.workspace = kind, volume, server, workspace
        self.clients = {name: Driver(command, server.address, workspace / f"{name}-{kind}.log") for name, command in clients}
        self.reader = Driver(clients[0][1], server.address, workspace / f"reader-{kind}.log")
        self.second = Driver(clients[1 % len(clients)][1], server.address, workspace / f"second-{kind}.log")
        self.sent, self.next = [], {name: 0 for name in self.clients}
        self.begun = time.monotonic()
        self.figures = {}

    def say(self, text):
        print(f"  {self.kind:4} {time.monotonic() - self.begun:5.1f} s  {text}", flush=True)

    def close(self):
        for driver in [*self.clients.values(), self.reader, self.second]:
            driver.close()

    def send(self, mib):
        """Every client begins to send its share."""
        share = mib * MIB // RECORD_BYTES // len(self.clients)
        begun = []
        for number, (name, driver) in enumerate(self.clients.items()):
            begun.append(Sender(name, driver, "events", [2 * number, 2 * number + 1], self.next[name], share))
            self.next[name] += share
        self.sent += begun
        return begun

    def until_refused(self, seconds=60):
        """More is sent where what was sent did not fill the disk: file systems keep room back and give it away again (XFS, at the end of files)."""
        deadline = time.monotonic() + seconds
        while True:
            code, message = produce_once(self.server.port, "probe")
            if code != 0:
                # Batches under way are through, and room that was set aside is given back: that may let producers in again.
                time.sleep(1)
                code, message = produce_once(self.server.port, "probe")
                if code != 0:
                    break
            if time.monotonic() > deadline:
                raise Failure(f"no lasting refusal within {seconds} s")
            if all(sender.ended for sender in self.sent):
                self.send(15)
            time.sleep(0.05)
        if code != STORAGE_ERROR:
            raise Failure(f"a producer is refused with {code}, not {STORAGE_ERROR}")
        return message

    def until_resumed(self, since, what):
        until(lambda: produce_once(self.server.port, "probe")[0] == 0, 30, "room")
        took = time.monotonic() - since
        self.say(f"producers are let in again {took * 1000:.0f} ms after {what}")
        if took > RESUMES_WITHIN_S:
            raise Failure(f"it took {took:.1f} s until producers were let in again")
        return took

    def read_all(self, topic, parts):
        ends = self.reader.offsets(topic, parts, "latest")
        return self.reader.fetch(topic, parts, sum(ends.values()), timeout_ms=60_000)

    def served_while_full(self, topic, number):
        """Fetch, offsets, topics, configs: what goes on for everybody but producers."""
        count = len(self.read_all(topic, [0, 1]))
        group = f"readers-{number}"
        self.second.call("join", group=group, topics=["bounded"], assignor="range", session_ms=10_000, commit="none")
        until(lambda: self.second.seen(), 30, "a group that reads while the disk is full")
        self.second.call("commit")
        committed = self.second.committed(group, "bounded", [0])
        self.second.call("leave")
        if sum(committed.values()) <= 0:
            raise Failure(f"no offset was committed while full: {committed}")
        name = f"made-while-full-{number}"
        self.reader.call("create_topic", name=name, partitions=3, config={})
        self.reader.call("set_config", type="topic", name=name, set={"retention.ms": "3600000"}, delete=[])
        got = self.reader.call("get_config", type="topic", name=name)
        until(lambda: self.reader.call("describe_topic", name=name)["partitions"] == 3, 10, "the new topic")
        self.reader.call("delete_topic", name=name)
        if got.get("retention.ms") != "3600000":
            raise Failure("a topic's setting was not taken while full")
        self.say(f"served meanwhile: {count} records of a topic fetched, offset {committed[0]} of another committed, a topic made, set, described, deleted")
        return count

    def restart(self, how):
        if how == "kill":
            self.server.kill()
            self.server.start()
            self.say(f"kill -9 while full; started on the full disk: first Metadata {self.server.ready_after * 1000:.0f} ms after exec")
        else:
            begun = time.monotonic()
            if not self.server.stop(30) or self.server.process.returncode != 0:
                raise Failure(f"the stop on a full disk was not clean (exit {self.server.process.returncode}): {self.server.last_lines()}")
            took = time.monotonic() - begun
            self.server.start()
            self.say(f"stopped cleanly while full in {took * 1000:.0f} ms; started again: first Metadata {self.server.ready_after * 1000:.0f} ms after exec")
        self.figures["ready"] = max(self.figures.get("ready", 0), self.server.ready_after)

    def cpu_while_refusing(self, seconds=3):
        """What it costs to refuse: the node's CPU, as a share of one core."""
        def spent():
            fields = Path(f"/proc/{self.server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        before = spent()
        time.sleep(seconds)
        share = (spent() - before) / seconds
        self.say(f"refusing {len(self.clients)} clients that try again costs {share * 100:.0f} % of a core")

    def tell(self):
        self.prepare()
        self.fill()
        self.restart("kill")
        self.until_refused()
        self.restart("stop")
        self.until_refused()
        self.foreign_file()
        self.by_deletion()
        self.not_written_back()
        self.by_retention()
        return self.verify()

    def prepare(self):
        made = {"spare": (2, {}), "bounded": (1, {"segment.bytes": str(4 * MIB)}), "events": (2 * len(self.clients), {"segment.bytes": str(4 * MIB)}), "probe": (1, {})}
        for name, (partitions, config) in made.items():
            self.reader.call("create_topic", name=name, partitions=partitions, config=config)
        self.free_at_first = self.volume.free()
        name, driver = next(iter(self.clients.items()))
        for topic, parts, mib in (("spare", [0, 1], 90), ("bounded", [0], 50)):
            Sender(name, driver, topic, parts, 0, mib * MIB // RECORD_BYTES).finish(120)
        self.say(f"{IMAGE_MIB[self.kind]} MiB, {self.free_at_first // MIB} free at first; 140 MiB written to topics that will make room later")

    def fill(self):
        # More than there is room for, less than there will be.
        senders = self.send(self.volume.free() // MIB + 20)
        message = self.until_refused(120)
        waiting = [sender.name for sender in senders if sender.ended is None]
        if not waiting:
            raise Failure("nobody waits: the disk was not filled")
        self.say(f"full: a Produce is answered KAFKA_STORAGE_ERROR (\"{message}\") with {self.volume.free() // MIB} MiB free; "
                 f"{', '.join(waiting)} try again")
        self.cpu_while_refusing()
        self.served_while_full("spare", 1)
        self.restarted_with = self.second.committed("readers-1", "bounded", [0])

    def foreign_file(self):
        # What is in the journal is written back within about two seconds of a disk's running short, and a round says so; what was not when the last byte
        # went keeps the start waiting for room.
        time.sleep(WRITTEN_BACK_WITHIN_S)
        taken = self.volume.fill()
        self.say(f"somebody else's file takes the last {taken / MIB:.1f} MiB: {self.volume.free()} bytes free")
        self.restart("kill")
        self.until_refused()
        self.say(f"with {self.volume.free()} bytes free {len(self.read_all('spare', [0, 1]))} records are fetched")
        self.volume.foreign.unlink()

    def by_deletion(self):
        begun = time.monotonic()
        self.reader.call("delete_topic", name="spare")
        self.figures["deletion"] = self.until_resumed(begun, "a topic was deleted")
        self.all_sent()
        committed = self.second.committed("readers-1", "bounded", [0])
        if committed != self.restarted_with:
            raise Failure(f"{self.restarted_with} was committed while full, {committed} is told")
        self.say(f"every client has sent everything: {sum(len(sender.records) for sender in self.sent)} records so far, {self.volume.free() // MIB} MiB free")

    def not_written_back(self):
        """The last byte goes while records lie in the journal alone: they are there when there is room, and no room is lost to trying."""
        for number in range(50):
            code, message = produce_once(self.server.port, "probe", b"%d" % number * 1000)
            if code != 0:
                raise Failure(f"a record was refused with {code} ({message}) though there was room")
        end = self.reader.offsets("probe", [0], "latest")
        self.server.kill()
        self.volume.fill()
        seen = {}
        # The node is a child of the thread that starts it, and ends with it: so it is the watching that another thread does.
        watch = threading.Thread(target=self._watch_start, args=(self.server.log.stat().st_size, seen), daemon=True)
        watch.start()
        self.server.start()
        ready = time.monotonic()
        watch.join(30)
        sizes = seen["sizes"]
        if len({size for size, _ in sizes.values()}) > 1 or any(held < size for size, held in sizes.values()):
            raise Failure(f"the journal kept a part of a file that there was no room for: {sizes}")
        after = self.reader.offsets("probe", [0], "latest")
        if after != end:
            raise Failure(f"the probe ended at {end}, and after a start on a full disk at {after}")
        how = f"the start waited for room, and served {(ready - seen['room']) * 1000:.0f} ms after there was some" if seen["waited"] else "served at once"
        self.say(f"killed with records in the journal alone, then the last byte taken: {how}; all of them are there")

    def _watch_start(self, logged, seen):
        """Until the start serves or says that it waits, and a little longer: the journal's files by then; after that there is room."""
        said = lambda text: text in self.server.log.read_bytes()[logged:]  # noqa: E731
        deadline = time.monotonic() + 20
        while not (said(b" serves on ") or said(b"the start waits for free space") or time.monotonic() > deadline):
            time.sleep(0.01)
        time.sleep(1)
        seen["waited"] = not said(b" serves on ")
        files = [(file.name, stat_of(file)) for file in self.server.data.glob("barnabas-journal-*")]
        seen["sizes"] = {name: (stat.st_size, stat.st_blocks * 512) for name, stat in files if stat}
        seen["room"] = time.monotonic()
        self.volume.foreign.unlink()

    def by_retention(self):
        # A little more than there is room for: what retention gives back must do for the rest.
        self.send(max(self.volume.free() // MIB - 25, 15))
        self.until_refused(120)
        self.say(f"full again, {self.volume.free() // MIB} MiB free")
        begun = time.monotonic()
        self.reader.call("set_config", type="topic", name="bounded", set={"retention.bytes": str(4 * MIB)}, delete=[])
        self.figures["retention"] = self.until_resumed(begun, "retention was told to keep less of a topic")
        self.all_sent()

    def all_sent(self):
        for sender in self.sent:
            sender.finish(90)

    def verify(self):
        """Every acknowledged record once, where it was acknowledged, in its producer's order."""
        expected = {number: shown_value(number) for number in range(VALUES)}
        wanted = {}
        for sender in self.sent:
            for record, (partition, offset) in zip(sender.records, sender.results):
                wanted[(partition, offset)] = record["k"]
        parts = list(range(2 * len(self.clients)))
        for turn in ("before", "after"):
            found, last = {}, {}
            for part in parts:
                for record in self.read_all("events", [part]):
                    found[(record.partition, record.offset)] = record.key
                    name, number = record.key.rsplit("-", 1)
                    if int(number) <= last.get((part, name), -1):
                        raise Failure(f"{record.key} is doubled or out of order at {part}/{record.offset}")
                    last[(part, name)] = int(number)
                    if record.value != expected[int(number) % VALUES]:
                        raise Failure(f"{record.key} is not what was sent at {part}/{record.offset}")
            missing = [key for key in wanted.items() if found.get(key[0]) != key[1]]
            if missing or len(found) != len(wanted):
                raise Failure(f"{len(wanted)} records were acknowledged, {len(found)} are there; missing: {missing[:3]}")
            self.say(f"{len(found)} records acknowledged, {len(found)} there, once, in order, {turn} a clean stop")
            if turn == "before":
                self.restart_at_end()
        return len(wanted)

    def restart_at_end(self):
        if not self.server.stop(30) or self.server.process.returncode != 0:
            raise Failure(f"the last stop was not clean: {self.server.last_lines()}")
        self.server.start()

    def complaints(self):
        """ERROR lines other than that room is short, and panics."""
        lines = self.server.log.read_text(errors="replace").splitlines()
        expected = (
            "nearly full",
            "the disk of the metadata log is full",
            "writes to the metadata log fail; topics and partitions cannot be created until they succeed error=the disk is full",
            "the start waits for free space",
        )
        return [line for line in lines if (" ERROR " in line or "panicked" in line) and not any(text in line for text in expected)]


def barnabas_story(kind, options, clients, workspace):
    with Volume(kind, workspace) as volume:
        server = Barnabas(workspace / f"node-{kind}", find_binary(options.binary), dict(pair.split("=", 1) for pair in options.override))
        server.data = volume.point / "data"
        story = None
        try:
            server.start()
            story = Story(kind, volume, server, clients, workspace)
            count = story.tell()
            complaints = story.complaints()
            if complaints:
                raise Failure(f"the node logged: {complaints[0][-300:]}")
            server.stop()
            return count, story.figures
        except (Failure, Refusal, RuntimeError) as failed:
            raise Failure(f"{kind}: {failed} | {server.last_lines(8)}") from None
        finally:
            if story:
                story.close()
            server.kill()


def neighbours(options, workspace):
    """Two log directories on two file systems: one that is full refuses its own partitions, and the other serves on."""
    with Volume("ext4", workspace, "one", 64) as one, Volume("ext4", workspace, "two", 64) as two:
        server = Barnabas(workspace / "neighbours", find_binary(options.binary), {"log.dirs": f"{one.point}/data,{two.point}/data"})
        server.data = one.point / "data"
        _, command = CLIENTS[1][0], CLIENTS[1][1]()[1]
        driver = None
        try:
            server.start()
            driver = Driver(command, server.address, workspace / "neighbours-client.log")
            driver.call("create_topic", name="probe", partitions=8, config={})
            for partition in range(8):
                until(lambda: produce_once(server.port, "probe", partition=partition)[0] == 0, 10, "a first record")
            # A clean stop brings everything into segments: then it shows in which directory a partition lies.
            server.stop()
            server.start()
            lies = {partition: (one.point / "data" / f"probe-{partition}").exists() for partition in range(8)}
            if len(set(lies.values())) != 2:
                raise Failure(f"all partitions lie in one directory: {lies}")
            one.fill()
            until(lambda: all((produce_once(server.port, "probe", partition=p)[0] == STORAGE_ERROR) == there for p, there in lies.items()), 10,
                  "refusals in the full directory alone")
            one.foreign.unlink()
            until(lambda: all(produce_once(server.port, "probe", partition=p)[0] == 0 for p in lies), 10, "everybody let in again")
            full = sum(lies.values())
            print(f"  two log directories, one of them full: its {full} partitions refuse producers, the other's {8 - full} take theirs; all of them again "
                  "once there is room", flush=True)
        except (Failure, Refusal, RuntimeError) as failed:
            raise Failure(f"two directories: {failed} | {server.last_lines(4)}") from None
        finally:
            if driver:
                driver.close()
            server.kill()


def kafka_story(kind, clients, workspace):
    """Apache Kafka on the same disk: what happens when it is full, and whether it starts again."""
    version, classpath = fetch.kafka()
    with Volume(kind, workspace) as volume:
        server = Apache(workspace / "kafka", version, classpath)
        server.data = volume.point / "data"
        driver = None
        try:
            server.start()
            name, command = clients[0]
            driver = Driver(command, server.address, workspace / "kafka-client.log")
            driver.call("create_topic", name="events", partitions=2, config={})
            Sender(name, driver, "events", [0, 1], 0, (volume.free() // MIB + 50) * MIB // RECORD_BYTES)
            begun = time.monotonic()
            while server.process.poll() is None and time.monotonic() - begun < 90:
                time.sleep(0.1)
            code = server.process.poll()
            print(f"  {server.label} on {kind}: {'still runs' if code is None else f'its process ended with {code}'} "
                  f"{time.monotonic() - begun:.0f} s after the first record, {volume.free() // MIB} MiB free; it printed:")
            lines = [line for line in server.log.read_text(errors="replace").splitlines() if any(word in line for word in ("ERROR", "No space", "Shutdown", "FATAL"))]
            for line in list(dict.fromkeys(line[:220] for line in lines))[:6]:
                print(f"    {line}")
            server.kill()
            server.ready_within, before = 30, len(server.log.read_text(errors="replace").splitlines())
            try:
                server.start()
                begun = time.monotonic()
                while server.process.poll() is None and time.monotonic() - begun < 20:
                    time.sleep(0.1)
                code = server.process.poll()
                after = "and still runs 20 s later" if code is None else f"and ended again with {code} {time.monotonic() - begun:.1f} s later"
                print(f"  {server.label}: started again on the full disk, serving {server.ready_after:.1f} s after exec, {after}")
            except RuntimeError as failed:
                said = [line for line in server.log.read_text(errors="replace").splitlines()[before:] if "Exception" in line or "ERROR" in line]
                print(f"  {server.label}: does not start on the full disk: {(said or [str(failed)])[-1][-220:]}")
        finally:
            if driver:
                driver.close()
            server.kill()


def main(words):
    options = arguments(words)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(130))
    workspace = Path(tempfile.mkdtemp(prefix="barnabas-full-"))
    told, failed, skipped = {}, [], 0
    try:
        need_tools()
        clients = []
        for name, get in CLIENTS:
            try:
                clients.append((name, get()[1]))
            except fetch.Missing as missing:
                print(f"{name}: left out: {missing}")
        if not clients:
            raise fetch.Missing("no client can be had")
        kinds = [options.only] if options.only else ["ext4"] if options.quick else ["ext4", "xfs"]
        for kind in kinds if options.peer == "barnabas" else []:
            try:
                told[kind] = barnabas_story(kind, options, clients, workspace)
            except fetch.Missing as missing:
                print(f"  {kind}: skipped: {missing}")
                skipped += 1
            except Failure as failure:
                print(f"  FAILED: {failure}")
                failed.append(kind)
        if options.peer == "barnabas" and not options.only:
            try:
                neighbours(options, workspace)
                told["two directories"] = (0, {})
            except fetch.Missing as missing:
                print(f"  two directories: skipped: {missing}")
                skipped += 1
            except Failure as failure:
                print(f"  FAILED: {failure}")
                failed.append("two directories")
            try:
                trio.story(workspace, find_binary(options.binary))
                told["one of three nodes"] = (0, {})
            except fetch.Missing as missing:
                print(f"  one of three nodes: skipped: {missing}")
                skipped += 1
            except (Failure, RuntimeError) as failure:
                print(f"  FAILED: one of three nodes: {failure}")
                failed.append("one of three nodes")
        if options.peer == "kafka" or not options.quick:
            try:
                kafka_story("ext4", clients, workspace)
            except (fetch.Missing, RuntimeError, Failure) as trouble:
                print(f"  Apache Kafka: left out: {trouble}")
    except fetch.Missing as missing:
        print(f"disk full: {missing}")
        skipped = skipped or 1
    finally:
        if options.keep or failed:
            print(f"kept: {workspace}")
        else:
            shutil.rmtree(workspace, ignore_errors=True)
    stories = {kind: story for kind, story in told.items() if story[1]}
    if stories and not failed:
        count = sum(records for records, _ in stories.values())
        worst = {name: max(figures[name] for _, figures in stories.values()) for name in ("deletion", "retention", "ready")}
        print(f"disk-full: {' and '.join(stories)}: {count} records of {len(clients)} client libraries acknowledged through full disks, kill -9 and restarts, "
              f"{count} there, once, in order; producers go on by themselves {worst['deletion']:.1f} s after a topic was deleted, "
              f"{worst['retention']:.1f} s after retention was told to keep less; start on a full disk at most {worst['ready'] * 1000:.0f} ms")
    print(f"{len(told)} passed, {len(failed)} failed, {skipped} skipped")
    return 1 if failed else 0


sys.exit(main(sys.argv[1:]))
