"""The doctor on Apache Kafka: what the protocol shows is found and mended, and what only Barnabas tells is "not seen"."""

from compat import fetch
from harness.server import Apache

from faults import TOGETHER
from rig import Rig

# Of one node, with nothing but Kafka's protocol.
SEEN = ("T3", "T4", "T8", "T9", "T10", "T13", "C10", "G3", "G4", "G6", "G8", "W11", "S4")
# They need a node's own figures.
UNSEEN = {"O1", "O4", "O6", "D1", "D13", "D14", "N7", "N8", "W1", "W8", "W9", "W12", "W14", "C7", "C8", "S3", "S5"}


def run(test, directory, binary):
    try:
        version, classpath = fetch.kafka()
    except Exception as trouble:
        test.say(f"Apache Kafka is left out: {trouble}")
        return
    directory.mkdir()
    node = Apache(directory / "node", version, classpath, {"min.insync.replicas": "1"})
    rig = Rig({1: node}, binary, directory)
    rig.thresholds = ["W11=2"]
    try:
        node.start()
        blind = {gap["id"] for gap in rig.doctor()["notSeen"]}
        test.say(f"Apache Kafka {version}: not seen: {' '.join(sorted(blind))}")
        for id in sorted(UNSEEN - blind):
            test.alarms.append(f"{id} claims to see Apache Kafka's figures")
        test.round(rig, [make for make in TOGETHER if make().id in SEEN], make=" of Apache Kafka")
    finally:
        node.stop()
