"""Attacks on TLS. The good producer is on the attacked listener."""

import contextlib
import ssl
import subprocess
import time
from collections import Counter
from pathlib import Path

from harness.process import spawn
from peer import Attack, connect, exchange, frame, shown

CHAIN = 100


def client(authority, store=None):
    """A client's context; `store`: the PEM file of its own key and chain."""
    context = ssl.create_default_context(cafile=authority)
    if store:
        context.load_cert_chain(store)
    return context


class OverTls(Attack):
    listener, protocol = "TLS", "SSL"

    def arrange(self, directory):
        self.server.open(TLS="SSL", MUTUAL="SSL")
        self.server.overrides["listener.name.mutual.ssl.client.auth"] = "required"
        self.authority = self.server.use_tls(directory)

    def good(self):
        return self.server.through("TLS")

    def shake(self, context, listener="TLS", within=20):
        """A TLS connection on which a request is answered, or what came of it instead."""
        raw = connect(self.server.ports[listener], within)
        try:
            with contextlib.closing(context.wrap_socket(raw, server_hostname="127.0.0.1")) as connection:
                return "answered" if exchange(connection, frame(18, 0, b"")) else "closed"
        except ssl.SSLError as error:
            return f"refused ({(error.reason or str(error)).lower().replace('_', ' ')})"
        except OSError as error:
            return f"refused ({type(error).__name__})"
        finally:
            raw.close()


class Handshakes(OverTls):
    name, what = "handshakes", "10,000 full TLS handshakes, each with one request, from 8 threads"
    count, threads, seconds = 10_000, 8, 40

    def run(self):
        outcomes, begun = Counter(), time.monotonic()

        def work(number):
            # A context of its own each time would cost the client more than the handshake; no session is offered again by Python's sockets.
            context = client(self.server.keys.authority)
            for _ in range(self.count // self.threads):
                if self.over.is_set():
                    break
                outcomes[self.shake(context)] += 1
        self.in_threads(self.threads, work)
        took = time.monotonic() - begun
        self.note += f"{shown(outcomes)} in {took:.0f} s"


class Renegotiation(OverTls):
    name, what = "renegotiation", "clients of TLS 1.2 that ask for a new handshake in an established session, from 4 threads, one connection after the other"

    def run(self):
        outcomes = Counter()

        def work(number):
            while not self.over.is_set():
                outcomes[self.renegotiate()] += 1
        self.in_threads(4, work)
        self.note += shown(outcomes)

    def renegotiate(self):
        """By openssl's client, whose letter R asks for it."""
        words = ["openssl", "s_client", "-tls1_2", "-connect", f"127.0.0.1:{self.server.ports['TLS']}", "-CAfile", self.server.keys.authority]
        process = spawn(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        try:
            said = ""
            while "Verify return code" not in said:
                line = process.stdout.readline()
                if not line:
                    return "no handshake"
                said += line
            process.stdin.write("R\n")
            process.stdin.flush()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
        except OSError:
            pass
        is_open = process.poll() is None
        process.kill()
        said = process.communicate()[0]
        if "no renegotiation" in said:
            return "refused with no_renegotiation"
        if is_open:
            return "RENEGOTIATED" if "depth=" in said else "ignored"
        return "closed with an alert" if "alert" in said else "closed"


def chain(directory, authority, name, is_true):
    """A client's key and CHAIN certificates in one PEM file. `is_true`: each signed by the one before it, the first by the authority. Else all have one name and
    one key, and each may have signed each: a search for a path through them has no end but its bound, and none leads to the authority."""
    directory = Path(directory)

    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=directory, check=True, capture_output=True)

    openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{name}.key")
    openssl("pkcs8", "-topk8", "-nocrypt", "-in", f"{name}.key", "-out", f"{name}.pk8")
    above, key_above, made = (authority.certificate, str(Path(authority.certificate).with_suffix(".key")), []) if is_true else (None, None, [])
    for number in range(CHAIN):
        is_leaf = number == CHAIN - 1
        subject = f"/CN={name}{number}" if is_true or is_leaf else f"/CN={name}"
        signed_by = ["-CA", above, "-CAkey", key_above] if above else []
        openssl("req", "-x509", "-new", "-key", f"{name}.key", "-subj", subject, "-days", "2", "-addext", f"basicConstraints=critical,CA:{'false' if is_leaf else 'true'}",
                "-out", f"{name}{number}.pem", *signed_by)
        made.append((directory / f"{name}{number}.pem").read_text())
        if is_true or number == 0:
            above, key_above = f"{name}{number}.pem", f"{name}.key"
    store = directory / f"{name}.store.pem"
    store.write_text((directory / f"{name}.pk8").read_text() + "".join(reversed(made)))
    return str(store)


class LongChains(OverTls):
    name, what = "long chains", "clients that show 100 certificates from 8 threads: a true chain from the authority, and 100 of one name and one key"

    def stage(self):
        directory = Path(self.server.keys.authority).parent
        self.stores = {"true": chain(directory, self.authority, "long", True), "one name": chain(directory, self.authority, "same", False)}

    def run(self):
        outcomes = Counter()

        def work(number):
            label = list(self.stores)[number % 2]
            context = client(self.server.keys.authority, self.stores[label])
            while not self.over.is_set():
                outcomes[f"{label}: {self.shake(context, 'MUTUAL')}"] += 1
        self.in_threads(8, work)
        self.note += shown(outcomes)


TLS = [Handshakes, Renegotiation, LongChains]
