"""Whether dashboards fill: Prometheus reads a cluster of three under load for a minute, in each set of names (docs/METRICS.md); then every metric that
public dashboards use is asked for (public.py), and every expression of ours (packaging/monitoring).

Public dashboards are other people's files. None is here: public.py lists which metrics and labels they use, and the rig asks for those in expressions of
its own. What belongs to a JVM or to the kubelet is left out by name.

Also: the alert rules and their unit tests (promtool), no alert fires on the healthy cluster, each page is sound for promtool, and Prometheus, which asks for
OpenMetrics, takes every one.
"""

import argparse
import math
import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MONITORING = ROOT / "packaging/monitoring"
sys.path.insert(0, str(MONITORING))

import boards
import public
from compat import fetch
from compat.cli import find_binary, in_scratch
from harness import cluster
from harness.ports import free_port
from harness.process import spawn
from harness.server import HOST, Barnabas
from prometheus import INTERVAL_S, Prometheus, programs, promtool

REPLICATED = {"offsets.topic.replication.factor": "3", "transaction.state.log.replication.factor": "3", "share.coordinator.state.topic.replication.factor": "3"}
# What a job is called, and the query of its pages.
JOBS = {"barnabas": {}, **{names: {"names": names} for names in ("strimzi", "reporter", "confluent", "exporter", "lag-exporter")}}
# Of Strimzi's board for kafka_exporter: its brokers are read too.
ELSEWHERE = {"kafka_cluster_partition_": "strimzi"}
RATE = "1m"
VARIABLES = {"$__rate_interval": RATE, "$job": "barnabas", "$instance": ".*", "$topic": ".*", "$group": ".*", "$request": ".*"}
# No value where nothing of it happened in the minute.
MAY_BE_NAN = ("barnabas_segment_sync_seconds",)
# Alerts on what this cluster has not.
NOT_HERE = {"barnabas_certificate_not_after_seconds": "no certificates"}


class Rig:
    def __init__(self, binary, scratch, tools):
        self.binary, self.scratch, self.programs = str(binary), scratch, tools
        self.passed, self.failed, self.workers = 0, 0, []
        self.pages = {number: free_port() for number in (1, 2, 3)}
        self.nodes = {number: Barnabas(scratch / str(number), binary, {**REPLICATED, "metrics.listener": f"{HOST}:{port}"}) for number, port in self.pages.items()}
        targets = [f"{HOST}:{port}" for port in self.pages.values()]
        self.prometheus = Prometheus(tools[0], scratch / "prometheus", {job: (query, targets) for job, query in JOBS.items()}, MONITORING / "rules.yml")

    @property
    def bootstrap(self):
        return ",".join(node.address for node in self.nodes.values())

    def check(self, name, is_sound, why=""):
        self.passed, self.failed = self.passed + bool(is_sound), self.failed + (not is_sound)
        if not is_sound:
            print(f"FAILED  {name}: {why}", flush=True)

    def tool(self, *words):
        ran = subprocess.run([self.binary, words[0], "--bootstrap-server", self.bootstrap, *words[1:]], capture_output=True, text=True, timeout=120)
        if ran.returncode != 0:
            raise RuntimeError(f"{' '.join(words)}: {ran.stdout + ran.stderr}")
        return ran.stdout

    def load(self):
        """A producer, a consumer that keeps up and one that stopped early."""
        end = time.monotonic() + 60
        # They answer before they are unfenced.
        while self.tool("broker-api-versions").count("(id: ") < len(self.nodes) and time.monotonic() < end:
            time.sleep(0.5)
        for topic in ("orders", "audit"):
            self.tool("topics", "--create", "--topic", topic, "--partitions", "6", "--replication-factor", "3")
        for topic in ("orders", "audit"):
            words = ["producer-perf-test", "--topic", topic, "--num-records", "1000000", "--record-size", "300", "--throughput", "400",
                     "--producer-props", f"bootstrap.servers={self.bootstrap}", f"client.id=load-{topic}"]
            self.work(words)
        self.work(["console-consumer", "--bootstrap-server", self.bootstrap, "--topic", "orders", "--group", "keeps-up", "--from-beginning"])
        self.tool("console-consumer", "--topic", "audit", "--group", "stopped", "--from-beginning", "--max-messages", "500")

    def work(self, words):
        self.workers.append(spawn([self.binary, *words], stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT))

    def end(self):
        self.prometheus.kill()
        for worker in self.workers:
            worker.kill()
            worker.wait()
        for node in self.nodes.values():
            node.kill()

    def values(self, expression):
        """Of an expression; none where Prometheus refuses it, and why."""
        try:
            return self.prometheus.query(expression), "no data"
        except RuntimeError as refused:
            return [], str(refused)


def page(port, query):
    query = "&".join(f"{key}={value}" for key, value in query.items())
    with urllib.request.urlopen(f"http://{HOST}:{port}/metrics?{query}") as answer:
        return answer.read().decode()


def pages(rig):
    """Each set's page: sound, and how large."""
    print(f"\n{'page':28} {'series':>8} {'bytes':>10}   (three nodes, the largest)")
    for name, query in {"": {}, "buckets=all": {"buckets": "all"}, "families=kafka_server": {"families": "kafka_server"}, **{f"names={job}": JOBS[job] for job in JOBS if JOBS[job]}}.items():
        texts = [page(port, query) for port in rig.pages.values()]
        series = max(sum(not line.startswith("#") for line in text.splitlines()) for text in texts)
        print(f"/metrics?{name:19} {series:8} {max(map(len, texts)):10}")
        code, said = promtool(rig.programs[1], "check", "metrics", text=texts[0])
        # 3: names that it would have chosen otherwise.
        rig.check(f"page {name}", code in (0, 3), said[:400])
    targets = rig.prometheus.api("targets")["activeTargets"]
    for target in targets:
        rig.check(f"Prometheus reads {target['scrapeUrl']}", target["health"] == "up", target["lastError"])
    rig.check("targets", len(targets) == len(JOBS) * len(rig.pages), f"{len(targets)} targets")


def reason_of(metric, reasons):
    return next((why for beginning, why in reasons.items() if metric.startswith(beginning)), None)


def job_of(board, use):
    return next((job for beginning, job in ELSEWHERE.items() if board.names == "exporter" and use.metric.startswith(beginning)), board.names)


def public_boards(rig):
    print(f"\n{'public dashboard':32} metric, labels: series, or why there is none")
    totals = []
    for board in public.BOARDS:
        data, absent, excluded = 0, 0, 0
        for use in board.uses:
            words = f"{use.metric}{{{','.join(use.labels)}}}{' rate' if use.is_rate else ''}"
            if why := reason_of(use.metric, public.EXCLUDED):
                excluded += 1
                print(f"{board.title:32} {words}: left out, {why}")
                continue
            expression = use.expression(job_of(board, use))
            values, why = rig.values(expression)
            known = reason_of(use.metric, public.ABSENT)
            print(f"{board.title:32} {words}: {int(sum(values)) if values else known or why}")
            if known:
                absent += 1
                rig.check(f"{board.title}: {use.metric}", not values, "has data, and public.py says that it is absent")
                is_tiered = "tiered" in known
                rig.check(f"{board.title} is whole", is_tiered or board.title not in public.WHOLE, f"{use.metric}: {known}")
            else:
                data += bool(values)
                rig.check(f"{board.title}: {expression}", values, why)
        totals.append((board.title, board.names, data, absent, excluded))
    print(f"\n{'public dashboard':32} {'names':14} with data  absent  left out")
    for title, names, data, absent, excluded in totals:
        print(f"{title:32} {names:14} {data:9} {absent:7} {excluded:9}")


def own_boards(rig):
    print(f"\n{'our dashboard':12} panel: expression")
    for board in boards.BOARDS:
        counts = [0, 0]
        for spec in board.panels:
            for expression, _ in spec.queries:
                asked = expression
                for variable, value in VARIABLES.items():
                    asked = asked.replace(variable, value)
                values, why = rig.values(asked)
                has_number = any(not math.isnan(value) for value in values) or any(name in asked for name in MAY_BE_NAN)
                rig.check(f"{board.name}: {spec.title}: {asked}", values and has_number, why if not values else "no number")
                counts[not values] += 1
        for name, query in board.variables:
            metric, _, label = re.match(r"label_values\((\w+)(.*), (\w+)\)", query).groups()
            found = rig.prometheus.query(f'count by ({label}) ({metric}{{{label}!=""}})')
            rig.check(f"{board.name}: variable {name}", found, f"{query}: no values")
        print(f"{board.name:12} {counts[0]} expressions with data, {counts[1]} without")


def rules(rig):
    for words in (["check", "rules", MONITORING / "rules.yml"], ["test", "rules", MONITORING / "rules.test.yml"], ["check", "config", MONITORING / "prometheus.yml"]):
        code, said = promtool(rig.programs[1], *words)
        rig.check(f"promtool {' '.join(map(str, words))}", code == 0, said)
    groups = rig.prometheus.api("rules")["groups"]
    alerts = [rule for group in groups for rule in group["rules"]]
    tests = (MONITORING / "rules.test.yml").read_text()
    for alert in alerts:
        name = alert["name"]
        fires = re.search(rf"alertname: {name}\n\s+exp_alerts:(\s+- | \[\{{)", tests)
        rig.check(f"{name} has a test in which it fires", fires, "see rules.test.yml")
        rig.check(f"{name} is evaluated", alert["health"] == "ok", alert.get("lastError", ""))
        rig.check(f"{name} is quiet", alert["state"] != "firing", f"fires on a healthy cluster: {alert['alerts']}")
        for metric in set(re.findall(r"\b(?:up|(?:kafka|barnabas|process)_\w+)\b", alert["query"])):
            if not reason_of(metric, NOT_HERE):
                rig.check(f"{name}: {metric}", rig.prometheus.query(f'count({metric}{{job="barnabas"}})'), "no such series")
    print(f"\n{len(alerts)} alerts")


def run(options, scratch):
    rig = Rig(find_binary(options.binary), scratch, programs())
    try:
        cluster.join(rig.nodes)
        cluster.start(list(rig.nodes.values()))
        rig.load()
        rig.prometheus.start()
        time.sleep(options.seconds)
        pages(rig)
        public_boards(rig)
        own_boards(rig)
        rules(rig)
        made = subprocess.run([sys.executable, "-B", str(MONITORING / "generate"), "--check"], capture_output=True, text=True)
        rig.check("boards are as boards.py says", made.returncode == 0, made.stdout)
    finally:
        rig.end()
    print(f"\n{rig.passed} passed, {rig.failed} failed, 0 skipped")
    return 1 if rig.failed else 0


def main(words):
    parser = argparse.ArgumentParser(prog="lab/dashboards/run", description="Public dashboards and ours, filled from a loaded cluster by Prometheus.")
    parser.add_argument("--binary", help="the barnabas program")
    parser.add_argument("--seconds", type=int, default=75, help=f"for how long Prometheus reads, every {INTERVAL_S} s (75)")
    options = parser.parse_args(words)
    try:
        return in_scratch("dashboards", lambda scratch: run(options, scratch))
    except fetch.Missing as missing:
        print(f"dashboards: {missing}\n0 passed, 0 failed, 1 skipped")
        return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
