"""The doctor on Apache Kafka: what the protocol shows is found and mended, and what only Barnabas tells is "not seen"."""

from compat import fetch
from harness.server import Apache

from faults import TOGETHER, TRAFFIC
from rig import Rig

# Of one node, with nothing but Kafka's protocol.
SEEN = ("T3", "T4", "T7", "T8", "T9", "T10", "T12", "T13", "C10", "G3", "G4", "G6", "G8", "W11", "S4")
# They need a node's own figures.
UNSEEN = {"O1", "O2", "O3", "O4", "O5", "O6", "O7", "O8", "D1", "D2", "D3", "D4", "D5", "D6", "D10", "D13", "D14", "N1", "N2", "N3", "N4", "N7", "N8",
          "W1", "W3", "W5", "W7", "W8", "W9", "W10", "W12", "W13", "W14", "W15", "G1", "G11", "C7", "C8", "S2", "S3", "S5"}


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
        test.round(rig, [make for make in TOGETHER + TRAFFIC if make().id in SEEN], make=" of Apache Kafka")
    finally:
        node.stop()
