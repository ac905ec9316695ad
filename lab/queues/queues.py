"""Real AMQP 1.0 clients against a node's AMQP listener and against Apache Artemis, as one table.

Each scenario is played by each client on each broker, and comes to one text. Where both brokers say the same, the cell is `same`. A difference
that known.py names is `known`, every other one `differs`. Scenarios with Kafka's own tools have no Artemis beside them: there a cell is `same` if it
comes to what is expected. What a client cannot do is left out. IBM's client is played against the MQ listener alone: mq.py.

What it does not show: TLS, several nodes, load.
"""

import argparse
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from compat.cli import find_binary, in_scratch
from compat.driver import Failure

import clients
import documents
import kills
import mq
from known import KNOWN
from scenarios import SCENARIOS, Skipped, Stage
from servers import QueueNode, artemis


def arguments(words):
    parser = argparse.ArgumentParser(prog="lab/queues/run", description=__doc__.splitlines()[0])
    parser.add_argument("--clients", help=f"of {', '.join((*clients.ALL, *mq.CLIENTS))}, separated by commas")
    parser.add_argument("--scenarios", help="by name, separated by commas")
    parser.add_argument("--alone", action="store_true", help="without Artemis: each cell is compared with what is expected of both")
    parser.add_argument("--kills", type=int, default=3, help="kills -9 of the node at the end, under each kind of client (0: none; none where scenarios are named)")
    parser.add_argument("--binary", help="the barnabas program (default: the newest of target/release and target/debug)")
    parser.add_argument("--keep", action="store_true", help="keep the node's log")
    return parser.parse_args(words)


def play(scenario, client, server, number):
    """What a scenario came to, in words."""
    stage = Stage(client, server, f"q{number}-{scenario.__name__.replace('_', '-')}-{server.short}")
    try:
        return scenario(stage)
    except Skipped:
        return None
    except (subprocess.TimeoutExpired, Failure, ValueError, LookupError, OSError) as error:
        return f"failed: {str(error)[-200:]}"
    finally:
        stage.end()


def judge(name, client, ours, theirs):
    """same, known or differs; and the row's words."""
    if ours is None:
        return "–", ""
    wanted = SCENARIOS[name].expected if theirs is None else theirs
    if ours == wanted and not ours.startswith("failed"):
        return "same", ours
    known = KNOWN.get((name, client), KNOWN.get((name, "*")))
    if known and known[0] == ours:
        return "known", f"{ours}; {'Artemis' if theirs else 'expected'}: {wanted} ({known[1]})"
    return "differs", f"{ours}; {'Artemis' if theirs else 'expected'}: {wanted}"


def table(options, scratch):
    only = options.scenarios.split(",") if options.scenarios else None
    names = [name for name in SCENARIOS if only is None or name in only]
    wanted = options.clients.split(",") if options.clients else [*clients.ALL, *mq.CLIENTS]
    of_mq = [name for name in wanted if name in mq.CLIENTS]
    players, missing = clients.fetch([name for name in wanted if name not in mq.CLIENTS])
    for line in missing:
        print(f"left out: {line}", flush=True)
    if len(players) < 2 and not options.clients:
        raise Failure("fewer than two clients can run here")
    node = QueueNode(scratch / "node", find_binary(options.binary)).start()
    peer = None if options.alone or not players else artemis(scratch / "artemis")
    rows = {name: {} for name in names}

    def lane(client):
        """All scenarios of one client, one after the other."""
        for number, name in enumerate(names):
            scenario, number_of = SCENARIOS[name], f"{number}-{client.short}"
            ours = play(scenario, client, node, number_of)
            theirs = play(scenario, client, peer, number_of) if peer and not scenario.needs_kafka and ours is not None else None
            verdict, words = judge(name, client.short, ours, theirs)
            rows[name][client.short] = verdict
            if verdict != "–":
                print(f"{verdict:8} {name:22} {client.short:8} {words}", flush=True)

    if players:
        with ThreadPoolExecutor(len(players)) as lanes:
            list(lanes.map(lane, players))
    counted = Counter(verdict for row in rows.values() for verdict in row.values())
    if of_mq:
        counted.update(mq.play(node, of_mq, only))
    if not options.scenarios:
        counted["differs"] += documents.play(node)
    if players:
        print(f"\n{'':22} " + " ".join(f"{client.short:10}" for client in players))
    for name in names if players else []:
        print(f"{name:22} " + " ".join(f"{rows[name].get(client.short, '–'):10}" for client in players))
    said = node.troubles()
    for line in said:
        print(f"the node's log: {line}")
    if options.keep:
        Path("/tmp/queues-node.log").write_text(Path(node.log).read_text())
    for server in filter(None, (node, peer)):
        server.stop()
    broken = killed(options, scratch, players, of_mq)
    print(f"\n{counted['same']} the same, {counted['known']} known, {counted['differs']} differ")
    return 1 if counted["differs"] or said or broken else 0


def killed(options, scratch, players, of_mq):
    """The short form of kills.py, for the clients that it needs: what did not hold."""
    kinds = [kind for kind, is_there in (("mq", of_mq), ("amqp", any(client.short == "jms" for client in players))) if is_there]
    if options.scenarios or not options.kills or not kinds:
        return []
    _, wrong = kills.play(kills.arguments(["--kills", str(options.kills), "--every", "5", "--only", ",".join(kinds), *(["--binary", options.binary] if options.binary else [])]), scratch)
    for line in wrong:
        print(f"kills: did not hold: {line}")
    return wrong


def main(words):
    options = arguments(words)
    return in_scratch("queues", lambda scratch: table(options, scratch))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
