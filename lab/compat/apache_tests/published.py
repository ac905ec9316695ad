"""Which of Apache's published test classes ask for a cluster in a way that Barnabas can answer."""

import re
import struct
import zipfile
from pathlib import Path

# By annotation, or from the kit itself, as Kafka Streams' tests do.
ASKS = re.compile(rb"org/apache/kafka/common/test/(api/Cluster(Test|Tests|Template)|KafkaClusterTestKit)\b|streams/integration/utils/EmbeddedKafkaCluster\b")
# The older tests inherit from it.
HARNESS = "kafka/server/QuorumTestHarness"
# Left out: tests that start SASL or TLS inside their own process (JAAS sections of the JVM, Kerberos servers whose parts the class path does not hold), tiered
# storage, and the older tests of quotas and SCRAM users, which have not been gone through (ClientIdQuotaTest asks objects of the broker in each of its cases).
LEFT_OUT = re.compile(r"(Sasl|Ssl|OAuth|Gssapi|EndToEndAuthorization|DelegationToken|MultipleListenersWith|DynamicBrokerReconfiguration|/tiered/|[Rr]emote(Log|Topic|Store|/)"
                     r"|TieredStorage|^kafka/\w+/\w*(Quota|UserScram))")
ABSTRACT = 0x0400
# Bytes of each entry of a class file's constant pool, by tag (JVM specification 4.4); text, tag 1, gives its own length.
SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}


def parent(data):
    """(name of the class that this class file extends, whether it is abstract)"""
    at, number, texts, names = 10, 1, {}, {}
    while number < struct.unpack_from(">H", data, 8)[0]:
        tag = data[at]
        if tag == 1:
            length = struct.unpack_from(">H", data, at + 1)[0]
            texts[number] = data[at + 3:at + 3 + length]
            at += 3 + length
        else:
            if tag == 7:
                names[number] = struct.unpack_from(">H", data, at + 1)[0]
            at += 1 + SIZES[tag]
        number += 2 if tag in (5, 6) else 1
    flags, _, extends = struct.unpack_from(">HHH", data, at)
    return texts[names[extends]].decode() if extends else "", bool(flags & ABSTRACT)


def inherits(name, parents):
    while name in parents:
        if name == HARNESS:
            return True
        name = parents[name][0]
    return False


def classes(jars):
    """{class: artifact}"""
    parents, asks, artifacts = {}, set(), {}
    for jar in (Path(word) for word in jars.split(":") if word.endswith("-test.jar")):
        with zipfile.ZipFile(jar) as file:
            for entry in file.namelist():
                if entry.endswith(".class") and "$" not in entry:
                    name, data = entry.removesuffix(".class"), file.read(entry)
                    parents[name] = parent(data)
                    artifacts[name] = jar.name.split("-4.")[0]
                    if ASKS.search(data):
                        asks.add(name)
    chosen = [name for name in parents if name.endswith("Test") and not LEFT_OUT.search(name) and not name.startswith("org/apache/kafka/common/test/") and not parents[name][1]
              and (name in asks or inherits(name, parents))]
    return {name.replace("/", "."): artifacts[name] for name in sorted(chosen, key=lambda each: (artifacts[each], each))}
