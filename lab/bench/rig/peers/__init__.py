"""The brokers that are compared. Adding one is a file here and its line below."""

from .barnabas import BarnabasBefore, BarnabasSynced, BarnabasWritten
from .kafka import Kafka
from .peer import Peer
from .skyline import SkylineFile, SkylineJournal, SkylineNull, SkylineSegments
from .zookeeper import KafkaZooKeeper

PEERS = {peer.name: peer for peer in (Kafka, KafkaZooKeeper, BarnabasSynced, BarnabasBefore, BarnabasWritten, SkylineNull, SkylineFile, SkylineJournal, SkylineSegments)}

__all__ = ["PEERS", "Peer"]
