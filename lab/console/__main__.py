"""`make http-test`: the console's HTTP against a real node. The last line counts.

--apache: against Apache Kafka too. --binary PATH: the program (target/release/barnabas). --verbose: every row. --quick: without what waits for time-outs.
"""

import argparse
import subprocess
import tempfile
from pathlib import Path

from compat import fetch
from harness.process import spawn

from . import attacks, changes, decode, gate, offline, proxy, repeated, routes, search, shapes, tail, tls
from .ask import Table, ask
from .nodes import Beside, OwnProcess, WithConsole, WithLogins, who
from .schema import Described

ROOT = Path(__file__).resolve().parents[2]


def cluster_of(port, user=None):
    return ask(port, "GET", "/v3/clusters", user=user).json["data"][0]["cluster_id"]


def member(node):
    """A consumer that stays in group `readers` and has committed."""
    words = [node.binary, "console-consumer", "--bootstrap-server", node.address, "--topic", "orders", "--group", "readers", "--from-beginning"]
    process = spawn(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def has_committed():
        answer = ask(node.console_port, "GET", f"/v3/clusters/{cluster_of(node.console_port)}/consumer-groups/readers/lags")
        return answer.status == 200 and len(answer.json["data"]) == 4

    node.wait_until(has_committed, 60, every=0.2)
    return process


def plain(table, directory, binary, is_quick):
    node = WithConsole(directory / "plain", binary).start()
    port = node.console_port
    table.described = Described(ask(port, "GET", "/api/v1/openapi.json").json)
    cluster = cluster_of(port)
    base = f"/v3/clusters/{cluster}"
    routes.probes(table, port)
    routes.clusters(table, port, cluster)
    routes.topics(table, port, base)
    routes.configs(table, port, base)
    routes.produce(table, port, base, node)
    reader = member(node)
    routes.groups(table, port, base, "readers")
    routes.api(table, port, "readers")
    tail.check(table, port, base)
    search.check(table, port, base)
    decode.check(table, node, base, directory, binary)
    changes.check(table, node)
    proxy.check(table, port)
    repeated.check(table, port)
    changes.read_only(table, directory, binary, node, cluster)
    routes.page(table, port)
    routes.documented(table, node, ROOT)
    own = OwnProcess(directory, binary, node.address).start()
    routes.probes(table, own.port)
    table.answered("a console of its own process", ask(own.port, "GET", f"{base}/topics/orders"), 200, {"partitions_count": 4})
    if not is_quick:
        attacks.check(table, port, base)
    # Against a cluster whose ports are closed.
    reader.kill()
    node.stop()
    gone = ask(own.port, "GET", "/v3/clusters")
    table.answered("the cluster is gone", gone, 503)
    lives, ready = ask(own.port, "GET", "/livez"), ask(own.port, "GET", "/readyz")
    table.row("the console lives and is not ready", (lives.status, ready.status) == (200, 503) and "[-] broker" in ready.body, ready.body)
    own.stop()
    return node


def apache(table, directory, binary):
    """The same rows against Apache Kafka, from a process of its own."""
    version, classpath = fetch.kafka()
    node = Beside(directory / "apache", binary, version, classpath).start()
    own = OwnProcess(directory, binary, node.address).start()
    node.console_port = port = own.port
    cluster = cluster_of(port)
    base = f"/v3/clusters/{cluster}"
    routes.probes(table, port)
    routes.clusters(table, port, cluster)
    routes.topics(table, port, base)
    routes.configs(table, port, base)
    routes.produce(table, port, base, node)
    reader = member(node)
    routes.groups(table, port, base, "readers")
    routes.api(table, port, "readers")
    tail.check(table, port, base)
    search.check(table, port, base, is_own=False)
    changes.check(table, node)
    proxy.check(table, port)
    reader.kill()
    own.stop()
    node.stop()


def secured(table, directory, binary):
    node = WithLogins(directory / "secured", binary).start()
    admin, port = who("admin"), node.console_port
    cluster = cluster_of(port, admin)
    base = f"/v3/clusters/{cluster}"
    made = ask(port, "POST", f"{base}/topics", {"topic_name": "orders", "partitions_count": 4}, user=admin)
    table.answered("admin makes a topic", made, 201)
    gate.check(table, node, cluster, "readers")
    gate.rights(table, node, cluster)
    changes.audited(table, node)
    routes.acls(table, port, base, admin)
    shapes.check(table, port, cluster, admin)
    config = directory / "console.properties"
    config.write_text("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n")
    own = OwnProcess(directory, binary, node.address, config).start()
    table.answered("own process: admin", ask(own.port, "GET", f"{base}/acls", user=admin), 200)
    table.answered("own process: stranger", ask(own.port, "GET", f"{base}/acls", user=who("stranger")), 403, None, gate.C)
    table.answered("own process: no login", ask(own.port, "GET", f"{base}/acls"), 401)
    own.stop()
    node.stop()
    return node


def main():
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--binary", default=ROOT / "target/release/barnabas")
    flags.add_argument("--verbose", action="store_true")
    flags.add_argument("--quick", action="store_true")
    flags.add_argument("--apache", action="store_true")
    given = flags.parse_args()
    table = Table(given.verbose)
    with tempfile.TemporaryDirectory(prefix="barnabas-console.") as directory:
        binary = Path(given.binary).resolve()
        nodes = [plain(table, Path(directory), binary, given.quick), secured(table, Path(directory), binary), tls.check(table, directory, binary)]
        offline.check(table, Path(directory), binary)
        if given.apache:
            apache(table, Path(directory), binary)
        for node in nodes:
            # A login that is refused is one of the rows.
            lines = [line for line in node.log.read_text().splitlines() if " ERROR " in line or "panicked" in line]
            table.row("the node wrote no ERROR", not lines, lines[:3])
    table.row("answers were compared with openapi.json", table.described.checked > 150, table.described.checked)
    print(f"http: {table.passed} passed, {table.failed} failed")
    raise SystemExit(1 if table.failed or not table.passed else 0)


main()
