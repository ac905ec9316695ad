"""Delegation tokens: Java's Admin makes, renews and ends them, and Java's producer logs in by them, on Barnabas and on Apache Kafka.

librdkafka has no `tokenauth`, so that it cannot log in by a token. Short tokens are tried after their end and before a check removes them.
"""

import subprocess
import time

from compat import fetch
from harness.process import spawn
from harness.server import SMALL_JVM, java_words

from . import apaches
from .logins import make_topic
from .nodes import password

OWNER, RENEWER, STRANGER = "alice", "bob", "carol"
USERS = (OWNER, RENEWER, STRANGER, "admin")
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
SHORT_MS = 4000


def _java():
    version, libraries = fetch._classpath("java", "java-client.xml", fetch.JAVA_CLIENT_VERSIONS)
    fetch._need("javac")
    out, source = fetch.CACHE / "java" / "token-login", fetch.HERE / "security/clients/TokenLogin.java"
    out.mkdir(parents=True, exist_ok=True)
    fresh, seal = fetch._stamp(out, source.read_text(), libraries)
    if not fresh:
        fetch._run("token-login-javac", ["javac", "-nowarn", "-cp", libraries, "-d", str(out), str(source)])
        seal()
    return version, java_words(f"{out}:{libraries}", "TokenLogin", heap="192m", flags=SMALL_JVM, level="OFF")


class _Stage:
    def __init__(self, server, command):
        self.server, self.results = server, {}
        self.process = spawn(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def ask(self, label, action, *words):
        """The fields of the answer; what is kept of it leaves ids and secrets out."""
        self.process.stdin.write("\t".join((action, *words)) + "\n")
        self.process.stdin.flush()
        answer = (self.process.stdout.readline().rstrip("\n") or "the client ended").split("\t")
        self.results[label] = " ".join(answer[:1] + answer[3:])
        return answer

    def as_user(self, label, action, user, *words):
        return self.ask(label, action, user, password(user), str(self.server.sasl_port), *words)

    def create(self, label, user=OWNER, lifetime="-", renewer="-", owner="-"):
        answer = self.as_user(label, "create", user, lifetime, renewer, owner)
        return tuple(answer[1:3]) if answer[0] == "ok" else ("no-token", "eA==")

    def by_token(self, label, token, action="login"):
        for mechanism in SCRAM:
            self.ask(f"{label}, {mechanism}", action, mechanism, *token, str(self.server.sasl_port))

    def close(self):
        self.process.kill()
        self.process.wait()


def _play(stage):
    token = stage.create("create", renewer=f"User:{RENEWER}")
    # Apache's brokers learn of it with the next publication.
    time.sleep(1)
    stage.by_token("log in", token)
    stage.by_token("wrong secret", (token[0], "eHh4eA=="))
    stage.by_token("unknown token", ("no-such-token-is-known", token[1]))
    stage.by_token("a token makes no tokens", token, "again")
    stage.as_user("renew by owner", "renew", OWNER, token[1], "3600000")
    stage.as_user("renew by renewer", "renew", RENEWER, token[1], "-1")
    stage.as_user("renew by a stranger", "renew", STRANGER, token[1], "-1")
    stage.as_user("renew an unknown one", "renew", OWNER, "eHh4eA==", "-1")
    stage.as_user("expire by a stranger", "expire", STRANGER, token[1], "-1")
    stage.as_user("list by owner", "list", OWNER)
    stage.as_user("list by renewer", "list", RENEWER)
    stage.as_user("list by a stranger", "list", STRANGER)
    stage.create("create with a group as renewer", renewer="Group:ops")
    stage.create("create for another without the right", owner=f"User:{STRANGER}")
    for_another = stage.create("create for another by a super user", user="admin", owner=f"User:{STRANGER}")
    time.sleep(1)
    stage.as_user("list by the other", "list", STRANGER)
    stage.as_user("the requester does not renew", "renew", "admin", for_another[1], "-1")
    short = stage.create("create with a short life", lifetime=str(SHORT_MS))
    time.sleep(1)
    stage.by_token("log in by the short one", short)
    time.sleep(SHORT_MS / 1000)
    stage.by_token("log in after its end", short)
    stage.as_user("renew after its end", "renew", OWNER, short[1], "-1")
    stage.as_user("expire after its end", "expire", OWNER, short[1], "1000")
    stage.as_user("end it", "expire", OWNER, short[1], "-1")
    stage.as_user("end it again", "expire", OWNER, short[1], "-1")
    stage.as_user("end the first by its renewer", "expire", RENEWER, token[1], "-1")
    time.sleep(1)
    stage.by_token("log in after it was ended", token)
    stage.as_user("list what is left", "list", OWNER)


def play(server):
    """{what was done: what came of it}"""
    begun = time.monotonic()
    version, command = _java()
    server.start()
    try:
        make_topic(server, "tokens")
        # Each authenticated user may write there; only admin is a super user.
        code, printed = allow_all(server)
        if code:
            raise RuntimeError(f"kafka-acls: {printed.strip()[-300:]}")
        stage = _Stage(server, command)
        try:
            _play(stage)
        finally:
            stage.close()
    finally:
        server.kill()
    print(f"  {server.label}: {len(stage.results)} answers about tokens, Java {version}; {time.monotonic() - begun:.0f} s", flush=True)
    return stage.results


def allow_all(server):
    return apaches.tool("org.apache.kafka.tools.AclCommand", "--bootstrap-server", server.address, "--add", "--allow-principal", "User:*",
                      "--operation", "Write", "--operation", "Describe", "--topic", "tokens")


def compare(ours, theirs, explained):
    same, excused, wrong = 0, 0, 0
    for label, answer in ours.items():
        if theirs.get(label) == answer:
            same += 1
            continue
        why = explained(label)
        excused, wrong = excused + bool(why), wrong + (not why)
        print(f"\n{label}{': known: ' + why if why else ''}\n    Barnabas:     {answer}\n    Apache Kafka: {theirs.get(label)}")
    return same, excused, wrong
