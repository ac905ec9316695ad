"""Logs in once for each line of standard input and writes one record: `mechanism TAB user TAB password TAB port` in, a line of what came of it out.

The first argument is the library: confluent, kafka-python or aiokafka.
"""

import asyncio
import sys


def confluent(mechanism, user, password, port):
    import confluent_kafka
    seen, done = [], []
    producer = confluent_kafka.Producer({
        "bootstrap.servers": f"127.0.0.1:{port}", "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism, "sasl.username": user, "sasl.password": password,
        "message.timeout.ms": 15_000, "error_cb": seen.append}, logger=None)
    producer.produce("logins", user, callback=lambda error, _: done.append(error))
    for _ in range(160):
        producer.poll(0.1)
        refused = next((error for error in seen if error.code() == confluent_kafka.KafkaError._AUTHENTICATION), None)
        if refused or done:
            break
    if done and done[0] is None:
        return "ok"
    return "login refused" if refused else f"other: {(done or seen or ['no answer'])[0]}"


def kafka_python(mechanism, user, password, port):
    import kafka
    from kafka import errors
    try:
        producer = kafka.KafkaProducer(bootstrap_servers=f"127.0.0.1:{port}", security_protocol="SASL_PLAINTEXT", sasl_mechanism=mechanism, sasl_plain_username=user,
                                       sasl_plain_password=password, max_block_ms=15_000, bootstrap_timeout_ms=6_000)
        producer.send("logins", user.encode()).get(15)
        producer.close(5)
        return "ok"
    except (errors.SaslAuthenticationFailedError, errors.UnsupportedSaslMechanismError) as error:
        return f"login refused: {type(error).__name__}"
    except errors.KafkaError as error:
        return f"no connection: {type(error).__name__}"


async def _aiokafka(mechanism, user, password, port):
    import aiokafka
    from aiokafka import errors
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=f"127.0.0.1:{port}", security_protocol="SASL_PLAINTEXT", sasl_mechanism=mechanism, sasl_plain_username=user,
                                         sasl_plain_password=password, request_timeout_ms=15_000)
    try:
        await producer.start()
        await producer.send_and_wait("logins", user.encode())
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
