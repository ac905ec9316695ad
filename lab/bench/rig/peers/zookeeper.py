"""Apache Kafka 3.9, the last that has the ZooKeeper mode, beside a ZooKeeper of its own. What ZooKeeper uses is its cost as well."""

from compat import fetch
from harness.server import ZooKeeperApache

from .kafka import AS_STARTED, Kafka


class Server(ZooKeeperApache):
    jvm = AS_STARTED


class KafkaZooKeeper(Kafka):
    name, label, colour = "kafka-zk", "Kafka, ZooKeeper", "#e6ab02"
    server_class, start_seconds = Server, 6

    @classmethod
    def prepare(cls, options):
        cls.version, cls.classpath = fetch.kafka_3()
        cls.label = f"Kafka {cls.version}, ZooKeeper"
        return cls.version

    def pids(self):
        return [self.pid, self.server.zookeeper.pid]
