"""The peers of this bench: one broker or three, each make as the other benches have it; ours with a metrics page beside (phases.py)."""

from harness.ports import free_port

from cluster.peers import ThreeBarnabas, ThreeKafka
from rig.peers.barnabas import BarnabasBefore, BarnabasSynced
from rig.peers.kafka import Kafka, Server
from rig.peers.peer import Missing

KAFKA, OURS, BEFORE = "kafka", "barnabas", "before"
KAFKA_3, OURS_3, BEFORE_3 = "kafka-cluster", "barnabas-cluster", "before-cluster"
# By replication factor: Kafka, ours, an older one of ours.
OF = {1: (KAFKA, OURS, BEFORE), 3: (KAFKA_3, OURS_3, BEFORE_3)}
LISTENER = "metrics.listener"
SAFEPOINTS = "safepoints.log"


def listened(server):
    """The server, with a metrics listener on a port of its own."""
    server.metrics_port = free_port()
    server.overrides[LISTENER] = f"127.0.0.1:{server.metrics_port}"
    return server


class Logged(Server):
    """A JVM that writes down when it stops all its threads (moments.pauses)."""

    @property
    def jvm(self):
        return (*Server.jvm, f"-Xlog:safepoint:file={self.directory / SAFEPOINTS}:tn:filecount=0")


class TailKafka(Kafka):
    server_class = Logged


class TailThreeKafka(ThreeKafka):
    def make_node(self, directory, overrides):
        return Logged(directory, self.version, self.classpath, overrides)


class Tail(BarnabasSynced):
    def make_server(self, overrides):
        return listened(super().make_server(overrides))


class TailBefore(BarnabasBefore):
    def make_server(self, overrides):
        return listened(super().make_server(overrides))


class TailThree(ThreeBarnabas):
    def make_node(self, directory, overrides):
        return listened(super().make_node(directory, overrides))


class TailThreeBefore(ThreeBarnabas):
    """Three of an older program (--before)."""

    name, label, colour = BEFORE_3, "three of Barnabas, before", BarnabasBefore.colour

    @classmethod
    def prepare(cls, options):
        return BarnabasBefore.prepare(options)

    def make_node(self, directory, overrides):
        node = listened(super().make_node(directory, overrides))
        node.binary = str(BarnabasBefore.binary)
        return node


ALL = {peer.name: peer for peer in (TailKafka, Tail, TailBefore, TailThreeKafka, TailThree, TailThreeBefore)}


def nodes(peer):
    """The servers of a peer, one or three, in the order of its pids."""
    return list(peer.nodes.values()) if hasattr(peer, "nodes") else [peer.server]


def metrics_ports(peer):
    return [node.metrics_port for node in nodes(peer) if hasattr(node, "metrics_port") and node.is_alive()]


def safepoint_logs(peer):
    """What JVMs wrote of their pauses, in the order of the peer's nodes; none of ours has one."""
    return [path for path in (node.directory / SAFEPOINTS for node in nodes(peer)) if path.exists()]


__all__ = ["ALL", "Missing", "OF", "metrics_ports", "nodes", "safepoint_logs"]
