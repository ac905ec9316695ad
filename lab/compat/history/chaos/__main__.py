"""`lab/compat/history/run`: what is needed is looked for and built outside; the run itself is `run.py`, inside namespaces.

SKIP with a reason where namespaces cannot be had; a fault that cannot be made is left out with its reason.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from compat.cli import find_binary
from harness.server import java_words

from . import clients
from .clients import HERE, fetch
from .run import Run



def arguments(words):
    parser = argparse.ArgumentParser(prog="lab/compat/history/run", description="Real clients, a nemesis and the judge.")
    parser.add_argument("--minutes", type=float, default=10, help="of faults; healing, the last reading and judging come after")
    parser.add_argument("--quick", action="store_true", help="40 s of faults and fewer clients: what `make test` may run")
    parser.add_argument("--peer", default="barnabas", choices=("barnabas", "kafka"))
    parser.add_argument("--nodes", type=int, default=3, choices=(3, 4, 5), help="three are broker and controller, the others brokers")
    parser.add_argument("--rate", type=int, help="records a second of each producer")
    parser.add_argument("--in-flight", type=int, help="produce requests at a time (5; against Apache Kafka 1: README.md says why)")
    parser.add_argument("--all-transactions", action="store_true", help="also those that Apache Kafka is known to tear: README.md says which")
    parser.add_argument("--seed", type=int, help="the order of faults")
    parser.add_argument("--faults", help="only these, with commas (kill,pause,…)")
    parser.add_argument("--binary")
    parser.add_argument("--judge", help="the judge's program (target/release/barnabas-history)")
    parser.add_argument("--override", action="append", default=[], metavar="KEY=VALUE", help="further server properties")
    parser.add_argument("--keep", action="store_true", help="keep histories and logs (they are kept anyway when a rule is broken)")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    return parser.parse_args(words)


def need(tool, package):
    if shutil.which(tool) is None:
        for command in (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", package]):
            subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if shutil.which(tool) is None:
        raise fetch.Missing(f"{tool} is not installed and cannot be")


@fetch.alone
def faketime():
    """Debian's libfaketime, unpacked: (library, None) or (None, why not)."""
    root = fetch.CACHE / "faketime"
    try:
        found = list(root.rglob("libfaketime.so.1"))
        if not found:
            root.mkdir(parents=True, exist_ok=True)
            try:
                fetch._run("faketime", ["apt-get", "download", "libfaketime"], cwd=root)
            except fetch.Missing:
                fetch._run("faketime-lists", ["apt-get", "update"])
                fetch._run("faketime", ["apt-get", "download", "libfaketime"], cwd=root)
            for package in root.glob("*.deb"):
                fetch._run("faketime-unpack", ["dpkg-deb", "-x", str(package), str(root)])
                package.unlink()
            found = list(root.rglob("libfaketime.so.1"))
        shown = subprocess.run(["date", "+%s"], capture_output=True, text=True, env={**os.environ, "LD_PRELOAD": str(found[0]), "FAKETIME": "+9000s"})
        real = subprocess.run(["date", "+%s"], capture_output=True, text=True)
        if int(shown.stdout) - int(real.stdout) < 8000:
            return None, "libfaketime moves no clock here"
        return str(found[0]), None
    except (fetch.Missing, IndexError, ValueError, OSError) as why:
        return None, f"libfaketime: {why}"


def servers(options, place):
    """(label, command that serves, command that formats, further properties)."""
    if options.peer == "barnabas":
        binary = place / "barnabas"
        # A copy: nobody builds another one under a run.
        shutil.copy2(find_binary(options.binary), binary)
        return "Barnabas", [str(binary), "server"], [str(binary), "storage", "format"], {"log.journal.bytes": 64 << 20}
    version, classpath = fetch.kafka()
    java = java_words(classpath, heap="512m")
    return f"Apache Kafka {version}", [*java, "kafka.Kafka"], [*java, "kafka.tools.StorageTool", "format"], {}


def prepare(options, place):
    if os.geteuid() != 0:
        raise fetch.Missing("only root may make network namespaces")
    for tool, package in (("ip", "iproute2"), ("nft", "nftables"), ("mkfs.ext4", "e2fsprogs")):
        need(tool, package)
    tried = subprocess.run(["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c",
                            "ip link add br0 type bridge && nft add table inet x"], capture_output=True, text=True)
    if tried.returncode != 0:
        raise fetch.Missing(f"no network namespaces with a bridge and nftables: {tried.stderr.strip()[-200:]}")
    label, server, form, more = servers(options, place)
    programs, without = {}, {}
    for kind, get in (("java", clients.java), ("go", clients.go), ("python", clients.python)):
        try:
            programs[kind] = get()
        except fetch.Missing as why:
            without[kind] = str(why)
    if "java" not in programs:
        raise fetch.Missing(f"the admin and the last reading need the Java client: {without['java']}")
    # A JVM below libfaketime does not come to answer within a minute and a half.
    library, no_faketime = faketime() if options.peer == "barnabas" else (None, "a JVM does not start in time below libfaketime")
    return {
        "label": label, "server": server, "format": form, "overrides": {**more, **dict(pair.split("=", 1) for pair in options.override)},
        "java": programs["java"][1], "java_version": programs["java"][0], "go": programs.get("go"), "python": programs.get("python"),
        "without": without, "faketime": library, "no_faketime": no_faketime, "place": str(place),
        "nodes": options.nodes, "seed": options.seed or random.randrange(1 << 30), "quick": options.quick,
        "seconds": 40 if options.quick else options.minutes * 60, "disk_mib": 700 if options.quick else 1536,
        "rate": options.rate or (200 if options.quick or options.minutes <= 10 else 100),
        "in_flight": options.in_flight or (5 if options.peer == "barnabas" else 1),
        "transactions": ["java", "go", "python"] if options.peer == "barnabas" or options.all_transactions else ["java"],
        "hold": (1.5, 4) if options.quick else (2, 12), "rest": 12 if options.quick else 40,
        "patience": 90 if options.quick else 180,
        "faults": options.faults.split(",") if options.faults else None,
    }


def judge(options):
    target = Path(os.environ.get("CARGO_TARGET_DIR", fetch.REPOSITORY / "target"))
    found = [Path(options.judge)] if options.judge else [target / kind / "barnabas-history" for kind in ("release", "debug")]
    found = [path.resolve() for path in found if path.exists()]
    if not found:
        raise fetch.Missing("no judge: cargo build --release -p barnabas-history")
    return str(max(found, key=lambda path: path.stat().st_mtime))


def main(words):
    options = arguments(words)
    if options.inside:
        return Run(json.loads(Path(options.inside).read_text())).tell()
    place = Path(tempfile.mkdtemp(prefix="barnabas-chaos."))
    keep = options.keep
    try:
        program = judge(options)
        plan = prepare(options, place)
        path = place / "plan.json"
        path.write_text(json.dumps(plan))
        inside = subprocess.run(["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
                                 sys.executable, "-B", "-m", "chaos", "--inside", str(path)], cwd=HERE)
        code = verdict(program, place, plan, inside.returncode)
        keep = keep or code != 0
        return code
    except fetch.Missing as why:
        print(f"chaos: SKIP: {why}")
        print("chaos: 0 passed, 0 failed, 1 skipped")
        return 0
    finally:
        if keep:
            for image in place.glob("node-*/disk.img"):
                image.unlink()
            print(f"chaos: histories and logs are in {place}")
        else:
            shutil.rmtree(place, ignore_errors=True)


def verdict(program, place, plan, code):
    if code != 0:
        print(f"chaos: the run ended with {code}, its history is judged all the same")
    judged = subprocess.run([program, str(place / "history")], capture_output=True, text=True)
    lines = judged.stdout.splitlines()
    print("\n".join(lines[:-1]))
    if judged.returncode == 2:
        print(judged.stderr)
    history = sum(path.stat().st_size for path in (place / "history").glob("*.jsonl")) >> 20
    well = judged.returncode == 0 and code == 0
    summary = lines[-1] if lines else "not judged"
    print(f"chaos against {plan['label']}, {plan['nodes']} nodes, {plan['seconds'] / 60:.1f} minutes, seed {plan['seed']}: {summary} ({history} MiB of history)")
    print(f"chaos: {int(well)} passed, {int(not well)} failed, 0 skipped")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
