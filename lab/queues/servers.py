"""The two brokers: a node with logins and listeners for AMQP and MQ, and Artemis as lab/bridge starts it."""

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bridge"))

from ends import Artemis  # noqa: E402
from harness.ask import accepts  # noqa: E402
from harness.ports import free_port  # noqa: E402
from harness.server import HOST, Barnabas  # noqa: E402

USER, PASSWORD = "admin", "admin"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"


class QueueNode(Barnabas):
    """Clients log in by PLAIN; ACLs decide, and `admin` may do everything."""

    short, user, password = "us", USER, PASSWORD

    def new_ports(self):
        super().new_ports()
        self.proxied, self.amqp_port, self.mq_port = [], free_port(), free_port()

    def properties(self):
        return {
            **super().properties(),
            "listeners": f"SASL_PLAINTEXT://{HOST}:{self.port},CONTROLLER://{HOST}:{self.controller_port}",
            "advertised.listeners": f"SASL_PLAINTEXT://{HOST}:{self.port}",
            "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config":
                f'{MODULE} username="{USER}" password="{PASSWORD}" user_{USER}="{PASSWORD}" user_reader="reader";',
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:{USER};User:ANONYMOUS",
            "amqp.listener": f"{HOST}:{self.amqp_port}",
            "mq.listener": f"{HOST}:{self.mq_port}",
            "mq.queue.manager": "QM1",
            "num.partitions": "1",
            "share.coordinator.state.topic.num.partitions": "4",
        }

    @property
    def client_config(self):
        path = self.directory / "client.properties"
        path.write_text("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
                        f'sasl.jaas.config={MODULE} username="{USER}" password="{PASSWORD}";\n')
        return str(path)

    def await_ready(self):
        self.ready_after = self.wait_until(lambda: accepts(self.amqp_port) and accepts(self.mq_port), self.ready_within)
        return self

    def tool(self, name, *words, given=None):
        ran = subprocess.run([self.binary, name, "--bootstrap-server", f"{HOST}:{self.port}", "--command-config", self.client_config, *words],
                             input=given, capture_output=True, text=True, errors="replace", timeout=60)
        if ran.returncode != 0:
            raise ValueError(f"{name} {words}: {ran.stdout}{ran.stderr}")
        return ran.stdout

    def troubles(self):
        """Lines of the log that an operator would look at. That ANONYMOUS is a super user here is meant: the controller's listener."""
        lines = [line for line in Path(self.log).read_text().splitlines() if "super.users names" not in line]
        return [line for line in lines if " WARN " in line or " ERROR " in line or "panicked" in line]


class Peer(Artemis):
    short, user, password = "artemis", "admin", "admin"

    @property
    def amqp_port(self):
        return self.port


def artemis(directory):
    peer = Peer(directory)
    peer.start()
    return peer
