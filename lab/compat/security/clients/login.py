"""Logs in once for each line of standard input and writes one record: `mechanism TAB user TAB password TAB port TAB protocol TAB authority TAB certificate TAB key` in, a line of what came of it out.

The first argument is the library: confluent, kafka-python or aiokafka.
"""

import asyncio
import os
import ssl
import sys
import time

# A client that is held writes for so long.
HELD_S = 8


def tls(protocol, authority, certificate, key):
    """For the libraries in Python; None without TLS."""
    if not protocol.endswith("SSL"):
        return None
    context = ssl.create_default_context(cafile=authority)
    if key:
        context.load_cert_chain(certificate, key)
    return context


def is_token(mechanism):
    """Then the password is the path of a file with a token, which is read for each login."""
    return mechanism == "OAUTHBEARER"


def token_in(path):
    with open(path) as file:
        return file.read()


def sasl(mechanism, user, password):
    return {"sasl_mechanism": mechanism, "sasl_plain_username": user, "sasl_plain_password": password} if mechanism else {}


def confluent(mechanism, user, password, port, protocol, authority, certificate, key):
    import confluent_kafka
    seen, done = [], []
    login = {"sasl.mechanism": mechanism, "sasl.username": user, "sasl.password": password} if mechanism else {}
    if is_token(mechanism):
        # Errors of librdkafka after this do not change what the server finds.
        login = {"sasl.mechanism": mechanism, "oauth_cb": lambda _: (token_in(password), time.time() + HELD_S / 2)}
    if mechanism == "GSSAPI":
        # The password is the path of a keytab, the authority the service's name. Each principal has its own cache of tickets.
        os.environ["KRB5CCNAME"] = f"{password}.cache"
        login = {"sasl.mechanism": mechanism, "sasl.kerberos.principal": user, "sasl.kerberos.keytab": password, "sasl.kerberos.service.name": authority}
    files = {"ssl.ca.location": authority, "ssl.certificate.location": certificate, "ssl.key.location": key} if protocol.endswith("SSL") else {}
    producer = confluent_kafka.Producer({
        # Tickets are for names.
        "bootstrap.servers": f"{'localhost' if mechanism == 'GSSAPI' else '127.0.0.1'}:{port}", "broker.address.family": "v4", "security.protocol": protocol, **login, **{name: path for name, path in files.items() if path},
        "message.timeout.ms": 15_000, "error_cb": seen.append}, logger=None)
    producer.produce("logins", user, callback=lambda error, _: done.append(error))
    for _ in range(160):
        producer.poll(0.1)
        refused = next((error for error in seen if error.code() in (confluent_kafka.KafkaError._AUTHENTICATION, confluent_kafka.KafkaError._SSL)), None)
        if refused or done:
            break
    until = time.monotonic() + (HELD_S if user == "held" else 0)
    while done == [None] and time.monotonic() < until:
        done.clear()
        producer.produce("logins", user, callback=lambda error, _: done.append(error))
        producer.flush(15)
        time.sleep(0.2)
    if done and done[0] is None:
        return "ok"
    if refused and refused.code() == confluent_kafka.KafkaError._SSL:
        return "TLS refused"
    if refused:
        return "login refused"
    other = (done or seen or ["no answer"])[0]
    # Debian's release cannot print its own errors.
    other = other if isinstance(other, str) else other.str()
    # Java sends bad_certificate where RFC 8446 has certificate_required: the words of the alert differ.
    return "TLS refused" if "SSL alert number" in other else f"other: {other}"


def kafka_python(mechanism, user, password, port, protocol, *files):
    import kafka
    from kafka import errors
    login = sasl(mechanism, user, password)
    if is_token(mechanism):
        from kafka.net.sasl.oauth import AbstractTokenProvider
        provider = type("Provider", (AbstractTokenProvider,), {"token": lambda self: token_in(password)})
        login = {"sasl_mechanism": mechanism, "sasl_oauth_token_provider": provider()}
    try:
        producer = kafka.KafkaProducer(bootstrap_servers=f"127.0.0.1:{port}", security_protocol=protocol, ssl_context=tls(protocol, *files),
                                       **login, max_block_ms=15_000, bootstrap_timeout_ms=6_000)
        until = time.monotonic() + (HELD_S if user == "held" else 0)
        producer.send("logins", user.encode()).get(15)
        while time.monotonic() < until:
            producer.send("logins", user.encode()).get(15)
            time.sleep(0.2)
        producer.close(5)
        return "ok"
    except (errors.SaslAuthenticationFailedError, errors.UnsupportedSaslMechanismError) as error:
        return f"login refused: {type(error).__name__}"
    except errors.KafkaError as error:
        return f"no connection: {type(error).__name__}"


async def _aiokafka(mechanism, user, password, port, protocol, *files):
    import aiokafka
    from aiokafka import errors
    login = sasl(mechanism, user, password)
    if is_token(mechanism):
        from aiokafka.abc import AbstractTokenProvider

        async def token(_):
            return token_in(password)
        login = {"sasl_mechanism": mechanism, "sasl_oauth_token_provider": type("Provider", (AbstractTokenProvider,), {"token": token})()}
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=f"127.0.0.1:{port}", security_protocol=protocol, ssl_context=tls(protocol, *files),
                                         **login, request_timeout_ms=15_000)
    try:
        await producer.start()
        until = time.monotonic() + (HELD_S if user == "held" else 0)
        await producer.send_and_wait("logins", user.encode())
        while time.monotonic() < until:
            await producer.send_and_wait("logins", user.encode())
            await asyncio.sleep(0.2)
        return "ok"
    except errors.KafkaError as error:
        return f"no connection: {type(error).__name__}"
    finally:
        await producer.stop()


def aiokafka(*asked):
    return asyncio.run(_aiokafka(*asked))


if __name__ == "__main__":
    import logging
    logging.disable(logging.CRITICAL)
    attempt = {"confluent": confluent, "kafka-python": kafka_python, "aiokafka": aiokafka}[sys.argv[1]]
    for line in sys.stdin:
        print(attempt(*line.rstrip("\n").split("\t")), flush=True)
