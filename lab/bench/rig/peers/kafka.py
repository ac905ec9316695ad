"""Apache Kafka 4.x, KRaft, one combined node, as its own start script starts it (1 GB heap, G1), with its own defaults: no sync before an answer."""

from compat import fetch
from harness.server import Apache

from .peer import Peer, several

AS_STARTED = ("-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent")


class Server(Apache):
    jvm = AS_STARTED


class Kafka(Peer):
    name, label, colour = "kafka", "Kafka", "#d95f02"
    # The files of deleted topics go soon; everything else is as it comes.
    settings = {"log.segment.delete.delay.ms": "50", "max.connections": "20000"}
    makes_files_later = True
    version = classpath = None
    server_class = Server
    compiles = True
    # What its compiler needs to have seen.
    warm_up_seconds, start_seconds = 20, 4

    @classmethod
    def prepare(cls, options):
        cls.version, cls.classpath = fetch.kafka()
        cls.label = f"Kafka {cls.version}"
        return cls.version

    def make_server(self, overrides):
        server = self.server_class(self.directory, self.version, self.classpath, several(self.directory, overrides))
        # Nobody stands between here; a proxy's listeners would be four more threads each.
        server.label, server.proxied = self.label, []
        return server
