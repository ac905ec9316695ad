"""One node of either make with further listeners for an attack, and the files that those need."""

import json
import os
from base64 import urlsafe_b64encode
from pathlib import Path

from harness.ports import free_port
from harness.server import HOST, Apache, Barnabas
from security.nodes import AUTHORIZER, MODULES, jaas, password
from security.tls import Authority

# Of the listeners that take logins: one with ACLs, one that administers.
USERS = ("alice", "admin")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
BEARER = f"{MODULES}oauthbearer.OAuthBearer"
ALLOWED = "org.apache.kafka.sasl.oauthbearer.allowed."


class Doors:
    """A mixin of a server: further listeners beside PLAINTEXT. Clients without a login are User:ANONYMOUS, a super user where there are ACLs."""

    ports, protocols, keys = {}, {}, None

    def open(self, **protocols):
        """`protocols` by the listener's name."""
        self.proxied, self.protocols, self.ports = [], protocols, {name: free_port() for name in protocols}
        return self

    def properties(self):
        found = super().properties()
        for key in ("listeners", "advertised.listeners"):
            found[key] += "".join(f",{name}://{HOST}:{port}" for name, port in self.ports.items())
        found["listener.security.protocol.map"] += "".join(f",{name}:{protocol}" for name, protocol in self.protocols.items())
        return found

    def use_tls(self, directory):
        """Keys of an authority of its own; both sides trust it."""
        authority = Authority(Path(directory) / "keys", "authority")
        self.keys = authority.issue("node", "ec", "-pkeyopt", "ec_paramgen_curve:P-256")
        self.overrides |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": self.keys.store, "ssl.truststore.type": "PEM", "ssl.truststore.location": self.keys.authority}
        return authority

    def take_logins(self, listener, directory, users=USERS):
        """PLAIN for `users`, SCRAM, and tokens of a key that signs none."""
        keys = Path(directory) / "jwks.json"
        modulus = urlsafe_b64encode(b"\xc1" + os.urandom(254) + b"\x01").decode().rstrip("=")
        keys.write_text(json.dumps({"keys": [{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "rig", "n": modulus, "e": "AQAB"}]}))
        url, prefix = keys.as_uri().replace("file:///", "file:/"), f"listener.name.{listener.lower()}."
        known = " ".join(f'user_{user}="{password(user)}"' for user in users)
        self.overrides |= {
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            f"{prefix}plain.sasl.jaas.config": f"{MODULES}plain.PlainLoginModule required {known};",
            f"{prefix}scram-sha-256.sasl.jaas.config": f"{MODULES}scram.ScramLoginModule required;",
            f"{prefix}scram-sha-512.sasl.jaas.config": f"{MODULES}scram.ScramLoginModule required;",
            f"{prefix}oauthbearer.sasl.jaas.config": f"{BEARER}LoginModule required;",
            f"{prefix}oauthbearer.sasl.server.callback.handler.class": f"{BEARER}ValidatorCallbackHandler",
            f"{prefix}oauthbearer.sasl.oauthbearer.jwks.endpoint.url": url,
            "sasl.oauthbearer.expected.audience": "kafka",
            "sasl.oauthbearer.expected.issuer": "https://issuer",
            f"{ALLOWED}urls": url,
            f"{ALLOWED}files": str(keys),
        }
        if isinstance(self, Apache):
            # Its keys are the JVM's.
            self.jvm = (*self.jvm, f"-D{ALLOWED}urls={url}", f"-D{ALLOWED}files={keys}")

    def use_acls(self):
        self.overrides |= AUTHORIZER

    def through(self, listener, user=None):
        """(address, client settings) of a producer on this listener."""
        protocol = self.protocols[listener]
        settings = [f"security.protocol={protocol}"]
        if protocol.endswith("SSL"):
            settings += ["ssl.truststore.type=PEM", f"ssl.truststore.location={self.keys.authority}"]
        if user:
            settings += ["sasl.mechanism=PLAIN", f"sasl.jaas.config={jaas('PLAIN', user)}"]
        return f"{HOST}:{self.ports[listener]}", settings


class OpenBarnabas(Doors, Barnabas):
    pass


class OpenApache(Doors, Apache):
    pass
