"""Brings the clients and Apache Kafka onto this machine, each through its own package manager.

What is fetched lands in `.cache/compat` inside the repository (ignored by git) or in the package
manager's own cache. Every part answers either with what is needed to start it or with one line that
says why it is not there; nothing here fails a run. A second run fetches nothing.
"""

import fcntl
import functools
import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
REPOSITORY = HERE.parent.parent
CACHE = REPOSITORY / ".cache" / "compat"
LOGS = CACHE / "logs"

# The rigs were compared with this release. 4.4.0 resolves too, and keeps some tools in other classes (ConfigCommand): before it
# comes first here, each rig is to be run with it.
KAFKA_VERSIONS = ("4.3.1",)
KAFKA_3_VERSION = "3.9.2"
JAVA_CLIENT_VERSIONS = ("4.4.0", "4.3.1")
OLD_JAVA_CLIENT_VERSION = "0.9.0.1"
PYTHON_PACKAGES = ("confluent-kafka==2.16.1", "kafka-python==3.0.12", "aiokafka==0.14.0", "cramjam",
                   "crc32c", "lz4", "python-snappy", "zstandard")
DEBIAN_PACKAGES = ("librdkafka1", "kcat", "libyajl2", "python3-confluent-kafka", "python3-kafka",
                   "python3-lz4", "python3-zstandard", "python3-snappy", "libsnappy1v5")


class Missing(Exception):
    """A tool or package that is not to be had here; the text is the one line for the reader."""


def _run(name, command, cwd=None, env=None, timeout=420):
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"fetch-{name}.log"
    with open(log, "wb") as out:
        try:
            code = subprocess.run(command, cwd=cwd, env=env, stdout=out, stderr=subprocess.STDOUT,
                                  stdin=subprocess.DEVNULL, timeout=timeout).returncode
        except subprocess.TimeoutExpired:
            code = "timed out"
    if code != 0:
        raise Missing(f"{name} could not be fetched ({command[0]} {code}; see {log.relative_to(REPOSITORY)})")


def _need(program):
    if shutil.which(program) is None:
        raise Missing(f"{program} is not installed")


def _stamp(directory, *texts):
    """True when `directory` was filled from exactly these inputs."""
    wanted = hashlib.sha256("\n".join(texts).encode()).hexdigest()
    mark = directory / ".stamp"
    return mark.exists() and mark.read_text() == wanted, lambda: mark.write_text(wanted)


def alone(make):
    """What `make` fetches or builds, two runners in one work tree do one after the other: the second finds it."""
    @functools.wraps(make)
    def locked(*arguments):
        LOGS.mkdir(parents=True, exist_ok=True)
        module, subject = make.__module__.strip("_"), [word for word in arguments[:1] if isinstance(word, str) and "/" not in word]
        name = "-".join([module, make.__name__, *subject])
        with open(LOGS / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return make(*arguments)
    return locked


@alone
def _classpath(name, pom, versions):
    """(version, class path) of the first version whose artifacts all resolve."""
    _need("java")
    _need("mvn")
    directory = CACHE / "maven" / name
    directory.mkdir(parents=True, exist_ok=True)
    text = (HERE / "maven" / pom).read_text()
    for version in versions:
        out = directory / f"{version}.classpath"
        fresh, _ = _stamp(directory, text, version)
        if fresh and out.exists() and all(Path(jar).exists() for jar in out.read_text().split(":")):
            return version, out.read_text()
    for version in versions:
        out = directory / f"{version}.classpath"
        _, seal = _stamp(directory, text, version)
        copy = directory / "pom.xml"
        copy.write_text(text)
        try:
            _run(f"{name}-{version}", ["mvn", "-q", "-B", "-f", str(copy), f"-Dkafka.version={version}",
                                       "dependency:build-classpath", f"-Dmdep.outputFile={out}"])
        except Missing:
            if version == versions[-1]:
                raise
            continue
        seal()
        return version, out.read_text()
    raise Missing(f"{name}: no version given")


def kafka():
    return _classpath("kafka", "kafka.xml", KAFKA_VERSIONS)


# Its published tests are of one release: a test of 4.4 asks for what 4.3 does not have.
APACHE_TESTS_VERSION = "4.3.1"


@alone
def apache_tests():
    """(version, Apache's jars, the directory of the runner, the directory of the cluster that stands in for Apache's test kit)."""
    version, classpath = _classpath("apache-tests", "apache-tests.xml", (APACHE_TESTS_VERSION,))
    _need("javac")
    root = HERE / "apache_tests" / "java"
    sources = sorted(root.rglob("*.java"))
    # A directory for each text: a run under way keeps the classes that it began with.
    texts = [classpath, *(f"{source.relative_to(root)} {source.read_text()}" for source in sources)]
    out = CACHE / "java" / f"apache-tests-{hashlib.sha256(''.join(texts).encode()).hexdigest()[:12]}"
    out.mkdir(parents=True, exist_ok=True)
    fresh, seal = _stamp(out, *texts)
    if not fresh:
        for name, chosen in (("runner", [s for s in sources if s.stem == "Run"]), ("cluster", [s for s in sources if s.stem != "Run"])):
            shutil.rmtree(out / name, ignore_errors=True)
            _run(f"apache-tests-{name}-javac", ["javac", "-nowarn", "-cp", classpath, "-d", str(out / name), *map(str, chosen)])
        shutil.copytree(root / "META-INF", out / "cluster" / "META-INF")
        seal()
    return version, classpath, str(out / "runner"), str(out / "cluster")


def kafka_3():
    return _classpath("kafka-3", "kafka-3.xml", (KAFKA_3_VERSION,))


@alone
def _java_program(name, source, versions):
    version, classpath = _classpath(name, "java-client.xml", versions)
    _need("javac")
    out = CACHE / "java" / name
    out.mkdir(parents=True, exist_ok=True)
    fresh, seal = _stamp(out, source.read_text(), classpath)
    if not fresh:
        _run(f"{name}-javac", ["javac", "-nowarn", "-cp", classpath, "-d", str(out), str(source)])
        seal()
    heap = ["-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
    return version, ["java", *heap, "-cp", f"{out}:{classpath}", source.stem]


def java():
    return _java_program("java", HERE / "clients/java/Driver.java", JAVA_CLIENT_VERSIONS)


def old_java():
    return _java_program("old-java", HERE / "clients/old-java/OldDriver.java", (OLD_JAVA_CLIENT_VERSION,))


@alone
def python():
    """The interpreter of a virtual environment that holds every Python client of today."""
    directory = CACHE / "python"
    fresh, seal = _stamp(directory, *PYTHON_PACKAGES)
    interpreter = directory / "bin" / "python"
    if not (fresh and interpreter.exists()):
        _need("python3")
        shutil.rmtree(directory, ignore_errors=True)
        _run("python-venv", ["python3", "-m", "venv", str(directory)])
        _run("python", [str(interpreter), "-m", "pip", "install", "-q", *PYTHON_PACKAGES])
        seal()
    return str(interpreter)


def _python_version(interpreter, package):
    code = f"import importlib.metadata as m; print(m.version('{package}'))"
    return subprocess.run([interpreter, "-c", code], capture_output=True, text=True).stdout.strip()


def python_client(script, package):
    def get():
        interpreter = python()
        return _python_version(interpreter, package), [interpreter, str(HERE / "clients/python" / script)]
    return get


@alone
def debian():
    """Debian 12's packages unpacked beside each other: the clients that its users have."""
    root = CACHE / "debian"
    root.mkdir(parents=True, exist_ok=True)
    fresh, seal = _stamp(root, *DEBIAN_PACKAGES)
    if not fresh:
        _need("apt-get")
        _need("dpkg-deb")
        try:
            _run("debian", ["apt-get", "download", *DEBIAN_PACKAGES], cwd=root)
        except Missing:
            _run("debian-lists", ["apt-get", "update"])
            _run("debian", ["apt-get", "download", *DEBIAN_PACKAGES], cwd=root)
        for package in sorted(root.glob("*.deb")):
            _run("debian-unpack", ["dpkg-deb", "-x", str(package), str(root)])
            package.unlink()
        seal()
    libraries = [str(path) for path in (root / "usr/lib").glob("*-linux-gnu")]
    env = {"LD_LIBRARY_PATH": ":".join(libraries), "PYTHONPATH": str(root / "usr/lib/python3/dist-packages")}
    return root, env


def debian_python(script, egg, **more):
    def get():
        root, env = debian()
        env |= more
        found = list((root / "usr/lib/python3/dist-packages").glob(f"{egg}-*.egg-info"))
        if not found:
            raise Missing(f"Debian's {egg} was not unpacked")
        version = re.match(rf"{egg}-([0-9.]+?)(-py|\.egg)", found[0].name).group(1)
        interpreter = next((p for p in ("/usr/bin/python3.11", shutil.which("python3.11")) if p and os.path.exists(p)), None)
        if interpreter is None:
            raise Missing("Debian 12's Python packages need Python 3.11")
        start = ["env", *(f"{k}={v}" for k, v in env.items()), interpreter]
        if egg == "confluent_kafka":
            # What counts is the library below: librdkafka's version.
            asked = subprocess.run([*start, "-c", "import confluent_kafka as c; print(c.libversion()[0])"], capture_output=True, text=True)
            version = asked.stdout.strip() or version
        return version, [*start, str(HERE / "clients/python" / script)]
    return get


def kcat():
    root, env = debian()
    program = root / "usr/bin/kcat"
    command = ["env", *(f"{k}={v}" for k, v in env.items()), str(program)]
    shown = subprocess.run([*command, "-V"], capture_output=True, text=True)
    found = re.search(r"Version (\S+)", shown.stdout + shown.stderr)
    if not found:
        raise Missing(f"kcat does not start: {(shown.stdout + shown.stderr).strip()[:120]}")
    return found.group(1), command


@alone
def go():
    _need("go")
    source = HERE / "clients/go"
    out = CACHE / "go"
    out.mkdir(parents=True, exist_ok=True)
    inputs = [(source / name).read_text() for name in ("go.mod", "main.go", "members.go", "go.sum")]
    fresh, seal = _stamp(out, *inputs)
    if not (fresh and (out / "driver").exists()):
        _run("go", ["go", "build", "-o", str(out / "driver"), "."], cwd=source,
             env={**os.environ, "GOFLAGS": "-buildvcs=false -mod=readonly"})
        seal()
    version = re.search(r"twmb/franz-go v(\S+)", inputs[0]).group(1)
    return version, [str(out / "driver")]


@alone
def javascript():
    _need("node")
    _need("npm")
    out = CACHE / "js"
    out.mkdir(parents=True, exist_ok=True)
    names = ("package.json", "package-lock.json", "driver.js")
    inputs = [(HERE / "clients/js" / name).read_text() for name in names]
    fresh, seal = _stamp(out, *inputs)
    if not fresh:
        for name in names:
            shutil.copy(HERE / "clients/js" / name, out / name)
        _run("js", ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=out)
        seal()
    version = re.search(r'"kafkajs": "([0-9.]+)"', inputs[0]).group(1)
    return version, ["node", "--no-warnings", str(out / "driver.js")]
