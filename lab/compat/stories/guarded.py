"""The cluster of the security story: what each node's file says at each stage, the stores and passwords in use, and what clients need to connect.

A stage is what docs/SECURITY.md calls a step that takes a restart of each node, one by one:

    PLAIN     PLAINTEXT for clients, brokers and controllers; no authorizer
    OPENED    SECURE (SASL_SSL) and SECURE_CONTROLLER (SSL with client certificates) are open beside them; ACLs report, and deny nothing
    SWITCHED  brokers and controllers dial the new listeners; the old ones are still open
    CLOSED    the old listeners are gone, ACLs are enforced
"""

import os
import re
import socket
import ssl
from enum import IntEnum

from compat.fetch import REPOSITORY
from harness.ask import accepts, question
from harness.ports import free_port
from harness.server import HOST, Barnabas
from security import kerberos
from security.oauth import AUDIENCE, ISSUER
from security.oauth import MODULE as OAUTH
from security.tls import Authority

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
# The mechanism of the first passwords, and the one of the next: a user has a password in each, and moves from one to the other.
FIRST, NEXT = "SCRAM-SHA-512", "SCRAM-SHA-256"
ALLOWED = "org.apache.kafka.sasl.oauthbearer.allowed."


class Stage(IntEnum):
    PLAIN = 0
    OPENED = 1
    SWITCHED = 2
    CLOSED = 3


def jaas(user, password):
    return f'{SCRAM} required username="{user}" password="{password}";'


def replace(path, text):
    """In one step: a node may be reading it."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.chmod(0o600)
    os.rename(new, path)


def guide(heading):
    """The settings that docs/SECURITY.md lists below this heading: {key: value} of each block."""
    section = (REPOSITORY / "docs/SECURITY.md").read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    blocks = re.findall(r"^```\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    return [dict(line.split("=", 1) for line in block.splitlines()) for block in blocks if not block.startswith("barnabas ")]


class Node(Barnabas):
    """A broker and controller whose file follows its stage."""

    ready_within = 60

    def __init__(self, directory, binary, number, own):
        super().__init__(directory, binary, {"node.id": str(number)})
        self.label, self.number, self.proxied, self.own = f"node {number}", number, [], own
        self.secure_port, self.secure_controller_port = free_port(), free_port()
        self.stage, self.voters, self.mechanism = Stage.PLAIN, {}, FIRST
        self.store, self.authorities = self.directory / "node.pem", self.directory / "authorities.pem"

    def listeners(self):
        """{name: (protocol, port)}, those of controllers last."""
        plain, secure = self.stage < Stage.CLOSED, self.stage >= Stage.OPENED
        found = {"PLAINTEXT": ("PLAINTEXT", self.port)} if plain else {}
        found |= {"SECURE": ("SASL_SSL", self.secure_port)} if secure else {}
        found |= {"CONTROLLER": ("PLAINTEXT", self.controller_port)} if plain else {}
        return found | ({"SECURE_CONTROLLER": ("SSL", self.secure_controller_port)} if secure else {})

    def properties(self):
        listeners = self.listeners()
        controllers = [name for name in listeners if "CONTROLLER" in name]
        if self.stage >= Stage.SWITCHED:
            controllers.reverse()
        shown = {name: f"{name}://{HOST}:{port}" for name, (_, port) in listeners.items()}
        return {
            **super().properties(),
            "controller.quorum.voters": ",".join(f"{number}@{HOST}:{node.dialled_controller_port(self.stage)}" for number, node in self.voters.items()),
            "listeners": ",".join(shown.values()),
            "advertised.listeners": ",".join(address for name, address in shown.items() if name not in controllers),
            "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, (protocol, _) in listeners.items()),
            "controller.listener.names": ",".join(controllers),
            "inter.broker.listener.name": "SECURE" if self.stage >= Stage.SWITCHED else "PLAINTEXT",
            **{key: "3" for key in ("offsets.topic.replication.factor", "transaction.state.log.replication.factor", "default.replication.factor")},
            **(self.security() if self.stage >= Stage.OPENED else {}),
        }

    def security(self):
        prefix = "listener.name.secure."
        shadow = {"authorizer.shadow": "true"} if self.stage < Stage.CLOSED else {}
        return {
            "ssl.keystore.type": "PEM", "ssl.keystore.location": str(self.store), "ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.authorities),
            "listener.name.secure_controller.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": f"{FIRST},{NEXT},OAUTHBEARER" + (",GSSAPI" if self.own["kdc"] else ""),
            "sasl.mechanism.inter.broker.protocol": self.mechanism,
            **{f"{prefix}{name.lower()}.sasl.jaas.config": jaas("broker", self.own["broker"]) for name in (FIRST, NEXT)},
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": ";".join(["User:admin", "User:broker", *(f"User:CN=node-{number}" for number in self.voters)]),
            **shadow,
            f"{prefix}oauthbearer.sasl.jaas.config": f"{OAUTH}LoginModule required;",
            f"{prefix}oauthbearer.sasl.server.callback.handler.class": f"{OAUTH}ValidatorCallbackHandler",
            f"{prefix}oauthbearer.sasl.oauthbearer.jwks.endpoint.url": self.own["jwks"],
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "sasl.oauthbearer.expected.issuer": ISSUER,
            f"{ALLOWED}urls": self.own["jwks"],
            **self.tickets(),
        }

    def tickets(self):
        """For GSSAPI, where there is a KDC."""
        kdc = self.own["kdc"]
        if kdc is None:
            return {}
        return {"sasl.kerberos.service.name": "kafka", "java.security.krb5.conf": str(kdc.conf), "listener.name.secure.gssapi.sasl.jaas.config": kerberos.module(kdc, kerberos.SERVICE)}

    def dialled_controller_port(self, stage):
        return self.secure_controller_port if stage >= Stage.SWITCHED else self.controller_port

    def await_ready(self):
        port = self.port if self.stage < Stage.CLOSED else self.secure_port
        self.ready_after = self.wait_until(lambda: accepts(port), self.ready_within, every=0.02)
        return self

    def restart(self, stage):
        if not self.stop(60):
            raise RuntimeError(f"{self} did not stop by itself: {self.last_lines()}")
        self.stage = stage
        self.launch()
        self.await_ready()

    # What a stranger sees of it

    def secure_ports(self):
        return {"SECURE": self.secure_port, "SECURE_CONTROLLER": self.secure_controller_port}

    def serials(self):
        return {name: serial(port) for name, port in self.secure_ports().items()}


def context(authorities=None, pair=None):
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if authorities is None:
        made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    else:
        made.load_verify_locations(authorities)
    if pair is not None:
        made.load_cert_chain(pair.certificate, pair.key)
    return made


def serial(port):
    """Of the certificate that a listener shows now."""
    with socket.create_connection((HOST, port), 10) as plain, context().wrap_socket(plain, server_hostname=HOST) as secure:
        return ssl.DER_cert_to_PEM_cert(secure.getpeercert(True))


def answers(port, key, version, body, **how):
    """Whether a TLS listener answers this request, its certificate being trusted where `authorities` are given. A refusal of any sort is none."""
    try:
        # A connection that does not log in is closed after ten seconds.
        with socket.create_connection((HOST, port), 20) as plain, context(**how).wrap_socket(plain, server_hostname=HOST) as secure:
            secure.sendall(question(key, version, body))
            return len(secure.recv(4)) == 4
    except (ssl.SSLError, ConnectionError):
        return False


class Stores:
    """The authority in use, and each node's certificate; what clients trust."""

    def __init__(self, directory, nodes):
        self.directory, self.nodes, self.count = directory, nodes, 0
        self.authorities, self.trusted = [], directory / "authorities.pem"
        self.rotated = {"certificates": 0, "authorities": 0}

    def add_authority(self):
        self.count += 1
        self.authorities.append(Authority(self.directory / f"authority-{self.count}", f"authority-{self.count}"))

    @property
    def newest(self):
        return self.authorities[-1]

    def publish_authorities(self):
        """To every node's file. Clients get a file of their own each time: theirs are read once."""
        text = "".join(open(one.certificate).read() for one in self.authorities)
        self.trusted = self.directory / f"clients-{'-'.join(one.name.rsplit('-', 1)[1] for one in self.authorities)}.pem"
        self.trusted.write_text(text)
        for node in self.nodes:
            replace(node.authorities, text)

    def issue(self):
        """A certificate of the newest authority for each node, put in the place of the one before."""
        for node in self.nodes:
            pair = self.newest.issue(f"node-{node.number}", "ec", "-pkeyopt", "ec_paramgen_curve:P-256")
            replace(node.store, open(pair.store).read())


class Clients:
    """Files of client settings: one for each state of a user."""

    def __init__(self, directory, nodes, stores, issuer):
        self.directory, self.nodes, self.stores, self.issuer, self.count = directory, nodes, stores, issuer, 0
        self.passwords = {}

    def _write(self, name, settings):
        self.count += 1
        path = self.directory / f"{name}-{self.count}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        path.chmod(0o600)
        return path

    def plain(self, name):
        return self._write(name, {"bootstrap.servers": ",".join(node.address for node in self.nodes)})

    def _secure(self):
        return {"bootstrap.servers": ",".join(f"{HOST}:{node.secure_port}" for node in self.nodes), "security.protocol": "SASL_SSL",
                "ssl.truststore.type": "PEM", "ssl.truststore.location": self.stores.trusted}

    def login(self, user, password=None, mechanism=None, trusted=None):
        known = self.passwords[user]
        settings = {**self._secure(), "sasl.mechanism": mechanism or known[0], "sasl.jaas.config": jaas(user, password or known[1])}
        return self._write(user, settings | ({"ssl.truststore.location": trusted} if trusted else {}))

    def ticket(self, user, service="kafka"):
        kdc = self.nodes[0].own["kdc"]
        return self._write(user, {**self._secure(), "sasl.mechanism": "GSSAPI", "sasl.kerberos.service.name": service, "sasl.jaas.config": kerberos.module(kdc, user)})

    def token(self, name, path):
        return self._write(name, {
            **self._secure(), "sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": f"{OAUTH}LoginModule required;",
            "sasl.login.callback.handler.class": f"{OAUTH}LoginCallbackHandler", "sasl.oauthbearer.token.endpoint.url": as_url(path),
            # The refreshing thread may take the next token at once: these live for seconds.
            "sasl.login.refresh.min.period.seconds": "0", "sasl.login.refresh.buffer.seconds": "0"})


def as_url(path):
    return f"file:{path}"
