"""Nodes of the rig: one without logins, and one with logins and ACLs. Each has a console in it; a console of its own process may stand beside."""

import subprocess
from pathlib import Path

from harness.ports import free_port
from harness.process import NodeProcess
from harness.server import HOST, Apache, Barnabas

from .ask import ask

USERS = ("admin", "reader", "stranger")


def password(user):
    return f"{user}-secret"


def who(user):
    return user, password(user)


class WithConsole(Barnabas):
    # Whom its callers trust, where the console has TLS.
    authority = None

    def __init__(self, directory, binary, overrides=None):
        self.console_port = free_port()
        own = {"console.listener": f"{HOST}:{self.console_port}", "console.hosts": "console.example"}
        super().__init__(directory, binary, {**own, **(overrides or {})})

    def new_ports(self):
        super().new_ports()
        self.proxied = []

    def start(self):
        super().start()
        self.wait_until(lambda: is_ready(self.console_port, self.authority), 30, every=0.05)
        return self

    def tool(self, name, *words, given=None, config=None):
        more = ["--command-config", config] if config else []
        ran = subprocess.run(
            [self.binary, name, "--bootstrap-server", self.address, *more, *words], input=given, capture_output=True, text=True, timeout=60
        )
        if ran.returncode != 0:
            raise RuntimeError(f"{name} {words}: {ran.stdout}{ran.stderr}")
        return ran.stdout


class Beside(Apache):
    """Apache Kafka, with `barnabas console` in a process beside it."""

    def __init__(self, directory, binary, version, classpath):
        super().__init__(directory, version, classpath)
        self.binary, self.console_port = str(binary), None

    def new_ports(self):
        super().new_ports()
        self.proxied = []

    tool = WithConsole.tool


class WithLogins(WithConsole):
    """Clients log in by PLAIN; ACLs decide, and `admin` may do everything."""

    @property
    def audit(self):
        return Path(self.directory) / "audit.log"

    def properties(self):
        users = " ".join(f'user_{user}="{password(user)}"' for user in USERS)
        module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        inner = self.controller_port
        return {
            **super().properties(),
            "listeners": f"SASL_PLAINTEXT://{HOST}:{self.port},CONTROLLER://{HOST}:{inner}",
            "advertised.listeners": f"SASL_PLAINTEXT://{HOST}:{self.port}",
            "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{module} username="admin" password="{password("admin")}" {users};',
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:admin;User:ANONYMOUS",
            "audit.log.file": str(self.audit),
        }

    def client_config(self, user):
        path = Path(self.directory) / f"{user}.properties"
        module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        path.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
            f'sasl.jaas.config={module} username="{user}" password="{password(user)}";\n'
        )
        return str(path)

    def await_ready(self):
        # Metadata needs a login here: the console's probe says when the node serves.
        self.ready_after = self.wait_until(lambda: is_ready(self.console_port), self.ready_within, every=0.02)
        return self


class OwnProcess(NodeProcess):
    """`barnabas console` beside a cluster."""

    label = "the console"
    authority = None

    def __init__(self, directory, binary, bootstrap, config=None, words=()):
        self.port, self.log = free_port(), Path(directory) / "console.log"
        self.words = [str(binary), "console", "--bootstrap-server", bootstrap, "--listen", f"{HOST}:{self.port}"]
        if config:
            self.words += ["--command-config", str(config)]
        self.words += words

    def start(self):
        self.run(self.words)
        self.wait_until(lambda: is_ready(self.port, self.authority), 30, every=0.05)
        return self


def is_ready(port, authority=None):
    try:
        return ask(port, "GET", "/readyz", authority=authority).status == 200
    except OSError:
        return False
