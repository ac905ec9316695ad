"""Mechanism × client × right password, wrong password, unknown user, a mechanism that is not enabled; each client logs in and writes a record. Then the same
over TLS, an authority that the client does not trust, and client certificates alone: one that is trusted, none, and one of another authority.

SCRAM users are made by the first of these tools: Apache's kafka-configs, on either server.
"""

import os
import shutil
import subprocess
import time
from dataclasses import dataclass

from compat import fetch
from harness.process import spawn
from harness.server import SMALL_JVM, java_words

from . import apaches
from .nodes import MECHANISMS, password
from .tls import Authority

USER = "alice"
# What is tried: (label, user, password).
TRIES = (("right password", USER, password(USER)), ("wrong password", USER, "wrong"), ("unknown user", "mallory", password(USER)))
WITHIN_S = 60


def _java():
    version, libraries = fetch._classpath("java", "java-client.xml", fetch.JAVA_CLIENT_VERSIONS)
    fetch._need("javac")
    out, source = fetch.CACHE / "java" / "login", fetch.HERE / "security/clients/Login.java"
    out.mkdir(parents=True, exist_ok=True)
    fresh, seal = fetch._stamp(out, source.read_text(), libraries)
    if not fresh:
        fetch._run("login-javac", ["javac", "-nowarn", "-cp", libraries, "-d", str(out), str(source)])
        seal()
    return version, java_words(f"{out}:{libraries}", "Login", heap="192m", flags=SMALL_JVM, level="OFF")


def _python(library, package):
    def get():
        version, _ = fetch.python_client("confluent_driver.py", package)()
        return version, [fetch.python(), str(fetch.HERE / "security/clients/login.py"), library]
    return get


@fetch.alone
def _go():
    fetch._need("go")
    source, out = fetch.HERE / "security/clients/go", fetch.CACHE / "go-login"
    out.mkdir(parents=True, exist_ok=True)
    inputs = [(source / name).read_text() for name in ("go.mod", "main.go", "go.sum")]
    fresh, seal = fetch._stamp(out, *inputs)
    if not (fresh and (out / "login").exists()):
        fetch._run("go-login", ["go", "build", "-o", str(out / "login"), "."], cwd=source, env={**os.environ, "GOFLAGS": "-buildvcs=false -mod=readonly"})
        seal()
    return inputs[0].split("twmb/franz-go v")[1].split()[0], [str(out / "login")]


def _javascript():
    version, _ = fetch.javascript()
    shutil.copy(fetch.HERE / "security/clients/login.js", fetch.CACHE / "js/login.js")
    return version, ["node", "--no-warnings", str(fetch.CACHE / "js/login.js")]


CLIENTS = (("java", _java), ("confluent", _python("confluent", "confluent-kafka")), ("kafka-python", _python("kafka-python", "kafka-python")),
           ("aiokafka", _python("aiokafka", "aiokafka")), ("franz-go", _go), ("kafkajs", _javascript))


def make_users(server, users):
    # Kafka refuses two mechanisms of a user in one request.
    for user, secrets in ((user, f"{name}=[password={password(user)}]") for user in users for name in MECHANISMS if name != "PLAIN"):
        code, printed = apaches.tool("kafka.admin.ConfigCommand", "--bootstrap-server", server.address, "--alter", "--entity-type", "users", "--entity-name", user, "--add-config", secrets)
        if code:
            raise RuntimeError(f"kafka-configs: {printed.strip()[-300:]}")


def make_topic(server, name):
    code, printed = apaches.tool("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", server.address, "--create", "--if-not-exists", "--topic", name)
    if code:
        raise RuntimeError(f"kafka-topics: {printed.strip()[-300:]}")


@dataclass
class Attempt:
    """What one client does: `ca`, `key` and `certificate` are PEM files; empty ones are not used."""

    label: str
    protocol: str
    mechanism: str
    user: str
    password: str
    ca: str = ""
    key: str = ""
    certificate: str = ""

    def line(self, port):
        return "\t".join((self.mechanism, self.user, self.password, str(port), self.protocol, self.ca, self.certificate, self.key))


class Keys:
    """The authorities of a run, and the pairs that they issued."""

    def __init__(self, directory):
        self.trusted, self.foreign = Authority(directory / "trusted", "authority"), Authority(directory / "foreign", "stranger")
        self.node, self.client, self.stranger = self.trusted.issue("node"), self.trusted.issue("client"), self.foreign.issue("client")


def attempts(mechanisms, keys=None):
    found = [Attempt(f"{name}, {label}", "SASL_PLAINTEXT", name, user, given) for name in mechanisms for label, user, given in TRIES]
    if keys is None:
        return found
    ca = keys.trusted.certificate
    found += [Attempt(f"{name} over TLS, {label}", "SASL_SSL", name, user, given, ca) for name in mechanisms for label, user, given in TRIES[:2]]
    found.append(Attempt("PLAIN over TLS, another authority", "SASL_SSL", "PLAIN", USER, password(USER), keys.foreign.certificate))
    certificates = (("right certificate", keys.client.key, keys.client.certificate), ("no certificate", "", ""), ("foreign certificate", keys.stranger.key, keys.stranger.certificate))
    return found + [Attempt(f"TLS, {label}", "SSL", "", USER, "", ca, key, certificate) for label, key, certificate in certificates]


def play(server, mechanisms=MECHANISMS, keys=None):
    """{(client, attempt): what came of it}; a client that cannot be had is left out."""
    begun = time.monotonic()
    server.start()
    results = {}
    try:
        make_topic(server, "logins")
        if any(name != "PLAIN" for name in mechanisms):
            make_users(server, [USER])
        for client, get in CLIENTS:
            try:
                version, command = get()
            except fetch.Missing as missing:
                print(f"  {client}: {missing}")
                continue
            results.update({(f"{client} {version}", label): outcome for label, outcome in _talk(command, server, attempts(mechanisms, keys))})
    finally:
        server.kill()
    print(f"  {server.label}: {len(results)} logins; {time.monotonic() - begun:.0f} s", flush=True)
    return results


def _talk(command, server, found):
    process = spawn(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        for attempt in found:
            process.stdin.write(attempt.line(server.port_of(attempt.protocol)) + "\n")
            process.stdin.flush()
            yield attempt.label, process.stdout.readline().strip() or "the client ended"
    finally:
        process.kill()
        process.wait()


def judge(results):
    """Those that are wrong by themselves, whatever the other server does: a right password that is refused, a wrong one that is not."""
    return [key for key, outcome in results.items() if ("right " in key[1]) != (outcome == "ok")]


def compare(ours, theirs, explained):
    same, excused, wrong = 0, 0, 0
    for key, outcome in ours.items():
        other = theirs.get(key, "(not tried)")
        if outcome == other and key not in judge(ours):
            same += 1
            continue
        why = explained(" ".join(key))
        excused, wrong = excused + bool(why), wrong + (not why)
        print(f"\n{' '.join(key)}{': known: ' + why if why else ''}\n    Barnabas:     {outcome}\n    Apache Kafka: {other}")
    return same, excused, wrong
