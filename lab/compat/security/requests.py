"""How a client asks an issuer for a token: Apache's client and our tool with the same settings, each against a token endpoint of its own (endpoint.py).

A case is compared by what the endpoint was asked, request by request, and by what came of it: `as NAME`, the user that the broker made of the token, or `no login`.
Each user sees one topic alone, which has its name. The broker is ours in both. KIP-768, KIP-1139, KIP-1258.
"""

import json
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from compat import fetch
from harness.process import spawn
from harness.server import SMALL_JVM, java_words

from . import endpoint
from .endpoint import Answer, Endpoint, openssl
from .oauth import MODULE, take_tokens

PACKAGE = "org.apache.kafka.common.security.oauthbearer."
ALLOWED = "org.apache.kafka.sasl.oauthbearer.allowed."
# Of a token that the endpoint makes; `alice` where an assertion has this `sub`.
USERS = ("alice", "by-secret", "by-assertion", "by-client-assertion", "by-nothing")
ID, SECRET, SCOPE = "client.credentials.client.id", "client.credentials.client.secret", "scope"
KEY, FILE, TEMPLATE, ALGORITHM = "assertion.private.key.file", "assertion.file", "assertion.template.file", "assertion.algorithm"
RETRIEVER, URLENCODE = "jwt.retriever.class", "header.urlencode"
BEARER = f"{PACKAGE}JwtBearerJwtRetriever"
PASSPHRASE = "key-secret"


class Keys:
    """The issuer's key, a client's keys of each form, templates, assertions and tokens, in a directory."""

    def __init__(self, directory):
        fetch._need("openssl")
        directory.mkdir(parents=True)
        self.directory, self.keys, self.issuer = directory, directory / "jwks.json", directory / "issuer.pem"
        with ThreadPoolExecutor() as pool:
            made = [pool.submit(openssl, "genpkey", "-out", str(self.path(name)), *words) for name, words in (
                ("issuer", ("-algorithm", "RSA")), ("rsa", ("-algorithm", "RSA")), ("ec", ("-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256")),
                ("p384", ("-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384")))]
            for each in made:
                each.result()
        rsa, ec = str(self.path("rsa")), str(self.path("ec"))
        encrypt = ("pkcs8", "-topk8", "-v2", "aes-256-cbc", "-passout", f"pass:{PASSPHRASE}")
        openssl("rsa", "-in", rsa, "-pubout", "-out", str(directory / "RS256.public.pem"))
        openssl("ec", "-in", ec, "-pubout", "-out", str(directory / "ES256.public.pem"))
        openssl("rsa", "-in", rsa, "-traditional", "-out", str(self.path("rsa-pkcs1")))
        openssl(*encrypt, "-in", rsa, "-out", str(self.path("rsa-encrypted")))
        openssl(*encrypt, "-in", ec, "-out", str(self.path("ec-encrypted")))
        openssl("pkcs8", "-topk8", "-v1", "PBE-SHA1-3DES", "-passout", f"pass:{PASSPHRASE}", "-in", rsa, "-out", str(self.path("rsa-pbes1")))
        self.keys.write_text(endpoint.jwks(self.issuer))
        now = int(time.time())
        assertion = endpoint.signed({"alg": "RS256", "kid": "pre"}, {"sub": "alice", "iss": "other-program", "iat": now - 100, "exp": now + 300}, self.path("rsa"))
        for name, text in (("assertion", assertion), ("assertion-line", f"{assertion}\n"), ("no-assertion", "not a token"), ("empty", "")):
            self.path(name).write_text(text)
        for name, template in TEMPLATES.items():
            self.path(name).write_text(template if isinstance(template, str) else json.dumps(template))
        right = {"sub": "alice", "aud": "kafka", "iss": "https://issuer", "iat": now - 5, "exp": now + 600}
        token = endpoint.signed({"alg": "RS256", "kid": "k"}, right, self.issuer)
        self.path("token").write_text(token)
        self.path("token-line").write_text(f"  {token}\n\n")

    def path(self, name):
        return self.directory / f"{name}.pem"


# `.pem` stands behind each name, as behind the keys'.
TEMPLATES = {
    "template": {"header": {"kid": "k7"}, "payload": {"role": "broker", "iss": "of-template"}},
    "template-types": {"header": {"kid": 7}, "payload": {"text": "é\"\\ ☃", "whole": 12, "negative": -1, "large": 12345678901234, "part": 1.5, "yes": True, "none": None,
                                                        "list": ["a", 1, False], "map": {"a": {"b": [1]}}}},
    "template-times": {"header": {"alg": "none"}, "payload": {"iat": 1, "exp": 2, "nbf": 3, "jti": "given", "aud": ["a", "b"]}},
    "template-typ": {"header": {"typ": "at+jwt"}},
    "template-header": {"header": {"kid": "k7"}},
    "template-payload": {"payload": {"sub": "alice"}},
    "template-empty": {},
    "template-more": {"header": {}, "payload": {}, "other": 1},
    "template-null": {"header": None, "payload": None},
    "template-list": [],
    "template-part": {"payload": "text"},
    "template-torn": '{"payload":',
}


@dataclass
class Case:
    """`settings`: names without `sasl.oauthbearer.`, or whole; `options`: of the login module. Files are names of `Keys`."""

    label: str
    settings: dict = field(default_factory=dict)
    options: dict = field(default_factory=dict)
    answers: tuple = (Answer(),)
    url: str = ""


def cases():
    secret = {ID: "client", SECRET: "secret"}
    # By client credentials: Kafka takes the assertion where an issuer or a file is set.
    made = {ID: "client", KEY: "rsa", "assertion.claim.iss": "client", "assertion.claim.sub": "alice", "assertion.claim.aud": "https://issuer"}
    bearer = {RETRIEVER: BEARER, KEY: "rsa", "assertion.claim.iss": "client", "assertion.claim.sub": "alice", "assertion.claim.aud": "https://issuer"}
    return [*_secrets(secret), *_assertions("client assertion", made), *_assertions("JWT bearer", bearer), *_choices(secret, made, bearer), *_answers(secret),
            *_retried(made, bearer), *_files()]


def _secrets(secret):
    odd = {ID: "cli ent:é", SECRET: "a:b%20+/=&~*é\" "}
    return [
        Case("secret", secret),
        Case("secret, scope", {**secret, SCOPE: "read"}),
        Case("secret, scopes with characters to encode", {**secret, SCOPE: "read write&all=é"}),
        Case("secret, scopes with characters to encode, header.urlencode", {**secret, SCOPE: "read write&all=é", URLENCODE: "true"}),
        Case("secret, blank scope", {**secret, SCOPE: " "}),
        Case("secret, odd characters", odd),
        Case("secret, odd characters, header.urlencode", {**odd, URLENCODE: "true"}),
        Case("secret, header.urlencode=false", {**odd, URLENCODE: "false"}),
        Case("secret, header.urlencode=TRUE", {**secret, SECRET: "a:b", URLENCODE: "TRUE"}),
        Case("secret, header.urlencode=yes", {**secret, URLENCODE: "yes"}),
        Case("secret, options of the login module", {}, {"clientId": "client", "clientSecret": "sec:ret", "scope": "read write"}),
        Case("secret, options of the login module, header.urlencode", {URLENCODE: "true"}, {"clientId": "client", "clientSecret": "sec:ret", "scope": "read write"}),
        Case("secret, options of the login module with blanks", {}, {"clientId": " client ", "clientSecret": " secret ", "scope": " read "}),
        Case("secret, keys and options", {**secret, SCOPE: "read"}, {"clientId": "other", "clientSecret": "other", "scope": "other"}),
        Case("secret, id as key and secret as option", {ID: "client"}, {"clientSecret": "of-option"}),
        Case("secret, ClientCredentialsJwtRetriever", {**secret, RETRIEVER: f"{PACKAGE}ClientCredentialsJwtRetriever"}),
        Case("secret, DefaultJwtRetriever", {**secret, RETRIEVER: f"{PACKAGE}DefaultJwtRetriever"}),
        Case("secret, ClientJwtValidator", {**secret, "jwt.validator.class": f"{PACKAGE}ClientJwtValidator"}),
        Case("secret, DefaultJwtValidator", {**secret, "jwt.validator.class": f"{PACKAGE}DefaultJwtValidator"}),
        Case("secret, URL with a query", secret, url="?tenant=a%20b&x"),
        Case("no secret", {ID: "client"}),
        Case("no id", {SECRET: "secret"}),
        Case("no id, no secret"),
    ]


def _assertions(flow, made):
    def case(label, more=None, without=(), **rest):
        return Case(f"{flow}, {label}", {key: value for key, value in {**made, **(more or {})}.items() if key not in without}, **rest)

    ec = {KEY: "ec", ALGORITHM: "ES256"}
    template = {TEMPLATE: "template"}
    claims = tuple(f"assertion.claim.{name}" for name in ("iss", "sub", "aud"))
    return [
        case("RS256"), case("ES256", ec), case("RS256 by name", {ALGORITHM: "RS256"}), case("es256 in small letters", {**ec, ALGORITHM: "es256"}),
        case("RS384", {ALGORITHM: "RS384"}), case("ES256 with an RSA key", {ALGORITHM: "ES256"}), case("RS256 with a P-256 key", {KEY: "ec"}),
        case("ES256 with a P-384 key", {**ec, KEY: "p384"}),
        case("PKCS#1 key", {KEY: "rsa-pkcs1"}), case("no key in the file", {KEY: "empty"}), case("no such key file", {KEY: "missing"}),
        case("encrypted RSA key", {KEY: "rsa-encrypted", "assertion.private.key.passphrase": PASSPHRASE}),
        case("encrypted P-256 key", {**ec, KEY: "ec-encrypted", "assertion.private.key.passphrase": PASSPHRASE}),
        case("RSA key encrypted by PBES1", {KEY: "rsa-pbes1", "assertion.private.key.passphrase": PASSPHRASE}),
        case("encrypted key, wrong passphrase", {KEY: "rsa-encrypted", "assertion.private.key.passphrase": "wrong"}),
        case("encrypted key, no passphrase", {KEY: "rsa-encrypted"}), case("passphrase, and a key that is not encrypted", {"assertion.private.key.passphrase": "x"}),
        case("no id", without=(ID,)), case("id as option", without=(ID,), options={"clientId": "of-option"}),
        case("blank id", {ID: " "}), case("secret alone as option", options={"clientSecret": "of-option"}),
        case("scope", {SCOPE: "read write&all=é"}), case("scope as option", options={"scope": "read write"}),
        case("scope, header.urlencode", {SCOPE: "read write", URLENCODE: "true"}),
        case("jti", {"assertion.claim.jti.include": "true"}), case("jti=false", {"assertion.claim.jti.include": "false"}),
        case("exp and nbf", {"assertion.claim.exp.seconds": "7", "assertion.claim.nbf.seconds": "3"}),
        case("exp and nbf of 0", {"assertion.claim.exp.seconds": "0", "assertion.claim.nbf.seconds": "0"}),
        case("exp of more than a day", {"assertion.claim.exp.seconds": "86401"}), case("nbf of more than an hour", {"assertion.claim.nbf.seconds": "3601"}),
        case("exp of less than 0", {"assertion.claim.exp.seconds": "-1"}), case("exp of a text", {"assertion.claim.exp.seconds": "five"}),
        case("jti=yes", {"assertion.claim.jti.include": "yes"}), case("blank sub", {"assertion.claim.sub": " "}), case("blank iss", {"assertion.claim.iss": " "}),
        case("aud with a comma", {"assertion.claim.aud": "a,b"}), case("iss alone", without=claims[1:]), case("no claims", without=claims),
        case("claims without iss", without=claims[:1]),
        case("template", template), case("template, no claims but iss", template, without=claims[1:]), case("template, no claims", template, without=claims),
        case("template, types", {TEMPLATE: "template-types"}), case("template, times", {TEMPLATE: "template-times"}),
        case("template, times and jti", {TEMPLATE: "template-times", "assertion.claim.jti.include": "true"}),
        *(case(name.replace("-", ", "), {TEMPLATE: name}) for name in TEMPLATES if name not in ("template", "template-types", "template-times")),
        case("template, no such file", {TEMPLATE: "missing"}), case("template, ES256", {**template, **ec}),
        case("assertion file", {FILE: "assertion"}, without=(KEY,)), case("assertion file with an end of line", {FILE: "assertion-line"}, without=(KEY, *claims)),
        case("assertion file and key", {FILE: "assertion"}), case("assertion file alone", {FILE: "assertion"}, without=(ID, KEY, *claims)),
        case("assertion file, scope", {FILE: "assertion", SCOPE: "read"}, without=(KEY,)),
        case("assertion file without a token", {FILE: "no-assertion"}, without=(KEY, *claims)), case("empty assertion file", {FILE: "empty"}, without=(KEY, *claims)),
        case("no such assertion file", {FILE: "missing"}, without=(KEY, *claims)),
    ]


def _choices(secret, made, bearer):
    return [
        Case("choice, secret and key with iss", {**made, **secret}),
        Case("choice, secret and key without iss", {**{key: value for key, value in made.items() if not key.endswith("iss")}, **secret}),
        Case("choice, secret and assertion file", {**secret, FILE: "assertion"}),
        Case("choice, secret and blank assertion file", {**secret, FILE: ""}),
        Case("choice, secret and iss without a key", {**secret, "assertion.claim.iss": "client"}),
        Case("choice, JWT bearer and secret", {**bearer, **secret}),
        Case("choice, JWT bearer without key and file", {RETRIEVER: BEARER, "assertion.claim.iss": "client"}),
        Case("choice, ClientCredentialsJwtRetriever and key", {**made, RETRIEVER: f"{PACKAGE}ClientCredentialsJwtRetriever"}),
        Case("choice, DefaultJwtRetriever and key", {**made, RETRIEVER: f"{PACKAGE}DefaultJwtRetriever"}),
        Case("choice, FileJwtRetriever and an issuer", {**secret, RETRIEVER: f"{PACKAGE}FileJwtRetriever"}),
    ]


def _answers(secret):
    ok, wrong = Answer(), '{"error":"invalid_client","error_description":"no such client"}'

    def case(label, *answers, **more):
        return Case(f"answer, {label}", {**secret, **more}, answers=answers)

    def body(text, **more):
        return Answer(body=text, **more)

    slow = {"sasl.login.read.timeout.ms": "800", "sasl.login.retry.backoff.max.ms": "3000"}
    return [
        *(case(f"{status} invalid_client", Answer(status, wrong)) for status in (400, 401, 403)),
        *(case(f"{status}, then success", Answer(status, wrong), ok) for status in (400, 401, 403, 404, 408, 409, 429, 500, 501, 502, 503, 504, 505)),
        case("500 twice, then success", Answer(500, ""), Answer(500, ""), ok), case("503 always", Answer(503, "")),
        case("201", Answer(201)), case("202", Answer(202)), case("202, then success", Answer(202), ok), case("204", Answer(204, "")),
        case("in chunks", Answer(is_chunked=True)), case("of another content type", Answer(headers={"Content-Type": "text/plain"})),
        case("a redirect", Answer(302, "", headers={"Location": "elsewhere"}), ok), case("a redirect of its method (307)", Answer(307, "", headers={"Location": "elsewhere"}), ok),
        case("no body", body("")), case("no body, then success", body(""), ok), case("garbage", body("<html>no</html>")), case("garbage, then success", body("{"), ok),
        case("a list", body("[]")), case("no access_token", body('{"token_type":"Bearer"}')), case("no access_token, then success", body("{}"), ok),
        case("id_token alone", body('{"id_token":"TOKEN"}')), case("blank access_token, and id_token", body('{"access_token":" ","id_token":"TOKEN"}')),
        case("both tokens", body('{"access_token":"TOKEN","id_token":"x"}')), case("access_token with blanks", body('{"access_token":" TOKEN\\n"}')),
        case("access_token of a number", body('{"access_token":1}')), case("access_token null", body('{"access_token":null}')),
        case("an error with status 200", body(wrong)), case("with 70,000 more bytes", body('{"access_token":"TOKEN","more":"' + "x" * 70_000 + '"}')),
        case("with a byte order mark", body('\ufeff{"access_token":"TOKEN"}')),
        case("no token", body('{"access_token":"none"}')), case("no token, then success", body('{"access_token":"none"}'), ok),
        *(case(f"token {label}", Answer(claims=claims)) for label, claims in (
            ("that has ended", {"exp": -60}), ("without exp", {"exp": None}), ("without iat", {"iat": None}), ("without sub", {"sub": None}), ("with a blank sub", {"sub": " "}),
            ("that ends before it begins", {"iat": 900}), ("with a list of scopes", {"scope": ["a", "b"]}), ("with scopes of a text", {"scope": "a b"}),
            ("with a scope of a number", {"scope": 1}), ("of another audience", {"aud": "web"}))),
        case("token with another sub claim", Answer(claims={"name": "alice"}), **{"sub.claim.name": "name"}),
        case("no answer: closed", Answer(body=None)), case("no answer: closed, then success", Answer(body=None), ok),
        case("slow, within the timeout", Answer(after_s=0.1), **slow), case("slow, then success", Answer(after_s=2), ok, **slow),
        case("slow always", Answer(after_s=2), **slow),
    ]


def _retried(made, bearer):
    retried = (Answer(500, ""), Answer())
    return [Case(f"{flow}, 500, then success", {**settings, "assertion.claim.jti.include": "true"}, answers=retried)
            for flow, settings in (("client assertion", made), ("JWT bearer", bearer))]


def _files():
    return [
        Case("file of a token", url="token"), Case("file of a token, with blanks and ends of lines", url="token-line"), Case("file of a token, that is none", url="no-assertion"),
        Case("file of a token, FileJwtRetriever", {RETRIEVER: f"{PACKAGE}FileJwtRetriever"}, url="token"), Case("file of a token, empty", url="empty"),
        Case("file of a token, that there is not", url="missing"), Case("file of a token, JwtBearerJwtRetriever", {RETRIEVER: BEARER, KEY: "rsa"}, url="token"),
    ]


def _escaped(text):
    """As java.util.Properties reads it: Latin-1, with the rest escaped."""
    text = text.replace("\\", "\\\\").encode("utf-16-be")
    units = [int.from_bytes(text[at:at + 2]) for at in range(0, len(text), 2)]
    return "".join(chr(unit) if 31 < unit < 127 else f"\\u{unit:04x}" for unit in units)


FILES = (KEY, FILE, TEMPLATE)
# Of a client's reason: its end says what it is.
SAID_CHARS = 240


def write(path, case, number, server, asked, keys):
    """The settings of a client; the URL of its issuer."""
    options = "".join(f' {name}="{value}"' for name, value in case.options.items())
    url = keys.path(case.url).as_uri() if case.label.startswith("file of a token") else asked.url(f"c{number}") + case.url
    found = {
        "bootstrap.servers": server.sasl_address, "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f"{MODULE}LoginModule required{options};", "sasl.login.callback.handler.class": f"{MODULE}LoginCallbackHandler",
        "sasl.oauthbearer.token.endpoint.url": url, "sasl.login.retry.backoff.ms": "50", "sasl.login.retry.backoff.max.ms": "1000",
        "request.timeout.ms": "5000", "default.api.timeout.ms": "5000",
    }
    for name, value in case.settings.items():
        value = str(keys.path(value)) if name in FILES and value else value
        found[name if name.startswith("sasl.") else f"sasl.oauthbearer.{name}"] = value
    # Blanks at the end belong to the value.
    path.write_text("".join(f"{name}={_escaped(value)}\n" for name, value in found.items()))
    path.chmod(0o600)
    return url


@fetch.alone
def _classes():
    version, libraries = fetch._classpath("java", "java-client.xml", fetch.JAVA_CLIENT_VERSIONS)
    fetch._need("javac")
    # An optional library of the client, which its validator loads; the broker has it.
    libraries = ":".join([libraries, *(jar for jar in fetch.kafka()[1].split(":") if "/jose4j" in jar)])
    out, source = fetch.CACHE / "java" / "token-request", fetch.HERE / "security/clients/TokenRequest.java"
    out.mkdir(parents=True, exist_ok=True)
    fresh, seal = fetch._stamp(out, source.read_text(), libraries)
    if not fresh:
        fetch._run("token-request-javac", ["javac", "-nowarn", "-cp", libraries, "-d", str(out), str(source)])
        seal()
    return version, f"{out}:{libraries}"


class Java:
    """Apache's client: one JVM for all cases."""

    def __init__(self, urls, keys):
        version, classpath = _classes()
        self.label = f"Java {version}"
        files = sorted({str(keys.path(name)) for case in cases() for key, name in case.settings.items() if key in FILES and name})
        files += [url.removeprefix("file://") for url in urls if url.startswith("file:")]
        flags = (*SMALL_JVM, f"-D{ALLOWED}urls={','.join(urls)}", f"-D{ALLOWED}files={','.join(files)}")
        self.process = spawn(java_words(classpath, "TokenRequest", heap="192m", flags=flags, level="OFF"),
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def ask(self, path):
        """(whether it has logged in, the topics or the reason)"""
        self.process.stdin.write(f"{path}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().rstrip("\n")
        if not answer:
            raise RuntimeError("the JVM with Apache's client has ended")
        kind, _, said = answer.partition("\t")
        return kind == "ok", said

    def close(self):
        self.process.kill()
        self.process.wait()


class Ours:
    label = "our tool"

    def __init__(self, binary, address):
        self.words = [str(binary), "topics", "--bootstrap-server", address, "--list", "--command-config"]

    def ask(self, path):
        done = subprocess.run([*self.words, str(path)], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
        if done.returncode == 0:
            return True, " ".join(done.stdout.split())
        return False, (done.stderr.strip().splitlines() or ["no word"])[-1]

    def close(self):
        pass


def _prepare(server, binary):
    """A topic for each user, which it alone may see."""
    for user in USERS:
        for words in (("topics", "--create", "--topic", f"as-{user}"), ("acls", "--add", "--allow-principal", f"User:{user}", "--operation", "Describe", "--topic", f"as-{user}")):
            done = subprocess.run([str(binary), words[0], "--bootstrap-server", server.address, *words[1:]], capture_output=True, text=True, timeout=60)
            if done.returncode != 0:
                raise RuntimeError(f"barnabas {words[0]}: {(done.stdout + done.stderr).strip()[-300:]}")


def _numbered(requests):
    """The lines of the requests. How many fit into the time of `sasl.login.retry.backoff.max.ms` is chance: from the third on, equal ones are one."""
    lines = []
    for at, request in enumerate(requests):
        is_same = at > 0 and request == requests[at - 1]
        if at < 3 or not is_same:
            lines += [f"request {at + 1}: {line}" for line in (["the same again"] if is_same else request)]
    return lines


def _outcomes(client, asked, found, paths):
    """{label: (lines to compare, what the client says)}"""
    outcomes = {}
    for number, case in enumerate(found):
        is_in, said = client.ask(paths[number])
        with asked.lock:
            requests, assertions = asked.requests.get(f"c{number}", []), asked.assertions.get(f"c{number}", [])
        lines = _numbered(requests)
        if len(requests) > 1 and assertions:
            lines.append(f"{len(set(assertions))} different assertions")
        lines.append(said.replace("as-", "as ", 1) if is_in else "no login")
        outcomes[case.label] = lines, said
    return outcomes


def play(server, keys, binary, names):
    """The outcomes of each client of `names`, in their order: {label: (lines, what it says)}"""
    begun, found = time.monotonic(), cases()
    assert len({case.label for case in found}) == len(found)
    take_tokens(server, keys)
    script = {f"c{number}": case.answers for number, case in enumerate(found)}
    sides, paths, clients = [Endpoint(keys, script) for _ in names], [[] for _ in names], []
    try:
        for name, side, written in zip(names, sides, paths):
            directory = keys.directory / name
            directory.mkdir()
            urls = []
            for number, case in enumerate(found):
                written.append(directory / f"{number}.properties")
                urls.append(write(written[-1], case, number, server, side, keys))
            clients.append(Java(sorted(set(urls)), keys) if name == "kafka" else Ours(binary, server.sasl_address))
        server.start()
        _prepare(server, binary)
        with ThreadPoolExecutor(len(names)) as pool:
            played = list(pool.map(lambda client, side, written: _outcomes(client, side, found, written), clients, sides, paths))
    finally:
        for client in clients:
            client.close()
        for side in sides:
            side.close()
        server.kill()
    asked = ", ".join(f"{sum(len(requests) for requests in side.requests.values())} requests of {client.label}" for client, side in zip(clients, sides))
    print(f"  {len(found)} cases; {asked}; {time.monotonic() - begun:.0f} s", flush=True)
    return played


def compare(ours, theirs, explained):
    same, excused, wrong = 0, 0, 0
    for label, (lines, said) in ours.items():
        other, others_words = theirs[label]
        if lines == other:
            same += 1
            continue
        why = explained(label)
        excused, wrong = excused + bool(why), wrong + (not why)
        print(f"\n{label}{': known: ' + why if why else ''}")
        for name, mine, yours, words in (("Barnabas:    ", lines, other, said), ("Apache Kafka:", other, lines, others_words)):
            shown = [line for line in mine if line not in yours] or ["(nothing more)"]
            if len(yours) == 1:
                # The other asked for nothing: that this one asked is the difference.
                shown = ["asks for a token", mine[-1]]
            if mine[-1] == "no login":
                shown.append(f"says {words[-SAID_CHARS:]}")
            print("\n".join(f"    {name} {line}" for line in shown))
    return same, excused, wrong
