"""How fast is the console, and what does it cost its node?

Units: ms, kB (1000 bytes) as they go over the wire, MiB of memory, MB/s of records.
Held fixed: one combined node with its own defaults, everything on loopback, data in the page cache where it fits.
Left out on purpose: browsers (`make console-test` runs one), TLS, clusters of several nodes.
The bounds that matter: the first view within 300 ms and 60 kB; each list within 500 ms; a search 5 times as fast as a client that reads all, with the p99 of a
producer at most 10 % higher meanwhile; a tail of a fast topic at most 2 % of a processor; at most 5 MiB of memory for an unused console.

Short form: 1,000 topics, 500 groups, 1 million records. FULL=1: 10,000 topics with 100,000 partitions, 5,000 groups, 10 million records.
Prints a table and ends in one line; writes lab/bench/results/console.jsonl and console.md.
"""

import argparse
import gzip
import http.client
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from compat import fetch
from console.ask import ask
from console.nodes import WithConsole
from harness.process import spawn
from harness.server import HOST, Barnabas, java_words
from harness.usage import TICK, resident_mb

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "lab/bench/results"
IS_FULL = os.environ.get("FULL") == "1"
TOPICS, GROUPS, RECORDS = (10_000, 5_000, 10_000_000) if IS_FULL else (1_000, 500, 1_000_000)
PARTITIONS = 10
RECORD_BYTES = 1000
PLANTED = "the planted record 4711"
PRODUCER_RATE, PRODUCER_SECONDS = 2_000, 10

rows = []


def row(name, value, unit, bar=None, **more):
    """`bar`: (a word, whether it is kept)."""
    rows.append({"what": name, "value": value, "unit": unit, "bar": bar and bar[0], "kept": bar and bar[1], "records": RECORDS, "topics": TOPICS, "groups": GROUPS, **more})
    print(f"{name}: {value} {unit}" + (f" ({bar[0]}: {'kept' if bar[1] else 'MISSED'})" if bar else ""), flush=True)


def get(port, path):
    """One request of a client that takes gzip: seconds, bytes of the body on the wire, the body."""
    connection = http.client.HTTPConnection(HOST, port, timeout=120)
    began = time.perf_counter()
    connection.request("GET", path, headers={"Accept-Encoding": "gzip"})
    answer = connection.getresponse()
    raw = answer.read()
    took = time.perf_counter() - began
    connection.close()
    assert answer.status == 200, (path, answer.status, raw[:200])
    return took, len(raw), gzip.decompress(raw) if answer.getheader("Content-Encoding") == "gzip" else raw


def first_view(port):
    """The files that the page loads, in its order, and its first question."""
    took, size, index = get(port, "/")
    wanted, seen = re.findall(r'(?:src|href)="([^"#]+)"', index.decode()), set()
    while wanted:
        path = "/" + wanted.pop(0).lstrip("/.")
        if path in seen:
            continue
        seen.add(path)
        more, bytes_, body = get(port, path)
        took, size = took + more, size + bytes_
        folder = path.rsplit("/", 1)[0]
        for found in re.findall(r'from "(\.[^"]+)"', body.decode()) if path.endswith(("js", "mjs")) else []:
            wanted.append(os.path.normpath(f"{folder}/{found}"))
    files = size
    more, size_, _ = get(port, "/api/v1/overview")
    return (took + more) * 1000, files / 1000, size_ / 1000, len(seen) + 1


def parallel(work, count, threads=8):
    failures, lock, numbers = [], threading.Lock(), iter(range(count))

    def run():
        while not failures:
            with lock:
                at = next(numbers, None)
            if at is None:
                return
            try:
                work(at)
            except Exception as error:  # noqa: BLE001: it ends the rig, with its words
                failures.append(error)

    workers = [threading.Thread(target=run) for _ in range(threads)]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
    if failures:
        raise failures[0]


def lists(directory, binary):
    node = WithConsole(directory / "lists", binary).start()
    port = node.console_port

    def topic(at):
        made = ask(port, "POST", "/api/v1/topics", {"name": f"topic-{at:05}", "partitions": PARTITIONS, "replication_factor": 1})
        assert made.status in (200, 201), made.body

    def group(at):
        words = ("--reset-offsets", "--group", f"group-{at:05}", "--topic", "topic-00000:0", "--to-earliest", "--execute")
        subprocess.run([binary, "consumer-groups", "--bootstrap-server", f"127.0.0.1:{node.port}", *words], check=True, stdout=subprocess.DEVNULL)

    parallel(topic, TOPICS)
    parallel(group, GROUPS)
    for name, path, least in (("topics", "/api/v1/topics", TOPICS), ("groups", "/api/v1/groups", GROUPS), ("overview", "/api/v1/overview", None)):
        took, sizes = [], []
        for _ in range(5):
            seconds, size, body = get(port, path)
            took.append(seconds * 1000)
            sizes.append(size)
            assert least is None or json.loads(body)["total"] >= least
        median = round(statistics.median(took), 1)
        row(f"list: {name}", median, "ms", ("≤ 500 ms", median <= 500), spread=[round(min(took), 1), round(max(took), 1)], kb=round(sizes[-1] / 1000, 1))
    took, kb, own, count = zip(*(first_view(port) for _ in range(5)))
    median = round(statistics.median(took), 1)
    row("first view: files and overview, one after another", median, "ms", ("≤ 300 ms", median <= 300), requests=count[0])
    row("first view: files", round(kb[0], 1), "kB", ("≤ 60 kB", kb[0] <= 60), overview_kb=round(own[0], 1))
    node.stop()


def tool(node, *words):
    return [node.binary, *[str(word) for word in words]]


def produce(node, topic, count, rate, size=RECORD_BYTES):
    return tool(node, "producer-perf-test", "--topic", topic, "--num-records", count, "--record-size", size, "--throughput", rate, "--producer-props", f"bootstrap.servers={node.address}", "acks=all")


def p99(printed):
    found = re.findall(r"([0-9.]+) ms 99th", printed)
    assert found, printed[-500:]
    return float(found[-1])


def search(port, topic, query=f"text={PLANTED.replace(' ', '+')}"):
    """A search through all of the topic: its last event, and the seconds that it took."""
    connection = http.client.HTTPConnection(HOST, port, timeout=600)
    began = time.perf_counter()
    connection.request("GET", f"/api/v1/topics/{topic}/search/stream?{query}")
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    event, progress = None, 0
    for line in answer:
        word, _, rest = line.decode().rstrip("\n").partition(": ")
        if word == "event":
            event = rest
            progress += event == "progress"
        elif word == "data" and event == "end":
            end = json.loads(rest)
            connection.close()
            return end, time.perf_counter() - began, progress
        assert event != "problem", rest
    raise AssertionError("the search has no end")


def timed(words, needle):
    """Seconds until a client has read all and grep has looked for it, and how many lines grep found."""
    began = time.perf_counter()
    client = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    found = subprocess.run(["grep", "-c", needle], stdin=client.stdout, capture_output=True, text=True)
    client.wait()
    return time.perf_counter() - began, int(found.stdout or 0)


def searches(directory, binary):
    node = WithConsole(directory / "search", binary).start()
    port, topic = node.console_port, "big"
    for name, partitions in ((topic, 4), ("steady", 1)):
        ask(port, "POST", "/api/v1/topics", {"name": name, "partitions": partitions, "replication_factor": 1})
    half = RECORDS // 2
    subprocess.run(produce(node, topic, half, -1), check=True, capture_output=True)
    node.tool("console-producer", "--topic", topic, given=f"{PLANTED}\n")
    subprocess.run(produce(node, topic, half, -1), check=True, capture_output=True)
    took, count = [], RECORDS + 1
    for _ in range(3):
        end, seconds, progress = search(port, topic)
        assert end["why"] == "all" and end["found"] == 1 and end["not_scanned"] == 0 and end["scanned"]["records"] == count, end
        took.append(seconds)
    ways = sorted({part["by"] for part in end["partitions"]})
    seconds = statistics.median(took)
    row("search: text", round(seconds, 2), "s", spread=[round(min(took), 2), round(max(took), 2)], mb_per_s=round(end["scanned"]["bytes"] / 1e6 / seconds), by=ways, progress_events=progress)
    for name, query in (("either case", f"text={PLANTED.upper().replace(' ', '+')}&ignore_case=true"), ("expression", "regex=planted+record+[0-9]%2B"), ("expression with an anchor, record by record", "regex=%5Ethe+planted")):
        end, own, _ = search(port, topic, query)
        assert end["found"] == 1 and end["not_scanned"] == 0, end
        row(f"search: {name}", round(own, 2), "s", mb_per_s=round(end["scanned"]["bytes"] / 1e6 / own))
    all_of_it = ["--bootstrap-server", node.address, "--topic", topic, "--from-beginning", "--max-messages", str(count)]
    readers = [("this project's console consumer", tool(node, "console-consumer", *all_of_it))]
    if shutil.which("java"):
        _, classpath = fetch.kafka()
        readers.append(("Kafka's console consumer", java_words(classpath, "org.apache.kafka.tools.consumer.ConsoleConsumer", *all_of_it, heap="1g")))
    ratios = {}
    for name, words in readers:
        took = []
        for _ in range(1 if IS_FULL else 3):
            own, found = timed(words, PLANTED)
            assert found == 1, (name, found)
            took.append(own)
        own = statistics.median(took)
        ratios[name] = round(own / seconds, 1)
        row(f"{name} and grep", round(own, 2), "s")
        row(f"search beside {name} and grep", ratios[name], "×", ("≥ 5 ×", ratios[name] >= 5))
    before, meanwhile = steady(node, port, topic)
    rise = round((statistics.median(meanwhile) / statistics.median(before) - 1) * 100)
    row("producer's p99 alone", statistics.median(before), "ms", spread=[min(before), max(before)])
    row("producer's p99 while searches run", statistics.median(meanwhile), "ms", ("≤ +10 %", rise <= 10), spread=[min(meanwhile), max(meanwhile)], rise_percent=rise)
    tail(node, port)
    node.stop()
    return seconds, ratios, rise


def steady(node, port, topic):
    """A steady producer by turns alone and beside a search that begins again and again."""
    words = produce(node, "steady", PRODUCER_RATE * PRODUCER_SECONDS, PRODUCER_RATE)
    before, meanwhile = [], []
    for _ in range(5 if IS_FULL else 3):
        before.append(p99(subprocess.run(words, check=True, capture_output=True, text=True).stdout))
        ended = threading.Event()

        def go_on():
            while not ended.is_set():
                search(port, topic, "regex=%5Enothing+at+all$" if len(meanwhile) % 2 else "text=nothing+at+all")

        searcher = threading.Thread(target=go_on)
        searcher.start()
        meanwhile.append(p99(subprocess.run(words, check=True, capture_output=True, text=True).stdout))
        ended.set()
        searcher.join()
    return before, meanwhile


def thread_seconds(pid, name):
    """CPU of the threads of this name."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            if (task / "comm").read_text().strip() == name:
                fields = (task / "stat").read_text().rsplit(")", 1)[1].split()
                total += (int(fields[11]) + int(fields[12])) / TICK
        except OSError:
            continue
    return total


def tail(node, port):
    """One tail of a topic that is written as fast as it goes, for ten seconds."""
    ask(port, "POST", "/api/v1/topics", {"name": "fast", "partitions": 4, "replication_factor": 1})
    producer = spawn(produce(node, "fast", 1_000_000_000, -1, 100), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(2)
    ends = lambda: sum(row["end_offset"] for row in ask(port, "GET", "/api/v1/topics/fast").json["partitions"])
    connection = http.client.HTTPConnection(HOST, port, timeout=30)
    connection.request("GET", "/api/v1/topics/fast/tail")
    answer = connection.getresponse()
    first, began, used, memory = ends(), time.monotonic(), thread_seconds(node.pid, "console"), resident_mb(node.pid)
    shown = skipped = 0
    while time.monotonic() - began < 10:
        line = answer.readline().decode()
        if line.startswith("data: "):
            data = json.loads(line[6:])
            shown, skipped = shown + len(data["data"]), skipped + sum(data["skipped"].values())
    seconds = time.monotonic() - began
    share = round((thread_seconds(node.pid, "console") - used) / seconds * 100, 1)
    rate = round((ends() - first) / seconds / 1000)
    grown = round(resident_mb(node.pid) - memory, 1)
    producer.kill()
    connection.close()
    row(f"tail of a topic with {rate}k records/s: the console's thread", share, "% of a processor", ("≤ 2 %", share <= 2), shown=shown, skipped=skipped, node_grew_mib=grown)


def idle(directory, binary):
    """Resident memory of an unused node, with a console and without, by turns."""
    with_, without = [], []
    for at in range(3):
        for kind, found in ((WithConsole, with_), (Barnabas, without)):
            node = kind(directory / f"idle-{at}-{kind.__name__}", binary).start()
            time.sleep(3)
            found.append(resident_mb(node.pid))
            node.remove()
    grown = round(statistics.median(with_) - statistics.median(without), 1)
    row("idle memory with a console beside without", grown, "MiB", ("≤ 5 MiB", grown <= 5), with_mib=[round(x, 1) for x in with_], without_mib=[round(x, 1) for x in without])
    return grown


def report(build):
    RESULTS.mkdir(exist_ok=True)
    with open(RESULTS / "console.jsonl", "w") as out:
        out.writelines(json.dumps({**one, "build": build}) + "\n" for one in rows)
    lines = [f"{'FULL' if IS_FULL else 'Short'} form: {TOPICS:,} topics of {PARTITIONS} partitions, {GROUPS:,} groups, {RECORDS:,} records of {RECORD_BYTES} bytes. Build: {build}.", ""]
    lines += ["| what | value | bar | more |", "|---|---|---|---|"]
    hidden = {"what", "value", "unit", "bar", "kept", "records", "topics", "groups"}
    for one in rows:
        more = ", ".join(f"{key} {value}" for key, value in one.items() if key not in hidden)
        bar = f"{one['bar']}: {'kept' if one['kept'] else 'MISSED'}" if one["bar"] else "–"
        lines.append(f"| {one['what']} | {one['value']} {one['unit']} | {bar} | {more or '–'} |")
    (RESULTS / "console.md").write_text("\n".join(lines) + "\n")


def main():
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--binary", default=ROOT / "target/release/barnabas")
    flags.add_argument("--build", default="release", help="how the binary was built, for the report")
    given = flags.parse_args()
    binary = Path(given.binary).resolve()
    with tempfile.TemporaryDirectory(prefix="barnabas-bench-console.", dir=os.environ.get("BENCH_DIR")) as directory:
        directory = Path(directory)
        idle(directory, binary)
        lists(directory, binary)
        seconds, ratios, rise = searches(directory, binary)
    report(given.build)
    missed = [one["what"] for one in rows if one["kept"] is False]
    beside = ", ".join(f"{ratio} × {name} and grep" for name, ratio in ratios.items())
    print(f"bench-console: {RECORDS:,} records of 1 kB searched in {seconds:.2f} s ({beside}), a producer's p99 {rise:+d} % meanwhile; {len(rows)} rows, {len(missed)} bars missed")
    sys.exit(0)


main()
