"""One node of either make with four listeners for clients: PLAINTEXT; EC and RSA, TLS with a certificate of that kind; SASL, PLAIN without TLS.

Who comes in without a login is User:ANONYMOUS, a super user: what is encrypted and what is not differ in nothing else.
"""

from types import SimpleNamespace

from harness.ports import free_port
from harness.server import HOST, Barnabas
from security.nodes import AUTHORIZER, password
from security.tls import Authority

from rig.peers.barnabas import BarnabasSynced
from rig.peers.kafka import Kafka
from rig.peers.kafka import Server as KafkaServer
from rig.peers.peer import several

# Has ACLs; all others are super users.
GUARDED = "alice"
SUPER_USERS = ("admin", "greedy", "polite")
PROTOCOLS = {"EC": "SSL", "RSA": "SSL", "SASL": "SASL_PLAINTEXT"}


class Keys:
    """Certificates of the rig: an authority, and a pair of each kind."""

    def __init__(self, directory):
        authority = Authority(directory, "authority")
        self.authority = authority.certificate
        self.stores = {"EC": authority.issue("ec", "ec", "-pkeyopt", "ec_paramgen_curve:P-256").store, "RSA": authority.issue("rsa").store}


class Listening:
    """A mixin of a server: the further listeners, by `ports`."""

    keys = None

    def listen(self):
        self.proxied, self.ports = [], {name: free_port() for name in PROTOCOLS}
        return self

    def properties(self):
        found = super().properties()
        further = "".join(f",{name}://{HOST}:{port}" for name, port in self.ports.items())
        for key in ("listeners", "advertised.listeners"):
            found[key] += further
        found["listener.security.protocol.map"] += "".join(f",{name}:{protocol}" for name, protocol in PROTOCOLS.items())
        known = " ".join(f'user_{user}="{password(user)}"' for user in (GUARDED, *SUPER_USERS))
        return {**found, **AUTHORIZER, "super.users": ";".join(f"User:{user}" for user in ("ANONYMOUS", *SUPER_USERS)), "sasl.enabled.mechanisms": "PLAIN",
                "listener.name.sasl.plain.sasl.jaas.config": f"org.apache.kafka.common.security.plain.PlainLoginModule required {known};",
                "ssl.keystore.type": "PEM", **{f"listener.name.{name.lower()}.ssl.keystore.location": store for name, store in self.keys.stores.items()}}


class ListeningBarnabas(Listening, Barnabas):
    pass


class ListeningKafka(Listening, KafkaServer):
    pass


class SecureKafka(Kafka):
    server_class = ListeningKafka

    def make_server(self, overrides):
        return super().make_server(overrides).listen()


class SecureBarnabas(BarnabasSynced):
    # Of 20,000 descriptors log files may take three quarters by themselves; the connections of the table need more than the rest.
    settings = {**BarnabasSynced.settings, "log.open.files.max": "2000"}

    def make_server(self, overrides):
        server = ListeningBarnabas(self.directory, self.binary, several(self.directory, overrides))
        server.label = self.label
        return server.listen()


class Through:
    """A peer as a client of one listener sees it."""

    def __init__(self, peer, listener=None):
        self.name, self.pids = peer.name, peer.pids
        port = peer.server.ports[listener] if listener else peer.server.port
        self.server = SimpleNamespace(address=f"{HOST}:{port}", label=peer.server.label)


def tls(keys):
    """librdkafka's settings. The certificates' addresses are checked by our own client, in src/handshakes.rs."""
    return {"security.protocol": "ssl", "ssl.ca.location": keys.authority, "ssl.endpoint.identification.algorithm": "none"}


def login(user):
    return {"security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN", "sasl.username": user, "sasl.password": password(user)}
