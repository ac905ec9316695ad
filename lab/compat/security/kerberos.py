"""GSSAPI: a KDC of MIT on loopback, keytabs, clients with tickets, our tools among them, and forged tokens (forge.py), the same on Barnabas and on
Apache Kafka. Then three nodes, one of them Apache's, that log in to each other by tickets, as brokers and as controllers.

The KDC is Debian's, unpacked beside the other clients; nothing is installed. Realm EXAMPLE.COM; alice, bob and carol have keytabs, kafka/localhost is the
broker. Rules make user names of `alice`, `bob` and `batch/…` alone. Topic `logins` may be written by alice and batch.
"""

import os
import subprocess
import time

from compat import fetch
from harness.cluster import start
from harness.ports import free_port
from harness.process import spawn
from harness.server import HOST, Apache

from . import apaches, forge, logins
from .logins import Attempt, make_topic

REALM = "EXAMPLE.COM"
SERVICE = "kafka/localhost"
RULES = "RULE:[2:$1](batch),RULE:[1:$1@$0](alice@EXAMPLE\\\\.COM)s/@.*//,RULE:[1:$1@$0](bob@.*)s/@EXAMPLE\\\\.COM//"
PACKAGES = ("krb5-kdc", "krb5-admin-server", "krb5-user", "libkrb5-3", "libgssapi-krb5-2", "libk5crypto3", "libkrb5support0", "libkdb5-10", "libkadm5srv-mit12",
            "libkadm5clnt-mit12", "libgssrpc4", "libverto1", "libverto-libev1", "libev4", "libkeyutils1", "libsasl2-modules-gssapi-mit")
ENCTYPES = ("aes256-cts", "aes128-cts", "aes256-cts-hmac-sha384-192", "aes128-cts-hmac-sha256-128")


@fetch.alone
def packages():
    """The directory in which Debian's packages are unpacked."""
    root = fetch.CACHE / "kerberos"
    root.mkdir(parents=True, exist_ok=True)
    fresh, seal = fetch._stamp(root, *PACKAGES)
    if not fresh:
        fetch._need("apt-get")
        fetch._need("dpkg-deb")
        try:
            fetch._run("kerberos", ["apt-get", "download", *PACKAGES], cwd=root)
        except fetch.Missing:
            fetch._run("kerberos-lists", ["apt-get", "update"])
            fetch._run("kerberos", ["apt-get", "download", *PACKAGES], cwd=root)
        for package in sorted(root.glob("*.deb")):
            fetch._run("kerberos-unpack", ["dpkg-deb", "-x", str(package), str(root)])
            package.unlink()
        seal()
    return root


class Kdc:
    """A realm of its own on a free port, in a directory."""

    def __init__(self, directory):
        root = packages()
        directory.mkdir(parents=True)
        libraries = next((root / "usr/lib").glob("*-linux-gnu"))
        self.directory, self.conf, self.port = directory, directory / "krb5.conf", free_port()
        plugins = f"[dbmodules]\n db_module_dir = {libraries}/krb5/plugins/kdb\n"
        self.conf.write_text(
            f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n dns_lookup_realm = false\n dns_canonicalize_hostname = false\n rdns = false\n"
            f" udp_preference_limit = 1\n[realms]\n {REALM} = {{\n  kdc = {HOST}:{self.port}\n }}\n[domain_realm]\n localhost = {REALM}\n{plugins}")
        profile = directory / "kdc.conf"
        profile.write_text(
            f"[kdcdefaults]\n kdc_listen = {HOST}:{self.port}\n kdc_tcp_listen = {HOST}:{self.port}\n[realms]\n {REALM} = {{\n  database_name = {directory}/principal\n"
            f"  key_stash_file = {directory}/stash\n  max_life = 1h\n  max_renewable_life = 2h\n  supported_enctypes = {' '.join(f'{name}:normal' for name in ENCTYPES)}\n }}\n{plugins}"
            f"[logging]\n kdc = FILE:{directory}/kdc.log\n")
        self.env = {**os.environ, "KRB5_CONFIG": str(self.conf), "KRB5_KDC_PROFILE": str(profile), "LD_LIBRARY_PATH": str(libraries),
                    "SASL_PATH": str(libraries / "sasl2"), "PATH": f"{root}/usr/sbin:{root}/usr/bin:{os.environ['PATH']}"}
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master", "-W")
        self.process = spawn(["krb5kdc", "-n"], env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.keytabs = {}
        for principal in (SERVICE, "other/localhost", "alice", "bob", "carol", "batch/localhost"):
            self.keytabs[principal] = self.add(principal)
        # A keytab of one whom the KDC does not know.
        self.keytabs["mallory"] = self.add("mallory")
        self._run("kadmin.local", "-q", "delprinc -force mallory")

    def _run(self, *words):
        made = subprocess.run(words, env=self.env, capture_output=True, text=True, timeout=60)
        if made.returncode != 0:
            raise RuntimeError(f"{words[0]}: {(made.stdout + made.stderr).strip()[-300:]}")

    def add(self, principal):
        """A principal with random keys; the path of its keytab."""
        path = self.directory / f"{principal.replace('/', '-')}.keytab"
        self._run("kadmin.local", "-q", f"addprinc -randkey {principal}")
        self._run("kadmin.local", "-q", f"ktadd -norandkey -k {path} {principal}")
        return path

    def cache(self, principal, name, *flags):
        """The file of a ticket cache, as kinit writes it."""
        path = self.directory / f"{name}.cache"
        self._run("kinit", *flags, "-c", f"FILE:{path}", "-k", "-t", str(self.keytabs[principal]), principal)
        return path

    def renew(self, principal):
        """The next version of its keys, in its keytab beside the ones before."""
        self._run("kadmin.local", "-q", f"ktadd -k {self.keytabs[principal]} {principal}")

    def close(self):
        self.process.kill()
        self.process.wait()


def take_tickets(server, kdc):
    """The listener SASL of this server takes tickets."""
    # A ticket is for a name, and not for an address.
    server.sasl_name, prefix = "localhost", "listener.name.sasl.gssapi."
    server.overrides = {
        **server.overrides,
        f"{prefix}sasl.jaas.config": module(kdc, SERVICE),
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.principal.to.local.rules": RULES,
    }
    if isinstance(server, Apache):
        server.jvm = (*server.jvm, f"-Djava.security.krb5.conf={kdc.conf}")
    else:
        server.overrides["java.security.krb5.conf"] = str(kdc.conf)


def _java(kdc):
    version, (java, *words) = logins._java()
    return version, [java, f"-Djava.security.krb5.conf={kdc.conf}", *words]


def _go(kdc):
    version, words = logins._go()
    return version, ["env", f"KRB5_CONFIG={kdc.conf}", *words]


def _librdkafka(kdc):
    """Debian's, which has Cyrus SASL; the wheel has not."""
    version, (env, *words) = fetch.debian_python("confluent_driver.py", "confluent_kafka")()
    *words, _ = words
    libraries = next(word for word in words if word.startswith("LD_LIBRARY_PATH="))
    more = [f"{libraries}:{kdc.env['LD_LIBRARY_PATH']}", *(f"{name}={kdc.env[name]}" for name in ("KRB5_CONFIG", "SASL_PATH", "PATH"))]
    at = words.index(libraries)
    return version, [env, *words[:at], *more, *words[at + 1:], str(fetch.HERE / "security/clients/login.py"), "confluent"]


CLIENTS = (("java", _java), ("franz-go", _go), ("deb-rdkafka", _librdkafka))


def attempts(kdc):
    def attempt(label, principal, service="kafka"):
        return Attempt(label, "SASL_PLAINTEXT", "GSSAPI", f"{principal}@{REALM}", str(kdc.keytabs[principal]), service)

    return [attempt("right ticket", "alice"), attempt("right ticket, name by a rule", "batch/localhost"), attempt("ticket of one without rights", "bob"),
            attempt("ticket of one without a rule", "carol"), attempt("ticket for another service", "alice", "other"), attempt("no ticket: unknown to the KDC", "mallory")]


def _allow(server, *users):
    words = [word for user in users for word in ("--allow-principal", f"User:{user}")]
    code, printed = apaches.tool("org.apache.kafka.tools.AclCommand", "--bootstrap-server", server.address, "--add", "--topic", "logins", "--operation", "Write", *words)
    if code:
        raise RuntimeError(f"kafka-acls: {printed.strip()[-300:]}")


def module(kdc, principal):
    return ("com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true "
            f'keyTab="{kdc.keytabs[principal]}" principal="{principal}@{REALM}";')


def _our_tool(binary, server, kdc, attempt):
    return _produced(binary, server, kdc, module(kdc, attempt.user.split("@")[0]), attempt.ca)


def _produced(binary, server, kdc, jaas, service="kafka", **env):
    """What `barnabas console-producer` makes of a login module: `ok`, or the last line that it prints."""
    file = kdc.directory / f"tool-{server.port}.properties"
    file.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\nsasl.kerberos.service.name={service}\nsasl.jaas.config={jaas}\n"
                    "max.block.ms=8000\ndelivery.timeout.ms=8000\nrequest.timeout.ms=4000\n")
    done = subprocess.run([str(binary), "console-producer", "--bootstrap-server", f"localhost:{server.sasl_port}", "--topic", "logins", "--command-config", str(file)],
                          input="one\n", capture_output=True, text=True, timeout=60, env={**os.environ, "KRB5_CONFIG": str(kdc.conf), **env})
    printed = (done.stdout + done.stderr).strip().splitlines()
    said = printed[-1] if printed else "nothing"
    if done.returncode == 0 and not printed:
        return "ok"
    for words, short in (("authentication failed", "login refused"), ("no Kerberos ticket", "no ticket"), ("TOPIC_AUTHORIZATION_FAILED", "not authorized")):
        if words in said:
            return short
    return said.replace(str(server.sasl_port), "PORT")


def caches(binary, server, kdc):
    """{(client, label): what came of it} of our tool with ticket caches."""
    name = f"alice-{server.port}"
    def by_cache(options, **env):
        return _produced(binary, server, kdc, f"com.sun.security.auth.module.Krb5LoginModule required useTicketCache=true {options};", **env)
    alices, keytab = kdc.cache("alice", name), f'useKeyTab=true keyTab="{kdc.keytabs["alice"]}" principal="alice@{REALM}"'
    outcomes = {
        "right ticket of a cache": by_cache(f'ticketCache="{alices}" useKeyTab=false doNotPrompt=true'),
        "right ticket of a cache, by KRB5CCNAME": by_cache(f'principal="alice@{REALM}"', KRB5CCNAME=f"FILE:{alices}"),
        "ticket of a cache, without rights": by_cache(f'ticketCache="FILE:{kdc.cache("bob", f"bob-{server.port}")}"'),
        "no ticket: cache of another principal": by_cache(f'ticketCache="{alices}" principal="bob@{REALM}"'),
        "no ticket: no cache": by_cache('ticketCache="/nowhere/cache"'),
        "right ticket by keytab, where there is no cache": by_cache(f'ticketCache="/nowhere/cache" {keytab}'),
    }
    short = kdc.cache("alice", f"{name}-short", "-l", "10s", "-r", "1h")
    # Past four fifths of its life, and before its end.
    time.sleep(8.5)
    outcomes["right ticket of a cache, renewed"] = by_cache(f'ticketCache="{short}" renewTGT=true')
    if not any("TGS_REQ" in line and f"for krbtgt/{REALM}@{REALM}" in line for line in open(kdc.directory / "kdc.log", errors="replace")):
        outcomes["right ticket of a cache, renewed"] += ", and the KDC was not asked to renew it"
    time.sleep(3)
    outcomes["no ticket: cache that has ended"] = by_cache(f'ticketCache="{short}"')
    return {("barnabas tool", label): outcome for label, outcome in outcomes.items()}


def play(server, kdc, binary, clients=CLIENTS):
    """{(client, attempt): what came of it}"""
    begun = time.monotonic()
    server.start()
    results = {}
    try:
        make_topic(server, "logins")
        _allow(server, "alice", "batch")
        found = attempts(kdc)
        for client, get in clients:
            try:
                version, command = get(kdc)
            except fetch.Missing as missing:
                print(f"  {client}: {missing}")
                continue
            results.update({(f"{client} {version}", label): outcome for label, outcome in logins._talk(command, server, found)})
        results.update({("barnabas tool", attempt.label): _our_tool(binary, server, kdc, attempt) for attempt in found})
        results.update(caches(binary, server, kdc))
        key, foreign = (forge.keys(kdc.keytabs[principal])[f"{principal}@{REALM}"] for principal in (SERVICE, "other/localhost"))
        results.update({("forged", label): outcome for label, outcome in forge.play(server.sasl_port, key, foreign).items()})
    finally:
        server.kill()
    print(f"  {server.label}: {len(results)} logins by ticket; {time.monotonic() - begun:.0f} s", flush=True)
    return results


def links(nodes, kdc, binary):
    """{(what, label): what came of it} of three nodes that log in to each other by tickets."""
    begun, ports = time.monotonic(), {}
    voters = ",".join(f"{number}@localhost:{node.controller_port}" for number, node in nodes.items())
    for number, node in nodes.items():
        take_tickets(node, kdc)
        node.proxied, ports[number] = [], free_port()
        node.sasl_port = None
        node.overrides |= {
            "node.id": str(number), "controller.quorum.voters": voters,
            "listeners": f"PLAINTEXT://{HOST}:{node.port},SASL://{HOST}:{ports[number]},CONTROLLER://{HOST}:{node.controller_port}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{node.port},SASL://localhost:{ports[number]}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
            "inter.broker.listener.name": "SASL", "sasl.enabled.mechanisms": "GSSAPI",
            "sasl.mechanism.inter.broker.protocol": "GSSAPI", "sasl.mechanism.controller.protocol": "GSSAPI",
            "listener.name.controller.gssapi.sasl.jaas.config": module(kdc, SERVICE),
            # The brokers are kafka/localhost.
            "sasl.kerberos.principal.to.local.rules": "RULE:[2:$1](kafka)," + RULES,
        }
    try:
        start(list(nodes.values()))
        address = next(iter(nodes.values())).address
        results, until = {}, time.monotonic() + 60
        made = 1, "not asked"
        while made[0] and time.monotonic() < until:
            made = apaches.tool("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", address, "--create", "--if-not-exists", "--topic", "linked", "--partitions", "6",
                                "--replication-factor", "3")
        results["links", "right tickets: controllers and brokers make a topic"] = "ok" if made[0] == 0 else made[1].strip()[-200:]
        done = subprocess.run([str(binary), "producer-perf-test", "--bootstrap-server", address, "--topic", "linked", "--num-records", "2000", "--record-size", "100",
                               "--throughput", "-1", "--producer-props", "acks=all"], capture_output=True, text=True, timeout=120)
        results["links", "right tickets: records on three replicas"] = "ok" if done.returncode == 0 else done.stderr.strip()[-200:]
        # By a ticket as well: there is no authorizer.
        file, behind = kdc.directory / "links.properties", "not asked"
        file.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\nsasl.kerberos.service.name=kafka\nsasl.jaas.config={module(kdc, 'alice')}\n")

        def topics(*words):
            done = subprocess.run([str(binary), "topics", "--bootstrap-server", f"localhost:{ports[1]}", "--command-config", str(file), *words],
                                  capture_output=True, text=True, timeout=60, env={**os.environ, "KRB5_CONFIG": str(kdc.conf)})
            return (done.stdout + done.stderr).strip()
        while behind and time.monotonic() < until + 30:
            behind = topics("--describe", "--under-replicated-partitions")
        results["links", "right tickets: every replica is in sync"] = behind[:200] or "ok"
        kdc.renew(SERVICE)
        said, until = "not asked", time.monotonic() + 40
        while said != "linked" and time.monotonic() < until:
            said = topics("--list")
        results["links", "right tickets: of a new key, without a restart"] = "ok" if said == "linked" else said[:200]
        found = [line for node in nodes.values() if not isinstance(node, Apache) for line in open(node.log, errors="replace") if " ERROR " in line]
        results["links", "right tickets: no node of ours has logged an error"] = found[0].strip() if found else "ok"
    finally:
        for node in nodes.values():
            node.kill()
    print(f"  three nodes: {len(results)} questions; {time.monotonic() - begun:.0f} s", flush=True)
    return results
