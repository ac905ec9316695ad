"""Key and trust stores of listeners by dynamic configuration: each change by IncrementalAlterConfigs or AlterConfigs, what a listener then shows to new
connections, whether old ones go on, and what DescribeConfigs says of it.

SSL is the listener of the brokers and wants client certificates; SECURE is a login over TLS. Both begin with the stores of the node's file.
"""

import json
import socket
import ssl
import time
from pathlib import Path

from .asking import Asking
from .tls import Authority

BROKER, STATIC_WITHIN_S = 4, 10
SET, DELETE, APPEND = 0, 1, 2
SSL, SECURE = "listener.name.ssl.", "listener.name.secure."


class Stores:
    """The files of a run."""

    def __init__(self, directory):
        self.directory = directory
        self.trusted, self.foreign = Authority(directory / "trusted", "authority"), Authority(directory / "foreign", "stranger")
        self.node = self.trusted.issue("node")
        self.renewed = self.trusted.issue("renewed", common_name="node")
        self.third = self.trusted.issue("third", common_name="node")
        self.other = self.trusted.issue("other")
        self.fewer = self.trusted.issue("fewer", common_name="node", names="DNS:localhost")
        self.stranger = self.foreign.issue("alien", common_name="node")
        self.pkcs12 = self.trusted.pkcs12("renewed", "storepass")
        self.garbage = directory / "garbage.pem"
        self.garbage.write_text("no store\n")

    def named(self, certificate):
        """Which pair's certificate these bytes are."""
        for name in ("node", "renewed", "third", "other", "fewer", "stranger"):
            with open(getattr(self, name).certificate) as file:
                if ssl.PEM_cert_to_DER_cert(file.read()) == certificate:
                    return name
        return "unknown"

    def keys(self):
        """Of the node's file: SSL has files, SECURE PEM text."""
        inline = {"keystore.key": self.node.key, "keystore.certificate.chain": self.node.certificate, "truststore.certificates": self.trusted.certificate}
        of_secure = {f"{SECURE}ssl.{name}": Path(file).read_text().replace("\n", "\\n") for name, file in inline.items()}
        return {f"{SSL}ssl.keystore.location": self.node.store, f"{SSL}ssl.truststore.location": self.trusted.certificate, f"{SSL}ssl.keystore.type": "PEM",
                f"{SSL}ssl.truststore.type": "PEM", f"{SECURE}ssl.keystore.type": "PEM", f"{SECURE}ssl.truststore.type": "PEM", **of_secure}


class _Stage:
    def __init__(self, server, stores, is_verbose):
        self.server, self.stores, self.is_verbose, self.results = server, stores, is_verbose, {}
        self.asking = Asking(server)

    def alter(self, label, *changes, resource="1", legacy=False, validate_only=False):
        """`changes`: (name, value), or (name, value, operation)."""
        configs = [{"name": name, "value": value, **({} if legacy else {"configOperation": operation[0] if operation else SET})} for name, value, *operation in changes]
        api, version = ("AlterConfigs", 2) if legacy else ("IncrementalAlterConfigs", 1)
        answer = self.asking.ask(api, version, validateOnly=validate_only, resources=[{"resourceType": BROKER, "resourceName": resource, "configs": configs}])
        found = answer.get("responses") or [answer]
        self.results[label] = " ".join(str(each.get("errorCode", each)) for each in found)
        if self.is_verbose:
            print(f"    {self.server.label} {label}: {[(each.get('errorCode'), each.get('errorMessage')) for each in found]}")
        return found[0].get("errorCode")

    def shows(self, label, protocol, wanted=None):
        """Which certificate new connections get; waits for `wanted`."""
        until = time.monotonic() + STATIC_WITHIN_S
        while (name := self.certificate(protocol)) != wanted and wanted and time.monotonic() < until:
            time.sleep(0.2)
        self.results[label] = name

    def certificate(self, protocol):
        try:
            with self.connect(protocol) as connection:
                return self.stores.named(connection.getpeercert(binary_form=True))
        except OSError as error:
            return f"refused: {error}"

    def connect(self, protocol):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.load_cert_chain(self.stores.node.store)
        return context.wrap_socket(socket.create_connection(("127.0.0.1", self.server.port_of(protocol)), timeout=5))

    def described(self, label, *names):
        # A broker describes what it has learned of the metadata log: both a little after the change was answered.
        time.sleep(1)
        answer = self.asking.ask("DescribeConfigs", 4, includeSynonyms=True, includeDocumentation=False,
                                 resources=[{"resourceType": BROKER, "resourceName": "1", "configurationKeys": list(names) or None}])
        rows = []
        for config in answer["results"][0]["configs"] if "results" in answer else [answer]:
            synonyms = [(each["name"], each["source"], each["value"]) for each in config.get("synonyms", [])]
            rows.append((config.get("name"), config.get("configSource"), config.get("isSensitive"), config.get("readOnly"), config.get("value"), synonyms))
        hidden = json.dumps(sorted(rows, key=repr)).replace(str(self.stores.directory), "<dir>")
        self.results[label] = hidden

    def close(self):
        self.asking.close()


def asked(connection):
    """What comes of an ApiVersions 0."""
    try:
        connection.sendall(bytes.fromhex("0000000a00120000000000010000"))
        size = int.from_bytes(connection.recv(4), "big")
        while size > 0:
            size -= len(connection.recv(size))
        return "answered"
    except OSError as error:
        return f"closed: {error}"


def _play(stage, stores):
    def location(prefix, pair):
        return f"{prefix}ssl.keystore.location", pair.store

    begun = stage.connect("SSL")
    stage.results["a connection"] = asked(begun)
    stage.shows("SSL begins", "SSL")
    stage.shows("SECURE begins", "SASL_SSL")
    # What may be set where.
    stage.alter("store without a prefix", ("ssl.keystore.location", stores.renewed.store))
    stage.alter("store without a prefix, for all", ("ssl.keystore.location", stores.renewed.store), resource="")
    stage.alter("store of a listener, for all", location(SSL, stores.renewed), resource="")
    stage.alter("store of a listener, for another broker", location(SSL, stores.renewed), resource="2")
    for name, value in (("ssl.client.auth", "none"), ("ssl.cipher.suites", "TLS_AES_128_GCM_SHA256"), ("ssl.enabled.protocols", "TLSv1.2"), ("ssl.principal.mapping.rules", "RULE:^CN=(.*)$/$1/"),
                        ("ssl.endpoint.identification.algorithm", ""), ("ssl.protocol", "TLSv1.2"), ("ssl.allow.dn.changes", "true"), ("ssl.keymanager.algorithm", "PKIX"),
                        ("ssl.engine.factory.class", "org.apache.kafka.common.security.ssl.DefaultSslEngineFactory"), ("principal.builder.class", "a.B")):
        stage.alter(f"{name} without a prefix", (name, value))
        stage.alter(f"{name} without a prefix, for all", (name, value), resource="")
        stage.alter(f"{name} of a listener", (SSL + name, value))
        stage.alter(f"{name} of a listener, for all", (SSL + name, value), resource="")
        for resource in ("1", ""):
            stage.alter(f"{name} is unset, for {resource or 'all'}", (name, None, DELETE), (SSL + name, None, DELETE), resource=resource)
    stage.alter("ssl.cipher.suites of a listener, appended", (SSL + "ssl.cipher.suites", "TLS_AES_128_GCM_SHA256", APPEND))
    stage.alter("ssl.client.auth of a listener, no such value", (SSL + "ssl.client.auth", "maybe"))
    stage.alter("store of a listener that there is not", ("listener.name.none.ssl.keystore.location", stores.renewed.store))
    stage.alter("store of a listener that there is not, no file", ("listener.name.none.ssl.keystore.location", "/no/such"))
    # Stores that do not open.
    for api, legacy in (("", False), ("AlterConfigs: ", True)):
        stage.alter(f"{api}no such file", (SSL + "ssl.keystore.location", "/no/such/file"), legacy=legacy)
        stage.alter(f"{api}no store", (SSL + "ssl.keystore.location", str(stores.garbage)), legacy=legacy)
        stage.alter(f"{api}wrong type", (SSL + "ssl.keystore.type", "PKCS12"), legacy=legacy)
        stage.alter(f"{api}wrong password", (SSL + "ssl.keystore.type", "PKCS12"), (SSL + "ssl.keystore.location", stores.pkcs12), (SSL + "ssl.keystore.password", "wrong"), legacy=legacy)
        stage.alter(f"{api}another name", location(SSL, stores.other), legacy=legacy)
        stage.alter(f"{api}a host less", location(SSL, stores.fewer), legacy=legacy)
        stage.alter(f"{api}of a foreign authority, brokers' listener", location(SSL, stores.stranger), legacy=legacy)
        stage.alter(f"{api}trust store is no file", (SSL + "ssl.truststore.location", "/no/such/file"), legacy=legacy)
        stage.alter(f"{api}trust store that does not trust the node", (SSL + "ssl.truststore.location", stores.foreign.certificate), legacy=legacy)
        stage.alter(f"{api}validated only, no such file", (SSL + "ssl.keystore.location", "/no/such/file"), legacy=legacy, validate_only=True)
        stage.alter(f"{api}validated only", location(SSL, stores.renewed), legacy=legacy, validate_only=True)
        stage.shows(f"{api}SSL after refusals", "SSL")
    # Stores that do.
    stage.alter("renewed", location(SSL, stores.renewed))
    stage.shows("SSL after a change", "SSL", "renewed")
    stage.shows("SECURE after a change of SSL", "SASL_SSL")
    alien = [open(name).read() for name in (stores.stranger.key, stores.stranger.certificate)]
    stage.alter("of a foreign authority, clients' listener", (SECURE + "ssl.keystore.key", alien[0]), (SECURE + "ssl.keystore.certificate.chain", alien[1]))
    stage.shows("SECURE after its change", "SASL_SSL", "stranger")
    stage.described("described, of a listener", SSL + "ssl.keystore.location")
    pem = [open(name).read() for name in (stores.third.key, stores.third.certificate, stores.trusted.certificate)]
    key, chain, trust = (SECURE + name for name in ("ssl.keystore.key", "ssl.keystore.certificate.chain", "ssl.truststore.certificates"))
    stage.alter("back to what the file says", location(SSL, stores.renewed))
    stage.alter("location beside an inline key", location(SECURE, stores.renewed))
    stage.alter("inline", (key, pem[0]), (chain, pem[1]))
    stage.shows("SECURE with another inline key", "SASL_SSL", "third")
    stage.alter("inline key that is not", (key, "no key"))
    stage.alter("inline key of another certificate", (key, open(stores.other.key).read()))
    stage.alter("inline chain that is not", (chain, "no certificate"))
    stage.alter("inline trust", (trust, pem[2]))
    stage.alter("inline trust that is not", (trust, "no certificate"))
    stage.alter("password beside inline keys", (SECURE + "ssl.keystore.password", "x"))
    stage.described("described, inline", key, chain, trust)
    stage.alter("PKCS12, a wrong password", (SSL + "ssl.keystore.type", "PKCS12"), (SSL + "ssl.keystore.location", stores.pkcs12), (SSL + "ssl.keystore.password", "wrong"))
    stage.alter("PKCS12", (SSL + "ssl.keystore.type", "PKCS12"), (SSL + "ssl.keystore.location", stores.pkcs12), (SSL + "ssl.keystore.password", "storepass"))
    stage.shows("SSL with PKCS12", "SSL", "renewed")
    stage.described("described, with a password", SSL + "ssl.keystore.password")
    stage.alter("the same key again", location(SSL, stores.renewed), (SSL + "ssl.keystore.type", "PEM"), (SSL + "ssl.keystore.password", None, DELETE))
    stage.shows("SSL with PEM", "SSL", "renewed")
    stage.alter("a SASL key of an open listener", ("listener.name.secure.sasl.enabled.mechanisms", "PLAIN"))
    stage.alter("users of an open listener", ("listener.name.secure.plain.sasl.jaas.config", 'org.apache.kafka.common.security.plain.PlainLoginModule required user_x="y";'))
    stage.described("described, users", "listener.name.secure.plain.sasl.jaas.config")
    # What AlterConfigs does not name is unset.
    stage.alter("AlterConfigs: all of it", location(SSL, stores.third), legacy=True)
    stage.shows("SSL after AlterConfigs", "SSL", "third")
    stage.shows("SECURE after AlterConfigs", "SASL_SSL", "node")
    stage.alter("AlterConfigs: nothing", legacy=True)
    stage.shows("SSL after nothing is set", "SSL", "node")
    stage.described("described at the end", SSL + "ssl.keystore.location")
    stage.results["a connection of before"] = asked(begun)


def play(server, stores, is_verbose):
    """{what was done: what came of it}"""
    begun = time.monotonic()
    server.start()
    try:
        stage = _Stage(server, stores, is_verbose)
        try:
            _play(stage, stores)
        finally:
            stage.close()
    finally:
        server.kill()
    print(f"  {server.label}: {len(stage.results)} answers about stores; {time.monotonic() - begun:.0f} s", flush=True)
    return stage.results
