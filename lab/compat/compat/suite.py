"""Which clients there are, and the running of cells: every client does every scenario.

Cells are independent: topics, groups and client processes of their own, all against one node, many
at a time. A cell that hangs fails by a timeout of its own; whatever it started ends with it.
"""

import queue
import threading
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path

from . import fetch
from .driver import Driver, Failure, NotInClient, Refusal, until
from .proxy import CuttingProxy
from .scenarios import SCENARIOS
from . import groups, shares, transactions  # noqa: F401: each adds its scenarios

PASS, FAIL, SKIP = "ok", "FAIL", "-"


@dataclass
class Result:
    status: str
    reason: str = ""
    seconds: float = 0.0
    # What else a client could notice: compared between servers, word for word.
    told: dict = field(default_factory=dict)
    # Why it failed among the others, where it passed alone.
    first: str = ""


@dataclass
class Client:
    """A row: `get` answers (version, command) or raises `Missing`."""
    name: str
    get: object
    # kafkajs knows one assignor; the group scenarios use it where the client has no choice.
    assignor: str = None
    # It speaks KIP-848's protocol of groups.
    new_groups: bool = False
    share_groups: bool = False
    # Codecs and scenarios that this client does not have, with the reason.
    lacks: dict = field(default_factory=dict)
    version: str = ""
    command: list = field(default_factory=list)
    missing: str = ""


def kcat_driver():
    version, command = fetch.kcat()
    interpreter = fetch.python()
    return version, ["env", "KCAT=" + "\n".join(command), interpreter, str(fetch.HERE / "clients/python/kcat_driver.py")]


def clients():
    return [
        Client("java", fetch.java, new_groups=True, share_groups=True),
        Client("confluent", fetch.python_client("confluent_driver.py", "confluent-kafka"), new_groups=True, share_groups=True),
        Client("kafka-py", fetch.python_client("kafka_python_driver.py", "kafka-python")),
        Client("aiokafka", fetch.python_client("aiokafka_driver.py", "aiokafka")),
        Client("franz-go", fetch.go, new_groups=True, share_groups=True, lacks={
            "new group static": "it says that a static member goes for a moment (epoch −2) without the member's name, which both brokers refuse (1.22.2)"}),
        Client("kafkajs", fetch.javascript, assignor="roundrobin", lacks={"lz4": "kafkajs brings no lz4", "zstd": "kafkajs brings no zstd"}),
        Client("kcat", kcat_driver, lacks={
            f"admin {what}": "no administration in kcat" for what in ("topics", "configs", "records", "groups")}),
        Client("deb-rdkafka", fetch.debian_python("confluent_driver.py", "confluent_kafka")),
        Client("deb-kafka-py", fetch.debian_python("kafka_python_driver.py", "kafka_python"),
               lacks={"sticky": "its sticky assignor fails in itself on Python 3 (len() of an iterator)"}),
        Client("py-as-0.10", fetch.debian_python("kafka_python_driver.py", "kafka_python", COMPAT_AS_OF="0.10.2"), lacks={
            "zstd": "younger than message format 1", "headers": "message format 1 has none", "sticky": "as deb-kafka-py",
            **{f"admin {what}": "as deb-kafka-py" for what in ("topics", "configs", "records", "groups")}}),
        Client("java-0.9", fetch.old_java, lacks={
            "zstd": "younger than this client", "small-fetch": "its Fetch (version 1) is older than KIP-74",
            "headers": "message format 0 has none", "seek time": "message format 0 has no timestamps",
            **{f"admin {what}": "no administration in this client" for what in ("topics", "configs", "records", "groups")}}),
    ]


def prepare(rows):
    """Fetches every row's client, several at a time."""
    def one(row):
        try:
            row.version, row.command = row.get()
        except fetch.Missing as missing:
            row.missing = str(missing)
    threads = [threading.Thread(target=one, args=(row,)) for row in rows]
    # The Python environment is shared: make it once, before the rows that want it.
    try:
        fetch.python()
    except fetch.Missing:
        pass
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Cell:
    """What one scenario of one client may use."""

    def __init__(self, row, scenario, server, judges, logs):
        self.row, self.scenario, self.server = row, scenario, server
        self.assignor, self.lacks, self.new_groups = row.assignor, row.lacks, row.new_groups
        self.share_groups = row.share_groups
        self.judge, self.judge_command = judges.mine(), judges.command
        self.told = {}
        # What a reader of a cell that is well may want to know, such as a time: shown, and not compared.
        self.noted = ""
        self.logs = logs
        self.drivers = []
        self.proxies = []
        self.proxied = None
        self.count = 0

    def tell(self, what, value):
        self.told[what] = str(value)

    def name(self, kind):
        self.count += 1
        words = "".join(c if c.isalnum() else "-" for c in f"{self.row.name}-{self.scenario}")
        return f"{kind}-{words}-{self.count}"

    def topic(self, partitions, config=None):
        name = self.name("t")
        self.judge.call("create_topic", name=name, partitions=partitions, config=config or {})
        # The topic is made before every broker knows of it: some clients give up on a topic too new.
        until(lambda: self.known(name, partitions), 10, f"topic {name} known to the broker")
        return name

    def known(self, name, partitions):
        try:
            return [leader for leader in self.judge.call("describe_topic", name=name)["leaders"] if leader >= 0] == [1] * partitions
        except Refusal:
            return False

    def client(self, through_proxy=False, server=None):
        port = self.proxied[0] if through_proxy else (server or self.server).port
        log = self.logs / f"{self.row.name}-{self.scenario.replace(' ', '_')}-{len(self.drivers)}.log"
        driver = Driver(self.row.command, f"127.0.0.1:{port}", log)
        self.drivers.append(driver)
        return driver

    def proxy(self, **options):
        self.proxied = self.proxied or _proxied(self.server).get()
        proxy = CuttingProxy(*self.proxied, **options)
        self.proxies.append(proxy)
        return proxy

    def close(self):
        for driver in self.drivers:
            driver.close()
        for proxy in self.proxies:
            proxy.close()
        if self.proxied:
            _proxied(self.server).put(self.proxied)


_proxied_lock, _proxied_free = threading.Lock(), {}


def _proxied(server):
    """The server's listeners for proxies that no cell is using."""
    with _proxied_lock:
        if server not in _proxied_free:
            _proxied_free[server] = queue.Queue()
            for pair in server.proxied:
                _proxied_free[server].put(pair)
        return _proxied_free[server]


class Judges:
    """The independent client that makes topics and reads back: one process per worker thread."""

    def __init__(self, server, logs):
        self.command = fetch.python_client("confluent_driver.py", "confluent-kafka")()[1]
        self.server, self.logs = server, logs
        self.local = threading.local()
        self.all = []

    def mine(self):
        judge = getattr(self.local, "judge", None)
        if judge is None or judge.process.poll() is not None:
            judge = self.local.judge = Driver(self.command, self.server.address, self.logs / f"judge-{len(self.all)}.log")
            self.all.append(judge)
        return judge

    def close(self):
        for judge in self.all:
            judge.close()


def run_cell(row, scenario, server, judges, logs):
    if row.missing:
        return Result(SKIP, row.missing)
    if scenario in row.lacks:
        return Result(SKIP, row.lacks[scenario])
    cell = None

    def play():
        nonlocal cell
        cell = Cell(row, scenario, server, judges, logs)
        SCENARIOS[scenario](cell)

    try:
        result = judged(play)
        result.told = cell.told if cell else {}
        if cell and result.status == PASS:
            result.reason = cell.noted
        return result
    finally:
        if cell:
            cell.close()


def judged(play):
    """What came of calling it."""
    begun = time.monotonic()
    try:
        play()
        result = Result(PASS)
    except NotInClient as reason:
        result = Result(SKIP, str(reason))
    except (Failure, Refusal) as reason:
        result = Result(FAIL, str(reason))
    except Exception as error:
        # The suite's own mistake is a failure of the cell too: nothing passes by accident.
        where = traceback.extract_tb(error.__traceback__)[-1]
        result = Result(FAIL, f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})")
    result.seconds = time.monotonic() - begun
    return result


# The slow ones first, so that no long cell is left over for the end.
SLOW = ("kafka-consumer-groups", "kafka-configs", "kafka-topics", "kafka-features (update)", "groups migrate loaded", "groups migrate", "share five", "transaction zombie", "share begin", "transaction taken over", "new group frozen", "new group dies", "member dies", "static member", "group 2→5→3", "exactly once", "sizes", "cooperative", "range", "roundrobin", "sticky")


def run_all(rows, names, server, logs, jobs, more_cells=(), progress=None, only=None):
    """Results by (row, column). `more_cells` are (row, column, function() → Result); `only`: none but these."""
    logs.mkdir(parents=True, exist_ok=True)
    judges = Judges(server, logs)
    work = queue.PriorityQueue()
    results, count = {}, 0
    for row in rows:
        for name in names:
            if only is not None and (row.name, name) not in only:
                continue
            count += 1
            work.put((SLOW.index(name) if name in SLOW else 99, count, row.name, name, lambda row=row, name=name: run_cell(row, name, server, judges, logs)))
    for row_name, column, function in more_cells:
        if only is not None and (row_name, column) not in only:
            continue
        count += 1
        work.put((SLOW.index(column) if column in SLOW else 50, count, row_name, column, function))

    def worker():
        while True:
            try:
                _, _, row_name, column, function = work.get_nowait()
            except queue.Empty:
                return
            result = function()
            results[row_name, column] = result
            if progress:
                progress(row_name, column, result, len(results), count)

    threads = [threading.Thread(target=worker, daemon=True) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    judges.close()
    return results
