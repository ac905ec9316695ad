"""The two programs of this bench, built by rustc alone: tail.rs (open-loop producer, reader) and watch.rs (threads, device, probe)."""

import functools
import os
import subprocess
from pathlib import Path

from compat import fetch

HERE = Path(__file__).resolve().parent
FOLDER = "bench-tail"
SHARED = (HERE / "histogram.rs", HERE.parent / "rig/librdkafka.rs")


@functools.cache
def built(name):
    """The program, compiled where it is not the one of this source; once in a process, so that no turn waits for a compiler."""
    out = fetch.CACHE / FOLDER / name
    out.mkdir(parents=True, exist_ok=True)
    words = []
    if name == "tail":
        found = sorted(Path(fetch.python()).parents[1].glob("lib/python3*/site-packages/confluent_kafka.libs/librdkafka*.so*"))
        if not found:
            raise fetch.Missing("the confluent-kafka wheel brings no librdkafka")
        words = ["-C", f"link-arg={found[0]}", "-C", f"link-arg=-Wl,-rpath,{found[0].parent}"]
    source = HERE / f"{name}.rs"
    fresh, seal = fetch._stamp(out, source.read_text(), *(path.read_text() for path in SHARED), *words)
    if not (fresh and (out / name).exists()):
        made = out / f"{name}-{os.getpid()}"
        fetch._run(f"bench-{name}", ["rustc", "--edition", "2024", "-O", str(source), "--crate-name", name, "-o", str(made), *words])
        made.replace(out / name)
        seal()
    return str(out / name)


def histogram_tests(directory):
    """Runs histogram.rs's own tests; what they printed where one fails."""
    made = Path(directory) / "histogram-tests"
    compiled = subprocess.run(["rustc", "--edition", "2024", "--test", str(HERE / "histogram.rs"), "-o", str(made)], capture_output=True, text=True)
    if compiled.returncode != 0:
        return compiled.stderr
    ran = subprocess.run([str(made), "-q"], capture_output=True, text=True)
    return "" if ran.returncode == 0 else ran.stdout
