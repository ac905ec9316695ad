"""Logins, ACLs and their tools, the same on Barnabas and on Apache Kafka: what must be refused is refused alike, and what is allowed is allowed.

    authorizer  random ACLs and questions: our authorizer and Apache's class, without servers around them (verdicts.py)
    matrix   API × operation × resource × pattern × permission, request by request (matrix.py)
    logins   mechanism × client × right password, wrong password, unknown user; over TLS, and by certificate alone (logins.py, tls.py)
    oauth    OAUTHBEARER: right, expired, foreign tokens × client, and re-authentication (oauth.py)
    token-requests  what Apache's client and our tool ask an issuer for a token, setting by setting (requests.py, endpoint.py)
    kerberos GSSAPI: tickets of a KDC × client, and forged tokens (kerberos.py, forge.py)
    stores   key and trust stores of listeners by dynamic configuration (stores.py)
    tokens   delegation tokens: Java's Admin makes, renews and ends them, Java's producer logs in by them (tokens.py)
    tools    kafka-acls, kafka-delegation-tokens, kafka-configs for users, and ours of these names (tools.py)

The long form asks both servers. known.toml says what may differ, and why.
"""

import argparse
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path

from compat import fetch
from compat.cli import find_binary, in_scratch

from . import apaches, kerberos, logins, matrix, oauth, requests, stores, tokens, tools, verdicts
from .nodes import GuardedApache, GuardedBarnabas

HERE = Path(__file__).resolve().parent
PARTS = ("authorizer", "matrix", "logins", "oauth", "token-requests", "kerberos", "stores", "tokens", "tools")


def arguments(words):
    parser = argparse.ArgumentParser(prog="lab/compat/security/run", description="Logins, ACLs and their tools, on Barnabas beside Apache Kafka.")
    parser.add_argument("--only", choices=PARTS, help="one part")
    parser.add_argument("--questions", help="of the matrix: questions whose API or label has this in it")
    parser.add_argument("--quick", action="store_true", help="fewer users, clients and questions")
    parser.add_argument("--long", action="store_true", help="of the authorizer: more than a million decisions")
    parser.add_argument("--peers", default="barnabas,kafka", help="barnabas, kafka, or both: a part with one peer prints what it answers")
    parser.add_argument("--binary", help="the barnabas program")
    return parser.parse_args(words)


def explained(part):
    with open(HERE / "known.toml", "rb") as file:
        known = tomllib.load(file).get(part, [])
    return lambda name: next((entry["reason"] for entry in known if any(fnmatchcase(name, pattern) for pattern in entry["names"])), None)


class Peers:
    """The servers that a part is played on; each part has new ones."""

    def __init__(self, options, scratch):
        self.options, self.scratch, self.names = options, scratch, options.peers.split(",")

    def each(self, part, users, **more):
        """Nodes that want a login; where `users` is None, nodes that do not."""
        for name in self.names:
            directory = self.scratch / f"{part}-{name}"
            words = fetch.kafka() if name == "kafka" else (find_binary(self.options.binary),)
            server = (GuardedApache if name == "kafka" else GuardedBarnabas)(directory, *words)
            server.proxied = []
            yield server if users is None else server.guard(users, **more)


    def three(self, part):
        """{number: node}: two of ours, and one of Apache's where that is a peer."""
        def make(number):
            name = "kafka" if number == 3 and "kafka" in self.names else "barnabas"
            words = fetch.kafka() if name == "kafka" else (find_binary(self.options.binary),)
            return (GuardedApache if name == "kafka" else GuardedBarnabas)(self.scratch / f"{part}-{number}", *words)
        return {number: make(number) for number in (1, 2, 3)}


def at_once(play, servers):
    """What each server answered: they are asked at the same time."""
    with ThreadPoolExecutor(len(servers)) as pool:
        return list(pool.map(play, servers))


# Seeds of 5,000 decisions, by release of Apache Kafka.
SEEDS, LONG_SEEDS = {"4.3.1": 8, "4.4.0": 3}, {"4.3.1": 200, "4.4.0": 60}


def play_authorizer(peers, options):
    if peers.names != ["barnabas", "kafka"]:
        return 0, 0, 0
    program, why, done = verdicts.ours(find_binary(options.binary)), explained("authorizer"), [0, 0, 0]
    for version, seeds in (LONG_SEEDS if options.long else SEEDS).items():
        played = verdicts.judged(version, program, peers.scratch, range(seeds), why)
        done = [one + other for one, other in zip(done, played)]
    noticed = verdicts.is_mistake_noticed("4.3.1", program, peers.scratch, why)
    return done[0] + noticed, done[1], done[2] + (not noticed)


def play_matrix(peers, options):
    done = [0, 0, 0]
    for part, found, more in (("matrix", matrix.users(options.quick), {}), ("open", matrix.open_users(), {"allow.everyone.if.no.acl.found": "true"})):
        servers = list(peers.each(part, [user.name for user in found], mechanisms=("PLAIN",)))
        for server in servers:
            server.overrides = {**server.overrides, **more}
        played = at_once(lambda server: matrix.play(server, found, options.questions), servers)  # noqa: B023
        if len(played) == 1:
            if options.questions:
                for (user, question), answer in played[0].items():
                    print(f"{user:40} {question}\n    {answer[:400]}")
            compared = len(played[0]), 0, 0
        else:
            compared = matrix.compare(*played, explained("matrix"))
        done = [one + other for one, other in zip(done, compared)]
    return done


def play_logins(peers, options):
    keys = logins.Keys(peers.scratch / "keys")
    played = [logins.play(server, keys=keys) for server in peers.each("logins", [logins.USER, "admin"], has_acls=False, keys=keys.node)]
    if len(played) == 1:
        for (client, attempt), outcome in played[0].items():
            print(f"{client:24} {attempt:34} {outcome}")
        wrong = logins.judge(played[0])
        return len(played[0]) - len(wrong), 0, len(wrong)
    return logins.compare(*played, explained("logins"))


def play_oauth(peers, options):
    issuer = oauth.Issuer(find_binary(options.binary), peers.scratch / "issuer")
    try:
        servers = list(peers.each("oauth", [logins.USER, "admin"], mechanisms=("OAUTHBEARER",), has_acls=False))
        for server in servers:
            oauth.take_tokens(server, issuer)
        played = at_once(lambda server: oauth.play(server, issuer), servers)
    finally:
        issuer.close()
    unseen = [server.label for server in servers if server.reauthentications == 0]
    for label in unseen:
        print(f"\n{label}: no client has logged in again")
    if len(played) == 1:
        for (client, attempt), outcome in played[0].items():
            print(f"{client:24} {attempt:34} {outcome}")
        wrong = len(logins.judge(played[0]))
        return len(played[0]) - wrong, 0, wrong + len(unseen)
    same, excused, wrong = logins.compare(*played, explained("oauth"))
    return same, excused, wrong + len(unseen)


def play_requests(peers, options):
    """Both clients on a node of ours."""
    binary, directory = find_binary(options.binary), peers.scratch / "requests"
    server = GuardedBarnabas(directory / "node", binary).guard(requests.USERS, mechanisms=("OAUTHBEARER",))
    try:
        played = requests.play(server, requests.Keys(directory / "keys"), binary, peers.names)
    except fetch.Missing as missing:
        print(f"  token-requests: {missing}")
        return 0, 1, 0
    if len(played) == 1:
        for label, (lines, said) in played[0].items():
            print("\n    ".join([label, *lines, said[-requests.SAID_CHARS:]]))
        return len(played[0]), 0, 0
    return requests.compare(*played, explained("token-requests"))


def play_kerberos(peers, options):
    try:
        kdc = kerberos.Kdc(peers.scratch / "kdc")
    except fetch.Missing as missing:
        print(f"  kerberos: {missing}")
        return 0, 1, 0
    try:
        servers = list(peers.each("kerberos", [logins.USER, "admin"], mechanisms=("GSSAPI",)))
        for server in servers:
            kerberos.take_tickets(server, kdc)
        binary = find_binary(options.binary)
        # First: Apache's tools end with the thread that they were started by.
        linked = kerberos.links(peers.three("links"), kdc, binary)
        clients = () if options.quick else kerberos.CLIENTS
        played = at_once(lambda server: kerberos.play(server, kdc, binary, clients), servers)
    finally:
        kdc.close()
    for (client, attempt), outcome in [*linked.items(), *(played[0].items() if len(played) == 1 else [])]:
        print(f"{client:24} {attempt:50} {outcome}")
    failed = len(logins.judge(linked))
    if len(played) == 1:
        wrong = len(logins.judge(played[0]))
        same, excused = len(played[0]) - wrong, 0
    else:
        same, excused, wrong = logins.compare(*played, explained("kerberos"))
    return same + len(linked) - failed, excused, wrong + failed


def play_stores(peers, options):
    files = stores.Stores(peers.scratch / "stores")
    servers = list(peers.each("stores", ["admin"], mechanisms=("PLAIN",), has_acls=False, keys=files.node))
    for server in servers:
        server.overrides = {key: value for key, value in server.overrides.items() if not key.startswith("ssl.")}
        server.overrides.update(files.keys(), **{"inter.broker.listener.name": "SSL"})
    played = at_once(lambda server: stores.play(server, files, bool(options.questions)), servers)
    if len(played) == 1:
        for label, answer in played[0].items():
            print(f"{label:50} {answer}")
        return len(played[0]), 0, 0
    return tokens.compare(*played, explained("stores"))


def play_tokens(peers, options):
    played = [tokens.play(server) for server in peers.each("tokens", tokens.USERS)]
    if len(played) == 1:
        for label, answer in played[0].items():
            print(f"{label:50} {answer}")
        return len(played[0]), 0, 0
    return tokens.compare(*played, explained("tokens"))


def play_tools(peers, options):
    binary, done = find_binary(options.binary), [0, 0, 0]
    # Users and quotas need no login; ACLs and tokens do.
    for part, users, parts in (("configs", None, (tools.configs,)), ("acls", tools.USERS, (tools.acls, tools.tokens))):
        # Apache's server first: the others are compared with it.
        servers = sorted(peers.each(part, users, mechanisms=("PLAIN",)), key=lambda server: server.label, reverse=True)
        one = lambda server: tools.play(server, binary, peers.scratch / f"clients-{part}-{server.label}".replace(" ", "-"), parts)  # noqa: E731, B023
        played = [each for both in at_once(one, servers) for each in both]
        done = [one + other for one, other in zip(done, tools.compare(played, explained("tools")))]
    return done


PLAYS = {"authorizer": play_authorizer, "matrix": play_matrix, "logins": play_logins, "oauth": play_oauth, "token-requests": play_requests, "kerberos": play_kerberos,
         "stores": play_stores, "tokens": play_tokens, "tools": play_tools}


def run(options, scratch):
    begun = time.monotonic()
    peers = Peers(options, scratch)
    total = [0, 0, 0]
    for part in PARTS:
        if options.only in (None, part):
            done = PLAYS[part](peers, options)
            total = [one + other for one, other in zip(total, done)]
            print(f"\n{part}: {done[0]} answers the same, {done[1]} differ for a known reason, {done[2]} differ", flush=True)
    same, excused, wrong = total
    print(f"\nsecurity: {same} the same, {excused} differ for a known reason, {wrong} differ; {time.monotonic() - begun:.0f} s")
    print(f"{same} passed, {wrong} failed, {excused} skipped")
    return 1 if wrong else 0


def main(words):
    options = arguments(words)
    try:
        return in_scratch("security", lambda scratch: run(options, scratch))
    finally:
        apaches.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
