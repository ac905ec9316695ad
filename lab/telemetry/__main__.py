"""Client metrics (KIP-714) end to end: a subscription made by `barnabas client-metrics`, consumers of three libraries that push by themselves, and the
metrics page that shows their series.

The consumers are those of lab/compat (clients/PROTOCOL.md), as they come. librdkafka 2.5.0 aborts its process when it has none of the metrics that it is
asked for (librdkafka#4833): no subscription may match it.
"""

import argparse
import re
import shutil
import subprocess
import sys
import time
import urllib.request

from compat import fetch
from compat.cli import find_binary, in_scratch
from compat.driver import Driver, Failure
from harness.ports import free_port
from harness.server import HOST, Barnabas

TOPIC = "measured"
INTERVAL_MS = 500
# Consumers join, connect and push within seconds; a loaded machine takes longer.
PATIENCE_S = 60
# Of each library: the driver, its name in ApiVersions, and a metric that every consumer of it has.
CLIENTS = {
    "java": (fetch.java, "apache-kafka-java"),
    "librdkafka": (fetch.python_client("confluent_driver.py", "confluent-kafka"), "confluent-kafka-python"),
    "franz-go": (fetch.go, "kgo"),
}
CREATED = "barnabas_telemetry_consumer_connection_creation_total"
TRAPPED = "2.5.0"
SAMPLE = re.compile(r'^(\w+)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@fetch.alone
def trapped():
    """The driver with librdkafka 2.5.0 below it."""
    directory = fetch.CACHE / f"python-rdkafka-{TRAPPED}"
    fresh, seal = fetch._stamp(directory, TRAPPED)
    interpreter = directory / "bin" / "python"
    if not (fresh and interpreter.exists()):
        shutil.rmtree(directory, ignore_errors=True)
        fetch._run("trapped-venv", ["python3", "-m", "venv", str(directory)])
        fetch._run("trapped", [str(interpreter), "-m", "pip", "install", "-q", f"confluent-kafka=={TRAPPED}"])
        seal()
    return [str(interpreter), str(fetch.HERE / "clients/python/confluent_driver.py")]


class Rig:
    def __init__(self, binary, scratch):
        self.binary, self.scratch, self.metrics_port = str(binary), scratch, free_port()
        self.server = Barnabas(scratch / "node", binary, {"metrics.listener": f"{HOST}:{self.metrics_port}"})
        self.drivers, self.passed, self.failed = [], 0, 0

    def tool(self, *words):
        """(exit code, output) of `barnabas client-metrics`."""
        ran = subprocess.run([self.binary, "client-metrics", "--bootstrap-server", self.server.address, *words], capture_output=True, text=True)
        return ran.returncode, ran.stdout + ran.stderr

    def subscribe(self, name, metrics, match):
        code, said = self.tool("--alter", "--name", name, "--metrics", metrics, "--interval", str(INTERVAL_MS), "--match", match)
        if code != 0:
            raise Failure(f"client-metrics --alter --name {name}: {said.strip()}")

    def samples(self):
        """The page: (name, labels, value) of each sample."""
        with urllib.request.urlopen(f"http://{HOST}:{self.metrics_port}/metrics") as page:
            lines = page.read().decode().splitlines()
        found = (SAMPLE.match(line) for line in lines if not line.startswith("#"))
        return [(one[1], dict(LABEL.findall(one[2] or "")), float(one[3])) for one in found if one]

    def of(self, client_id):
        return [sample for sample in self.samples() if sample[1].get("client_id") == client_id]

    def value(self, name):
        return sum(value for found, _, value in self.samples() if found == name)

    def await_page(self, what, is_there):
        end = time.monotonic() + PATIENCE_S
        while not (found := is_there()):
            if time.monotonic() > end:
                raise Failure(f"{what}: not on the metrics page within {PATIENCE_S} s")
            time.sleep(0.2)
        return found

    def join(self, command, client_id):
        driver = Driver(command, self.server.address, self.scratch / f"{client_id}.log")
        self.drivers.append(driver)
        driver.join(f"group-{client_id}", [TOPIC], "range", client=client_id, session_ms=10_000, commit="poll")
        return driver

    def check(self, name, proof):
        try:
            said = proof()
            self.passed += 1
            print(f"ok      {name}: {said}", flush=True)
        except fetch.Missing as missing:
            raise missing
        except Exception as failed:
            self.failed += 1
            print(f"FAILED  {name}: {failed}", flush=True)

    def tool_makes_and_shows(self):
        self.subscribe("lab", "org.apache.kafka.consumer.", "client_id=telemetry-.*")
        shown = self.tool("--describe", "--name", "lab")[1]
        for row in ("metrics=org.apache.kafka.consumer.", f"interval.ms={INTERVAL_MS}", "match=client_id=telemetry-.*"):
            if row not in shown:
                raise Failure(f"--describe lacks {row}: {shown.strip()}")
        code, said = self.tool("--alter", "--name", "bad", "--metrics", "*", "--match", "client_id=[a")
        if code == 0 or "Illegal client matching pattern: client_id=[a" not in said:
            raise Failure(f"a match that is no expression ends with {code}: {said.strip()}")
        return "a subscription is made and described, a bad match refused"

    def client_pushes(self, name):
        get, software = CLIENTS[name]
        version, command = get()
        client_id = f"telemetry-{name}"
        driver = self.join(command, client_id)

        def whole():
            of = self.of(client_id)
            # librdkafka counts connections from its first push on: 0, if it has them all by then.
            is_counted = any(found == CREATED for found, _, _ in of)
            is_measured = any(found.startswith("barnabas_telemetry_") and value > 0 for found, _, value in of)
            info = [labels for found, labels, _ in of if found == "barnabas_client_metrics_client_info"]
            return (of, info[0]) if is_counted and is_measured and info else None

        of, info = self.await_page(f"{CREATED} of {client_id}", whole)
        if info["software_name"] != software:
            raise Failure(f"software_name is {info['software_name']}, not {software}")
        if info["client_instance_id"] not in {labels.get("client_instance_id") for found, labels, _ in of if found == CREATED}:
            raise Failure("the series and the info name different instances")
        series = {found for found, _, _ in of if found.startswith("barnabas_telemetry_")}
        driver.call("leave")
        return f"{software} {version} pushed {len(series)} metrics"

    def trapped_version_lives(self):
        command = trapped()
        self.subscribe("lacked", "org.apache.kafka.no.such.", "client_id=lacking-.*")
        before = self.value("kafka_server_client_metrics_instance_count")
        driver = self.join(command, "lacking-librdkafka")
        self.await_page("a client more", lambda: self.value("kafka_server_client_metrics_instance_count") > before)
        # It would push, and abort, after one and a half intervals at most.
        time.sleep(6 * INTERVAL_MS / 1000)
        if driver.process.poll() is not None:
            raise Failure(f"its process ended with {driver.process.poll()}: {driver.last_words()}")
        if self.of("lacking-librdkafka") and any(found.startswith("barnabas_telemetry_") for found, _, _ in self.of("lacking-librdkafka")):
            raise Failure("it was asked for metrics")
        driver.call("leave")
        return "asked for nothing, and its process lives"

    def play(self):
        self.server.start()
        made = Driver(fetch.java()[1], self.server.address, self.scratch / "admin.log")
        self.drivers.append(made)
        made.call("create_topic", name=TOPIC, partitions=2, config={})
        self.check("barnabas client-metrics", self.tool_makes_and_shows)
        for name in CLIENTS:
            self.check(name, lambda name=name: self.client_pushes(name))
        self.check(f"librdkafka {TRAPPED}", self.trapped_version_lives)
        return self

    def end(self):
        for driver in self.drivers:
            driver.process.kill()
            driver.process.wait()
        self.server.kill()


def run(options, scratch):
    rig = Rig(find_binary(options.binary), scratch)
    try:
        rig.play()
    finally:
        rig.end()
    print(f"telemetry: {rig.passed} passed, {rig.failed} failed")
    return 1 if rig.failed else 0


def main(words):
    parser = argparse.ArgumentParser(prog="lab/telemetry/run", description="Client metrics (KIP-714) of three client libraries, on a node's metrics page.")
    parser.add_argument("--binary", help="the barnabas program")
    options = parser.parse_args(words)
    return in_scratch("telemetry", lambda scratch: run(options, scratch))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
