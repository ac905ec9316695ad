"""The cases of dist_test.py: a function each, which asserts, and returns what is worth a line."""

import json
import os
import re
import shutil
import sys
import tarfile
import time
from pathlib import Path

from machine import CACHE, Container, Systemd, run, until

ROOT = Path(__file__).resolve().parents[2]
SERVER = "--bootstrap-server 127.0.0.1:9092"
CONFIG = "/etc/barnabas/server.properties"
HELM = "helm.sh/helm/v3/cmd/helm@v3.18.4"
# The helm of `go install` takes itself for an old Kubernetes.
KUBE = ["--kube-version", "1.30.0"]
VOLUMES = ["var/lib/kafka/data"]
IMAGE_ENV = {"PATH": "/usr/bin:/bin:/opt/kafka/bin"}


class Skipped(Exception):
    """The text says what is missing."""


def first_record(sh, value="first", topic="hello"):
    """By the packaged binary's own tools."""
    sh(f"barnabas topics {SERVER} --create --if-not-exists --topic {topic}")
    produce(sh, value, topic)
    assert consume(sh, 1, topic) == [value]


def produce(sh, value, topic="hello"):
    sh(f"echo {value} | barnabas console-producer {SERVER} --topic {topic}")


def consume(sh, count, topic="hello") -> list:
    words = f"--topic {topic} --from-beginning --max-messages {count} --timeout-ms 30000"
    said = sh(f"barnabas console-consumer {SERVER} {words} 2>/dev/null")
    return said.stdout.split()


def complaints(log: str) -> list:
    """All but the one about plaintext listeners, which a container has."""
    return [line for line in log.splitlines() if " ERROR " in line or " WARN " in line and "without authentication" not in line]


def report(began: float) -> str:
    return f"empty root to first record {time.monotonic() - began:.1f} s"


# Reproducible, and described.


def two_builds_are_the_same_bytes(rig):
    rig.build(rig.again)
    sums = (rig.packages / "SHA256SUMS").read_text()
    assert sums == (rig.again / "SHA256SUMS").read_text(), f"{sums}\n{(rig.again / 'SHA256SUMS').read_text()}"
    run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=rig.packages)
    return f"{len(sums.splitlines())} files"


def sbom_is_valid_and_names_the_lock_file(rig):
    bill = json.loads(rig.package("*.cdx.json").read_text())
    names = {component["name"] for component in bill["components"]}
    assert {"tokio", "rustls", "zstd-sys", "barnabas-wire"} <= names and "rcgen" not in bill["metadata"]
    assert not names & {"syn", "cc", "proptest"}, "what is only built with is not linked"
    locked = set(re.findall(r'name = "(.+)"\nversion = "(.+)"', (ROOT / "Cargo.lock").read_text()))
    assert all((each["name"], each["version"]) in locked for each in bill["components"])
    packages = python_package("cyclonedx-python-lib[json-validation]==11.12.0")
    script = (
        "import sys; from cyclonedx.validation.json import JsonStrictValidator as V; from cyclonedx.schema import "
        "SchemaVersion; error = V(SchemaVersion.V1_5).validate_str(open(sys.argv[1]).read()); sys.exit(str(error) if "
        "error else 0)"
    )
    run(sys.executable, "-c", script, rig.package("*.cdx.json"), env={"PYTHONPATH": str(packages), "PATH": "/usr/bin:/bin"})
    return f"{len(names)} crates, CycloneDX 1.5"


def make_install_takes_prefix_and_destdir(rig):
    if rig.binary != ROOT / "target/dist/barnabas":
        raise Skipped("it installs target/dist/barnabas, which this run does not test")
    place = rig.case()
    # `--old-file`: the binary is there.
    run("make", "--old-file=binary", "install", f"DESTDIR={place}", "PREFIX=/opt/here", cwd=ROOT)
    installed = [path for path in place.rglob("*") if path.is_file()]
    assert installed == [place / "opt/here/bin/barnabas"], installed
    assert installed[0].stat().st_mode & 0o777 == 0o755
    assert run(installed[0], "version").stdout.startswith("barnabas ")


def first_start_formats_as_the_file_says(rig):
    """Each way to begin, and each refusal, of format-first-start: lines of the file, variables, what it says."""
    both, broker = "process.roles=broker,controller", "process.roles=broker"
    alone, several = "controller.quorum.bootstrap.servers=h:9093", "controller.quorum.bootstrap.servers=h:9093,i:9093"
    given = {"CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw"}
    first = {"INITIAL_CONTROLLERS": "1@h:9093:AAAAAAAAAAAAAAAAAAAAAQ,2@i:9093:AAAAAAAAAAAAAAAAAAAAAg"}
    for lines, variables, said in (
        ([both, alone], {}, "Formatting dynamic metadata voter directory"),
        ([both, several, alone], {}, "Formatting dynamic metadata voter directory"),
        ([both, "controller.quorum.voters = 1@h:9093"], {}, "Formatting metadata directory"),
        ([both, "controller.quorum.voters=1@h:9093,2@i:9093"], given, "Formatting metadata directory"),
        ([both, several], given | first, "Formatting dynamic metadata voter directory"),
        ([broker, alone], given, "Formatting metadata directory"),
        ([broker, alone], {}, "refused: this node is part of a cluster of several"),
        ([both, several], {}, "refused: this node is part of a cluster of several"),
        ([both, several], given, "refused: a quorum of several controllers begins with"),
    ):
        case = rig.case()
        listeners = "PLAINTEXT://:9092,CONTROLLER://:9093" if lines[0] == both else "PLAINTEXT://:9092"
        always = [f"listeners={listeners}", "controller.listener.names=CONTROLLER", "node.id=1", f"log.dirs={case}/data"]
        (case / "file").write_text("\n".join([*lines, *always]) + "\n")
        environment = {"PATH": "/usr/bin:/bin", "BARNABAS": str(rig.binary), **variables}
        start = lambda: run(ROOT / "packaging/files/format-first-start", case / "file", env=environment, check=False)
        done = start()
        if said.startswith("refused: "):
            assert done.returncode == 1 and said.removeprefix("refused: ") in done.stdout, (lines, done.stdout)
            assert not (case / "data").exists(), "nothing was formatted"
            continue
        assert done.returncode == 0 and done.stdout.startswith(said), (lines, variables, done.stdout)
        formatted = (case / "data/meta.properties").read_text()
        assert given["CLUSTER_ID"] in formatted or not variables, formatted
        again = start()
        assert (again.returncode, again.stdout) == (0, ""), again.stdout
        assert formatted == (case / "data/meta.properties").read_text()


def python_package(requirement: str) -> Path:
    """The folder in which pip has installed it."""
    folder = CACHE / f"dist-python-{re.sub(r'[^A-Za-z0-9.]', '-', requirement)}"
    words = ["--quiet", "--disable-pip-version-check", "--root-user-action=ignore", "--target", folder, requirement]
    if not folder.exists() and run(sys.executable, "-m", "pip", "install", *words, check=False).returncode:
        shutil.rmtree(folder, ignore_errors=True)
        raise Skipped(f"pip cannot install {requirement}")
    return folder


# Each package, from an empty root to its first record.


def tarball_serves_where_it_is_unpacked(rig):
    began = time.monotonic()
    case = rig.case()
    root = case / "root"
    root.mkdir()
    run("cp", "--archive", "--reflink=auto", f"{rig.debian}/.", root)
    home = "srv/barnabas"
    with tarfile.open(rig.package("*.tar.gz")) as archive:
        archive.extractall(root / "srv", filter="tar")
    [unpacked] = (root / "srv").iterdir()
    unpacked.rename(root / home)
    run("chown", "--recursive", "65534:65534", root / home)
    script = (
        f"cd /{home} && systemd/format-first-start config/server.properties >&2 && "
        "exec bin/barnabas server config/server.properties"
    )
    environment = {"PATH": f"/{home}/bin:/usr/bin:/bin"}
    machine = Container(case, ["sh", "-c", script], environment, user="65534:65534", mode="rw")
    try:
        answers(machine)
        first_record(machine.sh)
        took = report(began)
        assert machine.sh(f"kafka-topics.sh {SERVER} --list").stdout.split() == ["hello"]
        assert (root / home / "share/man/man1/barnabas.1").exists()
        assert machine.stop() == 0, machine.log.read_text()
        return took
    finally:
        machine.end()


def answers(container):
    def asked():
        assert container.is_alive(), container.log.read_text()
        return container.sh(f"barnabas broker-api-versions {SERVER}", check=False).returncode == 0

    until(asked, "the node to answer")


def deb_serves_under_systemd(rig):
    return serves_under_systemd(rig, f"dpkg --install /packages/{rig.package('*.deb').name}")


def rpm_serves_under_systemd(rig):
    # The rpm database of a Debian root knows of no glibc.
    return serves_under_systemd(rig, f"rpm --install --nodeps /packages/{rig.package('*.rpm').name}")


def serves_under_systemd(rig, install: str) -> str:
    began = time.monotonic()
    machine = Systemd(rig.debian, rig.packages, rig.case())
    try:
        machine.sh(install)
        assert unit(machine, "ActiveState") == "inactive", "an installation starts no node"
        machine.sh("systemctl enable --now barnabas")
        first_record(machine.sh)
        took = report(began)
        assert " serves on PLAINTEXT://127.0.0.1:9092" in unit(machine, "StatusText")
        for path in ("man/man1/barnabas-topics.1.gz", "bash-completion/completions/kafka-topics.sh", "zsh/site-functions/_barnabas"):
            machine.sh(f"test -s /usr/share/{path}")
        owners = machine.sh(f"stat -c %U:%G:%a {CONFIG} /var/lib/barnabas /var/log/barnabas").stdout.split()
        assert owners == ["root:barnabas:640", "barnabas:barnabas:750", "barnabas:barnabas:750"], owners
        process = unit(machine, "MainPID")
        status = machine.sh(f"grep -E '^(Uid|NoNewPrivs|Seccomp|CapEff)' /proc/{process}/status").stdout
        assert re.search(r"NoNewPrivs:\s1", status) and re.search(r"Seccomp:\s2", status), status
        assert re.search(r"CapEff:\s0+\n", status) and not re.search(r"Uid:\s0\s", status), status
        machine.sh("systemctl stop barnabas")
        assert unit(machine, "Result") == "success", machine.sh("journalctl --unit barnabas").stdout
        return took
    finally:
        machine.end()


def unit(machine, key: str) -> str:
    return machine.sh(f"systemctl show --property {key} --value barnabas").stdout.strip()


def image_serves_on_its_defaults(rig):
    began = time.monotonic()
    container = image(rig, {})
    try:
        answers(container)
        first_record(container.sh)
        took = report(began)
        container.sh("/opt/barnabas/healthy")
        assert container.sh("touch /opt/x", check=False).returncode, "its root is read-only"
        assert container.stop() == 0, container.log.read_text()
        return took
    finally:
        container.end()


def image_takes_the_variables_of_apache_kafka(rig):
    """Those of Apache's documented single node, one of each rule of names, and a file with a variable over it."""
    variables = {
        "KAFKA_NODE_ID": "7",
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "KAFKA_LISTENERS": "PLAINTEXT://:9092,CONTROLLER://:9093",
        "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://localhost:9092",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": "7@localhost:9093",
        "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_LOG_DIRS": "/var/lib/kafka/data/7",
        "KAFKA_NUM_PARTITIONS": "5",
        "KAFKA_HEAP_OPTS": "-Xmx1g",
        "CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw",
    }
    container = image(rig, variables)
    try:
        answers(container)
        first_record(container.sh)
        properties = container.sh("cat /tmp/barnabas/server.properties").stdout
        assert "heap.opts" not in properties and "node.id=7\n" in properties, properties
        log = container.log.read_text()
        assert not complaints(log) and "node 7 of cluster 4L6g3nShT-eMCtK--X86sw" in log, log
        assert "PartitionCount: 5" in container.sh(f"kafka-topics.sh {SERVER} --describe --topic hello").stdout
    finally:
        container.end()
    names = {"KAFKA_A_B": "1", "KAFKA_A__B": "2", "KAFKA_A___B": "3"}
    assert said_of(names) == ["a-b=3", "a.b=1", "a_b=2"]


def said_of(variables) -> list:
    """The lines that the image makes of variables."""
    script = ROOT / "packaging/image/properties.awk"
    return sorted(run("awk", "-f", script, env={"PATH": "/usr/bin:/bin", **variables}).stdout.split())


def image_says_when_it_is_not_healthy(rig):
    """A node whose quorum is not there is alive and not healthy; the file is a mounted one."""
    case = rig.case()
    file = "mnt/shared/config/server.properties"
    lines = [
        "process.roles=broker,controller",
        "node.id=1",
        "listeners=PLAINTEXT://:9092,CONTROLLER://:9093",
        "controller.listener.names=CONTROLLER",
        "controller.quorum.voters=1@localhost:9093,2@localhost:1,3@localhost:2",
        "log.dirs=/tmp/elsewhere",
    ]
    container = image(rig, {"KAFKA_LOG_DIRS": "/var/lib/kafka/data/1"}, case, {file: "\n".join(lines)})
    try:
        until(lambda: " INFO barnabas " in container.log.read_text(), "the node to start")
        assert container.is_alive(), container.log.read_text()
        assert container.sh("/opt/barnabas/healthy", check=False).returncode != 0
        assert (case / "volumes/var/lib/kafka/data/1/meta.properties").exists(), "the variable is over the file"
    finally:
        container.end()


def image(rig, variables, case=None, files=None, words=None, name="node") -> Container:
    """The archive unpacked, layer over layer, as a runtime does it; started with what its configuration says."""
    case = case or rig.case()
    root = case / "root"
    root.mkdir()
    with tarfile.open(rig.package("*-oci-*.tar")) as archive:
        index = json.load(archive.extractfile("index.json"))
        manifest = json.load(archive.extractfile(blob(index["manifests"][0])))
        config = json.load(archive.extractfile(blob(manifest["config"])))["config"]
        for layer in manifest["layers"]:
            with tarfile.open(fileobj=archive.extractfile(blob(layer))) as content:
                content.extractall(root, filter="tar", numeric_owner=True)
    # As a runtime mounts it.
    files = {"etc/hosts": "127.0.0.1 localhost\n"} | (files or {})
    for path, text in files.items():
        at = case / "files" / path
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_text(text)
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()
    environment = dict(each.split("=", 1) for each in config["Env"]) | variables
    volumes = [name for name in VOLUMES if f"/{name}" in config["Volumes"]]
    words = words or config["Cmd"]
    return Container(case, words, environment, config["User"], volumes, list(files), "ro", name)


def blob(descriptor) -> str:
    return "blobs/" + descriptor["digest"].replace(":", "/")


# Upgrade and downgrade, with data and with a configuration that the operator has changed.


def deb_upgrade_and_downgrade_keep_data_and_configuration(rig):
    return goes_there_and_back(rig, "*.deb", "dpkg --install --force-downgrade")


def rpm_upgrade_and_downgrade_keep_data_and_configuration(rig):
    return goes_there_and_back(rig, "*.rpm", "rpm --upgrade --oldpackage --nodeps")


def goes_there_and_back(rig, pattern: str, install: str):
    older = f"/packages/older/{rig.package(pattern, rig.older).name}"
    newer = f"/packages/{rig.package(pattern).name}"
    machine = Systemd(rig.debian, rig.packages, rig.case())
    try:
        machine.sh(f"{install} {older}")
        machine.sh(f"echo log.retention.hours=24 >>{CONFIG} && chmod 600 {CONFIG} && chown barnabas {CONFIG}")
        machine.sh("systemctl enable --now barnabas")
        first_record(machine.sh, "of-the-older")
        lives = [unit(machine, "MainPID")]
        for step, package in enumerate((newer, older)):
            machine.sh(f"{install} {package}")
            # The restart is not waited for by the installation.
            machine.sh("systemctl start barnabas")
            lives.append(unit(machine, "MainPID"))
            assert unit(machine, "ActiveState") == "active", machine.sh("journalctl --unit barnabas").stdout
            produce(machine.sh, f"after-step-{step}")
        assert len(set(lives)) == 3, f"each step restarts the node: {lives}"
        assert consume(machine.sh, 3) == ["of-the-older", "after-step-0", "after-step-1"]
        assert machine.sh(f"tail -n 1 {CONFIG}").stdout == "log.retention.hours=24\n"
        assert machine.sh(f"stat -c %U:%a {CONFIG}").stdout == "barnabas:600\n", "as the operator set it"
        assert unit(machine, "UnitFileState") == "enabled"
        log = machine.sh("journalctl --unit barnabas --output cat").stdout
        assert not complaints(log), log
        return "3 records of 3 versions read"
    finally:
        machine.end()


def deb_purge_keeps_the_data(rig):
    machine = Systemd(rig.debian, rig.packages, rig.case())
    try:
        machine.sh(f"dpkg --install /packages/{rig.package('*.deb').name} && systemctl enable --now barnabas")
        first_record(machine.sh)
        said = machine.sh("dpkg --purge barnabas").stdout
        assert "/var/lib/barnabas is kept" in said, said
        machine.sh(f"test -e /var/lib/barnabas/data/meta.properties && ! test -e {CONFIG} && ! test -e /usr/bin/barnabas")
        machine.sh(f"dpkg --install /packages/{rig.package('*.deb').name} && systemctl enable --now barnabas")
        assert consume(machine.sh, 1) == ["first"], "the data of before"
    finally:
        machine.end()


# The unit.


def unit_is_sound_and_confined(rig):
    machine = Systemd(rig.debian, rig.packages, rig.case())
    try:
        machine.sh(f"dpkg --install /packages/{rig.package('*.deb').name}")
        said = machine.sh("systemd-analyze verify --man=no /usr/lib/systemd/system/barnabas.service").stdout
        assert "barnabas.service" not in said, said
        said = machine.sh("systemd-analyze security --no-pager barnabas").stdout
        exposure = float(re.search(r"Overall exposure level for barnabas.service: ([\d.]+)", said)[1])
        assert exposure <= 2.0, said
        return f"exposure {exposure} of 10"
    finally:
        machine.end()


def unit_that_cannot_start_fails_and_stays_failed(rig):
    """A value that cannot be, and a node of several that was not formatted: a few tries, the reason, and no loop."""
    machine = Systemd(rig.debian, rig.packages, rig.case())
    try:
        machine.sh(f"dpkg --install /packages/{rig.package('*.deb').name}")
        machine.sh(f"cp {CONFIG} /root/sound")
        for line, reason in (
            ("num.partitions=0", "num.partitions"),
            ("controller.quorum.bootstrap.servers=a:9093,b:9093", "part of a cluster of several"),
        ):
            machine.sh(f"cp /root/sound {CONFIG} && echo {line} >>{CONFIG} && systemctl daemon-reload && systemctl reset-failed")
            machine.sh("systemctl start --no-block barnabas")
            until(lambda: unit(machine, "ActiveState") == "failed", "the unit to fail")
            time.sleep(3)
            assert unit(machine, "ActiveState") == "failed" and int(unit(machine, "NRestarts")) <= 5
            log = machine.sh("journalctl --unit barnabas --output cat").stdout
            assert reason in log, log
        machine.sh(f"cp /root/sound {CONFIG} && systemctl reset-failed && systemctl start barnabas")
        first_record(machine.sh)
    finally:
        machine.end()


# The chart.


def chart_is_linted_and_refuses_wrong_values(rig):
    helm, chart = helm_binary(), rig.package("barnabas-*.tgz")
    run(helm, "lint", "--strict", *KUBE, chart)
    for wrong in (
        "controllers=2",
        "replicas=0",
        "replicas=1",
        "storage.size=much",
        "clusterId=short",
        "unknown=1",
        "topologySpread[0].whenUnsatisfiable=Perhaps",
    ):
        assert run(helm, "template", "x", *KUBE, chart, "--set", wrong, check=False).returncode, wrong
    kinds = sorted(each["kind"] for each in rendered(helm, chart))
    assert kinds == ["ConfigMap", "PodDisruptionBudget", "Secret", "Service", "Service", "StatefulSet"], kinds


def chart_pod_serves(rig):
    """A pod of the rendered chart, run from its image with the variables, files and limits that the chart gives it."""
    helm = helm_binary()
    began = time.monotonic()
    values = ["--set", "replicas=1,controllers=1"]
    found = {each["kind"]: each for each in rendered(helm, rig.package("barnabas-*.tgz"), values)}
    pod = found["StatefulSet"]["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] and pod["securityContext"]["runAsNonRoot"]
    data = found["ConfigMap"]["data"]
    name = found["StatefulSet"]["metadata"]["name"] + "-0"
    host = f"{name}.{found['StatefulSet']['spec']['serviceName']}.default.svc"
    files = {
        "mnt/shared/config/server.properties": data["server.properties"],
        "etc/barnabas/start": data["start"],
        "etc/hosts": f"127.0.0.1 localhost {host}\n",
    }
    cluster_id = run("base64", "--decode", input=found["Secret"]["data"]["cluster-id"]).stdout
    environment = {"POD_NAME": name, "CLUSTER_ID": cluster_id}
    assert {each["name"] for each in container["env"]} == set(environment)
    machine = image(rig, environment, files=files, words=container["command"], name=name)
    try:
        probe = " ".join(container["readinessProbe"]["exec"]["command"])
        until(lambda: is_ready(machine, probe), "the pod to be ready")
        first_record(machine.sh)
        log = machine.log.read_text()
        assert f"cluster {cluster_id}" in log and not complaints(log), log
        took = report(began)
        assert machine.stop() == 0
        return took
    finally:
        machine.end()


def is_ready(machine, probe: str) -> bool:
    assert machine.is_alive(), machine.log.read_text()
    return machine.sh(probe, check=False).returncode == 0


def helm_binary() -> Path:
    found = shutil.which("helm")
    if found:
        return Path(found)
    kept = CACHE / HELM.rsplit("@")[-1] / "helm"
    if not kept.exists():
        if not shutil.which("go"):
            raise Skipped("neither helm nor go is installed")
        built = run("go", "install", HELM, check=False, env={**os.environ, "GOBIN": str(kept.parent)})
        if built.returncode:
            raise Skipped(f"go install {HELM}: {built.stdout.splitlines()[-1]}")
    return kept


def rendered(helm, chart, values=()) -> list:
    sys.path.insert(0, str(python_package("PyYAML==6.0.2")))
    import yaml

    return list(filter(None, yaml.safe_load_all(run(helm, "template", "x", *KUBE, *values, chart).stdout)))


ALL = {
    case.__name__: case
    for case in (
        two_builds_are_the_same_bytes,
        sbom_is_valid_and_names_the_lock_file,
        make_install_takes_prefix_and_destdir,
        first_start_formats_as_the_file_says,
        tarball_serves_where_it_is_unpacked,
        deb_serves_under_systemd,
        rpm_serves_under_systemd,
        image_serves_on_its_defaults,
        image_takes_the_variables_of_apache_kafka,
        image_says_when_it_is_not_healthy,
        deb_upgrade_and_downgrade_keep_data_and_configuration,
        rpm_upgrade_and_downgrade_keep_data_and_configuration,
        deb_purge_keeps_the_data,
        unit_is_sound_and_confined,
        unit_that_cannot_start_fails_and_stays_failed,
        chart_is_linted_and_refuses_wrong_values,
        chart_pod_serves,
    )
}
