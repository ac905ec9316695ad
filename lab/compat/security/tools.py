"""kafka-acls, kafka-delegation-tokens and kafka-configs for users and quotas, and ours of these names: one script, played by Apache's tools and by ours, on each server.

Each command's exit code and lines must be the same in all of them. Lines are compared sorted: Apache's tool lists in the order of a hash map. What follows
an error's first line is usage or a stack trace, and left out.
"""

import re
import subprocess
import time

from .apaches import Tools
from .nodes import write_client

CLASSES = {"acls": "org.apache.kafka.tools.AclCommand", "delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand", "configs": "kafka.admin.ConfigCommand"}
OWNER, OTHER = "alice", "bob"
MASKS = ((re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d\b"), "<time>"), (re.compile(r"[A-Za-z0-9+/]{80,}={0,2}"), "<hmac>"), (re.compile(r"(?<![\w-])[\w-]{22}(?![\w-])"), "<id>"))

ACLS = """
--list
--add --allow-principal User:alice --allow-host 127.0.0.1 --operation Read --operation DescribeConfigs --topic t1
--add --allow-principal User:alice --allow-host 127.0.0.1 --operation Read --operation DescribeConfigs --topic t1
--add --allow-principal User:bob --producer --idempotent --topic p --transactional-id x
--add --allow-principal User:bob --consumer --topic p --group g
--add --allow-principal User:carl --producer --topic pre --resource-pattern-type prefixed
--add --deny-principal User:bob --deny-host 10.0.0.1 --operation Write --topic pre-one --group grp
--add --allow-principal User:dora --operation CreateTokens --user-principal User:alice
--add --allow-principal User:dora --operation Describe --delegation-token tok
--add --allow-principal User:* --operation describe --cluster
--list --topic pre-one
--list --topic pre-one --resource-pattern-type match
--list --topic pre --resource-pattern-type any
--list --principal User:bob
--list --principal User:bob --principal User:carl --topic p
--remove --force --allow-principal User:alice --allow-host 127.0.0.1 --operation Read --topic t1
--remove --force --topic pre-one --resource-pattern-type match
--list
--remove --force --group g
--list --group g
--add --topic t1
--add --allow-principal User:a
--add --allow-principal User:a --topic t --producer --operation Read
--add --principal User:a --topic t --allow-principal User:a
--add --allow-principal User:a --group g --consumer
--add --allow-principal User:a --topic t --idempotent
--add --allow-principal User:a --topic t --resource-pattern-type match
""".strip().splitlines()

CONFIGS = """
--alter --entity-type users --entity-name quoted --add-config producer_byte_rate=1048576,consumer_byte_rate=2097152
--alter --entity-type users --entity-default --add-config request_percentage=200
--alter --entity-type clients --entity-name c --add-config controller_mutation_rate=5
--alter --entity-type users --entity-name quoted --entity-type clients --entity-name c --add-config producer_byte_rate=1024
--alter --entity-type ips --entity-name 10.1.2.3 --add-config connection_creation_rate=7
--describe --entity-type users --entity-name quoted
--describe --entity-type users
--describe --entity-type users --entity-name quoted --entity-type clients --entity-name c
--describe --entity-type clients
--describe --entity-type ips
--alter --entity-type users --entity-name quoted --delete-config consumer_byte_rate
--describe --entity-type users --entity-name quoted
--alter --entity-type users --entity-name scrammed --add-config SCRAM-SHA-256=[iterations=8192,password=secret]
--describe --entity-type users --entity-name scrammed
--alter --entity-type users --entity-name scrammed --delete-config SCRAM-SHA-256
--describe --entity-type users --entity-name scrammed
""".strip().splitlines()


def ours(binary):
    def run(tool, words):
        made = subprocess.run([str(binary), tool, *words], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
        return made.returncode, made.stdout + made.stderr
    return run


def apaches(tools):
    return lambda tool, words: tools.run(CLASSES[tool], *words)


def masked(printed, code):
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    for pattern, word in MASKS:
        lines = [pattern.sub(word, line) for line in lines]
    lines = [" ".join(line.split()) for line in lines]
    # Of an error its kind counts: that there is one. The sentences are each tool's own.
    return sorted(lines) if code == 0 else ["an error"]


class Stage:
    def __init__(self, server, run, clients):
        self.server, self.run, self.clients, self.answers = server, run, clients, {}

    def ask(self, tool, words, login=None, label=None):
        where = ["--bootstrap-server", self.server.sasl_address if login else self.server.address]
        where += ["--command-config", str(self.clients[login])] if login else []
        code, printed = self.run(tool, [*where, *words])
        name = f"{tool} {label or ' '.join(words)}"
        while name in self.answers:
            name += " (again)"
        self.answers[name] = [f"exit {int(code != 0)}", *masked(printed, code)]
        return printed

    def play(self, parts):
        for part in parts:
            part(self)
        return self.answers


def acls(stage):
    for line in ACLS:
        stage.ask("acls", line.split())
    for kind, name in (("topic", "*"), ("group", "*"), ("transactional-id", "*"), ("user-principal", "*"), ("delegation-token", "*")):
        stage.run("acls", ["--bootstrap-server", stage.server.address, "--remove", "--force", f"--{kind}", name, "--resource-pattern-type", "match"])
    for kind, name in (("topic", "t1"), ("topic", "p"), ("topic", "pre-x"), ("group", "grp"), ("transactional-id", "x"), ("user-principal", "User:alice"), ("delegation-token", "tok")):
        stage.run("acls", ["--bootstrap-server", stage.server.address, "--remove", "--force", f"--{kind}", name, "--resource-pattern-type", "match"])
    stage.run("acls", ["--bootstrap-server", stage.server.address, "--remove", "--force", "--cluster"])
    stage.ask("acls", ["--list"], label="all of them are removed")


def configs(stage):
    for line in CONFIGS:
        stage.ask("configs", line.split())
    for entity, keys in ((["--entity-type", "users", "--entity-name", "quoted"], "producer_byte_rate"), (["--entity-type", "users", "--entity-default"], "request_percentage"),
                         (["--entity-type", "clients", "--entity-name", "c"], "controller_mutation_rate"), (["--entity-type", "ips", "--entity-name", "10.1.2.3"], "connection_creation_rate"),
                         (["--entity-type", "users", "--entity-name", "quoted", "--entity-type", "clients", "--entity-name", "c"], "producer_byte_rate")):
        stage.ask("configs", ["--alter", *entity, "--delete-config", keys])


def tokens(stage):
    def ask(label, *words, login=OWNER):
        printed = stage.ask("delegation-tokens", words, login, label)
        if "--describe" not in words:
            # Apache's brokers learn of it with the next publication.
            time.sleep(1)
        return printed

    created = ask("create", "--create", "--max-life-time-period", "-1", "--renewer-principal", f"User:{OTHER}")
    found = next((word for word in created.split() if len(word) > 80), "eA==")
    ask("describe by owner", "--describe", "--owner-principal", f"User:{OWNER}")
    ask("describe by renewer", "--describe", "--owner-principal", f"User:{OWNER}", login=OTHER)
    ask("renew by renewer", "--renew", "--renew-time-period", "3600000", "--hmac", found, login=OTHER)
    ask("expire later", "--expire", "--expiry-time-period", "60000", "--hmac", found)
    ask("expire at once", "--expire", "--expiry-time-period", "-1", "--hmac", found)
    ask("expire again", "--expire", "--expiry-time-period", "-1", "--hmac", found)
    ask("describe nothing", "--describe", "--owner-principal", f"User:{OWNER}")
    ask("create for another", "--create", "--max-life-time-period", "-1", "--owner-principal", f"User:{OTHER}")
    ask("create without life", "--create")
    ask("renew an unknown one", "--renew", "--renew-time-period", "-1", "--hmac", "eHh4eA==")


def play(server, binary, scratch, parts):
    """[(label, {command: lines})]: Apache's tools first, then ours."""
    begun = time.monotonic()
    scratch.mkdir(parents=True, exist_ok=True)
    clients = {user: write_client(scratch / f"{user}.properties", "PLAIN", user) for user in (OWNER, OTHER)}
    server.start()
    tools = Tools()
    try:
        played = [(f"Apache's tools on {server.label}", Stage(server, apaches(tools), clients).play(parts)), (f"our tools on {server.label}", Stage(server, ours(binary), clients).play(parts))]
    finally:
        tools.close()
        server.kill()
    print(f"  {server.label}: {len(played[0][1])} commands, by Apache's tools and by ours; {time.monotonic() - begun:.0f} s", flush=True)
    return played


def compare(played, explained):
    """Everything beside the first: Apache's tools on Apache's server, where that is played."""
    same, excused, wrong = 0, 0, 0
    (first, standard), *others = played
    for label, answers in others:
        for command, lines in answers.items():
            if standard.get(command) == lines:
                same += 1
                continue
            why = explained(f"{label}: {command}")
            excused, wrong = excused + bool(why), wrong + (not why)
            print(f"\n{command}{': known: ' + why if why else ''}\n    {first}: {standard.get(command)}\n    {label}: {lines}"[:1200])
    return same, excused, wrong


USERS = (OWNER, OTHER, "admin")
