"""OAUTHBEARER × client × right, expired, foreign, unsigned token, wrong audience; and a client that writes for longer than its token lives, so that it must
log in again (KIP-368). Tokens are lab/issuer's; the keys are a file.
"""

import json
import subprocess
import threading
import time
import urllib.request

from compat import fetch
from harness.ports import free_port
from harness.process import spawn
from harness.server import HOST, Apache

from .logins import CLIENTS, USER, Attempt, _talk, make_topic

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearer"
# A client that is held (`HELD_S` of the drivers) sees two of these end.
SHORT_S = 3
AUDIENCE, ISSUER = "kafka", "https://issuer"


class Issuer:
    """Signs by the program beside `binary`."""

    def __init__(self, binary, directory):
        program = binary.parent / "barnabas-issuer"
        if not program.exists():
            raise fetch.Missing(f"{program} is not built: cargo build -p barnabas-issuer")
        directory.mkdir(parents=True)
        self.directory, self.keys, self.lock = directory, directory / "jwks.json", threading.Lock()
        self.process = spawn([program, self.keys], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.token()

    def token(self, kind="", lives_s=600, **more):
        now = int(time.time())
        claims = {"sub": USER, "aud": AUDIENCE, "iss": ISSUER, "iat": now + min(0, lives_s - 1), "exp": now + lives_s, **more}
        with self.lock:
            self.process.stdin.write(f"{kind} {json.dumps(claims)}\n".lstrip())
            self.process.stdin.flush()
            return self.process.stdout.readline().strip()

    def write(self, name, token):
        """In one step: a client may be reading it."""
        path = self.directory / name
        with self.lock:
            new = self.directory / f"{name}.new"
            new.write_text(token)
            new.rename(path)
        return str(path)

    def close(self):
        self.process.kill()
        self.process.wait()


def take_tokens(server, issuer):
    """The listener SASL of this server takes tokens. Ours counts the clients that log in again."""
    url = issuer.keys.as_uri().replace("file:///", "file:/")
    prefix = "listener.name.sasl.oauthbearer."
    allowed = "org.apache.kafka.sasl.oauthbearer.allowed."
    server.overrides = {
        **server.overrides,
        f"{prefix}sasl.jaas.config": f"{MODULE}LoginModule required;",
        f"{prefix}sasl.server.callback.handler.class": f"{MODULE}ValidatorCallbackHandler",
        f"{prefix}sasl.oauthbearer.jwks.endpoint.url": url,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.expected.issuer": ISSUER,
        # An ended token is to be refused at once.
        "sasl.oauthbearer.clock.skew.seconds": "0",
        f"{allowed}urls": url,
        f"{allowed}files": str(issuer.keys),
    }
    server.reauthentications, server.metrics_port = None, None
    if isinstance(server, Apache):
        # Its keys are the JVM's.
        server.jvm = (*server.jvm, f"-D{allowed}urls={url}", f"-D{allowed}files={issuer.keys}")
    else:
        server.metrics_port = free_port()
        server.overrides["metrics.listener"] = f"{HOST}:{server.metrics_port}"


def reauthentications(server):
    """None where it is not counted."""
    if server.metrics_port is None:
        return None
    with urllib.request.urlopen(f"http://{HOST}:{server.metrics_port}/metrics", timeout=10) as page:
        lines = page.read().decode().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith('barnabas_reauthentications_total{result="success"}')))


def name_of(label):
    return label.replace(" ", "-")


HELD = "right tokens, one after the other"


def attempts(issuer):
    def attempt(label, token, user=USER):
        return Attempt(label, "SASL_PLAINTEXT", "OAUTHBEARER", user, issuer.write(name_of(label), token))

    return [attempt("right token", issuer.token()), attempt("expired token", issuer.token(lives_s=-60)), attempt("token of a foreign key", issuer.token("foreign")),
            attempt("unsigned token", issuer.token("unsigned")), attempt("wrong audience", issuer.token(aud="web")), attempt("wrong issuer", issuer.token(iss="https://other")),
            attempt(HELD, issuer.token(lives_s=SHORT_S), "held")]


def play(server, issuer):
    """{(client, attempt): what came of it}"""
    begun = time.monotonic()
    server.start()
    results, is_over = {}, threading.Event()

    def renew():
        while not is_over.wait(1):
            issuer.write(name_of(HELD), issuer.token(lives_s=SHORT_S))

    try:
        make_topic(server, "logins")
        found = attempts(issuer)
        threading.Thread(target=renew, daemon=True).start()
        for client, get in CLIENTS:
            try:
                version, command = get()
            except fetch.Missing as missing:
                print(f"  {client}: {missing}")
                continue
            results.update({(f"{client} {version}", label): outcome for label, outcome in _talk(command, server, found)})
        server.reauthentications = reauthentications(server)
    finally:
        is_over.set()
        server.kill()
    print(f"  {server.label}: {len(results)} logins by token{'' if server.metrics_port is None else f', {server.reauthentications} re-authentications'}; {time.monotonic() - begun:.0f} s", flush=True)
    return results
