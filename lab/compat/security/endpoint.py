"""A token endpoint on loopback that records what it is asked and answers as a case wants it.

A request is recorded as lines that two clients can be compared by: times are written relative to `iat`, a `jti` as `<id>`, an assertion as header, claims and
whether its signature is right. Keys and signatures are openssl's.
"""

import base64
import json
import subprocess
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

from harness.server import HOST

from .oauth import AUDIENCE, ISSUER

HEADERS = ("Content-Type", "Accept", "Cache-Control")
# An assertion made by a client is as young as this, in seconds.
FRESH_S = 10


def openssl(*words, given=None):
    made = subprocess.run(["openssl", *words], input=given, capture_output=True, timeout=60)
    if made.returncode != 0:
        raise RuntimeError(f"openssl {' '.join(words)}: {made.stderr.decode(errors='replace').strip()[-300:]}")
    return made.stdout


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unbase64url(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def signed(header, claims, key):
    """A token, by RS256."""
    text = ".".join(base64url(json.dumps(part).encode()) for part in (header, claims))
    return f"{text}.{base64url(openssl('dgst', '-sha256', '-sign', str(key), given=text.encode()))}"


def jwks(key):
    modulus = bytes.fromhex(openssl("rsa", "-in", str(key), "-noout", "-modulus").decode().strip().split("=")[1])
    return json.dumps({"keys": [{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "k", "n": base64url(modulus), "e": "AQAB"}]})


def _der(signature):
    """r and s of an ECDSA signature as openssl wants them."""
    def integer(data):
        data = data.lstrip(b"\0") or b"\0"
        data = b"\0" + data if data[0] & 0x80 else data
        return bytes([2, len(data)]) + data
    half = len(signature) // 2
    both = integer(signature[:half]) + integer(signature[half:])
    return bytes([0x30, len(both)]) + both


def _is_right(algorithm, text, signature, keys):
    if algorithm == "ES256" and len(signature) != 64:
        return False
    public = keys.directory / f"{algorithm}.public.pem"
    file = keys.directory / f"signature-{threading.get_ident()}"
    file.write_bytes(_der(signature) if algorithm == "ES256" else signature)
    done = subprocess.run(["openssl", "dgst", "-sha256", "-verify", str(public), "-signature", str(file)], input=text.encode(), capture_output=True, timeout=60)
    return done.returncode == 0


def _claim(name, value, claims):
    """A claim as text; JSON shows its type."""
    issued = claims.get("iat")
    if name == "iat" and isinstance(value, int) and abs(time.time() - value) < FRESH_S:
        return "now"
    if name in ("exp", "nbf") and isinstance(value, int) and isinstance(issued, int):
        return f"iat{value - issued:+d}"
    if name == "jti" and isinstance(value, str) and len(value) >= 16:
        return "<id>"
    return json.dumps(value, sort_keys=True)


def _assertion(text, keys):
    """The lines of an assertion and its claims."""
    try:
        first, second, third = text.split(".")
        header, claims = json.loads(unbase64url(first)), json.loads(unbase64url(second))
        signature = unbase64url(third)
    except ValueError:
        return [f"no JWT: {text[:60]!r}"], {}
    algorithm = header.get("alg")
    judged = f"of no algorithm that RFC 7518 names: {algorithm}"
    if algorithm in ("RS256", "ES256"):
        judged = "right" if _is_right(algorithm, f"{first}.{second}", signature, keys) else "wrong"
    return [*(f"header {name}: {json.dumps(value, sort_keys=True)}" for name, value in sorted(header.items())),
            *(f"claim {name}: {_claim(name, value, claims)}" for name, value in sorted(claims.items())),
            f"signature: {judged}"], claims


@dataclass
class Answer:
    """What a request is answered: `body` may hold TOKEN. None: the connection is closed."""

    status: int = 200
    body: str | None = '{"access_token":"TOKEN","token_type":"Bearer","expires_in":600}'
    after_s: float = 0
    claims: dict = field(default_factory=dict)
    headers: dict = field(default_factory=dict)
    is_chunked: bool = False


class Endpoint:
    """Answers POST /NAME/token as `script[NAME]` says, one answer after the other; the last is repeated."""

    def __init__(self, keys, script):
        self.keys, self.script, self.lock = keys, script, threading.Lock()
        self.requests, self.assertions, self.tokens = {}, {}, {}
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                endpoint.serve(self)

            do_GET = do_POST

        self.server = ThreadingHTTPServer((HOST, 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self, name):
        return f"http://{HOST}:{self.server.server_port}/{name}/token"

    def token(self, subject, claims):
        """Signed by the key that the broker trusts. `claims` replace those of a right token; None takes one away."""
        name = subject, json.dumps(claims, sort_keys=True)
        with self.lock:
            if name not in self.tokens:
                now = int(time.time())
                found = {"sub": subject, "aud": AUDIENCE, "iss": ISSUER, "iat": now - 5, "exp": now + 600}
                found.update({key: now + value if key in ("exp", "iat") and value is not None else value for key, value in claims.items()})
                found = {key: value for key, value in found.items() if value is not None}
                self.tokens[name] = signed({"alg": "RS256", "kid": "k"}, found, self.keys.issuer)
            return self.tokens[name]

    def serve(self, asked):
        body = asked.rfile.read(int(asked.headers.get("Content-Length") or 0)).decode(errors="replace")
        url = urlsplit(asked.path)
        name = url.path.split("/")[1]
        lines, subject, assertion = self._record(asked, body)
        with self.lock:
            at = len(self.requests.setdefault(name, []))
            self.requests[name].append(lines)
            if assertion:
                self.assertions.setdefault(name, []).append(assertion)
        answers = self.script.get(name, [Answer(404, "")])
        answer = answers[min(at, len(answers) - 1)]
        time.sleep(answer.after_s)
        try:
            self._answer(asked, answer, subject)
        except OSError:
            # The client has not waited.
            asked.close_connection = True

    def _record(self, asked, body):
        """(lines, the subject of the token, the assertion)"""
        lines = [f"{asked.command} {'/'.join(['', *asked.path.split('/')[2:]])}", *(f"{name}: {asked.headers.get(name)}" for name in HEADERS)]
        subject, assertion = "by-nothing", None
        authorization = asked.headers.get("Authorization")
        if authorization is not None:
            kind, _, credentials = authorization.partition(" ")
            try:
                credentials = base64.b64decode(credentials, validate=True).decode(errors="backslashreplace")
            except ValueError:
                credentials = f"no base64: {credentials}"
            lines.append(f"Authorization: {kind} {credentials}")
            subject = "by-secret"
        for key, value in sorted(parse_qsl(body, keep_blank_values=True)):
            if key in ("assertion", "client_assertion"):
                found, claims = _assertion(value, self.keys)
                lines += [f"{key}: {line}" for line in found]
                subject, assertion = "by-" + key.replace("_", "-"), value
                if claims.get("sub") == "alice":
                    subject = "alice"
            else:
                lines.append(f"{key}={value}")
        return lines, subject, assertion

    def _answer(self, asked, answer, subject):
        if answer.body is None:
            asked.close_connection = True
            return
        body = answer.body.replace("TOKEN", self.token(subject, answer.claims) if "TOKEN" in answer.body else "").encode()
        asked.send_response(answer.status)
        for key, value in {"Content-Type": "application/json", **answer.headers}.items():
            asked.send_header(key, value)
        if answer.is_chunked:
            asked.send_header("Transfer-Encoding", "chunked")
            asked.end_headers()
            for piece in (body[:7], body[7:], b""):
                asked.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            return
        asked.send_header("Content-Length", str(len(body)))
        asked.end_headers()
        asked.wfile.write(body)

    def close(self):
        self.server.shutdown()
        self.server.server_close()
