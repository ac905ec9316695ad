"""One node of either make with a listener that wants a login, SASL, beside one that does not, PLAINTEXT. With TLS it has two more:
SECURE, a login over TLS, and SSL, which takes client certificates alone.

Who comes in by PLAINTEXT is User:ANONYMOUS, a super user here: the rig administers by it. Passwords are the names of their users with `-secret` behind.
"""

from harness.ports import free_port
from harness.server import HOST, Apache, Barnabas

MODULES = "org.apache.kafka.common.security."
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
SUPER_USERS = ("ANONYMOUS", "admin")


def password(user):
    return f"{user}-secret"


def jaas(mechanism, user, given=None):
    """A client's `sasl.jaas.config`."""
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    return f'{MODULES}{module} required username="{user}" password="{password(user) if given is None else given}";'


AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": ";".join(f"User:{user}" for user in SUPER_USERS),
    "delegation.token.secret.key": "a key of the rig",
}


def settings(users, mechanisms):
    known = " ".join(f'user_{user}="{password(user)}"' for user in users)
    of_mechanism = {"PLAIN": f"{MODULES}plain.PlainLoginModule required {known};"}
    return {
        "sasl.enabled.mechanisms": ",".join(mechanisms),
        "group.min.session.timeout.ms": "6000",
        **{f"listener.name.sasl.{name.lower()}.sasl.jaas.config": of_mechanism.get(name, f"{MODULES}scram.ScramLoginModule required;") for name in mechanisms},
    }


class _Guarded:
    """A mixin: the second listener."""

    ready_within = 90

    sasl_port = None
    # The host in its advertised address.
    sasl_name = HOST
    # Ports by protocol.
    tls_ports = {}

    def guard(self, users, mechanisms=MECHANISMS, has_acls=True, keys=None):
        """`keys`: the node's key store and trust store, for listeners with TLS (tls.py)."""
        self.proxied, self.sasl_port = [], free_port()
        self.overrides = {**self.overrides, **settings(users, mechanisms), **(AUTHORIZER if has_acls else {})}
        if keys:
            self.tls_ports = {"SASL_SSL": free_port(), "SSL": free_port()}
            secure = {key.replace(".sasl.", ".secure.", 1): value for key, value in settings(users, mechanisms).items() if key.startswith("listener.name.sasl.")}
            self.overrides = {**self.overrides, **secure, "ssl.keystore.type": "PEM", "ssl.keystore.location": keys.store, "ssl.truststore.type": "PEM",
                              "ssl.truststore.location": keys.authority, "listener.name.ssl.ssl.client.auth": "required"}
        return self

    def port_of(self, protocol):
        return self.sasl_port if protocol == "SASL_PLAINTEXT" else self.tls_ports[protocol]

    @property
    def sasl_address(self):
        return f"{HOST}:{self.sasl_port}"

    def properties(self):
        found = super().properties()
        if self.sasl_port is None:
            return found
        found["listeners"] += f",SASL://{self.sasl_address}"
        found["advertised.listeners"] += f",SASL://{self.sasl_name}:{self.sasl_port}"
        found["listener.security.protocol.map"] += ",SASL:SASL_PLAINTEXT"
        for name, protocol in (("SECURE", "SASL_SSL"), ("SSL", "SSL")):
            if protocol in self.tls_ports:
                for key in ("listeners", "advertised.listeners"):
                    found[key] += f",{name}://{HOST}:{self.tls_ports[protocol]}"
                found["listener.security.protocol.map"] += f",{name}:{protocol}"
        return found


class GuardedBarnabas(_Guarded, Barnabas):
    pass


class GuardedApache(_Guarded, Apache):
    jvm = ("-Xms256m", "-Xmx768m")


def write_client(path, mechanism, user, given=None):
    """A file for `--command-config`."""
    path.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\nsasl.jaas.config={jaas(mechanism, user, given)}\n")
    path.chmod(0o600)
    return path
