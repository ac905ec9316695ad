"""Debian's Prometheus and promtool, unpacked beside the rig's other downloads, on loopback."""

import json
import shutil
import subprocess
import urllib.parse
import urllib.request

from compat import fetch
from harness.ports import free_port
from harness.process import NodeProcess
from harness.server import HOST

INTERVAL_S = 5


@fetch.alone
def programs():
    """(prometheus, promtool): those of the machine, or Debian's package without what it depends on: fonts and scripts of its web pages."""
    found = [shutil.which(name) for name in ("prometheus", "promtool")]
    if all(found):
        return found
    root = fetch.CACHE / "prometheus"
    root.mkdir(parents=True, exist_ok=True)
    fresh, seal = fetch._stamp(root, "prometheus")
    if not fresh:
        fetch._need("apt-get")
        fetch._need("dpkg-deb")
        try:
            fetch._run("prometheus", ["apt-get", "download", "prometheus"], cwd=root)
        except fetch.Missing:
            fetch._run("prometheus-lists", ["apt-get", "update"])
            fetch._run("prometheus", ["apt-get", "download", "prometheus"], cwd=root)
        for package in sorted(root.glob("*.deb")):
            fetch._run("prometheus-unpack", ["dpkg-deb", "-x", str(package), str(root)])
            package.unlink()
        seal()
    return [str(root / "usr/bin" / name) for name in ("prometheus", "promtool")]


class Prometheus(NodeProcess):
    label = "Prometheus"

    def __init__(self, program, directory, jobs, rules):
        """`jobs`: {job: (path's query {key: value}, targets)}."""
        self.program, self.directory, self.port = program, directory, free_port()
        directory.mkdir(parents=True, exist_ok=True)
        self.log = directory / "prometheus.log"
        self.config = directory / "prometheus.yml"
        scrapes = [{"job_name": job, "params": {key: [value] for key, value in query.items()}, "static_configs": [{"targets": targets}]}
                   for job, (query, targets) in jobs.items()]
        # JSON is YAML.
        self.config.write_text(json.dumps({"global": {"scrape_interval": f"{INTERVAL_S}s", "evaluation_interval": f"{INTERVAL_S}s"},
                                           "rule_files": [str(rules)], "scrape_configs": scrapes}))

    def start(self):
        self.run([self.program, f"--config.file={self.config}", f"--storage.tsdb.path={self.directory / 'data'}", f"--web.listen-address={HOST}:{self.port}"])
        self.wait_until(self.is_ready, 60, every=0.2)

    def is_ready(self):
        try:
            return urllib.request.urlopen(f"http://{HOST}:{self.port}/-/ready").status == 200
        except OSError:
            return False

    def api(self, path, **query):
        """The answer's data. RuntimeError with Prometheus' own words where it refuses."""
        try:
            with urllib.request.urlopen(f"http://{HOST}:{self.port}/api/v1/{path}?{urllib.parse.urlencode(query)}") as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as refused:
            raise RuntimeError(json.load(refused).get("error", str(refused))) from None

    def query(self, expression):
        """Values of the series that the expression gives, or the one value of a scalar."""
        data = self.api("query", query=expression)
        if data["resultType"] == "scalar":
            return [float(data["result"][1])]
        return [float(series["value"][1]) for series in data["result"]]


def promtool(program, *words, text=None):
    ran = subprocess.run([program, *map(str, words)], input=text, capture_output=True, text=True)
    return ran.returncode, (ran.stdout + ran.stderr).strip()
