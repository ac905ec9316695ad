"""IBM's own Java client (MQ classes for Java, MQ classes for JMS) against a node's MQ listener. No queue manager is to be had, so each cell is
compared with what a queue manager would come to; KNOWN names where a share group differs."""

import subprocess
import time

from compat import fetch as registry
from compat.driver import Failure
from harness.process import spawn

from clients import CACHE, HERE
import servers  # noqa: F401  (lab/bridge on the path)
import ends

CLIENTS = {"mqi": "MqiClient", "mqjms": "MqJmsClient"}
PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"

# Scenario → what it comes to, of each client that can. Both: one text.
EXPECTED = {
    "connect": {"mqi": "connected to QM1", "mqjms": "connected to QM1"},
    "any_queue_manager": {"mqi": "connected"},
    "wrong_queue_manager": {"mqi": "reason 2058", "mqjms": "reason 2058"},
    "wrong_password": {"mqi": "reason 2035", "mqjms": "reason 2035"},
    "unknown_queue": {"mqi": "reason 2085"},
    "put_get": {"mqi": "a b c", "mqjms": "a b c"},
    "put1": {"mqi": "one"},
    "no_message": {"mqi": "reason 2033", "mqjms": "nothing"},
    "no_wait": {"mqi": "a b, then reason 2033", "mqjms": "a b nothing"},
    "properties": {"mqi": "a n=-3 s=007 flag=true", "mqjms": "a n=-3 s=007 flag=true type correlation true"},
    "bytes": {"mqjms": "3 bytes, the second -1"},
    "descriptor": {"mqi": "true correlation-1234567890ab REPLIES QM1 1 7 1 admin"},
    "commit": {"mqi": "reason 2033, then a b c", "mqjms": "nothing, then a b c"},
    "commit_two_queues": {"mqi": "c d"},
    "backout": {"mqi": "a again, backout count 1, then reason 2033", "mqjms": "a again, redelivered true, count 2, then nothing"},
    "listener": {"mqjms": "a b 300000"},
    "browse": {"mqi": "browsed a b reason 2033, then got a b", "mqjms": "browsed a b, then got a b"},
    "depth": {"mqi": "3 4194304 1 1"},
    "large_message": {"mqi": "900000 characters, backout count 0, then reason 2030", "mqjms": "900000 characters"},
    "truncated": {"mqi": "reason 2080, then 0123456789"},
    "expiry": {"mqi": "b with time left", "mqjms": "nothing"},
    "request_reply": {"mqi": "pong, then of another, then reason 2085", "mqjms": "pong true"},
    "idle": {"mqi": "a"},
    "match_by_id": {"mqi": "reason 2033"},
    "selector": {"mqjms": "nothing"},
    "lost_connection": {"mqi": "another gets a"},
    "no_rights": {"mqi": "reason 2035", "mqjms": "reason 2035"},
    "kafka_reads_mq": {"mqi": "hello with n:5", "mqjms": "hello with n:5, key g"},
    "mq_reads_kafka": {"mqi": "one", "mqjms": "one"},
}
KNOWN = {
    ("match_by_id", "mqi"): ("reason 2247", "messages of permanent queues are not matched by id: a share group gives a record to any member"),
    ("selector", "mqjms"): ("reason 2551", "selectors are not there"),
}
IDLE_S = "75"  # Longer than a heartbeat.


class Player:
    """One of IBM's two sets of classes."""

    def __init__(self, short, libraries, classes):
        self.short = short
        self.words = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-cp",
                      f"{libraries}/*:{classes}", CLIENTS[short]]

    def start(self, node, scenario, queue, word=(), user=None, password=None):
        said = [scenario, str(node.mq_port), user or node.user, password or node.password, queue, *word]
        return spawn([*self.words, *said], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL, cwd=CACHE)

    def came(self, process, within=120):
        try:
            out, err = process.communicate(timeout=within)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return "failed: no end"
        lines = [line for line in out.splitlines() if line.startswith("CAME ")]
        return lines[-1][5:] if lines else f"failed: {out[-200:]} {err[-300:]}"

    def play(self, node, scenario, queue):
        own = {"lost_connection": lost_connection, "no_rights": no_rights, "kafka_reads_mq": kafka_reads_mq, "mq_reads_kafka": mq_reads_kafka}
        if scenario in own:
            return own[scenario](self, node, queue)
        if scenario == "wrong_password":
            return self.came(self.start(node, "connect", queue, password="wrong"))
        word = (IDLE_S,) if scenario == "idle" else ()
        return self.came(self.start(node, scenario, queue, word))


def lost_connection(player, node, queue):
    player.came(player.start(node, "put", queue, ("a",)))
    holder = player.start(node, "hold", queue)
    line = holder.stdout.readline().strip()
    meanwhile = player.came(player.start(node, "no_message", queue))
    holder.kill()
    holder.communicate()
    if line != "HOLDS a" or meanwhile != "reason 2033":
        return f"held {line}, and meanwhile {meanwhile}"
    return f"another gets {player.came(player.start(node, 'get', queue))}"


def no_rights(player, node, queue):
    player.came(player.start(node, "put", queue, ("a",)))
    return player.came(player.start(node, "put", queue, ("b",), user="reader", password="reader"))


def kafka_reads_mq(player, node, queue):
    player.came(player.start(node, "put", queue, ("hello",)))
    line = node.tool("console-consumer", "--topic", queue, "--from-beginning", "--max-messages", "1", "--timeout-ms", "10000",
                     "--property", "print.key=true", "--property", "print.headers=true").rstrip("\n")
    # One header is binary: tabs and line feeds may be in it.
    headers, key, value = line.rsplit("\t", 2)
    said = f"{value} with {'n:5' if 'n:5' in headers.split(',') else headers}"
    return said if key == "null" else f"{said}, key {key}"


def mq_reads_kafka(player, node, queue):
    node.tool("console-producer", "--topic", queue, given="one\n")
    return player.came(player.start(node, "get", queue))


def fetch(names):
    """Players, compiled against IBM's client as Maven Central has it."""
    libraries, classes = CACHE / "mq-libs", CACHE / "mq-classes"
    if not list(libraries.glob("com.ibm.mq.allclient-*.jar")):
        ends.maven("-f", str(HERE / "clients/mq/pom.xml"), PLUGIN, f"-DoutputDirectory={libraries}")
    sources = [str(HERE / f"clients/mq/{name}.java") for name in CLIENTS.values()]
    subprocess.run(["javac", "-nowarn", "-cp", f"{libraries}/*", "-d", str(classes), *sources], check=True)
    return [Player(name, libraries, classes) for name in names]


def judge(scenario, short, came):
    wanted = EXPECTED[scenario][short]
    known = KNOWN.get((scenario, short))
    if came == wanted:
        return "same", came
    if known and known[0] == came:
        return "known", f"{came}; expected: {wanted} ({known[1]})"
    return "differs", f"{came}; expected: {wanted}"


def play(node, names, only=None):
    """Plays all scenarios and prints the table. Returns the verdicts."""
    try:
        players = fetch(names)
    except (registry.Missing, Failure, OSError, subprocess.SubprocessError) as error:
        print(f"left out: IBM's client: {error}", flush=True)
        return []
    verdicts, rows = [], []
    for number, (scenario, of) in enumerate(EXPECTED.items()):
        if only and scenario not in only:
            continue
        row = {}
        for player in players:
            if player.short not in of:
                continue
            began = time.monotonic()
            try:
                came = player.play(node, scenario, f"MQ.{number}.{player.short.upper()}")
            except (ValueError, LookupError, OSError, subprocess.SubprocessError) as error:
                came = f"failed: {str(error)[-200:]}"
            row[player.short], words = judge(scenario, player.short, came)
            print(f"{row[player.short]:8} {scenario:22} {player.short:8} {words} ({time.monotonic() - began:.1f} s)", flush=True)
        rows.append((scenario, row))
        verdicts += row.values()
    print(f"\n{'':22} " + " ".join(f"{player.short:10}" for player in players))
    for scenario, row in rows:
        print(f"{scenario:22} " + " ".join(f"{row.get(player.short, '–'):10}" for player in players))
    return verdicts
